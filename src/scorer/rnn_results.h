/* rnn_results.h - answers that the recurrent scorer keeps: an open-addressing table, at most half full, that forgets those unused for the longest.
 *
 *   entries [2^bits]  {context, next, word, cost, epoch, utterance}   word 0: empty */
#ifndef WF_SCORER_RNN_RESULTS_H
#define WF_SCORER_RNN_RESULTS_H

#include "base/memory.h"
#include "math/hash.h"

typedef struct wf__rnn_result {
  uint64_t context, next;
  int32_t word; /* 0: empty; -1: the end */
  float cost;
  uint32_t epoch;     /* of the last use */
  uint32_t utterance; /* 0: of all */
} wf__rnn_result;

typedef struct wf__rnn_results {
  wf__rnn_result *entries; /* NULL: nothing is kept */
  uint64_t size;
  int bits, most_bits;
} wf__rnn_results;

wf_status wf__rnn_results_init(uint64_t bytes, wf__rnn_results *results, wf_error *err);
void wf__rnn_results_free(wf__rnn_results *results);
void wf__rnn_results_clear(wf__rnn_results *results);
/* Makes room for `count` more: by growing up to the bytes given to init, then by forgetting the older ones, none of epoch `now` or later; if those leave no room, by growing
 * on. *num_evicted: how many are forgotten. */
wf_status wf__rnn_results_reserve(wf__rnn_results *results, uint64_t count, uint32_t now, uint64_t *num_evicted, wf_error *err);
/* Forgets all entries for which keep(user, entry) is false. */
typedef bool (*wf__rnn_result_fn)(const void *user, const wf__rnn_result *entry);
wf_status wf__rnn_results_filter(wf__rnn_results *results, wf__rnn_result_fn keep, const void *user, wf_error *err);

/* Where the answer is, or belongs if there is none: then the entry's word is 0. */
static inline wf__rnn_result *wf__rnn_result_at(const wf__rnn_results *results, uint64_t context, int32_t word, uint32_t utterance) {
  uint64_t mask = ((uint64_t)1 << results->bits) - 1, at = wf__mix64(context + ((uint64_t)(uint32_t)word << 32 | utterance)) & mask;
  for (;; at = (at + 1) & mask) {
    wf__rnn_result *entry = &results->entries[at];
    if (entry->word == 0 || (entry->context == context && entry->word == word && entry->utterance == utterance)) return entry;
  }
}

#endif
