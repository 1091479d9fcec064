/* lm_mix.c - static linear interpolation of models. N-grams are made order by order. An n-gram of
 * the mixture is a history of the next order: states[] has the state of each model after it. The
 * words after it are those of the models that have it as a state of its own. */
#include "lm/mix/lm_mix.h"

#include <string.h>

#include "base/callbacks.h"
#include "base/config.h"
#include "base/interrupt.h"
#include "base/option_tables.h"
#include "lm/lm.h"
#include "lm/lm_prune.h"
#include "lm/ngram_levels.h"

typedef struct mixing {
  wf__mix mix;
  const double *weights;
  wf__ngram_levels levels;
  WF__VEC(uint32_t) states, next_states; /* [n-grams of an order][num_lms] */
  WF__VEC(uint32_t) words;               /* after one history */
} mixing;

/* Adds the n-gram `word` after a history, whose states are `from`; NULL: no history. */
static wf_status add_ngram(mixing *m, int k, uint32_t context, const uint32_t *from, uint32_t word,
                           wf_error *err) {
  const size_t num = m->mix.num_lms;
  double p = 0;
  WF__TRY(wf__vec_grow(&m->next_states, num, "states of language models", err));
  for (size_t i = 0; i < num; i++) {
    uint32_t *next = &m->next_states.data[m->next_states.size++];
    if (word == WF__LM_BOS)
      *next = m->mix.lms[i]->start;
    else
      p += m->weights[i] * wf__mix_step(&m->mix, i, from != NULL ? from[i] : 0, word, next);
  }
  const float cost = (float)-log(p);
  const wf__ngram ngram = {context, word, cost > 0 ? cost : 0, 0};
  return wf__vec_push(&m->levels.level[k].ngrams, ngram, "n-grams", err);
}

/* --- words after a history --------------------------------------------------------------- */

static int compare_words(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Adds the words that model i has after its state. */
static wf_status take_arcs(mixing *m, size_t i, uint32_t state, wf_error *err) {
  const wf__automaton *lm = m->mix.lms[i];
  const uint64_t first = lm->states[state].first_arc, end = lm->states[state + 1].first_arc;
  WF__TRY(wf__vec_grow(&m->words, end - first + 1, "words after a history", err));
  if (wf__lm_has_own_final(lm, state)) m->words.data[m->words.size++] = WF__LM_EOS;
  for (uint64_t a = first; a < end; a++)
    m->words.data[m->words.size++] = m->mix.word_of[i][lm->arcs[a].word];
  return WF_OK;
}

/* Sets words[] to the words of all models after a history of `size` words, sorted. */
static wf_status find_words(mixing *m, int size, const uint32_t *from, wf_error *err) {
  m->words.size = 0;
  for (size_t i = 0; i < m->mix.num_lms; i++)
    if (wf__lm_level(m->mix.lms[i], from[i]) == size) WF__TRY(take_arcs(m, i, from[i], err));
  if (m->words.size == 0) return WF_OK;
  qsort(m->words.data, m->words.size, sizeof *m->words.data, compare_words);
  uint64_t kept = 1;
  for (uint64_t i = 1; i < m->words.size; i++)
    if (m->words.data[i] != m->words.data[kept - 1]) m->words.data[kept++] = m->words.data[i];
  m->words.size = kept;
  return WF_OK;
}

/* --- orders ------------------------------------------------------------------------------ */

static bool is_unigram(const mixing *m, uint32_t word) {
  for (size_t i = 0; i < m->mix.num_lms; i++) {
    const wf__automaton *lm = m->mix.lms[i];
    if (word == WF__LM_EOS ? lm->final_order[0] == 1 : m->mix.label_of[i][word] != WF__LM_NONE)
      return true;
  }
  return false;
}

static wf_status add_unigrams(mixing *m, wf_error *err) {
  for (uint32_t word = 1; word < m->mix.num_labels; word++)
    if (is_unigram(m, word)) WF__TRY(add_ngram(m, 1, 0, NULL, word, err));
  return WF_OK;
}

static wf_status add_order(mixing *m, int k, wf_error *err) {
  const wf__ngram_level *histories = &m->levels.level[k - 1];
  for (uint64_t h = 0; h < histories->ngrams.size; h++) {
    const uint32_t *from = &m->states.data[h * m->mix.num_lms];
    WF__TRY(wf__interrupted_at(h, err));
    if (histories->ngrams.data[h].word == WF__LM_EOS) continue;
    WF__TRY(find_words(m, k - 1, from, err));
    for (uint64_t i = 0; i < m->words.size; i++)
      WF__TRY(add_ngram(m, k, (uint32_t)h, from, m->words.data[i], err));
  }
  return WF_OK;
}

static wf_status mix_all(mixing *m, wf__automaton **out, const wf_progress *progress,
                         wf_error *err) {
  int order = 1;
  uint64_t duplicate;
  for (size_t i = 0; i < m->mix.num_lms; i++)
    if (m->mix.lms[i]->order > order) order = m->mix.lms[i]->order;
  m->levels.num_public = m->levels.num_labels = m->mix.num_labels;
  m->levels.bos = WF__LM_BOS;
  m->levels.eos = WF__LM_EOS;
  m->levels.unk = WF__LM_UNK;
  m->levels.order = order;
  for (int k = 1; k <= order; k++) {
    WF__TRY(wf__progress(progress, "mixing n-grams", (double)(k - 1) / order, err));
    WF__TRY(k == 1 ? add_unigrams(m, err) : add_order(m, k, err));
    WF__TRY(wf__ngram_level_sort(&m->levels, k, &duplicate, err));
    wf__vec_swap(&m->states, &m->next_states);
    m->next_states.size = 0;
  }
  return wf__lm_build(&m->levels, m->mix.words, out, progress, err);
}

/* --- call -------------------------------------------------------------------------------- */

/* Sets scaled[] to the weights above 0, scaled to sum to 1, and used[] to their models. */
static wf_status take_weights(const wf_lm *const *lms, size_t num_lms, const double *weights,
                              const wf__automaton **used, double *scaled, size_t *num_used,
                              wf_error *err) {
  double sum = 0;
  *num_used = 0;
  for (size_t i = 0; i < num_lms; i++) {
    const double weight = weights != NULL ? weights[i] : 1;
    if (!(weight >= 0 && weight <= 1e100))
      return wf__fail(err, WF_ERR_ARGUMENT, "weight %zu of the mixture is %g", i + 1, weight);
    sum += weight;
    if (weight == 0) continue;
    WF__TRY(wf__lm_automaton(lms[i], &used[*num_used], err));
    scaled[(*num_used)++] = weight;
  }
  if (!(sum > 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "a mixture needs a model with a weight above 0");
  for (size_t i = 0; i < *num_used; i++) scaled[i] /= sum;
  return WF_OK;
}

static wf_status normalize(wf__automaton *lm, int32_t num_threads, uint64_t *num_scaled,
                           wf_error *err) {
  wf__pool *pool = NULL;
  WF__TRY(wf__pool_create(num_threads, &pool, err));
  const wf_status status = wf__lm_normalize(lm, pool, num_scaled, err);
  wf__pool_free(pool);
  return status;
}

wf_status wf_lm_mix(const wf_lm *const *lms, size_t num_lms, const double *weights,
                    const wf_lm_mix_options *options, wf_lm **out, uint64_t *num_scaled,
                    const wf_progress *progress, wf_error *err) {
  *out = NULL;
  wf_lm_mix_options o;
  WF__TRY(wf__options_take(wf__lm_mix_table(), options, &o, err));
  mixing m = {0};
  wf__automaton *mixture = NULL;
  uint64_t scaled_histories = 0;
  const wf__automaton **used = wf__calloc(num_lms, sizeof *used);
  double *scaled = wf__calloc(num_lms, sizeof *scaled);
  size_t num_used = 0;
  wf_status status = used != NULL && scaled != NULL
                         ? take_weights(lms, num_lms, weights, used, scaled, &num_used, err)
                         : wf__fail_memory(err, num_lms * sizeof *scaled, "weights");
  m.weights = scaled;
  if (status == WF_OK) status = wf__mix_words(used, num_used, &m.mix, err);
  if (status == WF_OK) status = mix_all(&m, &mixture, progress, err);
  if (status == WF_OK) status = normalize(mixture, o.num_threads, &scaled_histories, err);
  if (status == WF_OK && num_scaled != NULL) *num_scaled = scaled_histories;
  if (status == WF_OK)
    status = wf__lm_of_automaton(mixture, "the mixture", out, err);
  else
    wf__automaton_free(mixture);
  wf__ngram_levels_free(&m.levels);
  wf__vec_free(&m.states);
  wf__vec_free(&m.next_states);
  wf__vec_free(&m.words);
  wf__mix_free(&m.mix);
  free(scaled);
  free(used);
  return status;
}
