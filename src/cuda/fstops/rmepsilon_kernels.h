/* rmepsilon_kernels.h - epsilon removal on a GPU: the data that the host passes to the kernels.
 * Plain C, shared by rmepsilon_gpu.c and rmepsilon_kernels.cu.
 *
 * The result of a state (fstops/rmepsilon.c) needs the results of the states that its epsilon arcs
 * lead to. So states are processed in levels. Level 0 has no epsilon arcs. A state's level is one
 * more than the highest level that its epsilon arcs lead to. A level consists of items, one for
 * each arc that a result would have before equal arcs are merged:
 *
 *  arcs of the level   state by state, labelled arcs first, then epsilon arcs. A labelled arc has
 *                      one item, itself. An epsilon arc has an item for each arc of the result that
 *                      it leads to
 *  items               arc by arc, which is the order in which the CPU merges them
 *  sorted items        by a hash of (state, labels, next state), then by number. The first of equal
 *                      items stays and gets the semiring sum of all costs
 *  pool                the items that stay, in their order */
#ifndef WF_CUDA_FSTOPS_RMEPSILON_KERNELS_H
#define WF_CUDA_FSTOPS_RMEPSILON_KERNELS_H

#include "cuda/fstops/ops_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Same as on the CPU: the arcs are in the input or in the pool; or the result is an alias of
 * another state's, at a cost. */
typedef struct wf__gpu_result {
  const wf_arc *arcs;
  double final_cost, alias_cost;
  uint32_t count, alias; /* alias: the state itself if it is not an alias */
} wf__gpu_result;

/* Pointers are to device memory. */
typedef struct wf__gpu_removal {
  wf__gpu_fsts f;
  const uint32_t *source; /* [num_arcs] */
  uint32_t *reached;      /* [num_states] not 0: reachable from the start */
  uint32_t *kept;         /* [num_states] 1: the start, or the target of a labelled arc */
  uint32_t
      *is_epsilon; /* [num_arcs + 1] 1: an epsilon arc of a reachable state; the last entry is 0 */
  uint32_t *rank;  /* [num_arcs + 1] prefix sums of is_epsilon */
  wf__gpu_fsts epsilons; /* the same states with only these arcs */
  const uint32_t *order; /* [num_states] by level */
  uint32_t *position;    /* [num_states] position in `order` */
  uint32_t *degree;    /* [num_states + 1] number of arcs of the i-th state of `order`; 0 in level 0
                          and in the last entry */
  uint32_t *first_arc; /* [num_states + 1] prefix sums of degree */
  uint32_t *arc_at;    /* [first_arc[num_states]] arcs by level */
  wf__gpu_result *results; /* [num_states] */
} wf__gpu_removal;

/* A level and its items. */
typedef struct wf__gpu_removal_level {
  uint32_t first_state, num_states; /* range of `order` */
  uint32_t first_arc, num_arcs;     /* range of arc_at */
  uint64_t num_items;
  uint64_t *item_off;        /* [num_arcs + 1] */
  wf_arc *arcs;              /* [num_items] */
  double *costs;             /* [num_items] */
  uint32_t *owner;           /* [num_items] state */
  uint64_t *hash, *sorted;   /* [num_items] */
  uint32_t *index, *by_hash; /* [num_items] numbers of items, unsorted and in the order of
                                `sorted` */
  uint32_t *stays, *place;   /* [num_items + 1] 1, or 0 for an item merged into another, the last 0;
                                prefix sums */
  wf_arc *pool;              /* [place[num_items]] */
} wf__gpu_removal_level;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* moderate [num_fsts] must be 1 at first. Set to 0 if a cost of the fst is 1e28 or more, because
 * sums of costs might then become infinite. */
int wf__rmepsilon_moderate(const wf__gpu_fsts *f, const uint32_t *source, uint32_t *moderate,
                           void *stream);
/* Sets `kept`, which must be 0 at first, and is_epsilon. */
int wf__rmepsilon_marks(const wf__gpu_removal *r, void *stream);
/* Writes the arrays of `epsilons`. */
int wf__rmepsilon_epsilons(const wf__gpu_removal *r, uint64_t *off, wf_arc *arcs, void *stream);
/* Sets position, degree and the initial results, which are final for level 0. Level 0 is the first
 * `num_plain` states of the order. */
int wf__rmepsilon_begin(const wf__gpu_removal *r, uint32_t num_plain, void *stream);
int wf__rmepsilon_arcs(const wf__gpu_removal *r, void *stream);
/* out[i] = first_arc[level_off[i]]. */
int wf__rmepsilon_level_arcs(const wf__gpu_removal *r, const uint32_t *level_off, uint32_t count,
                             uint32_t *out, void *stream);

/* Counts the items of each arc [num_arcs + 1], the last 0; sets final costs and aliases of the
 * level's states. */
int wf__rmepsilon_count(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        int log_semiring, void *stream);
int wf__rmepsilon_items(const wf__gpu_removal *r, const wf__gpu_removal_level *level, void *stream);
int wf__rmepsilon_merge(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        int log_semiring, void *stream);
int wf__rmepsilon_store(const wf__gpu_removal *r, const wf__gpu_removal_level *level, void *stream);

/* written [num_states + 1], the last 0: 1 for states of the output. That is all states, but only
 * the kept ones of fsts with drop [num_fsts] set. sizes: their numbers of arcs; `number` are the
 * prefix sums of `written`. */
int wf__rmepsilon_written(const wf__gpu_removal *r, const uint32_t *drop, uint32_t *written,
                          void *stream);
int wf__rmepsilon_sizes(const wf__gpu_removal *r, const uint32_t *written, const uint32_t *number,
                        uint64_t *out_arcs, float *out_final, uint32_t *from, void *stream);
/* Writes the arcs of `num_states` states with offsets off [num_states + 1]. They are the results of
 * the states `from`. */
int wf__rmepsilon_fill(const wf__gpu_removal *r, const uint32_t *number, const uint32_t *from,
                       const uint64_t *off, uint64_t num_states, uint64_t num_arcs, wf_arc *out,
                       void *stream);

#ifdef __cplusplus
}
#endif
#endif
