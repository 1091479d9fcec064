/* compose_side.c - prepares an input for matching: sorts arcs, copies labels, indexes states with
 * many arcs, separates failure arcs. */
#include "fstops/compose_side.h"

#include <string.h>

#include "fst/properties.h"
#include "fstops/arcsort.h"

enum { INDEX_MIN_ARCS = 16, INDEX_SPREAD = 4 };

/* Indexes a state if its labels are dense enough: at most INDEX_SPREAD entries per arc. */
static wf_status index_state(wf__compose_side *side, uint64_t s, wf_error *err) {
  uint64_t from = side->view.arc_off[s], count = side->view.arc_off[s + 1] - from;
  const int32_t *labels = side->labels + from;
  side->index_of[s] = WF__NO_INDEX;
  if (count < INDEX_MIN_ARCS || count >= UINT32_MAX || labels[count - 1] == 0) return WF_OK;
  uint64_t i = wf__compose_lower_bound(side, from, from + count, 1) - from;
  struct wf__label_index entry = {
      .low = labels[i], .high = labels[count - 1], .first_off = side->first.size};
  uint64_t spread = (uint64_t)entry.high - (uint64_t)entry.low + 1;
  if (spread > INDEX_SPREAD * count) return WF_OK;
  WF__TRY(wf__vec_grow(&side->first, spread + 1, "a label index", err));
  uint32_t *first = side->first.data + entry.first_off;
  for (uint64_t k = 0; k < spread; k++) {
    while (labels[i] < entry.low + (int32_t)k) i++;
    first[k] = (uint32_t)i;
  }
  first[spread] = (uint32_t)count;
  side->first.size += spread + 1;
  side->index_of[s] = (uint32_t)side->indices.size;
  return wf__vec_push(&side->indices, entry, "a label index", err);
}

static wf_status index_labels(wf__compose_side *side, bool match_output, wf_error *err) {
  const wf_fst_view *view = &side->view;
  side->label_of = side->labels;
  for (uint64_t i = 0; i < view->num_arcs; i++) {
    side->labels[i] = match_output ? view->arcs[i].olabel : view->arcs[i].ilabel;
    side->has_epsilons = side->has_epsilons || side->labels[i] == 0;
  }
  for (uint64_t s = 0; s < view->num_states; s++) WF__TRY(index_state(side, s, err));
  return WF_OK;
}

static void set_view(wf__compose_side *side) {
  side->view = wf_fst_get_view(side->fst);
  side->arc_begin = side->view.arc_off;
  side->arc_end = side->view.arc_off + 1;
}

wf_status wf__compose_side_init(wf__compose_side *side, const wf_fst *fst, bool match_output,
                                wf_error *err) {
  *side = (wf__compose_side){0};
  WF__TRY(wf__arcsort(fst, match_output, &side->fst, err));
  set_view(side);
  uint64_t n = side->view.num_states, m = side->view.num_arcs;
  side->labels = wf__alloc(m, sizeof *side->labels);
  side->index_of = wf__alloc(n, sizeof *side->index_of);
  wf_status status = side->labels == NULL || side->index_of == NULL
                         ? wf__fail_memory(err, (n + m) * 4, "labels")
                         : index_labels(side, match_output, err);
  if (status != WF_OK) wf__compose_side_free(side);
  return status;
}

void wf__compose_side_init_lazy(wf__compose_side *side, const wf_fst *fst, bool match_output) {
  _Static_assert(sizeof(wf_arc) == sizeof(int32_t) << WF__LABEL_SHIFT_ARCS, "steps by one arc");
  *side = (wf__compose_side){.fst = wf_fst_ref(fst),
                             .label_shift = WF__LABEL_SHIFT_ARCS,
                             .has_epsilons = true,
                             .known_sorted = wf__fst_known_sorted(fst, match_output)};
  set_view(side);
  if (side->view.num_arcs > 0)
    side->label_of = match_output ? &side->view.arcs->olabel : &side->view.arcs->ilabel;
}

void wf__compose_side_free(wf__compose_side *side) {
  wf_fst_free(side->fst);
  free(side->labels);
  free(side->index_of);
  wf__vec_free(&side->indices);
  wf__vec_free(&side->first);
  free(side->fail_next);
  free(side->fail_cost);
  free(side->final_cost);
  *side = (wf__compose_side){0};
}

/* --- failure arcs ------------------------------------------------------------------------ */

static wf_status find_failures(wf__compose_side *side, int32_t phi_label, wf_error *err) {
  for (uint64_t s = 0; s < side->view.num_states; s++) {
    uint64_t begin, end;
    side->fail_next[s] = WF__NO_FAIL;
    side->fail_cost[s] = 0;
    wf__compose_find(side, (uint32_t)s, phi_label, &begin, &end);
    if (begin == end) continue;
    const wf_arc *arc = &side->view.arcs[begin];
    if (end - begin > 1)
      return wf__fail(err, WF_ERR_ARGUMENT, "state %llu of the second fst has %llu failure arcs",
                      (unsigned long long)s, (unsigned long long)(end - begin));
    if (arc->olabel != 0 && arc->olabel != phi_label)
      return wf__fail(
          err, WF_ERR_ARGUMENT,
          "the failure arc of state %llu of the second fst has output label %d, expected 0 or %d",
          (unsigned long long)s, arc->olabel, phi_label);
    side->fail_next[s] = arc->nextstate;
    side->fail_cost[s] = arc->weight;
  }
  return WF_OK;
}

/* Follows the failure arcs from each state. Returns an error on a cycle; with phi_final, computes
 * final costs on the way back. `path` holds the states of the walk. done[s] is 1 while s is on the
 * path, then 2. */
static wf_status follow_failures(wf__compose_side *side, bool phi_final, uint8_t *done,
                                 uint32_t *path, wf_error *err) {
  for (uint64_t root = 0; root < side->view.num_states; root++) {
    uint64_t depth = 0;
    uint32_t s = (uint32_t)root;
    for (; done[s] == 0; s = side->fail_next[s]) {
      done[s] = 1;
      path[depth++] = s;
      if (side->fail_next[s] == WF__NO_FAIL) break;
      if (done[side->fail_next[s]] == 1)
        return wf__fail(err, WF_ERR_ARGUMENT,
                        "state %u of the second fst is on a cycle of failure arcs", s);
    }
    while (depth > 0) {
      s = path[--depth];
      done[s] = 2;
      float *cost = &side->final_cost[s];
      if (phi_final && *cost == INFINITY && side->fail_next[s] != WF__NO_FAIL)
        *cost = side->fail_cost[s] + side->final_cost[side->fail_next[s]];
    }
  }
  return WF_OK;
}

wf_status wf__compose_side_take_failures(wf__compose_side *side, int32_t phi_label, bool phi_final,
                                         wf_error *err) {
  uint64_t n = side->view.num_states;
  uint8_t *done = wf__calloc(n, 1);
  uint32_t *path = wf__alloc(n, sizeof *path);
  side->fail_next = wf__alloc(n, sizeof *side->fail_next);
  side->fail_cost = wf__alloc(n, sizeof *side->fail_cost);
  side->final_cost = wf__alloc(n, sizeof *side->final_cost);
  wf_status status = WF_OK;
  if (done == NULL || path == NULL || side->fail_next == NULL || side->fail_cost == NULL ||
      side->final_cost == NULL)
    status = wf__fail_memory(err, n * 17, "failure arcs");
  if (status == WF_OK) {
    if (n != 0) memcpy(side->final_cost, side->view.final_cost, n * sizeof *side->final_cost);
    status = find_failures(side, phi_label, err);
  }
  if (status == WF_OK) status = follow_failures(side, phi_final, done, path, err);
  if (status == WF_OK && n != 0) side->view.final_cost = side->final_cost;
  free(done);
  free(path);
  return status;
}
