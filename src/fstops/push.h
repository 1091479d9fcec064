/* push.h - pushing costs and output labels, in parts that minimization uses too.
 *
 * All work on `csr`, a copy of the arrays of `view` with the same states. Labels first turn the
 * olabels of csr into numbers of string_pool.h; what does not fit on any arc (the common prefix of
 * everything, the total cost) is handed back and put in front by wf__prepend. */
#ifndef WF_FSTOPS_PUSH_H
#define WF_FSTOPS_PUSH_H

#include "base/threads.h"
#include "fstops/string_pool.h"

#define WF__STRING_NONE WF__STRING_ONE /* no string: label 0 is none */

/* Output strings pushed towards the start: `*out_potential` [num_states], for free(), is the
 * longest common prefix of the outputs from each state to the end; that of the start is what
 * remains in front. To the final states: the longest common suffix of the outputs from the start to
 * each state, its labels in reverse; that of a final state is what remains to be put out there.
 * WF__STRING_NONE where there is no such path. */
wf_status wf__push_labels(const wf_fst_view *view, bool to_final, wf__strings *strings,
                          wf__csr *csr, uint32_t **out_potential, wf_error *err);

typedef struct wf__pushed {
  const wf__csr *csr;        /* strings as olabels, read from the front */
  const uint32_t *potential; /* WF__STRING_NONE: there is no successful path through the state, and
                                no string waits there. NULL: not so anywhere */
  const uint32_t *final_string; /* to put out at the end, by state; NULL: nothing */
} wf__pushed;

/* Spells the strings out in `out`: an arc has the first label, and the rest comes on the arcs
 * behind it. States that `*start` does not reach are dropped, the others keep their order; what
 * more there are of one come behind. `*fits`: are there at most `most_states`? Else `out` stays
 * empty. */
wf_status wf__delay_labels(wf__strings *strings, const wf__pushed *pushed, uint64_t most_states,
                           int64_t *start, wf__csr *out, bool *fits, wf_error *err);

/* Costs reweighted by potentials. `*out_total` belongs in front of everything then: towards the
 * start, the total cost (0 if there is no successful path); towards the final states, where the
 * total stays in the final costs unless remove_total, what cycles through the start have put into
 * its potential (log semiring, else 0). */
wf_status wf__push_costs(const wf_fst_view *view, bool to_final, bool remove_total, double delta,
                         wf__pool *pool, wf__csr *csr, double *out_total, wf_error *err);

/* Puts an output string and a cost in front of everything: on the arcs of the start state when it
 * is on no cycle, else on a new start state (numbered last) with an epsilon arc. */
wf_status wf__prepend(wf__strings *strings, uint32_t string, double cost, wf__csr *csr,
                      int64_t *start, wf_error *err);

#endif
