/* lm_columns.c - columns that an n-gram model lets survive, where each column is a word.
 *
 * A state of the model has n-grams for a few words; these columns are marked. All others cost its
 * back-off costs, which are the same for all, and their unigram. So the row of the frame and the
 * unigrams' scores are added once, and a hypothesis looks at the marks and at what is high enough in
 * that sum. The model is not asked for the rest, so the time hardly depends on the number of
 * columns. */
#include "compat/beam.h"
#include "lm/lm.h"

static const double missing = 100 * M_LN10; /* wf__history_cost */

/* --- of a model ------------------------------------------------------------------------------- */

static bool is_word(const wf__automaton *lm, int64_t label) {
  return label >= 0 && label < (int64_t)lm->num_labels && wf__lm_knows(lm, (uint32_t)label);
}

/* No column with this label costs less, but for the back-off costs and n-grams. A word without a
 * probability costs `missing`, whatever the back-off costs are. */
static float cost_of(const wf__automaton *lm, int64_t label, float most_backoff) {
  const uint32_t known = is_word(lm, label) ? (uint32_t)label : lm->unk;
  const float cost = known != WF__LM_NONE ? lm->unigrams[known].cost : INFINITY;
  return cost < INFINITY ? cost : (float)missing - most_backoff;
}

static float most_backoff(const wf__automaton *lm) {
  float most = 0;
  for (uint64_t i = 0; i < lm->num_states; i++)
    if (lm->states[i].backoff_cost < INFINITY) most = fmaxf(most, lm->states[i].backoff_cost);
  return most * (float)(lm->order - 1);
}

/* Words that are unknown to the model are columns of one label. If there were n-grams with it, they
 * would all be marked. */
static bool is_usable(const wf__automaton *lm) {
  for (uint64_t a = 0; a < lm->num_arcs; a++)
    if (lm->arcs[a].word == lm->unk) return false;
  for (uint32_t w = 0; w < lm->num_labels; w++)
    if (is_word(lm, w) && !(lm->unigrams[w].cost > -INFINITY)) return false;
  return true;
}

static void list_columns(const wf_beam_searcher *s, wf__lm_columns *out) {
  const wf__automaton *lm = out->lm;
  for (size_t c = 0; c < s->num_lm_labels; c++)
    if (is_word(lm, s->lm_labels[c])) out->first[s->lm_labels[c]]++;
  for (uint32_t w = 0; w < lm->num_labels; w++) out->first[w + 1] += out->first[w];
  for (size_t c = s->num_lm_labels; c-- > 0;) /* from the end of each label to its first place */
    if (is_word(lm, s->lm_labels[c])) out->columns[--out->first[s->lm_labels[c]]] = (int32_t)c;
}

wf_status wf__lm_columns_init(wf_beam_searcher *s, wf_error *err) {
  wf__lm_columns *out = &s->lm_columns;
  const wf__automaton *lm;
  /* The states of histories are those of the form in which the model was opened. */
  if (s->lm == NULL || s->lm->is_mapped || s->num_nodes > 0 || s->num_texts > 0) return WF_OK;
  WF__TRY(wf__lm_signed_automaton(s->lm, &lm, err));
  if (!is_usable(lm)) return WF_OK;
  const float backoff = most_backoff(lm);
  out->lm = lm;
  out->first = wf__calloc((uint64_t)lm->num_labels + 1, sizeof *out->first);
  out->columns = wf__alloc(s->num_lm_labels, sizeof *out->columns);
  out->costs = wf__alloc(s->num_lm_labels, sizeof *out->costs);
  if (out->first == NULL || out->columns == NULL || out->costs == NULL)
    return wf__fail_memory(err, s->num_lm_labels * sizeof *out->costs, "a language model");
  for (size_t c = 0; c < s->num_lm_labels; c++)
    out->costs[c] = cost_of(lm, s->lm_labels[c], backoff);
  out->other = cost_of(lm, -1, backoff);
  list_columns(s, out);
  return WF_OK;
}

void wf__lm_columns_free(wf__lm_columns *c) {
  free(c->costs);
  free(c->first);
  free(c->columns);
}

/* --- of a frame ------------------------------------------------------------------------------- */

static bool is_used(const wf_beam_search *s) {
  return s->searcher->lm_columns.costs != NULL && isfinite(s->most_gain) && !s->all_columns &&
         s->columns.row.num_columns >= 2 * WF__ROW_BLOCK;
}

/* A column's score with its unigram, or a little more, since look-ups round. */
static inline float sum_of(float score, float cost, float weight) {
  const float sum = score - weight * cost, rounding = 1e-6f;
  const float size = weight * (cost < 0 ? -cost : cost);
  return sum * (sum > 0 ? 1 + rounding : 1 - rounding) + rounding * (1 + size);
}

static void set(wf__score_row *row, int32_t column, float value, float most) {
  row->values[column] = value;
  row->most[column / WF__ROW_BLOCK] = most;
}

wf_status wf__lm_columns_begin(wf_beam_search *s, wf_error *err) {
  const wf__lm_columns *of = &s->searcher->lm_columns;
  wf__score_row *row = &s->columns.lm_row;
  const float *values = s->columns.row.values;
  const float weight = s->options.lm_weight / (float)M_LN10;
  if (!is_used(s)) return WF_OK;
  WF__TRY(wf__score_row_resize(row, s->columns.row.num_columns, err));
  const int32_t num = row->num_columns;
  const int32_t known =
      s->searcher->num_lm_labels < (size_t)num ? (int32_t)s->searcher->num_lm_labels : num;
  for (int32_t c = 0; c < known; c++) row->values[c] = sum_of(values[c], of->costs[c], weight);
  for (int32_t c = known; c < num; c++) row->values[c] = sum_of(values[c], of->other, weight);
  wf__score_row_find_most(row);
  s->columns.marks.size = 0;
  for (uint64_t i = 0; i < s->columns.meeting.size; i++)
    set(row, s->columns.meeting.data[i], INFINITY, INFINITY);
  if (s->silence < num) set(row, s->silence, INFINITY, INFINITY);
  return WF_OK;
}

/* --- of a hypothesis -------------------------------------------------------------------------- */

static wf_status mark(wf__beam_columns *c, int32_t column, wf_error *err) {
  if (column < 0 || column >= c->row.num_columns) return WF_OK;
  const float value = c->lm_row.values[column], most = c->lm_row.most[column / WF__ROW_BLOCK];
  WF__TRY(wf__vec_push(&c->marks, ((wf__lm_mark){column, value, most}), "a frame", err));
  set(&c->lm_row, column, INFINITY, INFINITY);
  return WF_OK;
}

static void clear_marks(wf__beam_columns *c) {
  for (uint64_t i = c->marks.size; i-- > 0;)
    set(&c->lm_row, c->marks.data[i].column, c->marks.data[i].value, c->marks.data[i].most);
  c->marks.size = 0;
}

/* Marks what the state has n-grams for. *few: they are at most `most`. */
static wf_status mark_ngrams(wf_beam_search *s, uint32_t state, uint64_t most, bool *few,
                             double *backoff, wf_error *err) {
  const wf__lm_columns *of = &s->searcher->lm_columns;
  const wf__automaton *lm = of->lm;
  uint64_t num = 0;
  *backoff = 0;
  *few = false;
  for (; state != 0; state = lm->states[state].backoff) {
    const uint64_t first = lm->states[state].first_arc, end = lm->states[state + 1].first_arc;
    num += end - first;
    if (num > most) return WF_OK;
    for (uint64_t a = first; a < end; a++)
      for (uint32_t i = of->first[lm->arcs[a].word]; i < of->first[lm->arcs[a].word + 1]; i++)
        WF__TRY(mark(&s->columns, of->columns[i], err));
    *backoff += (double)lm->states[state].backoff_cost;
  }
  *few = isfinite(*backoff);
  return WF_OK;
}

wf_status wf__lm_columns_turn(wf_beam_search *s, const wf__hypothesis *from, uint32_t place,
                              wf_error *err) {
  wf__beam_columns *c = &s->columns;
  double backoff = 0;
  c->by_lm = false;
  if (!is_used(s)) return WF_OK;
  clear_marks(c);
  const uint32_t state = (uint32_t)s->histories.all.data[from->history].state;
  WF__TRY(mark_ngrams(s, state, (uint64_t)c->row.num_columns / 16, &c->by_lm, &backoff, err));
  if (!c->by_lm) return WF_OK;
  WF__TRY(mark(c, from->token, err)); /* the same token again is no word */
  const double cost = (double)s->options.lm_weight * backoff / M_LN10;
  const double gain = (double)s->searcher->most_transition - s->most_gain - cost;
  const wf__beam_bound *bound = &c->bounds.data[place];
  c->lm_bound = (wf__beam_bound){bound->alone + gain, bound->together + gain};
  const double size = fabs(bound->alone) + fabs(bound->together) + fabs(cost) + s->most_gain;
  c->lm_bound.alone += 1e-6 * (1 + size);
  c->lm_bound.together += 1e-6 * (1 + size);
  return WF_OK;
}
