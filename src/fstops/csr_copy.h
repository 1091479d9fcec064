/* csr_copy.h - copies fsts into arrays under construction. Shared by the operations on structure,
 * such as union and concat. */
#ifndef WF_FSTOPS_CSR_COPY_H
#define WF_FSTOPS_CSR_COPY_H

#include "fst/fst.h"

/* Appends the offsets and final costs of the states of `view`. The caller must append their arcs
 * next, in the same order. */
wf_status wf__csr_copy_states(wf__csr *csr, const wf_fst_view *view, wf_error *err);
/* Appends states and arcs. Next states are shifted by the number of states already in `csr`. */
wf_status wf__csr_append(wf__csr *csr, const wf_fst_view *view, wf_error *err);
/* Appends states and arcs to an empty `csr`, and a new final state without cost to which epsilon
 * arcs carry the final costs. An fst without states stays so. (arc_map.c) */
wf_status wf__add_superfinal(const wf_fst_view *view, wf__csr *csr, wf_error *err);
/* Sorts the arcs from `first` on by (ilabel, olabel, nextstate) and sums the costs of those that
 * are equal in these. Labels are compared as signed numbers. (arc_map.c) */
void wf__csr_sum_arcs(wf__csr *csr, uint64_t first, wf_semiring semiring);

#endif
