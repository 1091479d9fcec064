/* emitting_only.h - graphs without epsilons: every arc reads a frame. */
#ifndef WF_GRAPH_EMITTING_ONLY_H
#define WF_GRAPH_EMITTING_ONLY_H

#include "base/error.h"

/* Returns a graph with the same paths and costs, in which every arc reads a frame. Epsilon arcs are
 * folded into the arcs before them. If several words fall on one arc, the later ones move to the
 * following arcs, so words may come some frames later. Tropical semiring. Errors:
 * WF_ERR_UNSUPPORTED: words left over at the end of a path; WF_ERR_LIMIT: more than 8 words waiting
 * for an arc (an epsilon cycle that writes words), more than max_states states or max_arcs arcs (0:
 * 2^31 - 1 states, any number of arcs); WF_ERR_NEGATIVE_CYCLE. */
wf_status wf__emitting_only(const wf_fst *fst, uint64_t max_states, uint64_t max_arcs, wf_fst **out,
                            wf_error *err);

#endif
