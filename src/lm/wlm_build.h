/* wlm_build.h - from n-grams in any order to the states and arcs of a large model, in memory that
 * does not grow with the model.
 *
 *   reader --wlm_build.c--> grams[n], required[n] --wlm_merge.c--> states[k], arcs[n]
 *   --wlm_join.c--> wlm_writer.c
 *
 * All of them are external sorts. Written backwards, w_n .. w_1, the suffixes of an n-gram are
 * prefixes of its key, so in sorted order they come just before it: one merge over all orders finds
 * for each n-gram its longest suffix that is a state. Arcs are then sorted by their context,
 * written backwards too, which is the order of the states, so a second merge brings them together.
 *
 *   grams[n]     w_n .. w_1 | cost, back-off
 *   required[n]  w_n .. w_1 | flags      n-grams that must exist: contexts of others, and those of
 *                the small model
 *   states[k]    w_k .. w_1 | state to back off to, cost
 *   arcs[n]      w_(n-1) .. w_1, w_n | cost, next state
 *
 * A state is {level, number within it}, until all are counted. A required n-gram that is missing
 * gets its probability from the model without it: the model is built, queried, and built again.
 * N-grams whose context is missing are not in that model, so longer ones wait for the next
 * round. */
#ifndef WF_LM_WLM_BUILD_H
#define WF_LM_WLM_BUILD_H

#include "base/external_sort.h"
#include "base/memory.h"
#include "base/spill_buffer.h"
#include "lm/ngram_collector.h"
#include "lm/wlm_file.h"

enum {
  WF__REQUIRED_STATE = 1,
  WF__REQUIRED_BY_SMALL = 2,
  WF__REQUIRED_CONTEXT = 4
}; /* CONTEXT: of an n-gram that is there */

/* The model that is subtracted. */
typedef struct wf__wlm_small {
  wf_lm *lm;          /* NULL: none */
  uint32_t *label_of; /* [num_words of the large model] its label, or WF__LM_NONE */
  uint32_t num_words;
} wf__wlm_small;

typedef struct wf__wlm_place {
  uint32_t level, number;
} wf__wlm_place;

typedef struct wf__wlm_build {
  wf_wlm_options options;
  char *folder;
  const wf_progress *progress;
  wf_wlm_stats *stats;
  wf__ngram_stream_info info;
  uint32_t num_words;
  wf__wlm_small small;
  wf__sort *grams[WF_LM_MAX_ORDER + 1], *required[WF_LM_MAX_ORDER + 1],
      *states[WF_LM_MAX_ORDER + 1], *arcs[WF_LM_MAX_ORDER + 1];
  uint32_t last_context[WF_LM_MAX_ORDER]; /* of the n-gram before, backwards */
  int last_order;
  uint64_t num_states[WF_LM_MAX_ORDER + 1],
      num_ngrams[WF_LM_MAX_ORDER]; /* by level; by order from 1 */
  WF__VEC(wf__wlm_arc) unigrams;   /* `next` is the number in level 1, or WF__LM_NONE: state 0 */
  wf__spill_buffer missing[WF_LM_MAX_ORDER + 1]; /* required n-grams that are not there: w_n .. w_1,
                                             flags, one after the other */
  uint64_t num_missing[WF_LM_MAX_ORDER + 1];
  int longest_known; /* n-grams of at most so many words can be queried in the model without the
                        missing ones */
} wf__wlm_build;

/* Bits of a float in a record. */
static inline uint32_t wf__bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float wf__float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* wlm_grams.c: records of `grams` and of `required`. */
wf_status wf__wlm_add_gram(wf__wlm_build *build, int n, const uint32_t *backwards, float cost,
                           float backoff, wf_error *err);
wf_status wf__wlm_require(wf__wlm_build *build, int n, const uint32_t *backwards, uint32_t flags,
                          wf_error *err);

/* wlm_merge.c: states, arcs, unigrams and missing n-grams of what is in grams and required, which
 * must be finished. */
wf_status wf__wlm_merge(wf__wlm_build *build, wf_error *err);
/* wlm_join.c: the file. `plain`: without the small model, scale and packing. */
wf_status wf__wlm_join(wf__wlm_build *build, const char *path, bool plain, wf_error *err);

/* wlm_small.c */
wf_status wf__wlm_small_read(wf__wlm_small *small, const char *path, const wf_arpa_options *reader,
                             wf_error *err);
void wf__wlm_small_free(wf__wlm_small *small);
/* Maps one more word of the large model, whose label is small->num_words. */
wf_status wf__wlm_small_map(wf__wlm_small *small, const wf__ngram_collector *collector,
                            const char *text, wf_error *err);
/* Adds the small model's words to the large one, and its n-grams to what is required. */
wf_status wf__wlm_small_require(wf__wlm_build *build, wf_error *err);
/* State of the small model after the history w_k .. w_1. */
uint32_t wf__wlm_small_state(const wf__wlm_small *small, int k, const uint32_t *backwards);
double wf__wlm_small_cost(const wf__wlm_small *small, uint32_t state, uint32_t word);

#endif
