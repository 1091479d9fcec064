/* determinize_kernels.h - determinization on a GPU, level by level of subsets: what the host hands to the kernels. Plain C, shared by determinize_gpu.c and determinize_kernels.cu.
 *
 * A level is all subsets that the last one has found. Its items are the arcs of the states in them, sorted by (subset, input label, next state):
 *
 *   item   an arc of a state of a subset      equal keys: the best stays, as an
 *   part   element of what may be a subset    equal (subset, label): one
 *   arc    of the result                      which leads to a subset, known, or new if it is the first of its kind
 *
 * Residual outputs are strings of up to three labels of 21 bits, the first in the lowest. What does not fit, and what the CPU would refuse or spell out in states of its own, raises `trouble`. */
#ifndef WF_CUDA_DETERMINIZE_KERNELS_H
#define WF_CUDA_DETERMINIZE_KERNELS_H

#include "cuda/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF__DET_LABEL_BITS = 21, WF__DET_MOST_LABELS = 3 };
enum { WF__DET_LONG_STRING = 1, WF__DET_TWO_OUTPUTS = 2, WF__DET_FINAL_STRING = 4, WF__DET_INFINITE = 8, WF__DET_LONG_LABEL = 16 };

/* Everything is device memory. Subsets are numbered by discovery; arcs lie by subset. */
typedef struct wf__gpu_subsets {
  wf__gpu_fsts f;
  double inverse_delta;
  uint64_t *off;       /* [room_subsets + 1] elements */
  uint64_t *hash;      /* [room_subsets] */
  uint32_t *owner;     /* [room_elements] subset */
  uint32_t *state;     /* [room_elements] */
  float *cost;
  uint64_t *string;
  uint64_t *slots;     /* [num_slots], a power of two: a subset; NEW | arc of the level; all bits 1: free */
  uint64_t num_slots;
  uint64_t *final_key; /* [room_subsets] ordered cost */
  uint64_t *arc_off;   /* [room_subsets + 1] */
  wf_arc *arcs;        /* [room_arcs] */
  uint32_t *trouble;
} wf__gpu_subsets;

typedef struct wf__gpu_det_level {
  uint64_t first_subset, num_subsets, first_element, num_elements, num_items, num_parts, num_arcs, first_arc;
  int label_bits, state_bits;
  uint64_t *item_off;           /* [num_elements + 1] */
  uint64_t *keys, *sorted;      /* [num_items] */
  uint32_t *index, *by_key;     /* [num_items] */
  double *item_cost;            /* [num_items] */
  uint64_t *item_string;
  uint64_t *ranks;              /* [num_items + 1] flags, then sums: parts << 32 | arcs */
  uint32_t *part_arc, *part_state; /* [num_parts] */
  double *part_cost;
  uint64_t *part_string;
  uint64_t *arc_part;           /* [num_arcs + 1] first part */
  uint64_t *total;              /* [num_arcs] ordered cost */
  uint32_t *common;             /* [num_arcs] labels of the common prefix */
  uint64_t *arc_hash;           /* [num_arcs] */
  uint64_t *arc_slot;           /* [num_arcs] */
  uint64_t *fresh;              /* [num_arcs + 1] flags, then sums: elements << 32 | subsets */
  uint32_t *is_new;             /* [num_arcs] */
} wf__gpu_det_level;

/* All return a cudaError_t; `stream` is a cudaStream_t. With scratch NULL a call sets *scratch_bytes and does nothing else. */
int wf__determinize_sort(const uint64_t *keys, uint64_t *keys_out, const uint32_t *values, uint32_t *values_out, uint64_t count, int key_bits, void *scratch, size_t *scratch_bytes, void *stream);
/* *out, 0 at first: the bits that any input label has. */
int wf__determinize_label_bits(const wf__gpu_fsts *f, uint32_t *out, void *stream);
/* The subset of the start. */
int wf__determinize_begin(const wf__gpu_subsets *s, uint64_t room_subsets, uint32_t start, void *stream);
/* Items of each element, [num_elements + 1], and final costs. */
int wf__determinize_count(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
int wf__determinize_items(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
int wf__determinize_flags(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Parts with their residuals, and the hashes of arcs' subsets. */
int wf__determinize_parts(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Finds each arc's subset, or makes the first arc of its kind the one that brings it in. */
int wf__determinize_find(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* New subsets from `num_known` on, whose elements lie from `elements` on; the arcs of the result. */
int wf__determinize_store(const wf__gpu_subsets *s, const wf__gpu_det_level *level, uint64_t num_known, uint64_t elements, void *stream);
int wf__determinize_finals(const wf__gpu_subsets *s, uint64_t num_subsets, float *final_cost, void *stream);

#ifdef __cplusplus
}
#endif
#endif
