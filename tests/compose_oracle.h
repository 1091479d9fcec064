/* compose_oracle.h - composition by its definition, slow and plain, in the canonical order; and the
 * generators of the published comparison. */
#ifndef TESTS_COMPOSE_ORACLE_H
#define TESTS_COMPOSE_ORACLE_H

#include "testing.h"

/* `filter` as in wf_compose_options; `origins` (may be NULL) receives where each arc comes from, to
 * be freed. */
wf_fst *oracle_compose(const wf_fst *a, const wf_fst *b, int filter, bool connect,
                       wf_arc_origin **origins);

/* The same bytes? Fails the test with the first difference; `what` names the case. */
void assert_same_bytes(const wf_fst *got, const wf_fst *want, const char *what);

/* V states, D arcs out of each, T labels; state 0 starts, the last is final. */
wf_fst *oracle_random_graph(uint32_t num_states, uint32_t degree, uint32_t num_labels,
                            uint64_t seed);
/* A line of states with an arc for each of `num_labels` labels between neighbours. */
wf_fst *oracle_emissions(uint32_t num_states, uint32_t num_labels, uint64_t seed);
/* Closure of words: state 0 starts and ends, state 1 begins the words, random ones of up to 12
 * labels. */
wf_fst *oracle_words(uint32_t num_words, uint32_t num_labels, uint64_t seed);

#endif
