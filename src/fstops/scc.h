/* scc.h - strongly connected components of an fst, in topological order.
 *
 * The states of component k are order[off[k] .. off[k + 1]). Arcs lead from a component to itself
 * or to a later one, so `order` is a topological order of the components. */
#ifndef WF_FSTOPS_SCC_H
#define WF_FSTOPS_SCC_H

#include "base/error.h"

/* The arcs that are taken into account. */
typedef enum wf__arc_kind {
  WF__ARCS_ALL,
  WF__ARCS_EPSILON,       /* both labels epsilon */
  WF__ARCS_INPUT_EPSILON, /* input label epsilon */
  WF__ARCS_OUTPUT_EPSILON,
} wf__arc_kind;

typedef struct wf__scc {
  uint32_t *component; /* [num_states] */
  uint32_t *order;     /* [num_states] */
  uint32_t *off;       /* [num_components + 1] */
  uint32_t num_components;
  bool acyclic; /* no component has two states or a self-loop */
} wf__scc;

static inline bool wf__arc_is(const wf_arc *arc, wf__arc_kind kind) {
  if (kind == WF__ARCS_ALL) return true;
  return (arc->ilabel == 0 || kind == WF__ARCS_OUTPUT_EPSILON) &&
         (arc->olabel == 0 || kind == WF__ARCS_INPUT_EPSILON);
}

/* Finds the components of all states, including those that the start does not reach (Tarjan 1972,
 * without recursion). Linear time. */
wf_status wf__scc_find(const wf_fst_view *view, wf__arc_kind kind, wf__scc *out, wf_error *err);
void wf__scc_free(wf__scc *scc);

#endif
