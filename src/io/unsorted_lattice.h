/* unsorted_lattice.h - a lattice as a file has it: either kind, states in any order, any start.
 * What the formats are parsed into, before it becomes a wf_lattice or a wf_compact_lattice.
 *
 *     arc_off  [0 .. num_states)    arcs of state s: from arc_off[s] to arc_off[s + 1], of the last
 *              state to the end
 *     labels   alignments (compact lattices), by weight.first_label and num_labels */
#ifndef WF_IO_UNSORTED_LATTICE_H
#define WF_IO_UNSORTED_LATTICE_H

#include "base/error.h"
#include "base/memory.h"
#include "lattice/compact_lattice.h"

typedef struct wf__unsorted_arc {
  uint32_t target;
  int32_t ilabel, olabel; /* both the word in a compact lattice */
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

/* How costs are changed on the way, and which kind is wanted: 0 as it is, 1 raw, 2 compact. */
typedef struct wf__lattice_wish {
  float lm_scale, acoustic_scale;
  int32_t kind;
} wf__lattice_wish;

/* Is the weight one that a lattice may have: both costs at most 1e30 in magnitude, or both
 * +infinity (Zero)? */
bool wf__unsorted_weight_is_good(double graph_cost, double acoustic_cost);

void wf__unsorted_free(wf__unsorted_lattice *unsorted);
/* Checks targets and start, puts states in topological order from the start (as they are, if they
 * are so already; what the start does not reach is dropped), scales, converts. Empties `unsorted`,
 * also on failure. Errors (WF_ERR_FORMAT): arcs to states that do not exist, cycles. */
wf_status wf__unsorted_finish(wf__unsorted_lattice *unsorted, const wf__lattice_wish *wish,
                              wf_lattice_entry *out, wf_error *err);

#endif
