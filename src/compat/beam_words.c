/* beam_words.c - hypotheses take tokens along the trie of a lexicon, or, without one, any tokens. */
#include "compat/beam.h"

/* Too low even if the language model says probability 1. Then it need not be asked. */
static bool hopeless(const wf_beam_search *s, double score) {
  return s->searcher->lm_fn == NULL && s->options.lm_weight >= 0 && wf__beam_too_low(s, score);
}

static void add_lm(const wf_beam_search *s, wf__hypothesis *h, double score) {
  h->lm_score += score;
  h->score += (double)s->options.lm_weight * score;
}

/* Adds a hypothesis whose history goes on with a word. */
static wf_status add_after(wf_beam_search *s, wf__hypothesis *h, int32_t word, wf_error *err) {
  if (wf__beam_too_low(s, h->score)) return WF_OK;
  WF__TRY(wf__history_append(&s->histories, h->history, word, &h->history, err));
  return wf__beam_add(s, h, err);
}

static wf_status take_blank(wf_beam_search *s, const wf__hypothesis *from, uint32_t parent,
                            wf_error *err) {
  wf__hypothesis h = wf__beam_step(s, from, parent, s->blank);
  h.after_blank = true;
  return wf__beam_add(s, &h, err);
}

/* --- with a lexicon ------------------------------------------------------------------------- */

/* A word ends. expected: what stood for its score so far. */
static wf_status end_word(wf_beam_search *s, const wf__hypothesis *at, int32_t word,
                          double word_score, double expected, wf_error *err) {
  const wf_beam_options *o = &s->options;
  wf__hypothesis h = *at;
  if (!o->token_lm && hopeless(s, h.score + word_score - fmin(expected, 0) * (double)o->lm_weight))
    return WF_OK;
  if (!o->token_lm) {
    double score = 0;
    WF__TRY(wf__history_score(&s->histories, h.history, word, &score, err));
    add_lm(s, &h, score - expected);
  }
  h.node = 0;
  h.word = word;
  h.score += word_score;
  return o->token_lm ? wf__beam_add(s, &h, err) : add_after(s, &h, word, err);
}

/* The next token of a word. */
static wf_status enter(wf_beam_search *s, const wf__hypothesis *from, uint32_t parent,
                       uint32_t node, wf_error *err) {
  const wf_beam_searcher *parts = s->searcher;
  const wf_beam_options *o = &s->options;
  const wf_beam_node *to = &parts->nodes[node];
  /* In CTC, a token again needs a blank in between. */
  bool same = to->token == from->token, again = same && !o->asg && !from->after_blank;
  if (again && o->hold_word_ends) return WF_OK;
  double expected = from->node != 0 ? (double)parts->nodes[from->node].score : 0;
  wf__hypothesis h = wf__beam_step(s, from, parent, to->token);
  if (o->token_lm) {
    double score = 0;
    WF__TRY(wf__history_score(&s->histories, h.history, to->token, &score, err));
    WF__TRY(wf__history_append(&s->histories, h.history, to->token, &h.history, err));
    add_lm(s, &h, score);
  }
  if (to->num_children > 0 && !again) {
    wf__hypothesis within = h;
    within.node = node;
    if (!o->token_lm) add_lm(s, &within, (double)to->score - expected);
    WF__TRY(wf__beam_add(s, &within, err));
  }
  bool may_end = !same || from->node != 0 || o->hold_word_ends;
  for (uint32_t i = 0; i < to->num_words && may_end; i++)
    WF__TRY(
        end_word(s, &h, parts->words[to->first_word + i], (double)o->word_score, expected, err));
  if (to->num_words == 0 && o->unknown_words)
    WF__TRY(end_word(s, &h, parts->unknown_word, (double)o->unknown_score, expected, err));
  return WF_OK;
}

static wf_status expand_in_trie(wf_beam_search *s, const wf__hypothesis *from, uint32_t parent,
                                wf_error *err) {
  bool asg = s->options.asg;
  for (uint32_t at = 0, node; (node = wf__beam_next_child(s, from, &at)) != 0;)
    WF__TRY(enter(s, from, parent, node, err));
  wf__hypothesis h;
  if (from->node == 0) { /* silence */
    h = wf__beam_step(s, from, parent, s->silence);
    WF__TRY(wf__beam_add(s, &h, err));
  }
  bool may_hold = from->node != 0 || (s->options.hold_word_ends && from->token != s->silence);
  if (may_hold && from->token != s->blank) {
    h = wf__beam_step(s, from, parent, from->token);
    WF__TRY(wf__beam_add(s, &h, err));
  }
  return asg ? WF_OK : take_blank(s, from, parent, err);
}

/* --- without ------------------------------------------------------------------------------- */

static wf_status expand_freely(wf_beam_search *s, const wf__hypothesis *from, uint32_t parent,
                               wf_error *err) {
  bool asg = s->options.asg;
  if (!asg && wf__beam_is_chosen(s, s->blank)) WF__TRY(take_blank(s, from, parent, err));
  for (int32_t at = 0, token; (token = wf__beam_next_column(s, from, &at)) >= 0;) {
    if (!asg && token == s->blank) continue;
    if (hopeless(s, from->score +
                        (wf__beam_emission(s, from, token) + wf__beam_silence_bonus(s, token))))
      continue;
    wf__hypothesis h = wf__beam_step(s, from, parent, token);
    if (token != from->token || (!asg && from->after_blank)) {
      double score = 0;
      WF__TRY(wf__history_score(&s->histories, h.history, token, &score, err));
      add_lm(s, &h, score);
      WF__TRY(add_after(s, &h, token, err));
    } else {
      WF__TRY(wf__beam_add(s, &h, err));
    }
  }
  return WF_OK;
}

/* --- a frame -------------------------------------------------------------------------------- */

/* Does the blank alone count in this frame? */
static bool skips(const wf_beam_search *s) {
  const wf_beam_options *o = &s->options;
  return o->blank_skip > 0 && !o->asg &&
         (double)s->columns.row.values[s->blank] >= log((double)o->blank_skip);
}

wf_status wf__beam_take_words(wf_beam_search *s, wf_error *err) {
  const bool blank_alone = skips(s);
  if (!blank_alone) WF__TRY(wf__beam_columns_begin(s, err));
  uint64_t frame = wf__beam_newest(s), num = wf__beam_frame_size(s, frame);
  for (uint64_t k = 0; k < num; k++) {
    const wf__hypothesis *from = wf__beam_frame(s, frame) + k;
    if (!blank_alone) WF__TRY(wf__beam_columns_turn(s, from, (uint32_t)k, err));
    WF__TRY(blank_alone                  ? take_blank(s, from, (uint32_t)k, err)
            : s->searcher->num_nodes > 0 ? expand_in_trie(s, from, (uint32_t)k, err)
                                         : expand_freely(s, from, (uint32_t)k, err));
  }
  return wf__beam_keep(s, err);
}

/* Of equal hypotheses, those that come from the first ones of the frame before are first. */
wf_status wf__beam_end_words(wf_beam_search *s, wf_error *err) {
  uint64_t frame = wf__beam_newest(s), num = wf__beam_frame_size(s, frame);
  bool complete = false;
  for (uint64_t k = 0; k < num; k++) complete = complete || wf__beam_frame(s, frame)[k].node == 0;
  for (uint64_t k = 0; k < num; k++) {
    wf__hypothesis h = wf__beam_frame(s, frame)[k];
    if (complete && h.node != 0) continue;
    double score = 0;
    if (s->options.sentence_ends)
      WF__TRY(wf__history_finish(&s->histories, h.history, &score, err));
    add_lm(s, &h, score);
    h.parent = (uint32_t)k;
    h.token = s->silence;
    h.word = -1;
    h.after_blank = false;
    WF__TRY(wf__beam_add(s, &h, err));
  }
  s->ranks.size = 0;
  WF__TRY(wf__vec_grow(&s->ranks, s->next.size, "a frame", err));
  for (uint64_t k = 0; k < s->next.size; k++)
    s->ranks.data[s->ranks.size++] = (wf__rank){s->next.data[k].score, s->next.data[k].parent, k};
  return wf__beam_keep_sorted(s, err);
}
