/* trace.h - the history of tokens: who came from whom, over which arc.
 *
 *   records   {prev, arc}  one per token kept, frame after frame; prev is a record's number,
 *             WF__TRACE_ROOT before the first arc
 *   loglikes  float        of each record's arc, 0 if it consumes nothing; only for streams, which
 *             do not see their scores again
 *
 * Only what the living tokens lead back to is ever needed. wf__trace_collect drops the rest when
 * the records have doubled since the last time, so memory follows the live history (a tree that
 * thins out quickly backwards), not the length of the audio. What is left of that tree starts with
 * a committed prefix that all tokens share: for streams it is cut off and handed over, since
 * nothing can change it any more. */
#ifndef WF_DECODE_TRACE_H
#define WF_DECODE_TRACE_H

#include "decode/backend.h"

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

/* The error of epsilon arcs that lower a cost each time round. The search or whoever goes back
 * along the trace may be the first to find it. */
wf_status wf__fail_cycle(wf_error *err);
/* Drops what no record in [first_live, size) leads back to, if it is time (or `force`). Live
 * records move down, in order; *first_live follows them. With `committed` (needs loglikes) what all
 * of them share before first_live is dropped too, and appended to its arcs and loglikes. */
wf_status wf__trace_collect(wf__trace *trace, uint64_t *first_live, bool force,
                            const wf_graph *graph, wf__path *committed, wf_error *err);
/* Appends the arcs that lead from the root to record `at` to those of the path, with loglikes if
 * they are kept. */
wf_status wf__trace_path(const wf__trace *trace, uint32_t at, const wf_graph *graph, wf__path *path,
                         wf_error *err);
void wf__trace_clear(wf__trace *trace);
void wf__trace_free(wf__trace *trace);

#endif
