/* test_gpu_minimize.c - minimization: the GPU against wf_minimize. Results are the same byte for
 * byte, and error messages word for word. Exits with 77 (skipped) if there is no GPU. Also compiled
 * for the imitated GPU of tests/simt/. There the names of classes are hashes of 14 bits, so that
 * they collide; the GPU gives up after 100 rounds, so that the CPU takes over; and CUDA calls can
 * be made to fail. */
#include "compose_oracle.h"
#include "cuda/fstops/device_ops.h"
#include "random_fsts.h"
#include "testing.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

enum { BATCH = 5 };

/* Counts by which a test checks that its inputs were not trivial. */
struct tally {
  uint64_t states; /* of all results */
  uint64_t merged; /* states that the results have fewer than the inputs */
  uint64_t done;   /* batches that the GPU minimized */
  uint64_t left;   /* batches that the GPU left to the CPU */
  uint64_t failed; /* batches that failed on both devices */
};

/* Whether the GPU minimizes the batch without help from the CPU. */
static bool is_done_on_gpu(wf_fst *const *fsts, size_t count, const wf_minimize_options *o) {
  wf_error err = {0};
  wf_minimize_options defaults;
  wf__gpu_batch *batch, *made;
  wf_minimize_options_init(&defaults);
  assert_ok(wf__gpu_batch_create((const wf_fst *const *)fsts, count,
                                 wf_fst_get_view(fsts[0]).semiring, "cuda", &batch, &err));
  wf_status status = wf__gpu_batch_minimize(batch, o != NULL ? o : &defaults, &made, &err);
  assert_true(status == WF_OK ||
              (status == WF_ERR_UNSUPPORTED && strstr(err.message, "only the CPU") != NULL));
  wf__gpu_batch_free(made);
  wf__gpu_batch_free(batch);
  return status == WF_OK;
}

/* Minimizes a batch on both devices and compares. */
static void check(wf_fst *const *fsts, size_t count, const wf_minimize_options *o, const char *what,
                  struct tally *tally) {
  wf_error err = {0}, cpu_err = {0};
  wf_fst_batch *in[2], *out[2];
  for (int k = 0; k < 2; k++)
    assert_ok(wf_fst_batch_create((const wf_fst *const *)fsts, count, k == 0 ? "cpu" : "cuda",
                                  &in[k], &err));
  wf_status want = wf_fst_batch_minimize(in[0], o, &out[0], &cpu_err),
            got = wf_fst_batch_minimize(in[1], o, &out[1], &err);
  if (want != got)
    fail_msg("%s: %s; on the CPU: %s", what, got == WF_OK ? "fine" : err.message,
             want == WF_OK ? "fine" : cpu_err.message);
  bool done = is_done_on_gpu(fsts, count, o);
  tally->done += done;
  tally->left += !done && want == WF_OK;
  if (want != WF_OK) {
    assert_string_equal(err.message, cpu_err.message);
    assert_true(!done && out[1] == NULL);
    tally->failed++;
  }
  for (size_t i = 0; want == WF_OK && i < count; i++) {
    wf_fst *cpu, *gpu;
    assert_ok(wf_fst_batch_to_fst(out[0], i, &cpu, &err));
    assert_ok(wf_fst_batch_to_fst(out[1], i, &gpu, &err));
    assert_same_bytes(gpu, cpu, what);
    uint64_t before = wf_fst_get_view(fsts[i]).num_states, after = wf_fst_get_view(cpu).num_states;
    tally->states += after;
    tally->merged += before > after ? before - after : 0;
    wf_fst_free(cpu);
    wf_fst_free(gpu);
  }
  for (int k = 0; k < 2; k++) {
    wf_fst_batch_free(in[k]);
    wf_fst_batch_free(out[k]);
  }
}

static void check_random(uint64_t seed, struct tally *tally) {
  test_rng rng = {seed};
  char what[64];
  wf_fst *fsts[BATCH];
  size_t count = 1 + test_below(&rng, BATCH);
  wf_minimize_options o;
  wf_minimize_options_init(&o);
  o.allow_nondet = seed % 3 == 0;
  o.push_weights = seed % 4 != 0;
  o.encode_labels = seed % 10 != 0;
  if (seed % 5 == 0) o.delta = seed % 2 == 0 ? 0 : 0.6f;
  snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
  for (size_t i = 0; i < count; i++)
    fsts[i] = random_unfolded(&rng, seed % 8 < 2 ? WF_LOG : WF_TROPICAL);
  check(fsts, count, &o, what, tally);
  for (size_t i = 0; i < count; i++) wf_fst_free(fsts[i]);
}

static void test_small_random(void **state) {
  (void)state;
  struct tally tally = {0};
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) check_random(seed, &tally);
  if (test_seeds(300) < 20) return; /* too few seeds to have every case */
  assert_true(tally.states > 6 * test_seeds(300) && tally.merged > 4 * test_seeds(300));
  assert_true(tally.done > test_seeds(300) / 3 && tally.left > test_seeds(300) / 20 &&
              tally.failed > test_seeds(300) / 50);
}

/* Two equivalent states with `num_arcs` arcs each, in the same order or in the reverse order. If
 * the order differs and there are more than 1,024 arcs, the GPU leaves the batch to the CPU.
 * `twice`: one arc of the second state occurs twice, with different weights. */
static wf_fst *hubs(uint32_t num_arcs, bool other_order, bool twice) {
  wf_builder *builder = builder_of(WF_TROPICAL, 5);
  add_arc(builder, 0, 1, 1, 1, 1);
  add_arc(builder, 0, 2, 2, 1, 1);
  set_final(builder, 3, 0.5f);
  set_final(builder, 4, 0.5f);
  for (uint32_t k = 0; k < num_arcs; k++) {
    uint32_t other = other_order ? num_arcs - 1 - k : k;
    add_arc(builder, 1, 3, 1 + (int32_t)k, 1, 0.25f * (float)(k % 5));
    add_arc(builder, 2, 4, 1 + (int32_t)other, 1, 0.25f * (float)(other % 5));
  }
  if (twice) add_arc(builder, 2, 4, (int32_t)num_arcs, 1, 0);
  return finish(builder);
}

static void test_small_hubs(void **state) {
  (void)state;
  wf_minimize_options o;
  wf_minimize_options_init(&o);
  for (int kind = 0; kind < 5; kind++) {
    static const uint32_t sizes[] = {40, 100, 100, 1100, 1100};
    struct tally tally = {0};
    wf_fst *fst = hubs(sizes[kind], kind % 2 == 0, false),
           *repeated = hubs(sizes[kind], false, true);
    check(&fst, 1, &o, "hubs", &tally);
    assert_int_equal(tally.merged, 2);
    assert_int_equal(tally.done, kind < 4);
    o.allow_nondet = kind % 2;
    check(&repeated, 1, &o, "hubs", &tally);
    assert_int_equal(tally.left + tally.failed, 1 + (kind == 4));
    wf_fst_free(fst);
    wf_fst_free(repeated);
  }
}

/* A line of states that differ only in their distance to the final state. */
static wf_fst *line(uint32_t length, bool climbs) {
  wf_builder *builder = builder_of(WF_TROPICAL, length);
  for (uint32_t s = 0; s + 1 < length; s++) add_arc(builder, s, s + 1, 1, 1, climbs ? 0.5f : 0);
  set_final(builder, length - 1, 0);
  return finish(builder);
}

static void test_small_lines(void **state) {
  (void)state;
  struct tally tally = {0};
  wf_fst *fsts[2] = {line(90, true), line(140, false)};
  check(fsts, 1, NULL, "a line", &tally);
  assert_int_equal(tally.done, 1);
  check(fsts, 2, NULL, "lines", &tally);
#ifdef SIMT
  assert_int_equal(tally.left, 1); /* 140 states need more than 100 rounds */
#endif
  assert_int_equal(tally.merged, 0);
  for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
}

/* On the imitated GPU, hashes of 14 bits collide. */
static void test_small_collisions(void **state) {
  (void)state;
  struct tally tally = {0};
  for (uint64_t seed = 1; seed <= 6; seed++) {
    test_rng rng = {seed};
    wf_fst *fst = unfolded(&rng, 100 + 20 * (uint32_t)seed, 3, true, false, WF_TROPICAL);
    check(&fst, 1, NULL, "collisions", &tally);
    wf_fst_free(fst);
  }
  assert_true(tally.merged > 300);
#ifdef SIMT
  assert_true(tally.left > 0);
#else
  assert_int_equal(tally.done, 6);
#endif
}

/* Inputs that fail on the GPU are left to the CPU, which reports the error. */
static void test_small_errors(void **state) {
  (void)state;
  struct tally tally = {0};
  static const char *const texts[] = {"0 1 1 1 1;0 1 1 1 2;1", "0 1 1 1 1;1 0 1 1 -2;1",
                                      "0 1 1 1 1;0 1 2 2 1;0 1 1 1 3;1"};
  for (int i = 0; i < 3; i++) {
    wf_fst *fsts[2] = {test_fst_of(WF_TROPICAL, "0 1 1 1 1;1"), test_fst_of(WF_TROPICAL, texts[i])};
    check(fsts, 2, NULL, "errors", &tally);
    for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
  }
  assert_int_equal(tally.failed, 3);
}

/* Every kernel once: little work, for compute-sanitizer. */
static void test_races(void **state) {
  (void)state;
  struct tally tally = {0};
  static const char *const texts[] = {
      "0 1 2 1 1;0 2 1 1 2;1 3 1 2 1;2 4 1 2 1;3 3 1 1 1;4 4 1 1 1;3 0.5;4 0.5",
      "0 1 1 1 1;1 0 1 1 2;1 2 2 1 0.5;2 1 3 1 1;1 0.5;2"};
  wf_fst *fsts[3] = {test_fst_of(WF_TROPICAL, texts[0]), test_fst_of(WF_TROPICAL, texts[1]),
                     hubs(70, true, false)};
  check(fsts, 3, NULL, "races", &tally);
  assert_true(tally.done == 1 && tally.merged > 2);
  for (int k = 0; k < 3; k++) wf_fst_free(fsts[k]);
}

static void test_large(void **state) {
  (void)state;
  struct tally tally = {0};
  test_rng rng = {1};
#ifdef SIMT
  wf_fst *fst = unfolded(&rng, 300, 4, true, false, WF_TROPICAL);
#else
  wf_fst *fst = unfolded(&rng, 100000, 4, true, false, WF_TROPICAL);
#endif
  check(&fst, 1, NULL, "large", &tally);
  assert_true(tally.merged > 500);
  wf_fst_free(fst);
}

#ifdef SIMT
/* The inputs of test_small_failures and the result of the CPU. */
struct failing {
  wf_fst *fsts[2], *want[2];
  wf_minimize_options options;
};

static wf_status minimize_all(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_fst_batch *batch = NULL, *made = NULL;
  wf_status status = wf_fst_batch_create((const wf_fst *const *)f->fsts, 2, "cuda", &batch, err);
  if (status == WF_OK) {
    status = wf_fst_batch_minimize(batch, &f->options, &made, err);
    assert_true((made != NULL) == (status == WF_OK));
  }
  for (size_t i = 0; status == WF_OK && i < 2; i++) {
    wf_fst *got = NULL;
    status = wf_fst_batch_to_fst(made, i, &got, err);
    if (status == WF_OK) assert_same_bytes(got, f->want[i], "minimize");
    wf_fst_free(got);
  }
  wf_fst_batch_free(made);
  wf_fst_batch_free(batch);
  return status;
}

/* On the GPU, and with an arc that occurs twice, so that the GPU leaves the batch to the CPU. */
static void test_small_failures(void **state) {
  (void)state;
  wf_error err = {0};
  for (int twice = 0; twice < 2; twice++) {
    struct failing f = {
        .fsts = {hubs(3, true, twice != 0), test_fst_of(WF_TROPICAL, "0 1 1 1 1;2 1 1 1 1;1")}};
    wf_minimize_options_init(&f.options);
    f.options.allow_nondet = true;
    assert_int_equal(is_done_on_gpu(f.fsts, 2, &f.options), twice == 0);
    for (int k = 0; k < 2; k++) assert_ok(wf_minimize(f.fsts[k], &f.options, &f.want[k], &err));
    fail_each_call(twice ? "minimize, left to the CPU" : "minimize", minimize_all, &f, 340);
    for (int k = 0; k < 2; k++) {
      wf_fst_free(f.fsts[k]);
      wf_fst_free(f.want[k]);
    }
  }
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_random),   cmocka_unit_test(test_small_hubs),
      cmocka_unit_test(test_small_lines),    cmocka_unit_test(test_small_collisions),
      cmocka_unit_test(test_small_errors),
#ifdef SIMT
      cmocka_unit_test(test_small_failures),
#endif
      cmocka_unit_test(test_races),          cmocka_unit_test(test_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
