/* emitting_only.c - removes input epsilons by folding them into the arcs before them.
 *
 *     p --l:w/c--> q --eps:v/d--> r         gives         p --l:w/c--> q  and  p --l:wv/(c+d)--> r
 *
 * The closure of q is the set of (state, words on the way, cost) that its epsilon arcs reach, with
 * q itself, and with the least cost for each (state, words). The closure is folded into the arcs
 * that enter q. Copying the arcs of its states to q instead would make a larger graph, because a
 * state behind a back-off arc has many more outgoing arcs than its predecessors have incoming ones.
 *
 * An arc has room for one word. So a state of the result is a pair (state, words still to be
 * written), mostly with no words. No arc enters the start, so one extra state holds the arcs of its
 * whole closure. */
#include "graph/emitting_only.h"

#include <string.h>

#include "base/interrupt.h"
#include "base/map64.h"
#include "fst/fst.h"
#include "fstops/connect.h"

enum { MAX_WORDS = 8, MAX_WORK = 1 << 24 };

struct words {
  uint32_t size;
  int32_t labels[MAX_WORDS];
};

struct item {
  uint32_t state, words;
  float cost;
};

struct folding {
  wf_fst_view view;
  uint64_t max_states, max_arcs;
  wf__map64 words_nodes;       /* words << 32 | label -> index of the string of both */
  WF__VEC(struct words) words; /* index 0: no words */
  uint64_t *open;              /* [(num_states + 63) / 64] bits: states with epsilon arcs */
  uint64_t *closure_off;       /* [num_states] offset in items; UINT64_MAX: not computed yet */
  uint32_t *closure_size;      /* [num_states] */
  WF__VEC(struct item) items;
  WF__VEC(struct item) found; /* the closure that is being computed */
  wf__map64 found_index;      /* state << 32 | words -> index in found */
  WF__VEC(uint32_t) work;     /* queue: indices in found whose arcs are to be followed */
  WF__VEC(wf_arc) arcs;       /* arcs of the state that is being made */
  uint32_t *plain;  /* [num_states] the state of the result for (state, no words); UINT32_MAX: not
                       made yet */
  wf__map64 states; /* state << 32 | words -> state of the result, for pairs with words */
  WF__VEC(uint64_t) queue;
  wf__csr csr;
};

/* --- strings of words -------------------------------------------------------------------- */

static wf_status append(struct folding *f, uint32_t words, int32_t label, uint32_t *out,
                        wf_error *err) {
  *out = words;
  if (label == 0) return WF_OK;
  struct words longer = f->words.data[words];
  if (longer.size == MAX_WORDS)
    return wf__fail(err, WF_ERR_LIMIT, "more than %d words without a frame between them",
                    (int)MAX_WORDS);
  longer.labels[longer.size++] = label;
  bool fresh;
  WF__TRY(wf__map64_insert(&f->words_nodes, (uint64_t)words << 32 | (uint32_t)label,
                           (uint32_t)f->words.size, out, &fresh, "words", err));
  return fresh ? wf__vec_push(&f->words, longer, "words", err) : WF_OK;
}

static wf_status append_all(struct folding *f, uint32_t words, uint32_t more, uint32_t first,
                            uint32_t *out, wf_error *err) {
  *out = words;
  for (uint32_t i = first; i < f->words.data[more].size; i++)
    WF__TRY(append(f, *out, f->words.data[more].labels[i], out, err));
  return WF_OK;
}

/* --- closures ---------------------------------------------------------------------------- */

static bool is_useful(const struct folding *f, uint32_t state) {
  if (wf__is_final(&f->view, state)) return true;
  for (uint64_t i = f->view.arc_off[state]; i < f->view.arc_off[state + 1]; i++)
    if (f->view.arcs[i].ilabel != 0) return true;
  return false;
}

static wf_status relax(struct folding *f, uint32_t state, uint32_t words, float cost,
                       wf_error *err) {
  uint32_t index;
  bool fresh;
  WF__TRY(wf__map64_insert(&f->found_index, (uint64_t)state << 32 | words, (uint32_t)f->found.size,
                           &index, &fresh, "epsilon closure", err));
  if (fresh)
    WF__TRY(
        wf__vec_push(&f->found, ((struct item){state, words, INFINITY}), "epsilon closure", err));
  if (!(cost < f->found.data[index].cost)) return WF_OK;
  if (f->work.size == MAX_WORK)
    return wf__fail(
        err, WF_ERR_NEGATIVE_CYCLE,
        "the epsilon closure of state %u has no end: a cycle of epsilons of negative cost",
        f->found.data[0].state);
  f->found.data[index].cost = cost;
  return wf__vec_push(&f->work, index, "epsilon closure", err);
}

static bool has_epsilons(const struct folding *f, uint32_t state) {
  return f->open[state / 64] >> state % 64 & 1;
}

static void find_open(struct folding *f) {
  const wf_fst_view *view = &f->view;
  for (uint64_t s = 0; s < view->num_states; s++)
    for (uint64_t i = view->arc_off[s]; i < view->arc_off[s + 1]; i++)
      if (view->arcs[i].ilabel == 0) f->open[s / 64] |= (uint64_t)1 << s % 64;
}

static wf_status follow_epsilons(struct folding *f, uint32_t state, wf_error *err) {
  f->found.size = f->work.size = 0;
  wf__map64_clear(&f->found_index);
  WF__TRY(relax(f, state, 0, 0, err));
  for (uint64_t w = 0; w < f->work.size; w++) {
    struct item item = f->found.data[f->work.data[w]];
    for (uint64_t i = f->view.arc_off[item.state]; i < f->view.arc_off[item.state + 1]; i++) {
      const wf_arc *arc = &f->view.arcs[i];
      uint32_t words;
      if (arc->ilabel != 0) continue;
      WF__TRY(append(f, item.words, arc->olabel, &words, err));
      WF__TRY(relax(f, arc->nextstate, words, item.cost + arc->weight, err));
    }
  }
  return WF_OK;
}

/* Computes the closure of a state unless that has been done. */
static wf_status find_closure(struct folding *f, uint32_t state, wf_error *err) {
  if (f->closure_off[state] != UINT64_MAX) return WF_OK;
  uint64_t off = f->items.size;
  if (!has_epsilons(f, state)) {
    WF__TRY(wf__vec_push(&f->items, ((struct item){state, 0, 0}), "epsilon closures", err));
  } else {
    WF__TRY(follow_epsilons(f, state, err));
    for (uint64_t i = 0; i < f->found.size; i++)
      if (is_useful(f, f->found.data[i].state))
        WF__TRY(wf__vec_push(&f->items, f->found.data[i], "epsilon closures", err));
  }
  f->closure_off[state] = off;
  f->closure_size[state] = (uint32_t)(f->items.size - off);
  return WF_OK;
}

/* --- states ------------------------------------------------------------------------------ */

/* The state of the result for (state, words still to be written). Makes it if it is new. */
static wf_status find_state(struct folding *f, uint32_t state, uint32_t words, uint32_t *out,
                            wf_error *err) {
  uint32_t next = (uint32_t)f->queue.size;
  bool fresh = words == 0 && f->plain[state] == UINT32_MAX;
  if (words != 0)
    WF__TRY(wf__map64_insert(&f->states, (uint64_t)state << 32 | words, next, out, &fresh, "states",
                             err));
  else
    *out = f->plain[state] = fresh ? next : f->plain[state];
  if (!fresh) return WF_OK;
  if (next >= f->max_states)
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states", (unsigned long long)f->max_states);
  return wf__vec_push(&f->queue, ((uint64_t)state << 32 | words), "states", err);
}

/* Adds an arc to `state`. It writes the first of the words `waiting`; the target state keeps the
 * others. */
static wf_status push_arc(struct folding *f, int32_t ilabel, float cost, uint32_t waiting,
                          uint32_t state, wf_error *err) {
  uint32_t rest = 0, target;
  int32_t olabel = waiting != 0 ? f->words.data[waiting].labels[0] : 0;
  WF__TRY(append_all(f, 0, waiting, 1, &rest, err));
  WF__TRY(find_state(f, state, rest, &target, err));
  return wf__vec_push(&f->arcs, ((wf_arc){target, cost, ilabel, olabel}), "arcs", err);
}

/* Adds the emitting arcs of `state`, with `cost` added and the words `waiting` put before their
 * own. Each arc is repeated for every state in the closure of its target. */
static wf_status fold_arcs(struct folding *f, uint32_t state, uint32_t waiting, float cost,
                           wf_error *err) {
  for (uint64_t i = f->view.arc_off[state]; i < f->view.arc_off[state + 1]; i++) {
    const wf_arc *arc = &f->view.arcs[i];
    uint32_t words, all, target;
    if (arc->ilabel == 0) continue;
    if (waiting == 0 && !has_epsilons(f, arc->nextstate)) { /* nearly all */
      WF__TRY(find_state(f, arc->nextstate, 0, &target, err));
      WF__TRY(wf__vec_push(
          &f->arcs, ((wf_arc){target, cost + arc->weight, arc->ilabel, arc->olabel}), "arcs", err));
      continue;
    }
    WF__TRY(append(f, waiting, arc->olabel, &words, err));
    WF__TRY(find_closure(f, arc->nextstate, err));
    for (uint32_t k = 0; k < f->closure_size[arc->nextstate]; k++) {
      struct item item = f->items.data[f->closure_off[arc->nextstate] + k];
      WF__TRY(append_all(f, words, item.words, 0, &all, err));
      WF__TRY(push_arc(f, arc->ilabel, cost + arc->weight + item.cost, all, item.state, err));
    }
  }
  return WF_OK;
}

static int by_arc(const void *a, const void *b) {
  const wf_arc *x = a, *y = b;
  if (x->ilabel != y->ilabel) return x->ilabel < y->ilabel ? -1 : 1;
  if (x->olabel != y->olabel) return x->olabel < y->olabel ? -1 : 1;
  if (x->nextstate != y->nextstate) return x->nextstate < y->nextstate ? -1 : 1;
  return (x->weight > y->weight) - (x->weight < y->weight);
}

/* Makes f->arcs the arcs of the next state. Of arcs with the same labels and target it keeps the
 * cheapest. */
static wf_status take_state(struct folding *f, float final_cost, wf_error *err) {
  WF__TRY(wf__csr_add_state(&f->csr, final_cost, err));
  if (f->arcs.size > 1) qsort(f->arcs.data, f->arcs.size, sizeof *f->arcs.data, by_arc);
  for (uint64_t i = 0; i < f->arcs.size; i++) {
    const wf_arc *arc = &f->arcs.data[i];
    bool again = i > 0 && arc[-1].ilabel == arc->ilabel && arc[-1].olabel == arc->olabel &&
                 arc[-1].nextstate == arc->nextstate;
    if (!again) WF__TRY(wf__csr_push(&f->csr, *arc, err));
  }
  f->arcs.size = 0;
  if (f->csr.arcs.size <= f->max_arcs) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "more than %llu arcs", (unsigned long long)f->max_arcs);
}

/* The cost of ending in `state` while words wait to be written, which no arc can then write. */
static wf_status find_end(const struct folding *f, uint32_t state, uint32_t waiting, float *out,
                          wf_error *err) {
  *out = f->view.final_cost[state];
  if (waiting == 0 || *out == INFINITY) return WF_OK;
  return wf__fail(err, WF_ERR_UNSUPPORTED,
                  "a path ends with more words than its last arcs can carry (one word an arc)");
}

static wf_status make_start(struct folding *f, wf_error *err) {
  uint32_t start = (uint32_t)f->view.start;
  float final_cost = INFINITY, end;
  WF__TRY(wf__vec_push(&f->queue, UINT64_MAX, "states", err)); /* state 0, which has no incoming
                                                                  arcs */
  WF__TRY(find_closure(f, start, err));
  for (uint32_t k = 0; k < f->closure_size[start]; k++) {
    struct item item = f->items.data[f->closure_off[start] + k];
    WF__TRY(find_end(f, item.state, item.words, &end, err));
    final_cost = fminf(final_cost, item.cost + end);
    WF__TRY(fold_arcs(f, item.state, item.words, item.cost, err));
  }
  return take_state(f, final_cost, err);
}

static wf_status make_states(struct folding *f, wf_error *err) {
  WF__TRY(wf__vec_push(&f->words, (struct words){0}, "words", err));
  if (f->view.start < 0) return WF_OK;
  WF__TRY(make_start(f, err));
  for (uint64_t s = 1; s < f->queue.size; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    uint32_t state = (uint32_t)(f->queue.data[s] >> 32), waiting = (uint32_t)f->queue.data[s];
    float final_cost;
    WF__TRY(find_end(f, state, waiting, &final_cost, err));
    WF__TRY(fold_arcs(f, state, waiting, 0, err));
    WF__TRY(take_state(f, final_cost, err));
  }
  return WF_OK;
}

static wf_status prepare(struct folding *f, wf_error *err) {
  uint64_t n = f->view.num_states;
  f->open = wf__calloc((n + 63) / 64, sizeof *f->open);
  f->closure_off = wf__alloc(n, sizeof *f->closure_off);
  f->closure_size = wf__alloc(n, sizeof *f->closure_size);
  f->plain = wf__alloc(n, sizeof *f->plain);
  if (f->open == NULL || f->closure_off == NULL || f->closure_size == NULL || f->plain == NULL)
    return wf__fail_memory(err, n * 16, "epsilon closures");
  memset(f->plain, 0xff, n * sizeof *f->plain);
  memset(f->closure_off, 0xff, n * sizeof *f->closure_off);
  find_open(f);
  return WF_OK;
}

wf_status wf__emitting_only(const wf_fst *fst, uint64_t max_states, uint64_t max_arcs, wf_fst **out,
                            wf_error *err) {
  *out = NULL;
  struct folding f = {.view = wf_fst_get_view(fst),
                      .max_states = max_states != 0 ? max_states : WF__MAX_STATES,
                      .max_arcs = max_arcs != 0 ? max_arcs : UINT64_MAX};
  wf_fst *made = NULL;
  wf_status status = prepare(&f, err);
  if (status == WF_OK) status = make_states(&f, err);
  free(f.open);
  free(f.closure_off);
  free(f.closure_size);
  free(f.plain);
  wf__map64_free(&f.words_nodes);
  wf__vec_free(&f.words);
  wf__vec_free(&f.items);
  wf__vec_free(&f.found);
  wf__map64_free(&f.found_index);
  wf__vec_free(&f.work);
  wf__vec_free(&f.arcs);
  wf__map64_free(&f.states);
  wf__vec_free(&f.queue);
  if (status == WF_OK)
    status = wf__fst_from_csr(&f.csr, f.view.start < 0 ? -1 : 0, f.view.semiring,
                              wf_fst_isymbols(fst), wf_fst_osymbols(fst), &made, err);
  else
    wf__csr_free(&f.csr);
  if (status == WF_OK) status = wf__connect(made, 0, out, err);
  wf_fst_free(made);
  return status;
}
