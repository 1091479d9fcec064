/* more_ops.h - what the tests of warpfst_ops.h share: random fsts, comparison of relations.
 * Included by test_more_ops.c, test_replace.c and test_normal_forms.c. */
#ifndef TESTS_MORE_OPS_H
#define TESTS_MORE_OPS_H

#include "testing.h"

#define INIT(name, options)    \
  wf_##name##_options options; \
  wf_##name##_options_init(&options)

static inline wf_fst *random_fst(test_rng *rng, bool acceptor, bool acyclic, float epsilons) {
  test_fst_shape shape = {.num_states = 1 + test_below(rng, 6),
                          .num_arcs = test_below(rng, 12),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 3),
                          .num_olabels = 1 + (int32_t)test_below(rng, 3),
                          .epsilon_share = epsilons,
                          .final_share = 0.3f,
                          .max_weight = 4,
                          .acceptor = acceptor,
                          .acyclic = acyclic,
                          .semiring = test_below(rng, 2) ? WF_LOG : WF_TROPICAL};
  return test_random_fst(rng, &shape);
}

/* Fails unless both have the same pairs of strings, and frees `got`. */
static inline void expect_same_paths(const wf_fst *want, wf_fst *got) {
  test_relation relation = test_enumerate(want, 40, 1000000);
  test_assert_relation(got, &relation, 60, 1e-3);
  test_relation_free(&relation);
  wf_fst_free(got);
}

static inline void add_pair(test_relation *relation, const char *key, double cost,
                            wf_semiring semiring) {
  for (size_t i = 0; i < relation->size; i++) {
    if (strcmp(relation->pairs[i].key, key) != 0) continue;
    relation->pairs[i].cost = test_plus(semiring, relation->pairs[i].cost, cost);
    return;
  }
  relation->pairs = realloc(relation->pairs, (relation->size + 1) * sizeof *relation->pairs);
  assert_non_null(relation->pairs);
  relation->pairs[relation->size++] = (test_pair){strdup(key), cost};
}

static inline int compare_pairs(const void *x, const void *y) {
  return strcmp(((const test_pair *)x)->key, ((const test_pair *)y)->key);
}

/* Compares pairs, sorted here, with those of an fst. Frees both. */
static inline void expect_relation(test_relation *want, wf_fst *got) {
  if (want->size != 0) qsort(want->pairs, want->size, sizeof *want->pairs, compare_pairs);
  test_assert_relation(got, want, 60, 1e-3);
  test_relation_free(want);
  wf_fst_free(got);
}

static inline wf_fst *map(const wf_fst *fst, int32_t type, float value) {
  wf_error err = {0};
  wf_fst *out;
  INIT(map, o);
  o.map_type = type;
  o.weight = o.power = value;
  o.delta = 0.5f;
  assert_ok(wf_map(fst, &o, &out, &err));
  return out;
}

#endif
