/* test_gpu_compose.c - composition on the GPU against the CPU in canonical order, byte for byte.
 * Exits with 77 (skipped) if there is no GPU. Also compiled for the imitated GPU of tests/simt/. */
#include "compose_oracle.h"

enum { NUM_FILTERS = 7, BATCH = 20 };

static wf_compose_options options_for(const char *device) {
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = 1;
  options.device = device;
  return options;
}

/* Composes a pair on both devices and compares the results and their origins. */
static void check_pair(const wf_fst *a, const wf_fst *b, int filter, bool connect,
                       const char *what) {
  wf_error err = {0};
  wf_fst *cpu, *gpu;
  wf_arc_origin *cpu_origins, *gpu_origins;
  wf_compose_options options = options_for(NULL);
  options.filter = filter;
  options.connect = connect;
  assert_ok(test_compose_with_origins(a, b, &options, &cpu, &cpu_origins, &err));
  options.device = "cuda";
  assert_ok(test_compose_with_origins(a, b, &options, &gpu, &gpu_origins, &err));
  assert_same_bytes(gpu, cpu, what);
  if (wf_fst_get_view(cpu).num_arcs != 0)
    assert_memory_equal(gpu_origins, cpu_origins,
                        wf_fst_get_view(cpu).num_arcs * sizeof *cpu_origins);
  wf_free(cpu_origins);
  wf_free(gpu_origins);
  wf_fst_free(cpu);
  wf_fst_free(gpu);
}

static wf_fst *random_fst(test_rng *rng, uint32_t max_states, wf_semiring semiring) {
  static const float epsilons[] = {0, 0.2f, 0.5f};
  uint32_t num_states = 1 + test_below(rng, max_states);
  test_fst_shape shape = {.num_states = num_states,
                          .num_arcs = test_below(rng, num_states * 4 + 1),
                          .num_ilabels = 1 + (int32_t)test_below(rng, 4),
                          .num_olabels = 1 + (int32_t)test_below(rng, 4),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.1f,
                          .max_weight = 4,
                          .semiring = semiring};
  return test_random_fst(rng, &shape);
}

/* Batches of random pairs; one pair of each batch is also compared with the oracle. In a batch of
 * small pairs, each block searches one pair. If one pair is large, all blocks search all pairs,
 * with a thread or a block for each row. */
static void test_small(void **state) {
  (void)state;
  static const uint32_t max_states[] = {9, 400, 1500, 6000};
  wf_error err = {0};
  for (uint64_t seed = 1; seed <= test_seeds(60); seed++) {
    test_rng rng = {seed};
    wf_semiring semiring = test_below(&rng, 2) ? WF_LOG : WF_TROPICAL;
    wf_fst *a[BATCH], *b[BATCH], *cpu[BATCH], *gpu[BATCH];
    wf_compose_options options = options_for(NULL);
    options.filter = (int32_t)(seed % NUM_FILTERS);
    options.connect = seed % 5 != 0;
    for (int i = 0; i < BATCH; i++) {
      a[i] = random_fst(&rng, 12, semiring);
      b[i] = random_fst(&rng, max_states[i == 0 ? 0 : seed % 4], semiring);
    }
    size_t num_a = seed % 4 == 0 ? 1 : BATCH;
    if (seed % 2 == 1) {
      wf_fst_free(a[BATCH - 1]);
      wf_fst_free(b[BATCH - 1]);
      a[BATCH - 1] = oracle_words(1500, 5, seed);
      b[BATCH - 1] =
          oracle_random_graph(300, 1, 5, seed); /* so many 64-bit words that tiles have several */
    }
    assert_ok(test_compose_batch((const wf_fst *const *)a, num_a, (const wf_fst *const *)b, BATCH,
                                 BATCH, &options, cpu, &err));
    options.device = "cuda";
    assert_ok(test_compose_batch((const wf_fst *const *)a, num_a, (const wf_fst *const *)b, BATCH,
                                 BATCH, &options, gpu, &err));
    wf_fst *definition = oracle_compose(a[0], b[0], options.filter, options.connect, NULL);
    assert_same_bytes(gpu[0], definition, "definition");
    check_pair(a[1], b[1], options.filter, options.connect, "origins");
    for (int i = 0; i < BATCH; i++) {
      assert_same_bytes(gpu[i], cpu[i], "batch");
      wf_fst *all[] = {a[i], b[i], cpu[i], gpu[i]};
      for (int k = 0; k < 4; k++) wf_fst_free(all[k]);
    }
    wf_fst_free(definition);
  }
}

static void check_and_free(wf_fst *a, wf_fst *b, const char *what) {
  check_pair(a, b, 0, true, what);
  check_pair(a, b, 0, false, what);
  wf_fst_free(a);
  wf_fst_free(b);
}

/* Lexicons: many words start in one state, whose row all blocks expand together. In the batch, rows
 * are numbered through all pairs, so lexicons are its first, second and third pair. */
static void test_small_heavy(void **state) {
  (void)state;
  check_and_free(oracle_words(1500, 9, 5), oracle_random_graph(80, 1, 9, 6), "words");
  check_and_free(oracle_words(150, 9, 5), oracle_emissions(70, 9, 6), "a few words");
  wf_error err = {0};
  wf_compose_options options = options_for(NULL);
  wf_fst *a[3] = {oracle_words(1800, 9, 7), oracle_words(5, 9, 8), oracle_words(300, 9, 9)},
         *b = oracle_random_graph(80, 1, 9, 6), *cpu[3], *gpu[3];
  assert_ok(test_compose_batch((const wf_fst *const *)a, 3, (const wf_fst *const *)&b, 1, 3,
                               &options, cpu, &err));
  options.device = "cuda";
  assert_ok(test_compose_batch((const wf_fst *const *)a, 3, (const wf_fst *const *)&b, 1, 3,
                               &options, gpu, &err));
  for (int i = 0; i < 3; i++) {
    assert_same_bytes(gpu[i], cpu[i], "batch of words");
    wf_fst *all[] = {a[i], cpu[i], gpu[i]};
    for (int k = 0; k < 3; k++) wf_fst_free(all[k]);
  }
  wf_fst_free(b);
}

/* Rows that a warp expands; both directions in the same levels; more arcs for a 64-bit word of
 * states than a list holds. */
static void test_small_groups(void **state) {
  (void)state;
  check_and_free(oracle_words(1700, 9, 5), oracle_random_graph(580, 1, 9, 6),
                 "a warp for each row");
  check_and_free(oracle_random_graph(260, 16, 100, 7), oracle_random_graph(260, 16, 100, 8),
                 "both directions");
  check_and_free(oracle_random_graph(9, 30, 4, 7), oracle_random_graph(100, 20, 4, 8), "many arcs");
}

/* Every kernel layout once, on inputs just large enough to select it: a block or a cluster for each
 * pair; a thread, a warp or a block for each row. Little work, for compute-sanitizer. */
static void test_races(void **state) {
  (void)state;
  enum { PAIRS = 33 };
  wf_error err = {0};
  test_rng rng = {3};
  wf_compose_options options = options_for("cuda");
  wf_fst *a = random_fst(&rng, 9, WF_TROPICAL), *b[PAIRS], *gpu[PAIRS], *cpu;
  for (int i = 0; i < PAIRS; i++)
    b[i] = oracle_random_graph(3 + (uint32_t)i % 3, 3, 2, (uint64_t)i);
  assert_ok(test_compose_batch((const wf_fst *const *)&a, 1, (const wf_fst *const *)b, PAIRS, PAIRS,
                               &options, gpu, &err));
  options.device = NULL;
  for (int i = 0; i < PAIRS; i++) {
    assert_ok(wf_compose(a, b[i], &options, &cpu, &err));
    assert_same_bytes(gpu[i], cpu, "a block for each pair");
    wf_fst *all[] = {b[i], gpu[i], cpu};
    for (int k = 0; k < 3; k++) wf_fst_free(all[k]);
  }
  wf_fst_free(a);
  check_and_free(oracle_random_graph(20, 3, 3, 7), oracle_random_graph(70, 3, 3, 8),
                 "a cluster for each pair");
  check_and_free(oracle_words(700, 9, 5), oracle_random_graph(500, 1, 9, 6),
                 "a thread for each row");
  check_and_free(oracle_words(1700, 9, 5), oracle_random_graph(515, 1, 9, 6),
                 "a warp for each row");
  check_and_free(oracle_emissions(5, 30, 6), oracle_random_graph(20000, 6, 30, 6),
                 "a block for each row");
}

static void test_large(void **state) {
  (void)state;
  check_and_free(oracle_random_graph(256, 5, 10, 1001), oracle_random_graph(256, 5, 10, 1002),
                 "256 states");
  check_and_free(oracle_random_graph(1024, 5, 10, 1001), oracle_random_graph(1024, 5, 10, 1002),
                 "1024 states");
  check_and_free(oracle_random_graph(5000, 3, 10, 1001), oracle_random_graph(5000, 3, 10, 1002),
                 "5000 states");
  check_and_free(oracle_random_graph(256, 64, 128, 1001), oracle_random_graph(256, 64, 128, 1002),
                 "64 arcs per state");
  check_and_free(oracle_words(3000, 69, 5), oracle_emissions(251, 69, 6), "words");
  check_and_free(oracle_emissions(251, 69, 6), oracle_words(3000, 69, 5), "words, swapped");
}

/* A composer that runs three times with the same result; pairs that share an input; empty inputs.
 */
static void test_composer(void **state) {
  (void)state;
  wf_error err = {0};
  wf_compose_options options = options_for("cuda");
  wf_fst *a = oracle_words(40, 9, 3),
         *b[3] = {oracle_emissions(50, 9, 4), test_fst_of(WF_TROPICAL, "0 1 77 77;1"),
                  oracle_emissions(70, 9, 5)};
  wf_fst *none;
  wf_compose_options plain = options_for(NULL);
  assert_ok(wf_compose(b[1], b[0], &plain, &none, &err));
  assert_int_equal(wf_fst_get_view(none).start, -1);
  wf_composer *composer;
  assert_ok(wf_composer_create((const wf_fst *const *)&a, 1, (const wf_fst *const *)b, 3, 3,
                               &options, true, &composer, &err));
  wf_fst *out, *want;
  assert_int_equal(wf_composer_to_fst(composer, 0, &out, NULL, &err), WF_ERR_STATE);
  for (int run = 0; run < 3; run++) {
    assert_ok(wf_composer_run(composer, &err));
    for (size_t i = 0; i < 3; i++) {
      wf_fst_view view;
      const wf_arc_origin *origins;
      assert_ok(wf_composer_to_fst(composer, i, &out, NULL, &err));
      assert_ok(wf_compose(a, b[i], &plain, &want, &err));
      assert_same_bytes(out, want, "composer");
      assert_ok(wf_composer_get_view(composer, i, &view, &origins, &err));
      assert_int_equal(view.num_arcs, wf_fst_get_view(want).num_arcs);
      assert_true((origins != NULL) == (view.start >= 0));
      wf_fst_free(out);
      wf_fst_free(want);
    }
  }
  assert_int_equal(wf_composer_to_fst(composer, 3, &out, NULL, &err), WF_ERR_ARGUMENT);
  wf_composer_free(composer);
  check_pair(none, a, 0, true, "empty first");
  check_pair(a, none, 0, true, "empty second");
  for (int i = 0; i < 3; i++) wf_fst_free(b[i]);
  wf_fst_free(a);
  wf_fst_free(none);
}

static void test_limits(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *a = oracle_random_graph(256, 5, 10, 1001), *b = oracle_random_graph(256, 5, 10, 1002),
         *out;
  wf_compose_options options = options_for("cuda");
  options.max_states = 48898;
  assert_int_equal(wf_compose(a, b, &options, &out, &err), WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "more than 48898 states"));
  options.max_states++;
  assert_ok(wf_compose(a, b, &options, &out, &err));
  wf_fst_free(out);
  options.max_bytes = 1000000;
  assert_int_equal(wf_compose(a, b, &options, &out, &err), WF_ERR_LIMIT);
  options.device = "cuda:999";
  assert_int_equal(wf_compose(a, b, &options, &out, &err), WF_ERR_DEVICE);
  options.device = "banana";
  assert_int_equal(wf_compose(a, b, &options, &out, &err), WF_ERR_ARGUMENT);
  options = options_for("cuda");
  options.order = 0;
  assert_int_equal(wf_compose(a, b, &options, &out, &err), WF_ERR_UNSUPPORTED);
  wf_fst_free(a);
  wf_fst_free(b);
}

/* A batch with more states than it can number is refused before memory is allocated. A second input
 * with too many states for tables of bits goes to sparse composition, through many levels. */
static void test_too_many(void **state) {
  (void)state;
  enum { COUNT = 90 }; /* 49,755,482 states each before trimming */
  wf_error err = {0};
  wf_compose_options options = options_for("cuda");
  wf_fst *a = oracle_random_graph(8192, 5, 10, 1001), *b = oracle_random_graph(8192, 5, 10, 1002),
         *out[COUNT];
  assert_int_equal(test_compose_batch((const wf_fst *const *)&a, 1, (const wf_fst *const *)&b, 1,
                                      COUNT, &options, out, &err),
                   WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "in one batch"));
  options.max_states = 49755481;
  assert_int_equal(wf_compose(a, b, &options, &out[0], &err), WF_ERR_LIMIT);
  wf_fst_free(a);
  wf_fst_free(b);
  a = oracle_words(3, 2, 5);
  b = oracle_emissions(600000, 2, 6);
  check_pair(a, b, 0, false, "a wide second input");
  wf_fst_free(a);
  wf_fst_free(b);
}

static bool no_gpu(void) {
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 1 1 1;0"), *out = NULL;
  wf_compose_options options = options_for("cuda");
  wf_status status = wf_compose(fst, fst, &options, &out, &err);
  wf_fst_free(fst);
  wf_fst_free(out);
  bool none = status == WF_ERR_DEVICE && strstr(err.message, "no GPU") != NULL;
  if (none) printf("skipped: %s\n", err.message);
  return none;
}

int main(int argc, char **argv) {
  if (no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small),        cmocka_unit_test(test_small_heavy),
      cmocka_unit_test(test_small_groups), cmocka_unit_test(test_races),
      cmocka_unit_test(test_large),        cmocka_unit_test(test_composer),
      cmocka_unit_test(test_limits),       cmocka_unit_test(test_too_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
