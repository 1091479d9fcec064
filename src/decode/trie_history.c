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

/* The history of a state of the function; else a new one. */
static wf_status history_of(wf__trie_histories *h, int64_t state, uint32_t *out, wf_error *err) {
  bool fresh = true;
  *out = (uint32_t)h->states.size;
  if (h->searcher->lm_fn != NULL)
    WF__TRY(wf__map64_insert(&h->history_of, (uint64_t)state, *out, out, &fresh, "histories", err));
  return fresh ? wf__vec_push(&h->states, state, "histories", err) : WF_OK;
}

wf_status wf__trie_move(wf__trie_histories *h, uint32_t history, int32_t word, uint32_t *to,
                        double *score, wf_error *err) {
  uint32_t at = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&h->move_of, (uint64_t)history << 32 | (uint32_t)word,
                           (uint32_t)h->moves.size, &at, &fresh, "words", err));
  if (fresh) {
    struct wf__trie_move move = {0};
    int64_t state = 0;
    WF__TRY(ask(h->searcher, h->states.data[history], word, &state, &move.score, err));
    WF__TRY(history_of(h, state, &move.to, err));
    WF__TRY(wf__vec_push(&h->moves, move, "words", err));
  }
  *to = h->moves.data[at].to;
  *score = h->moves.data[at].score;
  return WF_OK;
}

wf_status wf__trie_finish(wf__trie_histories *h, uint32_t history, double *score, wf_error *err) {
  int64_t next;
  return ask(h->searcher, h->states.data[history], -1, &next, score, err);
}

wf_status wf__trie_histories_keep(wf__trie_histories *h, uint32_t *new_of, wf_error *err) {
  uint64_t num = h->states.size;
  h->states.size = h->moves.size = 0;
  wf__map64_clear(&h->move_of);
  wf__map64_clear(&h->history_of);
  for (uint64_t old = 0; old < num; old++)
    if (new_of[old] != UINT32_MAX) WF__TRY(history_of(h, h->states.data[old], &new_of[old], err));
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
                    &start, err);
}

void wf__trie_histories_free(wf__trie_histories *h) {
  wf__vec_free(&h->states);
  wf__vec_free(&h->moves);
  wf__map64_free(&h->move_of);
  wf__map64_free(&h->history_of);
}
