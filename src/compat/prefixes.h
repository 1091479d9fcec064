/* prefixes.h - what tokens with texts have spelled: prefixes, each made once, with their scores.
 *
 * A prefix is a history of complete words and a part of the next word, which may be empty. Prefix 0
 * is empty. A word is the number of the part that spells it (word_trie.h). */
#ifndef WF_COMPAT_PREFIXES_H
#define WF_COMPAT_PREFIXES_H

#include "compat/histories.h"
#include "compat/word_trie.h"

/* Hotwords in the order of strcmp. */
typedef struct wf__hotwords {
  const char **words;
  size_t count;
} wf__hotwords;

typedef struct wf__prefix {
  uint32_t history, part;
  bool begun; /* a word has begun that has no letters yet */
  double score;
  double most; /* neither it nor the prefix after a token has a higher score, but for hotword_most
                */
} wf__prefix;

/* What is known of a part of a word. */
typedef struct wf__part_info {
  double partial; /* score of a prefix that ends with it */
  int32_t label;  /* as a word: in the language model's table; -1: none */
  bool is_known, is_hotword;
  bool is_lost; /* neither a known word nor a hotword begins like this */
} wf__part_info;

typedef struct wf__prefixes {
  const wf_beam_searcher *searcher;
  const wf_beam_options *options;
  wf__histories *histories;
  wf__hotwords hotwords;
  uint8_t *in_hotword; /* [num_texts] is the token a part of a hotword? */
  wf__word_trie parts;
  WF__VEC(wf__prefix) all;
  WF__VEC(wf__part_info) infos;
  wf__map64 moves;     /* prefix << 32 | token -> prefix */
  wf__map64 prefix_of; /* history << 32 | part << 1 | begun -> prefix */
  wf__map64 info_of;   /* part -> info */
  wf__map64 seen;      /* which hypotheses a frame has */
  WF__VEC(char) letters;
  double word_gain, word_most; /* the language model adds no more for a word; word_most: or 0 */
  double hotword_most;         /* a token that is a part of a hotword may add so much */
} wf__prefixes;

/* `histories` has its start. Free with wf__prefixes_free, also after an error. */
wf_status wf__prefixes_init(wf__prefixes *p, const wf_beam_searcher *searcher,
                            const wf_beam_options *options, wf__histories *histories,
                            const wf_beam_input *input, wf_error *err);
void wf__prefixes_free(wf__prefixes *p);

/* The prefix after a token. */
wf_status wf__prefix_move(wf__prefixes *p, uint32_t prefix, int32_t token, uint32_t *to,
                          wf_error *err);
/* The prefix if the utterance ends here, which has no part. It has begun only if that is an unknown
 * word for the language model. */
wf_status wf__prefix_finish(wf__prefixes *p, uint32_t prefix, uint32_t *to, wf_error *err);
/* The score of such a prefix at the end of the utterance. */
double wf__prefix_final_score(const wf__prefixes *p, uint32_t prefix);
/* A hash of what scores of continuations depend on: the last words and the part. */
uint64_t wf__prefix_context(const wf__prefixes *p, uint32_t prefix);
/* Is the token's text a part of a hotword? */
bool wf__prefix_in_hotword(wf__prefixes *p, int32_t token);

/* --- hotwords (hotwords.c) ------------------------------------------------------------------- */

wf_status wf__hotwords_init(const wf_beam_input *input, wf__hotwords *out, wf_error *err);
/* Letters of the shortest hotword that begins with `part`; 0: there is none. *is_word: `part` is a
 * hotword. */
uint32_t wf__hotwords_find(const wf__hotwords *hotwords, const char *part, bool *is_word);
/* Is the text, which is not empty, a part of a hotword? */
bool wf__hotwords_have(const wf__hotwords *hotwords, const char *text);

/* Unicode code points of the text. */
static inline uint32_t wf__count_letters(const char *text) {
  uint32_t count = 0;
  for (; *text != 0; text++) count += ((unsigned char)*text & 0xc0) != 0x80;
  return count;
}

#endif
