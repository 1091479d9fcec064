/* compose_pushed.c - the second fst of a composition with label pushing, with states that wait.
 *
 * For each label w and state t that an arc w -> t leads to, there is a state that reads w and goes
 * to t, without output or cost. It stands for "w was written, but not yet read". Arcs with the same
 * w and t share it, so paths with different histories meet early. */
#include "fstops/compose_pushed.h"

static wf_status add_waiting(wf__pushed *pushed, wf__csr *csr, const wf_arc *arc, wf_error *err) {
  uint32_t state;
  bool is_new;
  if (arc->ilabel == 0) return WF_OK;
  WF__TRY(wf__map64_insert(&pushed->waiting, wf__pushed_key(arc), (uint32_t)csr->final_cost.size,
                           &state, &is_new, "waiting states", err));
  if (!is_new) return WF_OK;
  if (csr->final_cost.size >= WF__MAX_STATES)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^31 - 1 states with those that wait");
  WF__TRY(wf__csr_add_state(csr, INFINITY, err));
  return wf__csr_push(csr, (wf_arc){.nextstate = arc->nextstate, .ilabel = arc->ilabel}, err);
}

static wf_status add_all(wf__pushed *pushed, const wf_fst_view *view, wf__csr *csr, wf_error *err) {
  WF__TRY(wf__csr_append(csr, view, err));
  pushed->num_states = view->num_states;
  for (uint64_t i = 0; i < view->num_arcs; i++)
    WF__TRY(add_waiting(pushed, csr, &view->arcs[i], err));
  return WF_OK;
}

wf_status wf__pushed_init(wf__pushed *pushed, const wf_fst *b, wf_error *err) {
  wf__csr csr = {0};
  const wf_fst_view view = wf_fst_get_view(b);
  *pushed = (wf__pushed){.fst = NULL};
  wf_status status = add_all(pushed, &view, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_isymbols(b),
                              wf_fst_osymbols(b), &pushed->fst, err);
  wf__csr_free(&csr);
  if (status != WF_OK) wf__pushed_free(pushed);
  return status;
}

void wf__pushed_free(wf__pushed *pushed) {
  wf_fst_free(pushed->fst);
  wf__map64_free(&pushed->waiting);
  *pushed = (wf__pushed){.fst = NULL};
}
