/* move_scores.h - scores that lie on one GPU and are searched on another. */
#ifndef WF_CUDA_DECODER_MOVE_SCORES_H
#define WF_CUDA_DECODER_MOVE_SCORES_H

#include "cuda/decoder/cuda_backend.h"

/* Chooses a GPU of the decoder for each of the `num_chosen` utterances in `order` whose scores are
 * in device memory, so that the GPUs get frames in proportion to their speeds
 * (wf__gpu_worker.frames_per_s), equal ones at first. Few scores move: only those that are too many
 * where they lie; with gpu_memory, none if they need more than a quarter of it. homes, targets: of
 * all utterances, GPUs or WF__SCORES_*; without device memory, target = home. */
void wf__spread_scores(const struct wf__cuda_backend *self, const wf_scores *scores,
                       const uint32_t *order, uint32_t num_chosen, const int *homes, int *targets);

/* Warns, once for each decoder, of scores on a GPU that is none of the decoder's. */
void wf__tell_of_moving(struct wf__cuda_backend *self, int home);

/* Starts to copy the scores whose home and target are different GPUs to their targets, after the
 * work of the home's default stream and of the caller's stream. `moved` [count] receives all
 * scores, with the addresses of their copies. The copies stay until the next call. Changes the
 * current device. */
wf_status wf__move_scores(struct wf__cuda_backend *self, const wf_scores *scores, const int *homes,
                          const int *targets, size_t count, wf_scores *moved, wf_error *err);
/* Waits for the copies if some go to `device`; -1: for all. Scores may not be searched, and the
 * call may not end, before. Any thread. */
wf_status wf__moved_wait(struct wf__cuda_backend *self, int device, wf_error *err);
/* Memory of the copies on a GPU. */
uint64_t wf__moved_bytes(const struct wf__cuda_backend *self, int device);
/* Frees the memory of the copies. */
void wf__move_scores_close(struct wf__cuda_backend *self);

#endif
