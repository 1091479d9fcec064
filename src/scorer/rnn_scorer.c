/* rnn_scorer.c - the scorer over a recurrent language model, alone or interpolated with an n-gram
 * model, less the small model of the graph.
 *
 *   label --table--> id in each model; cost = rnnlm_scale * mix(recurrent, n-gram) -
 *   small_scale * small
 *
 * Here: single requests, and the scorer's creation. Requests of many searches together:
 * rnn_batch.c. Costs: rnn_costs.c. Shared by searches: rnn_group.c. Memory: rnn_memory.h. */
#include "scorer/rnn_scorer.h"

#include <math.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/option_tables.h"
#include "fst/symbols.h"
#include "lm/lm.h"
#include "scorer/lm_cover.h"

enum { NONE = UINT32_MAX };

static void rnn_free(wf_scorer *self) {
  wf__rnn_scorer *rnn = (wf__rnn_scorer *)self;
  wf_rnnlm_free(rnn->rnnlm);
  wf__automaton_free(rnn->ngram);
  wf__automaton_free(rnn->small);
  free(rnn->labels);
  free(rnn);
}

/* --- utterances -------------------------------------------------------------------------- */

static bool is_alone(const wf__rnn_lane *lane) { return atomic_load(&lane->group->refs) == 1; }

static wf_status begin(const wf__rnn_scorer *rnn, wf__rnn_lane *lane, uint64_t *start,
                       wf_error *err) {
  wf__rnn_memory *m = &lane->group->memory;
  /* A context's number is determined by its words, so contexts of earlier utterances stay valid.
   * Searches that share a memory report which contexts to keep; a single search may not. */
  if (m->histories.size == 0 || (is_alone(lane) && wf__rnn_memory_is_full(m)))
    WF__TRY(wf__rnn_memory_clear(m, err));
  wf__rnn_context root = {.history = WF__RNN_ROOT};
  if (rnn->ngram != NULL) root.ngram_state = rnn->ngram->start;
  if (rnn->small != NULL) root.small_state = rnn->small->start;
  return wf__rnn_intern(m, root, start, err);
}

static wf_status rnn_begin(const wf_scorer *self, void *opaque, uint64_t *start, wf_error *err) {
  const wf__rnn_scorer *rnn = (const wf__rnn_scorer *)self;
  wf__rnn_lane *lane = opaque;
  wf__rnn_report_counts(self, &lane->counts);
  lane->counts.utterances = 1;
  lane->requests.size = 0;
  if (rnn->options.rnnlm_cache != WF__RNN_CACHE_SHARED)
    lane->utterance = (lane->number << 20) + (++lane->num_utterances & 0xfffff);
  pthread_mutex_lock(&lane->group->lock);
  wf_status status = begin(rnn, lane, start, err);
  pthread_mutex_unlock(&lane->group->lock);
  return status;
}

/* --- requests --------------------------------------------------------------------------- */

/* Computes the score of one request. */
static wf_status compute_score(const wf__rnn_scorer *rnn, wf__rnn_memory *m, uint64_t context,
                               int32_t label, wf__rnn_result *out, wf_error *err) {
  uint32_t place;
  WF__TRY(wf__rnn_find(rnn, m, context, &place, err));
  if (place == NONE)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the recurrent scorer has no context %llx in this utterance",
                    (unsigned long long)context);
  wf__rnn_context at = m->contexts.data[place],
                  behind; /* a copy, because arrays may move as they grow */
  int32_t word = wf__rnn_word_of(rnn, label);
  float recurrent = rnn->options.unknown_cost;
  if (word >= 0) {
    WF__TRY(wf__rnn_begin_epoch(m, &at.history, 1, NULL, err));
    if (m->device != NULL)
      WF__TRY(wf__rnn_device_costs_behind(m, &at.history, &word, 1, &recurrent, err));
    else
      wf__rnn_costs_behind(m, &at.history, &word, 1, &recurrent);
  }
  m->counts.costs++;
  *out = (wf__rnn_result){.context = context, .word = label, .epoch = m->epoch};
  out->cost = wf__rnn_mixed_cost(rnn, &at, label, recurrent, &behind);
  return wf__rnn_make_next(rnn, m, label, &behind, &out->next, err);
}

static bool is_recent(const void *user, const wf__rnn_result *entry) {
  return entry->epoch >= *(const uint32_t *)user;
}

static wf_status keep_result(wf__rnn_memory *m, const wf__rnn_result *result, wf_error *err) {
  if (wf__rnn_results_are_many(&m->results)) {
    uint32_t before = wf__rnn_results_cutoff(&m->results, m->epoch);
    uint64_t size = m->results.size;
    WF__TRY(wf__rnn_results_filter(&m->results, is_recent, &before, err));
    m->counts.evicted_results += size - m->results.size;
  }
  WF__TRY(wf__rnn_results_reserve(&m->results, 1, err));
  wf__rnn_result *entry =
      wf__rnn_result_at(&m->results, result->context, result->word, result->utterance);
  *entry = *result;
  wf__rnn_results_link(&m->results, entry);
  m->results.size++;
  return WF_OK;
}

/* Answers a single request with a cached or a new score. Searches that submit requests in advance
 * only read the table. Others do not report contexts in use. They cache the scores made here, and
 * every context that they received is kept. */
static wf_status score_one(const wf_scorer *self, wf__rnn_lane *lane, uint64_t context,
                           int32_t label, wf__rnn_result *out, wf_error *err) {
  const wf__rnn_scorer *rnn = (const wf__rnn_scorer *)self;
  wf__rnn_memory *m = &lane->group->memory;
  bool keeps = m->results.entries != NULL;
  const wf__rnn_result *entry =
      keeps ? wf__rnn_result_at(&m->results, context, label, lane->utterance) : NULL;
  bool hit = keeps && entry->word != 0;
  if (hit) {
    out->cost = entry->cost;
    out->next = entry->next;
    if (lane->batched) return WF_OK; /* counted when it was submitted */
  }
  lane->counts.requests++;
  lane->counts.hits += hit;
  pthread_mutex_lock(&lane->group->lock);
  uint32_t place;
  wf_status status = hit ? wf__rnn_find(rnn, m, out->next, &place, err)
                         : compute_score(rnn, m, context, label, out, err);
  out->utterance = lane->utterance;
  if (status == WF_OK && !hit && keeps && !lane->batched) status = keep_result(m, out, err);
  pthread_mutex_unlock(&lane->group->lock);
  return status;
}

static wf_status rnn_step(const wf_scorer *self, void *opaque, uint64_t context, int32_t word,
                          float *cost, uint64_t *next, wf_error *err) {
  wf__rnn_result result;
  *next = context;
  *cost = INFINITY;
  if (word >= ((const wf__rnn_scorer *)self)->num_labels)
    return WF_OK; /* not a word of the table */
  WF__TRY(score_one(self, opaque, context, word, &result, err));
  *cost = result.cost;
  *next = result.next;
  return WF_OK;
}

static wf_status rnn_final(const wf_scorer *self, void *opaque, uint64_t context, float *cost,
                           wf_error *err) {
  wf__rnn_lane *lane = opaque;
  wf__rnn_result result;
  WF__TRY(score_one(self, lane, context, WF__END_OF_WORDS, &result, err));
  *cost = result.cost;
  wf__rnn_report_counts(
      self, &lane->counts); /* at the end of an utterance, so that statistics are complete */
  if (is_alone(lane)) wf__rnn_report_counts(self, &lane->group->memory.counts);
  return WF_OK;
}

static const char *rnn_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  return wf__flat_push(out, WF__FLAT_RECURRENT, 1, self) != NULL ? NULL : WF__FLAT_TOO_LONG;
}

static const wf__scorer_batch_ops batch_ops = {.join = wf__rnn_join,
                                               .request = wf__rnn_request_scores,
                                               .score = wf__rnn_score_requests,
                                               .is_full = wf__rnn_is_full,
                                               .keep = wf__rnn_keep};
static const wf__scorer_ops rnn_ops = {.name = "recurrent",
                                       .free = rnn_free,
                                       .open = wf__rnn_open,
                                       .close = wf__rnn_close,
                                       .begin = rnn_begin,
                                       .step = rnn_step,
                                       .final = rnn_final,
                                       .flatten = rnn_flatten,
                                       .batch = &batch_ops};
/* rnnlm_cache=none: the baseline for measuring deduplication and caches. */
static const wf__scorer_ops forgetful_ops = {.name = "recurrent",
                                             .free = rnn_free,
                                             .open = wf__rnn_open,
                                             .close = wf__rnn_close,
                                             .begin = rnn_begin,
                                             .step = rnn_step,
                                             .final = rnn_final};

/* --- creation ---------------------------------------------------------------------------- */

static int32_t label_in(const wf__automaton *lm, const char *text) {
  return lm != NULL ? (int32_t)wf_symbols_find(lm->words, text) : -1;
}

static wf_status map_words(wf__rnn_scorer *rnn, const wf_symbols *words, wf_error *err) {
  const wf_symbols *own = words != NULL ? words : rnn->rnnlm->words;
  int64_t num = wf_symbols_next_key(own), key, known = 0;
  if (num > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "word table %s: label %lld is too large",
                    wf__symbols_shown(own), (long long)num - 1);
  rnn->labels = wf__alloc((uint64_t)num, sizeof *rnn->labels);
  if (rnn->labels == NULL)
    return wf__fail_memory(err, (uint64_t)num * sizeof *rnn->labels, "a scorer");
  rnn->num_labels = (int32_t)num;
  for (int64_t i = 0; i < num; i++) rnn->labels[i] = (wf__rnn_labels){rnn->rnnlm->unk, -1, -1};
  wf__lm_cover cover = {0};
  wf_status status = WF_OK;
  for (size_t i = 0; i < wf_symbols_count(own) && status == WF_OK; i++) {
    const char *text = wf__lm_name(wf_symbols_at(own, i, &key));
    if (key < 0) continue;
    int32_t id = wf_rnnlm_find(rnn->rnnlm, text);
    if (id == rnn->rnnlm->eos || id == rnn->rnnlm->bos) id = rnn->rnnlm->unk; /* </s> as a word */
    rnn->labels[key] = (wf__rnn_labels){id, label_in(rnn->ngram, text), label_in(rnn->small, text)};
    bool is_known = id >= 0 && id != rnn->rnnlm->unk;
    known += key > 0 && is_known;
    if (key > 0) status = wf__lm_cover_add(&cover, text, is_known, err);
  }
  if (status == WF_OK && known > 0) wf__lm_cover_warn(&cover, rnn->rnnlm->unk >= 0);
  wf__lm_cover_free(&cover);
  WF__TRY(status);
  if (known == 0)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "the recurrent language model knows none of the words of %s",
                    wf__symbols_shown(own));
  return WF_OK;
}

static wf_status take_lm(const wf_lm *lm, wf__automaton **out, wf_error *err) {
  const wf__automaton *automaton;
  if (lm == NULL) return WF_OK;
  WF__TRY(wf__lm_automaton(lm, &automaton, err));
  *out = wf__automaton_ref(automaton);
  return WF_OK;
}

wf_status wf_scorer_from_rnnlm(const wf_rnnlm *rnnlm, const wf_lm *ngram, const wf_lm *small,
                               const wf_symbols *words, const wf_rnn_scorer_options *options,
                               wf_scorer **out, wf_error *err) {
  *out = NULL;
  wf_rnn_scorer_options o;
  WF__TRY(wf__options_take(wf__rnn_scorer_table(), options, &o, err));
  if (rnnlm->reverse)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "the recurrent language model reads sentences from their end: use it for "
                    "rescoring, not while decoding");
  if (ngram == NULL && o.rnnlm_weight != 1)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "rnnlm_weight is %g, but there is no n-gram model to interpolate with",
                    (double)o.rnnlm_weight);
  wf__rnn_scorer *rnn = wf__calloc(1, sizeof *rnn);
  if (rnn == NULL) return wf__fail_memory(err, sizeof *rnn, "a scorer");
  bool forgets = o.rnnlm_cache == WF__RNN_CACHE_NONE;
  wf__scorer_init(&rnn->scorer, forgets ? &forgetful_ops : &rnn_ops, 64);
  rnn->scorer.forgets = forgets;
  rnn->rnnlm = wf_rnnlm_ref(rnnlm);
  rnn->options = o;
  wf_status status = take_lm(ngram, &rnn->ngram, err);
  if (status == WF_OK) status = take_lm(small, &rnn->small, err);
  if (status == WF_OK) status = map_words(rnn, words, err);
  if (status != WF_OK) {
    rnn_free(&rnn->scorer);
    return status;
  }
  *out = &rnn->scorer;
  return WF_OK;
}

const wf_scorer *wf__rnn_part_of(const wf_scorer *scorer) {
  wf__flat_scorer flat;
  if (scorer == NULL || wf__scorer_flatten(scorer, &flat) != NULL) return NULL;
  for (int i = 0; i < flat.num_parts; i++)
    if (flat.parts[i].kind == WF__FLAT_RECURRENT) return flat.parts[i].owner;
  return NULL;
}

const wf__rnn_scorer *wf__rnn_scorer_of(const wf_scorer *scorer) {
  return scorer != NULL && scorer->ops == &rnn_ops ? (const wf__rnn_scorer *)scorer : NULL;
}

wf_status wf__rnn_cpu_scorer(const wf__rnn_scorer *rnn, const wf_rnnlm *rnnlm, wf_scorer **out,
                             wf_error *err) {
  enum { MEMORY = 1 << 20 };
  *out = NULL;
  wf__rnn_scorer *cpu_scorer = wf__calloc(1, sizeof *cpu_scorer);
  wf__rnn_labels *labels = wf__alloc((uint64_t)rnn->num_labels, sizeof *labels);
  if (cpu_scorer == NULL || labels == NULL) {
    free(cpu_scorer);
    free(labels);
    return wf__fail_memory(err, sizeof *cpu_scorer + (uint64_t)rnn->num_labels * sizeof *labels,
                           "a scorer");
  }
  memcpy(labels, rnn->labels, (size_t)rnn->num_labels * sizeof *labels);
  wf__scorer_init(&cpu_scorer->scorer, &rnn_ops, rnn->scorer.context_bits);
  cpu_scorer->rnnlm = wf_rnnlm_ref(rnnlm);
  cpu_scorer->ngram = rnn->ngram != NULL ? wf__automaton_ref(rnn->ngram) : NULL;
  cpu_scorer->small = rnn->small != NULL ? wf__automaton_ref(rnn->small) : NULL;
  cpu_scorer->options = rnn->options;
  if (cpu_scorer->options.rnnlm_memory > MEMORY) cpu_scorer->options.rnnlm_memory = MEMORY;
  cpu_scorer->labels = labels;
  cpu_scorer->num_labels = rnn->num_labels;
  *out = &cpu_scorer->scorer;
  return WF_OK;
}

wf_status wf_scorer_get_rnn_stats(const wf_scorer *scorer, wf_rnn_scorer_stats *out,
                                  wf_error *err) {
  if (scorer->ops != &rnn_ops && scorer->ops != &forgetful_ops)
    return wf__fail(err, WF_ERR_ARGUMENT, "not a scorer over a recurrent language model");
  WF__TRY(wf__struct_check("wf_rnn_scorer_stats", out, sizeof *out, err));
  wf__rnn_scorer *rnn = (wf__rnn_scorer *)(uintptr_t)scorer;
  wf_rnn_scorer_stats all = {0};
  uint64_t *figures = &all.num_utterances; /* in the order of the counts */
  for (int i = 0; i < WF__RNN_NUM_COUNTS; i++)
    figures[i] = atomic_load_explicit(&rnn->stats[i], memory_order_relaxed);
  wf__struct_give(&all, sizeof all, out);
  return WF_OK;
}
