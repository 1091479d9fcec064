/* epsilon_kernels.h - kernels that put the arcs with input epsilon of each state last, and count
 * the ways along them. Plain C, shared by epsilons_gpu.c and epsilon_kernels.cu.
 *
 * A way of a state is a path of input epsilons, which may be empty, and then an arc with an input
 * label, or the end if the path leads to a final state. The ways of a state are numbered: its
 * labelled arcs, its end, then the ways of the targets of its epsilons, arc by arc. */
#ifndef WF_CUDA_FSTOPS_EPSILON_KERNELS_H
#define WF_CUDA_FSTOPS_EPSILON_KERNELS_H

#include "cuda/fstops/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pointers are to device memory. */
typedef struct wf__gpu_ways {
  const wf_arc *arcs;       /* [num_arcs] each state's labelled arcs, then its epsilons */
  const uint32_t *labelled; /* [num_states] number of labelled arcs; NULL: epsilons are labels */
  const uint64_t *count;    /* [num_states] ways */
  const uint64_t *before;   /* [num_arcs + 1] prefix sums of the ways of epsilons' targets */
} wf__gpu_ways;

enum { WF__WAYS_CHANGED, WF__WAYS_MANY, WF__WAYS_FLAGS };
#define WF__MOST_WAYS ((uint64_t)1 << 31)

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* out[i] = 1 if arc i has input epsilon [num_arcs + 1], the last 0. */
int wf__epsilon_marks(const wf__gpu_fsts *f, uint32_t *out, void *stream);
/* Writes the arcs with each state's epsilons last, otherwise in the same order. rank [num_arcs +
 * 1]: prefix sums of the marks; source: the state of each arc. labelled may be NULL. */
int wf__epsilons_last(const wf__gpu_fsts *f, const uint32_t *source, const uint32_t *rank,
                      wf_arc *arcs, uint32_t *labelled, void *stream);
/* begin: counts the ways without epsilons. offers: before[i] = the ways of arc i's target if it is
 * an epsilon, else 0. sums: with the prefix sums of these, counts the ways once more; flags
 * [WF__WAYS_FLAGS], which must be 0, tell whether a count changed or is too large. */
int wf__epsilon_begin(const wf__gpu_fsts *f, const uint32_t *labelled, uint64_t *count,
                      void *stream);
int wf__epsilon_offers(const wf__gpu_fsts *f, const wf_arc *arcs, const uint64_t *count,
                       uint64_t *before, void *stream);
int wf__epsilon_sums(const wf__gpu_fsts *f, const uint32_t *labelled, const uint64_t *before,
                     uint64_t *count, uint32_t *flags, void *stream);

#ifdef __cplusplus
}
#endif
#endif
