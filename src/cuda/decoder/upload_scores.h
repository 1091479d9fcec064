/* upload_scores.h - scores from host memory to a GPU. */
#ifndef WF_CUDA_DECODER_UPLOAD_SCORES_H
#define WF_CUDA_DECODER_UPLOAD_SCORES_H

#include "cuda/decoder/batch_chunk.h"

struct wf__gpu_worker;

/* Two page-locked windows through which scores go: one is filled while the other is sent. */
typedef struct wf__score_windows {
  char *memory;   /* of both; of the worker's page-locked memory */
  uint64_t bytes; /* of one */
  cudaEvent_t sent[2], copied;
  int next; /* the window to fill next */
} wf__score_windows;

wf_status wf__score_windows_open(wf__score_windows *windows, wf_error *err);
void wf__score_windows_close(wf__score_windows *windows);
/* Sends the chunk's scores; its stream waits for them. Writes the utterances of the transfer block
 * and the places of bad scores. */
wf_status wf__gpu_send_scores(struct wf__gpu_worker *worker, wf__batch_chunk *chunk,
                              const wf__batch *batch, wf_error *err);

/* Is any score of the first columns unusable? For scores in host memory. */
bool wf__gpu_any_bad(const wf_scores *scores, int32_t num_columns);

#endif
