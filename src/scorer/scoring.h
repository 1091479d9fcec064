/* scoring.h - a scorer at work on one utterance: its memory, and a cache of its answers.
 *
 *   cache [2^CACHE_BITS]  {context, next, word, cost}   direct-mapped; word 0: empty
 *
 * Tokens wait in a state for many frames and propose the same words after the same contexts each time, so most questions have just been asked. */
#ifndef WF_SCORER_SCORING_H
#define WF_SCORER_SCORING_H

#include "base/memory.h"
#include "math/hash.h"
#include "scorer/scorer.h"

enum { WF__SCORING_CACHE_BITS = 13 };

typedef struct wf__scored {
  uint64_t context, next;
  int32_t word;
  float cost;
} wf__scored;

typedef struct wf__scoring {
  wf_scorer *scorer; /* NULL: none */
  void *memory;
  wf__scored *cache; /* made by begin or resume */
  uint64_t start; /* context at the start of the utterance */
} wf__scoring;

/* Takes another scorer, or NULL for none. */
wf_status wf__scoring_set(wf__scoring *scoring, const wf_scorer *scorer, wf_error *err);
/* A new utterance. */
wf_status wf__scoring_begin(wf__scoring *scoring, wf_error *err);
/* Exchanges scorers and what they have learnt about their utterances; the caches stay where they are. */
void wf__scoring_exchange(wf__scoring *scoring, wf__scoring *other);
/* Goes on with an utterance that was begun before an exchange. */
wf_status wf__scoring_resume(wf__scoring *scoring, wf_error *err);
void wf__scoring_free(wf__scoring *scoring);

static inline wf_status wf__scoring_step(wf__scoring *scoring, uint64_t context, int32_t word, float *cost, uint64_t *next, wf_error *err) {
  wf__scored *kept = &scoring->cache[wf__spread64(wf__mix64(context) + (uint64_t)word, WF__SCORING_CACHE_BITS)];
  if (kept->context != context || kept->word != word) {
    WF__TRY(scoring->scorer->ops->step(scoring->scorer, scoring->memory, context, word, &kept->cost, &kept->next, err));
    kept->context = context;
    kept->word = word;
  }
  *cost = kept->cost;
  *next = kept->next;
  return WF_OK;
}

static inline wf_status wf__scoring_final(wf__scoring *scoring, uint64_t context, float *cost, wf_error *err) {
  return scoring->scorer->ops->final(scoring->scorer, scoring->memory, context, cost, err);
}

#endif
