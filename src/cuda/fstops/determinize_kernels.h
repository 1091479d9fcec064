/* determinize_kernels.h - determinization on a GPU, level by level of subsets: what the host hands
 * to the kernels. Plain C, shared by determinize_gpu.c, determinize_kernels.cu (levels) and
 * determinize_result.cu (the arrays of the result).
 *
 * A level is a run of subsets in the order of their discovery. Its items are the arcs of the states
 * in them, sorted by (subset, input label, next state):
 *
 *   item   an arc of a state of a subset      equal keys: one stays, as an
 *   part   element of what may be a subset    equal (subset, label): one
 *   arc    of the result                      which leads to a subset, known, or new if it is the
 *          first of its kind
 *
 * Residual outputs are strings as fstops/string_pool.h has them: 0 the empty one; WF__DET_ONE |
 * label; else 1 + a cell of a hash table, which holds the last label and the string before it.
 * Where a cell lies depends on who came first, but equal strings have equal numbers, and nothing
 * else is asked of them. */
#ifndef WF_CUDA_FSTOPS_DETERMINIZE_KERNELS_H
#define WF_CUDA_FSTOPS_DETERMINIZE_KERNELS_H

#include "cuda/fstops/ops_kernels.h"
#include "fstops/determinize_limit.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WF__DET_ONE 0x80000000u
#define WF__DET_CHAIN \
  0x80000000u /* in next states before they are numbered: the rest is a slot of the chains */
enum { WF__DET_MOST_LABELS = 255 };

/* What kernels find: an output too far behind, two outputs of one input, more states than wanted;
 * the table of strings is full; arcs or final costs of infinite cost were left out. */
enum {
  WF__DET_LONG_STRING = 1,
  WF__DET_TWO_OUTPUTS = 2,
  WF__DET_MANY_STATES = 4,
  WF__DET_FULL_STRINGS = 8,
  WF__DET_DROPPED = 16
};

/* Everything but the numbers is device memory. Subsets are numbered by discovery; arcs lie by
 * subset. */
typedef struct wf__gpu_subsets {
  wf__gpu_fsts f;
  double inverse_delta;
  int allow_nonfunctional;
  uint64_t max_states; /* of an fst's; 0: wf__determinize_limit's default */
  uint64_t *off;       /* [room_subsets + 1] elements */
  uint64_t *hash;      /* [room_subsets] */
  uint32_t *owner;     /* [room_elements] subset */
  uint32_t *state;     /* [room_elements] */
  float *cost;
  uint32_t *string;
  uint64_t
      *slots; /* [num_slots], a power of two: a subset; NEW | arc of the level; all bits 1: free */
  uint64_t num_slots;
  uint64_t *final_key;     /* [room_subsets] ordered cost */
  uint64_t *final_element; /* [room_subsets] the first that has it */
  uint64_t *arc_off;       /* [room_subsets + 1] */
  wf_arc *arcs;            /* [room_arcs]; olabel: a string */
  uint32_t *arc_owner;     /* [room_arcs] */
  uint64_t *cells;         /* [num_cells], a power of two: string << 32 | label; 0: free */
  uint32_t *cell_size;     /* [num_cells] labels */
  uint64_t num_cells;
  uint32_t *num_of_fst; /* [num_fsts] subsets, where there are several fsts */
  uint32_t *trouble;
} wf__gpu_subsets;

typedef struct wf__gpu_det_level {
  uint64_t first_subset, num_subsets, first_element, num_elements, num_items, num_parts, num_arcs,
      first_arc;
  int label_bits, state_bits, key_bits; /* the highest bit of a key: infinite cost */
  uint64_t *item_off;                   /* [num_elements + 1] */
  uint64_t *keys, *sorted;              /* [num_items] */
  uint32_t *index, *by_key;             /* [num_items] */
  double *item_cost;                    /* [num_items] */
  uint32_t *item_string;
  uint64_t *ranks;                 /* [num_items + 1] flags, then sums: parts << 32 | arcs */
  uint32_t *part_arc, *part_state; /* [num_parts] */
  double *part_cost;
  uint32_t *part_string;
  uint64_t *arc_part; /* [num_arcs + 1] first part */
  uint64_t *total;    /* [num_arcs] ordered cost */
  uint32_t *common;   /* [num_arcs] labels of the common prefix */
  uint32_t *output;   /* [num_arcs] the common prefix */
  uint64_t *arc_hash; /* [num_arcs] */
  uint64_t *arc_slot; /* [num_arcs] */
  uint64_t *fresh;    /* [num_arcs + 1] flags, then sums: elements << 32 | subsets */
  uint32_t *is_new;   /* [num_arcs] */
} wf__gpu_det_level;

/* The result: subsets of each fst together, in order; behind them a sink, if outputs are owed at
 * ends, and the states of chains, which spell outputs of several labels. A chain's state is known
 * by its label and what comes after it; it is numbered by the arc that needs it first. */
typedef struct wf__gpu_det_result {
  uint64_t num_subsets, num_arcs, num_nodes; /* num_arcs: before chains, owed outputs included */
  int32_t subsequential_label;
  uint32_t *fst, *by_fst, *order,
      *rank; /* [num_subsets] fsts by subset, and in the order of the result; subsets in that order;
                places of subsets in it */
  uint32_t *owed;                  /* [num_subsets] 1: the subset's end owes an output */
  uint32_t *sink;                  /* [num_fsts] 1: some subset's does */
  uint64_t *base;                  /* [num_fsts + 1] first subset of each, in order */
  uint64_t *sink_base, *node_base; /* [num_fsts + 1] sinks, and chain states, of the fsts before */
  uint64_t *arc_off;               /* [num_subsets + 1] degrees, then their sums */
  wf_arc *arcs; /* [num_arcs] olabel: a string; nextstate: counted with sinks, without chains, or
                   CHAIN | slot */
  uint64_t *num_spelled;      /* labels after the first of all arcs' outputs */
  uint64_t *slots, num_slots; /* a power of two: what comes after << 32 | label; 0: free */
  uint64_t *tag;        /* [num_slots] arc << 8 | place in its chain, the least; all bits 1: free */
  int32_t *slot_ilabel; /* [num_slots] */
  uint32_t *used, *used_rank;        /* [num_slots + 1] */
  uint64_t *node_tag, *tag_sorted;   /* [num_nodes] */
  uint32_t *node_slot, *slot_sorted; /* [num_nodes] */
  uint32_t *slot_node;               /* [num_slots] */
  uint32_t *num_of_fst;              /* [num_fsts] chain states */
} wf__gpu_det_result;

/* All return a cudaError_t; `stream` is a cudaStream_t. With scratch NULL a call sets
 * *scratch_bytes and does nothing else. */
int wf__determinize_sort(const uint64_t *keys, uint64_t *keys_out, const uint32_t *values,
                         uint32_t *values_out, uint64_t count, int key_bits, void *scratch,
                         size_t *scratch_bytes, void *stream);
/* out [2], 0 at first: the bits that any input label has; 1 if one is epsilon. */
int wf__determinize_labels(const wf__gpu_fsts *f, uint32_t *out, void *stream);
/* The subsets of the starts. */
int wf__determinize_begin(const wf__gpu_subsets *s, uint64_t room_subsets, const uint32_t *starts,
                          uint64_t num_starts, void *stream);
/* Items of each element, [num_elements + 1], and final costs. */
int wf__determinize_count(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Items, and final_element; of sorted items what is equal, and whether ends agree. */
int wf__determinize_items(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
int wf__determinize_flags(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Parts with their residuals, and the hashes of arcs' subsets. */
int wf__determinize_parts(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Finds each arc's subset, or makes the first arc of its kind the one that brings it in. */
int wf__determinize_find(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* New subsets from `num_known` on, whose elements lie from `elements` on; the arcs of the result.
 */
int wf__determinize_store(const wf__gpu_subsets *s, const wf__gpu_det_level *level,
                          uint64_t num_known, uint64_t elements, void *stream);

/* fst, order, owed, sink. Then, with bases: rank and degrees; with the degrees' sums: arcs,
 * num_spelled. */
int wf__determinize_owed(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_degrees(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_place(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
/* Chains into their table, `used` with an end; with its sums: node_tag and node_slot; once these
 * are sorted: slot_node and num_of_fst. */
int wf__determinize_chains(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_nodes(const wf__gpu_det_result *r, void *stream);
int wf__determinize_number(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_write(const wf__gpu_subsets *s, const wf__gpu_det_result *r, uint64_t *off,
                          float *final_cost, wf_arc *arcs, void *stream);

#ifdef __cplusplus
}
#endif
#endif
