/* compose_expand.c - the arcs of one state of a composition.
 *
 * The order of a state's arcs is that of OpenFst's fstcompose on sorted inputs. Of the two states,
 * the one with fewer arcs leads (a's on a tie). First, the other state's epsilons are taken while
 * the leader waits. Then come the leader's arcs: an epsilon first while the other waits, then with
 * each epsilon of the other; any other label with each arc of the other that has it. For the
 * canonical order, a always leads.
 *
 * The moves that the filter allows (compose_filter.h) are computed once per state. */
#include "fstops/compose_expand.h"

#include "fstops/compose_filter.h"
#include "fstops/compose_states.h"

#define INLINE static inline __attribute__((always_inline))

/* Arguments of the functions that expand a state. */
struct expansion {
  const wf__compose_side *a, *b;
  const wf__lookahead *lookahead; /* may be NULL */
  bool pushes;                    /* labels, by look-ahead */
  wf__expanded *out;
};

/* The arcs of one state. Sorted arcs begin with the epsilons. */
struct span {
  uint64_t begin, end, labels; /* epsilons: [begin, labels) */
};

INLINE struct span span_of(const wf__compose_side *side, uint32_t state) {
  struct span span = {.begin = side->arc_begin[state], .end = side->arc_end[state]};
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
  if (x->out->with_origins) WF__TRY(wf__vec_grow(&x->out->origins, count, "origins of arcs", err));
  return wf__vec_grow(&x->out->triples, count, "arcs", err);
}

/* Adds a candidate, unless look-ahead finds its target dead. `a` and `b` are the arcs that it
 * combines; NULL if that side waits. */
INLINE void emit(struct expansion *x, const wf_arc *a, const wf_arc *b, wf_arc arc,
                 uint64_t triple) {
  if (x->pushes) {
    uint32_t to_a = wf__compose_a(triple), to_b = wf__compose_b(triple);
    if (!wf__lookahead_push(x->lookahead, to_a, &to_b, &arc)) return;
    triple = wf__compose_pack(to_a, to_b, wf__compose_filter(triple));
  } else if (x->lookahead != NULL &&
             !wf__lookahead_alive(x->lookahead, wf__compose_a(triple), wf__compose_b(triple))) {
    return;
  }
  x->out->triples.data[x->out->triples.size++] = triple;
  x->out->arcs.data[x->out->arcs.size++] = arc;
  if (x->out->with_origins)
    x->out->origins.data[x->out->origins.size++] =
        (wf_arc_origin){a != NULL ? (uint32_t)(a - x->a->view.arcs) : WF_NO_ARC,
                        b != NULL ? (uint32_t)(b - x->b->view.arcs) : WF_NO_ARC};
}

INLINE void emit_pair(struct expansion *x, const wf_arc *a, const wf_arc *b, int filter) {
  wf_arc arc = {.weight = a->weight + b->weight, .ilabel = a->ilabel, .olabel = b->olabel};
  emit(x, a, b, arc, wf__compose_pack(a->nextstate, b->nextstate, (uint32_t)filter));
}

/* Takes the epsilon arcs [begin, end) of one side while the other side waits in `waiting`. */
INLINE wf_status move_alone(struct expansion *x, bool of_a, uint64_t begin, uint64_t end,
                            uint32_t waiting, int filter, wf_error *err) {
  if (filter == WF__BLOCKED || begin == end) return WF_OK;
  WF__TRY(reserve(x, end - begin, err));
  for (uint64_t i = begin; i < end; i++) {
    const wf_arc *arc = of_a ? &x->a->view.arcs[i] : &x->b->view.arcs[i];
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
  if (begin == end) return WF_OK;
  WF__TRY(reserve(x, end - begin, err));
  for (uint64_t j = begin; j < end; j++) {
    if (a_leads)
      emit_pair(x, &x->a->view.arcs[i], &x->b->view.arcs[j], filter);
    else
      emit_pair(x, &x->a->view.arcs[j], &x->b->view.arcs[i], filter);
  }
  return WF_OK;
}

/* Like match_labels, with the same arcs in the same order, if the leader has many more arcs than
 * the other: one look-up for each label of the other. */
INLINE wf_status match_by_other(struct expansion *x, bool a_leads, uint32_t lead_state,
                                struct span other, int filter, wf_error *err) {
  const wf__compose_side *leader = a_leads ? x->a : x->b, *side = a_leads ? x->b : x->a;
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
  const wf__compose_side *leader = a_leads ? x->a : x->b, *side = a_leads ? x->b : x->a;
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
  for (uint64_t i = a.labels; i < a.end; i++) {
    uint64_t begin, end;
    uint32_t s = b_state;
    float cost = 0;
    for (;;) {
      wf__compose_find(x->b, s, wf__compose_label(x->a, i), &begin, &end);
      if (begin != end || x->b->fail_next[s] == WF__NO_FAIL) break;
      cost += x->b->fail_cost[s];
      s = x->b->fail_next[s];
    }
    WF__TRY(reserve(x, end - begin, err));
    for (uint64_t j = begin; j < end; j++) {
      const wf_arc *from_a = &x->a->view.arcs[i], *from_b = &x->b->view.arcs[j];
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

wf_status wf__compose_expand(const wf__compose_job *job, uint64_t triple, wf__expanded *out,
                             wf_error *err) {
  struct expansion x = {.a = job->a, .b = job->b, .lookahead = job->lookahead, .out = out};
  x.pushes = x.lookahead != NULL && wf__lookahead_pushes(x.lookahead);
  uint32_t a_state = wf__compose_a(triple), b_state = wf__compose_b(triple);
  struct span a = span_of(x.a, a_state), b = span_of(x.b, b_state);
  float a_final = x.a->view.final_cost[a_state], b_final = x.b->view.final_cost[b_state];
  struct wf__moves moves =
      wf__moves_of(job->filter, (int)wf__compose_filter(triple),
                   epsilons_of(a, a_final != INFINITY), epsilons_of(b, b_final != INFINITY));
  bool failure = x.b->fail_next != NULL && x.b->fail_next[b_state] != WF__NO_FAIL,
       a_leads = failure || job->canonical || a.end - a.begin <= b.end - b.begin;
  WF__TRY(wf__vec_push(&out->final_cost, a_final + b_final, "states", err));
  WF__TRY(a_leads ? expand_led(&x, true, triple, a, b, moves, failure, err)
                  : expand_led(&x, false, triple, a, b, moves, false, err));
  return wf__vec_push(&out->arc_end, out->arcs.size, "states", err);
}

void wf__expanded_clear(wf__expanded *expanded) {
  expanded->final_cost.size = expanded->arc_end.size = expanded->arcs.size =
      expanded->triples.size = expanded->origins.size = 0;
}

void wf__expanded_free(wf__expanded *expanded) {
  wf__vec_free(&expanded->final_cost);
  wf__vec_free(&expanded->arc_end);
  wf__vec_free(&expanded->arcs);
  wf__vec_free(&expanded->triples);
  wf__vec_free(&expanded->origins);
}
