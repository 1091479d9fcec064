/* epsnormalize.c - makes all paths read their input before the first epsilon input.
 *
 * Arcs with two epsilons are removed first. From each state, the paths over arcs with epsilon input
 * and then one arc with an input label become one arc, whose output is a string. Paths that end
 * there become an arc with epsilon input to an added final state. In the end the strings are
 * delayed (delay_labels.c): arcs of one label each, and epsilon inputs only on the chains to the
 * final state. */
#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fstops/connect.h"
#include "fstops/csr_copy.h"
#include "fstops/pair_table.h"
#include "fstops/push.h"
#include "fstops/scc.h"
#include "fstops/shortest_distance.h"

struct normalizer {
  wf_fst_view view;
  uint32_t *rank; /* [num_states] topological order over arcs with epsilon input */
  wf__strings strings;
  /* the closure of the current state: (state, output), costs, and the next to visit by rank */
  wf__pairs found;
  WF__VEC(double) cost;
  wf__heap waiting; /* by rank */
  wf__csr csr;
};

static wf_status reach(struct normalizer *n, uint32_t state, uint32_t string, double cost,
                       wf_error *err) {
  uint32_t at;
  uint64_t before = n->found.list.size;
  WF__TRY(wf__pairs_find(&n->found, state, string, &at, err));
  if (n->found.list.size == before) {
    n->cost.data[at] = wf__cost_plus(n->view.semiring, n->cost.data[at], cost);
    return WF_OK;
  }
  WF__TRY(wf__vec_push(&n->cost, cost, "an epsilon closure", err));
  return wf__heap_push(&n->waiting, (wf__heap_entry){.cost = (double)n->rank[state], .item = at},
                       err);
}

/* Adds the arcs of a member of the closure of state `s` to the result. */
static wf_status leave(struct normalizer *n, wf__pair at, double cost, wf_error *err) {
  const wf_fst_view *view = &n->view;
  for (uint64_t i = view->arc_off[at.first]; i < view->arc_off[at.first + 1]; i++) {
    wf_arc arc = view->arcs[i];
    uint32_t string;
    WF__TRY(wf__string_concat(&n->strings, at.second, wf__string_of(arc.olabel), &string, err));
    if (arc.ilabel == 0) {
      WF__TRY(reach(n, arc.nextstate, string, cost + (double)arc.weight, err));
      continue;
    }
    arc.olabel = (int32_t)string;
    arc.weight = wf__cost_to_float(cost + (double)arc.weight);
    WF__TRY(wf__csr_push(&n->csr, arc, err));
  }
  if (!wf__is_final(view, at.first)) return WF_OK;
  cost += (double)view->final_cost[at.first];
  if (at.second == 0) { /* no output is left: several such paths sum up in the final cost */
    float *final_cost = &n->csr.final_cost.data[n->csr.final_cost.size - 1];
    *final_cost = wf__cost_to_float(wf__cost_plus(view->semiring, (double)*final_cost, cost));
    return WF_OK;
  }
  return wf__csr_push(&n->csr,
                      (wf_arc){.nextstate = (uint32_t)view->num_states,
                               .weight = wf__cost_to_float(cost),
                               .olabel = (int32_t)at.second},
                      err);
}

static wf_status expand(struct normalizer *n, uint32_t s, wf_error *err) {
  n->found.list.size = 0;
  wf__map64_clear(&n->found.map);
  n->cost.size = 0;
  uint64_t first = n->csr.arcs.size;
  WF__TRY(wf__csr_add_state(&n->csr, INFINITY, err));
  WF__TRY(reach(n, s, 0, 0, err));
  while (n->waiting.size > 0) { /* a member's cost is complete when it is popped */
    uint32_t at = wf__heap_pop(&n->waiting).item;
    WF__TRY(leave(n, n->found.list.data[at], n->cost.data[at], err));
  }
  wf__csr_sum_arcs(&n->csr, first, n->view.semiring);
  return WF_OK;
}

/* After check_cycles there are no cycles of epsilon input: they would write more than they read. */
static wf_status rank_states(struct normalizer *n, wf_error *err) {
  wf__scc scc;
  WF__TRY(wf__scc_find(&n->view, WF__ARCS_INPUT_EPSILON, &scc, err));
  n->rank = scc.component;
  scc.component = NULL;
  wf__scc_free(&scc);
  return WF_OK;
}

/* Lengthens the longest ways inside components, where an arc's length is the labels written less
 * those read; false if there is nothing to lengthen. */
static bool lengthen(const wf_fst_view *view, const wf__scc *scc, int64_t *length) {
  bool changed = false;
  for (uint64_t s = 0; s < view->num_states; s++) {
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      const wf_arc *arc = &view->arcs[i];
      int64_t there = length[s] + (arc->olabel != 0) - (arc->ilabel != 0);
      if (scc->component[arc->nextstate] != scc->component[s] || there <= length[arc->nextstate])
        continue;
      length[arc->nextstate] = there;
      changed = true;
    }
  }
  return changed;
}

/* Fails if a cycle writes more labels than it reads: more and more of them would have to wait for
 * the end of the input. */
static wf_status check_cycles(const wf_fst_view *view, wf_error *err) {
  wf__scc scc;
  WF__TRY(wf__scc_find(view, WF__ARCS_ALL, &scc, err));
  int64_t *length = wf__calloc(view->num_states, sizeof *length);
  wf_status status = length != NULL ? WF_OK
                                    : wf__fail_memory(err, view->num_states * sizeof *length,
                                                      "a search for cycles");
  uint64_t rounds = 0;
  while (status == WF_OK && !scc.acyclic && lengthen(view, &scc, length)) {
    status = wf__interrupted(err);
    if (status == WF_OK && ++rounds > view->num_states) /* longer than any way without a cycle */
      status =
          wf__fail(err, WF_ERR_ARGUMENT,
                   "a cycle has more labels on the side whose epsilons may be anywhere than on "
                   "the side whose epsilons come last: endlessly many would have to wait");
  }
  free(length);
  wf__scc_free(&scc);
  return status;
}

static wf_status normalize(struct normalizer *n, int64_t *start, wf__csr *out, wf_error *err) {
  bool fits;
  WF__TRY(check_cycles(&n->view, err));
  WF__TRY(rank_states(n, err));
  WF__TRY(wf__strings_init(&n->strings, err));
  for (uint64_t s = 0; s < n->view.num_states; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    WF__TRY(expand(n, (uint32_t)s, err));
  }
  WF__TRY(wf__csr_add_state(&n->csr, 0, err));
  const wf__pushed pushed = {.csr = &n->csr};
  WF__TRY(wf__delay_labels(&n->strings, &pushed, UINT64_MAX, start, out, &fits, err));
  return wf__csr_connect(out, start, true, err);
}

static wf_status normalize_input(const wf_fst *fst, wf_fst **out, wf_error *err) {
  wf_fst *plain;
  WF__TRY(wf_rmepsilon(fst, NULL, &plain, err));
  struct normalizer n = {.view = wf_fst_get_view(plain)};
  wf__csr csr = {0};
  int64_t start = n.view.start;
  wf_status status = start < 0 ? WF_OK : normalize(&n, &start, &csr, err);
  if (status == WF_OK) status = wf__fst_like(&csr, start, fst, out, err);
  free(n.rank);
  wf__strings_free(&n.strings);
  wf__pairs_free(&n.found);
  wf__vec_free(&n.cost);
  wf__vec_free(&n.waiting);
  wf__csr_free(&n.csr);
  wf__csr_free(&csr);
  wf_fst_free(plain);
  return status;
}

wf_status wf_epsnormalize(const wf_fst *fst, const wf_epsnormalize_options *options, wf_fst **out,
                          wf_error *err) {
  *out = NULL;
  wf_epsnormalize_options o;
  WF__TRY(wf__options_take(wf__epsnormalize_table(), options, &o, err));
  if (o.eps_norm_type == WF_EPS_NORM_INPUT) return normalize_input(fst, out, err);
  wf_fst *inverse, *normal = NULL;
  WF__TRY(wf_invert(fst, &inverse, err));
  wf_status status = normalize_input(inverse, &normal, err);
  wf_fst_free(inverse);
  if (status == WF_OK) status = wf_invert(normal, out, err);
  if (status == WF_OK) wf__fst_keep_ctc_blank(*out, fst);
  wf_fst_free(normal);
  return status;
}
