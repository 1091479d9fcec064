/* read_lattice.c - the raw lattice of an utterance from the arcs that the GPU found to be in it
 * (backward.cuh).
 *
 * The arcs are in the order of the lattice, the last one first, in a chain of pages. Every token
 * has an arc that leaves it, or is an end. So the chain is read from its end: a new state begins
 * when the token changes, and labels and costs come from the graph.
 *
 * A thread must keep up with the GPU, so only the graph's arcs are looked up, and they are
 * prefetched. */
#include "cuda/decoder/read_lattice.h"

#include <math.h>
#include <string.h>

#include "base/interrupt.h"
#include "lattice/lattice.h"

enum { AHEAD = 24 }; /* arcs of the graph that are being prefetched */

/* One draft for each thread; they are reused. */
struct wf__gpu_drafts {
  wf__scoring none;
  WF__VEC(int64_t) rows; /* by frame: of its scores; those of skipped frames are missing */
};

wf_status wf__gpu_drafts_create(int count, struct wf__gpu_drafts **out, wf_error *err) {
  *out = wf__calloc((uint64_t)count, sizeof **out);
  return *out != NULL ? WF_OK : wf__fail_memory(err, (uint64_t)count * sizeof **out, "a decoder");
}

void wf__gpu_drafts_free(struct wf__gpu_drafts *drafts, int count) {
  for (int i = 0; i < count; i++) wf__vec_free(&drafts[i].rows);
  free(drafts);
}

/* What has been read of the chain. */
struct reading {
  const wf_graph *graph;
  const wf_decoder_options *options;
  wf__scoring *scoring; /* of the utterance; with no scorer if it has none */
  const int64_t *rows;
  uint64_t num_frames, frame;
  int64_t end_row; /* row of a frame after the last one */
  bool final;
  uint32_t from;        /* the token whose arcs are being read */
  uint32_t source;      /* its state */
  uint32_t first, next; /* states of the frame and of the next one begin there */
  wf__lattice_arrays *arrays;
};

static void prefetch_arc(const wf_graph *graph, const wf__lane_link *link) {
  if (link->arc < graph->view.num_arcs) __builtin_prefetch(&graph->view.arcs[link->arc]);
}

/* The token of the link is the next state. */
static void begin_state(struct reading *r, const wf__lane_link *link) {
  wf__lattice_arrays *a = r->arrays;
  const uint64_t s = a->arc_off.size++;
  if (s == 0 || (link->from ^ r->from) >> 16 != 0) {
    r->frame += s > 0;
    r->first = (uint32_t)s;
    r->next = r->first + (link->to >> 16);
  }
  r->from = link->from;
  a->arc_off.data[s] = a->arcs.size;
  a->final_graph_cost.data[s] = INFINITY;
  a->final_acoustic_cost.data[s] = a->final_scorer_cost.data[s] = 0;
  a->frames.data[s] = (int32_t)(r->frame + 1 < r->num_frames ? r->rows[r->frame + 1] : r->end_row);
}

/* Makes the last state an end, with the final cost of graph and scorer if `final`. */
static wf_status put_ending(struct reading *r, const wf__lane_link *link, uint64_t context,
                            wf_error *err) {
  const uint64_t s = r->arrays->arc_off.size - 1;
  float cost = 0;
  r->arrays->final_graph_cost.data[s] = r->final ? wf__graph_final(r->graph, link->value) : 0;
  if (r->final && r->scoring->scorer != NULL)
    WF__TRY(wf__scoring_final(r->scoring, context, &cost, err));
  r->arrays->final_scorer_cost.data[s] = cost;
  return WF_OK;
}

/* Adds the arc. `context` is that of its source token; 0 without a scorer. */
static inline wf_status put_link(struct reading *r, const wf__lane_link *link, uint64_t context,
                                 wf_error *err) {
  if (link->from != r->from || r->arrays->arc_off.size == 0) begin_state(r, link);
  if (wf__unlikely(link->arc == WF__LANE_ENDING)) return put_ending(r, link, context, err);
  const wf_arc arc = wf__graph_arc_after(r->graph, &r->source, link->arc);
  wf_lattice_arc out = {.ilabel = arc.ilabel, .olabel = arc.olabel, .graph_cost = arc.weight};
  if (arc.olabel != 0) out.graph_cost -= r->options->word_score;
  if (arc.ilabel != 0) {
    float loglike;
    memcpy(&loglike, &link->value, sizeof loglike);
    out.acoustic_cost = 0 - r->options->acoustic_scale * loglike;
  }
  uint64_t behind;
  if (arc.olabel != 0 && r->scoring->scorer != NULL)
    WF__TRY(wf__scoring_step(r->scoring, context, arc.olabel, &out.scorer_cost, &behind, err));
  out.nextstate = (int32_t)((arc.ilabel != 0 ? r->next : r->first) + (link->to & 0xffff));
  r->arrays->arcs.data[r->arrays->arcs.size++] = out;
  return WF_OK;
}

/* Reads the chain of pages from its end. */
static wf_status read_chain(struct reading *r, uint32_t last_page, const wf__gpu_pages *pages,
                            wf_error *err) {
  for (uint32_t page = last_page; page != 0;) {
    WF__TRY(wf__interrupted(err));
    const wf__lane_link *links = &pages->links[(uint64_t)(page - 1) * WF__LANE_PAGE];
    const uint64_t *contexts =
        pages->contexts != NULL ? &pages->contexts[(uint64_t)(page - 1) * WF__LANE_PAGE] : NULL;
    const uint32_t used = links[0].to;
    page = links[0].from;
    for (uint32_t i = used - 1, left = AHEAD; i > 0 && left > 0; i--, left--)
      prefetch_arc(r->graph, &links[i]);
    for (uint32_t i = used - 1; i > 0; i--) {
      if (i > AHEAD) prefetch_arc(r->graph, &links[i - AHEAD]);
      WF__TRY(put_link(r, &links[i], contexts != NULL ? contexts[i] : 0, err));
    }
  }
  return WF_OK;
}

/* Lists the frames that were searched, after the frame of the start: every path goes through all of
 * them. */
static wf_status list_rows(struct wf__gpu_drafts *draft, const wf_graph *graph,
                           const wf__lane_step *path, uint32_t path_size, wf_error *err) {
  uint32_t state = 0;
  draft->rows.size = 0;
  WF__TRY(wf__vec_push(&draft->rows, 0, "the lattice", err));
  for (uint32_t k = 0; k < path_size; k++)
    if (wf__graph_arc_along(graph, &state, path[k].arc).ilabel != 0)
      WF__TRY(wf__vec_push(&draft->rows, path[k].frame, "the lattice", err));
  return WF_OK;
}

wf_status wf__gpu_lattice(const wf__gpu_threads *threads, int thread, const wf_graph *graph,
                          const wf_decoder_options *options, const wf__lane_found *found,
                          bool scored, wf__determinizers *determinizers, wf_lattice **out,
                          wf_error *err) {
  struct wf__gpu_drafts *draft = &threads->drafts[thread];
  const wf__lane_outcome *outcome = found->outcome;
  if (outcome->num_states > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a lattice of %u states; lower lattice_beam",
                    outcome->num_states);
  WF__TRY(list_rows(draft, graph, found->path, outcome->path_size, err));
  wf__lattice_arrays arrays = wf__spare_arrays(determinizers);
  struct reading reading = {.graph = graph,
                            .options = options,
                            .scoring = scored ? &threads->scorings[thread] : &draft->none,
                            .rows = draft->rows.data,
                            .num_frames = draft->rows.size,
                            .end_row = outcome->num_decoded,
                            .final = (outcome->flags & WF_RESULT_NOT_FINAL) == 0,
                            .arrays = &arrays};
  wf_status status = wf__lattice_reserve(&arrays, outcome->num_states, outcome->num_links, err);
  if (status == WF_OK) status = read_chain(&reading, outcome->last_page, found->pages, err);
  if (status == WF_OK) return wf__lattice_from_arrays(&arrays, out, err);
  wf__lattice_arrays_free(&arrays);
  return status;
}
