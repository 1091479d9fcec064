/* upload_graph.c - the graph in a GPU's memory, in the layout of the search:
 *
 *   states, arcs, columns by input label, places for added words and their arcs,
 *   and with lattices: components, the token that a state holds, the arcs into each state
 *
 * Kernels make the layout (graph_layout.h). A graph that a GPU built may lie in unified memory
 * (device_memory.h); then nothing passes through host memory. */
#include "cuda/graph/upload_graph.h"

#include <math.h>
#include <string.h>

#include "base/interrupt.h"
#include "cuda/device/device_memory.h"
#include "cuda/search/graph_layout.h"

#ifndef WF__UPLOAD_STATES /* a test makes it small */
#define WF__UPLOAD_STATES (1 << 18)
#endif

/* States and arcs of the search in host memory: those of the fst, or those that are numbers of a
 * CTC graph, written out. */
struct arrays {
  uint64_t num_states, num_arcs; /* num_arcs: in memory; those of wide states are not at their
                                    numbers */
  uint64_t num_explicit, first_wide;
  const wf_arc *arcs;
  const float *final_cost;
  const uint32_t *components; /* NULL: none */
  wf__lane_wide *wide;        /* [num_states - first_wide] */
  void *own[4];               /* those of a CTC graph; NULL otherwise */
};

struct upload {
  const wf_graph *graph;
  const wf_decoder_options *options;
  cudaStream_t stream;
  wf__lane_graph *there;
  struct arrays host;
};

static void free_arrays(struct arrays *host) {
  for (int i = 0; i < 4; i++) free(host->own[i]);
}

wf_status wf__write_wide(const wf__ctc_states *ctc, const int32_t *columns, wf_arc *arcs,
                         uint64_t next, wf__lane_wide *wide, wf_error *err) {
  uint64_t run = next, owner = UINT64_MAX;
  for (uint64_t v = ctc->first_wide; v < ctc->num_states; v++) {
    const wf__ctc_state state = ctc->states[v];
    const uint32_t count = wf__ctc_num_tokens(ctc, state.owner);
    if (state.owner != owner) {
      WF__TRY(wf__interrupted(err));
      owner = state.owner;
      run = next;
      for (uint32_t k = 0; k < count; k++) {
        const uint64_t a = ctc->view.arc_off[owner] + k;
        arcs[next] = ctc->view.arcs[a];
        arcs[next++].nextstate = ctc->targets[a];
      }
    }
    *wide++ = (wf__lane_wide){(uint32_t)run, count,
                              state.held != 0 ? (uint32_t)columns[state.held] : UINT32_MAX,
                              (uint32_t)next};
    next = (uint64_t)(wf__ctc_write_others(ctc, (uint32_t)v, arcs + next) - arcs);
  }
  return WF_OK;
}

static wf_status write_out(const wf_graph *graph, struct arrays *host, wf_error *err) {
  const wf__ctc_states *ctc = graph->ctc;
  wf_arc *arcs = host->own[0] = wf__alloc(host->num_arcs, sizeof *arcs);
  float *final_cost = host->own[1] = wf__alloc(host->num_states, sizeof *final_cost);
  uint32_t *components = host->own[2] =
      graph->epsilon_components != NULL ? wf__alloc(host->num_states, sizeof *components) : NULL;
  if (arcs == NULL || final_cost == NULL ||
      (components == NULL && graph->epsilon_components != NULL))
    return wf__fail_memory(err, host->num_arcs * sizeof *arcs, "the graph's copy for the GPU");
  host->arcs = arcs;
  host->final_cost = final_cost;
  host->components = components;
  host->wide = host->own[3] = wf__alloc(host->num_states - host->first_wide, sizeof *host->wide);
  if (host->wide == NULL)
    return wf__fail_memory(err, (host->num_states - host->first_wide) * sizeof *host->wide,
                           "the graph's copy for the GPU");
  for (uint64_t v = 0; v < host->num_states; v++) {
    WF__TRY(wf__interrupted_at(v, err));
    if (v < host->first_wide) arcs = wf__ctc_write_arcs(ctc, (uint32_t)v, arcs);
    final_cost[v] = wf__graph_final(graph, (uint32_t)v);
    if (components != NULL) components[v] = wf__epsilon_component(graph, (uint32_t)v);
  }
  if (host->first_wide == host->num_states) return WF_OK;
  return wf__write_wide(ctc, graph->columns, host->own[0], host->num_explicit, host->wide, err);
}

static wf_status take_arrays(const wf_graph *graph, struct arrays *host, wf_error *err) {
  const bool shares = wf__gpu_shares_arcs(graph);
  const uint64_t num_explicit = wf__gpu_explicit_arcs(graph);
  *host = (struct arrays){
      .num_states = graph->first_added_state,
      .num_arcs = num_explicit + (shares ? graph->num_wide_arcs + graph->num_wide_others : 0),
      .num_explicit = num_explicit,
      .first_wide = shares ? graph->ctc->first_wide : graph->first_added_state,
      .arcs = graph->view.arcs,
      .final_cost = graph->view.final_cost,
      .components = graph->epsilon_components};
  return graph->ctc != NULL ? write_out(graph, host, err) : WF_OK;
}

static wf_status send(const struct upload *u, void *to, const void *from, uint64_t bytes,
                      wf_error *err) {
  return wf__device_send(to, from, bytes, u->stream, "the graph to the GPU", err);
}

/* Copies parts of the states to a buffer, from which a kernel writes the layout. */
static wf_status send_states(const struct upload *u, wf__lane_state *to, wf__device_buffer *buffer,
                             wf_error *err) {
  const wf_graph *graph = u->graph;
  const uint64_t n = u->host.num_states, most = n < WF__UPLOAD_STATES ? n : WF__UPLOAD_STATES;
  WF__TRY(wf__device_reserve(buffer, (most + 1) * sizeof *graph->index + most * sizeof(float),
                             "the graph", err));
  wf__state_index *index = buffer->data;
  float *final_cost = (float *)(index + most + 1);
  for (uint64_t from = 0; from < n; from += most) {
    const uint64_t count = n - from < most ? n - from : most;
    WF__TRY(send(u, index, graph->index + from, (count + 1) * sizeof *index, err));
    WF__TRY(send(u, final_cost, u->host.final_cost + from, count * sizeof *final_cost, err));
    WF__CUDA_TRY(wf__graph_states((const uint32_t *)index, final_cost, count, to + from, u->stream),
                 "the graph to the GPU");
  }
  return WF_OK;
}

static wf_status put_states(const struct upload *u, wf__lane_state *to, wf_error *err) {
  const wf_graph *graph = u->graph;
  wf__device_buffer buffer = {0};
  if (graph->device >= 0) {
    WF__CUDA_TRY(wf__graph_states((const uint32_t *)graph->index, u->host.final_cost,
                                  u->host.num_states, to, u->stream),
                 "the graph to the GPU");
    return WF_OK;
  }
  const wf_status status = send_states(u, to, &buffer, err);
  cudaFree(buffer.data);
  return status;
}

static wf_status put_arcs(const struct upload *u, const wf__lane_state *states,
                          const int32_t *columns, wf_arc *to, wf_error *err) {
  const wf_graph *graph = u->graph;
  const struct arrays *host = &u->host;
  const bool there = graph->device >= 0;
  if (!there) WF__TRY(send(u, to, host->arcs, host->num_arcs * sizeof *to, err));
  WF__CUDA_TRY(wf__graph_arcs(there ? host->arcs : to, host->num_arcs, columns, states,
                              graph->classes != NULL, to, u->stream),
               "the graph to the GPU");
  return WF_OK;
}

/* The state that a place leads to; in a CTC graph the one that holds the first token, from which
 * those for the others follow. */
static uint32_t target_of(const wf_graph *graph, const wf__class_site *site) {
  const wf__ctc_states *ctc = graph->ctc;
  if (ctc == NULL) return site->target;
  return ctc->num_labels > 2 ? wf__ctc_entered(ctc, site->target, ctc->blank == 1 ? 2 : 1) : 0;
}

/* Writes the places, class by class, then their arcs, and the numbers of these. */
static void list_places(const wf_graph *graph, wf__lane_place *places, uint32_t *arc_of) {
  const wf__classes *classes = graph->classes;
  wf__lane_place *arc = places + classes->sites.size;
  for (uint64_t i = 0; i < classes->sites.size; i++) {
    const wf__class_site *site = &classes->sites.data[classes->ranked[i]];
    wf__lane_place place = {0, site->weight, (uint32_t)site->word_class, site->rank};
    places[i] = place;
    places[i].target = target_of(graph, site);
    if (graph->ctc == NULL) {
      *arc++ = place;
      *arc_of++ = site->arc;
      continue;
    }
    for (uint32_t v = wf__site_first(graph->ctc, site); v < wf__site_end(graph->ctc, site); v++) {
      const int32_t held = graph->ctc->states[v].held;
      place.target = held != 0 ? wf__token_rank(graph, held) + 1 : 0;
      *arc++ = place;
      *arc_of++ = wf__site_arc(graph->ctc, site, v);
    }
  }
}

/* `to` has room for the places, then their arcs. */
static wf_status put_places(const struct upload *u, const wf__lane_state *states, char *to,
                            wf_arc *arcs, wf_error *err) {
  const wf__classes *classes = u->graph->classes;
  if (classes == NULL) return WF_OK;
  const uint64_t count = classes->sites.size, num_arcs = classes->num_arcs,
                 bytes = wf__gpu_place_bytes(u->graph);
  wf__lane_place *places = wf__alloc(bytes, 1);
  if (places == NULL) return wf__fail_memory(err, bytes, "the graph's copy for the GPU");
  list_places(u->graph, places, (uint32_t *)(places + count + num_arcs));
  const wf_status status =
      send(u, to, places, (count + num_arcs) * sizeof *places + num_arcs * sizeof(uint32_t), err);
  free(places);
  WF__TRY(status);
  u->there->places = to;
  WF__CUDA_TRY(wf__graph_places((wf__lane_place *)to, count,
                                (uint32_t *)((wf__lane_place *)to + count + num_arcs), num_arcs,
                                states, arcs, u->stream),
               "the graph to the GPU");
  return WF_OK;
}

/* --- for lattices ------------------------------------------------------------------------ */

/* The states that consuming or epsilon arcs lead from, by the state that they lead to: offsets,
 * then sources. Not the wide ones, all of whose tokens are looked at. */
static wf_status find_sources(const struct upload *u, bool epsilons, uint32_t *offsets,
                              uint32_t **out, wf_error *err) {
  const uint64_t num_states = u->host.num_states;
  const wf_arc *arcs = u->host.arcs;
  const wf__state_index *index = u->graph->index;
#define FIRST(s) (epsilons ? index[s].first_epsilon : index[s].first_arc)
#define END(s) (epsilons ? index[(s) + 1].first_arc : index[s].first_epsilon)
  memset(offsets, 0, (num_states + 1) * sizeof *offsets);
  for (uint64_t s = 0; s < u->host.first_wide; s++)
    for (uint64_t a = FIRST(s); a < END(s); a++) offsets[arcs[a].nextstate]++;
  for (uint64_t s = 0; s < num_states; s++) offsets[s + 1] += offsets[s];
  uint32_t *sources = *out = wf__alloc(offsets[num_states], sizeof *sources);
  if (sources == NULL)
    return wf__fail_memory(err, offsets[num_states] * sizeof *sources,
                           "the graph's copy for the GPU");
  for (uint64_t s = u->host.first_wide; s-- > 0;)
    for (uint64_t a = END(s); a-- > FIRST(s);) sources[--offsets[arcs[a].nextstate]] = (uint32_t)s;
#undef FIRST
#undef END
  return WF_OK;
}

/* Advances *to past the data. */
static wf_status upload_sources(const struct upload *u, bool epsilons, char **to, wf_error *err) {
  const uint64_t num_states = u->host.num_states, bytes = (num_states + 1) * sizeof(uint32_t);
  uint32_t *sources = NULL, *offsets = wf__alloc(num_states + 1, sizeof *offsets);
  wf_status status = offsets != NULL ? find_sources(u, epsilons, offsets, &sources, err)
                                     : wf__fail_memory(err, bytes, "the graph's copy for the GPU");
  u->there->in_offsets[epsilons] = (const uint32_t *)*to;
  if (status == WF_OK) status = send(u, *to, offsets, bytes, err);
  *to += wf__round_up_256(bytes);
  u->there->in_sources[epsilons] = (const uint32_t *)*to;
  if (status == WF_OK) status = send(u, *to, sources, offsets[num_states] * sizeof *sources, err);
  if (status == WF_OK) *to += wf__round_up_256(offsets[num_states] * sizeof *sources);
  free(offsets);
  free(sources);
  return status;
}

/* The column of the token that each state holds. */
static wf_status send_held(const struct upload *u, uint32_t *to, wf_error *err) {
  const wf_graph *graph = u->graph;
  const uint64_t bytes = u->host.num_states * sizeof *to;
  uint32_t *held = wf__alloc(bytes, 1);
  if (held == NULL) return wf__fail_memory(err, bytes, "the graph's copy for the GPU");
  for (uint64_t v = 0; v < u->host.num_states; v++) {
    const int32_t label = graph->ctc->states[v].held;
    held[v] = label != 0 ? (uint32_t)graph->columns[label] : UINT32_MAX;
  }
  const wf_status status = send(u, to, held, bytes, err);
  free(held);
  return status;
}

/* The graph's arrays that only lattices need; `to` has room for the components, if there are
 * any, the held columns and the sources. */
static wf_status upload_for_lattices(const struct upload *u, char *to, wf_error *err) {
  const struct arrays *host = &u->host;
  float least[2] = {0, 0};
  for (uint64_t a = 0; a < host->num_arcs; a++) {
    const wf_arc *arc = &host->arcs[a];
    if (arc->weight < least[arc->ilabel == 0]) least[arc->ilabel == 0] = arc->weight;
  }
  memcpy(u->there->least_weights, least, sizeof least);
  if (host->components != NULL) {
    WF__TRY(send(u, to, host->components, host->num_states * 4, err));
    u->there->components = (const uint32_t *)to;
    to += wf__round_up_256(host->num_states * 4);
  }
  if (host->first_wide < host->num_states) {
    WF__TRY(send_held(u, (uint32_t *)to, err));
    u->there->held_columns = (const uint32_t *)to;
    to += wf__round_up_256(host->num_states * 4);
  }
  WF__TRY(upload_sources(u, false, &to, err));
  return upload_sources(u, true, &to, err);
}

/* --- all of it --------------------------------------------------------------------------- */

static wf_status put_graph(const struct upload *u, char *to, wf_error *err) {
  const wf_graph *graph = u->graph;
  wf__lane_state *states = (wf__lane_state *)to;
  to += wf__round_up_256(u->host.num_states * sizeof *states);
  wf_arc *arcs = (wf_arc *)to;
  to += wf__round_up_256(u->host.num_arcs * sizeof *arcs);
  wf__lane_wide *wide = (wf__lane_wide *)to;
  const uint64_t num_wide = u->host.num_states - u->host.first_wide;
  to += wf__round_up_256(num_wide * sizeof *wide);
  int32_t *columns = (int32_t *)to;
  to += wf__round_up_256((uint64_t)graph->num_labels * sizeof *columns);
  if (num_wide > 0) WF__TRY(send(u, wide, u->host.wide, num_wide * sizeof *wide, err));
  u->there->wide_states = wide;
  u->there->states = states;
  u->there->arcs = arcs;
  WF__TRY(send(u, columns, graph->columns, (uint64_t)graph->num_labels * sizeof *columns, err));
  WF__TRY(put_states(u, states, err));
  WF__TRY(put_arcs(u, states, columns, arcs, err));
  WF__TRY(put_places(u, states, to, arcs, err));
  to += wf__gpu_place_bytes(graph);
  if (u->options->lattice_beam > 0) WF__TRY(upload_for_lattices(u, to, err));
  WF__CUDA_TRY(cudaStreamSynchronize(u->stream), "the graph to the GPU");
  return WF_OK;
}

static void bound_wide_weights(const wf_graph *graph, wf__lane_graph *there) {
  there->wide_least = there->wide_most = graph->num_wide > 0 ? graph->wide[0].least : 0;
  for (uint64_t i = 0; i < graph->num_wide; i++) {
    there->wide_least = fminf(there->wide_least, graph->wide[i].least);
    there->wide_most = fmaxf(there->wide_most, graph->wide[i].most);
  }
}

wf_status wf__gpu_upload_graph(const wf_graph *graph, const wf_decoder_options *options, int device,
                               uint64_t available, cudaStream_t stream, wf__gpu_graph *out,
                               wf_error *err) {
  const uint64_t bytes = wf__gpu_graph_bytes(graph, options);
  if (bytes > available)
    return wf__fail_room(err, device, "the graph (see gpu_memory)", bytes, available);
  WF__TRY(wf__device_alloc(&out->memory, bytes, "the graph", err));
  out->bytes = bytes;
  out->there = (wf__lane_graph){.num_states = (uint32_t)graph->first_added_state,
                                .num_arcs = (uint32_t)graph->first_added_arc,
                                .start = graph->start,
                                .num_columns = graph->min_columns,
                                .has_epsilons = graph->has_epsilons,
                                .context_bits = wf__gpu_context_bits(graph),
                                .epsilon_slack = wf__epsilon_slack(graph, options, false),
                                .scored_slack = wf__epsilon_slack(graph, options, true)};
  struct upload upload = {graph, options, stream, &out->there};
  wf_status status = take_arrays(graph, &upload.host, err);
  out->there.first_wide = (uint32_t)upload.host.first_wide;
  out->there.num_wide = (uint32_t)(upload.host.num_states - upload.host.first_wide);
  out->there.num_explicit = (uint32_t)upload.host.num_explicit;
  bound_wide_weights(graph, &out->there);
  if (status == WF_OK) status = put_graph(&upload, out->memory, err);
  free_arrays(&upload.host);
  return status;
}

void wf__gpu_graph_free(wf__gpu_graph *graph) {
  cudaFree(graph->memory);
  *graph = (wf__gpu_graph){0};
}
