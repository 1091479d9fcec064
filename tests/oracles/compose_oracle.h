/* compose_oracle.h - a slow, plain composition by its definition, in the canonical order, and the
 * generators of the published comparison. */
#ifndef TESTS_COMPOSE_ORACLE_H
#define TESTS_COMPOSE_ORACLE_H

#include "testing.h"

/* `filter` is that of wf_compose_options. `origins` (may be NULL) receives the origins of the arcs;
 * the caller frees it. */
wf_fst *oracle_compose(const wf_fst *a, const wf_fst *b, int filter, bool connect,
                       wf_arc_origin **origins);

/* Fails the test with the first difference unless both fsts have the same bytes. `what` names the
 * case. */
void assert_same_bytes(const wf_fst *got, const wf_fst *want, const char *what);

/* A graph with num_states states, `degree` arcs from each, and num_labels labels. State 0 is the
 * start, the last state is final. */
wf_fst *oracle_random_graph(uint32_t num_states, uint32_t degree, uint32_t num_labels,
                            uint64_t seed);
/* A line of states. Neighbours are joined by an arc for each of `num_labels` labels. */
wf_fst *oracle_emissions(uint32_t num_states, uint32_t num_labels, uint64_t seed);
/* A closure of words: state 0 starts and ends, words begin at state 1. Words are random, with up to
 * 12 labels. */
wf_fst *oracle_words(uint32_t num_words, uint32_t num_labels, uint64_t seed);

#endif
