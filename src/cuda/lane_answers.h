/* lane_answers.h - a recurrent scorer at work on a GPU: what the search with it (lane_asking.cuh) looks up there, and what new answers are made of. Plain C.
 *
 *   contexts  [max_contexts + 1]  by number: the 64-bit number that the CPU's scorer gives it, its history's, hidden state, states of the n-gram models
 *   words     [..][num_words]     beside them: the last words, latest first, as many as features or merged histories ask for
 *   places    [2^place_bits]      number of the CPU's scorer -> number here
 *   answers   [2^answer_bits]     (context, word) -> cost, context behind; at most half full
 *   states, hashes                hidden states (lm/rnn_device.h) and MaxEnt features of a history, by slot; slot 0: behind <s>
 *
 * A round: lanes enter what they miss among the answers, and thereby ask for it, once however many ask; and claim hidden states that this takes. Then, all at one time:
 * hidden states; the recurrent model's costs; mixing with n-gram models; contexts behind, found or made. Then the lanes go on.
 *
 * Contexts are made when an answer leads to them, and get a hidden state when a token asks behind them. When there is no room, everything is forgotten but the contexts
 * that tokens of the lanes' newest frames are in, with what their hidden states take; numbers and slots that are left stay as they are. Nothing in a search depends on numbers
 * here: a token carries the upper half of the CPU's number above its own, so ties are broken as on the CPU. */
#ifndef WF_CUDA_LANE_ANSWERS_H
#define WF_CUDA_LANE_ANSWERS_H

#include <stdint.h>

#include "lm/lm_types.h"
#include "lm/rnn_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf__lane_answer {
  uint64_t key;  /* context << 32 | word; 0: free */
  float cost;
  uint32_t next; /* 0: not answered yet */
} wf__lane_answer;
#define WF__LANE_END_OF_WORDS 0xffffffffu

typedef struct wf__lane_context {
  uint64_t hash, history;
  uint32_t state;  /* slot, or one of the two below */
  uint32_t before; /* slot of the history without its last word */
  int32_t word;    /* the last one */
  uint32_t depth;  /* words of the history */
  uint32_t ngram, small;
  uint32_t utterance; /* whose it is; 0: of all */
  uint32_t zero;
} wf__lane_context;
#define WF__LANE_NO_SLOT 0xffffffffu
#define WF__LANE_CLAIMED 0xfffffffeu

/* Of a launch of lanes; then of the round. */
typedef struct wf__lane_counters {
  uint64_t num_requests;  /* of all frames so far */
  uint32_t num_waiting;   /* lanes that are not done */
  uint32_t num_questions; /* may be more than there is room for */
  uint32_t num_claims;
  uint32_t num_made;      /* contexts */
  uint32_t clash;         /* two contexts have the same 64-bit number */
  uint32_t free_contexts, free_slots; /* counted while forgetting */
  uint32_t num_frames;    /* that lanes have done */
} wf__lane_counters;

/* What lanes see. */
typedef struct wf__lane_answers {
  wf__lane_answer *table;
  wf__lane_context *contexts;
  uint32_t *questions;  /* [questions_cap] places in the table */
  uint32_t *claims;     /* [max_contexts] contexts that ask for a hidden state */
  wf__lane_counters *counters;
  struct wf__lane_saved *saved; /* [parts] */
  uint32_t bits, questions_cap; /* of the table; how many more may be asked */
  uint32_t num_labels;
  uint32_t own_roots;   /* utterance u starts in context 1 + u; else all in context 1 */
} wf__lane_answers;

typedef struct wf__lane_home {
  uint64_t hash; /* with the utterance in it; 0: free */
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

/* What answers are made of. */
typedef struct wf__lane_maker {
  wf__lane_answers answers;
  wf__lane_home *places;
  int32_t *words;
  uint32_t *free_contexts, *free_slots; /* stacks */
  uint8_t *context_lives, *slot_lives;  /* while forgetting */
  uint64_t *hashes;                     /* [slots][order] */
  wf__rnn_request *requests;            /* [questions] of the round, and so on */
  float *costs;
  uint32_t *made_at;                    /* places of the contexts behind */
  wf__rnn_move *moves;                  /* [claims] */
  uint32_t *slots;
  const wf__rnn_labels *labels;
  const uint64_t *factors; /* [order][order] of the features' words */
  wf__lane_lm ngram, small;
  uint64_t first_factor, modulus; /* of the features */
  float rnnlm_scale, small_scale, weight, unknown_cost;
  int32_t linear;          /* interpolation of probabilities */
  int32_t bos, eos;
  uint32_t place_bits, num_words, order;
  uint32_t words_kept;     /* of a history; WF__LANE_NO_SLOT: all */
  uint32_t max_contexts, max_slots, num_roots;
  uint32_t num_free_contexts, num_free_slots; /* of the stacks */
  uint32_t start_ngram, start_small;
} wf__lane_maker;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* Forgets all but what the lanes of `parts` blocks hold (contexts: of their tokens, [parts][trace_cap][2]); parts 0: all but the starts, which are made. What answers and places held is to be
 * zero before, as the counters. */
int wf__answers_forget(const wf__lane_maker *maker, uint32_t parts, const uint64_t *contexts, uint32_t trace_cap, void *stream);
/* Slots and features for the claims. */
int wf__answers_claim(const wf__lane_maker *maker, uint32_t num_claims, void *stream);
/* Moves of the claims; with merged histories step `step` of `words_kept` from the beginning of the sentence. */
int wf__answers_move(const wf__lane_maker *maker, uint32_t num_claims, uint32_t step, void *stream);
/* The recurrent model's part of the questions. */
int wf__answers_request(const wf__lane_maker *maker, uint32_t num_questions, void *stream);
/* Costs, contexts behind. */
int wf__answers_make(const wf__lane_maker *maker, uint32_t num_questions, void *stream);
/* Room for more contexts than before. */
int wf__answers_copy(void *to, const void *from, uint64_t bytes, void *stream);

#ifdef __cplusplus
}
#endif
#endif
