/* tensors.h - the tensors of requests and responses. */
#ifndef WARPFST_TRITON_TENSORS_H
#define WARPFST_TRITON_TENSORS_H

#include "triton_api.h"
#include "warpfst_all.h"

/* The tensors of a request. `scores` points to the server's memory, or to `copy` if the server has
 * it in several buffers. `boosts` and `boosts_copy` likewise. */
typedef struct tw_tensors {
  wf_scores scores;
  void *copy;
  const char *boosts; /* NULL: none */
  void *boosts_copy;
  uint64_t boosts_bytes;
  bool boosts_are_lines; /* they are a text, one phrase a line, not a tensor */
} tw_tensors;

/* Reads SCORES, [frames, columns] or [1, frames, columns] of FP32, FP16 or BF16; and, if the
 * request has them, boosts: the parameter `boosts`, a string, or BOOSTS, BYTES of any shape. The
 * server makes no batches of requests with and without an optional tensor, so the parameter is
 * faster. */
wf_status tensors_read(TRITONBACKEND_Request *request, tw_tensors *out, wf_error *err);
void tensors_free(tw_tensors *tensors);

/* The words recognised so far. */
typedef struct tw_output {
  const wf_word *words; /* [num_words] */
  size_t num_words, num_stable;
  int32_t endpoint;
  uint32_t flags; /* WF_RESULT_ */
  float cost;     /* cost of a result; 0 for a partial */
} tw_output;

/* Writes the outputs that the request names to the response: TEXT, WORDS, STABLE, ENDPOINT, FLAGS,
 * FRAMES, COST. `batched`: shapes begin with a batch dimension of 1. */
TRITONSERVER_Error *tensors_write(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
                                  const tw_output *output, const wf_symbols *words, bool batched);

#endif
