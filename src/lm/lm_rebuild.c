/* lm_rebuild.c - makes a model from a subset of the n-grams of another model. The states and arcs
 * of a model are in the order of its n-grams, so the levels for wf__lm_build are written in sorted
 * order. node_of[state] is the index, in the level of its length, of the n-gram that is the state's
 * history; WF__LM_NONE if that n-gram is removed. */
#include <string.h>

#include "base/interrupt.h"
#include "lm/lm_prune.h"
#include "lm/ngram_levels.h"

typedef struct rebuild {
  const wf__automaton *lm;
  const bool *word_kept;
  const wf__lm_values *values;
  uint32_t *node_of;
  wf__ngram_levels levels;
} rebuild;

static bool keeps_word(const rebuild *r, uint32_t word) {
  return r->word_kept == NULL || r->word_kept[word] || word == r->lm->bos || word == r->lm->eos ||
         word == r->lm->unk;
}

static bool keeps_arc(const rebuild *r, uint64_t arc) {
  return r->values->arc[arc] > -INFINITY && keeps_word(r, r->lm->arcs[arc].word);
}
static bool keeps_final(const rebuild *r, uint32_t state) {
  return r->values->final[state] > -INFINITY && wf__lm_has_own_final(r->lm, state);
}

/* Back-off cost of a history. 0 if no n-gram follows it, so that it does not become a state. */
static float backoff_of(const rebuild *r, uint32_t state) {
  const wf__lm_state *from = &r->lm->states[state];
  bool needed = keeps_final(r, state);
  for (uint64_t a = from->first_arc; !needed && a < from[1].first_arc; a++)
    needed = keeps_arc(r, a);
  return needed ? from->backoff_cost : 0;
}

static wf_status push(rebuild *r, int k, uint32_t context, uint32_t word, float cost,
                      uint32_t state, wf_error *err) {
  wf__ngram ngram = {context, word, cost, 0};
  if (state != WF__LM_NONE) {
    ngram.backoff = backoff_of(r, state);
    r->node_of[state] = (uint32_t)r->levels.level[k].ngrams.size;
  }
  return wf__vec_push(&r->levels.level[k].ngrams, ngram, "n-grams", err);
}

static wf_status push_unigrams(rebuild *r, wf_error *err) {
  const wf__automaton *lm = r->lm;
  for (uint32_t w = 0; w < lm->num_labels; w++) {
    if (w == lm->bos)
      WF__TRY(push(r, 1, 0, w, 0, lm->start != 0 ? lm->start : WF__LM_NONE, err));
    else if (w == lm->eos && lm->final_order[0] == 1)
      WF__TRY(push(r, 1, 0, w, lm->final_cost[0], WF__LM_NONE, err));
    else if (wf__lm_knows(lm, w) && keeps_word(r, w))
      WF__TRY(push(r, 1, 0, w, lm->unigrams[w].cost,
                   lm->unigrams[w].next != 0 ? lm->unigrams[w].next : WF__LM_NONE, err));
  }
  return WF_OK;
}

/* Adds the n-grams of order k after the history `state`, with </s> in sorted order among the words.
 */
static wf_status push_arcs(rebuild *r, int k, uint32_t state, wf_error *err) {
  const wf__automaton *lm = r->lm;
  uint32_t context = r->node_of[state];
  bool pending = keeps_final(r, state);
  uint64_t end = lm->states[state + 1].first_arc;
  for (uint64_t a = lm->states[state].first_arc; a < end || pending;) {
    if (pending && (a == end || lm->arcs[a].word > lm->eos)) {
      WF__TRY(push(r, k, context, lm->eos, lm->final_cost[state], WF__LM_NONE, err));
      pending = false;
      continue;
    }
    const wf__lm_arc *arc = &lm->arcs[a];
    uint32_t state_of = wf__lm_is_own_state(lm, k, arc->next) ? arc->next : WF__LM_NONE;
    if (keeps_arc(r, a++)) WF__TRY(push(r, k, context, arc->word, arc->cost, state_of, err));
  }
  return WF_OK;
}

static wf_status push_all(rebuild *r, wf_error *err) {
  const wf__automaton *lm = r->lm;
  uint64_t duplicate;
  WF__TRY(push_unigrams(r, err));
  WF__TRY(wf__ngram_level_sort(&r->levels, 1, &duplicate, err));
  r->levels.order = 1;
  for (int k = 2; k <= lm->order; k++) {
    for (uint64_t state = lm->level_begin[k - 1]; state < lm->level_begin[k]; state++) {
      WF__TRY(wf__interrupted_at(state, err));
      if (r->node_of[state] != WF__LM_NONE) WF__TRY(push_arcs(r, k, (uint32_t)state, err));
    }
    if (r->levels.level[k].ngrams.size == 0) break;
    WF__TRY(wf__ngram_level_sort(&r->levels, k, &duplicate, err));
    r->levels.order = k;
  }
  return WF_OK;
}

wf_status wf__lm_rebuild(const wf__automaton *lm, const bool *word_kept,
                         const wf__lm_values *values, wf__automaton **out, wf_error *err) {
  *out = NULL;
  rebuild r = {.lm = lm,
               .word_kept = word_kept,
               .values = values,
               .node_of = wf__alloc(lm->num_states, sizeof *r.node_of)};
  if (r.node_of == NULL)
    return wf__fail_memory(err, lm->num_states * sizeof *r.node_of, "histories of n-grams");
  memset(r.node_of, 0xff, lm->num_states * sizeof *r.node_of);
  r.levels.num_public = lm->num_public;
  r.levels.num_labels = lm->num_labels;
  r.levels.bos = lm->bos;
  r.levels.eos = lm->eos;
  r.levels.unk = lm->unk;
  wf_status status = push_all(&r, err);
  free(r.node_of);
  if (status == WF_OK) status = wf__lm_build(&r.levels, lm->words, out, NULL, err);
  wf__ngram_levels_free(&r.levels);
  return status;
}
