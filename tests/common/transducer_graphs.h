/* transducer_graphs.h - random graphs for transducers. */
#ifndef TESTS_TRANSDUCER_GRAPHS_H
#define TESTS_TRANSDUCER_GRAPHS_H

#include "testing.h"

/* States with a loop of the blank (label 1), random arcs, and epsilons that lead to later states.
 */
static inline wf_fst *test_transducer_graph(test_rng *rng, int num_tokens, int num_words,
                                            int num_states) {
  char text[8192];
  size_t at = 0;
  for (int s = 0; s < num_states; s++) {
    if (s == 0 || test_below(rng, 8) > 0)
      at += (size_t)snprintf(text + at, sizeof text - at, "%d %d 1 0 0\n", s, s);
    for (uint32_t k = 1 + test_below(rng, 4); k > 0; k--) {
      bool epsilon = test_below(rng, 4) == 0 && s + 1 < num_states;
      int to = epsilon ? s + 1 + (int)test_below(rng, (uint32_t)(num_states - s - 1))
                       : (int)test_below(rng, (uint32_t)num_states);
      int label = epsilon ? 0 : 1 + (int)test_below(rng, (uint32_t)num_tokens);
      at += (size_t)snprintf(text + at, sizeof text - at, "%d %d %d %d %g\n", s, to, label,
                             (int)test_below(rng, 2 * (uint32_t)num_words) % (num_words + 1),
                             (double)test_below(rng, 9) / 8);
    }
  }
  for (int s = 0; s < num_states; s++)
    if (s == num_states - 1 || test_below(rng, 2))
      at += (size_t)snprintf(text + at, sizeof text - at, "%d %g\n", s,
                             (double)test_below(rng, 4) / 4);
  return test_fst_of(WF_TROPICAL, text);
}

/* The same with its arcs by input label. Frees the given one. */
static inline wf_fst *test_by_label(wf_fst *fst) {
  wf_error err = {0};
  wf_fst *sorted;
  assert_ok(wf_arcsort(fst, NULL, &sorted, &err));
  wf_fst_free(fst);
  return sorted;
}

#endif
