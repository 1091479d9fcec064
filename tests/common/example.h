/* example.h - decoding tasks that are small enough to work out by hand.
 *
 *   static const float scores[] = {-1, -2,    frame 0: log-likelihoods of columns 0 and 1
 *                                  -3, -0.5}; frame 1
 *   struct example e = example_of("0 1 1 7 0.5\n"   source, next state, label, word, weight
 *                                 "1 1 2 0 0\n"     label 1 reads column 0, label 2 column 1
 *                                 "1 0.25\n",       final state, cost
 *                                 scores, 2, 2);
 *   example_expect(&e, NULL, "7[0,2)", 2.25, 0);    words with frames, cost, flags */
#ifndef TESTS_EXAMPLE_H
#define TESTS_EXAMPLE_H

#include "testing.h"

struct example {
  const char *graph;
  wf_scores scores;
  wf_decoder_options options;
};

/* Uses the default options, except one thread, and min_active 0 so that only the beam prunes. */
struct example example_of(const char *graph, const float *scores, int num_frames, int num_columns);
/* Creates a decoder for the example, and its graph. The caller frees both. */
wf_decoder *example_decoder(const struct example *example, wf_graph **out_graph);
/* Decodes the example. The caller frees the result. `scorer` may be NULL. */
wf_result *example_decode(const struct example *example, const wf_scorer *scorer);
/* Decodes the example and compares the result. */
void example_expect(const struct example *example, const wf_scorer *scorer, const char *words,
                    double cost, uint32_t flags);
/* Words as text: "1[0,2) 2[2,3)". The buffer is reused by the next call. */
const char *example_words(const wf_word *words, size_t count);
/* Fails unless the fst accepts exactly these pairs. Each is "1 2 : 3" (inputs and outputs of a
 * path) with its cost. */
void example_expect_paths(const wf_fst *fst, size_t count, const char *const *pairs,
                          const double *costs);

#endif
