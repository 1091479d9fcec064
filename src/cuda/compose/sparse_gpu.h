/* sparse_gpu.h - composition of one pair of fsts on a GPU, with a hash table of the reached pairs
 * of states. For inputs whose table of all pairs would be too large. */
#ifndef WF_CUDA_COMPOSE_SPARSE_GPU_H
#define WF_CUDA_COMPOSE_SPARSE_GPU_H

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
void wf__sparse_free(wf__sparse *sparse);
/* Finds out whether more than `give_up` pairs are reached. */
wf_status wf__sparse_search(const wf__sparse *sparse, uint64_t give_up, bool *out_gave_up,
                            wf_error *err);
/* Composes into a batch of one fst, in canonical order. `counts` may be NULL. */
wf_status wf__sparse_run(const wf__sparse *sparse, const wf_compose_options *options,
                         bool with_origins, wf__gpu_batch **out, wf__sparse_counts *counts,
                         wf_error *err);

#endif
