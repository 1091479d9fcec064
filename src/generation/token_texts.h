/* token_texts.h - the tokens of a generator: kinds, and texts in the order of their bytes. */
#ifndef WF_GENERATION_TOKEN_TEXTS_H
#define WF_GENERATION_TOKEN_TEXTS_H

#include <stdatomic.h>

#include "base/error.h"
#include "base/memory.h"

struct wf_token_texts {
  atomic_uint_fast32_t refs;
  uint32_t num_tokens;
  uint8_t *kinds;    /* [num_tokens] */
  char *bytes;       /* of all texts */
  uint64_t *offsets; /* [num_tokens + 1] */
  uint32_t
      *order; /* [num_sorted] tokens with text that are neither silent nor ends, by their bytes */
  uint32_t num_sorted;
  uint32_t *special; /* [num_special] tokens that are silent or end the text, ascending */
  uint32_t num_special;
};

wf_token_texts *wf__token_texts_ref(const wf_token_texts *texts);

static inline bool wf__is_special(const wf_token_texts *texts, uint32_t token) {
  return texts->kinds[token] & (WF_TOKEN_SILENT | WF_TOKEN_ENDS);
}
static inline const unsigned char *wf__token_text(const wf_token_texts *texts, uint32_t token,
                                                  uint64_t *size) {
  *size = texts->offsets[token + 1] - texts->offsets[token];
  return (const unsigned char *)texts->bytes + texts->offsets[token];
}

/* A range of a sorted list of tokens whose texts have the same first `depth` bytes. */
typedef struct wf__token_range {
  const uint32_t *tokens; /* [end] */
  uint32_t begin, end;
  uint64_t depth;
} wf__token_range;
/* Moves `range` past the tokens whose texts end here, which come first; returns the first. */
static inline uint32_t wf__skip_ended(const wf_token_texts *texts, wf__token_range *range) {
  const uint32_t first = range->begin;
  while (range->begin < range->end) {
    const uint32_t token = range->tokens[range->begin];
    if (texts->offsets[token + 1] - texts->offsets[token] > range->depth) break;
    range->begin++;
  }
  return first;
}
/* The part of a range, without ended texts, whose texts go on with `byte`; empty: begin == end. */
wf__token_range wf__narrow_range(const wf_token_texts *texts, const wf__token_range *range,
                                 unsigned char byte);

#endif
