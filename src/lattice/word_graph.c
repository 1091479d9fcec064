/* word_graph.c - prunes a lattice to the beam, folds states with one arc in, and separates arcs for
 * closures: in three passes over its arcs. */
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

/* An absolute cost; infinity if it is not valid. */
static inline double valid_size(double size) { return size < USUAL_MOST ? size : INFINITY; }

/* Absolute cost of ending in a raw lattice's state. */
static inline double size_of_end(const struct source *from, uint64_t s) {
  const double acoustic = fabs((double)from->raw->final_acoustic_cost[s]);
  return valid_size(raw_end_cost(from, s) == INFINITY ? acoustic
                                                      : acoustic + fabs(raw_end_cost(from, s)));
}

/* Takes an arc from the lattice. Returns the absolute cost of a raw lattice's arc. */
static inline double take_arc(const struct source *from, uint64_t i, wf__word_source_arc *out) {
  if (from->raw == NULL) {
    const wf__exact_arc *arc = &from->exact->arcs.data[i];
    *out = (wf__word_source_arc){.graph = arc->cost.graph,
                                 .total = wf__exact_total(arc->cost),
                                 .nextstate = arc->nextstate,
                                 .word = arc->word};
    return 0;
  }
  const wf_lattice_arc *arc = &from->raw->arcs[i];
  const double graph = (double)arc->graph_cost + (double)arc->scorer_cost,
               acoustic = (double)arc->acoustic_cost;
  const int64_t cost = usual_cost(graph);
  *out = (wf__word_source_arc){.graph = cost,
                               .total = (int64_t)((uint64_t)cost + (uint64_t)usual_cost(acoustic)),
                               .nextstate = (uint32_t)arc->nextstate,
                               .word = arc->olabel,
                               .label = arc->ilabel};
  return valid_size(fabs(graph) + fabs(acoustic));
}

/* --- passes ------------------------------------------------------------------------------ */

/* The passes go over all arcs rather than over the arcs of each state, and select values instead of
 * branching: most states have one or two arcs, so branches would be unpredictable. */

enum { USUALLY_OUT = 4 };

/* Labels of all arcs and ends, at most. */
static uint64_t count_labels(const struct source *from) {
  uint64_t count = 0;
  if (from->raw != NULL) return from->num_arcs;
  for (uint64_t i = 0; i < from->num_arcs; i++) count += from->exact->arcs.data[i].num_labels;
  for (uint64_t s = 0; s < from->num_states; s++) count += from->exact->ends.data[s].num_labels;
  return count;
}

static wf_status make_room(wf__word_graph *graph, const struct source *from, wf_error *err) {
  const uint64_t n = from->num_states, num_arcs = from->num_arcs;
  const uint64_t num_labels = count_labels(from);
  graph->places.size = graph->sizes.size = graph->sources.size = graph->arcs.size =
      graph->backward.size = graph->memory.size = graph->words.size = graph->hops.size =
          graph->alignments.size = graph->exits.size = graph->ends.size = graph->labels.size = 0;
  wf__map64_clear(&graph->numbers);
  if (num_labels >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a lattice of 2^32 labels or more");
  WF__TRY(wf__vec_grow(&graph->places, n, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->sizes, n, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->sources, num_arcs + USUALLY_OUT, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->arcs, num_arcs, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->backward, n + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->memory, n + 2, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->words, n + 1, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->alignments, num_arcs, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->labels, num_labels + 1, "an alignment", err));
  graph->labels.size = 1;
  graph->states =
      (wf__word_state *)(((uintptr_t)graph->memory.data + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return WF_OK;
}

/* The states, as ends, and the sources of their arcs. */
static inline void begin_states(wf__word_graph *graph, const struct source *from) {
  uint32_t *sources = graph->sources.data;
  graph->first_final = from->num_states;
  for (uint64_t s = 0; s < from->num_states; s++) {
    const wf__exact_cost end = end_of(from, s);
    const bool final = end.graph != WF__NEVER;
    if (final && s < graph->first_final) graph->first_final = s;
    graph->places.data[s] = (wf__word_place){.backward = final ? wf__exact_total(end) : WF__NEVER,
                                             .forward = WF__NEVER,
                                             .rank = NONE,
                                             .only_out = NONE};
    graph->sizes.data[s] = from->raw != NULL ? size_of_end(from, s) : 0;
    const uint64_t first = from->arc_off[s], end_arc = from->arc_off[s + 1];
    for (uint64_t k = 0; k < USUALLY_OUT; k++) sources[first + k] = (uint32_t)s;
    for (uint64_t i = first + USUALLY_OUT; i < end_arc; i++) sources[i] = (uint32_t)s;
  }
}

/* First pass, backward: arcs, costs to the end, and words. */
static inline void find_backward(wf__word_graph *graph, const struct source *from) {
  wf__word_place *const places = graph->places.data;
  wf__word_source_arc *const arcs = graph->arcs.data;
  const uint32_t *const sources = graph->sources.data;
  double *const sizes = graph->sizes.data;
  for (uint64_t i = from->num_arcs; i-- > 0;) {
    wf__word_source_arc arc;
    const double size = take_arc(from, i, &arc);
    arc.source = sources[i];
    arcs[i] = arc;
    const wf__word_place *next = &places[arc.nextstate];
    wf__word_place *here = &places[arc.source];
    const bool ends = next->backward != WF__NEVER;
    const int64_t cost = (int64_t)((uint64_t)arc.total + (uint64_t)next->backward);
    const uint64_t words = arc.word != 0 ? wf__word_bit(arc.word) : next->words;
    here->backward = ends & (cost < here->backward) ? cost : here->backward;
    here->words |= words & -(uint64_t)ends;
    if (from->raw != NULL) sizes[arc.source] = size > sizes[arc.source] ? size : sizes[arc.source];
  }
}

/* Is the unit of 2^-40 suitable for a raw lattice? The sum is an upper bound of the absolute cost
 * of any path, because a path visits each state once. */
static bool fits_unit(const wf__word_graph *graph, uint64_t num_states) {
  double most = 0;
  for (uint64_t s = num_states; s-- > 0;) most += graph->sizes.data[s];
  return most < USUAL_MOST;
}

static inline bool ends_within(const wf__word_graph *graph, const struct source *from, uint64_t s,
                               int64_t cutoff) {
  const int64_t forward = graph->places.data[s].forward;
  const wf__exact_cost end = end_of(from, s);
  return end.graph != WF__NEVER && forward != WF__NEVER && forward + wf__exact_total(end) <= cutoff;
}

/* Second pass, forward: costs from the start within the beam, and numbers of arcs. */
static inline void find_forward(wf__word_graph *graph, const struct source *from, int64_t cutoff) {
  wf__word_place *const places = graph->places.data;
  wf__word_source_arc *const arcs = graph->arcs.data;
  places[0].forward = 0;
  for (uint64_t i = 0; i < from->num_arcs; i++) {
    wf__word_source_arc *arc = &arcs[i];
    wf__word_place *here = &places[arc->source], *next = &places[arc->nextstate];
    const uint64_t cost = (uint64_t)here->forward + (uint64_t)arc->total;
    const bool within = (here->forward != WF__NEVER) & (next->backward != WF__NEVER) &
                        ((int64_t)(cost + (uint64_t)next->backward) <= cutoff);
    const uint64_t counted = (uint64_t)(within & (arc->word != 0)) << 32 | within;
    next->forward = within & ((int64_t)cost < next->forward) ? (int64_t)cost : next->forward;
    next->last_in = within ? (uint32_t)i : next->last_in;
    next->in += counted;
    here->out += counted;
    arc->nextstate = within ? arc->nextstate : NONE;
  }
}

/* The only arc within the beam that leaves a state. */
static uint32_t only_arc(const wf__word_graph *graph, const struct source *from, uint64_t s) {
  uint64_t i = from->arc_off[s];
  while (graph->arcs.data[i].nextstate == NONE) i++;
  return (uint32_t)i;
}

/* Decides what becomes of each state: it is folded into the state before it, or continues the exit
 * before it, or gets a number. Counts the hops and exits of each number. */
static inline void number_states(wf__word_graph *graph, const struct source *from, int64_t cutoff) {
  wf__word_place *const places = graph->places.data;
  wf__word_state *const states = graph->states;
  const wf__word_source_arc *const arcs = graph->arcs.data;
  uint64_t *const words = graph->words.data;
  int64_t *const backward = graph->backward.data;
  const uint64_t first_final = graph->first_final;
  uint32_t num_states = 0;
  for (uint64_t s = 0; s < from->num_states; s++) {
    wf__word_place *here = &places[s];
    if (here->forward == WF__NEVER) continue;
    const bool chain =
        (uint32_t)here->in == 1 && (s < first_final || !ends_within(graph, from, s, cutoff));
    const bool after_word = here->in >> 32 != 0;
    const uint32_t num_exits = (uint32_t)(here->out >> 32), num_out = (uint32_t)here->out;
    if (wf__unlikely(chain & after_word & (here->out == 1))) {
      here->only_out = only_arc(graph, from, s);
      places[arcs[here->only_out].nextstate].in |= (uint64_t)1 << 32;
      continue;
    }
    const bool folded = chain & !after_word;
    const wf__word_place *before = folded ? &places[arcs[here->last_in].source] : here;
    const uint32_t rank = before->rank != NONE ? before->rank : here->last_in;
    here->folded = folded;
    here->rank = folded & (num_out == 1) ? rank : NONE;
    here->number = folded ? before->number : num_states;
    here->cost = -here->backward; /* of a folded state: set with the arc that leads there */
    here->graph = 0;
    states[num_states] = (wf__word_state){.cost = WF__NEVER};
    words[num_states] = here->words;
    backward[num_states] = here->backward;
    num_states += !folded;
    states[here->number].hops += num_out - num_exits - folded; /* less the arc to here */
    states[here->number].exits += num_exits;
  }
  graph->num_states = num_states;
}

/* Makes room for the hops and exits of each state, which are filled from the last to the first. */
static wf_status place_arcs(wf__word_graph *graph, wf_error *err) {
  uint64_t num_hops = 0, num_exits = 0;
  for (uint64_t n = 0; n < graph->num_states; n++) {
    wf__word_state *state = &graph->states[n];
    num_hops += state->hops;
    num_exits += state->exits;
    state->hops = (uint32_t)num_hops;
    state->exits = (uint32_t)num_exits;
  }
  graph->states[graph->num_states] =
      (wf__word_state){.cost = WF__NEVER, .hops = (uint32_t)num_hops, .exits = (uint32_t)num_exits};
  WF__TRY(wf__vec_grow(&graph->hops, num_hops, "determinization", err));
  WF__TRY(wf__vec_grow(&graph->exits, num_exits, "determinization", err));
  graph->hops.size = num_hops;
  graph->exits.size = num_exits;
  return WF_OK;
}

/* Adds labels to the alignment before them; their capacity was reserved. */
static inline uint32_t add_run(wf__word_graph *graph, const int32_t *labels, uint32_t count,
                               uint32_t before) {
  for (uint32_t k = 0; k < count; k++) {
    graph->labels.data[graph->labels.size] = (wf__word_label){.before = before, .label = labels[k]};
    before = (uint32_t)graph->labels.size++;
  }
  return before;
}

/* Adds the labels of an arc. */
static inline uint32_t add_labels(wf__word_graph *graph, const struct source *from, uint64_t i,
                                  int32_t label, uint32_t before) {
  if (from->raw == NULL) {
    const wf__exact_arc *arc = &from->exact->arcs.data[i];
    return add_run(graph, from->exact->labels.data + arc->first_label, arc->num_labels, before);
  }
  const uint32_t number = (uint32_t)graph->labels.size;
  graph->labels.data[number] = (wf__word_label){.before = before, .label = label};
  graph->labels.size += label != 0;
  return label != 0 ? number : before;
}

/* Makes an exit of the path to `here`, its arc i with a word, and the chain after that. */
static wf_status put_exit(wf__word_graph *graph, const struct source *from,
                          const wf__word_place *here, uint64_t i, uint32_t rank, wf_error *err) {
  wf__word_exit exit = {.cost = here->cost,
                        .graph = here->graph,
                        .word = graph->arcs.data[i].word,
                        .rank = rank,
                        .alignment = here->alignment};
  const wf__word_place *next;
  for (;; i = next->only_out) {
    const wf__word_source_arc *arc = &graph->arcs.data[i];
    next = &graph->places.data[arc->nextstate];
    exit.cost += arc->total;
    exit.graph += arc->graph;
    exit.alignment = add_labels(graph, from, i, arc->label, exit.alignment);
    if (next->only_out == NONE) break;
  }
  exit.cost += next->backward;
  exit.nextstate = next->number;
  WF__TRY(wf__map64_insert(&graph->numbers, (uint32_t)exit.word, (uint32_t)graph->numbers.size,
                           &exit.word_number, NULL, "determinization", err));
  graph->exits.data[--graph->states[here->number].exits] = exit;
  return WF_OK;
}

static wf_status put_end(wf__word_graph *graph, const struct source *from, uint64_t s,
                         int64_t cutoff, wf_error *err) {
  wf__word_end end = {{WF__NEVER, 0}, 0};
  if (ends_within(graph, from, s, cutoff)) {
    end.cost = end_of(from, s);
    if (from->raw == NULL) {
      const wf__exact_end *old = &from->exact->ends.data[s];
      end.alignment =
          add_run(graph, from->exact->labels.data + old->first_label, old->num_labels, 0);
    }
  }
  return wf__vec_push(&graph->ends, end, "determinization", err);
}

static wf_status put_ends(wf__word_graph *graph, const struct source *from, int64_t cutoff,
                          wf_error *err) {
  const uint64_t first_final = graph->first_final;
  graph->first_final = graph->num_states;
  for (uint64_t s = first_final; s < from->num_states; s++) {
    const wf__word_place *here = &graph->places.data[s];
    if (here->forward == WF__NEVER || here->only_out != NONE || here->folded) continue;
    if (graph->ends.size == 0) graph->first_final = here->number;
    WF__TRY(put_end(graph, from, s, cutoff, err));
  }
  return WF_OK;
}

/* Third pass, forward: hops and exits. An arc without a word makes a hop of the path to its source
 * and itself, or prolongs the path if its next state is folded. */
static inline wf_status put_arcs(wf__word_graph *graph, const struct source *from, wf_error *err) {
  wf__word_place *const places = graph->places.data, other;
  const wf__word_source_arc *const arcs = graph->arcs.data;
  wf__word_state *const states = graph->states;
  wf__word_hop *const hops = graph->hops.data, no_hop;
  uint32_t *const alignments = graph->alignments.data;
  for (uint64_t i = 0; i < from->num_arcs; i++) {
    const wf__word_source_arc arc = arcs[i];
    const wf__word_place *here = &places[arc.source];
    WF__TRY(wf__interrupted_at(i, err));
    if (wf__unlikely(arc.nextstate == NONE) || wf__unlikely(here->only_out != NONE)) continue;
    const uint32_t rank = here->rank != NONE ? here->rank : (uint32_t)i;
    if (wf__unlikely(arc.word != 0)) {
      WF__TRY(put_exit(graph, from, here, i, rank, err));
      continue;
    }
    const wf__word_place *next = &places[arc.nextstate];
    const bool folded = next->folded;
    const int64_t cost = here->cost + arc.total, graph_cost = here->graph + arc.graph;
    const uint32_t alignment = add_labels(graph, from, i, arc.label, here->alignment);
    const uint64_t key = (uint64_t)(rank + 1) << 32 | next->number;
    uint32_t *left = &states[here->number].hops; /* hops to fill */
    *left -= !folded;
    wf__word_hop *hop = folded ? &no_hop : &hops[*left];
    *hop = (wf__word_hop){cost + next->backward, graph_cost, key};
    alignments[rank] = alignment;
    wf__word_place *prolonged = folded ? &places[arc.nextstate] : &other;
    prolonged->cost = cost;
    prolonged->graph = graph_cost;
    prolonged->alignment = alignment;
  }
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
  begin_states(graph, from);
  find_backward(graph, from);
  *fits = from->raw == NULL || fits_unit(graph, from->num_states);
  if (!*fits) return WF_OK;
  if (from->num_states == 0 || graph->places.data[0].backward == WF__NEVER) {
    graph->num_states = 0;
    return WF_OK;
  }
  const int64_t cutoff = graph->places.data[0].backward + graph->width;
  WF__TRY(wf__interrupted(err));
  find_forward(graph, from, cutoff);
  number_states(graph, from, cutoff);
  WF__TRY(place_arcs(graph, err));
  WF__TRY(put_ends(graph, from, cutoff, err));
  return put_arcs(graph, from, err);
}

wf_status wf__word_graph_from_lattice(wf__word_graph *graph, const wf_lattice *lattice, double beam,
                                      bool *fits, wf_error *err) {
  const wf_lattice_view view = wf_lattice_get_view(lattice);
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
  wf__vec_free(&graph->sizes);
  wf__vec_free(&graph->sources);
  wf__vec_free(&graph->arcs);
  wf__vec_free(&graph->backward);
  wf__vec_free(&graph->memory);
  wf__vec_free(&graph->words);
  wf__vec_free(&graph->hops);
  wf__vec_free(&graph->alignments);
  wf__vec_free(&graph->exits);
  wf__vec_free(&graph->ends);
  wf__vec_free(&graph->labels);
  wf__map64_free(&graph->numbers);
}
