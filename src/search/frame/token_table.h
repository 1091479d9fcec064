/* token_table.h - the tokens of a frame by state, or by state and context; part of search.c, so
 * that the compiler can inline it. search_create.c makes the first slots.
 *
 * Slots are an open-addressing table, cleared frame by frame through the list of those in use. */
#ifndef WF_SEARCH_FRAME_TOKEN_TABLE_H
#define WF_SEARCH_FRAME_TOKEN_TABLE_H

#include <math.h>
#include <string.h>

#include "search/frame/search.h"

#define NONE UINT32_MAX

/* Functions that run once per arc are compiled twice, for searches with and without a scorer, so
 * that the latter pay nothing. They take `scored`, a constant at each call. */
#define TWICE static inline __attribute__((always_inline))

static inline void clear_tokens(wf__search *search) {
  for (uint64_t i = 0; i < search->used_slots.size; i++)
    search->slots[search->used_slots.data[i]].state = NONE;
  search->used_slots.size = 0;
  search->tokens.size = search->contexts.size = 0;
  search->links.candidates.size = search->links.moved.size = 0;
}

enum { RECOMBINE_PAIR, RECOMBINE_STATE };

/* Are tokens of one state with different contexts kept apart? */
static inline bool keeps_pairs(const wf__search *search) {
  return search->base.scoring.scorer != NULL && search->base.options.recombine == RECOMBINE_PAIR;
}

static inline uint32_t home(uint32_t state, int bits) { return wf__spread64(state, bits); }
static inline uint32_t home_of_pair(uint32_t state, uint64_t context, int bits) {
  return wf__spread64(state + wf__mix64(context), bits);
}

static inline wf_status grow_slots(wf__search *search, wf_error *err) {
  int bits = search->slot_bits == 0 ? 12 : search->slot_bits + 1;
  wf__slot *slots = wf__alloc((uint64_t)1 << bits, sizeof *slots);
  if (slots == NULL) return wf__fail_memory(err, sizeof *slots << bits, "tokens");
  memset(slots, 0xff, sizeof *slots << bits);
  uint32_t mask = ((uint32_t)1 << bits) - 1;
  bool pairs = keeps_pairs(search);
  uint64_t used = 0;
  for (uint64_t i = 0; i < search->used_slots.size; i++) {
    wf__slot moved = search->slots[search->used_slots.data[i]];
    if (moved.token == NONE) continue;
    uint32_t at = pairs ? home_of_pair(moved.state, search->contexts.data[moved.token], bits)
                        : home(moved.state, bits);
    while (slots[at].state != NONE) at = (at + 1) & mask;
    slots[at] = moved;
    search->used_slots.data[used++] = at;
    search->tokens.data[moved.token].slot = at;
  }
  search->used_slots.size = used;
  free(search->slots);
  search->slots = slots;
  search->slot_bits = bits;
  return WF_OK;
}

/* Does the slot belong to this pair? A slot whose token was dropped belongs to no pair. */
static inline bool is_of_pair(const wf__search *search, wf__slot slot, uint32_t state,
                              uint64_t context) {
  return slot.state == state && slot.token != NONE && search->contexts.data[slot.token] == context;
}

static inline void prefetch_index(const wf_graph *graph, bool ctc, uint32_t state) {
  if (wf__is_added(graph, state)) return;
  if (ctc)
    __builtin_prefetch(&graph->ctc->states[state]);
  else
    __builtin_prefetch(&graph->index[state]);
}
static inline void prefetch_arcs(const wf_graph *graph, bool ctc, uint32_t state, bool epsilons) {
  if (wf__is_added(graph, state)) return;
  if (ctc) {
    const wf__ctc_state *at = &graph->ctc->states[state];
    __builtin_prefetch(&graph->view.arcs[at->arcs + (epsilons ? at->count : 0)]);
  } else {
    __builtin_prefetch(&graph->view.arcs[epsilons ? graph->index[state].first_epsilon
                                                  : graph->index[state].first_arc]);
  }
}

static inline bool has_epsilons(const wf_graph *graph, uint32_t state) {
  if (graph->ctc != NULL && !wf__is_added(graph, state))
    return graph->ctc->states[state].num_epsilons > 0;
  const wf__arc_run run = wf__epsilon_run(graph, state);
  return run.first < run.end;
}

/* Returns the token of `state`, or of (state, context). Makes it with cost +infinity if there is
 * none. Returns NULL if there is no room (`full`) or no memory. */
TWICE wf__token *token_of(wf__search *search, bool scored, uint32_t state, uint64_t context,
                          wf_error *err) {
  uint32_t mask = ((uint32_t)1 << search->slot_bits) - 1;
  bool pairs = scored && search->base.options.recombine == RECOMBINE_PAIR;
  uint32_t at =
      pairs ? home_of_pair(state, context, search->slot_bits) : home(state, search->slot_bits);
  wf__slot *slots = search->slots;
  if (pairs)
    while (slots[at].state != NONE && !is_of_pair(search, slots[at], state, context))
      at = (at + 1) & mask;
  else
    while (slots[at].state != state && slots[at].state != NONE) at = (at + 1) & mask;
  if (slots[at].state == state && slots[at].token != NONE)
    return &search->tokens.data[slots[at].token];
  if (search->tokens.size == search->most_tokens) {
    search->full = true;
    return NULL;
  }
  if (slots[at].state == NONE) {
    if (wf__unlikely(search->used_slots.size * 2 > mask)) {
      if (grow_slots(search, err) != WF_OK) return NULL;
      slots = search->slots;
      mask = ((uint32_t)1 << search->slot_bits) - 1;
      at = pairs ? home_of_pair(state, context, search->slot_bits) : home(state, search->slot_bits);
      while (slots[at].state != NONE) at = (at + 1) & mask;
    }
    if (wf__vec_push(&search->used_slots, at, "tokens", err) != WF_OK) return NULL;
    slots[at].state = state;
    slots[at].token = NONE;
  }
  if (wf__vec_grow(&search->tokens, 1, "tokens", err) != WF_OK) return NULL;
  if (scored && wf__vec_push(&search->contexts, context, "tokens", err) != WF_OK) return NULL;
  slots[at].token = (uint32_t)search->tokens.size;
  wf__token *token = &search->tokens.data[search->tokens.size++];
  *token = (wf__token){.cost = INFINITY, .state = state, .arc = NONE, .slot = at};
  return token;
}

#endif
