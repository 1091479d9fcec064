/* test_gpu_rmepsilon.c - epsilon removal: the GPU against the CPU, in the tropical semiring byte
 * for byte. Exits with 77 (skipped) if there is no GPU. Also compiled for the imitated GPU of
 * tests/simt/, where CUDA calls can be made to fail. */
#include "compose_oracle.h"
#include "random_fsts.h"
#include "testing.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

enum { BATCH = 7 };

static uint64_t num_epsilons(const wf_fst *fst) {
  wf_fst_view view = wf_fst_get_view(fst);
  uint64_t count = 0;
  for (uint64_t i = 0; i < view.num_arcs; i++)
    count += view.arcs[i].ilabel == 0 && view.arcs[i].olabel == 0;
  return count;
}

/* Equal, except that costs in the log semiring may differ by rounding. */
static void assert_same(const wf_fst *gpu, const wf_fst *cpu, const char *what) {
  wf_fst_view x = wf_fst_get_view(gpu), y = wf_fst_get_view(cpu);
  if (y.semiring == WF_TROPICAL || x.num_states != y.num_states || x.num_arcs != y.num_arcs) {
    assert_same_bytes(gpu, cpu, what);
    return;
  }
  assert_int_equal(x.start, y.start);
  for (uint64_t s = 0; s < x.num_states; s++) {
    assert_int_equal(x.arc_off[s + 1], y.arc_off[s + 1]);
    assert_true(x.final_cost[s] == y.final_cost[s] ||
                fabsf(x.final_cost[s] - y.final_cost[s]) < 1e-5f * (1 + fabsf(y.final_cost[s])));
  }
  for (uint64_t i = 0; i < x.num_arcs; i++) {
    wf_arc a = x.arcs[i], b = y.arcs[i];
    bool same = a.ilabel == b.ilabel && a.olabel == b.olabel && a.nextstate == b.nextstate;
    if (!same ||
        !(a.weight == b.weight || fabsf(a.weight - b.weight) < 1e-5f * (1 + fabsf(b.weight))))
      fail_msg("%s: arc %llu", what, (unsigned long long)i);
  }
}

/* One fst at a time on the CPU, all together on the GPU. Returns the number of epsilons removed. */
static uint64_t check(wf_fst *const *fsts, size_t count, const wf_rmepsilon_options *o,
                      const char *what) {
  wf_error err = {0};
  wf_fst_batch *batch, *made;
  uint64_t removed = 0;
  assert_ok(wf_fst_batch_create((const wf_fst *const *)fsts, count, "cuda", &batch, &err));
  assert_ok(wf_fst_batch_rmepsilon(batch, o, &made, &err));
  for (size_t i = 0; i < count; i++) {
    wf_fst *cpu, *gpu;
    assert_ok(wf_rmepsilon(fsts[i], o, &cpu, &err));
    assert_ok(wf_fst_batch_to_fst(made, i, &gpu, &err));
    assert_same(gpu, cpu, what);
    assert_int_equal(num_epsilons(gpu), 0);
    if (wf_fst_get_view(gpu).num_states != 0) removed += num_epsilons(fsts[i]);
    wf_fst_free(cpu);
    wf_fst_free(gpu);
  }
  wf_fst_batch_free(made);
  wf_fst_batch_free(batch);
  return removed;
}

static void test_small_random(void **state) {
  (void)state;
  uint64_t removed = 0;
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    test_rng rng = {seed};
    char what[64];
    wf_fst *fsts[BATCH];
    wf_rmepsilon_options o;
    wf_rmepsilon_options_init(&o);
    o.connect = seed % 3 != 0;
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
    for (int i = 0; i < BATCH; i++)
      fsts[i] = random_epsilons_fst(&rng, seed % 4 == 1 ? WF_LOG : WF_TROPICAL);
    removed += check(fsts, 1 + test_below(&rng, BATCH), &o, what);
    for (int i = 0; i < BATCH; i++) wf_fst_free(fsts[i]);
  }
  if (test_seeds(300) >= 10)
    assert_true(removed > 5 * test_seeds(300)); /* fewer seeds may have no epsilons */
}

/* A line of epsilons; a state with many epsilons; a chain of diamonds, once with a cycle. Each
 * diamond would double the number of arcs if equal arcs were not merged. */
static void test_small_shapes(void **state) {
  (void)state;
  enum { LONG = 40 };
  wf_error err = {0};
  for (int shape = 0; shape < 4; shape++) {
    wf_builder *builder;
    wf_fst *fst;
    assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
    assert_ok(wf_builder_add_states(builder, 3 * LONG + 2, NULL, &err));
    assert_ok(wf_builder_set_start(builder, 0, &err));
    assert_ok(wf_builder_set_final(builder, 3 * LONG + 1, 0.5f, &err));
    for (uint32_t s = 0; s < 3 * LONG + 1; s++) {
      float weight = 0.1f * (float)(s % 7);
      if (shape == 0)
        assert_ok(wf_builder_add_arc(builder, s, (wf_arc){s + 1, weight, 0, 0}, &err)); /* a line */
      if (shape == 1)
        assert_ok(wf_builder_add_arc(builder, 0, (wf_arc){s + 1, weight, 0, 0}, &err)); /* a star */
      if (shape >= 2 && s + 2 < 3 * LONG + 2) {
        assert_ok(wf_builder_add_arc(builder, s, (wf_arc){s + 1, weight, 0, 0}, &err));
        assert_ok(wf_builder_add_arc(builder, s, (wf_arc){s + 2, 0.3f, 0, 0}, &err));
      }
      if (shape != 0 && s > 0)
        assert_ok(wf_builder_add_arc(
            builder, s, (wf_arc){3 * LONG + 1, weight, 1 + (int32_t)(s % 5), 2}, &err));
      if (shape == 3)
        assert_ok(wf_builder_add_arc(builder, 3 * LONG + 1, (wf_arc){s, weight, 7, 7}, &err));
    }
    assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
    wf_builder_free(builder);
    assert_true(check(&fst, 1, NULL, "shapes") > 0);
    wf_fst_free(fst);
  }
}

static void test_small_cycles(void **state) {
  (void)state;
  wf_error err = {0};
  static const char *const texts[] = {"0 0 0 0 1;0 1 1 1 1;1", "0 1 0 0 1;1 0 0 0 1;1 2 1 1 1;2",
                                      "0 1 1 1 1;1 2 0 0 1;2 1 0 0 1;2"};
  for (int i = 0; i < 3; i++) {
    wf_fst *fsts[2] = {test_fst_of(WF_TROPICAL, "0 1 0 0 1;1 2 1 1 1;2"),
                       test_fst_of(WF_TROPICAL, texts[i])};
    wf_fst_batch *batch, *made;
    assert_ok(wf_fst_batch_create((const wf_fst *const *)fsts, 2, "cuda", &batch, &err));
    assert_int_equal(wf_fst_batch_rmepsilon(batch, NULL, &made, &err), WF_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cycle"));
    assert_null(made);
    wf_fst_batch_free(batch);
    for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
  }
  /* A cycle that no path reaches is ignored. */
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 0 0 1;1 2 1 1 1;3 3 0 0 1;3 2 1 1 1;2");
  wf_rmepsilon_options o;
  wf_rmepsilon_options_init(&o);
  for (int connect = 0; connect < 2; connect++) {
    o.connect = connect != 0;
    check(&fst, 1, &o, "a cycle that is not reached");
  }
  wf_fst_free(fst);
}

/* Every kernel once: little work, for compute-sanitizer. The weights of the second fst are so large
 * that it cannot be trimmed first. */
static void test_races(void **state) {
  (void)state;
  wf_rmepsilon_options o;
  wf_rmepsilon_options_init(&o);
  wf_fst *fsts[2] = {
      test_fst_of(WF_TROPICAL, "0 1 0 0 1;0 2 2 2 1;1 1 1 1 3;1 2 0 0 1;1 3 1 1 2;2 3 1 1 1;3"),
      test_fst_of(WF_TROPICAL, "0 1 0 0 1;0 1 1 1 -1e38;1 2 1 1 -3e38;1 0 2 2 1;2")};
  for (int connect = 0; connect < 2; connect++) {
    o.connect = connect != 0;
    assert_true(check(fsts, 2, &o, "races") > 0);
  }
  for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
}

/* The closure of a lexicon with epsilons within words and between them. */
static void test_large(void **state) {
  (void)state;
#ifdef SIMT
  const uint32_t num_words = 300;
#else
  const uint32_t num_words = 30000;
#endif
  test_rng rng = {7};
  wf_fst *words = test_changed_fst(oracle_words(num_words, 69, 5), &rng, with_epsilons);
  assert_true(check(&words, 1, NULL, "large") > 100);
  wf_fst_free(words);
}

#ifdef SIMT
/* The input of test_small_failures and the result of the CPU. */
struct failing {
  wf_fst *fst, *want;
  wf_rmepsilon_options options;
};

static wf_status rmepsilon_one(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_fst_batch *batch = NULL, *made = NULL;
  wf_fst *got = NULL;
  wf_status status = wf_fst_batch_create((const wf_fst *const *)&f->fst, 1, "cuda", &batch, err);
  if (status == WF_OK) {
    status = wf_fst_batch_rmepsilon(batch, &f->options, &made, err);
    assert_true((made != NULL) == (status == WF_OK));
  }
  if (status == WF_OK) status = wf_fst_batch_to_fst(made, 0, &got, err);
  if (status == WF_OK) assert_same_bytes(got, f->want, "rmepsilon");
  wf_fst_free(got);
  wf_fst_batch_free(made);
  wf_fst_batch_free(batch);
  return status;
}

static void test_small_failures(void **state) {
  (void)state;
  wf_error err = {0};
  struct failing f = {
      .fst = test_fst_of(WF_TROPICAL, "0 1 0 0 1;0 2 2 2 1;1 1 1 1 3;1 2 0 0 1;2 3 1 1 1;3")};
  for (int connect = 0; connect < 2; connect++) {
    wf_rmepsilon_options_init(&f.options);
    f.options.connect = connect != 0;
    assert_ok(wf_rmepsilon(f.fst, &f.options, &f.want, &err));
    fail_each_call(connect ? "rmepsilon, connect" : "rmepsilon", rmepsilon_one, &f, 580);
    wf_fst_free(f.want);
  }
  wf_fst_free(f.fst);
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_random),   cmocka_unit_test(test_small_shapes),
      cmocka_unit_test(test_small_cycles),   cmocka_unit_test(test_races),
#ifdef SIMT
      cmocka_unit_test(test_small_failures),
#endif
      cmocka_unit_test(test_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
