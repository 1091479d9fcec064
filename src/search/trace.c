/* trace.c - garbage collection of the token history: marks backward from the live records,
 * compacts, renumbers. */
#include "search/trace.h"

#include <string.h>

enum { COLLECT_AT_LEAST = 1 << 18 }; /* records; below this, collecting costs more than it saves */

/* State of a record while marking. Afterwards replaced by the new numbers of live records, plus
 * one. */
enum {
  DEAD = 0,
  COMMITTED = 1,
  FORK = 2
}; /* fork: several paths continue from here, or one ends here */

/* Marks the predecessors of the records from `first` on. Returns the number of paths that start
 * at the root. */
static uint32_t mark_live(const wf__trace *trace, uint64_t first, uint32_t *mark) {
  const wf__trace_record *records = trace->records.data;
  uint64_t size = trace->records.size;
  uint32_t num_roots = 0;
  memset(mark, DEAD, size * sizeof *mark);
  for (uint64_t i = first; i < size; i++) mark[i] = FORK;
  for (uint64_t i = first; i < size; i++) {
    uint32_t at = records[i].prev;
    for (; at != WF__TRACE_ROOT && mark[at] == DEAD; at = records[at].prev) mark[at] = COMMITTED;
    if (at == WF__TRACE_ROOT)
      num_roots++;
    else
      mark[at] = FORK;
  }
  return num_roots;
}

wf_status wf__fail_cycle(wf_error *err) {
  return wf__fail(err, WF_ERR_NEGATIVE_CYCLE,
                  "endless epsilon cycle: word_score or a scorer makes its cost negative");
}

/* Cuts the committed prefix: records from the root up to the first fork, that one included unless
 * it is of the newest frame. They become dead, and go to `out`. */
static wf_status cut_committed(wf__trace *trace, uint64_t first, uint32_t *mark,
                               const wf_graph *graph, wf__path *out, wf_error *err) {
  const wf__trace_record *records = trace->records.data;
  uint32_t last = WF__TRACE_ROOT; /* the fork nearest to the root */
  uint64_t steps = 0;
  for (uint32_t at = (uint32_t)first; at != WF__TRACE_ROOT; at = records[at].prev) {
    if (mark[at] == FORK) last = at;
    if (steps++ > trace->records.size) return wf__fail_cycle(err);
  }
  if (last >= first) last = records[last].prev;
  if (last == WF__TRACE_ROOT) return WF_OK;
  WF__TRY(wf__trace_path(trace, last, graph, out, err));
  for (uint32_t at = last; at != WF__TRACE_ROOT; at = records[at].prev) mark[at] = DEAD;
  return WF_OK;
}

/* Compacts the live records; `mark` has their new numbers plus one. */
static void slide(wf__trace *trace, const uint32_t *mark) {
  wf__trace_record *records = trace->records.data;
  float *loglikes = trace->keeps_loglikes ? trace->loglikes.data : NULL;
  uint64_t size = trace->records.size, kept = 0;
  /* A record may lead to a later one of the same frame (epsilons), so all numbers are known before
   * links are rewritten. */
  for (uint64_t i = 0; i < size; i++) {
    if (mark[i] == 0) continue;
    wf__trace_record record = records[i];
    if (record.prev != WF__TRACE_ROOT)
      record.prev =
          mark[record.prev] - 1; /* at the end of the committed prefix: 0 - 1 is the root */
    if (loglikes != NULL) loglikes[kept] = loglikes[i];
    records[kept++] = record;
  }
  trace->records.size = trace->live = kept;
  if (loglikes != NULL) trace->loglikes.size = kept;
}

wf_status wf__trace_collect(wf__trace *trace, uint64_t *first_live, bool force,
                            const wf_graph *graph, wf__path *committed, wf_error *err) {
  uint64_t size = trace->records.size, first = *first_live;
  if (!force && size < 2 * trace->live + COLLECT_AT_LEAST) return WF_OK;
  if (trace->renumber_cap < size) {
    free(trace->renumber);
    trace->renumber_cap = 0;
    trace->renumber = wf__alloc(size, sizeof *trace->renumber);
    if (trace->renumber == NULL) return wf__fail_memory(err, size * 4, "the token history");
    trace->renumber_cap = size;
  }
  uint32_t *mark = trace->renumber, kept = 0;
  uint32_t num_roots = mark_live(trace, first, mark);
  if (committed != NULL && num_roots == 1 && first < size)
    WF__TRY(cut_committed(trace, first, mark, graph, committed, err));
  for (uint64_t i = 0; i < size; i++) {
    if (i == first) *first_live = kept;
    if (mark[i] != DEAD) mark[i] = ++kept;
  }
  if (first == size) *first_live = kept;
  slide(trace, mark);
  return WF_OK;
}

/* Writes backward, in the order of the records. */
wf_status wf__trace_path(const wf__trace *trace, uint32_t at, const wf_graph *graph, wf__path *path,
                         wf_error *err) {
  const wf__trace_record *records = trace->records.data;
  uint64_t num_arcs = 0, num_frames = 0;
  for (uint32_t i = at; i != WF__TRACE_ROOT; i = records[i].prev) {
    if (num_arcs > trace->records.size) return wf__fail_cycle(err);
    num_arcs += records[i].arc != WF__NO_ARC;
    num_frames += records[i].arc != WF__NO_ARC && wf__graph_arc(graph, records[i].arc).ilabel != 0;
  }
  WF__TRY(wf__vec_grow(&path->arcs, num_arcs, "a path", err));
  path->arcs.size += num_arcs;
  uint32_t *arc_end = path->arcs.data + path->arcs.size;
  float *loglike_end = NULL;
  if (trace->keeps_loglikes) {
    WF__TRY(wf__vec_grow(&path->loglikes, num_frames, "a path", err));
    path->loglikes.size += num_frames;
    loglike_end = path->loglikes.data + path->loglikes.size;
  }
  for (uint32_t i = at; i != WF__TRACE_ROOT; i = records[i].prev) {
    if (records[i].arc == WF__NO_ARC) continue;
    *--arc_end = records[i].arc;
    if (loglike_end != NULL && wf__graph_arc(graph, records[i].arc).ilabel != 0)
      *--loglike_end = trace->loglikes.data[i];
  }
  return WF_OK;
}

void wf__trace_clear(wf__trace *trace) {
  trace->records.size = trace->loglikes.size = 0;
  trace->live = 0;
}

void wf__trace_free(wf__trace *trace) {
  wf__vec_free(&trace->records);
  wf__vec_free(&trace->loglikes);
  free(trace->renumber);
  *trace = (wf__trace){0};
}
