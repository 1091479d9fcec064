/* compose_search.c - composition pair by pair: a breadth-first search over the pairs reached. For
 * results with few of all pairs.
 *
 * States are triples (state of a, state of b, filter state), numbered in the order in which the
 * search discovers them. The order of a state's arcs is that of OpenFst's fstcompose on sorted
 * inputs. Of the two states, the one with fewer arcs leads (a's on a tie). First, the other state's
 * epsilons are taken while the leader waits. Then come the leader's arcs: an epsilon first while
 * the other waits, then with each epsilon of the other; any other label with each arc of the other
 * that has it. For the canonical order, a always leads, and compose_order.c renumbers the states at
 * the end.
 *
 *   expand   a triple from the queue becomes candidates: arcs and the triples they lead to
 *   intern   looks up the triples, with prefetching, and replaces them by state ids
 *   trim     removes useless states, in place
 *
 * Expand and intern form a pipeline (pipeline.h): several threads expand while one interns.
 * The moves that the filter allows (compose_filter.h) are computed once per state. */
#include <string.h>

#include "fstops/compose_filter.h"
#include "fstops/compose_job.h"
#include "fstops/compose_order.h"
#include "fstops/compose_states.h"
#include "fstops/connect.h"
#include "fstops/parallel.h"
#include "fstops/pipeline.h"

enum { AHEAD = 16 };
#define INLINE static inline __attribute__((always_inline))

struct composer {
  const wf__compose_job *job;
  const wf__compose_side *a, *b;
  wf__compose_states states;
  wf__compose_output *out;
  bool gave_up;
  uint64_t visited_arcs; /* arcs of the visited states, if the sides are lazy */
};

/* A range of states, and the result of expanding them. */
struct chunk {
  WF__VEC(uint64_t) input;   /* the states' triples */
  WF__VEC(float) final_cost; /* [states] */
  WF__VEC(uint64_t) arc_end; /* [states] */
  WF__VEC(wf_arc) arcs;
  WF__VEC(uint64_t) triples;      /* targets of the arcs */
  WF__VEC(wf_arc_origin) origins; /* origins of the arcs, if requested */
};

/* Arguments of the functions that expand a state. */
struct expansion {
  const struct composer *c;
  struct chunk *out;
};

/* The arcs of one state. Sorted arcs begin with the epsilons. */
struct span {
  uint64_t begin, end, labels; /* epsilons: [begin, labels) */
};

INLINE struct span span_of(const wf__compose_side *side, uint32_t state) {
  struct span span = {.begin = side->view.arc_off[state], .end = side->view.arc_off[state + 1]};
  span.labels = span.begin;
  while (span.labels < span.end && wf__compose_label(side, span.labels) == 0) span.labels++;
  return span;
}

INLINE int epsilons_of(struct span span, bool is_final) {
  return wf__epsilons_of(span.end - span.begin, span.labels - span.begin, is_final);
}

/* --- candidates -------------------------------------------------------------------------- */

INLINE wf_status reserve(struct expansion *x, uint64_t count, wf_error *err) {
  WF__TRY(wf__vec_grow(&x->out->arcs, count, "arcs", err));
  if (x->c->out->with_origins)
    WF__TRY(wf__vec_grow(&x->out->origins, count, "origins of arcs", err));
  return wf__vec_grow(&x->out->triples, count, "arcs", err);
}

/* Adds a candidate. `a` and `b` are the arcs that it combines; NULL if that side waits. */
INLINE void emit(struct expansion *x, const wf_arc *a, const wf_arc *b, wf_arc arc,
                 uint64_t triple) {
  const struct composer *c = x->c;
  x->out->triples.data[x->out->triples.size++] = triple;
  x->out->arcs.data[x->out->arcs.size++] = arc;
  if (c->out->with_origins)
    x->out->origins.data[x->out->origins.size++] =
        (wf_arc_origin){a != NULL ? (uint32_t)(a - c->a->view.arcs) : WF_NO_ARC,
                        b != NULL ? (uint32_t)(b - c->b->view.arcs) : WF_NO_ARC};
}

INLINE void emit_pair(struct expansion *x, const wf_arc *a, const wf_arc *b, int filter) {
  wf_arc arc = {.weight = a->weight + b->weight, .ilabel = a->ilabel, .olabel = b->olabel};
  emit(x, a, b, arc, wf__compose_pack(a->nextstate, b->nextstate, (uint32_t)filter));
}

/* Takes the epsilon arcs [begin, end) of one side while the other side waits in `waiting`. */
INLINE wf_status move_alone(struct expansion *x, bool of_a, uint64_t begin, uint64_t end,
                            uint32_t waiting, int filter, wf_error *err) {
  const struct composer *c = x->c;
  if (filter == WF__BLOCKED || begin == end) return WF_OK;
  WF__TRY(reserve(x, end - begin, err));
  for (uint64_t i = begin; i < end; i++) {
    const wf_arc *arc = of_a ? &c->a->view.arcs[i] : &c->b->view.arcs[i];
    uint32_t a_next = of_a ? arc->nextstate : waiting, b_next = of_a ? waiting : arc->nextstate;
    wf_arc made = {
        .weight = arc->weight, .ilabel = of_a ? arc->ilabel : 0, .olabel = of_a ? 0 : arc->olabel};
    emit(x, of_a ? arc : NULL, of_a ? NULL : arc, made,
         wf__compose_pack(a_next, b_next, (uint32_t)filter));
  }
  return WF_OK;
}

/* Combines arc `i` of the leader with the arcs [begin, end) of the other. */
INLINE wf_status match_range(struct expansion *x, bool a_leads, uint64_t i, uint64_t begin,
                             uint64_t end, int filter, wf_error *err) {
  const struct composer *c = x->c;
  if (begin == end) return WF_OK;
  WF__TRY(reserve(x, end - begin, err));
  for (uint64_t j = begin; j < end; j++) {
    if (a_leads)
      emit_pair(x, &c->a->view.arcs[i], &c->b->view.arcs[j], filter);
    else
      emit_pair(x, &c->a->view.arcs[j], &c->b->view.arcs[i], filter);
  }
  return WF_OK;
}

/* Like match_labels, with the same arcs in the same order, if the leader has many more arcs than
 * the other: one look-up for each label of the other. */
INLINE wf_status match_by_other(struct expansion *x, bool a_leads, uint32_t lead_state,
                                struct span other, int filter, wf_error *err) {
  const struct composer *c = x->c;
  const wf__compose_side *leader = a_leads ? c->a : c->b, *side = a_leads ? c->b : c->a;
  for (uint64_t begin = other.labels, end; begin < other.end; begin = end) {
    uint64_t first, last;
    for (end = begin + 1;
         end < other.end && wf__compose_label(side, end) == wf__compose_label(side, begin);)
      end++;
    wf__compose_find(leader, lead_state, wf__compose_label(side, begin), &first, &last);
    for (uint64_t i = first; i < last; i++)
      WF__TRY(match_range(x, a_leads, i, begin, end, filter, err));
  }
  return WF_OK;
}

/* Matches the labels other than epsilon: goes through the leader's arcs in order. Labels are looked
 * up if the other state has an index or far more arcs; otherwise the two are merged. */
INLINE wf_status match_labels(struct expansion *x, bool a_leads, uint32_t lead_state,
                              struct span lead, uint32_t other_state, struct span other, int filter,
                              wf_error *err) {
  const struct composer *c = x->c;
  const wf__compose_side *leader = a_leads ? c->a : c->b, *side = a_leads ? c->b : c->a;
  uint64_t num_lead = lead.end - lead.labels, num_other = other.end - other.labels,
           begin = other.labels, end = other.labels;
  if (num_lead == 0 || num_other == 0) return WF_OK;
  if (num_lead > 8 * num_other) return match_by_other(x, a_leads, lead_state, other, filter, err);
  bool look_up = wf__compose_has_index(side, other_state) || num_other > 8 * num_lead;
  int32_t previous = 0;
  for (uint64_t i = lead.labels; i < lead.end; i++) {
    int32_t label = wf__compose_label(leader, i);
    if (label != previous) {
      previous = label;
      if (look_up) {
        wf__compose_find(side, other_state, label, &begin, &end);
      } else {
        for (begin = end; begin < other.end && wf__compose_label(side, begin) < label;) begin++;
        if (begin == other.end) break;
        for (end = begin; end < other.end && wf__compose_label(side, end) == label;) end++;
      }
    }
    WF__TRY(match_range(x, a_leads, i, begin, end, filter, err));
  }
  return WF_OK;
}

/* Matches the labels of a other than epsilon if b's state has a failure arc. Each label is matched
 * in the first state along the failure arcs that has it. */
static wf_status match_with_failure(struct expansion *x, struct span a, uint32_t b_state,
                                    int filter, wf_error *err) {
  const struct composer *c = x->c;
  for (uint64_t i = a.labels; i < a.end; i++) {
    uint64_t begin, end;
    uint32_t s = b_state;
    float cost = 0;
    for (;;) {
      wf__compose_find(c->b, s, wf__compose_label(c->a, i), &begin, &end);
      if (begin != end || c->b->fail_next[s] == WF__NO_FAIL) break;
      cost += c->b->fail_cost[s];
      s = c->b->fail_next[s];
    }
    WF__TRY(reserve(x, end - begin, err));
    for (uint64_t j = begin; j < end; j++) {
      const wf_arc *from_a = &c->a->view.arcs[i], *from_b = &c->b->view.arcs[j];
      wf_arc arc = {.weight = from_a->weight + (cost + from_b->weight),
                    .ilabel = from_a->ilabel,
                    .olabel = from_b->olabel};
      emit(x, from_a, from_b, arc,
           wf__compose_pack(from_a->nextstate, from_b->nextstate, (uint32_t)filter));
    }
  }
  return WF_OK;
}

INLINE wf_status expand_led(struct expansion *x, bool a_leads, uint64_t triple, struct span a,
                            struct span b, struct wf__moves moves, bool failure, wf_error *err) {
  uint32_t a_state = wf__compose_a(triple), b_state = wf__compose_b(triple);
  struct span lead = a_leads ? a : b, other = a_leads ? b : a;
  if (a_leads)
    WF__TRY(move_alone(x, false, b.begin, b.labels, a_state, moves.b_alone, err));
  else
    WF__TRY(move_alone(x, true, a.begin, a.labels, b_state, moves.a_alone, err));
  for (uint64_t i = lead.begin; i < lead.labels; i++) {
    WF__TRY(move_alone(x, a_leads, i, i + 1, a_leads ? b_state : a_state,
                       a_leads ? moves.a_alone : moves.b_alone, err));
    if (moves.both != WF__BLOCKED)
      WF__TRY(match_range(x, a_leads, i, other.begin, other.labels, moves.both, err));
  }
  if (failure) return match_with_failure(x, a, b_state, moves.label, err);
  return match_labels(x, a_leads, a_leads ? a_state : b_state, lead, a_leads ? b_state : a_state,
                      other, moves.label, err);
}

/* Expands a state of the result: adds its final cost and the candidates for its arcs. */
static wf_status expand(struct expansion *x, uint64_t triple, wf_error *err) {
  const struct composer *c = x->c;
  uint32_t a_state = wf__compose_a(triple), b_state = wf__compose_b(triple);
  struct span a = span_of(c->a, a_state), b = span_of(c->b, b_state);
  float a_final = c->a->view.final_cost[a_state], b_final = c->b->view.final_cost[b_state];
  struct wf__moves moves =
      wf__moves_of(c->job->filter, (int)wf__compose_filter(triple),
                   epsilons_of(a, a_final != INFINITY), epsilons_of(b, b_final != INFINITY));
  bool failure = c->b->fail_next != NULL && c->b->fail_next[b_state] != WF__NO_FAIL;
  x->out->final_cost.data[x->out->final_cost.size++] = a_final + b_final;
  if (failure || c->job->canonical || a.end - a.begin <= b.end - b.begin)
    return expand_led(x, true, triple, a, b, moves, failure, err);
  return expand_led(x, false, triple, a, b, moves, false, err);
}

/* --- the search -------------------------------------------------------------------------- */

static uint64_t num_known(void *user) { return ((struct composer *)user)->states.pairs.size; }

static bool is_sorted(const wf__compose_side *side, uint32_t state, uint64_t *visited_arcs) {
  uint64_t i = side->view.arc_off[state], end = side->view.arc_off[state + 1];
  *visited_arcs += end - i;
  while (i + 1 < end && wf__compose_label(side, i) <= wf__compose_label(side, i + 1)) i++;
  return i + 1 >= end;
}

/* With lazy sides: gives up if a state of these triples is not sorted, or if the visited states
 * have too many arcs. */
static wf_status check_visited(struct composer *c, const uint64_t *triples, uint64_t count) {
  for (uint64_t k = 0; k < count && !c->gave_up; k++)
    c->gave_up = !is_sorted(c->a, wf__compose_a(triples[k]), &c->visited_arcs) ||
                 !is_sorted(c->b, wf__compose_b(triples[k]), &c->visited_arcs) ||
                 c->visited_arcs > c->job->max_visited_arcs;
  return c->gave_up ? WF_ERR_LIMIT : WF_OK;
}

static wf_status take(void *user, void *to, uint64_t first, uint64_t end, wf_error *err) {
  struct composer *c = user;
  if (c->job->max_visited_arcs != 0)
    WF__TRY(check_visited(c, c->states.pairs.data + first, end - first));
  struct chunk *chunk = to;
  chunk->input.size = chunk->final_cost.size = chunk->arc_end.size = chunk->arcs.size =
      chunk->triples.size = chunk->origins.size = 0;
  WF__TRY(wf__vec_grow(&chunk->input, end - first, "states", err));
  WF__TRY(wf__vec_grow(&chunk->final_cost, end - first, "states", err));
  WF__TRY(wf__vec_grow(&chunk->arc_end, end - first, "states", err));
  memcpy(chunk->input.data, c->states.pairs.data + first,
         (end - first) * sizeof *chunk->input.data);
  chunk->input.size = end - first;
  return WF_OK;
}

static wf_status expand_chunk(void *user, void *to, uint64_t first, int worker, bool shared,
                              wf_error *err) {
  struct chunk *chunk = to;
  struct expansion x = {.c = user, .out = chunk};
  (void)first, (void)worker, (void)shared;
  for (uint64_t k = 0; k < chunk->input.size; k++) {
    WF__TRY(expand(&x, chunk->input.data[k], err));
    chunk->arc_end.data[chunk->arc_end.size++] = chunk->arcs.size;
  }
  return WF_OK;
}

static uint64_t bytes_of(const struct composer *c) {
  const wf__compose_output *out = c->out;
  uint64_t table = c->states.array != NULL ? c->states.num_cells * sizeof *c->states.array
                                           : sizeof *c->states.slots << c->states.bits;
  return table + c->states.pairs.cap * sizeof *c->states.pairs.data +
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
  const struct chunk *chunk = from;
  const uint64_t *triples = chunk->triples.data;
  wf__csr *csr = &c->out->csr;
  (void)first;
  WF__TRY(wf__vec_grow(&csr->arcs, chunk->arcs.size, "arcs", err));
  for (uint64_t k = 0, i = 0; k < chunk->arc_end.size; k++) {
    WF__TRY(wf__csr_add_state(csr, chunk->final_cost.data[k], err));
    for (; i < chunk->arc_end.data[k]; i++) {
      wf_arc *arc = &csr->arcs.data[csr->arcs.size++];
      if (i + 2 * AHEAD < chunk->triples.size)
        wf__compose_prefetch(&c->states, triples[i + 2 * AHEAD]);
      if (i + AHEAD < chunk->triples.size)
        wf__compose_prefetch_pair(&c->states, triples[i + AHEAD]);
      *arc = chunk->arcs.data[i];
      WF__TRY(wf__compose_intern(&c->states, triples[i], &arc->nextstate, err));
    }
  }
  if (chunk->origins.size != 0) {
    WF__TRY(wf__vec_grow(&c->out->origins, chunk->origins.size, "origins of arcs", err));
    memcpy(c->out->origins.data + c->out->origins.size, chunk->origins.data,
           chunk->origins.size * sizeof *chunk->origins.data);
    c->out->origins.size += chunk->origins.size;
  }
  return check_size(c, err);
}

static void free_chunk(void *chunk_of_search) {
  struct chunk *chunk = chunk_of_search;
  wf__vec_free(&chunk->input);
  wf__vec_free(&chunk->final_cost);
  wf__vec_free(&chunk->arc_end);
  wf__vec_free(&chunk->arcs);
  wf__vec_free(&chunk->triples);
  wf__vec_free(&chunk->origins);
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
  bool small = job->max_visited_arcs != 0; /* uses a hash table and one thread */
  uint64_t num_a = small ? WF__MAX_STATES : c->a->view.num_states,
           num_b = small ? WF__MAX_STATES : c->b->view.num_states,
           max_states = job->max_states < WF__MAX_STATES ? job->max_states : WF__MAX_STATES;
  uint32_t num_filters =
      (uint32_t)wf__num_filter_states(job->filter, c->a->has_epsilons, c->b->has_epsilons);
  WF__TRY(wf__compose_states_init(&c->states, num_a, num_b, num_filters, max_states, err));
  WF__TRY(search(c, small ? 1 : job->num_threads, err));
  c->out->start = 0;
  if (job->canonical)
    WF__TRY(wf__compose_renumber(c->out, c->states.pairs.data, num_a, num_b, num_filters, err));
  wf__compose_states_free(&c->states); /* makes room for trimming */
  if (!job->connect) return WF_OK;
  WF__TRY(wf__csr_connect_with(&c->out->csr, &c->out->start, true, c->out->origins.data, err));
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
