/* upload_added_words.h - words added to graphs, on a GPU. */
#ifndef WF_CUDA_GRAPH_UPLOAD_ADDED_WORDS_H
#define WF_CUDA_GRAPH_UPLOAD_ADDED_WORDS_H

#include <cuda_runtime_api.h>
#include "base/map64.h"
#include "plan/gpu_plan.h"

/* Words added to a graph. They stay as long as the last batch or a stream uses them. */
typedef struct wf__shared_words {
  wf_graph *graph;
  uint64_t users;
  char *memory; /* wf__lane_words, its classes, their trees */
  uint64_t bytes;
  struct wf__shared_words *next;
} wf__shared_words;

typedef struct wf__gpu_words {
  wf__shared_words *shared; /* all that are there */
  WF__VEC(wf__shared_words *) batch;
  wf__map64 of_graph; /* address of a graph of the batch -> number in `batch` */
} wf__gpu_words;

/* What is needed to send words. */
typedef struct wf__words_upload {
  const wf_graph *graph; /* the decoder's */
  const wf_decoder_options *options;
  cudaStream_t stream; /* for copies */
} wf__words_upload;

/* Puts the words of the batch's graphs on the current device. Those of the last batch are released.
 * *out_bytes: of all; 0: the batch has none. */
wf_status wf__gpu_take_words(wf__gpu_words *words, const wf__words_upload *upload,
                             const wf__batch *batch, uint64_t *out_bytes, wf_error *err);
/* Where the words added to a graph of the batch are; NULL: it has none. */
const wf__lane_words *wf__gpu_words_of(const wf__gpu_words *words, const wf_graph *graph);
void wf__gpu_close_words(wf__gpu_words *words);
/* Acquires the words added to a graph; *out = NULL if it has none. They are sent to the current
 * device if no other owner has them. */
wf_status wf__gpu_acquire_words(wf__gpu_words *words, const wf__words_upload *upload,
                                const wf_graph *graph, wf__shared_words **out, wf_error *err);
/* Ends the sharing; *place may be NULL and becomes NULL. */
void wf__gpu_release_words(wf__gpu_words *words, wf__shared_words **place);
/* Where they are on the GPU; NULL for NULL. */
static inline const wf__lane_words *wf__shared_words_there(const wf__shared_words *words) {
  return words != NULL ? (const wf__lane_words *)(const void *)words->memory : NULL;
}

#endif
