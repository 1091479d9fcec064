/* random_fsts.h - random fsts with the difficult cases of an operation: of any kind, with ties,
 * with epsilons, relations to determinize, equivalent states. */
#ifndef TESTS_RANDOM_FSTS_H
#define TESTS_RANDOM_FSTS_H

#include "fst/fst.h"
#include "testing.h"

static inline wf_fst *no_states(wf_semiring semiring) {
  wf_error err = {0};
  wf_fst *none;
  assert_ok(wf__fst_empty(semiring, &none, &err));
  return none;
}

/* With empty fsts, states of many arcs, parallel arcs. */
static inline wf_fst *random_any_fst(test_rng *rng, bool acyclic, wf_semiring semiring) {
  static const uint32_t sizes[] = {1, 4, 9, 60, 700};
  uint32_t n = 1 + test_below(rng, sizes[test_below(rng, 5)]);
  test_fst_shape shape = {.num_states = n,
                          .num_arcs = n < 5 ? test_below(rng, 400) : test_below(rng, n * 4),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 40),
                          .num_olabels = 5,
                          .epsilon_share = 0.3f,
                          .final_share = 0.2f,
                          .max_weight = 6,
                          .acyclic = acyclic && n > 1,
                          .semiring = semiring};
  if (acyclic && n == 1) shape.num_arcs = 0;
  return test_random_fst(rng, &shape);
}

/* Weights of 0, 1/8 and 1/4, several final states: nearly every fst has several best paths.
 * `shift`: potentials make some weights negative and leave the order of the paths as it is. */
static inline wf_fst *fst_of_ties(test_rng *rng, bool shift) {
  uint32_t n = 1 + test_below(rng, 12);
  double moved;
  bool acyclic = n > 1 && test_below(rng, 2) == 0;
  test_fst_shape shape = {.num_states = n,
                          .num_arcs = test_below(rng, 5 * n),
                          .num_ilabels = 60,
                          .num_olabels = 60,
                          .final_share = 0.3f,
                          .max_weight = 0.25f,
                          .acyclic = acyclic};
  wf_fst *plain = test_random_fst(rng, &shape),
         *fst = test_reweighted_fst(rng, plain, 0, shift, &moved);
  wf_fst_free(plain);
  return fst;
}

/* Two arcs in five become epsilons if they lead to larger states, so epsilons form no cycles. A few
 * arcs get infinite or extremely negative costs. */
static inline bool with_epsilons(test_rng *rng, uint32_t state, wf_arc *arc) {
  if (arc->ilabel == 0) arc->ilabel = 1;
  if (arc->nextstate > state && test_below(rng, 5) < 2) arc->ilabel = arc->olabel = 0;
  if (test_below(rng, 400) == 0) arc->weight = INFINITY;
  if (test_below(rng, 400) == 0) arc->weight = -1e30f;
  return true;
}

/* Fsts with few labels, so that arcs become equal. Some have cycles (of labels), dead ends, no
 * states, no final state, or extreme costs. */
static inline wf_fst *random_epsilons_fst(test_rng *rng, wf_semiring semiring) {
  static const uint32_t sizes[] = {1, 5, 20, 300};
  uint32_t n = 1 + test_below(rng, sizes[test_below(rng, 4)]);
  bool wide = test_below(rng, 4) == 0;
  test_fst_shape shape = {
      .num_states = n,
      .num_arcs = wide && n < 10 ? 300 + test_below(rng, 300) : test_below(rng, n * 4),
      .num_ilabels = 1 + (int32_t)test_below(rng, 3),
      .num_olabels = 2,
      .final_share = test_below(rng, 8) == 0 ? 0 : 0.2f,
      .max_weight = 6,
      .acyclic = n > 1 && test_below(rng, 2) == 0,
      .semiring = semiring};
  if (test_below(rng, 9) != 0) {
    wf_fst *fst = test_random_fst(rng, &shape);
    return test_below(rng, 8) == 0 ? fst : test_changed_fst(fst, rng, with_epsilons);
  }
  return no_states(semiring);
}

/* The output is a function of the input: labels 1 and 3 write themselves, label 2 writes nothing.
 */
static inline bool function_of_input(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)rng, (void)state;
  arc->olabel = arc->ilabel == 2 ? 0 : arc->ilabel;
  return true;
}

/* Costs depend on the label, so that cyclic fsts can be determinized. A few arcs have infinite
 * cost. */
static inline bool cost_of_label(test_rng *rng, uint32_t state, wf_arc *arc) {
  (void)state;
  arc->weight = (float)arc->ilabel * 0.25f;
  if (test_below(rng, 30) == 0) arc->weight = INFINITY;
  arc->olabel = arc->ilabel;
  return true;
}

/* Acceptors, functions and relations, with and without cycles; dead ends; no states. */
static inline wf_fst *random_relation(test_rng *rng) {
  uint32_t n = 2 + test_below(rng, 30), kind = test_below(rng, 10);
  bool cycles = kind >= 8;
  test_fst_shape shape = {.num_states = n,
                          .num_arcs = 2 * n + test_below(rng, n),
                          .num_ilabels = 2 + (int32_t)test_below(rng, 2),
                          .num_olabels = 3,
                          .final_share = 0.2f,
                          .max_weight = 6,
                          .acyclic = !cycles,
                          .acceptor = kind < 3,
                          .semiring = WF_TROPICAL};
  if (kind == 7 && test_below(rng, 3) == 0) return no_states(WF_TROPICAL);
  if (kind == 6) shape.epsilon_share = 0.1f; /* epsilon is an ordinary label here */
  wf_fst *fst = test_random_fst(rng, &shape);
  if (cycles) return test_changed_fst(fst, rng, cost_of_label);
  return kind >= 3 && kind < 6 ? test_changed_fst(fst, rng, function_of_input) : fst;
}

static inline wf_builder *builder_of(wf_semiring semiring, uint32_t num_states) {
  wf_error err = {0};
  wf_builder *builder;
  assert_ok(wf_builder_create(semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  return builder;
}

static inline wf_fst *finish(wf_builder *builder) {
  wf_error err = {0};
  wf_fst *fst;
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static inline void add_arc(wf_builder *builder, uint32_t from, uint32_t to, int32_t ilabel,
                           int32_t olabel, float weight) {
  wf_error err = {0};
  assert_ok(wf_builder_add_arc(builder, from, (wf_arc){to, weight, ilabel, olabel}, &err));
}

static inline void set_final(wf_builder *builder, uint32_t state, float cost) {
  wf_error err = {0};
  assert_ok(wf_builder_set_final(builder, state, cost, &err));
}

/* `copies` copies of each of `core` states. Copies are equivalent once costs are pushed: each state
 * has a height (a potential), and arcs cost the difference. So costs may be negative while cycles
 * are not. Arcs are in any order. */
static inline wf_fst *unfolded(test_rng *rng, uint32_t core, uint32_t copies, bool cycles,
                               bool nondeterministic, wf_semiring semiring) {
  uint64_t seed = test_next(rng), heights = test_next(rng);
  uint32_t turn = test_below(rng, 3);
  wf_builder *builder = builder_of(semiring, core * copies);
  for (uint32_t s = 0; s < core * copies; s++) {
    test_rng own = {seed + s % core * 1000003u}; /* the same draws for all equivalent states */
    uint32_t layer = cycles ? 0 : s / core + 1, num_labels = 1 + test_below(&own, 4);
    test_rng hill = {heights + s};
    float height = semiring == WF_LOG ? 0 : 0.25f * (float)test_below(&hill, 9);
    if (s % core == 0 || test_below(&own, 4) == 0)
      set_final(builder, s, 0.25f * (float)test_below(&own, 3) + height);
    for (uint32_t k = 0; k < num_labels && layer < copies; k++) {
      int32_t label = 1 + (int32_t)((k + turn * s) % num_labels),
              olabel = (int32_t)(seed >> label & 1);
      test_rng act = {seed + s % core * 1000003u + (uint64_t)label};
      uint32_t to = (layer + test_below(rng, cycles ? copies : 1)) * core + test_below(&act, core);
      test_rng there = {heights + to};
      float climbs = semiring == WF_LOG ? 3 : height - 0.25f * (float)test_below(&there, 9),
            cost = 0.5f * (float)test_below(&act, 3);
      for (uint32_t twice = 0; twice <= (nondeterministic && label == 2); twice++)
        add_arc(builder, s, to, label, olabel, cost + climbs);
    }
  }
  return finish(builder);
}

/* An fst without a start state, which a file may contain. */
static inline wf_fst *without_start(wf_semiring semiring) {
  wf_error err = {0};
  wf__csr csr = {0};
  wf_fst *fst;
  for (int s = 0; s < 2; s++) assert_ok(wf__csr_add_state(&csr, 0.5f, &err));
  assert_ok(wf__csr_push(&csr, (wf_arc){0, 1, 1, 1}, &err));
  assert_ok(wf__fst_from_csr(&csr, -1, semiring, NULL, NULL, &fst, &err));
  return fst;
}

/* Few states, some of them equivalent; acceptors; arcs of infinite cost; no states, no final state,
 * no start. */
static inline wf_fst *random_unfolded(test_rng *rng, wf_semiring semiring) {
  uint32_t kind = test_below(rng, 40);
  if (kind == 0) return no_states(semiring);
  if (kind == 1) return test_fst_of(semiring, "0 1 1 1 1");
  if (kind == 2) return without_start(semiring);
  if (kind < 6) {
    test_fst_shape shape = {.num_states = 2 + test_below(rng, 20),
                            .num_arcs = 2 + test_below(rng, 30),
                            .num_ilabels = 9,
                            .num_olabels = 3,
                            .epsilon_share = 0.1f,
                            .final_share = 0.3f,
                            .max_weight = 2,
                            .acyclic = kind == 3,
                            .acceptor = kind == 4,
                            .semiring = semiring};
    return test_random_fst(rng, &shape);
  }
  return unfolded(rng, 1 + test_below(rng, 6), 1 + test_below(rng, 5), kind % 2 == 0, kind == 7,
                  semiring);
}

#endif
