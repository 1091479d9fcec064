/* pair_table.h - numbers pairs of 32-bit numbers in order of discovery. Operations whose states are
 * pairs (a state and a pending string, a state of each input) use it. Zero-initialised is empty. */
#ifndef WF_FSTOPS_PAIR_TABLE_H
#define WF_FSTOPS_PAIR_TABLE_H

#include "base/map64.h"
#include "fst/fst.h"

typedef struct wf__pair {
  uint32_t first, second;
} wf__pair;

typedef struct wf__pairs {
  WF__VEC(wf__pair) list; /* pair k */
  wf__map64 map;          /* first << 32 | second -> number */
} wf__pairs;

/* The number of a pair, which is added if it is new. `first` must be below 2^32 - 1. */
static inline wf_status wf__pairs_find(wf__pairs *pairs, uint32_t first, uint32_t second,
                                       uint32_t *out, wf_error *err) {
  bool fresh;
  if (wf__unlikely(pairs->list.size > WF__MAX_STATES))
    return wf__fail(err, WF_ERR_LIMIT, "more than %llu states", (unsigned long long)WF__MAX_STATES);
  WF__TRY(wf__map64_insert(&pairs->map, (uint64_t)first << 32 | second, (uint32_t)pairs->list.size,
                           out, &fresh, "states", err));
  if (!fresh) return WF_OK;
  wf__pair pair = {first, second};
  return wf__vec_push(&pairs->list, pair, "states", err);
}

static inline void wf__pairs_free(wf__pairs *pairs) {
  wf__vec_free(&pairs->list);
  wf__map64_free(&pairs->map);
}

#endif
