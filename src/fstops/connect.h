/* connect.h - trimming arrays under construction, shared by the operations that trim their result.
 */
#ifndef WF_FSTOPS_CONNECT_H
#define WF_FSTOPS_CONNECT_H

#include "fst/fst.h"

/* Drops, in place, the states of `csr` from which no final state is reached, and the arcs to them;
 * order of states and arcs is kept. `*start` becomes the new number of the start state, or -1 if
 * nothing is left. With all_accessible every state is known to be reachable from the start (as
 * after a search from it); else states that are not are dropped too. */
wf_status wf__csr_connect(wf__csr *csr, int64_t *start, bool all_accessible, wf_error *err);
/* The same for a csr whose arcs have origins beside them (NULL: none), which are moved with the
 * arcs. */
wf_status wf__csr_connect_with(wf__csr *csr, int64_t *start, bool all_accessible,
                               wf_arc_origin *origins, wf_error *err);

#endif
