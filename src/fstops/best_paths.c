/* best_paths.c - cheapest paths from one or many sources, on the tropical semiring.
 *
 *   run_ordered      acyclic: every arc is relaxed once
 *   run_dijkstra     cyclic, no negative arc
 *   run_correcting   cyclic, negative arcs: label correcting with a queue (order_queue.h). After
 *                    every num_states improvements the tree of best paths is searched for a cycle,
 *                    where a negative cycle must appear (Cherkassky & Goldberg 1999, section 4) */
#include "fstops/best_paths.h"

#include <string.h>

#include "base/interrupt.h"
#include "fstops/cost_heap.h"
#include "fstops/order_queue.h"

static const double rounding_slack = 1e-5;

/* --- useful states ------------------------------------------------------------------------ */

/* Sets `bit` in mark[] for the states reachable from the first `tail` states in the queue, which
 * are marked already. */
static void flood(const uint64_t *arc_off, const wf_arc *arcs, uint8_t bit, uint8_t *mark,
                  uint32_t *queue, uint64_t tail) {
  for (uint64_t head = 0; head < tail; head++) {
    uint32_t s = queue[head];
    for (uint64_t i = arc_off[s]; i < arc_off[s + 1]; i++) {
      uint32_t next = arcs[i].nextstate;
      if (arcs[i].weight == INFINITY || (mark[next] & bit)) continue;
      mark[next] |= bit;
      queue[tail++] = next;
    }
  }
}

wf_status wf__useful_states(const wf_fst_view *view, const wf__incoming *incoming,
                            uint8_t **out_useful, wf_error *err) {
  uint64_t n = view->num_states, tail = 0;
  *out_useful = NULL;
  uint8_t *mark = wf__calloc(n, 1);
  uint32_t *queue = wf__alloc(n, sizeof *queue);
  if (mark == NULL || queue == NULL) {
    free(mark);
    free(queue);
    return wf__fail_memory(err, n * 5, "marks of states");
  }
  if (view->start >= 0) {
    mark[view->start] = 1;
    queue[0] = (uint32_t)view->start;
    flood(view->arc_off, view->arcs, 1, mark, queue, 1);
  }
  for (uint64_t s = 0; s < n; s++) {
    if (!wf__is_final(view, s)) continue;
    mark[s] |= 2;
    queue[tail++] = (uint32_t)s;
  }
  flood(incoming->off, incoming->arcs, 2, mark, queue, tail);
  for (uint64_t s = 0; s < n; s++) mark[s] = mark[s] == 3;
  free(queue);
  *out_useful = mark;
  return WF_OK;
}

/* --- shared by the three searches -------------------------------------------------------- */

/* Relaxes arc i, which leaves s. Returns true if the cost of its target decreased by more than
 * `slack`, or, with slack 0, stayed the same with fewer arcs. */
static inline bool relax(wf__best_paths *paths, const wf_arc *arc, uint64_t i, uint32_t s,
                         double slack) {
  uint32_t to = arc->nextstate;
  double cost = paths->cost[s] + (double)arc->weight;
  bool better = cost < paths->cost[to] - slack ||
                (slack == 0 && cost == paths->cost[to] && paths->hops[s] + 1 < paths->hops[to]);
  if (!better) return false;
  paths->cost[to] = cost;
  paths->hops[to] = paths->hops[s] + 1;
  paths->from[to] = s;
  paths->arc[to] = i;
  return true;
}

/* Relaxes an arc whose source has its final cost. If several arcs reach the target at the same cost
 * with the same number of arcs, the arc with the lowest index is kept. */
static inline bool relax_final(wf__best_paths *paths, const wf_arc *arc, uint64_t i, uint32_t s) {
  uint32_t to = arc->nextstate;
  if (relax(paths, arc, i, s, 0)) return true;
  if (paths->hops[s] + 1 != paths->hops[to] || i > paths->arc[to] ||
      paths->cost[s] + (double)arc->weight != paths->cost[to])
    return false;
  paths->from[to] = s;
  paths->arc[to] = i;
  return false;
}

static void reset(const wf__search_graph *graph, wf__best_paths *paths) {
  for (uint64_t s = 0; s < graph->num_states; s++) {
    paths->cost[s] = wf__source_cost(graph, s);
    paths->hops[s] = 0;
    paths->from[s] = WF__NO_STATE;
  }
}

/* --- acyclic ----------------------------------------------------------------------------- */

static void run_ordered(const wf__search_graph *graph, const uint32_t *order, uint64_t begin,
                        wf__best_paths *paths) {
  for (uint64_t k = begin; k < graph->num_states; k++) {
    uint32_t s = order[k];
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++)
      if (wf__enters(graph, &graph->arcs[i])) relax_final(paths, &graph->arcs[i], i, s);
  }
}

/* --- no negative arc --------------------------------------------------------------------- */

/* The cost beyond which the search may stop, given the cheapest complete path so far. Final costs
 * may be negative even if no arc is. */
static double stop_cost(const wf__search_graph *graph, double best_end, double least_final) {
  double stop = graph->limited ? graph->limit : INFINITY;
  return graph->final_cost != NULL && best_end + graph->width - least_final < stop
             ? best_end + graph->width - least_final
             : stop;
}

static double cheapest_final(const wf__search_graph *graph) {
  double least = 0;
  for (uint64_t s = 0; graph->final_cost != NULL && s < graph->num_states; s++)
    if ((double)graph->final_cost[s] < least) least = (double)graph->final_cost[s];
  return least;
}

static wf_status run_dijkstra(const wf__search_graph *graph, wf__best_paths *paths, wf_error *err) {
  wf__heap heap = {0};
  wf_status status = WF_OK;
  double best_end = INFINITY, least_final = cheapest_final(graph),
         stop = stop_cost(graph, INFINITY, least_final);
  for (uint64_t s = 0; s < graph->num_states; s++)
    if (paths->cost[s] != INFINITY)
      WF__TRY_GOTO(status,
                   wf__heap_push(&heap, (wf__heap_entry){paths->cost[s], 0, (uint32_t)s}, err),
                   done);
  for (uint64_t step = 0; heap.size > 0; step++) {
    WF__TRY_GOTO(status, wf__interrupted_at(step, err), done);
    wf__heap_entry top = wf__heap_pop(&heap);
    uint32_t s = top.item;
    if (top.cost != paths->cost[s] || top.hops != paths->hops[s]) continue; /* outdated entry */
    paths->cut = top.cost > stop;
    if (paths->cut) break;
    if (graph->final_cost != NULL && top.cost + (double)graph->final_cost[s] < best_end) {
      best_end = top.cost + (double)graph->final_cost[s];
      stop = stop_cost(graph, best_end, least_final);
    }
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      if (!wf__enters(graph, arc) || !relax_final(paths, arc, i, s)) continue;
      WF__TRY_GOTO(status,
                   wf__heap_push(&heap,
                                 (wf__heap_entry){paths->cost[arc->nextstate],
                                                  paths->hops[arc->nextstate], arc->nextstate},
                                 err),
                   done);
    }
  }
  for (uint64_t s = 0; paths->cut && s < graph->num_states; s++)
    if (paths->cost[s] > stop) paths->cost[s] = INFINITY; /* only an upper bound */
done:
  wf__vec_free(&heap);
  return status;
}

/* --- negative arcs on a cyclic graph ----------------------------------------------------- */

/* Returns a state on a cycle of the back-pointers, or WF__NO_STATE if they form a tree. mark[] is
 * scratch: the number of the walk that visited the state. */
static uint32_t tree_cycle(const wf__best_paths *paths, uint64_t n, uint32_t *mark) {
  memset(mark, 0xff, n * sizeof *mark);
  for (uint64_t s = 0; s < n; s++) {
    uint32_t at = (uint32_t)s;
    while (at != WF__NO_STATE && mark[at] == UINT32_MAX) {
      mark[at] = (uint32_t)s;
      at = paths->from[at];
    }
    if (at != WF__NO_STATE && mark[at] == s) return at;
  }
  return WF__NO_STATE;
}

/* Sets `*cycle_state` to a state on a negative cycle, or to WF__NO_STATE if the costs are final or
 * the call was interrupted. mark: scratch [n]. */
static void run_correcting(const wf__search_graph *graph, wf__order_queue *queue, uint32_t *mark,
                           double slack, wf__best_paths *paths, uint32_t *cycle_state) {
  uint64_t n = graph->num_states, improved = 0;
  for (uint64_t s = 0; s < n; s++)
    if (paths->cost[s] != INFINITY) wf__order_queue_put(queue, (uint32_t)s);
  *cycle_state = WF__NO_STATE;
  for (uint64_t step = 1; queue->count > 0 && !(step % 1024 == 0 && wf__stopped()); step++) {
    uint32_t s = wf__order_queue_take(queue);
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      if (!wf__enters(graph, arc) || !relax(paths, arc, i, s, slack)) continue;
      improved++;
      wf__order_queue_put(queue, arc->nextstate);
    }
    if (improved < n) continue;
    improved = 0;
    *cycle_state = tree_cycle(paths, n, mark);
    if (*cycle_state != WF__NO_STATE) return;
  }
}

/* Breaks ties once the costs are final: a breadth-first search over the arcs of cheapest paths
 * finds the fewest arcs and the lowest arc indices. Label correcting guarantees neither, because
 * the cost of a state may change after its arcs were relaxed. */
static void break_ties(const wf__search_graph *graph, uint32_t *queue, wf__best_paths *paths) {
  uint64_t tail = 0;
  for (uint64_t s = 0; s < graph->num_states; s++) {
    bool source = paths->cost[s] != INFINITY && paths->cost[s] == wf__source_cost(graph, s);
    paths->hops[s] = source ? 0 : UINT32_MAX;
    paths->from[s] = WF__NO_STATE;
    if (source) queue[tail++] = (uint32_t)s;
  }
  for (uint64_t head = 0; head < tail; head++) {
    uint32_t s = queue[head];
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      if (!wf__enters(graph, arc)) continue;
      bool reached = paths->hops[arc->nextstate] != UINT32_MAX;
      relax_final(paths, arc, i, s);
      if (!reached && paths->hops[arc->nextstate] != UINT32_MAX) queue[tail++] = arc->nextstate;
    }
  }
}

static wf_status correct(const wf__search_graph *graph, wf__best_paths *paths, wf_error *err) {
  uint64_t n = graph->num_states;
  uint32_t cycle_state = WF__NO_STATE, *scratch = wf__alloc(n, sizeof *scratch);
  if (scratch == NULL) return wf__fail_memory(err, n * sizeof *scratch, "a search queue");
  wf__order_queue queue;
  wf_status status = wf__order_queue_init(&queue, graph, err);
  if (status != WF_OK) {
    free(scratch);
    return status;
  }
  run_correcting(graph, &queue, scratch, 0, paths, &cycle_state);
  WF__TRY_GOTO(status, wf__interrupted(err), done);
  if (cycle_state == WF__NO_STATE) {
    break_ties(graph, scratch, paths);
    goto done;
  }
  /* In pushed or rescaled fsts, float32 rounding makes some cycles of cost zero slightly negative.
   * The second attempt ignores improvements that small. */
  reset(graph, paths);
  while (queue.count > 0) wf__order_queue_take(&queue);
  run_correcting(graph, &queue, scratch, rounding_slack, paths, &cycle_state);
  WF__TRY_GOTO(status, wf__interrupted(err), done);
  if (cycle_state != WF__NO_STATE)
    status =
        wf__fail(err, WF_ERR_NEGATIVE_CYCLE,
                 "state %u is on a cycle of negative cost: there is no best path", cycle_state);
done:
  free(scratch);
  wf__order_queue_free(&queue);
  return status;
}

/* --- choosing the algorithm -------------------------------------------------------------- */

static bool has_negative(const wf__search_graph *graph) {
  for (uint64_t i = 0; i < graph->arc_off[graph->num_states]; i++)
    if (graph->arcs[i].weight < 0) return true;
  return false;
}

static wf_status find(const wf__search_graph *graph, uint32_t *order, wf__best_paths *paths,
                      wf_error *err) {
  uint64_t begin;
  bool acyclic;
  WF__TRY(wf__interrupted(err));
  reset(graph, paths);
  WF__TRY(wf__order_states(graph, false, order, &begin, &acyclic, err));
  if (acyclic) {
    run_ordered(graph, order, begin, paths);
    return WF_OK;
  }
  return has_negative(graph) ? correct(graph, paths, err) : run_dijkstra(graph, paths, err);
}

wf_status wf__best_paths_find(const wf__search_graph *graph, wf__best_paths *out, wf_error *err) {
  uint64_t n = graph->num_states;
  *out = (wf__best_paths){wf__alloc(n, sizeof *out->cost), wf__alloc(n, sizeof *out->hops),
                          wf__alloc(n, sizeof *out->from), wf__alloc(n, sizeof *out->arc), false};
  uint32_t *order = wf__alloc(n, sizeof *order);
  bool fine = out->cost != NULL && out->hops != NULL && out->from != NULL && out->arc != NULL &&
              order != NULL;
  wf_status status =
      fine ? find(graph, order, out, err) : wf__fail_memory(err, n * 28, "best paths");
  free(order);
  if (status != WF_OK) wf__best_paths_free(out);
  return status;
}

void wf__best_paths_free(wf__best_paths *paths) {
  free(paths->cost);
  free(paths->hops);
  free(paths->from);
  free(paths->arc);
  *paths = (wf__best_paths){0};
}
