/* prefixes.c - makes prefixes, and scores them. */
#include "compat/prefixes.h"

#include <math.h>

#include "compat/beam.h"
#include "lm/lm.h"

enum { USUAL_LETTERS = 6 };
enum { NOT_ASKED, NO, YES };

static const wf__history *history_at(const wf__prefixes *p, uint32_t history) {
  return &p->histories->all.data[history];
}

/* --- parts of words --------------------------------------------------------------------------- */

static wf_status spell(wf__prefixes *p, uint32_t part, wf_error *err) {
  size_t size = 0;
  for (uint32_t at = part; at != 0; at = wf__word_trie_at(&p->parts, at)->parent) size++;
  p->letters.size = 0;
  WF__TRY(wf__vec_grow(&p->letters, size + 1, "a word", err));
  p->letters.data[size] = 0;
  for (; part != 0; part = wf__word_trie_at(&p->parts, part)->parent)
    p->letters.data[--size] = (char)wf__word_trie_at(&p->parts, part)->byte;
  return WF_OK;
}

/* Fills the info of a part that `p->letters` spells. */
static void describe(const wf__prefixes *p, uint32_t part, wf__part_info *out) {
  const wf_beam_options *o = p->options;
  const wf_lm *lm = p->searcher->lm;
  const char *text = p->letters.data;
  double letters = wf__count_letters(text);
  uint32_t hot = wf__hotwords_find(&p->hotwords, text, &out->is_hotword);
  if (hot > 0) {
    out->partial = (double)o->hotword_weight * letters / hot;
  } else if (lm != NULL && !wf__word_trie_begins_word(&p->parts, part)) {
    out->is_lost = true;
    out->partial =
        (double)o->unknown_score * (letters > USUAL_LETTERS ? letters / USUAL_LETTERS : 1);
  }
  int64_t label = lm != NULL ? wf_symbols_find(wf_lm_words(lm), text) : -1;
  out->label = label >= 0 && wf_lm_knows(lm, (int32_t)label) ? (int32_t)label : -1;
  out->is_known = out->label >= 0 && wf__word_trie_at(&p->parts, part)->is_word;
}

static wf_status info_of(wf__prefixes *p, uint32_t part, wf__part_info *out, wf_error *err) {
  uint32_t at = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&p->info_of, part, (uint32_t)p->infos.size, &at, &fresh, "words", err));
  if (fresh) {
    wf__part_info info = {0};
    WF__TRY(spell(p, part, err));
    describe(p, part, &info);
    WF__TRY(wf__vec_push(&p->infos, info, "words", err));
  }
  *out = p->infos.data[at];
  return WF_OK;
}

/* --- words ------------------------------------------------------------------------------------ */

/* Adds the scores of a word. */
static void score_word(const wf__prefixes *p, const wf__part_info *word, wf__history *to) {
  const wf_beam_options *o = p->options;
  if (word->is_hotword) to->score += (double)o->hotword_weight;
  if (p->searcher->lm == NULL) return;
  double cost = wf__history_cost(p->searcher->lm, to->state, word->label, &to->state);
  if (!word->is_known) cost -= (double)o->unknown_score * M_LN10;
  to->score += (double)o->word_score - (double)o->lm_weight * cost;
}

/* The history after one more word. */
static wf_status add_word(wf__prefixes *p, uint32_t history, uint32_t word, uint32_t *out,
                          wf_error *err) {
  wf__histories *h = p->histories;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&h->move_of, (uint64_t)history << 32 | word, (uint32_t)h->all.size, out,
                           &fresh, "histories", err));
  if (!fresh) return WF_OK;
  wf__part_info info;
  WF__TRY(info_of(p, word, &info, err));
  wf__history next = h->all.data[history];
  next.before = history;
  next.word = word;
  score_word(p, &info, &next);
  return wf__vec_push(&h->all, next, "histories", err);
}

/* --- prefixes --------------------------------------------------------------------------------- */

/* The most that one more token adds to the score of a history, after which there is a part of a
 * word (NULL: none), but for hotword_most. */
static double most_gain(const wf__prefixes *p, const wf__part_info *part) {
  const wf_beam_options *o = p->options;
  const double next = p->searcher->texts_end || o->unknown_score > 0 ? p->word_most : 0;
  if (part == NULL) return next;
  double ends = part->is_hotword ? (double)o->hotword_weight : 0;
  if (p->searcher->lm != NULL) ends += p->word_gain;
  if (p->searcher->lm != NULL && !part->is_known)
    ends += (double)o->lm_weight * (double)o->unknown_score * M_LN10;
  const double goes_on = part->is_lost ? part->partial : fmax(part->partial, 0);
  return fmax(goes_on, ends) + next;
}

static wf_status prefix_of(wf__prefixes *p, uint32_t history, uint32_t part, bool begun,
                           uint32_t *out, wf_error *err) {
  bool fresh = false;
  WF__TRY(wf__map64_insert(&p->prefix_of, (uint64_t)history << 32 | part << 1 | begun,
                           (uint32_t)p->all.size, out, &fresh, "prefixes", err));
  if (!fresh) return WF_OK;
  wf__part_info info = {0};
  if (part != 0) WF__TRY(info_of(p, part, &info, err));
  const double score = history_at(p, history)->score;
  wf__prefix made = {history, part, begun, score + info.partial,
                     score + most_gain(p, part != 0 ? &info : NULL)};
  return wf__vec_push(&p->all, made, "prefixes", err);
}

static wf_status make_move(wf__prefixes *p, uint32_t prefix, const wf_beam_text *token,
                           uint32_t *to, wf_error *err) {
  uint32_t history = p->all.data[prefix].history, part = p->all.data[prefix].part;
  if (token->starts_word) {
    if (part != 0) WF__TRY(add_word(p, history, part, &history, err));
    part = 0;
  }
  WF__TRY(wf__word_trie_append(&p->parts, part, token->text, &part, err));
  if (token->ends_word && part != 0) {
    WF__TRY(add_word(p, history, part, &history, err));
    part = 0;
  }
  bool begun = part == 0 && token->starts_word && !token->ends_word;
  return prefix_of(p, history, part, begun, to, err);
}

wf_status wf__prefix_move(wf__prefixes *p, uint32_t prefix, int32_t token, uint32_t *to,
                          wf_error *err) {
  const uint64_t key = (uint64_t)prefix << 32 | (uint32_t)token;
  *to = wf__map64_find(&p->moves, key);
  if (*to != WF__MAP64_NONE) return WF_OK;
  WF__TRY(make_move(p, prefix, &p->searcher->texts[token], to, err));
  return wf__map64_insert(&p->moves, key, *to, to, NULL, "prefixes", err);
}

wf_status wf__prefix_finish(wf__prefixes *p, uint32_t prefix, uint32_t *to, wf_error *err) {
  const wf__prefix at = p->all.data[prefix];
  uint32_t history = at.history;
  if (at.part != 0) WF__TRY(add_word(p, history, at.part, &history, err));
  return prefix_of(p, history, 0, at.begun && p->searcher->lm != NULL, to, err);
}

uint64_t wf__prefix_context(const wf__prefixes *p, uint32_t prefix) {
  const wf__prefix *at = &p->all.data[prefix];
  const wf_lm *lm = p->searcher->lm;
  uint64_t hash = wf__mix64(at->part);
  int32_t words = lm != NULL && lm->order > 2 ? lm->order - 1 : 1;
  for (uint32_t history = at->history; history != 0 && words > 0; words--) {
    hash = wf__hash_combine(hash, history_at(p, history)->word);
    history = history_at(p, history)->before;
  }
  return hash;
}

double wf__prefix_final_score(const wf__prefixes *p, uint32_t prefix) {
  const wf__prefix *at = &p->all.data[prefix];
  wf__history end = *history_at(p, at->history);
  const wf_lm *lm = p->searcher->lm;
  if (at->begun) score_word(p, &(wf__part_info){.label = -1}, &end);
  if (lm == NULL || !p->options->sentence_ends) return end.score;
  return end.score - (double)p->options->lm_weight * wf__history_cost(lm, end.state, -1, NULL);
}

bool wf__prefix_in_hotword(wf__prefixes *p, int32_t token) {
  if (p->in_hotword[token] == NOT_ASKED) {
    const char *text = p->searcher->texts[token].text;
    p->in_hotword[token] = *text != 0 && wf__hotwords_have(&p->hotwords, text) ? YES : NO;
  }
  return p->in_hotword[token] == YES;
}

/* --- begin and end ------------------------------------------------------------------------- */

/* The most that scores can gain. */
static void find_most(wf__prefixes *p) {
  const wf_beam_options *o = p->options;
  if (p->hotwords.count > 0) p->hotword_most = fmax((double)o->hotword_weight, 0);
  if (p->searcher->lm == NULL) return;
  const double weight = (double)o->lm_weight;
  p->word_gain = (double)o->word_score - weight * fmin(p->searcher->lm_least, 100 * M_LN10);
  /* Long unknown words may gain any score, and words that cost any amount with a negative weight. */
  if (weight < 0 || o->unknown_score > 0 || isnan(p->word_gain)) p->word_gain = INFINITY;
  p->word_most = fmax(p->word_gain, 0);
}

wf_status wf__prefixes_init(wf__prefixes *p, const wf_beam_searcher *searcher,
                            const wf_beam_options *options, wf__histories *histories,
                            const wf_beam_input *input, wf_error *err) {
  *p = (wf__prefixes){.searcher = searcher, .options = options, .histories = histories};
  const size_t num = (size_t)searcher->num_texts;
  uint32_t prefix = 0;
  p->in_hotword = wf__calloc(num, sizeof *p->in_hotword);
  if (p->in_hotword == NULL) return wf__fail_memory(err, num * sizeof *p->in_hotword, "hotwords");
  WF__TRY(wf__word_trie_init(&p->parts, &searcher->known_words, err));
  WF__TRY(wf__hotwords_init(input, &p->hotwords, err));
  find_most(p);
  return prefix_of(p, 0, 0, false, &prefix, err);
}

void wf__prefixes_free(wf__prefixes *p) {
  free(p->hotwords.words);
  free(p->in_hotword);
  wf__word_trie_free(&p->parts);
  wf__vec_free(&p->all);
  wf__vec_free(&p->infos);
  wf__vec_free(&p->letters);
  wf__map64_free(&p->moves);
  wf__map64_free(&p->prefix_of);
  wf__map64_free(&p->info_of);
  wf__map64_free(&p->seen);
}
