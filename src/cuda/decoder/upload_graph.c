/* upload_graph.c - the graph in a GPU's memory, in the layout of the search:
 *
 *   states, arcs, columns by input label, places for added words and their arcs,
 *   and with lattices: components, the arcs into each state
 *
 * Kernels make the layout (graph_layout.h). A graph that a GPU built may lie in unified memory
 * (unified_memory.h); then nothing passes through host memory. */
#ifdef WARPFST_CUDA
#include <string.h>

#include "cuda/decoder/gpu_worker.h"
#include "cuda/device/device_memory.h"
#include "cuda/search/graph_layout.h"

#ifndef WF__UPLOAD_STATES /* a test makes it small */
#define WF__UPLOAD_STATES (1 << 18)
#endif

static wf_status send(wf__gpu_worker *worker, void *to, const void *from, uint64_t bytes,
                      wf_error *err) {
  return wf__device_send(to, from, bytes, worker->copy_stream, "the graph to the GPU", err);
}

/* Copies parts of the states to a buffer, from which a kernel writes the layout. */
static wf_status send_states(wf__gpu_worker *worker, wf__lane_state *to, wf__device_buffer *buffer,
                             wf_error *err) {
  const wf_graph *graph = worker->graph;
  const uint64_t n = graph->view.num_states, most = n < WF__UPLOAD_STATES ? n : WF__UPLOAD_STATES;
  WF__TRY(wf__device_reserve(buffer, (most + 1) * sizeof *graph->index + most * sizeof(float),
                             "the graph", err));
  wf__state_index *index = buffer->data;
  float *final_cost = (float *)(index + most + 1);
  for (uint64_t from = 0; from < n; from += most) {
    const uint64_t count = n - from < most ? n - from : most;
    WF__TRY(send(worker, index, graph->index + from, (count + 1) * sizeof *index, err));
    WF__TRY(
        send(worker, final_cost, graph->view.final_cost + from, count * sizeof *final_cost, err));
    WF__CUDA_TRY(wf__graph_states((const uint32_t *)index, final_cost, count, to + from,
                                  worker->copy_stream),
                 "the graph to the GPU");
  }
  return WF_OK;
}

static wf_status put_states(wf__gpu_worker *worker, wf__lane_state *to, wf_error *err) {
  const wf_graph *graph = worker->graph;
  wf__device_buffer buffer = {0};
  if (graph->device >= 0) {
    WF__CUDA_TRY(wf__graph_states((const uint32_t *)graph->index, graph->view.final_cost,
                                  graph->view.num_states, to, worker->copy_stream),
                 "the graph to the GPU");
    return WF_OK;
  }
  const wf_status status = send_states(worker, to, &buffer, err);
  cudaFree(buffer.data);
  return status;
}

static wf_status put_arcs(wf__gpu_worker *worker, const wf__lane_state *states,
                          const int32_t *columns, wf_arc *to, wf_error *err) {
  const wf_graph *graph = worker->graph;
  const wf_fst_view *view = &graph->view;
  const bool there = graph->device >= 0;
  if (!there) WF__TRY(send(worker, to, view->arcs, view->num_arcs * sizeof *to, err));
  WF__CUDA_TRY(wf__graph_arcs(there ? view->arcs : to, view->num_arcs, columns, states,
                              graph->classes != NULL, to, worker->copy_stream),
               "the graph to the GPU");
  return WF_OK;
}

/* Writes the places, class by class, to `places`, and their arcs. */
static void list_places(const wf__classes *classes, wf__lane_place *places, uint32_t *arc_of) {
  for (uint64_t i = 0; i < classes->sites.size; i++) {
    const wf__class_site *site = &classes->sites.data[classes->ranked[i]];
    places[i] =
        (wf__lane_place){site->target, site->weight, (uint32_t)site->word_class, site->rank};
    arc_of[i] = site->arc;
  }
}

/* `to` has room for the places, then their arcs. */
static wf_status put_places(wf__gpu_worker *worker, const wf__lane_state *states, char *to,
                            wf_arc *arcs, wf_error *err) {
  const wf__classes *classes = worker->graph->classes;
  worker->params.graph.places = NULL;
  if (classes == NULL) return WF_OK;
  const uint64_t count = classes->sites.size, bytes = wf__gpu_place_bytes(worker->graph);
  wf__lane_place *places = wf__alloc(bytes, 1);
  if (places == NULL) return wf__fail_memory(err, bytes, "the graph's copy for the GPU");
  list_places(classes, places, (uint32_t *)(places + count));
  const wf_status status =
      send(worker, to, places, count * (sizeof *places + sizeof(uint32_t)), err);
  free(places);
  WF__TRY(status);
  worker->params.graph.places = to;
  WF__CUDA_TRY(wf__graph_places((wf__lane_place *)to, (uint32_t *)((wf__lane_place *)to + count),
                                count, states, arcs, worker->copy_stream),
               "the graph to the GPU");
  return WF_OK;
}

/* --- for lattices ------------------------------------------------------------------------ */

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

/* --- all of it --------------------------------------------------------------------------- */

static wf_status put_graph(wf__gpu_worker *worker, char *to, wf_error *err) {
  const wf_graph *graph = worker->graph;
  wf__lane_state *states = (wf__lane_state *)to;
  to += wf__round_up_256(graph->view.num_states * sizeof *states);
  wf_arc *arcs = (wf_arc *)to;
  to += wf__round_up_256(graph->view.num_arcs * sizeof *arcs);
  int32_t *columns = (int32_t *)to;
  to += wf__round_up_256((uint64_t)graph->num_labels * sizeof *columns);
  worker->params.graph.states = states;
  worker->params.graph.arcs = arcs;
  WF__TRY(
      send(worker, columns, graph->columns, (uint64_t)graph->num_labels * sizeof *columns, err));
  WF__TRY(put_states(worker, states, err));
  WF__TRY(put_arcs(worker, states, columns, arcs, err));
  WF__TRY(put_places(worker, states, to, arcs, err));
  to += wf__gpu_place_bytes(graph);
  if (worker->options.lattice_beam > 0) WF__TRY(upload_for_lattices(worker, to, err));
  WF__CUDA_TRY(cudaStreamSynchronize(worker->copy_stream), "the graph to the GPU");
  return WF_OK;
}

wf_status wf__gpu_upload_graph(wf__gpu_worker *worker, wf_error *err) {
  const uint64_t bytes = wf__gpu_graph_bytes(worker->graph, &worker->options),
                 available = wf__gpu_available(&worker->limits, &worker->options);
  if (bytes > available)
    return wf__fail_room(err, worker->device, "the graph (see gpu_memory)", bytes, available);
  WF__TRY(wf__device_alloc(&worker->graph_memory, bytes, "the graph", err));
  worker->graph_bytes = bytes;
  worker->params.shared_kb = worker->limits.profile.shared_kb;
  return put_graph(worker, worker->graph_memory, err);
}
#endif
