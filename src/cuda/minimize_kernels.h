/* minimize_kernels.h - rounds of partition refinement on a GPU: what the host hands to the kernels. Plain C, shared by minimize_gpu.c and minimize_kernels.cu.
 *
 * In a round the states of a class whose arcs differ (labels, costs in bins, classes they lead to) part. Every arc adds a hash to the sum of its state: sums do
 * not depend on any order. States sorted by these sums (and their class) have their new classes side by side. */
#ifndef WF_CUDA_MINIMIZE_KERNELS_H
#define WF_CUDA_MINIMIZE_KERNELS_H

#include "cuda/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device memory. */
typedef struct wf__gpu_partition {
  wf__gpu_fsts f;
  double inverse_delta;
  uint32_t *source;       /* [num_arcs] */
  uint64_t *arc_hash;     /* [num_arcs] of labels and bin */
  uint64_t *sums;         /* [num_states] */
  uint64_t *sorted;       /* [num_states] sums in order */
  uint32_t *states;       /* [num_states] 0, 1, ... */
  uint32_t *order;        /* [num_states] states by their sums, ties by number */
  uint32_t *flags, *rank; /* [num_states + 1] */
  uint32_t *class_of;     /* [num_states] */
} wf__gpu_partition;

/* All return a cudaError_t; `stream` is a cudaStream_t. With scratch NULL a call sets *scratch_bytes and does nothing else. */
/* Stable sort of values by keys of 64 bits. */
int wf__minimize_sort(const uint64_t *keys, uint64_t *keys_out, const uint32_t *values, uint32_t *values_out, uint64_t count, void *scratch, size_t *scratch_bytes, void *stream);
/* Hashes of arcs; sums that part states by their final costs. */
int wf__minimize_begin(const wf__gpu_partition *p, void *stream);
/* Sums of the next round. */
int wf__minimize_sums(const wf__gpu_partition *p, void *stream);
/* flags[i]: the i-th of the order begins a class, [num_states + 1], the last 0; with rank, their sums, new classes. */
int wf__minimize_flags(const wf__gpu_partition *p, void *stream);
int wf__minimize_assign(const wf__gpu_partition *p, void *stream);
/* Numbers classes by their first states: flags of those, whose sums are `rank`; then the new numbers, which need `sums` for room. */
int wf__minimize_firsts(const wf__gpu_partition *p, void *stream);
int wf__minimize_renumber(const wf__gpu_partition *p, void *stream);

#ifdef __cplusplus
}
#endif
#endif
