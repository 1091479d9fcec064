/* gpu_submit.c - the steps of gpu_submit.h. */
#include "cuda/decoder/gpu_submit.h"

#include <string.h>

#include "cuda/decoder/gpu_pipeline.h"
#include "cuda/decoder/rnn_scoring.h"

uint64_t wf__gpu_packed_bytes(const wf_scores *scores, int64_t rows, int32_t columns) {
  if (scores->on_device) return 0;
  return wf__round_up_256((uint64_t)rows * (uint64_t)columns * wf__dtype_bytes(scores->dtype));
}

wf__lane_utterance wf__gpu_describe(const wf_scores *scores, int64_t from, int64_t rows,
                                    int32_t columns, const void *packed) {
  const bool there = scores->on_device && rows > 0;
  const uint64_t skipped =
      (uint64_t)from * (uint64_t)scores->stride * wf__dtype_bytes(scores->dtype);
  return (wf__lane_utterance){.scores = there ? (const char *)scores->data + skipped : packed,
                              .stride = scores->on_device ? scores->stride : columns,
                              .num_frames = (int32_t)rows,
                              .num_columns = columns,
                              .dtype = (int32_t)scores->dtype};
}

wf_status wf__gpu_send_transfer(const wf__search_room *room, uint64_t score_bytes,
                                cudaStream_t stream, wf_error *err) {
  const uint64_t *off = room->transfer_plan->off;
  char *host = room->transfer.host;
  memset(host + off[WF__TRANSFER_COUNTERS], 0, sizeof(wf__transfer_counters));
  memset(host + off[WF__TRANSFER_OUTCOMES], 0,
         off[WF__TRANSFER_SCORES] - off[WF__TRANSFER_OUTCOMES]);
  WF__CUDA_TRY(cudaMemcpyAsync(room->transfer.device, host, off[WF__TRANSFER_SCORES] + score_bytes,
                               cudaMemcpyHostToDevice, stream),
               "utterances to the GPU");
  return WF_OK;
}

wf__lane_params wf__gpu_search_params(const wf__search_room *room, const wf__lane_params *shared,
                                      const wf__search_launch *launch) {
  wf__lane_params p = *shared;
  wf__lane_memory_fill(room->lane_memory, room->lanes, launch->first_part, &p);
  wf__transfer_fill(room->transfer_plan, &room->transfer, launch->queue, &p);
  p.work.order += launch->first;
  p.work.num_utterances = launch->count;
  p.memory.num_lanes = launch->max_lanes < launch->count ? launch->max_lanes : launch->count;
  p.memory.ranks = launch->ranks;
  return p;
}

wf_status wf__gpu_submit(const wf__search_room *room, const wf__search_launch *launch,
                         wf__lane_params *params, cudaStream_t stream, wf_error *err) {
  if (launch->rnn_scoring == NULL)
    return wf__gpu_launch(launch->kind, params, stream, launch->begun, err);
  const wf__rnn_search search = {.kind = launch->kind,
                                 .params = params,
                                 .utterances = wf__search_room_part(room, WF__TRANSFER_UTTERANCES),
                                 .num_begun = launch->num_begun,
                                 .entered = stream};
  return wf__rnn_scoring_search(launch->rnn_scoring, &search, err);
}
