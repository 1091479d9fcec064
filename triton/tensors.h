/* tensors.h - what comes in a request and goes out in its response. */
#ifndef WARPFST_TRITON_TENSORS_H
#define WARPFST_TRITON_TENSORS_H

#include "triton_api.h"
#include "warpfst_all.h"

/* The tensors of a request. `scores` borrows the server's memory, or `copy` if that is in pieces.
 */
typedef struct tw_tensors {
  wf_scores scores;
  void *copy;
  const char *boosts; /* NULL: none */
  void *boosts_copy;
  uint64_t boosts_bytes;
} tw_tensors;

/* SCORES [1 or nothing, frames, columns] FP32, FP16, or BF16; BOOSTS [...] BYTES, if it is there.
 */
wf_status tensors_read(TRITONBACKEND_Request *request, tw_tensors *out, wf_error *err);
void tensors_free(tw_tensors *tensors);

/* What is said so far. */
typedef struct tw_output {
  const wf_word *words; /* [num_words] */
  size_t num_words, num_stable;
  int32_t endpoint;
  uint32_t flags; /* WF_RESULT_ */
  float cost;     /* of a result; 0 of a partial */
} tw_output;

/* Puts the outputs that were asked for into the response: TEXT, WORDS, STABLE, ENDPOINT, FLAGS,
 * FRAMES, COST. `batched`: shapes begin with 1. */
TRITONSERVER_Error *tensors_write(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
                                  const tw_output *output, const wf_symbols *words, bool batched);

#endif
