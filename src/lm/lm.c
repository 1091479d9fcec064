/* lm.c - the language model as an object: its forms, its lifetime, queries. */
#include "lm/lm.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/memory.h"
#include "base/option_tables.h"
#include "lm/wlm_build.h"

/* --- lifetime ---------------------------------------------------------------------------- */

wf_lm *wf_lm_ref(const wf_lm *lm) {
  wf_lm *shared = (wf_lm *)(uintptr_t)lm;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_lm_free(wf_lm *lm) {
  if (lm == NULL || atomic_fetch_sub(&lm->refs, 1) != 1) return;
  wf__automaton_free(lm->automaton);
  wf__wlm_free(lm->mapped);
  wf_symbols_free(lm->words);
  pthread_mutex_destroy(&lm->making);
  free(lm->word_of);
  free(lm->path);
  free(lm);
}

/* A model without a form. */
static wf_status create(const char *path, const wf_symbols *words, wf_lm **out, wf_error *err) {
  wf_lm *lm = wf__calloc(1, sizeof *lm);
  char *copy = wf__strndup(path, strlen(path));
  if (lm == NULL || copy == NULL) {
    free(lm);
    free(copy);
    return wf__fail_memory(err, sizeof *lm, "a language model");
  }
  atomic_init(&lm->refs, 1);
  pthread_mutex_init(&lm->making, NULL);
  lm->path = copy;
  lm->words = wf_symbols_ref(words);
  *out = lm;
  return WF_OK;
}

wf_status wf__lm_of_automaton(wf__automaton *automaton, const char *path, wf_lm **out,
                              wf_error *err) {
  *out = NULL;
  wf_status status = create(path, automaton->words, out, err);
  if (status != WF_OK) {
    wf__automaton_free(automaton);
    return status;
  }
  (*out)->order = automaton->order;
  (*out)->num_states = automaton->num_states;
  atomic_init(&(*out)->automaton, automaton);
  return WF_OK;
}

/* --- opening ----------------------------------------------------------------------------- */

/* Finds the word of each label, and the words that the table lacks. */
static wf_status map_labels(wf_lm *lm, const wf__wlm *mapped, int oov, uint64_t *num_outside,
                            wf_error *err) {
  const char *text;
  int64_t word, label;
  lm->num_labels = wf_symbols_next_key(lm->words);
  lm->word_of = wf__alloc((uint64_t)lm->num_labels, sizeof *lm->word_of);
  if (lm->word_of == NULL)
    return wf__fail_memory(err, (uint64_t)lm->num_labels * sizeof *lm->word_of, "labels");
  for (label = 0; label < lm->num_labels; label++) lm->word_of[label] = -1;
  for (size_t i = 0; (text = wf_symbols_at(mapped->words, i, &word)) != NULL; i++) {
    if (!wf__wlm_has_word(mapped, (int32_t)word)) continue;
    label = wf_symbols_find(lm->words, text);
    if (label == 0 || (label < 0 && oov == WF__OOV_ERROR))
      return wf__fail(err, WF_ERR_FORMAT, "%s: '%.80s' is %s word table", lm->path, text,
                      label == 0 ? "epsilon (0) in the" : "not in the");
    if (label > 0)
      lm->word_of[label] = (int32_t)word;
    else
      ++*num_outside;
  }
  return WF_OK;
}

static bool has_unknown(const wf_symbols *words) {
  return wf_symbols_find(words, "<unk>") >= 0 || wf_symbols_find(words, "<UNK>") >= 0;
}

/* Makes a model of a mapped file, of which it takes ownership. Words outside the table whose
 * probabilities go to its unknown word need the model in memory. */
static wf_status of_mapped(wf__wlm *mapped, const char *path, const wf_symbols *words,
                           const wf_arpa_options *options, wf_lm **out, wf_arpa_stats *stats,
                           const wf_progress *progress, wf_error *err) {
  uint64_t num_outside = 0;
  wf_lm *lm = NULL;
  wf_status status = create(path, words != NULL ? words : mapped->words, &lm, err);
  if (status == WF_OK && words != NULL)
    status = map_labels(lm, mapped, options->oov, &num_outside, err);
  if (status == WF_OK && num_outside > 0 && options->oov == WF__OOV_UNK && has_unknown(words)) {
    wf__automaton *automaton;
    status = wf__automaton_of_wlm(mapped, words, options->oov, &automaton, stats, progress, err);
    if (status == WF_OK) status = wf__lm_of_automaton(automaton, path, out, err);
    wf__wlm_free(mapped);
    wf_lm_free(lm);
    return status;
  }
  if (status != WF_OK) {
    wf__wlm_free(mapped);
    wf_lm_free(lm);
    return status;
  }
  lm->is_mapped = true;
  lm->order = (int32_t)mapped->header->order;
  lm->num_states = mapped->view.num_states;
  atomic_init(&lm->mapped, mapped);
  if (stats != NULL) {
    wf_arpa_stats none = {.order = lm->order, .num_oov_words = num_outside};
    for (int k = 1; k <= lm->order; k++) none.num_lines[k] = mapped->header->num_ngrams[k - 1];
    wf__struct_give(&none, sizeof none, stats);
  }
  *out = lm;
  return WF_OK;
}

wf_status wf_lm_open(const char *path, const wf_symbols *words, const wf_arpa_options *options,
                     wf_lm **out, wf_arpa_stats *stats, const wf_progress *progress,
                     wf_error *err) {
  *out = NULL;
  wf__input input;
  wf_arpa_options o;
  WF__TRY(wf__options_take(wf__arpa_table(), options, &o, err));
  if (stats != NULL) WF__TRY(wf__struct_check("wf_arpa_stats", stats, sizeof *stats, err));
  WF__TRY(wf__input_open(path, &input, err));
  if (wf__wlm_is(&input)) {
    wf__wlm *mapped;
    WF__TRY(wf__wlm_open_input(&input, &mapped, err));
    return of_mapped(mapped, path, words, &o, out, stats, progress, err);
  }
  wf__automaton *automaton;
  wf_status status = wf__automaton_read(&input, words, &o, &automaton, stats, progress, err);
  if (status == WF_OK) status = wf__lm_of_automaton(automaton, path, out, err);
  wf__input_close(&input);
  return status;
}

wf_status wf_lm_open_mapped(const char *path, wf_lm **out, wf_error *err) {
  *out = NULL;
  wf__wlm *mapped;
  WF__TRY(wf__wlm_open(path, &mapped, err));
  return of_mapped(mapped, path, NULL, NULL, out, NULL, NULL, err);
}

/* --- the other form ---------------------------------------------------------------------- */

wf_status wf__lm_signed_automaton(const wf_lm *lm, const wf__automaton **out, wf_error *err) {
  wf_lm *own = (wf_lm *)(uintptr_t)lm;
  wf__automaton *automaton = atomic_load(&own->automaton);
  wf_status status = WF_OK;
  if (automaton == NULL) {
    pthread_mutex_lock(&own->making);
    automaton = atomic_load(&own->automaton);
    if (automaton == NULL) /* words outside the table change no other word: see of_mapped */
      status =
          wf__automaton_of_wlm(own->mapped, own->words, WF__OOV_SKIP, &automaton, NULL, NULL, err);
    if (status == WF_OK) atomic_store(&own->automaton, automaton);
    pthread_mutex_unlock(&own->making);
  }
  *out = automaton;
  return status;
}

wf_status wf__lm_automaton(const wf_lm *lm, const wf__automaton **out, wf_error *err) {
  *out = NULL;
  if (lm->is_mapped && lm->mapped->header->difference)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "%s: the difference of two models has no probabilities: use it while decoding "
                    "or rescoring, or give one of the models",
                    lm->path);
  return wf__lm_signed_automaton(lm, out, err);
}

wf_status wf__lm_mapped(const wf_lm *lm, wf__wlm **out, wf_error *err) {
  wf_lm *own = (wf_lm *)(uintptr_t)lm;
  wf_status status = WF_OK;
  *out = atomic_load(&own->mapped);
  if (*out != NULL) return WF_OK;
  pthread_mutex_lock(&own->making);
  *out = atomic_load(&own->mapped);
  if (*out == NULL) status = wf__wlm_of_automaton(own->automaton, own->path, out, err);
  if (status == WF_OK) atomic_store(&own->mapped, *out);
  pthread_mutex_unlock(&own->making);
  return status;
}

wf_status wf_lm_verify(const wf_lm *lm, const wf_progress *progress, wf_error *err) {
  return lm->is_mapped ? wf__wlm_verify(lm->mapped, progress, err) : WF_OK;
}

wf_status wf_lm_make_table(const wf_lm *lm, const wf_progress *progress, wf_error *err) {
  wf_lm *own = (wf_lm *)(uintptr_t)lm;
  wf__wlm *mapped;
  WF__TRY(wf__lm_mapped(lm, &mapped, err));
  pthread_mutex_lock(&own->making);
  wf_status status = wf__wlm_make_table(mapped, progress, err);
  pthread_mutex_unlock(&own->making);
  return status;
}

/* --- queries ----------------------------------------------------------------------------- */

static int32_t word_of(const wf_lm *lm, int32_t label) {
  if (lm->word_of == NULL) return label;
  return label >= 0 && label < lm->num_labels ? lm->word_of[label] : -1;
}

const wf_symbols *wf_lm_words(const wf_lm *lm) { return lm->words; }

uint32_t wf_lm_start(const wf_lm *lm) {
  return lm->is_mapped ? lm->mapped->view.start : lm->automaton->start;
}

bool wf_lm_knows(const wf_lm *lm, int32_t word) {
  return lm->is_mapped ? wf__wlm_has_word(lm->mapped, word_of(lm, word))
                       : wf__automaton_has_word(lm->automaton, word);
}

float wf_lm_step(const wf_lm *lm, uint32_t state, int32_t word, uint32_t *next, int32_t *order) {
  return lm->is_mapped ? wf__wlm_query(lm->mapped, state, word_of(lm, word), next, order)
                       : wf__automaton_step(lm->automaton, state, word, next, order);
}

float wf_lm_final(const wf_lm *lm, uint32_t state, int32_t *order) {
  return lm->is_mapped ? wf__wlm_final(lm->mapped, state, order)
                       : wf__automaton_final(lm->automaton, state, order);
}

float wf__lm_least_cost(const wf_lm *lm) {
  return lm->is_mapped ? wf__wlm_least_cost(lm->mapped) : wf__automaton_least_cost(lm->automaton);
}

/* --- info -------------------------------------------------------------------------------- */

static int32_t label_of(const wf_lm *lm, const char *text) {
  return text != NULL ? (int32_t)wf_symbols_find(lm->words, text) : -1;
}

wf_status wf_lm_get_info(const wf_lm *lm, wf_lm_info *out, wf_error *err) {
  WF__TRY(wf__struct_check("wf_lm_info", out, sizeof *out, err));
  wf_lm_info info = {.order = lm->order, .num_states = lm->num_states, .cost_bits = 32, .scale = 1};
  info.mapped = lm->is_mapped;
  if (lm->is_mapped) {
    const wf__wlm *mapped = lm->mapped;
    wf__wlm_info(mapped, &info);
    info.bos = label_of(lm, wf_symbols_text(mapped->words, mapped->header->bos));
    info.eos = wf__wlm_knows(&mapped->view, mapped->header->eos)
                   ? label_of(lm, wf_symbols_text(mapped->words, mapped->header->eos))
                   : -1;
    info.unk = label_of(lm, "<unk>");
    if (info.unk < 0) info.unk = label_of(lm, "<UNK>");
    if (info.has_unk && lm->word_of == NULL) info.unk = (int32_t)mapped->header->unk;
  } else {
    wf__automaton_info(lm->automaton, &info);
  }
  wf__wlm *mapped = atomic_load(&((wf_lm *)(uintptr_t)lm)->mapped);
  if (mapped != NULL) info.table_bytes = wf__wlm_table_bytes(mapped);
  wf__struct_give(&info, sizeof info, out);
  return WF_OK;
}
