/* chunk_results.h - results of a chunk: copied to host memory, then made by the worker's threads. */
#ifndef WF_CUDA_DECODER_CHUNK_RESULTS_H
#define WF_CUDA_DECODER_CHUNK_RESULTS_H

#include "cuda/decoder/batch_chunk.h"

struct wf__gpu_worker;
struct wf__work_queue;

/* Page-locked windows, since copies to other memory are several times slower. */
typedef struct wf__readback_windows {
  char *memory;   /* WF__READBACKS of `bytes` each, for paths and arcs of lattices; of the worker's
                   page-locked memory */
  uint64_t bytes; /* 0 without lattices */
  bool taken[WF__READBACKS];
} wf__readback_windows;

/* A free window; -1: there is none. */
int wf__readback_free(const wf__readback_windows *windows);
/* After the chunk's search: starts the copies of paths and lattices. `window`: a free one for them,
 * or -1. */
wf_status wf__gpu_fetch_results(struct wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                struct wf__work_queue *work, int window, wf_error *err);
/* After the copies have arrived: starts the threads, which make the results. */
void wf__gpu_fill_results(struct wf__gpu_worker *worker, wf__batch_chunk *chunk);
/* Frees the chunk, after its results are made if that has begun. */
wf_status wf__gpu_release_chunk(struct wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                wf_error *err);

#endif
