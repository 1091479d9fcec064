/* links.h - what the search with scores of frames adds to the history of its lattice, frame by frame. */
#ifndef WF_SEARCH_FRAME_LINKS_H
#define WF_SEARCH_FRAME_LINKS_H

#include "search/frame/search.h"

/* Adds the frame that the search has just closed, costs not yet normalised, with the links into it
 * and within it. */
wf_status wf__search_keep_links(wf__search *search, float cutoff, wf_error *err);

#endif
