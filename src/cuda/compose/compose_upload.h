/* compose_upload.h - the plans of many pairs as one problem for the kernels, put together in host
 * memory. */
#ifndef WF_CUDA_COMPOSE_COMPOSE_UPLOAD_H
#define WF_CUDA_COMPOSE_COMPOSE_UPLOAD_H

#include "cuda/compose/compose_kernels.h"
#include "fst/fst.h"

/* As the device arrays of wf__gpu_compose, which has their shapes. */
typedef struct wf__gpu_problem {
  WF__VEC(wf__gpu_pair) pairs;
  WF__VEC(wf__gpu_row) rows;
  WF__VEC(uint64_t) link_off, step_off[2], run_off[2], masks, part_word;
  WF__VEC(wf__gpu_link) links;
  WF__VEC(wf__gpu_step) steps[2];
  WF__VEC(wf__gpu_run) runs[2];
  WF__VEC(uint32_t) off, to;
  WF__VEC(wf__gpu_move) moves;
  WF__VEC(wf__gpu_ends) ends;
  WF__VEC(uint64_t) cells;
  WF__VEC(wf__gpu_shift) shifts;
  WF__VEC(wf_arc) a_arcs;
  WF__VEC(float) b_final;
  WF__VEC(wf__gpu_part) parts;
  WF__VEC(uint32_t) heavy[2];
  WF__VEC(wf__gpu_chunk) chunks[2];
  uint64_t num_words, max_pair_words, max_pair_work, max_pair_effort,
      max_pair_rows; /* as in wf__gpu_compose */
  uint32_t max_words, max_row_runs;
  uint32_t most_words;           /* of a row: wider ones do not fit */
  bool no_cells;                 /* there would be too many */
  const wf_fst *last_a, *last_b; /* whose arcs were added last: a shared input is added once */
  uint64_t last_a_base, last_b_final_base;
} wf__gpu_problem;

/* Adds a pair. `*out_fits` is false if it is too large, or has more than `max_cells` pairs of
 * states, `*out_cells` of them (UINT64_MAX: no table can have them): then it is added as one
 * without states. */
wf_status wf__gpu_problem_add(wf__gpu_problem *problem, const wf_fst *a, const wf_fst *b,
                              const wf_compose_options *options, uint64_t max_cells,
                              uint64_t *out_cells, bool *out_fits, wf_error *err);
/* Takes back a pair that did not fit, the last. */
void wf__gpu_problem_drop(wf__gpu_problem *problem);
/* The ends of the offsets, after the last pair. */
wf_status wf__gpu_problem_close(wf__gpu_problem *problem, wf_error *err);
void wf__gpu_problem_free(wf__gpu_problem *problem);

#endif
