/* rnn_results.h - the recurrent scorer's cached scores: an open-addressing table, at most half
 * full.
 *
 *   entries [2^bits]  {context, next, word, cost, epoch, utterance}   word 0: empty
 *   origins [2^bits]  place of an entry by its `next`: where a context comes from, before it is
 *                     requested itself */
#ifndef WF_SCORER_RNN_RESULTS_H
#define WF_SCORER_RNN_RESULTS_H

#include "base/memory.h"
#include "math/hash.h"

typedef struct wf__rnn_result {
  uint64_t context, next;
  int32_t word; /* 0: empty; -1: the end */
  float cost;
  uint32_t epoch;     /* of the last use */
  uint32_t utterance; /* 0: of all utterances */
} wf__rnn_result;

typedef struct wf__rnn_results {
  wf__rnn_result *entries; /* NULL: nothing is cached */
  uint32_t *origins;       /* place + 1; 0: empty */
  uint64_t size;
  int bits, most_bits;
} wf__rnn_results;

wf_status wf__rnn_results_init(uint64_t bytes, wf__rnn_results *results, wf_error *err);
void wf__rnn_results_free(wf__rnn_results *results);
void wf__rnn_results_clear(wf__rnn_results *results);
/* Makes room for `count` more entries, if necessary beyond the bytes given to init. */
wf_status wf__rnn_results_reserve(wf__rnn_results *results, uint64_t count, wf_error *err);
/* Should entries be evicted? */
static inline bool wf__rnn_results_are_many(const wf__rnn_results *results) {
  return results->size * 2 >= (uint64_t)1 << results->most_bits;
}
/* The epoch before which entries should be evicted, so that at most half of the capacity is left;
 * at most `now`. */
uint32_t wf__rnn_results_cutoff(const wf__rnn_results *results, uint32_t now);
/* Evicts all entries for which keep(user, entry) is false. */
typedef bool (*wf__rnn_result_fn)(const void *user, const wf__rnn_result *entry);
wf_status wf__rnn_results_filter(wf__rnn_results *results, wf__rnn_result_fn keep, const void *user,
                                 wf_error *err);
/* Makes an entry findable by its `next`. */
void wf__rnn_results_link(wf__rnn_results *results, const wf__rnn_result *entry);
/* An entry that leads to the context, or NULL. */
const wf__rnn_result *wf__rnn_results_origin(const wf__rnn_results *results, uint64_t next);

/* The entry of this score, or a free entry for it (word 0). */
static inline wf__rnn_result *wf__rnn_result_at(const wf__rnn_results *results, uint64_t context,
                                                int32_t word, uint32_t utterance) {
  uint64_t mask = ((uint64_t)1 << results->bits) - 1,
           at = wf__mix64(context + ((uint64_t)(uint32_t)word << 32 | utterance)) & mask;
  for (;; at = (at + 1) & mask) {
    wf__rnn_result *entry = &results->entries[at];
    if (entry->word == 0 ||
        (entry->context == context && entry->word == word && entry->utterance == utterance))
      return entry;
  }
}

#endif
