/* sparse_kernels.h - composition by pairs of states on a GPU, for inputs whose table of bits for
 * all pairs would be too large: the data that the host passes to the kernels. Plain C, shared by
 * sparse_gpu.c and sparse_kernels.cu.
 *
 *   pair    a row (state of A, filter state) and a state of B. Its key is row * num_b + state, so
 *           sorted keys are states in canonical order
 *   table   a hash table of keys with open addressing. The pairs found are also on a list, level
 *           after level
 *   item    the unit of work of a pair: a link that needs no label or takes B's epsilons; then each
 *           of its links with labels, or each of B's arcs with labels if those are fewer, which
 *           finds its partners on the other side by binary search. Each thread takes one item, so
 *           that the work of a pair with many arcs is shared
 *
 * A level takes four launches and one readback of the number of pairs. Consecutive levels of few
 * pairs and items are one launch of one block. If the table becomes full, the level stops. The host
 * makes a larger table and repeats the level; pairs found so far are kept. */
#ifndef WF_CUDA_COMPOSE_SPARSE_KERNELS_H
#define WF_CUDA_COMPOSE_SPARSE_KERNELS_H

#include "warpfst_all.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Same as wf__row_link and its kinds. */
enum { WF__SPARSE_STAY, WF__SPARSE_STAY_IF, WF__SPARSE_LABEL = 5 };
typedef struct wf__sparse_link {
  uint32_t row, kind, arc;
} wf__sparse_link;

/* Both inputs, sorted for matching. Arrays are device memory. */
typedef struct wf__sparse_inputs {
  uint64_t num_rows, num_b;
  uint32_t num_filters;
  /* [num_rows] where a row's links begin, where those with labels other than epsilon begin, and
   * where they end */
  const uint64_t *link_begin, *link_tail, *link_end;
  const wf__sparse_link *links;
  const uint64_t *b_off, *b_tail; /* [num_b + 1], [num_b]: the same for B's arcs */
  const int32_t *b_labels;
  const uint8_t *b_kind; /* enum wf__epsilons of each state */
  const wf_arc *a_arcs, *b_arcs;
  const float *a_final, *b_final;
  const uint32_t *a_place, *b_place; /* index of each sorted arc in the input as given; NULL: the
                                        same */
} wf__sparse_inputs;

/* A level is slim if it has at most this many pairs and no pair has more than this many items. */
enum { WF__SPARSE_SLIM_PAIRS = 256, WF__SPARSE_SLIM_ITEMS = 1024 };

/* The result of a level. */
typedef struct wf__sparse_progress {
  uint64_t count;             /* pairs found; more than the list holds if it was too short */
  uint64_t first, num_levels; /* for slim levels: the first pair of the first level that is not
                                 complete, and the number of complete levels */
  uint32_t full;
} wf__sparse_progress;

typedef struct wf__sparse_table {
  uint64_t *keys; /* [num_slots], a power of two; all bits 1: free */
  uint64_t num_slots;
  uint64_t *list; /* [room] */
  uint64_t room;
  wf__sparse_progress *progress;
} wf__sparse_table;

/* All return a cudaError_t; `stream` is a cudaStream_t. With scratch NULL a call sets
 * *scratch_bytes and does nothing else. */

/* Of B, one fst in device memory: the input labels [num_arcs], where each state's arcs with labels
 * begin (b_tail), its kind (b_kind). flags [2], which must be 0, tell whether some state's arcs are
 * not sorted by input label, and whether there are epsilons. */
int wf__sparse_look_at_b(uint64_t num_states, uint64_t num_arcs, const uint64_t *off,
                         const wf_arc *arcs, const float *final_cost, int32_t *labels,
                         uint64_t *tail, uint8_t *kind, uint32_t *flags, void *stream);

/* Inserts list[0 .. count - 1] into the empty table. */
int wf__sparse_refill(const wf__sparse_table *t, uint64_t count, void *stream);
/* items[i] = number of items of keys[i], i < count; items[count] = 0. */
int wf__sparse_items(const wf__sparse_inputs *in, const uint64_t *keys, uint64_t count,
                     uint64_t *items, void *stream);
/* Finds the pairs that the items of keys[0 .. count - 1] lead to. item_off [count + 1]: exclusive
 * prefix sums of the items. */
int wf__sparse_expand(const wf__sparse_inputs *in, const wf__sparse_table *t, const uint64_t *keys,
                      uint64_t count, const uint64_t *item_off, void *stream);

/* The same for consecutive slim levels: starts with the level at list[first], stops at the first
 * level that is not slim, or at the end. */
int wf__sparse_walk(const wf__sparse_inputs *in, const wf__sparse_table *t, uint64_t first,
                    void *stream);

/* ranks[slot of keys[i]] = i, first <= i < count. */
int wf__sparse_rank(const wf__sparse_table *t, const uint64_t *keys, uint64_t first, uint64_t count,
                    uint32_t *ranks, void *stream);
/* *start = the rank of a key that is in the table. */
int wf__sparse_start(const wf__sparse_table *t, const uint32_t *ranks, uint64_t key, int64_t *start,
                     void *stream);
/* arcs[i] = number of arcs of item i; arcs[num_items] = 0. */
int wf__sparse_count(const wf__sparse_inputs *in, const uint64_t *keys, uint64_t count,
                     const uint64_t *item_off, uint64_t num_items, uint64_t *arcs, void *stream);
/* Writes the arrays of the result. place [num_items + 1]: exclusive prefix sums of the arcs.
 * `origins` may be NULL. */
int wf__sparse_fill(const wf__sparse_inputs *in, const wf__sparse_table *t, const uint64_t *keys,
                    uint64_t count, const uint64_t *item_off, uint64_t num_items,
                    const uint64_t *place, const uint32_t *ranks, uint64_t *off, wf_arc *out,
                    float *final_cost, wf_arc_origin *origins, void *stream);

#ifdef __cplusplus
}
#endif
#endif
