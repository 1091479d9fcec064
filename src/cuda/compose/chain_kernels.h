/* chain_kernels.h - the kernels that make the states of a composition for the composition on its
 * right (chain_gpu.c). Plain C, shared by chain_gpu.c and chain_kernels.cu.
 *
 * A state's number is the order in which its pair was found. Its rows are number * num_filters + 0,
 * 1, ...; links and rows are those of sparse_kernels.h. */
#ifndef WF_CUDA_COMPOSE_CHAIN_KERNELS_H
#define WF_CUDA_COMPOSE_CHAIN_KERNELS_H

#include "cuda/compose/sparse_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rows of the states made so far, and those being made. Arrays are device memory. */
typedef struct wf__chain_rows {
  uint32_t num_filters, filter;                /* of the other composition; WF_FILTER_* */
  uint32_t b_has_epsilons;                     /* its right side has epsilons */
  uint64_t *link_begin, *link_tail, *link_end; /* [states * num_filters] as in wf__sparse_inputs */
  wf__sparse_link *links;
  float *final_cost; /* [states] */
  wf_arc *arcs;      /* sorted by output label */
  /* The states being made: */
  uint64_t count, first_arc, first_link; /* of their arcs and links */
  const uint32_t *numbers;               /* [count] */
  const uint64_t *arc_off;               /* [count + 1] counts from first_arc */
  const float *made_final;               /* [count] */
} wf__chain_rows;

/* All return a cudaError_t; `stream` is a cudaStream_t. With scratch NULL a call sets
 * *scratch_bytes and does nothing else. */

/* Lists the states of A in `keys` [count] that are not marked, and marks them. numbers, pairs
 * [states]: each state's number and its entry of `list`. *num_wanted must be 0. */
int wf__chain_want(const uint64_t *keys, uint64_t count, uint64_t num_b, uint32_t num_filters,
                   const uint64_t *list, uint32_t *marks, uint32_t *numbers, uint64_t *pairs,
                   uint64_t *num_wanted, void *stream);

/* Sort keys of the arcs (owner, output label), and their indices. arc_off [num_states + 1]. */
int wf__chain_arc_keys(const wf_arc *arcs, uint64_t num_arcs, const uint64_t *arc_off,
                       uint64_t num_states, uint64_t *keys, uint32_t *index, void *stream);

/* counts [rows->count * num_filters + 1]: number of links of each row; the last is 0. */
int wf__chain_count_links(const wf__chain_rows *rows, uint64_t *counts, void *stream);
/* Writes the links, their offsets and the final costs of the states being made. link_off: prefix
 * sums of the counts, the last of which is num_links. */
int wf__chain_fill_links(const wf__chain_rows *rows, const uint64_t *link_off, uint64_t num_links,
                         void *stream);

/* Replaces the states of A in the keys of `list` [count] by their ranks (NULL: they are ranks), and
 * numbers the keys. */
int wf__chain_rank_keys(const uint64_t *list, uint64_t count, uint64_t num_b, uint32_t num_filters,
                        const uint32_t *ranks, uint64_t *keys, uint32_t *index, void *stream);
/* out[i] = list[index[i]] */
int wf__chain_gather(const uint64_t *list, const uint32_t *index, uint64_t count, uint64_t *out,
                     void *stream);
/* ranks[order[i]] = i */
int wf__chain_ranks(const uint32_t *order, uint64_t count, uint32_t *ranks, void *stream);

#ifdef __cplusplus
}
#endif
#endif
