/* lm_prune.h - the separate steps of pruning, for wf_lm_prune and its tests.
 *
 *   model --score--> a value for each n-gram --choose (lm_prune.c)--> values, -infinity for n-grams
 *     to remove --rebuild--> model --normalize--> model */
#ifndef WF_LM_LM_PRUNE_H
#define WF_LM_LM_PRUNE_H

#include "base/threads.h"
#include "lm/automaton.h"

/* A value for each n-gram above order 1; -infinity: remove it. */
typedef struct wf__lm_values {
  float *arc;   /* [num_arcs] */
  float *final; /* [num_states] n-grams that end in </s>; used only for states other than 0 with an
                   explicit one */
} wf__lm_values;
wf_status wf__lm_values_alloc(const wf__automaton *lm, wf__lm_values *out, wf_error *err);
void wf__lm_values_free(wf__lm_values *values);

/* Computes what the model loses without each n-gram: with `entropy` the relative increase of its
 * perplexity, else the weighted difference. */
wf_status wf__lm_score(const wf__automaton *lm, bool entropy, wf__pool *pool, wf__lm_values *values,
                       wf_error *err);
/* Makes a model over the same word table. It has the unigrams in word_kept[num_labels] (NULL: all;
 * <s>, </s> and <unk> always stay), and the n-grams with a value above -infinity if their words and
 * context are kept. Back-off weights are copied from `lm`; the result is not normalised. */
wf_status wf__lm_rebuild(const wf__automaton *lm, const bool *word_kept,
                         const wf__lm_values *values, wf__automaton **out, wf_error *err);
/* Makes the probabilities after each history sum to 1, shortest histories first, by setting the
 * back-off weights. If the explicit probabilities sum to 1 or more, or no word is left to back off
 * to, they are scaled instead. `*num_scaled` counts these histories. */
wf_status wf__lm_normalize(wf__automaton *lm, wf__pool *pool, uint64_t *num_scaled, wf_error *err);

/* The n largest of a set of values: all above `value`, and the first `room` of those equal to it.
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
