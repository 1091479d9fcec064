/* incoming.c - see incoming.h. */
#include "fstops/incoming.h"

wf_status wf__incoming_find(const wf_fst_view *view, wf__incoming *out, wf_error *err) {
  uint64_t n = view->num_states, m = view->num_arcs;
  uint64_t *off = wf__calloc(n + 2, sizeof *off);
  wf_arc *arcs = wf__alloc(m, sizeof *arcs);
  *out = (wf__incoming){off, arcs};
  if (off == NULL || arcs == NULL) {
    wf__incoming_free(out);
    return wf__fail_memory(err, (n + 2) * sizeof *off + m * sizeof *arcs, "incoming arcs");
  }
  for (uint64_t i = 0; i < m; i++) off[view->arcs[i].nextstate + 2]++;
  for (uint64_t s = 0; s < n; s++) off[s + 2] += off[s + 1];
  for (uint64_t s = 0; s < n; s++) {
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      wf_arc *arc = &arcs[off[view->arcs[i].nextstate + 1]++];
      *arc = view->arcs[i];
      arc->nextstate = (uint32_t)s;
    }
  }
  return WF_OK;
}

void wf__incoming_free(wf__incoming *incoming) {
  free(incoming->off);
  free(incoming->arcs);
  *incoming = (wf__incoming){0};
}
