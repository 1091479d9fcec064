/* deferred_scores.h - a recurrent scorer at work on a GPU: what the search with it
 * (deferred_scores.cuh) looks up there. How answers are made: rnn_score_tables.h. Plain C.
 *
 *   contexts  [max_contexts + 1]  by number: the 64-bit number that the CPU's scorer gives it, its
 *             history's, hidden state, states of the n-gram models, and of chained scorers
 *   words     [..][num_words]     beside them: the last words, latest first, as many as features or
 *             merged histories ask for
 *   places    [2^place_bits]      number of the CPU's scorer -> number here
 *   answers   [2^answer_bits]     (context, word) -> cost, context behind; at most half full
 *   states, hashes                hidden states (lm/rnn_device.h) and MaxEnt features of a history,
 *                                 by slot; slot 0: behind <s>
 *
 * A round: lanes enter what they miss among the answers, and thereby ask for it, once however many
 * ask; and claim hidden states that this takes. Then, all at one time: hidden states; the recurrent
 * model's costs; mixing with n-gram models; contexts behind, found or made. Then the lanes go on.
 *
 * Contexts are made when an answer leads to them, and get a hidden state when a token asks behind
 * them. When there is no room, everything is forgotten but the contexts that tokens of the lanes'
 * newest frames are in, with what their hidden states take; numbers and slots that are left stay as
 * they are. Nothing in a search depends on numbers here: a token carries the upper half of the
 * CPU's number above its own, so ties are broken as on the CPU.
 *
 * A root is where utterances start that share their contexts: those of one chain of scorers, or a
 * single one. */
#ifndef WF_CUDA_SEARCH_DEFERRED_SCORES_H
#define WF_CUDA_SEARCH_DEFERRED_SCORES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wf__lane_answer {
  uint64_t key; /* context << 32 | word; 0: free */
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
  uint64_t flat; /* context of the chain's other scorers */
  uint32_t root; /* that it comes from */
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
  uint32_t num_made;                  /* contexts */
  uint32_t clash;                     /* two contexts have the same 64-bit number */
  uint32_t free_contexts, free_slots; /* counted while forgetting */
  uint32_t num_frames;                /* that lanes have done */
} wf__lane_counters;

/* What lanes see. */
typedef struct wf__lane_answers {
  wf__lane_answer *table;
  wf__lane_context *contexts;
  uint32_t *questions; /* [questions_cap] places in the table */
  uint32_t *claims;    /* [max_contexts] contexts that ask for a hidden state */
  wf__lane_counters *counters;
  struct wf__lane_saved *saved; /* [parts] */
  uint32_t bits, questions_cap; /* of the table; how many more may be asked */
  const uint32_t *starts;       /* [roots] context that utterances start in */
  uint32_t num_labels, zero;
} wf__lane_answers;

#ifdef __cplusplus
}
#endif
#endif
