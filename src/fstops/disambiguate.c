/* disambiguate.c - makes an fst unambiguous: wf_disambiguate, and its step 3, which removes
 * all but one of the paths of each string (disambiguate.h).
 *
 * After step 2, two paths of one string that meet in a state again can only meet on arcs of one
 * label from states of different heads, or both end. The arc or the end that belongs to the lower
 * head stays, unless it goes itself for a still lower one. */
#include "fstops/disambiguate.h"

#include <string.h>

#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fstops/connect.h"
#include "fstops/csr_copy.h"
#include "fstops/determinize_limit.h"
#include "fstops/pair_table.h"

/* A way is an arc, or num_arcs + state: the end there. */
struct choice {
  uint64_t drop, keep; /* the head of the source of `drop` is larger than that of `keep` */
  uint64_t before;     /* the last choice before, + 1, with this head of `drop`; 0: none */
};

struct chooser {
  wf__split *split;
  const wf__futures *futures;
  uint64_t num_heads; /* states of the input */
  wf__arc_order order;
  /* pairs of states that one string reaches and that have a common future, smaller number first;
   * the table has those of different states */
  wf__pairs reached;
  uint8_t *seen;            /* [states] is the pair (s, s) in the list? */
  WF__VEC(uint64_t) second; /* arcs of one pair's second state */
  WF__VEC(struct choice) choices;
  uint64_t *last;   /* [heads] the last choice that drops a way of the head, + 1; 0: none */
  uint8_t *dropped; /* [ways] */
  uint32_t *same;   /* [states] states that are one but for rounding; else the state itself */
  bool merged;
};

static wf_status add_choice(struct chooser *c, wf__pair sources, uint64_t a, uint64_t b,
                            wf_error *err) {
  uint32_t head_a = c->split->head.data[sources.first],
           head_b = c->split->head.data[sources.second];
  uint64_t *last = &c->last[head_a > head_b ? head_a : head_b];
  struct choice choice = {head_a > head_b ? a : b, head_a > head_b ? b : a, *last};
  WF__TRY(wf__vec_push(&c->choices, choice, "ambiguous arcs", err));
  *last = c->choices.size;
  return WF_OK;
}

static wf_status reach(struct chooser *c, uint32_t a, uint32_t b, wf_error *err) {
  uint32_t low = a < b ? a : b, high = a < b ? b : a, at;
  if (low == high) {
    if (c->seen[low]) return WF_OK;
    c->seen[low] = 1;
    return wf__vec_push(&c->reached.list, ((wf__pair){low, low}), "states", err);
  }
  if (c->split->head.data[low] == c->split->head.data[high]) {
    c->same[high] = low; /* one string, one head: one state, if costs were exact */
    c->merged = true;
    return WF_OK;
  }
  return wf__pairs_find(&c->reached, low, high, &at, err);
}

static int compare_numbers(const void *x, const void *y) {
  const uint64_t *a = x, *b = y;
  return (*a > *b) - (*a < *b);
}

/* Lists those of the arcs [first, end), of one label, whose next state has a common future with
 * that of `arc`. */
static wf_status find_second(struct chooser *c, const wf_arc *arc, uint64_t first, uint64_t end,
                             wf_error *err) {
  uint32_t head = c->split->head.data[arc->nextstate];
  const uint32_t *state = c->futures->states + c->futures->off[head];
  const uint32_t *states_end = c->futures->states + c->futures->off[head + 1];
  c->second.size = 0;
  for (; wf__find_related(&c->order, &first, end, &state, states_end); first++)
    WF__TRY(wf__vec_push(&c->second, wf__arc_at(&c->order, first), "ambiguous arcs", err));
  if (c->order.order != NULL && c->second.size > 1)
    qsort(c->second.data, c->second.size, sizeof *c->second.data, compare_numbers);
  return WF_OK;
}

static wf_status compare_ways(struct chooser *c, wf__pair pair, wf_error *err) {
  const wf__csr *csr = &c->split->csr;
  const uint64_t *arc_off = csr->arc_off.data;
  uint64_t first = 0, end = 0, label_end = 0;
  for (uint64_t i = arc_off[pair.first]; i < arc_off[pair.first + 1]; i++) {
    const wf_arc *arc = &csr->arcs.data[i];
    if (i >= label_end) {
      label_end = end = wf__label_end(csr->arcs.data, first = i, arc_off[pair.first + 1]);
      if (pair.first != pair.second)
        wf__arcs_of_label(arc_off, csr->arcs.data, pair.second, arc->ilabel, &first, &end);
    }
    WF__TRY(find_second(c, arc, first, end, err));
    for (uint64_t k = 0; k < c->second.size; k++) {
      uint64_t j = c->second.data[k];
      uint32_t other = csr->arcs.data[j].nextstate;
      if (pair.first != pair.second && arc->nextstate == other)
        WF__TRY(add_choice(c, pair, i, j, err));
      WF__TRY(reach(c, arc->nextstate, other, err));
    }
  }
  if (pair.first == pair.second || csr->final_cost.data[pair.first] == INFINITY ||
      csr->final_cost.data[pair.second] == INFINITY)
    return WF_OK;
  return add_choice(c, pair, csr->arcs.size + pair.first, csr->arcs.size + pair.second, err);
}

static wf_status find_choices(struct chooser *c, wf_error *err) {
  c->merged = false;
  c->choices.size = c->reached.list.size = 0;
  wf__map64_clear(&c->reached.map);
  memset(c->seen, 0, c->split->head.size);
  memset(c->last, 0, c->num_heads * sizeof *c->last);
  WF__TRY(reach(c, 0, 0, err));
  for (uint64_t k = 0; k < c->reached.list.size; k++) {
    WF__TRY(wf__interrupted_at(k, err));
    WF__TRY(compare_ways(c, c->reached.list.data[k], err));
  }
  return WF_OK;
}

/* Leads arcs to the first of the states that are one but for rounding. */
static void merge_states(struct chooser *c) {
  for (uint64_t i = 0; i < c->split->csr.arcs.size; i++) {
    wf_arc *arc = &c->split->csr.arcs.data[i];
    while (c->same[arc->nextstate] != arc->nextstate) arc->nextstate = c->same[arc->nextstate];
  }
}

/* By increasing head, so that it is known of the lower head's way whether it stays. */
static void choose(struct chooser *c) {
  for (uint64_t head = 0; head < c->num_heads; head++)
    for (uint64_t k = c->last[head]; k != 0; k = c->choices.data[k - 1].before)
      if (!c->dropped[c->choices.data[k - 1].keep]) c->dropped[c->choices.data[k - 1].drop] = 1;
}

static wf_status copy_rest(const struct chooser *c, wf__csr *out, wf_error *err) {
  const wf__csr *csr = &c->split->csr;
  for (uint64_t s = 0; s < csr->final_cost.size; s++) {
    bool no_end = c->dropped[csr->arcs.size + s];
    WF__TRY(wf__csr_add_state(out, no_end ? INFINITY : csr->final_cost.data[s], err));
    for (uint64_t i = csr->arc_off.data[s]; i < csr->arc_off.data[s + 1]; i++)
      if (!c->dropped[i]) WF__TRY(wf__csr_push(out, csr->arcs.data[i], err));
  }
  return WF_OK;
}

static wf_status remove_ambiguity(struct chooser *c, wf__csr *out, int64_t *start, wf_error *err) {
  uint64_t n = c->split->csr.final_cost.size, m = c->split->csr.arcs.size;
  WF__TRY(wf__vec_push(&c->split->csr.arc_off, m, "states", err));
  c->order = (wf__arc_order){.arc_off = c->split->csr.arc_off.data,
                             .arcs = c->split->csr.arcs.data,
                             .head = c->split->head.data};
  WF__TRY(wf__arc_order_find(&c->order, n, err));
  c->dropped = wf__calloc(n + m, 1);
  c->seen = wf__calloc(n, 1);
  c->last = wf__alloc(c->num_heads, sizeof *c->last);
  c->same = wf__alloc(n, sizeof *c->same);
  if (c->dropped == NULL || c->seen == NULL || c->last == NULL || c->same == NULL)
    return wf__fail_memory(err, n * 6 + m + c->num_heads * 8, "ambiguous arcs");
  for (uint64_t s = 0; s < n; s++) c->same[s] = (uint32_t)s;
  WF__TRY(find_choices(c, err));
  while (c->merged) { /* ends: fewer and fewer states are reached */
    merge_states(c);
    WF__TRY(find_choices(c, err));
  }
  choose(c);
  WF__TRY(copy_rest(c, out, err));
  *start = 0;
  return wf__csr_connect(out, start, false, err);
}

static wf_status disambiguate(const wf_fst_view *view, const wf_disambiguate_options *o,
                              wf__csr *out, int64_t *start, wf_error *err) {
  wf__split split = {0};
  wf__futures futures = {0};
  struct chooser c = {.split = &split, .futures = &futures, .num_heads = view->num_states};
  wf_status status = wf__futures_find(view, &futures, err);
  if (status == WF_OK)
    status = wf__disambiguate_split(
        view, &futures, (double)o->delta,
        wf__determinize_limit((uint64_t)o->max_states, view->num_states), &split, err);
  if (status == WF_OK) status = remove_ambiguity(&c, out, start, err);
  wf__csr_free(&split.csr);
  wf__vec_free(&split.head);
  wf__futures_free(&futures);
  wf__pairs_free(&c.reached);
  wf__vec_free(&c.second);
  wf__vec_free(&c.choices);
  free(c.order.order);
  free(c.dropped);
  free(c.seen);
  free(c.last);
  free(c.same);
  return status;
}

/* Trims, and sorts arcs by (label, next state): sums of arcs that are equal in both are sorted. */
static wf_status prepare(const wf_fst *fst, wf_fst **out, wf_error *err) {
  wf_map_options o;
  wf_map_options_init(&o);
  o.map_type = 1; /* arc_sum */
  wf_fst *trimmed;
  WF__TRY(wf_connect(fst, &trimmed, err));
  wf_status status = wf_map(trimmed, &o, out, err);
  wf_fst_free(trimmed);
  return status;
}

wf_status wf_disambiguate(const wf_fst *fst, const wf_disambiguate_options *options, wf_fst **out,
                          wf_error *err) {
  *out = NULL;
  wf_disambiguate_options o;
  WF__TRY(wf__options_take(wf__disambiguate_table(), options, &o, err));
  wf_fst *ready;
  WF__TRY(prepare(fst, &ready, err));
  wf_fst_view view = wf_fst_get_view(ready);
  wf__csr csr = {0};
  int64_t start = view.start;
  wf_status status = start < 0 ? WF_OK : disambiguate(&view, &o, &csr, &start, err);
  wf_fst_free(ready);
  if (status == WF_OK) status = wf__fst_like(&csr, start, fst, out, err);
  wf__csr_free(&csr);
  return status;
}
