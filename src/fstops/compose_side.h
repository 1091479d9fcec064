/* compose_side.h - one input of a composition, prepared for matching. Its arcs are sorted by the
 * label that is matched: the output label of the first fst, the input label of the second. The
 * labels are copied into an array, and states with many arcs have an index.
 *
 *   labels   [num_arcs]    label of each arc; a state's epsilons come first
 *   index    [some states] first[label - low] is the first arc with that or a larger label
 *
 * A small composition visits few states, so its sides are not prepared (they are "lazy"). The
 * labels are read from the arcs, there is no index, and the search checks whether a state's arcs
 * are sorted when it visits the state.
 *
 * Failure arcs (second fst only) are not matched as labels: see fail_next and fail_cost. */
#ifndef WF_FSTOPS_COMPOSE_SIDE_H
#define WF_FSTOPS_COMPOSE_SIDE_H

#include "fst/fst.h"

#define WF__NO_INDEX UINT32_MAX
#define WF__NO_FAIL UINT32_MAX
#define WF__LABEL_SHIFT_ARCS 2 /* label_shift if label_of points into arcs */

struct wf__label_index {
  int32_t low, high;  /* labels of the state's first non-epsilon and last arc */
  uint64_t first_off; /* offset of first[0] in `first`; there are high - low + 2 entries */
};

typedef struct wf__compose_side {
  wf_fst *fst; /* a reference to the input, or its sorted copy */
  wf_fst_view view;
  int32_t *labels; /* NULL if lazy */
  /* the label of arc i is label_of[i << label_shift]; points into `labels` or into the arcs */
  const int32_t *label_of;
  int label_shift;
  const uint64_t *arc_begin, *arc_end; /* [num_states] arcs of each state */
  /* [num_states] index in `indices`, or WF__NO_INDEX; NULL if no state has one */
  uint32_t *index_of;
  WF__VEC(struct wf__label_index) indices;
  WF__VEC(uint32_t) first;
  bool has_epsilons;
  bool known_sorted; /* lazy: no state's order needs to be checked */
  /* [num_states] target and weight of each state's failure arc; WF__NO_FAIL if it has none. The
   * arrays are NULL if the fst has no failure arcs. */
  uint32_t *fail_next;
  float *fail_cost;
  /* [num_states] final costs after following failure arcs; NULL if the fst has none. */
  float *final_cost;
} wf__compose_side;

wf_status wf__compose_side_init(wf__compose_side *side, const wf_fst *fst, bool match_output,
                                wf_error *err);
/* Makes a lazy side, in constant time. */
void wf__compose_side_init_lazy(wf__compose_side *side, const wf_fst *fst, bool match_output);
/* Reads the failure arcs. Returns an error if a state has two of them, if one has an output label
 * other than 0 or phi_label, or if they form a cycle. With phi_final, a state that is not final
 * gets the final cost of its failure state, plus the cost of the failure arc. */
wf_status wf__compose_side_take_failures(wf__compose_side *side, int32_t phi_label, bool phi_final,
                                         wf_error *err);
void wf__compose_side_free(wf__compose_side *side);

static inline int32_t wf__compose_label(const wf__compose_side *side, uint64_t arc) {
  return side->label_of[arc << side->label_shift];
}
static inline bool wf__compose_has_index(const wf__compose_side *side, uint32_t state) {
  return side->index_of != NULL && side->index_of[state] != WF__NO_INDEX;
}

/* The first of the arcs [begin, end) whose label is at least `label`. A branch-free binary search.
 */
static inline uint64_t wf__compose_lower_bound(const wf__compose_side *side, uint64_t begin,
                                               uint64_t end, int32_t label) {
  const int32_t *labels = side->label_of;
  const int shift = side->label_shift;
  uint64_t count = end - begin;
  while (count > 1) {
    uint64_t half = count / 2;
    begin += labels[(begin + half - 1) << shift] < label ? half : 0;
    count -= half;
  }
  return begin + (count == 1 && labels[begin << shift] < label);
}

/* Finds the arcs of `state` with `label` (not 0): [*begin, *end) in the view's arcs. */
static inline void wf__compose_find(const wf__compose_side *side, uint32_t state, int32_t label,
                                    uint64_t *begin, uint64_t *end) {
  uint64_t from = side->arc_begin[state], to = side->arc_end[state];
  if (wf__compose_has_index(side, state)) {
    const struct wf__label_index *entry = &side->indices.data[side->index_of[state]];
    if (label < entry->low || label > entry->high) {
      *begin = *end = to;
      return;
    }
    const uint32_t *first = side->first.data + entry->first_off + (label - entry->low);
    *begin = from + first[0];
    *end = from + first[1];
    return;
  }
  *begin = wf__compose_lower_bound(side, from, to, label);
  for (*end = *begin; *end < to && wf__compose_label(side, *end) == label;) ++*end;
}

#endif
