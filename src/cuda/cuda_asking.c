/* cuda_asking.c - the search with a recurrent scorer (lane_asking.cuh): rounds of a launch of the lanes and the making of what they asked for (lane_maker.h), until all are
 * done. The host only counts: questions and answers stay on the GPU.
 *
 *   batches   have the worker's `asking`, of the last batch's recurrent scorer; roots are its chains, or with rnnlm_cache=utterance the utterances of a flight
 *   streams   have one for each recurrent scorer that they hold; roots come and go with the chains that they hold. Their slots on the GPU hold contexts between chunks
 *
 *   rnnlm_memory   half: hidden states, and features of their histories; half: contexts, their places, answers
 *
 * Where there is no room, all is forgotten but what the lanes' tokens hold, and the lanes ask again. If that would have to be every few frames, there is twice the room. */
#ifdef WARPFST_CUDA
#include <stdio.h>
#include <string.h>

#include "cuda/cuda_streams.h"
#include "cuda/lane_maker.h"
#include "lm/lm.h"
#include "lm/rnn_device.h"
#include "scorer/rnn_scorer.h"

enum { LEAST_BITS = 10, MOST_BITS = 29, LEAST_SLOTS = 256, FRAMES_REMEMBERED = 8 /* of each lane, at least */, NONE = UINT32_MAX };

enum array {
  TABLE, PLACES, CONTEXTS, WORDS, QUESTIONS, CLAIMS, FREE_CONTEXTS, CONTEXT_LIVES, /* by max_contexts */
  HASHES, FREE_SLOTS, SLOT_LIVES,                                                  /* by max_slots */
  REQUESTS, COSTS, MADE_AT, MOVES, SLOTS,                                          /* of a round */
  SAVED, COUNTERS, LABELS, FACTORS, NGRAM, SMALL,
  ROOTS, STARTS, HELD,
  NUM_ARRAYS
};

/* A scorer of the batch: the recurrent one, or a chain with it. */
struct chain {
  wf_scorer *scorer;
  wf_scorer *twin; /* the same on the CPU, for costs along paths */
};

struct wf__gpu_asking {
  int number_bits;   /* that contexts may take in the keys of this batch */
  wf_scorer *scorer; /* the recurrent one, whose answers these are */
  wf_scorer *twin;
  WF__VEC(struct chain) chains;
  wf__map64 chain_of; /* address of a scorer -> number in chains */
  bool own_roots;     /* each utterance has contexts of its own; else each chain */
  /* of streams */
  bool streams;
  uint64_t num_users;                /* that hold this */
  WF__VEC(wf__gpu_channel *) channels; /* that are searched with it */
  WF__VEC(uint8_t) root_states;      /* FREE, LIVE, or LEFT: free when what came from it is forgotten */
  struct wf__gpu_asking *next;
  wf_rnnlm *lm;      /* on this GPU */
  wf__rnn_device *device;
  cudaStream_t stream; /* the device's */
  wf__lane_maker maker;
  struct {
    void *data;
    uint64_t bytes;
  } arrays[NUM_ARRAYS];
  wf__lane_counters *counters; /* page-locked */
  int bits;             /* of max_contexts */
  uint32_t num_answers; /* in the table */
  wf__rnn_counts counts;
};

enum { FREE, LIVE, LEFT }; /* roots of streams */

static const char what[] = "a recurrent scorer on the GPU";

/* --- memory ----------------------------------------------------------------------------------------------------------------- */

/* An array of so many bytes; `keeps`: what is in it already, else it is zero. */
static wf_status make_array(struct wf__gpu_asking *a, enum array which, uint64_t bytes, bool keeps, wf_error *err) {
  void *old = a->arrays[which].data, *data = NULL;
  const uint64_t old_bytes = a->arrays[which].bytes;
  if (bytes <= old_bytes && keeps) return WF_OK;
  bytes = (bytes + 256) & ~(uint64_t)255; /* never none */
  WF__CUDA_TRY(cudaMalloc(&data, bytes), what);
  a->arrays[which].data = data;
  a->arrays[which].bytes = bytes;
  cudaError_t code = cudaMemsetAsync(data, 0, bytes, a->stream);
  if (code == cudaSuccess && keeps && old != NULL) code = (cudaError_t)wf__answers_copy(data, old, old_bytes, a->stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(a->stream);
  cudaFree(old);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, code, what);
}

/* Room for a round's questions; what was in it is of no use any more. */
static wf_status reserve(struct wf__gpu_asking *a, enum array which, uint64_t bytes, wf_error *err) {
  return bytes <= a->arrays[which].bytes ? WF_OK : make_array(a, which, bytes + bytes / 2, false, err);
}

static wf_status send_array(struct wf__gpu_asking *a, enum array which, const void *data, uint64_t bytes, wf_error *err) {
  WF__TRY(make_array(a, which, bytes, false, err));
  if (bytes > 0) WF__CUDA_TRY(cudaMemcpy(a->arrays[which].data, data, bytes, cudaMemcpyHostToDevice), what);
  return WF_OK;
}

/* All that grows with the numbers of contexts and slots, larger than before or new. */
static wf_status make_tables(struct wf__gpu_asking *a, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  const uint64_t contexts = m->max_contexts, slots = m->max_slots;
  WF__TRY(make_array(a, TABLE, 2 * contexts * sizeof(wf__lane_answer), false, err));
  WF__TRY(make_array(a, PLACES, 2 * contexts * sizeof(wf__lane_home), false, err));
  WF__TRY(make_array(a, CONTEXTS, (contexts + 1) * sizeof(wf__lane_context), true, err));
  WF__TRY(make_array(a, WORDS, (contexts + 1) * m->num_words * sizeof(int32_t), true, err));
  WF__TRY(make_array(a, QUESTIONS, contexts * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, CLAIMS, contexts * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, FREE_CONTEXTS, contexts * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, CONTEXT_LIVES, contexts + 1, false, err));
  WF__TRY(make_array(a, HASHES, (slots + 1) * m->order * sizeof(uint64_t), true, err));
  WF__TRY(make_array(a, FREE_SLOTS, slots * sizeof(uint32_t), false, err));
  WF__TRY(make_array(a, SLOT_LIVES, slots + 1, false, err));
  WF__TRY(make_array(a, ROOTS, contexts / 2 * sizeof *m->roots, true, err));
  WF__TRY(make_array(a, STARTS, contexts / 2 * sizeof *m->starts, true, err));
  m->roots = a->arrays[ROOTS].data;
  m->answers.starts = m->starts = a->arrays[STARTS].data;
  m->place_bits = (uint32_t)a->bits + 1;
  m->places = a->arrays[PLACES].data;
  m->words = a->arrays[WORDS].data;
  m->free_contexts = a->arrays[FREE_CONTEXTS].data;
  m->free_slots = a->arrays[FREE_SLOTS].data;
  m->context_lives = a->arrays[CONTEXT_LIVES].data;
  m->slot_lives = a->arrays[SLOT_LIVES].data;
  m->hashes = a->arrays[HASHES].data;
  m->answers.bits = (uint32_t)a->bits + 1;
  m->answers.table = a->arrays[TABLE].data;
  m->answers.contexts = a->arrays[CONTEXTS].data;
  m->answers.questions = a->arrays[QUESTIONS].data;
  m->answers.claims = a->arrays[CLAIMS].data;
  m->answers.counters = a->arrays[COUNTERS].data;
  return WF_OK;
}

static wf_status fetch_counters(struct wf__gpu_asking *a, wf_error *err) {
  WF__CUDA_TRY(cudaMemcpyAsync(a->counters, a->arrays[COUNTERS].data, sizeof *a->counters, cudaMemcpyDeviceToHost, a->stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(a->stream), "the search kernel");
  return WF_OK;
}

/* What the streams' slots hold goes to the GPU. */
static wf_status send_held(struct wf__gpu_asking *a, wf_error *err) {
  wf__lane_held *held = wf__alloc(a->channels.size, sizeof *held);
  if (held == NULL) return wf__fail_memory(err, a->channels.size * sizeof *held, what);
  for (uint64_t i = 0; i < a->channels.size; i++) {
    const wf__gpu_channel *channel = a->channels.data[i];
    held[i] = (wf__lane_held){channel->contexts, wf__streams_num_held(channel), 0};
  }
  wf_status status = reserve(a, HELD, a->channels.size * sizeof *held, err);
  if (status == WF_OK && a->channels.size > 0) {
    const cudaError_t code = cudaMemcpy(a->arrays[HELD].data, held, a->channels.size * sizeof *held, cudaMemcpyHostToDevice);
    if (code != cudaSuccess) status = wf__cuda_fail(err, code, what);
  }
  free(held);
  for (uint64_t r = 0; r < a->root_states.size; r++)
    if (a->root_states.data[r] == LEFT) a->root_states.data[r] = FREE;
  return status;
}

/* Everything but what the lanes and streams hold; p NULL: there are no lanes. */
static wf_status forget(struct wf__gpu_asking *a, const wf__lane_params *p, wf_error *err) {
  static const enum array cleared[] = {TABLE, PLACES, CONTEXT_LIVES, SLOT_LIVES, COUNTERS};
  wf__lane_maker *m = &a->maker;
  const uint64_t num_requests = a->counters->num_requests;
  const uint32_t free_contexts = m->num_free_contexts, free_slots = m->num_free_slots;
  for (size_t i = 0; i < sizeof cleared / sizeof *cleared; i++)
    WF__CUDA_TRY(cudaMemsetAsync(a->arrays[cleared[i]].data, 0, a->arrays[cleared[i]].bytes, a->stream), what);
  if (a->streams) WF__TRY(send_held(a, err));
  const wf__lane_holders holders = {.contexts = p != NULL ? p->contexts : NULL,
                                    .parts = p != NULL ? p->num_lanes * p->ranks : 0,
                                    .trace_cap = p != NULL ? p->trace_cap : 0,
                                    .held = a->arrays[HELD].data,
                                    .num_held = (uint32_t)a->channels.size,
                                    .starts_stay = a->streams};
  WF__CUDA_TRY(wf__answers_forget(m, &holders, a->stream), what);
  WF__TRY(fetch_counters(a, err));
  m->num_free_contexts = a->counters->free_contexts;
  m->num_free_slots = a->counters->free_slots;
  a->counters->num_requests = num_requests;
  WF__CUDA_TRY(cudaMemcpy(a->arrays[COUNTERS].data, a->counters, sizeof *a->counters, cudaMemcpyHostToDevice), what);
  a->counts.evicted_results += a->num_answers;
  if (m->num_free_contexts > free_contexts) a->counts.evicted_contexts += m->num_free_contexts - free_contexts;
  if (m->num_free_slots > free_slots) a->counts.evicted += m->num_free_slots - free_slots;
  a->num_answers = 0;
  return WF_OK;
}

static wf_status grow(struct wf__gpu_asking *a, const wf__lane_params *p, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  if (a->bits + 1 >= a->number_bits || a->bits + 1 > MOST_BITS) return wf__fail(err, WF_ERR_LIMIT, "2^%d contexts of a recurrent scorer on the GPU", a->bits);
  a->bits++;
  m->max_contexts *= 2;
  m->max_slots *= 2;
  WF__TRY(wf__rnn_device_grow(a->device, m->max_slots, err));
  WF__TRY(make_tables(a, err));
  m->num_free_contexts = m->num_free_slots = NONE; /* nothing was evicted */
  return forget(a, p, err);
}

/* --- taking a scorer -------------------------------------------------------------------------------------------------------- */

static uint64_t after(uint64_t *at, uint64_t bytes) {
  const uint64_t from = *at;
  *at += (bytes + 255) & ~(uint64_t)255;
  return from;
}

/* A back-off model's arrays, one behind the other. */
static wf_status send_lm(struct wf__gpu_asking *a, enum array which, const wf_lm *lm, wf__lane_lm *out, wf_error *err) {
  *out = (wf__lane_lm){0};
  if (lm == NULL) return WF_OK;
  const void *from[] = {lm->unigrams, lm->states, lm->arcs, lm->final_cost};
  const uint64_t bytes[] = {lm->num_labels * sizeof *lm->unigrams, (lm->num_states + 1) * sizeof *lm->states, lm->num_arcs * sizeof *lm->arcs, lm->num_states * sizeof *lm->final_cost};
  uint64_t off[4], all = 0;
  for (int i = 0; i < 4; i++) off[i] = after(&all, bytes[i]);
  WF__TRY(make_array(a, which, all, false, err));
  char *to = a->arrays[which].data;
  for (int i = 0; i < 4; i++)
    if (bytes[i] > 0) WF__CUDA_TRY(cudaMemcpy(to + off[i], from[i], bytes[i], cudaMemcpyHostToDevice), what);
  *out = (wf__lane_lm){(const wf__lm_unigram *)(void *)(to + off[0]), (const wf__lm_state *)(void *)(to + off[1]), (const wf__lm_arc *)(void *)(to + off[2]),
                       (const float *)(void *)(to + off[3]), lm->num_labels, lm->unk, (uint32_t)lm->num_states};
  return WF_OK;
}

static wf_status send_models(struct wf__gpu_asking *a, const wf__rnn_scorer *rnn, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  uint64_t factors[WF_RNNLM_MAX_ORDER * WF_RNNLM_MAX_ORDER];
  wf__rnn_hash_factors(a->lm, factors, &m->first_factor, &m->modulus);
  WF__TRY(send_array(a, FACTORS, factors, (uint64_t)m->order * m->order * sizeof *factors, err));
  WF__TRY(send_array(a, LABELS, rnn->labels, (uint64_t)rnn->num_labels * sizeof *rnn->labels, err));
  m->factors = a->arrays[FACTORS].data;
  m->labels = a->arrays[LABELS].data;
  WF__TRY(send_lm(a, NGRAM, rnn->ngram, &m->ngram, err));
  if (rnn->small != rnn->ngram) return send_lm(a, SMALL, rnn->small, &m->small, err);
  m->small = m->ngram;
  return WF_OK;
}

/* Numbers of contexts and slots that rnnlm_memory has room for. */
static void choose_sizes(struct wf__gpu_asking *a, uint64_t bytes) {
  wf__lane_maker *m = &a->maker;
  const uint64_t slot = wf__rnn_state_floats(a->lm) * sizeof(float) + m->order * sizeof(uint64_t) + 9;
  const uint64_t context = sizeof(wf__lane_context) + m->num_words * sizeof(int32_t) + 2 * (sizeof(wf__lane_home) + sizeof(wf__lane_answer)) + 13;
  uint64_t slots = bytes / 2 / slot;
  if (slots < LEAST_SLOTS) slots = LEAST_SLOTS;
  if (slots > NONE / (m->order + 2)) slots = NONE / (m->order + 2);
  m->max_slots = (uint32_t)slots;
  a->bits = LEAST_BITS;
  while (a->bits < MOST_BITS && a->bits + 2 < a->number_bits && context << (a->bits + 1) <= bytes / 2) a->bits++;
  m->max_contexts = (uint32_t)1 << a->bits;
}

static wf_status make_maker(struct wf__gpu_asking *a, const wf__rnn_scorer *rnn, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  const wf_rnn_scorer_options *o = &rnn->options;
  const uint32_t order = a->lm->maxent_order > 0 ? (uint32_t)a->lm->maxent_order : 0, kept = wf__rnn_words_kept(rnn);
  *m = (wf__lane_maker){.rnnlm_scale = o->rnnlm_scale, .small_scale = o->small_scale, .weight = o->rnnlm_weight, .unknown_cost = o->unknown_cost, .linear = o->interpolation,
                        .bos = a->lm->bos, .eos = a->lm->eos, .order = order, .words_kept = kept, .num_roots = 1, /* that of the scorer alone: the array is zero */
                        .start_ngram = rnn->ngram != NULL ? wf_lm_start(rnn->ngram) : 0, .start_small = rnn->small != NULL ? wf_lm_start(rnn->small) : 0};
  m->num_words = order > 1 ? order - 1 : 0;
  if (kept != NONE && kept > m->num_words) m->num_words = kept;
  m->answers.num_labels = (uint32_t)rnn->num_labels;
  a->own_roots = o->rnnlm_cache != WF__RNN_CACHE_SHARED;
  choose_sizes(a, (uint64_t)o->rnnlm_memory);
  WF__TRY(wf__rnn_device_open(a->lm, m->max_slots, &a->device, err));
  a->stream = wf__rnn_device_stream(a->device);
  WF__TRY(send_models(a, rnn, err));
  WF__TRY(make_array(a, COUNTERS, sizeof *a->counters, false, err));
  WF__CUDA_TRY(cudaHostAlloc((void **)&a->counters, sizeof *a->counters, cudaHostAllocPortable), "page-locked memory");
  *a->counters = (wf__lane_counters){0};
  WF__TRY(make_tables(a, err));
  m->num_free_contexts = m->num_free_slots = NONE;
  return forget(a, NULL, err);
}

static void free_chains(struct wf__gpu_asking *a) {
  for (uint64_t i = 0; i < a->chains.size; i++) {
    wf_scorer_free(a->chains.data[i].scorer);
    wf_scorer_free(a->chains.data[i].twin);
  }
  a->chains.size = 0;
  wf__map64_clear(&a->chain_of);
}

static void close_asking(struct wf__gpu_asking *a) {
  if (a == NULL) return;
  free_chains(a);
  wf__vec_free(&a->chains);
  wf__map64_free(&a->chain_of);
  wf__vec_free(&a->channels);
  wf__vec_free(&a->root_states);
  for (int i = 0; i < NUM_ARRAYS; i++) cudaFree(a->arrays[i].data);
  cudaFreeHost(a->counters);
  wf__rnn_device_close(a->device);
  wf_rnnlm_free(a->lm);
  wf_scorer_free(a->twin);
  wf_scorer_free(a->scorer);
  free(a);
}

static wf_status fill_asking(struct wf__gpu_asking *a, int device, const wf_scorer *scorer, wf_error *err) {
  const wf__rnn_scorer *rnn = wf__rnn_scorer_of(scorer);
  char name[32];
  snprintf(name, sizeof name, "cuda:%d", device);
  a->scorer = wf_scorer_ref(scorer);
  if (rnn->rnnlm->on_device != NULL && wf__rnn_weights_where(rnn->rnnlm->on_device) == device) a->lm = wf_rnnlm_ref(rnn->rnnlm);
  else WF__TRY(wf_rnnlm_on_device(rnn->rnnlm, name, &a->lm, err));
  WF__TRY(wf__rnn_scorer_twin(rnn, a->lm->base, &a->twin, err));
  WF__CUDA_TRY(cudaSetDevice(device), "choosing the GPU");
  return make_maker(a, rnn, err);
}

/* Of a recurrent scorer. */
static wf_status open_asking(int device, const wf_scorer *scorer, int number_bits, struct wf__gpu_asking **out, wf_error *err) {
  struct wf__gpu_asking *a = wf__calloc(1, sizeof *a);
  *out = NULL;
  if (a == NULL) return wf__fail_memory(err, sizeof *a, what);
  a->number_bits = number_bits;
  const wf_status status = fill_asking(a, device, scorer, err);
  if (status == WF_OK) *out = a;
  else close_asking(a);
  return status;
}

void wf__gpu_asking_free(wf__gpu_worker *worker) {
  close_asking(worker->asking);
  worker->asking = NULL;
  for (struct wf__gpu_asking *next, *a = worker->stream_askings; a != NULL; a = next) {
    next = a->next;
    close_asking(a);
  }
  worker->stream_askings = NULL;
}

/* The batch's recurrent scorer, or NULL; one for all or for none. */
static wf_status find_scorer(const wf__batch *batch, const wf_scorer **out, wf_error *err) {
  bool is_first = true;
  *out = NULL;
  for (size_t i = 0; i < batch->count && batch->scorers != NULL; i++) {
    if (batch->skip[i]) continue;
    const wf_scorer *own = wf__rnn_part_of(batch->scorers[i]);
    if (is_first) *out = own;
    is_first = false;
    if (own != *out) return wf__fail(err, WF_ERR_UNSUPPORTED, "a batch on a GPU takes one recurrent scorer for all of its utterances, or for none; or take device cpu");
  }
  return WF_OK;
}

wf_status wf__gpu_asking_take(wf__gpu_worker *worker, const wf__batch *batch, bool *asks, wf_error *err) {
  const wf_scorer *scorer;
  WF__TRY(find_scorer(batch, &scorer, err));
  *asks = scorer != NULL;
  if (scorer == NULL) return WF_OK;
  int bits = wf__gpu_context_bits(worker->graph);
  for (size_t i = 0; i < batch->count; i++) {
    const int own = wf__gpu_context_bits(wf__gpu_graph_of(worker, batch, (uint32_t)i));
    if (own < bits) bits = own;
  }
  if (worker->asking != NULL && worker->asking->scorer == scorer && worker->asking->bits + 1 < bits) {
    worker->asking->number_bits = bits;
    return WF_OK;
  }
  close_asking(worker->asking);
  worker->asking = NULL;
  return open_asking(worker->device, scorer, bits, &worker->asking, err);
}

/* The chains of the batch, in the order in which they come; *same: they are those of the batch before. */
static wf_status list_chains(struct wf__gpu_asking *a, const wf__batch *batch, bool *same, wf_error *err) {
  const uint64_t before = a->chains.size;
  uint64_t count = 0;
  wf__map64 seen = {0};
  wf_status status = WF_OK;
  *same = true;
  for (size_t i = 0; i < batch->count && status == WF_OK && *same; i++) {
    uint32_t number;
    bool fresh = false;
    if (!batch->skip[i]) status = wf__map64_insert(&seen, (uint64_t)(uintptr_t)batch->scorers[i], (uint32_t)count, &number, &fresh, "scorers", err);
    if (!fresh || status != WF_OK) continue;
    *same = count < before && a->chains.data[count].scorer == batch->scorers[i];
    count++;
  }
  wf__map64_free(&seen);
  *same = *same && count == before;
  if (*same || status != WF_OK) return status;
  free_chains(a);
  for (size_t i = 0; i < batch->count; i++) {
    uint32_t number;
    bool fresh;
    if (batch->skip[i]) continue;
    WF__TRY(wf__map64_insert(&a->chain_of, (uint64_t)(uintptr_t)batch->scorers[i], (uint32_t)a->chains.size, &number, &fresh, "scorers", err));
    if (!fresh) continue;
    struct chain chain = {.scorer = NULL};
    WF__TRY(wf__vec_push(&a->chains, chain, "scorers", err));
    a->chains.data[number].scorer = wf_scorer_ref(batch->scorers[i]);
    WF__TRY(wf__scorer_exchange(batch->scorers[i], a->scorer, a->twin, &a->chains.data[number].twin, err));
  }
  return WF_OK;
}

/* Utterances start anew, in so many roots. */
static wf_status set_roots(struct wf__gpu_asking *a, const wf__flat_scorer *const *roots, uint32_t count, bool forgets, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  while (count >= m->max_contexts / 2) WF__TRY(grow(a, NULL, err));
  WF__CUDA_TRY(cudaMemcpy(a->arrays[ROOTS].data, roots, count * sizeof *roots, cudaMemcpyHostToDevice), what);
  m->num_roots = count;
  return forgets ? forget(a, NULL, err) : WF_OK;
}

wf_status wf__gpu_asking_take_chains(wf__gpu_worker *worker, const wf__batch *batch, wf_error *err) {
  struct wf__gpu_asking *a = worker->asking;
  bool same;
  wf_status status = list_chains(a, batch, &same, err);
  const wf__flat_scorer **roots = status == WF_OK ? wf__calloc(a->chains.size, sizeof *roots) : NULL;
  if (status == WF_OK && roots == NULL) status = wf__fail_memory(err, a->chains.size * sizeof *roots, what);
  for (size_t i = 0; i < batch->count && status == WF_OK; i++)
    if (!batch->skip[i]) roots[wf__map64_find(&a->chain_of, (uint64_t)(uintptr_t)batch->scorers[i])] = wf__gpu_scorer_of(worker, batch, (uint32_t)i);
  if (status == WF_OK && !a->own_roots) status = set_roots(a, roots, (uint32_t)a->chains.size, !same, err);
  free(roots);
  if (status != WF_OK) free_chains(a);
  return status;
}

uint32_t wf__gpu_root_of(const wf__gpu_worker *worker, const wf__batch *batch, uint32_t utterance, uint32_t place) {
  const struct wf__gpu_asking *a = worker->asking;
  if (!worker->facts.asks) return 0;
  return a->own_roots ? place : wf__map64_find(&a->chain_of, (uint64_t)(uintptr_t)batch->scorers[utterance]);
}

const wf_scorer *wf__gpu_asking_twin(const wf__gpu_worker *worker, const wf_scorer *scorer) {
  return worker->asking->chains.data[wf__map64_find(&worker->asking->chain_of, (uint64_t)(uintptr_t)scorer)].twin;
}

/* --- rounds ----------------------------------------------------------------------------------------------------------------- */

/* A launch of the lanes; counters say what came of it. */
static wf_status search(struct wf__gpu_asking *a, wf__lane_params *p, int (*launch)(const wf__lane_params *, void *), wf_error *err) {
  const size_t kept = sizeof a->counters->num_requests;
  WF__CUDA_TRY(cudaMemsetAsync((char *)a->arrays[COUNTERS].data + kept, 0, sizeof *a->counters - kept, a->stream), what);
  a->maker.answers.questions_cap = a->maker.max_contexts - a->num_answers;
  p->answers = a->maker.answers;
  WF__CUDA_TRY(launch(p, a->stream), "the search kernel");
  return fetch_counters(a, err);
}

/* Answers to all that was asked. */
static wf_status answer(struct wf__gpu_asking *a, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  const uint32_t questions = a->counters->num_questions, claims = a->counters->num_claims;
  const uint32_t steps = m->words_kept == NONE ? 1 : m->words_kept;
  WF__TRY(reserve(a, REQUESTS, questions * sizeof *m->requests, err));
  WF__TRY(reserve(a, COSTS, questions * sizeof *m->costs, err));
  WF__TRY(reserve(a, MADE_AT, questions * sizeof *m->made_at, err));
  WF__TRY(reserve(a, MOVES, claims * sizeof *m->moves, err));
  WF__TRY(reserve(a, SLOTS, claims * sizeof *m->slots, err));
  m->requests = a->arrays[REQUESTS].data;
  m->costs = a->arrays[COSTS].data;
  m->made_at = a->arrays[MADE_AT].data;
  m->moves = a->arrays[MOVES].data;
  m->slots = a->arrays[SLOTS].data;
  if (claims > 0) {
    WF__CUDA_TRY(wf__answers_claim(m, claims, a->stream), what);
    for (uint32_t step = 0; step < steps; step++) {
      WF__CUDA_TRY(wf__answers_move(m, claims, step, a->stream), what);
      WF__TRY(wf__rnn_device_advance_there(a->device, m->moves, claims, err));
    }
    WF__TRY(wf__rnn_device_norms_there(a->device, m->slots, claims, err));
  }
  WF__CUDA_TRY(wf__answers_request(m, questions, a->stream), what);
  WF__TRY(wf__rnn_device_costs_there(a->device, m->requests, questions, m->hashes, m->costs, err));
  WF__CUDA_TRY(wf__answers_make(m, questions, a->stream), what);
  WF__TRY(fetch_counters(a, err));
  if (a->counters->clash != 0) return wf__fail(err, WF_ERR_LIMIT, "two contexts of the recurrent language model have the same 64-bit hash");
  m->num_free_contexts -= a->counters->num_made;
  m->num_free_slots -= claims;
  a->num_answers += questions;
  a->counts.answers++;
  a->counts.costs += questions;
  a->counts.hidden += claims;
  a->counts.recomputed += (uint64_t)claims * (steps - 1);
  a->counts.histories += a->counters->num_made;
  return WF_OK;
}

static wf_status run_rounds(struct wf__gpu_asking *a, wf__lane_params *p, int (*launch)(const wf__lane_params *, void *), wf_error *err) {
  uint64_t num_frames = 0; /* since it last forgot */
  WF__TRY(search(a, p, launch, err));
  while (a->counters->num_waiting > 0) {
    const wf__lane_counters *c = a->counters;
    const bool fits = c->num_questions <= a->maker.answers.questions_cap && c->num_questions <= a->maker.num_free_contexts && c->num_claims <= a->maker.num_free_slots;
    num_frames += c->num_frames;
    if (fits) {
      WF__TRY(answer(a, err));
    } else {
      WF__TRY((num_frames < (uint64_t)FRAMES_REMEMBERED * c->num_waiting ? grow : forget)(a, p, err));
      num_frames = 0;
    }
    WF__TRY(search(a, p, launch, err));
  }
  return WF_OK;
}

/* Of the rounds since `costs` had been worked out. */
static void count_requests(struct wf__gpu_asking *a, uint64_t costs, uint64_t num_utterances) {
  a->counts.utterances += num_utterances;
  a->counts.requests += a->counters->num_requests;
  a->counts.hits += a->counters->num_requests > a->counts.costs - costs ? a->counters->num_requests - (a->counts.costs - costs) : 0;
  wf__rnn_tell(a->scorer, &a->counts);
}

/* Roots of utterances that share nothing. */
static wf_status set_own_roots(struct wf__gpu_asking *a, const wf__lane_utterance *utterances, uint32_t count, wf_error *err) {
  const wf__flat_scorer **roots = wf__alloc(count, sizeof *roots);
  if (roots == NULL) return wf__fail_memory(err, count * sizeof *roots, what);
  for (uint32_t i = 0; i < count; i++) roots[i] = utterances[i].scorer;
  const wf_status status = set_roots(a, roots, count, true, err);
  free(roots);
  return status;
}

wf_status wf__gpu_asking_search(wf__gpu_worker *worker, wf__lane_params *p, const wf__lane_utterance *utterances, cudaStream_t entered, wf_error *err) {
  struct wf__gpu_asking *a = worker->asking;
  const uint64_t costs = a->counts.costs;
  WF__TRY(make_array(a, SAVED, (uint64_t)p->num_lanes * p->ranks * sizeof(wf__lane_saved), false, err));
  a->maker.answers.saved = a->arrays[SAVED].data;
  if (a->own_roots) WF__TRY(set_own_roots(a, utterances, p->num_utterances, err));
  a->counters->num_requests = 0;
  WF__CUDA_TRY(cudaMemsetAsync(a->arrays[COUNTERS].data, 0, sizeof *a->counters, a->stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(entered), "utterances to the GPU");
  WF__TRY(run_rounds(a, p, wf__lane_asking_launch, err));
  count_requests(a, costs, p->num_utterances);
  return WF_OK;
}

/* --- streams ---------------------------------------------------------------------------------------------------------------- */

wf_status wf__asking_hold(wf__gpu_worker *worker, const wf_scorer *scorer, struct wf__gpu_asking **out, wf_error *err) {
  struct wf__gpu_asking **at = &worker->stream_askings, *a;
  *out = NULL;
  while (*at != NULL && (*at)->scorer != scorer) at = &(*at)->next;
  if (*at == NULL) {
    for (at = &worker->stream_askings; (a = *at) != NULL;) { /* what nobody holds any more has stayed until now, lest it be made again and again */
      if (a->num_users > 0) at = &a->next;
      else {
        *at = a->next;
        close_asking(a);
      }
    }
    WF__TRY(open_asking(worker->device, scorer, wf__gpu_context_bits(worker->graph), at, err));
    (*at)->streams = true;
    (*at)->maker.num_roots = 0;
  }
  *out = *at;
  (*out)->num_users++;
  return WF_OK;
}

void wf__asking_let_go(struct wf__gpu_asking *a) { a->num_users--; }
const struct wf__gpu_asking *wf__asking_next(const struct wf__gpu_asking *a) { return a->next; }
const wf_scorer *wf__asking_twin(const struct wf__gpu_asking *a) { return a->twin; }

wf_status wf__asking_fit(struct wf__gpu_asking *a, const wf_graph *graph, wf_error *err) {
  const int bits = wf__gpu_context_bits(graph);
  if (a->bits + 1 >= bits) return wf__fail(err, WF_ERR_LIMIT, "2^%d contexts of a recurrent scorer do not fit beside the states of the graph; lower rnnlm_memory", a->bits);
  if (bits < a->number_bits) a->number_bits = bits;
  return WF_OK;
}

/* A root that nothing comes from; more room if there is none. */
static wf_status find_root(struct wf__gpu_asking *a, uint32_t *root, wf_error *err) {
  for (int tries = 0; tries < 2; tries++) {
    for (*root = 0; *root < a->root_states.size && a->root_states.data[*root] != FREE;) ++*root;
    if (*root + 1 < a->maker.max_contexts / 2 && a->maker.num_free_contexts > 0) return WF_OK;
    WF__TRY((tries == 0 ? forget : grow)(a, NULL, err));
  }
  return *root + 1 < a->maker.max_contexts / 2 && a->maker.num_free_contexts > 0 ? WF_OK : wf__fail(err, WF_ERR_LIMIT, "too many chains with one recurrent scorer");
}

wf_status wf__asking_add_root(struct wf__gpu_asking *a, const wf__flat_scorer *chain, uint32_t *root, wf_error *err) {
  wf__lane_maker *m = &a->maker;
  WF__TRY(find_root(a, root, err));
  WF__CUDA_TRY(cudaMemcpy((char *)a->arrays[ROOTS].data + *root * sizeof chain, &chain, sizeof chain, cudaMemcpyHostToDevice), what);
  WF__CUDA_TRY(wf__answers_start(m, *root, a->stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(a->stream), what);
  if (*root == a->root_states.size) WF__TRY(wf__vec_push(&a->root_states, (uint8_t)FREE, what, err));
  a->root_states.data[*root] = LIVE;
  m->num_roots = (uint32_t)a->root_states.size;
  m->num_free_contexts--;
  return WF_OK;
}

void wf__asking_drop_root(struct wf__gpu_asking *a, uint32_t root) {
  a->root_states.data[root] = LEFT;
  (void)cudaMemsetAsync((char *)a->arrays[STARTS].data + root * sizeof(uint32_t), 0, sizeof(uint32_t), a->stream);
}

wf_status wf__asking_join(struct wf__gpu_asking *a, wf__gpu_channel *channel, wf_error *err) { return wf__vec_push(&a->channels, channel, what, err); }

void wf__asking_leave(struct wf__gpu_asking *a, const wf__gpu_channel *channel) {
  uint64_t i = 0;
  while (i < a->channels.size && a->channels.data[i] != channel) i++;
  if (i < a->channels.size) a->channels.data[i] = a->channels.data[--a->channels.size];
}

wf_status wf__asking_search_chunks(struct wf__gpu_asking *a, wf__lane_params *p, cudaStream_t entered, uint64_t num_begun, wf_error *err) {
  const uint64_t costs = a->counts.costs;
  WF__TRY(reserve(a, SAVED, (uint64_t)p->num_lanes * p->ranks * sizeof(wf__lane_saved), err));
  a->maker.answers.saved = a->arrays[SAVED].data;
  a->counters->num_requests = 0;
  WF__CUDA_TRY(cudaMemsetAsync(a->arrays[SAVED].data, 0, a->arrays[SAVED].bytes, a->stream), what);
  WF__CUDA_TRY(cudaMemsetAsync(p->queue, 0, sizeof *p->queue, a->stream), what);
  WF__CUDA_TRY(cudaMemsetAsync(a->arrays[COUNTERS].data, 0, sizeof *a->counters, a->stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(entered), "chunks to the GPU");
  WF__TRY(run_rounds(a, p, wf__lane_asking_streams_launch, err));
  count_requests(a, costs, num_begun);
  return WF_OK;
}

#endif
