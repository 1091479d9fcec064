/* test_gpu_determinize.c - determinization on the GPU against wf_determinize: results byte for
 * byte, failures word for word. Ends with 77 where there is no GPU. Also built for imitated GPUs,
 * of one thread (tests/fake_ops/) and of many (tests/simt/), which run everywhere; tables and
 * levels are so small there that they grow and are cut. */
#include "compose_oracle.h"
#include "random_fsts.h"
#include "fst/fst.h"
#include "testing.h"

enum { BATCH = 6 };

#if defined(FAKE_CUDA) && !defined(SIMT)
int fake_fail_after = -1;
#endif

/* What was seen, so that a test can ask whether it tried anything. */
struct tally {
  uint64_t states, merged, spelled,
      refused; /* of results; by how much those have fewer arcs than the inputs; arcs without an
                  input label; batches not determinizable */
};

static void count_result(const wf_fst *in, const wf_fst *out, struct tally *tally) {
  wf_fst_view view = wf_fst_get_view(out);
  uint64_t before = wf_fst_get_view(in).num_arcs;
  tally->states += view.num_states;
  tally->merged += before > view.num_arcs ? before - view.num_arcs : 0;
  for (uint64_t i = 0; i < view.num_arcs; i++) tally->spelled += view.arcs[i].ilabel == 0;
}

/* A batch on both devices. */
static void check(wf_fst *const *fsts, size_t count, const wf_determinize_options *o,
                  const char *what, struct tally *tally) {
  wf_error err = {0}, cpu_err = {0};
  wf_fst_batch *in[2], *out[2];
  for (int k = 0; k < 2; k++)
    assert_ok(wf_fst_batch_create((const wf_fst *const *)fsts, count, k == 0 ? "cpu" : "cuda",
                                  &in[k], &err));
  wf_status want = wf_fst_batch_determinize(in[0], o, &out[0], &cpu_err),
            got = wf_fst_batch_determinize(in[1], o, &out[1], &err);
  if (want != got)
    fail_msg("%s: %s; on the CPU: %s", what, got == WF_OK ? "fine" : err.message,
             want == WF_OK ? "fine" : cpu_err.message);
  if (want != WF_OK) {
    assert_string_equal(err.message, cpu_err.message);
    assert_null(out[1]);
    tally->refused++;
  }
  for (size_t i = 0; want == WF_OK && i < count; i++) {
    wf_fst *cpu, *gpu;
    assert_ok(wf_fst_batch_get(out[0], i, &cpu, &err));
    assert_ok(wf_fst_batch_get(out[1], i, &gpu, &err));
    assert_same_bytes(gpu, cpu, what);
    count_result(fsts[i], cpu, tally);
    wf_fst_free(cpu);
    wf_fst_free(gpu);
  }
  for (int k = 0; k < 2; k++) {
    wf_fst_batch_free(in[k]);
    wf_fst_batch_free(out[k]);
  }
}

static void test_small_random(void **state) {
  (void)state;
  struct tally tally = {0};
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    test_rng rng = {seed};
    char what[64];
    wf_fst *fsts[BATCH];
    size_t count = 1 + test_below(&rng, BATCH);
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    o.allow_nonfunctional = seed % 4 != 0;
    o.max_states = seed % 5 == 0 ? 30 : 5000;
    if (seed % 3 == 0) o.subsequential_label = (int32_t)(seed % 7);
    if (seed % 6 == 1) o.delta = 0;
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
    for (size_t i = 0; i < count; i++) fsts[i] = random_relation(&rng);
    check(fsts, count, &o, what, &tally);
    for (size_t i = 0; i < count; i++) wf_fst_free(fsts[i]);
  }
  if (test_seeds(300) < 20) return; /* a few seeds may have none */
  assert_true(tally.states > 40 * test_seeds(300) && tally.merged > test_seeds(300));
  assert_true(tally.spelled > test_seeds(300) && tally.refused > test_seeds(300) / 50);
}

/* A lexicon: each word puts out its number on its first phone, and has a last phone of its own;
 * then the next word. So outputs are owed until words part. */
static wf_fst *lexicon(test_rng *rng, uint32_t num_words, int32_t num_phones) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, 0, 0.5f, &err));
  for (uint32_t w = 0; w < num_words; w++) {
    uint32_t from = 0, to, length = 1 + test_below(rng, 5);
    for (uint32_t k = 0; k < length; k++, from = to) {
      assert_ok(wf_builder_add_states(builder, 1, &to, &err));
      assert_ok(wf_builder_add_arc(
          builder, from,
          (wf_arc){to, test_unit(rng), 1 + (int32_t)test_below(rng, (uint32_t)num_phones),
                   k == 0 ? (int32_t)w + 1 : 0},
          &err));
    }
    assert_ok(wf_builder_add_arc(
        builder, from, (wf_arc){0, test_unit(rng), num_phones + 1 + (int32_t)w, 0}, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static void check_lexicon(uint32_t num_words, uint64_t seed) {
  test_rng rng = {seed};
  struct tally tally = {0};
  wf_fst *words = lexicon(&rng, num_words, 4);
  check(&words, 1, NULL, "lexicon", &tally);
  assert_true(tally.merged > num_words / 4);
  wf_fst_free(words);
}

static void test_small_lexicons(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(30); seed++) check_lexicon(30, seed);
}

/* Every state leads to every other one, by two labels: subsets of half of the states, which are
 * found again and again, with few residual costs. */
static wf_fst *crowd(uint32_t num_states) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  assert_ok(wf_builder_set_final(builder, num_states - 1, 0.5f, &err));
  for (uint32_t from = 0; from < num_states; from++)
    for (uint32_t to = 0; to < num_states; to++)
      assert_ok(wf_builder_add_arc(
          builder, from, (wf_arc){to, 0.25f * (float)(to % 3 + from % 2), 1 + (int32_t)(to % 2), 0},
          &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static void test_small_crowds(void **state) {
  (void)state;
  struct tally tally = {0};
  wf_fst *fsts[3] = {crowd(30), crowd(41), crowd(90)};
  check(fsts, 3, NULL, "crowds", &tally);
  assert_true(tally.states > 8 && tally.merged > 1000);
  for (int i = 0; i < 3; i++) wf_fst_free(fsts[i]);
}

/* Two ways read the same labels, one puts them all out; at the end the other one puts them out or
 * ends. */
static wf_fst *delay(uint32_t length, bool put_out) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, 2 * length + 3, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t k = 0; k < length; k++) {
    int32_t label = 1 + (int32_t)(k * 7 % 5);
    assert_ok(wf_builder_add_arc(builder, k == 0 ? 0 : 2 * k - 1,
                                 (wf_arc){2 * k + 1, 0.5f, 1, label}, &err));
    assert_ok(
        wf_builder_add_arc(builder, k == 0 ? 0 : 2 * k, (wf_arc){2 * k + 2, 0.25f, 1, 0}, &err));
  }
  assert_ok(wf_builder_set_final(builder, 2 * length - 1, 0.5f, &err));
  assert_ok(wf_builder_add_arc(builder, 2 * length - 1, (wf_arc){2 * length + 1, 1, 2, 3}, &err));
  assert_ok(wf_builder_add_arc(builder, 2 * length, (wf_arc){2 * length + 2, 1, 3, put_out ? 4 : 0},
                               &err));
  assert_ok(wf_builder_set_final(builder, 2 * length + 1, 0, &err));
  assert_ok(wf_builder_set_final(builder, 2 * length + 2, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* Outputs that lag by as many labels as a GPU takes, and by one more. */
static void test_small_delays(void **state) {
  (void)state;
  wf_error err = {0};
  struct tally tally = {0};
  for (int put_out = 0; put_out < 2; put_out++) {
    wf_fst *fsts[3] = {delay(3, put_out != 0), delay(1, put_out != 0),
                       delay(test_seeds(300) < 20 ? 20 : 254, put_out != 0)};
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    for (int32_t label = 0; label < 4; label++) {
      o.subsequential_label = label;
      check(fsts, 3, &o, "delays", &tally);
    }
    for (int i = 0; i < 3; i++) wf_fst_free(fsts[i]);
  }
  assert_true(tally.spelled > 0 && tally.refused == 0);
  wf_fst *fst = delay(255, true), *cpu;
  wf_fst_batch *in, *out;
  assert_ok(wf_determinize(fst, NULL, &cpu, &err));
  assert_ok(wf_fst_batch_create((const wf_fst *const *)&fst, 1, "cuda", &in, &err));
  assert_int_equal(wf_fst_batch_determinize(in, NULL, &out, &err), WF_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.message, "255 labels behind"));
  assert_null(out);
  wf_fst_batch_free(in);
  wf_fst_free(cpu);
  wf_fst_free(fst);
}

/* Errors are the CPU's; what only the CPU does is refused. */
static void test_small_refusals(void **state) {
  (void)state;
  wf_error err = {0};
  struct tally tally = {0};
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.max_states = 20;
  static const char *const texts[] = {"0 1 1 1 1;0 1 1 2 1;1", "0 1 1 1 1;0 2 1 2 1;1;2",
                                      "0 1 1 1;0 2 1 1;1 1 2 2 1;2 2 2 2 2;1 3 3 3;2 3 4 4;3"};
  for (int i = 0; i < 3; i++) {
    wf_fst *fsts[2] = {test_fst_of(WF_TROPICAL, "0 1 1 1 1;1"), test_fst_of(WF_TROPICAL, texts[i])};
    check(fsts, 2, &o, "errors", &tally);
    check(fsts + 1, 1, &o, "errors", &tally);
    for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
  }
  assert_int_equal(tally.refused, 6);
  for (int i = 0; i < 2; i++) {
    wf_fst *fst = test_fst_of(i == 0 ? WF_LOG : WF_TROPICAL, "0 1 0 1 1;1 2 1 0 1;2");
    wf_fst_batch *in, *out;
    o.rmepsilon = true;
    assert_ok(wf_fst_batch_create((const wf_fst *const *)&fst, 1, "cuda", &in, &err));
    assert_int_equal(wf_fst_batch_determinize(in, &o, &out, &err), WF_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, i == 0 ? "log semiring" : "epsilon"));
    assert_null(out);
    wf_fst_batch_free(in);
    wf_fst_free(fst);
  }
  wf_fst *none[2] = {no_states(WF_TROPICAL),
                     test_fst_of(WF_TROPICAL, "0 1 1 1 1")}; /* no final state */
  check(none, 2, &o, "nothing", &tally);
  for (int k = 0; k < 2; k++) wf_fst_free(none[k]);
}

#ifndef FAKE_CUDA /* which takes many minutes: its rooms are tiny */
/* The default of max_states: 2^20 subsets in 21 levels are too many. */
static void test_large_limit(void **state) {
  (void)state;
  struct tally tally = {0};
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  char text[2048] = "0 0 1 1;0 0 2 2;0 1 1 1;";
  for (int s = 1; s < 20; s++)
    sprintf(text + strlen(text), "%d %d 1 1;%d %d 2 2;", s, s + 1, s, s + 1);
  strcat(text, "20");
  wf_fst *fsts[2] = {test_fst_of(WF_TROPICAL, "0 1 1 1 1;1"), test_fst_of(WF_TROPICAL, text)};
  check(fsts, 2, &o, "the default limit", &tally);
  check(fsts + 1, 1, &o, "the default limit", &tally);
  assert_int_equal(tally.refused, 2);
  for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
}
#endif

/* Every kernel once, for compute-sanitizer. */
static void test_races(void **state) {
  (void)state;
  struct tally tally = {0};
  wf_fst *fsts[2] = {
      test_fst_of(WF_TROPICAL,
                  "0 1 1 1 1;0 2 1 1 2;1 3 1 2 1;2 3 1 0 1;2 4 2 0 1;3 5 2 3 1;4 5 1 0 1;5"),
      delay(3, false)};
  wf_determinize_options o;
  wf_determinize_options_init(&o);
  o.allow_nonfunctional = true;
  check(fsts, 2, &o, "races", &tally);
  o.allow_nonfunctional = false;
  check(fsts + 1, 1, &o, "races", &tally);
  assert_true(tally.spelled > 0 && tally.refused == 0);
  for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
}

static void test_large(void **state) {
  (void)state;
#ifdef FAKE_CUDA
  check_lexicon(300, 1);
#else
  check_lexicon(20000, 1);
#endif
}

#if defined(FAKE_CUDA) && !defined(SIMT)
/* Every call of CUDA's fails in turn: an error, no crash, nothing left behind. */
static void test_small_failures(void **state) {
  (void)state;
  wf_fst *fsts[2] = {delay(3, false), test_fst_of(WF_TROPICAL, "0 1 1 1 1;0 1 1 1 2;1")};
  int calls = 0;
  for (wf_status status = WF_ERR_MEMORY; status != WF_OK; calls++) {
    wf_error err = {0};
    wf_fst_batch *batch = NULL, *made = NULL;
    fake_fail_after = calls;
    status = wf_fst_batch_create((const wf_fst *const *)fsts, 2, "cuda", &batch, &err);
    if (status == WF_OK) status = wf_fst_batch_determinize(batch, NULL, &made, &err);
    fake_fail_after = -1;
    assert_true(status == WF_OK || ((status == WF_ERR_MEMORY || status == WF_ERR_DEVICE) &&
                                    strstr(err.message, "CUDA") != NULL));
    assert_true((made != NULL) == (status == WF_OK));
    wf_fst_batch_free(made);
    wf_fst_batch_free(batch);
  }
  assert_true(calls > 150);
  for (int k = 0; k < 2; k++) wf_fst_free(fsts[k]);
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_small_random),
    cmocka_unit_test(test_small_lexicons),
    cmocka_unit_test(test_small_crowds),
    cmocka_unit_test(test_small_delays),
    cmocka_unit_test(test_small_refusals),
#if defined(FAKE_CUDA) && !defined(SIMT)
    cmocka_unit_test(test_small_failures),
#endif
#ifndef FAKE_CUDA
    cmocka_unit_test(test_large_limit),
#endif
    cmocka_unit_test(test_races),
    cmocka_unit_test(test_large)
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
