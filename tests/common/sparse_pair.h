/* sparse_pair.h - composes one pair on a GPU with the hash table of pairs, for any size. */
#ifndef TESTS_SPARSE_PAIR_H
#define TESTS_SPARSE_PAIR_H

#include "cuda/compose/sparse_gpu.h"

static inline wf_status compose_sides(const wf_fst *a, const wf_fst *b, const wf__compose_job *job,
                                      const wf_compose_options *options, wf__gpu_batch **out,
                                      wf_error *err) {
  wf__sparse *sparse;
  wf__sparse_counts counts;
  WF__TRY(wf__sparse_create(job, a, b, 0, &sparse, err));
  wf_status status = wf__sparse_run(sparse, options, true, out, &counts, err);
  wf__sparse_free(sparse);
  return status;
}

static inline wf_status compose_sparsely(const wf_fst *a, const wf_fst *b,
                                         const wf_compose_options *options, wf__gpu_batch **out,
                                         wf_error *err) {
  wf__compose_side a_side = {0}, b_side = {0};
  wf__compose_job job = {.a = &a_side,
                         .b = &b_side,
                         .filter = options->filter,
                         .connect = options->connect,
                         .canonical = true};
  *out = NULL;
  wf_status status = wf__compose_side_init(&a_side, a, true, err);
  if (status == WF_OK) status = wf__compose_side_init(&b_side, b, false, err);
  if (status == WF_OK) status = compose_sides(a, b, &job, options, out, err);
  wf__compose_side_free(&a_side);
  wf__compose_side_free(&b_side);
  return status;
}

#endif
