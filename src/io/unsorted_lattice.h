/* unsorted_lattice.h - a lattice as read from a file, of either kind: states in any order, any
 * start state. Readers produce it; wf__unsorted_finish makes a wf_lattice or wf_compact_lattice of
 * it.
 *
 *     arc_off  [num_states]; the arcs of state s are [arc_off[s], arc_off[s + 1]), those of the
 *              last state end at the end of `arcs`
 *     labels   alignments of compact lattices, indexed by weight.first_label */
#ifndef WF_IO_UNSORTED_LATTICE_H
#define WF_IO_UNSORTED_LATTICE_H

#include "base/error.h"
#include "base/memory.h"
#include "lattice/compact_lattice.h"

typedef struct wf__unsorted_arc {
  uint32_t target;
  int32_t ilabel, olabel; /* in a compact lattice both are the word */
  wf_compact_weight weight;
} wf__unsorted_arc;

typedef struct wf__unsorted_lattice {
  bool compact;
  int64_t start; /* -1: the empty lattice */
  WF__VEC(uint64_t) arc_off;
  WF__VEC(wf__unsorted_arc) arcs;
  WF__VEC(wf_compact_weight) finals; /* [num_states]; graph_cost +infinity: not final */
  wf__label_vec labels;
} wf__unsorted_lattice;

/* Factors on the costs, and the kind to make: 0 the kind of the file, 1 raw, 2 compact. */
typedef struct wf__lattice_conversion {
  float lm_scale, acoustic_scale;
  int32_t kind;
} wf__lattice_conversion;

/* True for a valid weight: both costs at most 1e30 in magnitude, or both +infinity (Zero). */
bool wf__unsorted_weight_is_good(double graph_cost, double acoustic_cost);

void wf__unsorted_free(wf__unsorted_lattice *unsorted);
/* Checks the targets of arcs and the start state, sorts the states topologically, removes states
 * that are not reachable from the start, scales costs, and converts to the requested kind. Keeps
 * the order if it is topological already. Empties `unsorted`, also on failure. WF_ERR_FORMAT for
 * arcs to states that do not exist and for cycles. */
wf_status wf__unsorted_finish(wf__unsorted_lattice *unsorted,
                              const wf__lattice_conversion *conversion, wf_lattice_entry *out,
                              wf_error *err);

#endif
