/* rnn_score_tables.h - how the scores of deferred_scores.h are made on a GPU. Plain C. */
#ifndef WF_CUDA_RNN_RNN_SCORE_TABLES_H
#define WF_CUDA_RNN_RNN_SCORE_TABLES_H

#include "cuda/search/deferred_scores.h"
#include "lm/lm_types.h"
#include "lm/rnn_types.h"
#include "scorer/flat_scorer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf__lane_home {
  uint64_t hash; /* with the root in it; 0: free */
  uint32_t context, zero;
} wf__lane_home;

/* A back-off model's arrays (lm/lm.h). */
typedef struct wf__lane_lm {
  const wf__lm_unigram *unigrams; /* NULL: there is no model */
  const wf__lm_state *states;
  const wf__lm_arc *arcs;
  const float *final_cost;
  uint32_t num_labels, unk, num_states;
} wf__lane_lm;

/* What scores are made of. */
typedef struct wf__rnn_state_tables {
  wf__word_scores word_scores;
  wf__lane_home *places;
  int32_t *words;
  uint32_t *free_contexts, *free_slots; /* stacks */
  uint8_t *context_lives, *slot_lives;  /* used by an eviction */
  uint64_t *hashes;                     /* [slots][order] */
  const wf__flat_scorer *const
      *roots;       /* [num_roots] the chain, whose recurrent part this is; NULL: that alone */
  uint32_t *starts; /* [num_roots] */
  wf__rnn_request *requests; /* [requests] of the round */
  float *costs;
  uint32_t *made_at;   /* places of the contexts after the words */
  wf__rnn_move *moves; /* [claims] */
  uint32_t *slots;
  const wf__rnn_labels *labels;
  const uint64_t *factors; /* [order][order] of the features' words */
  wf__lane_lm ngram, small;
  uint64_t first_factor, modulus; /* of the features */
  float rnnlm_scale, small_scale, weight, unknown_cost;
  int32_t linear; /* interpolation of probabilities */
  int32_t bos, eos;
  uint32_t place_bits, num_words, order;
  uint32_t words_kept; /* of a history; WF__LANE_NO_SLOT: all */
  uint32_t max_contexts, max_slots, num_roots;
  uint32_t num_free_contexts, num_free_slots; /* of the stacks */
  uint32_t start_ngram, start_small;
} wf__rnn_state_tables;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* A stream's tokens. */
typedef struct wf__stream_contexts {
  const uint64_t *contexts;
  uint32_t count, zero;
} wf__stream_contexts;

/* The references to contexts: tokens of the lanes' newest frames, tokens of streams and, if they
 * stay, starts that are not 0. */
typedef struct wf__lane_holders {
  const uint64_t *contexts; /* [parts][trace_cap][2] of the lanes */
  uint32_t parts, trace_cap;
  const wf__stream_contexts *stream_contexts;
  uint32_t num_streams;
  int32_t starts_stay; /* otherwise they are made again, as contexts 1 to num_roots */
} wf__lane_holders;

/* Evicts everything without a reference. The tables of scores and places and the counters must
 * be zero before. */
int wf__word_scores_evict(const wf__rnn_state_tables *tables, const wf__lane_holders *holders,
                          void *stream);
/* Makes the start of a root, a context from the stack. */
int wf__word_scores_start(const wf__rnn_state_tables *tables, uint32_t root, void *stream);
/* Slots and features for the claims. */
int wf__word_scores_claim(const wf__rnn_state_tables *tables, uint32_t num_claims, void *stream);
/* Moves of the claims; with merged histories step `step` of `words_kept` from the beginning of the
 * sentence. */
int wf__word_scores_move(const wf__rnn_state_tables *tables, uint32_t num_claims, uint32_t step,
                         void *stream);
/* The recurrent model's part of the requests. */
int wf__word_scores_request(const wf__rnn_state_tables *tables, uint32_t num_missing, void *stream);
/* Computes the costs and the contexts after the words. */
int wf__word_scores_make(const wf__rnn_state_tables *tables, uint32_t num_missing, void *stream);
/* Copies an array to a larger one. */
int wf__word_scores_copy(void *to, const void *from, uint64_t bytes, void *stream);

#ifdef __cplusplus
}
#endif
#endif
