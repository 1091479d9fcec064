/* rnnlm_oracle.h - recurrent language models by their definition: plain loops in double, one
 * sentence at a time. No code is shared with the library. A model has random weights, is written in
 * the toolkit's format, and is scored by test_rnn_costs. */
#ifndef TESTS_RNNLM_ORACLE_H
#define TESTS_RNNLM_ORACLE_H

#include "testing.h"

enum { TEST_RNN_MAX_LAYERS = 3 };

typedef struct test_rnn {
  const char *type; /* the type of the layers */
  int num_words, hidden, num_layers, arity, order, version;
  uint64_t num_cells;
  bool nce, reverse;
  float lnz;
  int64_t *counts; /* [num_words] decreasing from the second word */
  /* As in the file: */
  float *floats; /* all weights except the cells */
  size_t num_floats;
  float *cells;
} test_rnn;

/* Sets everything that the caller has not set: random weights of about 0.5, random counts. A third
 * of the cells are zero. */
void test_rnn_fill(test_rnn *rnn, test_rng *rng);
/* A small shape of a layer type, without weights yet. `variant` 0 to 3 chooses the arity; variant 1
 * uses NCE, variant 3 is reversed. */
test_rnn test_random_rnn(test_rng *rng, const char *type, int variant);
void test_rnn_free(test_rnn *rnn);
/* Writes NAME and NAME.nnet; returns the path of NAME. Words are </s>, w1, w2 ... */
const char *test_rnn_write(const test_rnn *rnn);
/* costs[0 .. size]: -ln p of the words, then of </s>, in reading order. */
void test_rnn_costs(const test_rnn *rnn, const int32_t *words, size_t size, double *costs);
/* The path of `word` through the tree, from the root: node[i] and branch[i]. Returns its length. */
int test_rnn_path(const test_rnn *rnn, int word, int *node, int *branch);

#endif
