/* arc_list.h - the arcs of one result of epsilon removal, as a list that grows at both ends. Along
 * a chain of epsilons it is handed from state to state, in place of a copy for each state.
 *
 *   ends[0]   arcs before the first one that was there, last first
 *   ends[1]   that one and the arcs after it
 *
 * No two arcs have the same labels and target; a hash table finds an arc by these. An arc that is
 * dropped leaves a hole, until there are more holes than arcs. Places are valid until the next
 * push. */
#ifndef WF_FSTOPS_ARC_LIST_H
#define WF_FSTOPS_ARC_LIST_H

#include "fst/fst.h"
#include "math/hash.h"

#define WF__NO_PLACE UINT64_MAX

typedef struct wf__arc_list wf__arc_list;

/* A list of `count` arcs, of which no two have the same labels and target. */
wf_status wf__arc_list_create(const wf_arc *arcs, uint64_t count, wf__arc_list **out,
                              wf_error *err);
void wf__arc_list_free(wf__arc_list *list);
uint64_t wf__arc_list_count(const wf__arc_list *list);
/* Writes the arcs in order. */
void wf__arc_list_copy(const wf__arc_list *list, wf_arc *to);

/* The place of the arc with the same labels and target, or WF__NO_PLACE. */
uint64_t wf__arc_list_find(const wf__arc_list *list, const wf_arc *arc);
float wf__arc_list_weight(const wf__arc_list *list, uint64_t place);
void wf__arc_list_set_weight(wf__arc_list *list, uint64_t place, float weight);
void wf__arc_list_drop(wf__arc_list *list, uint64_t place);
/* Adds a cost to all weights. The sums are rounded to float, as when a result is stored. */
void wf__arc_list_add_cost(wf__arc_list *list, double cost);
/* Adds an arc that is not in the list. */
wf_status wf__arc_list_push(wf__arc_list *list, bool in_front, wf_arc arc, wf_error *err);

static inline uint64_t wf__arc_hash(const wf_arc *arc) {
  return wf__mix64(((uint64_t)(uint32_t)arc->ilabel << 32 | (uint32_t)arc->olabel) *
                       0x9e3779b97f4a7c15ULL ^
                   arc->nextstate);
}

static inline bool wf__same_arc(const wf_arc *a, const wf_arc *b) {
  return a->ilabel == b->ilabel && a->olabel == b->olabel && a->nextstate == b->nextstate;
}

#endif
