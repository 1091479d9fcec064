/* minimize_partition.h - computes the coarsest partition of states that is stable: two states of a
 * class have the same initial class and, for each symbol, the same number of arcs into each class.
 * In a deterministic graph such states are equivalent. In other graphs they are bisimilar, with
 * arcs counted. */
#ifndef WF_FSTOPS_MINIMIZE_PARTITION_H
#define WF_FSTOPS_MINIMIZE_PARTITION_H

#include "base/threads.h"
#include "fstops/scc.h"

/* The key by which arcs of a state are compared. */
typedef struct wf__arc_key {
  uint64_t labels; /* ilabel << 32 | olabel */
  uint64_t rest;   /* bin of the weight << 32 | class of the next state */
} wf__arc_key;

typedef struct wf__labelled_graph {
  const wf_fst_view *view;
  double inverse_delta; /* weights are compared in bins: wf__cost_bin */
  /* [num_arcs] number of each arc's (labels, weight bin), dense from 0; not used by
   * wf__partition_rounds */
  const uint32_t *symbol;
  uint32_t num_symbols;
  /* [num_states] initial class, dense from 0; may be the array that receives the classes */
  const uint32_t *initial;
  uint32_t num_initial;
} wf__labelled_graph;

/* For acyclic graphs: finds the classes by hashing, in reverse topological order (Revuz 1992).
 * Linear time, apart from sorting the arcs of each state. */
wf_status wf__partition_acyclic(const wf__labelled_graph *graph, const uint32_t *topological_order,
                                uint32_t *class_of, uint32_t *num_classes, wf_error *err);
/* For any graph: partition refinement that processes the smaller half, O(m log n) (Hopcroft 1971;
 * in the form of Valmari 2012, "Fast brief practical DFA minimization", with counts for
 * nondeterministic graphs as in Valmari & Franceschinis 2010). */
wf_status wf__partition_refine(const wf__labelled_graph *graph, uint32_t *class_of,
                               uint32_t *num_classes, wf_error *err);
/* For any graph: refines all classes once per round (minimize_rounds.c). Fast if different states
 * can be told apart by short paths. May stop early: then `*stable` is false and the classes are
 * unions of final classes, from which wf__partition_refine can continue. Classes are numbered in
 * the order of their first states. */
wf_status wf__partition_rounds(const wf__labelled_graph *graph, wf__pool *pool, uint32_t *class_of,
                               uint32_t *num_classes, bool *stable, wf_error *err);

void wf__sort_u64(uint64_t *data, uint64_t n);

#endif
