/* search.c - the frame step: select, expand, recombine, close over epsilons, renormalise. */
#include "cpu/search.h"

#include <float.h>
#include <string.h>

#include "cpu/links.h"
#include "cpu/select.h"
#include "math/cost.h"
#include "math/score.h"

#define NONE UINT32_MAX
enum { NEAR = 8, FAR = 20 }; /* tokens of look-ahead for arcs and for the index */

/* --- states to tokens ----------------------------------------------------------------------------------------------- */

static void clear_tokens(wf__search *search) {
  for (uint64_t i = 0; i < search->used_slots.size; i++) search->slots[search->used_slots.data[i]].state = NONE;
  search->used_slots.size = 0;
  search->tokens.size = 0;
  search->candidates.size = search->moved.size = 0;
}

static uint32_t home(uint32_t state, int bits) { return wf__spread64(state, bits); }

static wf_status grow_slots(wf__search *search, wf_error *err) {
  int bits = search->slot_bits == 0 ? 12 : search->slot_bits + 1;
  wf__slot *slots = wf__alloc((uint64_t)1 << bits, sizeof *slots);
  if (slots == NULL) return wf__fail_memory(err, sizeof *slots << bits, "tokens");
  memset(slots, 0xff, sizeof *slots << bits);
  uint32_t mask = ((uint32_t)1 << bits) - 1;
  for (uint64_t i = 0; i < search->used_slots.size; i++) {
    wf__slot moved = search->slots[search->used_slots.data[i]];
    uint32_t at = home(moved.state, bits);
    while (slots[at].state != NONE) at = (at + 1) & mask;
    slots[at] = moved;
    search->used_slots.data[i] = at;
    if (moved.token != NONE) search->tokens.data[moved.token].slot = at;
  }
  free(search->slots);
  search->slots = slots;
  search->slot_bits = bits;
  return WF_OK;
}

/* The token of `state`, made with cost +infinity if there is none; NULL when there is no room (`full`) or no memory. */
static wf__token *token_of(wf__search *search, uint32_t state, wf_error *err) {
  uint32_t mask = ((uint32_t)1 << search->slot_bits) - 1, at = home(state, search->slot_bits);
  wf__slot *slots = search->slots;
  while (slots[at].state != state && slots[at].state != NONE) at = (at + 1) & mask;
  if (slots[at].state == state && slots[at].token != NONE) return &search->tokens.data[slots[at].token];
  if (search->tokens.size == search->most_tokens) {
    search->full = true;
    return NULL;
  }
  if (slots[at].state == NONE) {
    if (wf__unlikely(search->used_slots.size * 2 > mask)) {
      if (grow_slots(search, err) != WF_OK) return NULL;
      return token_of(search, state, err);
    }
    if (wf__vec_push(&search->used_slots, at, "tokens", err) != WF_OK) return NULL;
    slots[at].state = state;
    slots[at].token = NONE;
  }
  if (wf__vec_grow(&search->tokens, 1, "tokens", err) != WF_OK) return NULL;
  slots[at].token = (uint32_t)search->tokens.size;
  wf__token *token = &search->tokens.data[search->tokens.size++];
  *token = (wf__token){.cost = INFINITY, .state = state, .arc = NONE, .slot = at};
  return token;
}

/* --- selection ------------------------------------------------------------------------------------------------------ */

static uint64_t rank_key(const wf__token *token) { return (uint64_t)wf__ordered_cost(token->cost) << 32 | token->state; }

static wf_status fill_keys(wf__search *search, wf_error *err) {
  search->keys.size = 0;
  WF__TRY(wf__vec_grow(&search->keys, search->tokens.size, "tokens", err));
  for (uint64_t i = 0; i < search->tokens.size; i++) search->keys.data[i] = rank_key(&search->tokens.data[i]);
  search->keys.size = search->tokens.size;
  return WF_OK;
}

/* The at most max_active best tokens become the sources of the next frame, with their records in `prev`; the best comes first, so that the
 * running cutoff is tight from the start. */
static wf_status select_sources(wf__search *search, wf_error *err) {
  uint64_t size = search->tokens.size, most = (uint64_t)search->options.max_active, last = UINT64_MAX;
  if (size > most) {
    WF__TRY(fill_keys(search, err));
    last = wf__select_smallest(search->keys.data, size, most);
    search->path.flags |= WF_RESULT_NARROWED;
    search->path.num_narrowed++;
  }
  wf__token_vec *sources = &search->sources;
  sources->size = 0;
  WF__TRY(wf__vec_grow(sources, size, "tokens", err));
  uint64_t best = 0, best_key = UINT64_MAX;
  for (uint64_t i = 0; i < size; i++) {
    const wf__token *token = &search->tokens.data[i];
    uint64_t key = rank_key(token);
    if (key > last) continue;
    if (key < best_key) best_key = key, best = sources->size;
    sources->data[sources->size] = *token;
    sources->data[sources->size++].prev = (uint32_t)(search->trace_base + i);
  }
  wf__token first = sources->data[best];
  sources->data[best] = sources->data[0];
  sources->data[0] = first;
  search->path.num_expanded += sources->size;
  return WF_OK;
}

/* --- emitting arcs -------------------------------------------------------------------------------------------------- */

static void set_label_costs(wf__search *search, const wf_scores *scores, int64_t frame) {
  const int32_t *columns = search->graph->columns;
  float scale = search->options.acoustic_scale;
  for (int32_t label = 1; label < search->graph->num_labels; label++) {
    float loglike = wf__loglike(&search->options, scores, frame, columns[label]);
    search->label_costs[label] = loglike == -INFINITY ? INFINITY : -(scale * loglike);
  }
}

/* Sum of two costs that stays finite, so that comparisons with +infinity mean what they say. */
static float add_finite(float a, float b) {
  float sum = a + b;
  return sum < FLT_MAX ? sum : FLT_MAX;
}

static uint64_t candidate_key(float cost, uint32_t arc) { return (uint64_t)wf__ordered_cost(cost) << 32 | arc; }

/* What to do with the candidates of a frame. */
enum expand_mode {
  EXPAND_RUNNING, /* tokens of all within the beam of the best so far: a superset of those within the final cutoff */
  EXPAND_FIXED,   /* tokens of those whose key is at most `last` */
  EXPAND_COLLECT, /* no tokens: keys of those at most `last` */
};

/* Expands the sources over emitting arcs; *best (EXPAND_RUNNING only) is the least cost. WF_ERR_LIMIT, without a message, when `full`. */
static inline wf_status expand(wf__search *search, enum expand_mode mode, uint64_t last, float *best, wf_error *err) {
  const wf_graph *graph = search->graph;
  const float *label_costs = search->label_costs, beam = search->options.beam, word_score = search->options.word_score;
  const wf__token *sources = search->sources.data;
  uint64_t size = search->sources.size;
  uint32_t base = (uint32_t)search->trace_base;
  float cutoff = mode == EXPAND_RUNNING ? FLT_MAX : wf__cost_of_ordered((uint32_t)(last >> 32));
  for (uint64_t i = 0; i < size; i++) {
    /* States come in no order the memory could guess; their arcs are asked for well ahead. */
    if (i + FAR < size) __builtin_prefetch(&graph->index[sources[i + FAR].state]);
    if (i + NEAR < size) __builtin_prefetch(&graph->view.arcs[graph->index[sources[i + NEAR].state].first_arc]);
    wf__token source = sources[i];
    wf__state_index index = graph->index[source.state];
    if (mode == EXPAND_RUNNING) search->path.num_arcs += index.first_epsilon - index.first_arc;
    wf__link *noted = NULL;
    if (search->remembers && mode != EXPAND_COLLECT) {
      WF__TRY(wf__vec_grow(&search->candidates, index.first_epsilon - index.first_arc, "the lattice", err));
      noted = search->candidates.data + search->candidates.size;
    }
    for (uint32_t a = index.first_arc; a < index.first_epsilon; a++) {
      const wf_arc *arc = &graph->view.arcs[a];
      float cost = source.cost + arc->weight;
      if (arc->olabel != 0) cost -= word_score;
      cost += label_costs[arc->ilabel];
      if (cost > cutoff) continue;
      if (mode == EXPAND_RUNNING && cost < *best) {
        *best = cost;
        cutoff = add_finite(cost, beam);
      }
      if (mode != EXPAND_RUNNING && candidate_key(cost, a) > last) continue;
      if (mode == EXPAND_COLLECT) {
        WF__TRY(wf__vec_push(&search->keys, candidate_key(cost, a), "candidates", err));
        continue;
      }
      wf__token *token = token_of(search, arc->nextstate, err);
      if (token == NULL) return search->full ? WF_ERR_LIMIT : WF_ERR_MEMORY;
      if (cost < token->cost || (cost == token->cost && a < token->arc)) {
        token->cost = cost;
        token->arc = a;
        token->prev = source.prev;
      }
      if (noted != NULL) *noted++ = (wf__link){source.prev - base, (uint32_t)(token - search->tokens.data), a, cost};
    }
    if (noted != NULL) search->candidates.size = (uint64_t)(noted - search->candidates.data);
  }
  return WF_OK;
}

/* Drops tokens above the cutoff. Their slots stay, pointing nowhere, until the frame's table is cleared. */
static wf_status drop_above(wf__search *search, float cutoff, wf_error *err) {
  uint64_t size = search->tokens.size, kept = 0;
  if (search->remembers) WF__TRY(wf__vec_grow(&search->moved, size, "the lattice", err));
  for (uint64_t i = 0; i < size; i++) {
    wf__token token = search->tokens.data[i];
    if (search->remembers) search->moved.data[i] = (uint32_t)kept;
    if (token.cost > cutoff) {
      search->slots[token.slot].token = NONE;
      continue;
    }
    search->slots[token.slot].token = (uint32_t)kept;
    search->tokens.data[kept++] = token;
  }
  search->tokens.size = kept;
  if (search->remembers) search->moved.size = size;
  return WF_OK;
}

static const uint64_t LAST_KEY = (uint64_t)0xff7fffffu << 32 | UINT32_MAX; /* of the largest finite cost */

static wf_status collect(wf__search *search, uint64_t last, wf_error *err) {
  search->keys.size = 0;
  return expand(search, EXPAND_COLLECT, last, NULL, err);
}

/* Tokens of the candidates whose key is at most `last`. Fails as expand does. */
static wf_status admit(wf__search *search, uint64_t last, wf_error *err) {
  clear_tokens(search);
  return expand(search, EXPAND_FIXED, last, NULL, err);
}

/* The key that lets in what min_active asks for, when the beam alone holds fewer tokens than that. */
static wf_status widen(wf__search *search, uint64_t *last, wf_error *err) {
  uint64_t least = (uint64_t)search->options.min_active, within = 0;
  WF__TRY(collect(search, LAST_KEY, err));
  for (uint64_t i = 0; i < search->keys.size; i++) within += search->keys.data[i] <= *last;
  if (within >= least || search->keys.size == 0) return WF_OK;
  if (search->keys.size <= least) *last = LAST_KEY;
  else *last = wf__select_smallest(search->keys.data, search->keys.size, least) | UINT32_MAX;
  return WF_OK;
}

/* Emitting arcs of one frame, up to the cutoff that beam, min_active and max_tokens set; *last is its key. */
static wf_status emit(wf__search *search, uint64_t *last, wf_error *err) {
  float best = INFINITY;
  uint64_t least = (uint64_t)search->options.min_active;
  clear_tokens(search);
  search->full = false;
  search->most_tokens = UINT32_MAX; /* the running cutoff may let in more than will stay */
  WF__TRY(expand(search, EXPAND_RUNNING, 0, &best, err));
  search->most_tokens = (uint64_t)search->options.max_tokens;
  *last = candidate_key(add_finite(best, search->options.beam), UINT32_MAX);
  uint64_t narrow = *last;
  WF__TRY(drop_above(search, wf__cost_of_ordered((uint32_t)(*last >> 32)), err));
  if (search->tokens.size < least) WF__TRY(widen(search, last, err));
  if (*last != narrow) {
    wf_status status = admit(search, *last, err);
    if (status != WF_OK && !search->full) return status;
  }
  if (!search->full && search->tokens.size <= search->most_tokens) return WF_OK;
  search->path.flags |= WF_RESULT_OVERFLOW;
  search->full = false;
  WF__TRY(collect(search, *last, err));
  *last = wf__select_smallest(search->keys.data, search->keys.size, search->most_tokens);
  return admit(search, *last, err);
}

/* --- epsilon arcs --------------------------------------------------------------------------------------------------- */

static bool has_epsilons(const wf_graph *graph, uint32_t state) { return graph->index[state].first_epsilon < graph->index[state + 1].first_arc; }

/* One candidate of an epsilon round. It wins if it is cheaper (by the slack) than the token was when the round began; among candidates of one
 * round the cheaper, then the smaller arc number. */
static wf_status relax(wf__search *search, uint32_t from, uint32_t a, float cost, uint32_t round, uint32_t next, wf_error *err) {
  wf__token *token = token_of(search, search->graph->view.arcs[a].nextstate, err);
  if (token == NULL) return search->full ? WF_ERR_LIMIT : WF_ERR_MEMORY;
  wf__link link = {from, (uint32_t)(token - search->tokens.data), a, cost};
  if (search->remembers) WF__TRY(wf__vec_push(&search->epsilons, link, "the lattice", err));
  bool queued = token->round == round; /* then token->cost is of this round and already below the old cost */
  if (queued ? cost < token->cost : cost < token->cost - search->epsilon_slack) {
    token->cost = cost;
    token->arc = a;
    token->prev = from;
    token->round = round;
    if (!queued && has_epsilons(search->graph, token->state))
      return wf__vec_push(&search->agenda[next], (uint32_t)(token - search->tokens.data), "tokens", err);
  } else if (cost == token->cost && queued && a < token->arc) {
    token->arc = a;
    token->prev = from;
  }
  return WF_OK;
}

/* Relaxes epsilon arcs in rounds, each from the tokens that the one before improved, at the costs they had when it ended: so the
 * outcome does not depend on the order within a round. */
static wf_status close_epsilons(wf__search *search, float cutoff, wf_error *err) {
  const wf_graph *graph = search->graph;
  if (!graph->has_epsilons) return WF_OK;
  search->agenda[0].size = search->epsilons.size = search->rounds.size = 0;
  for (uint64_t i = 0; i < search->tokens.size; i++)
    if (has_epsilons(graph, search->tokens.data[i].state)) WF__TRY(wf__vec_push(&search->agenda[0], (uint32_t)i, "tokens", err));
  for (uint32_t round = 1; search->agenda[(round - 1) & 1].size > 0; round++) {
    uint32_t now = (round - 1) & 1, next = round & 1;
    uint64_t size = search->agenda[now].size;
    if (round > graph->view.num_states) return wf__fail(err, WF_ERR_NEGATIVE_CYCLE, "epsilon arcs go round for ever: word_score makes a cycle's cost negative");
    search->agenda[next].size = 0;
    WF__TRY(wf__vec_push(&search->rounds, search->epsilons.size, "tokens", err));
    WF__TRY(wf__vec_grow(&search->agenda_costs, size, "tokens", err));
    for (uint64_t i = 0; i < size; i++) search->agenda_costs.data[i] = search->tokens.data[search->agenda[now].data[i]].cost;
    search->agenda_costs.size = 0; /* only the room counts */
    for (uint64_t i = 0; i < size; i++) {
      uint32_t from = search->agenda[now].data[i], state = search->tokens.data[from].state;
      if (i + NEAR < size) __builtin_prefetch(&graph->view.arcs[graph->index[search->tokens.data[search->agenda[now].data[i + NEAR]].state].first_epsilon]);
      uint32_t first = graph->index[state].first_epsilon, end = graph->index[state + 1].first_arc;
      search->path.num_arcs += end - first;
      for (uint32_t a = first; a < end; a++) {
        const wf_arc *arc = &graph->view.arcs[a];
        float cost = search->agenda_costs.data[i] + arc->weight;
        if (arc->olabel != 0) cost -= search->options.word_score;
        if (cost <= cutoff) WF__TRY(relax(search, from, a, cost, round, next, err));
      }
    }
  }
  return WF_OK;
}

/* Epsilon closure of the tokens of emit; while it does not fit max_tokens, both are done again with half the candidates. *cutoff: of the frame. */
static wf_status close_within_room(wf__search *search, uint64_t last, float *cutoff, wf_error *err) {
  uint64_t num_arcs = search->path.num_arcs;
  *cutoff = wf__cost_of_ordered((uint32_t)(last >> 32));
  wf_status status = close_epsilons(search, *cutoff, err);
  while (status != WF_OK && search->full) {
    search->path.flags |= WF_RESULT_OVERFLOW;
    search->path.num_arcs = num_arcs; /* only the closure that stands is counted */
    search->full = false;
    WF__TRY(collect(search, last, err));
    uint64_t admitted = search->keys.size / 2;
    if (admitted == 0) return wf__fail(err, WF_ERR_LIMIT, "max_tokens (%d) is less than the epsilon closure of one state", search->options.max_tokens);
    last = wf__select_smallest(search->keys.data, search->keys.size, admitted);
    WF__TRY(admit(search, last, err));
    *cutoff = wf__cost_of_ordered((uint32_t)(last >> 32));
    status = close_epsilons(search, *cutoff, err);
  }
  return status;
}

/* --- the end of a frame --------------------------------------------------------------------------------------------- */

/* Scores that the newest records read, for streams. */
static wf_status keep_loglikes(wf__search *search, wf_error *err) {
  wf__trace *trace = &search->trace;
  const wf_graph *graph = search->graph;
  WF__TRY(wf__vec_grow(&trace->loglikes, trace->records.size - trace->loglikes.size, "the token history", err));
  for (uint64_t i = trace->loglikes.size; i < trace->records.size; i++) {
    uint32_t arc = trace->records.data[i].arc;
    int32_t label = arc == WF__NO_ARC ? 0 : graph->view.arcs[arc].ilabel;
    trace->loglikes.data[i] = label == 0 ? 0 : wf__loglike(&search->options, search->scores, search->frame, graph->columns[label]);
  }
  trace->loglikes.size = trace->records.size;
  return WF_OK;
}

/* Costs relative to the best token; records of all tokens into the trace, and what the lattice needs into its history. */
static wf_status settle(wf__search *search, float cutoff, wf_error *err) {
  uint64_t size = search->tokens.size;
  if (search->remembers) WF__TRY(wf__search_remember(search, cutoff, err));
  float best = INFINITY;
  for (uint64_t i = 0; i < size; i++)
    if (search->tokens.data[i].cost < best) best = search->tokens.data[i].cost;
  if (search->trace.records.size + size >= WF__TRACE_ROOT) return wf__fail(err, WF_ERR_LIMIT, "token history beyond 2^32 records; lower the beam or max_active");
  WF__TRY(wf__vec_grow(&search->trace.records, size, "the token history", err));
  search->trace_base = search->trace.records.size;
  for (uint64_t i = 0; i < size; i++) {
    wf__token *token = &search->tokens.data[i];
    token->cost -= best;
    uint32_t prev = token->round != 0 ? (uint32_t)search->trace_base + token->prev : token->prev;
    search->trace.records.data[search->trace.records.size++] = (wf__trace_record){prev, token->arc};
  }
  search->path.num_tokens += size;
  if (search->trace.keeps_loglikes) WF__TRY(keep_loglikes(search, err));
  return wf__trace_collect(&search->trace, &search->trace_base, false, search->graph, search->stem, err);
}

/* --- the utterance -------------------------------------------------------------------------------------------------- */

wf_status wf__search_create(const wf_graph *graph, const wf_decoder_options *options, wf__search **out, wf_error *err) {
  *out = NULL;
  wf__search *search = wf__calloc(1, sizeof *search);
  if (search == NULL) return wf__fail_memory(err, sizeof *search, "a search");
  search->graph = graph;
  search->options = *options;
  wf__decoder_limits(&search->options);
  search->epsilon_slack = wf__epsilon_slack(graph, options);
  search->remembers = options->lattice_beam > 0;
  search->skip_above = wf__skip_above(options);
  search->label_costs = wf__alloc((uint64_t)graph->num_labels, sizeof *search->label_costs);
  wf_status status = search->label_costs != NULL ? grow_slots(search, err) : wf__fail_memory(err, (uint64_t)graph->num_labels * 4, "a search");
  if (status != WF_OK) {
    wf__search_free(search);
    return status;
  }
  *out = search;
  return WF_OK;
}

void wf__search_free(wf__search *search) {
  if (search == NULL) return;
  wf__vec_free(&search->tokens);
  wf__vec_free(&search->sources);
  free(search->slots);
  wf__vec_free(&search->used_slots);
  free(search->label_costs);
  wf__vec_free(&search->keys);
  wf__vec_free(&search->agenda[0]);
  wf__vec_free(&search->agenda[1]);
  wf__vec_free(&search->agenda_costs);
  wf__history_free(&search->history);
  wf__vec_free(&search->candidates);
  wf__vec_free(&search->epsilons);
  wf__vec_free(&search->moved);
  wf__vec_free(&search->depths);
  wf__vec_free(&search->rounds);
  wf__vec_free(&search->nodes);
  wf__vec_free(&search->queue);
  wf__trace_free(&search->trace);
  wf__path_free(&search->path);
  free(search);
}

wf_status wf__search_begin(wf__search *search, wf_error *err) {
  clear_tokens(search);
  wf__trace_clear(&search->trace);
  wf__history_clear(&search->history, search->options.lattice_beam);
  wf__path_clear(&search->path);
  search->after_blank = false;
  search->path.flags = 0;
  search->path.num_decoded = 0;
  search->path.num_tokens = search->path.num_expanded = search->path.num_arcs = search->path.num_narrowed = 0;
  search->died = false;
  search->full = false;
  search->most_tokens = (uint64_t)search->options.max_tokens;
  wf__token *start = token_of(search, (uint32_t)search->graph->view.start, err);
  if (start == NULL) return WF_ERR_MEMORY;
  start->cost = 0;
  start->prev = WF__TRACE_ROOT;
  start->arc = WF__NO_ARC;
  wf_status status = close_epsilons(search, search->options.beam, err);
  if (search->full) return wf__fail(err, WF_ERR_LIMIT, "max_tokens (%d) is less than the epsilon closure of the start state", search->options.max_tokens);
  if (status != WF_OK) return status;
  WF__TRY(settle(search, search->options.beam, err));
  search->path.num_tokens = 0; /* counted per frame; the start is none */
  return WF_OK;
}

/* Of a run of frames that are blank for sure, all but the first. */
static bool is_skipped(wf__search *search, const wf_scores *scores, int64_t t) {
  if (search->skip_above == INFINITY) return false;
  bool after_blank = search->after_blank;
  search->after_blank = wf__score_at(scores, t, search->options.blank) > search->skip_above;
  return after_blank && search->after_blank;
}

wf_status wf__search_advance(wf__search *search, const wf_scores *scores, wf_error *err) {
  search->scores = scores;
  for (int64_t t = 0; t < scores->num_frames && !search->died; t++) {
    uint64_t last;
    if (is_skipped(search, scores, t)) {
      search->path.num_decoded++;
      continue;
    }
    search->frame = t;
    set_label_costs(search, scores, t);
    WF__TRY(select_sources(search, err));
    WF__TRY(emit(search, &last, err));
    if (search->tokens.size == 0) {
      wf__token_vec none = search->tokens;
      search->tokens = search->sources;
      search->sources = none;
      search->died = true;
      search->path.flags |= WF_RESULT_DIED;
      return WF_OK;
    }
    float cutoff;
    WF__TRY(close_within_room(search, last, &cutoff, err));
    WF__TRY(settle(search, cutoff, err));
    if (search->skip_above < INFINITY) WF__TRY(wf__vec_push(&search->path.frames, (int32_t)search->path.num_decoded, "a path", err));
    search->path.num_decoded++;
  }
  return WF_OK;
}

/* Best token by (cost [+ final cost], state); NULL if `with_final` and none is final. */
static const wf__token *best_token(const wf__search *search, bool with_final) {
  const wf__token *best = NULL;
  uint64_t best_key = UINT64_MAX;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    const wf__token *token = &search->tokens.data[i];
    float cost = with_final ? token->cost + search->graph->view.final_cost[token->state] : token->cost;
    uint64_t key = (uint64_t)wf__ordered_cost(cost) << 32 | token->state;
    if (cost == INFINITY || key >= best_key) continue;
    best_key = key;
    best = token;
  }
  return best;
}

/* Of the best ending, above the best token. */
static float relative_cost(const wf__search *search, float best_cost) {
  const wf__token *end = search->died ? NULL : best_token(search, true);
  return end != NULL ? end->cost + search->graph->view.final_cost[end->state] - best_cost : INFINITY;
}

/* The scores along the path, in its order. */
static wf_status read_loglikes(wf__search *search, const wf_scores *scores, wf_error *err) {
  const wf_graph *graph = search->graph;
  search->path.loglikes.size = 0;
  WF__TRY(wf__vec_grow(&search->path.loglikes, (uint64_t)search->path.num_decoded, "a path", err));
  for (uint64_t i = 0; i < search->path.arcs.size; i++) {
    int32_t label = graph->view.arcs[search->path.arcs.data[i]].ilabel;
    uint64_t at = search->path.loglikes.size;
    int64_t frame = wf__path_frame(&search->path, at);
    if (label != 0) search->path.loglikes.data[search->path.loglikes.size++] = wf__loglike(&search->options, scores, frame, graph->columns[label]);
  }
  return WF_OK;
}

wf_status wf__search_finish(wf__search *search, const wf_scores *scores, wf_error *err) {
  const wf__token *best = search->died || search->goes_on ? NULL : best_token(search, true);
  search->path.final_cost = best != NULL ? search->graph->view.final_cost[best->state] : 0;
  if (best == NULL) {
    best = best_token(search, false);
    search->path.flags |= WF_RESULT_NOT_FINAL;
  }
  if (search->goes_on) search->path.relative_cost = relative_cost(search, best->cost);
  search->path.arcs.size = search->path.loglikes.size = 0;
  uint32_t at = search->died ? best->prev : (uint32_t)(search->trace_base + (uint64_t)(best - search->tokens.data));
  WF__TRY(wf__trace_path(&search->trace, at, search->graph, &search->path, err));
  return scores != NULL ? read_loglikes(search, scores, err) : WF_OK;
}

wf_status wf__search_lattice(wf__search *search, const wf_scores *scores, wf_lattice **out, wf_error *err) {
  bool final = (search->path.flags & WF_RESULT_NOT_FINAL) == 0;
  WF__TRY(wf__search_endings(search, final, err));
  WF__TRY(wf__history_end(&search->history, err));
  return wf__history_lattice(&search->history, search->graph, &search->options, scores, search->path.num_decoded, final, out, err);
}
