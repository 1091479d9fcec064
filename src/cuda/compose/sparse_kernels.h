/* sparse_kernels.h - composition pair by pair on a GPU, where a table of bits for all pairs would
 * be too large: what the host hands to its kernels. Plain C, shared by sparse_gpu.c and
 * sparse_kernels.cu.
 *
 *   pair    of a row (state of A, filter state) and a state of B; its key is row * num_b + state,
 *           so that keys sorted are states in canonical order
 *   table   keys, open addressing; found pairs are also on a list, a level behind the other
 *   item    of a pair: a link that needs no label or takes B's epsilons; then, whichever are fewer,
 *           its links with labels or B's arcs with labels, each of which finds its partners on the
 *           other side by bisection. Threads take items, so that no pair is anybody's alone,
 *           however many arcs it has
 *
 * A level is four launches and one look at the number of pairs; levels of few pairs and items, as
 * many of them as follow each other, are one launch of one block. When the table is too full, a
 * level stops; the host makes a larger one, and the level is done again: what it had found stays
 * found. */
#ifndef WF_CUDA_COMPOSE_SPARSE_KERNELS_H
#define WF_CUDA_COMPOSE_SPARSE_KERNELS_H

#include "warpfst_all.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As wf__row_link and its kinds. */
enum { WF__SPARSE_STAY, WF__SPARSE_STAY_IF, WF__SPARSE_LABEL = 5 };
typedef struct wf__sparse_link {
  uint32_t row, kind, arc;
} wf__sparse_link;

/* Both inputs, sorted for matching. Arrays are device memory. */
typedef struct wf__sparse_inputs {
  uint64_t num_rows, num_b;
  uint32_t num_filters;
  const uint64_t *link_off, *link_tail; /* [num_rows + 1], [num_rows]: where a row's links begin,
                                           and those with labels other than epsilon */
  const wf__sparse_link *links;
  const uint64_t *b_off, *b_tail; /* [num_b + 1], [num_b]: the same of B's arcs */
  const int32_t *b_labels;
  const uint8_t *b_kind; /* enum wf__epsilons of each state */
  const wf_arc *a_arcs, *b_arcs;
  const float *a_final, *b_final;
  const uint32_t *a_place, *b_place; /* of the sorted arcs in the inputs as given; NULL: the same */
} wf__sparse_inputs;

/* A level of at most so many pairs, none of more than so many items, is slim. */
enum { WF__SPARSE_SLIM_PAIRS = 256, WF__SPARSE_SLIM_ITEMS = 1024 };

/* What a level leaves behind. */
typedef struct wf__sparse_progress {
  uint64_t count;             /* pairs found, more than the list holds if it was too short */
  uint64_t first, num_levels; /* of slim levels: the pair where the first level begins that is not
                                 done, and how many are done */
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

/* Sorted keys of 64 bits. */
int wf__sparse_sort(const uint64_t *in, uint64_t *out, uint64_t count, int key_bits, void *scratch,
                    size_t *scratch_bytes, void *stream);

/* Puts list[0 .. count - 1] into the table, whose slots are free. */
int wf__sparse_refill(const wf__sparse_table *t, uint64_t count, void *stream);
/* items[i] of each of keys[0 .. count - 1]; items[count] = 0. */
int wf__sparse_items(const wf__sparse_inputs *in, const uint64_t *keys, uint64_t count,
                     uint64_t *items, void *stream);
/* Finds what the items of pairs keys[0 .. count - 1] lead to; item_off [count + 1] are the sums of
 * the items. */
int wf__sparse_expand(const wf__sparse_inputs *in, const wf__sparse_table *t, const uint64_t *keys,
                      uint64_t count, const uint64_t *item_off, void *stream);

/* The same for slim levels, from that of the list's pairs from `first` on to the first that is not
 * slim, or to the end. */
int wf__sparse_walk(const wf__sparse_inputs *in, const wf__sparse_table *t, uint64_t first,
                    void *stream);

/* ranks[slot of keys[i]] = i. */
int wf__sparse_rank(const wf__sparse_table *t, const uint64_t *keys, uint64_t count,
                    uint32_t *ranks, void *stream);
/* *start = the rank of a key that is in the table. */
int wf__sparse_start(const wf__sparse_table *t, const uint32_t *ranks, uint64_t key, int64_t *start,
                     void *stream);
/* arcs[i] of each item; arcs[num_items] = 0. */
int wf__sparse_count(const wf__sparse_inputs *in, const uint64_t *keys, uint64_t count,
                     const uint64_t *item_off, uint64_t num_items, uint64_t *arcs, void *stream);
/* The arrays of the result; place [num_items + 1] are the sums of the arcs. `origins` may be NULL.
 */
int wf__sparse_fill(const wf__sparse_inputs *in, const wf__sparse_table *t, const uint64_t *keys,
                    uint64_t count, const uint64_t *item_off, uint64_t num_items,
                    const uint64_t *place, const uint32_t *ranks, uint64_t *off, wf_arc *out,
                    float *final_cost, wf_arc_origin *origins, void *stream);

#ifdef __cplusplus
}
#endif
#endif
