/* trace.c - garbage collection of the token history: mark backwards from the living, slide down, renumber. */
#include "decode/trace.h"

#include <string.h>

enum { COLLECT_AT_LEAST = 1 << 18 }; /* records; below this, collecting costs more than it saves */

wf_status wf__trace_collect(wf__trace *trace, uint64_t *first_live, bool force, wf_error *err) {
  uint64_t size = trace->records.size, first = *first_live;
  if (!force && size < 2 * trace->live + COLLECT_AT_LEAST) return WF_OK;
  if (trace->renumber_cap < size) {
    free(trace->renumber);
    trace->renumber_cap = 0;
    trace->renumber = wf__alloc(size, sizeof *trace->renumber);
    if (trace->renumber == NULL) return wf__fail_memory(err, size * 4, "the token history");
    trace->renumber_cap = size;
  }
  wf__trace_record *records = trace->records.data;
  uint32_t *mark = trace->renumber;
  memset(mark, 0, size * sizeof *mark);
  for (uint64_t i = first; i < size; i++)
    for (uint32_t at = (uint32_t)i; at != WF__TRACE_ROOT && mark[at] == 0; at = records[at].prev) mark[at] = 1;
  uint64_t kept = 0; /* from here on, mark is the new number + 1; 0 means dead */
  for (uint64_t i = 0; i < size; i++) {
    if (i == first) *first_live = kept;
    if (mark[i] != 0) mark[i] = (uint32_t)++kept;
  }
  if (first == size) *first_live = kept;
  /* A record may lead to a later one of the same frame (epsilons), so all numbers are known before links are rewritten. */
  for (uint64_t i = 0; i < size; i++) {
    if (mark[i] == 0) continue;
    wf__trace_record record = records[i];
    if (record.prev != WF__TRACE_ROOT) record.prev = mark[record.prev] - 1;
    records[mark[i] - 1] = record;
  }
  trace->records.size = trace->live = kept;
  return WF_OK;
}

void wf__trace_clear(wf__trace *trace) {
  trace->records.size = 0;
  trace->live = 0;
}

void wf__trace_free(wf__trace *trace) {
  wf__vec_free(&trace->records);
  free(trace->renumber);
  *trace = (wf__trace){0};
}
