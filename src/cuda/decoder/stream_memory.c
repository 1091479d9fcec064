/* stream_memory.c - allocates the memory of streams on a GPU according to the plan
 * (gpu_stream_plan.h), and slots for their tokens. */
#include "cuda/decoder/stream_memory.h"

#include "cuda/device/device_memory.h"
#include "cuda/device/gpu_profile.h"
#include "cuda/search/graph_layout.h"

/* The state that each arc leaves, and whether it reads a frame: the kernel needs both for the
 * backtrace from the newest tokens. */
static wf_status find_sources(wf__gpu_worker *worker, wf_error *err) {
  const wf__lane_graph *graph = &worker->launches.params.graph;
  struct wf__gpu_streams *streams = worker->streams;
  static const char what[] = "the states that arcs leave";
  WF__TRY(wf__device_alloc((void **)&streams->arc_sources,
                           graph->num_explicit * sizeof *streams->arc_sources, what, err));
  WF__CUDA_TRY(
      wf__graph_sources(graph->states, graph->first_wide, streams->arc_sources, streams->stream),
      what);
  WF__CUDA_TRY(cudaStreamSynchronize(streams->stream), what);
  return WF_OK;
}

wf_status wf__streams_read_lanes(const wf__gpu_profile *profile, int32_t num_columns, int *lanes,
                                 wf_error *err) {
  for (int b = 0; b <= WF__MAX_RANK_BITS; b++)
    for (int kind = WF__SEARCH_PLAIN; kind < WF__SEARCH_DEFERRED; kind++) {
      int fit;
      WF__CUDA_TRY(wf__search_kernels_of[WF__SEARCH_STREAMS + kind].capacity(profile, 1 << b,
                                                                             num_columns, &fit),
                   "the search kernel");
      if (kind == WF__SEARCH_PLAIN || fit < lanes[b]) lanes[b] = fit;
    }
  return lanes[0] >= 1
             ? WF_OK
             : wf__fail(err, WF_ERR_DEVICE, "the search kernel of streams does not fit this GPU");
}

static wf_status create(wf__gpu_worker *worker, wf_error *err) {
  worker->streams = wf__calloc(1, sizeof *worker->streams);
  if (worker->streams == NULL) return wf__fail_memory(err, sizeof *worker->streams, "streams");
  wf__gpu_streams *streams = worker->streams;
  streams->scratch =
      wf__calloc((uint64_t)wf__pool_size(worker->threads.pool), sizeof *streams->scratch);
  if (streams->scratch == NULL) return wf__fail_memory(err, sizeof *streams, "streams");
  WF__TRY(wf__streams_read_lanes(&worker->limits.profile, worker->graph->min_columns,
                                 streams->lanes, err));
  WF__CUDA_TRY(cudaStreamCreateWithFlags(&streams->stream, cudaStreamNonBlocking), "a stream");
  return find_sources(worker, err);
}

static void free_workspace(wf__gpu_streams *streams) {
  cudaFree(streams->memory);
  cudaFreeHost(streams->pinned);
  cudaFreeHost(streams->out);
  streams->memory = streams->pinned = streams->out = NULL;
}

static wf_status allocate(wf__gpu_worker *worker, int num_sharing, wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  wf__device_limits limits = {.profile = worker->limits.profile};
  WF__TRY(wf__gpu_free_memory(&limits.available, err));
  limits.available += worker->uploaded.bytes + streams->num_slots * streams->plan.slot_bytes;
  for (int b = 0; b <= WF__MAX_RANK_BITS; b++) limits.lanes[b] = streams->lanes[b];
  WF__TRY(wf__stream_plan_make(worker->graph, &worker->options, &limits, num_sharing,
                               streams->scored, &streams->plan, err));
  WF__TRY(wf__device_alloc((void **)&streams->memory, streams->plan.bytes,
                           "the memory of streams (lower gpu_memory)", err));
  WF__TRY(
      wf__pinned_alloc((void **)&streams->pinned, streams->plan.transfer.bytes, "streams", err));
  WF__TRY(wf__pinned_alloc((void **)&streams->out, streams->plan.out_bytes, "streams", err));
  streams->room = (wf__search_room){
      .lane_memory = &streams->plan.lane_memory,
      .transfer_plan = &streams->plan.transfer,
      .lanes = streams->memory,
      .transfer = {streams->pinned, streams->memory + streams->plan.lane_memory.bytes}};
  return WF_OK;
}

wf_status wf__streams_reserve(wf__gpu_worker *worker, int num_sharing, bool scored, wf_error *err) {
  wf_status status = worker->streams == NULL ? create(worker, err) : WF_OK;
  if (status != WF_OK) {
    wf__streams_release(worker);
    return status;
  }
  wf__gpu_streams *streams = worker->streams;
  if (streams->memory != NULL && (streams->scored || !scored)) return WF_OK;
  const bool was_scored = streams->scored;
  free_workspace(streams);
  streams->scored = was_scored || scored;
  status = allocate(worker, num_sharing, err);
  if (status == WF_OK) return WF_OK;
  free_workspace(streams);
  streams->scored = was_scored;
  return status;
}

wf_status wf__streams_take_slot(wf__gpu_worker *worker, void **out, wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  *out = NULL;
  if (streams->slots.size == 0) {
    const uint64_t size = streams->plan.slot_bytes,
                   wanted = size < WF__STREAM_SLAB_BYTES ? WF__STREAM_SLAB_BYTES / size : 1,
                   left = streams->plan.max_slots - streams->num_slots;
    const uint64_t count = wanted < left ? wanted : left;
    char *slab;
    if (count == 0 || streams->num_slots >= streams->plan.max_slots)
      return wf__fail(err, WF_ERR_MEMORY,
                      "the GPU has room for no more streams: %llu slots of %llu bytes are taken "
                      "(gpu_memory or what is free): lower max_tokens (%d)",
                      (unsigned long long)streams->num_slots, (unsigned long long)size,
                      worker->options.max_tokens);
    WF__TRY(wf__vec_grow(&streams->slabs, 1, "streams", err));
    WF__TRY(wf__vec_grow(&streams->slots, streams->num_slots + count, "streams",
                         err)); /* room for all slots, so that returning one never needs memory */
    WF__TRY(wf__device_alloc((void **)&slab, count * size, "tokens of streams", err));
    streams->slabs.data[streams->slabs.size++] = slab;
    streams->num_slots += count;
    for (uint64_t i = count; i-- > 0;) streams->slots.data[streams->slots.size++] = slab + i * size;
  }
  *out = streams->slots.data[--streams->slots.size];
  return WF_OK;
}

wf_status wf__streams_reserve_contexts(wf__gpu_channel *channel, int num_sharing, wf_error *err) {
  WF__TRY(wf__streams_reserve(channel->worker, num_sharing, true, err));
  return channel->contexts == NULL
             ? wf__streams_take_slot(channel->worker, (void **)&channel->contexts, err)
             : WF_OK;
}

void wf__streams_return_slot(wf__gpu_worker *worker, void *slot) {
  if (slot != NULL) worker->streams->slots.data[worker->streams->slots.size++] = slot;
}

void wf__streams_release(wf__gpu_worker *worker) {
  wf__gpu_streams *streams = worker->streams;
  if (streams == NULL) return;
  (void)cudaSetDevice(worker->device);
  if (streams->stream != NULL) {
    cudaStreamSynchronize(streams->stream);
    cudaStreamDestroy(streams->stream);
  }
  free_workspace(streams);
  for (uint64_t i = 0; i < streams->slabs.size; i++) cudaFree(streams->slabs.data[i]);
  cudaFree(streams->arc_sources);
  wf__vec_free(&streams->slabs);
  wf__vec_free(&streams->slots);
  wf__vec_free(&streams->pending);
  wf__vec_free(&streams->items);
  for (int i = 0; streams->scratch != NULL && i < wf__pool_size(worker->threads.pool); i++) {
    free(streams->scratch[i].renumber);
    wf__history_free(&streams->scratch[i].history);
    wf__vec_free(&streams->scratch[i].frame_of);
    wf__vec_free(&streams->scratch[i].links);
    wf__vec_free(&streams->scratch[i].loglikes);
  }
  free(streams->scratch);
  free(streams);
  worker->streams = NULL;
}
