/* ctc_states.c - finds and numbers the states of a CTC graph that is stored as its token graph, and
 * writes them as an fst. */
#include "fst/ctc_states.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "base/map64.h"
#include "fst/symbols.h"

enum { MAX_LABEL = 1 << 26 }; /* tables go up to the largest label */
enum { MANY_ARCS = 10000000 };

static const char what[] = "a CTC graph";

/* --- which tokens lead to each state ----------------------------------------------------- */

struct pair {
  uint32_t state; /* of G */
  int32_t token;  /* 0: none, at the start */
};
typedef WF__VEC(struct pair) pair_vec;

struct finding {
  wf__ctc_states *ctc;
  uint8_t *num_entries; /* arcs that lead to a state: 0, 1, or 2 for more */
  wf__map64 seen;       /* pairs of states with several */
  pair_vec pairs;       /* of epsilon arcs, the first `followed` have been followed */
  uint64_t followed;
};

static bool in_order(const wf_fst_view *view, uint64_t s) {
  int32_t last = 0;
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++) {
    const int32_t label = view->arcs[a].ilabel;
    if (last == INT32_MAX ? label != 0 : label != 0 && label < last) return false;
    last = label != 0 ? label : INT32_MAX;
  }
  return true;
}

static wf_status check_state(const wf__ctc_states *ctc, uint64_t s, wf_error *err) {
  const wf_fst_view *view = &ctc->view;
  if (!in_order(view, s))
    return wf__fail(err, WF_ERR_FORMAT,
                    "CTC graph: the arcs of state %llu are not in the order of their input "
                    "labels, epsilons last",
                    (unsigned long long)s);
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++)
    if (view->arcs[a].ilabel == ctc->blank)
      return wf__fail(err, WF_ERR_FORMAT, "CTC graph: arc %llu reads the blank, label %d",
                      (unsigned long long)a, (int)ctc->blank);
  return WF_OK;
}

/* Finds where epsilons begin, and the largest label. */
static wf_status look_at_arcs(wf__ctc_states *ctc, wf_error *err) {
  const wf_fst_view *view = &ctc->view;
  int32_t largest = ctc->blank;
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    WF__TRY(check_state(ctc, s, err));
    uint64_t a = view->arc_off[s];
    for (; a < view->arc_off[s + 1] && view->arcs[a].ilabel != 0; a++)
      if (view->arcs[a].ilabel > largest) largest = view->arcs[a].ilabel;
    ctc->first_epsilon[s] = (uint32_t)a;
  }
  if (largest > MAX_LABEL)
    return wf__fail(err, WF_ERR_LIMIT, "CTC graph: input label %d is too large, at most %d",
                    (int)largest, (int)MAX_LABEL);
  ctc->num_labels = largest + 1;
  return WF_OK;
}

static wf_status add_pair(struct finding *f, uint32_t state, int32_t token, wf_error *err) {
  uint32_t stands;
  bool fresh = true;
  if (f->num_entries[state] > 1)
    WF__TRY(wf__map64_insert(&f->seen, (uint64_t)state << 32 | (uint32_t)token, 1, &stands, &fresh,
                             what, err));
  return fresh ? wf__vec_push(&f->pairs, ((struct pair){state, token}), what, err) : WF_OK;
}

/* Epsilon arcs pass on what their source holds. */
static wf_status follow_epsilons(struct finding *f, wf_error *err) {
  const wf_fst_view *view = &f->ctc->view;
  for (; f->followed < f->pairs.size; f->followed++) {
    const struct pair pair = f->pairs.data[f->followed];
    for (uint64_t a = f->ctc->first_epsilon[pair.state]; a < view->arc_off[pair.state + 1]; a++)
      WF__TRY(add_pair(f, view->arcs[a].nextstate, pair.token, err));
  }
  return WF_OK;
}

static wf_status add_entries(struct finding *f, const wf__ctc_entries *entries, wf_error *err) {
  for (uint64_t i = 0; i < entries->count; i++) {
    WF__TRY(wf__interrupted_at(i, err));
    for (int32_t label = 1; label < entries->num_labels; label++)
      if (label != f->ctc->blank) WF__TRY(add_pair(f, entries->states[i], label, err));
    WF__TRY(follow_epsilons(f, err));
  }
  return WF_OK;
}

static wf_status find_pairs(struct finding *f, const wf__ctc_entries *entries, wf_error *err) {
  const wf_fst_view *view = &f->ctc->view;
  f->num_entries[view->start] = 1;
  for (uint64_t a = 0; a < view->num_arcs; a++)
    if (f->num_entries[view->arcs[a].nextstate] < 2) f->num_entries[view->arcs[a].nextstate]++;
  for (uint64_t i = 0; i < entries->count; i++) f->num_entries[entries->states[i]] = 2;
  WF__TRY(add_pair(f, (uint32_t)view->start, 0, err));
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    for (uint64_t a = view->arc_off[s]; a < f->ctc->first_epsilon[s]; a++)
      WF__TRY(add_pair(f, view->arcs[a].nextstate, view->arcs[a].ilabel, err));
    WF__TRY(follow_epsilons(f, err));
  }
  return add_entries(f, entries, err);
}

/* --- numbers ----------------------------------------------------------------------------- */

static bool has_epsilons(const wf__ctc_states *ctc, uint64_t g) {
  return ctc->first_epsilon[g] < ctc->view.arc_off[g + 1];
}

/* Nothing is to be waited for in g. */
static bool is_passed(const wf__ctc_states *ctc, uint64_t g) {
  return wf__ctc_num_tokens(ctc, (uint32_t)g) == 0 && ctc->view.final_cost[g] == INFINITY;
}

static bool is_wide(const wf__ctc_states *ctc, uint64_t g) {
  return wf__ctc_num_tokens(ctc, (uint32_t)g) >= WF__WIDE_ARCS && !has_epsilons(ctc, g);
}

static int compare_tokens(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Sorts the pairs' tokens by state: offsets[g] is the first of g's. */
static wf_status sort_pairs(const struct finding *f, uint64_t *offsets, int32_t *tokens,
                            wf_error *err) {
  const uint64_t n = f->ctc->view.num_states;
  for (uint64_t i = 0; i < f->pairs.size; i++) offsets[f->pairs.data[i].state + 1]++;
  for (uint64_t g = 0; g < n; g++) offsets[g + 1] += offsets[g];
  for (uint64_t i = f->pairs.size; i-- > 0;)
    tokens[--offsets[f->pairs.data[i].state + 1]] = f->pairs.data[i].token;
  for (uint64_t g = 0; g < n; g++) offsets[g] = offsets[g + 1]; /* each is at its beginning now */
  offsets[n] = f->pairs.size;
  for (uint64_t g = 0; g < n; g++) {
    WF__TRY(wf__interrupted_at(g, err));
    if (offsets[g + 1] - offsets[g] > 1)
      qsort(tokens + offsets[g], offsets[g + 1] - offsets[g], sizeof *tokens, compare_tokens);
  }
  return WF_OK;
}

static void add_state(wf__ctc_states *ctc, uint64_t g, int32_t held, bool entered, uint32_t stay) {
  wf__ctc_state *state = &ctc->states[ctc->num_states++];
  *state = (wf__ctc_state){
      .owner = (uint32_t)g,
      .held = held,
      .first_arc = (uint32_t)ctc->num_arcs,
      .arcs = (uint32_t)ctc->view.arc_off[g],
      .count = wf__ctc_num_tokens(ctc, (uint32_t)g),
      .num_epsilons = entered ? (uint32_t)ctc->view.arc_off[g + 1] - ctc->first_epsilon[g] : 0,
      .none = stay != WF__CTC_NONE ? ctc->first[g] : WF__CTC_NONE,
      .stay = stay};
  ctc->num_arcs += (uint64_t)state->count + wf__ctc_num_stays(*state) + state->num_epsilons;
}

/* Numbers the states of g, whose tokens are sorted and may begin with 0. */
static void number_state(wf__ctc_states *ctc, uint64_t g, const int32_t *tokens, uint64_t count) {
  const uint64_t none = count > 0 && tokens[0] == 0;
  const uint32_t first = (uint32_t)ctc->num_states;
  ctc->first[g] = ctc->first_entered[g] = first;
  if (is_passed(ctc, g)) {
    for (uint64_t i = 0; i < count; i++) add_state(ctc, g, tokens[i], true, WF__CTC_NONE);
    ctc->end[g] = (uint32_t)ctc->num_states;
    return;
  }
  add_state(ctc, g, 0, false, first);
  for (uint64_t i = none; i < count; i++)
    add_state(ctc, g, tokens[i], false, (uint32_t)ctc->num_states);
  if (has_epsilons(ctc, g)) {
    ctc->first_entered[g] = (uint32_t)ctc->num_states;
    for (uint64_t i = 0; i < count; i++)
      add_state(ctc, g, tokens[i], true, first + (uint32_t)(i + 1 - none));
  }
  ctc->end[g] = (uint32_t)ctc->num_states;
}

static wf_status number_states(struct finding *f, wf_error *err) {
  wf__ctc_states *ctc = f->ctc;
  const uint64_t n = ctc->view.num_states;
  uint64_t *offsets = wf__calloc(n + 1, sizeof *offsets), most = n;
  int32_t *tokens = wf__alloc(f->pairs.size, sizeof *tokens);
  for (uint64_t i = 0; i < f->pairs.size; i++)
    most += has_epsilons(ctc, f->pairs.data[i].state) ? 2 : 1;
  wf_status status = WF_OK;
  if (most > WF__MAX_STATES)
    status = wf__fail(err, WF_ERR_LIMIT, "CTC graph: %llu states, at most 2^31 - 1",
                      (unsigned long long)most);
  if (status == WF_OK) ctc->states = wf__alloc(most, sizeof *ctc->states);
  if (status == WF_OK && (offsets == NULL || tokens == NULL || ctc->states == NULL))
    status = wf__fail_memory(err, most * sizeof *ctc->states, what);
  if (status == WF_OK) status = sort_pairs(f, offsets, tokens, err);
  for (int wide = 0; wide < 2 && status == WF_OK; wide++) {
    ctc->first_wide = ctc->num_states;
    ctc->first_wide_arc = ctc->num_arcs;
    for (uint64_t g = 0; g < n; g++)
      if (is_wide(ctc, g) == (wide == 1))
        number_state(ctc, g, tokens + offsets[g], offsets[g + 1] - offsets[g]);
  }
  free(offsets);
  free(tokens);
  WF__TRY(status);
  if (ctc->num_arcs < UINT32_MAX - 1) return WF_OK;
  return wf__fail(err, WF_ERR_LIMIT, "CTC graph: %llu arcs, at most 2^32 - 2",
                  (unsigned long long)ctc->num_arcs);
}

uint32_t wf__ctc_entered(const wf__ctc_states *ctc, uint32_t g, int32_t held) {
  uint32_t low = ctc->first_entered[g], high = ctc->end[g];
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (ctc->states[middle].held <= held)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* So that the state of an arc is found in a few steps that lie close together: results read the arcs
 * of a path one by one. */
static wf_status index_arcs(wf__ctc_states *ctc, wf_error *err) {
  const uint64_t count = (ctc->first_wide_arc + WF__CTC_ARC_BLOCK - 1) / WF__CTC_ARC_BLOCK;
  uint64_t block = 0;
  ctc->state_of_block = wf__alloc(count, sizeof *ctc->state_of_block);
  if (ctc->state_of_block == NULL)
    return wf__fail_memory(err, count * sizeof *ctc->state_of_block, what);
  for (uint32_t v = 0; block < count; v++) {
    const uint64_t end =
        v + 1 < ctc->first_wide ? ctc->states[v + 1].first_arc : ctc->first_wide_arc;
    for (; block < count && block * WF__CTC_ARC_BLOCK < end; block++)
      ctc->state_of_block[block] = v;
  }
  return WF_OK;
}

static wf_status find_targets(wf__ctc_states *ctc, wf_error *err) {
  const wf_fst_view *view = &ctc->view;
  for (uint64_t s = 0; s < view->num_states; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    for (uint64_t a = view->arc_off[s]; a < ctc->first_epsilon[s]; a++)
      ctc->targets[a] = wf__ctc_entered(ctc, view->arcs[a].nextstate, view->arcs[a].ilabel);
  }
  ctc->start = wf__ctc_entered(ctc, (uint32_t)view->start, 0);
  return WF_OK;
}

static wf_status fill(wf__ctc_states *ctc, const wf__ctc_entries *entries, wf_error *err) {
  const wf_fst_view *view = &ctc->view;
  const uint64_t n = view->num_states, num_arcs = view->num_arcs;
  if (view->start < 0) return wf__fail(err, WF_ERR_ARGUMENT, "CTC graph: the fst is empty");
  if (num_arcs >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "CTC graph: %llu arcs, at most 2^32 - 2",
                    (unsigned long long)num_arcs);
  ctc->first = wf__alloc(n, sizeof *ctc->first);
  ctc->end = wf__alloc(n, sizeof *ctc->end);
  ctc->first_entered = wf__alloc(n, sizeof *ctc->first_entered);
  ctc->first_epsilon = wf__alloc(n, sizeof *ctc->first_epsilon);
  ctc->targets = wf__calloc(num_arcs, sizeof *ctc->targets);
  if (ctc->first == NULL || ctc->end == NULL || ctc->first_entered == NULL ||
      ctc->first_epsilon == NULL || ctc->targets == NULL)
    return wf__fail_memory(err, (4 * n + num_arcs) * 4, what);
  WF__TRY(look_at_arcs(ctc, err));
  if (entries->num_labels > ctc->num_labels) ctc->num_labels = entries->num_labels;
  struct finding f = {.ctc = ctc, .num_entries = wf__calloc(n, 1)};
  wf_status status =
      f.num_entries != NULL ? find_pairs(&f, entries, err) : wf__fail_memory(err, n, what);
  wf__map64_free(&f.seen);
  if (status == WF_OK) status = number_states(&f, err);
  free(f.num_entries);
  wf__vec_free(&f.pairs);
  if (status == WF_OK) status = index_arcs(ctc, err);
  return status == WF_OK ? find_targets(ctc, err) : status;
}

wf_status wf__ctc_states_create(const wf_fst *fst, int32_t blank, const wf__ctc_entries *entries,
                                wf__ctc_states **out, wf_error *err) {
  const wf__ctc_entries no_entries = {0};
  *out = NULL;
  wf__ctc_states *ctc = wf__calloc(1, sizeof *ctc);
  if (ctc == NULL) return wf__fail_memory(err, sizeof *ctc, what);
  ctc->view = wf_fst_get_view(fst);
  ctc->blank = blank;
  const wf_status status = fill(ctc, entries != NULL ? entries : &no_entries, err);
  if (status == WF_OK)
    *out = ctc;
  else
    wf__ctc_states_free(ctc);
  return status;
}

void wf__ctc_states_free(wf__ctc_states *ctc) {
  if (ctc == NULL) return;
  free(ctc->states);
  free(ctc->first);
  free(ctc->end);
  free(ctc->first_entered);
  free(ctc->first_epsilon);
  free(ctc->targets);
  free(ctc->state_of_block);
  free(ctc);
}

/* --- as arcs ----------------------------------------------------------------------------- */

static wf_arc led_to(wf_arc arc, uint32_t target) {
  arc.nextstate = target;
  return arc;
}

wf_arc wf__ctc_arc_at(const wf__ctc_states *ctc, uint32_t v, uint32_t place) {
  const wf__ctc_state state = ctc->states[v];
  const uint32_t stays = wf__ctc_num_stays(state);
  if (place < state.count)
    return led_to(ctc->view.arcs[state.arcs + place], ctc->targets[state.arcs + place]);
  if (place < state.count + stays)
    return place == state.count ? led_to((wf_arc){.ilabel = ctc->blank}, state.none)
                                : led_to((wf_arc){.ilabel = state.held}, state.stay);
  const wf_arc arc = ctc->view.arcs[state.arcs + place - stays];
  return led_to(arc, wf__ctc_entered(ctc, arc.nextstate, state.held));
}

uint32_t wf__ctc_state_of(const wf__ctc_states *ctc, uint32_t arc) {
  uint32_t low = (uint32_t)ctc->first_wide, high = (uint32_t)ctc->num_states;
  if (arc < ctc->first_wide_arc) {
    const uint64_t block = arc / WF__CTC_ARC_BLOCK;
    low = ctc->state_of_block[block];
    high = (block + 1) * WF__CTC_ARC_BLOCK < ctc->first_wide_arc
               ? ctc->state_of_block[block + 1] + 1
               : (uint32_t)ctc->first_wide;
  }
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (ctc->states[middle].first_arc <= arc)
      low = middle;
    else
      high = middle;
  }
  return low;
}

wf_arc *wf__ctc_write_others(const wf__ctc_states *ctc, uint32_t v, wf_arc *to) {
  const wf__ctc_state state = ctc->states[v];
  const uint32_t end = state.count + wf__ctc_num_stays(state) + state.num_epsilons;
  for (uint32_t place = state.count; place < end; place++) *to++ = wf__ctc_arc_at(ctc, v, place);
  return to;
}

wf_arc *wf__ctc_write_arcs(const wf__ctc_states *ctc, uint32_t v, wf_arc *to) {
  const wf__ctc_state state = ctc->states[v];
  for (uint32_t k = 0; k < state.count; k++) {
    *to = wf__ctc_arc_at(ctc, v, k);
    if (to->ilabel == state.held) to->weight = INFINITY;
    to++;
  }
  return wf__ctc_write_others(ctc, v, to);
}

static wf_status write_state(const wf__ctc_states *ctc, uint32_t v, wf__csr *csr, wf_error *err) {
  const wf__ctc_state state = ctc->states[v];
  WF__TRY(wf__csr_add_state(csr, ctc->view.final_cost[state.owner], err));
  wf_arc *arcs = csr->arcs.data + csr->arcs.size, *to = arcs;
  const wf_arc *end = wf__ctc_write_arcs(ctc, v, arcs);
  for (const wf_arc *arc = arcs; arc < end; arc++)
    if (arc >= arcs + state.count || arc->ilabel != state.held) *to++ = *arc;
  csr->arcs.size = (uint64_t)(to - csr->arcs.data);
  return WF_OK;
}

static void warn_of_size(const wf__ctc_states *ctc) {
  if (ctc->num_arcs < MANY_ARCS) return;
  wf__log(
      WF_LOG_WARNING,
      "the graph that reads frames has %llu states and some %.0f million arcs; its token graph, "
      "which native files (.wfst) hold, has %llu arcs, and topology 'compact' has few arcs in "
      "every format",
      (unsigned long long)ctc->num_states, (double)ctc->num_arcs / 1e6,
      (unsigned long long)ctc->view.num_arcs);
}

wf_status wf__ctc_explicit(const wf__ctc_states *ctc, const wf_fst *fst, wf_fst **out,
                           wf_error *err) {
  *out = NULL;
  warn_of_size(ctc);
  wf__csr csr = {0};
  wf_status status = wf__vec_grow(&csr.arcs, ctc->num_arcs, "arcs", err);
  for (uint64_t v = 0; v < ctc->num_states && status == WF_OK; v++)
    status = write_state(ctc, (uint32_t)v, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, ctc->start, ctc->view.semiring, wf_fst_isymbols(fst),
                              wf_fst_osymbols(fst), out, err);
  wf__csr_free(&csr);
  if (status != WF_OK) return status;
  wf__fst_copy_boundaries(*out, fst);
  wf__fst_set_ctc_blank(*out, 0);
  return WF_OK;
}

/* --- order of arcs ----------------------------------------------------------------------- */

struct place {
  uint32_t label; /* the largest number for an epsilon */
  uint64_t arc;
};
typedef WF__VEC(struct place) place_vec;

static int compare_places(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->label != y->label) return x->label < y->label ? -1 : 1;
  return (x->arc > y->arc) - (x->arc < y->arc);
}

static wf_status push_in_order(const wf_fst_view *view, uint64_t s, place_vec *places, wf__csr *csr,
                               wf_error *err) {
  places->size = 0;
  WF__TRY(wf__csr_add_state(csr, view->final_cost[s], err));
  for (uint64_t a = view->arc_off[s]; a < view->arc_off[s + 1]; a++)
    WF__TRY(
        wf__vec_push(places, ((struct place){(uint32_t)view->arcs[a].ilabel - 1, a}), what, err));
  if (places->size > 1) qsort(places->data, places->size, sizeof *places->data, compare_places);
  for (uint64_t i = 0; i < places->size; i++)
    WF__TRY(wf__csr_push(csr, view->arcs[places->data[i].arc], err));
  return WF_OK;
}

/* The fst itself if its arcs are in order, else a copy in which they are. */
wf_status wf__ctc_order_arcs(const wf_fst *fst, wf_fst **out, wf_error *err) {
  const wf_fst_view view = wf_fst_get_view(fst);
  uint64_t s = 0;
  while (s < view.num_states && in_order(&view, s)) s++;
  if (s == view.num_states) {
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  wf__csr csr = {0};
  place_vec places = {0};
  wf_status status = WF_OK;
  for (s = 0; s < view.num_states && status == WF_OK; s++)
    status = push_in_order(&view, s, &places, &csr, err);
  if (status == WF_OK)
    status = wf__fst_from_csr(&csr, view.start, view.semiring, wf_fst_isymbols(fst),
                              wf_fst_osymbols(fst), out, err);
  if (status == WF_OK) {
    wf__fst_copy_boundaries(*out, fst);
    wf__fst_set_ctc_blank(*out, wf__fst_ctc_blank(fst));
  }
  wf__vec_free(&places);
  wf__csr_free(&csr);
  return status;
}

/* Words of a class would need states for every token that they may end with. */
static wf_status refuse_classes(const wf_fst *fst, wf_error *err) {
  const wf_symbols *table = wf_fst_isymbols(fst);
  const wf_fst_view view = wf_fst_get_view(fst);
  const char *text;
  int64_t key, first = INT64_MAX;
  for (size_t i = 0; table != NULL && (text = wf_symbols_at(table, i, &key)) != NULL; i++)
    if (key < first && wf__is_class_label(text, strlen(text))) first = key;
  for (uint64_t a = 0; a < view.num_arcs && first < INT64_MAX; a++)
    if (view.arcs[a].ilabel >= first)
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "a CTC graph with classes of words: only native files hold it with topology "
                      "correct; for other formats build it with topology compact");
  return WF_OK;
}

static bool has_frames(const wf_fst *fst) {
  return wf__fst_ctc_blank(fst) != 0 && wf_fst_get_view(fst).start >= 0;
}

wf_status wf__ctc_spell_out(const wf_fst *fst, wf_fst **out, wf_error *err) {
  wf__ctc_states *ctc = NULL;
  wf_fst *ordered;
  *out = NULL;
  if (!has_frames(fst)) {
    *out = wf_fst_ref(fst);
    return WF_OK;
  }
  WF__TRY(refuse_classes(fst, err));
  WF__TRY(wf__ctc_order_arcs(fst, &ordered, err));
  wf_status status = wf__ctc_states_create(ordered, wf__fst_ctc_blank(fst), NULL, &ctc, err);
  if (status == WF_OK) status = wf__ctc_explicit(ctc, ordered, out, err);
  wf__ctc_states_free(ctc);
  wf_fst_free(ordered);
  return status;
}

/* Arcs of a state of G with a label, which are in order. */
static uint64_t count_label(const wf__ctc_states *ctc, uint32_t g, int32_t label) {
  uint64_t ends[2];
  for (int i = 0; i < 2; i++) {
    uint64_t low = ctc->view.arc_off[g], high = ctc->first_epsilon[g];
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (ctc->view.arcs[middle].ilabel < label + i)
        low = middle + 1;
      else
        high = middle;
    }
    ends[i] = low;
  }
  return ends[1] - ends[0];
}

wf_status wf__ctc_count_explicit(const wf_fst *fst, uint64_t *out_states, uint64_t *out_arcs,
                                 wf_error *err) {
  wf__ctc_states *ctc = NULL;
  wf_fst *ordered;
  *out_states = *out_arcs = 0;
  if (!has_frames(fst) || refuse_classes(fst, NULL) != WF_OK) return WF_OK;
  WF__TRY(wf__ctc_order_arcs(fst, &ordered, err));
  const wf_status status = wf__ctc_states_create(ordered, wf__fst_ctc_blank(fst), NULL, &ctc, err);
  if (status == WF_OK) {
    *out_states = ctc->num_states;
    *out_arcs = ctc->num_arcs;
    for (uint64_t v = 0; v < ctc->num_states; v++)
      if (ctc->states[v].held != 0 && ctc->states[v].count > 0)
        *out_arcs -= count_label(ctc, ctc->states[v].owner, ctc->states[v].held);
  }
  wf__ctc_states_free(ctc);
  wf_fst_free(ordered);
  return status == WF_ERR_LIMIT ? WF_OK : status;
}
