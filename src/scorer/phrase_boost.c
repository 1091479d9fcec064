/* phrase_boost.c - boosts for phrases: the automaton of Aho & Corasick 1975 over words, with
 * boosts added in advance and refunded.
 *
 *   nodes  the trie of the phrases; node 0: no phrase has begun. A context is the node of the
 *          longest suffix of the words so far that begins a phrase.
 *   next   {node, word} -> node   in the trie only; where there is no such edge, the search
 *          continues from the failure node, the node of the longest shorter suffix
 *
 * The total of a word sequence is the sum of the boosts of all occurrences of phrases in it. So
 * that the beginning of a phrase survives the beam, each of its words adds its share of the
 * boost in advance (`pending` of the node). If the phrase is not completed, or the utterance
 * ends, the share is refunded:
 *
 *     cost of u --word--> v  =  pending(u) - pending(v) - (boosts of the phrases that end at v)
 *                            cost of ending at u  =  pending(u)
 *
 * `once`, for transducers: a phrase with a boost above 0 that follows itself at once earns nothing.
 * A context has the node, and how much of the longest phrase that ended has come again:
 *
 *     context  =  node | phrase (the node where it ends, 0: none) | number of its words
 *
 * Phrases of one word need no more than the node, whose last word is theirs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map64.h"
#include "scorer/scorer.h"

typedef wf__phrase_node phrase_node;

/* The least and the most that a word adds to a node's pending boost. */
struct change {
  float least, most;
};

struct phrase_boost {
  wf_scorer scorer, once;
  wf__map64 next;
  WF__VEC(phrase_node) nodes;
  struct change *changes; /* [nodes.size] */
  float largest;          /* magnitude of such a change, for roundings */
  float most_boost;
  int length_bits; /* of a number of words of a phrase, in contexts of `once` */
};

/* --- the trie ---------------------------------------------------------------------------- */

static uint64_t key_of(uint32_t node, int32_t word) {
  return (uint64_t)node << 32 | (uint32_t)word;
}

static wf_status add_phrase(struct phrase_boost *boost, size_t number, const int32_t *words,
                            size_t length, float value, wf_error *err) {
  uint32_t at = 0;
  if (length == 0)
    return wf__fail(err, WF_ERR_ARGUMENT, "phrase boost: phrase %zu has no words", number);
  if (!(fabsf(value) <= 1e6f))
    return wf__fail(err, WF_ERR_ARGUMENT, "phrase boost: phrase %zu has boost %g, at most 1e6",
                    number, (double)value);
  for (size_t i = 0; i < length; i++) {
    uint32_t child;
    bool fresh;
    if (words[i] <= 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "phrase boost: phrase %zu: %d is not a word label",
                      number, words[i]);
    if (boost->nodes.size >= UINT32_MAX - 1)
      return wf__fail(err, WF_ERR_LIMIT, "phrase boost: more than 2^32 words");
    WF__TRY(wf__map64_insert(&boost->next, key_of(at, words[i]), (uint32_t)boost->nodes.size,
                             &child, &fresh, "phrase boosts", err));
    if (fresh) {
      phrase_node node = {.parent = at, .depth = (uint32_t)i + 1, .word = words[i], .boost = NAN};
      WF__TRY(wf__vec_push(&boost->nodes, node, "phrase boosts", err));
    }
    at = child;
  }
  float *stands = &boost->nodes.data[at].boost;
  if (!isnan(*stands) && *stands != value)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "phrase boost: phrase %zu is given twice, with different boosts", number);
  *stands = value;
  /* A node's share of a boost is proportional to its number of words. Of several phrases through a
   * node the largest share counts. After the last word of a phrase nothing is pending. */
  for (uint32_t node = boost->nodes.data[at].parent; node != 0;
       node = boost->nodes.data[node].parent) {
    float share = value * (float)boost->nodes.data[node].depth / (float)length;
    if (share > boost->nodes.data[node].pending) boost->nodes.data[node].pending = share;
  }
  return WF_OK;
}

/* The next node after `word`, through failure nodes. */
static uint32_t follow(const struct phrase_boost *boost, uint32_t node, int32_t word) {
  for (;;) {
    uint32_t child = wf__map64_find(&boost->next, key_of(node, word));
    if (child != WF__MAP64_NONE) return child;
    if (node == 0) return 0;
    node = boost->nodes.data[node].failure;
  }
}

/* A node's words are those of the trie's edges from it, and those that its failure node has. */
static void take_changes(struct phrase_boost *boost, const uint32_t *order) {
  const phrase_node *nodes = boost->nodes.data;
  struct change *changes = boost->changes;
  changes[0] = (struct change){0, 0}; /* a word that begins no phrase */
  for (uint64_t i = 1; i < boost->nodes.size; i++)
    changes[i] = (struct change){INFINITY, -INFINITY};
  for (uint64_t i = 1; i < boost->nodes.size; i++) {
    const float change = 0 - nodes[i].pending - nodes[i].earned;
    struct change *parent = &changes[nodes[i].parent];
    parent->least = fminf(parent->least, change);
    parent->most = fmaxf(parent->most, change);
    boost->largest = fmaxf(boost->largest, nodes[i].pending + fabsf(nodes[i].earned));
  }
  for (uint64_t i = 1; i < boost->nodes.size; i++) { /* order[0] is node 0 */
    struct change *own = &changes[order[i]];
    const struct change *other = &changes[nodes[order[i]].failure];
    own->least = fminf(own->least, other->least);
    own->most = fmaxf(own->most, other->most);
  }
}

/* Computes failure nodes. Shallower nodes come first, because deeper ones use theirs. */
static wf_status find_failures(struct phrase_boost *boost, wf_error *err) {
  uint64_t size = boost->nodes.size, deepest = 0;
  phrase_node *nodes = boost->nodes.data;
  for (uint64_t i = 0; i < size; i++)
    if (nodes[i].depth > deepest) deepest = nodes[i].depth;
  boost->scorer.context_words = (uint32_t)deepest;
  uint64_t *first = wf__calloc(deepest + 2, sizeof *first);
  uint32_t *order = wf__alloc(size, sizeof *order);
  wf_status status = first != NULL && order != NULL
                         ? WF_OK
                         : wf__fail_memory(err, size * sizeof *order, "phrase boosts");
  if (status == WF_OK) {
    for (uint64_t i = 0; i < size; i++) first[nodes[i].depth + 1]++;
    for (uint64_t d = 1; d <= deepest; d++) first[d] += first[d - 1];
    for (uint64_t i = 0; i < size; i++) order[first[nodes[i].depth]++] = (uint32_t)i;
  }
  for (uint64_t i = 1; i < size && status == WF_OK; i++) { /* order[0] is node 0 */
    phrase_node *node = &nodes[order[i]];
    node->failure = node->depth == 1 ? 0 : follow(boost, nodes[node->parent].failure, node->word);
    node->earned = nodes[node->failure].earned + (isnan(node->boost) ? 0 : node->boost);
  }
  boost->changes = wf__alloc(size, sizeof *boost->changes);
  if (status == WF_OK && boost->changes == NULL)
    status = wf__fail_memory(err, size * sizeof *boost->changes, "phrase boosts");
  if (status == WF_OK) take_changes(boost, order);
  free(first);
  free(order);
  return status;
}

/* The least cost of a word: that of a step to node 0 or to any other, from one where nothing is
 * pending. */
static float least_cost(const struct phrase_boost *boost) {
  float least = 0;
  for (uint64_t i = 1; i < boost->nodes.size; i++)
    least = fminf(least, 0 - boost->nodes.data[i].pending - boost->nodes.data[i].earned);
  return least;
}

/* --- the scorer -------------------------------------------------------------------------- */

static void phrases_free(wf_scorer *self) {
  struct phrase_boost *boost = (struct phrase_boost *)self;
  wf__map64_free(&boost->next);
  wf__vec_free(&boost->nodes);
  free(boost->changes);
  free(boost);
}

static wf_status phrases_begin(const wf_scorer *self, void *memory, uint64_t *start,
                               wf_error *err) {
  *start = 0;
  return WF_OK;
}

static wf_status phrases_step(const wf_scorer *self, void *memory, uint64_t context, int32_t word,
                              float *cost, uint64_t *next, wf_error *err) {
  const struct phrase_boost *boost = (const struct phrase_boost *)self;
  uint32_t to = follow(boost, (uint32_t)context, word);
  const phrase_node *source = &boost->nodes.data[context], *target = &boost->nodes.data[to];
  *cost = source->pending - target->pending - target->earned;
  *next = to;
  return WF_OK;
}

static float phrases_pending(const wf_scorer *self, const void *memory, uint64_t context) {
  return ((const struct phrase_boost *)self)->nodes.data[context].pending;
}

static wf_status phrases_final(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                               wf_error *err) {
  *cost = phrases_pending(self, memory, context);
  return WF_OK;
}

static wf__cost_bounds phrases_bounds(const wf_scorer *self, const void *memory, uint64_t context) {
  const struct phrase_boost *boost = (const struct phrase_boost *)self;
  const float pending = boost->nodes.data[context].pending,
              rounding = 1e-6f * (pending + boost->largest);
  return (wf__cost_bounds){pending + boost->changes[context].least - rounding,
                           pending + boost->changes[context].most + rounding};
}

static const char *flatten_as(const struct phrase_boost *boost, int kind, int bits,
                              wf__flat_scorer *out) {
  wf__flat_part *part = wf__flat_push(out, kind, (uint64_t)1 << bits, &boost->scorer);
  if (part == NULL) return WF__FLAT_TOO_LONG;
  part->table_bits = boost->next.bits;
  part->keys = boost->next.keys;
  part->values = boost->next.values;
  part->nodes = boost->nodes.data;
  part->num_nodes = boost->nodes.size;
  part->node_bits = boost->scorer.context_bits;
  part->length_bits = boost->length_bits;
  return NULL;
}

static const char *phrases_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  return flatten_as((const struct phrase_boost *)self, WF__FLAT_PHRASES, self->context_bits, out);
}

/* --- a phrase that follows itself -------------------------------------------------------- */

/* So many words of a phrase have come again, since it ended at node `phrase`; 0: none has. */
struct repeat {
  uint32_t phrase, length;
};

static bool is_favoured(const phrase_node *node) { return node->boost > 0; /* not NaN */ }

static int32_t word_of_phrase(const struct phrase_boost *boost, uint32_t phrase, uint32_t i) {
  while (boost->nodes.data[phrase].depth > i + 1) phrase = boost->nodes.data[phrase].parent;
  return boost->nodes.data[phrase].word;
}

/* The longest favoured phrase of several words that ends at a node. */
static struct repeat longest_ended(const struct phrase_boost *boost, uint32_t node) {
  while (node != 0 && !(boost->nodes.data[node].depth > 1 && is_favoured(&boost->nodes.data[node])))
    node = boost->nodes.data[node].failure;
  return (struct repeat){node, 0};
}

/* The boost of a phrase of this word alone. */
static float boost_of_word(const struct phrase_boost *boost, int32_t word) {
  const uint32_t node = wf__map64_find(&boost->next, key_of(0, word));
  return node != WF__MAP64_NONE && is_favoured(&boost->nodes.data[node])
             ? boost->nodes.data[node].boost
             : 0;
}

static int node_bits(const struct phrase_boost *boost) { return boost->scorer.context_bits; }

static uint32_t node_of(const struct phrase_boost *boost, uint64_t context) {
  return (uint32_t)(context >> (node_bits(boost) + boost->length_bits));
}

static struct repeat repeat_of(const struct phrase_boost *boost, uint64_t context) {
  const uint64_t nodes = ((uint64_t)1 << node_bits(boost)) - 1,
                 lengths = ((uint64_t)1 << boost->length_bits) - 1;
  return (struct repeat){(uint32_t)(context >> boost->length_bits & nodes),
                         (uint32_t)(context & lengths)};
}

static wf_status once_step(const wf_scorer *self, void *memory, uint64_t context, int32_t word,
                           float *cost, uint64_t *next, wf_error *err) {
  const struct phrase_boost *boost = (const struct phrase_boost *)self->owner;
  const uint32_t from = node_of(boost, context);
  struct repeat repeat = repeat_of(boost, context);
  uint64_t to;
  WF__TRY(phrases_step(self->owner, memory, from, word, cost, &to, err));
  if (from != 0 && boost->nodes.data[from].word == word) *cost += boost_of_word(boost, word);
  if (repeat.phrase == 0 || word_of_phrase(boost, repeat.phrase, repeat.length) != word) {
    repeat = longest_ended(boost, (uint32_t)to);
  } else if (++repeat.length == boost->nodes.data[repeat.phrase].depth) {
    *cost += boost->nodes.data[repeat.phrase].boost;
    repeat.length = 0;
  }
  *next = (to << node_bits(boost) | repeat.phrase) << boost->length_bits | repeat.length;
  return WF_OK;
}

static float once_pending(const wf_scorer *self, const void *memory, uint64_t context) {
  return phrases_pending(self->owner, memory,
                         node_of((const struct phrase_boost *)self->owner, context));
}

static wf_status once_final(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                            wf_error *err) {
  *cost = once_pending(self, memory, context);
  return WF_OK;
}

static wf__cost_bounds once_bounds(const wf_scorer *self, const void *memory, uint64_t context) {
  const struct phrase_boost *boost = (const struct phrase_boost *)self->owner;
  wf__cost_bounds bounds = phrases_bounds(self->owner, memory, node_of(boost, context));
  bounds.most += 2 * boost->most_boost;
  return bounds;
}

static const char *once_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  if (self->context_bits > 32) return "boosts of so many phrases, with a transducer";
  return flatten_as((const struct phrase_boost *)self->owner, WF__FLAT_PHRASES_ONCE,
                    self->context_bits, out);
}

static const wf__scorer_ops once_ops = {.name = "phrase boost",
                                        .begin = phrases_begin,
                                        .step = once_step,
                                        .final = once_final,
                                        .pending = once_pending,
                                        .bounds = once_bounds,
                                        .flatten = once_flatten};

static wf_status init_once(struct phrase_boost *boost, wf_error *err) {
  for (uint64_t i = 1; i < boost->nodes.size; i++) {
    while (boost->nodes.data[i].depth >> boost->length_bits != 0) boost->length_bits++;
    if (is_favoured(&boost->nodes.data[i]))
      boost->most_boost = fmaxf(boost->most_boost, boost->nodes.data[i].boost);
  }
  const int bits = 2 * node_bits(boost) + boost->length_bits;
  if (bits > 64) return wf__fail(err, WF_ERR_LIMIT, "phrase boost: too many words");
  wf__scorer_init_once(&boost->scorer, &boost->once, &once_ops, bits);
  boost->once.least_of_others = boost->scorer.least_of_others;
  return WF_OK;
}

/* --- making one -------------------------------------------------------------------------- */

static const wf__scorer_ops phrase_ops = {.name = "phrase boost",
                                          .free = phrases_free,
                                          .begin = phrases_begin,
                                          .step = phrases_step,
                                          .final = phrases_final,
                                          .pending = phrases_pending,
                                          .bounds = phrases_bounds,
                                          .flatten = phrases_flatten};

static wf_status add_phrases(struct phrase_boost *boost, const int32_t *words,
                             const uint64_t *phrase_off, const float *boosts, size_t count,
                             wf_error *err) {
  WF__TRY(wf__vec_push(&boost->nodes, ((phrase_node){.boost = NAN}), "phrase boosts", err));
  for (size_t i = 0; i < count; i++) {
    if (phrase_off[i] > phrase_off[i + 1])
      return wf__fail(err, WF_ERR_ARGUMENT, "phrase boost: phrase %zu ends before it begins", i);
    WF__TRY(add_phrase(boost, i, words + phrase_off[i], phrase_off[i + 1] - phrase_off[i],
                       boosts[i], err));
  }
  return find_failures(boost, err);
}

wf_status wf_scorer_boost_phrases(const int32_t *words, const uint64_t *phrase_off,
                                  const float *boosts, size_t count, wf_scorer **out,
                                  wf_error *err) {
  *out = NULL;
  struct phrase_boost *boost = wf__calloc(1, sizeof *boost);
  if (boost == NULL) return wf__fail_memory(err, sizeof *boost, "a scorer");
  wf__scorer_init(&boost->scorer, &phrase_ops, 0);
  wf_status status = add_phrases(boost, words, phrase_off, boosts, count, err);
  while ((uint64_t)1 << boost->scorer.context_bits < boost->nodes.size)
    boost->scorer.context_bits++;
  if (status == WF_OK) {
    boost->scorer.least_of_others = least_cost(boost);
    status = init_once(boost, err);
  }
  if (status != WF_OK) {
    phrases_free(&boost->scorer);
    return status;
  }
  *out = &boost->scorer;
  return WF_OK;
}
