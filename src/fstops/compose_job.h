/* compose_job.h - a composition from the inside: what is requested, the two inputs made ready, the
 * arrays that come out, and the two ways there:
 *
 *   compose_search.c   pair by pair, a hash table of those reached: sparse results, OpenFst's
 *                      order, failure arcs
 *   compose_rows.c     rows of bits, one bit per pair reached or not: dense results, many threads;
 *                      the canonical order only */
#ifndef WF_FSTOPS_COMPOSE_JOB_H
#define WF_FSTOPS_COMPOSE_JOB_H

#include "base/threads.h"
#include "fstops/compose_side.h"

typedef struct wf__compose_job {
  const wf__compose_side *a, *b; /* sorted by the label that is matched */
  int filter;
  bool connect, canonical;
  uint64_t max_states, max_bytes; /* UINT64_MAX: no limit */
  uint64_t give_up;     /* wf__compose_search stops beyond this many states without an error */
  uint64_t most_looked; /* sides only looked at: it stops as well at a state that is not sorted, and
                           beyond this many arcs of visited states; else 0 */
  int32_t num_threads;  /* as in wf_compose_options */
  wf__pool *pool;       /* for rows; NULL: the calling thread alone */
} wf__compose_job;

typedef struct wf__compose_output {
  wf__csr csr;
  int64_t start; /* -1: nothing left */
  bool with_origins;
  WF__VEC(wf_arc_origin) origins; /* of each arc: places in the sorted inputs */
} wf__compose_output;

/* compose_output.c */
void wf__compose_output_free(wf__compose_output *out);
/* The error of a composition that needs more than max_bytes. */
wf_status wf__compose_too_large(uint64_t bytes, uint64_t max_bytes, wf_error *err);

/* On failure, and when it gave up, `out` holds nothing. */
wf_status wf__compose_search(const wf__compose_job *job, wf__compose_output *out, bool *out_gave_up,
                             wf_error *err);

/* Pairs that a table of rows of bits has cells for, and the table's size in bytes; UINT64_MAX where
 * it is too large to be thought of. */
uint64_t wf__compose_rows_cells(const wf__compose_job *job, uint64_t *out_bytes);
/* `*out_fits` is false where there are too many labels for it; then nothing was done. */
wf_status wf__compose_rows(const wf__compose_job *job, wf__compose_output *out, bool *out_fits,
                           wf_error *err);

#endif
