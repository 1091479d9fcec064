/* best_paths.h - cheapest paths from sources to every state. Shortest path, n-best and prune use
 * it.
 *
 * Costs are summed in double. Of two paths of equal cost, the one with fewer arcs is better. If
 * they have the same number of arcs, they are compared arc by arc from the end, and the lower arc
 * index is better where they first differ. The best paths to all states form a tree, so relaxing
 * one arc at a time implements this rule. */
#ifndef WF_FSTOPS_BEST_PATHS_H
#define WF_FSTOPS_BEST_PATHS_H

#include "fst/fst.h"
#include "fstops/incoming.h"
#include "fstops/search_graph.h"

#define WF__NO_STATE UINT32_MAX

/* `*out_useful`: one byte per state, 1 if it is on a path from the start to a final state over arcs
 * of finite cost. The caller frees it with free(). */
wf_status wf__useful_states(const wf_fst_view *view, const wf__incoming *incoming,
                            uint8_t **out_useful, wf_error *err);

/* Arrays of num_states. */
typedef struct wf__best_paths {
  double *cost;   /* +infinity if not reached */
  uint32_t *hops; /* arcs on the best path */
  /* back-pointer: the previous state; WF__NO_STATE where a path begins and where none arrives */
  uint32_t *from;
  /* index of the last arc; valid if `from` is not WF__NO_STATE */
  uint64_t *arc;
  bool cut; /* the search stopped at a limit; states beyond it were not reached */
} wf__best_paths;

/* Chooses the algorithm: one pass in topological order if there is no cycle; Dijkstra's if no arc
 * is negative; otherwise label correcting (Bellman, Ford, Moore). Label correcting returns
 * WF_ERR_NEGATIVE_CYCLE if it finds one. It treats a cycle as zero if it is negative by at most
 * 1e-5 per arc, to allow for rounding; then costs are exact to 1e-5 per arc. */
wf_status wf__best_paths_find(const wf__search_graph *graph, wf__best_paths *out, wf_error *err);
void wf__best_paths_free(wf__best_paths *paths);

#endif
