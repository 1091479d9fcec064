/* lattice_score.c - a compact lattice composed with a scorer: second-pass rescoring.
 *
 * States of the composition are (state of the lattice, context), made from the lattice's first
 * state to its last; those of one lattice state are linked in the order of making. At the end,
 * states that lead to no final state are dropped.
 *
 * wf_compact_lattice_scorer_costs composes a lattice whose costs already include the scorer's.
 * It adds nothing, and reports each arc's scorer cost. */
#include <math.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "lattice/compact_lattice.h"
#include "scorer/scorer.h"

#define NONE UINT32_MAX

struct scored_state {
  uint64_t first_arc, num_arcs;
  uint32_t state, context; /* state of the lattice; index in contexts */
  uint32_t next_here;
  float end_cost;
  bool alive;
  uint32_t number; /* in the result */
};

struct scored_arc {
  uint64_t arc; /* of the lattice */
  uint32_t nextstate;
  float cost;
};

struct work {
  wf_compact_lattice_view view;
  const wf_scorer *scorer;
  void *memory;
  uint64_t max_states;
  wf__map64 context_of, state_of;
  WF__VEC(uint64_t) contexts;
  WF__VEC(struct scored_state) states;
  WF__VEC(struct scored_arc) arcs;
  WF__VEC(uint32_t) order;          /* states, lattice state by lattice state */
  uint32_t *first_here, *last_here; /* [lattice states] */
  wf__compact_arrays out;
  bool adds;                             /* adds the scorer's costs to the lattice's */
  WF__VEC(float) arc_costs, final_costs; /* if it does not add: the scorer's costs of the result */
};

static wf_status find_state(struct work *w, uint32_t state, uint64_t context, uint32_t *out,
                            wf_error *err) {
  uint32_t place;
  bool fresh;
  WF__TRY(wf__map64_insert(&w->context_of, context, (uint32_t)w->contexts.size, &place, &fresh,
                           "contexts", err));
  if (fresh) WF__TRY(wf__vec_push(&w->contexts, context, "contexts", err));
  WF__TRY(wf__map64_insert(&w->state_of, (uint64_t)state << 32 | place, (uint32_t)w->states.size,
                           out, &fresh, "scored states", err));
  if (!fresh) return WF_OK;
  if (w->states.size >= w->max_states)
    return wf__fail(err, WF_ERR_LIMIT, "scoring a lattice: more than %llu states",
                    (unsigned long long)w->max_states);
  if (w->last_here[state] != NONE)
    w->states.data[w->last_here[state]].next_here = *out;
  else
    w->first_here[state] = *out;
  w->last_here[state] = *out;
  struct scored_state made = {
      .state = state, .context = place, .next_here = NONE, .end_cost = INFINITY};
  return wf__vec_push(&w->states, made, "scored states", err);
}

static wf_status expand(struct work *w, uint32_t id, wf_error *err) {
  uint32_t state = w->states.data[id].state;
  uint64_t context = w->contexts.data[w->states.data[id].context], first_arc = w->arcs.size;
  float end_cost = INFINITY;
  if (w->view.finals[state].graph_cost != INFINITY)
    WF__TRY(w->scorer->ops->final(w->scorer, w->memory, context, &end_cost, err));
  for (uint64_t i = w->view.arc_off[state]; i < w->view.arc_off[state + 1]; i++) {
    const wf_compact_arc *arc = &w->view.arcs[i];
    struct scored_arc put = {.arc = i};
    uint64_t next = context;
    if (arc->word != 0)
      WF__TRY(
          w->scorer->ops->step(w->scorer, w->memory, context, arc->word, &put.cost, &next, err));
    if (put.cost == INFINITY) continue;
    WF__TRY(find_state(w, (uint32_t)arc->nextstate, next, &put.nextstate, err));
    WF__TRY(wf__vec_push(&w->arcs, put, "scored arcs", err));
  }
  struct scored_state *made = &w->states.data[id];
  made->first_arc = first_arc;
  made->num_arcs = w->arcs.size - first_arc;
  made->end_cost = end_cost;
  made->alive = end_cost != INFINITY;
  return wf__vec_push(&w->order, id, "scored states", err);
}

static wf_status compose(struct work *w, wf_error *err) {
  uint64_t start;
  uint32_t id;
  for (uint64_t s = 0; s < w->view.num_states; s++) w->first_here[s] = w->last_here[s] = NONE;
  if (w->view.num_states == 0) return WF_OK;
  if (w->scorer->ops->open != NULL) WF__TRY(w->scorer->ops->open(w->scorer, &w->memory, err));
  WF__TRY(w->scorer->ops->begin(w->scorer, w->memory, &start, err));
  WF__TRY(find_state(w, 0, start, &id, err));
  for (uint64_t s = 0; s < w->view.num_states; s++) {
    WF__TRY(wf__interrupted(err));
    for (id = w->first_here[s]; id != NONE; id = w->states.data[id].next_here)
      WF__TRY(expand(w, id, err));
  }
  for (uint64_t k = w->order.size; k-- > 0;) {
    struct scored_state *made = &w->states.data[w->order.data[k]];
    for (uint64_t i = 0; i < made->num_arcs; i++)
      made->alive |= w->states.data[w->arcs.data[made->first_arc + i].nextstate].alive;
  }
  uint32_t count = 0;
  for (uint64_t k = 0; k < w->order.size; k++)
    if (w->states.data[w->order.data[k]].alive) w->states.data[w->order.data[k]].number = count++;
  return WF_OK;
}

static wf_status write_state(struct work *w, const struct scored_state *made, wf_error *err) {
  wf_compact_weight end = {.graph_cost = INFINITY};
  if (made->end_cost != INFINITY) {
    end = w->view.finals[made->state];
    if (w->adds) end.graph_cost += made->end_cost;
  }
  if (!w->adds)
    WF__TRY(wf__vec_push(&w->final_costs, made->end_cost != INFINITY ? made->end_cost : 0,
                         "scored states", err));
  WF__TRY(wf__compact_add_state(&w->out, end, err));
  for (uint64_t i = 0; i < made->num_arcs; i++) {
    const struct scored_arc *from = &w->arcs.data[made->first_arc + i];
    if (!w->states.data[from->nextstate].alive) continue;
    wf_compact_arc arc = w->view.arcs[from->arc];
    if (w->adds)
      arc.weight.graph_cost += from->cost;
    else
      WF__TRY(wf__vec_push(&w->arc_costs, from->cost, "scored arcs", err));
    arc.nextstate = (int32_t)w->states.data[from->nextstate].number;
    WF__TRY(wf__compact_push(&w->out, arc, err));
  }
  return WF_OK;
}

static wf_status write(struct work *w, wf_error *err) {
  WF__TRY(wf__vec_grow(&w->out.labels, w->view.num_labels, "alignments", err));
  if (w->view.num_labels > 0)
    memcpy(w->out.labels.data, w->view.labels, w->view.num_labels * sizeof *w->view.labels);
  w->out.labels.size = w->view.num_labels;
  for (uint64_t k = 0; k < w->order.size; k++)
    if (w->states.data[w->order.data[k]].alive)
      WF__TRY(write_state(w, &w->states.data[w->order.data[k]], err));
  return WF_OK;
}

static void free_work(struct work *w) {
  if (w->memory != NULL) w->scorer->ops->close(w->scorer, w->memory);
  free(w->first_here);
  free(w->last_here);
  wf__map64_free(&w->context_of);
  wf__map64_free(&w->state_of);
  wf__vec_free(&w->contexts);
  wf__vec_free(&w->states);
  wf__vec_free(&w->arcs);
  wf__vec_free(&w->order);
  wf__vec_free(&w->arc_costs);
  wf__vec_free(&w->final_costs);
}

static wf_status run(struct work *w, const wf_compact_lattice *lattice, const wf_scorer *scorer,
                     int64_t max_states, wf_compact_lattice **out, wf_error *err) {
  *out = NULL;
  if (max_states < 1 || max_states > INT32_MAX)
    return wf__fail(err, WF_ERR_ARGUMENT, "max_states is %lld; expected 1 to %d",
                    (long long)max_states, INT32_MAX);
  w->view = wf_compact_lattice_get_view(lattice);
  w->scorer = scorer;
  w->max_states = (uint64_t)max_states;
  w->first_here = wf__alloc(w->view.num_states, sizeof *w->first_here);
  w->last_here = wf__alloc(w->view.num_states, sizeof *w->last_here);
  wf_status status = w->first_here != NULL && w->last_here != NULL
                         ? WF_OK
                         : wf__fail_memory(err, w->view.num_states * 8, "scoring a lattice");
  if (status == WF_OK) status = compose(w, err);
  if (status == WF_OK) status = write(w, err);
  return wf__compact_finish(status, &w->out, out, err);
}

wf_status wf_compact_lattice_score(const wf_compact_lattice *lattice, const wf_scorer *scorer,
                                   int64_t max_states, wf_compact_lattice **out, wf_error *err) {
  struct work w = {.adds = true};
  wf_status status = run(&w, lattice, scorer, max_states, out, err);
  free_work(&w);
  return status;
}

void wf_scorer_costs_clear(wf_scorer_costs *costs) {
  if (costs == NULL) return;
  free(costs->arcs);
  free(costs->finals);
  *costs = (wf_scorer_costs){0};
}

wf_status wf_compact_lattice_scorer_costs(const wf_compact_lattice *lattice,
                                          const wf_scorer *scorer, int64_t max_states,
                                          wf_compact_lattice **out, wf_scorer_costs *out_costs,
                                          wf_error *err) {
  struct work w = {0};
  *out_costs = (wf_scorer_costs){0};
  wf_status status = run(&w, lattice, scorer, max_states, out, err);
  if (status == WF_OK) {
    *out_costs = (wf_scorer_costs){w.arc_costs.data, w.final_costs.data};
    w.arc_costs.data = w.final_costs.data = NULL;
  }
  free_work(&w);
  return status;
}
