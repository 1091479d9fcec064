/* connect.h - trims arrays under construction. Shared by the operations that trim their result. */
#ifndef WF_FSTOPS_CONNECT_H
#define WF_FSTOPS_CONNECT_H

#include "fst/fst.h"

/* Removes, in place, the states of `csr` that reach no final state, and the arcs to them. The order
 * of states and arcs is kept. `*start` becomes the new number of the start state, or -1 if nothing
 * is left. all_accessible: the caller knows that every state can be reached from the start.
 * Otherwise, states that cannot are removed, too. */
wf_status wf__csr_connect(wf__csr *csr, int64_t *start, bool all_accessible, wf_error *err);
/* The same by num_threads (0: automatic, else as given), and moves the origins of the arcs with
 * them. `origins` may be NULL. */
wf_status wf__csr_connect_with(wf__csr *csr, int64_t *start, bool all_accessible,
                               int32_t num_threads, wf_arc_origin *origins, wf_error *err);
/* wf_connect by num_threads. */
wf_status wf__connect(const wf_fst *fst, int32_t num_threads, wf_fst **out, wf_error *err);

#endif
