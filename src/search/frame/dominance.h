/* dominance.h - sources whose arcs over tokens need not be looked at, since others are as good.
 *
 * The sources on pairs (g, h) of one state g (fst/ctc_states.h) share the arcs of g, but for those
 * that the held token makes void. Sums are rounded, and rounding keeps the order: of two sources of
 * such a group the one that costs no more has the candidate that costs no more, over every arc.
 * Candidates of equal cost are compared by the numbers of their arcs, which are in the order of the
 * states. So a source adds no token if two others of its group, which hold different tokens, cost no
 * more and have smaller states: over every arc that is open to it, one of the two has a better
 * candidate for the same token. That is exact, ties included, whatever the rounding. A group is
 * the sources of one context.
 *
 * Of a row of equal scores two sources are left, of random ones about 2 ln(n) of n. Without this
 * each of V sources would look at V arcs.
 *
 * The same holds for the k least costs of all candidates: if k + 1 sources of a group cost no more
 * than another one, k of them have a candidate that costs no more, over every arc. */
#ifndef WF_SEARCH_FRAME_DOMINANCE_H
#define WF_SEARCH_FRAME_DOMINANCE_H

#include "search/frame/limits.h"

enum { WF__ADDS_NO_TOKEN = 1, WF__ADDS_NO_COST = 2 };

/* Finds the sources that add no token. Without many sources on wide states, none is looked for. */
wf_status wf__dominance_find(wf__search *search, wf_error *err);
/* Finds those that do not change the `most` least costs of candidates. */
wf_status wf__dominance_rank(wf__search *search, uint64_t most, wf_error *err);
void wf__dominance_free(wf__search *search);

/* Can the arcs over tokens of a source be left out? Lattices have the links of all sources, and
 * max_tokens counts all candidates. */
static inline bool wf__is_dominated(const wf__search *search, enum expand_mode mode, uint64_t i) {
  const wf__dominance *dominance = &search->step.dominance;
  if (wf__likely(dominance->sorted.size == 0)) return false;
  if (mode <= EXPAND_FIXED)
    return !search->base.keeps_lattice && (dominance->flags.data[i] & WF__ADDS_NO_TOKEN) != 0;
  return mode == EXPAND_LEAST && (dominance->flags.data[i] & WF__ADDS_NO_COST) != 0;
}

#endif
