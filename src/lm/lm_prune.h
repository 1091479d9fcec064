/* lm_prune.h - the steps of pruning, apart, for wf_lm_prune and for its tests.
 *
 *   model --score--> a value for each n-gram --choose (lm_prune.c)--> values, -infinity for what
 *   goes --rebuild--> model --normalize--> model */
#ifndef WF_LM_LM_PRUNE_H
#define WF_LM_LM_PRUNE_H

#include "base/threads.h"
#include "lm/lm.h"

/* A value for each n-gram above order 1; -infinity: to be left out. */
typedef struct wf__lm_values {
  float *arc;   /* [num_arcs] */
  float *final; /* [num_states] n-grams that end in </s>; read only where the state has one of its
                   own, and not for state 0 */
} wf__lm_values;
wf_status wf__lm_values_alloc(const wf_lm *lm, wf__lm_values *out, wf_error *err);
void wf__lm_values_free(wf__lm_values *values);

/* What the model loses without an n-gram. entropy: the relative rise of its perplexity; else the
 * weighted difference. */
wf_status wf__lm_score(const wf_lm *lm, bool entropy, wf__pool *pool, wf__lm_values *values,
                       wf_error *err);
/* The model of the unigrams in word_kept[num_labels] (NULL: all; <s>, </s> and <unk> stay in any
 * case) and of the n-grams whose value is not -infinity and whose words and context stay, over the
 * same word table. Its back-off weights are those of `lm`, not those that make it sum to 1. */
wf_status wf__lm_rebuild(const wf_lm *lm, const bool *word_kept, const wf__lm_values *values,
                         wf_lm **out, wf_error *err);
/* Makes the probabilities after each history sum to 1, the shortest histories first: by their
 * back-off weights, and where these cannot (the explicit probabilities sum to 1 or more, or nothing
 * is left to back off to) by a factor on the explicit ones; counts those in `*num_scaled`. */
wf_status wf__lm_normalize(wf_lm *lm, wf__pool *pool, uint64_t *num_scaled, wf_error *err);

/* The n largest of a set of values: those above `value`, and the first `room` of those equal to it.
 */
typedef struct wf__cut {
  float value;
  uint64_t room;
} wf__cut;
wf__cut wf__cut_at(const float *values, uint64_t num, uint64_t n);
static inline bool wf__cut_keeps(wf__cut *cut, float value) {
  if (value != cut->value) return value > cut->value;
  if (cut->room == 0) return false;
  cut->room--;
  return true;
}

#endif
