/* transducer_expand.c - the candidates of a step: what each arc of each source costs with the model
 * and the scorer.
 *
 * Most arcs cost too much, so each is first compared by a lower bound of its cost with the most
 * that can matter: the cutoff and the worst of the first K tokens so far. Both only fall. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/frame/limits.h"
#include "search/transducer/transducer_search.h"

#define NONE UINT32_MAX

enum {
  NONE_LABEL = -1, /* of a blank */
  FEW = 4,         /* arcs for each entry, or entries for each arc, and more: they are looked up */
  LANES = 4        /* of a vector */
};
/* Vectors of GCC and Clang, for any processor. */
typedef float floats __attribute__((vector_size(16)));
typedef int32_t ints __attribute__((vector_size(16)));

/* What is the same for all arcs of a source. */
struct expansion {
  const wf__transducer_source *source;
  const wf__score_row *row;
  wf__arc_run run;
  float longest; /* log-probability of the likeliest duration; 0 if durations do not count */
  float least_word;
  bool only_blank;
};

static bool is_blank(const wf__transducer_search *search, const wf_arc *arc) {
  return search->base.graph->columns[arc->ilabel] == search->model->blank;
}

/* The shortest duration that is allowed. */
static int32_t first_duration(const wf__transducer_search *search, bool blank) {
  bool last =
      search->model->num_durations > 0 && search->step + 1 == search->base.options.max_symbols;
  return blank || last;
}

static float acoustic_cost(const wf__transducer_search *search, float loglike) {
  return loglike == -INFINITY ? INFINITY : -(search->base.options.acoustic_scale * loglike);
}

/* --- limits ------------------------------------------------------------------------------- */

static void lower_cutoff(wf__transducer_search *search, float cost) {
  if (!(cost < search->best_cost)) return;
  search->best_cost = cost;
  search->cutoff = add_finite(cost, search->base.options.beam);
}

/* The most that a candidate can cost which emits a token and matters. A lattice has all up to the
 * cutoff. */
static float token_limit(const wf__transducer_search *search) {
  float bound = search->next.bound;
  if (search->base.options.greedy) return fminf(FLT_MAX, search->best_cost);
  if (search->base.keeps_lattice) return search->cutoff;
  if (search->model->num_durations > 0) {
    const uint32_t own = (uint32_t)(search->frame % search->num_waiting);
    for (uint32_t w = 0; w < search->num_waiting; w++)
      if (w != own && search->waiting[w].bound > bound) bound = search->waiting[w].bound;
  }
  return bound < search->cutoff ? bound : search->cutoff;
}

/* --- one candidate ------------------------------------------------------------------------ */

static wf_status offer(wf__transducer_search *search, wf__transducer_token *token, float cost,
                       float loglike, int32_t duration, wf_error *err) {
  token->cost = cost;
  token->loglike = loglike;
  if (search->base.keeps_lattice) {
    uint64_t first = search->records.size - search->now.tokens.size; /* record of now's first */
    WF__TRY(wf__transducer_note(search, token, (uint32_t)(token->prev - first), duration, err));
  }
  if (duration == 0) return wf__transducer_set_offer(&search->next, token, err);
  return wf__transducer_set_offer(wf__transducer_waiting_for(search, search->frame + duration),
                                  token, err);
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
    lower_cutoff(search, cost);
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

wf_status wf__transducer_offer_greedy(wf__transducer_search *search, wf_error *err) {
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

/* The token that a source's arc leads to, without costs. */
static wf__transducer_token token_after(const wf__transducer_search *search,
                                        const wf__transducer_source *source, const wf__arc_run *run,
                                        uint32_t a, uint64_t context) {
  const wf_arc *arc = run->arcs + (a - run->first);
  wf__transducer_token token = {.state = arc->nextstate + run->shift,
                                .arc = a,
                                .prev = source->number,
                                .predictor = source->token.predictor,
                                .context = context,
                                .number = source->token.number,
                                .label = NONE_LABEL,
                                .frame = (int32_t)search->frame};
  if (is_blank(search, arc)) return token;
  token.label = search->base.graph->columns[arc->ilabel];
  token.predictor = wf__context_after(search->model, token.predictor, token.label);
  token.parent = token.number;
  token.number = NONE;
  return token;
}

static wf_status expand_arc(wf__transducer_search *search, const struct expansion *x, uint32_t a,
                            float loglike, wf_error *err) {
  const wf_transducer *model = search->model;
  const wf__transducer_token *source = &x->source->token;
  const wf_arc *arc = x->run.arcs + (a - x->run.first);
  const int32_t column = search->base.graph->columns[arc->ilabel];
  const bool blank = column == model->blank;
  if (blank) loglike -= search->base.options.blank_penalty;
  const float limit = search->base.options.greedy ? FLT_MAX : search->cutoff,
              least = acoustic_cost(search, loglike + x->longest);
  float cost = source->cost + arc->weight;
  uint64_t context = source->context;
  if (arc->olabel != 0) cost -= search->base.options.word_score;
  if (arc->olabel != 0 && search->base.scoring.scorer != NULL) {
    if (!(cost + wf__scorer_least(search->base.scoring.scorer, arc->olabel) + least <= limit))
      return WF_OK;
    WF__TRY(wf__scoring_add(&search->base.scoring, arc->olabel, &cost, &context, err));
  }
  if (!(cost + least <= limit)) return WF_OK;
  wf__transducer_token token = token_after(search, x->source, &x->run, a, context);
  token.loglike = loglike;
  if (!search->base.options.greedy)
    return offer_durations(search, &token, cost, blank, x->row, err);
  keep_greedy(search, &token, cost, x->row);
  return WF_OK;
}

/* A lower bound of the cost of an arc's candidates. NaN: there are none. */
static inline float least_cost(const wf__transducer_search *search, const struct expansion *x,
                               const wf_arc *arc, float loglike) {
  float cost = x->source->token.cost + arc->weight;
  if (arc->olabel != 0) cost = cost - search->base.options.word_score + x->least_word;
  return cost + -(search->base.options.acoustic_scale * (loglike + x->longest));
}

/* --- the arcs of a source ----------------------------------------------------------------- */

/* The blank arcs among [first, end). */
static wf_status expand_blanks(wf__transducer_search *search, const struct expansion *x,
                               uint32_t first, uint32_t end, float loglike, wf_error *err) {
  for (uint32_t a = first; a < end; a++)
    if (is_blank(search, x->run.arcs + (a - x->run.first)))
      WF__TRY(expand_arc(search, x, a, loglike, err));
  return WF_OK;
}

/* Number of the first arc from `low` on with this label or a larger one; high: there is none. */
static uint32_t find_label(const wf__arc_run *run, uint32_t low, uint32_t high, int32_t label) {
  const wf_arc *arcs = run->arcs;
  const uint32_t first = run->first;
  if (low == high || arcs[low - first].ilabel >= label) return low;
  const int64_t guess = (int64_t)low + label - arcs[low - first].ilabel; /* if all are there */
  if (guess < high && arcs[guess - first].ilabel == label && arcs[guess - 1 - first].ilabel < label)
    return (uint32_t)guess;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (arcs[middle - first].ilabel < label)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The log-probability of a column; -infinity: it has none. */
static float find_entry(const wf__score_row *row, int32_t column) {
  uint32_t low = 0, high = row->num_entries;
  if (row->tokens != NULL) return row->tokens[column];
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (row->entries[middle].column < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low < row->num_entries && row->entries[low].column == column ? row->entries[low].loglike
                                                                      : -INFINITY;
}

/* The arcs of a column among [*at, end), which are by label; then *at is the next arc. */
static inline wf_status expand_column(wf__transducer_search *search, const struct expansion *x,
                                      int32_t column, float loglike, uint32_t end, float *limit,
                                      uint32_t *at, wf_error *err) {
  const int32_t label = search->labels.data[column];
  if (label == 0 || column == search->model->blank) return WF_OK;
  uint32_t a = find_label(&x->run, *at, end, label);
  for (; a < end; a++) {
    const wf_arc *arc = x->run.arcs + (a - x->run.first);
    if (arc->ilabel != label) break;
    if (!(least_cost(search, x, arc, loglike) <= *limit)) continue;
    WF__TRY(expand_arc(search, x, a, loglike, err));
    *limit = token_limit(search);
  }
  *at = a;
  return WF_OK;
}

/* The arcs [first, end), which are by label, whose scores are in `entries`. */
static wf_status expand_entries(wf__transducer_search *search, const struct expansion *x,
                                uint32_t first, uint32_t end, wf_error *err) {
  float limit = token_limit(search);
  for (uint32_t i = 0; i < x->row->num_entries; i++)
    WF__TRY(expand_column(search, x, x->row->entries[i].column, x->row->entries[i].loglike, end,
                          &limit, &first, err));
  return WF_OK;
}

/* Bounds of the arcs of a state with many: what a column's arcs cost without the model, and the
 * limit, with more than what roundings of other sums can differ by. */
struct column_bounds {
  const float *weights; /* [num_tokens] */
  float base, limit;
};
static struct column_bounds bound_columns(const wf__transducer_search *search,
                                          const struct expansion *x, const float *weights,
                                          const wf__least_weights *least) {
  const float limit = token_limit(search),
              word = least->word < INFINITY ? fminf(x->least_word, 0) : 0,
              base = x->source->token.cost + word;
  return (struct column_bounds){weights, base, limit + 1e-3f * (1 + fabsf(limit) + fabsf(base))};
}

/* Which of the LANES columns from `c` on can matter? */
static inline ints find_columns(const wf__transducer_search *search, const struct expansion *x,
                                const struct column_bounds *b, int32_t c) {
  floats weights, loglikes;
  memcpy(&weights, b->weights + c, sizeof weights);
  memcpy(&loglikes, x->row->tokens + c, sizeof loglikes);
  return b->base + weights - search->base.options.acoustic_scale * (loglikes + x->longest) <=
         (floats){0} + b->limit;
}

/* The same for a row of all scores, and a state with many arcs. */
static wf_status expand_dense(wf__transducer_search *search, const struct expansion *x,
                              const struct column_bounds *b, uint32_t first, uint32_t end,
                              wf_error *err) {
  const float *loglikes = x->row->tokens;
  const int32_t size = search->model->num_tokens;
  float limit = token_limit(search);
  int32_t c = 0;
  for (; c + LANES <= size; c += LANES) {
    const ints found = find_columns(search, x, b, c);
    int64_t halves[2];
    memcpy(halves, &found, sizeof halves);
    if ((halves[0] | halves[1]) == 0) continue;
    for (int32_t i = 0; i < LANES; i++)
      if (found[i])
        WF__TRY(expand_column(search, x, c + i, loglikes[c + i], end, &limit, &first, err));
  }
  for (; c < size; c++) WF__TRY(expand_column(search, x, c, loglikes[c], end, &limit, &first, err));
  return WF_OK;
}

/* All arcs in turn. `loglikes`: by column; NULL: they are looked up in the row. */
static wf_status expand_all(wf__transducer_search *search, const struct expansion *x,
                            const float *loglikes, wf_error *err) {
  const int32_t *columns = search->base.graph->columns, blank = search->model->blank;
  float limit = token_limit(search);
  for (uint32_t a = x->run.first; a < x->run.end; a++) {
    const wf_arc *arc = x->run.arcs + (a - x->run.first);
    const int32_t column = columns[arc->ilabel];
    const float loglike = loglikes != NULL ? loglikes[column] : find_entry(x->row, column);
    if (column != blank && !(least_cost(search, x, arc, loglike) <= limit)) continue;
    WF__TRY(expand_arc(search, x, a, loglike, err));
    limit = token_limit(search);
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

/* The arcs of a state of a graph that is by label. */
static wf_status expand_by_label(wf__transducer_search *search, const struct expansion *x,
                                 const float *weights, const wf__least_weights *least, float blank,
                                 wf_error *err) {
  const wf__arc_run *run = &x->run;
  uint32_t first = run->first, end = run->end;
  while (first < end && is_blank(search, run->arcs + (first - run->first))) first++;
  while (first < end && is_blank(search, run->arcs + (end - 1 - run->first))) end--;
  WF__TRY(expand_blanks(search, x, run->first, first, blank, err));
  if (!x->only_blank && x->row->tokens != NULL) {
    const struct column_bounds bounds = bound_columns(search, x, weights, least);
    WF__TRY(expand_dense(search, x, &bounds, first, end, err));
  } else if (!x->only_blank) {
    WF__TRY(expand_entries(search, x, first, end, err));
  }
  return expand_blanks(search, x, end, run->end, blank, err);
}

static wf_status expand_run(wf__transducer_search *search, const struct expansion *x,
                            wf_error *err) {
  const wf__transducer_arcs *arcs = wf__transducer_known_arcs(search);
  const wf__score_row *row = x->row;
  const uint32_t count = x->run.end - x->run.first;
  const float blank = find_entry(row, search->model->blank);
  if (arcs != NULL && arcs->by_label) {
    const wf__least_weights *least = &arcs->least[x->source->token.state];
    const float *weights =
        least->row != NONE ? arcs->by_column.data + least->row * (uint64_t)search->model->num_tokens
                           : NULL;
    if (x->only_blank || (row->tokens != NULL ? weights != NULL : FEW * row->num_entries < count))
      return expand_by_label(search, x, weights, least, blank, err);
  }
  if (x->only_blank) return expand_blanks(search, x, x->run.first, x->run.end, blank, err);
  if (row->tokens != NULL) return expand_all(search, x, row->tokens, err);
  if (FEW * count < row->num_entries) return expand_all(search, x, NULL, err);
  WF__TRY(spread(search, row, false, err));
  WF__TRY(expand_all(search, x, search->loglikes.data, err));
  return spread(search, row, true, err);
}

static float longest_duration(const wf__transducer_search *search, const wf__score_row *row) {
  const int32_t count = search->base.options.greedy ? 0 : search->model->num_durations;
  float longest = count > 0 ? row->durations[0] : 0;
  for (int32_t d = 1; d < count; d++)
    if (row->durations[d] > longest) longest = row->durations[d];
  return longest;
}

wf_status wf__transducer_expand_source(wf__transducer_search *search,
                                       const wf__transducer_source *source,
                                       const wf__score_row *row, wf_error *err) {
  struct expansion x = {
      .source = source,
      .row = row,
      .run = wf__emitting_run(search->base.graph, source->token.state),
      .longest = longest_duration(search, row),
      .least_word = wf__scoring_bounds(&search->base.scoring, source->token.context).least,
      .only_blank = wf__transducer_only_blank(search)};
  search->base.path.num_arcs += x.run.end - x.run.first;
  return expand_run(search, &x, err);
}

/* Blanks are often the best candidates, and the first or last arc of a state: their costs lower the
 * cutoff before others are compared with it. */
void wf__transducer_look_at_blanks(wf__transducer_search *search,
                                   const wf__transducer_source *source, const wf__score_row *row) {
  const wf_transducer *model = search->model;
  const wf__arc_run run = wf__emitting_run(search->base.graph, source->token.state);
  const uint32_t count = run.end - run.first;
  for (uint32_t a = 0; a<count; a += count> 1 ? count - 1 : 1) {
    const wf_arc *arc = &run.arcs[a];
    if (!is_blank(search, arc) || arc->olabel != 0) continue;
    const float loglike = find_entry(row, model->blank) - search->base.options.blank_penalty,
                base = source->token.cost + arc->weight;
    for (int32_t d = 1; d < model->num_durations; d++)
      lower_cutoff(search, base + acoustic_cost(search, loglike + row->durations[d]));
    if (model->num_durations == 0) lower_cutoff(search, base + acoustic_cost(search, loglike));
  }
}

/* --- offers of a device ------------------------------------------------------------------- */

static int by_source(const void *a, const void *b) {
  const wf__device_offer *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return (x->duration > y->duration) - (x->duration < y->duration);
}

/* In the order in which sources are expanded: of equal costs, the first stays. */
static wf_status sort_offers(wf__transducer_search *search, const wf__device_offer *offers,
                             uint32_t count, wf_error *err) {
  search->sorted.size = 0;
  WF__TRY(wf__vec_grow(&search->sorted, count, "tokens", err));
  if (count > 0) memcpy(search->sorted.data, offers, count * sizeof *offers);
  if (count > 1) qsort(search->sorted.data, count, sizeof *offers, by_source);
  search->sorted.size = count;
  return WF_OK;
}

wf_status wf__transducer_take_offers(wf__transducer_search *search, wf_error *err) {
  const uint32_t count = search->offers->duration, numbers = (1u << WF__DEVICE_RANK_BIT) - 1;
  WF__TRY(sort_offers(search, search->offers + 1, count, err));
  search->offers += 1 + (uint64_t)count;
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__arc_run run =
        wf__emitting_run(search->base.graph, search->sources.data[i].token.state);
    search->base.path.num_arcs += run.end - run.first;
  }
  for (uint32_t i = 0; i < count; i++) {
    const wf__device_offer *own = &search->sorted.data[i];
    const wf__transducer_source *source = &search->sources.data[own->at >> WF__DEVICE_RANK_BIT];
    const wf__arc_run run = wf__emitting_run(search->base.graph, source->token.state);
    wf__transducer_token token =
        token_after(search, source, &run, run.first + (own->at & numbers), own->context);
    lower_cutoff(search, own->cost);
    WF__TRY(offer(search, &token, own->cost, own->loglike, (int32_t)own->duration, err));
  }
  return WF_OK;
}
