/* wlm_build.h - builds the states and arcs of a .wlm file from n-grams in any order, with a
 * memory limit that does not depend on the size of the model.
 *
 *   any format --wlm_build.c--> grams[n], required[n] --wlm_merge.c--> states[k], arcs[n]
 *     --wlm_join.c--> wlm_writer.c
 *
 * All of these are external sorts (key | data):
 *
 *   grams[n]     w_n .. w_1 | cost, back-off
 *   required[n]  w_n .. w_1 | flags            n-grams that must exist: contexts of other n-grams,
 *                                              and n-grams of the small model
 *   states[k]    w_k .. w_1 | back-off state, back-off cost
 *   arcs[n]      w_(n-1) .. w_1, w_n | cost, next state
 *
 * Keys are words in reverse order, w_n .. w_1. The suffixes of an n-gram are then prefixes of its
 * key and come just before it in sorted order. So one merge over all orders finds the longest
 * suffix of each n-gram that is a state. Arcs are sorted by their context in reverse order, which
 * is the order of the states, so a second merge joins states and arcs.
 *
 * Until all states are counted, a state is {level, number within the level}. A required n-gram that
 * is missing gets its probability from the model without it: the model is built, queried, and built
 * again. N-grams whose context is missing are not in that model, so longer n-grams wait for the
 * next round. */
#ifndef WF_LM_WLM_BUILD_H
#define WF_LM_WLM_BUILD_H

#include "base/external_sort.h"
#include "base/memory.h"
#include "base/spill_buffer.h"
#include "lm/ngram_collector.h"
#include "lm/wlm_read.h"
#include "math/score.h"

enum {
  WF__REQUIRED_STATE = 1,
  WF__REQUIRED_BY_SMALL = 2,
  WF__REQUIRED_CONTEXT = 4
}; /* CONTEXT: the context of an n-gram that exists */

/* The model that is subtracted. */
typedef struct wf__wlm_small {
  wf__automaton *lm;  /* NULL: none */
  uint32_t *label_of; /* [num_words] label of each word of the large model, or WF__LM_NONE */
  uint32_t num_words;
} wf__wlm_small;

typedef struct wf__wlm_place {
  uint32_t level, number;
} wf__wlm_place;

typedef struct wf__wlm_build {
  wf_lm_convert_options options;
  char *folder;
  const wf_progress *progress;
  wf_lm_convert_stats *stats;
  wf__ngram_stream_info info;
  uint32_t num_words;
  wf__wlm_small small;
  wf__sort *grams[WF_LM_MAX_ORDER + 1], *required[WF_LM_MAX_ORDER + 1],
      *states[WF_LM_MAX_ORDER + 1], *arcs[WF_LM_MAX_ORDER + 1];
  uint32_t last_context[WF_LM_MAX_ORDER]; /* context of the previous n-gram, reversed */
  int last_order;
  uint64_t num_states[WF_LM_MAX_ORDER + 1]; /* by level */
  uint64_t num_ngrams[WF_LM_MAX_ORDER];     /* by order, from 1 */
  WF__VEC(wf__wlm_arc) unigrams; /* `next`: number in level 1, or WF__LM_NONE for state 0 */
  wf__spill_buffer missing[WF_LM_MAX_ORDER + 1]; /* missing required n-grams: w_n .. w_1, flags */
  uint64_t num_missing[WF_LM_MAX_ORDER + 1];
  int longest_known; /* n-grams of up to this length can be queried in the model without the missing
                        ones */
} wf__wlm_build;

/* wlm_grams.c: add records to `grams` and `required`. `backwards` is w_n .. w_1. */
wf_status wf__wlm_add_gram(wf__wlm_build *build, int n, const uint32_t *backwards, float cost,
                           float backoff, wf_error *err);
wf_status wf__wlm_require(wf__wlm_build *build, int n, const uint32_t *backwards, uint32_t flags,
                          wf_error *err);

/* wlm_merge.c: makes states, arcs, unigrams and missing n-grams from grams and required, which must
 * be finished. */
wf_status wf__wlm_merge(wf__wlm_build *build, wf_error *err);
/* wlm_join.c: writes the file. `plain`: without subtraction of the small model, scale and packing.
 */
wf_status wf__wlm_join(wf__wlm_build *build, const char *path, bool plain, wf_error *err);

/* Where the n-grams come from. */
typedef struct wf__wlm_source {
  const char *path;
  wf__ngram_read_fn read;     /* NULL: ARPA text at `path`, read as a stream */
  void *user;                 /* of `read` */
  const wf__automaton *small; /* NULL: nothing is subtracted */
} wf__wlm_source;
/* Writes the file `out`; the other arguments as in wf_lm_convert, but options->subtract, for which
 * `small` stands. */
wf_status wf__wlm_build_file(const wf__wlm_source *from, const char *out,
                             const wf_arpa_options *reader, const wf_lm_convert_options *options,
                             wf_lm_convert_stats *stats, wf_arpa_stats *reading,
                             const wf_progress *progress, wf_error *err);

/* The same from a file of any format. */
wf_status wf__wlm_convert(const char *path, const wf__automaton *small, const char *out,
                          const wf_arpa_options *reader, const wf_lm_convert_options *options,
                          wf_lm_convert_stats *stats, wf_arpa_stats *reading,
                          const wf_progress *progress, wf_error *err);

/* wlm_open.c: the same model in mapped form, in a temporary file. `path`: for messages. */
wf_status wf__wlm_of_automaton(const wf__automaton *lm, const char *path, wf__wlm **out,
                               wf_error *err);

/* wlm_small.c */
void wf__wlm_small_free(wf__wlm_small *small);
/* Maps the next word of the large model, number small->num_words, to the small model. */
wf_status wf__wlm_small_map(wf__wlm_small *small, const wf__ngram_collector *collector,
                            const char *text, wf_error *err);
/* Adds the words of the small model to the large one, and its n-grams to `required`. */
wf_status wf__wlm_small_require(wf__wlm_build *build, wf_error *err);
/* State of the small model after the history w_k .. w_1. */
uint32_t wf__wlm_small_state(const wf__wlm_small *small, int k, const uint32_t *backwards);
double wf__wlm_small_cost(const wf__wlm_small *small, uint32_t state, uint32_t word);

#endif
