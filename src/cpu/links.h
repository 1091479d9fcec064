/* links.h - what the CPU search adds to the history of its lattice, frame by frame. */
#ifndef WF_CPU_LINKS_H
#define WF_CPU_LINKS_H

#include "cpu/search.h"

/* Adds the frame that the search has just closed, costs not yet normalised, with the links into it and within it. */
wf_status wf__search_remember(wf__search *search, float cutoff, wf_error *err);
/* What ending in each of the newest frame's tokens costs. `final`: on final states; else anywhere, after dying where the search went on. */
wf_status wf__search_endings(wf__search *search, bool final, wf_error *err);

#endif
