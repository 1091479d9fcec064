/* compose_side.h - one input of a composition, ready for matching: arcs sorted by the label that is
 * matched (output of the first fst, input of the second), those labels in an array of their own,
 * and an index into the long states.
 *
 *   labels   [num_arcs]           label of each arc; a state's epsilons come first
 *   index    per long state       first[label - low] = place of the first arc with that label or a
 *            larger one
 *
 * A small composition visits few states, so its sides are only looked at (wf__compose_side_look):
 * labels are those in the arcs, there is no index, and whether a state's arcs are sorted is checked
 * when it is visited.
 *
 * Failure arcs (second fst only) are taken out of the matching: fail_next / fail_cost. */
#ifndef WF_FSTOPS_COMPOSE_SIDE_H
#define WF_FSTOPS_COMPOSE_SIDE_H

#include "fst/fst.h"

#define WF__NO_INDEX UINT32_MAX
#define WF__NO_FAIL UINT32_MAX

struct wf__label_index {
  int32_t low, high;  /* labels of the state's first non-epsilon and last arc */
  uint64_t first_off; /* of first[0] in the pool; there are high - low + 2 entries */
};

typedef struct wf__compose_side {
  wf_fst *fst; /* owned: the input itself, or sorted */
  wf_fst_view view;
  int32_t *labels; /* or NULL */
  const int32_t
      *label_of; /* of arc i: label_of[i << label_shift], in labels or in the arcs themselves */
  int label_shift;
  uint32_t *index_of; /* [num_states] into indices, or WF__NO_INDEX; NULL: no state has one */
  WF__VEC(struct wf__label_index) indices;
  WF__VEC(uint32_t) first;
  bool has_epsilons;
  uint32_t *fail_next;           /* [num_states], or NULL without failure arcs; WF__NO_FAIL: none */
  float *fail_cost, *final_cost; /* final_cost: as in the view, or with failure followed; fail_cost
                                    and this may be NULL */
} wf__compose_side;

wf_status wf__compose_side_init(wf__compose_side *side, const wf_fst *fst, bool match_output,
                                wf_error *err);
/* In no time, whatever the size of the fst. */
void wf__compose_side_look(wf__compose_side *side, const wf_fst *fst, bool match_output);
/* Splits the failure arcs off. Errors: two at one state, an output label other than 0 or phi_label,
 * a cycle of failure arcs. With phi_final, a state that is not final takes over the final cost of
 * its failure state. */
wf_status wf__compose_side_take_failures(wf__compose_side *side, int32_t phi_label, bool phi_final,
                                         wf_error *err);
void wf__compose_side_free(wf__compose_side *side);

static inline int32_t wf__compose_label(const wf__compose_side *side, uint64_t arc) {
  return side->label_of[arc << side->label_shift];
}
static inline bool wf__compose_has_index(const wf__compose_side *side, uint32_t state) {
  return side->index_of != NULL && side->index_of[state] != WF__NO_INDEX;
}

/* The first of the arcs [begin, end) whose label is not below `label`. Branch-free halving. */
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

/* The arcs of `state` with `label` (not 0): *begin .. *end within the view's arcs. */
static inline void wf__compose_find(const wf__compose_side *side, uint32_t state, int32_t label,
                                    uint64_t *begin, uint64_t *end) {
  uint64_t from = side->view.arc_off[state], to = side->view.arc_off[state + 1];
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
