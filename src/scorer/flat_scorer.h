/* flat_scorer.h - a scorer as plain arrays, and the look-ups in them, on the CPU and on a GPU. A
 * scorer must have this form to run on a GPU.
 *
 * Boosts and n-gram models are such scorers, and chains of up to three of these. A flat scorer
 * gives the same scores as the scorer it was made from, bit for bit, and its contexts are the
 * same numbers. Each part's context takes as few bits as it needs, first's above second's,
 *
 *     context  =  parts[0]'s | parts[1]'s | parts[2]'s        parts[i]'s = context >> shift &
 *              (2^bits - 1)
 *
 * One part of a chain may be a recurrent scorer, which has no arrays. It takes no bits here and
 * is scored elsewhere; these functions then cover the other parts. */
#ifndef WF_SCORER_FLAT_SCORER_H
#define WF_SCORER_FLAT_SCORER_H

#include <math.h>
#include <stdbool.h>

#include "lm/wlm.h"

enum {
  WF__FLAT_WORDS,
  WF__FLAT_PHRASES,
  WF__FLAT_NGRAM,
  WF__FLAT_RECURRENT,
  /* Boosts of a transducer, which a word or phrase that follows itself does not earn again. Only the
   * functions with `once` in their names know them. */
  WF__FLAT_WORDS_ONCE,
  WF__FLAT_PHRASES_ONCE
};
enum { WF__FLAT_PARTS = 3 };
enum { WF__LM_DEVICE, WF__LM_HYBRID, WF__LM_HOST }; /* placement */

typedef struct wf__phrase_node {
  uint32_t parent, failure, depth;
  int32_t word;  /* the word that leads here */
  float boost;   /* of the phrase that ends here, NaN: none */
  float earned;  /* boosts of all phrases that end here, including those of the failure nodes */
  float pending; /* largest partial boost of a phrase through this node */
} wf__phrase_node;

typedef struct wf__flat_part {
  int32_t kind, bits, shift;
  int32_t table_bits;     /* of boosts: a wf__map64 of 2^table_bits slots; 0: no slots */
  const uint64_t *keys;   /* words: the word; phrases: node << 32 | word */
  const uint32_t *values; /* words: bits of the cost; phrases: node */
  const wf__phrase_node *nodes;
  uint64_t num_nodes;
  wf__wlm_view lm;
  const uint32_t *word_of; /* [num_labels] word of the model, or WF__WLM_NONE: impossible */
  uint32_t num_labels;
  float lm_scale;
  uint32_t ends;  /* does the model know </s>? */
  uint32_t start; /* context at the start */
  const float
      *least; /* [num_least] no context gives the word a lower cost; NULL: least_of_others ... */
  uint32_t num_least;
  float least_of_others;     /* ... is that of all; -infinity: not known */
  const void *owner, *model; /* on the host: the scorer that owns the arrays, and its wf__wlm */
  int64_t gpu_bytes;         /* options placement and lm_gpu_bytes of the model */
  int32_t placement, zero;
  int32_t node_bits, length_bits; /* of phrases once: parts of the context (phrase_boost.c) */
} wf__flat_part;

typedef struct wf__flat_scorer {
  wf__flat_part parts[WF__FLAT_PARTS];
  int32_t num_parts, bits;
  uint32_t right; /* with three parts, costs are summed as a + (b + c), else as (a + b) + c */
  float least;    /* no word costs less; -infinity: not known */
  uint64_t start;
} wf__flat_scorer;

static inline WF__HD uint32_t wf__flat_find(const wf__flat_part *part, uint64_t key) {
  if (part->table_bits == 0) return UINT32_MAX;
  uint64_t mask = ((uint64_t)1 << part->table_bits) - 1;
  for (uint64_t slot = wf__mix64(key) & mask;; slot = (slot + 1) & mask) {
    if (part->keys[slot] == key) return part->values[slot];
    if (part->keys[slot] == UINT64_MAX) return UINT32_MAX;
  }
}

/* The node that `word` leads to, through failure nodes. */
static inline WF__HD uint32_t wf__flat_follow(const wf__flat_part *part, uint32_t node,
                                              uint32_t word) {
  for (;;) {
    uint32_t child = wf__flat_find(part, (uint64_t)node << 32 | word);
    if (child != UINT32_MAX) return child;
    if (node == 0) return 0;
    node = part->nodes[node].failure;
  }
}

/* A damaged model may hold any value. */
static inline WF__HD float wf__flat_sound(float cost) {
  return fabsf(cost) <= 1e20f ? cost : INFINITY;
}

static inline WF__HD float wf__flat_part_step(const wf__flat_part *part, uint32_t context,
                                              uint32_t word, uint32_t *next) {
  *next = 0;
  if (part->kind == WF__FLAT_WORDS) {
    union {
      uint32_t bits;
      float cost;
    } found = {wf__flat_find(part, word)};
    return found.bits == UINT32_MAX ? 0 : found.cost;
  }
  if (part->kind == WF__FLAT_PHRASES) {
    uint32_t to = wf__flat_follow(part, context, word);
    *next = to;
    return part->nodes[context].pending - part->nodes[to].pending - part->nodes[to].earned;
  }
  uint32_t own = word < part->num_labels ? part->word_of[word] : WF__WLM_NONE, at;
  if (own == WF__WLM_NONE) return INFINITY;
  return wf__flat_sound(part->lm_scale * wf__wlm_step(&part->lm, context, own, next, &at));
}

/* The same for all kinds but recurrent ones: word_boost.c and phrase_boost.c, once_step. */
static inline WF__HD float wf__flat_words_once(const wf__flat_part *part, uint32_t context,
                                               uint32_t word, uint32_t *next) {
  union {
    uint32_t bits;
    float cost;
  } found = {wf__flat_find(part, word)};
  const float cost = found.bits == UINT32_MAX ? 0 : found.cost;
  *next = cost < 0 ? word : 0;
  return cost < 0 && context == word ? 0 : cost;
}
static inline WF__HD bool wf__flat_favours(const wf__phrase_node *node) { return node->boost > 0; }
static inline WF__HD float wf__flat_phrases_once(const wf__flat_part *part, uint32_t context,
                                                 uint32_t word, uint32_t *next) {
  const wf__phrase_node *nodes = part->nodes;
  const uint32_t from = context >> (part->node_bits + part->length_bits),
                 to = wf__flat_follow(part, from, word);
  uint32_t phrase = context >> part->length_bits & ((1u << part->node_bits) - 1),
           length = context & ((1u << part->length_bits) - 1), of_word = phrase;
  float cost = nodes[from].pending - nodes[to].pending - nodes[to].earned;
  if (from != 0 && nodes[from].word == (int32_t)word) {
    const uint32_t alone = wf__flat_find(part, word);
    cost += alone != UINT32_MAX && wf__flat_favours(&nodes[alone]) ? nodes[alone].boost : 0;
  }
  while (phrase != 0 && nodes[of_word].depth > length + 1) of_word = nodes[of_word].parent;
  if (phrase == 0 || nodes[of_word].word != (int32_t)word) {
    phrase = to;
    length = 0;
    while (phrase != 0 && !(nodes[phrase].depth > 1 && wf__flat_favours(&nodes[phrase])))
      phrase = nodes[phrase].failure;
  } else if (++length == nodes[phrase].depth) {
    cost += nodes[phrase].boost;
    length = 0;
  }
  *next = (to << part->node_bits | phrase) << part->length_bits | length;
  return cost;
}
static inline WF__HD float wf__flat_part_step_once(const wf__flat_part *part, uint32_t context,
                                                   uint32_t word, uint32_t *next) {
  if (part->kind == WF__FLAT_WORDS_ONCE) return wf__flat_words_once(part, context, word, next);
  if (part->kind == WF__FLAT_PHRASES_ONCE) return wf__flat_phrases_once(part, context, word, next);
  return wf__flat_part_step(part, context, word, next);
}

static inline WF__HD float wf__flat_part_final(const wf__flat_part *part, uint32_t context) {
  uint32_t next, at;
  if (part->kind == WF__FLAT_WORDS) return 0;
  if (part->kind == WF__FLAT_PHRASES) return part->nodes[context].pending;
  if (!part->ends) return INFINITY;
  return wf__flat_sound(part->lm_scale *
                        wf__wlm_step(&part->lm, context, part->lm.eos, &next, &at));
}

static inline WF__HD float wf__flat_part_final_once(const wf__flat_part *part, uint32_t context) {
  if (part->kind == WF__FLAT_WORDS_ONCE) return 0;
  if (part->kind == WF__FLAT_PHRASES_ONCE)
    return part->nodes[context >> (part->node_bits + part->length_bits)].pending;
  return wf__flat_part_final(part, context);
}

static inline WF__HD uint32_t wf__flat_context(const wf__flat_part *part, uint64_t context) {
  return (uint32_t)(context >> part->shift & (((uint64_t)1 << part->bits) - 1));
}

/* Number of contexts of a scorer whose parts are boosts, at least 2. */
static inline WF__HD uint64_t wf__flat_contexts(const wf__flat_scorer *scorer) {
  const bool is_one = scorer->num_parts == 1 && scorer->parts[0].kind == WF__FLAT_PHRASES;
  const uint64_t all = is_one ? scorer->parts[0].num_nodes : (uint64_t)1 << scorer->bits;
  return all > 2 ? all : 2;
}

/* Sum of the parts' costs, in the order in which the chain adds them. */
typedef struct wf__flat_sum {
  float first, rest;
} wf__flat_sum;
static inline WF__HD void wf__flat_add(const wf__flat_scorer *scorer, int i, float cost,
                                       wf__flat_sum *sum) {
  if (scorer->right && i > 0)
    sum->rest = i == 1 ? cost : sum->rest + cost;
  else
    sum->first = i == 0 ? cost : sum->first + cost;
}
static inline WF__HD float wf__flat_total(const wf__flat_scorer *scorer, wf__flat_sum sum) {
  return scorer->right ? sum.first + sum.rest : sum.first;
}

/* The same as wf__scorer_ops.step. `once`: the form of the scorer for transducers. */
static inline WF__HD float wf__flat_step_of(const wf__flat_scorer *scorer, uint64_t context,
                                            uint32_t word, bool once, uint64_t *next) {
  wf__flat_sum sum = {0, 0};
  uint64_t to = 0;
  for (int i = 0; i < scorer->num_parts; i++) {
    const wf__flat_part *part = &scorer->parts[i];
    const uint32_t at = wf__flat_context(part, context);
    uint32_t part_next;
    const float cost = once ? wf__flat_part_step_once(part, at, word, &part_next)
                            : wf__flat_part_step(part, at, word, &part_next);
    wf__flat_add(scorer, i, cost, &sum);
    to |= (uint64_t)part_next << part->shift;
  }
  *next = to;
  return wf__flat_total(scorer, sum);
}
static inline WF__HD float wf__flat_step(const wf__flat_scorer *scorer, uint64_t context,
                                         uint32_t word, uint64_t *next) {
  return wf__flat_step_of(scorer, context, word, false, next);
}
static inline WF__HD float wf__flat_step_once(const wf__flat_scorer *scorer, uint64_t context,
                                              uint32_t word, uint64_t *next) {
  return wf__flat_step_of(scorer, context, word, true, next);
}

/* No context gives the word a lower cost, to the last bit. */
static inline WF__HD float wf__flat_least(const wf__flat_scorer *scorer, uint32_t word) {
  wf__flat_sum sum = {0, 0};
  for (int i = 0; i < scorer->num_parts; i++) {
    const wf__flat_part *part = &scorer->parts[i];
    const float least = word < part->num_least ? part->least[word] : part->least_of_others;
    wf__flat_add(scorer, i, least, &sum);
  }
  return wf__flat_total(scorer, sum);
}

/* A step (or, if `ends`, the end) of a chain with a recurrent part, whose cost is `recurrent`. */
static inline WF__HD float wf__flat_chained(const wf__flat_scorer *scorer, uint64_t context,
                                            bool ends, uint32_t word, float recurrent,
                                            uint64_t *next) {
  wf__flat_sum sum = {0, 0};
  uint64_t to = 0;
  for (int i = 0; i < scorer->num_parts; i++) {
    const wf__flat_part *part = &scorer->parts[i];
    const uint32_t at = wf__flat_context(part, context);
    uint32_t part_next = 0;
    float cost = recurrent;
    if (part->kind != WF__FLAT_RECURRENT)
      cost = ends ? wf__flat_part_final(part, at) : wf__flat_part_step(part, at, word, &part_next);
    wf__flat_add(scorer, i, cost, &sum);
    to |= (uint64_t)part_next << part->shift;
  }
  *next = to;
  return wf__flat_total(scorer, sum);
}

/* A pair of contexts as one number, as chain.c makes it: the first's bits above the second's if
 * both fit, else a hash. */
static inline WF__HD uint64_t wf__chain_context(uint64_t first, int first_bits, uint64_t second,
                                                int second_bits) {
  if (first_bits + second_bits > 64) {
    const uint64_t hash = wf__hash_combine(wf__mix64(first), second);
    return hash - (hash == UINT64_MAX); /* WF__MAP64_EMPTY */
  }
  return second_bits == 64 ? second
                           : first << second_bits | second; /* 64: the first has one context, 0 */
}

/* The chain's number of a context, from the flat context of the other parts and the context of the
 * recurrent part. */
static inline WF__HD uint64_t wf__flat_number(const wf__flat_scorer *scorer, uint64_t context,
                                              uint64_t recurrent) {
  uint64_t of[WF__FLAT_PARTS];
  int bits[WF__FLAT_PARTS], last = scorer->num_parts - 1;
  for (int i = 0; i <= last; i++) {
    const wf__flat_part *part = &scorer->parts[i];
    of[i] = part->kind == WF__FLAT_RECURRENT ? recurrent : wf__flat_context(part, context);
    bits[i] = part->kind == WF__FLAT_RECURRENT ? 64 : part->bits;
  }
  while (last > 0) { /* combines the last two, or the first two */
    const int at = scorer->right ? last - 1 : 0;
    of[at] = wf__chain_context(of[at], bits[at], of[at + 1], bits[at + 1]);
    bits[at] = bits[at] + bits[at + 1] > 64 ? 64 : bits[at] + bits[at + 1];
    if (at + 2 <= last) {
      of[at + 1] = of[at + 2];
      bits[at + 1] = bits[at + 2];
    }
    last--;
  }
  return of[0];
}

static inline WF__HD float wf__flat_final_of(const wf__flat_scorer *scorer, uint64_t context,
                                             bool once) {
  wf__flat_sum sum = {0, 0};
  for (int i = 0; i < scorer->num_parts; i++) {
    const wf__flat_part *part = &scorer->parts[i];
    const uint32_t at = wf__flat_context(part, context);
    wf__flat_add(scorer, i,
                 once ? wf__flat_part_final_once(part, at) : wf__flat_part_final(part, at), &sum);
  }
  return wf__flat_total(scorer, sum);
}
static inline WF__HD float wf__flat_final(const wf__flat_scorer *scorer, uint64_t context) {
  return wf__flat_final_of(scorer, context, false);
}
static inline WF__HD float wf__flat_final_once(const wf__flat_scorer *scorer, uint64_t context) {
  return wf__flat_final_of(scorer, context, true);
}

#endif
