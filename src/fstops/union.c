/* union.c - the union of any number of fsts. The structure is that of OpenFst when it adds one fst
 * after the other:
 *
 *     states of fst 1 | states of fst 2 | [new start] | states of fst 3 | ...
 *
 * The start of fst 1 gets an epsilon arc to the start of each other fst. If it is on a cycle, a new
 * start is added instead, with epsilon arcs to the starts of all fsts. */
#include "fstops/csr_copy.h"

/* Is the start on a cycle? */
static wf_status start_on_cycle(const wf_fst_view *view, bool *out, wf_error *err) {
  uint32_t *stack = wf__alloc(view->num_states, sizeof *stack);
  uint8_t *seen = wf__calloc(view->num_states, 1);
  wf_status status = WF_OK;
  *out = false;
  if (stack == NULL || seen == NULL)
    status = wf__fail_memory(err, view->num_states * 5, "a search");
  uint64_t depth = 0;
  if (status == WF_OK) stack[depth++] = (uint32_t)view->start;
  while (depth > 0 && !*out) {
    uint32_t s = stack[--depth];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t next = view->arcs[i].nextstate;
      if (next == view->start) *out = true;
      if (seen[next]) continue;
      seen[next] = 1;
      stack[depth++] = next;
    }
  }
  free(stack);
  free(seen);
  return status;
}

/* Adds the arcs from the hub (the start of the union) to the starts of the parts from `from` on.
 * The states of those parts begin at `base`. */
static wf_status add_branches(wf__csr *csr, const wf_fst *const *fsts, size_t from, size_t count,
                              uint64_t base, wf_error *err) {
  for (size_t k = from; k < count; k++) {
    wf_fst_view view = wf_fst_get_view(fsts[k]);
    if (view.start < 0) continue;
    if (base + view.num_states > WF__MAX_STATES)
      return wf__fail(err, WF_ERR_LIMIT, "more than %llu states",
                      (unsigned long long)WF__MAX_STATES);
    WF__TRY(wf__csr_push(csr, (wf_arc){.nextstate = (uint32_t)(base + (uint64_t)view.start)}, err));
    base += view.num_states;
  }
  return WF_OK;
}

/* Appends the first part, with its start as the hub: the arcs to the other parts follow the start's
 * own arcs. */
static wf_status append_hub(wf__csr *csr, const wf_fst *const *fsts, size_t first, size_t count,
                            wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fsts[first]);
  for (uint64_t s = 0; s < view.num_states; s++) {
    WF__TRY(wf__csr_add_state(csr, view.final_cost[s], err));
    for (uint64_t i = view.arc_off[s]; i < view.arc_off[s + 1]; i++)
      WF__TRY(wf__csr_push(csr, view.arcs[i], err));
    if ((int64_t)s == view.start)
      WF__TRY(add_branches(csr, fsts, first + 1, count, view.num_states, err));
  }
  return WF_OK;
}

static wf_status unite(wf__csr *csr, const wf_fst *const *fsts, size_t first, size_t count,
                       int64_t *start, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fsts[first]);
  size_t others = 0;
  bool cyclic = false;
  for (size_t k = first + 1; k < count; k++) others += wf_fst_get_view(fsts[k]).start >= 0;
  if (others != 0) WF__TRY(start_on_cycle(&view, &cyclic, err));
  *start = view.start;
  if (!cyclic)
    WF__TRY(append_hub(csr, fsts, first, count, err));
  else
    WF__TRY(wf__csr_append(csr, &view, err));
  for (size_t k = first + 1; k < count; k++) {
    wf_fst_view part = wf_fst_get_view(fsts[k]);
    if (part.start < 0) continue;
    uint64_t base = csr->final_cost.size;
    WF__TRY(wf__csr_append(csr, &part, err));
    if (!cyclic || *start != view.start) continue;
    *start = (int64_t)csr->final_cost.size;
    WF__TRY(wf__csr_add_state(csr, INFINITY, err));
    WF__TRY(wf__csr_push(csr, (wf_arc){.nextstate = (uint32_t)view.start}, err));
    WF__TRY(wf__csr_push(csr, (wf_arc){.nextstate = (uint32_t)(base + (uint64_t)part.start)}, err));
    WF__TRY(add_branches(csr, fsts, k + 1, count, csr->final_cost.size, err));
  }
  return WF_OK;
}

wf_status wf_union(const wf_fst *const *fsts, size_t count, wf_fst **out, wf_error *err) {
  *out = NULL;
  if (count == 0) return wf__fail(err, WF_ERR_ARGUMENT, "cannot make the union of 0 fsts");
  size_t first = count;
  for (size_t k = count; k-- > 0;) {
    WF__TRY(wf__same_semiring(fsts[0], fsts[k], err));
    if (wf_fst_get_view(fsts[k]).start >= 0) first = k;
  }
  WF__TRY(wf__same_symbols(fsts, count, err));
  int32_t blank;
  WF__TRY(wf__fst_common_blank(fsts, count, &blank, err));
  if (first == count) return wf__fst_empty(wf_fst_get_view(fsts[0]).semiring, out, err);
  wf__csr csr = {0};
  int64_t start = -1;
  wf_status status = unite(&csr, fsts, first, count, &start, err);
  if (status == WF_OK) status = wf__fst_like(&csr, start, fsts[0], out, err);
  if (status == WF_OK) wf__fst_set_ctc_blank(*out, blank);
  wf__csr_free(&csr);
  return status;
}
