/* reverse_subsets.h - an acceptor read backwards and determinized on demand, for n best distinct
 * strings.
 *
 *   subset        the states from which one string of labels, read from the end, leads to a final
 *                 state, each with a residual cost. The best element's residual is 0. States:
 *                 [first[k] .. first[k + 1]) of `elements`, sorted by state.
 *   step          arc of the determinized acceptor from one subset to the next over one label
 *
 * Costs are relative: an arc t -> s of weight w counts w + best[t] - best[s], where best[] are the
 * costs of the best paths from the start. They are never negative (what rounding leaves below is
 * cut to 0), the sum along any path is the path's full cost less that of the best, and the best
 * continuation of every subset costs 0: the perfect guide for a best-first search. */
#ifndef WF_FSTOPS_REVERSE_SUBSETS_H
#define WF_FSTOPS_REVERSE_SUBSETS_H

#include "fstops/best_paths.h"
#include "fstops/cost_heap.h"
#include "base/map64.h"

typedef struct wf__subset_element {
  double residual;
  uint32_t state;
} wf__subset_element;

typedef struct wf__subset_step {
  double cost;
  uint32_t next; /* subset */
  int32_t label;
} wf__subset_step;

/* What the elements of a step come from, before they are grouped. */
typedef struct wf__subset_move {
  double cost;
  uint32_t state;
  int32_t label;
} wf__subset_move;

typedef struct wf__subsets {
  const wf__reversed *reversed;
  const double *best;
  uint32_t start; /* of the acceptor */
  WF__VEC(wf__subset_element) elements;
  WF__VEC(uint64_t) first;     /* [subsets + 1] */
  WF__VEC(uint32_t) same_hash; /* next subset with the same hash, or WF__NO_STATE */
  WF__VEC(uint64_t)
  step_begin; /* steps of a subset: [step_begin, step_end), UINT64_MAX before it was expanded */
  WF__VEC(uint64_t) step_end;
  WF__VEC(wf__subset_step) steps;
  wf__map64 by_hash;
  /* scratch */
  WF__VEC(wf__subset_move) moves;
  WF__VEC(wf__subset_element) group;
  uint32_t *slot;  /* [num_states] place of a state in group, valid where stamp[] says so */
  uint64_t *stamp; /* [num_states] */
  uint64_t turn;
  wf__heap heap;
} wf__subsets;

/* Makes subset 0: the final states, if any is reached from the start. `*out_cost`: the relative
 * cost of its best element. */
wf_status wf__subsets_init(wf__subsets *subsets, const wf_fst_view *view,
                           const wf__reversed *reversed, const double *best, double *out_cost,
                           wf_error *err);
/* The steps out of a subset, sorted by label. The pointer is valid until the next call. */
wf_status wf__subsets_expand(wf__subsets *subsets, uint32_t subset,
                             const wf__subset_step **out_steps, uint64_t *out_count, wf_error *err);
/* Cost of ending the string here (the start is in the subset), or +infinity. */
double wf__subsets_end_cost(const wf__subsets *subsets, uint32_t subset);
void wf__subsets_free(wf__subsets *subsets);

#endif
