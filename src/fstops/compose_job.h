/* compose_job.h - a composition: the request with the two prepared inputs, the resulting arrays,
 * and the two methods:
 *
 *   compose_search.c   pair by pair, with a hash table of the pairs reached: for sparse results,
 *                      OpenFst's order and failure arcs
 *   compose_rows.c     rows of bits, one bit for each pair of states: for dense results and many
 *                      threads; the canonical order only */
#ifndef WF_FSTOPS_COMPOSE_JOB_H
#define WF_FSTOPS_COMPOSE_JOB_H

#include "base/threads.h"
#include "fstops/compose_lookahead.h"
#include "fstops/compose_side.h"

typedef struct wf__compose_chain wf__compose_chain;

typedef struct wf__compose_job {
  const wf__compose_side *a, *b; /* sorted by the label that is matched */
  wf__compose_chain *left;       /* makes the states of `a`; NULL: they are all there */
  wf__lookahead *lookahead;      /* NULL: dead pairs are made, too */
  int filter;
  bool connect, canonical;
  uint64_t max_states, max_bytes; /* UINT64_MAX: no limit */
  /* wf__compose_search stops without an error if there are more states than this. */
  uint64_t give_up;
  /* 0, unless the sides are lazy (wf__compose_side_init_lazy). Then the search also stops if the
   * visited states have more arcs than this, or if one of them is not sorted. */
  uint64_t max_visited_arcs;
  int32_t num_threads; /* as in wf_compose_options */
  wf__pool *pool;      /* for rows; NULL: only the calling thread */
} wf__compose_job;

typedef struct wf__compose_output {
  wf__csr csr;
  int64_t start; /* -1: no states */
  bool with_origins;
  WF__VEC(wf_arc_origin) origins; /* of each arc: indices of arcs in the sorted inputs */
} wf__compose_output;

/* compose_output.c */
void wf__compose_output_free(wf__compose_output *out);
/* Returns the error of a composition that needs more than max_bytes. */
wf_status wf__compose_too_large(uint64_t bytes, uint64_t max_bytes, wf_error *err);

/* Returns the error of a failure label on the output side of the left fst. */
wf_status wf__compose_phi_output(int32_t phi_label, wf_error *err);

/* `out` is empty on failure, and if the search gave up. */
wf_status wf__compose_search(const wf__compose_job *job, wf__compose_output *out, bool *out_gave_up,
                             wf_error *err);

/* Number of cells in a table of rows of bits, and the size of the table in bytes. Both are
 * UINT64_MAX if the table would be too large for any machine. */
uint64_t wf__compose_rows_cells(const wf__compose_job *job, uint64_t *out_bytes);
/* Sets `*out_fits` to false and does nothing else if there are too many labels for the method. */
wf_status wf__compose_rows(const wf__compose_job *job, wf__compose_output *out, bool *out_fits,
                           wf_error *err);

#endif
