/* exact_lattice.h - a lattice whose costs are integers, so that sums are exact and do not depend on
 * the order in which they are made.
 *
 *   wf_lattice, wf_compact_lattice --wf__exact_from_*--> wf__exact_lattice --> determinization of
 *   phones and of compact lattices, n-best, pruning, best paths
 *
 * A cost of 1 is 2^-40 nats, or more if a path's cost would otherwise exceed 2^60. Input costs are
 * float32; those of at least 2^-16 nats are converted exactly. Arcs of cost +infinity are left out.
 *
 *   arc_off [num_states + 1]   arcs of s: [arc_off[s], arc_off[s + 1]), each to a later state
 *   arcs                       {costs, word, next state, its part of the alignment:
 *                              labels[first_label ..]}
 *   ends    [num_states]       cost of ending, and the rest of the alignment;
 *           cost.graph WF__NEVER: not final */
#ifndef WF_LATTICE_EXACT_LATTICE_H
#define WF_LATTICE_EXACT_LATTICE_H

#include "lattice/compact_lattice.h"
#include "lattice/lattice.h"

#define WF__NEVER INT64_MAX

typedef struct wf__exact_cost {
  int64_t graph, acoustic;
} wf__exact_cost;

typedef struct wf__exact_arc {
  wf__exact_cost cost;
  int32_t word;
  uint32_t nextstate;
  uint32_t first_label, num_labels;
} wf__exact_arc;

typedef struct wf__exact_end {
  wf__exact_cost cost;
  uint32_t first_label, num_labels;
} wf__exact_end;

typedef struct wf__exact_lattice {
  double unit;               /* nats of cost 1, a power of 2 */
  WF__VEC(uint64_t) arc_off; /* one entry more than `size`, as in lattice.h */
  WF__VEC(wf__exact_arc) arcs;
  WF__VEC(wf__exact_end) ends;
  wf__label_vec labels;
} wf__exact_lattice;

static inline int64_t wf__exact_total(wf__exact_cost cost) { return cost.graph + cost.acoustic; }
static inline wf__exact_cost wf__exact_sum(wf__exact_cost a, wf__exact_cost b) {
  return (wf__exact_cost){a.graph + b.graph, a.acoustic + b.acoustic};
}
static inline wf__exact_cost wf__exact_less(wf__exact_cost a, wf__exact_cost b) {
  return (wf__exact_cost){a.graph - b.graph, a.acoustic - b.acoustic};
}
/* Order of costs: total, then graph cost. */
static inline bool wf__exact_before(wf__exact_cost a, wf__exact_cost b) {
  int64_t x = wf__exact_total(a), y = wf__exact_total(b);
  return x != y ? x < y : a.graph < b.graph;
}
static inline bool wf__exact_is_final(const wf__exact_lattice *lattice, uint64_t s) {
  return lattice->ends.data[s].cost.graph != WF__NEVER;
}
static inline uint64_t wf__exact_num_states(const wf__exact_lattice *lattice) {
  return lattice->ends.size;
}
/* A width in nats as a cost, rounded to the nearest unit; at most 2^61, which is more than the cost
 * of any path. */
int64_t wf__exact_width(const wf__exact_lattice *lattice, double nats);
static inline double wf__exact_nats(const wf__exact_lattice *lattice, int64_t cost) {
  return (double)cost * lattice->unit;
}

/* Converts a lattice; states and arcs stay the same. WF_ERR_FORMAT for NaN and -infinity,
 * WF_ERR_LIMIT for more than 2^32 labels. On failure `out` is empty. */
wf_status wf__exact_from_lattice(const wf_lattice *lattice, wf__exact_lattice *out, wf_error *err);
wf_status wf__exact_from_compact(const wf_compact_lattice *lattice, wf__exact_lattice *out,
                                 wf_error *err);
/* The same with the memory of `out`, which stays the caller's on failure, too. */
wf_status wf__exact_take_compact(const wf_compact_lattice_view *lattice, wf__exact_lattice *out,
                                 wf_error *err);
void wf__exact_free(wf__exact_lattice *lattice);
wf_status wf__exact_add_state(wf__exact_lattice *lattice, wf__exact_end end, wf_error *err);
/* Writes the last arc_off. */
wf_status wf__exact_finish(wf__exact_lattice *lattice, wf_error *err);

/* Costs of the best path from the start to each state, and from there to the end; WF__NEVER if
 * there is none. [num_states], for free(). */
wf_status wf__exact_forward(const wf__exact_lattice *lattice, int64_t **out, wf_error *err);
wf_status wf__exact_backward(const wf__exact_lattice *lattice, int64_t **out, wf_error *err);
/* Prunes states and arcs on no path within `width` of the best, and merges chains of arcs with
 * at most one word into one arc. */
wf_status wf__exact_reduce(wf__exact_lattice *lattice, int64_t width, wf_error *err);

#endif
