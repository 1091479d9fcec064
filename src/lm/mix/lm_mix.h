/* lm_mix.h - the words of several models under common labels, for lm_mix.c, which mixes the models,
 * and lm_mix_weights.c, which finds weights for them. */
#ifndef WF_LM_LM_MIX_H
#define WF_LM_LM_MIX_H

#include "base/memory.h"
#include "lm/automaton.h"
#include "lm/lm_words.h"

typedef struct wf__mix {
  const wf__automaton *const *lms; /* borrowed */
  size_t num_lms;
  wf_symbols *words;
  uint32_t num_labels;
  uint32_t **word_of; /* [num_lms][num_labels of the model]; WF__LM_NONE: no word */
  uint32_t *
      *label_of; /* [num_lms][num_labels] label in the model; WF__LM_NONE: it lacks the word */
} wf__mix;

/* Collects the words. Free the result also after a failure. */
wf_status wf__mix_words(const wf__automaton *const *lms, size_t num_lms, wf__mix *out,
                        wf_error *err);
void wf__mix_free(wf__mix *mix);

/* Probability of `word` after a state of model i; 0 if the model lacks the word. Sets the state
 * after the word, for which a missing word is an unknown one. The state after </s> is undefined. */
static inline double wf__mix_step(const wf__mix *mix, size_t i, uint32_t state, uint32_t word,
                                  uint32_t *next) {
  const wf__automaton *lm = mix->lms[i];
  const uint32_t label = mix->label_of[i][word];
  uint32_t at;
  *next = 0;
  if (word == WF__LM_EOS) return exp(-(double)lm->final_cost[state]);
  if (label != WF__LM_NONE) return exp(-(double)wf__lm_step_known(lm, state, label, next, &at));
  if (lm->unk != WF__LM_NONE) (void)wf__lm_step_known(lm, state, lm->unk, next, &at);
  return 0;
}

#endif
