/* disambiguate.h - the parts of disambiguation (Mohri & Riley 2015, "On the disambiguation of
 * weighted automata").
 *
 * 1. disambiguate_split.c determinizes as far as needed: a state of the result is a head, which is
 * a state of the input, and a subset of states that the same string reaches and that have a common
 *    future with the head (a string that leads from both to final states). Each of its paths has
 *    the cost of all paths of the input for that string.
 * 2. disambiguate.c removes all but one of the paths of each string. */
#ifndef WF_FSTOPS_DISAMBIGUATE_H
#define WF_FSTOPS_DISAMBIGUATE_H

#include "fst/fst.h"

typedef struct wf__split {
  wf__csr csr; /* arcs are sorted by label; states numbered breadth first, the start is 0 */
  WF__VEC(uint32_t) head; /* [number of states] */
} wf__split;

/* `view` must be trimmed, its arcs sorted by (label, next state). */
wf_status wf__disambiguate_split(const wf_fst_view *view, double delta, uint64_t max_states,
                                 wf__split *out, wf_error *err);

/* Step 2 needs arc_off[number of states]. */
static inline wf_status wf__csr_close(wf__csr *csr, wf_error *err) {
  WF__TRY(wf__vec_grow(&csr->arc_off, 1, "states", err));
  csr->arc_off.data[csr->arc_off.size] = csr->arcs.size;
  return WF_OK;
}

/* The arcs of state s with a label: [*first, *end). */
static inline void wf__arcs_of_label(const uint64_t *arc_off, const wf_arc *arcs, uint32_t s,
                                     int32_t label, uint64_t *first, uint64_t *end) {
  uint64_t low = arc_off[s], high = arc_off[s + 1], last = high;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (arcs[middle].ilabel < label)
      low = middle + 1;
    else
      high = middle;
  }
  *first = low;
  while (low < last && arcs[low].ilabel == label) low++;
  *end = low;
}

/* Can a string go on, or end, from both states? If not, the pair needs no place in a table: where
 * many arcs of a state have one label, nearly all pairs are of this kind. */
static inline bool wf__go_on_together(const uint64_t *arc_off, const wf_arc *arcs,
                                      const float *final_cost, uint32_t a, uint32_t b) {
  if (final_cost[a] != INFINITY && final_cost[b] != INFINITY) return true;
  if (a == b) return true;
  bool turn = arc_off[a + 1] - arc_off[a] > arc_off[b + 1] - arc_off[b];
  uint32_t few = turn ? b : a, many = turn ? a : b;
  for (uint64_t i = arc_off[few]; i < arc_off[few + 1]; i++) {
    uint64_t first, end;
    wf__arcs_of_label(arc_off, arcs, many, arcs[i].ilabel, &first, &end);
    if (first < end) return true;
  }
  return false;
}

#endif
