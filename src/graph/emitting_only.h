/* emitting_only.h - graphs whose every arc reads a frame. */
#ifndef WF_GRAPH_EMITTING_ONLY_H
#define WF_GRAPH_EMITTING_ONLY_H

#include "base/error.h"

/* The same paths at the same costs without arcs that have no input: an arc and what epsilons lead
 * to behind it become arcs of their own. Where several words then meet on one arc, the later ones
 * go to the arcs behind it, so words may come some frames later. Tropical. Errors: words at an end
 * that no arc is left for, more than 8 words waiting (a cycle of epsilons that writes words),
 * WF_ERR_NEGATIVE_CYCLE, more than max_states (0: 2^31 - 1). */
wf_status wf__emitting_only(const wf_fst *fst, uint64_t max_states, wf_fst **out, wf_error *err);

#endif
