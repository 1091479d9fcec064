/* closure.c - Kleene closure. Every final state gets an epsilon arc back to the start, with its
 * final cost as weight. The star closure also has a new start state, numbered last: it is final
 * with cost 0 and has an epsilon arc to the old start. OpenFst makes the same structure. */
#include "base/option_tables.h"
#include "fstops/csr_copy.h"

static wf_status copy_with_loops(wf__csr *csr, const wf_fst_view *view, wf_error *err) {
  uint64_t num_finals = 0;
  for (uint64_t s = 0; s < view->num_states; s++) num_finals += wf__is_final(view, s);
  WF__TRY(wf__vec_grow(&csr->arcs, view->num_arcs + num_finals + 1, "arcs", err));
  WF__TRY(wf__vec_grow(&csr->arc_off, view->num_states + 2, "states", err));
  WF__TRY(wf__vec_grow(&csr->final_cost, view->num_states + 1, "states", err));
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      csr->arcs.data[csr->arcs.size++] = view->arcs[i];
    if (wf__is_final(view, s))
      csr->arcs.data[csr->arcs.size++] =
          (wf_arc){.nextstate = (uint32_t)view->start, .weight = view->final_cost[s]};
  }
  return WF_OK;
}

wf_status wf_closure(const wf_fst *fst, const wf_closure_options *options, wf_fst **out,
                     wf_error *err) {
  *out = NULL;
  wf_closure_options o;
  WF__TRY(wf__options_take(wf__closure_table(), options, &o, err));
  wf_fst_view view = wf_fst_get_view(fst);
  wf__csr csr = {0};
  int64_t start = view.start;
  wf_status status;
  WF__TRY_GOTO(status, copy_with_loops(&csr, &view, err), done);
  if (o.closure_type == 0) {
    start = (int64_t)view.num_states;
    WF__TRY_GOTO(status, wf__csr_add_state(&csr, 0, err), done);
    if (view.start >= 0)
      WF__TRY_GOTO(status, wf__csr_push(&csr, (wf_arc){.nextstate = (uint32_t)view.start}, err),
                   done);
  }
  status = wf__fst_like(&csr, start, fst, out, err);
done:
  wf__csr_free(&csr);
  return status;
}
