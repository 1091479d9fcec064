/* properties.c - computes the properties of an fst. One pass over the arcs gives the properties of
 * labels and weights; breadth-first searches give reachability and cycles. */
#include "fst/properties.h"

#include <stdlib.h>
#include <string.h>

#include "fst/fst.h"

static int compare_labels(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Are the labels of a state's arcs distinct? `scratch` holds `count` labels; it is not used if the
 * labels are sorted. */
static bool distinct(const wf_arc *arcs, uint64_t count, bool input, bool sorted,
                     int32_t *scratch) {
  if (count < 2) return true;
  if (!sorted) {
    for (uint64_t i = 0; i < count; i++) scratch[i] = input ? arcs[i].ilabel : arcs[i].olabel;
    qsort(scratch, count, sizeof *scratch, compare_labels);
  }
  for (uint64_t i = 1; i < count; i++) {
    if (sorted
            ? (input ? arcs[i].ilabel == arcs[i - 1].ilabel : arcs[i].olabel == arcs[i - 1].olabel)
            : scratch[i] == scratch[i - 1])
      return false;
  }
  return true;
}

static uint64_t most_arcs(const wf_fst_view *view) {
  uint64_t most = 0;
  for (uint64_t s = 0; s < view->num_states; s++)
    if (view->arc_off[s + 1] - view->arc_off[s] > most)
      most = view->arc_off[s + 1] - view->arc_off[s];
  return most;
}

uint32_t wf__local_properties(const wf_fst_view *view) {
  uint32_t properties = WF__LOCAL_PROPERTIES;
  for (uint64_t s = 0; s < view->num_states; s++) {
    const wf_arc *arcs = view->arcs + view->arc_off[s];
    uint64_t count = view->arc_off[s + 1] - view->arc_off[s];
    uint32_t lost = 0;
    for (uint64_t i = 0; i < count; i++) {
      const wf_arc *arc = &arcs[i], *before = &arcs[i > 0 ? i - 1 : 0];
      if (arc->ilabel != arc->olabel) lost |= WF_PROP_ACCEPTOR;
      if (arc->ilabel == 0)
        lost |= arc->olabel == 0 ? WF_PROP_NO_IEPSILONS | WF_PROP_NO_OEPSILONS | WF_PROP_NO_EPSILONS
                                 : WF_PROP_NO_IEPSILONS;
      if (arc->olabel == 0) lost |= WF_PROP_NO_OEPSILONS;
      if (arc->nextstate <= s) lost |= WF_PROP_TOP_SORTED;
      if (arc->weight != 0) lost |= WF_PROP_UNWEIGHTED;
      if (before->ilabel > arc->ilabel) lost |= WF_PROP_ILABEL_SORTED;
      if (before->olabel > arc->olabel) lost |= WF_PROP_OLABEL_SORTED;
      if (before->ilabel == 0 && arc->ilabel != 0) lost |= WF_PROP_EPSILONS_LAST;
    }
    if (wf__is_final(view, s) && view->final_cost[s] != 0) lost |= WF_PROP_UNWEIGHTED;
    properties &= ~lost;
  }
  return properties;
}

wf_status wf__determinism_properties(const wf_fst_view *view, uint32_t *out) {
  uint32_t properties = WF__DETERMINISM_PROPERTIES;
  int32_t *scratch = wf__alloc(most_arcs(view), sizeof *scratch);
  if (scratch == NULL) return WF_ERR_MEMORY;
  for (uint64_t s = 0; s < view->num_states && properties != 0; s++) {
    const wf_arc *arcs = view->arcs + view->arc_off[s];
    uint64_t count = view->arc_off[s + 1] - view->arc_off[s];
    bool isorted = true, osorted = true;
    for (uint64_t i = 1; i < count; i++) {
      isorted = isorted && arcs[i - 1].ilabel <= arcs[i].ilabel;
      osorted = osorted && arcs[i - 1].olabel <= arcs[i].olabel;
    }
    if ((properties & WF_PROP_IDETERMINISTIC) && !distinct(arcs, count, true, isorted, scratch))
      properties &= ~(uint32_t)WF_PROP_IDETERMINISTIC;
    if ((properties & WF_PROP_ODETERMINISTIC) && !distinct(arcs, count, false, osorted, scratch))
      properties &= ~(uint32_t)WF_PROP_ODETERMINISTIC;
  }
  free(scratch);
  *out = properties;
  return WF_OK;
}

/* Can every state be reached from the start? The search is breadth-first, as most fsts are numbered
 * in that order: memory is then read nearly sequentially. `queue` has room for all states. */
static bool accessible(const wf_fst_view *view, uint8_t *seen, uint32_t *queue) {
  uint64_t head = 0, tail = 0;
  if (view->start < 0) return view->num_states == 0;
  seen[view->start] = 1;
  queue[tail++] = (uint32_t)view->start;
  while (head < tail) {
    uint32_t s = queue[head++];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t next = view->arcs[i].nextstate;
      if (seen[next]) continue;
      seen[next] = 1;
      queue[tail++] = next;
    }
  }
  return tail == view->num_states;
}

/* Topological sort (Kahn's algorithm): removes states without incoming arcs until none is left. All
 * states are removed if and only if there is no cycle. */
static bool acyclic(const wf_fst_view *view, uint64_t *num_in, uint32_t *queue) {
  uint64_t head = 0, tail = 0;
  for (uint64_t i = 0; i < view->num_arcs; i++) num_in[view->arcs[i].nextstate]++;
  for (uint64_t s = 0; s < view->num_states; s++)
    if (num_in[s] == 0) queue[tail++] = (uint32_t)s;
  while (head < tail) {
    uint32_t s = queue[head++];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      if (--num_in[view->arcs[i].nextstate] == 0) queue[tail++] = view->arcs[i].nextstate;
  }
  return tail == view->num_states;
}

static bool leads_to_good(const wf_fst_view *view, uint64_t s, const uint8_t *good) {
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    if (good[view->arcs[i].nextstate]) return true;
  return false;
}

/* Marks states that reach a final state, in one sweep from the last state to the first and one
 * back. That is enough for most fsts. Returns whether all states are marked. */
static bool all_good_by_sweeps(const wf_fst_view *view, uint8_t *good) {
  uint64_t open = 0;
  for (uint64_t s = view->num_states; s-- > 0;) {
    good[s] = wf__is_final(view, s) || leads_to_good(view, s, good);
    open += !good[s];
  }
  for (uint64_t s = 0; s < view->num_states && open != 0; s++) {
    if (good[s] || !leads_to_good(view, s, good)) continue;
    good[s] = 1;
    open--;
  }
  return open == 0;
}

/* Can every state reach a final state? If the sweeps leave states unmarked, a breadth-first search
 * over reversed arcs begins at the marked states. */
static wf_status coaccessible(const wf_fst_view *view, bool *out) {
  uint64_t n = view->num_states, m = view->num_arcs;
  uint8_t *good = wf__calloc(n, 1);
  if (good == NULL) return WF_ERR_MEMORY;
  *out = all_good_by_sweeps(view, good);
  if (*out) {
    free(good);
    return WF_OK;
  }
  uint64_t *off = wf__calloc(n + 2, sizeof *off);
  uint32_t *from = wf__alloc(m, sizeof *from), *queue = wf__alloc(n, sizeof *queue);
  uint64_t head = 0, tail = 0;
  bool fine = off != NULL && from != NULL && queue != NULL;
  if (fine) {
    for (uint64_t i = 0; i < m; i++) off[view->arcs[i].nextstate + 2]++;
    for (uint64_t s = 0; s < n; s++) off[s + 2] += off[s + 1];
    for (uint64_t s = 0; s < n; s++)
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
        from[off[view->arcs[i].nextstate + 1]++] = (uint32_t)s;
    for (uint64_t s = 0; s < n; s++)
      if (good[s]) queue[tail++] = (uint32_t)s;
    while (head < tail) {
      uint32_t s = queue[head++];
      for (uint64_t i = off[s]; i < off[s + 1]; i++)
        if (!good[from[i]]) good[from[i]] = 1, queue[tail++] = from[i];
    }
  }
  free(off);
  free(from);
  free(queue);
  free(good);
  *out = tail == n;
  return fine ? WF_OK : WF_ERR_MEMORY;
}

/* Walks along the last arcs from the start. A walk that comes back to a state has found a cycle.
 * The state to come back to is moved on after 1, 2, 4, ... steps (Brent 1980). Most large graphs
 * with cycles have one there; false means not known. */
static bool walk_finds_cycle(const wf_fst_view *view) {
  if (view->start < 0) return false;
  uint64_t s = (uint64_t)view->start, anchor = s;
  for (uint64_t step = 1; step <= 2 * view->num_states && view->arc_off[s] < view->arc_off[s + 1];
       step++) {
    s = view->arcs[view->arc_off[s + 1] - 1].nextstate;
    if (s == anchor) return true;
    if ((step & (step - 1)) == 0) anchor = s;
  }
  return false;
}

wf_status wf__cycle_properties(const wf_fst_view *view, uint32_t *out) {
  *out = 0;
  if (walk_finds_cycle(view)) return WF_OK;
  uint64_t n = view->num_states, *num_in = wf__calloc(n, sizeof *num_in);
  uint32_t *queue = wf__alloc(n, sizeof *queue);
  const bool fine = num_in != NULL && queue != NULL;
  if (fine && acyclic(view, num_in, queue)) *out = WF_PROP_ACYCLIC;
  free(num_in);
  free(queue);
  return fine ? WF_OK : WF_ERR_MEMORY;
}

wf_status wf__path_properties(const wf_fst_view *view, uint32_t *out) {
  uint8_t *seen = wf__calloc(view->num_states, 1);
  uint32_t *queue = wf__alloc(view->num_states, sizeof *queue);
  const bool fine = seen != NULL && queue != NULL;
  bool all_lead_to_final = false;
  *out = fine && accessible(view, seen, queue) ? WF_PROP_ACCESSIBLE : 0;
  free(seen);
  free(queue);
  if (!fine || coaccessible(view, &all_lead_to_final) != WF_OK) return WF_ERR_MEMORY;
  if (all_lead_to_final) *out |= WF_PROP_COACCESSIBLE;
  return WF_OK;
}
