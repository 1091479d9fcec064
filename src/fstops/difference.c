/* difference.c - the paths of one fst whose output another does not accept.
 *
 * The second fst, B, is a deterministic acceptor. Its complement accepts the same strings as B with
 * one more state, the sink, where B has no arc, and with final and non-final states exchanged. The
 * result is the composition with the complement, which is never built: a state is a pair of a state
 * of A and a state of B or the sink. */
#include "base/option_tables.h"
#include "fst/properties.h"
#include "fstops/connect.h"
#include "fstops/pair_table.h"

/* The arc's target in B for a label, or the sink. */
static uint32_t step(const wf_fst_view *b, uint32_t state, int32_t label) {
  uint32_t sink = (uint32_t)b->num_states;
  if (label == 0 || state == sink) return state;
  uint64_t low = b->arc_off[state], high = b->arc_off[state + 1];
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (b->arcs[middle].ilabel < label)
      low = middle + 1;
    else
      high = middle;
  }
  return low < b->arc_off[state + 1] && b->arcs[low].ilabel == label ? b->arcs[low].nextstate
                                                                     : sink;
}

static wf_status subtract(const wf_fst_view *a, const wf_fst_view *b, wf__pairs *states,
                          wf__csr *csr, wf_error *err) {
  uint32_t sink = (uint32_t)b->num_states, first;
  WF__TRY(wf__pairs_find(states, (uint32_t)a->start, b->start < 0 ? sink : (uint32_t)b->start,
                         &first, err));
  for (uint64_t k = 0; k < states->list.size; k++) {
    wf__pair at = states->list.data[k];
    bool accepted = at.second != sink && wf__is_final(b, at.second);
    WF__TRY(wf__csr_add_state(csr, accepted ? INFINITY : a->final_cost[at.first], err));
    for (uint64_t i = a->arc_off[at.first]; i < a->arc_off[at.first + 1]; i++) {
      wf_arc arc = a->arcs[i];
      WF__TRY(wf__pairs_find(states, arc.nextstate, step(b, at.second, arc.olabel), &arc.nextstate,
                             err));
      WF__TRY(wf__csr_push(csr, arc, err));
    }
  }
  return WF_OK;
}

/* Makes the second fst deterministic, without epsilons, and sorted. It has no costs, so it can be
 * determinized; in the log semiring equal paths would get a cost, hence the tropical one. */
static wf_status prepare(const wf_fst *b, wf_fst **out, wf_error *err) {
  uint32_t properties;
  WF__TRY(wf_fst_get_properties(b, &properties, err));
  if (!(properties & WF_PROP_ACCEPTOR) || !(properties & WF_PROP_UNWEIGHTED))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the fst to subtract must be an acceptor without weights");
  wf_fst *plain, *without = NULL;
  if ((properties & WF_PROP_IDETERMINISTIC) && (properties & WF_PROP_NO_IEPSILONS)) {
    WF__TRY(wf_connect(b, &plain, err)); /* a state without a future is the sink */
    wf_status status = wf_arcsort(plain, NULL, out, err);
    wf_fst_free(plain);
    return status;
  }
  WF__TRY(wf_fst_with_semiring(b, WF_TROPICAL, &plain, err));
  wf_status status = wf_rmepsilon(plain, NULL, &without, err);
  wf_fst_free(plain);
  if (status == WF_OK) status = wf_determinize(without, NULL, out, err);
  wf_fst_free(without);
  return status;
}

wf_status wf_difference(const wf_fst *a, const wf_fst *b, const wf_difference_options *options,
                        wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_difference_options o;
  WF__TRY(wf__options_take(wf__difference_table(), options, &o, err));
  WF__TRY(wf__same_semiring(a, b, err));
  if (o.check_symbols) WF__TRY(wf__joined_symbols((const wf_fst *[]){a, b}, 2, err));
  wf_fst *ready;
  WF__TRY(prepare(b, &ready, err));
  wf_fst_view from = wf_fst_get_view(a), minus = wf_fst_get_view(ready);
  wf__pairs states = {0};
  wf__csr csr = {0};
  int64_t start = from.start < 0 ? -1 : 0;
  wf_status status = start < 0 ? WF_OK : subtract(&from, &minus, &states, &csr, err);
  wf__pairs_free(&states);
  wf_fst_free(ready);
  if (status == WF_OK && o.connect && start >= 0) status = wf__csr_connect(&csr, &start, true, err);
  if (status == WF_OK) status = wf__fst_like(&csr, start, a, out, err);
  wf__csr_free(&csr);
  return status;
}
