/* compose_chain.c - a composition whose states are made when the next composition visits them. */
#include "fstops/compose_chain.h"

#include <string.h>

#include "fstops/compose_filter.h"

#define NOT_MADE UINT64_MAX

/* Points the side at the arrays, which may have moved. */
static void expose(wf__compose_chain *chain) {
  chain->side.view.arcs = chain->arcs.data;
  chain->side.view.num_arcs = chain->arcs.size;
  chain->side.view.final_cost = chain->final_cost.data;
  chain->side.arc_begin = chain->arc_begin.data;
  chain->side.arc_end = chain->arc_end.data;
  if (chain->arcs.data != NULL) chain->side.label_of = &chain->arcs.data->olabel;
}

wf_status wf__compose_chain_create(const wf__compose_job *job, int32_t phi_label,
                                   wf__compose_chain **out, wf_error *err) {
  const uint64_t start =
      wf__compose_pack((uint32_t)job->a->view.start, (uint32_t)job->b->view.start, 0);
  const uint64_t num_a = job->left != NULL ? WF__MAX_STATES : job->a->view.num_states,
                 max_states = job->max_states < WF__MAX_STATES ? job->max_states : WF__MAX_STATES;
  const int num_filters =
      wf__num_filter_states(job->filter, job->a->has_epsilons, job->b->has_epsilons);
  wf__compose_chain *self = wf__calloc(1, sizeof *self);
  uint32_t id;
  *out = NULL;
  if (self == NULL) return wf__fail_memory(err, sizeof *self, "a composition");
  self->phi_label = phi_label;
  self->side = (wf__compose_side){.label_shift = WF__LABEL_SHIFT_ARCS, .has_epsilons = true};
  wf_status status = wf__compose_states_init(&self->states, num_a, job->b->view.num_states,
                                             (uint32_t)num_filters, max_states, err);
  if (status == WF_OK) status = wf__compose_intern(&self->states, start, &id, err);
  if (status != WF_OK) {
    wf__compose_chain_free(self);
    return status;
  }
  self->job = *job;
  *out = self;
  return WF_OK;
}

/* Gives every known state an entry. */
static wf_status add_known(wf__compose_chain *self, wf_error *err) {
  const uint64_t from = self->arc_begin.size, to = self->states.pairs.size;
  if (from == to) return WF_OK;
  WF__TRY(wf__vec_grow(&self->arc_begin, to - from, "states", err));
  WF__TRY(wf__vec_grow(&self->arc_end, to - from, "states", err));
  WF__TRY(wf__vec_grow(&self->final_cost, to - from, "states", err));
  memset(self->arc_begin.data + from, 0xff, (to - from) * sizeof *self->arc_begin.data);
  self->arc_begin.size = self->arc_end.size = self->final_cost.size = to;
  expose(self);
  return WF_OK;
}

/* Lists the states of the triples that are not made, each once. */
static wf_status list_wanted(wf__compose_chain *self, const uint64_t *triples, uint64_t count,
                             wf_error *err) {
  self->wanted.size = self->wanted_triples.size = 0;
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t state = wf__compose_a(triples[i]);
    if (self->arc_begin.data[state] != NOT_MADE) continue;
    self->arc_begin.data[state] = 0;
    WF__TRY(wf__vec_push(&self->wanted, state, "states", err));
    WF__TRY(wf__vec_push(&self->wanted_triples, self->states.pairs.data[state], "states", err));
  }
  return WF_OK;
}

static wf_status refuse_phi(const wf__compose_chain *self, wf_error *err) {
  for (uint64_t i = 0; self->phi_label != 0 && i < self->made.arcs.size; i++)
    if (self->made.arcs.data[i].olabel == self->phi_label)
      return wf__compose_phi_output(self->phi_label, err);
  return WF_OK;
}

wf_status wf__compose_chain_make(wf__compose_chain *self, const uint64_t *triples, uint64_t count,
                                 wf_error *err) {
  wf__expanded *made = &self->made;
  WF__TRY(add_known(self, err));
  WF__TRY(list_wanted(self, triples, count, err));
  const uint64_t num_wanted = self->wanted.size;
  const uint64_t *wanted = self->wanted_triples.data;
  if (self->job.left != NULL)
    WF__TRY(wf__compose_chain_make(self->job.left, wanted, num_wanted, err));
  wf__expanded_clear(made);
  for (uint64_t k = 0; k < num_wanted; k++)
    WF__TRY(wf__compose_expand(&self->job, wanted[k], made, err));
  WF__TRY(refuse_phi(self, err));
  WF__TRY(wf__compose_intern_arcs(&self->states, made->triples.data, made->arcs.data,
                                  made->arcs.size, err));
  WF__TRY(wf__vec_grow(&self->arcs, made->arcs.size, "arcs", err));
  for (uint64_t k = 0, from = 0; k < num_wanted; from = made->arc_end.data[k++]) {
    const uint32_t state = self->wanted.data[k];
    const uint64_t num_arcs = made->arc_end.data[k] - from;
    WF__TRY(wf__arcsort_state(&self->sorter, made->arcs.data + from,
                              self->arcs.data + self->arcs.size, num_arcs, true, err));
    self->final_cost.data[state] = made->final_cost.data[k];
    self->arc_begin.data[state] = self->arcs.size;
    self->arc_end.data[state] = self->arcs.size += num_arcs;
  }
  expose(self);
  return WF_OK;
}

uint64_t wf__compose_chain_bytes(const wf__compose_chain *chain) {
  uint64_t bytes = 0;
  for (; chain != NULL; chain = chain->job.left)
    bytes += wf__compose_states_bytes(&chain->states) + chain->arcs.cap * sizeof(wf_arc) +
             (chain->arc_begin.cap + chain->arc_end.cap) * sizeof(uint64_t) +
             chain->final_cost.cap * sizeof(float);
  return bytes;
}

void wf__compose_chain_free(wf__compose_chain *chain) {
  while (chain != NULL) {
    wf__compose_chain *left = chain->job.left;
    wf__compose_states_free(&chain->states);
    wf__vec_free(&chain->arc_begin);
    wf__vec_free(&chain->arc_end);
    wf__vec_free(&chain->final_cost);
    wf__vec_free(&chain->arcs);
    wf__expanded_free(&chain->made);
    wf__vec_free(&chain->wanted);
    wf__vec_free(&chain->wanted_triples);
    wf__vec_free(&chain->sorter.keys);
    free(chain);
    chain = left;
  }
}
