/* reverse_subsets.h - reverses an acceptor and determinizes it on demand, for the n best distinct
 * strings.
 *
 *   subset   the states from which a given string leads to a final state, each with a residual
 *            cost; the least residual is 0. Its elements are elements[first[k] .. first[k + 1]),
 *            sorted by state.
 *   step     an arc of the determinized acceptor: from one subset to another, with one label
 *
 * Costs are relative: the cost of an arc t -> s of weight w is w + best[t] - best[s], where best[]
 * is the cost of the best path from the start. Relative costs are never negative (rounding errors
 * are clipped to 0). Their sum along a path is the cost of the path minus that of the best path.
 * The best continuation of every subset costs 0, so a best-first search needs no other heuristic.
 */
#ifndef WF_FSTOPS_REVERSE_SUBSETS_H
#define WF_FSTOPS_REVERSE_SUBSETS_H

#include "base/map64.h"
#include "fstops/best_paths.h"
#include "fstops/cost_heap.h"

typedef struct wf__subset_element {
  double residual;
  uint32_t state;
} wf__subset_element;

typedef struct wf__subset_step {
  double cost;
  uint32_t next; /* subset */
  int32_t label;
} wf__subset_step;

/* An arc out of a subset, before arcs with the same label are grouped into a step. */
typedef struct wf__subset_move {
  double cost;
  uint32_t state;
  int32_t label;
} wf__subset_move;

typedef struct wf__subsets {
  const wf__incoming *incoming;
  const double *best;
  uint32_t start; /* start state of the acceptor */
  WF__VEC(wf__subset_element) elements;
  WF__VEC(uint64_t) first;     /* [subsets + 1] */
  WF__VEC(uint32_t) same_hash; /* next subset with the same hash, or WF__NO_STATE */
  /* The steps of a subset are [step_begin, step_end); UINT64_MAX if it is not expanded yet. */
  WF__VEC(uint64_t) step_begin;
  WF__VEC(uint64_t) step_end;
  WF__VEC(wf__subset_step) steps;
  wf__map64 by_hash;
  /* scratch */
  WF__VEC(wf__subset_move) moves;
  WF__VEC(wf__subset_element) group;
  uint32_t *slot;  /* [num_states] index of a state in `group`, valid if stamp[] == turn */
  uint64_t *stamp; /* [num_states] */
  uint64_t turn;
  wf__heap heap;
} wf__subsets;

/* Makes subset 0 of the final states, if the start reaches any. `*out_cost` is the relative cost of
 * its best element. */
wf_status wf__subsets_init(wf__subsets *subsets, const wf_fst_view *view,
                           const wf__incoming *incoming, const double *best, double *out_cost,
                           wf_error *err);
/* Gets the steps out of a subset, sorted by label. The pointer is valid until the next call. */
wf_status wf__subsets_expand(wf__subsets *subsets, uint32_t subset,
                             const wf__subset_step **out_steps, uint64_t *out_count, wf_error *err);
/* The cost of beginning the string in this subset: the residual of the start state, or +infinity if
 * the subset does not contain it. */
double wf__subsets_end_cost(const wf__subsets *subsets, uint32_t subset);
void wf__subsets_free(wf__subsets *subsets);

#endif
