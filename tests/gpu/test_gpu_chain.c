/* test_gpu_chain.c - composition of several fsts in one call on the GPU against the CPU, one pair
 * after the other, in canonical order, byte for byte. Exits with 77 (skipped) if there is no GPU.
 * Also compiled for the imitated GPU of tests/simt/, where tables start so small that they have to
 * grow, and CUDA calls can be made to fail. */
#include "compose_oracle.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

enum { NUM_FILTERS = 7, MAX_FSTS = 5 };

/* With SIMT, tables start with 512 slots: see test_gpu_sparse.c. */
static void use_tiny_tables(bool tiny) {
#ifdef SIMT
  static uint64_t usual;
  if (usual == 0) usual = simt_table_sizes.sparse_slots;
  simt_table_sizes.sparse_slots = tiny ? 512 : usual;
#else
  (void)tiny;
#endif
}

static wf_compose_options options_for(int filter, bool connect, const char *device) {
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = 1;
  options.filter = filter;
  options.connect = connect;
  options.device = device;
  return options;
}

/* The CPU's result, one pair after the other. */
static wf_fst *by_pairs(wf_fst *const *fsts, size_t count, int filter, bool connect) {
  wf_error err = {0};
  wf_fst *left = wf_fst_ref(fsts[0]);
  for (size_t i = 1; i < count; i++) {
    wf_compose_options options = options_for(filter, connect && i + 1 == count, NULL);
    wf_fst *out;
    assert_ok(wf_compose(left, fsts[i], &options, &out, &err));
    wf_fst_free(left);
    left = out;
  }
  return left;
}

/* Returns the number of arcs of the result. */
static uint64_t check_chain(wf_fst *const *fsts, size_t count, int filter, bool connect) {
  wf_error err = {0};
  wf_compose_options options = options_for(filter, connect, "cuda");
  wf_fst *want = by_pairs(fsts, count, filter, connect), *got;
  assert_ok(wf_compose_n((const wf_fst *const *)fsts, count, &options, &got, &err));
  assert_same_bytes(got, want, "composition");
  const uint64_t num_arcs = wf_fst_get_view(want).num_arcs;
  wf_fst_free(want);
  wf_fst_free(got);
  return num_arcs;
}

static void free_all(wf_fst **fsts, size_t count) {
  for (size_t i = 0; i < count; i++) wf_fst_free(fsts[i]);
}

static wf_fst *random_fst(test_rng *rng, uint32_t max_states, uint32_t num_labels,
                          wf_semiring semiring) {
  static const float epsilons[] = {0, 0.2f, 0.5f};
  const uint32_t num_states = 1 + test_below(rng, max_states);
  test_fst_shape shape = {.num_states = num_states,
                          .num_arcs = test_below(rng, num_states * 4 + 1),
                          .num_ilabels = 1 + (int32_t)test_below(rng, num_labels),
                          .num_olabels = 1 + (int32_t)test_below(rng, num_labels),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.2f,
                          .max_weight = 4,
                          .semiring = semiring};
  return test_random_fst(rng, &shape);
}

static void test_small_chains(void **state) {
  (void)state;
  uint64_t num_arcs = 0;
  const int num_seeds = test_seeds(300);
  for (uint64_t seed = 1; seed <= (uint64_t)num_seeds; seed++) {
    test_rng rng = {seed};
    use_tiny_tables(seed % 4 != 0);
    const wf_semiring semiring = test_below(&rng, 2) ? WF_LOG : WF_TROPICAL;
    const uint32_t num_labels = 1 + test_below(&rng, 5);
    const size_t count = 3 + (seed % 5 == 0) + (seed % 10 == 0);
    wf_fst *fsts[MAX_FSTS];
    for (size_t i = 0; i < count; i++)
      fsts[i] = random_fst(&rng, count == 3 ? 8 : 5, num_labels, semiring);
    num_arcs += check_chain(fsts, count, (int)(seed % NUM_FILTERS), seed % 3 != 0);
    free_all(fsts, count);
  }
  use_tiny_tables(false);
  assert_true(num_seeds < 10 || num_arcs > (uint64_t)num_seeds);
}

/* A lexicon, a grammar and a line: many levels of few pairs, and few of the states in between are
 * visited. Then a large result of few levels. */
static void test_small_words(void **state) {
  (void)state;
#ifdef SIMT
  const uint32_t length = 12, width = 8;
#else
  const uint32_t length = test_seeds(60) < 60 ? 20 : 400, width = test_seeds(60) < 60 ? 10 : 40;
#endif
  for (int tiny = 0; tiny < 2; tiny++) {
    use_tiny_tables(tiny != 0);
    wf_fst *fsts[] = {oracle_words(200, 5, 1), oracle_random_graph(30, 6, 5, 3),
                      oracle_emissions(length, 5, 4)};
    assert_true(check_chain(fsts, 3, 0, true) > 0);
    wf_fst_free(fsts[2]);
    fsts[2] = oracle_random_graph(width, 3, 5, 5);
    assert_true(check_chain(fsts, 3, 3, false) > 0);
    free_all(fsts, 3);
  }
  use_tiny_tables(false);
}

/* The result of an fst without states is empty. */
static void test_small_empty(void **state) {
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    wf_fst *fsts[] = {oracle_random_graph(5, 2, 2, 1), oracle_random_graph(5, 2, 2, 2),
                      oracle_random_graph(5, 2, 2, 3)};
    wf_fst_free(fsts[i]);
    fsts[i] = test_fst_of(WF_TROPICAL, "");
    assert_int_equal(check_chain(fsts, 3, 0, true), 0);
    free_all(fsts, 3);
  }
}

/* A few states: little work, for compute-sanitizer. */
static void test_races(void **state) {
  (void)state;
  wf_fst *fsts[] = {oracle_words(30, 5, 1), oracle_random_graph(8, 3, 5, 3),
                    oracle_random_graph(6, 2, 5, 4), oracle_emissions(6, 5, 2)};
  check_chain(fsts, 4, 3, true);
  free_all(fsts, 4);
}

static void test_small_limits(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *out, *fsts[] = {oracle_random_graph(12, 3, 3, 1), oracle_random_graph(12, 3, 3, 2),
                          oracle_random_graph(12, 3, 3, 3)};
  wf_compose_options options = options_for(0, false, "cuda");
  wf_fst *whole = by_pairs(fsts, 3, 0, false);
  const int64_t count = (int64_t)wf_fst_get_view(whole).num_states;
  options.max_states = count;
  assert_ok(wf_compose_n((const wf_fst *const *)fsts, 3, &options, &out, &err));
  wf_fst_free(out);
  options.max_states = count - 1;
  assert_int_equal(wf_compose_n((const wf_fst *const *)fsts, 3, &options, &out, &err),
                   WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "max_states"));
  assert_null(out);
  options.max_states = 5; /* the composition in between has more */
  assert_int_equal(wf_compose_n((const wf_fst *const *)fsts, 3, &options, &out, &err),
                   WF_ERR_LIMIT);
  options.max_states = 0;
  options.max_bytes = 1000;
  assert_int_equal(wf_compose_n((const wf_fst *const *)fsts, 3, &options, &out, &err),
                   WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "max_bytes"));
  wf_fst_free(whole);
  free_all(fsts, 3);
}

static void test_small_options(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *out, *fsts[] = {oracle_random_graph(4, 2, 2, 1), oracle_random_graph(4, 2, 2, 2),
                          oracle_random_graph(4, 2, 2, 3)};
  wf_compose_options options = options_for(0, true, "cuda");
  options.phi_label = 2;
  assert_int_equal(wf_compose_n((const wf_fst *const *)fsts, 3, &options, &out, &err),
                   WF_ERR_UNSUPPORTED);
  options = options_for(0, true, "cuda");
  options.order = 0;
  assert_int_equal(wf_compose_n((const wf_fst *const *)fsts, 3, &options, &out, &err),
                   WF_ERR_UNSUPPORTED);
  options = options_for(0, true, "cuda:0,1");
  assert_int_equal(wf_compose_n((const wf_fst *const *)fsts, 3, &options, &out, &err),
                   WF_ERR_ARGUMENT);
  free_all(fsts, 3);
}

#ifdef SIMT
/* The inputs of test_small_failures, and the result of the CPU. */
struct failing {
  wf_fst *fsts[3], *want;
  wf_compose_options options;
};

static wf_status compose_failing(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_fst *got;
  wf_status status = wf_compose_n((const wf_fst *const *)f->fsts, 3, &f->options, &got, err);
  assert_true((got != NULL) == (status == WF_OK));
  if (status == WF_OK) assert_same_bytes(got, f->want, "composition");
  wf_fst_free(got);
  return status;
}

/* The table in between grows, so calls fail while it does, too. */
static void test_small_failures(void **state) {
  (void)state;
  struct failing f = {.fsts = {oracle_random_graph(30, 3, 2, 1), oracle_random_graph(30, 3, 2, 2),
                               oracle_random_graph(2, 1, 2, 3)},
                      .options = options_for(0, false, "cuda")};
  f.want = by_pairs(f.fsts, 3, 0, false);
  assert_true(wf_fst_get_view(f.want).num_arcs > 0);
  use_tiny_tables(true);
  fail_each_call("tables that grow", compose_failing, &f, 500);
  use_tiny_tables(false);
  wf_fst_free(f.want);
  free_all(f.fsts, 3);
}
#endif

static bool no_gpu(void) {
  wf_error err = {0};
  wf_fst *fst = oracle_random_graph(2, 1, 1, 1), *out;
  wf_compose_options options = options_for(0, true, "cuda");
  wf_status status = wf_compose(fst, fst, &options, &out, &err);
  wf_fst_free(fst);
  wf_fst_free(out);
  if (status == WF_ERR_DEVICE) fprintf(stderr, "%s\n", err.message);
  return status == WF_ERR_DEVICE;
}

int main(int argc, char **argv) {
  if (no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_chains),   cmocka_unit_test(test_small_words),
      cmocka_unit_test(test_small_empty),    cmocka_unit_test(test_small_limits),
      cmocka_unit_test(test_small_options),  cmocka_unit_test(test_races),
#ifdef SIMT
      cmocka_unit_test(test_small_failures),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
