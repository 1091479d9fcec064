/* scoring.c - opening and closing a scorer's memory. */
#include "scorer/scoring.h"

#include <stdlib.h>
#include <string.h>

static void close_scorer(wf__scoring *scoring) {
  if (scoring->memory != NULL) scoring->scorer->ops->close(scoring->scorer, scoring->memory);
  scoring->memory = NULL;
  wf_scorer_free(scoring->scorer);
  scoring->scorer = NULL;
  scoring->joined = false;
  scoring->requests.size = scoring->num_requests = 0;
}

wf_status wf__scoring_set(wf__scoring *scoring, const wf_scorer *scorer, wf_error *err) {
  if (scorer == scoring->scorer) return WF_OK;
  close_scorer(scoring);
  if (scorer == NULL) return WF_OK;
  if (scorer->ops->open != NULL) WF__TRY(scorer->ops->open(scorer, &scoring->memory, err));
  scoring->scorer = wf_scorer_ref(scorer);
  return WF_OK;
}

wf_status wf__scoring_join(wf__scoring *scoring, const wf__scoring *first, wf_error *err) {
  if (scoring->joined && scoring->scorer == first->scorer) return WF_OK;
  close_scorer(scoring);
  WF__TRY(first->scorer->ops->batch->join(first->scorer, first->memory, &scoring->memory, err));
  scoring->scorer = wf_scorer_ref(first->scorer);
  scoring->joined = true;
  return WF_OK;
}

void wf__scoring_forget(wf__scoring *scoring) {
  if (scoring->cache != NULL)
    memset(scoring->cache, 0, sizeof *scoring->cache << WF__SCORING_CACHE_BITS);
}

wf_status wf__scoring_submit(wf__scoring *scoring, bool *waits, wf_error *err) {
  uint64_t num_noted;
  WF__TRY(scoring->scorer->ops->batch->request(scoring->scorer, scoring->memory,
                                               scoring->requests.data, scoring->requests.size,
                                               scoring->num_requests, &num_noted, err));
  scoring->requests.size = scoring->num_requests = 0;
  *waits = num_noted > 0;
  return WF_OK;
}

/* Evicts the contexts that no search uses. */
static wf_status evict_others(const wf_scorer *scorer, void *const *memories,
                              wf__scoring_of_fn *scoring_of, wf__find_live_fn *find_live,
                              size_t count, void *user, wf_error *err) {
  wf__context_vec *live = wf__alloc(count, sizeof *live);
  if (live == NULL) return wf__fail_memory(err, count * sizeof *live, "a batch");
  wf_status status = WF_OK;
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    status = find_live(user, i, &live[i], err);
    wf__scoring_forget(scoring_of(user, i)); /* drops the new requests from the cache, too: their
                                                scores are in the scorer's memory */
  }
  if (status == WF_OK) status = scorer->ops->batch->keep(scorer, memories, live, count, err);
  free(live);
  return status;
}

wf_status wf__scoring_score(wf__scoring_of_fn *scoring_of, wf__find_live_fn *find_live,
                            size_t count, void *user, wf__pool *pool, wf_error *err) {
  const wf_scorer *scorer = scoring_of(user, 0)->scorer;
  void **memories = wf__alloc(count, sizeof *memories);
  if (memories == NULL) return wf__fail_memory(err, count * sizeof *memories, "a batch");
  wf_status status = WF_OK;
  bool full = false;
  for (size_t i = 0; i < count; i++) {
    memories[i] = scoring_of(user, i)->memory;
    full = full || scorer->ops->batch->is_full(scorer, memories[i]);
  }
  if (full) status = evict_others(scorer, memories, scoring_of, find_live, count, user, err);
  if (status == WF_OK) status = scorer->ops->batch->score(scorer, memories, count, pool, err);
  free(memories);
  return status;
}

wf_status wf__scoring_resume(wf__scoring *scoring, wf_error *err) {
  if (scoring->scorer == NULL) return WF_OK;
  if (scoring->cache == NULL)
    scoring->cache = wf__alloc((uint64_t)1 << WF__SCORING_CACHE_BITS, sizeof *scoring->cache);
  if (scoring->cache == NULL)
    return wf__fail_memory(err, sizeof *scoring->cache << WF__SCORING_CACHE_BITS,
                           "a scorer's cache");
  wf__scoring_forget(scoring);
  return WF_OK;
}

void wf__scoring_exchange(wf__scoring *scoring, wf__scoring *other) {
  wf__scoring mine = *scoring;
  *scoring = *other;
  scoring->cache = mine.cache;
  mine.cache = other->cache;
  *other = mine;
}

wf_status wf__scoring_begin(wf__scoring *scoring, wf_error *err) {
  scoring->requests.size = scoring->num_requests = 0; /* of an utterance that failed */
  if (scoring->scorer == NULL) return WF_OK;
  WF__TRY(wf__scoring_resume(scoring, err));
  return scoring->scorer->ops->begin(scoring->scorer, scoring->memory, &scoring->start, err);
}

void wf__scoring_free(wf__scoring *scoring) {
  close_scorer(scoring);
  free(scoring->cache);
  scoring->cache = NULL;
  wf__vec_free(&scoring->requests);
}
