/* automaton.c - the model in memory: lifetime, info, queries. */
#include "lm/automaton.h"

#include <stdlib.h>
#include <string.h>

wf__automaton *wf__automaton_ref(const wf__automaton *lm) {
  wf__automaton *shared = (wf__automaton *)(uintptr_t)lm;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf__automaton_free(wf__automaton *lm) {
  if (lm == NULL || atomic_fetch_sub(&lm->refs, 1) != 1) return;
  wf_symbols_free(lm->words);
  free(lm->unigrams);
  free(lm->states);
  free(lm->arcs);
  free(lm->final_cost);
  free(lm->final_order);
  free(lm);
}

bool wf__automaton_has_word(const wf__automaton *lm, int32_t word) {
  return wf__lm_knows(lm, (uint32_t)word) && (uint32_t)word != lm->unk;
}

static int32_t public_label(const wf__automaton *lm, uint32_t label) {
  return label < lm->num_public ? (int32_t)label : -1;
}

void wf__automaton_info(const wf__automaton *lm, wf_lm_info *info) {
  info->num_arcs = lm->num_arcs;
  info->has_unk = lm->unk != WF__LM_NONE;
  for (int k = 1; k <= lm->order; k++) info->num_ngrams[k] = lm->num_ngrams[k];
  for (uint32_t w = 0; w < lm->num_labels; w++) info->num_arcs += wf__lm_knows(lm, w);
  info->num_words = info->num_arcs - lm->num_arcs - info->has_unk;
  info->num_bytes = sizeof *lm + lm->num_labels * sizeof *lm->unigrams +
                    (lm->num_states + 1) * sizeof *lm->states + lm->num_arcs * sizeof *lm->arcs +
                    lm->num_states * (sizeof *lm->final_cost + sizeof *lm->final_order);
  info->bos = public_label(lm, lm->bos);
  info->eos = public_label(lm, lm->eos);
  info->unk = public_label(lm, lm->unk);
}

float wf__automaton_step(const wf__automaton *lm, uint32_t state, int32_t word, uint32_t *next,
                         int32_t *order) {
  uint32_t known = (uint32_t)word, at;
  if (!wf__lm_knows(lm, known)) known = lm->unk;
  if (known == WF__LM_NONE || state >= lm->num_states) {
    *next = 0;
    if (order != NULL) *order = 0;
    return INFINITY;
  }
  float cost = wf__lm_step_known(lm, state, known, next, &at);
  if (order != NULL) *order = wf__lm_level(lm, at) + 1;
  return cost;
}

float wf__automaton_least_cost(const wf__automaton *lm) {
  float least = INFINITY, backoff = 0;
  for (uint32_t w = 0; w < lm->num_labels; w++)
    if (wf__lm_knows(lm, w)) least = fminf(least, lm->unigrams[w].cost);
  for (uint64_t a = 0; a < lm->num_arcs; a++) least = fminf(least, lm->arcs[a].cost);
  for (uint64_t s = 0; s < lm->num_states; s++)
    backoff = fminf(backoff, lm->states[s].backoff_cost);
  backoff *= (float)(lm->order - 1);
  return least + backoff - 1e-5f * (1 + fabsf(least) + fabsf(backoff)); /* sums are rounded */
}

float wf__automaton_final(const wf__automaton *lm, uint32_t state, int32_t *order) {
  bool valid = state < lm->num_states;
  if (order != NULL) *order = valid ? lm->final_order[state] : 0;
  return valid ? lm->final_cost[state] : INFINITY;
}
