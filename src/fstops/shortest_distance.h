/* shortest_distance.h - distances: sums of costs over all paths, in double. Pushing, epsilon
 * removal and minimization use them.
 *
 * Components are processed in topological order, so an acyclic graph takes one pass. Inside a
 * component with a cycle, a wf__distance_solver iterates. */
#ifndef WF_FSTOPS_SHORTEST_DISTANCE_H
#define WF_FSTOPS_SHORTEST_DISTANCE_H

#include <math.h>

#include "base/threads.h"
#include "fstops/cost_heap.h"
#include "fstops/incoming.h"
#include "fstops/order_queue.h"
#include "fstops/scc.h"
#include "math/cost.h"

/* The semiring's sum. */
static inline double wf__cost_plus(wf_semiring semiring, double a, double b) {
  return semiring == WF_LOG ? wf__log_add(a, b) : a < b ? a : b;
}

/* Distances inside one component. For each state s of the component, the caller sets dist[s] to the
 * sum of all paths that enter the component at s (+infinity if none does). wf__solve_distances
 * replaces it by the sum of all paths to s, including arcs inside the component. */
typedef struct wf__distance_solver {
  const wf_fst_view *graph;
  const wf__scc *scc;
  wf__arc_kind kind; /* arcs of other kinds are ignored */
  /* log: relative mass that may be neglected; tropical with negative costs: gains up to this are
   * ignored */
  double delta;
  double *dist; /* [num_states] */
  /* scratch, [num_states] each, allocated when first needed */
  double *pending, *star;
  uint32_t *hops;
  wf__order_queue queue;
  wf__heap heap;
} wf__distance_solver;

wf_status wf__distance_solver_init(wf__distance_solver *solver, const wf_fst_view *graph,
                                   const wf__scc *scc, wf__arc_kind kind, double delta,
                                   wf_error *err);
/* Returns WF_ERR_NEGATIVE_CYCLE if the sum does not exist. */
wf_status wf__solve_distances(wf__distance_solver *solver, uint32_t component, wf_error *err);
void wf__distance_solver_free(wf__distance_solver *solver);

/* wf_shortest_distance in double. The caller frees `*out` [num_states] with free(). The result does
 * not depend on the number of threads. */
wf_status wf__shortest_distance(const wf_fst_view *view, bool reverse, double delta, wf__pool *pool,
                                double **out, wf_error *err);

#endif
