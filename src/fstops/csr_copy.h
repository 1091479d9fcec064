/* csr_copy.h - copying fsts into arrays under construction: the common part of the structural
 * operations. */
#ifndef WF_FSTOPS_CSR_COPY_H
#define WF_FSTOPS_CSR_COPY_H

#include "fst/fst.h"

/* Appends the states of `view` (offsets and final costs, not the arcs: the caller appends exactly
 * those next, in order). */
wf_status wf__csr_copy_states(wf__csr *csr, const wf_fst_view *view, wf_error *err);
/* Appends states and arcs, next states shifted by the number of states that were there. */
wf_status wf__csr_append(wf__csr *csr, const wf_fst_view *view, wf_error *err);

#endif
