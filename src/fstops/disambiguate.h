/* disambiguate.h - the parts of disambiguation (Mohri & Riley 2015, "On the disambiguation of
 * weighted automata").
 *
 * 1. disambiguate_classes.c, disambiguate_futures.c: which states does one string reach that have a
 *    common future (a string that leads from both to final states)?
 * 2. disambiguate_split.c determinizes as far as needed: a state of the result is a head, which is
 *    a state of the input, and a subset of states that the same string reaches and that have a
 *    common future with the head. Each of its paths has the cost of all paths of the input for that
 *    string.
 * 3. disambiguate.c removes all but one of the paths of each string. */
#ifndef WF_FSTOPS_DISAMBIGUATE_H
#define WF_FSTOPS_DISAMBIGUATE_H

#include "fst/fst.h"

/* Arcs of each state, sorted by label. `order` lists those of one label by the head of their next
 * state. */
typedef struct wf__arc_order {
  const uint64_t *arc_off;
  const wf_arc *arcs;
  const uint32_t *head; /* NULL: each state is its own head */
  uint64_t *order;      /* NULL: they are in this order */
} wf__arc_order;

/* Needs arc_off, arcs and head. Frees nothing on failure: free `order`. */
wf_status wf__arc_order_find(wf__arc_order *o, uint64_t num_states, wf_error *err);

/* --- 1. common futures -------------------------------------------------------------------- */

/* Puts states into classes: two states that one string reaches and that have a common future are in
 * one class. Writes class_of[num_states], a state of the class, and has_others[num_states]: has the
 * class other states? Both must be zero. `view` must be trimmed, its arcs sorted by label. */
wf_status wf__disambiguate_classes(const wf_fst_view *view, uint32_t *class_of, uint8_t *has_others,
                                   wf_error *err);

/* The states that one string reaches together with state s and that have a common future with it, s
 * among them, in increasing order: states[off[s]] to states[off[s + 1] - 1]. */
typedef struct wf__futures {
  uint64_t *off;
  uint32_t *states;
} wf__futures;

/* `view` must be trimmed, its arcs sorted by label. */
wf_status wf__futures_find(const wf_fst_view *view, wf__futures *out, wf_error *err);
void wf__futures_free(wf__futures *futures);

/* --- 2. split ----------------------------------------------------------------------------- */

typedef struct wf__split {
  wf__csr csr; /* arcs are sorted by label; states numbered breadth first, the start is 0 */
  WF__VEC(uint32_t) head; /* [number of states] */
} wf__split;

/* `view` must be trimmed, its arcs sorted by label. */
wf_status wf__disambiguate_split(const wf_fst_view *view, const wf__futures *futures, double delta,
                                 uint64_t max_states, wf__split *out, wf_error *err);

/* --- arcs of a label ---------------------------------------------------------------------- */

/* The first arc of [first, end), sorted by label, whose label is at least `label`. */
static inline uint64_t wf__label_bound(const wf_arc *arcs, uint64_t first, uint64_t end,
                                       int64_t label) {
  while (first < end) {
    uint64_t middle = first + (end - first) / 2;
    if (arcs[middle].ilabel < label)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

/* The end of the arcs of one label that begin at `first`, which is below `end`. Most are alone. */
static inline uint64_t wf__label_end(const wf_arc *arcs, uint64_t first, uint64_t end) {
  uint64_t at = first + 1, step = 1;
  for (; at < end && arcs[at].ilabel == arcs[first].ilabel; step *= 2) at += step;
  if (step == 1) return at;
  return wf__label_bound(arcs, at - step / 2, at < end ? at : end, arcs[first].ilabel + INT64_C(1));
}

/* The arcs of state s with a label: [*first, *end). */
static inline void wf__arcs_of_label(const uint64_t *arc_off, const wf_arc *arcs, uint32_t s,
                                     int32_t label, uint64_t *first, uint64_t *end) {
  uint64_t last = arc_off[s + 1], at = wf__label_bound(arcs, arc_off[s], last, label);
  bool found = at < last && arcs[at].ilabel == label;
  *first = at;
  *end = found ? wf__label_end(arcs, at, last) : at;
}

static inline uint64_t wf__arc_at(const wf__arc_order *o, uint64_t k) {
  return o->order == NULL ? k : o->order[k];
}

static inline uint32_t wf__head_at(const wf__arc_order *o, uint64_t k) {
  uint32_t state = o->arcs[wf__arc_at(o, k)].nextstate;
  return o->head == NULL ? state : o->head[state];
}

/* Searches the arcs from *k to end - 1 in the order, which have one label, for one whose head is in
 * the increasing list from *state to states_end - 1. Returns false if there is none. It advances
 * both, in steps that double, so that a short list is found in a long one. */
static inline bool wf__find_related(const wf__arc_order *o, uint64_t *k, uint64_t end,
                                    const uint32_t **state, const uint32_t *states_end) {
  while (*k < end && *state < states_end) {
    uint32_t head = wf__head_at(o, *k);
    if (head == **state) return true;
    uint64_t step = 1;
    if (head < **state) {
      for (; step < end - *k && wf__head_at(o, *k + step) < **state; step *= 2) *k += step;
      for (; step > 0; step /= 2)
        if (step < end - *k && wf__head_at(o, *k + step) < **state) *k += step;
      ++*k;
    } else {
      uint64_t left = (uint64_t)(states_end - *state);
      for (; step < left && (*state)[step] < head; step *= 2) *state += step, left -= step;
      for (; step > 0; step /= 2)
        if (step < left && (*state)[step] < head) *state += step, left -= step;
      ++*state;
    }
  }
  return false;
}

#endif
