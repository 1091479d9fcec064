/* pair_cost.h - the cost that an fst gives to a pair of strings: the semiring's sum over all paths
 * with these labels. */
#ifndef WF_FSTOPS_PAIR_COST_H
#define WF_FSTOPS_PAIR_COST_H

#include "base/map64.h"
#include "fst/fst.h"

typedef WF__VEC(int32_t) wf__labels;

/* A node in the product of the fst and the strings: `state`, after `consumed` input labels. */
typedef struct wf__pair_cell {
  double cost;
  double pending; /* log semiring: the part of `cost` that was not propagated yet */
  uint32_t consumed, state;
  uint32_t visits;
  bool queued;
} wf__pair_cell;

/* All cells with the same number of consumed labels, input and output together. */
typedef struct wf__pair_level {
  wf__map64 index;
  WF__VEC(wf__pair_cell) cells;
} wf__pair_level;

/* Scratch memory, reused across calls. It must be zero-initialised before the first. */
typedef struct wf__pair_work {
  wf__pair_level levels[3];
  WF__VEC(uint32_t) queue;
} wf__pair_work;

/* `*out_cost` is +infinity if no path has these labels. */
wf_status wf__pair_cost(const wf_fst_view *view, const wf__labels *input, const wf__labels *output,
                        wf__pair_work *work, double *out_cost, wf_error *err);
void wf__pair_work_free(wf__pair_work *work);

#endif
