/* test_gpu_minimize.c - minimization on the GPU against wf_minimize: results byte for byte,
 * failures word for word. Ends with 77 where there is no GPU. Also built for imitated GPUs, of one
 * thread (tests/fake_ops/) and of many (tests/simt/), which run everywhere; names of classes are so
 * short there that they collide, and rounds so few that the CPU must go on. */
#include "compose_oracle.h"
#include "random_fsts.h"
#include "fstops/device_batch.h"
#include "testing.h"

enum { BATCH = 5 };

#if defined(FAKE_CUDA) && !defined(SIMT)
int fake_fail_after = -1;
#endif

/* What was seen, so that a test can ask whether it tried anything: states of results, and by how
 * many those are fewer than the inputs'; batches that the kernels did, left to the CPU, that fail.
 */
struct tally {
  uint64_t states, merged, done, left, failed;
};

/* Does the GPU do it without the CPU? */
static bool is_done_there(wf_fst *const *fsts, size_t count, const wf_minimize_options *o) {
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

/* A batch on both devices. */
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
  bool done = is_done_there(fsts, count, o);
  tally->done += done;
  tally->left += !done && want == WF_OK;
  if (want != WF_OK) {
    assert_string_equal(err.message, cpu_err.message);
    assert_true(!done && out[1] == NULL);
    tally->failed++;
  }
  for (size_t i = 0; want == WF_OK && i < count; i++) {
    wf_fst *cpu, *gpu;
    assert_ok(wf_fst_batch_get(out[0], i, &cpu, &err));
    assert_ok(wf_fst_batch_get(out[1], i, &gpu, &err));
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
  if (test_seeds(300) < 20) return; /* a few seeds may have none */
  assert_true(tally.states > 6 * test_seeds(300) && tally.merged > 4 * test_seeds(300));
  assert_true(tally.done > test_seeds(300) / 3 && tally.left > test_seeds(300) / 20 &&
              tally.failed > test_seeds(300) / 50);
}

/* Two states of many arcs that are the same, in the same order or another one: beyond 1,024 arcs
 * the CPU compares them. */
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

/* A line of states that only their distance to the end tells apart. */
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
#ifdef FAKE_CUDA
  assert_int_equal(tally.left, 1); /* rounds do not suffice */
#endif
  assert_int_equal(tally.merged, 0);
  for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
}

/* More states than there are short names. */
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
#ifdef FAKE_CUDA
  assert_true(tally.left > 0);
#else
  assert_int_equal(tally.done, 6);
#endif
}

/* The CPU says what is wrong, and where. */
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

/* Every kernel once, for compute-sanitizer. */
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
#ifdef FAKE_CUDA
  wf_fst *fst = unfolded(&rng, 300, 4, true, false, WF_TROPICAL);
#else
  wf_fst *fst = unfolded(&rng, 100000, 4, true, false, WF_TROPICAL);
#endif
  check(&fst, 1, NULL, "large", &tally);
  assert_true(tally.merged > 500);
  wf_fst_free(fst);
}

#if defined(FAKE_CUDA) && !defined(SIMT)
/* Every call of CUDA's fails in turn: an error, no crash, nothing left behind. The second time the
 * CPU takes over. */
static void test_small_failures(void **state) {
  (void)state;
  for (int twice = 0; twice < 2; twice++) {
    wf_fst *fsts[2] = {hubs(3, true, twice != 0),
                       test_fst_of(WF_TROPICAL, "0 1 1 1 1;2 1 1 1 1;1")};
    wf_minimize_options o;
    int calls = 0;
    wf_minimize_options_init(&o);
    o.allow_nondet = true;
    for (wf_status status = WF_ERR_MEMORY; status != WF_OK; calls++) {
      wf_error err = {0};
      wf_fst_batch *batch = NULL, *made = NULL;
      fake_fail_after = calls;
      status = wf_fst_batch_create((const wf_fst *const *)fsts, 2, "cuda", &batch, &err);
      if (status == WF_OK) status = wf_fst_batch_minimize(batch, &o, &made, &err);
      fake_fail_after = -1;
      assert_true(status == WF_OK || ((status == WF_ERR_MEMORY || status == WF_ERR_DEVICE) &&
                                      strstr(err.message, "CUDA") != NULL));
      assert_true((made != NULL) == (status == WF_OK));
      wf_fst_batch_free(made);
      wf_fst_batch_free(batch);
    }
    assert_true(calls > 70);
    for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
  }
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_small_random),
    cmocka_unit_test(test_small_hubs),
    cmocka_unit_test(test_small_lines),
    cmocka_unit_test(test_small_collisions),
    cmocka_unit_test(test_small_errors),
#if defined(FAKE_CUDA) && !defined(SIMT)
    cmocka_unit_test(test_small_failures),
#endif
    cmocka_unit_test(test_races),
    cmocka_unit_test(test_large)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
