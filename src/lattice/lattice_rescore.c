/* lattice_rescore.c - a lattice composed with the difference of two language models.
 *
 * States of the composition are (state of the lattice, histories of both models), made from the
 * lattice's first state to its last, so that every one is complete before it is expanded;
 * `next_here` links those of one lattice state. States that reach no final state, because the
 * new model forbids words, are dropped at the end. */
#include <string.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "base/option_tables.h"
#include "lattice/compact_lattice.h"
#include "lattice/lm_exchange.h"

#define NONE UINT32_MAX

struct made_state {
  uint64_t first_arc;
  uint32_t state, histories, num_arcs; /* histories: index of the pair */
  uint32_t next_here;
  wf__lm_costs end;
  bool alive;      /* a final state can be reached */
  uint32_t number; /* in the result */
};

struct made_arc {
  uint64_t arc; /* of the lattice */
  uint32_t nextstate;
  wf__lm_costs costs;
};

struct rescoring {
  wf_compact_lattice_view view;
  wf__lm_exchange exchange;
  uint64_t max_states;
  wf__map64 pair_map, state_map;
  WF__VEC(wf__lm_histories) pairs;
  WF__VEC(struct made_state) states;
  WF__VEC(struct made_arc) arcs;
  WF__VEC(uint32_t) order; /* states, lattice state by lattice state */
  uint32_t
      *first_here; /* [lattice states] first made state, linked in order of making; and the last */
  uint32_t *last_here;
  wf__compact_arrays out;
};

static wf_status find_state(struct rescoring *r, uint32_t state, wf__lm_histories histories,
                            uint32_t *out, wf_error *err) {
  uint32_t pair;
  bool fresh;
  WF__TRY(wf__map64_insert(&r->pair_map, (uint64_t)histories.old_state << 32 | histories.new_state,
                           (uint32_t)r->pairs.size, &pair, &fresh, "rescoring", err));
  if (fresh) WF__TRY(wf__vec_push(&r->pairs, histories, "rescoring", err));
  WF__TRY(wf__map64_insert(&r->state_map, (uint64_t)state << 32 | pair, (uint32_t)r->states.size,
                           out, &fresh, "rescoring", err));
  if (!fresh) return WF_OK;
  if (r->states.size >= r->max_states)
    return wf__fail(err, WF_ERR_LIMIT, "rescoring: more than max_states=%llu states",
                    (unsigned long long)r->max_states);
  if (r->last_here[state] != NONE)
    r->states.data[r->last_here[state]].next_here = *out;
  else
    r->first_here[state] = *out;
  r->last_here[state] = *out;
  struct made_state made = {.state = state, .histories = pair, .next_here = NONE};
  return wf__vec_push(&r->states, made, "rescoring", err);
}

static wf_status pass_on(struct rescoring *r, uint32_t id, wf_error *err) {
  struct made_state made = r->states.data[id];
  wf__lm_histories histories = r->pairs.data[made.histories];
  made.first_arc = r->arcs.size;
  made.end = wf__lm_exchange_final(&r->exchange, histories);
  made.alive = r->view.finals[made.state].graph_cost != INFINITY && made.end.new_cost != INFINITY;
  for (uint64_t i = r->view.arc_off[made.state]; i < r->view.arc_off[made.state + 1]; i++) {
    const wf_compact_arc *arc = &r->view.arcs[i];
    wf__lm_histories next = histories;
    struct made_arc put = {.arc = i};
    if (arc->word != 0) put.costs = wf__lm_exchange_step(&r->exchange, &next, arc->word);
    if (put.costs.new_cost == INFINITY) continue;
    WF__TRY(find_state(r, (uint32_t)arc->nextstate, next, &put.nextstate, err));
    WF__TRY(wf__vec_push(&r->arcs, put, "rescoring", err));
  }
  made.num_arcs = (uint32_t)(r->arcs.size - made.first_arc);
  made.next_here = r->states.data[id].next_here;
  r->states.data[id] = made;
  return wf__vec_push(&r->order, id, "rescoring", err);
}

static wf_status compose(struct rescoring *r, wf_error *err) {
  uint32_t start;
  for (uint64_t s = 0; s < r->view.num_states; s++) r->first_here[s] = r->last_here[s] = NONE;
  if (r->view.num_states == 0) return WF_OK;
  WF__TRY(find_state(r, 0, wf__lm_exchange_start(&r->exchange), &start, err));
  for (uint64_t s = 0; s < r->view.num_states; s++) {
    WF__TRY(wf__interrupted(err));
    for (uint32_t id = r->first_here[s]; id != NONE; id = r->states.data[id].next_here)
      WF__TRY(pass_on(r, id, err));
  }
  uint32_t count = 0;
  for (uint64_t k = r->order.size; k-- > 0;) {
    struct made_state *made = &r->states.data[r->order.data[k]];
    for (uint32_t i = 0; i < made->num_arcs; i++)
      made->alive =
          made->alive || r->states.data[r->arcs.data[made->first_arc + i].nextstate].alive;
  }
  for (uint64_t k = 0; k < r->order.size; k++)
    if (r->states.data[r->order.data[k]].alive) r->states.data[r->order.data[k]].number = count++;
  return WF_OK;
}

/* --- writing ----------------------------------------------------------------------------- */

static float exchanged(float graph_cost, wf__lm_costs costs) {
  return (float)((double)graph_cost - (double)costs.old_cost + (double)costs.new_cost);
}

static wf_status write_state(struct rescoring *r, const struct made_state *made, wf_error *err) {
  wf_compact_weight end = r->view.finals[made->state];
  bool final = end.graph_cost != INFINITY && made->end.new_cost != INFINITY;
  if (final)
    end.graph_cost = exchanged(end.graph_cost, made->end);
  else
    end = (wf_compact_weight){.graph_cost = INFINITY};
  WF__TRY(wf__compact_add_state(&r->out, end, err));
  for (uint32_t i = 0; i < made->num_arcs; i++) {
    const struct made_arc *from = &r->arcs.data[made->first_arc + i];
    const struct made_state *next = &r->states.data[from->nextstate];
    if (!next->alive) continue;
    wf_compact_arc arc = r->view.arcs[from->arc];
    arc.weight.graph_cost = exchanged(arc.weight.graph_cost, from->costs);
    arc.nextstate = (int32_t)next->number;
    WF__TRY(wf__compact_push(&r->out, arc, err));
  }
  return WF_OK;
}

static wf_status write(struct rescoring *r, wf_error *err) {
  WF__TRY(wf__vec_grow(&r->out.labels, r->view.num_labels, "alignments", err));
  if (r->view.num_labels > 0)
    memcpy(r->out.labels.data, r->view.labels, r->view.num_labels * sizeof *r->view.labels);
  r->out.labels.size = r->view.num_labels;
  for (uint64_t k = 0; k < r->order.size; k++)
    if (r->states.data[r->order.data[k]].alive)
      WF__TRY(write_state(r, &r->states.data[r->order.data[k]], err));
  return WF_OK;
}

wf_status wf_compact_lattice_rescore(const wf_compact_lattice *lattice, const wf_lm *old_lm,
                                     const wf_lm *new_lm, const wf_lattice_rescore_options *options,
                                     wf_compact_lattice **out, wf_error *err) {
  wf_lattice_rescore_options o;
  *out = NULL;
  WF__TRY(wf__options_take(wf__lattice_rescore_table(), options, &o, err));
  struct rescoring r = {.view = wf_compact_lattice_get_view(lattice),
                        .exchange = {old_lm, new_lm, o.old_lm_scale, o.new_lm_scale},
                        .max_states = (uint64_t)o.max_states};
  r.first_here = wf__alloc(r.view.num_states, sizeof *r.first_here);
  r.last_here = wf__alloc(r.view.num_states, sizeof *r.last_here);
  wf_status status = r.first_here != NULL && r.last_here != NULL
                         ? WF_OK
                         : wf__fail_memory(err, r.view.num_states * 8, "rescoring");
  if (status == WF_OK) status = compose(&r, err);
  if (status == WF_OK) status = write(&r, err);
  status = wf__compact_finish(status, &r.out, out, err);
  free(r.first_here);
  free(r.last_here);
  wf__map64_free(&r.pair_map);
  wf__map64_free(&r.state_map);
  wf__vec_free(&r.pairs);
  wf__vec_free(&r.states);
  wf__vec_free(&r.arcs);
  wf__vec_free(&r.order);
  return status;
}
