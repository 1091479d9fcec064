/* graph_kernels.h - the kernels of the last steps of graph building: labels to epsilon, order of
 * discovery, self-loops. Plain C, shared by graph_gpu.c and graph_kernels.cu. The batch has one
 * fst. */
#ifndef WF_CUDA_FSTOPS_GRAPH_KERNELS_H
#define WF_CUDA_FSTOPS_GRAPH_KERNELS_H

#include "cuda/fstops/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All return a cudaError_t; `stream` is a cudaStream_t. Pointers are to device memory. */

/* Copies the arcs, with epsilon in place of input labels from `first` on. */
int wf__graph_clear_labels(const wf_arc *arcs, uint64_t num_arcs, int32_t first, wf_arc *out,
                           void *stream);

/* A breadth-first search, level by level. An item is an arc of a level's states, in their order. A
 * state gets the next number when the first item leads to it. */
typedef struct wf__gpu_discovery {
  wf__gpu_fsts f;
  uint32_t *number;   /* [num_states] all bits 1: not found yet */
  uint32_t *order;    /* [num_states] the states in their order; a level is order[begin .. end) */
  uint32_t *found_at; /* [num_states] the first item of a level that leads to the state; begins with
                         all bits 1 */
  uint64_t *item_off; /* [num_states + 1] prefix sums of the level's numbers of items */
  uint32_t *flags, *ranks; /* [num_arcs + 1] */
  uint64_t begin, end, num_items;
} wf__gpu_discovery;
/* begin: the start gets number 0. count: item_off. find: found_at. mark: the flags of items that
 * lead to a new state. number, with the prefix sums `ranks`: numbers the new states. */
int wf__discovery_begin(const wf__gpu_discovery *d, void *stream);
int wf__discovery_count(const wf__gpu_discovery *d, void *stream);
int wf__discovery_find(const wf__gpu_discovery *d, void *stream);
int wf__discovery_mark(const wf__gpu_discovery *d, void *stream);
int wf__discovery_number(const wf__gpu_discovery *d, void *stream);
/* degrees: off = out-degrees in the new order [num_states + 1]. write, with their prefix sums: the
 * arrays of the result. */
int wf__discovery_degrees(const wf__gpu_discovery *d, uint64_t *off, void *stream);
int wf__discovery_write(const wf__gpu_discovery *d, const uint32_t *source, const uint64_t *off,
                        wf_arc *arcs, float *final_cost, void *stream);

/* Self-loops. The class of a state is the loop of all labels that enter it, 0 or MIXED. An arc into
 * a mixed state whose label has a loop goes to a copy of that state, which is numbered by its first
 * arc. */
#define WF__LOOP_MIXED 0xffffffffu
typedef struct wf__gpu_loops {
  wf__gpu_fsts f;
  uint64_t num_labels;
  const int32_t *loop;                   /* as in wf__loop_table */
  const float *loop_cost, *forward_cost; /* as in wf__loop_table */
  uint32_t *low, *high;      /* [num_states] least and largest loop that enters; begin with all bits
                                1, and with 0 */
  uint32_t *has_loop;        /* [num_states + 1] 1 if the state keeps a loop; the last is 0 */
  uint32_t *loops_before;    /* [num_states + 1] prefix sums of has_loop */
  uint32_t *goes, *place;    /* [num_arcs + 1] 1 if the arc goes to a copy, and prefix sums */
  uint64_t num_goers;        /* arcs that go to copies */
  uint64_t *keys, *sorted;   /* [num_goers] state << 32 | loop */
  uint32_t *arc, *by_key;    /* [num_goers] */
  uint32_t *is_first, *copy; /* [num_arcs + 1] 1 for the first arc of a copy; prefix sums of that */
  uint32_t *target;          /* [num_arcs] copy of an arc that goes to one */
  uint64_t num_copies;
  uint64_t *copy_key; /* [num_copies] */
  uint32_t *trouble;  /* 1: a label is out of range */
} wf__gpu_loops;
/* classes: low, high. marks: has_loop, goes. list, with prefix sums: keys, arc. firsts, once these
 * are sorted: is_first, which must be 0. copies, with prefix sums: target, copy_key. */
int wf__loops_classes(const wf__gpu_loops *l, void *stream);
int wf__loops_marks(const wf__gpu_loops *l, void *stream);
int wf__loops_list(const wf__gpu_loops *l, void *stream);
int wf__loops_firsts(const wf__gpu_loops *l, void *stream);
int wf__loops_copies(const wf__gpu_loops *l, void *stream);
int wf__loops_write(const wf__gpu_loops *l, const uint32_t *source, uint64_t *off, wf_arc *arcs,
                    float *final_cost, void *stream);

#ifdef __cplusplus
}
#endif
#endif
