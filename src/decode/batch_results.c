/* batch_results.c - the results of a batch as arrays, and their texts, for the Python package. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/option_tables.h"
#include "base/threads.h"
#include "lattice/lattice_determinize.h"

enum { NUM_COSTS = 4, NUM_NUMBERS = 9 };

/* Everything is in one block of memory but the confidences that wf_batch_results_complete made. */
struct batch {
  wf_batch_results results; /* must be first */
  float *late_confidences;
};

static void fill_numbers(const wf_result *r, size_t count, size_t i, double *costs,
                         int64_t *numbers) {
  const bool good = r->status == WF_OK;
  const double cost[NUM_COSTS] = {r->cost, r->graph_cost, r->acoustic_cost, r->scorer_cost};
  const int64_t number[NUM_NUMBERS] = {r->status,
                                       r->flags,
                                       r->num_frames,
                                       r->num_decoded,
                                       (int64_t)r->num_tokens,
                                       (int64_t)r->num_expanded,
                                       (int64_t)r->num_arcs,
                                       (int64_t)r->num_narrowed,
                                       (int64_t)r->num_estimated};
  for (int k = 0; k < NUM_COSTS; k++) costs[(size_t)k * count + i] = good ? cost[k] : (double)NAN;
  for (int k = 0; k < NUM_NUMBERS; k++) numbers[(size_t)k * count + i] = number[k];
}

static void fill_words(const wf_result *r, wf_word *words, float *confidences) {
  const wf_lattice_results *parts = r->lattice_results;
  if (r->num_words > 0) memcpy(words, r->words, r->num_words * sizeof *words);
  if (confidences == NULL) return;
  for (size_t i = 0; i < r->num_words; i++)
    confidences[i] = parts != NULL && parts->confidences != NULL ? parts->confidences[i] : NAN;
}

wf_status wf_batch_results_take(wf_result *const *results, size_t count, wf_batch_results **out,
                                wf_error *err) {
  *out = NULL;
  size_t num_words = 0;
  bool confident = false;
  for (size_t i = 0; i < count; i++) {
    const wf_lattice_results *parts = results[i]->lattice_results;
    if (results[i]->status == WF_OK) num_words += results[i]->num_words;
    confident = confident || (parts != NULL && parts->confidences != NULL);
  }
  const size_t each = sizeof(wf_result *) + NUM_COSTS * sizeof(double) +
                      NUM_NUMBERS * sizeof(int64_t) + sizeof(int64_t);
  const size_t size = sizeof(struct batch) + sizeof(int64_t) + count * each +
                      num_words * (sizeof(wf_word) + (confident ? sizeof(float) : 0));
  struct batch *batch = wf__alloc(size, 1);
  if (batch == NULL) return wf__fail_memory(err, size, "results");
  *out = &batch->results;
  batch->late_confidences = NULL;
  wf_result **kept = (wf_result **)(batch + 1);
  double *costs = (double *)(kept + count);
  int64_t *numbers = (int64_t *)(costs + NUM_COSTS * count), *off = numbers + NUM_NUMBERS * count;
  wf_word *words = (wf_word *)(off + count + 1);
  float *confidences = confident ? (float *)(words + num_words) : NULL;
  off[0] = 0;
  for (size_t i = 0; i < count; i++) {
    const wf_result *result = kept[i] = results[i];
    const bool good = result->status == WF_OK;
    fill_numbers(result, count, i, costs, numbers);
    if (good) fill_words(result, words + off[i], confidences != NULL ? confidences + off[i] : NULL);
    off[i + 1] = off[i] + (good ? (int64_t)result->num_words : 0);
  }
  const int64_t *row = numbers;
  **out = (wf_batch_results){.count = count,
                             .results = kept,
                             .word_off = off,
                             .words = words,
                             .confidences = confidences,
                             .cost = costs,
                             .graph_cost = costs + count,
                             .acoustic_cost = costs + 2 * count,
                             .scorer_cost = costs + 3 * count,
                             .status = row,
                             .flags = row + count,
                             .num_frames = row + 2 * count,
                             .num_decoded = row + 3 * count,
                             .num_tokens = row + 4 * count,
                             .num_expanded = row + 5 * count,
                             .num_arcs = row + 6 * count,
                             .num_narrowed = row + 7 * count,
                             .num_estimated = row + 8 * count};
  return WF_OK;
}

void wf_batch_results_free(wf_batch_results *results) {
  if (results == NULL) return;
  for (size_t i = 0; i < results->count; i++) wf_result_free(results->results[i]);
  free(((struct batch *)results)->late_confidences);
  free(results);
}

/* --- what results lack ------------------------------------------------------------------- */

struct completion {
  wf_result **results;
  wf_lattice_determinize_options determinizing;
  wf_lattice_results_options wanted;
  wf__determinizers *determinizers;
  atomic_bool no_memory;
};

/* The determinized lattice, made if it is missing; NULL: none, or it failed. */
static const wf_determinized *determinized(struct completion *c, wf_result *r) {
  if (r->determinized == NULL && r->lattice != NULL) {
    wf_determinized *made = wf__calloc(1, sizeof *made);
    if (made == NULL) {
      c->no_memory = true;
      return NULL;
    }
    wf__lattice_determinize(c->determinizers, r->lattice, NULL, &c->determinizing, made);
    if (made->status == WF_ERR_CANCELLED)
      free(made);
    else
      r->determinized = made;
  }
  return r->determinized != NULL && r->determinized->status == WF_OK ? r->determinized : NULL;
}

/* Adds the parts of `made`, which is freed, to the result. */
static void add_parts(wf_result *r, wf_lattice_results *made) {
  wf_lattice_results *parts = r->lattice_results;
  if (parts == NULL) {
    r->lattice_results = made;
    return;
  }
  if (parts->confidences == NULL) {
    parts->confidences = made->confidences;
    made->confidences = NULL;
  }
  if (parts->nbest == NULL) {
    parts->nbest = made->nbest;
    made->nbest = NULL;
  }
  wf__lattice_results_free(made);
}

static void complete_item(void *user, uint64_t i, int worker) {
  (void)worker;
  struct completion *c = user;
  wf_result *r = c->results[i];
  const wf_determinized *from = r->status == WF_OK ? determinized(c, r) : NULL;
  const wf_lattice_results *parts = r->lattice_results;
  wf_lattice_results_options missing = c->wanted;
  if (parts != NULL && parts->confidences != NULL) missing.confidences = false;
  if (parts != NULL && parts->nbest != NULL) missing.nbest = 0;
  if (from == NULL || (!missing.confidences && missing.nbest == 0)) return;
  wf__result_tables *tables;
  wf_lattice_results *made = NULL;
  wf_status status = wf__result_tables_take(c->determinizers, &tables, NULL);
  if (status == WF_OK) {
    status =
        wf__lattice_results_make(tables, from, NULL, r->words, r->num_words, &missing, &made, NULL);
    wf__result_tables_put_back(c->determinizers, tables);
  }
  if (status != WF_OK)
    c->no_memory = true;
  else
    add_parts(r, made);
}

/* Copies the confidences of all results into one array. */
static wf_status gather_confidences(struct batch *batch, wf_error *err) {
  const wf_batch_results *all = &batch->results;
  const size_t num_words = (size_t)all->word_off[all->count];
  float *confidences = wf__alloc(num_words, sizeof *confidences);
  if (confidences == NULL) return wf__fail_memory(err, num_words * sizeof *confidences, "results");
  for (size_t i = 0; i < all->count; i++) {
    const wf_lattice_results *parts = all->results[i]->lattice_results;
    const bool made = parts != NULL && parts->confidences != NULL;
    for (int64_t k = all->word_off[i]; k < all->word_off[i + 1]; k++)
      confidences[k] = made ? parts->confidences[k - all->word_off[i]] : NAN;
  }
  batch->results.confidences = batch->late_confidences = confidences;
  return WF_OK;
}

wf_status wf_batch_results_complete(wf_batch_results *results,
                                    const wf_lattice_determinize_options *determinizing,
                                    const wf_lattice_results_options *wanted, wf_error *err) {
  struct completion c = {.results = results->results};
  WF__TRY(wf__options_take(wf__lattice_determinize_table(), determinizing, &c.determinizing, err));
  WF__TRY(wf__options_take(wf__lattice_results_table(), wanted, &c.wanted, err));
  if (c.wanted.confidence_scale == 0) c.wanted.confidence_scale = 1;
  c.wanted.mbr = false;
  WF__TRY(wf__determinizers_create(&c.determinizers, err));
  wf_status status =
      wf__pool_once(c.determinizing.num_threads, results->count, complete_item, &c, err);
  wf__determinizers_free(c.determinizers);
  if (status == WF_OK && c.no_memory)
    status = wf__fail_memory(err, sizeof(wf_lattice_results), "lattices");
  if (status == WF_OK && c.wanted.confidences && results->confidences == NULL)
    status = gather_confidences((struct batch *)results, err);
  return status;
}

wf_status wf_batch_results_texts(const wf_batch_results *results, const wf_symbols *words,
                                 char **out, size_t *num_bytes, wf_error *err) {
  WF__VEC(char) texts = {0};
  char number[16];
  *out = NULL;
  *num_bytes = 0;
  for (size_t i = 0; i < results->count; i++) {
    for (int64_t k = results->word_off[i]; k < results->word_off[i + 1]; k++) {
      const int32_t label = results->words[k].label;
      const char *text = words != NULL ? wf_symbols_text(words, label) : NULL;
      if (text == NULL || text[0] == '\0') {
        snprintf(number, sizeof number, "%" PRId32, label);
        text = number;
      }
      const size_t size = strlen(text);
      if (wf__vec_grow(&texts, size + 1, "texts", err) != WF_OK) goto failed;
      memcpy(texts.data + texts.size, text, size);
      texts.size += size;
      texts.data[texts.size++] = ' ';
    }
    if (results->word_off[i] < results->word_off[i + 1]) texts.size--; /* the last space */
    if (wf__vec_push(&texts, '\0', "texts", err) != WF_OK) goto failed;
  }
  *out = texts.data;
  *num_bytes = (size_t)texts.size;
  return WF_OK;
failed:
  wf__vec_free(&texts);
  return WF_ERR_MEMORY;
}

wf_status wf_batch_decode(wf_decoder *decoder, const wf_scores *scores,
                          const wf_scorer *const *scorers, const wf_graph *const *graphs,
                          size_t count, const wf_progress *progress, wf_batch_results **out,
                          wf_error *err) {
  *out = NULL;
  wf_utterance *utterances = wf__calloc(count, sizeof *utterances);
  wf_result **results = wf__calloc(count, sizeof(wf_result *));
  wf_status status = utterances != NULL && results != NULL
                         ? WF_OK
                         : wf__fail_memory(err, count * sizeof *utterances, "a batch");
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    utterances[i].scores = scores[i];
    utterances[i].scorer = scorers != NULL ? scorers[i] : NULL;
    utterances[i].graph = graphs != NULL ? graphs[i] : NULL;
  }
  if (status == WF_OK) status = wf_decode(decoder, utterances, count, progress, results, err);
  if (status == WF_OK) status = wf_batch_results_take(results, count, out, err);
  for (size_t i = 0; status != WF_OK && results != NULL && i < count; i++)
    wf_result_free(results[i]);
  free(utterances);
  free(results);
  return status;
}
