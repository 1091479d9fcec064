/* test_gpu_determinize.c - determinization: the GPU against wf_determinize. Results are the same
 * byte for byte, and error messages word for word. Exits with 77 (skipped) if there is no GPU. Also
 * compiled for the imitated GPU of tests/simt/, where tables start so small that they have to grow,
 * levels are done in many steps, and CUDA calls can be made to fail. */
#include "compose_oracle.h"
#include "fst/fst.h"
#include "random_fsts.h"
#include "testing.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

enum { BATCH = 6 };

/* Counts by which a test checks that its inputs were not trivial. */
struct tally {
  uint64_t states;  /* of all results */
  uint64_t merged;  /* arcs that the results have fewer than the inputs */
  uint64_t spelled; /* arcs of the results without an input label */
  uint64_t refused; /* batches that are not determinizable */
};

static void count_result(const wf_fst *in, const wf_fst *out, struct tally *tally) {
  wf_fst_view view = wf_fst_get_view(out);
  uint64_t before = wf_fst_get_view(in).num_arcs;
  tally->states += view.num_states;
  tally->merged += before > view.num_arcs ? before - view.num_arcs : 0;
  for (uint64_t i = 0; i < view.num_arcs; i++) tally->spelled += view.arcs[i].ilabel == 0;
}

/* Determinizes a batch on both devices and compares. */
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
    assert_ok(wf_fst_batch_to_fst(out[0], i, &cpu, &err));
    assert_ok(wf_fst_batch_to_fst(out[1], i, &gpu, &err));
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

/* With SIMT, tables of the sizes in tests/simt/table_sizes.h, or of the smallest sizes. */
static void use_tiny_tables(bool tiny) {
#ifdef SIMT
  static struct simt_table_sizes usual;
  if (usual.det_room == 0) usual = simt_table_sizes;
  simt_table_sizes.det_room = tiny ? 8 : usual.det_room;
  simt_table_sizes.det_items = tiny ? 40 : usual.det_items;
#else
  (void)tiny;
#endif
}

static void test_small_random(void **state) {
  (void)state;
  struct tally tally = {0};
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    test_rng rng = {seed};
    char what[64];
    use_tiny_tables(seed % 4 != 0);
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
  use_tiny_tables(false);
  if (test_seeds(300) < 20) return; /* too few seeds to have every case */
  assert_true(tally.states > 40 * test_seeds(300) && tally.merged > test_seeds(300));
  assert_true(tally.spelled > test_seeds(300) && tally.refused > test_seeds(300) / 50);
}

/* Arcs lead to higher states, so that epsilons make no cycle. About a third of the input labels are
 * epsilons, and paths with the same input often have the same output. */
static wf_fst *epsilon_relation(test_rng *rng, bool ambiguous) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *out;
  uint32_t num_states = 3 + test_below(rng, 8);
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < num_states; s++) {
    if (s + 1 == num_states || test_below(rng, 4) == 0)
      assert_ok(wf_builder_set_final(builder, s, (float)test_below(rng, 3), &err));
    for (uint32_t k = test_below(rng, 5); s + 1 < num_states && k > 0; k--) {
      int32_t ilabel = (int32_t)test_below(rng, 3),
              olabel = ilabel != 0 || ambiguous ? (int32_t)test_below(rng, ambiguous ? 3 : 2) : 0;
      wf_arc arc = {s + 1 + test_below(rng, num_states - s - 1),
                    ambiguous ? test_unit(rng) : 0.1f * (float)test_below(rng, 9), ilabel, olabel};
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
  }
  for (uint32_t s = 1; s < num_states; s += 2) /* labels that lead back */
    assert_ok(wf_builder_add_arc(builder, s, (wf_arc){s / 2, 1, 3 + (int32_t)s, 0}, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* With rmepsilon, arcs with input epsilon are followed. */
static void test_small_epsilons(void **state) {
  (void)state;
  struct tally tally = {0};
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    test_rng rng = {seed};
    char what[64];
    wf_fst *fsts[BATCH];
    size_t count = 1 + test_below(&rng, BATCH);
    wf_determinize_options o;
    wf_determinize_options_init(&o);
    o.rmepsilon = true;
    o.max_states = 200;
    o.allow_nonfunctional = seed % 3 == 0;
    if (seed % 4 == 0) o.subsequential_label = (int32_t)(seed % 7);
    snprintf(what, sizeof what, "epsilons, seed %llu", (unsigned long long)seed);
    use_tiny_tables(seed % 2 != 0);
    for (size_t i = 0; i < count; i++) fsts[i] = epsilon_relation(&rng, seed % 3 == 0);
    check(fsts, count, &o, what, &tally);
    check(fsts, 1, &o, what, &tally);
    for (size_t i = 0; i < count; i++) wf_fst_free(fsts[i]);
  }
  use_tiny_tables(false);
  if (test_seeds(300) >= 20) assert_true(tally.states > 10 * test_seeds(300));
}

/* The closure of a lexicon. The first phone of a word outputs the word, and the last phone is
 * unique to the word. So after determinization the output is delayed until the words differ. */
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
  for (uint64_t seed = 1; seed <= test_seeds(30); seed++) {
    use_tiny_tables(seed % 2 != 0);
    check_lexicon(30, seed);
  }
  use_tiny_tables(false);
}

/* A complete graph with two labels. Its subsets are halves of the states with few different
 * residual costs, and most arcs lead to a subset that exists already. */
static wf_fst *complete_graph(uint32_t num_states) {
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

static void test_small_complete_graphs(void **state) {
  (void)state;
  struct tally tally = {0};
  wf_fst *fsts[3] = {complete_graph(30), complete_graph(41), complete_graph(90)};
  for (int tiny = 0; tiny < 2; tiny++) {
    use_tiny_tables(tiny != 0);
    check(fsts, 3, NULL, "complete graphs", &tally);
  }
  use_tiny_tables(false);
  assert_true(tally.states > 16 && tally.merged > 2000);
  for (int i = 0; i < 3; i++) wf_fst_free(fsts[i]);
}

/* Two paths that read the same `length` labels, then differ. The first outputs a label on each arc,
 * the second outputs nothing, or with `has_output` one label on its last arc. */
static wf_fst *delay(uint32_t length, bool has_output) {
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
  assert_ok(wf_builder_add_arc(builder, 2 * length,
                               (wf_arc){2 * length + 2, 1, 3, has_output ? 4 : 0}, &err));
  assert_ok(wf_builder_set_final(builder, 2 * length + 1, 0, &err));
  assert_ok(wf_builder_set_final(builder, 2 * length + 2, 0, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

/* Outputs delayed by up to 254 labels, the most that the GPU supports, and by one more. */
static void test_small_delays(void **state) {
  (void)state;
  wf_error err = {0};
  struct tally tally = {0};
  for (int has_output = 0; has_output < 2; has_output++) {
    wf_fst *fsts[3] = {delay(3, has_output != 0), delay(1, has_output != 0),
                       delay(test_seeds(300) < 20 ? 20 : 254, has_output != 0)};
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

/* Errors are the same as on the CPU. Options that only the CPU supports are refused. */
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
  static const char *const refused[] = {"0 1 0 1 1;1 2 1 0 1;2", "0 1 0 0 1;1 0 0 0 1;1 2 1 0 1;2",
                                        "0 1 0 0 Infinity;0 1 1 0 1;1"},
                           *const why[] = {"log semiring", "a cycle of epsilons", "infinite cost"};
  for (int i = 0; i < 3; i++) {
    wf_fst *fst = test_fst_of(i == 0 ? WF_LOG : WF_TROPICAL, refused[i]);
    wf_fst_batch *in, *out;
    o.rmepsilon = true;
    assert_ok(wf_fst_batch_create((const wf_fst *const *)&fst, 1, "cuda", &in, &err));
    assert_int_equal(wf_fst_batch_determinize(in, &o, &out, &err), WF_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, why[i]));
    assert_null(out);
    wf_fst_batch_free(in);
    wf_fst_free(fst);
  }
  wf_fst *none[2] = {no_states(WF_TROPICAL),
                     test_fst_of(WF_TROPICAL, "0 1 1 1 1")}; /* no final state */
  check(none, 2, &o, "nothing", &tally);
  for (int k = 0; k < 2; k++) wf_fst_free(none[k]);
}

#ifndef SIMT /* takes many minutes with small tables */
/* 2^20 subsets in 21 levels are more than the default of max_states. */
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

/* Every kernel once: little work, for compute-sanitizer. */
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
#ifdef SIMT
  check_lexicon(300, 1);
#else
  check_lexicon(20000, 1);
#endif
}

#ifdef SIMT
/* The inputs of test_small_failures and the result of the CPU. */
struct failing {
  wf_fst *fsts[2], *want[2];
};

static wf_status determinize_all(const void *input, wf_error *err) {
  const struct failing *f = input;
  wf_fst_batch *batch = NULL, *made = NULL;
  wf_status status = wf_fst_batch_create((const wf_fst *const *)f->fsts, 2, "cuda", &batch, err);
  if (status == WF_OK) {
    status = wf_fst_batch_determinize(batch, NULL, &made, err);
    assert_true((made != NULL) == (status == WF_OK));
  }
  for (size_t i = 0; status == WF_OK && i < 2; i++) {
    wf_fst *got = NULL;
    status = wf_fst_batch_to_fst(made, i, &got, err);
    if (status == WF_OK) assert_same_bytes(got, f->want[i], "determinize");
    wf_fst_free(got);
  }
  wf_fst_batch_free(made);
  wf_fst_batch_free(batch);
  return status;
}

static void test_small_failures(void **state) {
  (void)state;
  wf_error err = {0};
  struct failing f = {.fsts = {delay(3, false), test_fst_of(WF_TROPICAL, "0 1 1 1 1;0 1 1 1 2;1")}};
  for (int k = 0; k < 2; k++) assert_ok(wf_determinize(f.fsts[k], NULL, &f.want[k], &err));
  use_tiny_tables(true);
  fail_each_call("determinize", determinize_all, &f, 950);
  use_tiny_tables(false);
  for (int k = 0; k < 2; k++) {
    wf_fst_free(f.fsts[k]);
    wf_fst_free(f.want[k]);
  }
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_random),   cmocka_unit_test(test_small_epsilons),
      cmocka_unit_test(test_small_lexicons), cmocka_unit_test(test_small_complete_graphs),
      cmocka_unit_test(test_small_delays),   cmocka_unit_test(test_small_refusals),
#ifdef SIMT
      cmocka_unit_test(test_small_failures),
#endif
#ifndef SIMT
      cmocka_unit_test(test_large_limit),
#endif
      cmocka_unit_test(test_races),          cmocka_unit_test(test_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
