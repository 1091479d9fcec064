/* transducer_set.c - a hash table of tokens that keeps only the best. */
#include "cpu/transducer_set.h"

#include <math.h>
#include <string.h>

#include "base/select.h"
#include "math/cost.h"

#define NONE UINT32_MAX

enum { FIRST_BITS = 8, FEW = 64 };

static wf_status set_slots(wf__transducer_set *set, int bits, wf_error *err) {
  uint32_t *slots = wf__alloc((uint64_t)1 << bits, sizeof *slots);
  if (slots == NULL) return wf__fail_memory(err, sizeof *slots << bits, "tokens");
  free(set->slots);
  set->slots = slots;
  set->bits = bits;
  return WF_OK;
}

wf_status wf__transducer_set_init(wf__transducer_set *set, uint64_t most, wf_error *err) {
  set->most = most;
  WF__TRY(set_slots(set, FIRST_BITS, err));
  wf__transducer_set_clear(set);
  return WF_OK;
}

wf_status wf__transducer_set_copy(const wf__transducer_set *from, wf__transducer_set *to,
                                  wf_error *err) {
  to->most = from->most;
  to->bound = from->bound;
  to->next_check = from->next_check;
  WF__TRY(set_slots(to, from->bits, err));
  memcpy(to->slots, from->slots, sizeof *to->slots << from->bits);
  WF__TRY(wf__vec_grow(&to->tokens, from->tokens.size, "tokens", err));
  if (from->tokens.size > 0)
    memcpy(to->tokens.data, from->tokens.data, from->tokens.size * sizeof *to->tokens.data);
  to->tokens.size = from->tokens.size;
  return WF_OK;
}

void wf__transducer_set_free(wf__transducer_set *set) {
  wf__vec_free(&set->tokens);
  free(set->slots);
}

static void clear_slots(wf__transducer_set *set) {
  memset(set->slots, 0xff, sizeof *set->slots << set->bits);
}

void wf__transducer_set_clear(wf__transducer_set *set) {
  clear_slots(set);
  set->tokens.size = 0;
  set->bound = INFINITY;
  set->next_check = 2 * set->most + 8;
}

static uint32_t home(const wf__transducer_set *set, uint32_t state, uint64_t predictor,
                     uint64_t context) {
  return wf__spread64(state + wf__mix64(predictor + wf__mix64(context)), set->bits);
}

static uint32_t slot_of(const wf__transducer_set *set, uint32_t state, uint64_t predictor,
                        uint64_t context) {
  uint32_t mask = ((uint32_t)1 << set->bits) - 1, at = home(set, state, predictor, context);
  for (; set->slots[at] != NONE; at = (at + 1) & mask) {
    const wf__transducer_token *token = &set->tokens.data[set->slots[at]];
    if (token->state == state && token->predictor == predictor && token->context == context) break;
  }
  return at;
}

uint32_t wf__transducer_set_number(const wf__transducer_set *set, uint32_t state,
                                   uint64_t predictor, uint64_t context) {
  return set->slots[slot_of(set, state, predictor, context)];
}

/* Enters all tokens into the table. */
static void fill_slots(wf__transducer_set *set) {
  clear_slots(set);
  for (uint64_t i = 0; i < set->tokens.size; i++) {
    const wf__transducer_token *token = &set->tokens.data[i];
    set->slots[slot_of(set, token->state, token->predictor, token->context)] = (uint32_t)i;
  }
}

wf_status wf__transducer_set_find(wf__transducer_set *set, uint32_t state, uint64_t predictor,
                                  uint64_t context, uint32_t *out, wf_error *err) {
  uint32_t at = slot_of(set, state, predictor, context);
  if (set->slots[at] == NONE) {
    if (set->tokens.size * 2 >= (uint64_t)1 << set->bits) {
      if (set->bits >= 30) return wf__fail(err, WF_ERR_LIMIT, "a frame has 2^29 tokens");
      WF__TRY(set_slots(set, set->bits + 1, err));
      fill_slots(set);
      at = slot_of(set, state, predictor, context);
    }
    wf__transducer_token token = {
        .cost = INFINITY, .state = state, .predictor = predictor, .context = context};
    WF__TRY(wf__vec_push(&set->tokens, token, "tokens", err));
    set->slots[at] = (uint32_t)(set->tokens.size - 1);
  }
  *out = set->slots[at];
  return WF_OK;
}

bool wf__transducer_before(const wf__transducer_token *a, const wf__transducer_token *b) {
  if (a->cost != b->cost) return a->cost < b->cost;
  if (a->state != b->state) return a->state < b->state;
  if (a->predictor != b->predictor) return a->predictor < b->predictor;
  return a->context < b->context;
}

static int compare(const void *a, const void *b) {
  return wf__transducer_before(a, b) ? -1 : wf__transducer_before(b, a);
}

/* Drops tokens that cost more than the last of the first `most`. That cost cannot rise, because
 * tokens only become cheaper and more. */
static void tighten(wf__transducer_set *set) {
  wf__transducer_token *tokens = set->tokens.data;
  uint64_t size = set->tokens.size, kept = 0, *keys = wf__alloc(size, sizeof *keys);
  set->next_check = 2 * size;
  if (keys == NULL) return; /* nothing but time is lost */
  for (uint64_t i = 0; i < size; i++) keys[i] = wf__ordered_cost(tokens[i].cost);
  set->bound = wf__cost_of_ordered((uint32_t)wf__select_smallest(keys, size, set->most));
  free(keys);
  for (uint64_t i = 0; i < size; i++)
    if (tokens[i].cost <= set->bound) tokens[kept++] = tokens[i];
  set->tokens.size = kept;
  set->next_check = 2 * kept + 8;
  fill_slots(set);
}

wf_status wf__transducer_set_offer(wf__transducer_set *set, const wf__transducer_token *token,
                                   wf_error *err) {
  uint32_t at;
  if (token->cost > set->bound) return WF_OK;
  WF__TRY(wf__transducer_set_find(set, token->state, token->predictor, token->context, &at, err));
  if (token->cost < set->tokens.data[at].cost) set->tokens.data[at] = *token;
  if (set->tokens.size >= set->next_check) tighten(set);
  return WF_OK;
}

/* Sorts few tokens by rank: first their costs, with their numbers, then those of equal cost. */
static void sort_few(wf__transducer_token *tokens, uint64_t size) {
  wf__transducer_token sorted[FEW];
  uint64_t keys[FEW];
  for (uint64_t i = 0; i < size; i++) {
    const uint64_t key = (uint64_t)wf__ordered_cost(tokens[i].cost) << 32 | i;
    uint64_t at = i;
    for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
    keys[at] = key;
  }
  for (uint64_t i = 0; i < size; i++) {
    const wf__transducer_token *token = &tokens[keys[i] & UINT32_MAX];
    uint64_t at = i;
    for (; at > 0 && wf__transducer_before(token, &sorted[at - 1]); at--)
      sorted[at] = sorted[at - 1];
    sorted[at] = *token;
  }
  memcpy(tokens, sorted, size * sizeof *tokens);
}

void wf__transducer_set_cut(wf__transducer_set *set, float cutoff) {
  wf__transducer_token *tokens = set->tokens.data;
  uint64_t kept = 0;
  for (uint64_t i = 0; i < set->tokens.size; i++)
    if (tokens[i].cost <= cutoff) tokens[kept++] = tokens[i];
  if (kept > FEW)
    qsort(tokens, kept, sizeof *tokens, compare);
  else if (kept > 1)
    sort_few(tokens, kept);
  set->tokens.size = kept < set->most ? kept : set->most;
  /* With fewer tokens, because the cutoff fell (words may cost less than 0), any may still enter.
   */
  set->bound = set->tokens.size == set->most ? tokens[set->most - 1].cost : INFINITY;
  fill_slots(set);
}
