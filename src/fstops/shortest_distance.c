/* shortest_distance.c - distances: sums over all paths from the start, or to the final states. */
#include "fstops/shortest_distance.h"

#include <stdatomic.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fst/fst.h"
#include "fstops/parallel.h"

/* Most states are visited in the first FULL_SWEEPS. */
enum { MAX_SWEEPS = 64, FULL_SWEEPS = 6, FETCH_AHEAD = 24, BLOCK_BITS = 3 };

/* The final cost of a state, with -0 replaced by 0. The two compare equal, so which of them a
 * minimum returns would depend on the order of arcs. */
static double at_end(const wf_fst_view *view, uint64_t s) {
  return (double)view->final_cost[s] + 0.0;
}

/* Distances to the final states of an acyclic fst: every state reads the states after it. */
static void pull(const wf_fst_view *view, const wf__scc *scc, double *dist) {
  for (uint64_t k = view->num_states; k-- > 0;) {
    uint32_t s = scc->order[k];
    double sum = at_end(view, s);
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      sum = wf__cost_plus(view->semiring, sum,
                          (double)view->arcs[i].weight + dist[view->arcs[i].nextstate]);
    dist[s] = sum;
  }
}

/* --- sweeps ------------------------------------------------------------------------------ */

/* Distances to the final states in the tropical semiring: sweeps over all states, from the last to
 * the first, until no distance decreases. If the states are numbered in the order of a search, most
 * arcs lead to higher numbers and a few sweeps are enough, without components, reversed arcs or a
 * heap.
 *
 * Threads take pieces of the states, last pieces first, and read each other's distances, old or
 * new. A state is visited again if the distance of one of its targets decreased in this sweep or
 * the one before. The result is the least of the sums along paths, each summed from its end. It
 * does not depend on the order of updates. */
struct sweeper {
  const wf_fst_view *view;
  double *dist;
  /* bitmap of blocks of 2^BLOCK_BITS states, so that it fits in a cache: the distance of one of
   * them decreased. In this sweep, words 2 i + now; in the sweep before, words 2 i + 1 - now */
  uint64_t *fell;
  uint64_t num_pieces;
  int round, now;
  atomic_bool any;
};

static inline double load_cost(const double *cost) {
  double value;
  __atomic_load(cost, &value, __ATOMIC_RELAXED);
  return value;
}

static bool after_fell(const struct sweeper *sweeper, const wf_arc *arcs, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint32_t block = arcs[i].nextstate >> BLOCK_BITS;
    const uint64_t *words = &sweeper->fell[block / 64 * 2];
    if ((__atomic_load_n(&words[0], __ATOMIC_RELAXED) |
         __atomic_load_n(&words[1], __ATOMIC_RELAXED)) >>
            (block % 64) &
        1)
      return true;
  }
  return false;
}

/* Fetches the distances that the state FETCH_AHEAD places before `s` will read. */
static inline void fetch_ahead(const struct sweeper *sweeper, uint64_t s) {
  const wf_fst_view *view = sweeper->view;
  if (s < FETCH_AHEAD) return;
  for (uint64_t i = view->arc_off[s - FETCH_AHEAD]; i < view->arc_off[s - FETCH_AHEAD + 1]; i++)
    __builtin_prefetch(&sweeper->dist[view->arcs[i].nextstate]);
}

static void sweep_piece(void *user, uint64_t item, int worker) {
  struct sweeper *sweeper = user;
  const wf_fst_view *view = sweeper->view;
  uint64_t piece = sweeper->num_pieces - 1 - item;
  bool any = false;
  (void)worker;
  for (uint64_t s = wf__piece_end(piece, view->num_states); s-- > piece * WF__PIECE_STATES;) {
    const wf_arc *arcs = view->arcs + view->arc_off[s];
    uint64_t count = view->arc_off[s + 1] - view->arc_off[s];
    if (sweeper->round < FULL_SWEEPS) fetch_ahead(sweeper, s);
    if (sweeper->round > 0 && !after_fell(sweeper, arcs, count)) continue;
    double before = sweeper->dist[s], best = before;
    for (uint64_t i = 0; i < count; i++) {
      double cost = (double)arcs[i].weight + load_cost(&sweeper->dist[arcs[i].nextstate]);
      best = cost < best ? cost : best;
    }
    if (!(best < before)) continue;
    __atomic_store(&sweeper->dist[s], &best, __ATOMIC_RELAXED);
    uint64_t block = s >> BLOCK_BITS,
             *word = &sweeper->fell[block / 64 * 2 + (uint64_t)sweeper->now];
    __atomic_store_n(word, *word | (uint64_t)1 << (block % 64), __ATOMIC_RELAXED);
    any = true;
  }
  if (any) atomic_store_explicit(&sweeper->any, true, memory_order_relaxed);
}

/* Sweeps until no distance decreases (`*done`) or MAX_SWEEPS is reached. On entry, `dist` holds
 * final costs or sums along paths. */
static wf_status sweep(const wf_fst_view *view, wf__pool *pool, double *dist, bool *done,
                       wf_error *err) {
  uint64_t num_pieces = wf__num_pieces(view->num_states),
           words = (num_pieces * WF__PIECE_STATES >> BLOCK_BITS) / 64;
  uint64_t *bits = wf__calloc(words, 2 * sizeof *bits);
  if (bits == NULL) return wf__fail_memory(err, words * 16, "distances");
  struct sweeper sweeper = {.view = view, .dist = dist, .fell = bits, .num_pieces = num_pieces};
  wf_status status = WF_OK;
  for (*done = false; !*done && sweeper.round < MAX_SWEEPS; sweeper.round++) {
    atomic_store(&sweeper.any, false);
    status = wf__pool_try(pool, num_pieces, sweep_piece, &sweeper, err);
    if (status != WF_OK) break;
    *done = !atomic_load(&sweeper.any);
    sweeper.now = 1 - sweeper.now;
    for (uint64_t i = 0; i < words; i++) bits[2 * i + (uint64_t)sweeper.now] = 0;
  }
  free(bits);
  return status;
}

/* --- by components ----------------------------------------------------------------------- */

/* Propagates distances from the states where they are set, component by component. `backwards`: the
 * arcs of the graph are reversed relative to the order of the components. */
static wf_status push(wf__distance_solver *solver, bool backwards, wf_error *err) {
  const wf_fst_view *graph = solver->graph;
  const wf__scc *scc = solver->scc;
  double *dist = solver->dist;
  for (uint32_t k = 0; k < scc->num_components; k++) {
    uint32_t component = backwards ? scc->num_components - 1 - k : k;
    WF__TRY(wf__interrupted_at(k, err));
    if (!scc->acyclic) WF__TRY(wf__solve_distances(solver, component, err));
    for (uint32_t j = scc->off[component]; j < scc->off[component + 1]; j++) {
      uint32_t s = scc->order[j];
      if (dist[s] == INFINITY) continue;
      for (uint64_t i = graph->arc_off[s]; i < graph->arc_off[s + 1]; i++) {
        const wf_arc *arc = &graph->arcs[i];
        if (scc->component[arc->nextstate] == component) continue;
        dist[arc->nextstate] =
            wf__cost_plus(graph->semiring, dist[arc->nextstate], dist[s] + (double)arc->weight);
      }
    }
  }
  return WF_OK;
}

/* Sweeps until no distance decreases, beginning with the distances that components gave: those
 * ignored gains below delta. If that succeeds, the result is the same as that of sweeps alone. */
static wf_status sweep_rest(const wf_fst_view *view, wf__pool *pool, double *dist, wf_error *err) {
  bool done;
  double *swept = wf__alloc(view->num_states, sizeof *swept);
  if (swept == NULL) return wf__fail_memory(err, view->num_states * sizeof *swept, "distances");
  memcpy(swept, dist, view->num_states * sizeof *swept);
  wf_status status = sweep(view, pool, swept, &done, err);
  if (status == WF_OK && done) memcpy(dist, swept, view->num_states * sizeof *swept);
  free(swept);
  return status;
}

wf_status wf__shortest_distance(const wf_fst_view *view, bool reverse, double delta, wf__pool *pool,
                                double **out, wf_error *err) {
  *out = NULL;
  if (reverse && view->semiring == WF_TROPICAL) {
    double *dist = wf__alloc(view->num_states, sizeof *dist);
    if (dist == NULL) return wf__fail_memory(err, view->num_states * sizeof *dist, "distances");
    bool done;
    for (uint64_t s = 0; s < view->num_states; s++) dist[s] = at_end(view, s);
    wf_status status = sweep(view, pool, dist, &done, err);
    if (status == WF_OK && done) {
      *out = dist;
      return WF_OK;
    }
    free(dist);
    WF__TRY(status);
  }
  wf__scc scc = {0};
  wf__distance_solver solver = {0};
  wf__incoming incoming = {0};
  wf_fst_view graph = *view;
  wf_status status;
  WF__TRY_GOTO(status, wf__scc_find(view, WF__ARCS_ALL, &scc, err), done);
  WF__TRY_GOTO(status, wf__distance_solver_init(&solver, &graph, &scc, WF__ARCS_ALL, delta, err),
               done);
  if (reverse && scc.acyclic) {
    pull(view, &scc, solver.dist);
  } else if (reverse) {
    WF__TRY_GOTO(status, wf__incoming_find(view, &incoming, err), done);
    graph.arc_off = incoming.off;
    graph.arcs = incoming.arcs;
    for (uint64_t s = 0; s < view->num_states; s++) solver.dist[s] = at_end(view, s);
    status = push(&solver, true, err);
    if (status == WF_OK && view->semiring == WF_TROPICAL)
      status = sweep_rest(view, pool, solver.dist, err);
  } else {
    if (view->start >= 0) solver.dist[view->start] = 0;
    status = push(&solver, false, err);
  }
  if (status == WF_OK) {
    *out = solver.dist;
    solver.dist = NULL;
  }
done:
  wf__incoming_free(&incoming);
  wf__distance_solver_free(&solver);
  wf__scc_free(&scc);
  return status;
}

wf_status wf_shortest_distance(const wf_fst *fst, const wf_shortest_distance_options *options,
                               float **out_distance, wf_error *err) {
  *out_distance = NULL;
  wf_shortest_distance_options o;
  WF__TRY(wf__options_take(wf__shortest_distance_table(), options, &o, err));
  wf_fst_view view = wf_fst_get_view(fst);
  double *dist;
  wf__pool *pool;
  WF__TRY(wf__pool_for_fst(o.num_threads, &view, &pool, err));
  wf_status status = wf__shortest_distance(&view, o.reverse, (double)o.delta, pool, &dist, err);
  wf__pool_free(pool);
  WF__TRY(status);
  float *costs = wf__alloc(view.num_states, sizeof *costs);
  if (costs == NULL) {
    free(dist);
    return wf__fail_memory(err, view.num_states * sizeof *costs, "distances");
  }
  for (uint64_t s = 0; s < view.num_states; s++) costs[s] = wf__cost_to_float(dist[s]);
  free(dist);
  *out_distance = costs;
  return WF_OK;
}
