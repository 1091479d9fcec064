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

/* A candidate of step 2 that steps 3 and 4 let in. */
typedef struct oracle_candidate {
  float cost;
  uint64_t arc;
  int64_t from;
} oracle_candidate;

/* What the search had in its hands, frame by frame; frame 0 is the start's closure. */
typedef struct oracle_frame {
  float *cost;      /* [num_states] before step 6; +infinity: no token */
  float *relative;  /* [num_states] after it */
  int *depth;       /* [num_states] epsilon arcs since the last frame, along the way the token came */
  bool *selected;   /* [num_states] by step 1 of the next frame; all false if there was none */
  float cutoff;
  oracle_candidate *let_in;
  size_t num_let_in;
} oracle_frame;
typedef struct oracle_trellis {
  uint64_t num_states;
  int64_t num_frames; /* frames beyond frame 0 */
  oracle_frame *frames;
} oracle_trellis;

/* The fst must have its epsilon arcs last; column = label - 1. `trellis` may be NULL; else free it, also when the task does not fit. */
void oracle_decode(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores, oracle_result *out, oracle_trellis *trellis);
void oracle_free_trellis(oracle_trellis *trellis);
/* Cost of the best complete path over all frames, with no pruning, in double; +infinity if there is none. */
double oracle_best_cost(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores);

#endif
