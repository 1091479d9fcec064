/* push.h - pushing costs and output labels, in parts that minimization uses too.
 *
 * All work on `csr`, a copy of the arrays of `view` with the same states. Labels first turn the olabels of csr into numbers of
 * string_pool.h; what does not fit on any arc (the common prefix of everything, the total cost) is handed back and put in front by wf__prepend. */
#ifndef WF_FSTOPS_PUSH_H
#define WF_FSTOPS_PUSH_H

#include "base/threads.h"
#include "fstops/string_pool.h"

#define WF__STRING_NONE UINT32_MAX

/* Output strings pushed towards the start: `*out_potential` [num_states], for free(), is the longest common prefix of the outputs from each state
 * to the end; that of the start is what remains in front. To the final states: the longest common suffix of the outputs from the start to
 * each state, its labels in reverse; that of a final state is what remains to be put out there. WF__STRING_NONE where there is no such path. */
wf_status wf__push_labels(const wf_fst_view *view, bool to_final, wf__strings *strings, wf__csr *csr, uint32_t **out_potential, wf_error *err);

/* Costs reweighted by potentials. Towards the start the total cost is taken out of csr, and handed back in `*out_total` (0 if there is no successful
 * path). Towards the final states it stays in the final costs unless remove_total, and `*out_total` is 0. */
wf_status wf__push_costs(const wf_fst_view *view, bool to_final, bool remove_total, double delta, wf__pool *pool, wf__csr *csr, double *out_total, wf_error *err);

/* Puts an output string and a cost in front of everything: on the arcs of the start state when nothing leads back to it, else on a new
 * start state (numbered last) with an epsilon arc. */
wf_status wf__prepend(wf__strings *strings, uint32_t string, double cost, wf__csr *csr, int64_t *start, wf_error *err);

#endif
