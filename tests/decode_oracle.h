/* decode_oracle.h - an independent, slow decoder: docs/semantics.md put into dense arrays and full sorts.
 *
 * It shares nothing with the library but the public header. */
#ifndef TESTS_DECODE_ORACLE_H
#define TESTS_DECODE_ORACLE_H

#include "testing.h"

typedef struct oracle_result {
  bool fits; /* max_tokens could hold every closure; else nothing else is set */
  int64_t num_decoded;
  uint32_t flags;
  double graph_cost, acoustic_cost;
  int num_words, num_arcs;
  wf_word words[512];
  uint64_t arcs[2048];
} oracle_result;

/* The fst must have its epsilon arcs last; column = label - 1. */
void oracle_decode(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores, oracle_result *out);
/* Cost of the best complete path over all frames, with no pruning, in double; +infinity if there is none. */
double oracle_best_cost(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores);

#endif
