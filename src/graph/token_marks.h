/* token_marks.h - what the name of a token says: U+2581 and ## at its beginning, brackets around
 * it, or bytes. */
#ifndef WF_GRAPH_TOKEN_MARKS_H
#define WF_GRAPH_TOKEN_MARKS_H

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
/* Writes the bytes of a name such as <0xE7> or <0xC3><0xA9>, and their number. False: it is another
 * name. `bytes` NULL: only tells. */
bool wf__escapes_to_bytes(const char *name, char *bytes, size_t *out_size);

#endif
