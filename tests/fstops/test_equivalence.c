/* test_equivalence.c - equal, equivalent, randequivalent, the cost of a pair of strings, random
 * paths.
 *
 * Exact equivalence is checked with all strings shorter than the sum of the two acceptors' state
 * counts. Weighted acceptors that agree on those agree on all (Eilenberg 1974, the equality
 * theorem). */
#include "testing.h"

#include "fstops/pair_cost.h"

/* A deterministic acceptor over labels 1..num_labels. Costs are drawn from {0, 1/8, ... steps/8}.
 */
static wf_fst *deterministic(test_rng *rng, uint32_t num_states, int32_t num_labels,
                             float arc_share, uint32_t steps) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < num_states; s++) {
    for (int32_t label = 1; label <= num_labels; label++) {
      if (test_unit(rng) >= arc_share) continue;
      wf_arc arc = {test_below(rng, num_states), (float)test_below(rng, steps + 1) / 8, label,
                    label};
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
    if (test_unit(rng) < 0.4f)
      assert_ok(wf_builder_set_final(builder, s, (float)test_below(rng, steps + 1) / 8, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

/* Returns an fst of the same strings and costs with another shape: every state twice, arcs to
 * either copy, arcs in another order, costs moved by a potential for each copy (0 at the start). If
 * `change` > 0, the change-th arc weight or final cost is raised by 1/2. */
static wf_fst *disguise(test_rng *rng, const wf_fst *fst, int64_t change) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  uint32_t n = (uint32_t)view.num_states;
  wf_builder *builder;
  wf_fst *out;
  float *potential = calloc(2 * n, sizeof *potential);
  assert_non_null(potential);
  for (uint32_t s = 0; s < 2 * n; s++)
    potential[s] = s == 1 ? 0 : (float)test_below(rng, 64) / 8 - 4;
  assert_ok(wf_builder_create(view.semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 2 * n, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 1, &err));
  for (uint32_t s = 0; s < n; s++) {
    for (uint32_t copy = 0; copy < 2; copy++) {
      float last = view.final_cost[s] - potential[2 * s + copy];
      if (last != INFINITY && copy == 1 && change-- == 1) last += 0.5f;
      assert_ok(wf_builder_set_final(builder, 2 * s + copy, last, &err));
      for (uint64_t i = view.arc_off[s + 1]; i-- > view.arc_off[s];) {
        wf_arc arc = view.arcs[i];
        arc.nextstate = 2 * arc.nextstate + test_below(rng, 2);
        arc.weight += potential[arc.nextstate] - potential[2 * s + copy];
        if (copy == 1 && change-- == 1) arc.weight += 0.5f;
        assert_ok(wf_builder_add_arc(builder, 2 * s + copy, arc, &err));
      }
    }
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  free(potential);
  return out;
}

static bool same_strings(const wf_fst *a, const wf_fst *b) {
  int longest = (int)(wf_fst_get_view(a).num_states + wf_fst_get_view(b).num_states) - 1;
  test_relation x = test_enumerate(a, longest, 200000), y = test_enumerate(b, longest, 200000);
  bool same = x.size == y.size;
  for (size_t i = 0; same && i < x.size; i++)
    same = strcmp(x.pairs[i].key, y.pairs[i].key) == 0 &&
           fabs(x.pairs[i].cost - y.pairs[i].cost) < 0.01;
  test_relation_free(&x);
  test_relation_free(&y);
  return same;
}

static void test_equivalent_small(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {21};
  int yes = 0, no = 0;
  for (int round = 0; round < 1500; round++) {
    wf_fst *a = deterministic(&rng, 1 + test_below(&rng, 3), 2, 0.5f, round % 2), *b;
    if (round % 3 == 0)
      b = deterministic(&rng, 1 + test_below(&rng, 4), 2, 0.5f, round % 2);
    else
      b = disguise(&rng, a, round % 3 == 1 ? 0 : 1 + test_below(&rng, 4));
    bool equal, turned;
    assert_ok(wf_equivalent(a, b, 0.01f, &equal, &err));
    assert_ok(wf_equivalent(b, a, 0.01f, &turned, &err));
    bool truth = same_strings(a, b);
    if (equal != truth)
      fail_msg("round %d: %d instead of %d: %s", round, equal, truth, err.message);
    assert_int_equal(turned, truth);
    yes += truth;
    no += !truth;
    wf_fst_free(a);
    wf_fst_free(b);
  }
  assert_true(yes > 400 && no > 400);
}

static void test_equivalent_large(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {22};
  wf_fst *a = deterministic(&rng, 20000, 4, 0.6f, 80), *b = disguise(&rng, a, 0),
         *c = disguise(&rng, a, 1);
  bool equal;
  assert_ok(wf_equivalent(a, b, 0.001f, &equal, &err));
  if (!equal) fail_msg("%s", err.message);
  assert_ok(wf_equivalent(a, c, 0.001f, &equal, &err));
  assert_false(equal);
  assert_non_null(strstr(err.message, "after"));
  wf_fst_free(b);
  wf_fst_free(c);
  wf_fst_free(a);
  /* OpenFst's determinized, pushed and minimized versions of a random acceptor. */
  test_fst_shape shape = {.num_states = 300,
                          .num_arcs = 500,
                          .num_ilabels = 40,
                          .final_share = 0.1f,
                          .max_weight = 10,
                          .acyclic = true,
                          .acceptor = true};
  char path[4][600];
  const char *names[] = {"raw.fst", "det.fst", "min.fst", "other.fst"};
  for (int i = 0; i < 4; i++) snprintf(path[i], sizeof path[i], "%s", test_temp_path(names[i]));
  wf_fst *raw = test_random_fst(&rng, &shape), *det, *min, *other;
  assert_ok(wf_fst_write(raw, path[0], WF_FORMAT_OPENFST_VECTOR, &err));
  test_shell("fstdeterminize %s %s && fstminimize %s %s && fstequivalent %s %s", path[0], path[1],
             path[1], path[2], path[1], path[2]);
  test_shell("fstrandgen --seed=5 --npath=500 %s | fstdeterminize - %s; ! fstequivalent %s %s",
             path[1], path[3], path[3], path[1]);
  assert_ok(wf_fst_read(path[1], &det, &err));
  assert_ok(wf_fst_read(path[2], &min, &err));
  assert_ok(wf_fst_read(path[3], &other, &err));
  assert_ok(wf_equivalent(det, min, 0.001f, &equal, &err));
  if (!equal) fail_msg("%s", err.message);
  assert_ok(wf_equivalent(det, other, 0.001f, &equal, &err));
  assert_false(equal);
  wf_randequivalent_options options;
  wf_randequivalent_options_init(&options);
  options.npath = 200;
  assert_ok(wf_randequivalent(raw, min, &options, &equal, &err));
  if (!equal) fail_msg("%s", err.message);
  wf_fst *all[] = {raw, det, min, other};
  for (int i = 0; i < 4; i++) wf_fst_free(all[i]);
}

static void test_rejected_inputs(void **state) {
  (void)state;
  static const char *const bad[] = {"0 1 1 2;1", "0 1 0 0;1", "0 1 1 1;0 0 1 1;1"};
  wf_error err = {0};
  bool equal = true;
  wf_fst *good = test_fst_of(WF_TROPICAL, "0 1 1 1;1"), *log = test_fst_of(WF_LOG, "0 1 1 1;1");
  for (size_t i = 0; i < 3; i++) {
    wf_fst *fst = test_fst_of(WF_TROPICAL, bad[i]);
    assert_int_equal(wf_equivalent(good, fst, 0, &equal, &err), WF_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "second"));
    assert_int_equal(wf_equivalent(fst, good, 0, &equal, &err), WF_ERR_ARGUMENT);
    assert_false(equal);
    wf_fst_free(fst);
  }
  assert_int_equal(wf_equivalent(good, log, 0, &equal, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_equal(good, log, 0, &equal, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_randequivalent(good, log, NULL, &equal, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_equivalent(good, good, NAN, &equal, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_equal(good, good, -1, &equal, &err), WF_ERR_ARGUMENT);
  wf_fst_free(good);
  wf_fst_free(log);
}

static void expect_equal(const char *a, const char *b, bool expected, const char *message) {
  wf_error err = {0};
  bool equal;
  wf_fst *x = test_fst_of(WF_LOG, a), *y = test_fst_of(WF_LOG, b);
  assert_ok(wf_equal(x, y, 0.125f, &equal, &err));
  assert_int_equal(equal, expected);
  if (!expected && strstr(err.message, message) == NULL)
    fail_msg("'%s' lacks '%s'", err.message, message);
  assert_ok(wf_equal(x, y, 0.125f, &equal, NULL));
  wf_fst_free(x);
  wf_fst_free(y);
}

static void test_equal(void **state) {
  (void)state;
  expect_equal("0 1 1 2 0.5;1 3", "0 1 1 2 0.5;1 3", true, "");
  expect_equal("0 1 1 2 0.5;1 3", "0 1 1 2 0.625;1 2.875", true, "");
  expect_equal("", "", true, "");
  expect_equal("0 1 1 2 inf;1", "0 1 1 2 inf;1", true, "");
  expect_equal("0 1 1 2 inf;1", "0 1 1 2 1;1", false, "arc 0");
  expect_equal("0 1 1 2 0.5;1 3", "0 1 1 2 0.75;1 3", false, "arc 0");
  expect_equal("0 1 1 2 0.5;1 3", "0 1 1 2 0.5;1 3.25", false, "state 1: final cost");
  expect_equal("0 1 1 2;1", "0 1 1 2", false, "final cost");
  expect_equal("0 1 1 2;1", "0 1 1 3;1", false, "1:2 to 1");
  expect_equal("0 1 1 2;1", "0 1 1 2;0 1 1 2;1", false, "2 in the second");
  expect_equal("0 1 1 2;1", "1 0 1 2;1", false, "start state");
  expect_equal("0 1 1 2;1", "0 1 1 2;1;2", false, "2 states in the first, 3");
  expect_equal("0 1 1 2;0 1 2 3;1", "0 1 2 3;0 1 1 2;1", false, "arc 0");
}

/* --- costs of pairs ---------------------------------------------------------------------- */

static void parse_labels(const char **at, wf__labels *out) {
  out->size = 0;
  while (**at != '\0' && **at != ':') {
    char *stop;
    assert_int_equal(wf__vec_push(out, (int32_t)strtol(*at, &stop, 10), "labels", NULL), WF_OK);
    *at = stop + 1;
  }
  if (**at == ':') *at += 2;
}

static double pair_cost(const wf_fst *fst, const char *key, wf_status expected) {
  wf_error err = {0};
  wf_fst_view view = wf_fst_get_view(fst);
  wf__labels input = {0}, output = {0};
  wf__pair_work work = {0};
  double cost;
  parse_labels(&key, &input);
  parse_labels(&key, &output);
  assert_int_equal(wf__pair_cost(&view, &input, &output, &work, &cost, &err), expected);
  wf__pair_work_free(&work);
  wf__vec_free(&input);
  wf__vec_free(&output);
  return cost;
}

static void test_pair_costs(void **state) {
  (void)state;
  test_rng rng = {23};
  int pairs = 0;
  for (int round = 0; round < 400; round++) {
    test_fst_shape shape = {.num_states = 6,
                            .num_arcs = 12,
                            .num_ilabels = 2,
                            .num_olabels = 2,
                            .epsilon_share = 0.4f,
                            .final_share = 0.3f,
                            .max_weight = 3,
                            .acyclic = true,
                            .semiring = round % 2 ? WF_LOG : WF_TROPICAL};
    wf_fst *fst = test_random_fst(&rng, &shape);
    test_relation all = test_enumerate(fst, 12, 100000);
    for (size_t i = 0; i < all.size; i++, pairs++) {
      double cost = pair_cost(fst, all.pairs[i].key, WF_OK);
      if (fabs(cost - all.pairs[i].cost) > 1e-9)
        fail_msg("'%s': %.12g instead of %.12g", all.pairs[i].key, cost, all.pairs[i].cost);
    }
    assert_true(pair_cost(fst, "1 2 1 2 1 2 1 : 1 ", WF_OK) ==
                INFINITY); /* six states, so at most five labels */
    test_relation_free(&all);
    wf_fst_free(fst);
  }
  assert_true(pairs > 2000);
}

/* Epsilon cycles: geometric series in closed form. */
static void test_pair_cycles(void **state) {
  (void)state;
  wf_fst *loop =
      test_fst_of(WF_LOG, "0 0 0 0 0.01;0 1 1 2 1;1 2 0 0 0.5;2 1 0 0 0.25;2 2 3 0 1;2 0.125");
  double self = log1p(-exp(-0.01)), round_trip = log1p(-exp(-0.75)); /* log(1 - p) each */
  assert_true(fabs(pair_cost(loop, "1 : 2 ", WF_OK) - (1 + self + 0.5 + round_trip + 0.125)) <
              1e-5);
  assert_true(fabs(pair_cost(loop, "1 3 : 2 ", WF_OK) -
                   (1 + self + 0.5 + round_trip + 1 + round_trip + 0.125)) < 1e-5);
  assert_true(pair_cost(loop, "3 : 2 ", WF_OK) == INFINITY);
  wf_fst_free(loop);
  wf_fst *tropical = test_fst_of(
      WF_TROPICAL, "0 0 0 0 0.01;0 1 1 2 1;1 2 0 0 0.5;2 1 0 0 -0.5;2 2 3 0 -1;2 0.125");
  assert_true(fabs(pair_cost(tropical, "1 3 3 : 2 ", WF_OK) - (1 + 0.5 - 2 + 0.125)) < 1e-9);
  wf_fst_free(tropical);
  wf_fst *diverging = test_fst_of(WF_LOG, "0 0 0 0 0;0 1 1 1;1"),
         *negative = test_fst_of(WF_TROPICAL, "0 1 0 0 1;1 0 0 0 -1.5;0");
  pair_cost(diverging, "1 : 1 ", WF_ERR_LIMIT);
  pair_cost(negative, ": ", WF_ERR_NEGATIVE_CYCLE);
  wf_fst_free(diverging);
  wf_fst_free(negative);
}

static void test_randequivalent(void **state) {
  (void)state;
  wf_error err = {0};
  test_rng rng = {24};
  int no = 0;
  for (int round = 0; round < 200; round++) {
    test_fst_shape shape = {.num_states = 8,
                            .num_arcs = 24,
                            .num_ilabels = 3,
                            .num_olabels = 2,
                            .epsilon_share = 0.2f,
                            .final_share = 0.3f,
                            .max_weight = 4,
                            .semiring = round % 2 ? WF_LOG : WF_TROPICAL};
    wf_fst *a = test_random_fst(&rng, &shape), *b = disguise(&rng, a, 0),
           *c = disguise(&rng, a, 1 + test_below(&rng, 12));
    wf_randequivalent_options options;
    wf_randequivalent_options_init(&options);
    options.max_length = 8;
    options.npath = 20;
    options.seed = round;
    bool equal;
    wf_status status = wf_randequivalent(a, b, &options, &equal, &err);
    if (status == WF_ERR_ARGUMENT || status == WF_ERR_LIMIT)
      assert_true(err.message[0] != '\0'); /* no path that short, or epsilon cycles of cost 0 */
    else if (status != WF_OK || !equal)
      fail_msg("round %d: %s", round, err.message);
    if (status == WF_OK && wf_randequivalent(a, c, &options, &equal, &err) == WF_OK) no += !equal;
    wf_fst_free(a);
    wf_fst_free(b);
    wf_fst_free(c);
  }
  assert_true(no > 60); /* a changed weight is found if it is on a drawn path */
  wf_fst *empty = test_fst_of(WF_TROPICAL, ""), *one = test_fst_of(WF_TROPICAL, "0 1 1 1;1");
  bool equal;
  assert_ok(wf_randequivalent(empty, empty, NULL, &equal, &err));
  assert_true(equal);
  assert_ok(wf_randequivalent(empty, one, NULL, &equal, &err));
  assert_false(equal);
  assert_ok(wf_equivalent(empty, one, 0, &equal, &err));
  assert_false(equal);
  assert_ok(wf_equivalent(empty, empty, 0, &equal, &err));
  assert_true(equal);
  wf_fst_free(empty);
  wf_fst_free(one);
}

/* --- random paths ------------------------------------------------------------------------ */

static wf_fst *draw(const wf_fst *fst, int32_t npath, int64_t seed, int32_t max_length, int select,
                    bool keep_weights) {
  wf_error err = {0};
  wf_fst *out;
  wf_randgen_options options;
  wf_randgen_options_init(&options);
  options.npath = npath;
  options.seed = seed;
  options.max_length = max_length;
  options.select = select;
  options.keep_weights = keep_weights;
  assert_ok(wf_randgen(fst, &options, &out, &err));
  return out;
}

/* Every drawn path is a path of the fst with the same cost, and none is longer than requested. The
 * fsts include dead ends and long detours. */
static void test_randgen_paths(void **state) {
  (void)state;
  test_rng rng = {25};
  int drawn = 0;
  for (int round = 0; round < 200; round++) {
    test_fst_shape shape = {.num_states = 6,
                            .num_arcs = 12,
                            .num_ilabels = 3,
                            .num_olabels = 3,
                            .epsilon_share = 0.2f,
                            .final_share = 0.1f,
                            .max_weight = 4};
    wf_fst *fst = test_random_fst(&rng, &shape);
    wf_error err = {0};
    wf_fst *best;
    assert_ok(wf_shortest_path(fst, NULL, &best, &err));
    if (wf_fst_get_view(best).start >= 0) {
      wf_fst *paths = draw(fst, 10, round, 7, round % 2, true);
      wf_fst_view view = wf_fst_get_view(paths);
      test_relation all = test_enumerate(fst, 7, 100000), got = test_enumerate(paths, 20, 100);
      assert_true(got.size > 0);
      assert_true(view.num_states <= 1 + 7 * 10);
      for (size_t i = 0; i < got.size; i++) { /* the cheapest drawn path with these labels costs no
                                                 less than the cheapest path there is */
        size_t k = 0;
        while (k < all.size && strcmp(all.pairs[k].key, got.pairs[i].key) != 0) k++;
        if (k == all.size) fail_msg("'%s' is no path", got.pairs[i].key);
        assert_true(got.pairs[i].cost >= all.pairs[k].cost);
        drawn++;
      }
      test_relation_free(&all);
      test_relation_free(&got);
      wf_fst_free(paths);
    }
    wf_fst_free(fst);
    wf_fst_free(best);
  }
  assert_true(drawn > 500);
}

static void test_randgen_shares(void **state) {
  (void)state;
  wf_error err = {0};
  bool equal;
  wf_fst *fst = test_fst_of(
      WF_LOG,
      "0 1 1 1 0.6931472;0 1 2 2 1.3862944;0 2 3 3 0.1;1;0 1.3862944"); /* state 3 is a dead end;
                                                                           the shares are 1/2, 1/4,
                                                                           and 1/4 for stopping */
  for (int select = 0; select < 2; select++) {
    const int n = 12000;
    wf_fst *paths = draw(fst, n, 9, 100, select, false),
           *again = draw(fst, n, 9, 100, select, false),
           *other = draw(fst, n, 10, 100, select, false);
    assert_ok(wf_equal(paths, again, 0, &equal, &err));
    assert_true(equal);
    assert_ok(wf_equal(paths, other, 0, &equal, &err));
    assert_false(equal);
    assert_true(wf_fst_properties(paths) & WF_PROP_UNWEIGHTED);
    wf_fst_view view = wf_fst_get_view(paths);
    int count[4] = {0};
    for (uint64_t i = 0; i < view.num_arcs; i++) count[view.arcs[i].ilabel]++;
    assert_int_equal(count[3], 0);
    count[0] = n - count[1] - count[2];
    double expected[] = {select ? 0.25 : 1.0 / 3, select ? 0.5 : 1.0 / 3, select ? 0.25 : 1.0 / 3};
    for (int i = 0; i < 3; i++)
      assert_true(fabs(count[i] - expected[i] * n) <
                  4 * sqrt(n * 0.25)); /* four standard deviations */
    wf_fst *all[] = {paths, again, other};
    for (int i = 0; i < 3; i++) wf_fst_free(all[i]);
  }
  wf_fst_free(fst);
  wf_fst *chain = test_fst_of(WF_TROPICAL, "0 1 1 1;1 2 1 1;2 3 1 1;3"), *out;
  wf_randgen_options options;
  wf_randgen_options_init(&options);
  options.max_length = 2;
  assert_int_equal(wf_randgen(chain, &options, &out, &err), WF_ERR_ARGUMENT);
  assert_null(out);
  assert_non_null(strstr(err.message, "the shortest has 3"));
  assert_int_equal(wf_randequivalent(chain, chain, NULL, &equal, &err), WF_OK);
  wf_fst_free(chain);
  wf_fst *nothing = test_fst_of(WF_TROPICAL, "0 1 1 1");
  assert_ok(wf_randgen(nothing, NULL, &out, &err));
  assert_int_equal(wf_fst_get_view(out).num_states, 0);
  wf_fst_free(nothing);
  wf_fst_free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal),
                                     cmocka_unit_test(test_equivalent_small),
                                     cmocka_unit_test(test_equivalent_large),
                                     cmocka_unit_test(test_rejected_inputs),
                                     cmocka_unit_test(test_pair_costs),
                                     cmocka_unit_test(test_pair_cycles),
                                     cmocka_unit_test(test_randequivalent),
                                     cmocka_unit_test(test_randgen_paths),
                                     cmocka_unit_test(test_randgen_shares)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
