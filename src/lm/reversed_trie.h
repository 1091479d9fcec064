/* reversed_trie.h - the common part of the binary language models of CMU Sphinx (sphinx_lm.c)
 * and KenLM (kenlm.c): n-grams in a reversed trie.
 *
 * A unigram is the LAST word of an n-gram; a child is the word before its parent. The entries of an
 * order form one array, in which siblings are adjacent and in the order of their parents: the
 * children of entry i of order k are the entries [children_end of i - 1, children_end of i) of
 * order k + 1. The n-gram collector must have all contexts of an order before the next order. So
 * each order is passed to it by a separate traversal from the unigrams. */
#ifndef WF_LM_REVERSED_TRIE_H
#define WF_LM_REVERSED_TRIE_H

#include <string.h>

#include "lm/ngram_collector.h"
#include "math/score.h"

typedef struct wf__trie_entry {
  uint64_t word;         /* index of its unigram; unchecked */
  float cost, backoff;   /* nats; unchecked */
  uint64_t children_end; /* unchecked; unused at the highest order */
} wf__trie_entry;

typedef struct wf__reversed_trie wf__reversed_trie;
struct wf__reversed_trie {
  const wf__input *input;
  wf__ngram_collector *collector;
  wf__cursor cursor;
  uint32_t order;
  uint64_t counts[WF_LM_MAX_ORDER + 1];
  wf__trie_entry (*read_entry)(const void *format, uint32_t k, uint64_t i); /* i < counts[k] */
  const void *format;
  /* State of the traversal. */
  WF__VEC(uint32_t) label_of;             /* [counts[1]] label of each unigram */
  uint64_t position[WF_LM_MAX_ORDER + 1]; /* number of visited entries of the order */
  uint64_t num_done;                      /* n-grams, for progress */
};

/* Reads the words of the unigrams, each ended by NUL, in the order of the unigrams. They take the
 * last `size` bytes of the file, where the cursor is. */
wf_status wf__reversed_trie_words(wf__reversed_trie *trie, uint64_t size, wf_error *err);
/* Adds the n-grams of all orders to the collector. Call it after the words have been read. */
wf_status wf__reversed_trie_ngrams(wf__reversed_trie *trie, wf_error *err);
/* Fails if the order is 0 or too high. */
wf_status wf__reversed_trie_check_order(const wf__reversed_trie *trie, wf_error *err);

/* Read little-endian values at any alignment. */
static inline uint32_t wf__load_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static inline uint64_t wf__load_u64(const uint8_t *at) {
  return (uint64_t)wf__load_u32(at) | (uint64_t)wf__load_u32(at + 4) << 32;
}
static inline float wf__load_f32(const uint8_t *at) { return wf__float_of_bits(wf__load_u32(at)); }

/* Reads up to 57 bits, lowest first. Accesses 8 bytes. */
static inline uint64_t wf__read_bits(const uint8_t *bits, uint64_t offset, uint32_t width) {
  return wf__load_u64(bits + offset / 8) >> (offset % 8) & (((uint64_t)1 << width) - 1);
}
/* Number of bits for values up to `largest`. */
static inline uint32_t wf__bit_width(uint64_t largest) {
  uint32_t width = 0;
  for (; largest != 0; largest >>= 1) width++;
  return width;
}
/* Bytes of `count` packed entries, one more entry for the end of the last one's children, and 8
 * bytes of padding for wf__read_bits. */
static inline uint64_t wf__packed_bytes(uint64_t count, uint64_t entry_bits) {
  return ((count + 1) * entry_bits + 7) / 8 + 8;
}

#endif
