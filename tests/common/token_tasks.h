/* token_tasks.h - random tasks over tokens alone, as a GPU searches them in kernels, with many costs
 * that tie. */
#ifndef TESTS_TOKEN_TASKS_H
#define TESTS_TOKEN_TASKS_H

#include "random_transducers.h"
#include "search/transducer/device_search_types.h"

/* One state, which accepts every sequence of tokens. All arcs of tokens cost the same. `words`: each
 * has one. */
static inline wf_graph *tokens_graph_of(test_rng *rng, int num_tokens, bool words) {
  wf_error err;
  char text[16384];
  size_t at = 0;
  const double of_token = test_below(rng, 2) == 0 ? 0 : test_below(rng, 9) / 8.0 - 0.5,
               of_blank = test_below(rng, 2) == 0 ? 0 : test_below(rng, 9) / 8.0,
               of_end = test_below(rng, 3) == 0 ? 0.5 : 0;
  wf_graph *graph;
  for (int t = 0; t < num_tokens; t++)
    at += (size_t)snprintf(text + at, sizeof text - at, "0 0 %d %d %g\n", t + 1,
                           words || t % 3 > 0 ? t : 0, t == 0 ? of_blank : of_token);
  snprintf(text + at, sizeof text - at, "0 %g\n", of_end);
  wf_fst *fst = test_fst_of(WF_TROPICAL, text);
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_fst_free(fst);
  return graph;
}

/* In some tasks all tokens tie. On the imitated GPU they take long. */
static inline bool is_flat(uint64_t seed) { return seed % 16 == 5; }

/* Makes model, graph and options. */
static inline void make_tokens_task(test_rng *rng, uint64_t seed, wf_transducer **made,
                                    wf_graph **graph, wf_decoder_options *o) {
  transducer_shape s = random_transducer_shape(rng, seed);
  if (is_flat(seed)) s.num_tokens = WF__ANSWER_ENTRIES + 20; /* rows are sent whole */
  s.twins = is_flat(seed) ? s.num_tokens : test_below(rng, 3) == 0 ? 2 : 0;
  if (s.num_durations > 0 && test_below(rng, 4) == 0 && !is_flat(seed))
    s.num_durations = WF__DEVICE_MOST_DURATIONS; /* the most that there are sets for */
  *made = random_transducer(rng, &s);
  const bool words = test_below(rng, 4) > 0; /* of all tokens */
  *graph = tokens_graph_of(rng, s.num_tokens, words);
  wf_decoder_options_init(o);
  o->beam = test_below(rng, 5) == 0 ? 1000 : 0.5f + 12 * test_unit(rng);
  o->max_hypotheses = test_below(rng, 6) == 0
                          ? WF__DEVICE_MOST_HYPOTHESES - (int32_t)test_below(rng, 3)
                          : 1 + (int32_t)test_below(rng, 9);
  if (is_flat(seed) && o->max_hypotheses > 3) o->max_hypotheses = 3;
  o->max_symbols = is_flat(seed) ? 1 : 1 + (int32_t)test_below(rng, 4);
  o->greedy = test_below(rng, 5) == 0;
  o->blank_penalty = test_below(rng, 3) == 0 ? 2 * test_unit(rng) - 0.5f : 0;
  o->acoustic_scale = test_below(rng, 3) == 0 ? 0.3f + test_unit(rng) : 1;
  o->word_score = words && test_below(rng, 3) == 0 ? test_unit(rng) - 0.5f : 0;
  o->num_threads = 1 + (int32_t)(seed % 3);
}

#endif
