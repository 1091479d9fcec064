/* beam_spelled.c - hypotheses take tokens that spell words.
 *
 * Here the history of a hypothesis is its prefix. To make a prefix takes much longer than to look at
 * a column, so columns are chosen for all hypotheses at once, not as in beam_columns.c: the few best
 * tokens come first; they give a cutoff, with which the others are chosen. */
#include "compat/beam.h"
#include "math/cost.h"

/* --- tokens ---------------------------------------------------------------------------------- */

static double score_of(const wf_beam_search *s, const wf__hypothesis *h) {
  return s->prefixes.all.data[h->history].score;
}

static void set_score(wf__hypothesis *h, double of_words) {
  h->lm_score = of_words;
  h->score = h->token_score + of_words;
}

static wf_status take(wf_beam_search *s, const wf__hypothesis *from, uint32_t parent, int32_t token,
                      wf_error *err) {
  const double score = (double)s->columns.row.values[token];
  wf__hypothesis h = *from;
  h.parent = parent;
  h.token = token;
  h.token_score += score;
  h.highest += score;
  if (token != from->token && token != s->blank)
    WF__TRY(wf__prefix_move(&s->prefixes, from->history, token, &h.history, err));
  return wf__beam_add_spelled(s, &h, err);
}

/* All hypotheses take each of the listed tokens. What a token adds to `next` is complete then,
 * since no other token gives the same hypotheses. Equal ones are in the order of tokens, those of
 * the first round first. */
static wf_status expand(wf_beam_search *s, int32_t num_listed, bool is_first, wf_error *err) {
  const uint64_t first = s->next.size, later = is_first ? 0 : (uint64_t)1 << 63;
  const uint64_t frame = wf__beam_newest(s), num = wf__beam_frame_size(s, frame);
  const wf__hypothesis *all = wf__beam_frame(s, frame);
  for (int32_t i = 0; i < num_listed; i++)
    for (uint64_t k = 0; k < num; k++)
      WF__TRY(take(s, &all[k], (uint32_t)k, s->columns.list[i], err));
  WF__TRY(wf__vec_grow(&s->ranks, s->next.size - first, "a frame", err));
  for (uint64_t k = first; k < s->next.size; k++) {
    wf__hypothesis *h = &s->next.data[k];
    set_score(h, score_of(s, h));
    s->ranks.data[s->ranks.size++] =
        (wf__rank){h->score, later | (uint64_t)h->token << 32 | (uint32_t)k, k};
  }
  return WF_OK;
}

/* --- columns that can survive ---------------------------------------------------------------- */

/* What is lower than this is not kept: of `next`, which may still grow. */
static wf_status find_cutoff(wf_beam_search *s, double *out, wf_error *err) {
  const uint64_t num = s->next.size, most = (uint64_t)s->options.beam_size;
  double last = -INFINITY;
  *out = -INFINITY;
  for (uint64_t k = 0; k < num; k++) *out = fmax(*out, s->next.data[k].score);
  *out -= (double)s->options.beam;
  if (num >= most) WF__TRY(wf__beam_nth_best(s, most, &last, err));
  *out = fmax(*out, last);
  return WF_OK;
}

/* A token with a lower score gives no hypothesis that reaches the cutoff, not even if all
 * hypotheses give the same one. -infinity: not known. */
static double least_score(const wf_beam_search *s, double cutoff) {
  const uint64_t frame = wf__beam_newest(s), num = wf__beam_frame_size(s, frame);
  double cost = INFINITY;
  for (uint64_t k = 0; k < num; k++) {
    const wf__hypothesis *h = wf__beam_frame(s, frame) + k;
    cost = wf__log_add(cost, -(h->token_score + s->prefixes.all.data[h->history].most));
  }
  const double rounding = 1e-9 * (1 + fabs(cost) + fabs(cutoff)), least = cutoff + cost - rounding;
  return isfinite(cost) && isfinite(cutoff) ? least : -INFINITY;
}

/* Lists the tokens below `done` that can survive. */
static wf_status list_others(wf_beam_search *s, float done, int32_t *num_listed, wf_error *err) {
  const double allowed = (double)s->options.min_token_log_prob;
  int32_t *list = s->columns.list;
  double cutoff, least = -INFINITY;
  WF__TRY(find_cutoff(s, &cutoff, err));
  if (!s->all_columns) least = least_score(s, cutoff);
  const double hot = s->prefixes.hotword_most;
  const int32_t num = wf__score_row_list(&s->columns.row, fmax(least - hot, allowed), list);
  *num_listed = 0;
  for (int32_t i = 0; i < num; i++) {
    const int32_t token = list[i];
    const float score = s->columns.row.values[token];
    if (score < done && ((double)score >= least || wf__prefix_in_hotword(&s->prefixes, token)))
      list[(*num_listed)++] = token;
  }
  return WF_OK;
}

/* Of the listed tokens, keeps those of at least this score. */
static int32_t keep_high(wf_beam_search *s, int32_t num_listed, float least) {
  int32_t kept = 0, *list = s->columns.list;
  for (int32_t i = 0; i < num_listed; i++)
    if (s->columns.row.values[list[i]] >= least) list[kept++] = list[i];
  return kept;
}

/* The few best tokens come first. They give a cutoff, with which four times as many come, until the
 * rest is few. */
static wf_status expand_all(wf_beam_search *s, wf_error *err) {
  enum { FEW = 8 };
  wf__score_row *row = &s->columns.row;
  const float allowed = s->options.min_token_log_prob;
  float done = allowed;
  s->ranks.size = 0;
  if (row->num_columns > FEW) done = fmaxf(done, wf__score_row_highest(row, FEW));
  int32_t num_listed = wf__score_row_list(row, (double)done, s->columns.list);
  WF__TRY(expand(s, num_listed, true, err));
  for (int64_t most = 4 * FEW; done > allowed; most *= 4) {
    float least = allowed;
    WF__TRY(list_others(s, done, &num_listed, err));
    if (num_listed > most && !s->all_columns) {
      least = wf__score_row_highest(row, (int32_t)most);
      num_listed = keep_high(s, num_listed, least);
    }
    WF__TRY(expand(s, num_listed, false, err));
    done = least;
  }
  return WF_OK;
}

/* --- a frame ---------------------------------------------------------------------------------- */

/* Of the hypotheses of the newest frame with the same key, keeps the first. */
static wf_status keep_first(wf_beam_search *s,
                            uint64_t (*key)(const wf_beam_search *s, const wf__hypothesis *h),
                            wf_error *err) {
  uint64_t kept = s->begins.data[wf__beam_newest(s)];
  wf__map64_clear(&s->prefixes.seen);
  for (uint64_t k = kept; k < s->kept.size; k++) {
    uint32_t at = 0;
    bool fresh = false;
    WF__TRY(wf__map64_insert(&s->prefixes.seen, key(s, &s->kept.data[k]), 0, &at, &fresh, "a frame",
                             err));
    if (fresh) s->kept.data[kept++] = s->kept.data[k];
  }
  s->kept.size = kept;
  return WF_OK;
}

/* Words that no score depends on any more are left out. */
static uint64_t context_of(const wf_beam_search *s, const wf__hypothesis *h) {
  return wf__hash_combine(wf__prefix_context(&s->prefixes, h->history), (uint32_t)h->token) &
         INT64_MAX;
}

/* A text may have two hypotheses: a word has begun after it, or not. */
static uint64_t text_of(const wf_beam_search *s, const wf__hypothesis *h) {
  return s->prefixes.all.data[h->history].history;
}

wf_status wf__beam_take_texts(wf_beam_search *s, wf_error *err) {
  WF__TRY(expand_all(s, err));
  WF__TRY(wf__beam_keep_sorted(s, err));
  return s->options.merge_histories ? keep_first(s, context_of, err) : WF_OK;
}

wf_status wf__beam_end_texts(wf_beam_search *s, wf_error *err) {
  const uint64_t frame = wf__beam_newest(s), num = wf__beam_frame_size(s, frame);
  for (uint64_t k = 0; k < num; k++) {
    wf__hypothesis h = wf__beam_frame(s, frame)[k];
    h.parent = (uint32_t)k;
    h.token = s->silence;
    WF__TRY(wf__prefix_finish(&s->prefixes, h.history, &h.history, err));
    WF__TRY(wf__beam_add_spelled(s, &h, err));
  }
  s->ranks.size = 0;
  WF__TRY(wf__vec_grow(&s->ranks, s->next.size, "a frame", err));
  for (uint64_t k = 0; k < s->next.size; k++) {
    wf__hypothesis *h = &s->next.data[k];
    set_score(h, wf__prefix_final_score(&s->prefixes, h->history));
    s->ranks.data[s->ranks.size++] = (wf__rank){h->score, k, k};
  }
  WF__TRY(wf__beam_keep_sorted(s, err));
  return keep_first(s, text_of, err);
}
