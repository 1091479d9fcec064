/* push_even.h - weight pushing for decoding graphs. */
#ifndef WF_GRAPH_PUSH_EVEN_H
#define WF_GRAPH_PUSH_EVEN_H

#include "base/error.h"

/* Reweights `fst` so that the probabilities of each state's arcs and final cost sum to nearly the
 * same constant. Then every path pays as early as possible for what follows, summed over all
 * continuations. Path costs stay the same. */
wf_status wf__push_even(const wf_fst *fst, wf_fst **out, wf_error *err);

#endif
