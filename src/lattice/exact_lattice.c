/* exact_lattice.c - lattices with integer costs: conversion, distances, pruning. */
#include "lattice/exact_lattice.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/interrupt.h"

enum { FINEST = 40, MOST = 60 }; /* bits: of the fraction, of the sums */

wf_status wf__exact_add_state(wf__exact_lattice *lattice, wf__exact_end end, wf_error *err) {
  WF__TRY(wf__vec_grow(&lattice->arc_off, 2, "lattice states", err)); /* one more for the end */
  WF__TRY(wf__vec_grow(&lattice->ends, 1, "lattice states", err));
  lattice->arc_off.data[lattice->arc_off.size++] = lattice->arcs.size;
  lattice->ends.data[lattice->ends.size++] = end;
  return WF_OK;
}

wf_status wf__exact_finish(wf__exact_lattice *lattice, wf_error *err) {
  WF__TRY(wf__vec_grow(&lattice->arc_off, 1, "lattice states", err));
  lattice->arc_off.data[lattice->arc_off.size] = lattice->arcs.size;
  return WF_OK;
}

void wf__exact_free(wf__exact_lattice *lattice) {
  wf__vec_free(&lattice->arc_off);
  wf__vec_free(&lattice->arcs);
  wf__vec_free(&lattice->ends);
  wf__vec_free(&lattice->labels);
}

int64_t wf__exact_width(const wf__exact_lattice *lattice, double nats) {
  double width = nats / lattice->unit;
  return width < 0x1p61 ? (int64_t)llrint(width) : (int64_t)1 << 61;
}

/* --- conversion -------------------------------------------------------------------------- */

/* Common view of both kinds of lattice. */
struct source {
  uint64_t num_states;
  const uint64_t *arc_off;
  const wf_lattice_arc *arcs; /* or */
  const wf_compact_arc *compact_arcs;
  const float *final_graph_cost, *final_acoustic_cost, *final_scorer_cost; /* or */
  const wf_compact_weight *finals;
};

struct read_arc {
  double graph, acoustic; /* the scorer's cost is part of the graph cost */
  int32_t word;
  uint32_t nextstate, num_labels;
  uint64_t first_label;
};

static struct read_arc arc_at(const struct source *source, uint64_t i) {
  if (source->arcs != NULL) {
    const wf_lattice_arc *arc = &source->arcs[i];
    return (struct read_arc){(double)arc->graph_cost + (double)arc->scorer_cost,
                             (double)arc->acoustic_cost,
                             arc->olabel,
                             (uint32_t)arc->nextstate,
                             arc->ilabel != 0,
                             i};
  }
  const wf_compact_arc *arc = &source->compact_arcs[i];
  return (struct read_arc){(double)arc->weight.graph_cost,
                           (double)arc->weight.acoustic_cost,
                           arc->word,
                           (uint32_t)arc->nextstate,
                           arc->weight.num_labels,
                           arc->weight.first_label};
}

static struct read_arc end_at(const struct source *source, uint64_t s) {
  if (source->finals == NULL)
    return (struct read_arc){
        .graph = (double)source->final_graph_cost[s] + (double)source->final_scorer_cost[s],
        .acoustic = (double)source->final_acoustic_cost[s]};
  const wf_compact_weight *final = &source->finals[s];
  return (struct read_arc){.graph = (double) final->graph_cost,
                           .acoustic = (double) final->acoustic_cost,
                           .num_labels = final->num_labels,
                           .first_label = final->first_label};
}

static bool is_absent(const struct read_arc *arc) {
  return arc->graph == INFINITY || arc->acoustic == INFINITY;
}
static bool is_bad(const struct read_arc *arc) {
  return isnan(arc->graph) || isnan(arc->acoustic) || arc->graph == -INFINITY ||
         arc->acoustic == -INFINITY;
}
static double size_of(const struct read_arc *arc) { return fabs(arc->graph) + fabs(arc->acoustic); }

static double larger(double a, double b) { return a < b ? b : a; }

/* The largest sum of absolute costs on a path; checks the costs. */
static wf_status find_most(const struct source *source, double *out, wf_error *err) {
  double *most = wf__calloc(source->num_states, sizeof *most);
  if (most == NULL) return wf__fail_memory(err, source->num_states * sizeof *most, "a lattice");
  *out = 0;
  for (uint64_t s = 0; s < source->num_states; s++) {
    struct read_arc end = end_at(source, s);
    bool bad = is_bad(&end);
    if (!is_absent(&end)) *out = larger(*out, most[s] + size_of(&end));
    for (uint64_t i = source->arc_off[s]; i < source->arc_off[s + 1]; i++) {
      struct read_arc arc = arc_at(source, i);
      bad = bad || is_bad(&arc);
      if (is_absent(&arc)) continue;
      most[arc.nextstate] = larger(most[arc.nextstate], most[s] + size_of(&arc));
      *out = larger(*out, most[arc.nextstate]);
    }
    if (!bad) continue;
    free(most);
    return wf__fail(err, WF_ERR_FORMAT,
                    "lattice: state %" PRIu64 " has a cost that is NaN or -infinity", s);
  }
  free(most);
  return WF_OK;
}

static wf__exact_cost exact(const struct read_arc *arc, double scale) {
  return (wf__exact_cost){(int64_t)llrint(arc->graph * scale),
                          (int64_t)llrint(arc->acoustic * scale)};
}

static wf_status convert(const struct source *source, wf__exact_lattice *out, wf_error *err) {
  double most;
  int exponent;
  WF__TRY(find_most(source, &most, err));
  frexp(most, &exponent); /* most < 2^exponent */
  int bits = most > 0 && MOST - exponent < FINEST ? MOST - exponent : FINEST;
  double scale = ldexp(1, bits);
  out->unit = ldexp(1, -bits);
  WF__TRY(wf__vec_grow(&out->arc_off, source->num_states + 1, "lattice states", err));
  WF__TRY(wf__vec_grow(&out->ends, source->num_states, "lattice states", err));
  WF__TRY(wf__vec_grow(&out->arcs,
                       source->arc_off != NULL ? source->arc_off[source->num_states] : 0,
                       "lattice arcs", err));
  for (uint64_t s = 0; s < source->num_states; s++) {
    struct read_arc end = end_at(source, s);
    wf__exact_end exact_end = {.cost = {WF__NEVER, 0}};
    if (!is_absent(&end))
      exact_end = (wf__exact_end){exact(&end, scale), (uint32_t)end.first_label, end.num_labels};
    WF__TRY(wf__interrupted_at(s, err));
    WF__TRY(wf__exact_add_state(out, exact_end, err));
    for (uint64_t i = source->arc_off[s]; i < source->arc_off[s + 1]; i++) {
      struct read_arc arc = arc_at(source, i);
      if (is_absent(&arc)) continue;
      out->arcs.data[out->arcs.size++] = (wf__exact_arc){
          exact(&arc, scale), arc.word, arc.nextstate, (uint32_t)arc.first_label, arc.num_labels};
    }
  }
  return wf__exact_finish(out, err);
}

static wf_status too_long(uint64_t num_labels, wf_error *err) {
  return wf__fail(err, WF_ERR_LIMIT, "a lattice of %" PRIu64 " arcs or labels; 2^32 - 1 at most",
                  num_labels);
}

wf_status wf__exact_from_lattice(const wf_lattice *lattice, wf__exact_lattice *out, wf_error *err) {
  wf_lattice_view view = wf_lattice_get_view(lattice);
  struct source source = {.num_states = view.num_states,
                          .arc_off = view.arc_off,
                          .arcs = view.arcs,
                          .final_graph_cost = view.final_graph_cost,
                          .final_acoustic_cost = view.final_acoustic_cost,
                          .final_scorer_cost = view.final_scorer_cost};
  *out = (wf__exact_lattice){0};
  if (view.num_arcs >= UINT32_MAX) return too_long(view.num_arcs, err);
  wf_status status = wf__vec_grow(&out->labels, view.num_arcs, "an alignment", err);
  for (uint64_t i = 0; i < view.num_arcs && status == WF_OK; i++)
    out->labels.data[out->labels.size++] = view.arcs[i].ilabel;
  if (status == WF_OK) status = convert(&source, out, err);
  if (status != WF_OK) wf__exact_free(out);
  return status;
}

wf_status wf__exact_take_compact(const wf_compact_lattice_view *lattice, wf__exact_lattice *out,
                                 wf_error *err) {
  struct source source = {.num_states = lattice->num_states,
                          .arc_off = lattice->arc_off,
                          .compact_arcs = lattice->arcs,
                          .finals = lattice->finals};
  if (lattice->num_labels >= UINT32_MAX || lattice->num_arcs >= UINT32_MAX)
    return too_long(lattice->num_labels, err);
  out->arc_off.size = out->arcs.size = out->ends.size = out->labels.size = 0;
  WF__TRY(wf__vec_grow(&out->labels, lattice->num_labels, "an alignment", err));
  if (lattice->num_labels > 0)
    memcpy(out->labels.data, lattice->labels, lattice->num_labels * sizeof *lattice->labels);
  out->labels.size = lattice->num_labels;
  return convert(&source, out, err);
}

wf_status wf__exact_from_compact(const wf_compact_lattice *lattice, wf__exact_lattice *out,
                                 wf_error *err) {
  const wf_compact_lattice_view view = wf_compact_lattice_get_view(lattice);
  *out = (wf__exact_lattice){0};
  wf_status status = wf__exact_take_compact(&view, out, err);
  if (status != WF_OK) wf__exact_free(out);
  return status;
}

/* --- distances --------------------------------------------------------------------------- */

wf_status wf__exact_forward(const wf__exact_lattice *lattice, int64_t **out, wf_error *err) {
  uint64_t n = wf__exact_num_states(lattice);
  int64_t *forward = *out = wf__alloc(n, sizeof *forward);
  if (forward == NULL) return wf__fail_memory(err, n * sizeof *forward, "distances in a lattice");
  for (uint64_t s = 0; s < n; s++) forward[s] = s == 0 ? 0 : WF__NEVER;
  for (uint64_t s = 0; s < n; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    if (forward[s] == WF__NEVER) continue;
    for (uint64_t i = lattice->arc_off.data[s]; i < lattice->arc_off.data[s + 1]; i++) {
      const wf__exact_arc *arc = &lattice->arcs.data[i];
      int64_t cost = forward[s] + wf__exact_total(arc->cost);
      if (cost < forward[arc->nextstate]) forward[arc->nextstate] = cost;
    }
  }
  return WF_OK;
}

wf_status wf__exact_backward(const wf__exact_lattice *lattice, int64_t **out, wf_error *err) {
  uint64_t n = wf__exact_num_states(lattice);
  int64_t *backward = *out = wf__alloc(n, sizeof *backward);
  if (backward == NULL) return wf__fail_memory(err, n * sizeof *backward, "distances in a lattice");
  for (uint64_t s = n; s-- > 0;) {
    WF__TRY(wf__interrupted_at(s, err));
    backward[s] =
        wf__exact_is_final(lattice, s) ? wf__exact_total(lattice->ends.data[s].cost) : WF__NEVER;
    for (uint64_t i = lattice->arc_off.data[s]; i < lattice->arc_off.data[s + 1]; i++) {
      const wf__exact_arc *arc = &lattice->arcs.data[i];
      if (backward[arc->nextstate] == WF__NEVER) continue;
      int64_t cost = wf__exact_total(arc->cost) + backward[arc->nextstate];
      if (cost < backward[s]) backward[s] = cost;
    }
  }
  return WF_OK;
}

/* --- reduction --------------------------------------------------------------------------- */

/* A state in the middle of a chain is skipped if at most one of the arcs before and after it
 * has a word. */
struct reduction {
  const wf__exact_lattice *from;
  wf__exact_lattice to;
  int64_t *forward, *backward;
  int64_t cutoff;
  uint8_t *within;    /* [arcs] is the arc on a path within the cutoff? */
  uint32_t *num_in;   /* [states] arcs within, into the state */
  uint32_t *only_out; /* [states] the only arc within that leaves it; NONE: not just one, or the
                         state is final */
  uint32_t *number;   /* [states] in `to` */
};
#define NONE UINT32_MAX

static bool ends_within(const struct reduction *r, uint64_t s) {
  return wf__exact_is_final(r->from, s) && r->forward[s] != WF__NEVER &&
         r->forward[s] + wf__exact_total(r->from->ends.data[s].cost) <= r->cutoff;
}

static void mark(struct reduction *r) {
  const wf__exact_lattice *from = r->from;
  for (uint64_t s = 0; s < wf__exact_num_states(from); s++) {
    uint32_t count = 0;
    r->only_out[s] = NONE;
    for (uint64_t i = from->arc_off.data[s]; i < from->arc_off.data[s + 1]; i++) {
      const wf__exact_arc *arc = &from->arcs.data[i];
      r->within[i] =
          r->forward[s] != WF__NEVER && r->backward[arc->nextstate] != WF__NEVER &&
          r->forward[s] + wf__exact_total(arc->cost) + r->backward[arc->nextstate] <= r->cutoff;
      if (!r->within[i]) continue;
      r->num_in[arc->nextstate]++;
      r->only_out[s] = (uint32_t)i;
      count++;
    }
    if (count != 1 || ends_within(r, s)) r->only_out[s] = NONE;
  }
}

/* The arc, merged with the chain after it. */
static wf_status push_chain(struct reduction *r, const wf__exact_arc *first, wf_error *err) {
  wf__exact_arc arc = *first;
  WF__TRY(wf__vec_grow(&r->to.arcs, 1, "lattice arcs", err));
  arc.first_label = (uint32_t)r->to.labels.size;
  for (const wf__exact_arc *part = first;;) {
    WF__TRY(wf__vec_grow(&r->to.labels, part->num_labels, "an alignment", err));
    if (part->num_labels > 0)
      memcpy(r->to.labels.data + r->to.labels.size, r->from->labels.data + part->first_label,
             part->num_labels * sizeof(int32_t));
    r->to.labels.size += part->num_labels;
    uint32_t next = r->num_in[part->nextstate] == 1 ? r->only_out[part->nextstate] : NONE;
    if (next == NONE) break;
    part = &r->from->arcs.data[next];
    if (arc.word != 0 && part->word != 0) break;
    arc.cost = wf__exact_sum(arc.cost, part->cost);
    if (part->word != 0) arc.word = part->word;
    arc.nextstate = part->nextstate;
  }
  if (r->to.labels.size >= UINT32_MAX) return too_long(r->to.labels.size, err);
  arc.num_labels = (uint32_t)r->to.labels.size - arc.first_label;
  r->to.arcs.data[r->to.arcs.size++] = arc;
  return WF_OK;
}

/* Makes the states that arcs of `to` lead to, in their old order. The arcs still have old state
 * numbers. */
static wf_status rebuild(struct reduction *r, wf_error *err) {
  const wf__exact_lattice *from = r->from;
  uint64_t n = wf__exact_num_states(from);
  r->to.unit = from->unit;
  for (uint64_t s = 0; s < n; s++) r->number[s] = NONE;
  if (n > 0) r->number[0] = 0;
  for (uint64_t s = 0; s < n; s++) {
    if (r->number[s] == NONE) continue;
    WF__TRY(wf__interrupted_at(s, err));
    wf__exact_end end = from->ends.data[s];
    if (!ends_within(r, s)) end.cost.graph = WF__NEVER;
    end.first_label = (uint32_t)r->to.labels.size;
    if (end.cost.graph == WF__NEVER) end.num_labels = 0;
    WF__TRY(wf__vec_grow(&r->to.labels, end.num_labels, "an alignment", err));
    for (uint32_t k = 0; k < end.num_labels; k++)
      r->to.labels.data[r->to.labels.size++] =
          from->labels.data[from->ends.data[s].first_label + k];
    r->number[s] = (uint32_t)wf__exact_num_states(&r->to);
    WF__TRY(wf__exact_add_state(&r->to, end, err));
    for (uint64_t i = from->arc_off.data[s]; i < from->arc_off.data[s + 1]; i++) {
      if (!r->within[i]) continue;
      WF__TRY(push_chain(r, &from->arcs.data[i], err));
      r->number[r->to.arcs.data[r->to.arcs.size - 1].nextstate] = 0; /* mark as used */
    }
  }
  for (uint64_t i = 0; i < r->to.arcs.size; i++)
    r->to.arcs.data[i].nextstate = r->number[r->to.arcs.data[i].nextstate];
  return wf__exact_finish(&r->to, err);
}

wf_status wf__exact_reduce(wf__exact_lattice *lattice, int64_t width, wf_error *err) {
  uint64_t n = wf__exact_num_states(lattice), num_arcs = lattice->arcs.size;
  struct reduction r = {.from = lattice};
  wf_status status = wf__exact_forward(lattice, &r.forward, err);
  if (status == WF_OK) status = wf__exact_backward(lattice, &r.backward, err);
  if (status == WF_OK && (n == 0 || r.backward[0] == WF__NEVER)) { /* no path */
    r.to.unit = lattice->unit;
    status = wf__exact_finish(&r.to, err);
  } else if (status == WF_OK) {
    r.cutoff = r.backward[0] + width;
    r.within = wf__alloc(num_arcs, 1);
    r.num_in = wf__calloc(n, sizeof *r.num_in);
    r.only_out = wf__alloc(n, sizeof *r.only_out);
    r.number = wf__alloc(n, sizeof *r.number);
    if (r.within == NULL || r.num_in == NULL || r.only_out == NULL || r.number == NULL)
      status = wf__fail_memory(err, n * 12 + num_arcs, "a lattice");
    if (status == WF_OK) mark(&r);
    if (status == WF_OK) status = rebuild(&r, err);
  }
  free(r.forward);
  free(r.backward);
  free(r.within);
  free(r.num_in);
  free(r.only_out);
  free(r.number);
  if (status == WF_OK) {
    wf__exact_free(lattice);
    *lattice = r.to;
  } else {
    wf__exact_free(&r.to);
  }
  return status;
}
