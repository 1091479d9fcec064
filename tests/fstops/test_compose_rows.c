/* test_compose_rows.c - composition in the canonical order. Both algorithms (rows and search) are
 * compared with the definition, for any number of threads. Also origins, batches and limits. */
#include "compose_oracle.h"

enum { NUM_FILTERS = 7, UNUSED_LABEL = 4000 };

static wf_compose_options canonical_options(void) {
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = 1;
  options.num_threads = 1;
  return options;
}

static wf_fst *compose(const wf_fst *a, const wf_fst *b, const wf_compose_options *options) {
  wf_error err = {0};
  wf_fst *out;
  assert_ok(wf_compose(a, b, options, &out, &err));
  return out;
}

static test_fst_shape random_shape(test_rng *rng, uint32_t max_states) {
  static const float epsilons[] = {0, 0.2f, 0.5f};
  uint32_t num_states = 1 + test_below(rng, max_states);
  return (test_fst_shape){.num_states = num_states,
                          .num_arcs = test_below(rng, num_states * 4 + 1),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 4),
                          .num_olabels = 1 + (int32_t)test_below(rng, 4),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.2f,
                          .max_weight = 4};
}

/* Checks rows (the algorithm for small inputs), search (forced by a failure label that no arc has),
 * three threads, and origins. */
static size_t check_pair(const wf_fst *a, const wf_fst *b, wf_compose_options options) {
  wf_error err = {0};
  wf_arc_origin *want_origins, *origins;
  wf_fst *want = oracle_compose(a, b, options.filter, options.connect, &want_origins), *traced;
  wf_fst *rows = compose(a, b, &options);
  assert_same_bytes(rows, want, "rows");
  options.num_threads = 3;
  wf_fst *threads = compose(a, b, &options);
  assert_same_bytes(threads, want, "rows on three threads");
  assert_ok(test_compose_with_origins(a, b, &options, &traced, &origins, &err));
  assert_same_bytes(traced, want, "with origins");
  size_t num_arcs = wf_fst_get_view(want).num_arcs;
  if (num_arcs != 0) assert_memory_equal(origins, want_origins, num_arcs * sizeof *origins);
  options.phi_label = UNUSED_LABEL;
  wf_fst *search = compose(a, b, &options);
  assert_same_bytes(search, want, "search");
  free(want_origins);
  wf_free(origins);
  wf_fst *all[] = {want, rows, threads, traced, search};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wf_fst_free(all[i]);
  return num_arcs;
}

static void test_definition(void **state) {
  (void)state;
  test_rng rng = {31};
  size_t nonempty = 0;
  for (int round = 0; round < 250; round++) {
    test_fst_shape shape = random_shape(&rng, 9),
                   other = random_shape(&rng, round % 10 == 0 ? 90 : 9);
    shape.semiring = other.semiring = test_below(&rng, 2) ? WF_LOG : WF_TROPICAL;
    wf_fst *a = test_random_fst(&rng, &shape), *b = test_random_fst(&rng, &other);
    for (int filter = 0; filter < NUM_FILTERS; filter++) {
      wf_compose_options options = canonical_options();
      options.filter = filter;
      options.connect = test_below(&rng, 2);
      nonempty += check_pair(a, b, options) != 0;
    }
    wf_fst_free(a);
    wf_fst_free(b);
  }
  assert_true(nonempty > 500);
}

/* For a sparse product the library searches, then trims. The canonical result and OpenFst's have
 * the same arcs. */
static int compare_arcs(const void *x, const void *y) {
  const wf_arc *p = x, *q = y;
  if (p->ilabel != q->ilabel) return p->ilabel < q->ilabel ? -1 : 1;
  if (p->olabel != q->olabel) return p->olabel < q->olabel ? -1 : 1;
  return p->weight < q->weight ? -1 : p->weight > q->weight;
}

static wf_arc *sorted_arcs(const wf_fst *fst) {
  wf_fst_view view = wf_fst_get_view(fst);
  wf_arc *arcs = malloc((view.num_arcs + 1) * sizeof *arcs);
  assert_non_null(arcs);
  memcpy(arcs, view.arcs, view.num_arcs * sizeof *arcs);
  for (uint64_t i = 0; i < view.num_arcs; i++) arcs[i].nextstate = 0;
  qsort(arcs, view.num_arcs, sizeof *arcs, compare_arcs);
  return arcs;
}

/* Checks the canonical result against OpenFst's order, three threads against one, and search
 * against rows. */
static wf_fst_view check_large(wf_fst *a, wf_fst *b, const char *what) {
  wf_compose_options options = canonical_options();
  wf_fst *one = compose(a, b, &options), *openfst = compose(a, b, NULL);
  options.num_threads = 3;
  wf_fst *three = compose(a, b, &options);
  assert_same_bytes(three, one, what);
  options.phi_label = UNUSED_LABEL;
  wf_fst *search = compose(a, b, &options);
  assert_same_bytes(search, one, what);
  wf_fst_view view = wf_fst_get_view(one), other = wf_fst_get_view(openfst);
  assert_int_equal(view.num_states, other.num_states);
  assert_int_equal(view.num_arcs, other.num_arcs);
  wf_arc *x = sorted_arcs(one), *y = sorted_arcs(openfst);
  assert_memory_equal(x, y, view.num_arcs * sizeof *x);
  free(x);
  free(y);
  wf_fst *all[] = {a, b, one, three, search, openfst};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) wf_fst_free(all[i]);
  return view; /* only its sizes are valid now */
}

/* Sizes as counted by other programs, on the inputs of the published comparison. */
static void test_published_sizes(void **state) {
  (void)state;
  static const struct {
    uint32_t num_states, degree, num_labels, trial;
    uint64_t states, arcs;
  } rows[] = {{256, 5, 10, 0, 43826, 109317},  {512, 5, 10, 1, 172035, 431471},
              {256, 4, 8, 5, 32234, 64406},    {256, 8, 16, 0, 59272, 236455},
              {256, 16, 32, 0, 65332, 522550}, {256, 32, 64, 0, 65534, 1047790}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    wf_fst *a = oracle_random_graph(rows[i].num_states, rows[i].degree, rows[i].num_labels,
                                    1001 + 10 * rows[i].trial);
    wf_fst *b = oracle_random_graph(rows[i].num_states, rows[i].degree, rows[i].num_labels,
                                    1002 + 10 * rows[i].trial);
    wf_fst_view view = check_large(a, b, "random graphs");
    assert_int_equal(view.num_states, rows[i].states);
    assert_int_equal(view.num_arcs, rows[i].arcs);
  }
}

/* More cells than the row algorithm allocates at once. The search gives up on the dense product and
 * finishes the sparse one. First with epsilons, then with many labels. */
static void test_choice_of_rows_or_search(void **state) {
  (void)state;
  check_large(oracle_random_graph(1500, 4, 6, 1), oracle_random_graph(1500, 4, 6, 2), "dense");
  check_large(oracle_random_graph(3000, 2, 2000, 3), oracle_random_graph(3000, 2, 2000, 4),
              "sparse");
  check_large(oracle_words(500, 20, 5), oracle_emissions(90, 20, 6), "words");
  check_large(oracle_emissions(90, 20, 6), oracle_words(500, 20, 5), "words, inputs exchanged");
  test_rng rng = {77};
  test_fst_shape shape = {.num_states = 1200,
                          .num_arcs = 4000,
                          .num_ilabels = 9,
                          .num_olabels = 9,
                          .epsilon_share = 0.2f,
                          .final_share = 0.02f,
                          .max_weight = 9};
  wf_fst *a = test_random_fst(&rng, &shape), *b = test_random_fst(&rng, &shape);
  check_large(a, b, "epsilons");
}

static void test_batches(void **state) {
  (void)state;
  enum { COUNT = 40 };
  wf_error err = {0};
  test_rng rng = {9};
  wf_fst *a[COUNT], *b[COUNT], *out[COUNT];
  for (int i = 0; i < COUNT; i++) {
    test_fst_shape shape = random_shape(&rng, 12), other = random_shape(&rng, 12);
    a[i] = test_random_fst(&rng, &shape);
    b[i] = test_random_fst(&rng, &other);
  }
  for (int round = 0; round < 8; round++) {
    wf_compose_options options = canonical_options();
    options.order = round & 1;
    options.num_threads = round & 2 ? 3 : 1;
    size_t num_a = round & 4 ? 1 : COUNT;
    assert_ok(test_compose_batch((const wf_fst *const *)a, num_a, (const wf_fst *const *)b, COUNT,
                                 COUNT, &options, out, &err));
    for (int i = 0; i < COUNT; i++) {
      wf_fst *want = compose(a[num_a == 1 ? 0 : i], b[i], &options);
      assert_same_bytes(out[i], want, "batch");
      wf_fst_free(want);
      wf_fst_free(out[i]);
    }
  }
  wf_compose_options options = canonical_options();
  assert_int_equal(test_compose_batch((const wf_fst *const *)a, 2, (const wf_fst *const *)b, COUNT,
                                      COUNT, &options, out, &err),
                   WF_ERR_ARGUMENT);
  assert_ok(test_compose_batch(NULL, 0, NULL, 0, 0, &options, out, &err));
  assert_ok(wf_fst_with_semiring(b[7], WF_LOG, &out[0], &err));
  wf_fst_free(b[7]);
  b[7] = out[0];
  options.num_threads = 2;
  assert_int_equal(test_compose_batch((const wf_fst *const *)a, COUNT, (const wf_fst *const *)b,
                                      COUNT, COUNT, &options, out, &err),
                   WF_ERR_ARGUMENT);
  assert_non_null(strstr(err.message, "pair 7: "));
  for (int i = 0; i < COUNT; i++) {
    assert_null(out[i]);
    wf_fst_free(a[i]);
    wf_fst_free(b[i]);
  }
}

static void expect(const wf_fst *a, const wf_fst *b, const wf_compose_options *options,
                   wf_status want, const char *message) {
  wf_error err = {0};
  wf_fst *out;
  assert_int_equal(wf_compose(a, b, options, &out, &err), want);
  if (want == WF_OK) {
    wf_fst_free(out);
    return;
  }
  assert_null(out);
  if (strstr(err.message, message) == NULL) fail_msg("'%s' lacks '%s'", err.message, message);
}

static void test_limits(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *a = oracle_random_graph(256, 5, 10, 1001), *b = oracle_random_graph(256, 5, 10, 1002),
         *out;
  wf_arc_origin *origins;
  wf_compose_options options = canonical_options();
  for (int search = 0; search < 2; search++) { /* both algorithms count states before trimming */
    options.phi_label = search ? UNUSED_LABEL : 0;
    options.max_states = 48899;
    expect(a, b, &options, WF_OK, "");
    options.max_states--;
    expect(a, b, &options, WF_ERR_LIMIT, "more than 48898 states");
    options.max_states = 0;
    options.max_bytes = 1000000; /* the result takes 2.3 MB */
    expect(a, b, &options, WF_ERR_LIMIT, "max_bytes");
    options.max_bytes = 100000000;
    expect(a, b, &options, WF_OK, "");
    options.max_bytes = 0;
  }
  assert_int_equal(test_compose_with_origins(a, b, &options, &out, &origins, &err),
                   WF_ERR_UNSUPPORTED);
  options = canonical_options();
  options.device = "cuda";
  options.order = 0;
  expect(a, b, &options, WF_ERR_UNSUPPORTED, "order=canonical");
  options.order = 1;
  options.device = "banana";
  expect(a, b, &options, wf_compose(a, b, &options, &out, &err), "banana");
  wf_fst_free(a);
  wf_fst_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_definition),
                                     cmocka_unit_test(test_published_sizes),
                                     cmocka_unit_test(test_choice_of_rows_or_search),
                                     cmocka_unit_test(test_batches), cmocka_unit_test(test_limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
