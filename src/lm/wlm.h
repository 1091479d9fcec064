/* wlm.h - the large language model: arrays of a mapped file, laid out for look-ups. The CPU and the
 * GPU use the same layout.
 *
 *   unigrams  [num_words]    {cost, next} by word: the arcs of state 0, the empty history. next is
 *                            WF__WLM_NONE if the model lacks the word
 *   states    [num_states]   {where, back-off state, back-off cost}, 16 bytes. A back-off always
 *                            leads to a smaller number
 *   tags      [num_small]    16 bits of the word's hash, for small states: those of at most
 *                            WF__WLM_SMALL arcs. All tags of a state are compared at once
 *   buckets   [num_buckets]  {base, count, more, 13 tags}, 32 bytes, one memory sector: hash tables
 *                            of the arcs of large states
 *   small     [num_small]    {word, cost, next}: the arcs of `tags`, sorted by word within a state
 *   large     [num_large]    the arcs of `buckets`, in the order of the buckets
 *
 *   where = first (39 bits) | large (1 bit) | count (24 bits)
 *     small state: arcs and tags [first, first + count)
 *     large state: buckets [first, first + count)
 *
 * The home bucket of a word is hash * count / 2^32 of its state. Arcs that do not fit into a full
 * bucket go to the next one (`more` is set). A look-up reads the state and one sector of tags, and
 * then only arcs whose tag matches. So if the state lacks the word, no arc is read, except in 1 of
 * 5,000 look-ups. A GPU keeps everything but the arcs, the index, in its memory. The arcs may stay
 * in host memory.
 *
 * An arc takes 12 bytes. A packed arc takes word_bits + next_bits + cost_bits bits: word, next,
 * then the bits of the float or an index into the codebook.
 *
 * The file is not trusted: a look-up that finds a number out of range ends as if the word were
 * missing. */
#ifndef WF_LM_WLM_H
#define WF_LM_WLM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "math/hash.h"

#define WF__WLM_NONE UINT32_MAX
enum { WF__WLM_SMALL = 8, WF__WLM_BUCKET = 13 };
#define WF__WLM_FIRST_BITS 39
#define WF__WLM_LARGE ((uint64_t)1 << WF__WLM_FIRST_BITS)
#define WF__WLM_BASE_BITS 43
#define WF__WLM_MORE ((uint64_t)1 << 47)

typedef struct wf__wlm_unigram {
  float cost;
  uint32_t next;
} wf__wlm_unigram;

typedef struct wf__wlm_state {
  uint64_t where;
  uint32_t backoff;
  float backoff_cost;
} wf__wlm_state;

typedef struct wf__wlm_bucket {
  uint16_t head[3]; /* 48 bits: base (43), count (4), more (1) */
  uint16_t tags[WF__WLM_BUCKET];
} wf__wlm_bucket;

typedef struct wf__wlm_arc {
  uint32_t word;
  float cost;
  uint32_t next;
} wf__wlm_arc;

/* Counters for arcs in host memory: cache hits, reads, cycles that warps waited for the reads. */
enum { WF__WLM_HITS, WF__WLM_READS, WF__WLM_WAITED, WF__WLM_COUNTERS };

typedef struct wf__wlm_view {
  const wf__wlm_unigram *unigrams;
  const wf__wlm_state *states;
  const uint16_t *tags;
  const wf__wlm_bucket *buckets;
  const uint8_t *small, *large;
  const float *codebook; /* costs of packed arcs; NULL: packed arcs have floats */
  uint64_t num_states, num_small, num_buckets, num_large;
  uint32_t num_words, start;
  uint32_t bos, eos, unk;                  /* unk: WF__WLM_NONE if there is none */
  uint8_t word_bits, next_bits, cost_bits; /* 0: arcs are not packed */
  /* On a GPU, if arcs are in host memory: see wf__wlm_read_arc. */
  uint64_t *counters; /* [WF__WLM_COUNTERS]; NULL: neither counting nor cache */
  uint64_t *cache;    /* [2^cache_bits][WF__WLM_WAYS][WF__WLM_ENTRY]; NULL: none */
  int32_t cache_bits;
} wf__wlm_view;

static inline WF__HD uint64_t wf__wlm_hash(uint32_t word) { return wf__mix64((uint64_t)word + 1); }
static inline WF__HD uint16_t wf__wlm_tag(uint64_t hash) { return (uint16_t)hash; }
/* Home bucket of a word, among the `count` buckets of a state. */
static inline WF__HD uint64_t wf__wlm_home(uint64_t hash, uint64_t count) {
  return ((hash >> 32) * count) >> 32;
}

static inline WF__HD uint64_t wf__wlm_head(const wf__wlm_bucket *bucket) {
  return (uint64_t)bucket->head[0] | (uint64_t)bucket->head[1] << 16 |
         (uint64_t)bucket->head[2] << 32;
}

/* Reads `size` bits, at most 32, at bit `at`. The array must have 8 bytes of padding. */
static inline WF__HD uint32_t wf__wlm_bits(const uint8_t *bytes, uint64_t at, int size) {
  uint64_t word;
  memcpy(&word, bytes + at / 8, sizeof word);
  return (uint32_t)(word >> at % 8) & (uint32_t)(((uint64_t)1 << size) - 1);
}

static inline WF__HD wf__wlm_arc wf__wlm_arc_at(const wf__wlm_view *view, const uint8_t *arcs,
                                                uint64_t i) {
  wf__wlm_arc arc;
  if (view->cost_bits == 0) {
    memcpy(&arc, arcs + i * sizeof arc, sizeof arc);
    return arc;
  }
  uint64_t at = i * (uint64_t)(view->word_bits + view->next_bits + view->cost_bits);
  arc.word = wf__wlm_bits(arcs, at, view->word_bits);
  arc.next = wf__wlm_bits(arcs, at + view->word_bits, view->next_bits);
  uint32_t code = wf__wlm_bits(arcs, at + view->word_bits + view->next_bits, view->cost_bits);
  if (view->codebook != NULL)
    arc.cost = view->codebook[code];
  else
    memcpy(&arc.cost, &code, sizeof code);
  return arc;
}

#ifdef WF__WLM_CACHED
/* For ngram_cache.cuh. There the arrays are aligned, and arcs may be in host memory, with a
 * set-associative cache in GPU memory. A cache entry is three 64-bit words: {tag | word},
 * {tag | cost}, {tag | next}. Set and tag identify one arc, so every thread stores the same values
 * with a tag. So no lock is needed: if all three words have the right tag, they are the arc, even
 * if other threads write the entry meanwhile. Tag 0: empty. */
enum { WF__WLM_WAYS = 4, WF__WLM_ENTRY = 3 };

/* Extracts `size` bits, at most 32, at bit `at` of three 64-bit words. */
static inline WF__HD uint32_t wf__wlm_field(uint64_t low, uint64_t middle, uint64_t high, int at,
                                            int size) {
  if (at >= 64) low = middle, middle = high, at -= 64;
  uint64_t word = low >> at | (at > 0 ? middle << (64 - at) : 0);
  return (uint32_t)word & (uint32_t)(((uint64_t)1 << size) - 1);
}

static inline WF__HD wf__wlm_arc wf__wlm_aligned_arc(const wf__wlm_view *view, const uint8_t *arcs,
                                                     uint64_t i) {
  wf__wlm_arc arc;
  if (view->cost_bits == 0) return ((const wf__wlm_arc *)(const void *)arcs)[i];
  const int bits = view->word_bits + view->next_bits + view->cost_bits,
            at = (int)(i * (uint64_t)bits % 64);
  const uint64_t *words = (const uint64_t *)(const void *)arcs + i * (uint64_t)bits / 64;
  const uint64_t low = words[0], middle = at + bits > 64 ? words[1] : 0,
                 high = at + bits > 128 ? words[2] : 0;
  arc.word = wf__wlm_field(low, middle, high, at, view->word_bits);
  arc.next = wf__wlm_field(low, middle, high, at + view->word_bits, view->next_bits);
  union {
    uint32_t bits;
    float cost;
  } code = {
      wf__wlm_field(low, middle, high, at + view->word_bits + view->next_bits, view->cost_bits)};
  arc.cost = view->codebook != NULL ? view->codebook[code.bits] : code.cost;
  return arc;
}

static inline WF__HD wf__wlm_arc wf__wlm_read_arc(const wf__wlm_view *view, const uint8_t *arcs,
                                                  uint64_t i) {
  if (view->counters == NULL) return wf__wlm_aligned_arc(view, arcs, i);
  const uint64_t key = i * 2 + (arcs == view->large), tag = (key >> view->cache_bits) + 1;
  volatile uint64_t *set = view->cache;
  union {
    uint32_t bits;
    float cost;
  } cost;
  if (set != NULL) {
    set += (key & (((uint64_t)1 << view->cache_bits) - 1)) * WF__WLM_WAYS * WF__WLM_ENTRY;
    for (int way = 0; way < WF__WLM_WAYS; way++) {
      volatile uint64_t *entry = set + way * WF__WLM_ENTRY;
      const uint64_t word = entry[0], value = entry[1], next = entry[2];
      if (word >> 32 != tag || value >> 32 != tag || next >> 32 != tag) continue;
      wf__wlm_add(&view->counters[WF__WLM_HITS]);
      cost.bits = (uint32_t)value;
      return (wf__wlm_arc){(uint32_t)word, cost.cost, (uint32_t)next};
    }
  }
  const uint32_t began = wf__wlm_clock();
  const wf__wlm_arc arc = wf__wlm_aligned_arc(view, arcs, i);
  wf__wlm_waited(&view->counters[WF__WLM_WAITED], began, arc.word & arc.next);
  const uint64_t turn = wf__wlm_add(&view->counters[WF__WLM_READS]);
  if (set == NULL) return arc;
  volatile uint64_t *entry = set + (turn % WF__WLM_WAYS) * WF__WLM_ENTRY;
  cost.cost = arc.cost;
  entry[0] = tag << 32 | arc.word;
  entry[1] = tag << 32 | cost.bits;
  entry[2] = tag << 32 | arc.next;
  return arc;
}

/* 16 bytes, read by one instruction. The threads of a warp read scattered addresses, so the number
 * of load instructions matters, not the number of bytes. */
typedef struct __attribute__((aligned(16))) wf__wlm_pair {
  uint64_t low, high;
} wf__wlm_pair;

/* Compares eight tags with `tag`. Returns a bit mask of the matches. */
static inline WF__HD uint32_t wf__wlm_equal(wf__wlm_pair tags, uint16_t tag) {
  uint32_t equal = 0;
  for (int i = 0; i < 4; i++)
    equal |= (uint32_t)((uint16_t)(tags.low >> 16 * i) == tag) << i |
             (uint32_t)((uint16_t)(tags.high >> 16 * i) == tag) << (4 + i);
  return equal;
}

static inline WF__HD uint32_t wf__wlm_bucket_hits(const wf__wlm_bucket *bucket, uint16_t tag,
                                                  uint64_t *head) {
  const wf__wlm_pair *pairs = (const wf__wlm_pair *)(const void *)bucket, first = pairs[0],
                     second = pairs[1];
  *head = first.low & (((uint64_t)1 << 48) - 1);
  return (wf__wlm_equal(first, tag) | wf__wlm_equal(second, tag) << 8) >> 3;
}

/* The same for the tags [first, first + count), which need not be aligned to 16 bytes. */
static inline WF__HD uint32_t wf__wlm_small_hits(const uint16_t *tags, uint64_t first,
                                                 uint64_t count, uint16_t tag) {
  const wf__wlm_pair *pairs = (const wf__wlm_pair *)(const void *)tags + first / 8;
  const uint32_t at = (uint32_t)(first % 8);
  const wf__wlm_pair low = pairs[0], high = at + count > 8 ? pairs[1] : low;
  return (wf__wlm_equal(low, tag) | wf__wlm_equal(high, tag) << 8) >> at &
         (((uint32_t)1 << count) - 1);
}

static inline WF__HD wf__wlm_state wf__wlm_state_at(const wf__wlm_view *view, uint32_t state) {
  const wf__wlm_pair pair = ((const wf__wlm_pair *)(const void *)view->states)[state];
  union {
    uint32_t bits;
    float cost;
  } cost = {(uint32_t)(pair.high >> 32)};
  return (wf__wlm_state){pair.low, (uint32_t)pair.high, cost.cost};
}

static inline WF__HD wf__wlm_unigram wf__wlm_unigram_at(const wf__wlm_view *view, uint32_t word) {
  const uint64_t pair = ((const uint64_t *)(const void *)view->unigrams)[word];
  union {
    uint32_t bits;
    float cost;
  } cost = {(uint32_t)pair};
  return (wf__wlm_unigram){cost.cost, (uint32_t)(pair >> 32)};
}
#else
#define wf__wlm_read_arc wf__wlm_arc_at

static inline WF__HD uint32_t wf__wlm_bucket_hits(const wf__wlm_bucket *bucket, uint16_t tag,
                                                  uint64_t *head) {
  uint32_t hits = 0;
  *head = wf__wlm_head(bucket);
  for (uint32_t i = 0; i < WF__WLM_BUCKET; i++) hits |= (uint32_t)(bucket->tags[i] == tag) << i;
  return hits;
}

static inline WF__HD uint32_t wf__wlm_small_hits(const uint16_t *tags, uint64_t first,
                                                 uint64_t count, uint16_t tag) {
  uint32_t hits = 0; /* no early exit: all tags can be loaded at once */
  for (uint32_t i = 0; i < WF__WLM_SMALL; i++)
    hits |= (uint32_t)(i < count && tags[first + i] == tag) << i;
  return hits;
}

static inline WF__HD wf__wlm_state wf__wlm_state_at(const wf__wlm_view *view, uint32_t state) {
  return view->states[state];
}
static inline WF__HD wf__wlm_unigram wf__wlm_unigram_at(const wf__wlm_view *view, uint32_t word) {
  return view->unigrams[word];
}
#endif

/* Index of the lowest set bit. */
static inline WF__HD uint32_t wf__wlm_lowest(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return (uint32_t)__ffs((int)bits) - 1;
#else
  return (uint32_t)__builtin_ctz(bits);
#endif
}

/* The arcs with a matching tag are visited through the bit mask of matches. On a GPU, the threads
 * of a warp thus read their first matching arcs together, wherever these are in their buckets. */
static inline WF__HD bool wf__wlm_find_large(const wf__wlm_view *view, uint64_t first,
                                             uint64_t count, uint32_t word, uint64_t hash,
                                             wf__wlm_arc *out) {
  if (first + count > view->num_buckets) return false;
  for (uint64_t b = first + wf__wlm_home(hash, count); b < first + count; b++) {
    uint64_t head;
    uint32_t hits = wf__wlm_bucket_hits(&view->buckets[b], wf__wlm_tag(hash), &head);
    const uint64_t base = head & (((uint64_t)1 << WF__WLM_BASE_BITS) - 1);
    const uint32_t size = (uint32_t)(head >> WF__WLM_BASE_BITS) & 15;
    for (hits &= ((uint32_t)1 << size) - 1; hits != 0; hits &= hits - 1) {
      const uint64_t i = base + wf__wlm_lowest(hits);
      if (i >= view->num_large) break;
      *out = wf__wlm_read_arc(view, view->large, i);
      if (out->word == word) return true;
    }
    if (!(head & WF__WLM_MORE)) return false;
  }
  return false;
}

/* Finds the explicit arc of a state other than 0; false if there is none. */
static inline WF__HD bool wf__wlm_find(const wf__wlm_view *view, uint64_t where, uint32_t word,
                                       uint64_t hash, wf__wlm_arc *out) {
  uint64_t first = where & (WF__WLM_LARGE - 1), count = where >> (WF__WLM_FIRST_BITS + 1);
  if (where & WF__WLM_LARGE) return wf__wlm_find_large(view, first, count, word, hash, out);
  if (first + count > view->num_small || count > WF__WLM_SMALL) return false;
  for (uint32_t hits = wf__wlm_small_hits(view->tags, first, count, wf__wlm_tag(hash)); hits != 0;
       hits &= hits - 1) {
    *out = wf__wlm_read_arc(view, view->small, first + wf__wlm_lowest(hits));
    if (out->word == word) return true;
  }
  return false;
}

static inline bool wf__wlm_knows(const wf__wlm_view *view, uint32_t word) {
  return word < view->num_words && view->unigrams[word].next != WF__WLM_NONE;
}

#if defined(__CUDACC__)
static inline WF__HD void wf__wlm_fetch(const void *place) { (void)place; }
#else
static inline void wf__wlm_fetch(const void *place) { __builtin_prefetch(place); }
#endif

/* Prefetches the tags that wf__wlm_find reads. */
static inline WF__HD void wf__wlm_fetch_state(const wf__wlm_view *view, uint64_t where,
                                              uint64_t hash) {
  uint64_t first = where & (WF__WLM_LARGE - 1), count = where >> (WF__WLM_FIRST_BITS + 1);
  if (where & WF__WLM_LARGE) {
    if (first + count <= view->num_buckets)
      wf__wlm_fetch(&view->buckets[first + wf__wlm_home(hash, count)]);
  } else if (first + count <= view->num_small) {
    wf__wlm_fetch(&view->tags[first]);
  }
}

/* Returns `next`, the state after `word`. Most often it is the state of the word alone. A branch on
 * that lets the processor speculate before `next` has been loaded, so that the dependent look-ups
 * of a sentence overlap. The asm statement hides that both values are equal there: the compiler
 * would else use `next`. */
static inline WF__HD uint32_t wf__wlm_next_state(const wf__wlm_view *view, uint32_t word,
                                                 uint32_t next) {
#if !defined(WF__WLM_CACHED) && !defined(__CUDACC__) && defined(__GNUC__)
  uint32_t guess = view->unigrams[word].next, same = guess;
  __asm__("" : "+r"(same));
  if (next == guess) {
    __asm__ volatile(""); /* forces a branch instead of a conditional move */
    return same;
  }
#else
  (void)view, (void)word;
#endif
  return next;
}

/* Cost of a word that the model knows, summed in float32 in the order of the back-off hops; `*at`
 * is the state whose arc was taken. */
static inline WF__HD float wf__wlm_step(const wf__wlm_view *view, uint32_t state, uint32_t word,
                                        uint32_t *next, uint32_t *at) {
  float cost = 0;
  uint64_t hash = wf__wlm_hash(word);
  wf__wlm_arc arc;
  wf__wlm_state record = wf__wlm_state_at(view, state);
  if (state != 0) wf__wlm_fetch_state(view, record.where, hash);
  while (state != 0) {
    const uint32_t backoff = record.backoff < state ? record.backoff : 0;
    const wf__wlm_state lower = wf__wlm_state_at(view, backoff); /* most likely needed next */
    if (backoff != 0)
      wf__wlm_fetch_state(view, lower.where, hash);
    else
      wf__wlm_fetch(&view->unigrams[word]);
    if (wf__wlm_find(view, record.where, word, hash, &arc)) {
      *next = wf__wlm_next_state(view, word, arc.next < view->num_states ? arc.next : 0);
      *at = state;
      wf__wlm_fetch(&view->states[*next]);
      return cost + arc.cost;
    }
    cost += record.backoff_cost;
    state = backoff;
    record = lower;
  }
  const wf__wlm_unigram unigram = wf__wlm_unigram_at(view, word);
  *next = unigram.next < view->num_states ? unigram.next : 0;
  *at = 0;
  wf__wlm_fetch(&view->states[*next]);
  return cost + unigram.cost;
}

#endif
