/* histories.h - histories of words, and what the language model says of them.
 *
 * Without a function as the language model, histories are sequences of words; with one, they are
 * what it says, and each word after a history is asked for once. A history of the frame in work has
 * a number for this frame only, from `first_new` on, until a hypothesis with it is kept. Words that
 * tokens spell have numbers of their own (prefixes.h), and prefixes.c adds their histories. */
#ifndef WF_COMPAT_HISTORIES_H
#define WF_COMPAT_HISTORIES_H

#include "base/map64.h"

typedef struct wf__history {
  int64_t state;         /* of the language model */
  double score;          /* of words that tokens spell: of all of them */
  uint32_t before, word; /* the history without its last word, or UINT32_MAX */
} wf__history;

typedef struct wf__histories {
  const wf_beam_searcher *searcher;
  WF__VEC(wf__history) all;
  WF__VEC(struct wf__history_move {
    uint32_t to;
    double score;
  })
  moves;
  WF__VEC(struct wf__history_new {
    uint32_t before;
    int32_t word;
  })
  fresh;                /* of the frame in work */
  uint32_t first_new;   /* number of histories before the frame */
  wf__map64 fresh_of;   /* history << 32 | word -> place in `fresh` */
  wf__map64 move_of;    /* history << 32 | word -> move; of spelled words: -> history */
  wf__map64 history_of; /* state of the function -> history */
} wf__histories;

/* History 0 is the start: the given state, or -1. Free with wf__histories_free, also after an
 * error. */
wf_status wf__histories_init(wf__histories *h, const wf_beam_searcher *searcher, bool sentence_ends,
                             int64_t state, wf_error *err);
void wf__histories_free(wf__histories *h);
/* A frame begins: forgets the histories that were not kept. */
void wf__histories_begin_frame(wf__histories *h);
/* The score of a word after a history, which is not of this frame. */
wf_status wf__history_score(wf__histories *h, uint32_t history, int32_t word, double *score,
                            wf_error *err);
/* The history after the word, once the score is known. */
wf_status wf__history_append(wf__histories *h, uint32_t history, int32_t word, uint32_t *to,
                             wf_error *err);
/* A hypothesis is kept: its history gets a number that lasts. */
wf_status wf__history_number(wf__histories *h, uint32_t *history, wf_error *err);
/* Score of the end of the utterance. */
wf_status wf__history_finish(wf__histories *h, uint32_t history, double *score, wf_error *err);
/* The lm_state of a path. */
int64_t wf__history_state(const wf__histories *h, uint32_t history);
/* Keeps the histories of which new_of[history] is not UINT32_MAX, and sets their new numbers
 * there. */
wf_status wf__histories_keep(wf__histories *h, uint32_t *new_of, wf_error *err);

/* -ln P of a word (by its label) or, if `next` is NULL, of the end, by the n-gram model. What it
 * has no probability for has 1e-100, as in KenLM. */
double wf__history_cost(const wf_lm *lm, int64_t state, int32_t label, int64_t *next);

#endif
