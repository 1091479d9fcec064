/* determinize_limit.h - the number of states after which determinization gives up. The CPU and the
 * kernels use the same rule. */
#ifndef WF_FSTOPS_DETERMINIZE_LIMIT_H
#define WF_FSTOPS_DETERMINIZE_LIMIT_H

#include "math/hash.h"

/* `max_states` is the option of wf_determinize_options, `num_states` the size of the trimmed input.
 * The default is 64 times num_states, but at least 1,000,000 and at most 2^31-1. */
static inline WF__HD uint64_t wf__determinize_limit(uint64_t max_states, uint64_t num_states) {
  const uint64_t least = 1000000, most = INT32_MAX, share = 64;
  if (max_states != 0) return max_states;
  if (num_states > most / share) return most;
  return num_states * share < least ? least : num_states * share;
}

#endif
