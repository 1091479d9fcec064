/* tally.h - counts irregular items, such as missing words, and keeps the first few names. */
#ifndef WF_BASE_TALLY_H
#define WF_BASE_TALLY_H

#include "base/error.h"

/* Counts one item. Copies its name if it is among the first WF_TALLY_NAMES. */
wf_status wf__tally_add(wf_tally *tally, const char *name, wf_error *err);
/* Writes the names as "'one', 'two', ...", as many as fit into text[size]; size > 8. */
void wf__tally_list(const wf_tally *tally, char *text, size_t size);
void wf__tally_free(wf_tally *tally);

#endif
