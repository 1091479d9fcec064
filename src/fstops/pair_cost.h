/* pair_cost.h - the cost an fst gives to one pair of strings: the semiring's sum over all paths
 * with these labels. */
#ifndef WF_FSTOPS_PAIR_COST_H
#define WF_FSTOPS_PAIR_COST_H

#include "base/map64.h"
#include "fst/fst.h"

typedef WF__VEC(int32_t) wf__labels;

/* A place in the product of fst and strings: `consumed` input labels read, in `state`. */
typedef struct wf__pair_cell {
  double cost;
  double pending; /* log semiring: part of cost not handed on yet */
  uint32_t consumed, state;
  uint32_t visits;
  bool queued;
} wf__pair_cell;

/* All cells with the same number of labels consumed on both sides together. */
typedef struct wf__pair_level {
  wf__map64 index;
  WF__VEC(wf__pair_cell) cells;
} wf__pair_level;

/* Scratch, reused from call to call. Zero-initialised is ready. */
typedef struct wf__pair_work {
  wf__pair_level levels[3];
  WF__VEC(uint32_t) queue;
} wf__pair_work;

/* `*out_cost` is +infinity if no path has these labels. */
wf_status wf__pair_cost(const wf_fst_view *view, const wf__labels *input, const wf__labels *output,
                        wf__pair_work *work, double *out_cost, wf_error *err);
void wf__pair_work_free(wf__pair_work *work);

#endif
