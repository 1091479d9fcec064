/* prefix_search.h - the CTC prefix beam search of one utterance.
 *
 * The unit of the search is a prefix: complete words (a `text`, a node in a tree of texts) and a
 * part of the next word. Hypotheses are told apart by prefix and last token, since the same token
 * again needs a blank in between. Texts, prefixes and moves from prefix to prefix are made once, so
 * a frame costs a look-up or two per hypothesis and token. */
#ifndef WF_DECODE_PREFIX_SEARCH_H
#define WF_DECODE_PREFIX_SEARCH_H

#include "decode/word_trie.h"

struct wf_prefix_searcher {
  wf_prefix_token *tokens; /* [num_tokens] */
  int32_t num_tokens, blank;
  wf_lm *lm;       /* or NULL */
  double lm_least; /* no word costs less */
  bool texts_end;  /* a token with text may end its word */
  wf__word_trie words;
};

/* Fills `out`, initially zero. After an error, too, its memory is the caller's to free.
 * all_columns: for tests. Looks also at columns that cannot survive; the result is the same. */
wf_status wf__prefix_search(const wf_prefix_searcher *searcher, const wf_prefix_options *options,
                            const wf_prefix_input *input, bool all_columns, wf_prefix_result *out,
                            wf_error *err);

/* Unicode code points of the text. */
static inline uint32_t wf__count_letters(const char *text) {
  uint32_t count = 0;
  for (; *text != 0; text++) count += ((unsigned char)*text & 0xc0) != 0x80;
  return count;
}

/* --- hotwords (prefix_hotwords.c) ----------------------------------------------------------- */

/* Hotwords in the order of strcmp. */
typedef struct wf__hotwords {
  const char **words;
  size_t count;
} wf__hotwords;
wf_status wf__hotwords_init(const wf_prefix_input *input, wf__hotwords *out, wf_error *err);
/* Letters of the shortest hotword that begins with `part`; 0: there is none. *is_word: `part` is a
 * hotword. */
uint32_t wf__hotwords_find(const wf__hotwords *hotwords, const char *part, bool *is_word);
/* Is the text, which is not empty, a part of a hotword? */
bool wf__hotwords_have(const wf__hotwords *hotwords, const char *text);

#endif
