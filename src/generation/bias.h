/* bias.h - what the tokens of a generator cost after a hypothesis, and how all tokens of a row are
 * scored at once.
 *
 *   phrases   a node of their automaton (scorer/phrase_boost.c). Most tokens leave all phrases, at
 *             one cost; the others are the children of the node and of its failure nodes
 *   n-grams   a state of the model. All tokens have the cost of their unigram after the back-offs;
 *             others are the arcs of the state and of those that it backs off to
 *   words     a node of the words' spellings, and a state of their model (bias_words.c)
 *   grammar   a state of an fst, whose arcs are the tokens that are allowed
 *
 * So a row is one pass over all of its columns at most, and then a few columns that are written by
 * number, those of deeper nodes last. A device can do the same with these arrays: plain numbers,
 * which do not change. */
#ifndef WF_GENERATION_BIAS_H
#define WF_GENERATION_BIAS_H

#include "generation/bias_view.h"
#include "generation/token_texts.h"
#include "lm/wlm_read.h"
#include "scorer/scorer.h"

/* A column that is written by number: its value before, and its token's cost. */
typedef struct wf__column {
  uint32_t token;
  float before, cost;
} wf__column;
typedef struct wf__row_work {
  WF__VEC(wf__column) columns;
  WF__VEC(float) special; /* logits of special tokens */
  float *sums;            /* [num_tokens] costs of several parts */
  uint32_t num_sums;
  wf_status status;
  wf_error err;
} wf__row_work;
/* Notes the column of a token. */
static inline wf_status wf__note_column(wf__row_work *work, const float *row, uint32_t token,
                                        float cost, wf_error *err) {
  const wf__column column = {token, row[token], cost};
  return wf__vec_push(&work->columns, column, "a row of tokens", err);
}
/* row[token] becomes its value before + sign * cost, for all columns noted since the last call. */
static inline void wf__write_columns(wf__row_work *work, float *row, float sign) {
  for (uint64_t i = 0; i < work->columns.size; i++) {
    const wf__column *column = &work->columns.data[i];
    row[column->token] = column->before + sign * column->cost;
  }
  work->columns.size = 0;
}

/* a if all bits of `mark` are set, b if none is. Without a branch, so that several are computed at
 * once. */
static inline float wf__either(uint32_t mark, float a, float b) {
  union {
    float value;
    uint32_t bits;
  } of_a = {a}, of_b = {b}, out;
  out.bits = (of_a.bits & mark) | (of_b.bits & ~mark);
  return out.value;
}

/* Tables of a part of phrases. */
typedef struct wf__phrase_child {
  uint32_t token, node;
} wf__phrase_child;
typedef struct wf__phrase_rows {
  uint64_t *first;            /* [num_nodes + 1] of its children */
  wf__phrase_child *children; /* by their tokens */
} wf__phrase_rows;

/* Tables of an n-gram model of tokens. */
typedef struct wf__ngram_rows {
  atomic_uint_fast32_t refs;
  float *unigrams;  /* [num_tokens] cost; infinite, with the sign of lm_scale: impossible */
  bool plain;       /* the others times lm_scale are below 1e18 in magnitude */
  uint64_t *first;  /* [num_words + 1] place of the first token of each word of the model */
  uint32_t *tokens; /* those that are this word */
} wf__ngram_rows;

/* bias_words.c: a model of words, and their spellings. */
typedef struct wf__bias_words {
  atomic_uint_fast32_t refs;
  wf_token_texts *texts;
  wf__wlm *lm;
  wf__words_view view;
  WF__VEC(wf__word_node) nodes;
  uint8_t *classes; /* [num_tokens] WF__TOKEN_BEGINS ... */
  uint32_t *marks;  /* [num_tokens] all bits: of BEGINS */
  float *begins;    /* [num_tokens] of tokens that begin a word: cost of their part of it */
  uint32_t *sorted; /* [num_sorted] tokens of GOES_ON by their bytes */
  uint32_t num_sorted;
  uint32_t *depends; /* [num_depends] */
  uint32_t num_depends;
} wf__bias_words;
wf_status wf__bias_words_create(const wf_lm *lm, const wf_token_texts *texts,
                                const wf_token_texts *tokens, float scale, wf__bias_words **out,
                                wf_error *err);
wf__bias_words *wf__bias_words_ref(wf__bias_words *words);
void wf__bias_words_free(wf__bias_words *words);
/* row[token] += sign * cost, for all tokens. */
wf_status wf__bias_words_add(const wf__bias_words *words, const wf_bias_state *state, float *row,
                             float sign, wf__row_work *work, wf_error *err);

struct wf_bias {
  wf_token_texts *tokens;
  wf_scorer *scorer;  /* has the arrays of view.flat; NULL: none */
  wf__bias_view view; /* of all of this */
  wf__phrase_rows phrases[WF__FLAT_PARTS];
  wf__ngram_rows *ngrams[WF__FLAT_PARTS];
  wf__bias_words *words;
  wf_fst *grammar;
};

/* bias_tables.c */
/* *start: the node after label num_tokens + 1; 0: none. */
wf_status wf__phrase_rows_create(const wf__flat_part *part, const wf_token_texts *tokens,
                                 wf__phrase_rows *out, uint32_t *start, wf_error *err);
wf_status wf__ngram_rows_create(const wf__flat_part *part, const wf_token_texts *tokens,
                                wf__ngram_rows **out, wf_error *err);
wf__ngram_rows *wf__ngram_rows_ref(wf__ngram_rows *rows);
void wf__phrase_rows_free(wf__phrase_rows *rows);
void wf__ngram_rows_free(wf__ngram_rows *rows);

#endif
