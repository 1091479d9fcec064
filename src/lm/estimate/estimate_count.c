/* estimate_count.c - from words to the longest n-grams, those that end at each word and at each
 * sentence end. */
#include "lm/estimate/lm_estimate.h"

#include <string.h>

#include "base/callbacks.h"
#include "fst/symbols.h"

#define MAX_LABEL ((int64_t)1 << 27) /* as in models that are read */
enum { REPORT_EVERY = 1 << 16 };

static wf_status add_word(wf__estimate *e, const char *text, size_t size, wf_error *err) {
  if (wf_symbols_next_key(e->words) > MAX_LABEL)
    return wf__fail(err, WF_ERR_LIMIT, "more than %lld words", (long long)MAX_LABEL);
  return wf__symbols_add_bytes(e->words, text, size, -1, NULL, err);
}

static wf_status add_vocabulary(wf__estimate *e, const wf_symbols *vocabulary, wf_error *err) {
  const char *text;
  for (size_t i = 0; (text = wf_symbols_at(vocabulary, i, NULL)) != NULL; i++)
    if (*text != '\0') WF__TRY(add_word(e, text, strlen(text), err));
  e->closed = true;
  return WF_OK;
}

wf_status wf__estimate_begin_count(wf__estimate *e, const wf_symbols *vocabulary, wf_error *err) {
  const uint32_t n = (uint32_t)e->options.order;
  WF__TRY(wf__lm_words_create(&e->words, err));
  if (vocabulary != NULL) WF__TRY(add_vocabulary(e, vocabulary, err));
  WF__TRY(wf__estimate_sort(e, n + 1, n, 2, &e->longest, err));
  wf__sort_add_up(e->longest);
  return WF_OK;
}

/* Finds the label of a word of the text; 0: it is left out. */
static wf_status label_of(wf__estimate *e, const wf__word_reader *reader, wf__span word,
                          uint32_t *out, wf_error *err) {
  int64_t label = wf__symbols_find_bytes(e->words, word.data, word.size);
  if (label > WF__LM_UNK) {
    *out = (uint32_t)label;
    return WF_OK;
  }
  *out = 0;
  if (label >= 0 && e->options.skip_symbols) return WF_OK;
  if (label >= 0)
    return wf__word_reader_fail(reader, err, WF_ERR_FORMAT,
                                "'%.*s' has a meaning of its own in a model and cannot be a word "
                                "of the text; skip_symbols leaves such words out",
                                WF__SPAN_ARG(word));
  WF__TRY(wf__word_reader_check(reader, word, err));
  *out = WF__LM_UNK;
  e->stats.num_unknown += e->closed;
  if (e->closed) return WF_OK;
  *out = (uint32_t)wf_symbols_next_key(e->words);
  return add_word(e, word.data, word.size, err);
}

/* Adds the n-gram that ends at `word`. record[0 .. n): the last words, latest first. */
static wf_status push(wf__estimate *e, uint32_t *record, uint32_t word, wf_error *err) {
  const size_t n = (size_t)e->options.order;
  memmove(record + 1, record, (n - 1) * sizeof *record);
  record[0] = word;
  return wf__sort_add(e->longest, record, err);
}

static void begin_sentence(const wf__estimate *e, uint32_t *record) {
  const size_t n = (size_t)e->options.order;
  memset(record, 0, n * sizeof *record);
  record[0] = WF__LM_BOS;
  record[n] = 1; /* count */
}

wf_status wf__estimate_count(wf__estimate *e, wf__word_reader *reader, wf_error *err) {
  uint32_t record[WF_LM_MAX_ORDER + 1], label;
  begin_sentence(e, record);
  for (uint64_t step = 0, words = 0;; step++) {
    wf__span word;
    bool more;
    WF__TRY(wf__word_reader_next(reader, &word, &more, err));
    if (!more) return WF_OK;
    if (word.data == NULL) {
      WF__TRY(push(e, record, WF__LM_EOS, err));
      begin_sentence(e, record);
      e->stats.num_sentences++;
      e->stats.num_empty += words == 0;
      words = 0;
    } else {
      WF__TRY(label_of(e, reader, word, &label, err));
      if (label != 0) WF__TRY(push(e, record, label, err));
      e->stats.num_words += label != 0;
      words += label != 0;
    }
    if (step % REPORT_EVERY == 0) WF__TRY(wf__progress(e->progress, "counting", -1, err));
  }
}

wf_status wf__estimate_end_count(wf__estimate *e, wf_error *err) {
  e->num_labels = (uint32_t)wf_symbols_next_key(e->words);
  return wf__sort_finish(e->longest, err);
}
