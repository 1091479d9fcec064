/* gpu_memory.c - a worker's memory on its GPU: the graph, kept for its lifetime, and the
 * workspace, sized by the plans. */
#ifdef WARPFST_CUDA
#include <math.h>
#include <string.h>

#include "cuda/decoder/gpu_worker.h"

enum {
  UPLOAD_STATES = 1 << 18,
  RESERVED_BYTES = 64 << 20
}; /* reserved: memory that CUDA itself allocates later */

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

/* --- the graph --------------------------------------------------------------------------- */

/* The number of a state, with the top bit set if the state has epsilon arcs. */
static uint32_t marked_state(const wf_graph *graph, uint32_t state) {
  const wf__state_index *index = &graph->index[state];
  return index[0].first_epsilon < index[1].first_arc ? state | 0x80000000u : state;
}

/* Number of the place for added words that the arc is, class by class. */
static uint32_t place_number(const wf_graph *graph, uint64_t arc) {
  const wf__class_site *site = wf__class_site_of(graph->classes, (uint32_t)arc);
  return site != NULL ? graph->classes->first_ranked[site->word_class] + site->rank
                      : WF__LANE_NO_PLACE;
}

/* States, or arcs as the kernel reads them: the input label replaced by the column of the scores,
 * -1 for epsilon, and the next state marked if it has epsilon arcs; of places (search_params.h)
 * their number. */
static void convert(const wf_graph *graph, bool arcs, uint64_t from, uint64_t count, void *to) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = from + i;
    if (arcs) {
      wf_arc arc = graph->view.arcs[at];
      arc.ilabel = graph->columns[arc.ilabel];
      arc.nextstate = graph->classes != NULL && arc.weight == INFINITY
                          ? place_number(graph, at)
                          : marked_state(graph, arc.nextstate);
      ((wf_arc *)to)[i] = arc;
    } else {
      ((wf__lane_state *)to)[i] =
          (wf__lane_state){graph->index[at].first_arc, graph->index[at].first_epsilon,
                           graph->index[at + 1].first_arc, graph->view.final_cost[at]};
    }
  }
}

static wf_status send(wf__gpu_worker *worker, void *to, const void *from, uint64_t bytes,
                      wf_error *err) {
  return wf__device_send(to, from, bytes, worker->copy_stream, "the graph to the GPU", err);
}

static wf_status upload(wf__gpu_worker *worker, bool arcs, uint64_t count, char *to, void *piece,
                        wf_error *err) {
  for (uint64_t from = 0; from < count; from += UPLOAD_STATES) {
    uint64_t size = count - from < UPLOAD_STATES ? count - from : UPLOAD_STATES;
    convert(worker->graph, arcs, from, size, piece);
    WF__TRY(send(worker, to + from * 16, piece, size * 16, err));
  }
  return WF_OK;
}

static wf_status upload_places(wf__gpu_worker *worker, char *to, wf_error *err) {
  const wf_graph *graph = worker->graph;
  worker->params.graph.places = NULL;
  if (graph->classes == NULL) return WF_OK;
  const uint64_t count = graph->classes->sites.size;
  wf__lane_place *places = wf__alloc(count, sizeof *places);
  if (places == NULL)
    return wf__fail_memory(err, count * sizeof *places, "the graph's copy for the GPU");
  for (uint64_t i = 0; i < count; i++) {
    const wf__class_site *site = &graph->classes->sites.data[graph->classes->ranked[i]];
    places[i] = (wf__lane_place){marked_state(graph, site->target), site->weight,
                                 (uint32_t)site->word_class, site->rank};
  }
  const wf_status status = send(worker, to, places, count * sizeof *places, err);
  free(places);
  worker->params.graph.places = to;
  return status;
}

/* The states that consuming or epsilon arcs lead from, by the state that they lead to: offsets,
 * then sources. */
static wf_status find_sources(const wf_graph *graph, bool epsilons, uint32_t *offsets,
                              uint32_t **out, wf_error *err) {
  const uint64_t num_states = graph->view.num_states;
  const wf_arc *arcs = graph->view.arcs;
  const wf__state_index *index = graph->index;
#define FIRST(s) (epsilons ? index[s].first_epsilon : index[s].first_arc)
#define END(s) (epsilons ? index[(s) + 1].first_arc : index[s].first_epsilon)
  memset(offsets, 0, (num_states + 1) * sizeof *offsets);
  for (uint64_t s = 0; s < num_states; s++)
    for (uint64_t a = FIRST(s); a < END(s); a++) offsets[arcs[a].nextstate]++;
  for (uint64_t s = 0; s < num_states; s++) offsets[s + 1] += offsets[s];
  uint32_t *sources = *out = wf__alloc(offsets[num_states], sizeof *sources);
  if (sources == NULL)
    return wf__fail_memory(err, offsets[num_states] * sizeof *sources,
                           "the graph's copy for the GPU");
  for (uint64_t s = num_states; s-- > 0;)
    for (uint64_t a = END(s); a-- > FIRST(s);) sources[--offsets[arcs[a].nextstate]] = (uint32_t)s;
#undef FIRST
#undef END
  return WF_OK;
}

/* Advances *to past the data. */
static wf_status upload_sources(wf__gpu_worker *worker, bool epsilons, char **to, wf_error *err) {
  const uint64_t num_states = worker->graph->view.num_states,
                 bytes = (num_states + 1) * sizeof(uint32_t);
  uint32_t *sources = NULL, *offsets = wf__alloc(num_states + 1, sizeof *offsets);
  wf_status status = offsets != NULL ? find_sources(worker->graph, epsilons, offsets, &sources, err)
                                     : wf__fail_memory(err, bytes, "the graph's copy for the GPU");
  worker->params.graph.in_offsets[epsilons] = (const uint32_t *)*to;
  if (status == WF_OK) status = send(worker, *to, offsets, bytes, err);
  *to += wf__round_up_256(bytes);
  worker->params.graph.in_sources[epsilons] = (const uint32_t *)*to;
  if (status == WF_OK)
    status = send(worker, *to, sources, offsets[num_states] * sizeof *sources, err);
  if (status == WF_OK) *to += wf__round_up_256(offsets[num_states] * sizeof *sources);
  free(offsets);
  free(sources);
  return status;
}

/* The graph's arrays that only lattices need; `to` has room for the components, if there are
 * any, and the sources. */
static wf_status upload_for_lattices(wf__gpu_worker *worker, char *to, wf_error *err) {
  const wf_graph *graph = worker->graph;
  float least[2] = {0, 0};
  for (uint64_t a = 0; a < graph->view.num_arcs; a++) {
    const wf_arc *arc = &graph->view.arcs[a];
    if (arc->weight < least[arc->ilabel == 0]) least[arc->ilabel == 0] = arc->weight;
  }
  memcpy(worker->params.graph.least_weights, least, sizeof least);
  worker->params.graph.components = NULL;
  if (graph->epsilon_components != NULL) {
    WF__TRY(send(worker, to, graph->epsilon_components, graph->view.num_states * 4, err));
    worker->params.graph.components = (const uint32_t *)to;
    to += wf__round_up_256(graph->view.num_states * 4);
  }
  WF__TRY(upload_sources(worker, false, &to, err));
  return upload_sources(worker, true, &to, err);
}

wf_status wf__gpu_upload_graph(wf__gpu_worker *worker, wf_error *err) {
  const wf_fst_view *view = &worker->graph->view;
  const uint64_t bytes = wf__gpu_graph_bytes(worker->graph, &worker->options),
                 available = wf__gpu_available(&worker->limits, &worker->options);
  if (bytes > available)
    return wf__fail(
        err, WF_ERR_MEMORY,
        "device cuda:%d: the graph takes %llu bytes, the GPU has %llu (gpu_memory or what is free)",
        worker->device, (unsigned long long)bytes, (unsigned long long)available);
  WF__CUDA_TRY(cudaMalloc(&worker->graph_memory, bytes), "room for the graph");
  worker->graph_bytes = bytes;
  void *piece = wf__alloc(UPLOAD_STATES, 16);
  if (piece == NULL)
    return wf__fail_memory(err, (uint64_t)UPLOAD_STATES * 16, "the graph's copy for the GPU");
  char *arcs = (char *)worker->graph_memory + ((view->num_states * 16 + 255) & ~(uint64_t)255);
  wf_status status = upload(worker, false, view->num_states, worker->graph_memory, piece, err);
  if (status == WF_OK) status = upload(worker, true, view->num_arcs, arcs, piece, err);
  char *places = arcs + ((view->num_arcs * 16 + 255) & ~(uint64_t)255);
  if (status == WF_OK) status = upload_places(worker, places, err);
  free(piece);
  worker->params.shared_kb = worker->limits.profile.shared_kb;
  worker->params.graph.states = worker->graph_memory;
  worker->params.graph.arcs = arcs;
  return status == WF_OK && worker->options.lattice_beam > 0
             ? upload_for_lattices(worker, places + wf__gpu_place_bytes(worker->graph), err)
             : status;
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
    WF__CUDA_TRY(cudaMalloc((void **)&worker->workspace, workspace_bytes),
                 "the planned memory; lower gpu_memory");
    worker->workspace_bytes = workspace_bytes;
    WF__CUDA_TRY(cudaHostAlloc((void **)&worker->pinned, pinned_bytes, cudaHostAllocPortable),
                 "page-locked host memory");
    worker->pinned_bytes = pinned_bytes;
    /* The chunks' streams do not wait for what CUDA does with new memory. */
    WF__CUDA_TRY(cudaDeviceSynchronize(), "the planned memory");
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
