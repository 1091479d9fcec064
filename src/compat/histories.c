/* histories.c - histories of words, and scores of the language model. */
#include "compat/beam.h"
#include "lm/lm.h"

static const double missing = 100; /* -log10 P */

double wf__history_cost(const wf_lm *lm, int64_t state, int32_t label, int64_t *next) {
  uint32_t to = 0;
  const double cost = (double)(next == NULL ? wf_lm_final(lm, (uint32_t)state, NULL)
                                            : wf_lm_step(lm, (uint32_t)state, label, &to, NULL));
  if (next != NULL) *next = to;
  return cost == INFINITY ? missing * M_LN10 : cost;
}

/* Asks the language model. word -1: the end. */
static wf_status ask(const wf_beam_searcher *s, int64_t state, int32_t word, int64_t *next,
                     double *score, wf_error *err) {
  *next = state;
  *score = 0;
  if (s->lm_fn != NULL) {
    if (!s->lm_fn(s->user, state, word, next, score) || isnan(*score) || *next < 0)
      return wf__fail(err, WF_ERR_CANCELLED, "the language model's function failed");
  } else if (s->lm != NULL) {
    const int32_t label = word >= 0 && (size_t)word < s->num_lm_labels ? s->lm_labels[word] : -1;
    *score = -wf__history_cost(s->lm, state, label, word < 0 ? NULL : next) / M_LN10;
  }
  return WF_OK;
}

/* The history of a state of the function; else a new one, which is `before` and a word. */
static wf_status history_of(wf__histories *h, int64_t state, uint32_t before, uint32_t *out,
                            wf_error *err) {
  bool fresh = true;
  *out = (uint32_t)h->all.size;
  if (h->searcher->lm_fn != NULL)
    WF__TRY(wf__map64_insert(&h->history_of, (uint64_t)state, *out, out, &fresh, "histories", err));
  if (!fresh) return WF_OK;
  return wf__vec_push(&h->all, ((wf__history){.state = state, .before = before}), "histories", err);
}

/* The history after a word, and the word's score, each worked out once. */
static wf_status move(wf__histories *h, uint32_t history, int32_t word,
                      struct wf__history_move *out, wf_error *err) {
  uint32_t at = 0;
  bool fresh = false;
  WF__TRY(wf__map64_insert(&h->move_of, (uint64_t)history << 32 | (uint32_t)word,
                           (uint32_t)h->moves.size, &at, &fresh, "words", err));
  if (fresh) {
    struct wf__history_move made = {0};
    int64_t state = 0;
    WF__TRY(ask(h->searcher, h->all.data[history].state, word, &state, &made.score, err));
    WF__TRY(history_of(h, state, history, &made.to, err));
    WF__TRY(wf__vec_push(&h->moves, made, "words", err));
  }
  *out = h->moves.data[at];
  return WF_OK;
}

static uint32_t find_move(const wf__histories *h, uint32_t history, int32_t word) {
  return wf__map64_find(&h->move_of, (uint64_t)history << 32 | (uint32_t)word);
}

void wf__histories_begin_frame(wf__histories *h) {
  h->first_new = (uint32_t)h->all.size;
  h->fresh.size = 0;
  wf__map64_clear(&h->fresh_of);
}

/* Most words are asked for in vain, and a model of n-grams is asked faster than what it said before
 * is looked up in a large map. A function is asked once. */
wf_status wf__history_score(wf__histories *h, uint32_t history, int32_t word, double *score,
                            wf_error *err) {
  struct wf__history_move made = {0};
  int64_t state;
  if (h->searcher->lm_fn == NULL)
    return ask(h->searcher, h->all.data[history].state, word, &state, score, err);
  WF__TRY(move(h, history, word, &made, err));
  *score = made.score;
  return WF_OK;
}

wf_status wf__history_append(wf__histories *h, uint32_t history, int32_t word, uint32_t *to,
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
    WF__TRY(wf__vec_push(&h->fresh, ((struct wf__history_new){history, word}), "a frame", err));
  *to = h->first_new + place;
  return WF_OK;
}

wf_status wf__history_number(wf__histories *h, uint32_t *history, wf_error *err) {
  struct wf__history_move made = {0};
  if (h->fresh.size == 0 || *history < h->first_new || h->searcher->lm_fn != NULL) return WF_OK;
  const struct wf__history_new *of = &h->fresh.data[*history - h->first_new];
  WF__TRY(move(h, of->before, of->word, &made, err));
  *history = made.to;
  return WF_OK;
}

wf_status wf__history_finish(wf__histories *h, uint32_t history, double *score, wf_error *err) {
  int64_t next;
  return ask(h->searcher, h->all.data[history].state, -1, &next, score, err);
}

wf_status wf__histories_keep(wf__histories *h, uint32_t *new_of, wf_error *err) {
  uint64_t num = h->all.size;
  h->all.size = h->moves.size = 0;
  wf__map64_clear(&h->move_of);
  wf__map64_clear(&h->history_of);
  for (uint64_t old = 0; old < num; old++)
    if (new_of[old] != UINT32_MAX)
      WF__TRY(history_of(h, h->all.data[old].state, UINT32_MAX, &new_of[old], err));
  return WF_OK;
}

int64_t wf__history_state(const wf__histories *h, uint32_t history) {
  return h->searcher->lm != NULL || h->searcher->lm_fn != NULL ? h->all.data[history].state : -1;
}

/* The empty history is state 0 of an n-gram model. */
wf_status wf__histories_init(wf__histories *h, const wf_beam_searcher *searcher, bool sentence_ends,
                             int64_t state, wf_error *err) {
  *h = (wf__histories){.searcher = searcher};
  const wf_lm *lm = searcher->lm;
  uint32_t start = 0;
  if (state < -1 ||
      (state >= 0 && (lm != NULL ? (uint64_t)state >= lm->num_states : searcher->lm_fn == NULL)))
    return wf__fail(err, WF_ERR_ARGUMENT, "the language model has no state %lld", (long long)state);
  if (state < 0) state = lm != NULL && sentence_ends ? (int64_t)wf_lm_start(lm) : 0;
  return history_of(h, state, UINT32_MAX, &start, err);
}

void wf__histories_free(wf__histories *h) {
  wf__vec_free(&h->all);
  wf__vec_free(&h->moves);
  wf__vec_free(&h->fresh);
  wf__map64_free(&h->fresh_of);
  wf__map64_free(&h->move_of);
  wf__map64_free(&h->history_of);
}
