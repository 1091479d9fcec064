/* test_gpu_sparse.c - sparse composition (a hash table of state pairs) on the GPU against the CPU
 * in canonical order, byte for byte. Exits with 77 (skipped) if there is no GPU. Also compiled for
 * the imitated GPU of tests/simt/, where the table starts so small that it has to grow, and CUDA
 * calls can be made to fail. */
#include "compose_oracle.h"
#include "sparse_pair.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

enum { NUM_FILTERS = 7 };

/* With SIMT, the hash table starts with the slots in tests/simt/table_sizes.h, or with 512: room
 * for 256 pairs, and for a pair of each thread of a block after the table is full. Levels of more
 * pairs, for which several blocks are launched, have a larger table. */
static void use_tiny_tables(bool tiny) {
#ifdef SIMT
  static uint64_t usual;
  if (usual == 0) usual = simt_table_sizes.sparse_slots;
  simt_table_sizes.sparse_slots = tiny ? 512 : usual;
#else
  (void)tiny;
#endif
}

static wf_compose_options options_for(int filter, bool connect) {
  wf_compose_options options;
  wf_compose_options_init(&options);
  options.order = 1;
  options.filter = filter;
  options.connect = connect;
  return options;
}

static void check_pair(const wf_fst *a, const wf_fst *b, int filter, bool connect) {
  wf_error err = {0};
  wf_compose_options options = options_for(filter, connect);
  wf_fst *want, *got;
  wf_arc_origin *origins;
  wf__gpu_batch *batch;
  wf__csr csr = {0};
  int64_t start;
  assert_ok(test_compose_with_origins(a, b, &options, &want, &origins, &err));
  assert_ok(compose_sparsely(a, b, &options, &batch, &err));
  assert_ok(wf__gpu_batch_get(batch, 0, &csr, &start, &err));
  assert_ok(wf__fst_from_csr(&csr, start, wf_fst_get_view(a).semiring, NULL, NULL, &got, &err));
  assert_same_bytes(got, want, "composition");
#ifdef SIMT /* the host can read device memory */
  wf_fst_batch_view view;
  wf__gpu_batch_view(batch, &view);
  if (view.num_arcs != 0)
    assert_memory_equal(view.origins, origins, view.num_arcs * sizeof *origins);
#endif
  wf__csr_free(&csr);
  wf__gpu_batch_free(batch);
  wf_free(origins);
  wf_fst_free(want);
  wf_fst_free(got);
}

static wf_fst *random_fst(test_rng *rng, uint32_t max_states, uint32_t num_labels,
                          wf_semiring semiring) {
  static const float epsilons[] = {0, 0.2f, 0.5f};
  uint32_t num_states = 1 + test_below(rng, max_states);
  test_fst_shape shape = {.num_states = num_states,
                          .num_arcs = test_below(rng, num_states * 4 + 1),
                          .num_ilabels = 1 + (int32_t)test_below(rng, num_labels),
                          .num_olabels = 1 + (int32_t)test_below(rng, num_labels),
                          .epsilon_share = epsilons[test_below(rng, 3)],
                          .final_share = 0.1f,
                          .max_weight = 4,
                          .semiring = semiring};
  return test_random_fst(rng, &shape);
}

/* Few labels, so that states of both sides have several arcs with the same label. The side with
 * fewer arcs differs. */
static void test_small_pairs(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(400); seed++) {
    test_rng rng = {seed};
    use_tiny_tables(seed % 4 != 0);
    wf_semiring semiring = test_below(&rng, 2) ? WF_LOG : WF_TROPICAL;
    uint32_t num_labels = 1 + test_below(&rng, 6);
    wf_fst *a = random_fst(&rng, seed % 7 == 0 ? 60 : 12, num_labels, semiring),
           *b = random_fst(&rng, seed % 5 == 0 ? 60 : 12, num_labels, semiring);
    if (wf_fst_get_view(a).start >= 0 && wf_fst_get_view(b).start >= 0)
      check_pair(a, b, (int)(seed % NUM_FILTERS), seed % 3 != 0);
    wf_fst_free(a);
    wf_fst_free(b);
  }
  use_tiny_tables(false);
}

/* States with very different numbers of arcs; many levels of few pairs, before and after levels of
 * many pairs. */
static void check_words(void) {
#ifdef SIMT
  const uint32_t length = test_seeds(60) < 12 ? 100 : 400;
#else
  const uint32_t length = test_seeds(60) < 60 ? 100 : 2000;
#endif
  wf_fst *words = oracle_words(300, 5, 1), *line = oracle_emissions(12, 5, 2),
         *graph = oracle_random_graph(40, 6, 5, 3);
  check_pair(words, line, 0, true);
  check_pair(words, graph, 0, true);
  check_pair(graph, graph, 0, true);
  check_pair(graph, line, 3, false);
  wf_fst *long_line = oracle_emissions(length, 5, 4);
  check_pair(words, long_line, 0, true);
  wf_fst_free(long_line);
  wf_fst_free(words);
  wf_fst_free(line);
  wf_fst_free(graph);
}

static void test_small_words(void **state) {
  (void)state;
  for (int tiny = 0; tiny < 2; tiny++) {
    use_tiny_tables(tiny != 0);
    check_words();
  }
  use_tiny_tables(false);
}

/* A few levels, by one block and by several launches: little work, for compute-sanitizer. */
static void test_races(void **state) {
  (void)state;
  wf_fst *words = oracle_words(60, 5, 1), *line = oracle_emissions(12, 5, 2),
         *graph = oracle_random_graph(12, 3, 3, 3);
  check_pair(words, line, 0, true);
  check_pair(graph, graph, 3, false);
  wf_fst_free(words);
  wf_fst_free(line);
  wf_fst_free(graph);
}

static wf_status search(const wf_fst *fst, uint64_t give_up, bool *out_gave_up, wf_error *err) {
  wf__compose_side a = {0}, b = {0};
  wf__compose_job job = {.a = &a, .b = &b};
  wf__sparse *sparse = NULL;
  wf_status status = wf__compose_side_init(&a, fst, true, err);
  if (status == WF_OK) status = wf__compose_side_init(&b, fst, false, err);
  if (status == WF_OK) status = wf__sparse_create(&job, fst, fst, 0, &sparse, err);
  if (status == WF_OK) status = wf__sparse_reaches_more(sparse, give_up, out_gave_up, err);
  wf__sparse_free(sparse);
  wf__compose_side_free(&a);
  wf__compose_side_free(&b);
  return status;
}

static void test_small_limits(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *graph = oracle_random_graph(30, 5, 3, 3), *whole;
  wf__gpu_batch *batch;
  wf_compose_options options = options_for(0, false);
  assert_ok(wf_compose(graph, graph, &options, &whole, &err));
  uint64_t count = wf_fst_get_view(whole).num_states;
  options.max_states = (int64_t)count - 1;
  assert_int_equal(compose_sparsely(graph, graph, &options, &batch, &err), WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "max_states"));
  options.max_states = (int64_t)count;
  assert_ok(compose_sparsely(graph, graph, &options, &batch, &err));
  wf__gpu_batch_free(batch);
  options.max_bytes = 1000;
  assert_int_equal(compose_sparsely(graph, graph, &options, &batch, &err), WF_ERR_LIMIT);
  assert_non_null(strstr(err.message, "max_bytes"));
  options.max_bytes = 0;
  for (uint64_t give_up = count - 1; give_up <= count; give_up++) {
    bool gave_up;
    assert_ok(search(graph, give_up, &gave_up, &err));
    assert_int_equal(gave_up, give_up < count);
  }
  wf_fst_free(graph);
  wf_fst_free(whole);
}

#ifdef SIMT
/* The input of test_small_failures, which is composed with itself, and the result of the CPU. */
struct failing {
  wf_fst *graph, *want;
  wf_compose_options options;
};

static wf_status compose_graph(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf__gpu_batch *batch;
  wf__csr csr = {0};
  wf_fst *got;
  int64_t start;
  wf_status status = compose_sparsely(f->graph, f->graph, &f->options, &batch, err);
  assert_true((batch != NULL) == (status == WF_OK));
  if (status == WF_OK) status = wf__gpu_batch_get(batch, 0, &csr, &start, err);
  if (status == WF_OK) {
    assert_int_equal(wf__fst_from_csr(&csr, start, WF_TROPICAL, NULL, NULL, &got, err), WF_OK);
    assert_same_bytes(got, f->want, "composition");
    wf_fst_free(got);
  }
  wf__csr_free(&csr);
  wf__gpu_batch_free(batch);
  return status;
}

/* The table grows, so calls fail while it does, too. */
static void test_small_failures(void **state) {
  (void)state;
  wf_error err = {0};
  struct failing f = {.graph = oracle_random_graph(20, 4, 3, 3), .options = options_for(0, true)};
  assert_ok(wf_compose(f.graph, f.graph, &f.options, &f.want, &err));
  for (int tiny = 0; tiny < 2; tiny++) {
    use_tiny_tables(tiny != 0);
    fail_each_call(tiny ? "a table that grows" : "a table", compose_graph, &f, 330);
  }
  use_tiny_tables(false);
  wf_fst_free(f.graph);
  wf_fst_free(f.want);
}
#endif

static bool no_gpu(void) {
  wf_error err = {0};
  wf__gpu_batch *batch;
  wf_fst *fst = oracle_random_graph(2, 1, 1, 1);
  wf_compose_options options = options_for(0, true);
  wf_status status = compose_sparsely(fst, fst, &options, &batch, &err);
  wf__gpu_batch_free(batch);
  wf_fst_free(fst);
  if (status == WF_ERR_DEVICE) fprintf(stderr, "%s\n", err.message);
  return status == WF_ERR_DEVICE;
}

int main(int argc, char **argv) {
  if (no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_pairs),    cmocka_unit_test(test_small_words),
      cmocka_unit_test(test_small_limits),   cmocka_unit_test(test_races),
#ifdef SIMT
      cmocka_unit_test(test_small_failures),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
