/* rnn_scoring.c - the search with a recurrent scorer (deferred_scores.cuh), in rounds: a launch of
 * the lanes, then the scores that they requested (rnn_score_tables.h), until all lanes are done.
 * The host only counts: requests and scores stay on the GPU.
 *
 *   rnnlm_memory   half: hidden states, and features of their histories; half: contexts, their
 *                  places, scores
 *
 * When the tables are full, everything is evicted that no live token refers to, and the lanes
 * request again what they need. If that would happen every few frames, the tables are made twice
 * as large. */
#include "cuda/decoder/rnn_scoring.h"

#include <stdio.h>
#include <string.h>

#include "base/interrupt.h"
#include "cuda/decoder/gpu_pipeline.h"
#include "cuda/decoder/gpu_streams.h"
#include "cuda/device/device_memory.h"
#include "lm/automaton.h"

#ifndef WF__RNN_SCORING_BITS /* a test makes it small, to cause evictions */
#define WF__RNN_SCORING_BITS 10
#endif
enum {
  LEAST_BITS = WF__RNN_SCORING_BITS,
  MOST_BITS = 29,
  LEAST_SLOTS = 1 << (LEAST_BITS - 2),
  FRAMES_KEPT = 8 /* least number of frames of each lane between evictions */
};
enum { NONE = UINT32_MAX };

static const char what[] = "a recurrent scorer on the GPU";

/* --- memory ------------------------------------------------------------------------------ */

/* Makes an array of so many bytes. `keeps`: with the old contents; else it is zero. */
static wf_status make_array(struct wf__rnn_scoring *a, enum wf__rnn_array which, uint64_t bytes,
                            bool keeps, wf_error *err) {
  void *old = a->arrays[which].data, *data = NULL;
  const uint64_t old_bytes = a->arrays[which].bytes;
  if (bytes <= old_bytes && keeps) return WF_OK;
  bytes = (bytes + 256) & ~(uint64_t)255; /* never 0 bytes */
  WF__TRY(wf__device_alloc(&data, bytes, what, err));
  a->arrays[which].data = data;
  a->arrays[which].bytes = bytes;
  cudaError_t code = cudaMemsetAsync(data, 0, bytes, a->stream);
  if (code == cudaSuccess && keeps && old != NULL)
    code = (cudaError_t)wf__word_scores_copy(data, old, old_bytes, a->stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(a->stream);
  cudaFree(old);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, code, what);
}

wf_status wf__rnn_scoring_reserve(struct wf__rnn_scoring *a, enum wf__rnn_array which,
                                  uint64_t bytes, wf_error *err) {
  return bytes <= a->arrays[which].bytes ? WF_OK
                                         : make_array(a, which, bytes + bytes / 2, false, err);
}

static wf_status send_array(struct wf__rnn_scoring *a, enum wf__rnn_array which, const void *data,
                            uint64_t bytes, wf_error *err) {
  WF__TRY(make_array(a, which, bytes, false, err));
  return wf__device_send(a->arrays[which].data, data, bytes, a->stream, what, err);
}

/* Makes the arrays that grow with the numbers of contexts and slots, or makes them larger. */
static wf_status make_tables(struct wf__rnn_scoring *a, wf_error *err) {
  wf__rnn_state_tables *m = &a->tables;
  const uint64_t contexts = m->max_contexts, slots = m->max_slots;
  WF__TRY(make_array(a, WF__RNN_ARRAY_TABLE, 2 * contexts * sizeof(wf__word_score), false, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_PLACES, 2 * contexts * sizeof(wf__lane_home), false, err));
  WF__TRY(
      make_array(a, WF__RNN_ARRAY_CONTEXTS, (contexts + 1) * sizeof(wf__lane_context), true, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_WORDS, (contexts + 1) * m->num_words * sizeof(int32_t), true,
                     err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_MISSING, contexts * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_CLAIMS, contexts * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_FREE_CONTEXTS, contexts * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_CONTEXT_LIVES, contexts + 1, false, err));
  WF__TRY(
      make_array(a, WF__RNN_ARRAY_HASHES, (slots + 1) * m->order * sizeof(uint64_t), true, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_FREE_SLOTS, slots * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_SLOT_LIVES, slots + 1, false, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_ROOTS, contexts / 2 * sizeof *m->roots, true, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_STARTS, contexts / 2 * sizeof *m->starts, true, err));
  m->roots = a->arrays[WF__RNN_ARRAY_ROOTS].data;
  m->word_scores.starts = m->starts = a->arrays[WF__RNN_ARRAY_STARTS].data;
  m->place_bits = (uint32_t)a->bits + 1;
  m->places = a->arrays[WF__RNN_ARRAY_PLACES].data;
  m->words = a->arrays[WF__RNN_ARRAY_WORDS].data;
  m->free_contexts = a->arrays[WF__RNN_ARRAY_FREE_CONTEXTS].data;
  m->free_slots = a->arrays[WF__RNN_ARRAY_FREE_SLOTS].data;
  m->context_lives = a->arrays[WF__RNN_ARRAY_CONTEXT_LIVES].data;
  m->slot_lives = a->arrays[WF__RNN_ARRAY_SLOT_LIVES].data;
  m->hashes = a->arrays[WF__RNN_ARRAY_HASHES].data;
  m->word_scores.bits = (uint32_t)a->bits + 1;
  m->word_scores.table = a->arrays[WF__RNN_ARRAY_TABLE].data;
  m->word_scores.contexts = a->arrays[WF__RNN_ARRAY_CONTEXTS].data;
  m->word_scores.missing = a->arrays[WF__RNN_ARRAY_MISSING].data;
  m->word_scores.claims = a->arrays[WF__RNN_ARRAY_CLAIMS].data;
  m->word_scores.counters = a->arrays[WF__RNN_ARRAY_COUNTERS].data;
  return WF_OK;
}

static wf_status fetch_counters(struct wf__rnn_scoring *a, wf_error *err) {
  return wf__gpu_read_back(a->stream, a->counters, a->arrays[WF__RNN_ARRAY_COUNTERS].data,
                           sizeof *a->counters, "the search kernel", err);
}

/* The same for a search, which may take long: the call may be cancelled first. */
static wf_status wait_for_counters(struct wf__rnn_scoring *a, wf_error *err) {
  WF__CUDA_TRY(cudaMemcpyAsync(a->counters, a->arrays[WF__RNN_ARRAY_COUNTERS].data,
                               sizeof *a->counters, cudaMemcpyDeviceToHost, a->stream),
               "the search kernel");
  return wf__gpu_wait(a->stream, "the search kernel", err);
}

/* Sends where the streams' contexts are. */
static wf_status send_stream_contexts(struct wf__rnn_scoring *a, wf_error *err) {
  wf__stream_contexts *stream_contexts = wf__alloc(a->channels.size, sizeof *stream_contexts);
  if (stream_contexts == NULL)
    return wf__fail_memory(err, a->channels.size * sizeof *stream_contexts, what);
  for (uint64_t i = 0; i < a->channels.size; i++) {
    const wf__gpu_channel *channel = a->channels.data[i];
    stream_contexts[i] =
        (wf__stream_contexts){channel->contexts, wf__streams_num_tokens(channel), 0};
  }
  wf_status status = wf__rnn_scoring_reserve(a, WF__RNN_ARRAY_STREAM_CONTEXTS,
                                             a->channels.size * sizeof *stream_contexts, err);
  if (status == WF_OK)
    status = wf__device_send(a->arrays[WF__RNN_ARRAY_STREAM_CONTEXTS].data, stream_contexts,
                             a->channels.size * sizeof *stream_contexts, a->stream, what, err);
  free(stream_contexts);
  for (uint64_t r = 0; r < a->root_states.size; r++)
    if (a->root_states.data[r] == WF__ROOT_LEFT) a->root_states.data[r] = WF__ROOT_FREE;
  return status;
}

wf_status wf__rnn_scoring_forget(struct wf__rnn_scoring *a, const wf__lane_params *p,
                                 wf_error *err) {
  static const enum wf__rnn_array cleared[] = {WF__RNN_ARRAY_TABLE, WF__RNN_ARRAY_PLACES,
                                               WF__RNN_ARRAY_CONTEXT_LIVES,
                                               WF__RNN_ARRAY_SLOT_LIVES, WF__RNN_ARRAY_COUNTERS};
  wf__rnn_state_tables *m = &a->tables;
  const uint64_t num_requests = a->counters->num_requests;
  const uint32_t free_contexts = m->num_free_contexts, free_slots = m->num_free_slots;
  for (size_t i = 0; i < sizeof cleared / sizeof *cleared; i++)
    WF__CUDA_TRY(
        cudaMemsetAsync(a->arrays[cleared[i]].data, 0, a->arrays[cleared[i]].bytes, a->stream),
        what);
  if (a->streams) WF__TRY(send_stream_contexts(a, err));
  const wf__lane_holders holders = {
      .contexts = p != NULL ? p->memory.contexts : NULL,
      .parts = p != NULL ? p->memory.num_lanes * p->memory.ranks : 0,
      .trace_cap = p != NULL ? p->memory.trace_cap : 0,
      .stream_contexts = a->arrays[WF__RNN_ARRAY_STREAM_CONTEXTS].data,
      .num_streams = (uint32_t)a->channels.size,
      .starts_stay = a->streams};
  WF__CUDA_TRY(wf__word_scores_evict(m, &holders, a->stream), what);
  WF__TRY(fetch_counters(a, err));
  m->num_free_contexts = a->counters->free_contexts;
  m->num_free_slots = a->counters->free_slots;
  a->counters->num_requests = num_requests;
  WF__TRY(wf__device_send(a->arrays[WF__RNN_ARRAY_COUNTERS].data, a->counters, sizeof *a->counters,
                          a->stream, what, err));
  a->counts.evicted_results += a->num_scores;
  if (m->num_free_contexts > free_contexts)
    a->counts.evicted_contexts += m->num_free_contexts - free_contexts;
  if (m->num_free_slots > free_slots) a->counts.evicted += m->num_free_slots - free_slots;
  a->num_scores = 0;
  a->num_frames = 0;
  return WF_OK;
}

wf_status wf__rnn_scoring_grow(struct wf__rnn_scoring *a, const wf__lane_params *p, wf_error *err) {
  wf__rnn_state_tables *m = &a->tables;
  if (a->bits + 1 >= a->number_bits || a->bits + 1 > MOST_BITS)
    return wf__fail(err, WF_ERR_LIMIT, "2^%d contexts of a recurrent scorer on the GPU", a->bits);
  a->bits++;
  m->max_contexts *= 2;
  m->max_slots *= 2;
  WF__TRY(wf__gpu_rnn()->grow(a->device, m->max_slots, err));
  WF__TRY(make_tables(a, err));
  m->num_free_contexts = m->num_free_slots = NONE; /* nothing was evicted */
  return wf__rnn_scoring_forget(a, p, err);
}

/* --- opening ----------------------------------------------------------------------------- */

static uint64_t after(uint64_t *at, uint64_t bytes) {
  const uint64_t from = *at;
  *at += (bytes + 255) & ~(uint64_t)255;
  return from;
}

/* A back-off model's arrays, one after the other. */
static wf_status send_lm(struct wf__rnn_scoring *a, enum wf__rnn_array which,
                         const wf__automaton *lm, wf__lane_lm *out, wf_error *err) {
  *out = (wf__lane_lm){0};
  if (lm == NULL) return WF_OK;
  const void *from[] = {lm->unigrams, lm->states, lm->arcs, lm->final_cost};
  const uint64_t bytes[] = {
      lm->num_labels * sizeof *lm->unigrams, (lm->num_states + 1) * sizeof *lm->states,
      lm->num_arcs * sizeof *lm->arcs, lm->num_states * sizeof *lm->final_cost};
  uint64_t off[4], all = 0;
  for (int i = 0; i < 4; i++) off[i] = after(&all, bytes[i]);
  WF__TRY(make_array(a, which, all, false, err));
  char *to = a->arrays[which].data;
  for (int i = 0; i < 4; i++)
    WF__TRY(wf__device_send(to + off[i], from[i], bytes[i], a->stream, what, err));
  *out = (wf__lane_lm){(const wf__lm_unigram *)(void *)(to + off[0]),
                       (const wf__lm_state *)(void *)(to + off[1]),
                       (const wf__lm_arc *)(void *)(to + off[2]),
                       (const float *)(void *)(to + off[3]),
                       lm->num_labels,
                       lm->unk,
                       (uint32_t)lm->num_states};
  return WF_OK;
}

static wf_status send_models(struct wf__rnn_scoring *a, const wf__rnn_scorer *rnn, wf_error *err) {
  wf__rnn_state_tables *m = &a->tables;
  uint64_t factors[WF_RNNLM_MAX_ORDER * WF_RNNLM_MAX_ORDER];
  wf__rnn_hash_factors(a->lm, factors, &m->first_factor, &m->modulus);
  WF__TRY(send_array(a, WF__RNN_ARRAY_FACTORS, factors,
                     (uint64_t)m->order * m->order * sizeof *factors, err));
  WF__TRY(send_array(a, WF__RNN_ARRAY_LABELS, rnn->labels,
                     (uint64_t)rnn->num_labels * sizeof *rnn->labels, err));
  m->factors = a->arrays[WF__RNN_ARRAY_FACTORS].data;
  m->labels = a->arrays[WF__RNN_ARRAY_LABELS].data;
  WF__TRY(send_lm(a, WF__RNN_ARRAY_NGRAM, rnn->ngram, &m->ngram, err));
  if (rnn->small != rnn->ngram) return send_lm(a, WF__RNN_ARRAY_SMALL, rnn->small, &m->small, err);
  m->small = m->ngram;
  return WF_OK;
}

/* Numbers of contexts and slots that rnnlm_memory has room for. */
static void choose_sizes(struct wf__rnn_scoring *a, uint64_t bytes) {
  wf__rnn_state_tables *m = &a->tables;
  const uint64_t slot =
      wf__rnn_state_floats(a->lm) * sizeof(float) + m->order * sizeof(uint64_t) + 9;
  const uint64_t context = sizeof(wf__lane_context) + m->num_words * sizeof(int32_t) +
                           2 * (sizeof(wf__lane_home) + sizeof(wf__word_score)) + 13;
  uint64_t slots = bytes / 2 / slot;
  if (slots < LEAST_SLOTS) slots = LEAST_SLOTS;
  if (slots > NONE / (m->order + 2)) slots = NONE / (m->order + 2);
  m->max_slots = (uint32_t)slots;
  a->bits = LEAST_BITS;
  while (a->bits < MOST_BITS && a->bits + 2 < a->number_bits &&
         context << (a->bits + 1) <= bytes / 2)
    a->bits++;
  m->max_contexts = (uint32_t)1 << a->bits;
}

static wf_status make_state_tables(struct wf__rnn_scoring *a, const wf__rnn_scorer *rnn,
                                   wf_error *err) {
  wf__rnn_state_tables *m = &a->tables;
  const wf_rnn_scorer_options *o = &rnn->options;
  const uint32_t order = a->lm->maxent_order > 0 ? (uint32_t)a->lm->maxent_order : 0,
                 kept = wf__rnn_words_kept(rnn);
  *m = (wf__rnn_state_tables){.rnnlm_scale = o->rnnlm_scale,
                              .small_scale = o->small_scale,
                              .weight = o->rnnlm_weight,
                              .unknown_cost = o->unknown_cost,
                              .linear = o->interpolation,
                              .bos = a->lm->bos,
                              .eos = a->lm->eos,
                              .order = order,
                              .words_kept = kept,
                              .num_roots = 1, /* the root of the scorer alone; the array is zero */
                              .start_ngram = rnn->ngram != NULL ? rnn->ngram->start : 0,
                              .start_small = rnn->small != NULL ? rnn->small->start : 0};
  m->num_words = order > 1 ? order - 1 : 0;
  if (kept != NONE && kept > m->num_words) m->num_words = kept;
  m->word_scores.num_labels = (uint32_t)rnn->num_labels;
  a->own_roots = o->rnnlm_cache != WF__RNN_CACHE_SHARED;
  choose_sizes(a, (uint64_t)o->rnnlm_memory);
  WF__TRY(wf__gpu_rnn()->open(a->lm, m->max_slots, &a->device, err));
  a->stream = wf__gpu_rnn()->stream(a->device);
  WF__TRY(send_models(a, rnn, err));
  WF__TRY(make_array(a, WF__RNN_ARRAY_COUNTERS, sizeof *a->counters, false, err));
  WF__TRY(wf__pinned_alloc((void **)&a->counters, sizeof *a->counters, what, err));
  *a->counters = (wf__lane_counters){0};
  WF__TRY(make_tables(a, err));
  m->num_free_contexts = m->num_free_slots = NONE;
  return wf__rnn_scoring_forget(a, NULL, err);
}

void wf__rnn_scoring_free_chains(struct wf__rnn_scoring *a) {
  for (uint64_t i = 0; i < a->chains.size; i++) {
    wf_scorer_free(a->chains.data[i].scorer);
    wf_scorer_free(a->chains.data[i].cpu_scorer);
  }
  a->chains.size = 0;
  wf__map64_clear(&a->chain_of);
}

void wf__rnn_scoring_close(struct wf__rnn_scoring *a) {
  if (a == NULL) return;
  wf__rnn_scoring_free_chains(a);
  wf__vec_free(&a->chains);
  wf__map64_free(&a->chain_of);
  wf__vec_free(&a->channels);
  wf__vec_free(&a->root_states);
  for (int i = 0; i < WF__NUM_RNN_ARRAYS; i++) cudaFree(a->arrays[i].data);
  cudaFreeHost(a->counters);
  wf__gpu_rnn()->close(a->device);
  wf_rnnlm_free(a->lm);
  wf_scorer_free(a->cpu_scorer);
  wf_scorer_free(a->scorer);
  free(a);
}

static wf_status fill_scoring(struct wf__rnn_scoring *a, int device, const wf_scorer *scorer,
                              wf_error *err) {
  const wf__rnn_scorer *rnn = wf__rnn_scorer_of(scorer);
  char name[32];
  snprintf(name, sizeof name, "cuda:%d", device);
  a->scorer = wf_scorer_ref(scorer);
  if (rnn->rnnlm->on_device != NULL &&
      wf__gpu_rnn()->weights_where(rnn->rnnlm->on_device) == device)
    a->lm = wf_rnnlm_ref(rnn->rnnlm);
  else
    WF__TRY(wf_rnnlm_on_device(rnn->rnnlm, name, &a->lm, err));
  WF__TRY(wf__rnn_cpu_scorer(rnn, a->lm->base, &a->cpu_scorer, err));
  WF__CUDA_TRY(cudaSetDevice(device), "choosing the GPU");
  return make_state_tables(a, rnn, err);
}

wf_status wf__rnn_scoring_open(int device, const wf_scorer *scorer, int number_bits,
                               struct wf__rnn_scoring **out, wf_error *err) {
  struct wf__rnn_scoring *a = wf__calloc(1, sizeof *a);
  *out = NULL;
  if (a == NULL) return wf__fail_memory(err, sizeof *a, what);
  a->number_bits = number_bits;
  const wf_status status = fill_scoring(a, device, scorer, err);
  if (status == WF_OK)
    *out = a;
  else
    wf__rnn_scoring_close(a);
  return status;
}

void wf__gpu_close_rnn_scorings(wf__gpu_worker *worker) {
  wf__rnn_scoring_close(worker->rnn_scoring);
  worker->rnn_scoring = NULL;
  for (struct wf__rnn_scoring *next, *a = worker->stream_scorings; a != NULL; a = next) {
    next = a->next;
    wf__rnn_scoring_close(a);
  }
  worker->stream_scorings = NULL;
}

void wf__gpu_drain_rnn_scorings(const wf__gpu_worker *worker) {
  if (worker->rnn_scoring != NULL) (void)cudaStreamSynchronize(worker->rnn_scoring->stream);
  for (const struct wf__rnn_scoring *a = worker->stream_scorings; a != NULL; a = a->next)
    (void)cudaStreamSynchronize(a->stream);
}

wf_status wf__rnn_scoring_set_roots(struct wf__rnn_scoring *a, const wf__flat_scorer *const *roots,
                                    uint32_t count, bool forgets, wf_error *err) {
  wf__rnn_state_tables *m = &a->tables;
  while (count >= m->max_contexts / 2) WF__TRY(wf__rnn_scoring_grow(a, NULL, err));
  WF__TRY(wf__device_send(a->arrays[WF__RNN_ARRAY_ROOTS].data, roots, count * sizeof *roots,
                          a->stream, what, err));
  m->num_roots = count;
  return forgets ? wf__rnn_scoring_forget(a, NULL, err) : WF_OK;
}

/* --- rounds ------------------------------------------------------------------------------ */

/* Takes note of the contexts that the last round made. */
static wf_status count_made(struct wf__rnn_scoring *a, wf_error *err) {
  if (a->counters->clash != 0)
    return wf__fail(err, WF_ERR_LIMIT,
                    "two contexts of the recurrent language model have the same 64-bit hash");
  a->tables.num_free_contexts -= a->counters->num_made;
  a->counts.histories += a->counters->num_made;
  return WF_OK;
}

/* Launches the lanes, after the round's work; the counters are the outcome of both. */
static wf_status launch_lanes(struct wf__rnn_scoring *a, const wf__rnn_search *search,
                              wf_error *err) {
  wf__lane_params *p = search->params;
  const size_t kept = offsetof(wf__lane_counters, num_waiting);
  WF__CUDA_TRY(cudaMemsetAsync((char *)a->arrays[WF__RNN_ARRAY_COUNTERS].data + kept, 0,
                               sizeof *a->counters - kept, a->stream),
               what);
  a->tables.word_scores.missing_cap = a->tables.max_contexts - a->num_scores;
  p->word_scores = a->tables.word_scores;
  WF__TRY(wf__gpu_launch(search->kind, p, a->stream, NULL, err));
  WF__TRY(wait_for_counters(a, err));
  a->num_frames += a->counters->num_frames;
  return count_made(a, err);
}

/* Starts to make all scores that were requested. */
static wf_status make_scores(struct wf__rnn_scoring *a, wf_error *err) {
  wf__rnn_state_tables *m = &a->tables;
  const uint32_t missing = a->counters->num_missing, claims = a->counters->num_claims;
  const uint32_t steps = m->words_kept == NONE ? 1 : m->words_kept;
  WF__TRY(wf__rnn_scoring_reserve(a, WF__RNN_ARRAY_REQUESTS, missing * sizeof *m->requests, err));
  WF__TRY(wf__rnn_scoring_reserve(a, WF__RNN_ARRAY_COSTS, missing * sizeof *m->costs, err));
  WF__TRY(wf__rnn_scoring_reserve(a, WF__RNN_ARRAY_MADE_AT, missing * sizeof *m->made_at, err));
  WF__TRY(wf__rnn_scoring_reserve(a, WF__RNN_ARRAY_MOVES, claims * sizeof *m->moves, err));
  WF__TRY(wf__rnn_scoring_reserve(a, WF__RNN_ARRAY_SLOTS, claims * sizeof *m->slots, err));
  m->requests = a->arrays[WF__RNN_ARRAY_REQUESTS].data;
  m->costs = a->arrays[WF__RNN_ARRAY_COSTS].data;
  m->made_at = a->arrays[WF__RNN_ARRAY_MADE_AT].data;
  m->moves = a->arrays[WF__RNN_ARRAY_MOVES].data;
  m->slots = a->arrays[WF__RNN_ARRAY_SLOTS].data;
  const size_t first = offsetof(wf__lane_counters, num_made);
  WF__CUDA_TRY(cudaMemsetAsync((char *)a->arrays[WF__RNN_ARRAY_COUNTERS].data + first, 0,
                               offsetof(wf__lane_counters, num_waiting) - first, a->stream),
               what);
  if (claims > 0) {
    WF__CUDA_TRY(wf__word_scores_claim(m, claims, a->stream), what);
    for (uint32_t step = 0; step < steps; step++) {
      WF__CUDA_TRY(wf__word_scores_move(m, claims, step, a->stream), what);
      WF__TRY(wf__gpu_rnn()->advance_there(a->device, m->moves, wf__rows(claims), err));
    }
    WF__TRY(wf__gpu_rnn()->norms_there(a->device, m->slots, claims, err));
  }
  WF__CUDA_TRY(wf__word_scores_request(m, missing, a->stream), what);
  WF__TRY(wf__gpu_rnn()->costs_there(a->device, m->requests, missing, m->hashes, m->costs, err));
  WF__CUDA_TRY(wf__word_scores_make(m, missing, a->stream), what);
  m->num_free_slots -= claims;
  a->num_scores += missing;
  a->counts.rounds++;
  a->counts.costs += missing;
  a->counts.hidden += claims;
  a->counts.recomputed += (uint64_t)claims * (steps - 1);
  return WF_OK;
}

static wf_status run_rounds(struct wf__rnn_scoring *a, const wf__rnn_search *search,
                            wf_error *err) {
  WF__TRY(launch_lanes(a, search, err));
  while (a->counters->num_waiting > 0) {
    WF__TRY(wf__interrupted(err));
    const wf__lane_counters *c = a->counters;
    const bool fits = c->num_missing <= a->tables.word_scores.missing_cap &&
                      c->num_missing <= a->tables.num_free_contexts &&
                      c->num_claims <= a->tables.num_free_slots;
    const bool lasts = a->num_frames >= (uint64_t)FRAMES_KEPT * c->num_waiting;
    if (fits)
      WF__TRY(make_scores(a, err));
    else
      WF__TRY((lasts ? wf__rnn_scoring_forget : wf__rnn_scoring_grow)(a, search->params, err));
    WF__TRY(launch_lanes(a, search, err));
  }
  return WF_OK;
}

/* Reports what was counted in this search; `costs`: computed before it. */
static void count_search(struct wf__rnn_scoring *a, uint64_t costs, uint64_t num_utterances) {
  a->counts.utterances += num_utterances;
  a->counts.requests += a->counters->num_requests;
  a->counts.hits += a->counters->num_requests > a->counts.costs - costs
                        ? a->counters->num_requests - (a->counts.costs - costs)
                        : 0;
  wf__rnn_report_counts(a->scorer, &a->counts);
}

/* Makes a root for each utterance. */
static wf_status set_own_roots(struct wf__rnn_scoring *a, const wf__lane_utterance *utterances,
                               uint32_t count, wf_error *err) {
  const wf__flat_scorer **roots = wf__alloc(count, sizeof *roots);
  if (roots == NULL) return wf__fail_memory(err, count * sizeof *roots, what);
  for (uint32_t i = 0; i < count; i++) roots[i] = utterances[i].scorer;
  const wf_status status = wf__rnn_scoring_set_roots(a, roots, count, true, err);
  free(roots);
  return status;
}

wf_status wf__rnn_scoring_search(struct wf__rnn_scoring *a, const wf__rnn_search *search,
                                 wf_error *err) {
  wf__lane_params *p = search->params;
  const uint64_t costs = a->counts.costs;
  WF__TRY(wf__gpu_wait(search->entered, "utterances to the GPU",
                       err)); /* also waits for other searches, which have taken from the queue */
  if (a->incomplete)
    WF__TRY(
        wf__rnn_scoring_forget(a, NULL, err)); /* otherwise lanes would wait for ever: scores that
                                                  are in the table are not requested again */
  a->incomplete = true;
  if (a->own_roots && !a->streams)
    WF__TRY(set_own_roots(a, search->utterances, p->work.num_utterances, err));
  WF__TRY(wf__rnn_scoring_reserve(
      a, WF__RNN_ARRAY_SAVED,
      (uint64_t)p->memory.num_lanes * p->memory.ranks * sizeof(wf__lane_saved), err));
  a->tables.word_scores.saved = a->arrays[WF__RNN_ARRAY_SAVED].data;
  a->counters->num_requests = 0;
  WF__CUDA_TRY(cudaMemsetAsync(a->arrays[WF__RNN_ARRAY_SAVED].data, 0,
                               a->arrays[WF__RNN_ARRAY_SAVED].bytes, a->stream),
               what);
  WF__CUDA_TRY(cudaMemsetAsync(p->work.queue, 0, sizeof *p->work.queue, a->stream), what);
  WF__CUDA_TRY(
      cudaMemsetAsync(a->arrays[WF__RNN_ARRAY_COUNTERS].data, 0, sizeof *a->counters, a->stream),
      what);
  WF__TRY(run_rounds(a, search, err));
  a->incomplete = false;
  count_search(a, costs, search->num_begun);
  return WF_OK;
}
