/* rmepsilon_kernels.h - epsilon removal on a GPU: what the host hands to the kernels. Plain C,
 * shared by rmepsilon_gpu.c and rmepsilon_kernels.cu.
 *
 * The result of a state (fstops/rmepsilon.c) needs those of the states that its epsilon arcs lead
 * to. So states are done in levels: level 0 has no epsilon arcs, a state is in the level after the
 * last of those that its epsilon arcs lead to. A level is made of items, one for each arc that a
 * result would have if equal ones were not merged:
 *
 *   arcs of the level   state by state, labelled ones first, then epsilon arcs; an arc has items:
 *                       itself, or the arcs of the result that it leads to
 *   items               arc by arc, so in the order in which the CPU merges them
 *   sorted items        by a hash of (state, labels, next state), equal ones by number: the first
 *                       of them stays, and takes the costs of all
 *   pool                what stays, in the order of the items */
#ifndef WF_CUDA_FSTOPS_RMEPSILON_KERNELS_H
#define WF_CUDA_FSTOPS_RMEPSILON_KERNELS_H

#include "cuda/fstops/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the CPU's: arcs in the input or in the pool; or those of another state at a cost. */
typedef struct wf__gpu_result {
  const wf_arc *arcs;
  double final_cost, alias_cost;
  uint32_t count, alias; /* alias: the state itself if it is none */
} wf__gpu_result;

/* Device memory. */
typedef struct wf__gpu_removal {
  wf__gpu_fsts f;
  const uint32_t *source; /* [num_arcs] */
  uint32_t *reached;      /* [num_states] not 0: on a path from the start */
  uint32_t *kept;         /* [num_states] 1: the start, or entered by a labelled arc */
  uint32_t
      *is_epsilon; /* [num_arcs + 1] 1: an epsilon arc of a state that is reached; the last is 0 */
  uint32_t *rank;  /* [num_arcs + 1] sums of is_epsilon */
  wf__gpu_fsts epsilons; /* the same states with these arcs alone */
  const uint32_t *order; /* [num_states] by level */
  uint32_t *position;    /* [num_states] in `order` */
  uint32_t *degree; /* [num_states + 1] arcs of the i-th of the order; 0 in level 0, and the last */
  uint32_t *first_arc;     /* [num_states + 1] their sums */
  uint32_t *arc_at;        /* [first_arc[num_states]] arcs by level */
  wf__gpu_result *results; /* [num_states] */
} wf__gpu_removal;

/* A level, and its items. */
typedef struct wf__gpu_removal_level {
  uint32_t first_state, num_states; /* in the order */
  uint32_t first_arc, num_arcs;     /* in arc_at */
  uint64_t num_items;
  uint64_t *item_off;        /* [num_arcs + 1] */
  wf_arc *arcs;              /* [num_items] */
  double *costs;             /* [num_items] */
  uint32_t *owner;           /* [num_items] states */
  uint64_t *hash, *sorted;   /* [num_items] */
  uint32_t *index, *by_hash; /* [num_items] numbers of items; in the order of `sorted` */
  uint32_t *stays, *place;   /* [num_items + 1] 1, or 0 for an item that another one stands for, the
                                last 0; sums */
  wf_arc *pool;              /* [place[num_items]] */
} wf__gpu_removal_level;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* Stable sort of values by keys of 64 bits. With scratch NULL it sets *scratch_bytes and does
 * nothing else. */
int wf__rmepsilon_sort(const uint64_t *keys, uint64_t *keys_out, const uint32_t *values,
                       uint32_t *values_out, uint64_t count, void *scratch, size_t *scratch_bytes,
                       void *stream);

/* moderate [num_fsts], 1 at first: 0 if a cost of the fst is 1e28 or more, so that sums of costs
 * might become infinite. */
int wf__rmepsilon_moderate(const wf__gpu_fsts *f, const uint32_t *source, uint32_t *moderate,
                           void *stream);
/* kept, which is 0 at first, and is_epsilon. */
int wf__rmepsilon_marks(const wf__gpu_removal *r, void *stream);
/* The arrays of `epsilons`. */
int wf__rmepsilon_epsilons(const wf__gpu_removal *r, uint64_t *off, wf_arc *arcs, void *stream);
/* position and degree, level 0 being the first `num_plain` of the order; and all results, those of
 * level 0 for good. */
int wf__rmepsilon_begin(const wf__gpu_removal *r, uint32_t num_plain, void *stream);
int wf__rmepsilon_arcs(const wf__gpu_removal *r, void *stream);
/* out[i] = first_arc[level_off[i]]. */
int wf__rmepsilon_level_arcs(const wf__gpu_removal *r, const uint32_t *level_off, uint32_t count,
                             uint32_t *out, void *stream);

/* Items of each arc [num_arcs + 1], the last 0; final costs and aliases of the level's states. */
int wf__rmepsilon_count(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        int log_semiring, void *stream);
int wf__rmepsilon_items(const wf__gpu_removal *r, const wf__gpu_removal_level *level, void *stream);
int wf__rmepsilon_merge(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        int log_semiring, void *stream);
int wf__rmepsilon_store(const wf__gpu_removal *r, const wf__gpu_removal_level *level, void *stream);

/* The states that are written [num_states + 1], the last 0: all of them, but of fsts that drop
 * [num_fsts] only those kept. Then their arcs, `number` being the sums. */
int wf__rmepsilon_written(const wf__gpu_removal *r, const uint32_t *drop, uint32_t *written,
                          void *stream);
int wf__rmepsilon_sizes(const wf__gpu_removal *r, const uint32_t *written, const uint32_t *number,
                        uint64_t *out_arcs, float *out_final, uint32_t *from, void *stream);
/* The arcs of `num_states` states, off [num_states + 1], which are results of the states `from`. */
int wf__rmepsilon_fill(const wf__gpu_removal *r, const uint32_t *number, const uint32_t *from,
                       const uint64_t *off, uint64_t num_states, uint64_t num_arcs, wf_arc *out,
                       void *stream);

#ifdef __cplusplus
}
#endif
#endif
