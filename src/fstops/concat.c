/* concat.c - concatenation. Every final state of a part, except the last part's, gets an epsilon
 * arc to the start of the next part, with the final cost as weight, and is no longer final. States
 * are numbered part by part, as in OpenFst. */
#include "fstops/csr_copy.h"

static wf_status append_linked(wf__csr *csr, const wf_fst_view *view, uint64_t next_start,
                               wf_error *err) {
  uint32_t shift = (uint32_t)csr->final_cost.size;
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    uint64_t begin = view->arc_off[s], count = view->arc_off[s + 1] - begin;
    WF__TRY(wf__vec_grow(&csr->arcs, count + 1, "arcs", err));
    for (uint64_t i = 0; i < count; i++) {
      wf_arc arc = view->arcs[begin + i];
      arc.nextstate += shift;
      csr->arcs.data[csr->arcs.size++] = arc;
    }
    if (wf__is_final(view, s))
      csr->arcs.data[csr->arcs.size++] =
          (wf_arc){.nextstate = (uint32_t)next_start, .weight = view->final_cost[s]};
  }
  return WF_OK;
}

wf_status wf_concat(const wf_fst *const *fsts, size_t count, wf_fst **out, wf_error *err) {
  *out = NULL;
  if (count == 0) return wf__fail(err, WF_ERR_ARGUMENT, "cannot concatenate 0 fsts");
  bool empty = false;
  uint64_t num_states = 0;
  for (size_t k = 0; k < count; k++) {
    wf_fst_view view = wf_fst_get_view(fsts[k]);
    WF__TRY(wf__same_semiring(fsts[0], fsts[k], err));
    empty = empty || view.start < 0;
    num_states += view.num_states;
  }
  WF__TRY(wf__same_symbols(fsts, count, err));
  int32_t blank;
  WF__TRY(wf__fst_common_blank(fsts, count, &blank, err));
  wf_semiring semiring = wf_fst_get_view(fsts[0]).semiring;
  if (empty) return wf__fst_empty(semiring, out, err);
  if (num_states > WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states", (unsigned long long)WF__MAX_STATES);
  wf__csr csr = {0};
  wf_status status;
  for (size_t k = 0; k + 1 < count; k++) {
    wf_fst_view view = wf_fst_get_view(fsts[k]), next = wf_fst_get_view(fsts[k + 1]);
    WF__TRY_GOTO(status,
                 append_linked(&csr, &view,
                               csr.final_cost.size + view.num_states + (uint64_t)next.start, err),
                 done);
  }
  wf_fst_view last = wf_fst_get_view(fsts[count - 1]);
  WF__TRY_GOTO(status, wf__csr_append(&csr, &last, err), done);
  status = wf__fst_like(&csr, wf_fst_get_view(fsts[0]).start, fsts[0], out, err);
  if (status == WF_OK) wf__fst_set_ctc_blank(*out, blank);
done:
  wf__csr_free(&csr);
  return status;
}
