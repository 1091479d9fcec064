/* scoring.h - a scorer in use by one search: its memory, and a cache of its scores.
 *
 *   cache [2^CACHE_BITS]  {context, next, word, cost}   direct-mapped; word 0: empty; cost NaN:
 *                         requested, not scored yet
 *   requests              of a scorer with batch operations: those of a frame, gathered before
 *                         the frame needs the scores
 *
 * Tokens stay in a state for many frames and propose the same words after the same contexts each
 * time, so most requests hit the cache. */
#ifndef WF_SCORER_SCORING_H
#define WF_SCORER_SCORING_H

#include <math.h>

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
  bool joined;       /* the memory is joined with those of other searches */
  wf__scored *cache; /* made by begin or resume */
  uint64_t start;    /* context at the start of the utterance */
  wf__score_request_vec requests;
  uint64_t num_requests; /* requests since the last wf__scoring_submit, including cache hits */
} wf__scoring;

/* Takes another scorer, or NULL for none. */
wf_status wf__scoring_set(wf__scoring *scoring, const wf_scorer *scorer, wf_error *err);
/* The same, with a memory joined to that of `first`, which uses the same scorer. */
wf_status wf__scoring_join(wf__scoring *scoring, const wf__scoring *first, wf_error *err);
/* Begins a new utterance. */
wf_status wf__scoring_begin(wf__scoring *scoring, wf_error *err);
/* Exchanges scorers and their memories; the caches stay. */
void wf__scoring_exchange(wf__scoring *scoring, wf__scoring *other);
/* Continues an utterance that was begun before an exchange. */
wf_status wf__scoring_resume(wf__scoring *scoring, wf_error *err);
void wf__scoring_free(wf__scoring *scoring);
/* Empties the cache, because contexts in it may be evicted. */
void wf__scoring_forget(wf__scoring *scoring);

static inline bool wf__scoring_batches(const wf__scoring *scoring) {
  return scoring->scorer != NULL && scoring->scorer->ops->batch != NULL;
}
/* Submits the requests of wf__scoring_request; *waits: they must be scored before the search
 * continues. */
wf_status wf__scoring_submit(wf__scoring *scoring, bool *waits, wf_error *err);

/* Search i of `user`, and the contexts that it may still use. The array *live is borrowed. */
typedef wf__scoring *wf__scoring_of_fn(void *user, size_t i);
typedef wf_status wf__find_live_fn(void *user, size_t i, wf__context_vec *live, wf_error *err);
/* Scores the submitted requests of `count` searches, whose memories are joined. Evicts contexts if
 * there are too many, and asks for those in use only then. */
wf_status wf__scoring_score(wf__scoring_of_fn *scoring_of, wf__find_live_fn *find_live,
                            size_t count, void *user, wf__pool *pool, wf_error *err);

static inline wf__scored *wf__scoring_place(const wf__scoring *scoring, uint64_t context,
                                            int32_t word) {
  return &scoring->cache[wf__spread64(wf__mix64(context) + (uint64_t)word, WF__SCORING_CACHE_BITS)];
}

/* Adds a request unless it is in the cache. */
static inline wf_status wf__scoring_request(wf__scoring *scoring, uint64_t context, int32_t word,
                                            wf_error *err) {
  wf__scored *kept = wf__scoring_place(scoring, context, word);
  scoring->num_requests++;
  if (kept->context == context && kept->word == word) return WF_OK;
  *kept = (wf__scored){.context = context, .word = word, .cost = NAN};
  wf__score_request request = {context, word};
  return wf__vec_push(&scoring->requests, request, "requests to a scorer", err);
}

static inline wf_status wf__scoring_step(wf__scoring *scoring, uint64_t context, int32_t word,
                                         float *cost, uint64_t *next, wf_error *err) {
  wf__scored *kept = wf__scoring_place(scoring, context, word);
  if (kept->context != context || kept->word != word || isnan(kept->cost)) {
    WF__TRY(scoring->scorer->ops->step(scoring->scorer, scoring->memory, context, word, &kept->cost,
                                       &kept->next, err));
    kept->context = context;
    kept->word = scoring->scorer->forgets ? 0 : word;
  }
  *cost = kept->cost;
  *next = kept->next;
  return WF_OK;
}

/* As wf__scorer_bounds; without a scorer, all words cost 0. */
static inline wf__cost_bounds wf__scoring_bounds(const wf__scoring *scoring, uint64_t context) {
  if (scoring->scorer == NULL) return (wf__cost_bounds){0, 0};
  return wf__scorer_bounds(scoring->scorer, scoring->memory, context);
}

/* Adds the cost of a word to *cost. *context advances over the word. */
static inline wf_status wf__scoring_add(wf__scoring *scoring, int32_t word, float *cost,
                                        uint64_t *context, wf_error *err) {
  float added;
  WF__TRY(wf__scoring_step(scoring, *context, word, &added, context, err));
  *cost += added;
  return WF_OK;
}

static inline wf_status wf__scoring_final(wf__scoring *scoring, uint64_t context, float *cost,
                                          wf_error *err) {
  return scoring->scorer->ops->final(scoring->scorer, scoring->memory, context, cost, err);
}

#endif
