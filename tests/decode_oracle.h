/* decode_oracle.h - an independent, slow decoder: docs/reference/semantics.md put into dense arrays
 * and full sorts.
 *
 * It shares nothing with the library but the public header. */
#ifndef TESTS_DECODE_ORACLE_H
#define TESTS_DECODE_ORACLE_H

#include "testing.h"

/* A scorer with few contexts, as tables; context 0 is the start. */
typedef struct oracle_scorer {
  int num_contexts, num_words;
  int *next;    /* [context * num_words + word - 1] */
  float *cost;  /* the same */
  float *final; /* [num_contexts] */
} oracle_scorer;

/* What there can be a token for: each state of the graph, or, with a scorer and recombine=pair,
 * each pair: place = state * num_contexts + context. */
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
/* The scorer's cost of an arc's word, and the context behind it; 0 and `context` if it has no word
 * or there is no scorer. */
static inline float oracle_scorer_step(const oracle_space *space, int context, int32_t word,
                                       int *next) {
  *next = context;
  if (space->scorer == NULL || word == 0) return 0;
  int at = context * space->scorer->num_words + word - 1;
  *next = space->scorer->next[at];
  return space->scorer->cost[at];
}

typedef struct oracle_result {
  bool fits; /* max_tokens could hold every closure; else nothing else is set */
  int64_t num_decoded;
  uint32_t flags;
  double graph_cost, acoustic_cost, scorer_cost;
  int num_words, num_arcs;
  wf_word words[512];
  uint64_t arcs[2048];
} oracle_result;

/* A candidate of step 2 that steps 3 and 4 let in. */
typedef struct oracle_candidate {
  float cost;
  uint64_t arc;
  int64_t from, to; /* places */
  int context;      /* behind the arc */
} oracle_candidate;

/* What the search had in its hands, frame by frame; frame 0 is the start's closure. */
typedef struct oracle_frame {
  float *cost;     /* [size] before step 6; +infinity: no token */
  float *relative; /* [size] after it */
  int *depth;      /* [size] epsilon arcs since the last frame, along the way the token came */
  bool *selected;  /* [size] by step 1 of the next frame; all false if there was none */
  float cutoff;
  oracle_candidate *let_in;
  size_t num_let_in;
} oracle_frame;
typedef struct oracle_trellis {
  int64_t num_frames; /* frames beyond frame 0 */
  oracle_frame *frames;
} oracle_trellis;

/* The graph must have its epsilon arcs last; column = label - 1. `trellis` may be NULL; else free
 * it, also when the task does not fit. */
void oracle_decode_in(const oracle_space *space, const wf_decoder_options *options,
                      const wf_scores *scores, oracle_result *out, oracle_trellis *trellis);
/* Without a scorer. */
void oracle_decode(const wf_fst *fst, const wf_decoder_options *options, const wf_scores *scores,
                   oracle_result *out, oracle_trellis *trellis);
void oracle_free_trellis(oracle_trellis *trellis);
/* Cost of the best complete path over all frames, with no pruning, in double; +infinity if there is
 * none. */
double oracle_best_cost(const wf_fst *fst, const wf_decoder_options *options,
                        const wf_scores *scores);

#endif
