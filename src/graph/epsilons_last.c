/* epsilons_last.c - the last step of every graph pipeline: sorts the arcs of each state, those that
 * read a frame first, epsilons last. */
#include "fst/fst.h"

static wf_status copy_arcs(wf__csr *csr, const wf_fst_view *view, uint64_t state, bool epsilons,
                           wf_error *err) {
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++)
    if ((view->arcs[i].ilabel == 0) == epsilons) WF__TRY(wf__csr_push(csr, view->arcs[i], err));
  return WF_OK;
}

static wf_status copy_states(wf__csr *csr, const wf_fst_view *view, wf_error *err) {
  WF__TRY(wf__vec_grow(&csr->arcs, view->num_arcs, "arcs", err));
  for (uint64_t state = 0; state < view->num_states; state++) {
    WF__TRY(wf__csr_add_state(csr, view->final_cost[state], err));
    WF__TRY(copy_arcs(csr, view, state, false, err));
    WF__TRY(copy_arcs(csr, view, state, true, err));
  }
  return WF_OK;
}

static bool are_last(const wf_fst_view *view) {
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t i = view->arc_off[s]; i + 1 < view->arc_off[s + 1]; i++)
      if (view->arcs[i].ilabel == 0 && view->arcs[i + 1].ilabel != 0) return false;
  return true;
}

wf_status wf_epsilons_last(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  if (are_last(&view)) {
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  wf__csr csr = {0};
  wf_status status = copy_states(&csr, &view, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_isymbols(fst),
                              wf_fst_osymbols(fst), out, err);
  if (status == WF_OK) wf__fst_copy_boundaries(*out, fst);
  wf__csr_free(&csr);
  return status;
}
