/* word_boost.c - the simplest scorer: one context, and a hash of word -> cost.
 *
 * `once`, for transducers, has a context for each word that it favours: the last one, if it was
 * such a word. The same word then gets no boost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map64.h"
#include "scorer/scorer.h"

struct word_boost {
  wf_scorer scorer, once;
  wf__map64 costs; /* bits of the float */
  float most;      /* cost of a word */
};

static void boost_free(wf_scorer *self) {
  struct word_boost *boost = (struct word_boost *)self;
  wf__map64_free(&boost->costs);
  free(boost);
}

static wf_status boost_begin(const wf_scorer *self, void *memory, uint64_t *start, wf_error *err) {
  *start = 0;
  return WF_OK;
}

static float cost_of(const wf_scorer *self, int32_t word) {
  uint32_t bits = wf__map64_find(&((const struct word_boost *)self)->costs, (uint64_t)word);
  float cost = 0;
  if (bits != WF__MAP64_NONE) memcpy(&cost, &bits, sizeof cost);
  return cost;
}

static wf_status boost_step(const wf_scorer *self, void *memory, uint64_t context, int32_t word,
                            float *cost, uint64_t *next, wf_error *err) {
  *cost = cost_of(self, word);
  *next = 0;
  return WF_OK;
}

static wf_status once_step(const wf_scorer *self, void *memory, uint64_t context, int32_t word,
                           float *cost, uint64_t *next, wf_error *err) {
  const float own = cost_of(self->owner, word);
  const bool repeated = own < 0 && context == (uint64_t)word;
  *cost = repeated ? 0 : own;
  *next = own < 0 ? (uint64_t)word : 0;
  return WF_OK;
}

static wf_status boost_final(const wf_scorer *self, void *memory, uint64_t context, float *cost,
                             wf_error *err) {
  *cost = 0;
  return WF_OK;
}

static wf__cost_bounds boost_bounds(const wf_scorer *self, const void *memory, uint64_t context) {
  return (wf__cost_bounds){self->least_of_others, ((const struct word_boost *)self)->most};
}

static wf__cost_bounds once_bounds(const wf_scorer *self, const void *memory, uint64_t context) {
  return boost_bounds(self->owner, memory, context);
}

static const char *flatten_as(const struct word_boost *boost, int kind, int bits,
                              wf__flat_scorer *out) {
  wf__flat_part *part = wf__flat_push(out, kind, (uint64_t)1 << bits, &boost->scorer);
  if (part == NULL) return WF__FLAT_TOO_LONG;
  part->table_bits = boost->costs.bits;
  part->keys = boost->costs.keys;
  part->values = boost->costs.values;
  return NULL;
}

static const char *boost_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  return flatten_as((const struct word_boost *)self, WF__FLAT_WORDS, self->context_bits, out);
}

static const char *once_flatten(const wf_scorer *self, wf__flat_scorer *out) {
  return flatten_as((const struct word_boost *)self->owner, WF__FLAT_WORDS_ONCE, self->context_bits,
                    out);
}

static const wf__scorer_ops boost_ops = {.name = "word boost",
                                         .free = boost_free,
                                         .begin = boost_begin,
                                         .step = boost_step,
                                         .final = boost_final,
                                         .bounds = boost_bounds,
                                         .flatten = boost_flatten};
static const wf__scorer_ops once_ops = {.name = "word boost",
                                        .begin = boost_begin,
                                        .step = once_step,
                                        .final = boost_final,
                                        .bounds = once_bounds,
                                        .flatten = once_flatten};

/* Contexts are the favoured words' labels. */
static void init_once(struct word_boost *boost, const int32_t *words, const float *boosts,
                      size_t count) {
  int bits = 0;
  for (size_t i = 0; i < count; i++)
    while (boosts[i] > 0 && (uint32_t)words[i] >> bits != 0) bits++;
  wf__scorer_init_once(&boost->scorer, &boost->once, &once_ops, bits);
  boost->once.context_words = 1;
  boost->once.least_of_others = boost->scorer.least_of_others;
}

static wf_status add_words(struct word_boost *boost, const int32_t *words, const float *boosts,
                           size_t count, wf_error *err) {
  for (size_t i = 0; i < count; i++) {
    if (words[i] <= 0)
      return wf__fail(err, WF_ERR_ARGUMENT, "word boost: %d is not a word label", words[i]);
    if (!(fabsf(boosts[i]) <= 1e20f))
      return wf__fail(err, WF_ERR_ARGUMENT, "word boost: word %d has boost %g", words[i],
                      (double)boosts[i]);
    float cost = -boosts[i];
    uint32_t bits, stands;
    memcpy(&bits, &cost, sizeof bits);
    WF__TRY(wf__map64_insert(&boost->costs, (uint64_t)words[i], bits, &stands, NULL, "word boosts",
                             err));
    if (stands != bits)
      return wf__fail(err, WF_ERR_ARGUMENT,
                      "word boost: word %d is given twice, with different boosts", words[i]);
  }
  return WF_OK;
}

wf_status wf_scorer_boost_words(const int32_t *words, const float *boosts, size_t count,
                                wf_scorer **out, wf_error *err) {
  *out = NULL;
  struct word_boost *boost = wf__calloc(1, sizeof *boost);
  if (boost == NULL) return wf__fail_memory(err, sizeof *boost, "a scorer");
  wf__scorer_init(&boost->scorer, &boost_ops, 0);
  boost->scorer.context_words = 0;
  wf_status status = add_words(boost, words, boosts, count, err);
  if (status != WF_OK) {
    boost_free(&boost->scorer);
    return status;
  }
  boost->scorer.least_of_others = 0;
  for (size_t i = 0; i < count; i++) {
    boost->scorer.least_of_others = fminf(boost->scorer.least_of_others, -boosts[i]);
    boost->most = fmaxf(boost->most, -boosts[i]);
  }
  init_once(boost, words, boosts, count);
  *out = &boost->scorer;
  return WF_OK;
}
