/* synchronize.c - makes arcs read and write one label each, as long as both sides have labels
 * (Mohri 2003, "Edit-distance of weighted automata", section 5).
 *
 * A state of the result is a state of the input and the labels read but not yet on an arc of the
 * result, and those written: two strings, of which one is empty before the end of the input. The
 * end of the input is one more state, where the rest of the strings is put on arcs. */
#include "fstops/connect.h"
#include "fstops/pair_table.h"
#include "fstops/scc.h"
#include "fstops/string_pool.h"

struct synchronizer {
  wf__strings strings; /* begin with the first label */
  wf__pairs delays;    /* (input string, output string) */
  wf__pairs states;    /* (state, delay); state num_states is the end */
  wf__csr csr;
};

static wf_status find_state(struct synchronizer *sync, uint32_t state, uint32_t istring,
                            uint32_t ostring, uint32_t *out, wf_error *err) {
  uint32_t delay;
  WF__TRY(wf__pairs_find(&sync->delays, istring, ostring, &delay, err));
  return wf__pairs_find(&sync->states, state, delay, out, err);
}

/* Adds an arc for the labels of both strings: their first ones if both have one, or if `last`; else
 * none, and the strings wait. */
static wf_status put_arc(struct synchronizer *sync, uint32_t istring, uint32_t ostring, wf_arc arc,
                         bool last, wf_error *err) {
  arc.ilabel = arc.olabel = 0;
  if (last || (istring != 0 && ostring != 0)) {
    if (istring != 0) {
      arc.ilabel = (int32_t)wf__string_label(&sync->strings, istring);
      istring = wf__string_rest(&sync->strings, istring);
    }
    if (ostring != 0) {
      arc.olabel = (int32_t)wf__string_label(&sync->strings, ostring);
      ostring = wf__string_rest(&sync->strings, ostring);
    }
  }
  WF__TRY(find_state(sync, arc.nextstate, istring, ostring, &arc.nextstate, err));
  return wf__csr_push(&sync->csr, arc, err);
}

static wf_status expand(struct synchronizer *sync, const wf_fst_view *view, wf__pair at,
                        wf_error *err) {
  wf__pair delay = sync->delays.list.data[at.second];
  uint32_t end = (uint32_t)view->num_states;
  float final_cost = at.first == end ? 0 : view->final_cost[at.first];
  bool waits = (delay.first | delay.second) != 0;
  WF__TRY(wf__csr_add_state(&sync->csr, waits ? INFINITY : final_cost, err));
  for (uint64_t i = at.first == end ? 0 : view->arc_off[at.first];
       at.first != end && i < view->arc_off[at.first + 1]; i++) {
    wf_arc arc = view->arcs[i];
    uint32_t istring, ostring;
    WF__TRY(
        wf__string_concat(&sync->strings, delay.first, wf__string_of(arc.ilabel), &istring, err));
    WF__TRY(
        wf__string_concat(&sync->strings, delay.second, wf__string_of(arc.olabel), &ostring, err));
    WF__TRY(put_arc(sync, istring, ostring, arc, false, err));
  }
  if (!waits || final_cost == INFINITY) return WF_OK;
  return put_arc(sync, delay.first, delay.second, (wf_arc){.nextstate = end, .weight = final_cost},
                 true, err);
}

/* Fails unless each cycle reads as many labels as it writes: the states of a component have
 * potentials (labels read less labels written on the way there). */
static wf_status check_cycles(const wf_fst_view *view, const wf__scc *scc, int64_t *lead,
                              uint32_t *stack, wf_error *err) {
  const int64_t unknown = INT64_MAX;
  for (uint64_t s = 0; s < view->num_states; s++) lead[s] = unknown;
  for (uint64_t root = 0; root < view->num_states; root++) {
    if (lead[root] != unknown) continue;
    uint64_t depth = 0;
    lead[root] = 0;
    stack[depth++] = (uint32_t)root;
    while (depth > 0) {
      uint32_t s = stack[--depth];
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
        const wf_arc *arc = &view->arcs[i];
        uint32_t to = arc->nextstate;
        if (scc->component[to] != scc->component[s]) continue;
        int64_t there = lead[s] + (arc->ilabel != 0) - (arc->olabel != 0);
        if (lead[to] == unknown) stack[depth++] = to;
        if (lead[to] != unknown && lead[to] != there)
          return wf__fail(err, WF_ERR_ARGUMENT,
                          "a cycle through state %u (of the trimmed fst) has different numbers of "
                          "input and output labels",
                          to);
        lead[to] = there;
      }
    }
  }
  return WF_OK;
}

static wf_status check(const wf_fst_view *view, wf_error *err) {
  wf__scc scc;
  WF__TRY(wf__scc_find(view, WF__ARCS_ALL, &scc, err));
  int64_t *lead = wf__alloc(view->num_states, sizeof *lead);
  uint32_t *stack = wf__alloc(view->num_states, sizeof *stack);
  wf_status status = lead == NULL || stack == NULL
                         ? wf__fail_memory(err, view->num_states * 12, "a search for cycles")
                         : check_cycles(view, &scc, lead, stack, err);
  free(lead);
  free(stack);
  wf__scc_free(&scc);
  return status;
}

static wf_status synchronize(struct synchronizer *sync, const wf_fst_view *view, wf_error *err) {
  uint32_t first;
  WF__TRY(check(view, err));
  WF__TRY(wf__strings_init(&sync->strings, err));
  WF__TRY(find_state(sync, (uint32_t)view->start, 0, 0, &first, err));
  for (uint64_t k = 0; k < sync->states.list.size; k++)
    WF__TRY(expand(sync, view, sync->states.list.data[k], err));
  return WF_OK;
}

wf_status wf_synchronize(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst *trimmed;
  WF__TRY(wf_connect(fst, &trimmed, err));
  wf_fst_view view = wf_fst_get_view(trimmed);
  struct synchronizer sync = {0};
  wf_status status = view.start < 0 ? WF_OK : synchronize(&sync, &view, err);
  wf__strings_free(&sync.strings);
  wf__pairs_free(&sync.delays);
  wf__pairs_free(&sync.states);
  if (status == WF_OK) status = wf__fst_like(&sync.csr, view.start < 0 ? -1 : 0, fst, out, err);
  wf__csr_free(&sync.csr);
  wf_fst_free(trimmed);
  return status;
}
