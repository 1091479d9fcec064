/* compose_upload.h - builds one problem for the kernels from the plans of many pairs, in host
 * memory. */
#ifndef WF_CUDA_COMPOSE_COMPOSE_UPLOAD_H
#define WF_CUDA_COMPOSE_COMPOSE_UPLOAD_H

#include "cuda/compose/compose_kernels.h"
#include "fst/fst.h"

/* The arrays have the shapes of the device arrays of wf__gpu_compose. */
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
  uint32_t most_words;           /* widest row that fits into shared memory */
  bool no_cells;                 /* there would be too many cells */
  const wf_fst *last_a, *last_b; /* inputs added last: a shared input is added once */
  uint64_t last_a_base, last_b_final_base;
} wf__gpu_problem;

/* Adds a pair. *out_cells is the number of its pairs of states (UINT64_MAX: too many for any
 * table). *out_fits is false if that exceeds `max_cells` or the pair is otherwise too large; then
 * it is added as a pair without states. */
wf_status wf__gpu_problem_add(wf__gpu_problem *problem, const wf_fst *a, const wf_fst *b,
                              const wf_compose_options *options, uint64_t max_cells,
                              uint64_t *out_cells, bool *out_fits, wf_error *err);
/* Removes the last pair, which did not fit. */
void wf__gpu_problem_drop(wf__gpu_problem *problem);
/* Appends the ends of the offset arrays. Call it after the last pair. */
wf_status wf__gpu_problem_close(wf__gpu_problem *problem, wf_error *err);
void wf__gpu_problem_free(wf__gpu_problem *problem);

#endif
