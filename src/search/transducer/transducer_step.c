/* transducer_step.c - one step of a frame: score, expand, cut, close over epsilons. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/frame/limits.h"
#include "search/transducer/transducer_search.h"

#define NONE UINT32_MAX

enum { FEW = 64 };

/* --- sources ----------------------------------------------------------------------------- */

static int compare_sources(const void *a, const void *b) {
  const wf__transducer_source *x = a, *y = b;
  return wf__transducer_before(&x->token, &y->token) ? -1
                                                     : wf__transducer_before(&y->token, &x->token);
}

/* Sorts by rank. Most are in order: epsilons made the others. */
static void sort_sources(wf__transducer_source *sources, uint64_t size) {
  if (size > FEW) {
    qsort(sources, size, sizeof *sources, compare_sources);
    return;
  }
  for (uint64_t i = 1; i < size; i++) {
    uint64_t at = i;
    while (at > 0 && wf__transducer_before(&sources[i].token, &sources[at - 1].token)) at--;
    if (at == i) continue;
    const wf__transducer_source source = sources[i];
    memmove(&sources[at + 1], &sources[at], (i - at) * sizeof source);
    sources[at] = source;
  }
}

wf_status wf__transducer_choose(wf__transducer_search *search, wf_error *err) {
  const wf__transducer_set *now = &search->now;
  uint64_t size = now->tokens.size, base = search->records.size;
  if (base + size >= NONE)
    return wf__fail(err, WF_ERR_LIMIT,
                    "the token history has more than 2^32 records; lower max_hypotheses");
  WF__TRY(wf__vec_grow(&search->records, size, "the token history", err));
  search->sources.size = 0;
  WF__TRY(wf__vec_grow(&search->sources, size, "tokens", err));
  for (uint64_t i = 0; i < size; i++) {
    const wf__transducer_token *token = &now->tokens.data[i];
    uint32_t prev = token->round != 0 ? (uint32_t)base + token->prev : token->prev;
    search->records.data[base + i] =
        (wf__transducer_record){prev, token->arc, token->loglike, token->frame};
    search->sources.data[i] = (wf__transducer_source){*token, (uint32_t)(base + i)};
  }
  search->records.size += size;
  search->base.path.num_tokens += size;
  sort_sources(search->sources.data, size);
  search->sources.size = size < now->most ? size : now->most;
  search->base.path.num_expanded += search->sources.size;
  return WF_OK;
}

wf_status wf__transducer_number(wf__transducer_search *search, wf__transducer_set *set,
                                wf_error *err) {
  for (uint64_t i = 0; i < set->tokens.size; i++) {
    wf__transducer_token *token = &set->tokens.data[i];
    if (token->number == NONE)
      WF__TRY(wf__predictions_number(&search->predictions, token->predictor, token->parent,
                                     token->label, &token->number, err));
  }
  return WF_OK;
}

/* --- the request ------------------------------------------------------------------------- */

/* Adds a source to what is known of its row's candidates. */
static void add_need(const wf__transducer_search *search, const wf__transducer_arcs *arcs,
                     const wf__transducer_token *token, wf__row_need *need) {
  const wf__least_weights *least = &arcs->least[token->state];
  need->blank = fminf(need->blank, token->cost + least->blank);
  if (wf__transducer_only_blank(search)) return;
  const wf__cost_bounds word = wf__scoring_bounds(&search->base.scoring, token->context);
  const bool known = fabsf(word.least) <= WF__MOST_BOUND;
  if (least->token < INFINITY) need->token = fminf(need->token, token->cost + least->token);
  if (least->word < INFINITY)
    need->token = fminf(need->token, known ? token->cost + (least->word + word.least) : -INFINITY);
  if (arcs->all_alike && word.most <= WF__MOST_BOUND)
    need->all =
        fminf(need->all, token->cost + (fminf(least->token, least->word) + fmaxf(word.most, 0)));
}

static float best_waiting(const wf__transducer_search *search) {
  float best = INFINITY;
  for (uint32_t w = 0; w < search->num_waiting; w++)
    for (uint64_t i = 0; i < search->waiting[w].tokens.size; i++)
      if (search->waiting[w].tokens.data[i].cost < best)
        best = search->waiting[w].tokens.data[i].cost;
  return best;
}

/* Gives each distinct context of the sources a row, and requests the rows. */
wf_status wf__transducer_request(wf__transducer_search *search, wf_error *err) {
  uint64_t num_contexts = search->predictions.contexts.size;
  const wf__transducer_arcs *arcs =
      search->predictions.on_device ? wf__transducer_known_arcs(search) : NULL;
  search->numbers.size = search->needs.size = 0;
  WF__TRY(wf__vec_grow(&search->row_of, num_contexts - search->row_of.size, "contexts", err));
  while (search->row_of.size < num_contexts) search->row_of.data[search->row_of.size++] = NONE;
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__transducer_token *token = &search->sources.data[i].token;
    if (search->row_of.data[token->number] == NONE) {
      search->row_of.data[token->number] = (uint32_t)search->numbers.size;
      WF__TRY(wf__vec_push(&search->numbers, token->number, "contexts", err));
      WF__TRY(wf__vec_push(&search->needs, ((wf__row_need){INFINITY, INFINITY, INFINITY}),
                           "contexts", err));
    }
    if (arcs != NULL)
      add_need(search, arcs, token, &search->needs.data[search->row_of.data[token->number]]);
  }
  return wf__predictions_request(&search->predictions, search->frame, search->numbers.data,
                                 arcs != NULL ? search->needs.data : NULL, best_waiting(search),
                                 search->numbers.size, err);
}

/* --- the step ---------------------------------------------------------------------------- */

static wf_status cut(wf__transducer_search *search, float cutoff, wf_error *err) {
  wf__transducer_set_cut(&search->next, cutoff);
  WF__TRY(wf__transducer_number(search, &search->next, err));
  for (uint32_t w = 0; w < search->num_waiting; w++) {
    wf__transducer_set_cut(&search->waiting[w], cutoff);
    WF__TRY(wf__transducer_number(search, &search->waiting[w], err));
  }
  return WF_OK;
}

static void begin_cutoff(wf__transducer_search *search, float least_waiting) {
  search->best_cost = search->base.options.greedy ? INFINITY : least_waiting;
  search->cutoff = add_finite(search->best_cost, search->base.options.beam);
}

/* Offers the candidates of all sources, with the answer to the request. */
static wf_status expand_sources(wf__transducer_search *search, wf_error *err) {
  const wf__score_row *rows;
  WF__TRY(wf__predictions_take(&search->predictions, &rows, err));
  begin_cutoff(search, search->predictions.least_waiting);
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < search->sources.size && !search->base.options.greedy; i++) {
    const wf__transducer_source *source = &search->sources.data[i];
    wf__transducer_look_at_blanks(search, source, &rows[search->row_of.data[source->token.number]]);
  }
  for (uint64_t i = 0; i < search->sources.size && status == WF_OK; i++) {
    const wf__transducer_source *source = &search->sources.data[i];
    status = wf__transducer_expand_source(search, source,
                                          &rows[search->row_of.data[source->token.number]], err);
  }
  for (uint64_t i = 0; i < search->numbers.size; i++)
    search->row_of.data[search->numbers.data[i]] = NONE;
  return status == WF_OK && search->base.options.greedy ? wf__transducer_offer_greedy(search, err)
                                                        : status;
}

static wf_status take_offers(wf__transducer_search *search, wf_error *err) {
  begin_cutoff(search, best_waiting(search));
  return wf__transducer_take_offers(search, err);
}

wf_status wf__transducer_expand(wf__transducer_search *search, wf_error *err) {
  wf__transducer_set_clear(&search->next);
  if (search->base.keeps_lattice) wf__transducer_lattice_begin_step(search);
  WF__TRY(search->offers != NULL ? take_offers(search, err) : expand_sources(search, err));
  float cutoff = search->base.options.greedy ? FLT_MAX : search->cutoff;
  if (search->base.keeps_lattice) wf__transducer_lattice_end_step(search, cutoff);
  WF__TRY(cut(search, cutoff, err));
  return wf__transducer_begin_closure(search, false, cutoff, err);
}

/* --- epsilon arcs ------------------------------------------------------------------------ */

/* The tokens of the frontier as they are now, by rank. */
static wf_status take_frontier(wf__transducer_search *search, const wf__transducer_set *set,
                               wf_error *err) {
  uint64_t size = search->frontier.size;
  search->sources.size = 0;
  WF__TRY(wf__vec_grow(&search->sources, size, "tokens", err));
  for (uint64_t i = 0; i < size; i++) {
    uint32_t number = search->frontier.data[i];
    search->sources.data[i] = (wf__transducer_source){set->tokens.data[number], number};
  }
  search->sources.size = size;
  search->frontier.size = 0;
  sort_sources(search->sources.data, size);
  return WF_OK;
}

static bool has_epsilons(const wf_graph *graph, uint32_t state) {
  wf__arc_run run = wf__epsilon_run(graph, state);
  return run.first < run.end;
}

static wf_status relax(wf__transducer_search *search, wf__transducer_set *set,
                       const wf__transducer_source *source, uint32_t a, wf_error *err) {
  wf_arc arc = wf__graph_arc(search->base.graph, a);
  float cost = source->token.cost + arc.weight;
  const float cutoff = search->cutoff;
  uint64_t context = source->token.context;
  uint32_t to;
  if (arc.olabel != 0) cost -= search->base.options.word_score;
  if (arc.olabel != 0 && search->base.scoring.scorer != NULL) {
    if (cost + wf__scorer_least(search->base.scoring.scorer, arc.olabel) > cutoff) return WF_OK;
    WF__TRY(wf__scoring_add(&search->base.scoring, arc.olabel, &cost, &context, err));
  }
  if (cost > cutoff || cost == INFINITY) return WF_OK;
  WF__TRY(wf__transducer_set_find(set, arc.nextstate, source->token.predictor, context, &to, err));
  wf__transducer_token *token = &set->tokens.data[to];
  bool queued = token->round == search->round; /* then its cost is from this round */
  if (!(queued ? cost < token->cost : cost < token->cost - search->base.epsilon_slack))
    return WF_OK;
  *token = source->token;
  token->cost = cost;
  token->loglike = 0;
  token->state = arc.nextstate;
  token->arc = a;
  token->prev = source->number;
  token->round = search->round;
  token->context = context;
  return queued || !has_epsilons(search->base.graph, arc.nextstate)
             ? WF_OK
             : wf__vec_push(&search->frontier, to, "tokens", err);
}

wf_status wf__transducer_begin_closure(wf__transducer_search *search, bool first, float cutoff,
                                       wf_error *err) {
  const wf_graph *graph = search->base.graph;
  wf__transducer_set *set = first ? &search->now : &search->next;
  search->stage = WF__TRANSDUCER_CLOSURE;
  search->closes_first = first;
  search->cutoff = cutoff;
  search->round = 0;
  search->has_requested = false;
  search->frontier.size = 0;
  for (uint64_t i = 0; i < set->tokens.size && graph->has_epsilons; i++) {
    set->tokens.data[i].round = 0;
    if (has_epsilons(graph, set->tokens.data[i].state))
      WF__TRY(wf__vec_push(&search->frontier, (uint32_t)i, "tokens", err));
  }
  return WF_OK;
}

static wf_status relax_frontier(wf__transducer_search *search, wf__transducer_set *set,
                                wf_error *err) {
  if (++search->round > set->tokens.size) return wf__fail_cycle(err);
  WF__TRY(take_frontier(search, set, err));
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__transducer_source source = search->sources.data[i];
    wf__arc_run run = wf__epsilon_run(search->base.graph, source.token.state);
    for (uint32_t a = run.first; a < run.end; a++) WF__TRY(relax(search, set, &source, a, err));
  }
  return WF_OK;
}

wf_status wf__transducer_close(wf__transducer_search *search, wf_error *err) {
  wf__transducer_set *set = search->closes_first ? &search->now : &search->next;
  while (search->frontier.size > 0) {
    if (!search->has_requested) WF__TRY(wf__transducer_request_epsilons(search, set, err));
    search->has_requested = search->base.waits != 0;
    if (search->base.waits) return WF_OK;
    WF__TRY(relax_frontier(search, set, err));
  }
  return WF_OK;
}
