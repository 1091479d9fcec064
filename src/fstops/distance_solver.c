/* distance_solver.c - distances inside one strongly connected component (SCC).
 *
 *   tropical, no negative cost   Dijkstra's algorithm
 *   tropical, negative costs     label correcting, in the order of order_queue.h. If a best path
 *                                has as many arcs as the component has states, it contains a cycle
 *                                of negative cost.
 *   log                          each state holds the mass that reached it and was not passed on
 *                                yet (Mohri 2002, fig. 2). Self-loops are summed in closed form.
 *                                Negligible mass waits until more arrives, so none is lost. */
#include <stdlib.h>

#include "base/interrupt.h"
#include "fstops/shortest_distance.h"

wf_status wf__distance_solver_init(wf__distance_solver *solver, const wf_fst_view *graph,
                                   const wf__scc *scc, wf__arc_kind kind, double delta,
                                   wf_error *err) {
  *solver = (wf__distance_solver){
      .graph = graph, .scc = scc, .kind = kind, .delta = delta > 1e-12 ? delta : 1e-12};
  solver->dist = wf__alloc(graph->num_states, sizeof(double));
  if (solver->dist == NULL)
    return wf__fail_memory(err, graph->num_states * sizeof(double), "distances");
  for (uint64_t s = 0; s < graph->num_states; s++) solver->dist[s] = INFINITY;
  return WF_OK;
}

void wf__distance_solver_free(wf__distance_solver *solver) {
  free(solver->dist);
  free(solver->pending);
  free(solver->star);
  free(solver->hops);
  wf__order_queue_free(&solver->queue);
  wf__vec_free(&solver->heap);
  *solver = (wf__distance_solver){0};
}

static wf_status make_scratch(wf__distance_solver *solver, wf_error *err) {
  if (solver->hops != NULL) {
    wf__order_queue_restart(&solver->queue);
    return WF_OK;
  }
  uint64_t n = solver->graph->num_states;
  solver->hops = wf__alloc(n, sizeof *solver->hops);
  solver->pending = wf__alloc(n, sizeof *solver->pending);
  solver->star = wf__alloc(n, sizeof *solver->star);
  if (solver->hops == NULL || solver->pending == NULL || solver->star == NULL)
    return wf__fail_memory(err, n * 20, "distances");
  const wf__search_graph graph = {
      .num_states = n, .arc_off = solver->graph->arc_off, .arcs = solver->graph->arcs};
  return wf__order_queue_init(&solver->queue, &graph, err);
}

/* Is it an arc to a state of the same component? */
static inline bool inside(const wf__distance_solver *solver, uint32_t component,
                          const wf_arc *arc) {
  return solver->scc->component[arc->nextstate] == component && arc->weight != INFINITY &&
         wf__arc_is(arc, solver->kind);
}

static wf_status dijkstra(wf__distance_solver *solver, uint32_t component, wf_error *err) {
  const wf_fst_view *graph = solver->graph;
  double *dist = solver->dist;
  solver->heap.size = 0;
  for (uint32_t i = solver->scc->off[component]; i < solver->scc->off[component + 1]; i++) {
    uint32_t s = solver->scc->order[i];
    if (dist[s] != INFINITY)
      WF__TRY(wf__heap_push(&solver->heap, (wf__heap_entry){.cost = dist[s], .item = s}, err));
  }
  for (uint64_t step = 0; solver->heap.size > 0; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    wf__heap_entry top = wf__heap_pop(&solver->heap);
    if (top.cost > dist[top.item]) continue;
    for (uint64_t i = graph->arc_off[top.item]; i < graph->arc_off[top.item + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      double cost = top.cost + (double)arc->weight;
      if (cost >= dist[arc->nextstate] || !inside(solver, component, arc)) continue;
      dist[arc->nextstate] = cost;
      WF__TRY(wf__heap_push(&solver->heap, (wf__heap_entry){.cost = cost, .item = arc->nextstate},
                            err));
    }
  }
  return WF_OK;
}

static wf_status negative_cycle(uint32_t state, wf_error *err) {
  return wf__fail(err, WF_ERR_NEGATIVE_CYCLE,
                  "a cycle through state %u has negative cost, so there is no best path", state);
}

static wf_status correct_labels(wf__distance_solver *solver, uint32_t component, wf_error *err) {
  WF__TRY(make_scratch(solver, err));
  const wf_fst_view *graph = solver->graph;
  double *dist = solver->dist;
  uint32_t first = solver->scc->off[component], size = solver->scc->off[component + 1] - first;
  for (uint32_t i = 0; i < size; i++) {
    uint32_t s = solver->scc->order[first + i];
    solver->hops[s] = 0;
    if (dist[s] != INFINITY) wf__order_queue_put(&solver->queue, s);
  }
  for (uint64_t step = 0; solver->queue.count > 0; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    uint32_t s = wf__order_queue_take(&solver->queue);
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      double cost = dist[s] + (double)arc->weight;
      uint32_t next = arc->nextstate;
      /* A gain below delta may be rounding, which could make a cycle of cost zero seem negative. */
      if (!(dist[next] == INFINITY || cost < dist[next] - solver->delta) ||
          !inside(solver, component, arc))
        continue;
      if (next == s) return negative_cycle(s, err);
      dist[next] = cost;
      solver->hops[next] = solver->hops[s] + 1;
      if (solver->hops[next] >= size) return negative_cycle(next, err);
      wf__order_queue_put(&solver->queue, next);
    }
  }
  return WF_OK;
}

static wf_status diverges(uint32_t state, wf_error *err) {
  return wf__fail(
      err, WF_ERR_NEGATIVE_CYCLE,
      "the sum over the paths of a cycle through state %u does not converge (log semiring)", state);
}

/* Moves the mass that entered the component to `pending`, queues those states, computes the closed
 * form of self-loops, and counts the arcs inside the component. */
static wf_status start_mass(wf__distance_solver *solver, uint32_t component, uint64_t *num_arcs,
                            wf_error *err) {
  const wf_fst_view *graph = solver->graph;
  for (uint32_t i = solver->scc->off[component]; i < solver->scc->off[component + 1]; i++) {
    uint32_t s = solver->scc->order[i];
    double loop = INFINITY;
    for (uint64_t j = graph->arc_off[s]; j < graph->arc_off[s + 1]; j++) {
      if (!inside(solver, component, &graph->arcs[j])) continue;
      ++*num_arcs;
      if (graph->arcs[j].nextstate == s) loop = wf__log_add(loop, (double)graph->arcs[j].weight);
    }
    if (loop <= 0) return diverges(s, err);
    solver->star[s] = loop == INFINITY ? 0 : log1p(-exp(-loop));
    solver->pending[s] = solver->dist[s];
    solver->dist[s] = INFINITY;
    if (solver->pending[s] != INFINITY) wf__order_queue_put(&solver->queue, s);
  }
  return WF_OK;
}

/* Detects sums that diverge. After every round (as many arcs passed as the component has), the
 * pending mass of all queued states is summed. If the sum over all paths converges, the pending
 * mass tends to zero. It is taken to diverge if the least pending mass of a window of 16 rounds has
 * not decreased for three windows in a row, or after MAX_ROUNDS rounds. */
struct divergence {
  uint64_t num_arcs, passed, next_check;
  double least, previous_least; /* least mass in a window, as a cost: the highest cost */
  int num_checks, num_windows;
};

enum { CHECKS_PER_WINDOW = 16, WINDOWS_OF_GROWTH = 3, MAX_ROUNDS = 20000 };

static bool mass_grows(struct divergence *check, const wf__distance_solver *solver,
                       uint32_t component) {
  if (check->passed < check->next_check) return false;
  check->next_check = check->passed + check->num_arcs;
  double mass = INFINITY;
  for (uint32_t i = solver->scc->off[component]; i < solver->scc->off[component + 1]; i++)
    if (wf__order_queue_has(&solver->queue, solver->scc->order[i]))
      mass = wf__log_add(mass, solver->pending[solver->scc->order[i]]);
  if (check->num_checks == 0 || mass > check->least) check->least = mass;
  if (++check->num_checks < CHECKS_PER_WINDOW) return false;
  check->num_windows = check->least <= check->previous_least ? check->num_windows + 1 : 0;
  check->previous_least = check->least;
  check->num_checks = 0;
  return check->num_windows >= WINDOWS_OF_GROWTH || check->passed / MAX_ROUNDS > check->num_arcs;
}

static wf_status sum_mass(wf__distance_solver *solver, uint32_t component, wf_error *err) {
  WF__TRY(make_scratch(solver, err));
  const wf_fst_view *graph = solver->graph;
  double *dist = solver->dist, *pending = solver->pending, margin = -log(solver->delta);
  struct divergence check = {.previous_least = -INFINITY};
  WF__TRY(start_mass(solver, component, &check.num_arcs, err));
  for (uint64_t step = 0; solver->queue.count > 0; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    bool grows = mass_grows(&check, solver, component);
    uint32_t s = wf__order_queue_take(&solver->queue);
    if (grows) return diverges(s, err);
    double mass = pending[s] + solver->star[s];
    pending[s] = INFINITY;
    dist[s] = wf__log_add(dist[s], mass);
    check.passed += graph->arc_off[s + 1] - graph->arc_off[s];
    if (!(dist[s] > -1e300)) return diverges(s, err);
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      uint32_t next = arc->nextstate;
      if (next == s || !inside(solver, component, arc)) continue;
      pending[next] = wf__log_add(pending[next], mass + (double)arc->weight);
      if (pending[next] <= dist[next] + margin) wf__order_queue_put(&solver->queue, next);
    }
  }
  for (uint32_t i = solver->scc->off[component]; i < solver->scc->off[component + 1]; i++) {
    uint32_t s = solver->scc->order[i];
    dist[s] = wf__log_add(dist[s], pending[s]);
  }
  return WF_OK;
}

wf_status wf__solve_distances(wf__distance_solver *solver, uint32_t component, wf_error *err) {
  const wf_fst_view *graph = solver->graph;
  bool entered = false, cyclic = false, negative = false;
  for (uint32_t i = solver->scc->off[component]; i < solver->scc->off[component + 1]; i++) {
    uint32_t s = solver->scc->order[i];
    entered = entered || solver->dist[s] != INFINITY;
    for (uint64_t j = graph->arc_off[s]; j < graph->arc_off[s + 1]; j++) {
      if (!inside(solver, component, &graph->arcs[j])) continue;
      cyclic = true;
      negative = negative || graph->arcs[j].weight < 0;
    }
  }
  if (!entered || !cyclic) return WF_OK;
  if (graph->semiring == WF_LOG) return sum_mass(solver, component, err);
  return negative ? correct_labels(solver, component, err) : dijkstra(solver, component, err);
}
