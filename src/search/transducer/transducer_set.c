/* transducer_set.c - a hash table of tokens that keeps only the best. */
#include "search/transducer/transducer_set.h"

#include <math.h>
#include <string.h>

#include "math/cost.h"

#define NONE UINT32_MAX

enum { FIRST_BITS = 6, FEW = 64 };

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
  WF__TRY(wf__vec_grow(&to->best, from->best.size, "tokens", err));
  if (from->best.size > 0)
    memcpy(to->best.data, from->best.data, from->best.size * sizeof *to->best.data);
  to->best.size = from->best.size;
  return WF_OK;
}

void wf__transducer_set_free(wf__transducer_set *set) {
  wf__vec_free(&set->tokens);
  wf__vec_free(&set->best);
  free(set->slots);
}

static void clear_slots(wf__transducer_set *set) {
  memset(set->slots, 0xff, sizeof *set->slots << set->bits);
}

void wf__transducer_set_clear(wf__transducer_set *set) {
  clear_slots(set);
  set->tokens.size = set->best.size = 0;
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

/* Drops tokens that cost more than the bound. */
static void drop_above(wf__transducer_set *set) {
  wf__transducer_token *tokens = set->tokens.data;
  uint64_t size = set->tokens.size, kept = 0;
  for (uint64_t i = 0; i < size; i++)
    if (tokens[i].cost <= set->bound) tokens[kept++] = tokens[i];
  set->tokens.size = kept;
  set->next_check = 2 * kept + 8;
  fill_slots(set);
}

/* --- the best costs ----------------------------------------------------------------------- */

/* Puts a cost in place of best[at], which is larger. */
static void lower(wf__transducer_set *set, uint64_t at, float cost) {
  float *best = set->best.data;
  const uint64_t size = set->best.size;
  for (uint64_t child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && best[child + 1] > best[child]) child++;
    if (best[child] <= cost) break;
    best[at] = best[child];
  }
  best[at] = cost;
}

static wf_status push(wf__transducer_set *set, float cost, wf_error *err) {
  WF__TRY(wf__vec_push(&set->best, cost, "tokens", err));
  float *best = set->best.data;
  uint64_t at = set->best.size - 1;
  for (; at > 0 && best[(at - 1) / 2] < cost; at = (at - 1) / 2) best[at] = best[(at - 1) / 2];
  best[at] = cost;
  return WF_OK;
}

/* Counts a token whose cost falls from `was` (+infinity: a new one). */
static wf_status count_cost(wf__transducer_set *set, float was, float cost, wf_error *err) {
  if (was <= set->bound && was < INFINITY) {
    uint64_t at = 0;
    while (set->best.data[at] != was) at++;
    lower(set, at, cost);
  } else if (set->best.size < set->most) {
    WF__TRY(push(set, cost, err));
  } else if (cost < set->bound) {
    lower(set, 0, cost);
  }
  set->bound = set->best.size == set->most ? set->best.data[0] : INFINITY;
  return WF_OK;
}

wf_status wf__transducer_set_offer(wf__transducer_set *set, const wf__transducer_token *token,
                                   wf_error *err) {
  uint32_t at;
  if (token->cost > set->bound) return WF_OK;
  WF__TRY(wf__transducer_set_find(set, token->state, token->predictor, token->context, &at, err));
  wf__transducer_token *there = &set->tokens.data[at];
  if (!(token->cost < there->cost)) return WF_OK;
  WF__TRY(count_cost(set, there->cost, token->cost, err));
  *there = *token;
  if (set->tokens.size >= set->next_check) drop_above(set);
  return WF_OK;
}

wf_status wf__transducer_set_recount(wf__transducer_set *set, wf_error *err) {
  set->best.size = 0;
  set->bound = INFINITY;
  for (uint64_t i = 0; i < set->tokens.size; i++)
    WF__TRY(count_cost(set, INFINITY, set->tokens.data[i].cost, err));
  return WF_OK;
}

void wf__transducer_set_lower(wf__transducer_set *set, float by) {
  for (uint64_t i = 0; i < set->tokens.size; i++) set->tokens.data[i].cost -= by;
  for (uint64_t i = 0; i < set->best.size; i++) set->best.data[i] -= by;
  if (set->bound < INFINITY) set->bound -= by;
}

/* --- ranks -------------------------------------------------------------------------------- */

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
  kept = kept < set->most ? kept : set->most;
  set->tokens.size = kept;
  /* With fewer tokens, because the cutoff fell (words may cost less than 0), any may still enter.
   */
  set->best.size = kept; /* no more than before */
  for (uint64_t i = 0; i < kept; i++) set->best.data[i] = tokens[kept - 1 - i].cost;
  set->bound = kept == set->most ? tokens[kept - 1].cost : INFINITY;
  set->next_check = 2 * set->most + 8;
  fill_slots(set);
}
