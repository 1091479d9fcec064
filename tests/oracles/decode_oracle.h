/* decode_oracle.h - an independent, slow decoder: docs/reference/semantics.md in dense arrays and
 * full sorts.
 *
 * It shares only the public header with the library. */
#ifndef TESTS_DECODE_ORACLE_H
#define TESTS_DECODE_ORACLE_H

#include "testing.h"

/* A scorer with few contexts, given as tables. Context 0 is the start. */
typedef struct oracle_scorer {
  int num_contexts, num_words;
  int *next;    /* [context * num_words + word - 1] */
  float *cost;  /* the same */
  float *final; /* [num_contexts] */
} oracle_scorer;

/* The places that a token can have. Without a scorer, or with recombine=state, a place is a state
 * of the graph. With recombine=pair it is a pair: place = state * num_contexts + context. */
typedef struct oracle_space {
  wf_fst_view view;
  const oracle_scorer *scorer; /* NULL: none */
  bool pairs;
  uint64_t size; /* places */
} oracle_space;
oracle_space oracle_space_of(const wf_fst *fst, const oracle_scorer *scorer,
                             const wf_decoder_options *options);
static inline uint64_t oracle_place(const oracle_space *space, uint64_t state, int context) {
  return space->pairs ? state * (uint64_t)space->scorer->num_contexts + (uint64_t)context : state;
}
static inline uint64_t oracle_state(const oracle_space *space, uint64_t place) {
  return space->pairs ? place / (uint64_t)space->scorer->num_contexts : place;
}
/* Returns the scorer's cost of an arc's word, and the context after it. Returns 0 and `context` if
 * there is no word or no scorer. */
static inline float oracle_scorer_step(const oracle_space *space, int context, int32_t word,
                                       int *next) {
  *next = context;
  if (space->scorer == NULL || word == 0) return 0;
  int at = context * space->scorer->num_words + word - 1;
  *next = space->scorer->next[at];
  return space->scorer->cost[at];
}

typedef struct oracle_result {
  bool fits; /* max_tokens could hold every closure; otherwise no other field is set */
  int64_t num_decoded;
  uint32_t flags;
  double graph_cost, acoustic_cost, scorer_cost;
  int num_words, num_arcs;
  wf_word words[512];
  uint64_t arcs[2048];
} oracle_result;

/* A candidate of step 2 that steps 3 and 4 admit. */
typedef struct oracle_candidate {
  float cost;
  uint64_t arc;
  int64_t from, to; /* places */
  int context;      /* after the arc */
} oracle_candidate;

/* The tokens and candidates of one frame of the search. Frame 0 is the closure of the start. */
typedef struct oracle_frame {
  float *cost;     /* [size] before step 6; +infinity: no token */
  float *relative; /* [size] after step 6 */
  int *depth;      /* [size] number of epsilon arcs within the frame on the token's path */
  bool *selected;  /* [size] by step 1 of the next frame; all false if there is none */
  float cutoff;
  oracle_candidate *let_in;
  size_t num_let_in;
} oracle_frame;
typedef struct oracle_trellis {
  int64_t num_frames; /* frames after frame 0 */
  oracle_frame *frames;
} oracle_trellis;

/* The graph's epsilon arcs must come last at each state, and column = label - 1. `trellis` may be
 * NULL; otherwise free it, even if the task does not fit. */
void oracle_decode_in(const oracle_space *space, const wf_decoder_options *options,
                      const wf_scores *scores, oracle_result *out, oracle_trellis *trellis);
/* The same without a scorer. */
void oracle_decode(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores,
                   oracle_result *out, oracle_trellis *trellis);
void oracle_free_trellis(oracle_trellis *trellis);
/* Cost of the best complete path over all frames without pruning, in double; +infinity if there is
 * none. */
double oracle_best_cost(const wf_fst *fst, const wf_decoder_options *options,
                        const wf_scores *scores);

#endif
