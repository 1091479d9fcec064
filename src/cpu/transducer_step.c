/* transducer_step.c - one step of a frame: score, expand, cut, close over epsilons. */
#include <math.h>

#include "cpu/limits.h"
#include "cpu/transducer_search.h"

#define NONE UINT32_MAX

enum {
  NONE_LABEL = -1, /* of a blank */
  FEW = 4          /* entries for each arc of a source, and more: they are looked up */
};

static wf__transducer_set *waiting_for(wf__transducer_search *search, int64_t frame) {
  return &search->waiting[frame % search->num_waiting];
}

/* --- sources ----------------------------------------------------------------------------- */

static int compare_sources(const void *a, const void *b) {
  const wf__transducer_source *x = a, *y = b;
  return wf__transducer_before(&x->token, &y->token) ? -1
                                                     : wf__transducer_before(&y->token, &x->token);
}

/* They are, unless epsilons made some. */
static bool in_order(const wf__transducer_search *search) {
  const wf__transducer_token *tokens = search->now.tokens.data;
  for (uint64_t i = 1; i < search->now.tokens.size; i++)
    if (!wf__transducer_before(&tokens[i - 1], &tokens[i])) return false;
  return true;
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
  search->path.num_tokens += size;
  if (!in_order(search))
    qsort(search->sources.data, size, sizeof *search->sources.data, compare_sources);
  search->sources.size = size < now->most ? size : now->most;
  search->path.num_expanded += search->sources.size;
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

/* Number of the first arc of the run with this label or a larger one; run.end: there is none. */
static uint32_t find_label(const wf__arc_run *run, int32_t label) {
  uint32_t low = run->first, high = run->end;
  if (low == high) return high;
  const int64_t guess = (int64_t)low + label - run->arcs[0].ilabel; /* if all labels are there */
  if (guess > low && guess < high && run->arcs[guess - low].ilabel == label &&
      run->arcs[guess - 1 - low].ilabel < label)
    return (uint32_t)guess;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (run->arcs[middle - run->first].ilabel < label)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* NULL: nothing is known of the arcs, or there are others. */
static const wf__transducer_arcs *known_arcs(const wf__transducer_search *search) {
  return search->graph->added == NULL ? search->arcs : NULL;
}

/* Adds a source to what is known of its row's candidates. */
static void add_need(const wf__transducer_search *search, const wf__transducer_arcs *arcs,
                     const wf__transducer_token *token, wf__row_need *need) {
  const int32_t blank = search->labels.data[search->model->blank];
  if (!wf__transducer_only_blank(search))
    need->token = fminf(need->token, token->cost + (arcs->least_weight + search->least_word));
  if (!arcs->by_label) return;
  const wf__arc_run run = wf__emitting_run(search->graph, token->state);
  for (uint32_t a = find_label(&run, blank); a < run.end; a++) {
    const wf_arc *arc = run.arcs + (a - run.first);
    if (arc->ilabel != blank) break;
    if (arc->olabel == 0) need->blank = fminf(need->blank, token->cost + arc->weight);
  }
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
  const wf__transducer_arcs *arcs = known_arcs(search);
  search->numbers.size = search->needs.size = 0;
  WF__TRY(wf__vec_grow(&search->row_of, num_contexts - search->row_of.size, "contexts", err));
  while (search->row_of.size < num_contexts) search->row_of.data[search->row_of.size++] = NONE;
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__transducer_token *token = &search->sources.data[i].token;
    if (search->row_of.data[token->number] == NONE) {
      search->row_of.data[token->number] = (uint32_t)search->numbers.size;
      WF__TRY(wf__vec_push(&search->numbers, token->number, "contexts", err));
      WF__TRY(wf__vec_push(&search->needs, ((wf__row_need){INFINITY, INFINITY}), "contexts", err));
    }
    if (arcs != NULL)
      add_need(search, arcs, token, &search->needs.data[search->row_of.data[token->number]]);
  }
  return wf__predictions_request(&search->predictions, search->frame, search->numbers.data,
                                 arcs != NULL ? search->needs.data : NULL, best_waiting(search),
                                 search->numbers.size, err);
}

/* --- candidates -------------------------------------------------------------------------- */

static bool is_blank(const wf__transducer_search *search, const wf_arc *arc) {
  return search->graph->columns[arc->ilabel] == search->model->blank;
}

/* The shortest duration that is allowed. */
static int32_t first_duration(const wf__transducer_search *search, bool blank) {
  bool last = search->model->num_durations > 0 && search->step + 1 == search->options.max_symbols;
  return blank || last;
}

static float acoustic_cost(const wf__transducer_search *search, float loglike) {
  return loglike == -INFINITY ? INFINITY : -(search->options.acoustic_scale * loglike);
}

static wf_status offer(wf__transducer_search *search, wf__transducer_token *token, float cost,
                       float loglike, int32_t duration, wf_error *err) {
  token->cost = cost;
  token->loglike = loglike;
  if (search->keeps_lattice) {
    uint64_t first = search->records.size - search->now.tokens.size; /* record of now's first */
    WF__TRY(wf__transducer_note(search, token, (uint32_t)(token->prev - first), duration, err));
  }
  if (duration == 0) return wf__transducer_set_offer(&search->next, token, err);
  return wf__transducer_set_offer(waiting_for(search, search->frame + duration), token, err);
}

/* Offers the candidate with every duration that is allowed. `base`: its cost without the model's.
 */
static wf_status offer_durations(wf__transducer_search *search, wf__transducer_token *token,
                                 float base, bool blank, const wf__score_row *row, wf_error *err) {
  const wf_transducer *model = search->model;
  const float *durations = row->durations;
  int32_t first = first_duration(search, blank),
          end = model->num_durations > 0 ? model->num_durations : first + 1;
  float loglike = token->loglike;
  for (int32_t d = first; d < end; d++) {
    float with = model->num_durations > 0 ? loglike + durations[d] : loglike,
          cost = base + acoustic_cost(search, with);
    if (cost > search->cutoff || cost == INFINITY) continue;
    if (cost < search->best_cost) {
      search->best_cost = cost;
      search->cutoff = add_finite(cost, search->options.beam);
    }
    WF__TRY(offer(search, token, cost, with, d, err));
  }
  return WF_OK;
}

/* Keeps the best candidate of a greedy step, before durations. */
static void keep_greedy(wf__transducer_search *search, const wf__transducer_token *token,
                        float base, const wf__score_row *row) {
  float cost = base + acoustic_cost(search, token->loglike);
  if (!(cost < search->best_cost)) return;
  search->best_cost = cost;
  search->greedy.token = *token;
  search->greedy.token.cost = base;
  search->greedy_row = row;
}

static wf_status offer_greedy(wf__transducer_search *search, wf_error *err) {
  const wf_transducer *model = search->model;
  if (search->best_cost == INFINITY) return WF_OK;
  wf__transducer_token *token = &search->greedy.token;
  bool blank = token->label == NONE_LABEL;
  int32_t first = first_duration(search, blank), best = 0;
  float base = token->cost, loglike = token->loglike;
  if (model->num_durations == 0) best = first;
  const float *durations = search->greedy_row->durations;
  for (int32_t d = 1; d < model->num_durations; d++)
    if (durations[d] > durations[best]) best = d;
  if (best < first) best = first;
  if (model->num_durations > 0) loglike += durations[best];
  return offer(search, token, base + acoustic_cost(search, loglike), loglike, best, err);
}

/* A lower bound of what the model adds to the cost of a token or blank. */
static float least_acoustic(const wf__transducer_search *search, float loglike, float longest) {
  return acoustic_cost(search, search->model->num_durations > 0 && !search->options.greedy
                                   ? loglike + longest
                                   : loglike);
}

static wf_status expand_arc(wf__transducer_search *search, const wf__transducer_source *source,
                            const wf_arc *arc, uint32_t nextstate, uint32_t number, float loglike,
                            float longest, const wf__score_row *row, wf_error *err) {
  const wf_transducer *model = search->model;
  int32_t column = search->graph->columns[arc->ilabel];
  bool blank = column == model->blank;
  if (blank) loglike -= search->options.blank_penalty;
  float least = least_acoustic(search, loglike, longest), cost = source->token.cost + arc->weight,
        limit = search->options.greedy ? FLT_MAX : search->cutoff;
  uint64_t context = source->token.context;
  if (arc->olabel != 0) cost -= search->options.word_score;
  if (arc->olabel != 0 && search->scoring.scorer != NULL) {
    if (!(cost + wf__scorer_least(search->scoring.scorer, arc->olabel) + least <= limit))
      return WF_OK;
    WF__TRY(wf__scoring_add(&search->scoring, arc->olabel, &cost, &context, err));
  }
  if (!(cost + least <= limit)) return WF_OK;
  wf__transducer_token token = {.loglike = loglike,
                                .state = nextstate,
                                .arc = number,
                                .prev = source->number,
                                .predictor = source->token.predictor,
                                .context = context,
                                .number = source->token.number,
                                .label = NONE_LABEL,
                                .frame = (int32_t)search->frame};
  if (!blank) {
    token.predictor = wf__context_after(model, token.predictor, column);
    token.parent = token.number;
    token.number = NONE;
    token.label = column;
  }
  if (!search->options.greedy) return offer_durations(search, &token, cost, blank, row, err);
  keep_greedy(search, &token, cost, row);
  return WF_OK;
}

/* The arcs of one source whose scores are in `entries`. The arcs are by label. */
static wf_status expand_entries(wf__transducer_search *search, const wf__transducer_source *source,
                                const wf__score_row *row, const wf__arc_run *run, float longest,
                                bool only_blank, wf_error *err) {
  for (uint32_t i = 0; i < row->num_entries; i++) {
    const wf__score_entry entry = row->entries[i];
    if (only_blank && entry.column != search->model->blank) continue;
    const int32_t label = search->labels.data[entry.column];
    if (label == 0) continue;
    for (uint32_t a = find_label(run, label); a < run->end; a++) {
      const wf_arc *arc = run->arcs + (a - run->first);
      if (arc->ilabel != label) break;
      WF__TRY(expand_arc(search, source, arc, arc->nextstate + run->shift, a, entry.loglike,
                         longest, row, err));
    }
  }
  return WF_OK;
}

/* The entry of a column; NULL: it has none. */
static const wf__score_entry *find_entry(const wf__score_row *row, int32_t column) {
  uint32_t low = 0, high = row->num_entries;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (row->entries[middle].column < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low < row->num_entries && row->entries[low].column == column ? &row->entries[low] : NULL;
}

/* The arcs of a source with few arcs. */
static wf_status expand_few(wf__transducer_search *search, const wf__transducer_source *source,
                            const wf__score_row *row, const wf__arc_run *run, float longest,
                            bool only_blank, wf_error *err) {
  for (uint32_t a = run->first; a < run->end; a++) {
    const wf_arc *arc = run->arcs + (a - run->first);
    if (only_blank && !is_blank(search, arc)) continue;
    const wf__score_entry *entry = find_entry(row, search->graph->columns[arc->ilabel]);
    if (entry != NULL)
      WF__TRY(expand_arc(search, source, arc, arc->nextstate + run->shift, a, entry->loglike,
                         longest, row, err));
  }
  return WF_OK;
}

/* Sets the scratch row to the entries; or, with `clear`, back to -infinity. */
static wf_status spread(wf__transducer_search *search, const wf__score_row *row, bool clear,
                        wf_error *err) {
  const uint64_t size = (uint64_t)search->model->num_tokens;
  WF__TRY(wf__vec_grow(&search->loglikes, size - search->loglikes.size, "a joiner", err));
  while (search->loglikes.size < size) search->loglikes.data[search->loglikes.size++] = -INFINITY;
  for (uint32_t i = 0; i < row->num_entries; i++)
    search->loglikes.data[row->entries[i].column] = clear ? -INFINITY : row->entries[i].loglike;
  return WF_OK;
}

static wf_status expand_source(wf__transducer_search *search, const wf__transducer_source *source,
                               const wf__score_row *row, wf_error *err) {
  const wf_transducer *model = search->model;
  const bool only_blank = wf__transducer_only_blank(search);
  float longest = 0;
  if (model->num_durations > 0) longest = row->durations[0];
  for (int32_t d = 1; d < model->num_durations; d++)
    if (row->durations[d] > longest) longest = row->durations[d];
  wf__arc_run run = wf__emitting_run(search->graph, source->token.state);
  search->path.num_arcs += run.end - run.first;
  const bool some = row->tokens == NULL;
  const wf__transducer_arcs *arcs = known_arcs(search);
  if (some && arcs != NULL && arcs->by_label && row->num_entries < run.end - run.first)
    return expand_entries(search, source, row, &run, longest, only_blank, err);
  if (some && FEW * (run.end - run.first) < row->num_entries)
    return expand_few(search, source, row, &run, longest, only_blank, err);
  if (some) WF__TRY(spread(search, row, false, err));
  const float *loglikes = some ? search->loglikes.data : row->tokens;
  wf_status status = WF_OK;
  for (uint32_t a = run.first; a < run.end && status == WF_OK; a++) {
    const wf_arc *arc = run.arcs + (a - run.first);
    if (only_blank && !is_blank(search, arc)) continue;
    status = expand_arc(search, source, arc, arc->nextstate + run.shift, a,
                        loglikes[search->graph->columns[arc->ilabel]], longest, row, err);
  }
  if (some) WF__TRY(spread(search, row, true, err));
  return status;
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

wf_status wf__transducer_expand(wf__transducer_search *search, wf_error *err) {
  const wf__score_row *rows;
  wf__transducer_set_clear(&search->next);
  if (search->keeps_lattice) wf__transducer_lattice_begin_step(search);
  WF__TRY(wf__predictions_take(&search->predictions, &rows, err));
  search->best_cost = search->options.greedy ? INFINITY : search->predictions.least_waiting;
  search->cutoff = add_finite(search->best_cost, search->options.beam);
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < search->sources.size && status == WF_OK; i++) {
    const wf__transducer_source *source = &search->sources.data[i];
    status = expand_source(search, source, &rows[search->row_of.data[source->token.number]], err);
  }
  for (uint64_t i = 0; i < search->numbers.size; i++)
    search->row_of.data[search->numbers.data[i]] = NONE;
  if (status == WF_OK && search->options.greedy) status = offer_greedy(search, err);
  float cutoff = search->options.greedy ? FLT_MAX : search->cutoff;
  if (search->keeps_lattice) wf__transducer_lattice_end_step(search, cutoff);
  if (status == WF_OK) status = cut(search, cutoff, err);
  return status == WF_OK ? wf__transducer_begin_closure(search, false, cutoff, err) : status;
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
  if (size > 1) qsort(search->sources.data, size, sizeof *search->sources.data, compare_sources);
  return WF_OK;
}

static bool has_epsilons(const wf_graph *graph, uint32_t state) {
  wf__arc_run run = wf__epsilon_run(graph, state);
  return run.first < run.end;
}

static wf_status relax(wf__transducer_search *search, wf__transducer_set *set,
                       const wf__transducer_source *source, uint32_t a, wf_error *err) {
  wf_arc arc = wf__graph_arc(search->graph, a);
  float cost = source->token.cost + arc.weight;
  const float cutoff = search->cutoff;
  uint64_t context = source->token.context;
  uint32_t to;
  if (arc.olabel != 0) cost -= search->options.word_score;
  if (arc.olabel != 0 && search->scoring.scorer != NULL) {
    if (cost + wf__scorer_least(search->scoring.scorer, arc.olabel) > cutoff) return WF_OK;
    WF__TRY(wf__scoring_add(&search->scoring, arc.olabel, &cost, &context, err));
  }
  if (cost > cutoff || cost == INFINITY) return WF_OK;
  WF__TRY(wf__transducer_set_find(set, arc.nextstate, source->token.predictor, context, &to, err));
  wf__transducer_token *token = &set->tokens.data[to];
  bool queued = token->round == search->round; /* then its cost is from this round */
  if (!(queued ? cost < token->cost : cost < token->cost - search->epsilon_slack)) return WF_OK;
  *token = source->token;
  token->cost = cost;
  token->loglike = 0;
  token->state = arc.nextstate;
  token->arc = a;
  token->prev = source->number;
  token->round = search->round;
  token->context = context;
  return queued || !has_epsilons(search->graph, arc.nextstate)
             ? WF_OK
             : wf__vec_push(&search->frontier, to, "tokens", err);
}

wf_status wf__transducer_begin_closure(wf__transducer_search *search, bool first, float cutoff,
                                       wf_error *err) {
  const wf_graph *graph = search->graph;
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
    wf__arc_run run = wf__epsilon_run(search->graph, source.token.state);
    for (uint32_t a = run.first; a < run.end; a++) WF__TRY(relax(search, set, &source, a, err));
  }
  return WF_OK;
}

wf_status wf__transducer_close(wf__transducer_search *search, wf_error *err) {
  wf__transducer_set *set = search->closes_first ? &search->now : &search->next;
  while (search->frontier.size > 0) {
    if (!search->has_requested) WF__TRY(wf__transducer_request_epsilons(search, set, err));
    search->has_requested = search->scorer_waits;
    if (search->scorer_waits) return WF_OK;
    WF__TRY(relax_frontier(search, set, err));
  }
  return WF_OK;
}
