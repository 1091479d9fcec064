/* minimize_kernels.h - minimization of fsts that lie on a GPU: what the host hands to the kernels.
 * Plain C, shared by minimize_gpu.c and minimize_kernels.cu.
 *
 *   costs     distances to the end, by rounds over all states until none falls; arcs and final
 *             costs are moved by them
 *   names     64 bits that the states of a class share: at first a hash of the final cost's bin,
 *             then in each round a hash of the name before and of the sum over the arcs of hashes
 *             of labels, bin, and next state's name; sums do not depend on any order. A state that
 *             shares its name with no other keeps it and is not looked at again. A hash table
 *             counts names; a round that parts no class is the last
 *   check     each state against the first of its class, arc by arc: names are only hashes
 *   quotient  one state a class, in the order of their first states: prefix sums */
#ifndef WF_CUDA_FSTOPS_MINIMIZE_KERNELS_H
#define WF_CUDA_FSTOPS_MINIMIZE_KERNELS_H

#include "cuda/fstops/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why only the CPU can go on. */
enum { WF__MIN_DIVERGED = 1, WF__MIN_REPEATED = 2, WF__MIN_MANY_ROUNDS = 4, WF__MIN_DIFFERENT = 8 };
/* What is in `counts`: three of each of the running rounds, then one of each. */
enum {
  WF__MIN_FELL = 0,
  WF__MIN_LISTED = 3,
  WF__MIN_CLAIMED = 6,
  WF__MIN_UNSORTED = 9,
  WF__MIN_TROUBLE,
  WF__MIN_COUNTS
};

/* Device memory. */
typedef struct wf__gpu_minimization {
  wf__gpu_fsts f; /* trimmed: every fst that has states has a start */
  double inverse_delta;
  int push; /* costs are pushed; else two arcs of a state may have the same labels, with different
               costs */
  double *distance;    /* [num_states] to the end, where costs are pushed */
  wf_arc *arcs;        /* [num_arcs] pushed */
  float *final_cost;   /* [num_states] pushed */
  uint32_t *unsorted;  /* [num_states] arcs are not in the order of different input labels */
  uint32_t *counts;    /* [WF__MIN_COUNTS], 0 at first */
  uint64_t *name[2];   /* [num_states] in this round and the one before */
  uint32_t *slot[2];   /* [num_states] of the name */
  uint32_t *list[2];   /* [num_states] states that share their names */
  uint64_t *names[2];  /* [num_slots] hash tables; 0: free */
  uint32_t *shared[2]; /* [num_slots] more than one state has the name; 0 at first, as the names */
  uint64_t num_slots;  /* a power of two, more than num_states */
  uint32_t *first_of;  /* [num_states] the first state of the class */
  uint64_t *place;   /* [num_states + 1] number in the result << 32 | where its arcs begin, of first
                        states */
  uint32_t *entered; /* [num_fsts] an arc leads to the start; 0 at first */
} wf__gpu_minimization;

/* All return a cudaError_t; `stream` is a cudaStream_t. */
int wf__minimize_distances(const wf__gpu_minimization *m, void *stream);
int wf__minimize_push(const wf__gpu_minimization *m, void *stream);
/* Are there two arcs of a state that must differ and do not? slots [num_slots], 0 at first, a power
 * of two above the number of arcs. */
int wf__minimize_determinism(const wf__gpu_minimization *m, uint32_t *slots, uint64_t num_slots,
                             void *stream);
/* Classes, checked. */
int wf__minimize_classes(const wf__gpu_minimization *m, void *stream);
/* States and arcs of the result, for sums: 1 << 32 | arcs for first states. */
int wf__minimize_sizes(const wf__gpu_minimization *m, void *stream);
int wf__minimize_write(const wf__gpu_minimization *m, uint64_t *state_base, int64_t *start,
                       uint64_t *off, float *final_cost, wf_arc *arcs, void *stream);

#ifdef __cplusplus
}
#endif
#endif
