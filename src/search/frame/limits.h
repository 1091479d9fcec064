/* limits.h - which tokens and candidates a frame accepts: keys that rank them, limits, and ties
 * decided by contexts. */
#ifndef WF_SEARCH_FRAME_LIMITS_H
#define WF_SEARCH_FRAME_LIMITS_H

#include <float.h>

#include "base/select.h"
#include "math/cost.h"
#include "search/frame/search.h"

/* The modes of expansion. */
enum expand_mode {
  EXPAND_RUNNING, /* makes tokens of all candidates within the beam of the best so far, a superset
                     of those within the final cutoff */
  EXPAND_FIXED,   /* makes tokens of the candidates up to `last` */
  EXPAND_COLLECT, /* makes no tokens; collects the keys of candidates up to `last` */
  EXPAND_LEAST,   /* makes no tokens; collects the keys of the most_keys best candidates */
  EXPAND_TIES,    /* makes no tokens; collects the contexts of the sources of candidates with key
                     last.key */
};

static inline uint64_t rank_key(const wf__token *token) {
  return (uint64_t)wf__ordered_cost(token->cost) << 32 | token->state;
}

static inline bool is_within(wf__limit limit, bool scored, uint64_t key, uint64_t context) {
  return key < limit.key || (key == limit.key && (!scored || context <= limit.context));
}

/* Turns the k-th smallest key into a limit if several contexts may share the key. `below` keys are
 * smaller. `ties` are the contexts of the keys equal to it. */
static inline wf__limit limit_among_ties(uint64_t key, uint64_t k, uint64_t below, uint64_t *ties,
                                         uint64_t num_ties) {
  if (below + num_ties <= k) return (wf__limit){key, UINT64_MAX};
  return (wf__limit){key, wf__select_smallest(ties, num_ties, k - below)};
}

/* Sum of two costs that stays finite, so that comparisons with +infinity keep their meaning. */
static inline float add_finite(float a, float b) {
  float sum = a + b;
  return sum < FLT_MAX ? sum : FLT_MAX;
}

static inline uint64_t candidate_key(float cost, uint32_t arc) {
  return (uint64_t)wf__ordered_cost(cost) << 32 | arc;
}
static inline float limit_cost(wf__limit limit) {
  return wf__cost_of_ordered((uint32_t)(limit.key >> 32));
}

static const wf__limit NO_LIMIT = {(uint64_t)0xff7fffffu << 32 | UINT32_MAX,
                                   UINT64_MAX}; /* the largest finite cost */

/* If there are `enough` keys, drops all but the most_keys smallest; *cutoff falls to the cost of the
 * last of these. */
static inline void take_least(wf__search *search, uint64_t enough, float *cutoff) {
  wf__step *step = &search->step;
  if (step->keys.size < enough) return;
  const uint64_t key = wf__select_smallest(step->keys.data, step->keys.size, step->most_keys);
  step->keys.size = step->most_keys;
  *cutoff = limit_cost((wf__limit){.key = key});
}

/* Adds a key, of which only the most_keys smallest matter. */
static inline wf_status keep_least(wf__search *search, uint64_t key, float *cutoff, wf_error *err) {
  WF__TRY(wf__vec_push(&search->step.keys, key, "candidates", err));
  take_least(search, 2 * search->step.most_keys, cutoff);
  return WF_OK;
}

#endif
