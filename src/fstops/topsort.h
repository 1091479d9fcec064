/* topsort.h - a topological order for the operations that work along one. */
#ifndef WF_FSTOPS_TOPSORT_H
#define WF_FSTOPS_TOPSORT_H

#include "fst/fst.h"

/* The states in an order in which every arc leads forwards; free() it. WF_ERR_ARGUMENT, with a
 * state on a cycle, if there is none. */
wf_status wf__topological_order(const wf_fst_view *view, uint32_t **out_order, wf_error *err);

#endif
