/* prefix_texts.h - texts and prefixes of a prefix beam search, each made once, with their scores.
 *
 * A text is a node of a tree: the text before it and a word. Text 0 is empty. A prefix is a text
 * and a part of the next word, which may be empty. Prefix 0 is empty. */
#ifndef WF_DECODE_PREFIX_TEXTS_H
#define WF_DECODE_PREFIX_TEXTS_H

#include "decode/prefix_search.h"

typedef struct wf__text {
  uint32_t before, word; /* word: a part (word_trie.h) */
  uint32_t num_words, lm_state;
  double score; /* of the language model and the hotwords */
} wf__text;

typedef struct wf__prefix {
  uint32_t text, part;
  bool begun; /* a word has begun that has no letters yet */
  double score;
  double
      most; /* neither it nor the prefix after a token has a higher score, but for hotword_most */
} wf__prefix;

/* What is known of a part of a word. */
typedef struct wf__part_info {
  double partial; /* score of a prefix that ends with it */
  int32_t label;  /* as a word: in the language model's table; -1: none */
  bool is_known, is_hotword;
  bool is_lost; /* neither a known word nor a hotword begins like this */
} wf__part_info;

typedef struct wf__prefix_texts {
  const wf_prefix_searcher *searcher;
  const wf_prefix_options *options;
  wf__hotwords hotwords;
  wf__word_trie parts;
  WF__VEC(wf__text) texts;
  WF__VEC(wf__prefix) prefixes;
  WF__VEC(wf__part_info) infos;
  wf__map64 text_of;   /* text << 32 | word -> text */
  wf__map64 prefix_of; /* text << 32 | part << 1 | begun -> prefix */
  wf__map64 info_of;   /* part -> info */
  WF__VEC(char) letters;
  double word_gain, word_most; /* the language model adds no more for a word; word_most: or 0 */
  double hotword_most;         /* a token that is a part of a hotword may add so much */
} wf__prefix_texts;

/* Free with wf__prefix_texts_free, also after an error. */
wf_status wf__prefix_texts_init(wf__prefix_texts *t, const wf_prefix_searcher *searcher,
                                const wf_prefix_options *options, const wf_prefix_input *input,
                                wf_error *err);
void wf__prefix_texts_free(wf__prefix_texts *t);

/* The prefix after a token. */
wf_status wf__prefix_move(wf__prefix_texts *t, uint32_t prefix, const wf_prefix_token *token,
                          uint32_t *to, wf_error *err);
/* The text if the utterance ends here. */
wf_status wf__prefix_finish(wf__prefix_texts *t, uint32_t prefix, uint32_t *text, wf_error *err);
/* A hash of what scores of continuations depend on: the last words and the part. */
uint64_t wf__prefix_history(const wf__prefix_texts *t, uint32_t prefix);
/* The score of a text at the end of the utterance. begun: an unknown word has begun after it. */
double wf__text_score(const wf__prefix_texts *t, uint32_t text, bool begun);
/* The text's last word, NUL-terminated, in the arena; NULL: out of memory. */
const char *wf__text_word(const wf__prefix_texts *t, uint32_t text, wf__arena *memory);

static inline bool wf__prefix_has_part(const wf__prefix_texts *t, uint32_t prefix) {
  return t->prefixes.data[prefix].part != 0;
}
static inline bool wf__prefix_has_begun(const wf__prefix_texts *t, uint32_t prefix) {
  return t->prefixes.data[prefix].begun;
}
static inline double wf__prefix_most(const wf__prefix_texts *t, uint32_t prefix) {
  return t->prefixes.data[prefix].most;
}
static inline double wf__prefix_score(const wf__prefix_texts *t, uint32_t prefix) {
  return t->prefixes.data[prefix].score;
}
static inline uint32_t wf__text_before(const wf__prefix_texts *t, uint32_t text) {
  return t->texts.data[text].before;
}
static inline uint32_t wf__text_num_words(const wf__prefix_texts *t, uint32_t text) {
  return t->texts.data[text].num_words;
}
static inline int64_t wf__text_state(const wf__prefix_texts *t, uint32_t text) {
  return t->searcher->lm != NULL ? (int64_t)t->texts.data[text].lm_state : -1;
}

#endif
