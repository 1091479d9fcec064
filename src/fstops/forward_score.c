/* forward_score.c - the total cost of all paths, and its derivatives with respect to arc weights.
 * The derivatives follow from the distances from the start and to the final states. */
#include "base/option_tables.h"
#include "fst/fst.h"
#include "fstops/parallel.h"
#include "fstops/shortest_distance.h"

/* The gradient of an arc is e^-(cost of all paths through it) / e^-(cost of all paths). It may
 * exceed 1 for an arc on a cycle, because a path may take the arc more than once. */
static void fill_gradients(const wf_fst_view *view, const double *from_start,
                           const double *to_final, double *gradients) {
  double total = to_final[view->start];
  for (uint64_t s = 0; s < view->num_states; s++) {
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      const wf_arc *arc = &view->arcs[i];
      double through = from_start[s] + (double)arc->weight + to_final[arc->nextstate];
      gradients[i] = through == INFINITY ? 0 : exp(total - through);
    }
  }
}

static wf_status make_gradients(const wf_fst_view *view, double delta, wf__pool *pool,
                                const double *to_final, double **out, wf_error *err) {
  double *from_start = NULL, *gradients = wf__calloc(view->num_arcs, sizeof *gradients);
  if (gradients == NULL)
    return wf__fail_memory(err, view->num_arcs * sizeof *gradients, "gradients");
  wf_status status = WF_OK;
  if (view->start >= 0 && to_final[view->start] != INFINITY) {
    status = wf__shortest_distance(view, false, delta, pool, &from_start, err);
    if (status == WF_OK) fill_gradients(view, from_start, to_final, gradients);
  }
  free(from_start);
  if (status == WF_OK)
    *out = gradients;
  else
    free(gradients);
  return status;
}

wf_status wf_forward_score(const wf_fst *fst, const wf_forward_score_options *options,
                           double *out_cost, double **out_gradients, wf_error *err) {
  wf_forward_score_options o;
  wf_fst_view view = wf_fst_get_view(fst);
  *out_cost = INFINITY;
  if (out_gradients != NULL) *out_gradients = NULL;
  WF__TRY(wf__options_take(wf__forward_score_table(), options, &o, err));
  if (out_gradients != NULL && view.semiring != WF_LOG)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "gradients need the log semiring; this fst is in the tropical semiring");
  wf__pool *pool;
  double *to_final = NULL;
  WF__TRY(wf__pool_for_fst(o.num_threads, &view, &pool, err));
  wf_status status = view.start >= 0
                         ? wf__shortest_distance(&view, true, (double)o.delta, pool, &to_final, err)
                         : WF_OK;
  if (status == WF_OK && out_gradients != NULL)
    status = make_gradients(&view, (double)o.delta, pool, to_final, out_gradients, err);
  if (status == WF_OK && view.start >= 0) *out_cost = to_final[view.start];
  free(to_final);
  wf__pool_free(pool);
  return status;
}
