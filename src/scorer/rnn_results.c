/* rnn_results.c - see rnn_results.h. */
#include "scorer/rnn_results.h"

#include <stdlib.h>
#include <string.h>

enum { MIN_BITS = 10, MAX_BITS = 31, ENTRY_BYTES = sizeof(wf__rnn_result) + sizeof(uint32_t) };

/* Allocates an empty table. */
static wf_status allocate(int bits, int most_bits, wf__rnn_results *out, wf_error *err) {
  *out = (wf__rnn_results){.bits = bits, .most_bits = most_bits};
  if (bits > MAX_BITS) return wf__fail(err, WF_ERR_LIMIT, "2^%d cached results", MAX_BITS);
  out->entries = wf__calloc((uint64_t)1 << bits, sizeof *out->entries);
  out->origins = wf__calloc((uint64_t)1 << bits, sizeof *out->origins);
  if (out->entries != NULL && out->origins != NULL) return WF_OK;
  wf__rnn_results_free(out);
  return wf__fail_memory(err, (uint64_t)ENTRY_BYTES << bits, "cached results");
}

wf_status wf__rnn_results_init(uint64_t bytes, wf__rnn_results *results, wf_error *err) {
  int most_bits = MIN_BITS;
  while (most_bits < MAX_BITS && ((uint64_t)ENTRY_BYTES << (most_bits + 1)) <= bytes) most_bits++;
  return allocate(MIN_BITS, most_bits, results, err);
}

void wf__rnn_results_free(wf__rnn_results *results) {
  free(results->entries);
  free(results->origins);
  *results = (wf__rnn_results){0};
}

void wf__rnn_results_clear(wf__rnn_results *results) {
  if (results->entries == NULL) return;
  memset(results->entries, 0, sizeof *results->entries << results->bits);
  memset(results->origins, 0, sizeof *results->origins << results->bits);
  results->size = 0;
}

/* Moves the entries that `keep` keeps to a new table; keep NULL: all. */
static wf_status move(wf__rnn_results *results, int bits, wf__rnn_result_fn keep, const void *user,
                      wf_error *err) {
  wf__rnn_results fresh;
  WF__TRY(allocate(bits, results->most_bits, &fresh, err));
  for (uint64_t i = 0; i < (uint64_t)1 << results->bits; i++) {
    const wf__rnn_result *entry = &results->entries[i];
    if (entry->word == 0 || (keep != NULL && !keep(user, entry))) continue;
    wf__rnn_result *to = wf__rnn_result_at(&fresh, entry->context, entry->word, entry->utterance);
    *to = *entry;
    wf__rnn_results_link(&fresh, to);
    fresh.size++;
  }
  wf__rnn_results_free(results);
  *results = fresh;
  return WF_OK;
}

wf_status wf__rnn_results_filter(wf__rnn_results *results, wf__rnn_result_fn keep, const void *user,
                                 wf_error *err) {
  return results->entries != NULL ? move(results, results->bits, keep, user, err) : WF_OK;
}

wf_status wf__rnn_results_reserve(wf__rnn_results *results, uint64_t count, wf_error *err) {
  int bits = results->bits;
  while ((results->size + count) * 2 > (uint64_t)1 << bits) bits++;
  return bits > results->bits ? move(results, bits, NULL, NULL, err) : WF_OK;
}

uint32_t wf__rnn_results_cutoff(const wf__rnn_results *results, uint32_t now) {
  uint64_t slots = results->entries != NULL ? (uint64_t)1 << results->bits : 0,
           most = (uint64_t)1 << (results->most_bits - 2), left = results->size;
  uint32_t before = now;
  for (uint64_t i = 0; i < slots; i++)
    if (results->entries[i].word != 0 && results->entries[i].epoch < before)
      before = results->entries[i].epoch;
  while (left > most && before < now) {
    before += (now - before + 1) / 2;
    left = 0;
    for (uint64_t i = 0; i < slots; i++)
      left += results->entries[i].word != 0 && results->entries[i].epoch >= before;
  }
  return before;
}

void wf__rnn_results_link(wf__rnn_results *results, const wf__rnn_result *entry) {
  uint64_t mask = ((uint64_t)1 << results->bits) - 1, at = wf__mix64(entry->next) & mask;
  if (entry->word < 0) return; /* the sentence end has no next context */
  for (; results->origins[at] != 0; at = (at + 1) & mask)
    if (results->entries[results->origins[at] - 1].next == entry->next) return; /* one is enough */
  results->origins[at] = (uint32_t)(entry - results->entries) + 1;
}

const wf__rnn_result *wf__rnn_results_origin(const wf__rnn_results *results, uint64_t next) {
  if (results->entries == NULL) return NULL;
  uint64_t mask = ((uint64_t)1 << results->bits) - 1;
  for (uint64_t at = wf__mix64(next) & mask; results->origins[at] != 0; at = (at + 1) & mask) {
    const wf__rnn_result *entry = &results->entries[results->origins[at] - 1];
    if (entry->next == next) return entry;
  }
  return NULL;
}
