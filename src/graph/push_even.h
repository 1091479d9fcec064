/* push_even.h - weight pushing for decoding graphs. */
#ifndef WF_GRAPH_PUSH_EVEN_H
#define WF_GRAPH_PUSH_EVEN_H

#include "base/error.h"

/* Reweights `fst` so that the probabilities of the arcs and the final cost of each state sum to the
 * same constant, or nearly: what follows a state, summed over all continuations, is then paid as
 * early as possible. Path costs stay the same. */
wf_status wf__push_even(const wf_fst *fst, wf_fst **out, wf_error *err);

#endif
