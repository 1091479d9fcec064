/* reversed_trie.c - traversal of a reversed trie of n-grams. Checks everything that it reads. */
#include "lm/reversed_trie.h"

#include "base/callbacks.h"

wf_status wf__reversed_trie_check_order(const wf__reversed_trie *t, wf_error *err) {
  if (t->order == 0) return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "order 0");
  if (t->order > WF_LM_MAX_ORDER)
    return wf__cursor_fail(&t->cursor, err, WF_ERR_LIMIT,
                           "order %u: orders above %d are not supported", t->order,
                           WF_LM_MAX_ORDER);
  return WF_OK;
}

wf_status wf__reversed_trie_words(wf__reversed_trie *t, uint64_t size, wf_error *err) {
  const uint8_t *bytes;
  WF__TRY(wf__read_view(&t->cursor, &bytes, size, "the words", err));
  if (wf__cursor_left(&t->cursor) > 0)
    return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT,
                           "expected the end of the file, found more bytes");
  const unsigned long long num_words = t->counts[1];
  if (num_words > size)
    return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "%llu unigrams but %llu bytes of words",
                           num_words, (unsigned long long)size);
  const char *at = (const char *)bytes, *end = at + size;
  WF__TRY(wf__vec_grow(&t->label_of, num_words, "words of a language model", err));
  for (unsigned long long i = 1; i <= num_words; i++) {
    const char *stop = memchr(at, '\0', (size_t)(end - at));
    if (stop == NULL || stop == at)
      return wf__cursor_fail(&t->cursor, err, WF_ERR_FORMAT, "word %llu of %llu is %s", i,
                             num_words, stop == NULL ? "missing" : "empty");
    wf_status status = wf__collector_add_word(t->collector, (wf__span){at, (size_t)(stop - at)},
                                              &t->label_of.data[t->label_of.size++], err);
    if (status != WF_OK) return wf__fail_prefix(err, status, "%s: word %llu", t->input->path, i);
    at = stop + 1;
  }
  return WF_OK;
}

static wf_status add_ngram(wf__reversed_trie *t, uint32_t k, const wf__trie_entry *entry,
                           const uint32_t *label, wf_error *err) {
  float backoff = k < t->order ? entry->backoff : 0;
  if (!wf__collector_is_cost(entry->cost) || !wf__collector_is_cost(backoff))
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: %u-gram %llu has the log probability %g and log back-off weight %g",
                    t->input->path, k, (unsigned long long)t->position[k], -(double)entry->cost,
                    -(double)backoff);
  if (t->num_done++ % 65536 == 0) {
    uint64_t all = 1;
    for (uint32_t j = 1; j <= t->order; j++) all += t->counts[j];
    double fraction = (double)t->num_done / (double)all;
    WF__TRY(
        wf__progress(t->collector->progress, "reading n-grams", fraction < 1 ? fraction : 1, err));
  }
  wf_status status =
      wf__collector_add_ngram(t->collector, (int)k, label, entry->cost, backoff, err);
  return status == WF_ERR_FORMAT ? wf__fail_prefix(err, status, "%s: %u-gram %llu", t->input->path,
                                                   k, (unsigned long long)t->position[k])
                                 : status;
}

/* Visits the next entries of order k, up to `end`, and their descendants down to order `wanted`.
 * Passes the n-grams of that order to the collector. The words of the entry and its ancestors are
 * label[wanted - k] .. label[wanted - 1]. Each order is read once, from its beginning, so the time
 * is linear for any file. The recursion depth is at most `wanted`. */
static wf_status walk(wf__reversed_trie *t, uint32_t k, uint32_t wanted, uint64_t end,
                      uint32_t *label, wf_error *err) {
  if (end < t->position[k] || end > t->counts[k])
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: expected a range of %u-grams that ends between %llu and %llu, found one "
                    "that ends at %llu",
                    t->input->path, k, (unsigned long long)t->position[k],
                    (unsigned long long)t->counts[k], (unsigned long long)end);
  while (t->position[k] < end) {
    wf__trie_entry entry = t->read_entry(t->format, k, t->position[k]++);
    if (entry.word >= t->counts[1])
      return wf__fail(err, WF_ERR_FORMAT, "%s: %u-gram %llu has word %llu of %llu", t->input->path,
                      k, (unsigned long long)t->position[k], (unsigned long long)entry.word + 1,
                      (unsigned long long)t->counts[1]);
    label[wanted - k] = t->label_of.data[entry.word];
    if (k == wanted)
      WF__TRY(add_ngram(t, k, &entry, label, err));
    else
      WF__TRY(walk(t, k + 1, wanted, entry.children_end, label, err));
  }
  return WF_OK;
}

wf_status wf__reversed_trie_ngrams(wf__reversed_trie *t, wf_error *err) {
  wf__ngram_collector *collector = t->collector;
  for (uint32_t k = 1; k <= t->order; k++) {
    uint32_t label[WF_LM_MAX_ORDER];
    memset(t->position, 0, sizeof t->position);
    if (collector->sink == NULL)
      WF__TRY(wf__vec_grow(&collector->levels.level[k].ngrams, t->counts[k], "n-grams", err));
    WF__TRY(walk(t, 1, k, t->counts[1], label, err));
    wf_status status = wf__collector_end_level(collector, (int)k, err);
    if (status != WF_OK)
      return status == WF_ERR_FORMAT ? wf__fail_prefix(err, status, "%s", t->input->path) : status;
  }
  return WF_OK;
}
