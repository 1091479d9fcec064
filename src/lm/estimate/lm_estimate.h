/* lm_estimate.h - estimates an n-gram model from texts: interpolated modified Kneser-Ney smoothing
 * (Chen & Goodman 1998, "An empirical study of smoothing techniques for language modeling"), in
 * memory that does not depend on the size of the texts (Heafield et al. 2013, "Scalable modified
 * Kneser-Ney language model estimation"). Only the words are always in memory.
 *
 *   texts --estimate_count.c--> longest --estimate_adjust.c--> grams[k]
 *     --estimate_discounts.c--> discounts --estimate_costs.c--> costs[k], backoffs[k]
 *     --lm_estimate.c--> an ARPA file, or a wf__automaton
 *
 * All of these are external sorts (key | data):
 *
 *   longest      w_n .. w_1 | count             0 in place of the words before <s>
 *   grams[k]     w_1 .. w_k | suffix, count     adjusted counts, pruned n-grams included
 *   shares[k]    suffix | u, g, place           p(w_k | w_1 ..) = u + g p(w_k | w_2 ..)
 *   suffixes[k]  | p                            a queue in suffix order: no key
 *   costs[k]     place | p                      the same in the order of grams[k]
 *   backoffs[k]  w_1 .. w_k | back-off weight   of the contexts of kept n-grams
 *
 * The n-grams that are not pruned have two numbers within their order: `place` in the order of
 * their words, from the first to the last, and `suffix` in the order from the last to the first,
 * which is the order of `longest`. In that order the n-grams that end in the same words follow each
 * other, and so do the shorter n-grams that are these words. So every join is a merge of two
 * sorted streams. Words are labels; each label has a unigram, whose numbers are label - 1. */
#ifndef WF_LM_LM_ESTIMATE_H
#define WF_LM_LM_ESTIMATE_H

#include "base/external_sort.h"
#include "base/memory.h"
#include "lm/lm_words.h"
#include "lm/word_reader.h"

#define WF__ESTIMATE_PRUNED UINT32_MAX /* suffix of a pruned n-gram */

typedef struct wf__estimate_order {
  wf__sort *grams, *shares, *suffixes, *costs, *backoffs;
  uint64_t num_kept;
  uint64_t num_with[5]; /* n-grams of an adjusted count of 1 to 4, pruned ones included */
  double discount[4];   /* for adjusted counts of 0, 1, 2, and 3 or more */
  uint64_t prune;       /* n-grams that occur this often or less are pruned */
} wf__estimate_order;

typedef struct wf__estimate {
  wf_lm_estimate_options options;
  wf_lm_estimate_stats stats;
  const wf_progress *progress;
  char *folder;       /* of temporary files */
  double fallback[4]; /* discounts of an order whose counts give none */
  int order;          /* of the longest n-grams that are kept */
  wf_symbols *words;  /* <eps> is 0, then <s>, </s>, <unk>, and the others from 4 on */
  bool closed;        /* no words are added: others count as <unk> */
  uint32_t num_labels;
  wf__sort *longest;
  wf__estimate_order by_order[WF_LM_MAX_ORDER + 1]; /* [0] is unused */
} wf__estimate;

/* estimate_count.c: counts the longest n-grams. `vocabulary`: the words; NULL: all words. */
wf_status wf__estimate_begin_count(wf__estimate *e, const wf_symbols *vocabulary, wf_error *err);
wf_status wf__estimate_count(wf__estimate *e, wf__word_reader *reader, wf_error *err);
wf_status wf__estimate_end_count(wf__estimate *e, wf_error *err);
/* estimate_adjust.c: adjusted counts of all orders; frees `longest`, sets `order`. */
wf_status wf__estimate_adjust(wf__estimate *e, wf_error *err);
/* estimate_discounts.c: discounts of all orders, from the counts of adjusted counts. */
void wf__estimate_discounts(wf__estimate *e);
/* estimate_costs.c: probabilities of order k, after those of order k - 1, and back-off weights of
 * order k - 1. */
wf_status wf__estimate_costs(wf__estimate *e, int k, wf_error *err);

static inline wf_status wf__estimate_sort(const wf__estimate *e, uint32_t record_words,
                                          uint32_t key_words, uint64_t share, wf__sort **out,
                                          wf_error *err) {
  return wf__sort_create(record_words, key_words, (uint64_t)e->options.memory / share, e->folder,
                         out, err);
}

#endif
