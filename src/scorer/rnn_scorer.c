/* rnn_scorer.c - the scorer over a recurrent language model, alone or interpolated with an n-gram model, less the small model of the graph.
 *
 *   label --tables by word--> id in each model; cost = rnnlm_scale * mix(recurrent, n-gram) - small_scale * small
 *
 * What is remembered of an utterance: rnn_memory.h. */
#include <math.h>
#include <stdlib.h>

#include "base/option_tables.h"
#include "lm/lm.h"
#include "math/cost.h"
#include "scorer/rnn_memory.h"
#include "scorer/scorer.h"

enum { END = -1, CACHE_NONE = 0, CACHE_SHARED = 2, NODE_BYTES = 64 };

struct labels {
  int32_t rnn, ngram, small; /* rnn -1: the model lacks it */
};

struct rnn_scorer {
  wf_scorer scorer;
  wf_rnnlm *rnnlm;
  wf_lm *ngram, *small; /* NULL: none */
  wf_rnn_scorer_options options;
  struct labels *labels; /* [num_labels] */
  int32_t num_labels;
  atomic_uint_fast64_t stats[7];
};

static void rnn_free(wf_scorer *self) {
  struct rnn_scorer *rnn = (struct rnn_scorer *)self;
  wf_rnnlm_free(rnn->rnnlm);
  wf_lm_free(rnn->ngram);
  wf_lm_free(rnn->small);
  free(rnn->labels);
  free(rnn);
}

/* Adds what the memory counted to the scorer's figures. */
static void tell(const struct rnn_scorer *rnn, wf__rnn_memory *m) {
  atomic_uint_fast64_t *stats = ((struct rnn_scorer *)(uintptr_t)rnn)->stats; /* figures, not part of what the scorer is */
  const uint64_t counts[] = {m->num_utterances, m->counts.requests, m->counts.hits, m->counts.histories, m->counts.hidden, m->counts.recomputed, m->counts.evicted};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) atomic_fetch_add_explicit(&stats[i], counts[i], memory_order_relaxed);
  m->counts = (wf__rnn_counts){0};
  m->num_utterances = 0;
}

static void rnn_close(const wf_scorer *self, void *memory) {
  if (memory == NULL) return;
  tell((const struct rnn_scorer *)self, memory);
  wf__rnn_memory_free(memory);
  free(memory);
}

static wf_status rnn_open(const wf_scorer *self, void **out, wf_error *err) {
  const struct rnn_scorer *rnn = (const struct rnn_scorer *)self;
  wf__rnn_memory *memory = wf__calloc(1, sizeof *memory);
  if (memory == NULL) return wf__fail_memory(err, sizeof *memory, "a scorer's memory");
  wf_status status = wf__rnn_memory_init(rnn->rnnlm, (uint64_t)rnn->options.rnnlm_memory, rnn->options.rnnlm_cache != CACHE_NONE, memory, err);
  if (status != WF_OK) {
    rnn_close(self, memory);
    return status;
  }
  *out = memory;
  return WF_OK;
}

static wf_status rnn_begin(const wf_scorer *self, void *opaque, uint64_t *start, wf_error *err) {
  const struct rnn_scorer *rnn = (const struct rnn_scorer *)self;
  wf__rnn_memory *m = opaque;
  tell(rnn, m);
  m->num_utterances = 1;
  /* Contexts say what words they stand for, so those of earlier utterances, and their results, still hold; but they must not grow for ever. */
  bool full = (m->histories.size + m->contexts.size) * NODE_BYTES > (uint64_t)rnn->options.rnnlm_memory;
  if (rnn->options.rnnlm_cache != CACHE_SHARED || full || m->histories.size == 0) WF__TRY(wf__rnn_memory_clear(m, err));
  wf__rnn_context root = {.history = WF__RNN_ROOT};
  if (rnn->ngram != NULL) root.ngram_state = wf_lm_start(rnn->ngram);
  if (rnn->small != NULL) root.small_state = wf_lm_start(rnn->small);
  return wf__rnn_intern(m, root, start, err);
}

static float sound(double cost) { return fabs(cost) <= 1e20 ? (float)cost : INFINITY; }

/* The new model's cost: of the recurrent and the n-gram model together. */
static double mix(const wf_rnn_scorer_options *o, double recurrent, double ngram) {
  double weight = (double)o->rnnlm_weight;
  if (weight == 1) return recurrent;
  if (weight == 0) return ngram;
  return o->interpolation == 0 ? weight * recurrent + (1 - weight) * ngram : wf__log_add(recurrent - log(weight), ngram - log(1 - weight));
}

/* Cost of a word, or of the end, behind a context, and the n-gram models' states behind that. */
static wf_status ask(const struct rnn_scorer *rnn, wf__rnn_memory *m, const wf__rnn_context *at, int32_t label, float *cost, wf_error *err) {
  const struct labels *ids = label == END ? NULL : &rnn->labels[label];
  float recurrent = rnn->options.unknown_cost, ngram = 0, small = 0;
  uint32_t ignored;
  if (rnn->options.rnnlm_weight > 0 && (ids == NULL || ids->rnn >= 0))
    WF__TRY(wf__rnn_cost_behind(m, at->history, ids == NULL ? rnn->rnnlm->eos : ids->rnn, &recurrent, err));
  if (rnn->ngram != NULL) ngram = ids == NULL ? wf_lm_final(rnn->ngram, at->ngram_state, NULL) : wf_lm_step(rnn->ngram, at->ngram_state, ids->ngram, &ignored, NULL);
  if (rnn->small != NULL) small = ids == NULL ? wf_lm_final(rnn->small, at->small_state, NULL) : wf_lm_step(rnn->small, at->small_state, ids->small, &ignored, NULL);
  double fresh = mix(&rnn->options, (double)recurrent, (double)ngram);
  *cost = sound((double)rnn->options.rnnlm_scale * fresh - (double)rnn->options.small_scale * (double)small);
  return WF_OK;
}

/* The same, through the cache. */
static wf_status ask_cached(const struct rnn_scorer *rnn, wf__rnn_memory *m, const wf__rnn_context *at, int32_t label, float *cost, wf_error *err) {
  m->counts.requests++;
  if (m->result_bits == 0) return ask(rnn, m, at, label, cost, err);
  uint64_t hash = at->hash;
  wf__rnn_result *kept = wf__rnn_result_at(m, hash, label);
  if (kept->epoch == m->epoch && kept->context == hash && kept->word == label) {
    m->counts.hits++;
    *cost = kept->cost;
    return WF_OK;
  }
  WF__TRY(ask(rnn, m, at, label, cost, err));
  *kept = (wf__rnn_result){hash, label, *cost, m->epoch};
  return WF_OK;
}

static wf_status find(wf__rnn_memory *m, uint64_t context, wf__rnn_context *out, wf_error *err) {
  const wf__rnn_context *at = wf__rnn_context_at(m, context);
  if (at == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "the recurrent scorer has no context %llx in this utterance", (unsigned long long)context);
  *out = *at; /* tables may move as they grow */
  return WF_OK;
}

static wf_status rnn_step(const wf_scorer *self, void *opaque, uint64_t context, int32_t word, float *cost, uint64_t *next, wf_error *err) {
  const struct rnn_scorer *rnn = (const struct rnn_scorer *)self;
  wf__rnn_memory *m = opaque;
  wf__rnn_context at, behind;
  WF__TRY(find(m, context, &at, err));
  *next = context;
  *cost = INFINITY;
  if (word >= rnn->num_labels) return WF_OK; /* no word of the table */
  WF__TRY(ask_cached(rnn, m, &at, word, cost, err));
  const struct labels *ids = &rnn->labels[word];
  behind = at;
  if (ids->rnn >= 0) WF__TRY(wf__rnn_extend(m, at.history, ids->rnn, &behind.history, err));
  if (rnn->options.history_merge_order > 0) WF__TRY(wf__rnn_shorten(m, behind.history, (uint32_t)rnn->options.history_merge_order - 1, &behind.history, err));
  if (rnn->ngram != NULL) wf_lm_step(rnn->ngram, at.ngram_state, ids->ngram, &behind.ngram_state, NULL);
  if (rnn->small != NULL) wf_lm_step(rnn->small, at.small_state, ids->small, &behind.small_state, NULL);
  return wf__rnn_intern(m, behind, next, err);
}

static wf_status rnn_final(const wf_scorer *self, void *opaque, uint64_t context, float *cost, wf_error *err) {
  wf__rnn_context at;
  WF__TRY(find(opaque, context, &at, err));
  wf_status status = ask_cached((const struct rnn_scorer *)self, opaque, &at, END, cost, err);
  tell((const struct rnn_scorer *)self, opaque); /* the end is near: figures asked for now are complete */
  return status;
}

static const wf__scorer_ops rnn_ops = {
    .name = "recurrent", .free = rnn_free, .open = rnn_open, .close = rnn_close, .begin = rnn_begin, .step = rnn_step, .final = rnn_final};

/* --- making one --------------------------------------------------------------------------------------------------- */

static int32_t label_in(const wf_lm *lm, const char *text) { return lm != NULL ? (int32_t)wf_symbols_find(wf_lm_words(lm), text) : -1; }

static wf_status map_words(struct rnn_scorer *rnn, const wf_symbols *words, wf_error *err) {
  const wf_symbols *own = words != NULL ? words : rnn->rnnlm->words;
  int64_t num = wf_symbols_next_key(own), key, known = 0;
  if (num > INT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "word table %s: label %lld is too large", wf_symbols_name(own), (long long)num - 1);
  rnn->labels = wf__alloc((uint64_t)num, sizeof *rnn->labels);
  if (rnn->labels == NULL) return wf__fail_memory(err, (uint64_t)num * sizeof *rnn->labels, "a scorer");
  rnn->num_labels = (int32_t)num;
  for (int64_t i = 0; i < num; i++) rnn->labels[i] = (struct labels){rnn->rnnlm->unk, -1, -1};
  for (size_t i = 0; i < wf_symbols_count(own); i++) {
    const char *text = wf_symbols_at(own, i, &key);
    if (key < 0) continue;
    int32_t id = wf_rnnlm_find(rnn->rnnlm, text);
    if (id == rnn->rnnlm->eos || id == rnn->rnnlm->bos) id = rnn->rnnlm->unk; /* </s> as a word */
    rnn->labels[key] = (struct labels){id, label_in(rnn->ngram, text), label_in(rnn->small, text)};
    known += key > 0 && id >= 0 && id != rnn->rnnlm->unk;
  }
  if (known == 0) return wf__fail(err, WF_ERR_ARGUMENT, "the recurrent language model knows none of the words of %s", wf_symbols_name(own));
  return WF_OK;
}

wf_status wf_scorer_from_rnnlm(const wf_rnnlm *rnnlm, const wf_lm *ngram, const wf_lm *small, const wf_symbols *words, const wf_rnn_scorer_options *options,
                               wf_scorer **out, wf_error *err) {
  *out = NULL;
  wf_rnn_scorer_options o;
  WF__TRY(wf__options_take(wf__rnn_scorer_table(), options, &o, err));
  if (rnnlm->reverse) return wf__fail(err, WF_ERR_UNSUPPORTED, "the recurrent language model reads sentences from their end: use it for rescoring, not while decoding");
  if (ngram == NULL && o.rnnlm_weight != 1) return wf__fail(err, WF_ERR_ARGUMENT, "rnnlm_weight is %g, but there is no n-gram model to interpolate with", (double)o.rnnlm_weight);
  struct rnn_scorer *rnn = wf__calloc(1, sizeof *rnn);
  if (rnn == NULL) return wf__fail_memory(err, sizeof *rnn, "a scorer");
  wf__scorer_init(&rnn->scorer, &rnn_ops, 64);
  rnn->rnnlm = wf_rnnlm_ref(rnnlm);
  rnn->ngram = ngram != NULL ? wf_lm_ref(ngram) : NULL;
  rnn->small = small != NULL ? wf_lm_ref(small) : NULL;
  rnn->options = o;
  wf_status status = map_words(rnn, words, err);
  if (status != WF_OK) {
    rnn_free(&rnn->scorer);
    return status;
  }
  *out = &rnn->scorer;
  return WF_OK;
}

void wf_rnn_scorer_stats_init(wf_rnn_scorer_stats *stats) { *stats = (wf_rnn_scorer_stats){.struct_size = sizeof *stats}; }

wf_status wf_scorer_rnn_stats(const wf_scorer *scorer, wf_rnn_scorer_stats *out, wf_error *err) {
  if (scorer->ops != &rnn_ops) return wf__fail(err, WF_ERR_ARGUMENT, "not a scorer over a recurrent language model");
  size_t struct_size = out->struct_size;
  if (struct_size < sizeof(size_t)) return wf__fail(err, WF_ERR_ARGUMENT, "wf_rnn_scorer_stats: struct_size is %zu; use wf_rnn_scorer_stats_init", struct_size);
  struct rnn_scorer *rnn = (struct rnn_scorer *)(uintptr_t)scorer;
  uint64_t stats[7];
  for (int i = 0; i < 7; i++) stats[i] = atomic_load_explicit(&rnn->stats[i], memory_order_relaxed);
  wf_rnn_scorer_stats all = {struct_size, stats[0], stats[1], stats[2], stats[3], stats[4], stats[5], stats[6]};
  memcpy(out, &all, struct_size < sizeof all ? struct_size : sizeof all);
  return WF_OK;
}
