/* condense.c - makes one state of each strongly connected component. */
#include "fst/fst.h"
#include "fstops/scc.h"
#include "fstops/shortest_distance.h"

static wf_status condense(const wf_fst_view *view, const wf__scc *scc, wf__csr *csr,
                          wf_error *err) {
  for (uint32_t c = 0; c < scc->num_components; c++) {
    double final_cost = INFINITY;
    uint64_t at = csr->final_cost.size;
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    for (uint32_t k = scc->off[c]; k < scc->off[c + 1]; k++) {
      uint32_t s = scc->order[k];
      final_cost = wf__cost_plus(view->semiring, final_cost, (double)view->final_cost[s]);
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        wf_arc arc = view->arcs[i];
        arc.nextstate = scc->component[arc.nextstate];
        if (arc.nextstate != c) WF__TRY(wf__csr_push(csr, arc, err));
      }
    }
    csr->final_cost.data[at] = wf__cost_to_float(final_cost);
  }
  return WF_OK;
}

wf_status wf_condense(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  wf__scc scc;
  wf__csr csr = {0};
  WF__TRY(wf__scc_find(&view, WF__ARCS_ALL, &scc, err));
  wf_status status = condense(&view, &scc, &csr, err);
  int64_t start = view.start < 0 ? -1 : (int64_t)scc.component[view.start];
  wf__scc_free(&scc);
  if (status == WF_OK) status = wf__fst_like(&csr, start, fst, out, err);
  wf__csr_free(&csr);
  return status;
}
