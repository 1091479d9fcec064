/* word_graph.c - prunes a lattice to the beam, merges chains with at most one word into one arc,
 * and separates arcs for closures: in three passes over its arcs. */
#include "lattice/word_graph.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/interrupt.h"

enum { USUAL_BITS = 40, ALIGNMENT = sizeof(wf__word_state) };
#define NONE UINT32_MAX
#define USUAL_MOST 0x1p19 /* largest path cost in nats for which a unit of 2^-40 suffices */

/* A source lattice of either kind. */
struct source {
  uint64_t num_states, num_arcs;
  const uint64_t *arc_off;
  const wf_lattice_view *raw; /* or */
  const wf__exact_lattice *exact;
};

static inline int64_t usual_cost(double nats) {
  return (int64_t)llrint(nats * ((int64_t)1 << USUAL_BITS));
}
static inline double raw_graph_cost(const wf_lattice_arc *arc) {
  return (double)arc->graph_cost + (double)arc->scorer_cost;
}

static inline uint32_t next_of(const struct source *from, uint64_t i) {
  return from->raw != NULL ? (uint32_t)from->raw->arcs[i].nextstate
                           : from->exact->arcs.data[i].nextstate;
}
static inline int32_t word_of(const struct source *from, uint64_t i) {
  return from->raw != NULL ? from->raw->arcs[i].olabel : from->exact->arcs.data[i].word;
}

static inline wf__exact_cost cost_of(const struct source *from, uint64_t i) {
  if (from->raw == NULL) return from->exact->arcs.data[i].cost;
  const wf_lattice_arc *arc = &from->raw->arcs[i];
  return (wf__exact_cost){usual_cost(raw_graph_cost(arc)), usual_cost((double)arc->acoustic_cost)};
}

/* Final graph and scorer cost of a raw lattice's state, in nats. */
static inline double raw_end_cost(const struct source *from, uint64_t s) {
  return (double)from->raw->final_graph_cost[s] + (double)from->raw->final_scorer_cost[s];
}

static inline wf__exact_cost end_of(const struct source *from, uint64_t s) {
  if (from->raw == NULL) return from->exact->ends.data[s].cost;
  if (raw_end_cost(from, s) == INFINITY) return (wf__exact_cost){WF__NEVER, 0};
  return (wf__exact_cost){usual_cost(raw_end_cost(from, s)),
                          usual_cost((double)from->raw->final_acoustic_cost[s])};
}

/* Absolute cost of a raw lattice's state or arc; NaN or infinity if it has no valid cost. */
static inline double size_of_end(const struct source *from, uint64_t s) {
  const double acoustic = fabs((double)from->raw->final_acoustic_cost[s]);
  return raw_end_cost(from, s) == INFINITY ? acoustic : acoustic + fabs(raw_end_cost(from, s));
}
static inline double size_of_arc(const struct source *from, uint64_t i) {
  return fabs(raw_graph_cost(&from->raw->arcs[i])) + fabs((double)from->raw->arcs[i].acoustic_cost);
}

/* --- passes ------------------------------------------------------------------------------ */

static wf_status make_room(wf__word_graph *graph, const struct source *from, wf_error *err) {
  uint64_t n = from->num_states;
  graph->places.size = graph->backward.size = graph->memory.size = graph->words.size =
      graph->hops.size = graph->parts.size = graph->exits.size = graph->ends.size =
          graph->labels.size = 0;
  wf__map64_clear(&graph->numbers);
  WF__TRY(wf__vec_grow(&graph->places, n, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->backward, n, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->memory, n + 2, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->words, n, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->hops, from->num_arcs, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->parts, from->num_arcs, "determinization", err));
  if (from->raw != NULL) WF__TRY(wf__vec_grow(&graph->labels, from->num_arcs, "an alignment", err));
  graph->states =
      (wf__word_state *)(((uintptr_t)graph->memory.data + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return WF_OK;
}

/* First pass, backward: costs to the end, and words. Returns false if a raw lattice's costs are not
 * suitable. */
static inline bool find_backward(wf__word_graph *graph, const struct source *from) {
  wf__word_place *places = graph->places.data;
  double most =
      0; /* upper bound of the absolute cost of any path, because a path visits each state once */
  graph->first_final = from->num_states;
  for (uint64_t s = from->num_states; s-- > 0;) {
    const double end_size = from->raw != NULL ? size_of_end(from, s) : 0;
    if (!(end_size < USUAL_MOST)) return false;
    const wf__exact_cost end = end_of(from, s);
    int64_t least = WF__NEVER;
    double most_here = end_size;
    uint64_t words = 0;
    if (end.graph != WF__NEVER) {
      graph->first_final = s;
      least = wf__exact_total(end);
    }
    for (uint64_t i = from->arc_off[s]; i < from->arc_off[s + 1]; i++) {
      const uint32_t next = next_of(from, i);
      const double size = from->raw != NULL ? size_of_arc(from, i) : 0;
      if (!(size < USUAL_MOST)) return false;
      most_here = size > most_here ? size : most_here;
      if (places[next].backward == WF__NEVER) continue;
      const int64_t cost = wf__exact_total(cost_of(from, i)) + places[next].backward;
      least = cost < least ? cost : least;
      words |= word_of(from, i) != 0 ? wf__word_bit(word_of(from, i)) : graph->words.data[next];
    }
    most += most_here;
    if (!(most < USUAL_MOST)) return false;
    graph->words.data[s] = words;
    places[s] =
        (wf__word_place){.backward = least, .forward = WF__NEVER, .only_out = NONE, .number = NONE};
  }
  return true;
}

static inline bool ends_within(const wf__word_graph *graph, const struct source *from, uint64_t s,
                               int64_t cutoff) {
  wf__exact_cost end = end_of(from, s);
  return end.graph != WF__NEVER && graph->places.data[s].forward != WF__NEVER &&
         graph->places.data[s].forward + wf__exact_total(end) <= cutoff;
}

/* Second pass, forward: costs from the start within the beam, and numbers of the states outside of
 * chains. A state inside a chain is skipped if at most one arc of the chain before and after it has
 * a word. */
static inline void find_forward(wf__word_graph *graph, const struct source *from, int64_t cutoff) {
  wf__word_place *places = graph->places.data;
  uint32_t num_states = 0;
  places[0].forward = 0;
  for (uint64_t s = 0; s < from->num_states; s++) {
    wf__word_place *here = &places[s];
    uint32_t count = 0, last = NONE;
    if (here->forward == WF__NEVER) continue;
    for (uint64_t i = from->arc_off[s]; i < from->arc_off[s + 1]; i++) {
      wf__word_place *next = &places[next_of(from, i)];
      if (next->backward == WF__NEVER) continue;
      const int64_t cost = here->forward + wf__exact_total(cost_of(from, i));
      if (cost + next->backward > cutoff) continue;
      next->forward = cost < next->forward ? cost : next->forward;
      next->num_in++;
      next->after_word = word_of(from, i) != 0;
      last = (uint32_t)i;
      count++;
    }
    if (here->num_in == 1 && count == 1 && !(here->after_word && word_of(from, last) != 0) &&
        !ends_within(graph, from, s, cutoff)) {
      here->only_out = last;
      places[next_of(from, last)].after_word |= here->after_word;
    } else {
      here->number = num_states++;
    }
  }
  graph->num_states = num_states;
}

static inline wf_status put_labels(wf__word_graph *graph, const struct source *from, uint64_t i,
                                   wf_error *err) {
  if (from->raw != NULL) { /* the capacity was reserved */
    graph->labels.data[graph->labels.size] = from->raw->arcs[i].ilabel;
    graph->labels.size += from->raw->arcs[i].ilabel != 0;
    return WF_OK;
  }
  const wf__exact_arc *arc = &from->exact->arcs.data[i];
  WF__TRY(wf__vec_grow(&graph->labels, arc->num_labels, "an alignment", err));
  if (arc->num_labels > 0)
    memcpy(graph->labels.data + graph->labels.size, from->exact->labels.data + arc->first_label,
           arc->num_labels * sizeof(int32_t));
  graph->labels.size += arc->num_labels;
  return WF_OK;
}

static wf_status put_exit(wf__word_graph *graph, wf__word_exit exit, wf_error *err) {
  WF__TRY(wf__map64_insert(&graph->numbers, (uint32_t)exit.word, (uint32_t)graph->numbers.size,
                           &exit.word_number, NULL, "determinization", err));
  return wf__vec_push(&graph->exits, exit, "determinization", err);
}

/* An arc, merged with the chain after it. */
static inline wf_status put_chain(wf__word_graph *graph, const struct source *from, uint64_t i,
                                  wf__exact_cost cost, int64_t backward, wf_error *err) {
  const wf__word_place *places = graph->places.data;
  const uint32_t first = (uint32_t)graph->labels.size;
  uint32_t next = next_of(from, i);
  int32_t word = word_of(from, i);
  WF__TRY(put_labels(graph, from, i, err));
  while (places[next].number == NONE) {
    i = places[next].only_out;
    const int32_t another = word_of(from, i);
    cost = wf__exact_sum(cost, cost_of(from, i));
    word = another != 0 ? another : word;
    next = next_of(from, i);
    WF__TRY(put_labels(graph, from, i, err));
  }
  const wf__word_part part = {first, (uint32_t)graph->labels.size - first};
  const int64_t worse = wf__exact_total(cost) + places[next].backward - backward;
  next = places[next].number;
  if (wf__unlikely(word != 0))
    return put_exit(graph, (wf__word_exit){worse, cost.graph, next, word, 0, part}, err);
  graph->parts.data[graph->hops.size] = part;
  graph->hops.data[graph->hops.size++] = (wf__word_hop){worse, next, cost.graph};
  return WF_OK;
}

static wf_status put_end(wf__word_graph *graph, const struct source *from, uint64_t s,
                         int64_t cutoff, wf_error *err) {
  wf__word_end end = {{WF__NEVER, 0}, {0, 0}};
  if (ends_within(graph, from, s, cutoff)) {
    end.cost = end_of(from, s);
    end.part.first = (uint32_t)graph->labels.size;
    if (from->raw == NULL) {
      const wf__exact_end *old = &from->exact->ends.data[s];
      end.part.count = old->num_labels;
      WF__TRY(wf__vec_grow(&graph->labels, old->num_labels, "an alignment", err));
      for (uint32_t k = 0; k < old->num_labels; k++)
        graph->labels.data[graph->labels.size++] = from->exact->labels.data[old->first_label + k];
    }
  }
  return wf__vec_push(&graph->ends, end, "determinization", err);
}

static inline wf_status put_states(wf__word_graph *graph, const struct source *from, int64_t cutoff,
                                   wf_error *err) {
  const wf__word_place *places = graph->places.data;
  const uint64_t first_final = graph->first_final;
  graph->first_final = graph->num_states;
  for (uint64_t s = 0; s < from->num_states; s++) {
    const wf__word_place here = places[s];
    WF__TRY(wf__interrupted_at(s, err));
    if (here.number == NONE) continue;
    graph->states[here.number] = (wf__word_state){.cost = WF__NEVER,
                                                  .hops = (uint32_t)graph->hops.size,
                                                  .exits = (uint32_t)graph->exits.size};
    graph->backward.data[here.number] = here.backward;
    graph->words.data[here.number] = graph->words.data[s];
    if (s >= first_final) {
      if (graph->ends.size == 0) graph->first_final = here.number;
      WF__TRY(put_end(graph, from, s, cutoff, err));
    }
    for (uint64_t i = from->arc_off[s]; i < from->arc_off[s + 1]; i++) {
      const int64_t on = places[next_of(from, i)].backward;
      const wf__exact_cost cost = cost_of(from, i);
      if (on == WF__NEVER || here.forward + wf__exact_total(cost) + on > cutoff) continue;
      WF__TRY(put_chain(graph, from, i, cost, here.backward, err));
    }
    if (graph->labels.size >= UINT32_MAX)
      return wf__fail(err, WF_ERR_LIMIT, "a lattice of 2^32 labels or more");
  }
  return WF_OK;
}

/* Writes the sentinels that are read after the last state and exit. */
static wf_status finish(wf__word_graph *graph, wf_error *err) {
  graph->states[graph->num_states] = (wf__word_state){
      .cost = WF__NEVER, .hops = (uint32_t)graph->hops.size, .exits = (uint32_t)graph->exits.size};
  WF__TRY(wf__vec_grow(&graph->exits, 1, "determinization", err));
  graph->exits.data[graph->exits.size] = (wf__word_exit){0};
  return WF_OK;
}

/* Inlined once for each kind of lattice. */
static inline __attribute__((always_inline)) wf_status make(wf__word_graph *graph,
                                                            const struct source *from, bool *fits,
                                                            wf_error *err) {
  if (from->num_arcs >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a lattice of %" PRIu64 " arcs; 2^32 - 2 at most",
                    from->num_arcs);
  WF__TRY(make_room(graph, from, err));
  *fits = find_backward(graph, from);
  if (!*fits) return WF_OK;
  if (from->num_states == 0 || graph->places.data[0].backward == WF__NEVER) {
    graph->num_states = 0;
    return WF_OK;
  }
  const int64_t cutoff = graph->places.data[0].backward + graph->width;
  WF__TRY(wf__interrupted(err));
  find_forward(graph, from, cutoff);
  WF__TRY(put_states(graph, from, cutoff, err));
  return finish(graph, err);
}

wf_status wf__word_graph_from_lattice(wf__word_graph *graph, const wf_lattice *lattice, double beam,
                                      bool *fits, wf_error *err) {
  const wf_lattice_view view = wf_lattice_get(lattice);
  const struct source from = {.num_states = view.num_states,
                              .num_arcs = view.num_arcs,
                              .arc_off = view.arc_off,
                              .raw = &view};
  const wf__exact_lattice usual = {.unit = ldexp(1, -USUAL_BITS)};
  graph->unit = usual.unit;
  graph->width = wf__exact_width(&usual, beam);
  return make(graph, &from, fits, err);
}

wf_status wf__word_graph_from_exact(wf__word_graph *graph, const wf__exact_lattice *lattice,
                                    int64_t width, wf_error *err) {
  const struct source from = {.num_states = wf__exact_num_states(lattice),
                              .num_arcs = lattice->arcs.size,
                              .arc_off = lattice->arc_off.data,
                              .exact = lattice};
  bool fits;
  graph->unit = lattice->unit;
  graph->width = width;
  return make(graph, &from, &fits, err);
}

void wf__word_graph_free(wf__word_graph *graph) {
  wf__vec_free(&graph->places);
  wf__vec_free(&graph->backward);
  wf__vec_free(&graph->memory);
  wf__vec_free(&graph->words);
  wf__vec_free(&graph->hops);
  wf__vec_free(&graph->parts);
  wf__vec_free(&graph->exits);
  wf__vec_free(&graph->ends);
  wf__vec_free(&graph->labels);
  wf__map64_free(&graph->numbers);
}
