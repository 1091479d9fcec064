/* determinize_kernels.h - determinization on a GPU, level by level of subsets: the data that the
 * host passes to the kernels. Plain C, shared by determinize_gpu.c, determinize_kernels.cu (levels)
 * and determinize_result.cu (the arrays of the result).
 *
 * A level is a range of subsets in the order of their discovery. Its items are the arcs of their
 * states, sorted by (subset, input label, next state):
 *
 *   item   an arc of a state of a subset; if epsilons are followed, a way of it
 *          (epsilon_kernels.h). Items with equal keys are merged into one part
 *   part   an element of a candidate subset. The parts with equal (subset, label) form one arc
 *   arc    an arc of the result. It leads to a subset that is known, or new if no earlier arc leads
 *          to an equal one
 *
 * Residual outputs are strings as in fstops/string_pool.h: 0 is the empty string; WF__DET_ONE |
 * label is a string of one label; otherwise 1 + the index of a cell of a hash table, which has the
 * last label and the string before it. The index of a cell depends on the order of threads. That
 * does no harm: equal strings have equal numbers, and the numbers are used for nothing else. */
#ifndef WF_CUDA_FSTOPS_DETERMINIZE_KERNELS_H
#define WF_CUDA_FSTOPS_DETERMINIZE_KERNELS_H

#include "cuda/fstops/epsilon_kernels.h"
#include "fstops/determinize_limit.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WF__DET_ONE 0x80000000u
#define WF__DET_CHAIN \
  0x80000000u /* in nextstate before numbering: the other bits are a slot of the chain table */
enum { WF__DET_MOST_LABELS = 255 };

/* Bits that kernels set in `trouble`: an output is delayed by too many labels; an input has two
 * outputs; there are more states than allowed; the table of strings is full; arcs or final costs of
 * infinite cost were dropped; ways along epsilons with different outputs have the same cost, and
 * the CPU's order would decide between them; an epsilon has infinite cost. */
enum {
  WF__DET_LONG_STRING = 1,
  WF__DET_TWO_OUTPUTS = 2,
  WF__DET_MANY_STATES = 4,
  WF__DET_FULL_STRINGS = 8,
  WF__DET_DROPPED = 16,
  WF__DET_TIE = 32,
  WF__DET_LOST_EPSILON = 64
};

/* Pointers are to device memory. Subsets are numbered by discovery; arcs are ordered by subset. */
typedef struct wf__gpu_subsets {
  wf__gpu_fsts f;
  wf__gpu_ways ways; /* ways.count NULL: epsilons are labels like others */
  double inverse_delta;
  int allow_nonfunctional;
  uint64_t max_states; /* limit for one fst; 0: the default of wf__determinize_limit */
  uint64_t *off;       /* [room_subsets + 1] first element */
  uint64_t *hash;      /* [room_subsets] */
  uint32_t *owner;     /* [room_elements] subset */
  uint32_t *state;     /* [room_elements] */
  float *cost;
  uint32_t *string;
  uint64_t *slots; /* [num_slots], a power of two: a subset, or NEW | arc of this level; all bits 1:
                      free */
  uint64_t num_slots;
  uint64_t *final_key;     /* [room_subsets] least final cost, as an ordered integer */
  uint64_t *final_element; /* [room_subsets] the first element with this cost; if epsilons are
                              followed, the first item of its level */
  uint32_t *final_string;  /* [room_subsets] only if epsilons are followed: the output left there */
  uint64_t *arc_off;       /* [room_subsets + 1] */
  wf_arc *arcs;            /* [room_arcs]; olabel: a string */
  uint32_t *arc_owner;     /* [room_arcs] */
  uint64_t *cells;         /* [num_cells], a power of two: string << 32 | label; 0: free */
  uint32_t *cell_size;     /* [num_cells] length in labels */
  uint64_t num_cells;
  uint32_t *num_of_fst; /* [num_fsts] subsets of each fst; NULL for one fst */
  uint32_t *trouble;
} wf__gpu_subsets;

typedef struct wf__gpu_det_level {
  uint64_t first_subset, num_subsets, first_element, num_elements, num_items, num_parts, num_arcs,
      first_arc;
  int label_bits, state_bits, key_bits; /* the highest bit of a key marks an infinite cost */
  uint64_t *item_off;                   /* [num_elements + 1] */
  uint64_t *keys, *sorted;              /* [num_items] */
  uint32_t *index, *by_key;             /* [num_items] */
  double *item_cost;                    /* [num_items] */
  uint32_t *item_string;
  uint64_t *ranks;                 /* [num_items + 1] flags, then their prefix sums: parts << 32 |
                                      arcs */
  uint32_t *part_arc, *part_state; /* [num_parts] */
  double *part_cost;
  uint32_t *part_string;
  uint64_t *arc_part; /* [num_arcs + 1] first part */
  uint64_t *total;    /* [num_arcs] least cost, as an ordered integer */
  uint32_t *common;   /* [num_arcs] length of the common output prefix */
  uint32_t *output;   /* [num_arcs] the common output prefix */
  uint64_t *arc_hash; /* [num_arcs] */
  uint64_t *arc_slot; /* [num_arcs] */
  uint64_t *fresh;    /* [num_arcs + 1] flags, then their prefix sums: elements << 32 | subsets */
  uint32_t *is_new;   /* [num_arcs] */
} wf__gpu_det_level;

/* The result. For each fst: its subsets in order, then a sink if some final state has a pending
 * output, then the chain states, which spell outputs of several labels. A chain state is identified
 * by its label and what follows it. Chain states are numbered by the first arc that needs them. */
typedef struct wf__gpu_det_result {
  uint64_t num_subsets, num_arcs, num_nodes; /* num_arcs: without the arcs of chains, with those to
                                                sinks */
  int32_t subsequential_label;
  uint32_t *fst, *by_fst, *order,
      *rank; /* [num_subsets] fst of each subset; fst in the order of the result; subsets in that
                order; position of each subset in that order */
  uint32_t *owed;                  /* [num_subsets] 1: the subset has a pending final output */
  uint32_t *sink;                  /* [num_fsts] 1: some subset has one, so the fst has a sink */
  uint64_t *base;                  /* [num_fsts + 1] first subset of each fst, in the order of the
                                      result */
  uint64_t *sink_base, *node_base; /* [num_fsts + 1] number of sinks, and of chain states, of the
                                      previous fsts */
  uint64_t *arc_off;               /* [num_subsets + 1] out-degrees, then their prefix sums */
  wf_arc *arcs; /* [num_arcs] olabel: a string; nextstate: numbered with sinks but without chains,
                   or CHAIN | slot */
  uint64_t *num_spelled;      /* number of labels after the first of each arc's output */
  uint64_t *slots, num_slots; /* hash table of chain states, a power of two: next state << 32 |
                                 label; 0: free */
  uint64_t *tag;        /* [num_slots] least arc << 8 | position in its chain; all bits 1: free */
  int32_t *slot_ilabel; /* [num_slots] */
  uint32_t *used, *used_rank;        /* [num_slots + 1] */
  uint64_t *node_tag, *tag_sorted;   /* [num_nodes] */
  uint32_t *node_slot, *slot_sorted; /* [num_nodes] */
  uint32_t *slot_node;               /* [num_slots] */
  uint32_t *num_of_fst;              /* [num_fsts] chain states of each fst */
} wf__gpu_det_result;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* out [2] must be 0: returns the OR of all input labels; 1 if there is an input epsilon. */
int wf__determinize_labels(const wf__gpu_fsts *f, uint32_t *out, void *stream);
/* Makes the subsets of the start states. */
int wf__determinize_begin(const wf__gpu_subsets *s, uint64_t room_subsets, const uint32_t *starts,
                          uint64_t num_starts, void *stream);
/* Counts the items of each element [num_elements + 1], and finds the final costs. */
int wf__determinize_count(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* items: writes the items and final_element. flags: marks where sorted items differ, and checks
 * that final outputs agree. */
int wf__determinize_items(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
int wf__determinize_flags(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Makes the parts with their residuals, and the hashes of the arcs' subsets. */
int wf__determinize_parts(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Finds each arc's subset. If it is new, the first arc that leads to it represents it. */
int wf__determinize_find(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream);
/* Stores the new subsets from number `num_known` on, their elements from index `elements` on, and
 * the arcs. */
int wf__determinize_store(const wf__gpu_subsets *s, const wf__gpu_det_level *level,
                          uint64_t num_known, uint64_t elements, void *stream);

/* owed: sets fst, order, owed, sink. degrees, once the bases are set: rank and out-degrees. place,
 * with the degrees' prefix sums: arcs, num_spelled. */
int wf__determinize_owed(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_degrees(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_place(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
/* chains: inserts the chain states into their table, and sets `used` with a final 0. nodes, with
 * the prefix sums of `used`: node_tag and node_slot. number, once these are sorted: slot_node and
 * num_of_fst. */
int wf__determinize_chains(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_nodes(const wf__gpu_det_result *r, void *stream);
int wf__determinize_number(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream);
int wf__determinize_write(const wf__gpu_subsets *s, const wf__gpu_det_result *r, uint64_t *off,
                          float *final_cost, wf_arc *arcs, void *stream);

#ifdef __cplusplus
}
#endif
#endif
