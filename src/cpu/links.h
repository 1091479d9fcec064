/* links.h - what the CPU search adds to the history of its lattice, frame by frame. */
#ifndef WF_CPU_LINKS_H
#define WF_CPU_LINKS_H

#include "cpu/search.h"

/* Adds the frame that the search has just closed, costs not yet normalised, with the links into it
 * and within it. */
wf_status wf__search_keep_links(wf__search *search, float cutoff, wf_error *err);

#endif
