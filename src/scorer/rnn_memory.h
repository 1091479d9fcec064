/* rnn_memory.h - what the recurrent scorer remembers during an utterance.
 *
 *   histories  tree of words: {parent, word, hash, slot}   0: behind <s>            hash -> history by map
 *   slots      hidden states, a fixed number; slot_of a history is NONE until a cost is asked for behind it, and again when it is evicted
 *   contexts   {history, state of the n-gram model, state of the small model}       hash -> context by map: these hashes are the scorer's contexts
 *   results    {context, word, cost, epoch}, direct-mapped
 *
 * A hidden state is computed from the nearest history above that has one. Which states are evicted (second chance, in a circle) depends on the order of
 * requests, but what is computed does not: states come out bit for bit as before. */
#ifndef WF_SCORER_RNN_MEMORY_H
#define WF_SCORER_RNN_MEMORY_H

#include "base/map64.h"
#include "lm/rnnlm.h"

typedef struct wf__rnn_history_node {
  uint64_t hash;
  uint32_t parent, slot;
  int32_t word; /* id of the recurrent model */
  uint32_t depth;
} wf__rnn_history_node;

typedef struct wf__rnn_context {
  uint64_t hash;
  uint32_t history, ngram_state, small_state;
} wf__rnn_context;

typedef struct wf__rnn_result {
  uint64_t context;
  int32_t word; /* 0: empty; -1: the end */
  float cost;
  uint64_t epoch;
} wf__rnn_result;

typedef struct wf__rnn_counts {
  uint64_t requests, hits, histories, hidden, recomputed, evicted;
} wf__rnn_counts;

typedef struct wf__rnn_memory {
  const wf_rnnlm *lm;
  WF__VEC(wf__rnn_history_node) histories;
  WF__VEC(wf__rnn_context) contexts;
  wf__map64 history_of, context_of;
  size_t num_slots, hand, state_floats;
  float *states;         /* [num_slots][state_floats] */
  float *norms;          /* softmax: [num_slots]; NaN: not yet */
  float root_norm;       /* of the root, whose state is the model's own */
  uint32_t *owner;       /* [num_slots] history, or NONE */
  bool *touched;         /* [num_slots] used since the hand passed */
  float *scratch;        /* [state_floats] */
  WF__VEC(int32_t) path; /* words to be read again, latest first */
  wf__rnn_result *results;
  int result_bits; /* 0: no cache */
  uint64_t epoch;
  wf__rnn_work work;
  wf__rnn_counts counts;
  uint64_t num_utterances;
} wf__rnn_memory;

enum { WF__RNN_ROOT = 0 };

/* Half of `bytes` for hidden states (16 at least), half for results if they are to be kept. */
wf_status wf__rnn_memory_init(const wf_rnnlm *lm, uint64_t bytes, bool keep_results, wf__rnn_memory *memory, wf_error *err);
void wf__rnn_memory_free(wf__rnn_memory *memory);
/* Forgets histories, contexts and results; the root remains. */
wf_status wf__rnn_memory_clear(wf__rnn_memory *memory, wf_error *err);
/* The history `from word`. */
wf_status wf__rnn_extend(wf__rnn_memory *memory, uint32_t from, int32_t word, uint32_t *out, wf_error *err);
/* The history of the last `num` words of one, as if the sentence began with them. */
wf_status wf__rnn_shorten(wf__rnn_memory *memory, uint32_t history, uint32_t num, uint32_t *out, wf_error *err);
/* The context of a history and the states of two other models. */
wf_status wf__rnn_intern(wf__rnn_memory *memory, wf__rnn_context context, uint64_t *hash, wf_error *err);
/* NULL if there is no such context. */
const wf__rnn_context *wf__rnn_context_at(const wf__rnn_memory *memory, uint64_t hash);
/* -ln p(word | history). */
wf_status wf__rnn_cost_behind(wf__rnn_memory *memory, uint32_t history, int32_t word, float *cost, wf_error *err);

static inline wf__rnn_result *wf__rnn_result_at(wf__rnn_memory *memory, uint64_t context, int32_t word) {
  return &memory->results[wf__spread64(context + wf__mix64((uint64_t)(uint32_t)word), memory->result_bits)];
}

#endif
