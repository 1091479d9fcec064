/* trace.h - the history of tokens: the predecessor and the arc of each.
 *
 *   records   {prev, arc}  one for each kept token, frame by frame; prev is a record's number, or
 *             WF__TRACE_ROOT before the first arc
 *   loglikes  float        of each record's arc, 0 if it consumes nothing; only for streams, which
 *             do not see their scores again
 *
 * Only records that live tokens can be traced back to are needed. wf__trace_collect drops the
 * others when the records have doubled since the last time. So memory grows with the live
 * history (a tree that thins out quickly backward), not with the length of the audio. The tree
 * begins with the committed prefix, which all tokens share. For streams it is cut off and
 * emitted, since it cannot change any more. */
#ifndef WF_SEARCH_TRACE_H
#define WF_SEARCH_TRACE_H

#include "search/path.h"

#define WF__TRACE_ROOT UINT32_MAX
#define WF__NO_ARC UINT32_MAX /* the start token's arc */

typedef struct wf__trace_record {
  uint32_t prev, arc;
} wf__trace_record;

typedef struct wf__trace {
  WF__VEC(wf__trace_record) records;
  WF__VEC(float) loglikes; /* as many as records, or none */
  bool keeps_loglikes;
  uint64_t live;      /* records left by the last collection */
  uint32_t *renumber; /* scratch of wf__trace_collect */
  uint64_t renumber_cap;
} wf__trace;

/* The error of an epsilon cycle of negative cost. The search or a backtrace may be the first to
 * find it. */
wf_status wf__fail_cycle(wf_error *err);
/* Drops records that no record in [first_live, size) can be traced back to, if it is time (or
 * `force`). Compacts live records in order and updates *first_live. With `committed` (needs
 * loglikes) the prefix that all of them share before first_live is moved to its arcs and
 * loglikes. */
wf_status wf__trace_collect(wf__trace *trace, uint64_t *first_live, bool force,
                            const wf_graph *graph, wf__path *committed, wf_error *err);
/* Appends the arcs that lead from the root to record `at` to those of the path, with loglikes if
 * they are kept. */
wf_status wf__trace_path(const wf__trace *trace, uint32_t at, const wf_graph *graph, wf__path *path,
                         wf_error *err);
void wf__trace_clear(wf__trace *trace);
void wf__trace_free(wf__trace *trace);

#endif
