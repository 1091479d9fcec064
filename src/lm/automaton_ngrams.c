/* automaton_ngrams.c - the n-grams of a model in memory, order by order. The words of a history are
 * found from its state: its last word, then those of its parent. */
#include "base/interrupt.h"
#include "base/memory.h"
#include "lm/automaton.h"

const char *wf__automaton_text(const wf__automaton *lm, uint32_t label) {
  if (label < lm->num_public) return wf_symbols_text(lm->words, label);
  return label == lm->bos ? "<s>" : label == lm->eos ? "</s>" : "<unk>";
}

static void find_histories(wf__ngram_walk *w) {
  const wf__automaton *lm = w->lm;
  for (uint32_t word = 0; word < lm->num_labels; word++)
    if (wf__lm_knows(lm, word)) w->last[lm->unigrams[word].next] = word;
  w->last[lm->start] = lm->bos;
  for (int k = 2; k < lm->order; k++) {
    for (uint64_t s = lm->level_begin[k - 1]; s < lm->level_begin[k]; s++) {
      for (uint64_t a = lm->states[s].first_arc; a < lm->states[s + 1].first_arc; a++) {
        if (!wf__lm_is_own_state(lm, k, lm->arcs[a].next)) continue;
        w->parent[lm->arcs[a].next] = (uint32_t)s;
        w->last[lm->arcs[a].next] = lm->arcs[a].word;
      }
    }
  }
}

wf_status wf__ngram_walk_begin(const wf__automaton *lm, wf__ngram_walk *out, wf_error *err) {
  *out = (wf__ngram_walk){lm, wf__calloc(lm->num_states, sizeof *out->parent),
                          wf__calloc(lm->num_states, sizeof *out->last)};
  if (out->parent == NULL || out->last == NULL) {
    wf__ngram_walk_end(out);
    return wf__fail_memory(err, lm->num_states * 2 * sizeof *out->last, "histories of n-grams");
  }
  find_histories(out);
  return WF_OK;
}

void wf__ngram_walk_end(wf__ngram_walk *walk) {
  free(walk->parent);
  free(walk->last);
  *walk = (wf__ngram_walk){0};
}

/* `state` is that of the n-gram, or 0. */
static wf_status put_ngram(wf__walked_ngram *ngram, const wf__automaton *lm, uint32_t word,
                           float cost, uint32_t state, wf__ngram_put put, void *user,
                           wf_error *err) {
  ngram->words[ngram->k - 1] = word;
  ngram->cost = cost;
  ngram->is_state = state != 0;
  ngram->backoff = state != 0 ? lm->states[state].backoff_cost : 0;
  return put(user, ngram, err);
}

static wf_status put_unigrams(const wf__automaton *lm, wf__ngram_put put, void *user,
                              wf_error *err) {
  wf__walked_ngram ngram = {.k = 1};
  for (uint32_t word = 0; word < lm->num_labels; word++) {
    if (word == lm->bos)
      WF__TRY(put_ngram(&ngram, lm, word, INFINITY, lm->start, put, user, err));
    else if (word == lm->eos && lm->final_order[0] == 1)
      WF__TRY(put_ngram(&ngram, lm, word, lm->final_cost[0], 0, put, user, err));
    else if (wf__lm_knows(lm, word))
      WF__TRY(put_ngram(&ngram, lm, word, lm->unigrams[word].cost, lm->unigrams[word].next, put,
                        user, err));
  }
  return WF_OK;
}

wf_status wf__ngram_walk_order(const wf__ngram_walk *walk, int k, wf__ngram_put put, void *user,
                               wf_error *err) {
  const wf__automaton *lm = walk->lm;
  if (k == 1) return put_unigrams(lm, put, user, err);
  wf__walked_ngram ngram = {.k = k};
  for (uint64_t s = lm->level_begin[k - 1]; s < lm->level_begin[k]; s++) {
    WF__TRY(wf__interrupted_at(s, err));
    uint32_t history = (uint32_t)s;
    for (int i = k - 1; i-- > 0; history = walk->parent[history])
      ngram.words[i] = walk->last[history];
    if (wf__lm_has_own_final(lm, (uint32_t)s))
      WF__TRY(put_ngram(&ngram, lm, lm->eos, lm->final_cost[s], 0, put, user, err));
    for (uint64_t a = lm->states[s].first_arc; a < lm->states[s + 1].first_arc; a++) {
      const wf__lm_arc *arc = &lm->arcs[a];
      WF__TRY(put_ngram(&ngram, lm, arc->word, arc->cost,
                        wf__lm_is_own_state(lm, k, arc->next) ? arc->next : 0, put, user, err));
    }
  }
  return WF_OK;
}
