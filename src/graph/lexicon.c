/* lexicon.c - the lexicon object: reads and writes files, makes the word table, drops repeated
 * entries and assigns disambiguation symbols. */
#include "graph/lexicon.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/option_tables.h"
#include "base/output.h"
#include "fst/symbols.h"

/* --- the object -------------------------------------------------------------------------- */

wf_status wf__lexicon_create(const char *name, const wf_symbols *tokens, const char *blank,
                             wf_lexicon **out, wf_error *err) {
  wf__tokens taken;
  int32_t blank_label;
  *out = NULL;
  WF__TRY(wf__tokens_take(tokens, &taken, err));
  WF__TRY(wf__tokens_blank(&taken, blank, &blank_label, err));
  wf_lexicon *lexicon = wf__calloc(1, sizeof *lexicon);
  if (lexicon == NULL) return wf__fail_memory(err, sizeof *lexicon, "a lexicon");
  atomic_init(&lexicon->refs, 1);
  lexicon->name = wf__strndup(name, strlen(name));
  if (lexicon->name == NULL) {
    free(lexicon);
    return wf__fail_memory(err, strlen(name), "a lexicon");
  }
  lexicon->table = wf_symbols_ref(tokens);
  lexicon->tokens = taken;
  lexicon->blank = blank_label;
  *out = lexicon;
  return WF_OK;
}

wf_lexicon *wf_lexicon_ref(const wf_lexicon *lexicon) {
  wf_lexicon *shared = (wf_lexicon *)(uintptr_t)lexicon;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_lexicon_free(wf_lexicon *lexicon) {
  if (lexicon == NULL || atomic_fetch_sub(&lexicon->refs, 1) != 1) return;
  free(lexicon->name);
  wf_symbols_free(lexicon->table);
  wf__vec_free(&lexicon->entries);
  wf__vec_free(&lexicon->labels);
  wf__arena_free(&lexicon->texts);
  wf__tally_free(&lexicon->skipped);
  free(lexicon);
}

wf_status wf__lexicon_add(wf_lexicon *lexicon, const char *word, size_t size, float prob,
                          uint64_t label_off, wf_error *err) {
  uint64_t num_labels = lexicon->labels.size - label_off;
  if (num_labels > INT32_MAX || lexicon->entries.size >= INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT,
                    "%s: a word has more than 2^31 tokens, or there are more than 2^31 entries",
                    lexicon->name);
  char *text = wf__arena_alloc(&lexicon->texts, size + 1);
  if (text == NULL) return wf__fail_memory(err, size + 1, "a word of the lexicon");
  memcpy(text, word, size);
  text[size] = '\0';
  WF__TRY(wf__vec_grow(&lexicon->entries, 1, "lexicon entries", err));
  lexicon->entries.data[lexicon->entries.size++] =
      (wf__lexicon_entry){text, label_off, (uint32_t)num_labels, prob, 0, {0}};
  return WF_OK;
}

/* --- repeated entries, disambiguation ---------------------------------------------------- */

struct sort_item {
  const int32_t *labels;
  const char *word;
  uint32_t num_labels, index;
  int64_t order; /* among words that are pronounced alike */
};

static int compare_labels(const struct sort_item *a, const struct sort_item *b) {
  uint32_t common = a->num_labels < b->num_labels ? a->num_labels : b->num_labels;
  for (uint32_t i = 0; i < common; i++)
    if (a->labels[i] != b->labels[i]) return a->labels[i] < b->labels[i] ? -1 : 1;
  return (a->num_labels > b->num_labels) - (a->num_labels < b->num_labels);
}

static int by_labels_order(const void *a, const void *b) {
  const struct sort_item *x = a, *y = b;
  int order = compare_labels(x, y);
  if (order == 0) order = (x->order > y->order) - (x->order < y->order);
  return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static int by_labels_word(const void *a, const void *b) {
  const struct sort_item *x = a, *y = b;
  int order = compare_labels(x, y);
  if (order == 0) order = strcmp(x->word, y->word);
  return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static void fill_items(const wf_lexicon *lexicon, struct sort_item *items) {
  for (uint64_t i = 0; i < lexicon->entries.size; i++) {
    const wf__lexicon_entry *entry = &lexicon->entries.data[i];
    items[i] = (struct sort_item){lexicon->labels.data + entry->label_off, entry->word,
                                  entry->num_labels, (uint32_t)i, (int64_t)i};
  }
}

static void drop_repeated(wf_lexicon *lexicon, struct sort_item *items) {
  wf__lexicon_entry *entries = lexicon->entries.data;
  uint64_t count = lexicon->entries.size, kept = 0;
  fill_items(lexicon, items);
  qsort(items, count, sizeof *items, by_labels_word);
  for (uint64_t i = 1, first = 0; i < count; i++) {
    if (compare_labels(&items[i], &items[first]) != 0 ||
        strcmp(items[i].word, items[first].word) != 0) {
      first = i;
      continue;
    }
    wf__lexicon_entry *same = &entries[items[first].index], *again = &entries[items[i].index];
    if (again->prob > same->prob) {
      same->prob = again->prob;
      same->silence = again->silence;
    }
    again->word = NULL;
  }
  for (uint64_t i = 0; i < count; i++)
    if (entries[i].word != NULL) entries[kept++] = entries[i];
  lexicon->num_repeated = (size_t)(count - kept);
  lexicon->entries.size = kept;
}

/* Sorted by labels, the pronunciations that start with a given one come directly after it. So the
 * first entry of the next group shows whether a pronunciation is a prefix of another. Words that are
 * pronounced alike are numbered in the order of `words` or, with NULL, of the lexicon: of equal
 * costs, graphs prefer the first. */
static void number_disambig(wf_lexicon *lexicon, const wf_symbols *words, struct sort_item *items) {
  uint64_t count = lexicon->entries.size, end;
  fill_items(lexicon, items);
  for (uint64_t i = 0; i < count && words != NULL; i++)
    items[i].order = wf_symbols_find(words, items[i].word);
  qsort(items, count, sizeof *items, by_labels_order);
  for (uint64_t begin = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && compare_labels(&items[begin], &items[end]) == 0;) end++;
    const struct sort_item *item = &items[begin];
    bool prefix = end < count && items[end].num_labels > item->num_labels &&
                  memcmp(items[end].labels, item->labels, item->num_labels * sizeof(int32_t)) == 0;
    if (end - begin == 1 && !prefix && item->num_labels > lexicon->always_marked) continue;
    for (uint64_t i = begin; i < end; i++)
      lexicon->entries.data[items[i].index].disambig = (int32_t)(i - begin) + 1;
    if ((int32_t)(end - begin) > lexicon->max_disambig)
      lexicon->max_disambig = (int32_t)(end - begin);
  }
}

static wf_status close_lexicon(wf_lexicon *lexicon, const wf_symbols *words, bool may_be_empty,
                               wf_error *err) {
  if (lexicon->entries.size == 0 && !may_be_empty)
    return lexicon->skipped.count == 0
               ? wf__fail(err, WF_ERR_FORMAT, "%s: no words", lexicon->name)
               : wf__fail(err, WF_ERR_FORMAT,
                          "%s: no word left, because all %llu have tokens that the table %s lacks",
                          lexicon->name, (unsigned long long)lexicon->skipped.count,
                          wf__symbols_shown(lexicon->table));
  struct sort_item *items = wf__alloc(lexicon->entries.size, sizeof *items);
  if (items == NULL)
    return wf__fail_memory(err, lexicon->entries.size * sizeof *items, "sorting the lexicon");
  drop_repeated(lexicon, items);
  number_disambig(lexicon, words, items);
  free(items);
  if (lexicon->num_repeated != 0)
    wf__log(WF_LOG_INFO, "%s: %zu repeated entries count once", lexicon->name,
            lexicon->num_repeated);
  if (lexicon->skipped.count != 0)
    wf__log(WF_LOG_WARNING, "%s: left out for unknown tokens: %llu of the entries", lexicon->name,
            (unsigned long long)lexicon->skipped.count);
  return WF_OK;
}

wf_status wf__lexicon_close(wf_lexicon *lexicon, bool may_be_empty, wf_error *err) {
  return close_lexicon(lexicon, NULL, may_be_empty, err);
}

static wf_status copy_entry(const wf_lexicon *from, const wf__lexicon_entry *entry, wf_lexicon *to,
                            wf_error *err) {
  uint64_t label_off = to->labels.size;
  WF__TRY(wf__vec_grow(&to->labels, entry->num_labels, "lexicon tokens", err));
  memcpy(to->labels.data + label_off, from->labels.data + entry->label_off,
         entry->num_labels * sizeof *to->labels.data);
  to->labels.size += entry->num_labels;
  WF__TRY(wf__lexicon_add(to, entry->word, strlen(entry->word), entry->prob, label_off, err));
  to->entries.data[to->entries.size - 1].silence = entry->silence;
  return WF_OK;
}

wf_status wf__lexicon_select(const wf_lexicon *lexicon, const bool *keep, const wf_symbols *words,
                             uint32_t always_marked, wf_lexicon **out, wf_error *err) {
  *out = NULL;
  wf_lexicon *part;
  const char *blank = lexicon->blank != 0
                          ? wf_symbols_text(lexicon->table, lexicon->blank - lexicon->tokens.shift)
                          : "";
  WF__TRY(wf__lexicon_create(lexicon->name, lexicon->table, blank, &part, err));
  part->always_marked = always_marked;
  part->has_silence = lexicon->has_silence;
  wf_status status = WF_OK;
  for (uint64_t i = 0; i < lexicon->entries.size && status == WF_OK; i++)
    if (keep[i]) status = copy_entry(lexicon, &lexicon->entries.data[i], part, err);
  if (status == WF_OK) status = close_lexicon(part, words, false, err);
  if (status != WF_OK) {
    wf_lexicon_free(part);
    return status;
  }
  *out = part;
  return WF_OK;
}

wf_status wf__lexicon_report_skipped(wf_lexicon *lexicon, wf__span word, wf__span token,
                                     wf_error *err) {
  char text[200];
  snprintf(text, sizeof text, "%.*s (%.*s)", WF__SPAN_ARG(word), WF__SPAN_ARG(token));
  return wf__tally_add(&lexicon->skipped, text, err);
}

const wf_tally *wf_lexicon_skipped(const wf_lexicon *lexicon) { return &lexicon->skipped; }

/* --- reading ----------------------------------------------------------------------------- */

/* Columns of numbers after the word: none, the probability, or with it the three of Kaldi's
 * lexiconp_silprob.txt and of the Montreal Forced Aligner's dictionaries: the probability of silence
 * after the word, and two factors for the word before. */
enum { NO_NUMBERS = 0, PROB = 1, PROB_AND_SILENCE = 4 };

/* A column holds numbers if it does so in every line and is not a token in every line ("1" may be a
 * token). */
static int count_numbers(const wf__input *input, const wf__tokens *tokens) {
  wf__lines lines = wf__lines_of(input);
  int num = PROB_AND_SILENCE;
  bool no_token[PROB_AND_SILENCE] = {false};
  for (wf__span line, field; num > 0 && wf__next_line(&lines, &line);) {
    double number;
    if (!wf__next_field(&line, &field)) continue;
    for (int i = 0; i < num; i++)
      if (!wf__next_field(&line, &field) || !wf__parse_f64(field, &number) || isnan(number))
        num = i;
      else
        no_token[i] = no_token[i] || wf__tokens_label(tokens, field.data, field.size) == 0;
  }
  if (num == NO_NUMBERS || !no_token[0]) return NO_NUMBERS;
  return num == PROB_AND_SILENCE && no_token[1] && no_token[2] && no_token[3] ? PROB_AND_SILENCE
                                                                              : PROB;
}

struct reader {
  wf_lexicon *lexicon;
  wf__lines lines;
  int num_numbers;
  bool skip_unknown, variants;
};

/* Removes a variant number: "word(2)" -> "word". */
static wf__span without_variant(wf__span word) {
  size_t at = word.size;
  if (at == 0 || word.data[at - 1] != ')') return word;
  for (at--; at > 0 && word.data[at - 1] >= '0' && word.data[at - 1] <= '9';) at--;
  bool numbered = at + 1 < word.size && at > 1 && word.data[at - 1] == '(';
  return numbered ? (wf__span){word.data, at - 1} : word;
}

static wf_status check_word(const struct reader *reader, wf__span word, wf_error *err) {
  if (!wf__is_utf8(word) || memchr(word.data, '\0', word.size) != NULL)
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "word is not UTF-8 text");
  if (wf__is_reserved_word(word.data, word.size))
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                          "'%.*s' is reserved and cannot be a word", WF__SPAN_ARG(word));
  return WF_OK;
}

static wf_status read_numbers(const struct reader *reader, wf__span word, wf__span *rest,
                              double *out, wf__silence_probs *out_silence, wf_error *err) {
  float *const silence[] = {&out_silence->after, &out_silence->before, &out_silence->before_none};
  wf__span field;
  if (!wf__next_field(rest, &field))
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                          "word '%.*s': no probability and no tokens", WF__SPAN_ARG(word));
  if (!wf__parse_f64(field, out) || !((float)*out > 0 && *out <= 1))
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                          "word '%.*s': '%.*s' is not a probability in (0, 1]", WF__SPAN_ARG(word),
                          WF__SPAN_ARG(field));
  for (int i = 1; i < reader->num_numbers; i++) {
    double number;
    if (!wf__next_field(rest, &field) || !wf__parse_f64(field, &number) || !(number >= 0) ||
        number > (i == 1 ? 1 : 1e6))
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                            "word '%.*s': expected four numbers (its probability, that of silence "
                            "after it, and two factors of at least 0) before the tokens",
                            WF__SPAN_ARG(word));
    *silence[i - 1] = (float)number;
  }
  return WF_OK;
}

static wf_status read_entry(struct reader *reader, wf__span rest, wf_error *err) {
  wf_lexicon *lexicon = reader->lexicon;
  uint64_t label_off = lexicon->labels.size;
  double prob = 1;
  wf__silence_probs silence = {0};
  wf__span word, field;
  if (!wf__next_field(&rest, &word)) return WF_OK;
  if (reader->variants && word.size >= 3 && memcmp(word.data, ";;;", 3) == 0) return WF_OK;
  if (reader->variants) word = without_variant(word);
  WF__TRY(check_word(reader, word, err));
  if (reader->num_numbers > 0) WF__TRY(read_numbers(reader, word, &rest, &prob, &silence, err));
  while (wf__next_field(&rest, &field)) {
    int32_t label = wf__tokens_label(&lexicon->tokens, field.data, field.size);
    if (label != 0 && label == lexicon->blank)
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                            "word '%.*s' holds the blank '%.*s'", WF__SPAN_ARG(word),
                            WF__SPAN_ARG(field));
    if (label == 0 && reader->skip_unknown) {
      lexicon->labels.size = label_off;
      return wf__lexicon_report_skipped(lexicon, word, field, err);
    }
    if (label == 0)
      return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT,
                            "word '%.*s': '%.*s' is not in the token table %s", WF__SPAN_ARG(word),
                            WF__SPAN_ARG(field), wf__symbols_shown(lexicon->table));
    WF__TRY(wf__vec_grow(&lexicon->labels, 1, "lexicon tokens", err));
    lexicon->labels.data[lexicon->labels.size++] = label;
  }
  if (lexicon->labels.size == label_off)
    return wf__lines_fail(&reader->lines, err, WF_ERR_FORMAT, "word '%.*s': no tokens",
                          WF__SPAN_ARG(word));
  WF__TRY(wf__lexicon_add(lexicon, word.data, word.size, (float)prob, label_off, err));
  lexicon->entries.data[lexicon->entries.size - 1].silence = silence;
  return WF_OK;
}

static wf_status read_lexicon(const wf__input *input, const wf_lexicon_options *options,
                              wf_lexicon *lexicon, wf_error *err) {
  static const int numbers_of[] = {-1, NO_NUMBERS, PROB, PROB_AND_SILENCE}; /* by the option */
  struct reader reader = {.lexicon = lexicon,
                          .lines = wf__lines_of(input),
                          .num_numbers = numbers_of[options->lexicon_format],
                          .skip_unknown = options->unknown == WF_UNKNOWN_SKIP,
                          .variants = options->variants};
  if (reader.num_numbers < 0) reader.num_numbers = count_numbers(input, &lexicon->tokens);
  lexicon->has_silence = reader.num_numbers == PROB_AND_SILENCE;
  for (wf__span line; wf__next_line(&reader.lines, &line);) WF__TRY(read_entry(&reader, line, err));
  return wf__lexicon_close(lexicon, false, err);
}

wf_status wf__lexicon_read_input(const wf__input *input, const wf_symbols *tokens,
                                 const wf_lexicon_options *o, wf_lexicon **out, wf_error *err) {
  wf_lexicon *lexicon;
  *out = NULL;
  WF__TRY(wf__lexicon_create(input->path, tokens, o->blank, &lexicon, err));
  wf_status status = read_lexicon(input, o, lexicon, err);
  if (status != WF_OK) {
    wf_lexicon_free(lexicon);
    return status;
  }
  *out = lexicon;
  return WF_OK;
}

/* Closes the input. */
static wf_status read_opened(wf__input *input, const wf_symbols *tokens,
                             const wf_lexicon_options *options, wf_lexicon **out, wf_error *err) {
  wf_lexicon_options o;
  wf_status status = wf__options_take(wf__lexicon_table(), options, &o, err);
  if (status == WF_OK) status = wf__lexicon_read_input(input, tokens, &o, out, err);
  wf__input_close(input);
  return status;
}

wf_status wf_lexicon_read(const char *path, const wf_symbols *tokens,
                          const wf_lexicon_options *options, wf_lexicon **out, wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  return read_opened(&input, tokens, options, out, err);
}

wf_status wf_lexicon_read_memory(const char *text, size_t size, const char *name,
                                 const wf_symbols *tokens, const wf_lexicon_options *options,
                                 wf_lexicon **out, wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_from_memory(text, size, name, &input, err));
  return read_opened(&input, tokens, options, out, err);
}

/* --- reading entries, writing files ------------------------------------------------------ */

size_t wf_lexicon_count(const wf_lexicon *lexicon) { return (size_t)lexicon->entries.size; }
int32_t wf_lexicon_num_disambig(const wf_lexicon *lexicon) { return lexicon->max_disambig + 2; }

wf_pronunciation wf_lexicon_at(const wf_lexicon *lexicon, size_t i) {
  const wf__lexicon_entry *entry = &lexicon->entries.data[i];
  return (wf_pronunciation){entry->word, entry->prob, lexicon->labels.data + entry->label_off,
                            entry->num_labels};
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static wf_status fill_words(const char **texts, size_t count, wf_symbols *words, wf_error *err) {
  qsort(texts, count, sizeof *texts, by_text);
  WF__TRY(wf_symbols_add(words, "<eps>", 0, NULL, err));
  for (size_t i = 0; i < count; i++) WF__TRY(wf_symbols_add(words, texts[i], -1, NULL, err));
  WF__TRY(wf_symbols_add(words, "#0", -1, NULL, err));
  WF__TRY(wf_symbols_add(words, "<s>", -1, NULL, err));
  return wf_symbols_add(words, "</s>", -1, NULL, err);
}

wf_status wf_lexicon_words(const wf_lexicon *lexicon, wf_symbols **out, wf_error *err) {
  *out = NULL;
  size_t count = wf_lexicon_count(lexicon);
  wf_symbols *words;
  WF__TRY(wf_symbols_create("words", &words, err));
  const char **texts = wf__alloc(count, sizeof *texts);
  wf_status status =
      texts != NULL ? WF_OK : wf__fail_memory(err, count * sizeof *texts, "the words of a lexicon");
  for (size_t i = 0; i < count && status == WF_OK; i++) texts[i] = lexicon->entries.data[i].word;
  if (status == WF_OK) status = fill_words(texts, count, words, err);
  free(texts);
  if (status != WF_OK) {
    wf_symbols_free(words);
    return status;
  }
  *out = words;
  return WF_OK;
}

wf_status wf_lexicon_write(const wf_lexicon *lexicon, const char *path, wf_error *err) {
  bool with_prob = lexicon->has_silence;
  for (uint64_t i = 0; i < lexicon->entries.size; i++)
    with_prob = with_prob || lexicon->entries.data[i].prob != 1;
  wf__output *output;
  WF__TRY(wf__output_open(path, &output, err));
  for (uint64_t i = 0; i < lexicon->entries.size; i++) {
    const wf__lexicon_entry *entry = &lexicon->entries.data[i];
    wf__write_text(output, entry->word);
    if (with_prob) wf__printf(output, " %.9g", (double)entry->prob);
    if (lexicon->has_silence)
      wf__printf(output, " %.9g %.9g %.9g", (double)entry->silence.after,
                 (double)entry->silence.before, (double)entry->silence.before_none);
    for (uint32_t k = 0; k < entry->num_labels; k++)
      wf__printf(output, " %s",
                 wf_symbols_text(lexicon->table, lexicon->labels.data[entry->label_off + k] -
                                                     lexicon->tokens.shift));
    wf__write_text(output, "\n");
  }
  return wf__output_close(output, err);
}
