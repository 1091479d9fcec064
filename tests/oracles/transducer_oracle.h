/* transducer_oracle.h - an independent, slow decoder with transducers:
 * docs/reference/transducers.md in lists that are searched from end to end.
 *
 * It shares only the public header with the library. */
#ifndef TESTS_TRANSDUCER_ORACLE_H
#define TESTS_TRANSDUCER_ORACLE_H

#include "decode_oracle.h"

enum { ORACLE_HISTORY = 24 }; /* tokens of the longest history */

/* Log-probabilities of frame t after a history of tokens: num_tokens, then num_durations. Valid
 * until the task ends. */
typedef const float *oracle_log_probs(void *user, int64_t t, const int *history, int size);

typedef struct oracle_transducer {
  wf_fst_view view;            /* column = label - 1; the epsilon arcs of a state come last */
  const oracle_scorer *scorer; /* NULL: none */
  int start_context;           /* of the scorer */
  int num_tokens, num_durations, blank;
  int context_size; /* 0: all tokens */
  int64_t num_frames;
  oracle_log_probs *log_probs;
  void *user;
} oracle_transducer;

typedef struct oracle_transducer_result {
  int64_t num_decoded;
  uint32_t flags;
  double graph_cost, acoustic_cost, scorer_cost;
  uint64_t num_tokens, num_expanded, num_arcs;
  int num_words;
  wf_word words[256];
  int32_t alignment[64];
} oracle_transducer_result;

/* Graphs have no epsilon cycles. */
void oracle_transduce(const oracle_transducer *task, const wf_decoder_options *options,
                      oracle_transducer_result *out);
/* Sequences of words, each with the cost of its best path. */
enum { ORACLE_SENTENCE = 64 };
struct oracle_sentences {
  struct oracle_sentence {
    int words[ORACLE_SENTENCE], size;
    double cost;
  } * data;
  size_t size, room;
};
void oracle_add_sentence(struct oracle_sentences *sentences, const int *words, int size,
                         double cost);
/* Cost of the best complete path with at most max_symbols tokens a frame, in double, without
 * pruning, and without recombination of different histories; +infinity if there is none. Adds the
 * words of paths to `sentences`, unless it is NULL: of all that cost less than 4 above the best.
 * Negative costs of a path sum up to more than -4. */
double oracle_best_transduction(const oracle_transducer *task, const wf_decoder_options *options,
                                struct oracle_sentences *sentences);

#endif
