/* lm_estimate.c - wf_lm_estimate: the options, the steps, and the model in memory or as a file. */
#include "lm/estimate/lm_estimate.h"

#include <math.h>
#include <string.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "base/temp_file.h"
#include "lm/arpa_text.h"
#include "lm/estimate/estimate_output.h"
#include "lm/lm.h"
#include "lm/ngram_levels.h"

/* --- options ----------------------------------------------------------------------------- */

/* `0,0,1`: the last number holds for all higher orders. */
static wf_status parse_prune(wf__estimate *e, wf_error *err) {
  const char *at = e->options.prune;
  int64_t limit = 0, number = 0;
  for (int k = 1; k <= WF_LM_MAX_ORDER; k++) {
    if (at != NULL) {
      const size_t size = strcspn(at, ",");
      if (!wf__parse_i64((wf__span){at, size}, &number) || number < limit ||
          (k == 1 && number != 0))
        return wf__fail(err, WF_ERR_ARGUMENT,
                        "prune: expected counts that do not fall, the first of them 0, such as "
                        "0,0,1, found '%.80s'",
                        e->options.prune);
      if (k > e->options.order)
        return wf__fail(err, WF_ERR_ARGUMENT, "prune has a count for %d-grams, the order is %d", k,
                        e->options.order);
      limit = number;
      at = at[size] == ',' ? at + size + 1 : NULL;
    }
    e->by_order[k].prune = (uint64_t)limit;
  }
  return WF_OK;
}

/* `0.5,1,1.5` */
static wf_status parse_fallback(wf__estimate *e, wf_error *err) {
  const char *at =
                 e->options.discount_fallback != NULL ? e->options.discount_fallback : "0.5,1,1.5",
             *text = at;
  for (int i = 1; i <= 3; i++) {
    const size_t size = at != NULL ? strcspn(at, ",") : 0;
    double *discount = &e->fallback[i];
    if (at == NULL || !wf__parse_f64((wf__span){at, size}, discount) ||
        !(*discount > 0 && *discount <= i) || (i == 3 && at[size] != '\0'))
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "discount_fallback: expected three numbers above 0 and up to 1, 2 and 3, "
                      "such as 0.5,1,1.5, found '%.80s'",
                      text);
    at = at[size] == ',' ? at + size + 1 : NULL;
  }
  return WF_OK;
}

/* --- steps ------------------------------------------------------------------------------- */

static wf_status count_texts(wf__estimate *e, const char *const *texts, size_t num_texts,
                             wf_error *err) {
  for (size_t i = 0; i < num_texts; i++) {
    wf__word_reader reader;
    WF__TRY(wf__word_reader_open(&reader, texts[i], e->options.ids, err));
    const wf_status status = wf__estimate_count(e, &reader, err);
    wf__word_reader_close(&reader);
    WF__TRY(status);
  }
  if (e->stats.num_sentences > 0) return WF_OK;
  return num_texts == 0 ? wf__fail(err, WF_ERR_ARGUMENT, "no text to estimate a model from")
                        : wf__fail(err, WF_ERR_FORMAT, "%s%s: no line to estimate a model from",
                                   texts[0], num_texts > 1 ? " and the other texts" : "");
}

/* The back-off weights of an order come with the probabilities of the next. */
static wf_status put_orders(wf__estimate *e, const wf__estimate_sink *sink, wf_error *err) {
  for (int k = 1; k <= e->order; k++) {
    WF__TRY(wf__estimate_costs(e, k, err));
    if (k > 1) WF__TRY(wf__estimate_put(e, k - 1, sink, err));
  }
  return wf__estimate_put(e, e->order, sink, err);
}

static void free_all(wf__estimate *e) {
  for (int k = 0; k <= WF_LM_MAX_ORDER; k++) {
    wf__estimate_order *order = &e->by_order[k];
    wf__sort_free(order->grams);
    wf__sort_free(order->shares);
    wf__sort_free(order->suffixes);
    wf__sort_free(order->costs);
    wf__sort_free(order->backoffs);
  }
  wf__sort_free(e->longest);
  wf_symbols_free(e->words);
  free(e->folder);
  free(e);
}

/* Makes a model from the texts, up to the probabilities. The caller frees *out with free_all. */
static wf_status begin(const char *const *texts, size_t num_texts, const wf_symbols *vocabulary,
                       const wf_lm_estimate_options *options, const char *output,
                       const wf_progress *progress, wf__estimate **out, wf_error *err) {
  wf__estimate *e = *out = wf__calloc(1, sizeof *e);
  if (e == NULL) return wf__fail_memory(err, sizeof *e, "a language model");
  e->progress = progress;
  WF__TRY(wf__options_take(wf__lm_estimate_table(), options, &e->options, err));
  WF__TRY(parse_prune(e, err));
  WF__TRY(parse_fallback(e, err));
  WF__TRY(wf__temp_folder(e->options.temporary, output, &e->folder, err));
  WF__TRY(wf__estimate_begin_count(e, vocabulary, err));
  WF__TRY(count_texts(e, texts, num_texts, err));
  WF__TRY(wf__estimate_end_count(e, err));
  WF__TRY(wf__estimate_adjust(e, err));
  wf__estimate_discounts(e);
  return WF_OK;
}

/* --- a model in memory ------------------------------------------------------------------- */

typedef struct memory_sink {
  wf__ngram_levels levels;
  uint32_t context[WF_LM_MAX_ORDER], node; /* of the previous n-gram */
  int context_size;
} memory_sink;

static wf_status memory_begin(void *user, int k, wf_error *err) {
  (void)err;
  memory_sink *m = user;
  m->levels.order = k;
  m->context_size = 0; /* not the size of a context of order k > 1 */
  m->node = 0;
  return WF_OK;
}

static wf_status memory_put(void *user, int k, const uint32_t *words, float cost,
                            const float *backoff, wf_error *err) {
  memory_sink *m = user;
  const size_t bytes = (size_t)(k - 1) * sizeof *words;
  if (m->context_size != k - 1 || memcmp(words, m->context, bytes) != 0) {
    m->node = 0;
    for (int i = 1; i < k; i++) m->node = wf__ngram_find(&m->levels, i, m->node, words[i - 1]);
    memcpy(m->context, words, bytes);
    m->context_size = k - 1;
  }
  const wf__ngram ngram = {m->node, words[k - 1], cost, backoff != NULL ? *backoff : 0};
  return wf__vec_push(&m->levels.level[k].ngrams, ngram, "n-grams", err);
}

static wf_status memory_end(void *user, int k, wf_error *err) {
  memory_sink *m = user;
  uint64_t duplicate;
  return wf__ngram_level_sort(&m->levels, k, &duplicate, err);
}

static wf_status make_lm(wf__estimate *e, wf__automaton **out, wf_error *err) {
  memory_sink m = {.levels = {.num_public = e->num_labels,
                              .num_labels = e->num_labels,
                              .bos = WF__LM_BOS,
                              .eos = WF__LM_EOS,
                              .unk = WF__LM_UNK}};
  const wf__estimate_sink sink = {memory_put, memory_begin, memory_end, &m};
  wf_status status = put_orders(e, &sink, err);
  if (status == WF_OK) status = wf__lm_build(&m.levels, e->words, out, e->progress, err);
  wf__ngram_levels_free(&m.levels);
  return status;
}

wf_status wf_lm_estimate(const char *const *texts, size_t num_texts, const wf_symbols *vocabulary,
                         const wf_lm_estimate_options *options, wf_lm **out,
                         wf_lm_estimate_stats *stats, const wf_progress *progress, wf_error *err) {
  *out = NULL;
  wf__estimate *e = NULL;
  if (stats != NULL) WF__TRY(wf__struct_check("wf_lm_estimate_stats", stats, sizeof *stats, err));
  wf_status status = begin(texts, num_texts, vocabulary, options, NULL, progress, &e, err);
  wf__automaton *made;
  if (status == WF_OK) status = make_lm(e, &made, err);
  if (status == WF_OK) status = wf__lm_of_automaton(made, "the estimated model", out, err);
  if (status == WF_OK && stats != NULL) wf__struct_give(&e->stats, sizeof e->stats, stats);
  if (e != NULL) free_all(e);
  return status;
}

/* --- an ARPA file ------------------------------------------------------------------------ */

typedef struct arpa_sink {
  const wf_symbols *words;
  wf__output *output;
} arpa_sink;

static wf_status arpa_begin(void *user, int k, wf_error *err) {
  (void)err;
  wf__arpa_write_section(((arpa_sink *)user)->output, k);
  return WF_OK;
}

static wf_status arpa_put(void *user, int k, const uint32_t *words, float cost,
                          const float *backoff, wf_error *err) {
  (void)err;
  const arpa_sink *a = user;
  wf__arpa_write_log10(a->output, cost);
  for (int i = 0; i < k; i++) {
    wf__write(a->output, i == 0 ? "\t" : " ", 1);
    wf__write_text(a->output, wf_symbols_text(a->words, words[i]));
  }
  if (backoff != NULL) {
    wf__write(a->output, "\t", 1);
    wf__arpa_write_log10(a->output, *backoff);
  }
  wf__write(a->output, "\n", 1);
  return WF_OK;
}

static wf_status arpa_end(void *user, int k, wf_error *err) {
  (void)user;
  (void)k;
  (void)err;
  return WF_OK;
}

static wf_status write_arpa(wf__estimate *e, const char *path, wf_error *err) {
  arpa_sink a = {.words = e->words};
  const wf__estimate_sink sink = {arpa_put, arpa_begin, arpa_end, &a};
  WF__TRY(wf__output_open(path, &a.output, err));
  wf__arpa_write_header(a.output, e->order, e->stats.num_kept);
  const wf_status status = put_orders(e, &sink, err);
  if (status != WF_OK) {
    wf__output_abort(a.output);
    return status;
  }
  wf__arpa_write_end(a.output);
  return wf__output_close(a.output, err);
}

wf_status wf_lm_estimate_arpa(const char *const *texts, size_t num_texts,
                              const wf_symbols *vocabulary, const wf_lm_estimate_options *options,
                              const char *path, wf_lm_estimate_stats *stats,
                              const wf_progress *progress, wf_error *err) {
  wf__estimate *e = NULL;
  if (stats != NULL) WF__TRY(wf__struct_check("wf_lm_estimate_stats", stats, sizeof *stats, err));
  wf_status status = begin(texts, num_texts, vocabulary, options,
                           strcmp(path, "-") == 0 ? NULL : path, progress, &e, err);
  if (status == WF_OK) status = write_arpa(e, path, err);
  if (status == WF_OK && stats != NULL) wf__struct_give(&e->stats, sizeof e->stats, stats);
  if (e != NULL) free_all(e);
  return status;
}
