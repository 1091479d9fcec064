/* test_lookahead.c - composition with label look-ahead gives the same trimmed result, and makes
 * fewer dead states. With label pushing it has the same paths, and fewer states. */
#include "testing.h"

static wf_error err;

static wf_fst *compose(const wf_fst *a, const wf_fst *b, const wf_compose_options *o, bool ahead) {
  wf_compose_options with = *o;
  wf_fst *out;
  with.lookahead = ahead;
  assert_ok(wf_compose(a, b, &with, &out, &err));
  return out;
}

static wf_fst *random_input(test_rng *rng, bool acyclic) {
  static const float epsilons[] = {0, 0.2f, 0.6f};
  test_fst_shape shape = {.num_states = 1 + test_below(rng, 25),
                          .num_arcs = test_below(rng, 50),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 12),
                          .num_olabels = 1 + (int32_t)test_below(rng, 12),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.2f,
                          .max_weight = 3,
                          .acyclic = acyclic};
  return test_random_fst(rng, &shape);
}

static void test_same_trimmed_result(void **state) {
  (void)state;
  test_rng rng = {1};
  uint64_t num_states = 0, num_plain = 0, num_ahead = 0;
  for (int round = 0; round < 1500; round++) {
    wf_fst *a = random_input(&rng, round % 2), *b = random_input(&rng, round % 3 == 0);
    wf_compose_options o;
    bool same;
    wf_compose_options_init(&o);
    o.filter = (int32_t)test_below(&rng, 7);
    o.order = round % 5 == 0;
    wf_fst *plain = compose(a, b, &o, false), *ahead = compose(a, b, &o, true);
    assert_ok(wf_equal(plain, ahead, 0, &same, &err));
    if (!same) fail_msg("round %d: %s", round, err.message);
    num_states += wf_fst_get_view(plain).num_states;
    wf_fst_free(ahead);
    o.connect = false;
    wf_fst *plain_all = compose(a, b, &o, false), *ahead_all = compose(a, b, &o, true), *trimmed;
    num_plain += wf_fst_get_view(plain_all).num_states;
    num_ahead += wf_fst_get_view(ahead_all).num_states;
    assert_true(wf_fst_get_view(ahead_all).num_states <= wf_fst_get_view(plain_all).num_states);
    assert_ok(wf_connect(ahead_all, &trimmed, &err));
    assert_ok(wf_equal(plain, trimmed, 0, &same, &err));
    if (!same) fail_msg("round %d, untrimmed: %s", round, err.message);
    wf_fst *all[] = {a, b, plain, plain_all, ahead_all, trimmed};
    for (int k = 0; k < 6; k++) wf_fst_free(all[k]);
  }
  assert_true(num_states > 3000);
  if (!(num_ahead < num_plain - num_plain / 10)) /* it does something */
    fail_msg("%llu states with, %llu without", (unsigned long long)num_ahead,
             (unsigned long long)num_plain);
}

static wf_fst *delayed_input(test_rng *rng, float epsilons) {
  test_fst_shape shape = {.num_states = 4 + test_below(rng, 6),
                          .num_arcs = 8 + test_below(rng, 14),
                          .num_ilabels = 3,
                          .num_olabels = 3,
                          .epsilon_share = epsilons,
                          .final_share = 0.2f,
                          .max_weight = 3,
                          .acyclic = true};
  return test_random_fst(rng, &shape);
}

/* Path by path, against a composition without look-ahead. */
static void test_pushing_keeps_the_paths(void **state) {
  (void)state;
  test_rng rng = {2};
  uint64_t num_pairs = 0, num_earlier = 0;
  for (int round = 0; round < 1500; round++) {
    wf_fst *a = delayed_input(&rng, 0.5f), *b = delayed_input(&rng, round % 4 ? 0 : 0.1f), *plain,
           *pushed, *all;
    wf_compose_options o;
    wf_compose_options_init(&o);
    o.filter = (int32_t)test_below(&rng, 4); /* those with one path for each pair of paths */
    o.num_threads = 1 + round % 3;
    plain = compose(a, b, &o, false);
    o.lookahead_push = true;
    pushed = compose(a, b, &o, round % 2);
    o.connect = false;
    all = compose(a, b, &o, false);
    test_relation want = test_enumerate(plain, 60, 1000000);
    num_pairs += want.size;
    test_assert_relation(pushed, &want, 60, 1e-3);
    test_assert_relation(all, &want, 60, 1e-3);
    bool same;
    assert_ok(wf_equal(plain, pushed, 0, &same, &err));
    num_earlier += !same;
    test_relation_free(&want);
    wf_fst *made[] = {a, b, plain, pushed, all};
    for (int k = 0; k < 5; k++) wf_fst_free(made[k]);
  }
  if (!(num_pairs > 3000 && num_earlier > 100)) /* it does something */
    fail_msg("%llu pairs, %llu results differ", (unsigned long long)num_pairs,
             (unsigned long long)num_earlier);
}

/* Two histories lead to the same word, whose output moves before its first arc: the word is shared.
 * In the canonical order, which is the same on every device, nothing is pushed. */
static void test_pushing_merges_histories(void **state) {
  (void)state;
  wf_fst *lexicon = test_fst_of(
             WF_TROPICAL, "0 1 1 0;0 2 9 5;0 3 9 6;1 4 2 0;4 0 3 7;2 0 4 0;3 0 5 0;1 0 8 8;0"),
         *grammar = test_fst_of(WF_TROPICAL, "0 1 5 5;0 2 6 6;1 3 7 17 0.5;2 3 7 18 0.25;3");
  wf_compose_options o;
  wf_compose_options_init(&o);
  wf_fst *ahead = compose(lexicon, grammar, &o, true);
  o.lookahead_push = true;
  wf_fst *pushed = compose(lexicon, grammar, &o, true);
  assert_int_equal(wf_fst_get_view(ahead).num_states, 10);
  assert_int_equal(wf_fst_get_view(pushed).num_states, 7);
  const wf_fst_view view = wf_fst_get_view(pushed);
  for (uint64_t i = 0; i < view.num_arcs; i++)
    if (view.arcs[i].ilabel == 4 || view.arcs[i].ilabel == 5)
      assert_int_equal(view.arcs[i].olabel, view.arcs[i].ilabel + 13);
  o.order = 1;
  wf_fst *canonical = compose(lexicon, grammar, &o, true), *want;
  o.lookahead_push = false;
  want = compose(lexicon, grammar, &o, true);
  bool same;
  assert_ok(wf_equal(canonical, want, 0, &same, &err));
  assert_true(same);
  wf_fst *all[] = {lexicon, grammar, ahead, pushed, canonical, want};
  for (int k = 0; k < 6; k++) wf_fst_free(all[k]);
}

/* Two words share a beginning without output; only one of them is in the grammar. The beginning
 * that leads to the other is not made. */
static void test_skips_what_cannot_match(void **state) {
  (void)state;
  wf_fst *lexicon = test_fst_of(WF_TROPICAL, "0 1 1 0;1 2 2 0;2 0 3 7;0 4 4 0;4 5 5 0;5 0 6 8;0"),
         *grammar = test_fst_of(WF_TROPICAL, "0 1 7 7;1");
  wf_compose_options o;
  wf_compose_options_init(&o);
  o.connect = false;
  wf_fst *plain = compose(lexicon, grammar, &o, false),
         *ahead = compose(lexicon, grammar, &o, true);
  assert_int_equal(wf_fst_get_view(plain).num_states, 10);
  assert_int_equal(wf_fst_get_view(ahead).num_states, 4);
  wf_fst *all[] = {lexicon, grammar, plain, ahead};
  for (int k = 0; k < 4; k++) wf_fst_free(all[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_trimmed_result),
                                     cmocka_unit_test(test_pushing_keeps_the_paths),
                                     cmocka_unit_test(test_pushing_merges_histories),
                                     cmocka_unit_test(test_skips_what_cannot_match)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
