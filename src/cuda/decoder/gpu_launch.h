/* gpu_launch.h - the launches of a batch: its searches, and the passes that make its lattices. */
#ifndef WF_CUDA_DECODER_GPU_LAUNCH_H
#define WF_CUDA_DECODER_GPU_LAUNCH_H

#include "cuda/decoder/batch_chunk.h"

struct wf__gpu_worker;

/* What the launches of all chunks share. */
typedef struct wf__gpu_launches {
  wf__lane_params params;
  uint32_t *stop;      /* page-locked: kernels end when it is not 0 */
  cudaEvent_t entered; /* the work on the caller's stream is done */
  cudaStream_t
      group_streams[WF__MAX_RANK_BITS]; /* for searches beside that of the chunk's stream */
  cudaEvent_t between_groups;
} wf__gpu_launches;

wf_status wf__gpu_launches_open(wf__gpu_launches *launches, wf_error *err);
/* The streams for groups, which few batches need. */
wf_status wf__gpu_launches_open_groups(wf__gpu_launches *launches, wf_error *err);
void wf__gpu_launches_close(wf__gpu_launches *launches);
/* The decoder's options, as kernels take them. */
wf__lane_rules wf__gpu_rules(const wf_decoder_options *options);
/* The kind of the batch's searches. */
wf__search_kind wf__gpu_kind_of(const struct wf__gpu_worker *worker);
/* Queues all work on the chunk's streams. Waits only for the scores of a recurrent scorer. */
wf_status wf__gpu_launch_chunk(const struct wf__gpu_worker *worker, wf__batch_chunk *chunk,
                               wf_error *err);
/* Queues the pass with these tables, after the search or the pass before has ended. */
wf_status wf__gpu_make_lattices(const struct wf__gpu_worker *worker, wf__batch_chunk *chunk,
                                wf__backward_tables tables, wf_error *err);

#endif
