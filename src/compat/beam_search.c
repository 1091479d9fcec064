/* beam_search.c - a search: its life, and its frames one by one. */
#include "base/config.h"
#include "base/interrupt.h"
#include "base/option_tables.h"
#include "compat/beam.h"
#include "decode/host_scores.h"

/* --- what a token may add -------------------------------------------------------------------- */

/* The language model's part of the score of a word. Infinity: not known. */
static double most_of_lm(const wf_beam_search *s) {
  const wf_beam_searcher *parts = s->searcher;
  const double weight = (double)s->options.lm_weight;
  if (parts->lm_fn != NULL || (parts->lm != NULL && weight < 0)) return INFINITY;
  return parts->lm != NULL ? weight * fmax(0, -parts->lm_least / M_LN10) : 0;
}

/* A hypothesis within a word has the score of its node, in place of which comes that of the next
 * node or the word's. So this is what is added to the score without it. */
static double most_of_words(const wf_beam_search *s) {
  const wf_beam_options *o = &s->options;
  const wf_beam_searcher *parts = s->searcher;
  double most = parts->num_nodes > 0 ? (double)o->word_score : 0;
  if (parts->num_nodes > 0 && o->unknown_words) most = fmax(most, (double)o->unknown_score);
  if (o->token_lm) return most_of_lm(s) + fmax(0, most);
  most += most_of_lm(s);
  const float node = o->lm_weight < 0 ? parts->least_score : parts->most_score;
  return parts->num_nodes > 1 ? fmax(most, (double)o->lm_weight * (double)node) : most;
}

/* --- life ------------------------------------------------------------------------------------ */

wf_status wf__beam_check_options(const wf_beam_searcher *parts, const wf_beam_options *o,
                                 wf_error *err) {
  if (parts->transitions != NULL && !o->asg)
    return wf__fail(err, WF_ERR_ARGUMENT, "there are transitions, but asg is off");
  if (!o->asg && parts->blank < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "silence %d, blank %d (columns from 0 to 2^30)",
                    parts->silence, parts->blank);
  if (o->unknown_words && parts->unknown_word < 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "the unknown word is %d", parts->unknown_word);
  return WF_OK;
}

static wf_status begin(wf_beam_search *s, const wf_beam_input *start, wf_error *err) {
  const wf_beam_searcher *parts = s->searcher;
  const wf_beam_input none = {.lm_state = -1};
  if (start == NULL) start = &none;
  WF__TRY(wf__beam_check_options(parts, &s->options, err));
  if (parts->num_texts > 0) s->options.asg = false; /* no effect */
  s->silence = parts->silence;
  s->blank = s->options.asg ? -1 : parts->blank;
  s->most_gain = (double)parts->most_transition + most_of_words(s);
  s->most_repeats = s->options.token_lm ? parts->most_repeats.tokens : parts->most_repeats.words;
  WF__TRY(wf__histories_init(&s->histories, parts, s->options.sentence_ends, start->lm_state, err));
  if (parts->num_texts > 0)
    WF__TRY(wf__prefixes_init(&s->prefixes, parts, &s->options, &s->histories, start, err));
  const wf__hypothesis first = {.token = s->silence, .word = -1};
  WF__TRY(wf__vec_push(&s->kept, first, "hypotheses", err));
  return wf__vec_push(&s->begins, 0, "frames", err);
}

wf_status wf_beam_search_create(const wf_beam_searcher *searcher, const wf_beam_input *start,
                                const wf_beam_options *options, wf_beam_search **out,
                                wf_error *err) {
  wf__error_clear(err);
  *out = NULL;
  wf_beam_search *s = wf__calloc(1, sizeof *s);
  if (s == NULL) return wf__fail_memory(err, sizeof *s, "a search");
  s->searcher = searcher;
  wf_status status = wf__options_take(wf__beam_table(), options, &s->options, err);
  if (status == WF_OK) status = begin(s, start, err);
  if (status == WF_OK)
    *out = s;
  else
    wf_beam_search_free(s);
  return status;
}

void wf_beam_search_free(wf_beam_search *search) {
  if (search == NULL) return;
  wf__histories_free(&search->histories);
  wf__prefixes_free(&search->prefixes);
  wf__vec_free(&search->kept);
  wf__vec_free(&search->begins);
  wf__vec_free(&search->next);
  wf__map64_free(&search->merged);
  wf__vec_free(&search->keys);
  wf__vec_free(&search->ranks);
  wf__beam_columns_free(&search->columns);
  free(search);
}

/* --- frames ---------------------------------------------------------------------------------- */

static wf_status check_columns(const wf_beam_search *s, int32_t num, wf_error *err) {
  const wf_beam_searcher *parts = s->searcher;
  const int32_t least = s->blank < parts->min_columns ? parts->min_columns : s->blank + 1;
  if (parts->num_texts > 0 && num != parts->num_texts)
    return wf__fail(err, WF_ERR_ARGUMENT, "the scores have %d columns, there are %d tokens", num,
                    parts->num_texts);
  if (num < least)
    return wf__fail(err, WF_ERR_ARGUMENT, "the scores have %d columns, the tokens need %d", num,
                    least);
  if (parts->transitions != NULL && num != parts->num_transition_tokens)
    return wf__fail(err, WF_ERR_ARGUMENT, "the scores have %d columns, the transitions %d tokens",
                    num, parts->num_transition_tokens);
  return WF_OK;
}

wf_status wf__beam_check_whole(const wf_beam_search *s, wf_error *err) {
  return s->failed ? wf__fail(err, WF_ERR_STATE,
                              "an earlier call failed within a frame: begin the utterance again")
                   : WF_OK;
}

static wf_status check_alive(const wf_beam_search *s, wf_error *err) {
  WF__TRY(wf__beam_check_whole(s, err));
  return s->ended ? wf__fail(err, WF_ERR_STATE, "the utterance has ended") : WF_OK;
}

static wf_status step_all(wf_beam_search *s, const wf_scores *scores, wf_error *err) {
  const bool spelled = s->searcher->num_texts > 0;
  if (scores->num_frames > 0)
    WF__TRY(wf__beam_columns_resize(&s->columns, scores->num_columns, err));
  for (int64_t frame = 0; frame < scores->num_frames; frame++) {
    WF__TRY(wf__interrupted_at((uint64_t)frame * 64, err)); /* every 16th frame */
    WF__TRY(wf__score_row_read(&s->columns.row, scores, frame, err));
    wf__beam_begin(s);
    WF__TRY(spelled ? wf__beam_take_texts(s, err) : wf__beam_take_words(s, err));
  }
  return WF_OK;
}

wf_status wf_beam_search_advance(wf_beam_search *search, const wf_scores *scores, wf_error *err) {
  wf__error_clear(err);
  wf_scores host;
  void *copy;
  wf_status status = wf__host_scores(scores, &host, &copy, err);
  if (status == WF_OK) status = check_alive(search, err);
  if (status == WF_OK && host.num_frames > 0) status = check_columns(search, host.num_columns, err);
  if (status == WF_OK) {
    status = step_all(search, &host, err);
    search->failed = status != WF_OK;
  }
  free(copy);
  return status;
}

wf_status wf_beam_search_finish(wf_beam_search *search, wf_error *err) {
  wf__error_clear(err);
  WF__TRY(check_alive(search, err));
  wf__beam_begin(search);
  const wf_status status = search->searcher->num_texts > 0 ? wf__beam_end_texts(search, err)
                                                           : wf__beam_end_words(search, err);
  search->ended = status == WF_OK;
  search->failed = status != WF_OK;
  return status;
}
