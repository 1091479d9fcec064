/* word_trie.h - beginnings of words, as numbers: a trie over bytes in two layers. The first holds
 * the known words; it is immutable and shared by searches. The second grows during a search by what
 * the first lacks. Numbers are at most INT32_MAX; those of the first layer come first. Part 0 is
 * empty. */
#ifndef WF_COMPAT_WORD_TRIE_H
#define WF_COMPAT_WORD_TRIE_H

#include "base/map64.h"

typedef struct wf__word_part {
  uint32_t parent;
  unsigned char byte;
  bool is_word; /* a known word */
} wf__word_part;

typedef struct wf__word_trie {
  const struct wf__word_trie *first; /* NULL: this is the first layer */
  WF__VEC(wf__word_part) parts;
  wf__map64 children; /* parent << 8 | byte -> part */
} wf__word_trie;

/* `first`: NULL for a first layer. Free with wf__word_trie_free, also after an error. */
wf_status wf__word_trie_init(wf__word_trie *parts, const wf__word_trie *first, wf_error *err);
void wf__word_trie_free(wf__word_trie *parts);
/* Appends text to a part. */
wf_status wf__word_trie_append(wf__word_trie *parts, uint32_t part, const char *text, uint32_t *out,
                               wf_error *err);
/* Makes a part of the first layer a known word. */
void wf__word_trie_mark(wf__word_trie *parts, uint32_t part);

static inline uint64_t wf__word_trie_num_first(const wf__word_trie *parts) {
  return parts->first != NULL ? parts->first->parts.size : 0;
}
static inline const wf__word_part *wf__word_trie_at(const wf__word_trie *parts, uint32_t part) {
  uint64_t num_first = wf__word_trie_num_first(parts);
  return part < num_first ? &parts->first->parts.data[part] : &parts->parts.data[part - num_first];
}
/* Does a known word begin like this? */
static inline bool wf__word_trie_begins_word(const wf__word_trie *parts, uint32_t part) {
  return part < wf__word_trie_num_first(parts);
}

#endif
