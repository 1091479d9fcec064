/* tally.h - counting what is odd, with the first names of it. */
#ifndef WF_GRAPH_TALLY_H
#define WF_GRAPH_TALLY_H

#include "base/error.h"

/* Counts one more, and keeps a copy of its name if it is among the first. */
wf_status wf__tally_add(wf_tally *tally, const char *name, wf_error *err);
void wf__tally_free(wf_tally *tally);

#endif
