/* boost_texts.c - boosts of phrases that are given as texts.
 *
 *   "new york"  --words of the graph-->  new york
 *               --the graph's words are tokens-->  ▁new ▁york, ▁ne w ▁york, ...
 *
 * The search may find a word under any of its spellings, so each of them gets the whole boost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/config.h"
#include "base/memory.h"
#include "fst/symbols.h"
#include "graph/lexicon.h"
#include "graph/token_bytes.h"
#include "graph/token_joiner.h"
#include "graph/token_marks.h"
#include "scorer/scorer.h"

enum { MOST_SPELLINGS = 100 }; /* of a phrase */
enum { MOST_WORDS = 1000 };    /* of a phrase */

/* A phrase to spell. */
struct unread {
  size_t phrase;
  bool has_names; /* it was read as names of the table, too */
};

struct reading {
  const wf_phrase_list *list;
  const wf_token_joiner *joiner; /* NULL: the graph's words are no tokens */
  wf_token_joiner *own_joiner;
  bool marks_start, marks_rest; /* tokens begin with U+2581, with ## */
  int32_t separator;            /* label of the token between words; 0: none */
  /* phrases as labels */
  WF__VEC(int32_t) labels;
  WF__VEC(uint64_t) ends; /* of each phrase, after a first 0 */
  WF__VEC(float) boosts;
  WF__VEC(struct unread) unread;
  wf_symbols *texts; /* words of these phrases, each once */
  wf_lexicon *spelled;
  size_t *first; /* [texts + 1] first spelling of each text */
  wf_tally unknown;
  size_t num_ignored;
};

/* --- words of a phrase -------------------------------------------------------------------- */

static bool next_word(const char **rest, wf__span *out) {
  *rest += strspn(*rest, " \t");
  *out = (wf__span){*rest, strcspn(*rest, " \t")};
  *rest += out->size;
  return out->size > 0;
}

static int32_t label_of(const struct reading *reading, wf__span word) {
  int64_t label = wf__symbols_find_bytes(reading->list->words, word.data, word.size);
  return label > 0 && label <= INT32_MAX ? (int32_t)label : 0;
}

static float boost_of(const struct reading *reading, size_t phrase) {
  float boost = reading->list->boosts[phrase];
  return isnan(boost) ? wf_boost_by_length(reading->list->phrases[phrase], NAN) : boost;
}

/* Ends the phrase whose labels were added last. */
static wf_status end_phrase(struct reading *reading, size_t phrase, wf_error *err) {
  WF__TRY(wf__vec_push(&reading->boosts, boost_of(reading, phrase), "boosts", err));
  return wf__vec_push(&reading->ends, reading->labels.size, "boosts", err);
}

/* --- what the graph lacks ----------------------------------------------------------------- */

static wf_status count_unknown(struct reading *reading, wf__span word, wf_error *err) {
  char name[256];
  snprintf(name, sizeof name, "%.*s", (int)(word.size < sizeof name ? word.size : sizeof name - 1),
           word.data);
  for (uint64_t i = 0; i < reading->unknown.count && i < WF_TALLY_NAMES; i++)
    if (strcmp(reading->unknown.names[i], name) == 0) return WF_OK;
  return wf__tally_add(&reading->unknown, name, err);
}

/* The spellings of a word: their number, and the first one. */
static size_t spellings_of(const struct reading *reading, wf__span word, size_t *first) {
  int64_t text =
      reading->spelled == NULL ? -1 : wf__symbols_find_bytes(reading->texts, word.data, word.size);
  *first = text < 0 ? 0 : reading->first[text];
  return text < 0 ? 0 : reading->first[text + 1] - *first;
}

/* Counts a phrase that is left out, and the words for which it is. */
static wf_status ignore(struct reading *reading, size_t phrase, wf_error *err) {
  const char *rest = reading->list->phrases[phrase];
  wf__span word;
  bool is_empty = true;
  size_t first;
  reading->num_ignored++;
  for (; next_word(&rest, &word); is_empty = false)
    if ((reading->joiner != NULL || label_of(reading, word) == 0) &&
        spellings_of(reading, word, &first) == 0)
      WF__TRY(count_unknown(reading, word, err));
  return is_empty ? count_unknown(reading, (wf__span){"", 0}, err) : WF_OK;
}

/* --- names of the table ------------------------------------------------------------------- */

/* Adds the phrase if all of its words are in the table. */
static wf_status read_names(struct reading *reading, size_t phrase, bool *out_known,
                            wf_error *err) {
  const char *rest = reading->list->phrases[phrase];
  uint64_t begin = reading->labels.size;
  wf__span word;
  *out_known = true;
  while (*out_known && next_word(&rest, &word)) {
    int32_t label = label_of(reading, word);
    *out_known = label != 0;
    WF__TRY(wf__vec_push(&reading->labels, label, "boosts", err));
  }
  *out_known = *out_known && reading->labels.size > begin;
  if (*out_known) return end_phrase(reading, phrase, err);
  reading->labels.size = begin;
  return WF_OK;
}

/* Does the separator stand in the phrase, or is it one word? */
static bool is_separated(const struct reading *reading, const char *phrase) {
  wf__span word;
  int num_words = 0;
  for (; next_word(&phrase, &word); num_words++)
    if (label_of(reading, word) == reading->separator) return true;
  return num_words < 2;
}

/* Joined results are texts, and so are the phrases for them: "the" is not the token that goes on
 * with a word, which "▁the" is, and "u s a" not the word "usa". But where all tokens are marked one
 * way or the other, names without a mark are words that stand beside them (wf_graph_add_spelling):
 * these may be found as words or as tokens. */
static bool may_be_names(const struct reading *reading, const char *phrase) {
  phrase += strspn(phrase, " \t");
  if (reading->list->joiner == NULL) return true;
  if (reading->separator != 0 && !is_separated(reading, phrase)) return false;
  return !reading->marks_start || reading->marks_rest ||
         strncmp(phrase, wf__token_start, strlen(wf__token_start)) == 0;
}

static bool may_be_text(const struct reading *reading, bool has_names) {
  return reading->joiner != NULL && (!has_names || (reading->list->joiner != NULL &&
                                                    reading->marks_start && reading->marks_rest));
}

static wf_status want_spelling(struct reading *reading, struct unread unread, wf_error *err) {
  const char *rest = reading->list->phrases[unread.phrase];
  wf__span word;
  WF__TRY(wf__vec_push(&reading->unread, unread, "boosts", err));
  if (reading->texts == NULL) WF__TRY(wf_symbols_create(reading->list->name, &reading->texts, err));
  while (next_word(&rest, &word))
    if (wf__symbols_find_bytes(reading->texts, word.data, word.size) < 0)
      WF__TRY(wf__symbols_add_bytes(reading->texts, word.data, word.size, -1, NULL, err));
  return WF_OK;
}

static wf_status read_all(struct reading *reading, wf_error *err) {
  for (size_t i = 0; i < reading->list->count; i++) {
    bool known = false;
    const char *phrase = reading->list->phrases[i];
    if (phrase[strspn(phrase, " \t")] == '\0')
      return wf__fail(err, WF_ERR_ARGUMENT, "%s: phrase %zu of %zu is empty", reading->list->name,
                      i + 1, reading->list->count);
    if (may_be_names(reading, phrase)) WF__TRY(read_names(reading, i, &known, err));
    if (may_be_text(reading, known))
      WF__TRY(want_spelling(reading, ((struct unread){i, known}), err));
    else if (!known)
      WF__TRY(ignore(reading, i, err));
  }
  return WF_OK;
}

/* --- spellings ---------------------------------------------------------------------------- */

/* Copies the table without <eps>, numbered without gaps, as wf__lexicon_spell_all wants it. */
static wf_status number_tokens(const struct reading *reading, wf_symbols **out, wf_error *err) {
  const char *text;
  int64_t label;
  WF__TRY(wf_symbols_create(wf_symbols_name(reading->list->words), out, err));
  for (size_t i = 0; (text = wf_symbols_at(reading->list->words, i, &label)) != NULL; i++)
    if (label > 0 && label <= INT32_MAX) WF__TRY(wf_symbols_add(*out, text, -1, NULL, err));
  return WF_OK;
}

static wf_status spell_texts(struct reading *reading, wf_error *err) {
  wf_symbols *tokens = NULL;
  wf_lexicon_options options;
  wf_lexicon_options_init(&options);
  options.blank = "";
  options.spelling = WF_SPELLING_ALL;
  options.unknown = WF_UNKNOWN_SKIP;
  wf_status status = number_tokens(reading, &tokens, err);
  if (status == WF_OK && wf_symbols_count(tokens) > 0)
    status = wf__lexicon_spell_all(reading->texts, tokens, &options, NULL, &reading->spelled, err);
  wf_symbols_free(tokens);
  WF__TRY(status);
  size_t num_texts = wf_symbols_count(reading->texts);
  reading->first = wf__calloc(num_texts + 1, sizeof *reading->first);
  if (reading->first == NULL) return wf__fail_memory(err, num_texts * sizeof(size_t), "boosts");
  size_t count = reading->spelled != NULL ? wf_lexicon_count(reading->spelled) : 0;
  for (size_t i = 0; i < count; i++)
    reading->first[wf_symbols_find(reading->texts, wf_lexicon_at(reading->spelled, i).word) + 1]++;
  for (size_t i = 0; i < num_texts; i++) reading->first[i + 1] += reading->first[i];
  return WF_OK;
}

/* Labels in the lexicon are those of number_tokens. */
static wf_status add_spelling(struct reading *reading, const wf_pronunciation *spelling,
                              wf_error *err) {
  for (size_t i = 0; i < spelling->num_labels; i++) {
    const char *name = wf_symbols_text(reading->spelled->table, spelling->labels[i] - 1);
    int32_t label = label_of(reading, (wf__span){name, strlen(name)});
    WF__TRY(wf__vec_push(&reading->labels, label, "boosts", err));
  }
  return WF_OK;
}

/* The spellings of a phrase's words. */
struct choice {
  size_t first[MOST_WORDS], count[MOST_WORDS], at[MOST_WORDS];
  size_t num_words;
};

/* False: a word cannot be spelled. */
static bool list_choices(const struct reading *reading, const char *phrase, struct choice *choice) {
  wf__span word;
  size_t most = MOST_SPELLINGS;
  for (choice->num_words = 0; next_word(&phrase, &word); choice->num_words++) {
    size_t n = choice->num_words;
    if (n == MOST_WORDS) return false;
    choice->count[n] = spellings_of(reading, word, &choice->first[n]);
    if (choice->count[n] == 0) return false;
    if (choice->count[n] > most) choice->count[n] = most; /* fewer after words that have many */
    most /= choice->count[n];
    choice->at[n] = 0;
  }
  return true;
}

/* Goes to the next combination; false after the last. */
static bool next_choice(struct choice *choice) {
  for (size_t n = 0; n < choice->num_words; n++) {
    if (++choice->at[n] < choice->count[n]) return true;
    choice->at[n] = 0;
  }
  return false;
}

static wf_status add_choice(struct reading *reading, const struct choice *choice, wf_error *err) {
  for (size_t n = 0; n < choice->num_words; n++) {
    wf_pronunciation one = wf_lexicon_at(reading->spelled, choice->first[n] + choice->at[n]);
    if (n > 0 && reading->separator != 0)
      WF__TRY(wf__vec_push(&reading->labels, reading->separator, "boosts", err));
    WF__TRY(add_spelling(reading, &one, err));
  }
  return WF_OK;
}

static wf_status spell_phrases(struct reading *reading, wf_error *err) {
  struct choice choice;
  if (reading->unread.size == 0) return WF_OK;
  WF__TRY(spell_texts(reading, err));
  for (uint64_t i = 0; i < reading->unread.size; i++) {
    size_t phrase = reading->unread.data[i].phrase;
    bool found = list_choices(reading, reading->list->phrases[phrase], &choice);
    if (!found && !reading->unread.data[i].has_names) WF__TRY(ignore(reading, phrase, err));
    if (!found) continue;
    do {
      WF__TRY(add_choice(reading, &choice, err));
      WF__TRY(end_phrase(reading, phrase, err));
    } while (next_choice(&choice));
  }
  return WF_OK;
}

/* --- the scorer --------------------------------------------------------------------------- */

/* Are all words of the graph tokens? */
static bool are_tokens(const wf_symbols *words, const wf_symbols *tokens) {
  const char *text;
  int64_t label;
  if (tokens == NULL) return false;
  for (size_t i = 0; (text = wf_symbols_at(words, i, &label)) != NULL; i++)
    if (label > 0 && wf_symbols_find(tokens, text) < 0) return false;
  return true;
}

static wf_status find_joiner(struct reading *reading, wf_error *err) {
  const wf_phrase_list *list = reading->list;
  const char *text, *plain;
  reading->joiner = list->joiner;
  if (reading->joiner == NULL && are_tokens(list->words, list->tokens)) {
    WF__TRY(wf_token_joiner_create(list->words, NULL, &reading->own_joiner, err));
    reading->joiner = reading->own_joiner;
  }
  if (reading->joiner == NULL) return WF_OK;
  const char *separator = wf__token_joiner_separator(reading->joiner);
  reading->separator = label_of(reading, (wf__span){separator, strlen(separator)});
  for (size_t i = 0; (text = wf_symbols_at(list->words, i, NULL)) != NULL; i++) {
    wf__token_mark mark = wf__token_mark_of(text, &plain);
    reading->marks_start = reading->marks_start || mark == WF__TOKEN_STARTS;
    reading->marks_rest = reading->marks_rest || (mark == WF__TOKEN_RESTS && plain[0] != '\0');
  }
  reading->marks_start = reading->marks_start && wf__start_is_mark(list->words, separator);
  return WF_OK;
}

static wf_status make(struct reading *reading, wf_scorer **out, wf_error *err) {
  uint64_t count = reading->boosts.size;
  bool words_only = reading->labels.size == count; /* no phrase is empty */
  return words_only
             ? wf_scorer_boost_words(reading->labels.data, reading->boosts.data, count, out, err)
             : wf_scorer_boost_phrases(reading->labels.data, reading->ends.data,
                                       reading->boosts.data, count, out, err);
}

/* One warning, however many phrases are ignored. */
static void warn(const struct reading *reading) {
  char names[400];
  if (reading->num_ignored == 0) return;
  wf__tally_list(&reading->unknown, names, sizeof names);
  wf__log(WF_LOG_WARNING, "%s: %zu of %zu phrases ignored; the graph lacks %s", reading->list->name,
          reading->num_ignored, reading->list->count, names);
}

static void free_reading(struct reading *reading) {
  wf_token_joiner_free(reading->own_joiner);
  wf__vec_free(&reading->labels);
  wf__vec_free(&reading->ends);
  wf__vec_free(&reading->boosts);
  wf__vec_free(&reading->unread);
  wf_symbols_free(reading->texts);
  wf_lexicon_free(reading->spelled);
  free(reading->first);
  wf__tally_free(&reading->unknown);
}

wf_status wf_scorer_boost_texts(const wf_phrase_list *given, wf_scorer **out, wf_error *err) {
  *out = NULL;
  wf_phrase_list list = {0};
  WF__TRY(wf__struct_check("wf_phrase_list", given, sizeof list, err));
  wf__struct_take(given, &list, sizeof list);
  if (list.name == NULL) list.name = "boost";
  if (list.words == NULL)
    return wf__fail(err, WF_ERR_ARGUMENT, "%s: boosts of texts need a symbol table of the words",
                    list.name);
  struct reading reading = {.list = &list};
  wf_status status = wf__vec_push(&reading.ends, 0, "boosts", err);
  if (status == WF_OK) status = find_joiner(&reading, err);
  if (status == WF_OK) status = read_all(&reading, err);
  if (status == WF_OK) status = spell_phrases(&reading, err);
  if (status == WF_OK) status = make(&reading, out, err);
  if (status == WF_OK) warn(&reading);
  free_reading(&reading);
  return status;
}
