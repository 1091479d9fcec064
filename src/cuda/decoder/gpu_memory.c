/* gpu_memory.c - a worker's memory on its GPU, beside the graph: the workspace, sized by the plans.
 */
#ifdef WARPFST_CUDA
#include "cuda/decoder/gpu_worker.h"
#include "cuda/device/device_memory.h"

enum { RESERVED_BYTES = 64 << 20 }; /* memory that CUDA itself allocates later */

wf_status wf__gpu_free_memory(uint64_t *out, wf_error *err) {
  size_t free_bytes = 0, all_bytes = 0;
  WF__CUDA_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "memory of the GPU");
  *out = free_bytes > RESERVED_BYTES ? (uint64_t)free_bytes - RESERVED_BYTES : 0;
  return WF_OK;
}

wf_status wf__device_limits_read(int device, int32_t num_columns, wf__device_limits *out,
                                 wf_error *err) {
  WF__TRY(wf__gpu_profile_read(device, &out->profile, err));
  for (int b = 0; b <= WF__MAX_RANK_BITS; b++) {
    WF__CUDA_TRY(wf__search_kernels_of[WF__SEARCH_PLAIN].capacity(&out->profile, 1 << b,
                                                                  num_columns, &out->lanes[b]),
                 "the search kernel");
    WF__CUDA_TRY(wf__search_kernels_of[WF__SEARCH_SCORED].capacity(
                     &out->profile, 1 << b, num_columns, &out->lanes[WF__LARGE_LANE + b]),
                 "the search kernel");
  }
  if (out->lanes[0] < 1)
    return wf__fail(err, WF_ERR_DEVICE, "device cuda:%d: the search kernel does not fit this GPU",
                    device);
  return wf__gpu_free_memory(&out->available, err);
}

/* --- the workspace ----------------------------------------------------------------------- */

static void release_workspace(wf__gpu_worker *worker) {
  cudaFree(worker->workspace);
  cudaFreeHost(worker->pinned);
  worker->workspace = worker->pinned = NULL;
  worker->workspace_bytes = worker->pinned_bytes = 0;
}

wf_status wf__gpu_reserve(wf__gpu_worker *worker, wf_error *err) {
  const wf__gpu_plan *plan = &worker->plan;
  const uint64_t workspace_bytes = plan->chunk_bytes * plan->num_chunks,
                 pinned_bytes = plan->bytes.pinned_bytes;
  if (workspace_bytes > worker->workspace_bytes || pinned_bytes > worker->pinned_bytes) {
    release_workspace(worker);
    WF__TRY(wf__device_alloc((void **)&worker->workspace, workspace_bytes,
                             "the planned memory (lower gpu_memory)", err));
    worker->workspace_bytes = workspace_bytes;
    WF__TRY(wf__pinned_alloc((void **)&worker->pinned, pinned_bytes, "a batch", err));
    worker->pinned_bytes = pinned_bytes;
    /* The chunks' streams do not wait for what CUDA does with new memory. */
    WF__TRY(wf__device_settle("the planned memory", err));
  }
  int last = 0, first = 0;
  WF__CUDA_TRY(cudaDeviceGetStreamPriorityRange(&last, &first), "a stream");
  worker->readback_windows =
      worker->pinned + plan->window_bytes * 2 + plan->transfer.bytes * plan->num_chunks;
  for (uint32_t i = 0; i < plan->num_chunks; i++) {
    wf__batch_chunk *chunk = &worker->chunks[i];
    chunk->memory = worker->workspace + i * plan->chunk_bytes;
    chunk->room = (wf__search_room){
        .lane_memory = &plan->lane_memory,
        .transfer_plan = &plan->transfer,
        .lanes = chunk->memory + plan->off[WF__BATCH_LANES],
        .transfer = {worker->pinned + plan->window_bytes * 2 + i * plan->transfer.bytes,
                     chunk->memory + plan->off[WF__BATCH_TRANSFER]}};
    chunk->stage = WF__CHUNK_SEARCHED;
    chunk->count = 0;
    if (chunk->stream == NULL)
      WF__CUDA_TRY(cudaStreamCreateWithFlags(&chunk->stream, cudaStreamNonBlocking), "a stream");
    if (worker->options.lattice_beam > 0 && chunk->backward_stream == NULL)
      WF__CUDA_TRY(
          cudaStreamCreateWithPriority(&chunk->backward_stream, cudaStreamNonBlocking, first),
          "a stream");
  }
  for (int i = 0; i < WF__MAX_RANK_BITS && plan->most_ranks > plan->ranks; i++)
    if (worker->group_streams[i] == NULL)
      WF__CUDA_TRY(cudaStreamCreateWithFlags(&worker->group_streams[i], cudaStreamNonBlocking),
                   "a stream");
  if (plan->bytes.total_bytes > worker->largest.total_bytes) worker->largest = plan->bytes;
  return WF_OK;
}

void wf__gpu_release(wf__gpu_worker *worker) {
  (void)cudaSetDevice(worker->device);
  for (int i = 0; i < WF__MAX_CHUNKS; i++) {
    if (worker->chunks[i].stream != NULL) cudaStreamDestroy(worker->chunks[i].stream);
    if (worker->chunks[i].backward_stream != NULL)
      cudaStreamDestroy(worker->chunks[i].backward_stream);
  }
  cudaEvent_t events[] = {worker->window_sent[0], worker->window_sent[1], worker->copied,
                          worker->entered, worker->between_groups};
  for (int i = 0; i < 5; i++)
    if (events[i] != NULL) cudaEventDestroy(events[i]);
  for (int i = 0; i < WF__MAX_RANK_BITS; i++)
    if (worker->group_streams[i] != NULL) cudaStreamDestroy(worker->group_streams[i]);
  if (worker->copy_stream != NULL) cudaStreamDestroy(worker->copy_stream);
  cudaFreeHost(worker->stop);
  release_workspace(worker);
  cudaFree(worker->graph_memory);
}

#endif
