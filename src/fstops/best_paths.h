/* best_paths.h - cheapest paths from sources to every state: the ground under shortest path, n-best
 * and prune.
 *
 * Costs are summed in double. Of paths of equal cost the one with fewer arcs is better; of those,
 * read backwards from their ends, the one with the lower arc number where they first differ. The
 * best paths to all states form a tree, so the rule is kept arc by arc. */
#ifndef WF_FSTOPS_BEST_PATHS_H
#define WF_FSTOPS_BEST_PATHS_H

#include "fst/fst.h"

#define WF__NO_STATE UINT32_MAX

/* Arcs of an fst by target: arcs[arc_off[s] .. arc_off[s + 1]) are copies of the arcs into s whose
 * nextstate is the state they come from, in order of that state, then of its arcs. */
typedef struct wf__reversed {
  uint64_t *arc_off;
  wf_arc *arcs;
} wf__reversed;

wf_status wf__reverse_arcs(const wf_fst_view *view, wf__reversed *out, wf_error *err);
void wf__reversed_free(wf__reversed *reversed);

/* `*out_useful`: a byte per state, 1 where it lies on a path from the start to a final state over
 * arcs of finite cost. For free(). */
wf_status wf__useful_states(const wf_fst_view *view, const wf__reversed *reversed,
                            uint8_t **out_useful, wf_error *err);

/* A graph to search: an fst's arrays or their reverse, and where paths begin. */
typedef struct wf__search_graph {
  uint64_t num_states;
  const uint64_t *arc_off;
  const wf_arc *arcs;
  const float *initial; /* [num_states] cost of beginning there, +infinity: not at all. NULL: only
                           at `start`, cost 0 */
  int64_t start;        /* used if initial is NULL; -1: nowhere */
  const uint8_t *only;  /* [num_states] states that may be entered; NULL: all */
  /* Limits: states that lie on no path to an end within `width` of the best, or are further than
   * `limit` from the beginning, may count as not reached. They are used where no arc is negative.
   */
  const float *final_cost; /* [num_states] where paths end; NULL: no use of width */
  double width;
  bool limited; /* is there a limit? */
  double limit;
} wf__search_graph;

/* Arrays of num_states. */
typedef struct wf__best_paths {
  double *cost;   /* +infinity: not reached */
  uint32_t *hops; /* arcs on the best path */
  uint32_t
      *from; /* the state before; WF__NO_STATE at the beginning of a path and where not reached */
  uint64_t *arc; /* index of the last arc, valid where `from` is */
  bool cut;      /* a limit was met: there are states beyond it */
} wf__best_paths;

/* Picks by what it finds: one pass in topological order; Dijkstra where no cost is negative; else
 * label-correcting (Bellman, Ford, Moore), with WF_ERR_NEGATIVE_CYCLE. In the last case a cycle
 * that is below zero by no more than rounding (1e-5 an arc) passes as zero, and costs are then
 * exact to 1e-5 an arc. */
wf_status wf__best_paths_find(const wf__search_graph *graph, wf__best_paths *out, wf_error *err);
void wf__best_paths_free(wf__best_paths *paths);

#endif
