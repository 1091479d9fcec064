/* rnn_memory.h - the memory of the recurrent scorer: of one search, or of many in a batch.
 *
 *   histories  tree of words: {parent, word, hash, slot}   0: after <s>             hash -> history
 *              by map
 *   contexts   {history, state of the n-gram model, state of the small model}       hash -> context
 *              by map: these hashes are the scorer's contexts
 *   slots      hidden states, a fixed number; a history's slot is NONE until a cost is requested
 *              after it, and again when it is evicted
 *   results    {context, word, utterance} -> cost, next context                     rnn_results.h;
 *              `context` is always among contexts, `next` often is not yet
 *
 * A hidden state is computed from the nearest ancestor history that has one. The states of many
 * histories are computed together. A state is the same bit for bit, whatever else is computed or
 * evicted.
 *
 * Epochs count the blocks of histories whose states are computed together, about one for each
 * frame. States, contexts and results carry the epoch of their last use. When memory is short, the
 * oldest are evicted first. Those of this frame, and contexts that a search holds, are never
 * evicted. */
#ifndef WF_SCORER_RNN_MEMORY_H
#define WF_SCORER_RNN_MEMORY_H

#include "base/map64.h"
#include "base/threads.h"
#include "lm/rnn_device.h"
#include "scorer/rnn_results.h"
#include "scorer/scorer.h"

typedef struct wf__rnn_history_node {
  uint64_t hash;
  uint32_t parent, slot;
  int32_t word; /* id of the recurrent model */
  uint32_t depth;
  uint32_t group; /* used by rnn_batch.c: its index among a frame's histories */
} wf__rnn_history_node;

typedef struct wf__rnn_context {
  uint64_t hash;
  uint32_t history, ngram_state, small_state, epoch;
} wf__rnn_context;

/* In the same order as in wf_rnn_scorer_stats. */
typedef struct wf__rnn_counts {
  uint64_t utterances, requests, hits, histories, hidden, recomputed, evicted, costs, rounds,
      evicted_results, evicted_contexts;
} wf__rnn_counts;

/* A history whose state is being computed. */
typedef struct wf__rnn_advance_item {
  uint32_t from, to; /* slots; from NONE: the state after <s> */
  uint64_t path_off; /* position in `path` of the words to be read, latest first */
  uint32_t path_size, history;
} wf__rnn_advance_item;

typedef struct wf__rnn_memory {
  const wf_rnnlm *lm;
  WF__VEC(wf__rnn_history_node) histories;
  WF__VEC(wf__rnn_context) contexts;
  wf__map64 history_of, context_of;
  uint64_t context_bytes, collect_at; /* memory limit of histories and contexts, and the number of
                                         them at which to evict next */
  /* Hidden states (rnn_states.c). */
  size_t num_slots, num_used, hand, state_floats;
  float *states;          /* [num_slots][state_floats]; NULL if they are on a GPU */
  float *norms;           /* with softmax: [num_slots]; NaN: not computed yet */
  wf__rnn_device *device; /* the GPU that runs the model; its slots are these + 1. NULL: the CPU */
  float root_norm;        /* of the root, whose state is part of the model */
  uint32_t *owner;        /* [num_slots] history */
  uint32_t *slot_epoch;   /* [num_slots] */
  uint32_t evict_before;  /* slots of earlier epochs may be evicted */
  WF__VEC(wf__rnn_advance_item) items;
  WF__VEC(int32_t) path;
  WF__VEC(wf__rnn_work) works; /* one for each thread */
  WF__VEC(wf__rnn_move) moves; /* scratch of rnn_slots.c */
  WF__VEC(uint32_t) computed_slots;
  WF__VEC(wf__rnn_request) requests;
  WF__VEC(uint64_t) hashes;
  wf__rnn_results results;
  uint32_t epoch, round_epoch; /* of this block, and of the frame's first block */
  wf__rnn_counts counts;
} wf__rnn_memory;

enum { WF__RNN_ROOT = 0, WF__RNN_BLOCK = 32 /* states that one thread computes at one time */ };

/* Half of `bytes` for hidden states (16 at least), an eighth for contexts, the rest for results if
 * they are to be kept. */
wf_status wf__rnn_memory_init(const wf_rnnlm *lm, uint64_t bytes, bool keep_results,
                              wf__rnn_memory *memory, wf_error *err);
void wf__rnn_memory_free(wf__rnn_memory *memory);
/* Evicts histories, contexts and results; the root remains. */
wf_status wf__rnn_memory_clear(wf__rnn_memory *memory, wf_error *err);
static inline bool wf__rnn_memory_is_full(const wf__rnn_memory *memory) {
  return memory->histories.size + memory->contexts.size > memory->collect_at ||
         (memory->results.entries != NULL && wf__rnn_results_are_many(&memory->results));
}
/* Evicts the oldest results and contexts, except these contexts (numbers that are no contexts
 * are allowed), and histories without contexts. */
wf_status wf__rnn_memory_keep(wf__rnn_memory *memory, const wf__context_vec *live, size_t count,
                              wf_error *err);

/* The history `from word`. */
wf_status wf__rnn_extend(wf__rnn_memory *memory, uint32_t from, int32_t word, uint32_t *out,
                         wf_error *err);
/* The history of the last `num` words of one, as if the sentence began with them. */
wf_status wf__rnn_shorten(wf__rnn_memory *memory, uint32_t history, uint32_t num, uint32_t *out,
                          wf_error *err);
/* The context of a history and the states of two other models; context.hash and epoch are set here.
 */
wf_status wf__rnn_intern(wf__rnn_memory *memory, wf__rnn_context context, uint64_t *hash,
                         wf_error *err);
/* The number of the context with these parts, whether it exists or not. */
uint64_t wf__rnn_context_hash(uint64_t history_hash, uint32_t ngram_state, uint32_t small_state);
/* Hash of the history `from word`, shortened to its last `num` words (UINT32_MAX: all). */
uint64_t wf__rnn_history_hash(const wf__rnn_memory *memory, uint32_t from, int32_t word,
                              uint32_t num);
/* Place of a context among `contexts`; UINT32_MAX: there is no such context. */
static inline uint32_t wf__rnn_context_at(const wf__rnn_memory *memory, uint64_t hash) {
  return wf__map64_find(&memory->context_of, hash);
}

/* --- rnn_states.c ------------------------------------------------------------------------ */

wf_status wf__rnn_states_init(wf__rnn_memory *memory, uint64_t bytes, wf_error *err);
void wf__rnn_states_free(wf__rnn_memory *memory);
/* Number of histories that one call of wf__rnn_begin_epoch takes. */
static inline size_t wf__rnn_epoch_limit(const wf__rnn_memory *memory) {
  return memory->num_slots / 2;
}
/* Begins an epoch: the states of these distinct histories (and with softmax their norms) stay
 * available until the next epoch. */
wf_status wf__rnn_begin_epoch(wf__rnn_memory *memory, const uint32_t *histories, size_t count,
                              wf__pool *pool, wf_error *err);
/* Costs after histories of this epoch (or the root): -ln p(words[i] | histories[i]). Only without a
 * device. May run in several threads at the same time. */
void wf__rnn_costs_behind(const wf__rnn_memory *memory, const uint32_t *histories,
                          const int32_t *words, size_t count, float *costs);
/* The same with a device (rnn_slots.c). Equal histories should be adjacent. */
wf_status wf__rnn_device_costs_behind(wf__rnn_memory *memory, const uint32_t *histories,
                                      const int32_t *words, size_t count, float *costs,
                                      wf_error *err);
/* With a device: computes the states of memory->items. */
wf_status wf__rnn_device_compute_states(wf__rnn_memory *memory, wf_error *err);

#endif
