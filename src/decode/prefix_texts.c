/* prefix_texts.c - makes texts and prefixes, and scores them. */
#include "decode/prefix_texts.h"

#include <math.h>

#include "lm/lm.h"

static const double missing_unk = 100; /* -log10 P of unknown words if the model has no <unk>, as in
                                          KenLM */
enum { USUAL_LETTERS = 6 };

/* Length of the part in bytes. */
static size_t part_size(const wf__prefix_texts *t, uint32_t part) {
  size_t size = 0;
  for (; part != 0; part = wf__word_trie_at(&t->parts, part)->parent) size++;
  return size;
}

static void spell_part(const wf__prefix_texts *t, uint32_t part, size_t size, char *out) {
  for (out[size] = 0; part != 0; part = wf__word_trie_at(&t->parts, part)->parent)
    out[--size] = (char)wf__word_trie_at(&t->parts, part)->byte;
}

/* Fills the info of a part that `t->letters` spells. */
static void describe(const wf__prefix_texts *t, uint32_t part, wf__part_info *out) {
  const wf_prefix_options *o = t->options;
  const wf_lm *lm = t->searcher->lm;
  const char *text = t->letters.data;
  double letters = wf__count_letters(text);
  uint32_t hot = wf__hotwords_find(&t->hotwords, text, &out->is_hotword);
  if (hot > 0) {
    out->partial = (double)o->hotword_weight * letters / hot;
  } else if (lm != NULL && !wf__word_trie_begins_word(&t->parts, part)) {
    out->is_lost = true;
    out->partial =
        (double)o->unknown_score * (letters > USUAL_LETTERS ? letters / USUAL_LETTERS : 1);
  }
  int64_t label = lm != NULL ? wf_symbols_find(wf_lm_words(lm), text) : -1;
  out->label = label >= 0 && wf_lm_knows(lm, (int32_t)label) ? (int32_t)label : -1;
  out->is_known = out->label >= 0 && wf__word_trie_at(&t->parts, part)->is_word;
}

static wf_status info_of(wf__prefix_texts *t, uint32_t part, wf__part_info *out, wf_error *err) {
  uint32_t at = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&t->info_of, part, (uint32_t)t->infos.size, &at, &fresh, "words", err));
  if (fresh) {
    size_t size = part_size(t, part);
    t->letters.size = 0;
    WF__TRY(wf__vec_grow(&t->letters, size + 1, "a word", err));
    spell_part(t, part, size, t->letters.data);
    wf__part_info info = {0};
    describe(t, part, &info);
    WF__TRY(wf__vec_push(&t->infos, info, "words", err));
  }
  *out = t->infos.data[at];
  return WF_OK;
}

/* Adds the scores of a word. */
static void score_word(const wf__prefix_texts *t, const wf__part_info *word, wf__text *text) {
  const wf_prefix_options *o = t->options;
  const wf_lm *lm = t->searcher->lm;
  if (word->is_hotword) text->score += (double)o->hotword_weight;
  if (lm == NULL) return;
  double cost = (double)wf_lm_step(lm, text->lm_state, word->label, &text->lm_state, NULL);
  if (cost == INFINITY) cost = missing_unk * M_LN10;
  if (!word->is_known) cost -= (double)o->unknown_score * M_LN10;
  text->score += (double)o->word_score - (double)o->lm_weight * cost;
}

/* The text after one more word. */
static wf_status add_word(wf__prefix_texts *t, uint32_t text, uint32_t word, uint32_t *out,
                          wf_error *err) {
  bool fresh = false;
  WF__TRY(wf__map64_insert(&t->text_of, (uint64_t)text << 32 | word, (uint32_t)t->texts.size, out,
                           &fresh, "texts", err));
  if (!fresh) return WF_OK;
  wf__part_info info;
  WF__TRY(info_of(t, word, &info, err));
  wf__text next = t->texts.data[text];
  next.before = text;
  next.word = word;
  next.num_words++;
  score_word(t, &info, &next);
  return wf__vec_push(&t->texts, next, "texts", err);
}

/* The most that one more token adds to the score of a text, after which there is a part of a word
 * (NULL: none), but for hotword_most. */
static double most_gain(const wf__prefix_texts *t, const wf__part_info *part) {
  const wf_prefix_options *o = t->options;
  const double next = t->searcher->texts_end || o->unknown_score > 0 ? t->word_most : 0;
  if (part == NULL) return next;
  double ends = part->is_hotword ? (double)o->hotword_weight : 0;
  if (t->searcher->lm != NULL) ends += t->word_gain;
  if (t->searcher->lm != NULL && !part->is_known)
    ends += (double)o->lm_weight * (double)o->unknown_score * M_LN10;
  const double goes_on = part->is_lost ? part->partial : fmax(part->partial, 0);
  return fmax(goes_on, ends) + next;
}

static wf_status prefix_of(wf__prefix_texts *t, uint32_t text, uint32_t part, bool begun,
                           uint32_t *out, wf_error *err) {
  bool fresh = false;
  WF__TRY(wf__map64_insert(&t->prefix_of, (uint64_t)text << 32 | part << 1 | begun,
                           (uint32_t)t->prefixes.size, out, &fresh, "prefixes", err));
  if (!fresh) return WF_OK;
  wf__part_info info = {0};
  if (part != 0) WF__TRY(info_of(t, part, &info, err));
  const double score = t->texts.data[text].score;
  wf__prefix made = {text, part, begun, score + info.partial,
                     score + most_gain(t, part != 0 ? &info : NULL)};
  return wf__vec_push(&t->prefixes, made, "prefixes", err);
}

wf_status wf__prefix_finish(wf__prefix_texts *t, uint32_t prefix, uint32_t *text, wf_error *err) {
  wf__prefix at = t->prefixes.data[prefix];
  *text = at.text;
  return at.part != 0 ? add_word(t, at.text, at.part, text, err) : WF_OK;
}

wf_status wf__prefix_move(wf__prefix_texts *t, uint32_t prefix, const wf_prefix_token *token,
                          uint32_t *to, wf_error *err) {
  uint32_t text = t->prefixes.data[prefix].text, part = t->prefixes.data[prefix].part;
  if (token->starts_word) {
    WF__TRY(wf__prefix_finish(t, prefix, &text, err));
    part = 0;
  }
  WF__TRY(wf__word_trie_append(&t->parts, part, token->text, &part, err));
  if (token->ends_word && part != 0) {
    WF__TRY(add_word(t, text, part, &text, err));
    part = 0;
  }
  bool begun = part == 0 && token->starts_word && !token->ends_word;
  return prefix_of(t, text, part, begun, to, err);
}

uint64_t wf__prefix_history(const wf__prefix_texts *t, uint32_t prefix) {
  const wf__prefix *at = &t->prefixes.data[prefix];
  uint64_t hash = wf__mix64(at->part);
  int32_t words =
      t->searcher->lm != NULL && t->searcher->lm->order > 2 ? t->searcher->lm->order - 1 : 1;
  for (uint32_t text = at->text; text != 0 && words > 0; words--) {
    hash = wf__hash_combine(hash, t->texts.data[text].word);
    text = t->texts.data[text].before;
  }
  return hash;
}

double wf__text_score(const wf__prefix_texts *t, uint32_t text, bool begun) {
  wf__text at = t->texts.data[text];
  const wf_lm *lm = t->searcher->lm;
  if (begun) score_word(t, &(wf__part_info){.label = -1}, &at);
  if (lm == NULL || !t->options->sentence_ends) return at.score;
  double cost = (double)wf_lm_final(lm, at.lm_state, NULL);
  return at.score -
         (double)t->options->lm_weight * (cost == INFINITY ? missing_unk * M_LN10 : cost);
}

const char *wf__text_word(const wf__prefix_texts *t, uint32_t text, wf__arena *memory) {
  uint32_t word = t->texts.data[text].word;
  size_t size = part_size(t, word);
  char *out = wf__arena_alloc(memory, size + 1);
  if (out != NULL) spell_part(t, word, size, out);
  return out;
}

/* --- begin and end ------------------------------------------------------------------------- */

/* The most that scores can gain. */
static void find_most(wf__prefix_texts *t) {
  const wf_prefix_options *o = t->options;
  if (t->hotwords.count > 0) t->hotword_most = fmax((double)o->hotword_weight, 0);
  if (t->searcher->lm == NULL) return;
  const double weight = (double)o->lm_weight;
  t->word_gain = (double)o->word_score - weight * fmin(t->searcher->lm_least, missing_unk * M_LN10);
  /* Long unknown words may gain any score, and words that cost any amount with a negative weight. */
  if (weight < 0 || o->unknown_score > 0 || isnan(t->word_gain)) t->word_gain = INFINITY;
  t->word_most = fmax(t->word_gain, 0);
}

/* The state of the language model at the start. The empty history is state 0. */
static wf_status start_state(const wf__prefix_texts *t, int64_t given, uint32_t *out,
                             wf_error *err) {
  const wf_lm *lm = t->searcher->lm;
  if (given < -1 || (given >= 0 && (lm == NULL || (uint64_t)given >= lm->num_states)))
    return wf__fail(err, WF_ERR_ARGUMENT, "the language model has no state %lld", (long long)given);
  if (lm != NULL)
    *out = given >= 0 ? (uint32_t)given : t->options->sentence_ends ? wf_lm_start(lm) : 0;
  return WF_OK;
}

wf_status wf__prefix_texts_init(wf__prefix_texts *t, const wf_prefix_searcher *searcher,
                                const wf_prefix_options *options, const wf_prefix_input *input,
                                wf_error *err) {
  *t = (wf__prefix_texts){.searcher = searcher, .options = options};
  wf__text empty = {0};
  uint32_t prefix = 0;
  WF__TRY(wf__word_trie_init(&t->parts, &searcher->words, err));
  WF__TRY(wf__hotwords_init(input, &t->hotwords, err));
  find_most(t);
  WF__TRY(start_state(t, input->lm_state, &empty.lm_state, err));
  WF__TRY(wf__vec_push(&t->texts, empty, "texts", err));
  return prefix_of(t, 0, 0, false, &prefix, err);
}

void wf__prefix_texts_free(wf__prefix_texts *t) {
  free(t->hotwords.words);
  wf__word_trie_free(&t->parts);
  wf__vec_free(&t->texts);
  wf__vec_free(&t->prefixes);
  wf__vec_free(&t->infos);
  wf__vec_free(&t->letters);
  wf__map64_free(&t->text_of);
  wf__map64_free(&t->prefix_of);
  wf__map64_free(&t->info_of);
}
