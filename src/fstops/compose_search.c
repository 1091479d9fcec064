/* compose_search.c - composition pair by pair: a breadth-first search over the pairs reached. For
 * results with few of all pairs.
 *
 * States are triples (state of a, state of b, filter state), numbered in the order in which the
 * search discovers them. For the canonical order, compose_order.c renumbers them at the end.
 *
 *   expand   a triple from the queue becomes candidates: arcs and the triples they lead to
 *            (compose_expand.c)
 *   intern   looks up the triples, with prefetching, and replaces them by state ids
 *   trim     removes useless states, in place
 *
 * Expand and intern form a pipeline (pipeline.h): several threads expand while one interns. If `a`
 * is itself a composition (compose_chain.c), its states are made when a triple is taken. */
#include <string.h>

#include "fstops/compose_chain.h"
#include "fstops/compose_expand.h"
#include "fstops/compose_filter.h"
#include "fstops/compose_job.h"
#include "fstops/compose_order.h"
#include "fstops/compose_states.h"
#include "fstops/connect.h"
#include "fstops/parallel.h"
#include "fstops/pipeline.h"

struct composer {
  const wf__compose_job *job;
  const wf__compose_side *a, *b;
  wf__compose_states states;
  wf__compose_output *out;
  bool gave_up;
  uint64_t visited_arcs; /* arcs read at the visited states, if the sides are lazy */
};

/* A range of states, and the result of expanding them. */
struct chunk {
  WF__VEC(uint64_t) input; /* the states' triples */
  wf__expanded made;
};

/* --- the search -------------------------------------------------------------------------- */

static uint64_t num_known(void *user) { return ((struct composer *)user)->states.pairs.size; }

static bool is_sorted(const wf__compose_side *side, uint32_t state) {
  uint64_t i = side->view.arc_off[state], end = side->view.arc_off[state + 1];
  while (i + 1 < end && wf__compose_label(side, i) <= wf__compose_label(side, i + 1)) i++;
  return i + 1 >= end;
}

static uint64_t num_arcs(const wf__compose_side *side, uint32_t state) {
  return side->view.arc_off[state + 1] - side->view.arc_off[state];
}

/* Counts the arcs that are read at a pair of states: those of the state with fewer, and of a state
 * whose order has to be checked, all. */
static bool visit(struct composer *c, uint32_t a, uint32_t b) {
  uint64_t in_a = num_arcs(c->a, a), in_b = num_arcs(c->b, b);
  c->visited_arcs += (in_a < in_b ? in_a : in_b) + (c->a->known_sorted ? 0 : in_a) +
                     (c->b->known_sorted ? 0 : in_b);
  return c->visited_arcs <= c->job->max_visited_arcs &&
         (c->a->known_sorted || is_sorted(c->a, a)) && (c->b->known_sorted || is_sorted(c->b, b));
}

/* With lazy sides: gives up if a state of these triples is not sorted, or if the visited states
 * have too many arcs. */
static wf_status check_visited(struct composer *c, const uint64_t *triples, uint64_t count) {
  for (uint64_t k = 0; k < count && !c->gave_up; k++)
    c->gave_up = !visit(c, wf__compose_a(triples[k]), wf__compose_b(triples[k]));
  return c->gave_up ? WF_ERR_LIMIT : WF_OK;
}

static wf_status take(void *user, void *to, uint64_t first, uint64_t end, wf_error *err) {
  struct composer *c = user;
  if (c->job->max_visited_arcs != 0)
    WF__TRY(check_visited(c, c->states.pairs.data + first, end - first));
  if (c->job->left != NULL)
    WF__TRY(wf__compose_chain_make(c->job->left, c->states.pairs.data + first, end - first, err));
  struct chunk *chunk = to;
  chunk->input.size = 0;
  wf__expanded_clear(&chunk->made);
  WF__TRY(wf__vec_grow(&chunk->input, end - first, "states", err));
  memcpy(chunk->input.data, c->states.pairs.data + first,
         (end - first) * sizeof *chunk->input.data);
  chunk->input.size = end - first;
  return WF_OK;
}

/* Fetches what expanding later triples of a chunk will read: first the offsets of b's arcs, then
 * the arcs. The states of a are usually few. */
static inline void fetch_states(const struct composer *c, const struct chunk *chunk, uint64_t k) {
  enum { AHEAD = 16 };
  if (k + AHEAD >= chunk->input.size) return;
  const wf__compose_side *b = c->b;
  uint32_t state = wf__compose_b(chunk->input.data[k + AHEAD]);
  __builtin_prefetch(&b->arc_begin[state]);
  __builtin_prefetch(&b->view.final_cost[state]);
  if (b->index_of != NULL) __builtin_prefetch(&b->index_of[state]);
  uint64_t arc = b->arc_begin[wf__compose_b(chunk->input.data[k + AHEAD / 2])];
  __builtin_prefetch(&b->label_of[arc << b->label_shift]);
  __builtin_prefetch(&b->view.arcs[arc]);
}

static wf_status expand_chunk(void *user, void *to, uint64_t first, int worker, bool shared,
                              wf_error *err) {
  const struct composer *c = user;
  struct chunk *chunk = to;
  (void)first, (void)worker, (void)shared;
  chunk->made.with_origins = c->out->with_origins;
  for (uint64_t k = 0; k < chunk->input.size; k++) {
    fetch_states(c, chunk, k);
    WF__TRY(wf__compose_expand(c->job, chunk->input.data[k], &chunk->made, err));
  }
  return WF_OK;
}

static uint64_t bytes_of(const struct composer *c) {
  const wf__compose_output *out = c->out;
  return wf__compose_chain_bytes(c->job->left) + wf__compose_states_bytes(&c->states) +
         out->csr.arcs.cap * sizeof(wf_arc) + out->csr.arc_off.cap * sizeof(uint64_t) +
         out->csr.final_cost.cap * sizeof(float) + out->origins.cap * sizeof(wf_arc_origin);
}

/* Returns WF_OK if the search may continue. Giving up ends the pipeline like an error, but without
 * a message. */
static wf_status check_size(struct composer *c, wf_error *err) {
  c->gave_up = c->states.pairs.size > c->job->give_up;
  if (c->gave_up) return WF_ERR_LIMIT;
  return bytes_of(c) > c->job->max_bytes
             ? wf__compose_too_large(bytes_of(c), c->job->max_bytes, err)
             : WF_OK;
}

static wf_status intern(void *user, void *from, uint64_t first, wf_error *err) {
  struct composer *c = user;
  const wf__expanded *made = &((const struct chunk *)from)->made;
  wf__csr *csr = &c->out->csr;
  const uint64_t before = csr->arcs.size, count = made->arcs.size;
  (void)first;
  WF__TRY(wf__vec_grow(&csr->arcs, count, "arcs", err));
  wf_arc *arcs = csr->arcs.data + before;
  if (count != 0) memcpy(arcs, made->arcs.data, count * sizeof *arcs);
  WF__TRY(wf__compose_intern_arcs(&c->states, made->triples.data, arcs, count, err));
  for (uint64_t k = 0; k < made->arc_end.size; k++) {
    WF__TRY(wf__csr_add_state(csr, made->final_cost.data[k], err));
    csr->arcs.size = before + made->arc_end.data[k];
  }
  if (made->origins.size != 0) {
    WF__TRY(wf__vec_grow(&c->out->origins, made->origins.size, "origins of arcs", err));
    memcpy(c->out->origins.data + c->out->origins.size, made->origins.data,
           made->origins.size * sizeof *made->origins.data);
    c->out->origins.size += made->origins.size;
  }
  return check_size(c, err);
}

static void free_chunk(void *chunk_of_search) {
  struct chunk *chunk = chunk_of_search;
  wf__vec_free(&chunk->input);
  wf__expanded_free(&chunk->made);
}

/* The size of the larger input decides whether a thread pool is used. */
static wf_status search(struct composer *c, int32_t num_threads, wf_error *err) {
  const wf__pipeline pipeline = {.user = c,
                                 .chunk_bytes = sizeof(struct chunk),
                                 .num_known = num_known,
                                 .take = take,
                                 .expand = expand_chunk,
                                 .intern = intern,
                                 .free_chunk = free_chunk};
  uint32_t id;
  wf__pool *pool;
  WF__TRY(wf__compose_intern(
      &c->states, wf__compose_pack((uint32_t)c->a->view.start, (uint32_t)c->b->view.start, 0), &id,
      err));
  WF__TRY(wf__pool_for_fst(num_threads,
                           c->a->view.num_arcs > c->b->view.num_arcs ? &c->a->view : &c->b->view,
                           &pool, err));
  wf_status status = wf__pipeline_run(&pipeline, pool, err);
  wf__pool_free(pool);
  return status;
}

static wf_status compose(struct composer *c, wf_error *err) {
  const wf__compose_job *job = c->job;
  const bool small = job->max_visited_arcs != 0; /* uses a hash table and one thread */
  const uint64_t num_a = small || job->left != NULL ? WF__MAX_STATES : c->a->view.num_states,
                 num_b = small ? WF__MAX_STATES : c->b->view.num_states,
                 max_states = job->max_states < WF__MAX_STATES ? job->max_states : WF__MAX_STATES;
  uint32_t num_filters =
      (uint32_t)wf__num_filter_states(job->filter, c->a->has_epsilons, c->b->has_epsilons);
  WF__TRY(wf__compose_states_init(&c->states, num_a, num_b, num_filters, max_states, err));
  WF__TRY(search(c, small ? 1 : job->num_threads, err));
  c->out->start = 0;
  if (job->canonical) WF__TRY(wf__compose_renumber(job, c->states.pairs.data, c->out, err));
  wf__compose_states_free(&c->states); /* makes room for trimming */
  if (!job->connect) return WF_OK;
  WF__TRY(wf__csr_connect_with(&c->out->csr, &c->out->start, true, small ? 1 : job->num_threads,
                               c->out->origins.data, err));
  if (c->out->with_origins) c->out->origins.size = c->out->csr.arcs.size;
  return WF_OK;
}

wf_status wf__compose_search(const wf__compose_job *job, wf__compose_output *out, bool *out_gave_up,
                             wf_error *err) {
  struct composer composer = {.job = job, .a = job->a, .b = job->b, .out = out};
  wf_status status = compose(&composer, err);
  *out_gave_up = composer.gave_up;
  if (status != WF_OK) wf__compose_output_free(out);
  wf__compose_states_free(&composer.states);
  return *out_gave_up ? WF_OK : status;
}
