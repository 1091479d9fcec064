/* lm_build.c - from sorted n-grams to the automaton.
 *
 * (1) An n-gram below the highest order becomes a state if it is a context or has a back-off
 *     weight. Any other n-gram would behave exactly as the history that it backs off to. States are
 *     numbered level by level in the order of the n-grams, so arcs are written sequentially.
 * (2) Levels are linked in ascending order. For the n-gram `h w`, a step with w from the back-off
 *     state of h leads to the state of its longest proper suffix. The arcs that this step needs are
 *     of lower levels and exist already (as in Aho & Corasick 1975). That suffix is the back-off
 *     state of `h w`, or the target of the arc if `h w` is not a state. The words of a context
 *     ascend, so each search starts at the previous match.
 * (3) The costs of </s> are resolved through back-off, in one pass. */
#include <string.h>

#include "base/callbacks.h"
#include "base/interrupt.h"
#include "lm/ngram_levels.h"

/* state_of[k][i]: state of the i-th n-gram of level k, or WF__LM_NONE. */
typedef struct build {
  wf__ngram_levels *levels;
  wf__automaton *lm;
  uint32_t *state_of[WF_LM_MAX_ORDER + 1];
} build;

static wf_status number_states(build *b, wf_error *err) {
  wf__ngram_levels *levels = b->levels;
  uint64_t state = 1;
  b->lm->level_begin[0] = 0;
  for (int k = 1; k < levels->order; k++) {
    const wf__ngram_level *level = &levels->level[k];
    const uint64_t *children = levels->level[k + 1].first;
    b->lm->level_begin[k] = state;
    uint32_t *of = b->state_of[k] = wf__alloc(level->ngrams.size, sizeof *of);
    if (of == NULL)
      return wf__fail_memory(err, level->ngrams.size * sizeof *of, "states of a language model");
    for (uint64_t i = 0; i < level->ngrams.size; i++) {
      const wf__ngram *ngram = &level->ngrams.data[i];
      bool is_state =
          ngram->word != levels->eos && (children[i + 1] > children[i] || ngram->backoff != 0);
      of[i] = is_state ? (uint32_t)state++ : WF__LM_NONE;
    }
    if (state > (uint64_t)INT32_MAX)
      return wf__fail(err, WF_ERR_LIMIT, "the language model has more than 2^31-1 states");
  }
  b->lm->level_begin[levels->order] = b->lm->num_states = state;
  return WF_OK;
}

static wf_status allocate(build *b, wf_error *err) {
  wf__automaton *lm = b->lm;
  uint64_t num_arcs = 0;
  for (int k = 2; k <= lm->order; k++) num_arcs += b->levels->level[k].ngrams.size;
  lm->unigrams = wf__alloc(lm->num_labels, sizeof *lm->unigrams);
  lm->states = wf__calloc(lm->num_states + 1, sizeof *lm->states);
  lm->arcs = wf__alloc(num_arcs, sizeof *lm->arcs);
  lm->final_cost = wf__alloc(lm->num_states, sizeof *lm->final_cost);
  lm->final_order = wf__calloc(lm->num_states, sizeof *lm->final_order);
  if (lm->unigrams == NULL || lm->states == NULL || lm->arcs == NULL || lm->final_cost == NULL ||
      lm->final_order == NULL)
    return wf__fail_memory(err, num_arcs * sizeof *lm->arcs + lm->num_states * sizeof *lm->states,
                           "a language model");
  for (uint32_t w = 0; w < lm->num_labels; w++)
    lm->unigrams[w] = (wf__lm_unigram){INFINITY, WF__LM_NONE};
  for (uint64_t s = 0; s < lm->num_states; s++) lm->final_cost[s] = INFINITY;
  return WF_OK;
}

static void add_unigrams(build *b) {
  wf__automaton *lm = b->lm;
  const wf__ngram_level *level = &b->levels->level[1];
  for (uint64_t i = 0; i < level->ngrams.size; i++) {
    const wf__ngram *ngram = &level->ngrams.data[i];
    uint32_t state = lm->order > 1 ? b->state_of[1][i] : WF__LM_NONE;
    if (state != WF__LM_NONE) lm->states[state].backoff_cost = ngram->backoff;
    if (ngram->word == lm->bos) {
      lm->start = state != WF__LM_NONE ? state : 0;
    } else if (ngram->word == lm->eos) {
      lm->final_cost[0] = ngram->cost;
      lm->final_order[0] = 1;
    } else {
      lm->unigrams[ngram->word] = (wf__lm_unigram){ngram->cost, state != WF__LM_NONE ? state : 0};
    }
  }
}

/* First arc at or after `from` with a word >= `word`. Galloping search: fast if that arc is near
 * `from`. */
static const wf__lm_arc *gallop(const wf__lm_arc *from, const wf__lm_arc *end, uint32_t word) {
  uint64_t left = (uint64_t)(end - from), step = 1;
  while (step < left && from[step - 1].word < word) step *= 2;
  uint64_t low = step / 2; /* words before from[low] are smaller */
  return wf__lm_lower_bound(from + low, (step < left ? step : left) - low, word);
}

/* Adds the arcs of state `h` of level k - 1, from its n-grams [first, last) of level k. */
static void add_arcs(build *b, int k, uint32_t h, uint64_t first, uint64_t last) {
  wf__automaton *lm = b->lm;
  const wf__ngram *ngrams = b->levels->level[k].ngrams.data;
  uint32_t backoff = lm->states[h].backoff;
  const wf__lm_arc *cursor = lm->arcs + lm->states[backoff].first_arc,
                   *end = lm->arcs + lm->states[backoff + 1].first_arc;
  for (uint64_t i = first; i < last; i++) {
    uint32_t word = ngrams[i].word, next, at;
    if (word == lm->eos) {
      lm->final_cost[h] = ngrams[i].cost;
      lm->final_order[h] = (uint8_t)k;
      continue;
    }
    float below;
    if (backoff != 0) cursor = gallop(cursor, end, word);
    if (backoff != 0 && cursor != end && cursor->word == word) {
      next = cursor->next;
      below = cursor->cost;
    } else {
      below = wf__lm_step_known(lm, backoff, word, &next, &at);
    }
    uint32_t state = k < lm->order ? b->state_of[k][i] : WF__LM_NONE;
    if (state != WF__LM_NONE) {
      lm->states[state].backoff = next;
      lm->states[state].backoff_cost = ngrams[i].backoff;
      next = state;
    }
    float cost = isnan(ngrams[i].cost) ? lm->states[h].backoff_cost + below : ngrams[i].cost;
    lm->arcs[lm->num_arcs++] = (wf__lm_arc){word, cost, next};
  }
}

static wf_status add_level(build *b, int k, wf_error *err) {
  const wf__ngram_level *level = &b->levels->level[k];
  for (uint64_t c = 0; c < level->num_contexts; c++) {
    uint32_t h = b->state_of[k - 1][c];
    if (h == WF__LM_NONE) continue;
    WF__TRY(wf__interrupted_at(h, err));
    b->lm->states[h].first_arc = b->lm->num_arcs;
    add_arcs(b, k, h, level->first[c], level->first[c + 1]);
    b->lm->states[h + 1].first_arc = b->lm->num_arcs;
  }
  return WF_OK;
}

static void resolve_finals(wf__automaton *lm) {
  for (uint64_t s = 1; s < lm->num_states; s++) {
    if (lm->final_order[s] != 0) continue;
    const wf__lm_state *state = &lm->states[s];
    lm->final_cost[s] = state->backoff_cost + lm->final_cost[state->backoff];
    lm->final_order[s] = lm->final_order[state->backoff];
  }
}

static wf_status fill(build *b, const wf_progress *progress, wf_error *err) {
  WF__TRY(number_states(b, err));
  WF__TRY(allocate(b, err));
  add_unigrams(b);
  b->lm->num_ngrams[1] = b->levels->level[1].ngrams.size;
  for (int k = 2; k <= b->lm->order; k++) {
    WF__TRY(wf__progress(progress, "linking n-grams", (double)(k - 1) / b->lm->order, err));
    b->lm->num_ngrams[k] = b->levels->level[k].ngrams.size;
    WF__TRY(add_level(b, k, err));
    wf__ngram_level_free(&b->levels->level[k]);
    free(b->state_of[k - 1]);
    b->state_of[k - 1] = NULL;
  }
  resolve_finals(b->lm);
  return WF_OK;
}

wf_status wf__lm_build(wf__ngram_levels *levels, const wf_symbols *words, wf__automaton **out,
                       const wf_progress *progress, wf_error *err) {
  *out = NULL;
  wf__automaton *lm = wf__calloc(1, sizeof *lm);
  if (lm == NULL) return wf__fail_memory(err, sizeof *lm, "a language model");
  atomic_init(&lm->refs, 1);
  lm->words = wf_symbols_ref(words);
  lm->order = levels->order;
  lm->bos = levels->bos;
  lm->eos = levels->eos;
  lm->num_public = levels->num_public;
  lm->num_labels = levels->num_labels;
  lm->unk = wf__ngram_find(levels, 1, 0, levels->unk) != WF__LM_NONE ? levels->unk : WF__LM_NONE;
  build b = {.levels = levels, .lm = lm};
  wf_status status = fill(&b, progress, err);
  for (int k = 0; k <= WF_LM_MAX_ORDER; k++) free(b.state_of[k]);
  if (status != WF_OK) {
    wf__automaton_free(lm);
    return status;
  }
  *out = lm;
  return WF_OK;
}
