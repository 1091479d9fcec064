/* table_scorer.h - scorers with few contexts, given as tables. The oracle uses the tables, the
 * library uses them through its scorer interface. */
#ifndef TESTS_TABLE_SCORER_H
#define TESTS_TABLE_SCORER_H

#include "decode_oracle.h"

typedef struct table_scorer_shape {
  int max_contexts, num_words;
  bool negative; /* costs may be negative, but no cycle of words is negative */
  bool wide; /* contexts are 64-bit numbers instead of small ones; requests are scored in batches,
                and contexts are evicted whenever they are not live */
  bool last_word; /* a context is that of the last word, whatever came before */
  bool coarse;    /* costs are 0 or 1/4, so that nearly everything ties */
} table_scorer_shape;

/* Random tables. Words above num_words have no costs. Free with test_free_tables. */
oracle_scorer test_random_tables(test_rng *rng, const table_scorer_shape *shape);
void test_free_tables(oracle_scorer *tables);
/* The tables as a scorer of the library. The tables must outlive it. */
wf_scorer *test_table_scorer(const oracle_scorer *tables, bool wide);
/* The product of two scorers: context = first's context * second's number of contexts + second's
 * context. */
oracle_scorer test_chained_tables(const oracle_scorer *first, const oracle_scorer *second);

#endif
