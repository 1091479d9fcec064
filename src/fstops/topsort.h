/* topsort.h - the topological order of the states, for operations that process states in that
 * order. */
#ifndef WF_FSTOPS_TOPSORT_H
#define WF_FSTOPS_TOPSORT_H

#include "fst/fst.h"

/* Sets `*out_order` to the states in an order in which every arc leads forwards. The caller frees
 * it with free(). Returns WF_ERR_ARGUMENT, with a state on a cycle in the message, if there is
 * none. */
wf_status wf__topological_order(const wf_fst_view *view, uint32_t **out_order, wf_error *err);

#endif
