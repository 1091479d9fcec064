/* prune.h - the options `weight` and `nstate` of operations (WF_OPTIONS_THRESHOLD). */
#ifndef WF_FSTOPS_PRUNE_H
#define WF_FSTOPS_PRUNE_H

#include "fst/fst.h"

/* Replaces the result of an operation by the pruned one, unless both options have their defaults.
 * On failure *fst is NULL. */
wf_status wf__prune_result(wf_fst **fst, float weight, int64_t nstate, wf_error *err);

#endif
