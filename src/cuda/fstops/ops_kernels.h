/* ops_kernels.h - the data that the host passes to the kernels of operations on fsts in device
 * memory. Plain C, shared by ops_gpu.c and ops_kernels.cu.
 *
 * A batch of fsts is one graph: the states and arcs of all fsts are concatenated, and next states
 * and offsets are numbered over the whole batch. So an operation takes a few launches, independent
 * of the number of fsts. Arcs and states have 32-bit numbers.
 *
 *   incoming   arcs sorted by target, then by their numbers; used by reverse, connect and distances
 *              from the start
 *   levels     an order of states in which every state comes after all states that its arcs lead
 *              to. Level 0 has no arcs. A state's level is one more than the highest level that its
 *              arcs lead to. States on cycles, and those that reach a cycle, have no level
 *
 * Distances are pulled: a state adds up the offers of its arcs in their order, so the result does
 * not depend on the scheduling of threads. */
#ifndef WF_CUDA_FSTOPS_OPS_KERNELS_H
#define WF_CUDA_FSTOPS_OPS_KERNELS_H

#include "warpfst_all.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF__OPS_INVERT, WF__OPS_PROJECT_INPUT, WF__OPS_PROJECT_OUTPUT };

/* Pointers are to device memory. */
typedef struct wf__gpu_fsts {
  uint64_t num_fsts, num_states, num_arcs;
  const uint64_t *state_base; /* [num_fsts + 1] */
  const int64_t *start;       /* [num_fsts] a state of the batch; -1: none */
  const uint64_t *off;        /* [num_states + 1] */
  const wf_arc *arcs;
  const float *final_cost;
} wf__gpu_fsts;

typedef struct wf__gpu_incoming {
  uint32_t *source; /* [num_arcs] */
  uint32_t *arc;    /* [num_arcs] */
  uint64_t *off;    /* [num_states + 1] arcs into s are arc[off[s]] .. arc[off[s + 1] - 1] */
} wf__gpu_incoming;

/* Sums over paths. hops: number of arcs of the best path (tropical), the least among equal costs;
 * UINT32_MAX: no path. NULL: not computed. */
typedef struct wf__gpu_sums {
  double *cost;   /* [num_states] */
  uint32_t *hops; /* [num_states] */
} wf__gpu_sums;

typedef struct wf__gpu_levels {
  uint32_t *order;     /* [num_states] */
  uint32_t *level_off; /* [num_states + 2] */
  uint32_t *remaining; /* [num_states] arcs to states without a level, or from such if the levels
                          begin at the start; 0: the state has a level */
  uint32_t *counts;    /* [5] three for running levels; number of levels; number of states with a
                          level */
} wf__gpu_levels;

/* All return a cudaError_t; `stream` is a cudaStream_t. With scratch NULL a call sets
 * *scratch_bytes and does nothing else. */

/* Makes a batch of a composition's result, in which arc_off and arcs of each pair count from the
 * pair's begin, and arc_off has an end for each pair. arc_base [num_fsts + 1]. */
int wf__ops_join(const wf__gpu_fsts *to, const uint64_t *arc_base, const uint64_t *arc_off,
                 const wf_arc *arcs, uint64_t *out_off, wf_arc *out_arcs, void *stream);
/* out[p] = off[state_base[p]], [num_fsts + 1]. */
int wf__ops_arc_bases(const wf__gpu_fsts *f, uint64_t *out, void *stream);
int wf__ops_labels(const wf_arc *arcs, wf_arc *out, uint64_t num_arcs, int how, void *stream);

int wf__ops_source(const wf__gpu_fsts *f, uint32_t *source, void *stream);
/* Sorting and prefix sums (sort_kernels.cu). With scratch NULL they set *scratch_bytes and do
 * nothing else.
 *
 * Stable sort of `index` [count] by `keys` [count] of key_bits bits; writes both to the _out
 * arrays. 64-bit keys: index may be NULL. */
int wf__ops_sort(const uint32_t *keys, uint32_t *keys_out, const uint32_t *index,
                 uint32_t *index_out, uint64_t count, int key_bits, void *scratch,
                 size_t *scratch_bytes, void *stream);
int wf__ops_sort64(const uint64_t *keys, uint64_t *keys_out, const uint32_t *index,
                   uint32_t *index_out, uint64_t count, int key_bits, void *scratch,
                   size_t *scratch_bytes, void *stream);
/* out[i] = sum of in[0 .. i - 1], i < count. */
int wf__ops_scan(const uint32_t *in, uint32_t *out, uint64_t count, void *scratch,
                 size_t *scratch_bytes, void *stream);
int wf__ops_scan64(const uint64_t *in, uint64_t *out, uint64_t count, void *scratch,
                   size_t *scratch_bytes, void *stream);

/* Sort keys of arcs and arc numbers. Keys are next states; labels; the sources of arcs in a given
 * order. */
int wf__ops_next_keys(const wf__gpu_fsts *f, uint32_t *keys, uint32_t *index, void *stream);
int wf__ops_label_keys(const wf__gpu_fsts *f, int by_olabel, uint32_t *keys, uint32_t *index,
                       void *stream);
int wf__ops_source_keys(const uint32_t *source, const uint32_t *index, uint32_t *keys,
                        uint64_t count, void *stream);
/* Offsets of the runs of equal next states in the sorted keys. */
int wf__ops_incoming_off(const uint32_t *sorted_keys, uint64_t num_arcs, uint64_t *off,
                         uint64_t num_states, void *stream);
/* out[i] = arcs[index[i]]; the same for origins, which may be NULL. */
int wf__ops_gather(const wf_arc *arcs, const wf_arc_origin *origins, const uint32_t *index,
                   uint64_t count, wf_arc *out, wf_arc_origin *out_origins, void *stream);

/* Marks the states that are reachable from the starts, or that reach a final state. marks
 * [num_states] must be 0. `list` [2][num_states], `counts` [3]. */
int wf__ops_reach(const wf__gpu_fsts *f, const wf__gpu_incoming *in, int backward, uint32_t *marks,
                  uint32_t *list, uint32_t *counts, void *stream);
/* keep [num_states + 1]: 1 for states with both marks; keep_arcs [num_arcs + 1]: 1 for arcs between
 * such states. The last entries are 0. With some [num_fsts], fsts with some = 0 are kept whole. */
int wf__ops_keep(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const uint32_t *marks,
                 const uint32_t *other_marks, const uint32_t *some, uint32_t *keep,
                 uint32_t *keep_arcs, void *stream);
/* Writes the arrays of what is kept. `number` and `place` are the prefix sums of keep and
 * keep_arcs. */
int wf__ops_compact(const wf__gpu_fsts *f, const uint32_t *keep, const uint32_t *keep_arcs,
                    const uint32_t *number, const uint32_t *place, const wf_arc_origin *origins,
                    uint64_t *out_off, wf_arc *out_arcs, float *out_final,
                    wf_arc_origin *out_origins, void *stream);
/* Writes where each fst's states begin in the compacted arrays, and its start or -1. */
int wf__ops_compact_bases(const wf__gpu_fsts *f, const uint32_t *keep, const uint32_t *number,
                          uint64_t *out_base, int64_t *out_start, void *stream);

/* finals: 1 for final states [num_states + 1], the last 0. reverse: `rank` are the prefix sums of
 * these; shift [num_fsts] is the number of new starts before an fst. */
int wf__ops_finals(const wf__gpu_fsts *f, uint32_t *is_final, void *stream);
int wf__ops_reverse(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const uint32_t *rank,
                    const uint64_t *shift, uint64_t *out_off, wf_arc *out_arcs, float *out_final,
                    void *stream);

/* Finds the levels and, in the same pass, the sums of their states, to the end or from the start.
 * The sums of the other states get the initial values of the iteration. */
int wf__ops_levels(const wf__gpu_fsts *f, const wf__gpu_incoming *in, int from_start,
                   const wf__gpu_levels *levels, const wf__gpu_sums *sums, int log_semiring,
                   void *stream);
/* Sums from the start after levels to the end. begin: sets the initial values. The second call
 * computes the sums of states with levels, once those of the others are known. */
int wf__ops_from_start_begin(const wf__gpu_fsts *f, const wf__gpu_incoming *in,
                             const wf__gpu_sums *sums, void *stream);
int wf__ops_from_start(const wf__gpu_fsts *f, const wf__gpu_incoming *in,
                       const wf__gpu_levels *levels, uint32_t num_levels, const wf__gpu_sums *sums,
                       int log_semiring, void *stream);
/* One round for the states without levels: now -> next. Sets *changed to 1 if a sum moved by more
 * than `tolerance`. */
int wf__ops_iterate(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const wf__gpu_levels *levels,
                    int backward, const wf__gpu_sums *now, const wf__gpu_sums *next,
                    int log_semiring, double tolerance, uint32_t *changed, void *stream);
int wf__ops_to_float(const double *cost, float *out, uint64_t count, void *stream);

/* totals: the total cost of all paths of each fst. gradients: the posterior of each arc. */
int wf__ops_totals(const wf__gpu_fsts *f, const double *to_end, double *totals, void *stream);
int wf__ops_gradients(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const double *from_start,
                      const double *to_end, const double *totals, double *gradients, void *stream);
/* Adds each arc's gradient to those of the input arcs that it comes from. base [2][num_fsts]: where
 * those of each fst's two inputs begin. */
int wf__ops_input_gradients(const wf__gpu_fsts *f, const wf__gpu_incoming *in,
                            const wf_arc_origin *origins, const double *gradients,
                            const uint64_t *base, double *a_gradients, double *b_gradients,
                            void *stream);

/* ends: the end of each fst's best path: cost key, hops, state; keys [3][num_fsts] must start with
 * all bits 1. walk: the arcs of these paths, those of p from path_base[p] on; next states count
 * from state_base[p]. */
int wf__ops_ends(const wf__gpu_fsts *f, const wf__gpu_sums *from_start, unsigned long long *keys,
                 void *stream);
int wf__ops_walk(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const wf__gpu_sums *from_start,
                 const unsigned long long *keys, const uint64_t *path_base,
                 const uint64_t *state_base, wf_arc *path, void *stream);

#ifdef __cplusplus
}
#endif
#endif
