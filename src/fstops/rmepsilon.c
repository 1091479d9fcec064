/* rmepsilon.c - epsilon removal (Mohri 2002, "Generic epsilon-removal and input
 * epsilon-normalization algorithms").
 *
 * An epsilon arc is one with both labels 0. The result of a state is its labelled arcs and, for
 * each epsilon arc to t, the result of t at the cost of that arc. States are processed in reverse
 * topological order of the epsilon arcs, so each result is made once, from finished results. In a
 * cycle of epsilons, the distances between its states are computed first (wf__distance_solver).
 *
 * The result of a state s is stored in one of five ways:
 *
 *   s has no epsilon arcs                   its arcs in the input (in_place)
 *   s is not kept and not final, and its    an alias: the result of another state at a cost
 *   only arc is an epsilon arc
 *   no epsilon arc leads to s               nothing: no other result needs it, so it is made
 *                                           when it is written (later)
 *   s has an epsilon arc to a state that    a list: the one of that state, which only s needs,
 *   no other arc enters, and which has      changed in place
 *   many arcs
 *   otherwise                               a range of `pool`
 *
 * Without lists, a chain of epsilons with an arc at each state would copy all arcs behind a state
 * to the state before. */
#include <string.h>

#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fstops/arc_list.h"
#include "fstops/connect.h"
#include "fstops/prune.h"
#include "fstops/shortest_distance.h"

/* KEPT: is the start, or a labelled arc enters it. REACHED: on a path from the start. NEEDED: an
 * epsilon arc enters it. MANY: several epsilon arcs enter it. */
enum { KEPT = 1, REACHED = 2, NEEDED = 4, MANY = 8 };
enum { MIN_LIST = 32 }; /* arcs from which on a list costs less than a copy */

struct result {
  const wf_arc *in_place; /* NULL: the arcs are in the pool or the list */
  wf__arc_list *list;     /* or NULL */
  bool later;             /* made when it is written */
  bool shared;            /* more than one state may need it */
  uint64_t off, count;
  double final_cost;
  double alias_cost; /* used if `alias` is another state */
  uint32_t alias;
};

/* One result under construction. Arcs with equal labels and target are merged, and their costs
 * summed. */
struct merger {
  wf_semiring semiring;
  WF__VEC(wf_arc) arcs; /* their weights are in `costs` */
  WF__VEC(double) costs;
  double final_cost;
  uint64_t *slots; /* stamp << 32 | index */
  int bits;
  uint32_t stamp;
};

struct remover {
  const wf_fst_view *view;
  bool moderate; /* see costs_are_moderate */
  wf__scc scc;
  wf__distance_solver solver;
  uint8_t *marks;
  struct result *results;
  WF__VEC(wf_arc) pool;
  WF__VEC(wf_arc) listed; /* a copy of a list */
  struct merger merger;
};

/* --- merging ----------------------------------------------------------------------------- */

static uint64_t *find_slot(struct merger *merger, const wf_arc *arc) {
  uint64_t mask = ((uint64_t)1 << merger->bits) - 1, slot = wf__arc_hash(arc) & mask;
  for (;; slot = (slot + 1) & mask) {
    if (merger->slots[slot] >> 32 != merger->stamp) return &merger->slots[slot];
    const wf_arc *have = &merger->arcs.data[(uint32_t)merger->slots[slot]];
    if (wf__same_arc(have, arc)) return &merger->slots[slot];
  }
}

static wf_status grow_slots(struct merger *merger, wf_error *err) {
  int bits = merger->bits == 0 ? 8 : merger->bits + 1;
  free(merger->slots);
  merger->bits = 0;
  merger->slots = wf__calloc((uint64_t)1 << bits, sizeof *merger->slots);
  if (merger->slots == NULL)
    return wf__fail_memory(err, sizeof *merger->slots << bits, "epsilon removal");
  merger->bits = bits;
  merger->stamp = 1;
  for (uint64_t i = 0; i < merger->arcs.size; i++)
    *find_slot(merger, &merger->arcs.data[i]) = (uint64_t)merger->stamp << 32 | i;
  return WF_OK;
}

static void merger_start(struct merger *merger) {
  merger->arcs.size = merger->costs.size = 0;
  merger->final_cost = INFINITY;
  if (++merger->stamp != 0) return;
  if (merger->slots != NULL) memset(merger->slots, 0, sizeof *merger->slots << merger->bits);
  merger->stamp = 1;
}

static wf_status merger_add(struct merger *merger, wf_arc arc, double cost, wf_error *err) {
  if (merger->bits == 0 || merger->arcs.size * 2 >= (uint64_t)1 << merger->bits)
    WF__TRY(grow_slots(merger, err));
  uint64_t *slot = find_slot(merger, &arc);
  if (*slot >> 32 == merger->stamp) {
    double *have = &merger->costs.data[(uint32_t)*slot];
    *have = wf__cost_plus(merger->semiring, *have, cost);
    return WF_OK;
  }
  if (merger->arcs.size >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "a state of the result has more than 2^32-1 arcs");
  WF__TRY(wf__vec_grow(&merger->arcs, 1, "arcs", err));
  WF__TRY(wf__vec_grow(&merger->costs, 1, "arcs", err));
  *slot = (uint64_t)merger->stamp << 32 | merger->arcs.size;
  merger->arcs.data[merger->arcs.size++] = arc;
  merger->costs.data[merger->costs.size++] = cost;
  return WF_OK;
}

static bool merger_has(struct merger *merger, const wf_arc *arc) {
  return merger->bits != 0 && *find_slot(merger, arc) >> 32 == merger->stamp;
}

static wf_arc merged_arc(const struct merger *merger, uint64_t i) {
  wf_arc arc = merger->arcs.data[i];
  arc.weight = wf__cost_to_float(merger->costs.data[i]);
  return arc;
}

/* --- results of states ------------------------------------------------------------------- */

/* The arcs of a result, which are valid until the next call. */
static wf_status result_arcs(struct remover *remover, const struct result *result,
                             const wf_arc **out, wf_error *err) {
  *out = result->in_place != NULL ? result->in_place : remover->pool.data + result->off;
  if (result->list == NULL) return WF_OK;
  remover->listed.size = 0;
  WF__TRY(wf__vec_grow(&remover->listed, result->count, "arcs", err));
  wf__arc_list_copy(result->list, remover->listed.data);
  *out = remover->listed.data;
  return WF_OK;
}

/* Finds the result that `state` has itself or by an alias, and adds the cost of the alias. */
static struct result *find_result(struct remover *remover, uint32_t state, double *cost) {
  struct result *result = &remover->results[state];
  if (result->alias == state) return result;
  *cost += result->alias_cost;
  return &remover->results[result->alias];
}

/* Adds the finished result of `state`, at a cost, to the merger. */
static wf_status add_result(struct remover *remover, uint32_t state, double cost, wf_error *err) {
  const struct result *result = find_result(remover, state, &cost);
  struct merger *merger = &remover->merger;
  const wf_arc *arcs;
  if (cost == INFINITY) return WF_OK;
  WF__TRY(result_arcs(remover, result, &arcs, err));
  for (uint64_t i = 0; i < result->count; i++)
    WF__TRY(merger_add(merger, arcs[i], cost + (double)arcs[i].weight, err));
  merger->final_cost =
      wf__cost_plus(merger->semiring, merger->final_cost, cost + result->final_cost);
  return WF_OK;
}

/* Adds the labelled arcs and the final cost of `state`. */
static wf_status add_own(struct remover *remover, uint32_t state, double cost, wf_error *err) {
  const wf_fst_view *view = remover->view;
  struct merger *merger = &remover->merger;
  merger->final_cost =
      wf__cost_plus(merger->semiring, merger->final_cost, cost + (double)view->final_cost[state]);
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_arc *arc = &view->arcs[i];
    if (!wf__arc_is(arc, WF__ARCS_EPSILON) && arc->weight != INFINITY)
      WF__TRY(merger_add(merger, *arc, cost + (double)arc->weight, err));
  }
  return WF_OK;
}

/* Is this an epsilon arc of `state` to another component? */
static bool leaves(const struct remover *remover, uint32_t state, const wf_arc *arc) {
  return wf__arc_is(arc, WF__ARCS_EPSILON) && arc->weight != INFINITY &&
         remover->scc.component[arc->nextstate] != remover->scc.component[state];
}

/* + 0 turns -0 into 0. */
static double epsilon_cost(const wf_arc *epsilon) { return (double)epsilon->weight + 0; }

/* Adds all that `state` contributes: what is its own, and the results of epsilon arcs that leave
 * its component. */
static wf_status add_state(struct remover *remover, uint32_t state, double cost, wf_error *err) {
  const wf_fst_view *view = remover->view;
  WF__TRY(add_own(remover, state, cost, err));
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++)
    if (leaves(remover, state, &view->arcs[i]))
      WF__TRY(
          add_result(remover, view->arcs[i].nextstate, cost + (double)view->arcs[i].weight, err));
  return WF_OK;
}

static wf_status store(struct remover *remover, uint32_t state, wf_error *err) {
  struct merger *merger = &remover->merger;
  WF__TRY(wf__vec_grow(&remover->pool, merger->arcs.size, "arcs", err));
  remover->results[state] = (struct result){.off = remover->pool.size,
                                            .count = merger->arcs.size,
                                            .final_cost = merger->final_cost,
                                            .alias = state};
  for (uint64_t i = 0; i < merger->arcs.size; i++)
    remover->pool.data[remover->pool.size++] = merged_arc(merger, i);
  return WF_OK;
}

/* --- lists ------------------------------------------------------------------------------- */

/* The epsilon arc to the result with the most arcs that nothing else needs, if they are many. */
static const wf_arc *find_unshared(struct remover *remover, uint32_t state) {
  const wf_fst_view *view = remover->view;
  const wf_arc *best = NULL;
  uint64_t most = MIN_LIST - 1;
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1] && remover->moderate; i++) {
    const wf_arc *arc = &view->arcs[i];
    double cost = 0;
    if (!leaves(remover, state, arc) || remover->results[arc->nextstate].shared) continue;
    const struct result *result = find_result(remover, arc->nextstate, &cost);
    if (result->in_place != NULL || result->count <= most) continue;
    best = arc;
    most = result->count;
  }
  return best;
}

/* A list that is being taken over, at a cost. `places` has, for each arc of the merger from `first`
 * on, the place in the list that its sum goes to; WF__NO_PLACE: behind the list. */
struct takeover {
  wf__arc_list *list;
  double cost;
  uint64_t first;
  WF__VEC(uint64_t) places;
};

/* The arcs of the merger come before the list. Sums with arcs of the list are theirs. */
static void put_before(struct merger *merger, struct takeover *taken) {
  for (uint64_t i = 0; i < merger->arcs.size; i++) {
    uint64_t place = wf__arc_list_find(taken->list, &merger->arcs.data[i]);
    if (place == WF__NO_PLACE) continue;
    double cost = taken->cost + (double)wf__arc_list_weight(taken->list, place);
    merger->costs.data[i] = wf__cost_plus(merger->semiring, merger->costs.data[i], cost);
    wf__arc_list_drop(taken->list, place);
  }
  taken->first = merger->arcs.size;
}

/* Adds the result of an epsilon arc that is behind the one whose list is taken. */
static wf_status put_behind(struct remover *remover, struct takeover *taken, const wf_arc *epsilon,
                            wf_error *err) {
  struct merger *merger = &remover->merger;
  double cost = epsilon_cost(epsilon);
  const struct result *result = find_result(remover, epsilon->nextstate, &cost);
  const wf_arc *arcs;
  WF__TRY(result_arcs(remover, result, &arcs, err));
  for (uint64_t i = 0; i < result->count; i++) {
    if (merger_has(merger, &arcs[i])) continue;
    uint64_t place = wf__arc_list_find(taken->list, &arcs[i]);
    double before = place == WF__NO_PLACE
                        ? INFINITY
                        : taken->cost + (double)wf__arc_list_weight(taken->list, place);
    WF__TRY(wf__vec_push(&taken->places, place, "arcs", err));
    WF__TRY(merger_add(merger, arcs[i], before, err));
  }
  return add_result(remover, epsilon->nextstate, epsilon_cost(epsilon), err);
}

/* Adds the cost to the list, and the merged arcs in front and behind. */
static wf_status grow_list(const struct merger *merger, struct takeover *taken, wf_error *err) {
  wf__arc_list *list = taken->list;
  wf__arc_list_add_cost(list, taken->cost);
  for (uint64_t i = taken->first; i < merger->arcs.size; i++) {
    uint64_t place = taken->places.data[i - taken->first];
    if (place != WF__NO_PLACE)
      wf__arc_list_set_weight(list, place, wf__cost_to_float(merger->costs.data[i]));
  }
  for (uint64_t i = taken->first; i < merger->arcs.size; i++)
    if (taken->places.data[i - taken->first] == WF__NO_PLACE)
      WF__TRY(wf__arc_list_push(list, false, merged_arc(merger, i), err));
  for (uint64_t i = taken->first; i-- > 0;)
    WF__TRY(wf__arc_list_push(list, true, merged_arc(merger, i), err));
  return WF_OK;
}

/* Makes the same result as add_state and store, out of the list behind the epsilon arc `heir`. */
static wf_status take_list(struct remover *remover, uint32_t state, const wf_arc *heir,
                           struct takeover *taken, wf_error *err) {
  const wf_fst_view *view = remover->view;
  struct merger *merger = &remover->merger;
  struct result *from;
  taken->cost = epsilon_cost(heir);
  from = find_result(remover, heir->nextstate, &taken->cost);
  if (from->list == NULL)
    WF__TRY(wf__arc_list_create(remover->pool.data + from->off, from->count, &from->list, err));
  taken->list = from->list;
  merger_start(merger);
  WF__TRY(add_own(remover, state, 0, err));
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const wf_arc *arc = &view->arcs[i];
    if (!leaves(remover, state, arc)) continue;
    if (arc == heir) {
      put_before(merger, taken);
      merger->final_cost =
          wf__cost_plus(merger->semiring, merger->final_cost, taken->cost + from->final_cost);
    } else if (arc < heir) {
      WF__TRY(add_result(remover, arc->nextstate, epsilon_cost(arc), err));
    } else {
      WF__TRY(put_behind(remover, taken, arc, err));
    }
  }
  WF__TRY(grow_list(merger, taken, err));
  from->list = NULL;
  remover->results[state] = (struct result){.list = taken->list,
                                            .count = wf__arc_list_count(taken->list),
                                            .final_cost = merger->final_cost,
                                            .alias = state};
  return WF_OK;
}

/* --- states ------------------------------------------------------------------------------ */

static wf_status finish_state(struct remover *remover, uint32_t state, wf_error *err) {
  const wf_fst_view *view = remover->view;
  const wf_arc *arcs = view->arcs + view->arc_off[state];
  uint64_t count = view->arc_off[state + 1] - view->arc_off[state], epsilons = 0;
  struct result *result = &remover->results[state];
  for (uint64_t i = 0; i < count; i++) epsilons += wf__arc_is(&arcs[i], WF__ARCS_EPSILON);
  if (epsilons == 0) {
    *result = (struct result){.in_place = arcs,
                              .count = count,
                              .final_cost = (double)view->final_cost[state],
                              .alias = state};
    return WF_OK;
  }
  if (count == 1 && !wf__is_final(view, state) && !(remover->marks[state] & KEPT)) {
    const struct result *next = &remover->results[arcs[0].nextstate];
    bool alias = next->alias != arcs[0].nextstate;
    *result =
        (struct result){.alias = next->alias,
                        .alias_cost = (double)arcs[0].weight + (alias ? next->alias_cost : 0)};
    return WF_OK;
  }
  if (!(remover->marks[state] & NEEDED)) {
    *result = (struct result){.later = true, .alias = state};
    return WF_OK;
  }
  const wf_arc *heir = find_unshared(remover, state);
  if (heir != NULL) {
    struct takeover taken = {0};
    wf_status status = take_list(remover, state, heir, &taken, err);
    wf__vec_free(&taken.places);
    return status;
  }
  merger_start(&remover->merger);
  WF__TRY(add_state(remover, state, 0, err));
  return store(remover, state, err);
}

/* Makes the result of a state that is a component, and notes whether several states may need it. */
static wf_status finish_alone(struct remover *remover, uint32_t state, wf_error *err) {
  WF__TRY(finish_state(remover, state, err));
  struct result *result = &remover->results[state];
  const wf_arc *only = &remover->view->arcs[remover->view->arc_off[state]]; /* of an alias */
  result->shared = (remover->marks[state] & (KEPT | MANY)) != 0 ||
                   (result->alias != state && remover->results[only->nextstate].shared);
  return WF_OK;
}

/* Makes the results of a component with a cycle of epsilons: for each state, finds the distances
 * inside the component, then adds each state reached at its distance. */
static wf_status finish_cycle(struct remover *remover, uint32_t component, wf_error *err) {
  const uint32_t *states = remover->scc.order + remover->scc.off[component];
  uint32_t size = remover->scc.off[component + 1] - remover->scc.off[component];
  double *dist = remover->solver.dist;
  for (uint32_t i = 0; i < size; i++) {
    WF__TRY(wf__interrupted(err));
    for (uint32_t j = 0; j < size; j++) dist[states[j]] = INFINITY;
    dist[states[i]] = 0;
    WF__TRY(wf__solve_distances(&remover->solver, component, err));
    merger_start(&remover->merger);
    for (uint32_t j = 0; j < size; j++)
      if (dist[states[j]] != INFINITY) WF__TRY(add_state(remover, states[j], dist[states[j]], err));
    WF__TRY(store(remover, states[i], err));
    remover->results[states[i]].shared = true;
  }
  return WF_OK;
}

static bool cyclic(const struct remover *remover, uint32_t component) {
  const wf_fst_view *view = remover->view;
  if (remover->scc.acyclic) return false;
  if (remover->scc.off[component + 1] - remover->scc.off[component] > 1) return true;
  uint32_t s = remover->scc.order[remover->scc.off[component]];
  for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
    if (view->arcs[i].nextstate == s && wf__arc_is(&view->arcs[i], WF__ARCS_EPSILON)) return true;
  return false;
}

/* --- the operation ----------------------------------------------------------------------- */

static wf_status mark_states(struct remover *remover, wf_error *err) {
  const wf_fst_view *view = remover->view;
  uint32_t *queue = wf__alloc(view->num_states, sizeof *queue);
  remover->marks = wf__calloc(view->num_states, 1);
  if (queue == NULL || remover->marks == NULL) {
    free(queue);
    return wf__fail_memory(err, view->num_states * 5, "epsilon removal");
  }
  uint64_t head = 0, tail = 0;
  queue[tail++] = (uint32_t)view->start;
  remover->marks[view->start] = KEPT | REACHED;
  while (head < tail) {
    uint32_t s = queue[head++];
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++) {
      const wf_arc *arc = &view->arcs[i];
      if (!(remover->marks[arc->nextstate] & REACHED)) queue[tail++] = arc->nextstate;
      bool again = (remover->marks[arc->nextstate] & NEEDED) != 0;
      remover->marks[arc->nextstate] |= REACHED | (!wf__arc_is(arc, WF__ARCS_EPSILON) ? KEPT
                                                   : again ? NEEDED | MANY
                                                           : NEEDED);
    }
  }
  free(queue);
  return WF_OK;
}

/* Numbers the states of the result: the kept states in order, or all states unchanged. */
static uint32_t *number_states(const struct remover *remover, bool drop) {
  const wf_fst_view *view = remover->view;
  uint32_t *number = wf__alloc(view->num_states, sizeof *number), next = 0;
  for (uint64_t s = 0; number != NULL && s < view->num_states; s++) {
    number[s] = next;
    next += !drop || (remover->marks[s] & KEPT);
  }
  return number;
}

/* Makes a result that no other result needed, directly in the output. */
static wf_status emit_later(struct remover *remover, uint32_t state, const uint32_t *number,
                            wf__csr *csr, wf_error *err) {
  struct merger *merger = &remover->merger;
  merger_start(merger);
  WF__TRY(add_state(remover, state, 0, err));
  WF__TRY(wf__csr_add_state(csr, wf__cost_to_float(merger->final_cost), err));
  WF__TRY(wf__vec_grow(&csr->arcs, merger->arcs.size, "arcs", err));
  for (uint64_t i = 0; i < merger->arcs.size; i++) {
    wf_arc arc = merged_arc(merger, i);
    arc.nextstate = number[arc.nextstate];
    csr->arcs.data[csr->arcs.size++] = arc;
  }
  return WF_OK;
}

/* Writes the result. With `drop`, states that are not kept are omitted; otherwise they lose their
 * arcs. Arcs lead only to kept states. */
static wf_status emit(struct remover *remover, bool drop, const uint32_t *number, wf__csr *csr,
                      wf_error *err) {
  const wf_fst_view *view = remover->view;
  for (uint64_t s = 0; s < view->num_states; s++) {
    const struct result *result = &remover->results[s];
    bool kept = remover->marks[s] & KEPT;
    if (!kept && drop) continue;
    if (kept && result->later) {
      WF__TRY(emit_later(remover, (uint32_t)s, number, csr, err));
      continue;
    }
    WF__TRY(wf__csr_add_state(csr, kept ? wf__cost_to_float(result->final_cost) : INFINITY, err));
    if (!kept || result->count == 0) continue;
    WF__TRY(wf__vec_grow(&csr->arcs, result->count, "arcs", err));
    const wf_arc *from;
    WF__TRY(result_arcs(remover, result, &from, err));
    wf_arc *to = csr->arcs.data + csr->arcs.size;
    for (uint64_t i = 0; i < result->count; i++) {
      to[i] = from[i];
      to[i].nextstate = number[from[i].nextstate];
    }
    csr->arcs.size += result->count;
  }
  return WF_OK;
}

/* Are all costs finite and small enough that no sum of costs can become infinite? */
static bool costs_are_moderate(const wf_fst_view *view) {
  const float limit = 1e28f;
  for (uint64_t i = 0; i < view->num_arcs; i++)
    if (!(fabsf(view->arcs[i].weight) < limit)) return false;
  for (uint64_t s = 0; s < view->num_states; s++)
    if (wf__is_final(view, s) && !(fabsf(view->final_cost[s]) < limit)) return false;
  return true;
}

static wf_status remove_epsilons(struct remover *remover, double delta, bool drop, wf__csr *csr,
                                 wf_error *err) {
  const wf_fst_view *view = remover->view;
  WF__TRY(mark_states(remover, err));
  WF__TRY(wf__scc_find(view, WF__ARCS_EPSILON, &remover->scc, err));
  if (!remover->scc.acyclic)
    WF__TRY(wf__distance_solver_init(&remover->solver, view, &remover->scc, WF__ARCS_EPSILON, delta,
                                     err));
  remover->results = wf__calloc(view->num_states, sizeof *remover->results);
  if (remover->results == NULL)
    return wf__fail_memory(err, view->num_states * sizeof *remover->results, "epsilon removal");
  for (uint32_t k = remover->scc.num_components; k-- > 0;) {
    uint32_t state = remover->scc.order[remover->scc.off[k]];
    WF__TRY(wf__interrupted_at(k, err));
    if (!(remover->marks[state] & REACHED)) continue;
    WF__TRY(cyclic(remover, k) ? finish_cycle(remover, k, err) : finish_alone(remover, state, err));
  }
  uint32_t *number = number_states(remover, drop);
  if (number == NULL)
    return wf__fail_memory(err, view->num_states * sizeof *number, "state numbers");
  wf_status status = emit(remover, drop, number, csr, err);
  free(number);
  return status;
}

static void remover_free(struct remover *remover) {
  for (uint64_t s = 0; remover->results != NULL && s < remover->view->num_states; s++)
    wf__arc_list_free(remover->results[s].list);
  wf__distance_solver_free(&remover->solver);
  wf__scc_free(&remover->scc);
  free(remover->marks);
  free(remover->results);
  wf__vec_free(&remover->pool);
  wf__vec_free(&remover->listed);
  wf__vec_free(&remover->merger.arcs);
  wf__vec_free(&remover->merger.costs);
  free(remover->merger.slots);
}

/* With `drop`, `fst` is trimmed and its costs are moderate. Then dropping the states that only
 * epsilon arcs enter leaves a trimmed result. Otherwise, `trim` requests trimming. */
static wf_status rmepsilon_connected(const wf_fst *fst, double delta, bool moderate, bool drop,
                                     bool trim, wf_fst **out, wf_error *err) {
  wf_fst_view view = wf_fst_get_view(fst);
  struct remover remover = {
      .view = &view, .moderate = moderate, .merger = {.semiring = view.semiring}};
  wf__csr csr = {0};
  int64_t start = -1;
  wf_status status = WF_OK;
  if (view.start >= 0) {
    status = remove_epsilons(&remover, delta, drop, &csr, err);
    start = view.start;
    for (int64_t s = 0; drop && status == WF_OK && s < view.start; s++)
      start -= !(remover.marks[s] & KEPT);
  }
  if (status == WF_OK && trim && start >= 0) status = wf__csr_connect(&csr, &start, false, err);
  remover_free(&remover);
  if (status == WF_OK) return wf__fst_like(&csr, start, fst, out, err);
  wf__csr_free(&csr);
  return status;
}

wf_status wf_rmepsilon(const wf_fst *fst, const wf_rmepsilon_options *options, wf_fst **out,
                       wf_error *err) {
  *out = NULL;
  wf_rmepsilon_options o;
  WF__TRY(wf__options_take(wf__rmepsilon_table(), options, &o, err));
  wf_fst_view view = wf_fst_get_view(fst);
  bool moderate = costs_are_moderate(&view), drop = o.connect && moderate;
  wf_fst *trimmed = NULL; /* trims the input, which is smaller than the result */
  if (drop) WF__TRY(wf_connect(fst, &trimmed, err));
  wf_status status = rmepsilon_connected(trimmed != NULL ? trimmed : fst, (double)o.delta, moderate,
                                         drop, o.connect && !drop, out, err);
  wf_fst_free(trimmed);
  return status == WF_OK ? wf__prune_result(out, o.weight, o.nstate, err) : status;
}
