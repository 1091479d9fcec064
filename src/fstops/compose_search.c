/* compose_search.c - composition pair by pair: a breadth-first search over the pairs that are reached, for results that are sparse among all pairs.
 *
 * States are triples (state of a, state of b, filter state), numbered as a breadth-first search discovers them. Each state's arcs come in a fixed order,
 * which is that of OpenFst's fstcompose on sorted inputs: of the two states the one with fewer arcs leads (a's on a tie); first the
 * other one's epsilons move alone; then each of the leader's arcs in turn: an epsilon alone, then with each epsilon of the other; a label
 * with each arc of the other that has it. For the canonical order, a leads everywhere, and compose_order.c renumbers the states in the end.
 *
 *   queue -> expand: candidates (arc, triple it leads to), triples prefetched -> intern: triples become state ids -> trim, in place
 *
 * A batch of states is expanded before the first of its triples is looked up, so that the misses overlap. */
#include "fstops/compose_filter.h"
#include "fstops/compose_job.h"
#include "fstops/compose_order.h"
#include "fstops/compose_states.h"
#include "fstops/connect.h"

enum { BATCH_STATES = 128, BATCH_ARCS = 512 };
#define INLINE static inline __attribute__((always_inline))

struct composer {
  const wf__compose_side *a, *b;
  int filter;
  bool canonical;
  wf__compose_states states;
  wf__compose_output *out;
  WF__VEC(uint64_t) triples; /* where the arcs of the batch lead */
};

/* The arcs of one state: all, and where the epsilons end. */
struct span {
  uint64_t begin, end, labels; /* epsilons: [begin, labels) */
};

INLINE struct span span_of(const wf__compose_side *side, uint32_t state) {
  struct span span = {.begin = side->view.arc_off[state], .end = side->view.arc_off[state + 1]};
  span.labels = span.begin;
  while (span.labels < span.end && side->labels[span.labels] == 0) span.labels++;
  return span;
}

INLINE int epsilons_of(struct span span, bool is_final) { return wf__epsilons_of(span.end - span.begin, span.labels - span.begin, is_final); }

/* --- candidates --------------------------------------------------------------------------------------------------- */

INLINE wf_status reserve(struct composer *c, uint64_t count, wf_error *err) {
  WF__TRY(wf__vec_grow(&c->out->csr.arcs, count, "arcs", err));
  if (c->out->with_origins) WF__TRY(wf__vec_grow(&c->out->origins, count, "origins of arcs", err));
  return wf__vec_grow(&c->triples, count, "arcs", err);
}

/* `x`, `y`: the arcs it is made of; NULL where a side waits. */
INLINE void emit(struct composer *c, const wf_arc *x, const wf_arc *y, wf_arc arc, uint64_t triple) {
  wf__compose_prefetch(&c->states, triple);
  c->triples.data[c->triples.size++] = triple;
  c->out->csr.arcs.data[c->out->csr.arcs.size++] = arc;
  if (c->out->with_origins)
    c->out->origins.data[c->out->origins.size++] =
        (wf_arc_origin){x != NULL ? (uint32_t)(x - c->a->view.arcs) : WF_NO_ARC, y != NULL ? (uint32_t)(y - c->b->view.arcs) : WF_NO_ARC};
}

INLINE void emit_pair(struct composer *c, const wf_arc *x, const wf_arc *y, int filter) {
  wf_arc arc = {.weight = x->weight + y->weight, .ilabel = x->ilabel, .olabel = y->olabel};
  emit(c, x, y, arc, wf__compose_pack(x->nextstate, y->nextstate, (uint32_t)filter));
}

/* Epsilons [begin, end) of one side move while the other side waits in `waiting`. */
INLINE wf_status move_alone(struct composer *c, bool of_a, uint64_t begin, uint64_t end, uint32_t waiting, int filter, wf_error *err) {
  if (filter == WF__BLOCKED || begin == end) return WF_OK;
  WF__TRY(reserve(c, end - begin, err));
  for (uint64_t i = begin; i < end; i++) {
    const wf_arc *arc = of_a ? &c->a->view.arcs[i] : &c->b->view.arcs[i];
    uint32_t a_next = of_a ? arc->nextstate : waiting, b_next = of_a ? waiting : arc->nextstate;
    wf_arc made = {.weight = arc->weight, .ilabel = of_a ? arc->ilabel : 0, .olabel = of_a ? 0 : arc->olabel};
    emit(c, of_a ? arc : NULL, of_a ? NULL : arc, made, wf__compose_pack(a_next, b_next, (uint32_t)filter));
  }
  return WF_OK;
}

/* Arc `i` of the leader with arcs [begin, end) of the other. */
INLINE wf_status match_range(struct composer *c, bool a_leads, uint64_t i, uint64_t begin, uint64_t end, int filter, wf_error *err) {
  if (begin == end) return WF_OK;
  WF__TRY(reserve(c, end - begin, err));
  for (uint64_t j = begin; j < end; j++) {
    if (a_leads) emit_pair(c, &c->a->view.arcs[i], &c->b->view.arcs[j], filter);
    else emit_pair(c, &c->a->view.arcs[j], &c->b->view.arcs[i], filter);
  }
  return WF_OK;
}

/* Real labels: leader's arcs in order against the other's. Looked up where the other has an index or is much longer, else merged. */
INLINE wf_status match_labels(struct composer *c, bool a_leads, struct span lead, uint32_t other_state, struct span other, int filter, wf_error *err) {
  const wf__compose_side *leader = a_leads ? c->a : c->b, *side = a_leads ? c->b : c->a;
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
    WF__TRY(match_range(c, a_leads, i, begin, end, filter, err));
  }
  return WF_OK;
}

/* Real labels of a where b's state has a failure arc: for each, the first state along failure arcs that has the label. */
static wf_status match_with_failure(struct composer *c, struct span a, uint32_t b_state, int filter, wf_error *err) {
  for (uint64_t i = a.labels; i < a.end; i++) {
    uint64_t begin, end;
    uint32_t s = b_state;
    float cost = 0;
    for (;;) {
      wf__compose_find(c->b, s, c->a->labels[i], &begin, &end);
      if (begin != end || c->b->fail_next[s] == WF__NO_FAIL) break;
      cost += c->b->fail_cost[s];
      s = c->b->fail_next[s];
    }
    WF__TRY(reserve(c, end - begin, err));
    for (uint64_t j = begin; j < end; j++) {
      const wf_arc *x = &c->a->view.arcs[i], *y = &c->b->view.arcs[j];
      wf_arc arc = {.weight = x->weight + (cost + y->weight), .ilabel = x->ilabel, .olabel = y->olabel};
      emit(c, x, y, arc, wf__compose_pack(x->nextstate, y->nextstate, (uint32_t)filter));
    }
  }
  return WF_OK;
}

INLINE wf_status expand_led(struct composer *c, bool a_leads, uint64_t triple, struct span a, struct span b, struct wf__moves moves, bool failure, wf_error *err) {
  uint32_t a_state = wf__compose_a(triple), b_state = wf__compose_b(triple);
  struct span lead = a_leads ? a : b, other = a_leads ? b : a;
  if (a_leads) WF__TRY(move_alone(c, false, b.begin, b.labels, a_state, moves.b_alone, err));
  else WF__TRY(move_alone(c, true, a.begin, a.labels, b_state, moves.a_alone, err));
  for (uint64_t i = lead.begin; i < lead.labels; i++) {
    WF__TRY(move_alone(c, a_leads, i, i + 1, a_leads ? b_state : a_state, a_leads ? moves.a_alone : moves.b_alone, err));
    if (moves.both != WF__BLOCKED) WF__TRY(match_range(c, a_leads, i, other.begin, other.labels, moves.both, err));
  }
  if (failure) return match_with_failure(c, a, b_state, moves.label, err);
  return match_labels(c, a_leads, lead, a_leads ? b_state : a_state, other, moves.label, err);
}

/* The next state of the result: its final cost and the candidates for its arcs. */
static wf_status expand(struct composer *c, uint64_t triple, wf_error *err) {
  uint32_t a_state = wf__compose_a(triple), b_state = wf__compose_b(triple);
  struct span a = span_of(c->a, a_state), b = span_of(c->b, b_state);
  float a_final = c->a->view.final_cost[a_state], b_final = c->b->view.final_cost[b_state];
  struct wf__moves moves = wf__moves_of(c->filter, (int)wf__compose_filter(triple), epsilons_of(a, a_final != INFINITY), epsilons_of(b, b_final != INFINITY));
  bool failure = c->b->fail_next != NULL && c->b->fail_next[b_state] != WF__NO_FAIL;
  WF__TRY(wf__csr_add_state(&c->out->csr, a_final + b_final, err));
  if (failure || c->canonical || a.end - a.begin <= b.end - b.begin) return expand_led(c, true, triple, a, b, moves, failure, err);
  return expand_led(c, false, triple, a, b, moves, false, err);
}

/* --- the search --------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct composer *c) {
  const wf__compose_output *out = c->out;
  uint64_t table = c->states.array != NULL ? c->states.num_cells * sizeof *c->states.array : sizeof *c->states.slots << c->states.bits;
  return table + c->states.pairs.cap * sizeof *c->states.pairs.data + out->csr.arcs.cap * sizeof(wf_arc) + out->csr.arc_off.cap * sizeof(uint64_t) +
         out->csr.final_cost.cap * sizeof(float) + out->origins.cap * sizeof(wf_arc_origin);
}

/* `*out_gave_up` tells that there are more than `give_up` states. */
static wf_status search(struct composer *c, uint64_t max_bytes, uint64_t give_up, bool *out_gave_up, wf_error *err) {
  uint32_t id;
  wf__csr *csr = &c->out->csr;
  WF__TRY(wf__compose_intern(&c->states, wf__compose_pack((uint32_t)c->a->view.start, (uint32_t)c->b->view.start, 0), &id, err));
  for (uint64_t next = 0; next < c->states.pairs.size;) {
    uint64_t stop = next + BATCH_STATES < c->states.pairs.size ? next + BATCH_STATES : c->states.pairs.size;
    uint64_t begin = csr->arcs.size;
    c->triples.size = 0;
    for (; next < stop && c->triples.size < BATCH_ARCS; next++) WF__TRY(expand(c, c->states.pairs.data[next], err));
    for (uint64_t i = 0; i < c->triples.size; i++) WF__TRY(wf__compose_intern(&c->states, c->triples.data[i], &csr->arcs.data[begin + i].nextstate, err));
    *out_gave_up = c->states.pairs.size > give_up;
    if (*out_gave_up) return WF_OK;
    if (bytes_of(c) > max_bytes) return wf__compose_too_large(bytes_of(c), max_bytes, err);
  }
  return WF_OK;
}

static wf_status compose(struct composer *c, const wf__compose_job *job, bool *out_gave_up, wf_error *err) {
  uint64_t max_states = job->max_states < WF__MAX_STATES ? job->max_states : WF__MAX_STATES;
  uint32_t num_filters = (uint32_t)wf__num_filter_states(c->filter, c->a->has_epsilons, c->b->has_epsilons);
  WF__TRY(wf__compose_states_init(&c->states, c->a->view.num_states, c->b->view.num_states, num_filters, max_states, err));
  WF__TRY(search(c, job->max_bytes, job->give_up, out_gave_up, err));
  if (*out_gave_up) return WF_OK;
  c->out->start = 0;
  if (job->canonical) {
    uint64_t num_a = c->a->view.num_states, num_b = c->b->view.num_states;
    WF__TRY(wf__compose_renumber(c->out, c->states.pairs.data, num_a, num_b, num_filters, err));
  }
  wf__compose_states_free(&c->states); /* the memory serves the trimming */
  if (!job->connect) return WF_OK;
  WF__TRY(wf__csr_connect_with(&c->out->csr, &c->out->start, true, c->out->origins.data, err));
  if (c->out->with_origins) c->out->origins.size = c->out->csr.arcs.size;
  return WF_OK;
}

wf_status wf__compose_search(const wf__compose_job *job, wf__compose_output *out, bool *out_gave_up, wf_error *err) {
  struct composer composer = {.a = job->a, .b = job->b, .filter = job->filter, .canonical = job->canonical, .out = out};
  *out_gave_up = false;
  wf_status status = compose(&composer, job, out_gave_up, err);
  if (status != WF_OK || *out_gave_up) wf__compose_output_free(out);
  wf__vec_free(&composer.triples);
  wf__compose_states_free(&composer.states);
  return status;
}
