/* test_gpu_minimize.c - minimization on the GPU against wf_minimize: results byte for byte, failures word for word. Ends with 77 where there is no GPU. Also built for imitated GPUs, of one
 * thread (tests/fake_ops/) and of many (tests/simt/), which run everywhere; names of classes are so short there that they collide, and rounds so few that the CPU must go on. */
#include "compose_oracle.h"
#include "fst/fst.h"
#include "fstops/device_batch.h"
#include "testing.h"

enum { BATCH = 5 };

#if defined(FAKE_CUDA) && !defined(SIMT)
int fake_fail_after = -1;
#endif

/* What was seen, so that a test can ask whether it tried anything: states of results, and by how many those are fewer than the inputs'; batches that the kernels did, left to the CPU, that fail. */
struct tally {
  uint64_t states, merged, done, left, failed;
};

/* Does the GPU do it without the CPU? */
static bool is_done_there(wf_fst *const *fsts, size_t count, const wf_minimize_options *o) {
  wf_error err = {0};
  wf_minimize_options defaults;
  wf__gpu_batch *batch, *made;
  wf_minimize_options_init(&defaults);
  assert_ok(wf__gpu_batch_create((const wf_fst *const *)fsts, count, wf_fst_get_view(fsts[0]).semiring, "cuda", &batch, &err));
  wf_status status = wf__gpu_batch_minimize(batch, o != NULL ? o : &defaults, &made, &err);
  assert_true(status == WF_OK || (status == WF_ERR_UNSUPPORTED && strstr(err.message, "only the CPU") != NULL));
  wf__gpu_batch_free(made);
  wf__gpu_batch_free(batch);
  return status == WF_OK;
}

/* A batch on both devices. */
static void check(wf_fst *const *fsts, size_t count, const wf_minimize_options *o, const char *what, struct tally *tally) {
  wf_error err = {0}, cpu_err = {0};
  wf_fst_batch *in[2], *out[2];
  for (int k = 0; k < 2; k++) assert_ok(wf_fst_batch_create((const wf_fst *const *)fsts, count, k == 0 ? "cpu" : "cuda", &in[k], &err));
  wf_status want = wf_fst_batch_minimize(in[0], o, &out[0], &cpu_err), got = wf_fst_batch_minimize(in[1], o, &out[1], &err);
  if (want != got) fail_msg("%s: %s; on the CPU: %s", what, got == WF_OK ? "fine" : err.message, want == WF_OK ? "fine" : cpu_err.message);
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

static wf_builder *builder_of(wf_semiring semiring, uint32_t num_states) {
  wf_error err = {0};
  wf_builder *builder;
  assert_ok(wf_builder_create(semiring, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  return builder;
}

static wf_fst *finish(wf_builder *builder) {
  wf_error err = {0};
  wf_fst *fst;
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  return fst;
}

static void add_arc(wf_builder *builder, uint32_t from, uint32_t to, int32_t ilabel, int32_t olabel, float weight) {
  wf_error err = {0};
  assert_ok(wf_builder_add_arc(builder, from, (wf_arc){to, weight, ilabel, olabel}, &err));
}

static void set_final(wf_builder *builder, uint32_t state, float cost) {
  wf_error err = {0};
  assert_ok(wf_builder_set_final(builder, state, cost, &err));
}

/* `copies` of each of `core` states that act alike once costs are pushed: each state has a height, which its arcs climb, so that costs may be below zero while cycles are not. Arcs in any order. */
static wf_fst *unfolded(test_rng *rng, uint32_t core, uint32_t copies, bool cycles, bool nondeterministic, wf_semiring semiring) {
  uint64_t seed = test_next(rng), heights = test_next(rng);
  uint32_t turn = test_below(rng, 3);
  wf_builder *builder = builder_of(semiring, core * copies);
  for (uint32_t s = 0; s < core * copies; s++) {
    test_rng own = {seed + s % core * 1000003u}; /* the same draws for all that act alike */
    uint32_t layer = cycles ? 0 : s / core + 1, num_labels = 1 + test_below(&own, 4);
    test_rng hill = {heights + s};
    float height = semiring == WF_LOG ? 0 : 0.25f * (float)test_below(&hill, 9);
    if (s % core == 0 || test_below(&own, 4) == 0) set_final(builder, s, 0.25f * (float)test_below(&own, 3) + height);
    for (uint32_t k = 0; k < num_labels && layer < copies; k++) {
      int32_t label = 1 + (int32_t)((k + turn * s) % num_labels), olabel = (int32_t)(seed >> label & 1);
      test_rng act = {seed + s % core * 1000003u + (uint64_t)label};
      uint32_t to = (layer + test_below(rng, cycles ? copies : 1)) * core + test_below(&act, core);
      test_rng there = {heights + to};
      float climbs = semiring == WF_LOG ? 3 : height - 0.25f * (float)test_below(&there, 9), cost = 0.5f * (float)test_below(&act, 3);
      for (uint32_t twice = 0; twice <= (nondeterministic && label == 2); twice++) add_arc(builder, s, to, label, olabel, cost + climbs);
    }
  }
  return finish(builder);
}

/* As a file may have it. */
static wf_fst *without_start(wf_semiring semiring) {
  wf_error err = {0};
  wf__csr csr = {0};
  wf_fst *fst;
  for (int s = 0; s < 2; s++) assert_ok(wf__csr_add_state(&csr, 0.5f, &err));
  assert_ok(wf__csr_push(&csr, (wf_arc){0, 1, 1, 1}, &err));
  assert_ok(wf__fst_from_csr(&csr, -1, semiring, NULL, NULL, &fst, &err));
  return fst;
}

/* Few states, of which some are equal; acceptors; arcs that are never taken; no states, no way to the end, no start. */
static wf_fst *random_fst(test_rng *rng, wf_semiring semiring) {
  uint32_t kind = test_below(rng, 40);
  if (kind == 0) {
    wf_fst *none;
    wf_error err = {0};
    assert_ok(wf__fst_empty(semiring, &none, &err));
    return none;
  }
  if (kind == 1) return test_fst_of(semiring, "0 1 1 1 1");
  if (kind == 2) return without_start(semiring);
  if (kind < 6) {
    test_fst_shape shape = {.num_states = 2 + test_below(rng, 20), .num_arcs = 2 + test_below(rng, 30), .num_ilabels = 9, .num_olabels = 3, .epsilon_share = 0.1f, .final_share = 0.3f,
                            .max_weight = 2, .acyclic = kind == 3, .acceptor = kind == 4, .semiring = semiring};
    return test_random_fst(rng, &shape);
  }
  return unfolded(rng, 1 + test_below(rng, 6), 1 + test_below(rng, 5), kind % 2 == 0, kind == 7, semiring);
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
  for (size_t i = 0; i < count; i++) fsts[i] = random_fst(&rng, seed % 8 < 2 ? WF_LOG : WF_TROPICAL);
  check(fsts, count, &o, what, tally);
  for (size_t i = 0; i < count; i++) wf_fst_free(fsts[i]);
}

static void test_small_random(void **state) {
  (void)state;
  struct tally tally = {0};
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) check_random(seed, &tally);
  if (test_seeds(300) < 20) return; /* a few seeds may have none */
  assert_true(tally.states > 6 * test_seeds(300) && tally.merged > 4 * test_seeds(300));
  assert_true(tally.done > test_seeds(300) / 3 && tally.left > test_seeds(300) / 20 && tally.failed > test_seeds(300) / 50);
}

/* Two states of many arcs that are the same, in the same order or another one: beyond 1,024 arcs the CPU compares them. */
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
    wf_fst *fst = hubs(sizes[kind], kind % 2 == 0, false), *repeated = hubs(sizes[kind], false, true);
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
  static const char *const texts[] = {"0 1 1 1 1;0 1 1 1 2;1", "0 1 1 1 1;1 0 1 1 -2;1", "0 1 1 1 1;0 1 2 2 1;0 1 1 1 3;1"};
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
  static const char *const texts[] = {"0 1 2 1 1;0 2 1 1 2;1 3 1 2 1;2 4 1 2 1;3 3 1 1 1;4 4 1 1 1;3 0.5;4 0.5", "0 1 1 1 1;1 0 1 1 2;1 2 2 1 0.5;2 1 3 1 1;1 0.5;2"};
  wf_fst *fsts[3] = {test_fst_of(WF_TROPICAL, texts[0]), test_fst_of(WF_TROPICAL, texts[1]), hubs(70, true, false)};
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
/* Every call of CUDA's fails in turn: an error, no crash, nothing left behind. The second time the CPU takes over. */
static void test_small_failures(void **state) {
  (void)state;
  for (int twice = 0; twice < 2; twice++) {
    wf_fst *fsts[2] = {hubs(3, true, twice != 0), test_fst_of(WF_TROPICAL, "0 1 1 1 1;2 1 1 1 1;1")};
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
      assert_true(status == WF_OK || ((status == WF_ERR_MEMORY || status == WF_ERR_DEVICE) && strstr(err.message, "CUDA") != NULL));
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_random), cmocka_unit_test(test_small_hubs),       cmocka_unit_test(test_small_lines), cmocka_unit_test(test_small_collisions),
                                     cmocka_unit_test(test_small_errors),
#if defined(FAKE_CUDA) && !defined(SIMT)
                                     cmocka_unit_test(test_small_failures),
#endif
                                     cmocka_unit_test(test_races),        cmocka_unit_test(test_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
