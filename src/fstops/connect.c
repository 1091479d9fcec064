/* connect.c - keeps the states that lie on a path from the start to a final state.
 *
 * Forward: depth-first over an explicit stack. Backward: no reversed copy of the arcs; states are swept in falling and then rising order,
 * each one asking whether a successor is known to be good. After breadth-first numbering (what most operations produce) two or three
 * sweeps over ever fewer states settle everything. What unusual numberings leave open goes through a reversed search over the open
 * states alone, so that the time stays linear. */
#include "fstops/connect.h"

#include <string.h>

enum { NUM_SWEEPS = 4 };

/* --- marks -------------------------------------------------------------------------------------------------------- */

static wf_status mark_accessible(const wf_fst_view *view, uint8_t *seen, wf_error *err) {
  uint32_t *stack = wf__alloc(view->num_states, sizeof *stack);
  if (stack == NULL) return wf__fail_memory(err, view->num_states * sizeof *stack, "a search");
  uint64_t depth = 0;
  stack[depth++] = (uint32_t)view->start;
  seen[view->start] = 1;
  while (depth > 0) {
    uint32_t s = stack[--depth];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t next = view->arcs[i].nextstate;
      if (seen[next]) continue;
      seen[next] = 1;
      stack[depth++] = next;
    }
  }
  free(stack);
  return WF_OK;
}

static bool leads_to_good(const wf_fst_view *view, uint64_t s, const uint8_t *good) {
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    if (good[view->arcs[i].nextstate]) return true;
  return false;
}

/* Reversed search over the states in open[0..count): `local` maps a state to its place in open. */
static wf_status settle(const wf_fst_view *view, const uint32_t *open, uint64_t count, uint8_t *good, wf_error *err) {
  wf_status status = WF_OK;
  uint32_t *local = wf__alloc(view->num_states, sizeof *local);
  uint64_t *off = wf__calloc(count + 2, sizeof *off);
  uint32_t *queue = wf__alloc(count, sizeof *queue), *from = NULL;
  if (local == NULL || off == NULL || queue == NULL) goto memory;
  uint64_t num_arcs = 0, head = 0, tail = 0;
  for (uint64_t k = 0; k < count; k++) local[open[k]] = (uint32_t)k;
  for (uint64_t k = 0; k < count; k++) {
    if (leads_to_good(view, open[k], good)) {
      queue[tail++] = (uint32_t)k;
      continue;
    }
    for (uint64_t i = view->arc_off[open[k]]; i < view->arc_off[open[k] + 1]; i++, num_arcs++) off[local[view->arcs[i].nextstate] + 2]++;
  }
  from = wf__alloc(num_arcs, sizeof *from);
  if (from == NULL) goto memory;
  for (uint64_t k = 0; k < count; k++) off[k + 2] += off[k + 1];
  for (uint64_t k = 0; k < tail; k++) good[open[queue[k]]] = 2;
  for (uint64_t k = 0; k < count; k++) {
    if (good[open[k]]) continue;
    for (uint64_t i = view->arc_off[open[k]]; i < view->arc_off[open[k] + 1]; i++) from[off[local[view->arcs[i].nextstate] + 1]++] = (uint32_t)k;
  }
  while (head < tail) {
    uint32_t k = queue[head++];
    for (uint64_t i = off[k]; i < off[k + 1]; i++) {
      if (good[open[from[i]]]) continue;
      good[open[from[i]]] = 1;
      queue[tail++] = from[i];
    }
  }
  goto done;
memory:
  status = wf__fail_memory(err, view->num_states * 4 + count * 20, "a reversed search");
done:
  free(local);
  free(off);
  free(queue);
  free(from);
  return status;
}

static wf_status mark_coaccessible(const wf_fst_view *view, uint8_t *good, wf_error *err) {
  uint64_t n = view->num_states, count = 0, before = n;
  uint32_t *open = NULL;
  for (uint64_t s = n; s-- > 0;) {
    good[s] = wf__is_final(view, s) || leads_to_good(view, s, good);
    count += !good[s];
  }
  if (count == 0 || count == n) return WF_OK;
  open = wf__alloc(count, sizeof *open);
  if (open == NULL) return wf__fail_memory(err, count * sizeof *open, "a search");
  count = 0;
  for (uint64_t s = 0; s < n; s++)
    if (!good[s]) open[count++] = (uint32_t)s;
  for (int sweep = 1; sweep < NUM_SWEEPS && count != 0 && count != before; sweep++) {
    before = count;
    if (sweep % 2 == 1) {
      for (uint64_t k = 0; k < before; k++) good[open[k]] = leads_to_good(view, open[k], good);
    } else {
      for (uint64_t k = before; k-- > 0;) good[open[k]] = leads_to_good(view, open[k], good);
    }
    count = 0;
    for (uint64_t k = 0; k < before; k++)
      if (!good[open[k]]) open[count++] = open[k];
  }
  wf_status status = count != 0 && count != before ? settle(view, open, count, good, err) : WF_OK;
  free(open);
  return status;
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

/* What is kept of a state becomes its new number, in `number`; WF__DROPPED else. `*num_kept` may equal num_states. */
#define WF__DROPPED UINT32_MAX

static wf_status number_kept(const wf_fst_view *view, bool all_accessible, uint32_t **number, uint64_t *num_kept, wf_error *err) {
  uint64_t n = view->num_states;
  *number = NULL;
  uint8_t *good = wf__calloc(n, 1), *seen = all_accessible ? NULL : wf__calloc(n, 1);
  wf_status status = WF_OK;
  if (good == NULL || (!all_accessible && seen == NULL)) status = wf__fail_memory(err, 2 * n, "marks of states");
  if (status == WF_OK) status = mark_coaccessible(view, good, err);
  if (status == WF_OK && !all_accessible) status = mark_accessible(view, seen, err);
  if (status == WF_OK && (*number = wf__alloc(n, sizeof **number)) == NULL) status = wf__fail_memory(err, n * sizeof **number, "state numbers");
  if (status == WF_OK) {
    uint32_t kept = 0;
    for (uint64_t s = 0; s < n; s++) (*number)[s] = good[s] && (seen == NULL || seen[s]) ? kept++ : WF__DROPPED;
    *num_kept = (*number)[view->start] == WF__DROPPED ? 0 : kept;
  }
  free(good);
  free(seen);
  return status;
}

/* Writes the kept states to the arrays of `out`, which have room and may be those of `view` itself: writing never overtakes reading. */
static void keep_states(const wf_fst_view *view, const uint32_t *number, wf__csr *out) {
  uint64_t num_arcs = 0, num_states = 0;
  for (uint64_t s = 0; s < view->num_states; s++) {
    uint64_t begin = view->arc_off[s], end = view->arc_off[s + 1];
    if (number[s] == WF__DROPPED) continue;
    out->final_cost.data[num_states] = view->final_cost[s];
    out->arc_off.data[num_states++] = num_arcs;
    for (uint64_t i = begin; i < end; i++) {
      wf_arc arc = view->arcs[i];
      if (number[arc.nextstate] == WF__DROPPED) continue;
      arc.nextstate = number[arc.nextstate];
      out->arcs.data[num_arcs++] = arc;
    }
  }
  out->final_cost.size = out->arc_off.size = num_states;
  out->arcs.size = num_arcs;
}

wf_status wf__csr_connect(wf__csr *csr, int64_t *start, bool all_accessible, wf_error *err) {
  if (*start < 0 || csr->final_cost.size == 0) return WF_OK;
  uint32_t *number;
  uint64_t num_kept;
  WF__TRY(wf__vec_grow(&csr->arc_off, 1, "states", err));
  csr->arc_off.data[csr->arc_off.size] = csr->arcs.size;
  wf_fst_view view = {.start = *start, .num_states = csr->final_cost.size, .num_arcs = csr->arcs.size, .arc_off = csr->arc_off.data, .arcs = csr->arcs.data,
                      .final_cost = csr->final_cost.data};
  WF__TRY(number_kept(&view, all_accessible, &number, &num_kept, err));
  if (num_kept == 0) {
    csr->arc_off.size = csr->final_cost.size = csr->arcs.size = 0;
    *start = -1;
  } else if (num_kept != view.num_states) {
    *start = number[*start];
    keep_states(&view, number, csr);
  }
  free(number);
  return WF_OK;
}

static uint64_t count_kept_arcs(const wf_fst_view *view, const uint32_t *number) {
  uint64_t count = 0;
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (number[s] == WF__DROPPED) continue;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) count += number[view->arcs[i].nextstate] != WF__DROPPED;
  }
  return count;
}

wf_status wf_connect(const wf_fst *fst, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_fst_view view = wf_fst_get_view(fst);
  uint32_t *number = NULL;
  uint64_t num_kept;
  wf__csr csr = {0};
  wf_status status = WF_OK;
  if (view.start < 0) {
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  WF__TRY(number_kept(&view, false, &number, &num_kept, err));
  if (num_kept == view.num_states) {
    *out = wf_fst_ref(fst);
    goto done;
  }
  int64_t start = -1;
  if (num_kept != 0) {
    WF__TRY_GOTO(status, wf__vec_grow(&csr.arc_off, num_kept + 1, "states", err), done);
    WF__TRY_GOTO(status, wf__vec_grow(&csr.final_cost, num_kept, "states", err), done);
    WF__TRY_GOTO(status, wf__vec_grow(&csr.arcs, count_kept_arcs(&view, number) + 1, "arcs", err), done);
    keep_states(&view, number, &csr);
    start = number[view.start];
  }
  status = wf__fst_from_csr(&csr, start, view.semiring, wf_fst_isymbols(fst), wf_fst_osymbols(fst), out, err);
done:
  wf__csr_free(&csr);
  free(number);
  return status;
}
