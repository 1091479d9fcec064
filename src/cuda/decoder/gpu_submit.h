/* gpu_submit.h - the one way to start a search on a GPU, for batches, streams and recurrent
 * scoring: describe the utterances, send the transfer block, launch the kernel of the kind. */
#ifndef WF_CUDA_DECODER_GPU_SUBMIT_H
#define WF_CUDA_DECODER_GPU_SUBMIT_H

#include <cuda_runtime_api.h>

#include "decode/backend.h"
#include "plan/lane_memory.h"

struct wf__rnn_scoring;

/* The memory of searches: the arrays of the lanes and a transfer block. It owns nothing. */
typedef struct wf__search_room {
  const wf__lane_memory *lane_memory;
  const wf__transfer_plan *transfer_plan;
  char *lanes; /* in device memory */
  wf__transfer transfer;
} wf__search_room;

/* A part of the block, on the host's side. */
static inline void *wf__search_room_part(const wf__search_room *room, wf__transfer_part part) {
  return room->transfer.host + room->transfer_plan->off[part];
}

/* One launch of a search. */
typedef struct wf__search_launch {
  wf__search_kind kind;
  struct wf__rnn_scoring *rnn_scoring; /* for kinds with deferred scores; otherwise NULL */
  int queue;                           /* which of the counters' queues it takes from */
  uint64_t first_part;                 /* its first block in the memory of the lanes */
  uint32_t first, count; /* its utterances: `count` places of the order, from place `first` on */
  uint32_t max_lanes, ranks;
  cudaEvent_t begun;  /* done when all its lanes run (wf__search_kernels.launch); NULL: none */
  uint64_t num_begun; /* of its utterances, those that begin: recurrent scorers count them */
} wf__search_launch;

/* Bytes that `rows` frames take when they are packed to `columns` columns; 0 for scores that lie
 * on the GPU, which are read there. */
uint64_t wf__gpu_packed_bytes(const wf_scores *scores, int64_t rows, int32_t columns);
/* Describes the utterance to the kernels, without scorer, root and words: `rows` frames from
 * frame `from` on. `packed`: their address on the GPU if they come from host memory. */
wf__lane_utterance wf__gpu_describe(const wf_scores *scores, int64_t from, int64_t rows,
                                    int32_t columns, const void *packed);

/* Clears counters and outcomes and sends the block, with the first `score_bytes` of its scores.
 * Does not wait. */
wf_status wf__gpu_send_transfer(const wf__search_room *room, uint64_t score_bytes,
                                cudaStream_t stream, wf_error *err);

/* The parameters of a launch. `shared`: graph, options and all else outside this memory. */
wf__lane_params wf__gpu_search_params(const wf__search_room *room, const wf__lane_params *shared,
                                      const wf__search_launch *launch);

/* Starts the search after the work on the stream. Does not wait, unless scores are deferred:
 * then it returns when the search is done. */
wf_status wf__gpu_submit(const wf__search_room *room, const wf__search_launch *launch,
                         wf__lane_params *params, cudaStream_t stream, wf_error *err);

#endif
