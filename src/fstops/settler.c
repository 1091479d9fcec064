/* settler.c - distances inside one strongly connected component.
 *
 * Tropical, no negative cost:  Dijkstra.
 * Tropical, negative costs:    label correcting with a queue; a way of as many arcs as the
 * component has states has gone round a cycle and gained.
 * Log:                         every state holds the mass that has reached it and not yet been
 * passed on (Mohri 2002, fig. 2); self-loops are
 *                              summed in closed form. Mass too small to matter waits until more
 *                              arrives, so none is lost. */
#include <stdlib.h>

#include "base/interrupt.h"
#include "fstops/shortest_distance.h"

wf_status wf__settler_init(wf__settler *settler, const wf_fst_view *graph, const wf__scc *scc,
                           wf__arc_kind kind, double delta, wf_error *err) {
  *settler = (wf__settler){
      .graph = graph, .scc = scc, .kind = kind, .delta = delta > 1e-12 ? delta : 1e-12};
  settler->dist = wf__alloc(graph->num_states, sizeof(double));
  if (settler->dist == NULL)
    return wf__fail_memory(err, graph->num_states * sizeof(double), "distances");
  for (uint64_t s = 0; s < graph->num_states; s++) settler->dist[s] = INFINITY;
  return WF_OK;
}

void wf__settler_free(wf__settler *settler) {
  free(settler->dist);
  free(settler->pending);
  free(settler->star);
  free(settler->queue);
  free(settler->hops);
  free(settler->queued);
  wf__vec_free(&settler->heap);
  *settler = (wf__settler){0};
}

static wf_status make_scratch(wf__settler *settler, wf_error *err) {
  if (settler->queued != NULL) return WF_OK;
  uint64_t n = settler->graph->num_states;
  settler->queue = wf__alloc(n, sizeof *settler->queue);
  settler->hops = wf__alloc(n, sizeof *settler->hops);
  settler->pending = wf__alloc(n, sizeof *settler->pending);
  settler->star = wf__alloc(n, sizeof *settler->star);
  settler->queued = wf__calloc(n, 1);
  if (settler->queue == NULL || settler->hops == NULL || settler->pending == NULL ||
      settler->star == NULL || settler->queued == NULL)
    return wf__fail_memory(err, n * 25, "distances");
  return WF_OK;
}

/* The arcs of a state that stay inside its component. */
static inline bool inside(const wf__settler *settler, uint32_t component, const wf_arc *arc) {
  return settler->scc->component[arc->nextstate] == component && arc->weight != INFINITY &&
         wf__arc_is(arc, settler->kind);
}

static wf_status dijkstra(wf__settler *settler, uint32_t component, wf_error *err) {
  const wf_fst_view *graph = settler->graph;
  double *dist = settler->dist;
  settler->heap.size = 0;
  for (uint32_t i = settler->scc->off[component]; i < settler->scc->off[component + 1]; i++) {
    uint32_t s = settler->scc->order[i];
    if (dist[s] != INFINITY)
      WF__TRY(wf__heap_push(&settler->heap, (wf__heap_entry){.cost = dist[s], .item = s}, err));
  }
  for (uint64_t step = 0; settler->heap.size > 0; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    wf__heap_entry top = wf__heap_pop(&settler->heap);
    if (top.cost > dist[top.item]) continue;
    for (uint64_t i = graph->arc_off[top.item]; i < graph->arc_off[top.item + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      double cost = top.cost + (double)arc->weight;
      if (cost >= dist[arc->nextstate] || !inside(settler, component, arc)) continue;
      dist[arc->nextstate] = cost;
      WF__TRY(wf__heap_push(&settler->heap, (wf__heap_entry){.cost = cost, .item = arc->nextstate},
                            err));
    }
  }
  return WF_OK;
}

static wf_status negative_cycle(uint32_t state, wf_error *err) {
  return wf__fail(err, WF_ERR_NEGATIVE_CYCLE,
                  "a cycle through state %u has negative cost, so there is no best path", state);
}

static wf_status correct_labels(wf__settler *settler, uint32_t component, wf_error *err) {
  WF__TRY(make_scratch(settler, err));
  const wf_fst_view *graph = settler->graph;
  double *dist = settler->dist;
  uint32_t first = settler->scc->off[component], size = settler->scc->off[component + 1] - first,
           head = 0, count = 0;
  for (uint32_t i = 0; i < size; i++) {
    uint32_t s = settler->scc->order[first + i];
    settler->hops[s] = 0;
    settler->queued[s] = dist[s] != INFINITY;
    if (settler->queued[s]) settler->queue[count++] = s;
  }
  for (uint64_t step = 0; count > 0; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    uint32_t s = settler->queue[head];
    head = head + 1 == size ? 0 : head + 1;
    count--;
    settler->queued[s] = 0;
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      double cost = dist[s] + (double)arc->weight;
      uint32_t next = arc->nextstate;
      /* A gain below delta is rounding: without this a cycle of cost zero could seem negative. */
      if (!(dist[next] == INFINITY || cost < dist[next] - settler->delta) ||
          !inside(settler, component, arc))
        continue;
      if (next == s) return negative_cycle(s, err);
      dist[next] = cost;
      settler->hops[next] = settler->hops[s] + 1;
      if (settler->hops[next] >= size) return negative_cycle(next, err);
      if (settler->queued[next]) continue;
      settler->queued[next] = 1;
      uint32_t tail = head + count++;
      settler->queue[tail >= size ? tail - size : tail] = next;
    }
  }
  return WF_OK;
}

static wf_status diverges(uint32_t state, wf_error *err) {
  return wf__fail(
      err, WF_ERR_NEGATIVE_CYCLE,
      "the sum over the paths of a cycle through state %u does not converge (log semiring)", state);
}

/* Moves what entered to `pending`, queues those states, works out the closed form of self-loops;
 * counts the arcs inside. */
static wf_status start_mass(wf__settler *settler, uint32_t component, uint32_t *count,
                            uint64_t *num_arcs, wf_error *err) {
  const wf_fst_view *graph = settler->graph;
  for (uint32_t i = settler->scc->off[component]; i < settler->scc->off[component + 1]; i++) {
    uint32_t s = settler->scc->order[i];
    double loop = INFINITY;
    for (uint64_t j = graph->arc_off[s]; j < graph->arc_off[s + 1]; j++) {
      if (!inside(settler, component, &graph->arcs[j])) continue;
      ++*num_arcs;
      if (graph->arcs[j].nextstate == s) loop = wf__log_add(loop, (double)graph->arcs[j].weight);
    }
    if (loop <= 0) return diverges(s, err);
    settler->star[s] = loop == INFINITY ? 0 : log1p(-exp(-loop));
    settler->pending[s] = settler->dist[s];
    settler->dist[s] = INFINITY;
    settler->queued[s] = settler->pending[s] != INFINITY;
    if (settler->queued[s]) settler->queue[(*count)++] = s;
  }
  return WF_OK;
}

/* Tells sums that grow for ever. Each time all arcs might have been passed once, the mass under way
 * is weighed. Where the sum exists that mass dies away in the end; when its least weight in a
 * window of 16 rounds has not fallen for three windows, it does not. */
struct watch {
  uint64_t num_arcs, passed, next_weighing;
  double lightest, previous; /* costs: the highest cost is the least mass */
  int num_weighed, num_windows;
};

enum { WEIGHINGS_IN_WINDOW = 16, WINDOWS_OF_GROWTH = 3, MOST_ROUNDS = 20000 };

static bool grows(struct watch *watch, const wf__settler *settler, uint32_t size, uint32_t head,
                  uint32_t count) {
  if (watch->passed < watch->next_weighing) return false;
  watch->next_weighing = watch->passed + watch->num_arcs;
  double mass = INFINITY;
  for (uint32_t i = 0; i < count; i++)
    mass = wf__log_add(
        mass, settler->pending[settler->queue[head + i < size ? head + i : head + i - size]]);
  if (watch->num_weighed == 0 || mass > watch->lightest) watch->lightest = mass;
  if (++watch->num_weighed < WEIGHINGS_IN_WINDOW) return false;
  watch->num_windows = watch->lightest <= watch->previous ? watch->num_windows + 1 : 0;
  watch->previous = watch->lightest;
  watch->num_weighed = 0;
  return watch->num_windows >= WINDOWS_OF_GROWTH || watch->passed / MOST_ROUNDS > watch->num_arcs;
}

static wf_status sum_mass(wf__settler *settler, uint32_t component, wf_error *err) {
  WF__TRY(make_scratch(settler, err));
  const wf_fst_view *graph = settler->graph;
  double *dist = settler->dist, *pending = settler->pending, margin = -log(settler->delta);
  uint32_t first = settler->scc->off[component], size = settler->scc->off[component + 1] - first,
           head = 0, count = 0;
  struct watch watch = {.previous = -INFINITY};
  WF__TRY(start_mass(settler, component, &count, &watch.num_arcs, err));
  for (uint64_t step = 0; count > 0; step++) {
    WF__TRY(wf__interrupted_at(step, err));
    uint32_t s = settler->queue[head];
    if (grows(&watch, settler, size, head, count)) return diverges(s, err);
    head = head + 1 == size ? 0 : head + 1;
    count--;
    settler->queued[s] = 0;
    double mass = pending[s] + settler->star[s];
    pending[s] = INFINITY;
    dist[s] = wf__log_add(dist[s], mass);
    watch.passed += graph->arc_off[s + 1] - graph->arc_off[s];
    if (!(dist[s] > -1e300)) return diverges(s, err);
    for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
      const wf_arc *arc = &graph->arcs[i];
      uint32_t next = arc->nextstate;
      if (next == s || !inside(settler, component, arc)) continue;
      pending[next] = wf__log_add(pending[next], mass + (double)arc->weight);
      if (settler->queued[next] || pending[next] > dist[next] + margin) continue;
      settler->queued[next] = 1;
      uint32_t tail = head + count++;
      settler->queue[tail >= size ? tail - size : tail] = next;
    }
  }
  for (uint32_t i = first; i < first + size; i++) {
    uint32_t s = settler->scc->order[i];
    dist[s] = wf__log_add(dist[s], pending[s]);
  }
  return WF_OK;
}

wf_status wf__settle(wf__settler *settler, uint32_t component, wf_error *err) {
  const wf_fst_view *graph = settler->graph;
  bool entered = false, cyclic = false, negative = false;
  for (uint32_t i = settler->scc->off[component]; i < settler->scc->off[component + 1]; i++) {
    uint32_t s = settler->scc->order[i];
    entered = entered || settler->dist[s] != INFINITY;
    for (uint64_t j = graph->arc_off[s]; j < graph->arc_off[s + 1]; j++) {
      if (!inside(settler, component, &graph->arcs[j])) continue;
      cyclic = true;
      negative = negative || graph->arcs[j].weight < 0;
    }
  }
  if (!entered || !cyclic) return WF_OK;
  if (graph->semiring == WF_LOG) return sum_mass(settler, component, err);
  return negative ? correct_labels(settler, component, err) : dijkstra(settler, component, err);
}
