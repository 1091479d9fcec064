/* rnn_costs.c - the cost of a word in a context, from the recurrent model's cost, and the next
 * context. */
#include <math.h>

#include "math/cost.h"
#include "scorer/rnn_scorer.h"

enum { NONE = UINT32_MAX };

static float sound(double cost) { return fabs(cost) <= 1e20 ? (float)cost : INFINITY; }

/* The new model's cost: of the recurrent and the n-gram model together. */
static double mix(const wf_rnn_scorer_options *o, double recurrent, double ngram) {
  double weight = (double)o->rnnlm_weight;
  if (weight == 1) return recurrent;
  if (weight == 0) return ngram;
  return o->interpolation == WF_INTERPOLATION_LOG_LINEAR
             ? weight * recurrent + (1 - weight) * ngram
             : wf__log_add(recurrent - log(weight), ngram - log(1 - weight));
}

int32_t wf__rnn_word_of(const wf__rnn_scorer *rnn, int32_t label) {
  if (rnn->options.rnnlm_weight == 0) return -1;
  return label == WF__END_OF_WORDS ? rnn->rnnlm->eos : rnn->labels[label].rnn;
}

float wf__rnn_mixed_cost(const wf__rnn_scorer *rnn, const wf__rnn_context *at, int32_t label,
                         float recurrent, wf__rnn_context *behind) {
  const wf__rnn_labels *ids = label == WF__END_OF_WORDS ? NULL : &rnn->labels[label];
  float ngram = 0, small = 0;
  *behind = *at;
  if (rnn->ngram != NULL)
    ngram = ids == NULL ? wf__automaton_final(rnn->ngram, at->ngram_state, NULL)
                        : wf__automaton_step(rnn->ngram, at->ngram_state, ids->ngram,
                                             &behind->ngram_state, NULL);
  if (rnn->small != NULL)
    small = ids == NULL ? wf__automaton_final(rnn->small, at->small_state, NULL)
                        : wf__automaton_step(rnn->small, at->small_state, ids->small,
                                             &behind->small_state, NULL);
  double fresh = mix(&rnn->options, (double)recurrent, (double)ngram);
  return sound((double)rnn->options.rnnlm_scale * fresh -
               (double)rnn->options.small_scale * (double)small);
}

uint32_t wf__rnn_words_kept(const wf__rnn_scorer *rnn) {
  return rnn->options.history_merge_order > 0 ? (uint32_t)rnn->options.history_merge_order - 1
                                              : UINT32_MAX;
}

uint64_t wf__rnn_next(const wf__rnn_scorer *rnn, const wf__rnn_memory *m, int32_t label,
                      const wf__rnn_context *behind) {
  if (label == WF__END_OF_WORDS) return behind->hash;
  uint64_t history =
      wf__rnn_history_hash(m, behind->history, rnn->labels[label].rnn, wf__rnn_words_kept(rnn));
  return wf__rnn_context_hash(history, behind->ngram_state, behind->small_state);
}

wf_status wf__rnn_make_next(const wf__rnn_scorer *rnn, wf__rnn_memory *m, int32_t label,
                            wf__rnn_context *behind, uint64_t *next, wf_error *err) {
  *next = behind->hash;
  if (label == WF__END_OF_WORDS) return WF_OK;
  int32_t word = rnn->labels[label].rnn;
  if (word >= 0) WF__TRY(wf__rnn_extend(m, behind->history, word, &behind->history, err));
  WF__TRY(wf__rnn_shorten(m, behind->history, wf__rnn_words_kept(rnn), &behind->history, err));
  return wf__rnn_intern(m, *behind, next, err);
}

wf_status wf__rnn_find(const wf__rnn_scorer *rnn, wf__rnn_memory *m, uint64_t context,
                       uint32_t *place, wf_error *err) {
  *place = wf__rnn_context_at(m, context);
  if (*place != NONE) return WF_OK;
  const wf__rnn_result *origin = wf__rnn_results_origin(&m->results, context);
  if (origin == NULL) return WF_OK;
  wf__rnn_context behind;
  uint64_t made;
  wf__rnn_mixed_cost(rnn, &m->contexts.data[wf__rnn_context_at(m, origin->context)], origin->word,
                     0, &behind);
  WF__TRY(wf__rnn_make_next(rnn, m, origin->word, &behind, &made, err));
  *place = wf__rnn_context_at(m, context);
  return WF_OK;
}
