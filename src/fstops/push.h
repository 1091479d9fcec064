/* push.h - the parts of pushing costs and output labels. Minimization uses them, too.
 *
 * The functions change `csr`, a copy of the arrays of `view` with the same states. Pushing labels
 * turns the olabels of csr into strings of string_pool.h. What belongs before all arcs (the output
 * prefix common to all paths, the total cost) is returned; wf__prepend adds it to the fst. */
#ifndef WF_FSTOPS_PUSH_H
#define WF_FSTOPS_PUSH_H

#include "base/threads.h"
#include "fstops/string_pool.h"

#define WF__STRING_NONE WF__STRING_ONE /* no string; not a valid string, as no label is 0 */

/* Pushes output strings. `*out_potential` [num_states], which the caller frees with free(), becomes
 *   towards the start: the longest common prefix of the outputs of all paths from the state to a
 *     final state. That of the start state remains to be emitted before all arcs.
 *   towards the final states: the longest common suffix of the outputs of all paths from the start
 *     to the state, in reverse order. That of a final state remains to be emitted there.
 * It is WF__STRING_NONE if there is no such path. */
wf_status wf__push_labels(const wf_fst_view *view, bool to_final, wf__strings *strings,
                          wf__csr *csr, uint32_t **out_potential, wf_error *err);

typedef struct wf__pushed {
  const wf__csr *csr; /* olabels are strings that begin with their first label */
  /* WF__STRING_NONE: no successful path goes through the state, so no string is pending there.
   * NULL: there are no such states. */
  const uint32_t *potential;
  const uint32_t *final_string; /* [num_states] to emit if a path ends there; NULL: nothing */
} wf__pushed;

/* Splits the strings into single labels, in `out`: an arc has the first label, and the rest is
 * delayed to the next arcs. States that `*start` does not reach are removed; the others keep their
 * order. If a state is needed with several pending strings, its further copies come last. `*fits`:
 * there are at most `most_states` states. If not, `out` stays empty. */
wf_status wf__delay_labels(wf__strings *strings, const wf__pushed *pushed, uint64_t most_states,
                           int64_t *start, wf__csr *out, bool *fits, wf_error *err);

/* Reweights costs by potentials. `*out_total` must be added before all arcs. Towards the start, it
 * is the total cost (0 if there is no successful path). Towards the final states, the total stays
 * in the final costs, unless remove_total; then `*out_total` is the part of the start's potential
 * that comes from cycles through the start (0 in the tropical semiring). `copy`: `csr` has the
 * sizes, but not the arcs and final costs of `view` yet. */
wf_status wf__push_costs(const wf_fst_view *view, bool to_final, bool remove_total, double delta,
                         bool copy, wf__pool *pool, wf__csr *csr, double *out_total, wf_error *err);

/* The arithmetic of wf__push_costs, by the given potentials `dist` [num_states]. Arcs between
 * states of potential +infinity keep their costs. Towards the final states, `total` is taken off
 * the final costs. */
void wf__reweight_costs(const wf_fst_view *view, const double *dist, bool to_final, double total,
                        bool copy, wf__pool *pool, wf__csr *csr);

/* Adds an output string and a cost to the beginning of all paths: to the arcs (and the final cost)
 * of the start state if it is not on a cycle. Otherwise, a new start state with an epsilon arc is
 * added as last state. */
wf_status wf__prepend(wf__strings *strings, uint32_t string, double cost, wf__csr *csr,
                      int64_t *start, wf_error *err);

#endif
