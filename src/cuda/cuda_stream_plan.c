/* cuda_stream_plan.c - the memory of streams on a GPU: how much, and where in it what lies (cuda_streams.h). */
#ifdef WARPFST_CUDA
#include "cuda/cuda_streams.h"

static uint64_t round_up(uint64_t bytes) { return (bytes + 255) & ~(uint64_t)255; }
static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* --- the plan ------------------------------------------------------------------------------------------------------------- */

static void lay_out_box(wf__stream_plan *plan) {
  const uint64_t chunk = plan->chunk;
  const uint64_t sizes[WF__NUM_STREAM_BOX] = {chunk * sizeof(wf__lane_utterance), chunk * sizeof(wf__lane_chunk), chunk * sizeof(uint32_t), 16, plan->window_bytes};
  plan->box_bytes = 0;
  for (int i = 0; i < WF__NUM_STREAM_BOX; i++) {
    plan->box_off[i] = plan->box_bytes;
    plan->box_bytes += round_up(sizes[i]);
  }
}

static void lay_out(wf__stream_plan *plan, const wf_graph *graph, const wf_decoder_options *options, uint32_t parts, bool scored) {
  const uint64_t tokens = (uint64_t)options->max_tokens, cap = plan->trace_cap, frames = WF__STREAM_FRAMES;
  const uint64_t chunk_bytes = round_up(frames * (uint64_t)graph->min_columns * sizeof(float));
  plan->parts = parts;
  plan->chunk = parts * WF__STREAM_CHUNKS;
  plan->window_bytes = max_u64(chunk_bytes, min_u64(plan->chunk * chunk_bytes, WF__STREAM_WINDOW_BYTES));
  plan->ancestors_cap = max_u64((frames + 1) * tokens, (uint64_t)plan->chunk * WF__STREAM_ANCESTORS);
  lay_out_box(plan);
  plan->out_bytes = round_up(plan->chunk * sizeof(wf__lane_advance)) + plan->ancestors_cap * sizeof(wf__lane_ancestor);
  const uint64_t sizes[WF__NUM_STREAM_ARRAYS] = {
      WF__LANE_SLOTS * 4, WF__LANE_SLOTS * 16, cap * 8, cap * 8, (frames + 2) * 4, (frames + 1) * WF__LANE_INDEX * 2, (frames + 2) * 4, (frames + 2) * 4,
      scored ? cap * 16 : 0, scored ? WF__LANE_WORD_LOG * sizeof(wf__lane_logged) : 0, scored ? (uint64_t)8 << WF__LANE_SCORED_SLOT_BITS : 0,
      scored ? WF__LANE_ASKED * sizeof(wf__lane_asked) : 0};
  plan->bytes = 0;
  for (int i = 0; i < WF__NUM_STREAM_ARRAYS; i++) {
    plan->off[i] = plan->bytes;
    plan->bytes += round_up(i == WF__STREAM_BOX ? plan->box_bytes : sizes[i] * parts);
  }
  plan->slot_bytes = round_up(tokens * sizeof(wf__lane_token));
}

wf_status wf__stream_plan_make(const wf_graph *graph, const wf_decoder_options *options, const wf__gpu_facts *facts, int num_sharing, bool scored, wf__stream_plan *out,
                               wf_error *err) {
  const uint64_t all = wf__gpu_available(facts, options), available = all == UINT64_MAX ? all : all / (uint64_t)num_sharing;
  const uint64_t graph_bytes = wf__gpu_graph_bytes(graph, options) + round_up(graph->view.num_arcs * sizeof(uint32_t));
  *out = (wf__stream_plan){0};
  WF__TRY(wf__gpu_check_graph(graph, err));
  const int32_t most = (scored ? WF__LANE_SCORED_TOKENS : WF__LANE_TOKENS) << WF__MAX_RANK_BITS;
  if (options->max_tokens > most)
    return wf__fail(err, WF_ERR_LIMIT, "max_tokens of %d is more than the GPU search holds%s: %d", options->max_tokens, scored ? " with scorers" : "", most);
  /* A block has all tokens of a frame at most, or as many as its table. */
  out->trace_cap = (uint32_t)((WF__STREAM_FRAMES + 1) * min_u64((uint64_t)options->max_tokens, WF__LANE_SLOTS) + 31) & ~31u;
  for (uint32_t parts = (uint32_t)facts->lanes[0];; parts = (parts + 1) / 2) {
    lay_out(out, graph, options, parts, scored);
    const uint64_t bytes = graph_bytes + out->bytes;
    if (bytes + out->slot_bytes <= available) {
      out->max_slots = (available - bytes) / out->slot_bytes;
      return WF_OK;
    }
    if (parts <= 1u << WF__MAX_RANK_BITS)
      return wf__fail(err, WF_ERR_MEMORY, "the GPU has %llu bytes for streams (gpu_memory or what is free), at least %llu are needed: lower max_tokens (%d)",
                      (unsigned long long)available, (unsigned long long)(bytes + out->slot_bytes), options->max_tokens);
  }
}

/* --- memory --------------------------------------------------------------------------------------------------------------- */

/* The state that each arc leaves, and whether it reads a frame: what the kernel needs to go back from the newest tokens. */
static wf_status upload_sources(wf__gpu_worker *worker, wf_error *err) {
  const wf_graph *graph = worker->graph;
  const uint64_t count = graph->view.num_arcs;
  uint32_t *sources = wf__alloc(count, sizeof *sources);
  if (sources == NULL) return wf__fail_memory(err, count * sizeof *sources, "the graph's copy for the GPU");
  for (uint64_t s = 0; s < graph->view.num_states; s++)
    for (uint32_t a = graph->index[s].first_arc; a < graph->index[s + 1].first_arc; a++)
      sources[a] = (uint32_t)s | (a >= graph->index[s].first_epsilon ? WF__LANE_EPSILON : 0);
  cudaError_t code = cudaMalloc((void **)&worker->streams->arc_sources, count > 0 ? count * sizeof *sources : 1);
  if (code == cudaSuccess) code = cudaMemcpy(worker->streams->arc_sources, sources, count * sizeof *sources, cudaMemcpyHostToDevice);
  free(sources);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, code, "the graph to the GPU");
}

static wf_status create(wf__gpu_worker *worker, wf_error *err) {
  worker->streams = wf__calloc(1, sizeof *worker->streams);
  if (worker->streams == NULL) return wf__fail_memory(err, sizeof *worker->streams, "streams");
  wf__gpu_streams *streams = worker->streams;
  streams->scratch = wf__calloc((uint64_t)wf__pool_size(worker->pool), sizeof *streams->scratch);
  if (streams->scratch == NULL) return wf__fail_memory(err, sizeof *streams, "streams");
  for (int b = 0; b <= WF__MAX_RANK_BITS; b++) {
    int scored;
    WF__CUDA_TRY(wf__lane_streams_capacity(1 << b, worker->graph->min_columns, &streams->lanes[b]), "the search kernel");
    WF__CUDA_TRY(wf__lane_scored_streams_capacity(1 << b, worker->graph->min_columns, &scored), "the search kernel");
    if (scored < streams->lanes[b]) streams->lanes[b] = scored;
  }
  if (streams->lanes[0] < 1) return wf__fail(err, WF_ERR_DEVICE, "device cuda:%d: the search kernel of streams does not fit this GPU", worker->device);
  WF__CUDA_TRY(cudaStreamCreateWithFlags(&streams->stream, cudaStreamNonBlocking), "a stream");
  return upload_sources(worker, err);
}

static void free_workspace(wf__gpu_streams *streams) {
  cudaFree(streams->memory);
  cudaFreeHost(streams->box);
  cudaFreeHost(streams->out);
  streams->memory = streams->box = streams->out = NULL;
}

static wf_status allocate(wf__gpu_worker *worker, int num_sharing, wf_error *err) {
  wf__gpu_streams *streams = worker->streams;
  wf__gpu_facts facts = {.available = 0};
  WF__TRY(wf__gpu_free_memory(&facts.available, err));
  facts.available += worker->graph_bytes + streams->num_slots * streams->plan.slot_bytes;
  for (int b = 0; b <= WF__MAX_RANK_BITS; b++) facts.lanes[b] = streams->lanes[b];
  WF__TRY(wf__stream_plan_make(worker->graph, &worker->options, &facts, num_sharing, streams->scored, &streams->plan, err));
  WF__CUDA_TRY(cudaMalloc((void **)&streams->memory, streams->plan.bytes), "the memory of streams; lower gpu_memory");
  WF__CUDA_TRY(cudaHostAlloc((void **)&streams->box, streams->plan.box_bytes, cudaHostAllocPortable), "page-locked host memory");
  WF__CUDA_TRY(cudaHostAlloc((void **)&streams->out, streams->plan.out_bytes, cudaHostAllocPortable), "page-locked host memory");
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
    const uint64_t size = streams->plan.slot_bytes, wanted = size < WF__STREAM_SLAB_BYTES ? WF__STREAM_SLAB_BYTES / size : 1, left = streams->plan.max_slots - streams->num_slots;
    const uint64_t count = wanted < left ? wanted : left;
    char *slab;
    if (count == 0 || streams->num_slots >= streams->plan.max_slots)
      return wf__fail(err, WF_ERR_MEMORY, "the GPU has room for no more streams: %llu slots of %llu bytes are taken (gpu_memory or what is free)",
                      (unsigned long long)streams->num_slots, (unsigned long long)size);
    WF__TRY(wf__vec_grow(&streams->slabs, 1, "streams", err));
    WF__TRY(wf__vec_grow(&streams->slots, streams->num_slots + count, "streams", err)); /* all of them may come back: returning one needs no memory */
    WF__CUDA_TRY(cudaMalloc((void **)&slab, count * size), "room for streams");
    streams->slabs.data[streams->slabs.size++] = slab;
    streams->num_slots += count;
    for (uint64_t i = count; i-- > 0;) streams->slots.data[streams->slots.size++] = slab + i * size;
  }
  *out = streams->slots.data[--streams->slots.size];
  return WF_OK;
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
  wf__vec_free(&streams->flight);
  for (int i = 0; streams->scratch != NULL && i < wf__pool_size(worker->pool); i++) free(streams->scratch[i].renumber);
  free(streams->scratch);
  free(streams);
  worker->streams = NULL;
}

#endif
