/* determinize_limit.h - how many states determinization makes before it gives up: one rule for the
 * CPU and for kernels. */
#ifndef WF_FSTOPS_DETERMINIZE_LIMIT_H
#define WF_FSTOPS_DETERMINIZE_LIMIT_H

#include "math/hash.h"

/* `max_states` as in wf_determinize_options; `num_states` of the trimmed input. */
static inline WF__HD uint64_t wf__determinize_limit(uint64_t max_states, uint64_t num_states) {
  const uint64_t least = 1000000, most = INT32_MAX, share = 64;
  if (max_states != 0) return max_states;
  if (num_states > most / share) return most;
  return num_states * share < least ? least : num_states * share;
}

#endif
