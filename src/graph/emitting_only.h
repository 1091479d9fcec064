/* emitting_only.h - graphs without epsilons: every arc reads a frame. */
#ifndef WF_GRAPH_EMITTING_ONLY_H
#define WF_GRAPH_EMITTING_ONLY_H

#include "base/error.h"

/* Returns a graph with the same paths and costs, in which every arc reads a frame. Epsilon arcs are
 * folded into the arcs before them. If several words fall on one arc, the later ones move to the
 * following arcs, so words may come some frames later. Tropical semiring. Errors: words left over
 * at the end of a path; more than 8 words waiting for an arc (an epsilon cycle that writes words);
 * WF_ERR_NEGATIVE_CYCLE; more than max_states states (0: 2^31 - 1). */
wf_status wf__emitting_only(const wf_fst *fst, uint64_t max_states, wf_fst **out, wf_error *err);

#endif
