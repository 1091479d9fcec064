/* disambig.c - disambiguation symbols: adds self-loops that pass them through a lexicon, and
 * removes the symbols afterwards. */
#include "base/map64.h"
#include "fst/properties.h"
#include "fstops/csr_copy.h"

/* Does the state need the loops? It does if it is final, or if an arc that leaves it has an output
 * label. */
static bool wants_loops(const wf_fst_view *view, uint64_t s) {
  if (wf__is_final(view, s)) return true;
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    if (view->arcs[i].olabel != 0) return true;
  return false;
}

wf_status wf_add_self_loops(const wf_fst *fst, const int32_t *ilabels, const int32_t *olabels,
                            size_t count, wf_fst **out, wf_error *err) {
  *out = NULL;
  for (size_t k = 0; k < count; k++)
    if (ilabels[k] < 0 || olabels[k] < 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "self-loop %zu: negative label %d:%d", k + 1,
                      ilabels[k], olabels[k]);
  wf_fst_view view = wf_fst_get_view(fst);
  wf__csr csr = {0};
  wf_status status = WF_OK;
  for (uint64_t s = 0; s < view.num_states; s++) {
    uint64_t begin = view.arc_off[s], num_arcs = view.arc_off[s + 1] - begin,
             num_loops = wants_loops(&view, s) ? count : 0;
    WF__TRY_GOTO(status, wf__csr_add_state(&csr, view.final_cost[s], err), done);
    WF__TRY_GOTO(status, wf__vec_grow(&csr.arcs, num_arcs + num_loops, "arcs", err), done);
    for (uint64_t i = 0; i < num_arcs; i++) csr.arcs.data[csr.arcs.size++] = view.arcs[begin + i];
    for (size_t k = 0; k < num_loops; k++)
      csr.arcs.data[csr.arcs.size++] =
          (wf_arc){.nextstate = (uint32_t)s, .ilabel = ilabels[k], .olabel = olabels[k]};
  }
  status = wf__fst_like(&csr, view.start, fst, out, err);
done:
  wf__csr_free(&csr);
  return status;
}

wf_status wf_remove_disambig(const wf_fst *fst, const int32_t *ilabels, size_t count, wf_fst **out,
                             wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  wf__map64 listed = {0};
  wf__csr csr = {0};
  wf_status status = WF_OK;
  for (size_t k = 0; k < count; k++) {
    uint32_t stands;
    if (ilabels[k] < 0)
      WF__TRY_GOTO(status, wf__fail(err, WF_ERR_ARGUMENT, "negative label %d", ilabels[k]), done);
    WF__TRY_GOTO(status,
                 wf__map64_insert(&listed, (uint64_t)ilabels[k], 1, &stands, NULL, "labels", err),
                 done);
  }
  WF__TRY_GOTO(status, wf__csr_append(&csr, &view, err), done);
  for (uint64_t i = 0; i < csr.arcs.size; i++)
    if (wf__map64_find(&listed, (uint64_t)csr.arcs.data[i].ilabel) != WF__MAP64_NONE)
      csr.arcs.data[i].ilabel = 0;
  status = wf__fst_like(&csr, view.start, fst, out, err);
  if (status == WF_OK && wf__fst_known_trimmed(fst)) wf__fst_set_trimmed(*out);
done:
  wf__csr_free(&csr);
  wf__map64_free(&listed);
  return status;
}
