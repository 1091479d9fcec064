/* sparse_search.h - the host side of the search of a composition by pairs of states on a GPU, level
 * by level until nothing new is found. Shared by sparse_gpu.c (the whole composition) and
 * chain_gpu.c (a composition of which only some states are made). */
#ifndef WF_CUDA_COMPOSE_SPARSE_SEARCH_H
#define WF_CUDA_COMPOSE_SPARSE_SEARCH_H

#include "cuda/compose/sparse_kernels.h"
#include "cuda/fstops/ops_batch.h"

typedef struct wf__sparse_search wf__sparse_search;

/* Makes the left side of a composition while it is searched: a chain (chain_gpu.c), which begins
 * with this. */
typedef struct wf__sparse_left {
  /* Makes the states that are A's in these pairs, if they were not made before. `keys` [count] is
   * device memory. Sets the fields of A in `in`, whose arrays may have moved. */
  wf_status (*make)(struct wf__sparse_left *left, const uint64_t *keys, uint64_t count,
                    wf__sparse_inputs *in, wf_error *err);
  /* Writes the keys of the pairs that a search with it found to `keys` [search->count], in
   * canonical order. */
  wf_status (*sort)(const wf__sparse_search *search, wf__gpu_blocks *room, uint64_t *keys,
                    wf_error *err);
  /* Device memory of it and of those on its left. */
  uint64_t (*bytes)(const struct wf__sparse_left *left);
  /* Frees it and those on its left. */
  void (*free)(struct wf__sparse_left *left);
} wf__sparse_left;

struct wf__sparse_search {
  wf__gpu_context *context; /* borrowed, as are the arrays of `in` */
  wf__sparse_inputs in;     /* with `left`: its rows, as far as they are made */
  wf__sparse_left *left;    /* borrowed; makes the rows of A; NULL: they are all there */
  uint64_t start_key;
  uint64_t max_states, max_bytes, give_up;
  wf__gpu_blocks room;    /* memory of the table, which grows */
  wf__sparse_table table; /* its list has the pairs in the order in which they were found */
  uint64_t count;         /* pairs */
  uint64_t num_levels;
};

/* The search then knows only the start. Release it with wf__sparse_search_end, also on failure. */
wf_status wf__sparse_search_begin(wf__sparse_search *search, wf_error *err);
/* Finds all pairs, or more than give_up. Errors: max_states, max_bytes (WF_ERR_LIMIT). */
wf_status wf__sparse_search_all(wf__sparse_search *search, wf_error *err);
/* Finds the pairs that these lead to in one step. `keys` [count] is device memory outside of the
 * table. */
wf_status wf__sparse_search_step(wf__sparse_search *search, const uint64_t *keys, uint64_t count,
                                 wf_error *err);
void wf__sparse_search_end(wf__sparse_search *search);

/* Number of items of each pair, as exclusive prefix sums [count + 1]. */
wf_status wf__sparse_search_items(const wf__sparse_search *search, wf__gpu_blocks *room,
                                  const uint64_t *keys, uint64_t count, uint64_t **out,
                                  wf_error *err);
/* Computes the exclusive prefix sums of `values` [count] in place. */
wf_status wf__sparse_search_add_up(const wf__sparse_search *search, wf__gpu_blocks *room,
                                   uint64_t *values, uint64_t count, wf_error *err);
/* Writes the keys of all pairs in canonical order to `keys` [search->count]. */
wf_status wf__sparse_search_sort(const wf__sparse_search *search, wf__gpu_blocks *room,
                                 uint64_t *keys, wf_error *err);
/* Number of bits of the largest key that is possible. */
int wf__sparse_search_key_bits(const wf__sparse_search *search);
/* Fails if the search needs more than max_bytes with `bytes` of its own. */
wf_status wf__sparse_search_check(const wf__sparse_search *search, uint64_t bytes, wf_error *err);

#endif
