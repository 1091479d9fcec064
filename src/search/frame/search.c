/* search.c - the frame step: select, expand, recombine, close over epsilons, renormalise. */
#include "search/frame/search.h"

#include <float.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/select.h"
#include "math/cost.h"
#include "math/score.h"
#include "search/frame/dominance.h"
#include "search/frame/expand_source.h"
#include "search/frame/links.h"

enum { NEAR = 8, FAR = 20 }; /* tokens of look-ahead for arcs and for the index */

/* --- selection --------------------------------------------------------------------------- */

/* Finds the rank of the last of the `most` best tokens. */
static wf_status rank_of_last(wf__search *search, uint64_t most, wf__limit *out, wf_error *err) {
  uint64_t size = search->tokens.size, below = 0, num_ties = 0;
  search->step.keys.size = 0;
  WF__TRY(wf__vec_grow(&search->step.keys, size, "tokens", err));
  uint64_t *keys = search->step.keys.data;
  for (uint64_t i = 0; i < size; i++) keys[i] = rank_key(&search->tokens.data[i]);
  *out = (wf__limit){wf__select_smallest(keys, size, most), UINT64_MAX};
  if (!keeps_pairs(search)) return WF_OK;
  for (uint64_t i = 0; i < size; i++) {
    uint64_t key = rank_key(&search->tokens.data[i]);
    below += key < out->key;
    if (key == out->key) keys[num_ties++] = search->contexts.data[i];
  }
  *out = limit_among_ties(out->key, most, below, keys, num_ties);
  return WF_OK;
}

/* Makes the best tokens, max_active at most, the sources of the next frame, with their records in
 * `prev`. The best one comes first, so that the running cutoff is tight from the start. */
static wf_status select_sources(wf__search *search, wf_error *err) {
  uint64_t size = search->tokens.size, most = (uint64_t)search->base.options.max_active;
  wf__limit last = {UINT64_MAX, UINT64_MAX};
  bool scored = search->base.scoring.scorer != NULL;
  if (size > most) {
    WF__TRY(rank_of_last(search, most, &last, err));
    search->base.path.flags |= WF_RESULT_NARROWED;
    search->base.path.num_narrowed++;
  }
  wf__token_vec *sources = &search->sources;
  sources->size = 0;
  WF__TRY(wf__vec_grow(sources, size, "tokens", err));
  uint64_t best = 0, best_key = UINT64_MAX;
  for (uint64_t i = 0; i < size; i++) {
    const wf__token *token = &search->tokens.data[i];
    uint64_t key = rank_key(token);
    if (!is_within(last, scored, key, scored ? search->contexts.data[i] : 0)) continue;
    if (key < best_key) best_key = key, best = sources->size;
    sources->data[sources->size] = *token;
    sources->data[sources->size++].prev = (uint32_t)(search->trace_base + i);
  }
  wf__token first = sources->data[best];
  sources->data[best] = sources->data[0];
  sources->data[0] = first;
  search->base.path.num_expanded += sources->size;
  if (scored) wf__vec_swap(&search->contexts, &search->past_contexts);
  return WF_OK;
}

/* --- emitting arcs ----------------------------------------------------------------------- */

/* Apart, so that the loop over ordinary sources stays small. */
static __attribute__((noinline)) wf_status expand_wide(wf__search *search, enum expand_mode mode,
                                                       wf__limit last, wf__token source,
                                                       wf__arc_run run, float *cutoff, float *best,
                                                       wf_error *err) {
  return search->base.scoring.scorer != NULL
             ? expand_source(search, true, true, ARCS_BY_LABEL, mode, last, source, run, cutoff,
                             best, err)
             : expand_source(search, false, true, ARCS_BY_LABEL, mode, last, source, run, cutoff,
                             best, err);
}
static __attribute__((noinline)) wf_status expand_stays(wf__search *search, enum expand_mode mode,
                                                        wf__limit last, wf__token source,
                                                        wf__arc_run run, float *cutoff, float *best,
                                                        wf_error *err) {
  return search->base.scoring.scorer != NULL ? expand_source(search, true, true, ARCS_NONE, mode,
                                                             last, source, run, cutoff, best, err)
                                             : expand_source(search, false, true, ARCS_NONE, mode,
                                                             last, source, run, cutoff, best, err);
}
static __attribute__((noinline)) wf_status expand_hub(wf__search *search, enum expand_mode mode,
                                                      wf__limit last, wf__token source,
                                                      wf__arc_run run, float *cutoff, float *best,
                                                      wf_error *err) {
  return expand_source(search, true, run.targets != NULL, ARCS_ON_HUB, mode, last, source, run,
                       cutoff, best, err);
}

/* Is it known what words cost at least in the source's context? */
static bool has_bounds(const wf__search *search, wf__token source) {
  if (search->base.scoring.scorer == NULL) return true;
  const uint64_t number = wf__search_source_number(search, &source);
  return wf__scoring_bounds(&search->base.scoring, search->past_contexts.data[number]).least >
         -INFINITY;
}

/* Expands the sources over emitting arcs; *best (EXPAND_RUNNING only) is the least cost.
 * WF_ERR_LIMIT, without a message, when `full`. */
TWICE wf_status expand_sources(wf__search *search, bool scored, bool ctc, enum expand_mode mode,
                               wf__limit last, float *best, wf_error *err) {
  const wf_graph *graph = search->base.graph;
  const wf__token *sources = search->sources.data;
  uint64_t size = search->sources.size;
  float cutoff = mode == EXPAND_RUNNING ? FLT_MAX : limit_cost(last);
  for (uint64_t i = 0; i < size; i++) {
    /* States are in random order, so their arcs are prefetched. */
    if (i + FAR < size) prefetch_index(graph, ctc, sources[i + FAR].state);
    if (i + NEAR < size) prefetch_arcs(graph, ctc, sources[i + NEAR].state, false);
    wf__token source = sources[i];
    wf__arc_run run = ctc ? wf__ctc_run(graph, source.state) : wf__plain_run(graph, source.state);
    const uint32_t num_arcs = run.end - run.first;
    bool on_hub = false;
    if (mode == EXPAND_RUNNING)
      search->base.path.num_arcs += num_arcs + (ctc ? wf__num_stays(&run) : 0);
    if (ctc && wf__unlikely(num_arcs >= WF__WIDE_ARCS) && !wf__is_added(graph, source.state)) {
      const bool dominated = wf__is_dominated(search, mode, i);
      if (dominated || has_bounds(search, source)) {
        WF__TRY(dominated ? expand_stays(search, mode, last, source, run, &cutoff, best, err)
                          : expand_wide(search, mode, last, source, run, &cutoff, best, err));
        continue;
      }
    }
    if (scored && num_arcs >= HUB_ARCS) WF__TRY(wf__hub_find(search, run, &on_hub, err));
    WF__TRY(wf__unlikely(on_hub) ? expand_hub(search, mode, last, source, run, &cutoff, best, err)
                                 : expand_source(search, scored, ctc, ARCS_EACH, mode, last, source,
                                                 run, &cutoff, best, err));
  }
  return WF_OK;
}

TWICE wf_status expand(wf__search *search, enum expand_mode mode, wf__limit last, float *best,
                       wf_error *err) {
  const bool ctc = search->base.graph->ctc != NULL;
  if (search->base.scoring.scorer != NULL)
    return ctc ? expand_sources(search, true, true, mode, last, best, err)
               : expand_sources(search, true, false, mode, last, best, err);
  return ctc ? expand_sources(search, false, true, mode, last, best, err)
             : expand_sources(search, false, false, mode, last, best, err);
}

/* Drops tokens above the cutoff. Their slots stay, pointing nowhere, until the frame's table is
 * cleared. */
static wf_status drop_above(wf__search *search, float cutoff, wf_error *err) {
  uint64_t size = search->tokens.size, kept = 0;
  bool scored = search->base.scoring.scorer != NULL;
  if (search->base.keeps_lattice)
    WF__TRY(wf__vec_grow(&search->links.moved, size, "the lattice", err));
  for (uint64_t i = 0; i < size; i++) {
    wf__token token = search->tokens.data[i];
    if (search->base.keeps_lattice) search->links.moved.data[i] = (uint32_t)kept;
    if (token.cost > cutoff) {
      search->slots[token.slot].token = NONE;
      continue;
    }
    search->slots[token.slot].token = (uint32_t)kept;
    if (scored) search->contexts.data[kept] = search->contexts.data[i];
    search->tokens.data[kept++] = token;
  }
  search->tokens.size = kept;
  if (scored) search->contexts.size = kept;
  if (search->base.keeps_lattice) search->links.moved.size = size;
  return WF_OK;
}

static wf_status collect(wf__search *search, wf__limit last, wf_error *err) {
  search->step.keys.size = 0;
  return expand(search, EXPAND_COLLECT, last, NULL, err);
}

/* Moves *last to the k-th of the candidates up to *last, whose keys are in `keys`. */
static wf_status shorten(wf__search *search, uint64_t k, wf__limit *last, wf_error *err) {
  uint64_t size = search->step.keys.size, below = 0, *keys = search->step.keys.data;
  uint64_t key = wf__select_smallest(keys, size, k);
  if (!keeps_pairs(search)) {
    *last = (wf__limit){key, UINT64_MAX};
    return WF_OK;
  }
  for (uint64_t i = 0; i < size; i++) below += keys[i] < key;
  wf__limit ties = {key, key == last->key ? last->context : UINT64_MAX};
  search->step.keys.size = 0;
  WF__TRY(expand(search, EXPAND_TIES, ties, NULL, err));
  *last = limit_among_ties(key, k, below, search->step.keys.data, search->step.keys.size);
  return WF_OK;
}

/* Makes tokens of the candidates up to `last`. Fails as expand does. */
static wf_status admit(wf__search *search, wf__limit last, wf_error *err) {
  clear_tokens(search);
  return expand(search, EXPAND_FIXED, last, NULL, err);
}

/* Are at least `count` candidates within the limit, as far as the running expansion noted? */
static bool has_noted(const wf__search *search, wf__limit limit, uint64_t count) {
  const float most = limit_cost(limit);
  uint64_t within = 0;
  for (uint32_t i = 0; i < search->step.num_noted; i++) within += search->step.noted[i] <= most;
  return within >= count;
}

/* The limit that min_active requires if the beam alone holds fewer tokens. One candidate more than
 * that tells whether there are more. */
static wf_status widen(wf__search *search, wf__limit *last, wf_error *err) {
  uint64_t least = (uint64_t)search->base.options.min_active, within = 0;
  search->step.most_keys = least + 1;
  WF__TRY(wf__dominance_rank(search, search->step.most_keys, err));
  search->step.keys.size = 0;
  WF__TRY(expand(search, EXPAND_LEAST, NO_LIMIT, NULL, err));
  uint64_t size = search->step.keys.size, *keys = search->step.keys.data;
  for (uint64_t i = 0; i < size; i++) within += keys[i] <= last->key;
  if (within >= least || size == 0) return WF_OK;
  if (size <= least)
    *last = NO_LIMIT;
  else
    last->key = wf__select_smallest(keys, size, least) | UINT32_MAX;
  return WF_OK;
}

/* Expands the emitting arcs of one frame up to the cutoff of beam, min_active and max_tokens;
 * *last is the last accepted candidate. */
static wf_status emit(wf__search *search, wf__limit *last, wf_error *err) {
  float best = INFINITY;
  uint64_t least = (uint64_t)search->base.options.min_active;
  clear_tokens(search);
  search->full = false;
  search->step.num_noted = 0;
  search->most_tokens = UINT32_MAX; /* the running cutoff may accept more tokens than will stay */
  WF__TRY(expand(search, EXPAND_RUNNING, NO_LIMIT, &best, err));
  search->most_tokens = (uint64_t)search->base.options.max_tokens;
  *last = (wf__limit){candidate_key(add_finite(best, search->base.options.beam), UINT32_MAX),
                      UINT64_MAX};
  uint64_t narrow = last->key;
  WF__TRY(drop_above(search, limit_cost(*last), err));
  if (search->tokens.size < least && !has_noted(search, *last, least))
    WF__TRY(widen(search, last, err));
  if (last->key != narrow) {
    wf_status status = admit(search, *last, err);
    if (status != WF_OK && !search->full) return status;
  }
  if (!search->full && search->tokens.size <= search->most_tokens) return WF_OK;
  search->base.path.flags |= WF_RESULT_OVERFLOW;
  search->full = false;
  WF__TRY(collect(search, *last, err));
  WF__TRY(shorten(search, search->most_tokens, last, err));
  return admit(search, *last, err);
}

/* --- epsilon arcs ------------------------------------------------------------------------ */

/* Offers one candidate of an epsilon round to `state`. It wins if it is cheaper (by more than
 * the slack) than the token was when the round began. Among candidates of one round the cheaper
 * wins, then the smaller arc number, then the smaller context before the arc. */
TWICE wf_status relax(wf__search *search, bool scored, uint32_t from, uint32_t a, uint32_t state,
                      float cost, uint64_t context, uint32_t round, wf_error *err) {
  wf__token *token = token_of(search, scored, state, context, err);
  if (token == NULL) return search->full ? WF_ERR_LIMIT : WF_ERR_MEMORY;
  uint32_t to = (uint32_t)(token - search->tokens.data);
  wf__link link = {from, to, a, cost};
  if (search->base.keeps_lattice)
    WF__TRY(wf__vec_push(&search->links.epsilons, link, "the lattice", err));
  bool queued =
      token->round == round; /* then token->cost is from this round and below the old cost */
  const uint64_t *contexts = search->contexts.data;
  bool gain = queued ? cost < token->cost : cost < token->cost - search->base.epsilon_slack;
  if (!gain)
    gain =
        queued && cost == token->cost &&
        (a < token->arc || (scored && a == token->arc && contexts[from] < contexts[token->prev]));
  if (!gain) return WF_OK;
  token->cost = cost;
  token->arc = a;
  token->prev = from;
  token->round = round;
  if (scored) search->contexts.data[to] = context;
  return queued || !has_epsilons(search->base.graph, token->state)
             ? WF_OK
             : wf__vec_push(&search->closure.frontier[round & 1], to, "tokens", err);
}

/* The number of arcs that no acyclic epsilon path reaches. */
static uint64_t most_rounds(const wf__search *search) {
  return keeps_pairs(search) ? search->tokens.size : search->base.graph->num_states;
}

/* Copies the costs and contexts of the tokens to relax in a round, before the round changes them.
 */
static wf_status take_frontier(wf__search *search, uint32_t now, wf_error *err) {
  uint64_t size = search->closure.frontier[now].size;
  const uint32_t *frontier = search->closure.frontier[now].data;
  WF__TRY(wf__vec_push(&search->links.rounds, search->links.epsilons.size, "tokens", err));
  WF__TRY(wf__vec_grow(&search->closure.costs, size, "tokens", err));
  for (uint64_t i = 0; i < size; i++)
    search->closure.costs.data[i] = search->tokens.data[frontier[i]].cost;
  search->closure.costs.size = search->closure.contexts.size = 0; /* only the capacity matters */
  if (search->base.scoring.scorer == NULL) return WF_OK;
  WF__TRY(wf__vec_grow(&search->closure.contexts, size, "tokens", err));
  for (uint64_t i = 0; i < size; i++)
    search->closure.contexts.data[i] = search->contexts.data[frontier[i]];
  return WF_OK;
}

TWICE wf_status relax_frontier(wf__search *search, bool scored, float cutoff, uint32_t round,
                               wf_error *err) {
  const wf_graph *graph = search->base.graph;
  uint32_t now = (round - 1) & 1;
  uint64_t size = search->closure.frontier[now].size;
  for (uint64_t i = 0; i < size; i++) {
    uint32_t from = search->closure.frontier[now].data[i], state = search->tokens.data[from].state;
    if (i + NEAR < size)
      prefetch_arcs(graph, graph->ctc != NULL,
                    search->tokens.data[search->closure.frontier[now].data[i + NEAR]].state, true);
    wf__arc_run run = wf__epsilon_run(graph, state);
    search->base.path.num_arcs += run.end - run.first;
    for (uint32_t a = run.first; a < run.end; a++) {
      wf_arc arc = wf__graph_arc_from(graph, state, a);
      float cost = search->closure.costs.data[i] + arc.weight;
      uint64_t context = scored ? search->closure.contexts.data[i] : 0;
      if (arc.olabel != 0) {
        cost -= search->base.options.word_score;
        if (scored) {
          if (cost + wf__scorer_least(search->base.scoring.scorer, arc.olabel) > cutoff) continue;
          WF__TRY(wf__scoring_add(&search->base.scoring, arc.olabel, &cost, &context, err));
        }
      }
      if (cost <= cutoff)
        WF__TRY(relax(search, scored, from, a, arc.nextstate, cost, context, round, err));
    }
  }
  return WF_OK;
}

/* Starts the closure. Epsilon arcs are relaxed in rounds. Each round relaxes the tokens that the
 * previous one improved, at their costs at its end. So the result does not depend on the order
 * within a round. */
static wf_status open_closure(wf__search *search, wf_error *err) {
  const wf_graph *graph = search->base.graph;
  search->closure.round = 0;
  search->closure.frontier[0].size = search->links.epsilons.size = search->links.rounds.size = 0;
  if (!graph->has_epsilons) return WF_OK;
  WF__TRY(wf__vec_grow(&search->closure.frontier[0], search->tokens.size, "tokens", err));
  uint32_t *to = search->closure.frontier[0].data;
  for (uint64_t i = 0; i < search->tokens.size; i++) { /* without a branch: it is random */
    *to = (uint32_t)i;
    to += has_epsilons(graph, search->tokens.data[i].state);
  }
  search->closure.frontier[0].size = (uint64_t)(to - search->closure.frontier[0].data);
  return WF_OK;
}

static bool is_closed(const wf__search *search) {
  return search->closure.frontier[search->closure.round & 1].size == 0;
}

static wf_status close_round(wf__search *search, wf_error *err) {
  uint32_t now = search->closure.round & 1, round = ++search->closure.round;
  if (round > most_rounds(search)) return wf__fail_cycle(err);
  search->closure.frontier[round & 1].size = 0;
  WF__TRY(take_frontier(search, now, err));
  return search->base.scoring.scorer != NULL
             ? relax_frontier(search, true, search->step.cutoff, round, err)
             : relax_frontier(search, false, search->step.cutoff, round, err);
}

static wf_status close_epsilons(wf__search *search, wf_error *err) {
  WF__TRY(open_closure(search, err));
  while (!is_closed(search)) WF__TRY(close_round(search, err));
  return WF_OK;
}

/* Called if the closure of the emitted tokens does not fit max_tokens. Repeats both with half the
 * candidates until it fits. */
static wf_status make_room(wf__search *search, wf_error *err) {
  wf_status status = WF_ERR_LIMIT;
  while (status != WF_OK && search->full) {
    search->base.path.flags |= WF_RESULT_OVERFLOW;
    search->base.path.num_arcs =
        search->closure.num_arcs_before; /* only the final closure is counted */
    search->full = false;
    WF__TRY(collect(search, search->step.last, err));
    uint64_t admitted = search->step.keys.size / 2;
    if (admitted == 0)
      return wf__fail(err, WF_ERR_LIMIT,
                      "max_tokens (%d) is less than the epsilon closure of one state",
                      search->base.options.max_tokens);
    WF__TRY(shorten(search, admitted, &search->step.last, err));
    WF__TRY(admit(search, search->step.last, err));
    search->step.cutoff = limit_cost(search->step.last);
    status = close_epsilons(search, err);
  }
  return status;
}

/* --- the end of a frame ------------------------------------------------------------------ */

/* Keeps the scores that the newest records read, for streams. */
static wf_status keep_loglikes(wf__search *search, wf_error *err) {
  wf__trace *trace = &search->trace;
  const wf_graph *graph = search->base.graph;
  WF__TRY(wf__vec_grow(&trace->loglikes, trace->records.size - trace->loglikes.size,
                       "the token history", err));
  for (uint64_t i = trace->loglikes.size; i < trace->records.size; i++) {
    const wf__token *token = &search->tokens.data[i - search->trace_base];
    const int32_t label = token->arc == WF__NO_ARC
                              ? 0
                              : wf__label_read(graph, token->arc, token->state, token->round != 0);
    trace->loglikes.data[i] = label == 0 ? 0
                                         : wf__loglike(&search->base.options, search->step.scores,
                                                       search->step.frame, graph->columns[label]);
  }
  trace->loglikes.size = trace->records.size;
  return WF_OK;
}

/* Finishes a frame: makes costs relative to the best token, and adds the tokens to the trace
 * and, for the lattice, to the history. */
static wf_status finish_frame(wf__search *search, float cutoff, wf_error *err) {
  uint64_t size = search->tokens.size;
  if (search->base.keeps_lattice) WF__TRY(wf__search_keep_links(search, cutoff, err));
  float best = INFINITY;
  for (uint64_t i = 0; i < size; i++)
    if (search->tokens.data[i].cost < best) best = search->tokens.data[i].cost;
  if (search->trace.records.size + size >= WF__TRACE_ROOT)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the token history has more than 2^32 records; lower beam or max_active");
  WF__TRY(wf__vec_grow(&search->trace.records, size, "the token history", err));
  search->trace_base = search->trace.records.size;
  for (uint64_t i = 0; i < size; i++) {
    wf__token *token = &search->tokens.data[i];
    token->cost -= best;
    uint32_t prev = token->round != 0 ? (uint32_t)search->trace_base + token->prev : token->prev;
    search->trace.records.data[search->trace.records.size++] = (wf__trace_record){prev, token->arc};
  }
  search->base.path.num_tokens += size;
  if (search->trace.keeps_loglikes) WF__TRY(keep_loglikes(search, err));
  return wf__trace_collect(&search->trace, &search->trace_base, false, search->base.graph,
                           search->committed, err);
}

/* --- the utterance ----------------------------------------------------------------------- */

wf_status wf__search_begin(wf__searcher *searcher, wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  wf__path *path = &searcher->path;
  clear_tokens(search);
  wf__trace_clear(&search->trace);
  wf__history_clear(&searcher->history, searcher->options.lattice_beam);
  wf__path_clear(path);
  path->flags = 0;
  path->num_decoded = 0;
  path->num_tokens = path->num_expanded = path->num_arcs = path->num_narrowed = 0;
  searcher->ended = false;
  search->step.after_blank = false;
  search->died = false;
  search->full = false;
  search->most_tokens = (uint64_t)searcher->options.max_tokens;
  WF__TRY(wf__scoring_begin(&searcher->scoring, err));
  searcher->committed_sum = (wf__score_sum){searcher->scoring.start, 0};
  bool scored = searcher->scoring.scorer != NULL;
  uint32_t state = searcher->graph->start;
  wf__token *start = scored ? token_of(search, true, state, searcher->scoring.start, err)
                            : token_of(search, false, state, 0, err);
  if (start == NULL) return WF_ERR_MEMORY;
  start->cost = 0;
  start->prev = WF__TRACE_ROOT;
  start->arc = WF__NO_ARC;
  search->step.cutoff = searcher->options.beam;
  wf_status status = close_epsilons(search, err);
  if (search->full)
    return wf__fail(err, WF_ERR_LIMIT,
                    "max_tokens (%d) is less than the epsilon closure of one state",
                    searcher->options.max_tokens);
  if (status != WF_OK) return status;
  WF__TRY(finish_frame(search, searcher->options.beam, err));
  path->num_tokens = 0; /* counted by frame; the start is not one */
  return WF_OK;
}

/* Is this frame skipped? All but the first of a run of certainly blank frames are. */
static bool is_skipped(wf__search *search, const wf_scores *scores, int64_t t) {
  if (search->step.skip_above == INFINITY) return false;
  bool after_blank = search->step.after_blank;
  search->step.after_blank =
      wf__score_at(scores, t, search->base.options.blank) > search->step.skip_above;
  return after_blank && search->step.after_blank;
}

wf_status wf__search_feed(wf__searcher *searcher, const wf_scores *scores, wf_error *err) {
  wf__step *step = &((wf__search *)searcher)->step;
  step->scores = scores;
  step->next_frame = 0;
  step->stage = WF__STAGE_FRAME; /* another stream may have failed within a frame */
  return WF_OK;
}

static wf_status begin_frame(wf__search *search, wf_error *err) {
  int64_t t = search->step.next_frame++;
  WF__TRY(wf__interrupted(err));
  if (is_skipped(search, search->step.scores, t)) {
    search->base.path.num_decoded++;
    return wf__columns_check(search, search->step.scores, t, err);
  }
  search->step.frame = t;
  WF__TRY(wf__columns_read(search, search->step.scores, t, err));
  wf__hub_clear(&search->step.hub);
  WF__TRY(select_sources(search, err));
  WF__TRY(wf__dominance_find(search, err));
  search->step.stage = WF__STAGE_EMIT;
  return wf__search_request_emitting(search, err);
}

/* Checks the frames that no token is left for. */
static wf_status check_rest(wf__search *search, wf_error *err) {
  wf__step *step = &search->step;
  for (; step->next_frame < step->scores->num_frames; step->next_frame++) {
    WF__TRY(wf__interrupted(err));
    WF__TRY(wf__columns_check(search, step->scores, step->next_frame, err));
  }
  return WF_OK;
}

static wf_status request_round(wf__search *search, wf_error *err) {
  uint32_t now = search->closure.round & 1;
  return wf__search_request_epsilons(search, search->closure.frontier[now].data,
                                     search->closure.frontier[now].size, err);
}

static wf_status emit_frame(wf__search *search, wf_error *err) {
  WF__TRY(emit(search, &search->step.last, err));
  if (search->tokens.size == 0) {
    wf__token_vec none = search->tokens;
    search->tokens = search->sources;
    search->sources = none;
    search->died = true;
    search->base.path.flags |= WF_RESULT_DIED;
    search->step.stage = WF__STAGE_FRAME;
    return WF_OK;
  }
  search->step.cutoff = limit_cost(search->step.last);
  search->closure.num_arcs_before = search->base.path.num_arcs;
  WF__TRY(open_closure(search, err));
  search->step.stage = WF__STAGE_CLOSURE;
  return request_round(search, err);
}

static wf_status end_frame(wf__search *search, wf_error *err) {
  wf__path *path = &search->base.path;
  WF__TRY(finish_frame(search, search->step.cutoff, err));
  if (search->step.skip_above < INFINITY)
    WF__TRY(wf__vec_push(&path->frames, (int32_t)path->num_decoded, "a path", err));
  path->num_decoded++;
  search->step.stage = WF__STAGE_FRAME;
  return WF_OK;
}

static wf_status close_frame(wf__search *search, wf_error *err) {
  if (is_closed(search)) return end_frame(search, err);
  wf_status status = close_round(search, err);
  if (status != WF_OK && search->full) status = make_room(search, err);
  if (status != WF_OK) return status;
  return request_round(search, err);
}

wf_status wf__search_go_on(wf__searcher *searcher, wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  const wf__step *step = &search->step;
  searcher->waits = 0;
  while (!searcher->waits) {
    if (step->stage == WF__STAGE_EMIT)
      WF__TRY(emit_frame(search, err));
    else if (step->stage == WF__STAGE_CLOSURE)
      WF__TRY(close_frame(search, err));
    else if (search->died || step->next_frame == step->scores->num_frames)
      return check_rest(search, err);
    else
      WF__TRY(begin_frame(search, err));
  }
  return WF_OK;
}
