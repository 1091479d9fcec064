/* minimize_partition.h - the coarsest partition of states that arcs respect: two states of one
 * class started in the same class and have, for each symbol, equally many arcs into each class. For
 * deterministic graphs that is equivalence; for others it is a bisimulation that counts. */
#ifndef WF_FSTOPS_MINIMIZE_PARTITION_H
#define WF_FSTOPS_MINIMIZE_PARTITION_H

#include "base/threads.h"
#include "fstops/scc.h"

/* What distinguishes two arcs of a state. */
typedef struct wf__arc_key {
  uint64_t labels; /* ilabel << 32 | olabel */
  uint64_t rest;   /* bin of the weight << 32 | class of the next state */
} wf__arc_key;

typedef struct wf__labelled_graph {
  const wf_fst_view *view;
  double inverse_delta;   /* weights are compared in bins: wf__cost_bin */
  const uint32_t *symbol; /* [num_arcs], dense from 0: labels and bin of each arc as one number.
                             wf__partition_rounds needs none */
  uint32_t num_symbols;
  const uint32_t *initial; /* [num_states] class to start from, dense from 0; may be the array that
                              receives the classes */
  uint32_t num_initial;
} wf__labelled_graph;

/* Without cycles: classes by hashing, in reverse topological order (Revuz 1992). Linear but for
 * sorting the arcs of each state. */
wf_status wf__partition_acyclic(const wf__labelled_graph *graph, const uint32_t *topological_order,
                                uint32_t *class_of, uint32_t *num_classes, wf_error *err);
/* Any graph: partition refinement that always goes on with the smaller half, O(m log n) (Hopcroft
 * 1971; in the form of Valmari 2012, "Fast brief practical DFA minimization", with counts for
 * nondeterministic graphs as in Valmari & Franceschinis 2010). */
wf_status wf__partition_refine(const wf__labelled_graph *graph, uint32_t *class_of,
                               uint32_t *num_classes, wf_error *err);
/* Any graph: rounds over all states at once; quick where states differ nearby. When it stops early
 * (`*stable` false) the classes found are unions of final classes, to go on from. Classes are
 * numbered in the order of their first states. (minimize_rounds.c) */
wf_status wf__partition_rounds(const wf__labelled_graph *graph, wf__pool *pool, uint32_t *class_of,
                               uint32_t *num_classes, bool *stable, wf_error *err);

void wf__sort_u64(uint64_t *data, uint64_t n);

#endif
