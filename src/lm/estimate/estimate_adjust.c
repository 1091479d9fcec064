/* estimate_adjust.c - adjusted counts. The adjusted count of an n-gram is the number of different
 * words before it; of an n-gram of the highest order, and of one that begins with <s>, which has no
 * word before it, the number of its occurrences.
 *
 * The longest n-grams come in suffix order. The n-grams that the current one ends in are `open`:
 * all n-grams that end in them follow each other. An n-gram is complete when one comes that does
 * not end in it. An n-gram that is kept occurs more often than the limit of its order, and so does
 * its suffix, whose limit is not higher; so the suffix gets its number then at the latest. */
#include <string.h>

#include "base/callbacks.h"
#include "lm/estimate/lm_estimate.h"

enum { REPORT_EVERY = 1 << 20 };

/* The n-gram of the last k words of the current one. */
typedef struct open_gram {
  uint64_t occurrences, extensions;
  uint32_t suffix; /* WF__ESTIMATE_PRUNED: no number yet */
} open_gram;

typedef struct adjusting {
  wf__estimate *e;
  uint32_t words[WF_LM_MAX_ORDER]; /* of the current n-gram, latest first */
  int size;                        /* without the 0s before <s> */
  open_gram open[WF_LM_MAX_ORDER + 1];
  bool *seen; /* [num_labels] the unigram has been added */
} adjusting;

static uint32_t number_of(adjusting *a, int k) {
  if (k == 1) return a->words[0] - 1;
  if (a->open[k].suffix == WF__ESTIMATE_PRUNED)
    a->open[k].suffix = (uint32_t)a->e->by_order[k].num_kept++;
  return a->open[k].suffix;
}

static wf_status add_gram(wf__estimate *e, int k, const uint32_t *latest_first, uint32_t suffix,
                          uint64_t count, wf_error *err) {
  uint32_t record[WF_LM_MAX_ORDER + 2];
  wf__estimate_order *order = &e->by_order[k];
  if (count > UINT32_MAX || order->num_kept >= WF__ESTIMATE_PRUNED)
    return wf__fail(err, WF_ERR_LIMIT, "more than 2^32 - 2 %d-grams, or one that often", k);
  for (int i = 0; i < k; i++) record[i] = latest_first[k - 1 - i];
  record[k] = suffix;
  record[k + 1] = (uint32_t)count;
  if (count < 5) order->num_with[count]++;
  e->stats.num_found[k]++;
  return wf__sort_add(order->grams, record, err);
}

/* Completes the open n-grams of more than `k` words, longest first. */
static wf_status complete(adjusting *a, int k, wf_error *err) {
  wf__estimate *e = a->e;
  for (; a->size > k; a->size--) {
    const int n = a->size;
    const open_gram *open = &a->open[n];
    const bool longest = n == e->options.order || a->words[n - 1] == WF__LM_BOS,
               kept = n == 1 || open->occurrences > e->by_order[n].prune;
    uint32_t suffix = WF__ESTIMATE_PRUNED;
    if (kept) {
      (void)number_of(a, n);
      suffix = n > 1 ? number_of(a, n - 1) : 0;
    }
    if (n == 1) a->seen[a->words[0]] = true;
    WF__TRY(add_gram(e, n, a->words, suffix, longest ? open->occurrences : open->extensions, err));
  }
  return WF_OK;
}

/* Makes `words` the current n-gram, which occurs `count` times. */
static wf_status take(adjusting *a, const uint32_t *words, uint64_t count, wf_error *err) {
  int size = 0, same = 0;
  while (size < a->e->options.order && words[size] != 0) size++;
  while (same < size && same < a->size && words[same] == a->words[same]) same++;
  WF__TRY(complete(a, same, err));
  for (int n = 1; n <= same; n++) a->open[n].occurrences += count;
  if (same > 0 && same < size) a->open[same].extensions++;
  for (int n = same + 1; n <= size; n++)
    a->open[n] = (open_gram){count, n < size, WF__ESTIMATE_PRUNED};
  memcpy(a->words, words, (size_t)size * sizeof *words);
  a->size = size;
  return WF_OK;
}

static wf_status take_all(adjusting *a, wf_error *err) {
  wf__estimate *e = a->e;
  const size_t n = (size_t)e->options.order;
  const double total = (double)wf__sort_count(e->longest) + 1;
  uint32_t words[WF_LM_MAX_ORDER];
  const uint32_t *record;
  uint64_t done = 0;
  WF__TRY(wf__sort_next(e->longest, &record, err));
  while (record != NULL) {
    uint64_t count = 0;
    memcpy(words, record, n * sizeof *words);
    do {
      count += record[n];
      if (done++ % REPORT_EVERY == 0)
        WF__TRY(wf__progress(e->progress, "adjusting counts", (double)done / total, err));
      WF__TRY(wf__sort_next(e->longest, &record, err));
    } while (record != NULL && memcmp(words, record, n * sizeof *words) == 0);
    WF__TRY(take(a, words, count, err));
  }
  return complete(a, 0, err);
}

/* Adds the unigrams of <s>, of <unk>, and of words that the texts lack. */
static wf_status add_unseen(adjusting *a, wf_error *err) {
  for (uint32_t word = 1; word < a->e->num_labels; word++)
    if (!a->seen[word]) WF__TRY(add_gram(a->e, 1, &word, 0, 0, err));
  a->e->by_order[1].num_kept = a->e->num_labels - 1;
  return WF_OK;
}

wf_status wf__estimate_adjust(wf__estimate *e, wf_error *err) {
  adjusting a = {.e = e, .seen = wf__calloc(e->num_labels, sizeof *a.seen)};
  wf_status status =
      a.seen != NULL ? WF_OK : wf__fail_memory(err, e->num_labels, "words of a language model");
  const int n = e->options.order;
  for (int k = 1; k <= n && status == WF_OK; k++)
    status = wf__estimate_sort(e, (uint32_t)k + 2, (uint32_t)k, 2 * (uint64_t)n,
                               &e->by_order[k].grams, err);
  if (status == WF_OK) status = take_all(&a, err);
  if (status == WF_OK) status = add_unseen(&a, err);
  free(a.seen);
  wf__sort_free(e->longest);
  e->longest = NULL;
  for (int k = 1; k <= n && status == WF_OK; k++) {
    status = wf__sort_finish(e->by_order[k].grams, err);
    e->stats.num_kept[k] = e->by_order[k].num_kept;
    if (e->by_order[k].num_kept > 0) e->order = k;
  }
  return status;
}
