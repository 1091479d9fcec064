/* compose.c - weighted composition.
 *
 * States are triples (state of a, state of b, filter state), numbered as a breadth-first search discovers them. Each state's arcs come in a fixed order,
 * which is that of OpenFst's fstcompose on sorted inputs: of the two states the one with fewer arcs leads (a's on a tie); first the
 * other one's epsilons move alone; then each of the leader's arcs in turn: an epsilon alone, then with each epsilon of the other; a label
 * with each arc of the other that has it.
 *
 *   queue -> expand: candidates (arc, triple it leads to) -> intern: triples, prefetched, become state ids -> trim, in place
 *
 * which is a pipeline (pipeline.h): threads expand while one interns.
 *
 * The filter (Allauzen & Mohri 2009, "N-way composition of weighted finite-state transducers") is a table of four moves worked out once per
 * state: what becomes of the filter state, or that the move is blocked. */
#include <string.h>

#include "base/option_tables.h"
#include "fst/properties.h"
#include "fstops/compose_side.h"
#include "fstops/compose_states.h"
#include "fstops/connect.h"
#include "fstops/parallel.h"
#include "fstops/pipeline.h"

enum filter { AUTO, SEQUENCE, ALT_SEQUENCE, MATCH, NO_MATCH, TRIVIAL, NULL_FILTER };
enum { AHEAD = 16, BLOCKED = -1 };
#define INLINE static inline __attribute__((always_inline))

struct composer {
  wf__compose_side a, b;
  enum filter filter;
  wf__compose_states states;
  wf__csr csr;
};

/* Some states in a row, and what expanding them gave. */
struct chunk {
  WF__VEC(uint64_t) input;    /* the states' triples */
  WF__VEC(float) final_cost;  /* [states] */
  WF__VEC(uint64_t) arc_end;  /* [states] */
  WF__VEC(wf_arc) arcs;
  WF__VEC(uint64_t) triples;  /* where the arcs lead */
};

/* Composer and chunk: what expanding takes. */
struct expansion {
  const struct composer *c;
  struct chunk *out;
};

/* The arcs of one state: all, and where the epsilons end. */
struct span {
  uint64_t begin, end, labels; /* epsilons: [begin, labels) */
};

/* The filter state that a move leads to, or BLOCKED. */
struct moves {
  int a_alone;  /* an epsilon output of a while b waits */
  int b_alone;  /* an epsilon input of b while a waits */
  int both;     /* the two together */
  int label;    /* a real label */
};

INLINE struct span span_of(const wf__compose_side *side, uint32_t state) {
  struct span span = {.begin = side->view.arc_off[state], .end = side->view.arc_off[state + 1]};
  span.labels = span.begin;
  while (span.labels < span.end && side->labels[span.labels] == 0) span.labels++;
  return span;
}

/* OpenFst's six filters. "Only epsilons": the state can do nothing else, so that waiting there is pointless. */
INLINE struct moves moves_of(enum filter filter, int state, struct span a, bool a_final, struct span b, bool b_final) {
  bool a_none = a.labels == a.begin, a_only = a.labels == a.end && !a_final;
  bool b_none = b.labels == b.begin, b_only = b.labels == b.end && !b_final;
  switch (filter) {
    case AUTO:
    case SEQUENCE: return (struct moves){.a_alone = state == 0 ? 0 : BLOCKED, .b_alone = a_only ? BLOCKED : a_none ? 0 : 1, .both = BLOCKED};
    case ALT_SEQUENCE: return (struct moves){.a_alone = b_only ? BLOCKED : b_none ? 0 : 1, .b_alone = state == 0 ? 0 : BLOCKED, .both = BLOCKED};
    case MATCH:
      if (state == 1) return (struct moves){.a_alone = 1, .b_alone = BLOCKED, .both = BLOCKED};
      if (state == 2) return (struct moves){.a_alone = BLOCKED, .b_alone = 2, .both = BLOCKED};
      return (struct moves){.a_alone = b_none ? 0 : b_only ? BLOCKED : 1, .b_alone = a_none ? 0 : a_only ? BLOCKED : 2};
    case NO_MATCH: return (struct moves){.both = BLOCKED};
    case TRIVIAL: return (struct moves){0};
    case NULL_FILTER: break;
  }
  return (struct moves){.a_alone = BLOCKED, .b_alone = BLOCKED};
}

/* --- candidates --------------------------------------------------------------------------------------------------- */

INLINE wf_status reserve(struct expansion *x, uint64_t count, wf_error *err) {
  WF__TRY(wf__vec_grow(&x->out->arcs, count, "arcs", err));
  return wf__vec_grow(&x->out->triples, count, "arcs", err);
}

INLINE void emit(struct expansion *x, int32_t ilabel, int32_t olabel, float weight, uint32_t a, uint32_t b, int filter) {
  x->out->triples.data[x->out->triples.size++] = wf__compose_pack(a, b, (uint32_t)filter);
  x->out->arcs.data[x->out->arcs.size++] = (wf_arc){.weight = weight, .ilabel = ilabel, .olabel = olabel};
}

INLINE void emit_pair(struct expansion *x, const wf_arc *a, const wf_arc *b, int filter) {
  emit(x, a->ilabel, b->olabel, a->weight + b->weight, a->nextstate, b->nextstate, filter);
}

/* Epsilons [begin, end) of one side move while the other side waits in `waiting`. */
INLINE wf_status move_alone(struct expansion *x, bool of_a, uint64_t begin, uint64_t end, uint32_t waiting, int filter, wf_error *err) {
  const struct composer *c = x->c;
  if (filter == BLOCKED || begin == end) return WF_OK;
  WF__TRY(reserve(x, end - begin, err));
  for (uint64_t i = begin; i < end; i++) {
    const wf_arc *arc = of_a ? &c->a.view.arcs[i] : &c->b.view.arcs[i];
    if (of_a) emit(x, arc->ilabel, 0, arc->weight, arc->nextstate, waiting, filter);
    else emit(x, 0, arc->olabel, arc->weight, waiting, arc->nextstate, filter);
  }
  return WF_OK;
}

/* Arc `i` of the leader with arcs [begin, end) of the other. */
INLINE wf_status match_range(struct expansion *x, bool a_leads, uint64_t i, uint64_t begin, uint64_t end, int filter, wf_error *err) {
  const struct composer *c = x->c;
  if (begin == end) return WF_OK;
  WF__TRY(reserve(x, end - begin, err));
  for (uint64_t j = begin; j < end; j++) {
    if (a_leads) emit_pair(x, &c->a.view.arcs[i], &c->b.view.arcs[j], filter);
    else emit_pair(x, &c->a.view.arcs[j], &c->b.view.arcs[i], filter);
  }
  return WF_OK;
}

/* Real labels: leader's arcs in order against the other's. Looked up where the other has an index or is much longer, else merged. */
INLINE wf_status match_labels(struct expansion *x, bool a_leads, struct span lead, uint32_t other_state, struct span other, int filter, wf_error *err) {
  const struct composer *c = x->c;
  const wf__compose_side *leader = a_leads ? &c->a : &c->b, *side = a_leads ? &c->b : &c->a;
  uint64_t num_lead = lead.end - lead.labels, num_other = other.end - other.labels, begin = other.labels, end = other.labels;
  if (num_lead == 0 || num_other == 0) return WF_OK;
  bool look_up = side->index_of[other_state] != WF__NO_INDEX || num_other > 8 * num_lead;
  int32_t previous = 0;
  for (uint64_t i = lead.labels; i < lead.end; i++) {
    int32_t label = leader->labels[i];
    if (label != previous) {
      previous = label;
      if (look_up) {
        wf__compose_find(side, other_state, label, &begin, &end);
      } else {
        for (begin = end; begin < other.end && side->labels[begin] < label;) begin++;
        if (begin == other.end) break;
        for (end = begin; end < other.end && side->labels[end] == label;) end++;
      }
    }
    WF__TRY(match_range(x, a_leads, i, begin, end, filter, err));
  }
  return WF_OK;
}

/* Real labels of a where b's state has a failure arc: for each, the first state along failure arcs that has the label. */
static wf_status match_with_failure(struct expansion *x, struct span a, uint32_t b_state, int filter, wf_error *err) {
  const struct composer *c = x->c;
  for (uint64_t i = a.labels; i < a.end; i++) {
    uint64_t begin, end;
    uint32_t s = b_state;
    float cost = 0;
    for (;;) {
      wf__compose_find(&c->b, s, c->a.labels[i], &begin, &end);
      if (begin != end || c->b.fail_next[s] == WF__NO_FAIL) break;
      cost += c->b.fail_cost[s];
      s = c->b.fail_next[s];
    }
    WF__TRY(reserve(x, end - begin, err));
    for (uint64_t j = begin; j < end; j++) {
      const wf_arc *from_a = &c->a.view.arcs[i], *from_b = &c->b.view.arcs[j];
      emit(x, from_a->ilabel, from_b->olabel, from_a->weight + (cost + from_b->weight), from_a->nextstate, from_b->nextstate, filter);
    }
  }
  return WF_OK;
}

INLINE wf_status expand_led(struct expansion *x, bool a_leads, uint64_t triple, struct span a, struct span b, struct moves moves, bool failure, wf_error *err) {
  uint32_t a_state = wf__compose_a(triple), b_state = wf__compose_b(triple);
  struct span lead = a_leads ? a : b, other = a_leads ? b : a;
  if (a_leads) WF__TRY(move_alone(x, false, b.begin, b.labels, a_state, moves.b_alone, err));
  else WF__TRY(move_alone(x, true, a.begin, a.labels, b_state, moves.a_alone, err));
  for (uint64_t i = lead.begin; i < lead.labels; i++) {
    WF__TRY(move_alone(x, a_leads, i, i + 1, a_leads ? b_state : a_state, a_leads ? moves.a_alone : moves.b_alone, err));
    if (moves.both != BLOCKED) WF__TRY(match_range(x, a_leads, i, other.begin, other.labels, moves.both, err));
  }
  if (failure) return match_with_failure(x, a, b_state, moves.label, err);
  return match_labels(x, a_leads, lead, a_leads ? b_state : a_state, other, moves.label, err);
}

/* The next state of the result: its final cost and the candidates for its arcs. */
static wf_status expand(struct expansion *x, uint64_t triple, wf_error *err) {
  const struct composer *c = x->c;
  uint32_t a_state = wf__compose_a(triple), b_state = wf__compose_b(triple);
  struct span a = span_of(&c->a, a_state), b = span_of(&c->b, b_state);
  float a_final = c->a.view.final_cost[a_state], b_final = c->b.view.final_cost[b_state];
  struct moves moves = moves_of(c->filter, (int)wf__compose_filter(triple), a, a_final != INFINITY, b, b_final != INFINITY);
  bool failure = c->b.fail_next != NULL && c->b.fail_next[b_state] != WF__NO_FAIL;
  x->out->final_cost.data[x->out->final_cost.size++] = a_final + b_final;
  if (failure || a.end - a.begin <= b.end - b.begin) return expand_led(x, true, triple, a, b, moves, failure, err);
  return expand_led(x, false, triple, a, b, moves, false, err);
}

/* --- the search --------------------------------------------------------------------------------------------------- */

static uint64_t num_known(void *user) { return ((struct composer *)user)->states.pairs.size; }

static wf_status take(void *user, void *to, uint64_t first, uint64_t end, wf_error *err) {
  const struct composer *c = user;
  struct chunk *chunk = to;
  chunk->input.size = chunk->final_cost.size = chunk->arc_end.size = chunk->arcs.size = chunk->triples.size = 0;
  WF__TRY(wf__vec_grow(&chunk->input, end - first, "states", err));
  WF__TRY(wf__vec_grow(&chunk->final_cost, end - first, "states", err));
  WF__TRY(wf__vec_grow(&chunk->arc_end, end - first, "states", err));
  memcpy(chunk->input.data, c->states.pairs.data + first, (end - first) * sizeof *chunk->input.data);
  chunk->input.size = end - first;
  return WF_OK;
}

static wf_status expand_chunk(void *user, void *to, uint64_t first, int worker, bool shared, wf_error *err) {
  struct chunk *chunk = to;
  struct expansion x = {.c = user, .out = chunk};
  (void)first, (void)worker, (void)shared;
  for (uint64_t k = 0; k < chunk->input.size; k++) {
    WF__TRY(expand(&x, chunk->input.data[k], err));
    chunk->arc_end.data[chunk->arc_end.size++] = chunk->arcs.size;
  }
  return WF_OK;
}

static wf_status intern(void *user, void *from, uint64_t first, wf_error *err) {
  struct composer *c = user;
  const struct chunk *chunk = from;
  const uint64_t *triples = chunk->triples.data;
  (void)first;
  WF__TRY(wf__vec_grow(&c->csr.arcs, chunk->arcs.size, "arcs", err));
  for (uint64_t k = 0, i = 0; k < chunk->arc_end.size; k++) {
    WF__TRY(wf__csr_add_state(&c->csr, chunk->final_cost.data[k], err));
    for (; i < chunk->arc_end.data[k]; i++) {
      wf_arc *arc = &c->csr.arcs.data[c->csr.arcs.size++];
      if (i + 2 * AHEAD < chunk->triples.size) wf__compose_prefetch(&c->states, triples[i + 2 * AHEAD]);
      if (i + AHEAD < chunk->triples.size) wf__compose_prefetch_pair(&c->states, triples[i + AHEAD]);
      *arc = chunk->arcs.data[i];
      WF__TRY(wf__compose_intern(&c->states, triples[i], &arc->nextstate, err));
    }
  }
  return WF_OK;
}

static void free_chunk(void *chunk_of_search) {
  struct chunk *chunk = chunk_of_search;
  wf__vec_free(&chunk->input);
  wf__vec_free(&chunk->final_cost);
  wf__vec_free(&chunk->arc_end);
  wf__vec_free(&chunk->arcs);
  wf__vec_free(&chunk->triples);
}

/* A pool is worth its while when the larger input is large. */
static wf_status search(struct composer *c, int32_t num_threads, wf_error *err) {
  const wf__pipeline pipeline = {.user = c, .chunk_bytes = sizeof(struct chunk), .num_known = num_known, .take = take, .expand = expand_chunk, .intern = intern,
                                 .free_chunk = free_chunk};
  uint32_t id;
  wf__pool *pool;
  WF__TRY(wf__compose_intern(&c->states, wf__compose_pack((uint32_t)c->a.view.start, (uint32_t)c->b.view.start, 0), &id, err));
  WF__TRY(wf__pool_for_fst(num_threads, c->a.view.num_arcs > c->b.view.num_arcs ? &c->a.view : &c->b.view, &pool, err));
  wf_status status = wf__pipeline_run(&pipeline, pool, err);
  wf__pool_free(pool);
  return status;
}

/* How many filter states can occur: they size the table of states. */
static uint32_t num_filter_states(const struct composer *c) {
  if (c->filter == MATCH) return 3;
  if (c->filter == ALT_SEQUENCE) return c->b.has_epsilons ? 2 : 1;
  return (c->filter == AUTO || c->filter == SEQUENCE) && c->a.has_epsilons ? 2 : 1;
}

static wf_status refuse_label(const wf__compose_side *side, int32_t phi_label, wf_error *err) {
  for (uint64_t i = 0; i < side->view.num_arcs; i++)
    if (side->labels[i] == phi_label) return wf__fail(err, WF_ERR_ARGUMENT, "the first fst has the failure label %d on its output side", phi_label);
  return WF_OK;
}

static wf_status compose(struct composer *c, const wf_fst *a, const wf_fst *b, const wf_compose_options *o, int64_t *start, wf_error *err) {
  c->filter = (enum filter)o->filter;
  WF__TRY(wf__compose_side_init(&c->a, a, true, err));
  WF__TRY(wf__compose_side_init(&c->b, b, false, err));
  if (o->phi_label > 0) {
    WF__TRY(refuse_label(&c->a, o->phi_label, err));
    WF__TRY(wf__compose_side_take_failures(&c->b, o->phi_label, o->phi_final, err));
  }
  uint64_t max_states = o->max_states > 0 ? (uint64_t)o->max_states : WF__MAX_STATES;
  WF__TRY(wf__compose_states_init(&c->states, c->a.view.num_states, c->b.view.num_states, num_filter_states(c), max_states, err));
  WF__TRY(search(c, o->num_threads, err));
  *start = 0;
  if (!o->connect) return WF_OK;
  wf__compose_states_free(&c->states); /* the memory serves the trimming */
  return wf__csr_connect(&c->csr, start, true, err);
}

wf_status wf_compose(const wf_fst *a, const wf_fst *b, const wf_compose_options *options, wf_fst **out, wf_error *err) {
  *out = NULL;
  wf_compose_options o;
  WF__TRY(wf__options_take(wf__compose_table(), options, &o, err));
  WF__TRY(wf__same_semiring(a, b, err));
  wf_semiring semiring = wf_fst_get_view(a).semiring;
  if (wf_fst_get_view(a).start < 0 || wf_fst_get_view(b).start < 0) return wf__fst_empty(semiring, out, err);
  struct composer composer = {0};
  int64_t start = -1;
  wf_status status = compose(&composer, a, b, &o, &start, err);
  if (status == WF_OK) status = wf__fst_from_csr(&composer.csr, start, semiring, wf_fst_isymbols(a), wf_fst_osymbols(b), out, err);
  if (status == WF_OK && o.connect) wf__fst_set_trimmed(*out);
  wf__csr_free(&composer.csr);
  wf__compose_states_free(&composer.states);
  wf__compose_side_free(&composer.a);
  wf__compose_side_free(&composer.b);
  return status;
}
