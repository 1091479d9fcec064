/* lm_mix_weights.c - weights of a mixture by the EM algorithm. With p_i(t) the probability of token
 * t in model i, an iteration replaces the weight of i by the mean over the tokens of
 *     weight_i p_i(t) / sum_j weight_j p_j(t) */
#include <string.h>

#include "base/callbacks.h"
#include "base/config.h"
#include "base/interrupt.h"
#include "base/option_tables.h"
#include "fst/symbols.h"
#include "lm/lm.h"
#include "lm/mix/lm_mix.h"
#include "lm/word_reader.h"

enum { MOST_ITERATIONS = 1000, REPORT_EVERY = 1 << 16 };
static const double smallest_change = 1e-7; /* of a weight; smaller ones end the iterations */

typedef struct tuning {
  wf__mix mix;
  uint32_t *states;             /* [num_lms] after the words of the sentence */
  WF__VEC(float) probabilities; /* [tokens][num_lms] */
  double *sums;                 /* [num_lms] */
} tuning;

static uint64_t num_tokens(const tuning *t) { return t->probabilities.size / t->mix.num_lms; }

static void begin_sentence(tuning *t) {
  for (size_t i = 0; i < t->mix.num_lms; i++) t->states[i] = t->mix.lms[i]->start;
}

/* Adds a token, unless its probability is 0 in all models or it is an unknown word. */
static wf_status add_token(tuning *t, uint32_t word, wf_error *err) {
  const size_t num = t->mix.num_lms;
  bool possible = false;
  WF__TRY(wf__vec_grow(&t->probabilities, num, "probabilities of words", err));
  for (size_t i = 0; i < num; i++) {
    uint32_t next;
    const double p = wf__mix_step(&t->mix, i, t->states[i], word, &next);
    t->probabilities.data[t->probabilities.size + i] = (float)p;
    t->states[i] = next;
    possible |= (float)p > 0;
  }
  if (possible && word != WF__LM_UNK) t->probabilities.size += num;
  return WF_OK;
}

static wf_status read_text(tuning *t, wf__word_reader *reader, const wf_progress *progress,
                           wf_error *err) {
  begin_sentence(t);
  for (uint64_t step = 0;; step++) {
    wf__span word;
    bool more;
    WF__TRY(wf__word_reader_next(reader, &word, &more, err));
    if (!more) return WF_OK;
    int64_t label = WF__LM_EOS;
    if (word.data != NULL) {
      label = wf__symbols_find_bytes(t->mix.words, word.data, word.size);
      if (label < WF__LM_UNK) label = WF__LM_UNK;
    }
    WF__TRY(add_token(t, (uint32_t)label, err));
    if (word.data == NULL) begin_sentence(t);
    if (step % REPORT_EVERY == 0) WF__TRY(wf__progress(progress, "scoring the text", -1, err));
  }
}

/* Sets sums[] to the expected number of tokens of each model. Returns the log-probability. */
static wf_status expect(tuning *t, const double *weights, double *log_p, wf_error *err) {
  const size_t num = t->mix.num_lms;
  *log_p = 0;
  memset(t->sums, 0, num * sizeof *t->sums);
  for (uint64_t token = 0; token < num_tokens(t); token++) {
    const float *p = &t->probabilities.data[token * num];
    double sum = 0;
    for (size_t i = 0; i < num; i++) sum += weights[i] * (double)p[i];
    for (size_t i = 0; i < num; i++) t->sums[i] += weights[i] * (double)p[i] / sum;
    *log_p += log(sum);
    WF__TRY(wf__interrupted_at(token, err));
  }
  return WF_OK;
}

static wf_status find_weights(tuning *t, double *weights, double *perplexity,
                              const wf_progress *progress, wf_error *err) {
  const size_t num = t->mix.num_lms;
  const double tokens = (double)num_tokens(t);
  double log_p, change = 1;
  for (size_t i = 0; i < num; i++) weights[i] = 1 / (double)num;
  for (int n = 0; n < MOST_ITERATIONS && change > smallest_change; n++) {
    WF__TRY(wf__progress(progress, "finding weights", -1, err));
    WF__TRY(expect(t, weights, &log_p, err));
    change = 0;
    for (size_t i = 0; i < num; i++) {
      const double weight = t->sums[i] / tokens;
      change = fmax(change, fabs(weight - weights[i]));
      weights[i] = weight;
    }
  }
  WF__TRY(expect(t, weights, &log_p, err));
  if (perplexity != NULL) *perplexity = exp(-log_p / tokens);
  return WF_OK;
}

static wf_status run(tuning *t, const wf__automaton *const *lms, size_t num_lms, const char *text,
                     bool ids, double *weights, double *perplexity, const wf_progress *progress,
                     wf_error *err) {
  wf__word_reader reader;
  WF__TRY(wf__mix_words(lms, num_lms, &t->mix, err));
  t->states = wf__calloc(num_lms, sizeof *t->states);
  t->sums = wf__calloc(num_lms, sizeof *t->sums);
  if (t->states == NULL || t->sums == NULL)
    return wf__fail_memory(err, num_lms * sizeof *t->sums, "weights");
  WF__TRY(wf__word_reader_open(&reader, text, ids, err));
  const wf_status status = read_text(t, &reader, progress, err);
  wf__word_reader_close(&reader);
  WF__TRY(status);
  if (t->probabilities.size == 0)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: no word or sentence end to which a model gives a probability", text);
  return find_weights(t, weights, perplexity, progress, err);
}

wf_status wf_lm_mix_weights(const wf_lm *const *lms, size_t num_lms, const char *text,
                            const wf_lm_mix_options *options, double *weights, double *perplexity,
                            const wf_progress *progress, wf_error *err) {
  wf_lm_mix_options o;
  WF__TRY(wf__options_take(wf__lm_mix_table(), options, &o, err));
  if (num_lms == 0) return wf__fail(err, WF_ERR_ARGUMENT, "a mixture needs a model");
  tuning t = {0};
  const wf__automaton **models = wf__calloc(num_lms, sizeof *models);
  wf_status status =
      models != NULL ? WF_OK : wf__fail_memory(err, num_lms * sizeof *models, "models");
  for (size_t i = 0; i < num_lms && status == WF_OK; i++)
    status = wf__lm_automaton(lms[i], &models[i], err);
  if (status == WF_OK)
    status = run(&t, models, num_lms, text, o.ids, weights, perplexity, progress, err);
  free(models);
  free(t.states);
  free(t.sums);
  wf__vec_free(&t.probabilities);
  wf__mix_free(&t.mix);
  return status;
}
