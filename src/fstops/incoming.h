/* incoming.h - the arcs of an fst by target. */
#ifndef WF_FSTOPS_INCOMING_H
#define WF_FSTOPS_INCOMING_H

#include "fst/fst.h"

/* arcs[off[s] .. off[s + 1]) are copies of the arcs into s, with nextstate set to their source.
 * They are in the order of their sources, and of the arcs of a source. */
typedef struct wf__incoming {
  uint64_t *off;
  wf_arc *arcs;
} wf__incoming;

wf_status wf__incoming_find(const wf_fst_view *view, wf__incoming *out, wf_error *err);
void wf__incoming_free(wf__incoming *incoming);

#endif
