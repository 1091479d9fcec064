/* trie_history.c - histories of the beam search over a trie, and scores of the language model. */
#include <math.h>

#include "decode/trie_search.h"
#include "lm/lm.h"

static const double missing =
    -100; /* log10 P of what the model has no probability for, as in KenLM */

static double log10_of(float cost) { return cost == INFINITY ? missing : -(double)cost / M_LN10; }

/* Asks the language model. word -1: the end. */
static wf_status ask(const wf_trie_searcher *s, int64_t state, int32_t word, int64_t *next,
                     double *score, wf_error *err) {
  *next = state;
  *score = 0;
  if (s->lm_fn != NULL) {
    if (!s->lm_fn(s->user, state, word, next, score) || isnan(*score) || *next < 0)
      return wf__fail(err, WF_ERR_CANCELLED, "the language model's function failed");
  } else if (s->lm != NULL && word < 0) {
    *score = log10_of(wf_lm_final(s->lm, (uint32_t)state, NULL));
  } else if (s->lm != NULL) {
    uint32_t to = 0;
    int32_t label = (size_t)word < s->num_lm_labels ? s->lm_labels[word] : -1;
    *score = log10_of(wf_lm_step(s->lm, (uint32_t)state, label, &to, NULL));
    *next = to;
  }
  return WF_OK;
}

/* The history of a state of the function; else a new one, which is `before` and a word. */
static wf_status history_of(wf__trie_histories *h, int64_t state, uint32_t before, uint32_t *out,
                            wf_error *err) {
  bool fresh = true;
  *out = (uint32_t)h->states.size;
  if (h->searcher->lm_fn != NULL)
    WF__TRY(wf__map64_insert(&h->history_of, (uint64_t)state, *out, out, &fresh, "histories", err));
  if (!fresh) return WF_OK;
  WF__TRY(wf__vec_push(&h->before, before, "histories", err));
  return wf__vec_push(&h->states, state, "histories", err);
}

/* The history after a word, and the word's score, each worked out once. */
static wf_status move(wf__trie_histories *h, uint32_t history, int32_t word,
                      struct wf__trie_move *out, wf_error *err) {
  uint32_t at = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&h->move_of, (uint64_t)history << 32 | (uint32_t)word,
                           (uint32_t)h->moves.size, &at, &fresh, "words", err));
  if (fresh) {
    struct wf__trie_move made = {0};
    int64_t state = 0;
    WF__TRY(ask(h->searcher, h->states.data[history], word, &state, &made.score, err));
    WF__TRY(history_of(h, state, history, &made.to, err));
    WF__TRY(wf__vec_push(&h->moves, made, "words", err));
  }
  *out = h->moves.data[at];
  return WF_OK;
}

static uint32_t find_move(const wf__trie_histories *h, uint32_t history, int32_t word) {
  return wf__map64_find(&h->move_of, (uint64_t)history << 32 | (uint32_t)word);
}

void wf__trie_begin_frame(wf__trie_histories *h) {
  h->first_new = (uint32_t)h->states.size;
  h->fresh.size = 0;
  wf__map64_clear(&h->fresh_of);
}

/* Most words are asked for in vain, and a model of n-grams is asked faster than what it said before
 * is looked up in a large map. A function is asked once. */
wf_status wf__trie_score(wf__trie_histories *h, uint32_t history, int32_t word, double *score,
                         wf_error *err) {
  struct wf__trie_move made = {0};
  int64_t state;
  if (h->searcher->lm_fn == NULL)
    return ask(h->searcher, h->states.data[history], word, &state, score, err);
  WF__TRY(move(h, history, word, &made, err));
  *score = made.score;
  return WF_OK;
}

wf_status wf__trie_append(wf__trie_histories *h, uint32_t history, int32_t word, uint32_t *to,
                          wf_error *err) {
  const uint32_t at = find_move(h, history, word);
  if (at != WF__MAP64_NONE) {
    *to = h->moves.data[at].to;
    return WF_OK;
  }
  uint32_t place = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&h->fresh_of, (uint64_t)history << 32 | (uint32_t)word,
                           (uint32_t)h->fresh.size, &place, &fresh, "a frame", err));
  if (fresh)
    WF__TRY(wf__vec_push(&h->fresh, ((struct wf__trie_new){history, word}), "a frame", err));
  *to = h->first_new + place;
  return WF_OK;
}

wf_status wf__trie_number(wf__trie_histories *h, uint32_t *history, wf_error *err) {
  struct wf__trie_move made = {0};
  if (*history < h->first_new || h->searcher->lm_fn != NULL) return WF_OK;
  const struct wf__trie_new *of = &h->fresh.data[*history - h->first_new];
  WF__TRY(move(h, of->before, of->word, &made, err));
  *history = made.to;
  return WF_OK;
}

wf_status wf__trie_finish(wf__trie_histories *h, uint32_t history, double *score, wf_error *err) {
  int64_t next;
  return ask(h->searcher, h->states.data[history], -1, &next, score, err);
}

wf_status wf__trie_histories_keep(wf__trie_histories *h, uint32_t *new_of, wf_error *err) {
  uint64_t num = h->states.size;
  h->states.size = h->before.size = h->moves.size = 0;
  wf__map64_clear(&h->move_of);
  wf__map64_clear(&h->history_of);
  for (uint64_t old = 0; old < num; old++)
    if (new_of[old] != UINT32_MAX)
      WF__TRY(history_of(h, h->states.data[old], UINT32_MAX, &new_of[old], err));
  return WF_OK;
}

wf_status wf__trie_histories_init(wf__trie_histories *h, const wf_trie_searcher *searcher,
                                  wf_error *err) {
  *h = (wf__trie_histories){.searcher = searcher};
  uint32_t start = 0;
  return history_of(h,
                    searcher->lm_fn != NULL ? searcher->first_history
                    : searcher->lm != NULL  ? (int64_t)wf_lm_start(searcher->lm)
                                            : 0,
                    UINT32_MAX, &start, err);
}

void wf__trie_histories_free(wf__trie_histories *h) {
  wf__vec_free(&h->states);
  wf__vec_free(&h->before);
  wf__vec_free(&h->moves);
  wf__vec_free(&h->fresh);
  wf__map64_free(&h->fresh_of);
  wf__map64_free(&h->move_of);
  wf__map64_free(&h->history_of);
}
