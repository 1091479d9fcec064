/* gpu_memory.c - a worker's memory on its GPU, beside the graph: the workspace, sized by the plans.
 */
#include "cuda/decoder/gpu_memory.h"

#include "cuda/decoder/gpu_worker.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/gpu_profile.h"

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
    int boosted;
    WF__CUDA_TRY(wf__search_kernels_of[WF__SEARCH_PLAIN].capacity(&out->profile, 1 << b,
                                                                  num_columns, &out->lanes[b]),
                 "the search kernel");
    WF__CUDA_TRY(wf__search_kernels_of[WF__SEARCH_BOOSTED].capacity(&out->profile, 1 << b,
                                                                    num_columns, &boosted),
                 "the search kernel");
    if (boosted < out->lanes[b]) out->lanes[b] = boosted;
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

static void free_memory(wf__gpu_memory *memory) {
  cudaFree(memory->workspace);
  cudaFreeHost(memory->pinned);
  memory->workspace = memory->pinned = NULL;
  memory->workspace_bytes = memory->pinned_bytes = 0;
}

/* Makes the memory at least as large as the plan says. */
static wf_status grow(wf__gpu_memory *memory, const wf__gpu_plan *plan, wf_error *err) {
  const uint64_t workspace_bytes = plan->chunk_bytes * plan->num_chunks,
                 pinned_bytes = plan->bytes.pinned_bytes;
  if (plan->bytes.total_bytes > memory->largest.total_bytes) memory->largest = plan->bytes;
  if (workspace_bytes <= memory->workspace_bytes && pinned_bytes <= memory->pinned_bytes)
    return WF_OK;
  free_memory(memory);
  WF__TRY(wf__device_alloc((void **)&memory->workspace, workspace_bytes,
                           "the planned memory (lower gpu_memory)", err));
  memory->workspace_bytes = workspace_bytes;
  WF__TRY(wf__pinned_alloc((void **)&memory->pinned, pinned_bytes, "a batch", err));
  memory->pinned_bytes = pinned_bytes;
  /* The chunks' streams do not wait for what CUDA does with new memory. */
  return wf__device_settle("the planned memory", err);
}

/* Gives chunk number `i` its part of the memory, and makes its streams. */
static wf_status prepare_chunk(wf__batch_chunk *chunk, const wf__gpu_memory *memory,
                               const wf__gpu_plan *plan, uint32_t i, bool lattices, int priority,
                               wf_error *err) {
  chunk->memory = memory->workspace + i * plan->chunk_bytes;
  chunk->room = (wf__search_room){
      .lane_memory = &plan->lane_memory,
      .transfer_plan = &plan->transfer,
      .lanes = chunk->memory + plan->off[WF__BATCH_LANES],
      .transfer = {memory->pinned + plan->window_bytes * 2 + i * plan->transfer.bytes,
                   chunk->memory + plan->off[WF__BATCH_TRANSFER]}};
  chunk->stage = WF__CHUNK_SEARCHED;
  chunk->count = 0;
  if (chunk->stream == NULL)
    WF__CUDA_TRY(cudaStreamCreateWithFlags(&chunk->stream, cudaStreamNonBlocking), "a stream");
  if (lattices && chunk->backward_stream == NULL)
    WF__CUDA_TRY(
        cudaStreamCreateWithPriority(&chunk->backward_stream, cudaStreamNonBlocking, priority),
        "a stream");
  return WF_OK;
}

wf_status wf__gpu_reserve(wf__gpu_worker *worker, wf_error *err) {
  const wf__gpu_plan *plan = &worker->plan;
  int last = 0, first = 0;
  WF__TRY(grow(&worker->memory, plan, err));
  worker->windows.memory = worker->memory.pinned;
  worker->windows.bytes = plan->window_bytes;
  worker->readbacks.memory =
      worker->memory.pinned + plan->window_bytes * 2 + plan->transfer.bytes * plan->num_chunks;
  worker->readbacks.bytes = plan->readback_bytes;
  WF__CUDA_TRY(cudaDeviceGetStreamPriorityRange(&last, &first), "a stream");
  for (uint32_t i = 0; i < plan->num_chunks; i++)
    WF__TRY(prepare_chunk(&worker->chunks[i], &worker->memory, plan, i,
                          worker->options.lattice_beam > 0, first, err));
  return plan->most_ranks > plan->ranks ? wf__gpu_launches_open_groups(&worker->launches, err)
                                        : WF_OK;
}

void wf__gpu_release(wf__gpu_worker *worker) {
  for (int i = 0; i < WF__MAX_CHUNKS; i++) {
    if (worker->chunks[i].stream != NULL) cudaStreamDestroy(worker->chunks[i].stream);
    if (worker->chunks[i].backward_stream != NULL)
      cudaStreamDestroy(worker->chunks[i].backward_stream);
  }
  free_memory(&worker->memory);
}
