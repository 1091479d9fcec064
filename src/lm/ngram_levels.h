/* ngram_levels.h - the n-grams of a file, from which the automaton is built: one array per order,
 * sorted by (context, word).
 *
 * The n-gram w1..wk of level k is {context, word, cost, back-off}: `context` is the index of
 * w1..w(k-1) in the sorted level k - 1, `word` is the label of wk. The n-grams of level k with
 * context c are [first[c], first[c + 1]). Level 1 has one context, 0. */
#ifndef WF_LM_NGRAM_LEVELS_H
#define WF_LM_NGRAM_LEVELS_H

#include "base/memory.h"
#include "lm/automaton.h"

typedef struct wf__ngram {
  uint32_t context, word;
  float cost;    /* NaN: created as a missing context; lm_build.c sets the backed-off cost */
  float backoff; /* NaN: a word outside the vocabulary, to be added to the probability of <unk> */
} wf__ngram;

typedef struct wf__ngram_level {
  WF__VEC(wf__ngram) ngrams;
  uint64_t *first; /* [num_contexts + 1] once sorted */
  uint64_t num_contexts;
} wf__ngram_level;

typedef struct wf__ngram_levels {
  int order;
  uint32_t num_public, num_labels, bos, eos, unk; /* as in wf__automaton */
  uint32_t *node_of_label;                    /* [num_labels]: index in level 1, or WF__LM_NONE */
  wf__ngram_level level[WF_LM_MAX_ORDER + 1]; /* [0] is unused */
} wf__ngram_levels;

/* Sorts level k, merges entries of <unk>, and indexes the level. Lower levels must be sorted. A
 * duplicate n-gram is an error: `*duplicate` becomes its index, and WF_ERR_FORMAT is returned
 * without a message. */
wf_status wf__ngram_level_sort(wf__ngram_levels *levels, int k, uint64_t *duplicate, wf_error *err);
/* Index in level k of the n-gram `context word`, or WF__LM_NONE. */
uint32_t wf__ngram_find(const wf__ngram_levels *levels, int k, uint32_t context, uint32_t word);
void wf__ngram_level_free(wf__ngram_level *level);
void wf__ngram_levels_free(wf__ngram_levels *levels);

/* Builds the automaton. Frees each level after use. Takes a reference to `words`. */
wf_status wf__lm_build(wf__ngram_levels *levels, const wf_symbols *words, wf__automaton **out,
                       const wf_progress *progress, wf_error *err);

#endif
