/* sparse_gpu.h - composition of one pair of fsts on a GPU, with a hash table of the reached pairs
 * of states. For inputs whose table of all pairs would be too large. */
#ifndef WF_CUDA_COMPOSE_SPARSE_GPU_H
#define WF_CUDA_COMPOSE_SPARSE_GPU_H

#include "cuda/compose/sparse_search.h"
#include "fstops/compose_job.h"
#include "fstops/device_batch.h"

/* The inputs of a composition in device memory. */
typedef struct wf__sparse wf__sparse;

typedef struct wf__sparse_counts {
  uint64_t num_pairs, num_levels, num_items; /* pairs reached; levels of the breadth-first search;
                                                items of the fill */
} wf__sparse_counts;

/* `job` has the sorted inputs and the options. `a` and `b` are the inputs as given, needed for
 * origins. */
wf_status wf__sparse_create(const wf__compose_job *job, const wf_fst *a, const wf_fst *b,
                            int device, wf__sparse **out, wf_error *err);
/* The same in the memory of `context`. If job->a is NULL, `left` makes the states of A; it becomes
 * the composition's, also on failure. */
wf_status wf__sparse_create_on(wf__gpu_context *context, const wf__compose_job *job,
                               const wf_fst *a, const wf_fst *b, wf__sparse_left *left,
                               wf__sparse **out, wf_error *err);
/* Accepts NULL. */
void wf__sparse_free(wf__sparse *sparse);
/* A search of the composition, which borrows its inputs. */
wf__sparse_search wf__sparse_search_of(const wf__sparse *sparse, const wf_compose_options *options);
/* Finds out whether more than `give_up` pairs are reached. */
wf_status wf__sparse_reaches_more(const wf__sparse *sparse, uint64_t give_up, bool *out_gave_up,
                                  wf_error *err);
/* Composes into a batch of one fst, in canonical order. `counts` may be NULL. */
wf_status wf__sparse_run(const wf__sparse *sparse, const wf_compose_options *options,
                         bool with_origins, wf__gpu_batch **out, wf__sparse_counts *counts,
                         wf_error *err);

/* wf__device_fstops.compose */
wf_status wf__gpu_batch_compose(const wf_fst *a, const wf__gpu_batch *b,
                                const wf_compose_options *o, wf__gpu_batch **out, wf_error *err);

#endif
