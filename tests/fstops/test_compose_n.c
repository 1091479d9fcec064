/* test_compose_n.c - composition of several fsts in one call: an example by hand, the definition
 * (all triples of paths) on small random fsts, and the same bytes as pairs from left to right. */
#include "compose_oracle.h"
#include "example.h"

enum { NUM_FILTERS = 7, MAX_FSTS = 5 };

static wf_compose_options options_of(int filter, int order, bool connect) {
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.filter = filter;
  options.order = order;
  options.connect = connect;
  return options;
}

/* Composes from left to right with one call for each pair. `trim`: also those in between. */
static wf_fst *by_pairs(wf_fst *const *fsts, size_t count, const wf_compose_options *options,
                        bool trim) {
  wf_error err = {0};
  wf_fst *left = wf_fst_ref(fsts[0]);
  for (size_t i = 1; i < count; i++) {
    wf_compose_options own = *options;
    wf_fst *out;
    if (i + 1 < count) own.connect = trim;
    assert_ok(wf_compose(left, fsts[i], &own, &out, &err));
    wf_fst_free(left);
    left = out;
  }
  return left;
}

static wf_fst *at_once(wf_fst *const *fsts, size_t count, const wf_compose_options *options) {
  wf_error err = {0};
  wf_fst *out;
  assert_ok(wf_compose_n((const wf_fst *const *)fsts, count, options, &out, &err));
  return out;
}

static void free_all(wf_fst **fsts, size_t count) {
  for (size_t i = 0; i < count; i++) wf_fst_free(fsts[i]);
}

/* "1 2" becomes 5, then "7 8" (8 without input), then 9 for 7 and nothing for 8. */
static void test_example(void **state) {
  (void)state;
  wf_fst *fsts[] = {test_fst_of(WF_TROPICAL, "0 1 1 0 0.5\n1 2 2 5\n2\n"),
                    test_fst_of(WF_TROPICAL, "0 1 5 7 0.25\n1 2 0 8\n2\n"),
                    test_fst_of(WF_TROPICAL, "0 0 7 9 1\n0 0 8 0 2\n0 4\n")};
  wf_fst *out = at_once(fsts, 3, NULL);
  example_expect_paths(out, 1, (const char *const[]){"1 2 : 9"}, (const double[]){7.75});
  wf_fst_free(out);
  free_all(fsts, 3);
}

/* --- the definition ---------------------------------------------------------------------- */

enum { MAX_PATH = 12, MAX_PATHS = 4000, IN = 0, OUT = 1 };

struct path {
  int size[2];
  int32_t labels[2][MAX_PATH]; /* without epsilons */
  double cost;
};

struct paths {
  size_t size;
  struct path items[MAX_PATHS];
};

static void walk(const wf_fst_view *view, uint64_t state, struct path path, struct paths *out) {
  if (view->final_cost[state] != INFINITY) {
    assert_true(out->size < MAX_PATHS);
    out->items[out->size] = path;
    out->items[out->size++].cost += (double)view->final_cost[state];
  }
  for (uint64_t i = view->arc_off[state]; i < view->arc_off[state + 1]; i++) {
    const int32_t labels[2] = {view->arcs[i].ilabel, view->arcs[i].olabel};
    struct path longer = path;
    for (int side = 0; side < 2; side++)
      if (labels[side] != 0) longer.labels[side][longer.size[side]++] = labels[side];
    longer.cost += (double)view->arcs[i].weight;
    walk(view, view->arcs[i].nextstate, longer, out);
  }
}

static struct paths *paths_of(const wf_fst *fst) {
  struct paths *out = calloc(1, sizeof *out);
  assert_non_null(out);
  wf_fst_view view = wf_fst_get_view(fst);
  walk(&view, (uint64_t)view.start, (struct path){{0}, {{0}}, 0}, out);
  return out;
}

static bool meet(const struct path *x, const struct path *y) {
  return x->size[OUT] == y->size[IN] &&
         memcmp(x->labels[OUT], y->labels[IN], (size_t)x->size[OUT] * sizeof(int32_t)) == 0;
}

/* Sum of exp(-cost) and best cost over all triples of paths that compose, each counted once, and
 * their number. */
static size_t sum_triples(struct paths *const *paths, double *sum, double *best) {
  size_t count = 0;
  *sum = 0;
  *best = INFINITY;
  for (size_t i = 0; i < paths[0]->size; i++)
    for (size_t j = 0; j < paths[1]->size; j++) {
      const struct path *x = &paths[0]->items[i], *y = &paths[1]->items[j];
      if (!meet(x, y)) continue;
      for (size_t k = 0; k < paths[2]->size; k++) {
        const struct path *z = &paths[2]->items[k];
        if (!meet(y, z)) continue;
        count++;
        *sum += exp(-(x->cost + y->cost + z->cost));
        *best = fmin(*best, x->cost + y->cost + z->cost);
      }
    }
  return count;
}

static test_fst_shape small_shape(test_rng *rng) {
  static const float epsilons[] = {0, 0.3f, 0.6f};
  return (test_fst_shape){.num_states = 2 + test_below(rng, 4),
                          .num_arcs = 3 + test_below(rng, 7),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 2),
                          .num_olabels = 1 + (int32_t)test_below(rng, 2),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.4f,
                          .max_weight = 4,
                          .acyclic = true,
                          .semiring = WF_LOG};
}

/* With the filters that keep one order of epsilons, the result has one path for each triple of
 * paths: no more and no fewer. */
static void test_definition(void **state) {
  (void)state;
  enum { SEQUENCE = 1, MATCH = 3 };
  test_rng rng = {12};
  size_t nonempty = 0;
  for (int round = 0; round < 500; round++) {
    wf_fst *fsts[3];
    struct paths *paths[3];
    for (int i = 0; i < 3; i++) {
      test_fst_shape shape = small_shape(&rng);
      fsts[i] = test_random_fst(&rng, &shape);
      paths[i] = paths_of(fsts[i]);
    }
    double sum, best;
    size_t count = sum_triples(paths, &sum, &best);
    nonempty += count > 1;
    for (int filter = SEQUENCE; filter <= MATCH; filter++)
      for (int order = 0; order < 2; order++) {
        wf_compose_options options = options_of(filter, order, true);
        wf_fst *out = at_once(fsts, 3, &options);
        assert_true(test_is_trimmed(out));
        assert_int_equal(wf_fst_get_view(out).start < 0, count == 0);
        if (count != 0) {
          struct paths *made = paths_of(out);
          double got = 0, got_best = INFINITY;
          for (size_t i = 0; i < made->size; i++) {
            got += exp(-made->items[i].cost);
            got_best = fmin(got_best, made->items[i].cost);
          }
          assert_int_equal(made->size, count);
          test_assert_close(got, sum, 1e-4 * (1 + sum));
          test_assert_close(got_best, best, 1e-4);
          free(made);
        }
        wf_fst_free(out);
      }
    for (int i = 0; i < 3; i++) free(paths[i]);
    free_all(fsts, 3);
  }
  assert_true(nonempty > 100);
}

/* --- against pairs from left to right ---------------------------------------------------- */

static wf_fst *random_part(test_rng *rng, wf_semiring semiring) {
  static const float epsilons[] = {0, 0.2f, 0.5f};
  static const uint32_t sizes[] = {3, 12, 40};
  const uint32_t n = 1 + test_below(rng, sizes[test_below(rng, 3)]);
  test_fst_shape shape = {.num_states = n,
                          .num_arcs = test_below(rng, n * 3 + 1) + n,
                          .num_ilabels = 1 + (int32_t)test_below(rng, 5),
                          .num_olabels = 1 + (int32_t)test_below(rng, 5),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.2f,
                          .max_weight = 4,
                          .semiring = semiring};
  return test_random_fst(rng, &shape);
}

static void test_same_bytes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 500; seed++) {
    test_rng rng = {seed};
    const size_t count = seed % 3 == 0 ? 2 + test_below(&rng, MAX_FSTS - 1) : 3;
    const wf_semiring semiring = test_below(&rng, 2) ? WF_LOG : WF_TROPICAL;
    wf_fst *fsts[MAX_FSTS];
    for (size_t i = 0; i < count; i++) fsts[i] = random_part(&rng, semiring);
    for (int order = 0; order < 2; order++)
      for (int connect = 0; connect < 2; connect++) {
        wf_compose_options options = options_of((int)(seed % NUM_FILTERS), order, connect != 0);
        wf_fst *want = by_pairs(fsts, count, &options, false),
               *got = at_once(fsts, count, &options);
        assert_same_bytes(got, want, "pairs");
        wf_fst_free(want);
        wf_fst_free(got);
      }
    free_all(fsts, count);
  }
}

/* Large enough for threads and for states of many arcs. */
static void test_large(void **state) {
  (void)state;
  wf_fst *fsts[3] = {oracle_emissions(9, 9, 1), oracle_random_graph(60, 4, 9, 2),
                     oracle_random_graph(9000, 8, 9, 3)};
  for (int order = 0; order < 2; order++)
    for (int threads = 1; threads < 4; threads += 2) {
      wf_compose_options options = options_of(0, order, false);
      options.num_threads = threads;
      wf_fst *want = by_pairs(fsts, 3, &options, false), *got = at_once(fsts, 3, &options);
      assert_true(wf_fst_get_view(want).num_states > 10000);
      assert_same_bytes(got, want, "large");
      wf_fst_free(want);
      wf_fst_free(got);
    }
  free_all(fsts, 3);
}

/* If the compositions in between are trimmed, states may differ, but not the paths: equal sums in
 * the log semiring. */
static void test_trimmed_between(void **state) {
  (void)state;
  wf_error err = {0};
  size_t compared = 0, other_states = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    test_rng rng = {seed};
    wf_fst *fsts[3];
    for (int i = 0; i < 3; i++) {
      test_fst_shape shape = small_shape(&rng);
      shape.num_states += 8;
      shape.num_arcs += 20;
      fsts[i] = test_random_fst(&rng, &shape);
    }
    wf_compose_options options = options_of(1 + (int)(seed % 3), seed % 2 == 0, true);
    wf_fst *want = by_pairs(fsts, 3, &options, true), *got = at_once(fsts, 3, &options);
    assert_int_equal(wf_fst_get_view(want).start < 0, wf_fst_get_view(got).start < 0);
    if (wf_fst_get_view(want).start >= 0) {
      double x, y;
      assert_ok(wf_forward_score(want, NULL, &x, NULL, &err));
      assert_ok(wf_forward_score(got, NULL, &y, NULL, &err));
      test_assert_close(x, y, 1e-4 * (1 + fabs(x)));
      compared++;
      other_states += wf_fst_get_view(want).num_states != wf_fst_get_view(got).num_states;
    }
    wf_fst_free(want);
    wf_fst_free(got);
    free_all(fsts, 3);
  }
  assert_true(compared > 100);
  assert_true(other_states > 0);
}

/* --- failure arcs, limits, errors -------------------------------------------------------- */

/* Both models on the right have failure arcs (label 9): the second one only at state 1. */
static void test_failure_arcs(void **state) {
  (void)state;
  wf_fst *fsts[3] = {test_fst_of(WF_TROPICAL, "0 1 1 1 1\n1 2 2 2\n2 0 3 3\n2\n"),
                     test_fst_of(WF_TROPICAL, "0 0 1 4 1\n0 1 9 0 2\n1 1 2 5 1\n1 0 3 6\n0\n1\n"),
                     test_fst_of(WF_TROPICAL, "0 1 4 4\n1 0 9 9 0.5\n0 0 5 5\n0 0 6 0 2\n0\n1\n")};
  wf_compose_options options = options_of(0, 0, true);
  options.phi_label = 9;
  for (int order = 0; order < 2; order++) {
    options.order = order;
    wf_fst *want = by_pairs(fsts, 3, &options, false), *got = at_once(fsts, 3, &options);
    assert_true(wf_fst_get_view(want).num_arcs > 2);
    assert_same_bytes(got, want, "failure arcs");
    wf_fst_free(want);
    wf_fst_free(got);
  }
  free_all(fsts, 3);
}

static void expect_error(wf_fst *const *fsts, size_t count, const wf_compose_options *options,
                         wf_status code, const char *text) {
  wf_error err = {0};
  wf_fst *out = fsts[0];
  assert_int_equal(wf_compose_n((const wf_fst *const *)fsts, count, options, &out, &err), code);
  assert_null(out);
  assert_non_null(strstr(err.message, text));
}

static void test_errors(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *other, *fsts[3] = {oracle_random_graph(20, 3, 4, 1), oracle_random_graph(20, 3, 4, 2),
                             oracle_random_graph(20, 3, 4, 3)};
  wf_compose_options options = options_of(0, 0, true);
  expect_error(fsts, 0, NULL, WF_ERR_ARGUMENT, "0 fsts");
  expect_error(fsts, 1, NULL, WF_ERR_ARGUMENT, "1 fsts");
  expect_error(fsts, 257, NULL, WF_ERR_ARGUMENT, "257 fsts");
  options.max_states = 5;
  expect_error(fsts, 3, &options, WF_ERR_LIMIT, "max_states");
  options.max_states = 0;
  options.max_bytes = 1000;
  expect_error(fsts, 3, &options, WF_ERR_LIMIT, "max_bytes");
  options.max_bytes = 0;
  options.device = "cuda";
  expect_error(fsts, 3, &options, WF_ERR_UNSUPPORTED, "order=canonical");
  options = options_of(0, 0, true);
  options.phi_label = 2; /* also an output label of the composition in between */
  wf_fst *phi[3] = {test_fst_of(WF_TROPICAL, "0 1 1 1\n1\n"),
                    test_fst_of(WF_TROPICAL, "0 1 1 2\n1\n"),
                    test_fst_of(WF_TROPICAL, "0 1 1 1\n1\n")};
  expect_error(phi, 3, &options, WF_ERR_ARGUMENT, "failure label 2 on its output side");
  free_all(phi, 3);
  assert_ok(wf_fst_with_semiring(fsts[2], WF_LOG, &other, &err));
  wf_fst *mixed[3] = {fsts[0], fsts[1], other};
  expect_error(mixed, 3, NULL, WF_ERR_ARGUMENT, "semiring");
  wf_fst_free(other);
  free_all(fsts, 3);
}

/* An fst without states on any side gives one without states. */
static void test_no_states(void **state) {
  (void)state;
  wf_fst *one = test_fst_of(WF_TROPICAL, "0 1 1 1\n1\n"), *none = test_fst_of(WF_TROPICAL, "");
  for (int at = 0; at < 3; at++) {
    wf_fst *fsts[3] = {one, one, one};
    fsts[at] = none;
    wf_fst *out = at_once(fsts, 3, NULL);
    assert_int_equal(wf_fst_get_view(out).num_states, 0);
    wf_fst_free(out);
  }
  wf_fst_free(one);
  wf_fst_free(none);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_example),         cmocka_unit_test(test_definition),
      cmocka_unit_test(test_same_bytes),      cmocka_unit_test(test_large),
      cmocka_unit_test(test_trimmed_between), cmocka_unit_test(test_failure_arcs),
      cmocka_unit_test(test_errors),          cmocka_unit_test(test_no_states)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
