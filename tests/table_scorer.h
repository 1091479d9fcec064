/* table_scorer.h - scorers with few contexts, given as tables: for the oracle as they are, for the
 * library behind its interface. */
#ifndef TESTS_TABLE_SCORER_H
#define TESTS_TABLE_SCORER_H

#include "decode_oracle.h"

typedef struct table_scorer_shape {
  int max_contexts, num_words;
  bool negative; /* costs may be negative, but no cycle of words is */
  bool wide;     /* contexts are numbers of 64 bits, else few; and requests are answered many at a
                    time, contexts forgotten when they may be */
  bool coarse;   /* costs are 0 or 1/4, so that nearly everything ties */
} table_scorer_shape;

/* Random tables; words above num_words have none. Free with test_free_tables. */
oracle_scorer test_random_tables(test_rng *rng, const table_scorer_shape *shape);
void test_free_tables(oracle_scorer *tables);
/* The library's scorer over the tables, which must outlive it. */
wf_scorer *test_table_scorer(const oracle_scorer *tables, bool wide);
/* The product of two, context = first's * second's number + second's. */
oracle_scorer test_chained_tables(const oracle_scorer *first, const oracle_scorer *second);

#endif
