/* properties.h - facts about an fst that algorithms ask for. */
#ifndef WF_FST_PROPERTIES_H
#define WF_FST_PROPERTIES_H

#include "warpfst.h"

/* The wf_property set of an fst in one pass over its arcs plus, only where needed, a depth-first search. */
uint32_t wf__compute_properties(const wf_fst_view *view);

#endif
