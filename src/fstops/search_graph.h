/* search_graph.h - the graph that searches for best paths take, and the order of its states. */
#ifndef WF_FSTOPS_SEARCH_GRAPH_H
#define WF_FSTOPS_SEARCH_GRAPH_H

#include <math.h>

#include "base/error.h"

/* The graph to search: an fst's arrays or their reverse, and the states in which paths begin. */
typedef struct wf__search_graph {
  uint64_t num_states;
  const uint64_t *arc_off;
  const wf_arc *arcs;
  /* [num_states] cost of beginning a path in a state, +infinity if none may begin there. NULL:
   * paths begin only in `start`, at cost 0 */
  const float *initial;
  int64_t start;       /* used if `initial` is NULL; -1: no path begins anywhere */
  const uint8_t *only; /* [num_states] states that may be entered; NULL: all */
  /* Limits, which only Dijkstra's algorithm uses. States may be reported as not reached if all
   * their complete paths cost more than the best plus `width`, or if they cost more than `limit`.
   */
  const float *final_cost; /* [num_states] final costs; NULL: `width` is not used */
  double width;
  bool limited; /* is `limit` used? */
  double limit;
} wf__search_graph;

static inline bool wf__enters(const wf__search_graph *graph, const wf_arc *arc) {
  return arc->weight != INFINITY && (graph->only == NULL || graph->only[arc->nextstate]);
}

static inline double wf__source_cost(const wf__search_graph *graph, uint64_t s) {
  if (graph->only != NULL && !graph->only[s]) return INFINITY;
  if (graph->initial != NULL) return (double)graph->initial[s];
  return (int64_t)s == graph->start ? 0 : INFINITY;
}

/* Writes the states into order[*begin .. num_states), each before those that it reaches, but for
 * arcs that close a cycle (depth-first search). `all`: all states, so *begin is 0; otherwise those
 * that paths reach, and if there is a cycle, the order is not complete. Linear time. */
wf_status wf__order_states(const wf__search_graph *graph, bool all, uint32_t *order,
                           uint64_t *begin, bool *acyclic, wf_error *err);

#endif
