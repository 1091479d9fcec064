/* deferred_scores.h - the tables of a recurrent scorer that the search (deferred_scores.cuh)
 * reads. How scores are made: rnn_score_tables.h. Plain C.
 *
 *   contexts  [max_contexts + 1]  by number: the 64-bit number that the CPU's scorer gives it, its
 *             history's, hidden state, states of the n-gram models, and of chained scorers
 *   words     [..][num_words]     beside them: the last words, latest first, as many as features or
 *             merged histories need
 *   places    [2^place_bits]      number of the CPU's scorer -> number here
 *   table     [2^bits]            (context, word) -> cost, context behind; at most half full
 *   states, hashes                hidden states (lm/rnn_device.h) and MaxEnt features of a history,
 *                                 by slot; slot 0: behind <s>
 *
 * A round: lanes enter the scores that they miss into the table, each score once, and claim the
 * hidden states that these need. Then all of them are computed together: hidden states, the
 * recurrent model's costs, mixing with n-gram models, and the next contexts. Then the lanes
 * continue.
 *
 * A context is made when a score leads to it. It gets a hidden state when a score after it is
 * requested. When the tables fill up, everything is evicted except the contexts of tokens in the
 * lanes' newest frames and their hidden states; these keep their numbers and slots. The search
 * does not depend on the numbers: a token carries the upper half of the CPU's number above its
 * own, so ties are broken as on the CPU.
 *
 * A root is the start of utterances that share their contexts: those with the same chain of
 * scorers, or one utterance. */
#ifndef WF_CUDA_SEARCH_DEFERRED_SCORES_H
#define WF_CUDA_SEARCH_DEFERRED_SCORES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf__word_score {
  uint64_t key; /* context << 32 | word; 0: free */
  float cost;
  uint32_t next; /* 0: not computed yet */
} wf__word_score;
#define WF__LANE_END_OF_WORDS 0xffffffffu

typedef struct wf__lane_context {
  uint64_t hash, history;
  uint32_t state;  /* slot, or one of the two below */
  uint32_t before; /* slot of the history without its last word */
  int32_t word;    /* the last one */
  uint32_t depth;  /* words of the history */
  uint32_t ngram, small;
  uint64_t flat; /* context of the chain's other scorers */
  uint32_t root; /* root that the context descends from */
  uint32_t zero;
} wf__lane_context;
#define WF__LANE_NO_SLOT 0xffffffffu
#define WF__LANE_CLAIMED 0xfffffffeu

/* Counters of a round, which makes the scores that the launch before has requested, and of the
 * launch after it. The host reads all of them at once, after the launch. */
typedef struct wf__lane_counters {
  uint64_t num_requests; /* of all frames so far */
  uint32_t num_made;     /* contexts; this and the next are the round's */
  uint32_t clash;        /* two contexts have the same 64-bit number */
  uint32_t num_waiting;  /* lanes that are not done; this and the following are the launch's */
  uint32_t num_missing;  /* requested scores; may be more than fit in `missing` */
  uint32_t num_claims;
  uint32_t free_contexts, free_slots; /* counted by an eviction */
  uint32_t num_frames;                /* frames that lanes have finished */
} wf__lane_counters;

/* The tables as the search kernels see them. */
typedef struct wf__word_scores {
  wf__word_score *table;
  wf__lane_context *contexts;
  uint32_t *missing; /* [missing_cap] places in the table */
  uint32_t *claims;  /* [max_contexts] contexts that need a hidden state */
  wf__lane_counters *counters;
  struct wf__lane_saved *saved; /* [parts] */
  uint32_t bits, missing_cap;   /* of the table; room in `missing` */
  const uint32_t *starts;       /* [roots] context that utterances start in */
  uint32_t num_labels, zero;
} wf__word_scores;

#ifdef __cplusplus
}
#endif
#endif
