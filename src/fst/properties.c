/* properties.c - facts about an fst: labels per state in one pass, reachability and cycles by iterative depth-first search. */
#include "fst/properties.h"

#include <stdlib.h>
#include <string.h>

#include "fst/fst.h"

static int compare_labels(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Are the labels of a state's arcs distinct? `scratch` has room for them. Sorted labels need no scratch. */
static bool distinct(const wf_arc *arcs, uint64_t count, bool input, bool sorted, int32_t *scratch) {
  if (count < 2) return true;
  if (!sorted) {
    for (uint64_t i = 0; i < count; i++) scratch[i] = input ? arcs[i].ilabel : arcs[i].olabel;
    qsort(scratch, count, sizeof *scratch, compare_labels);
  }
  for (uint64_t i = 1; i < count; i++) {
    if (sorted ? (input ? arcs[i].ilabel == arcs[i - 1].ilabel : arcs[i].olabel == arcs[i - 1].olabel) : scratch[i] == scratch[i - 1]) return false;
  }
  return true;
}

static uint64_t most_arcs(const wf_fst_view *view) {
  uint64_t most = 0;
  for (uint64_t s = 0; s < view->num_states; s++)
    if (view->arc_off[s + 1] - view->arc_off[s] > most) most = view->arc_off[s + 1] - view->arc_off[s];
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
      if (arc->ilabel == 0) lost |= arc->olabel == 0 ? WF_PROP_NO_IEPSILONS | WF_PROP_NO_OEPSILONS | WF_PROP_NO_EPSILONS : WF_PROP_NO_IEPSILONS;
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

uint32_t wf__determinism_properties(const wf_fst_view *view) {
  uint32_t properties = WF__DETERMINISM_PROPERTIES;
  int32_t *scratch = wf__alloc(most_arcs(view), sizeof *scratch);
  if (scratch == NULL) return 0; /* "not known to be" is safe */
  for (uint64_t s = 0; s < view->num_states && properties != 0; s++) {
    const wf_arc *arcs = view->arcs + view->arc_off[s];
    uint64_t count = view->arc_off[s + 1] - view->arc_off[s];
    bool isorted = true, osorted = true;
    for (uint64_t i = 1; i < count; i++) {
      isorted = isorted && arcs[i - 1].ilabel <= arcs[i].ilabel;
      osorted = osorted && arcs[i - 1].olabel <= arcs[i].olabel;
    }
    if ((properties & WF_PROP_IDETERMINISTIC) && !distinct(arcs, count, true, isorted, scratch)) properties &= ~(uint32_t)WF_PROP_IDETERMINISTIC;
    if ((properties & WF_PROP_ODETERMINISTIC) && !distinct(arcs, count, false, osorted, scratch)) properties &= ~(uint32_t)WF_PROP_ODETERMINISTIC;
  }
  free(scratch);
  return properties;
}

/* One frame of the explicit depth-first stack. */
struct visit {
  uint32_t state;
  uint64_t next_arc;
};

/* Depth-first from `root`; colours 0 new, 1 on the stack, 2 done. Returns false when a cycle was met (the search goes on). */
static bool search(const wf_fst_view *view, uint32_t root, uint8_t *colour, struct visit *stack) {
  bool acyclic = true;
  uint64_t depth = 0;
  colour[root] = 1;
  stack[depth++] = (struct visit){root, view->arc_off[root]};
  while (depth > 0) {
    struct visit *top = &stack[depth - 1];
    if (top->next_arc == view->arc_off[top->state + 1]) {
      colour[top->state] = 2;
      depth--;
      continue;
    }
    uint32_t next = view->arcs[top->next_arc++].nextstate;
    if (colour[next] == 1) acyclic = false;
    if (colour[next] != 0) continue;
    colour[next] = 1;
    stack[depth++] = (struct visit){next, view->arc_off[next]};
  }
  return acyclic;
}

/* Can every state reach a final one? Breadth-first over reversed arcs. */
static bool coaccessible(const wf_fst_view *view) {
  uint64_t n = view->num_states, m = view->num_arcs;
  uint64_t *off = wf__calloc(n + 2, sizeof *off);
  uint32_t *from = wf__alloc(m, sizeof *from), *queue = wf__alloc(n, sizeof *queue);
  uint8_t *seen = wf__calloc(n, 1);
  uint64_t head = 0, tail = 0;
  bool fine = off != NULL && from != NULL && queue != NULL && seen != NULL;
  if (fine) {
    for (uint64_t i = 0; i < m; i++) off[view->arcs[i].nextstate + 2]++;
    for (uint64_t s = 0; s < n; s++) off[s + 2] += off[s + 1];
    for (uint64_t s = 0; s < n; s++)
      for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) from[off[view->arcs[i].nextstate + 1]++] = (uint32_t)s;
    for (uint64_t s = 0; s < n; s++)
      if (wf__is_final(view, s)) seen[s] = 1, queue[tail++] = (uint32_t)s;
    while (head < tail) {
      uint32_t s = queue[head++];
      for (uint64_t i = off[s]; i < off[s + 1]; i++)
        if (!seen[from[i]]) seen[from[i]] = 1, queue[tail++] = from[i];
    }
  }
  free(off);
  free(from);
  free(queue);
  free(seen);
  return fine && tail == n;
}

uint32_t wf__path_properties(const wf_fst_view *view) {
  uint32_t properties = 0;
  uint64_t n = view->num_states;
  uint8_t *colour = wf__calloc(n, 1);
  struct visit *stack = wf__alloc(n, sizeof *stack);
  if (colour != NULL && stack != NULL) {
    bool acyclic = true, accessible = true;
    if (view->start >= 0) acyclic = search(view, (uint32_t)view->start, colour, stack);
    for (uint64_t s = 0; s < n; s++) {
      if (colour[s] != 0) continue;
      accessible = false;
      acyclic = search(view, (uint32_t)s, colour, stack) && acyclic;
    }
    if (acyclic) properties |= WF_PROP_ACYCLIC;
    if (accessible) properties |= WF_PROP_ACCESSIBLE;
  }
  free(colour);
  free(stack);
  if (coaccessible(view)) properties |= WF_PROP_COACCESSIBLE;
  return properties;
}
