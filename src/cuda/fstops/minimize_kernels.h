/* minimize_kernels.h - minimization of fsts in device memory: the data that the host passes to the
 * kernels. Plain C, shared by minimize_gpu.c and minimize_kernels.cu.
 *
 *   costs     distances to the end, by rounds over all states until none decreases. Arcs and final
 *             costs are reweighted with them
 *   names     partition refinement with hashes. A name is 64 bits that the states of a class share:
 *             at first a hash of the bin of the final cost, then in each round a hash of the last
 *             name and of the sum, over the arcs, of the hashes of labels, bin and next state's
 *             name. Sums do not depend on the order of arcs. A state that shares its name with no
 *             other keeps it and is not visited again. A hash table counts names; a round that
 *             splits no class is the last
 *   check     compares each state with the first of its class, arc by arc, since hashes may collide
 *   quotient  one state for each class, in the order of their first states, by prefix sums */
#ifndef WF_CUDA_FSTOPS_MINIMIZE_KERNELS_H
#define WF_CUDA_FSTOPS_MINIMIZE_KERNELS_H

#include "cuda/fstops/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reasons why only the CPU can minimize the batch. */
enum { WF__MIN_DIVERGED = 1, WF__MIN_REPEATED = 2, WF__MIN_MANY_ROUNDS = 4, WF__MIN_DIFFERENT = 8 };
/* Layout of `counts`: three entries each for values of running rounds, then single ones. */
enum {
  WF__MIN_FELL = 0,
  WF__MIN_LISTED = 3,
  WF__MIN_CLAIMED = 6,
  WF__MIN_UNSORTED = 9,
  WF__MIN_TROUBLE,
  WF__MIN_COUNTS
};

/* Pointers are to device memory. */
typedef struct wf__gpu_minimization {
  wf__gpu_fsts f; /* trimmed, so every fst with states has a start */
  double inverse_delta;
  int push;          /* costs are pushed; otherwise two arcs of a state may have the same labels and
                        different costs */
  double *distance;  /* [num_states] distance to the end, if costs are pushed */
  wf_arc *arcs;      /* [num_arcs] arcs with pushed costs */
  float *final_cost; /* [num_states] pushed final costs */
  uint32_t *unsorted;  /* [num_states] 1: input labels of the arcs are not strictly ascending */
  uint32_t *counts;    /* [WF__MIN_COUNTS], 0 at first */
  uint64_t *name[2];   /* [num_states] names of this round and of the previous one */
  uint32_t *slot[2];   /* [num_states] slot of the name */
  uint32_t *list[2];   /* [num_states] list of states that share their names */
  uint64_t *names[2];  /* [num_slots] hash tables; 0: free */
  uint32_t *shared[2]; /* [num_slots] more than one state has the name; 0 at first, like `names` */
  uint64_t num_slots;  /* a power of two, more than num_states */
  uint32_t *first_of;  /* [num_states] the first state of the class */
  uint64_t *place;   /* [num_states + 1] for first states: number in the result << 32 | first arc */
  uint32_t *entered; /* [num_fsts] 1: an arc leads to the start; 0 at first */
} wf__gpu_minimization;

/* All return a cudaError_t; `stream` is a cudaStream_t. */
int wf__minimize_distances(const wf__gpu_minimization *m, void *stream);
int wf__minimize_push(const wf__gpu_minimization *m, void *stream);
/* Looks for two arcs of a state with the same labels and, if costs are not pushed, the same cost
 * bin. slots [num_slots]: 0 at first, a power of two above the number of arcs. */
int wf__minimize_determinism(const wf__gpu_minimization *m, uint32_t *slots, uint64_t num_slots,
                             void *stream);
/* Finds and checks the classes. */
int wf__minimize_classes(const wf__gpu_minimization *m, void *stream);
/* Sets `place` to 1 << 32 | number of arcs for first states, else 0. Its prefix sums give positions
 * in the result. */
int wf__minimize_sizes(const wf__gpu_minimization *m, void *stream);
int wf__minimize_write(const wf__gpu_minimization *m, uint64_t *state_base, int64_t *start,
                       uint64_t *off, float *final_cost, wf_arc *arcs, void *stream);

#ifdef __cplusplus
}
#endif
#endif
