/* pair_cost.c - dynamic programming over cells (labels consumed on each side, state).
 *
 *   level k   cells that have consumed k labels, input and output labels together
 *   arcs      x:y leads from level k to k + 2; x:0 and 0:y lead to k + 1; 0:0 stays in level k
 *
 * Levels are processed in order, and only three exist at a time. Cycles can occur only inside a
 * level. There, the tropical semiring uses label correcting: a cell that is visited more often than
 * there are cells is on a negative cycle. The log semiring propagates pending mass until it is
 * negligible (Mohri 2002, section 3.2). */
#include "fstops/pair_cost.h"

#include "math/cost.h"

/* Tropical: smaller gains within a level are taken for rounding. Log: pending mass of less than
 * e^-22 of a sum is not propagated. */
static const double least_gain = 1e-6, least_share = 22;
static const uint64_t max_arcs = 100000000; /* arcs visited within one level before giving up */

typedef struct product {
  const wf_fst_view *view;
  const wf__labels *input, *output;
  wf__pair_work *work;
  uint64_t level;
  bool log;
} product;

static wf__pair_level *level_of(product *p, uint64_t k) { return &p->work->levels[k % 3]; }

/* Finds the cell (consumed, state) of a level, or makes it with cost +infinity. */
static wf_status cell_at(wf__pair_level *level, uint32_t consumed, uint32_t state, uint32_t *out,
                         wf_error *err) {
  bool fresh;
  WF__TRY(wf__map64_insert(&level->index, (uint64_t)consumed << 32 | state,
                           (uint32_t)level->cells.size, out, &fresh, "cells", err));
  if (!fresh) return WF_OK;
  WF__TRY(wf__vec_grow(&level->cells, 1, "cells", err));
  level->cells.data[level->cells.size++] =
      (wf__pair_cell){.cost = INFINITY, .pending = INFINITY, .consumed = consumed, .state = state};
  return WF_OK;
}

static wf_status enqueue(product *p, uint32_t cell, wf_error *err) {
  wf__pair_level *level = level_of(p, p->level);
  if (level->cells.data[cell].queued) return WF_OK;
  level->cells.data[cell].queued = true;
  return wf__vec_push(&p->work->queue, cell, "cells", err);
}

/* Adds a path of the given cost, which ends in a 0:0 arc, to a cell of the current level. */
static wf_status add_within(product *p, uint32_t consumed, uint32_t state, double cost,
                            wf_error *err) {
  wf__pair_level *level = level_of(p, p->level);
  uint32_t index;
  WF__TRY(cell_at(level, consumed, state, &index, err));
  wf__pair_cell *cell = &level->cells.data[index];
  if (p->log) {
    cell->cost = wf__log_add(cell->cost, cost);
    cell->pending = wf__log_add(cell->pending, cost);
    return cell->pending - cell->cost < least_share ? enqueue(p, index, err) : WF_OK;
  }
  if (cell->cost != INFINITY && cost >= cell->cost - least_gain) return WF_OK;
  cell->cost = cost;
  return enqueue(p, index, err);
}

/* Follows 0:0 arcs within the level until the costs no longer change. */
static wf_status close_level(product *p, wf_error *err) {
  wf__pair_level *level = level_of(p, p->level);
  uint64_t num_arcs = 0;
  p->work->queue.size = 0;
  for (uint64_t i = 0; i < level->cells.size; i++) {
    level->cells.data[i].pending = level->cells.data[i].cost;
    WF__TRY(enqueue(p, (uint32_t)i, err));
  }
  for (uint64_t head = 0; head < p->work->queue.size; head++) {
    wf__pair_cell *cell = &level->cells.data[p->work->queue.data[head]];
    uint32_t consumed = cell->consumed, state = cell->state;
    double cost = p->log ? cell->pending : cell->cost;
    cell->queued = false;
    cell->pending = INFINITY;
    if (!p->log && cell->visits++ > level->cells.size)
      return wf__fail(err, WF_ERR_NEGATIVE_CYCLE,
                      "state %u is on an epsilon cycle of negative cost", state);
    num_arcs += p->view->arc_off[state + 1] - p->view->arc_off[state];
    if (p->log && num_arcs > max_arcs)
      return wf__fail(err, WF_ERR_LIMIT,
                      "the sum over the epsilon cycle through state %u does not converge", state);
    for (uint64_t i = p->view->arc_off[state]; i < p->view->arc_off[state + 1]; i++) {
      const wf_arc *arc = &p->view->arcs[i];
      if (arc->ilabel == 0 && arc->olabel == 0 && arc->weight != INFINITY)
        WF__TRY(add_within(p, consumed, arc->nextstate, cost + (double)arc->weight, err));
    }
  }
  return WF_OK;
}

/* Propagates the finished level to the next two, along arcs that consume labels. */
static wf_status pass_on(product *p, wf_error *err) {
  const wf__pair_level *level = level_of(p, p->level);
  for (uint64_t k = 0; k < level->cells.size; k++) {
    wf__pair_cell from = level->cells.data[k];
    uint64_t in = from.consumed, out = p->level - in;
    for (uint64_t i = p->view->arc_off[from.state]; i < p->view->arc_off[from.state + 1]; i++) {
      const wf_arc *arc = &p->view->arcs[i];
      bool reads = arc->ilabel != 0, writes = arc->olabel != 0;
      if ((!reads && !writes) || arc->weight == INFINITY) continue;
      if (reads && (in == p->input->size || p->input->data[in] != arc->ilabel)) continue;
      if (writes && (out == p->output->size || p->output->data[out] != arc->olabel)) continue;
      wf__pair_level *target = level_of(p, p->level + reads + writes);
      uint32_t index;
      WF__TRY(cell_at(target, (uint32_t)in + reads, arc->nextstate, &index, err));
      double cost = from.cost + (double)arc->weight, *sum = &target->cells.data[index].cost;
      *sum = p->log ? wf__log_add(*sum, cost) : cost < *sum ? cost : *sum;
    }
  }
  return WF_OK;
}

static void clear(wf__pair_level *level) {
  wf__map64_clear(&level->index);
  level->cells.size = 0;
}

wf_status wf__pair_cost(const wf_fst_view *view, const wf__labels *input, const wf__labels *output,
                        wf__pair_work *work, double *out_cost, wf_error *err) {
  product p = {.view = view,
               .input = input,
               .output = output,
               .work = work,
               .log = view->semiring == WF_LOG};
  *out_cost = INFINITY;
  for (int i = 0; i < 3; i++) clear(&work->levels[i]);
  if (view->start < 0) return WF_OK;
  uint32_t first;
  WF__TRY(cell_at(&work->levels[0], 0, (uint32_t)view->start, &first, err));
  work->levels[0].cells.data[first].cost = 0;
  uint64_t last = input->size + output->size;
  for (p.level = 0; p.level <= last; p.level++) {
    WF__TRY(close_level(&p, err));
    if (p.level == last) break;
    WF__TRY(pass_on(&p, err));
    clear(level_of(&p, p.level));
  }
  const wf__pair_level *level = level_of(&p, last);
  for (uint64_t k = 0; k < level->cells.size; k++) {
    double cost = level->cells.data[k].cost + (double)view->final_cost[level->cells.data[k].state];
    *out_cost = p.log ? wf__log_add(*out_cost, cost) : cost < *out_cost ? cost : *out_cost;
  }
  return WF_OK;
}

void wf__pair_work_free(wf__pair_work *work) {
  for (int i = 0; i < 3; i++) {
    wf__map64_free(&work->levels[i].index);
    wf__vec_free(&work->levels[i].cells);
  }
  wf__vec_free(&work->queue);
}
