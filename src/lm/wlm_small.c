/* wlm_small.c - the small model, which is subtracted. It is kept in memory. */
#include <math.h>

#include "lm/wlm_build.h"

void wf__wlm_small_free(wf__wlm_small *small) {
  wf__automaton_free(small->lm);
  free(small->label_of);
}

wf_status wf__wlm_small_map(wf__wlm_small *small, const wf__ngram_collector *collector,
                            const char *text, wf_error *err) {
  const wf__automaton *lm = small->lm;
  uint32_t word = small->num_words, label = WF__LM_NONE;
  if (word == collector->levels.bos)
    label = lm->bos;
  else if (word == collector->levels.eos)
    label = lm->eos;
  else if (word == collector->levels.unk)
    label = lm->unk;
  else if (wf_symbols_find(lm->words, text) > 0)
    label = (uint32_t)wf_symbols_find(lm->words, text);
  if (label != WF__LM_NONE && label != lm->bos && label != lm->eos && !wf__lm_knows(lm, label))
    label = WF__LM_NONE;
  if ((word & (word - 1)) == 0) {
    uint32_t *larger =
        realloc(small->label_of, (word == 0 ? 1 : 2 * (size_t)word) * sizeof *larger);
    if (larger == NULL)
      return wf__fail_memory(err, 8 * (uint64_t)word, "the words of the small model");
    small->label_of = larger;
  }
  small->label_of[small->num_words++] = label;
  return WF_OK;
}

uint32_t wf__wlm_small_state(const wf__wlm_small *small, int k, const uint32_t *backwards) {
  const wf__automaton *lm = small->lm;
  uint32_t state = 0, at;
  for (int i = k; i-- > 0;) {
    uint32_t label = small->label_of[backwards[i]];
    if (label == lm->bos)
      state = lm->start;
    else if (label == WF__LM_NONE)
      state = 0;
    else
      wf__lm_step_known(lm, state, label, &state, &at);
  }
  return state;
}

double wf__wlm_small_cost(const wf__wlm_small *small, uint32_t state, uint32_t word) {
  const wf__automaton *lm = small->lm;
  uint32_t label = small->label_of[word];
  if (label == WF__LM_NONE) return 0;
  if (label == lm->eos) return (double)lm->final_cost[state];
  double cost = 0;
  for (; state != 0; state = lm->states[state].backoff) {
    const wf__lm_arc *arc = wf__lm_find(lm, state, label);
    if (arc != NULL) return cost + (double)arc->cost;
    cost += (double)lm->states[state].backoff_cost;
  }
  return cost + (double)lm->unigrams[label].cost;
}

/* --- n-grams that the large model must have ---------------------------------------------- */

struct enumeration {
  wf__wlm_build *build;
  const wf__automaton *lm;
  uint32_t *word_of; /* [num_labels] word of the large model, or WF__LM_NONE */
  uint32_t *parent;  /* [num_states] state of the history without its last word */
  uint32_t *last;    /* [num_states] label of that last word */
};

/* Finds the large model's word for each label. Words that it lacks are added, with the cost of its
 * unknown word. */
static wf_status match_words(struct enumeration *e, wf_error *err) {
  wf__wlm_build *build = e->build;
  const wf__automaton *lm = e->lm;
  float unknown = INFINITY;
  for (uint32_t label = 0; label < lm->num_labels; label++) e->word_of[label] = WF__LM_NONE;
  for (uint32_t word = 0; word < build->small.num_words; word++)
    if (build->small.label_of[word] != WF__LM_NONE) e->word_of[build->small.label_of[word]] = word;
  if (build->info.unk != WF__LM_NONE) {
    const uint32_t *gram;
    WF__TRY(wf__sort_rewind(build->grams[1], err));
    do {
      WF__TRY(wf__sort_next(build->grams[1], &gram, err));
      if (gram != NULL && gram[0] == build->info.unk) unknown = wf__float_of_bits(gram[1]);
    } while (gram != NULL);
  }
  for (uint32_t label = 0; label < lm->num_labels; label++) {
    if (!wf__lm_knows(lm, label) || e->word_of[label] != WF__LM_NONE) continue;
    const char *text = wf_symbols_text(lm->words, label);
    int64_t word;
    if (text == NULL || wf_symbols_find(build->info.words, text) >= 0)
      continue; /* <s>, </s> or <unk> under another name */
    WF__TRY(wf_symbols_add(build->info.words, text, -1, &word, err));
    uint32_t *larger = realloc(build->small.label_of, ((size_t)word + 1) * sizeof *larger),
             added = (uint32_t)word;
    if (larger == NULL)
      return wf__fail_memory(err, 4 * (uint64_t)word, "the words of the small model");
    build->small.label_of = larger;
    larger[word] = label;
    build->small.num_words = build->num_words = added + 1;
    e->word_of[label] = added;
    if (label == lm->unk) build->info.unk = added;
    build->stats->num_words_added++;
    WF__TRY(wf__wlm_add_gram(build, 1, &added, unknown, 0, err));
  }
  return wf__sort_finish(build->grams[1], err);
}

/* Requires the n-gram of a history and a label, if the large model has all its words. */
static wf_status require(struct enumeration *e, uint32_t history, uint32_t label, bool state,
                         wf_error *err) {
  uint32_t words[WF_LM_MAX_ORDER];
  int n = 0;
  for (;; label = e->last[history], history = e->parent[history]) {
    words[n] = e->word_of[label];
    if (words[n++] == WF__LM_NONE) return WF_OK;
    if (history == 0) break;
  }
  return wf__wlm_require(e->build, n, words,
                         (state ? WF__REQUIRED_STATE : 0) | WF__REQUIRED_BY_SMALL, err);
}

/* Requires the n-grams of order k + 1. Sets parent and last of the states of level k + 1. */
static wf_status enumerate(struct enumeration *e, int k, wf_error *err) {
  const wf__automaton *lm = e->lm;
  if (k == 0) {
    for (uint32_t label = 0; label < lm->num_labels; label++) {
      bool end = label == lm->eos && lm->final_order[0] == 1;
      if (!wf__lm_knows(lm, label) && label != lm->bos && !end) continue;
      uint32_t next = label == lm->bos ? lm->start : end ? 0 : lm->unigrams[label].next;
      bool own = wf__lm_is_own_state(lm, 1, next);
      if (own) e->parent[next] = 0, e->last[next] = label;
      WF__TRY(require(e, 0, label, own, err));
    }
    return WF_OK;
  }
  uint64_t end = k + 1 < lm->order ? lm->level_begin[k + 1] : lm->num_states;
  for (uint64_t s = lm->level_begin[k]; s < end; s++) {
    for (uint64_t a = lm->states[s].first_arc; a < lm->states[s + 1].first_arc; a++) {
      const wf__lm_arc *arc = &lm->arcs[a];
      bool own = wf__lm_is_own_state(lm, k + 1, arc->next);
      if (own) e->parent[arc->next] = (uint32_t)s, e->last[arc->next] = arc->word;
      WF__TRY(require(e, (uint32_t)s, arc->word, own, err));
    }
    if (wf__lm_has_own_final(lm, (uint32_t)s))
      WF__TRY(require(e, (uint32_t)s, lm->eos, false, err));
  }
  return WF_OK;
}

wf_status wf__wlm_small_require(wf__wlm_build *build, wf_error *err) {
  const wf__automaton *lm = build->small.lm;
  struct enumeration e = {.build = build,
                          .lm = lm,
                          .word_of = wf__alloc(lm->num_labels, 4),
                          .parent = wf__alloc(lm->num_states, 4),
                          .last = wf__alloc(lm->num_states, 4)};
  wf_status status = e.word_of != NULL && e.parent != NULL && e.last != NULL
                         ? WF_OK
                         : wf__fail_memory(err, lm->num_states * 8, "the small model");
  if (status == WF_OK) status = match_words(&e, err);
  for (int k = 0; k < lm->order && status == WF_OK; k++) status = enumerate(&e, k, err);
  free(e.word_of);
  free(e.parent);
  free(e.last);
  return status;
}
