/* rnnlm_oracle.h - recurrent language models by their definition: plain loops in double, one
 * sentence at a time, sharing nothing with the library. A model is made of random numbers, written
 * in the toolkit's format, and scored by test_rnn_costs. */
#ifndef TESTS_RNNLM_ORACLE_H
#define TESTS_RNNLM_ORACLE_H

#include "testing.h"

enum { TEST_RNN_MAX_LAYERS = 3 };

typedef struct test_rnn {
  const char *type; /* of the layers */
  int num_words, hidden, num_layers, arity, order, version;
  uint64_t num_cells;
  bool nce, reverse;
  float lnz;
  int64_t *counts; /* [num_words] falling from the second on */
  /* As in the file: */
  float *floats; /* all but the cells */
  size_t num_floats;
  float *cells;
} test_rnn;

/* Everything not set by the caller: random weights of about 0.5, random counts. A third of the
 * cells is zero. */
void test_rnn_fill(test_rnn *rnn, test_rng *rng);
/* A small shape of a layer type, without weights yet; variant 0 to 3: arity, NCE in 1, reverse in
 * 3. */
test_rnn test_random_rnn(test_rng *rng, const char *type, int variant);
void test_rnn_free(test_rnn *rnn);
/* Writes NAME and NAME.nnet; returns the path of NAME. Words are </s>, w1, w2 ... */
const char *test_rnn_write(const test_rnn *rnn);
/* costs[0 .. size]: -ln p of the words, then of </s>, in reading order. */
void test_rnn_costs(const test_rnn *rnn, const int32_t *words, size_t size, double *costs);
/* Words of the tree's nodes from the root: returns the length of the path of `word`; node[i],
 * branch[i]. */
int test_rnn_path(const test_rnn *rnn, int word, int *node, int *branch);

#endif
