/* word_trie.c - the trie of beginnings of words. */
#include "compat/word_trie.h"

wf_status wf__word_trie_init(wf__word_trie *parts, const wf__word_trie *first, wf_error *err) {
  *parts = (wf__word_trie){.first = first};
  if (first != NULL) return WF_OK;
  return wf__vec_push(&parts->parts, ((wf__word_part){0, 0, false}), "words", err);
}

void wf__word_trie_free(wf__word_trie *parts) {
  wf__vec_free(&parts->parts);
  wf__map64_free(&parts->children);
}

static uint32_t find_child(const wf__word_trie *parts, uint64_t key) {
  uint32_t child =
      parts->first != NULL ? wf__map64_find(&parts->first->children, key) : WF__MAP64_NONE;
  return child != WF__MAP64_NONE ? child : wf__map64_find(&parts->children, key);
}

wf_status wf__word_trie_append(wf__word_trie *parts, uint32_t part, const char *text, uint32_t *out,
                               wf_error *err) {
  for (const char *at = text; *at != 0; at++) {
    unsigned char byte = (unsigned char)*at;
    uint64_t key = (uint64_t)part << 8 | byte;
    uint32_t child = find_child(parts, key);
    if (child == WF__MAP64_NONE) {
      uint64_t number = wf__word_trie_num_first(parts) + parts->parts.size;
      if (number > INT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "too many parts of words");
      WF__TRY(wf__vec_push(&parts->parts, ((wf__word_part){part, byte, false}), "words", err));
      WF__TRY(
          wf__map64_insert(&parts->children, key, (uint32_t)number, &child, NULL, "words", err));
    }
    part = child;
  }
  *out = part;
  return WF_OK;
}

void wf__word_trie_mark(wf__word_trie *parts, uint32_t part) {
  parts->parts.data[part].is_word = true;
}
