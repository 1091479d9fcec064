/* ngram_collector.c - selects the words and n-grams of a file for a model, and assigns labels.
 * Words are numbered in the order of the unigrams (`vocab`). label_of[] has the label of each word,
 * or OUTSIDE if the caller's table lacks it. The context of an n-gram is found by a search through
 * the lower levels. */
#include "lm/ngram_collector.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/callbacks.h"
#include "base/config.h"
#include "base/option_tables.h"
#include "base/tally.h"
#include "fst/symbols.h"

#define MAX_LABEL ((int64_t)1 << 27) /* labels index arrays */
static const double largest_positive = 1e-3;

static bool is_text(wf__span span, const char *text) {
  return strlen(text) == span.size && memcmp(span.data, text, span.size) == 0;
}
static bool is_unk(const wf__ngram_collector *in, wf__span span) {
  return in->unk != NULL ? is_text(span, in->unk)
                         : is_text(span, "<unk>") || is_text(span, "<UNK>");
}

/* --- words ------------------------------------------------------------------------------- */

/* Finds the labels of <s>, </s> and <unk> in the caller's table. If it lacks them, assigns labels
 * after the table's last one. */
static wf_status take_words(wf__ngram_collector *in, wf_error *err) {
  wf__ngram_levels *levels = &in->levels;
  levels->bos = levels->eos = levels->unk = WF__LM_NONE;
  if (in->words == NULL) return WF_OK;
  int64_t next = wf_symbols_next_key(in->words);
  if (next > MAX_LABEL)
    return wf__fail(err, WF_ERR_LIMIT,
                    "word table %s: labels of language models end at %lld, found %lld",
                    wf__symbols_shown(in->words), (long long)MAX_LABEL, (long long)next - 1);
  int64_t bos = wf_symbols_find(in->words, in->bos), eos = wf_symbols_find(in->words, in->eos);
  int64_t unk = wf_symbols_find(in->words, in->unk != NULL ? in->unk : "<unk>");
  if (unk < 0 && in->unk == NULL) unk = wf_symbols_find(in->words, "<UNK>");
  in->words_have_unk = unk >= 0;
  levels->num_public = (uint32_t)next;
  levels->bos = (uint32_t)(bos >= 0 ? bos : next++);
  levels->eos = (uint32_t)(eos >= 0 ? eos : next++);
  levels->unk = (uint32_t)(unk >= 0 ? unk : next++);
  levels->num_labels = (uint32_t)next;
  return WF_OK;
}

/* Counts a word that the table has only in another case. */
static wf_status look_at_case(wf__ngram_collector *in, wf__span word, wf_error *err) {
  const char *text;
  bool known = in->cases.lower != NULL;
  for (size_t i = 0; !known && (text = wf_symbols_at(in->words, i, NULL)) != NULL; i++)
    WF__TRY(wf__word_case_add(&in->cases, (wf__span){text, strlen(text)}, err));
  return wf__word_case_missing(&in->cases, word, err);
}

/* Finds the label of the unigram `text`, which has number `key` in the vocabulary. */
static wf_status label_word(wf__ngram_collector *in, wf__span text, int64_t key, int32_t *out,
                            wf_error *err) {
  wf__ngram_levels *levels = &in->levels;
  bool bos = is_text(text, in->bos), eos = is_text(text, in->eos), unk = is_unk(in, text);
  int64_t label = key;
  if (in->words == NULL) {
    if (key > MAX_LABEL)
      return wf__fail(err, WF_ERR_LIMIT, "more than %lld words", (long long)MAX_LABEL);
    if (bos) levels->bos = (uint32_t)key;
    if (eos) levels->eos = (uint32_t)key;
    if (unk && levels->unk == WF__LM_NONE) levels->unk = (uint32_t)key;
  } else {
    label = bos   ? levels->bos
            : eos ? levels->eos
            : unk ? levels->unk
                  : wf__symbols_find_bytes(in->words, text.data, text.size);
    if (label == 0)
      return wf__fail(err, WF_ERR_FORMAT, "'%.*s' is epsilon (0) in the word table",
                      WF__SPAN_ARG(text));
  }
  if (label < 0) {
    if (in->oov == WF__OOV_ERROR)
      return wf__fail(err, WF_ERR_FORMAT, "'%.*s' is not in the word table", WF__SPAN_ARG(text));
    in->stats.num_oov_words++;
    WF__TRY(look_at_case(in, text, err));
    label = WF__LM_OUTSIDE;
  }
  *out = (int32_t)label;
  return WF_OK;
}

wf_status wf__collector_add_word(wf__ngram_collector *in, wf__span text, uint32_t *out,
                                 wf_error *err) {
  if (!wf__is_utf8(text)) return wf__fail(err, WF_ERR_FORMAT, "the word is not UTF-8");
  if (memchr(text.data, '\0', text.size) != NULL)
    return wf__fail(err, WF_ERR_FORMAT, "the word holds a NUL byte");
  if (wf__symbols_find_bytes(in->vocab, text.data, text.size) >= 0)
    return wf__fail(err, WF_ERR_FORMAT, "the unigram '%.*s' is given twice, or stands for epsilon",
                    WF__SPAN_ARG(text));
  char *copy = wf__strndup(text.data, text.size);
  if (copy == NULL) return wf__fail_memory(err, text.size, "a word");
  int64_t key;
  wf_status status = wf_symbols_add(in->vocab, copy, -1, &key, err);
  free(copy);
  WF__TRY(status);
  int32_t label;
  WF__TRY(label_word(in, text, key, &label, err));
  WF__TRY(wf__vec_push(&in->label_of, label, "words of a language model",
                       err)); /* vocab keys start at 1, as label_of[0] is <eps> */
  *out = (uint32_t)label;
  return WF_OK;
}

/* --- n-grams ----------------------------------------------------------------------------- */

/* Finds the node of the context of an n-gram of order k. If it is missing, sets WF__LM_NONE and
 * records the context and its missing prefixes. */
static wf_status find_context(wf__ngram_collector *in, int k, const uint32_t *label, uint32_t *out,
                              wf_error *err) {
  int same = 0;
  while (same < k - 1 && same < in->last.num_words && label[same] == in->last.label[same]) same++;
  if (same < k - 1) in->last.noted = false;
  if (in->last.num_nodes > same) in->last.num_nodes = same;
  for (int i = same; i < k - 1; i++) in->last.label[i] = label[i];
  in->last.num_words = k - 1;
  uint32_t node = in->last.num_nodes > 0 ? in->last.node[in->last.num_nodes - 1] : 0;
  while (in->last.num_nodes < k - 1) {
    int level = in->last.num_nodes + 1;
    node = wf__ngram_find(&in->levels, level, node, label[level - 1]);
    if (node == WF__LM_NONE) break;
    in->last.node[in->last.num_nodes++] = node;
  }
  *out = node;
  if (node != WF__LM_NONE || in->last.noted) return WF_OK;
  in->last.noted = true;
  for (int level = in->last.num_nodes + 1; level < k; level++) {
    WF__TRY(wf__vec_grow(&in->missing[level], level, "contexts to create", err));
    for (int i = 0; i < level; i++) in->missing[level].data[in->missing[level].size++] = label[i];
  }
  return WF_OK;
}

/* False if the n-gram is refused or skipped. Sets `*merge` if its last word counts as <unk>. */
static bool wanted(wf__ngram_collector *in, int k, const uint32_t *label, bool *merge) {
  const wf__ngram_levels *levels = &in->levels;
  for (int i = 0; i < k; i++) {
    if ((label[i] == levels->bos && i > 0) || (label[i] == levels->eos && i + 1 < k)) {
      in->stats.num_refused++;
      return false;
    }
  }
  for (int i = 0; i < k; i++) {
    if (label[i] != WF__LM_OUTSIDE) continue;
    if (i + 1 == k && in->oov == WF__OOV_UNK && in->words_have_unk) {
      in->stats.num_oov_merged++;
      *merge = true;
    } else {
      in->stats.num_oov_skipped++;
      return false;
    }
  }
  return true;
}

wf_status wf__collector_add_ngram(wf__ngram_collector *in, int k, const uint32_t *label, float cost,
                                  float backoff, wf_error *err) {
  in->stats.num_lines[k]++;
  if (cost < 0 && label[k - 1] != in->levels.bos && !in->is_checked) {
    if (cost < (float)(-M_LN10 * largest_positive))
      return wf__fail(err, WF_ERR_FORMAT, "log10 probability %g is above 0",
                      -(double)cost / M_LN10);
    cost = 0;
    in->stats.num_positive++;
  }
  bool merge = false;
  if (!wanted(in, k, label, &merge)) return WF_OK;
  if (in->sink != NULL) return in->sink->put(in->sink->user, in, k, label, cost, backoff, err);
  wf__ngram ngram = {.word = merge ? in->levels.unk : label[k - 1],
                     .cost = cost,
                     .backoff = merge ? NAN : backoff};
  if (k > 1) WF__TRY(find_context(in, k, label, &ngram.context, err));
  if (ngram.context == WF__LM_NONE) return WF_OK;
  return wf__vec_push(&in->levels.level[k].ngrams, ngram, "n-grams", err);
}

/* --- levels ------------------------------------------------------------------------------ */

/* Reports a duplicate: n-gram `i` of level k, which is not yet indexed. */
static wf_status fail_duplicate(const wf__ngram_collector *in, int k, uint64_t i, wf_error *err) {
  char text[256] = "";
  for (int level = k; level > 0; level--) { /* from the last word to the first */
    const wf__ngram *ngram = &in->levels.level[level].ngrams.data[i];
    const char *word = wf_symbols_text(in->words != NULL ? in->words : in->vocab, ngram->word);
    char longer[sizeof text];
    snprintf(longer, sizeof longer, "%.40s%s%s", word != NULL ? word : "?", level < k ? " " : "",
             text);
    memcpy(text, longer, sizeof text);
    i = ngram->context;
  }
  return wf__fail(err, WF_ERR_FORMAT, "the %d-grams above give '%s' twice", k, text);
}

static bool has_unigram(const wf__ngram_collector *in, uint32_t label) {
  if (label == WF__LM_NONE) return false;
  return in->sink != NULL ? label < in->levels.num_public
                          : wf__ngram_find(&in->levels, 1, 0, label) != WF__LM_NONE;
}

static wf_status check_specials(const wf__ngram_collector *in, wf_error *err) {
  const wf__ngram_levels *levels = &in->levels;
  if (!has_unigram(in, levels->bos))
    return wf__fail(err, WF_ERR_FORMAT, "no '%s' among the unigrams above", in->bos);
  if (!has_unigram(in, levels->eos))
    wf__log(WF_LOG_WARNING, "%s: no '%s' among the unigrams: sentences never end", in->path,
            in->eos);
  return WF_OK;
}

/* Adds the contexts recorded in the first run, sorts the level, and indexes it. */
wf_status wf__collector_end_level(wf__ngram_collector *in, int k, wf_error *err) {
  wf__ngram_levels *levels = &in->levels;
  wf__ngram_level *level = &levels->level[k];
  if (k == 1 && in->words == NULL) {
    levels->num_public = levels->num_labels = (uint32_t)wf_symbols_next_key(in->vocab);
    if (levels->eos == WF__LM_NONE) levels->eos = levels->num_labels++;
  }
  if (in->sink != NULL) return k == 1 ? check_specials(in, err) : WF_OK;
  for (uint64_t i = 0; in->again && i < in->missing[k].size; i += (uint64_t)k) {
    const uint32_t *label = in->missing[k].data + i;
    wf__ngram ngram = {.word = label[k - 1], .cost = NAN};
    for (int j = 1; j < k && ngram.context != WF__LM_NONE; j++)
      ngram.context = wf__ngram_find(levels, j, ngram.context, label[j - 1]);
    if (ngram.context == WF__LM_NONE)
      return wf__fail(err, WF_ERR_FORMAT, "a context could not be created");
    WF__TRY(wf__vec_push(&level->ngrams, ngram, "n-grams", err));
  }
  uint64_t duplicate = 0;
  wf_status status = wf__ngram_level_sort(levels, k, &duplicate, err);
  if (status == WF_ERR_FORMAT) return fail_duplicate(in, k, duplicate, err);
  WF__TRY(status);
  for (uint64_t i = 0; i < level->ngrams.size; i++)
    in->stats.num_created += isnan(level->ngrams.data[i].cost);
  in->last.num_words = in->last.num_nodes = 0;
  in->last.noted = false;
  return k == 1 ? check_specials(in, err) : WF_OK;
}

/* --- calls ------------------------------------------------------------------------------- */

static wf_status start(wf__ngram_collector *in, wf_error *err) {
  wf__ngram_levels_free(&in->levels);
  wf_symbols_free(in->vocab);
  in->vocab = NULL;
  in->label_of.size = 0;
  in->cases.num_found = 0;
  in->stats = (wf_arpa_stats){0};
  in->last.num_words = in->last.num_nodes = 0;
  WF__TRY(wf_symbols_create(in->sink != NULL ? "words" : in->path, &in->vocab, err));
  WF__TRY(wf_symbols_add(in->vocab, "<eps>", 0, NULL, err));
  WF__TRY(wf__vec_push(&in->label_of, 0, "words of a language model", err));
  return take_words(in, err);
}

/* Names the words that the caller's table lacks. */
static wf_status warn_of_outside(const wf__ngram_collector *in, wf_error *err) {
  const wf_arpa_stats *stats = &in->stats;
  const uint64_t num_words = in->label_of.size - 1; /* without <eps> */
  wf_tally outside = {0};
  wf_status status = WF_OK;
  char names[300];
  for (uint64_t i = 0; i < in->label_of.size && status == WF_OK; i++)
    if (in->label_of.data[i] == WF__LM_OUTSIDE)
      status = wf__tally_add(&outside, wf_symbols_text(in->vocab, (int64_t)i), err);
  wf__tally_list(&outside, names, sizeof names);
  wf__tally_free(&outside);
  WF__TRY(status);
  wf__log(WF_LOG_WARNING,
          "%s: %llu of %llu words (%.1f%%) are not in the word table and cannot be found: %s; "
          "%llu n-grams with them left out, %llu counted as the unknown word",
          in->path, (unsigned long long)stats->num_oov_words, (unsigned long long)num_words,
          100.0 * (double)stats->num_oov_words / (double)num_words, names,
          (unsigned long long)stats->num_oov_skipped, (unsigned long long)stats->num_oov_merged);
  return WF_OK;
}

static wf_status warn(const wf__ngram_collector *in, wf_error *err) {
  const wf_arpa_stats *stats = &in->stats;
  const char *path = in->path;
  if (stats->num_refused > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu n-grams with %s inside or %s before the end left out", path,
            (unsigned long long)stats->num_refused, in->bos, in->eos);
  if (stats->num_positive > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu probabilities slightly above 1 taken as 1", path,
            (unsigned long long)stats->num_positive);
  if (stats->num_created > 0)
    wf__log(WF_LOG_WARNING, "%s: %llu contexts of n-grams were missing and have been created", path,
            (unsigned long long)stats->num_created);
  return stats->num_oov_words > 0 ? warn_of_outside(in, err) : WF_OK;
}

static bool any_missing(const wf__ngram_collector *in) {
  for (int k = 1; k <= WF_LM_MAX_ORDER; k++)
    if (in->missing[k].size > 0) return true;
  return false;
}

static wf_status read_and_build(wf__ngram_collector *in, wf__ngram_read_fn read, void *user,
                                wf__automaton **out, wf_error *err) {
  WF__TRY(start(in, err));
  WF__TRY(read(user, in, err));
  if (any_missing(in)) {
    in->again = true;
    WF__TRY(start(in, err));
    WF__TRY(read(user, in, err));
  }
  in->stats.order = in->levels.order;
  WF__TRY(warn(in, err));
  WF__TRY(
      wf__lm_build(&in->levels, in->words != NULL ? in->words : in->vocab, out, in->progress, err));
  (*out)->num_outside = in->stats.num_oov_words;
  (*out)->num_other_case = in->cases.num_found;
  memcpy((*out)->other_case, in->cases.first, sizeof(*out)->other_case);
  return WF_OK;
}

static wf_status take_options(wf__ngram_collector *in, const wf_arpa_options *options,
                              const wf_arpa_stats *stats, wf_error *err) {
  wf_arpa_options o;
  if (stats != NULL) WF__TRY(wf__struct_check("wf_arpa_stats", stats, sizeof *stats, err));
  WF__TRY(wf__options_take(wf__arpa_table(), options, &o, err));
  in->bos = o.bos_symbol != NULL ? o.bos_symbol : "<s>";
  in->eos = o.eos_symbol != NULL ? o.eos_symbol : "</s>";
  in->unk = o.unk_symbol;
  in->oov = o.oov;
  return WF_OK;
}

/* Passes the statistics to the caller, and frees the rest. */
static void end(wf__ngram_collector *in, wf_status status, wf_arpa_stats *stats) {
  if (status == WF_OK && stats != NULL) wf__struct_give(&in->stats, sizeof in->stats, stats);
  wf__ngram_levels_free(&in->levels);
  wf_symbols_free(in->vocab);
  wf__word_case_free(&in->cases);
  wf__vec_free(&in->label_of);
  for (int k = 0; k <= WF_LM_MAX_ORDER; k++) wf__vec_free(&in->missing[k]);
}

wf_status wf__collect_ngrams(const char *path, const wf_symbols *words,
                             const wf_arpa_options *options, wf__ngram_read_fn read, void *user,
                             wf__automaton **out, wf_arpa_stats *stats, const wf_progress *progress,
                             wf_error *err) {
  *out = NULL;
  wf__ngram_collector in = {.path = path, .words = words, .progress = progress};
  WF__TRY(take_options(&in, options, stats, err));
  wf_status status = read_and_build(&in, read, user, out, err);
  end(&in, status, stats);
  return status;
}

wf_status wf__stream_ngrams(const char *path, const wf_arpa_options *options,
                            wf__ngram_read_fn read, void *user, const wf__ngram_sink *sink,
                            wf__ngram_stream_info *info, wf_arpa_stats *stats,
                            const wf_progress *progress, wf_error *err) {
  *info = (wf__ngram_stream_info){0};
  wf__ngram_collector in = {.path = path, .progress = progress, .sink = sink};
  WF__TRY(take_options(&in, options, stats, err));
  wf_status status = start(&in, err);
  if (status == WF_OK) status = read(user, &in, err);
  if (status == WF_OK) status = warn(&in, err);
  if (status == WF_OK) {
    const wf__ngram_levels *levels = &in.levels;
    *info = (wf__ngram_stream_info){wf_symbols_ref(in.vocab), levels->order, levels->bos,
                                    has_unigram(&in, levels->eos) ? levels->eos : WF__LM_NONE,
                                    levels->unk};
    in.stats.order = levels->order;
  }
  end(&in, status, stats);
  return status;
}
