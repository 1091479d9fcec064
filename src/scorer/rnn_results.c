/* rnn_results.c - see rnn_results.h. */
#include "scorer/rnn_results.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_BITS = 10, MAX_BITS = 40 };

wf_status wf__rnn_results_init(uint64_t bytes, wf__rnn_results *results, wf_error *err) {
  *results = (wf__rnn_results){.bits = MIN_BITS, .most_bits = MIN_BITS};
  while (results->most_bits < MAX_BITS && (sizeof *results->entries << (results->most_bits + 1)) <= bytes) results->most_bits++;
  results->entries = wf__calloc((uint64_t)1 << results->bits, sizeof *results->entries);
  return results->entries != NULL ? WF_OK : wf__fail_memory(err, sizeof *results->entries << results->bits, "cached results");
}

void wf__rnn_results_free(wf__rnn_results *results) {
  free(results->entries);
  *results = (wf__rnn_results){0};
}

void wf__rnn_results_clear(wf__rnn_results *results) {
  if (results->entries != NULL) memset(results->entries, 0, sizeof *results->entries << results->bits);
  results->size = 0;
}

/* The entries that `keep` keeps in a new table; keep NULL: all. */
static wf_status move(wf__rnn_results *results, int bits, wf__rnn_result_fn keep, const void *user, wf_error *err) {
  wf__rnn_results fresh = {.bits = bits, .most_bits = results->most_bits, .entries = wf__calloc((uint64_t)1 << bits, sizeof *fresh.entries)};
  if (fresh.entries == NULL) return wf__fail_memory(err, sizeof *fresh.entries << bits, "cached results");
  for (uint64_t i = 0; i < (uint64_t)1 << results->bits; i++) {
    const wf__rnn_result *entry = &results->entries[i];
    if (entry->word == 0 || (keep != NULL && !keep(user, entry))) continue;
    *wf__rnn_result_at(&fresh, entry->context, entry->word, entry->utterance) = *entry;
    fresh.size++;
  }
  free(results->entries);
  *results = fresh;
  return WF_OK;
}

wf_status wf__rnn_results_filter(wf__rnn_results *results, wf__rnn_result_fn keep, const void *user, wf_error *err) {
  return results->entries != NULL ? move(results, results->bits, keep, user, err) : WF_OK;
}

static bool is_recent(const void *user, const wf__rnn_result *entry) { return entry->epoch >= *(const uint32_t *)user; }

/* Forgets all entries before an epoch, which moves half way towards `now` until at most `room` are left or it is there. */
static wf_status forget(wf__rnn_results *results, uint64_t room, uint32_t now, wf_error *err) {
  uint32_t oldest = now;
  for (uint64_t i = 0; i < (uint64_t)1 << results->bits; i++)
    if (results->entries[i].word != 0 && results->entries[i].epoch < oldest) oldest = results->entries[i].epoch;
  for (uint32_t before = oldest; results->size > room && before < now;) {
    before += (now - before + 1) / 2;
    WF__TRY(move(results, results->bits, is_recent, &before, err));
  }
  return WF_OK;
}

wf_status wf__rnn_results_reserve(wf__rnn_results *results, uint64_t count, uint32_t now, uint64_t *num_evicted, wf_error *err) {
  *num_evicted = 0;
  while (results->bits < results->most_bits && (results->size + count) * 2 > (uint64_t)1 << results->bits) WF__TRY(move(results, results->bits + 1, NULL, NULL, err));
  uint64_t most = (uint64_t)1 << (results->bits - 1), before = results->size;
  if (before + count > most) {
    WF__TRY(forget(results, count < most / 2 ? most / 2 : most > count ? most - count : 0, now, err));
    *num_evicted = before - results->size;
  }
  while ((results->size + count) * 2 > (uint64_t)1 << results->bits) WF__TRY(move(results, results->bits + 1, NULL, NULL, err));
  return WF_OK;
}
