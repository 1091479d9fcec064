/* arpa.c - ARPA text to sorted n-grams.
 *
 *   \data\            header: counts[k]
 *   ngram 1=3
 *   \1-grams:         section k: lines `log10p w1 .. wk [log10 back-off]`, parsed into levels.level[k], sorted at its end
 *   -1.2  the  -0.3
 *   \end\
 *
 * Words are numbered in the order of the unigrams (`vocab`); label_of[] says which label each has, or OUTSIDE if the caller's table
 * lacks it. An n-gram finds its context by walking down the levels below; consecutive n-grams that share first words share that walk.
 *
 * Contexts that the file lacks (`a b c` without `a b`) cannot be put into a sorted level, so they are noted in missing[] with all
 * their prefixes, and the text, which is in memory anyway, is read again with them added. That is rare. */
#include "lm/arpa.h"

#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "lm/ngram_levels.h"

enum { OUTSIDE = INT32_MAX, MAX_FIELDS = WF_LM_MAX_ORDER + 3 }; /* OUTSIDE is no label of a table: those are limited below */
#define MAX_LABEL ((int64_t)1 << 27)                            /* labels index arrays */
static const double largest_positive = 1e-3;

typedef struct reader {
  wf__lines lines;
  const char *begin;
  wf__span line;           /* the current one: of the header, or the head of a section */
  const wf_symbols *words; /* the caller's, or NULL */
  wf_symbols *vocab;       /* words of the LM; with words == NULL the table handed out, keys = labels */
  WF__VEC(int32_t) label_of;
  const char *bos, *eos, *unk; /* unk NULL: <unk> or <UNK> */
  int oov;
  bool words_have_unk;
  uint64_t counts[WF_LM_MAX_ORDER + 1];
  wf__ngram_levels levels;
  WF__VEC(uint32_t) missing[WF_LM_MAX_ORDER + 1]; /* [k]: labels of contexts of k words to create, k after k */
  bool again;                                     /* second time: missing[] is complete */
  struct {
    wf__span text[WF_LM_MAX_ORDER];
    uint32_t label[WF_LM_MAX_ORDER], node[WF_LM_MAX_ORDER];
    int num_words, num_nodes; /* words looked up, and how many of their prefixes are known as nodes */
    bool noted;               /* its context is missing, and noted */
  } last;                     /* the n-gram before */
  wf_arpa_stats stats;
  const wf_progress *progress;
} reader;

static bool is_text(wf__span span, const char *text) { return strlen(text) == span.size && memcmp(span.data, text, span.size) == 0; }
static bool is_unk(const reader *r, wf__span span) { return r->unk != NULL ? is_text(span, r->unk) : is_text(span, "<unk>") || is_text(span, "<UNK>"); }

/* --- words -------------------------------------------------------------------------------------------------------- */

/* Labels of <s>, </s> and <unk> in a given table, or internal ones behind it. */
static wf_status take_words(reader *r, wf_error *err) {
  wf__ngram_levels *levels = &r->levels;
  levels->bos = levels->eos = levels->unk = WF__LM_NONE;
  if (r->words == NULL) return WF_OK;
  int64_t next = wf_symbols_next_key(r->words);
  if (next > MAX_LABEL)
    return wf__fail(err, WF_ERR_LIMIT, "word table %s: labels of language models end at %lld, found %lld", wf_symbols_name(r->words), (long long)MAX_LABEL,
                    (long long)next - 1);
  int64_t bos = wf_symbols_find(r->words, r->bos), eos = wf_symbols_find(r->words, r->eos);
  int64_t unk = wf_symbols_find(r->words, r->unk != NULL ? r->unk : "<unk>");
  if (unk < 0 && r->unk == NULL) unk = wf_symbols_find(r->words, "<UNK>");
  r->words_have_unk = unk >= 0;
  levels->num_public = (uint32_t)next;
  levels->bos = (uint32_t)(bos >= 0 ? bos : next++);
  levels->eos = (uint32_t)(eos >= 0 ? eos : next++);
  levels->unk = (uint32_t)(unk >= 0 ? unk : next++);
  levels->num_labels = (uint32_t)next;
  return WF_OK;
}

/* Label of the unigram `text`, number `key` of the vocabulary. */
static wf_status label_word(reader *r, wf__span text, int64_t key, int32_t *out, wf_error *err) {
  wf__ngram_levels *levels = &r->levels;
  bool bos = is_text(text, r->bos), eos = is_text(text, r->eos), unk = is_unk(r, text);
  int64_t label = key;
  if (r->words == NULL) {
    if (key > MAX_LABEL) return wf__lines_fail(&r->lines, err, WF_ERR_LIMIT, "more than %lld words", (long long)MAX_LABEL);
    if (bos) levels->bos = (uint32_t)key;
    if (eos) levels->eos = (uint32_t)key;
    if (unk && levels->unk == WF__LM_NONE) levels->unk = (uint32_t)key;
  } else {
    label = bos ? levels->bos : eos ? levels->eos : unk ? levels->unk : wf_symbols_find_bytes(r->words, text.data, text.size);
    if (label == 0) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "'%.*s' is epsilon (0) in the word table", WF__SPAN_ARG(text));
  }
  if (label < 0) {
    if (r->oov == 2) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "'%.*s' is not in the word table", WF__SPAN_ARG(text));
    r->stats.num_oov_words++;
    label = OUTSIDE;
  }
  *out = (int32_t)label;
  return WF_OK;
}

static wf_status add_word(reader *r, wf__span text, uint32_t *out, wf_error *err) {
  if (!wf__is_utf8(text)) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the word is not UTF-8");
  if (memchr(text.data, '\0', text.size) != NULL) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the word holds a NUL byte");
  if (wf_symbols_find_bytes(r->vocab, text.data, text.size) >= 0)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the unigram '%.*s' is given twice, or stands for epsilon", WF__SPAN_ARG(text));
  char *copy = wf__strndup(text.data, text.size);
  if (copy == NULL) return wf__fail_memory(err, text.size, "a word");
  int64_t key;
  wf_status status = wf_symbols_add(r->vocab, copy, -1, &key, err);
  free(copy);
  WF__TRY(status);
  int32_t label;
  WF__TRY(label_word(r, text, key, &label, err));
  WF__TRY(wf__vec_push(&r->label_of, label, "words of a language model", err)); /* vocab keys start at 1, as label_of[0] is <eps> */
  *out = (uint32_t)label;
  return WF_OK;
}

static wf_status find_word(const reader *r, wf__span text, uint32_t *out, wf_error *err) {
  int64_t key = wf_symbols_find_bytes(r->vocab, text.data, text.size);
  if (key <= 0) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "'%.*s' is not among the unigrams", WF__SPAN_ARG(text));
  *out = (uint32_t)r->label_of.data[key];
  return WF_OK;
}

/* --- n-grams ------------------------------------------------------------------------------------------------------ */

static wf_status parse_cost(const reader *r, wf__span text, const char *what, float *out, wf_error *err) {
  double log10p;
  if (!wf__parse_f64(text, &log10p)) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected a %s (log10), found '%.*s'", what, WF__SPAN_ARG(text));
  if (isnan(log10p) || log10p == INFINITY)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "%s '%.*s' is not a finite number or -inf", what, WF__SPAN_ARG(text));
  *out = (float)(-2.302585092994045684 * log10p) + 0.0f;                                                                          /* + 0: never -0 */
  if (*out < -1e30f) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "%s '%.*s' is out of range", what, WF__SPAN_ARG(text)); /* sums stay finite */
  return WF_OK;
}

/* Labels of the words of an n-gram of order k >= 2, to r->last.label; keeps what it shares with the line before. */
static wf_status find_words(reader *r, int k, const wf__span *text, wf_error *err) {
  int same = 0;
  while (same < k && same < r->last.num_words && text[same].size == r->last.text[same].size &&
         memcmp(text[same].data, r->last.text[same].data, text[same].size) == 0)
    same++;
  r->last.num_words = same; /* should one of the rest fail */
  if (r->last.num_nodes > same) r->last.num_nodes = same;
  if (same < k - 1) r->last.noted = false;
  for (int i = same; i < k; i++) {
    WF__TRY(find_word(r, text[i], &r->last.label[i], err));
    r->last.text[i] = text[i];
    r->last.num_words = i + 1;
  }
  return WF_OK;
}

/* The node of the context of an n-gram of order k, or WF__LM_NONE after noting the prefixes that are missing. */
static wf_status find_context(reader *r, int k, uint32_t *out, wf_error *err) {
  uint32_t node = r->last.num_nodes > 0 ? r->last.node[r->last.num_nodes - 1] : 0;
  while (r->last.num_nodes < k - 1) {
    int level = r->last.num_nodes + 1;
    node = wf__ngram_find(&r->levels, level, node, r->last.label[level - 1]);
    if (node == WF__LM_NONE) break;
    r->last.node[r->last.num_nodes++] = node;
  }
  *out = node;
  if (node != WF__LM_NONE || r->last.noted) return WF_OK;
  r->last.noted = true;
  for (int level = r->last.num_nodes + 1; level < k; level++) {
    WF__TRY(wf__vec_grow(&r->missing[level], level, "contexts to create", err));
    for (int i = 0; i < level; i++) r->missing[level].data[r->missing[level].size++] = r->last.label[i];
  }
  return WF_OK;
}

/* Refused, skipped or fine? `*merge`: the last word stands for <unk>. */
static bool wanted(reader *r, int k, const uint32_t *label, bool *merge) {
  const wf__ngram_levels *levels = &r->levels;
  for (int i = 0; i < k; i++) {
    if ((label[i] == levels->bos && i > 0) || (label[i] == levels->eos && i + 1 < k)) {
      r->stats.num_refused++;
      return false;
    }
  }
  for (int i = 0; i < k; i++) {
    if (label[i] != OUTSIDE) continue;
    if (i + 1 == k && r->oov == 0 && r->words_have_unk) {
      r->stats.num_oov_merged++;
      *merge = true;
    } else {
      r->stats.num_oov_skipped++;
      return false;
    }
  }
  return true;
}

static int split(wf__span line, wf__span *fields) {
  int num = 0;
  while (num < MAX_FIELDS && wf__next_field(&line, &fields[num])) num++;
  return num;
}

static wf_status add_ngram(reader *r, int k, wf__span line, wf_error *err) {
  wf__span fields[MAX_FIELDS];
  int num_fields = split(line, fields);
  if (num_fields != k + 1 && num_fields != k + 2)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected a probability, %d word%s and perhaps a back-off weight, found %s%d field%s", k,
                          k > 1 ? "s" : "", num_fields == MAX_FIELDS ? "at least " : "", num_fields, num_fields > 1 ? "s" : "");
  wf__ngram ngram = {0};
  WF__TRY(parse_cost(r, fields[0], "probability", &ngram.cost, err));
  if (num_fields == k + 2) WF__TRY(parse_cost(r, fields[k + 1], "back-off weight", &ngram.backoff, err));
  if (k == r->levels.order && ngram.backoff != 0)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "an n-gram of the highest order has the back-off weight '%.*s'", WF__SPAN_ARG(fields[k + 1]));
  uint32_t unigram_label;
  const uint32_t *label = &unigram_label;
  if (k == 1) {
    WF__TRY(add_word(r, fields[1], &unigram_label, err));
  } else {
    WF__TRY(find_words(r, k, fields + 1, err));
    label = r->last.label;
  }
  r->stats.num_lines[k]++;
  if (ngram.cost < 0 && label[k - 1] != r->levels.bos) {
    if (ngram.cost < -2.302585f * (float)largest_positive)
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "log10 probability %.*s is above 0", WF__SPAN_ARG(fields[0]));
    ngram.cost = 0;
    r->stats.num_positive++;
  }
  bool merge = false;
  if (!wanted(r, k, label, &merge)) return WF_OK;
  ngram.word = merge ? r->levels.unk : label[k - 1];
  if (merge) ngram.backoff = NAN;
  if (k > 1) WF__TRY(find_context(r, k, &ngram.context, err));
  if (ngram.context == WF__LM_NONE) return WF_OK;
  return wf__vec_push(&r->levels.level[k].ngrams, ngram, "n-grams", err);
}

/* --- sections ----------------------------------------------------------------------------------------------------- */

static bool is_blank(wf__span line) {
  wf__span field;
  return !wf__next_field(&line, &field);
}

/* Trailing blanks off. */
static wf__span trim(wf__span line) {
  while (line.size > 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == '\t')) line.size--;
  return line;
}

/* The n-gram `i` of level k, which is not yet indexed, is there twice. */
static wf_status fail_twice(const reader *r, int k, uint64_t i, wf_error *err) {
  char text[256] = "";
  for (int level = k; level > 0; level--) { /* from the last word to the first */
    const wf__ngram *ngram = &r->levels.level[level].ngrams.data[i];
    const char *word = wf_symbols_text(r->words != NULL ? r->words : r->vocab, ngram->word);
    char longer[sizeof text];
    snprintf(longer, sizeof longer, "%.40s%s%s", word != NULL ? word : "?", level < k ? " " : "", text);
    memcpy(text, longer, sizeof text);
    i = ngram->context;
  }
  return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the %d-grams above give '%s' twice", k, text);
}

/* Adds the contexts noted the first time and sorts. */
static wf_status finish_section(reader *r, int k, wf_error *err) {
  wf__ngram_level *level = &r->levels.level[k];
  for (uint64_t i = 0; r->again && i < r->missing[k].size; i += (uint64_t)k) {
    const uint32_t *label = r->missing[k].data + i;
    wf__ngram ngram = {.word = label[k - 1], .cost = NAN};
    for (int j = 1; j < k && ngram.context != WF__LM_NONE; j++) ngram.context = wf__ngram_find(&r->levels, j, ngram.context, label[j - 1]);
    if (ngram.context == WF__LM_NONE) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "a context could not be created");
    WF__TRY(wf__vec_push(&level->ngrams, ngram, "n-grams", err));
  }
  uint64_t twice = 0;
  wf_status status = wf__ngram_level_sort(&r->levels, k, &twice, err);
  if (status == WF_ERR_FORMAT) return fail_twice(r, k, twice, err);
  WF__TRY(status);
  for (uint64_t i = 0; i < level->ngrams.size; i++) r->stats.num_created += isnan(level->ngrams.data[i].cost);
  return WF_OK;
}

static wf_status check_unigrams(reader *r, wf_error *err) {
  wf__ngram_levels *levels = &r->levels;
  if (r->words == NULL) {
    levels->num_public = levels->num_labels = (uint32_t)wf_symbols_next_key(r->vocab);
    if (levels->eos == WF__LM_NONE) levels->eos = levels->num_labels++;
  }
  return WF_OK;
}

static wf_status check_specials(reader *r, wf_error *err) {
  const wf__ngram_levels *levels = &r->levels;
  if (levels->bos == WF__LM_NONE || wf__ngram_find(levels, 1, 0, levels->bos) == WF__LM_NONE)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "no '%s' among the unigrams above", r->bos);
  if (wf__ngram_find(levels, 1, 0, levels->eos) == WF__LM_NONE)
    wf__log(WF_LOG_WARNING, "%s: no '%s' among the unigrams: sentences never end", r->lines.path, r->eos);
  return WF_OK;
}

/* The lines of section k, up to the next line that starts with a backslash, which becomes the current one. */
static wf_status read_section(reader *r, int k, wf_error *err) {
  uint64_t least_bytes = 2 * (uint64_t)k + 2, left = (uint64_t)(r->lines.end - r->lines.at) / least_bytes, num = 0;
  WF__TRY(wf__vec_grow(&r->levels.level[k].ngrams, r->counts[k] < left ? r->counts[k] : left, "n-grams", err));
  r->last.num_words = r->last.num_nodes = 0;
  r->last.noted = false;
  for (;;) {
    if (!wf__next_line(&r->lines, &r->line)) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the file ends within the %d-grams, without \\end\\", k);
    if (r->line.size > 0 && r->line.data[0] == '\\') break;
    if (is_blank(r->line)) continue;
    if (num++ == r->counts[k])
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "more %d-grams than the %llu of the header", k, (unsigned long long)r->counts[k]);
    WF__TRY(add_ngram(r, k, r->line, err));
    if (num % 65536 == 0) WF__TRY(wf__progress(r->progress, "reading n-grams", (double)(r->lines.at - r->begin) / (double)(r->lines.end - r->begin), err));
  }
  if (num != r->counts[k])
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the %d-grams end after %llu, the header says %llu", k, (unsigned long long)num,
                          (unsigned long long)r->counts[k]);
  return WF_OK;
}

/* `ngram K=COUNT`. */
static wf_status read_count(reader *r, wf_error *err) {
  wf__span rest = r->line, word;
  int64_t k = -1, count = -1;
  if (wf__next_field(&rest, &word) && is_text(word, "ngram")) {
    const char *equals = memchr(rest.data, '=', rest.size);
    if (equals != NULL) {
      wf__span left = {rest.data, (size_t)(equals - rest.data)}, right = {equals + 1, (size_t)(rest.data + rest.size - equals - 1)}, order, number;
      if (!wf__next_field(&left, &order) || !wf__parse_i64(order, &k)) k = -1;
      if (!wf__next_field(&right, &number) || !wf__parse_i64(number, &count) || !is_blank(right)) count = -1;
    }
  }
  if (k < 0 || count < 0) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected 'ngram ORDER=COUNT', found '%.*s'", WF__SPAN_ARG(r->line));
  if (k != r->levels.order + 1)
    return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected the count of %d-grams, found that of %lld-grams", r->levels.order + 1, (long long)k);
  if (k > WF_LM_MAX_ORDER) return wf__lines_fail(&r->lines, err, WF_ERR_LIMIT, "orders above %d are not supported", WF_LM_MAX_ORDER);
  r->counts[k] = (uint64_t)count;
  r->levels.order = (int)k;
  return WF_OK;
}

static wf_status read_header(reader *r, wf_error *err) {
  do {
    if (!wf__next_line(&r->lines, &r->line)) return wf__fail(err, WF_ERR_FORMAT, "%s: not an ARPA file: no line \\data\\", r->lines.path);
  } while (!is_text(trim(r->line), "\\data\\"));
  for (;;) {
    if (!wf__next_line(&r->lines, &r->line)) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the file ends within the header");
    if (r->line.size > 0 && r->line.data[0] == '\\') break;
    if (!is_blank(r->line)) WF__TRY(read_count(r, err));
  }
  if (r->levels.order == 0) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "the header holds no 'ngram 1=COUNT'");
  return WF_OK;
}

static wf_status read_text(reader *r, wf_error *err) {
  WF__TRY(take_words(r, err));
  WF__TRY(read_header(r, err));
  r->stats.order = r->levels.order;
  for (int k = 1; k <= r->levels.order; k++) {
    char head[32];
    snprintf(head, sizeof head, "\\%d-grams:", k);
    if (is_text(trim(r->line), head))
      WF__TRY(read_section(r, k, err));
    else if (r->counts[k] > 0)
      return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected '%s', found '%.*s'", head, WF__SPAN_ARG(r->line));
    if (k == 1) WF__TRY(check_unigrams(r, err));
    WF__TRY(finish_section(r, k, err));
    if (k == 1) WF__TRY(check_specials(r, err));
  }
  if (!is_text(trim(r->line), "\\end\\")) return wf__lines_fail(&r->lines, err, WF_ERR_FORMAT, "expected '\\end\\', found '%.*s'", WF__SPAN_ARG(r->line));
  return WF_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static wf_status start(reader *r, const wf__input *input, wf_error *err) {
  wf__ngram_levels_free(&r->levels);
  wf_symbols_free(r->vocab);
  r->vocab = NULL;
  r->label_of.size = 0;
  r->stats = (wf_arpa_stats){0};
  r->lines = wf__lines_of(input);
  r->begin = r->lines.at;
  WF__TRY(wf_symbols_create(input->path, &r->vocab, err));
  WF__TRY(wf_symbols_add(r->vocab, "<eps>", 0, NULL, err));
  return wf__vec_push(&r->label_of, 0, "words of a language model", err);
}

static void warn(const reader *r) {
  const wf_arpa_stats *stats = &r->stats;
  const char *path = r->lines.path;
  if (stats->num_refused > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu n-grams with %s inside or %s before the end left out", path, (unsigned long long)stats->num_refused, r->bos, r->eos);
  if (stats->num_positive > 0) wf__log(WF_LOG_WARNING, "%s: %llu probabilities slightly above 1 taken as 1", path, (unsigned long long)stats->num_positive);
  if (stats->num_created > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu contexts of n-grams were missing and have been created", path, (unsigned long long)stats->num_created);
  if (stats->num_oov_words > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu words are not in the word table: %llu n-grams left out, %llu counted as the unknown word", path,
            (unsigned long long)stats->num_oov_words, (unsigned long long)stats->num_oov_skipped, (unsigned long long)stats->num_oov_merged);
}

static bool any_missing(const reader *r) {
  for (int k = 1; k <= WF_LM_MAX_ORDER; k++)
    if (r->missing[k].size > 0) return true;
  return false;
}

static wf_status read_and_build(reader *r, const wf__input *input, wf_lm **out, wf_error *err) {
  WF__TRY(start(r, input, err));
  WF__TRY(read_text(r, err));
  if (any_missing(r)) {
    r->again = true;
    WF__TRY(start(r, input, err));
    WF__TRY(read_text(r, err));
  }
  WF__TRY(wf__lm_build(&r->levels, r->words != NULL ? r->words : r->vocab, out, r->progress, err));
  warn(r);
  return WF_OK;
}

void wf_arpa_stats_init(wf_arpa_stats *stats) { *stats = (wf_arpa_stats){.struct_size = sizeof *stats}; }

wf_status wf__lm_read_arpa_input(const wf__input *input, const wf_symbols *words, const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                                 const wf_progress *progress, wf_error *err) {
  *out = NULL;
  wf_arpa_options o;
  if (stats != NULL && stats->struct_size < sizeof(size_t)) return wf__fail(err, WF_ERR_ARGUMENT, "wf_arpa_stats: use wf_arpa_stats_init");
  WF__TRY(wf__options_take(wf__arpa_table(), options, &o, err));
  reader r = {.words = words,
              .bos = o.bos_symbol != NULL ? o.bos_symbol : "<s>",
              .eos = o.eos_symbol != NULL ? o.eos_symbol : "</s>",
              .unk = o.unk_symbol,
              .oov = o.oov,
              .progress = progress};
  wf_status status = read_and_build(&r, input, out, err);
  if (status == WF_OK && stats != NULL) {
    r.stats.struct_size = stats->struct_size;
    memcpy(stats, &r.stats, stats->struct_size < sizeof r.stats ? stats->struct_size : sizeof r.stats);
  }
  wf__ngram_levels_free(&r.levels);
  wf_symbols_free(r.vocab);
  wf__vec_free(&r.label_of);
  for (int k = 0; k <= WF_LM_MAX_ORDER; k++) wf__vec_free(&r.missing[k]);
  return status;
}

wf_status wf_lm_read_arpa(const char *path, const wf_symbols *words, const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                          const wf_progress *progress, wf_error *err) {
  *out = NULL;
  wf__input input;
  WF__TRY(wf__input_open(path, &input, err));
  wf_status status = wf__lm_read_arpa_input(&input, words, options, out, stats, progress, err);
  wf__input_close(&input);
  return status;
}
