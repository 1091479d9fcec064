/* tally.h - counts irregular items, such as missing words, and keeps the first few names. */
#ifndef WF_GRAPH_TALLY_H
#define WF_GRAPH_TALLY_H

#include "base/error.h"

/* Counts one item. Copies its name if it is among the first WF_TALLY_NAMES. */
wf_status wf__tally_add(wf_tally *tally, const char *name, wf_error *err);
void wf__tally_free(wf_tally *tally);

#endif
