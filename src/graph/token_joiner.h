/* token_joiner.h - what the name of a token says about words: U+2581 and ## at its beginning,
 * brackets around it. */
#ifndef WF_GRAPH_TOKEN_JOINER_H
#define WF_GRAPH_TOKEN_JOINER_H

#include "base/error.h"

typedef enum wf__token_mark {
  WF__TOKEN_PLAIN,
  WF__TOKEN_STARTS, /* U+2581...: begins a word */
  WF__TOKEN_RESTS,  /* ##...: continues a word */
  WF__TOKEN_SPECIAL /* <unk>, [UNK], ...: no part of a text */
} wf__token_mark;

extern const char wf__token_start[]; /* U+2581 */
extern const char wf__token_rest[];  /* ## */

/* *out_text (may be NULL) receives the name without U+2581 or ##. */
wf__token_mark wf__token_mark_of(const char *name, const char **out_text);

/* The token between words; "": none. */
const char *wf__token_joiner_separator(const wf_token_joiner *joiner);

#endif
