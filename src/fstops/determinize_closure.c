/* determinize_closure.c - epsilon closure: the states that a subset reaches by arcs with input
 * epsilon.
 *
 * The states reached are collected first. They are then processed in topological order of the
 * epsilon arcs, so that each passes its sum on once. The states of an epsilon cycle are iterated:
 * in the tropical semiring until no cost improves, in the log semiring until the mass that is still
 * circulating is negligible. */
#include <string.h>

#include "fstops/determinize.h"

struct wf__det_closure {
  const wf_fst_view *view;
  wf__scc scc;
  uint32_t *rank; /* [num_states] index in scc.order */
  /* [num_states] index in worker->current + 1 while a closure runs; otherwise 0 */
  uint32_t *position;
  uint8_t *has_epsilons;
  WF__VEC(double) dist;    /* by index in worker->current */
  WF__VEC(double) pending; /* log semiring: mass not passed on yet */
  WF__VEC(uint64_t) order; /* rank << 32 | index in worker->current */
  WF__VEC(uint32_t) queue;
  WF__VEC(uint8_t) queued;
};

/* -log(1e-9): mass in a cycle that is relatively smaller than this is not passed on. */
static const double margin = 20.7;

wf_status wf__det_closure_create(const wf_fst_view *view, wf__det_closure **out, wf_error *err) {
  uint64_t n = view->num_states;
  *out = NULL;
  wf__det_closure *closure = wf__calloc(1, sizeof *closure);
  if (closure == NULL) return wf__fail_memory(err, sizeof *closure, "epsilon closure");
  closure->view = view;
  closure->rank = wf__alloc(n, sizeof *closure->rank);
  closure->position = wf__calloc(n, sizeof *closure->position);
  closure->has_epsilons = wf__calloc(n, 1);
  wf_status status = WF_OK;
  if (closure->rank == NULL || closure->position == NULL || closure->has_epsilons == NULL)
    status = wf__fail_memory(err, n * 9, "epsilon closure");
  if (status == WF_OK) status = wf__scc_find(view, WF__ARCS_INPUT_EPSILON, &closure->scc, err);
  if (status != WF_OK) {
    wf__det_closure_free(closure);
    return status;
  }
  for (uint32_t i = 0; i < n; i++) closure->rank[closure->scc.order[i]] = i;
  for (uint64_t s = 0; s < n; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      if (view->arcs[i].ilabel == 0) closure->has_epsilons[s] = 1;
  *out = closure;
  return WF_OK;
}

void wf__det_closure_free(wf__det_closure *closure) {
  if (closure == NULL) return;
  wf__scc_free(&closure->scc);
  free(closure->rank);
  free(closure->position);
  free(closure->has_epsilons);
  wf__vec_free(&closure->dist);
  wf__vec_free(&closure->pending);
  wf__vec_free(&closure->order);
  wf__vec_free(&closure->queue);
  wf__vec_free(&closure->queued);
  free(closure);
}

/* Adds every state reached to worker->current, with cost +infinity. */
static wf_status collect(wf__det_worker *worker, wf_error *err) {
  wf__det_closure *closure = worker->det->closure;
  for (uint32_t i = 0; i < worker->current.size; i++)
    closure->position[worker->current.data[i].state] = i + 1;
  for (uint64_t k = 0; k < worker->current.size; k++) {
    uint32_t s = worker->current.data[k].state;
    if (!closure->has_epsilons[s]) continue;
    for (uint64_t i = worker->det->view.arc_off[s]; i < worker->det->view.arc_off[s + 1]; i++) {
      const wf_arc *arc = &worker->det->view.arcs[i];
      if (arc->ilabel != 0 || arc->weight == INFINITY || closure->position[arc->nextstate] != 0)
        continue;
      WF__TRY(wf__vec_grow(&worker->current, 1, "epsilon closure", err));
      worker->current.data[worker->current.size++] =
          (wf__det_element){.state = arc->nextstate, .cost = INFINITY};
      closure->position[arc->nextstate] = (uint32_t)worker->current.size;
    }
  }
  return WF_OK;
}

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static wf_status prepare(wf__det_worker *worker, wf_error *err) {
  wf__det_closure *closure = worker->det->closure;
  uint64_t count = worker->current.size;
  closure->dist.size = closure->pending.size = closure->order.size = closure->queue.size =
      closure->queued.size = 0;
  WF__TRY(wf__vec_grow(&closure->dist, count, "epsilon closure", err));
  WF__TRY(wf__vec_grow(&closure->pending, count, "epsilon closure", err));
  WF__TRY(wf__vec_grow(&closure->order, count, "epsilon closure", err));
  WF__TRY(wf__vec_grow(&closure->queued, count, "epsilon closure", err));
  memset(closure->queued.data, 0, count);
  for (uint64_t i = 0; i < count; i++) {
    closure->dist.data[i] = (double)worker->current.data[i].cost;
    closure->order.data[i] = (uint64_t)closure->rank[worker->current.data[i].state] << 32 | i;
  }
  qsort(closure->order.data, count, sizeof(uint64_t), compare_u64);
  return WF_OK;
}

/* Adds a path with this output and cost to the element at `place`. `*gained`: it is the new best
 * path (tropical). */
static wf_status offer(wf__det_worker *worker, uint32_t place, uint32_t string, double cost,
                       bool *gained, wf_error *err) {
  double *have = &worker->det->closure->dist.data[place];
  wf__det_element *element = &worker->current.data[place];
  *gained = cost < *have;
  if (*have == INFINITY) element->string = string;
  if (element->string != string) {
    wf__det_conflict conflict = {.state = element->state, .strings = {element->string, string}};
    if (!worker->det->o.allow_nonfunctional)
      return wf__fail_nonfunctional(worker->det, &conflict, err);
    if (!*gained) return WF_OK;
    element->string = string;
    *have = cost;
    return WF_OK;
  }
  *have = wf__cost_plus(worker->det->view.semiring, *have, cost);
  return WF_OK;
}

/* Passes `mass` along the epsilon arcs of the element at `place`: along those inside its component
 * if `stay`, along those that leave it if not. */
static wf_status pass(wf__det_worker *worker, uint32_t place, double mass, bool stay,
                      wf_error *err) {
  wf__det_closure *closure = worker->det->closure;
  wf__det_element from = worker->current.data[place];
  uint32_t component = closure->scc.component[from.state];
  if (!closure->has_epsilons[from.state]) return WF_OK;
  for (uint64_t i = worker->det->view.arc_off[from.state];
       i < worker->det->view.arc_off[from.state + 1]; i++) {
    const wf_arc *arc = &worker->det->view.arcs[i];
    if (arc->ilabel != 0 || arc->weight == INFINITY ||
        (closure->scc.component[arc->nextstate] == component) != stay)
      continue;
    uint32_t to = closure->position[arc->nextstate] - 1, string;
    double cost = mass + (double)arc->weight;
    bool gained;
    WF__TRY(wf__residual_append(worker, from.string, arc->olabel, &string, err));
    WF__TRY(offer(worker, to, string, cost, &gained, err));
    if (!stay) continue;
    if (worker->det->view.semiring == WF_LOG) {
      closure->pending.data[to] = wf__log_add(closure->pending.data[to], cost);
      gained = closure->pending.data[to] < closure->dist.data[to] + margin;
    }
    if (!gained || closure->queued.data[to]) continue;
    closure->queued.data[to] = 1;
    WF__TRY(wf__vec_push(&closure->queue, to, "epsilon closure", err));
  }
  return WF_OK;
}

/* Iterates a component, whose elements are order[first .. end). */
static wf_status iterate(wf__det_worker *worker, uint64_t first, uint64_t end, wf_error *err) {
  wf__det_closure *closure = worker->det->closure;
  closure->queue.size = 0;
  for (uint64_t i = first; i < end; i++) {
    uint32_t place = (uint32_t)closure->order.data[i];
    closure->pending.data[place] = closure->dist.data[place];
    if (closure->dist.data[place] == INFINITY) continue;
    closure->queued.data[place] = 1;
    WF__TRY(wf__vec_push(&closure->queue, place, "epsilon closure", err));
  }
  uint64_t limit =
      (end - first) * (worker->det->view.semiring == WF_LOG ? 100000 : end - first + 1);
  for (uint64_t head = 0; head < closure->queue.size; head++) {
    uint32_t place = closure->queue.data[head];
    if (head > limit) {
      return wf__fail(
          err, WF_ERR_NEGATIVE_CYCLE,
          "the sum over a cycle of arcs with input epsilon through state %u does not %s",
          worker->current.data[place].state,
          worker->det->view.semiring == WF_LOG ? "converge" : "exist: its cost is negative");
    }
    closure->queued.data[place] = 0;
    double mass = worker->det->view.semiring == WF_LOG ? closure->pending.data[place]
                                                       : closure->dist.data[place];
    closure->pending.data[place] = INFINITY;
    WF__TRY(pass(worker, place, mass, true, err));
  }
  return WF_OK;
}

static wf_status run(wf__det_worker *worker, wf_error *err) {
  wf__det_closure *closure = worker->det->closure;
  WF__TRY(collect(worker, err));
  WF__TRY(prepare(worker, err));
  uint64_t count = worker->current.size;
  for (uint64_t i = 0, end; i < count; i = end) {
    uint32_t component =
        closure->scc.component[worker->current.data[(uint32_t)closure->order.data[i]].state];
    for (end = i + 1; end < count; end++)
      if (closure->scc.component[worker->current.data[(uint32_t)closure->order.data[end]].state] !=
          component)
        break;
    if (!closure->scc.acyclic) WF__TRY(iterate(worker, i, end, err));
    for (uint64_t j = i; j < end; j++) {
      uint32_t place = (uint32_t)closure->order.data[j];
      if (closure->dist.data[place] != INFINITY)
        WF__TRY(pass(worker, place, closure->dist.data[place], false, err));
    }
  }
  for (uint64_t i = 0; i < count; i++)
    worker->current.data[i].cost = wf__cost_to_float(closure->dist.data[i]);
  return WF_OK;
}

wf_status wf__det_closure_apply(wf__det_worker *worker, wf_error *err) {
  bool any = false;
  for (uint64_t i = 0; i < worker->current.size && !any; i++)
    any = worker->det->closure->has_epsilons[worker->current.data[i].state];
  if (!any) return WF_OK;
  wf_status status = run(worker, err);
  for (uint64_t i = 0; i < worker->current.size; i++)
    worker->det->closure->position[worker->current.data[i].state] = 0;
  return status;
}
