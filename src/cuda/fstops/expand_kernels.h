/* expand_kernels.h - composes C o LG on a GPU without building C (graph/context.c): the data that
 * the host passes to the kernels. Plain C, shared by expand_gpu.c and expand_kernels.cu.
 *
 * A state is (state of LG, history of phones); both are packed into its key. The search goes level
 * by level. An item is an arc that a state of the level may have, in the order of the CPU. An item
 * that completes a window of phones needs the window's HMM type. New windows and new states are
 * numbered by the first item that leads to them, so all numbers are those of the CPU. */
#ifndef WF_CUDA_FSTOPS_EXPAND_KERNELS_H
#define WF_CUDA_FSTOPS_EXPAND_KERNELS_H

#include "cuda/fstops/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys with numbers in the order of their discovery. Pointers are to device memory. */
typedef struct wf__gpu_key_table {
  uint64_t *keys; /* [num_slots], a power of two; all bits 1: free */
  uint64_t num_slots;
  uint32_t *first; /* [num_slots] the first item of this level that has the key; all bits 1: none */
  uint32_t *number; /* [num_slots] all bits 1: not numbered yet */
  uint64_t *list;   /* [num_slots / 2] the keys by number */
  uint64_t count;
} wf__gpu_key_table;

enum { WF__EXPAND_MAX_WIDTH = 8 };
typedef struct wf__gpu_expansion {
  wf__gpu_fsts f;                                       /* LG */
  int32_t width, central, bits, num_phones, num_labels; /* num_labels: phones and symbols #k */
  int history_bits;
  const int32_t *context_of; /* [num_phones + 1] */
  const bool *context_free;  /* [num_phones + 1] */
  wf__gpu_key_table windows, states;
  const int32_t *types; /* by the number of the window; 0: arcs with it are dropped */
  int32_t num_types;    /* set for the last pass only */
  /* The states states.list[begin .. begin + num_level - 1], whose items are examined. */
  uint64_t begin, num_level, num_items;
  uint64_t *item_off;      /* [num_level + 1] prefix sums of their items */
  uint64_t *item_key;      /* [num_items] a key of an item; all bits 1: none */
  uint32_t *item_slot;     /* [num_items] the slot of its key */
  uint32_t *flags, *ranks; /* [num_items + 1] */
} wf__gpu_expansion;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* *bad, which must be 0, is set to 1 if an input label is out of range. */
int wf__expand_check(const wf__gpu_expansion *e, uint32_t *bad, void *stream);
/* Writes the numbers of items to item_off [num_level + 1], the last of them 0. */
int wf__expand_count(const wf__gpu_expansion *e, void *stream);
/* Sets item_key to the windows that the items complete, or to the states that they lead to. */
int wf__expand_windows(const wf__gpu_expansion *e, void *stream);
int wf__expand_states(const wf__gpu_expansion *e, void *stream);

/* Inserts list[0 .. count - 1] with their numbers into the empty table. */
int wf__expand_refill(const wf__gpu_key_table *table, void *stream);
/* insert: inserts the items' keys. mark: flags of the items that are the first with a new key.
 * number, with the prefix sums of the flags: numbers the new keys from table->count on. */
int wf__expand_insert(const wf__gpu_expansion *e, const wf__gpu_key_table *table, void *stream);
int wf__expand_mark(const wf__gpu_expansion *e, const wf__gpu_key_table *table, void *stream);
int wf__expand_number(const wf__gpu_expansion *e, const wf__gpu_key_table *table, void *stream);

/* For all states at once, after wf__expand_states. kept: flags of the items that are arcs. write,
 * with their prefix sums: the arrays of the result. */
int wf__expand_kept(const wf__gpu_expansion *e, void *stream);
int wf__expand_write(const wf__gpu_expansion *e, uint64_t *off, wf_arc *arcs, float *final_cost,
                     void *stream);

#ifdef __cplusplus
}
#endif
#endif
