/* shortest_distance.h - sums of costs over all paths, in double: what pushing, epsilon removal and
 * minimization stand on.
 *
 * The graph is walked component by component in topological order. Between components every
 * distance is final once all components before are done, so acyclic graphs cost one pass. Inside a
 * component with a cycle a wf__distance_solver iterates. */
#ifndef WF_FSTOPS_SHORTEST_DISTANCE_H
#define WF_FSTOPS_SHORTEST_DISTANCE_H

#include <math.h>

#include "base/threads.h"
#include "fstops/cost_heap.h"
#include "fstops/scc.h"
#include "math/cost.h"

/* Sum in the semiring. */
static inline double wf__cost_plus(wf_semiring semiring, double a, double b) {
  return semiring == WF_LOG ? wf__log_add(a, b) : a < b ? a : b;
}

/* Arcs by target: the `nextstate` of arcs [off[s], off[s+1]) is where an arc into s comes from;
 * everything else is the arc's own. */
typedef struct wf__incoming {
  uint64_t *off;
  wf_arc *arcs;
} wf__incoming;
wf_status wf__incoming_find(const wf_fst_view *view, wf__incoming *out, wf_error *err);
void wf__incoming_free(wf__incoming *incoming);

/* Distances inside one component. The caller puts into dist[s], for the states of a component, the
 * sum of what enters there from outside (+infinity: nothing); wf__solve_distances replaces it by
 * the sum over all ways on from there inside the component. */
typedef struct wf__distance_solver {
  const wf_fst_view *graph;
  const wf__scc *scc;
  wf__arc_kind kind; /* arcs of other kinds do not exist */
  double delta; /* log: mass that may be left out, relative; tropical with negative costs: gain that
                   is not worth following */
  double *dist; /* [num_states] */
  /* scratch, [num_states] each, made when first needed */
  double *pending, *star;
  uint32_t *queue, *hops;
  uint8_t *queued;
  wf__heap heap;
} wf__distance_solver;

wf_status wf__distance_solver_init(wf__distance_solver *solver, const wf_fst_view *graph,
                                   const wf__scc *scc, wf__arc_kind kind, double delta,
                                   wf_error *err);
/* Errors: WF_ERR_NEGATIVE_CYCLE when the sum does not exist. */
wf_status wf__solve_distances(wf__distance_solver *solver, uint32_t component, wf_error *err);
void wf__distance_solver_free(wf__distance_solver *solver);

/* wf_shortest_distance in double; `*out` [num_states] is for free(). The same whatever the number
 * of threads. */
wf_status wf__shortest_distance(const wf_fst_view *view, bool reverse, double delta, wf__pool *pool,
                                double **out, wf_error *err);

#endif
