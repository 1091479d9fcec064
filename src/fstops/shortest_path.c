/* shortest_path.c - wf_shortest_path: one best path as a chain of states. For several paths, see
 * nshortest.c. */
#include "fst/fst.h"

#include "base/option_tables.h"
#include "fst/properties.h"
#include "fstops/best_paths.h"
#include "fstops/nshortest.h"
#include "fstops/prune.h"

/* Finds the best paths from the start. If there is a negative cycle, searches again among the
 * states that reach a final state, because a cycle elsewhere does not matter. */
static wf_status search_forward(const wf_fst_view *view, wf__best_paths *paths, wf_error *err) {
  wf__search_graph graph = {.num_states = view->num_states,
                            .arc_off = view->arc_off,
                            .arcs = view->arcs,
                            .start = view->start,
                            .final_cost = view->final_cost};
  wf_status status = wf__best_paths_find(&graph, paths, err);
  if (status != WF_ERR_NEGATIVE_CYCLE) return status;
  wf__incoming incoming;
  uint8_t *useful = NULL;
  WF__TRY(wf__incoming_find(view, &incoming, err));
  status = wf__useful_states(view, &incoming, &useful, err);
  wf__incoming_free(&incoming);
  graph.only = useful;
  if (status == WF_OK) status = wf__best_paths_find(&graph, paths, err);
  free(useful);
  return status;
}

/* The final state in which the best path ends. Ties are broken by the number of arcs, then by the
 * state number. */
static uint32_t best_end(const wf_fst_view *view, const wf__best_paths *paths) {
  uint32_t best = WF__NO_STATE;
  double best_cost = INFINITY;
  for (uint64_t s = 0; s < view->num_states; s++) {
    double cost = paths->cost[s] + (double)view->final_cost[s];
    if (cost == INFINITY || cost > best_cost ||
        (cost == best_cost && best != WF__NO_STATE && paths->hops[s] >= paths->hops[best]))
      continue;
    best = (uint32_t)s;
    best_cost = cost;
  }
  return best;
}

/* Writes the path that ends in `end` as states 0, 1, 2, ... */
static wf_status chain(const wf_fst_view *view, const wf__best_paths *paths, uint32_t end,
                       wf__csr *csr, wf_error *err) {
  /* hops[end] may be wrong if rounding has made a cycle slightly negative, so arcs are counted. */
  uint64_t length = 0;
  for (uint32_t at = end; paths->from[at] != WF__NO_STATE; at = paths->from[at]) length++;
  WF__TRY(wf__vec_grow(&csr->arcs, length, "a path", err));
  csr->arcs.size = length;
  uint32_t at = end;
  for (uint64_t i = length; i-- > 0; at = paths->from[at]) {
    csr->arcs.data[i] = view->arcs[paths->arc[at]];
    csr->arcs.data[i].nextstate = (uint32_t)(i + 1);
  }
  WF__TRY(wf__vec_grow(&csr->arc_off, length + 1, "a path", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, length + 1, "a path", err));
  for (uint64_t i = 0; i <= length; i++) {
    csr->arc_off.data[i] = i;
    csr->final_cost.data[i] = i == length ? view->final_cost[end] : INFINITY;
  }
  csr->arc_off.size = csr->final_cost.size = length + 1;
  return WF_OK;
}

static wf_status shortest(const wf_fst *fst, wf_fst **out, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf__best_paths paths;
  WF__TRY(search_forward(&view, &paths, err));
  uint32_t end = best_end(&view, &paths);
  wf__csr csr = {0};
  wf_status status = end != WF__NO_STATE ? chain(&view, &paths, end, &csr, err) : WF_OK;
  wf__best_paths_free(&paths);
  if (status == WF_OK) return wf__fst_like(&csr, end != WF__NO_STATE ? 0 : -1, fst, out, err);
  wf__csr_free(&csr);
  return status;
}

static wf_status find_paths(const wf_fst *fst, const wf_shortest_path_options *o, wf_fst **out,
                            wf_error *err) {
  if (o->nshortest > 1 && o->unique && !(wf__fst_local_properties(fst) & WF_PROP_ACCEPTOR))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "several distinct strings are defined for acceptors and this fst has arcs with "
                    "different labels; project it first");
  WF__TRY(o->nshortest == 1 ? shortest(fst, out, err)
                            : wf__nshortest(fst, (uint32_t)o->nshortest, o->unique, out, err));
  return wf__prune_result(out, o->weight, o->nstate, err);
}

wf_status wf_shortest_path(const wf_fst *fst, const wf_shortest_path_options *options, wf_fst **out,
                           wf_error *err) {
  *out = NULL;
  wf_shortest_path_options o;
  WF__TRY(wf__options_take(wf__shortest_path_table(), options, &o, err));
  wf_semiring semiring = wf_fst_get_view(fst).semiring;
  if (semiring == WF_TROPICAL) return find_paths(fst, &o, out, err);
  wf_fst *tropical, *found = NULL;
  WF__TRY(wf_fst_with_semiring(fst, WF_TROPICAL, &tropical, err));
  wf_status status = find_paths(tropical, &o, &found, err);
  wf_fst_free(tropical);
  if (status == WF_OK) status = wf_fst_with_semiring(found, semiring, out, err);
  wf_fst_free(found);
  return status;
}
