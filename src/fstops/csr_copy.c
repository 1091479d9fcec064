/* csr_copy.c - copies fsts into arrays under construction. */
#include "fstops/csr_copy.h"

#include <string.h>

wf_status wf__csr_copy_states(wf__csr *csr, const wf_fst_view *view, wf_error *err) {
  uint64_t n = view->num_states, base = csr->arcs.size;
  if (n > WF__MAX_STATES - csr->final_cost.size)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states", (unsigned long long)WF__MAX_STATES);
  WF__TRY(wf__vec_grow(&csr->arc_off, n + 1, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, n, "states", err));
  for (uint64_t s = 0; s < n; s++)
    csr->arc_off.data[csr->arc_off.size + s] = base + view->arc_off[s];
  if (n != 0)
    memcpy(csr->final_cost.data + csr->final_cost.size, view->final_cost, n * sizeof(float));
  csr->arc_off.size += n;
  csr->final_cost.size += n;
  return WF_OK;
}

wf_status wf__csr_append(wf__csr *csr, const wf_fst_view *view, wf_error *err) {
  uint32_t shift = (uint32_t)csr->final_cost.size;
  WF__TRY(wf__csr_copy_states(csr, view, err));
  WF__TRY(wf__vec_grow(&csr->arcs, view->num_arcs + 1, "arcs", err));
  wf_arc *to = csr->arcs.data + csr->arcs.size;
  for (uint64_t i = 0; i < view->num_arcs; i++) {
    to[i] = view->arcs[i];
    to[i].nextstate += shift;
  }
  csr->arcs.size += view->num_arcs;
  return WF_OK;
}
