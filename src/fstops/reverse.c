/* reverse.c - reverses an fst. State 0 is a new start state with an epsilon arc, weighted with the
 * final cost, to each old final state. Old state s becomes s + 1, and the old start is the only
 * final state. A counting sort by old target moves the arcs and keeps their order. */
#include <string.h>

#include "fst/fst.h"

static wf_status fill_reversed(wf__csr *csr, const wf_fst_view *view, wf_error *err) {
  uint64_t n = view->num_states, num_finals = 0;
  if (n >= WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states", (unsigned long long)WF__MAX_STATES);
  WF__TRY(wf__vec_grow(&csr->arc_off, n + 3, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, n + 1, "states", err));
  for (uint64_t s = 0; s < n; s++) num_finals += wf__is_final(view, s);
  WF__TRY(wf__vec_grow(&csr->arcs, view->num_arcs + num_finals + 1, "arcs", err));
  uint64_t *off = csr->arc_off.data;
  memset(off, 0, (n + 3) * sizeof *off);
  off[2] = num_finals;
  for (uint64_t i = 0; i < view->num_arcs; i++) off[view->arcs[i].nextstate + 3]++;
  for (uint64_t s = 2; s < n + 2; s++) off[s + 1] += off[s];
  csr->final_cost.data[0] = INFINITY;
  /* off[t + 1] is the index of the next arc of state t; in the end, it is the end of t's arcs. */
  for (uint64_t s = 0; s < n; s++) {
    csr->final_cost.data[s + 1] = (int64_t)s == view->start ? 0 : INFINITY;
    if (wf__is_final(view, s))
      csr->arcs.data[off[1]++] =
          (wf_arc){.nextstate = (uint32_t)s + 1, .weight = view->final_cost[s]};
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc arc = view->arcs[i];
      uint64_t *at = &off[arc.nextstate + 2];
      arc.nextstate = (uint32_t)s + 1;
      csr->arcs.data[(*at)++] = arc;
    }
  }
  csr->arc_off.size = csr->final_cost.size = n + 1;
  csr->arcs.size = view->num_arcs + num_finals;
  return WF_OK;
}

wf_status wf_reverse(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  if (view.start < 0) {
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  wf__csr csr = {0};
  wf_status status = fill_reversed(&csr, &view, err);
  if (status == WF_OK) status = wf__fst_like(&csr, 0, fst, out, err);
  wf__csr_free(&csr);
  return status;
}
