/* determinize_closure.c - epsilon closure: the states that a subset reaches by arcs with input
 * epsilon.
 *
 * The states reached are collected first. They are then processed in topological order of the
 * epsilon arcs, so that each passes its sum on once. The states of an epsilon cycle are iterated:
 * in the tropical semiring until no cost improves, in the log semiring until the mass that is still
 * circulating is negligible. */
#include <string.h>

#include "fstops/determinize.h"

/* The graph of epsilon arcs: its states are those that such an arc leaves or enters ("inner"
 * states), in the order of their numbers. Threads share it. */
struct wf__det_closure {
  wf_fst_view inner;      /* epsilon arcs between inner states */
  uint64_t *is_inner;     /* bitmap of the states of the input */
  uint32_t *inner_before; /* for each word of the bitmap: number of inner states before it */
  uint32_t *state_of;     /* [inner states] number in the input */
  uint64_t *arc_off;
  wf_arc *arcs;
  wf__scc scc;
  uint32_t *rank; /* [inner states] index in scc.order */
};

/* The scratch of one thread. */
struct wf__det_closure_scratch {
  /* [inner states] index in worker->current + 1 while a closure runs; otherwise 0 */
  uint32_t *position;
  WF__VEC(double) dist;    /* by index in worker->current */
  WF__VEC(double) pending; /* log semiring: mass not passed on yet */
  WF__VEC(uint64_t) order; /* inner states: rank << 32 | index in worker->current */
  WF__VEC(uint32_t) queue;
  WF__VEC(uint8_t) queued;
};

/* -log(1e-9): mass in a cycle that is relatively smaller than this is not passed on. */
static const double margin = 20.7;

static inline bool is_inner(const wf__det_closure *closure, uint32_t state) {
  return closure->is_inner[state / 64] >> (state % 64) & 1;
}
static inline uint32_t inner_of(const wf__det_closure *closure, uint32_t state) {
  uint64_t before = closure->is_inner[state / 64] & (((uint64_t)1 << (state % 64)) - 1);
  return closure->inner_before[state / 64] + (uint32_t)__builtin_popcountll(before);
}
static inline bool has_epsilons(const wf__det_closure *closure, uint32_t state) {
  if (!is_inner(closure, state)) return false;
  uint32_t inner = inner_of(closure, state);
  return closure->arc_off[inner] != closure->arc_off[inner + 1];
}

/* --- the graph of epsilon arcs ----------------------------------------------------------- */

static void mark_inner(wf__det_closure *closure, const wf_fst_view *view) {
  uint64_t *marks = closure->is_inner;
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      uint32_t next = view->arcs[i].nextstate;
      if (view->arcs[i].ilabel != 0) continue;
      marks[s / 64] |= (uint64_t)1 << (s % 64);
      marks[next / 64] |= (uint64_t)1 << (next % 64);
      closure->inner.num_arcs++;
    }
  for (uint64_t w = 0; w <= view->num_states / 64; w++) {
    closure->inner_before[w] = (uint32_t)closure->inner.num_states;
    closure->inner.num_states += (uint64_t)__builtin_popcountll(marks[w]);
  }
}

static void copy_epsilons(wf__det_closure *closure, const wf_fst_view *view) {
  uint64_t num_arcs = 0;
  uint32_t inner = 0;
  for (uint64_t s = 0; s < view->num_states; s++) {
    if (!is_inner(closure, (uint32_t)s)) continue;
    closure->state_of[inner] = (uint32_t)s;
    closure->arc_off[inner++] = num_arcs;
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      if (view->arcs[i].ilabel != 0) continue;
      closure->arcs[num_arcs] = view->arcs[i];
      closure->arcs[num_arcs++].nextstate = inner_of(closure, view->arcs[i].nextstate);
    }
  }
  closure->arc_off[inner] = num_arcs;
}

static wf_status make_inner(wf__det_closure *closure, const wf_fst_view *view, wf_error *err) {
  uint64_t words = view->num_states / 64 + 1;
  closure->is_inner = wf__calloc(words, sizeof *closure->is_inner);
  closure->inner_before = wf__alloc(words, sizeof *closure->inner_before);
  if (closure->is_inner == NULL || closure->inner_before == NULL)
    return wf__fail_memory(err, words * 12, "epsilon closure");
  mark_inner(closure, view);
  uint64_t n = closure->inner.num_states, m = closure->inner.num_arcs;
  closure->state_of = wf__alloc(n, sizeof *closure->state_of);
  closure->rank = wf__alloc(n, sizeof *closure->rank);
  closure->arc_off = wf__alloc(n + 1, sizeof *closure->arc_off);
  closure->arcs = wf__alloc(m, sizeof *closure->arcs);
  if (closure->state_of == NULL || closure->rank == NULL || closure->arc_off == NULL ||
      closure->arcs == NULL)
    return wf__fail_memory(err, n * 16 + m * sizeof(wf_arc), "epsilon closure");
  copy_epsilons(closure, view);
  closure->inner.arc_off = closure->arc_off;
  closure->inner.arcs = closure->arcs;
  closure->inner.semiring = view->semiring;
  closure->inner.start = view->start >= 0 && is_inner(closure, (uint32_t)view->start)
                             ? (int64_t)inner_of(closure, (uint32_t)view->start)
                             : -1;
  return WF_OK;
}

wf_status wf__det_closure_create(const wf_fst_view *view, wf__det_closure **out, wf_error *err) {
  *out = NULL;
  wf__det_closure *closure = wf__calloc(1, sizeof *closure);
  if (closure == NULL) return wf__fail_memory(err, sizeof *closure, "epsilon closure");
  wf_status status = make_inner(closure, view, err);
  if (status == WF_OK) status = wf__scc_find(&closure->inner, WF__ARCS_ALL, &closure->scc, err);
  if (status != WF_OK) {
    wf__det_closure_free(closure);
    return status;
  }
  for (uint32_t i = 0; i < closure->inner.num_states; i++) closure->rank[closure->scc.order[i]] = i;
  *out = closure;
  return WF_OK;
}

void wf__det_closure_free(wf__det_closure *closure) {
  if (closure == NULL) return;
  wf__scc_free(&closure->scc);
  free(closure->is_inner);
  free(closure->inner_before);
  free(closure->state_of);
  free(closure->rank);
  free(closure->arc_off);
  free(closure->arcs);
  free(closure);
}

static wf_status make_scratch(wf__det_worker *worker, wf_error *err) {
  uint64_t n = worker->det->closure->inner.num_states;
  if (worker->scratch == NULL) worker->scratch = wf__calloc(1, sizeof *worker->scratch);
  if (worker->scratch != NULL && worker->scratch->position == NULL)
    worker->scratch->position = wf__calloc(n, sizeof *worker->scratch->position);
  return worker->scratch != NULL && worker->scratch->position != NULL
             ? WF_OK
             : wf__fail_memory(err, n * 4, "epsilon closure");
}

void wf__det_scratch_free(wf__det_closure_scratch *scratch) {
  if (scratch == NULL) return;
  free(scratch->position);
  wf__vec_free(&scratch->dist);
  wf__vec_free(&scratch->pending);
  wf__vec_free(&scratch->order);
  wf__vec_free(&scratch->queue);
  wf__vec_free(&scratch->queued);
  free(scratch);
}

/* --- one closure ------------------------------------------------------------------------- */

/* Adds every state reached to worker->current, with cost +infinity. */
static wf_status collect(wf__det_worker *worker, wf_error *err) {
  const wf__det_closure *closure = worker->det->closure;
  uint32_t *position = worker->scratch->position;
  for (uint32_t i = 0; i < worker->current.size; i++)
    if (is_inner(closure, worker->current.data[i].state))
      position[inner_of(closure, worker->current.data[i].state)] = i + 1;
  for (uint64_t k = 0; k < worker->current.size; k++) {
    if (!is_inner(closure, worker->current.data[k].state)) continue;
    uint32_t inner = inner_of(closure, worker->current.data[k].state);
    for (uint64_t i = closure->arc_off[inner]; i < closure->arc_off[inner + 1]; i++) {
      const wf_arc *arc = &closure->arcs[i];
      if (arc->weight == INFINITY || position[arc->nextstate] != 0) continue;
      WF__TRY(wf__vec_grow(&worker->current, 1, "epsilon closure", err));
      worker->current.data[worker->current.size++] =
          (wf__det_element){.state = closure->state_of[arc->nextstate], .cost = INFINITY};
      position[arc->nextstate] = (uint32_t)worker->current.size;
    }
  }
  return WF_OK;
}

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static wf_status prepare(wf__det_worker *worker, wf_error *err) {
  const wf__det_closure *graph = worker->det->closure;
  struct wf__det_closure_scratch *closure = worker->scratch;
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
    uint32_t state = worker->current.data[i].state;
    if (is_inner(graph, state))
      closure->order.data[closure->order.size++] =
          (uint64_t)graph->rank[inner_of(graph, state)] << 32 | i;
  }
  qsort(closure->order.data, closure->order.size, sizeof(uint64_t), compare_u64);
  return WF_OK;
}

/* Adds a path with this output and cost to the element at `place`. `*gained`: it is the new best
 * path (tropical). */
static wf_status offer(wf__det_worker *worker, uint32_t place, uint32_t string, double cost,
                       bool *gained, wf_error *err) {
  double *have = &worker->scratch->dist.data[place];
  wf__det_element *element = &worker->current.data[place];
  *gained = cost < *have;
  if (*have == INFINITY) element->string = string;
  if (element->string != string) {
    wf__det_conflict conflict = {.state = element->state, .strings = {element->string, string}};
    if (worker->shared && !worker->det->o.allow_nonfunctional) return WF_ERR_STATE;
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
  const wf__det_closure *graph = worker->det->closure;
  struct wf__det_closure_scratch *closure = worker->scratch;
  wf__det_element from = worker->current.data[place];
  uint32_t inner = inner_of(graph, from.state), component = graph->scc.component[inner];
  for (uint64_t i = graph->arc_off[inner]; i < graph->arc_off[inner + 1]; i++) {
    const wf_arc *arc = &graph->arcs[i];
    if (arc->weight == INFINITY || (graph->scc.component[arc->nextstate] == component) != stay)
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
  struct wf__det_closure_scratch *closure = worker->scratch;
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

static uint32_t component_of(const wf__det_worker *worker, uint64_t k) {
  const wf__det_closure *graph = worker->det->closure;
  uint32_t place = (uint32_t)worker->scratch->order.data[k];
  return graph->scc.component[inner_of(graph, worker->current.data[place].state)];
}

static wf_status run(wf__det_worker *worker, wf_error *err) {
  WF__TRY(collect(worker, err));
  WF__TRY(prepare(worker, err));
  struct wf__det_closure_scratch *closure = worker->scratch;
  uint64_t count = closure->order.size;
  for (uint64_t i = 0, end; i < count; i = end) {
    uint32_t component = component_of(worker, i);
    for (end = i + 1; end < count && component_of(worker, end) == component;) end++;
    if (!worker->det->closure->scc.acyclic) WF__TRY(iterate(worker, i, end, err));
    for (uint64_t j = i; j < end; j++) {
      uint32_t place = (uint32_t)closure->order.data[j];
      if (closure->dist.data[place] != INFINITY)
        WF__TRY(pass(worker, place, closure->dist.data[place], false, err));
    }
  }
  for (uint64_t i = 0; i < worker->current.size; i++)
    worker->current.data[i].cost = wf__cost_to_float(closure->dist.data[i]);
  return WF_OK;
}

wf_status wf__det_closure_apply(wf__det_worker *worker, wf_error *err) {
  const wf__det_closure *closure = worker->det->closure;
  bool any = false;
  for (uint64_t i = 0; i < worker->current.size && !any; i++)
    any = has_epsilons(closure, worker->current.data[i].state);
  if (!any) return WF_OK;
  WF__TRY(make_scratch(worker, err));
  wf_status status = run(worker, err);
  for (uint64_t i = 0; i < worker->current.size; i++)
    if (is_inner(closure, worker->current.data[i].state))
      worker->scratch->position[inner_of(closure, worker->current.data[i].state)] = 0;
  return status;
}
