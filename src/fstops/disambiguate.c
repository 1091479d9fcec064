/* disambiguate.c - makes an fst unambiguous: wf_disambiguate, and its step 2, which removes
 * all but one of the paths of each string (disambiguate.h).
 *
 * After step 1, two paths of one string that meet in a state again can only meet on arcs of one
 * label from states of different heads, or both end. The arc or the end that belongs to the lower
 * head stays, unless it goes itself for a still lower one. */
#include "fstops/disambiguate.h"

#include "base/option_tables.h"
#include "fstops/connect.h"
#include "fstops/csr_copy.h"
#include "fstops/determinize_limit.h"
#include "fstops/pair_table.h"

#define THE_END UINT64_MAX /* in place of an arc: the final cost of the state */

/* An arc (or the end) of state `source`. */
struct way {
  uint32_t source;
  uint64_t arc;
};

struct choice {
  uint32_t head; /* of the first way's source; it is larger than that of the second's */
  struct way drop, keep;
};

struct chooser {
  wf__split *split;
  wf__pairs reached; /* pairs of states that one string reaches and that go on together, smaller
                        number first */
  WF__VEC(struct choice) choices;
  uint8_t *dropped_arc, *dropped_end;
  uint32_t *same; /* [states] states that are one but for rounding; else the state itself */
  bool merged;
};

static wf_status add_choice(struct chooser *c, struct way a, struct way b, wf_error *err) {
  uint32_t head_a = c->split->head.data[a.source], head_b = c->split->head.data[b.source];
  struct choice choice = {head_a, a, b};
  if (head_b > head_a) choice = (struct choice){head_b, b, a};
  return wf__vec_push(&c->choices, choice, "ambiguous arcs", err);
}

static wf_status reach(struct chooser *c, uint32_t a, uint32_t b, wf_error *err) {
  uint32_t low = a < b ? a : b, high = a < b ? b : a, at;
  if (low != high && c->split->head.data[low] == c->split->head.data[high]) {
    c->same[high] = low; /* one string, one head: one state, if costs were exact */
    c->merged = true;
    return WF_OK;
  }
  const wf__csr *csr = &c->split->csr;
  if (!wf__go_on_together(csr->arc_off.data, csr->arcs.data, csr->final_cost.data, low, high))
    return WF_OK;
  return wf__pairs_find(&c->reached, low, high, &at, err);
}

static wf_status compare_ways(struct chooser *c, wf__pair pair, wf_error *err) {
  const wf__csr *csr = &c->split->csr;
  for (uint64_t i = csr->arc_off.data[pair.first]; i < csr->arc_off.data[pair.first + 1]; i++) {
    const wf_arc *arc = &csr->arcs.data[i];
    uint64_t j, end;
    wf__arcs_of_label(csr->arc_off.data, csr->arcs.data, pair.second, arc->ilabel, &j, &end);
    for (; j < end; j++) {
      uint32_t other = csr->arcs.data[j].nextstate;
      if (pair.first != pair.second && arc->nextstate == other)
        WF__TRY(add_choice(c, (struct way){pair.first, i}, (struct way){pair.second, j}, err));
      WF__TRY(reach(c, arc->nextstate, other, err));
    }
  }
  if (pair.first == pair.second || csr->final_cost.data[pair.first] == INFINITY ||
      csr->final_cost.data[pair.second] == INFINITY)
    return WF_OK;
  return add_choice(c, (struct way){pair.first, THE_END}, (struct way){pair.second, THE_END}, err);
}

static wf_status find_choices(struct chooser *c, wf_error *err) {
  uint32_t at;
  c->merged = false;
  c->choices.size = c->reached.list.size = 0;
  wf__map64_clear(&c->reached.map);
  WF__TRY(wf__pairs_find(&c->reached, 0, 0, &at, err));
  for (uint64_t k = 0; k < c->reached.list.size; k++)
    WF__TRY(compare_ways(c, c->reached.list.data[k], err));
  return WF_OK;
}

/* Leads arcs to the first of the states that are one but for rounding. */
static void merge_states(struct chooser *c) {
  for (uint64_t i = 0; i < c->split->csr.arcs.size; i++) {
    wf_arc *arc = &c->split->csr.arcs.data[i];
    while (c->same[arc->nextstate] != arc->nextstate) arc->nextstate = c->same[arc->nextstate];
  }
}

static int compare_choices(const void *x, const void *y) {
  const struct choice *a = x, *b = y;
  if (a->head != b->head) return a->head < b->head ? -1 : 1;
  if (a->drop.source != b->drop.source) return a->drop.source < b->drop.source ? -1 : 1;
  return (a->drop.arc > b->drop.arc) - (a->drop.arc < b->drop.arc);
}

static uint8_t *mark_of(struct chooser *c, struct way way) {
  return way.arc == THE_END ? &c->dropped_end[way.source] : &c->dropped_arc[way.arc];
}

/* By increasing head, so that it is known of the lower head's way whether it stays. */
static void choose(struct chooser *c) {
  if (c->choices.size == 0) return;
  qsort(c->choices.data, c->choices.size, sizeof *c->choices.data, compare_choices);
  for (uint64_t k = 0; k < c->choices.size; k++) {
    const struct choice *choice = &c->choices.data[k];
    if (!*mark_of(c, choice->keep)) *mark_of(c, choice->drop) = 1;
  }
}

static wf_status copy_rest(const struct chooser *c, wf__csr *out, wf_error *err) {
  const wf__csr *csr = &c->split->csr;
  for (uint64_t s = 0; s < csr->final_cost.size; s++) {
    WF__TRY(wf__csr_add_state(out, c->dropped_end[s] ? INFINITY : csr->final_cost.data[s], err));
    for (uint64_t i = csr->arc_off.data[s]; i < csr->arc_off.data[s + 1]; i++)
      if (!c->dropped_arc[i]) WF__TRY(wf__csr_push(out, csr->arcs.data[i], err));
  }
  return WF_OK;
}

static wf_status remove_ambiguity(struct chooser *c, wf__csr *out, int64_t *start, wf_error *err) {
  uint64_t n = c->split->csr.final_cost.size, m = c->split->csr.arcs.size;
  WF__TRY(wf__csr_close(&c->split->csr, err));
  c->dropped_arc = wf__calloc(m, 1);
  c->dropped_end = wf__calloc(n, 1);
  c->same = wf__alloc(n, sizeof *c->same);
  if (c->dropped_arc == NULL || c->dropped_end == NULL || c->same == NULL)
    return wf__fail_memory(err, n * 5 + m, "ambiguous arcs");
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
  struct chooser c = {.split = &split};
  wf_status status = wf__disambiguate_split(
      view, (double)o->delta, wf__determinize_limit((uint64_t)o->max_states, view->num_states),
      &split, err);
  if (status == WF_OK) status = remove_ambiguity(&c, out, start, err);
  wf__csr_free(&split.csr);
  wf__vec_free(&split.head);
  wf__pairs_free(&c.reached);
  wf__vec_free(&c.choices);
  free(c.dropped_arc);
  free(c.dropped_end);
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
