/* test_gpu_determinize.c - determinization by levels of subsets on the GPU, a study, against wf_determinize, byte for byte. Ends with 77 where there is no GPU. Also built for the imitated
 * GPU of tests/simt/, which runs everywhere. */
#include "compose_oracle.h"
#include "cuda/determinize_gpu.h"
#include "testing.h"

/* On both devices. Returns by how much there are more elements of subsets than subsets. */
static uint64_t check(const wf_fst *fst, const char *what) {
  wf_error err = {0};
  wf_fst *trimmed, *cpu, *gpu;
  wf__gpu_batch *in, *out;
  wf__gpu_det_stats stats;
  wf__csr csr = {0};
  int64_t start;
  assert_ok(wf_connect(fst, &trimmed, &err));
  assert_ok(wf_determinize(trimmed, NULL, &cpu, &err));
  if (wf_fst_get_view(trimmed).start < 0) {
    wf_fst_free(trimmed);
    wf_fst_free(cpu);
    return 0;
  }
  assert_ok(wf__gpu_batch_create((const wf_fst *const *)&trimmed, 1, WF_TROPICAL, "cuda", &in, &err));
  assert_ok(wf__gpu_batch_determinize(in, 1.0 / 1024, 8, &out, &stats, &err));
  assert_ok(wf__gpu_batch_get(out, 0, &csr, &start, &err));
  assert_ok(wf__fst_from_csr(&csr, start, WF_TROPICAL, NULL, NULL, &gpu, &err));
  wf__csr_free(&csr);
  assert_same_bytes(gpu, cpu, what);
  uint64_t beyond = stats.num_elements - wf_fst_get_view(gpu).num_states;
  wf__gpu_batch_free(out);
  wf__gpu_batch_free(in);
  wf_fst_free(trimmed);
  wf_fst_free(cpu);
  wf_fst_free(gpu);
  return beyond;
}

/* Acceptors without cycles, whose labels are few, so that subsets are large and meet again. */
static void test_small_acceptors(void **state) {
  (void)state;
  uint64_t beyond = 0;
  for (uint64_t seed = 1; seed <= test_seeds(200); seed++) {
    test_rng rng = {seed};
    char what[64];
    uint32_t n = 2 + test_below(&rng, 40);
    test_fst_shape shape = {.num_states = n, .num_arcs = 2 * n + test_below(&rng, n), .num_ilabels = 2 + (int32_t)test_below(&rng, 2), .num_olabels = 5, .final_share = 0.2f, .max_weight = 6,
                            .acyclic = true, .acceptor = true, .semiring = WF_TROPICAL};
    wf_fst *fst = test_random_fst(&rng, &shape);
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
    beyond += check(fst, what);
    wf_fst_free(fst);
  }
  assert_true(beyond > test_seeds(200));
}

/* A lexicon: each word puts out its number on its first phone, and has a last phone of its own; then the next word. So outputs are owed until words part. */
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
      assert_ok(wf_builder_add_arc(builder, from, (wf_arc){to, test_unit(rng), 1 + (int32_t)test_below(rng, (uint32_t)num_phones), k == 0 ? (int32_t)w + 1 : 0}, &err));
    }
    assert_ok(wf_builder_add_arc(builder, from, (wf_arc){0, test_unit(rng), num_phones + 1 + (int32_t)w, 0}, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &out, &err));
  wf_builder_free(builder);
  return out;
}

static void check_lexicon(uint32_t num_words, uint64_t seed) {
  test_rng rng = {seed};
  wf_fst *words = lexicon(&rng, num_words, 4);
  assert_true(check(words, "lexicon") > num_words / 4);
  wf_fst_free(words);
}

static void test_small_lexicons(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(30); seed++) check_lexicon(30, seed);
}

/* For compute-sanitizer. */
static void test_races(void **state) {
  (void)state;
  check_lexicon(6, 1);
}

static void test_large(void **state) {
  (void)state;
#ifdef FAKE_CUDA
  check_lexicon(300, 1);
#else
  check_lexicon(20000, 1);
#endif
}

/* What the study leaves to the CPU. */
static void test_small_refusals(void **state) {
  (void)state;
  wf_error err = {0};
  static const char *const texts[] = {"0 1 1 1 1;0 1 1 2 1;1", "0 1 1 5 1;0 2 1 6 1;1 3 2 0 1;2 3 3 0 1;1;3", "0 1 1 1 1;0 2 1 2 1;1 3 1 3 1;2 4 1 4 1;3 5 2 0 1;4 5 3 0 1;5"};
  for (int i = 0; i < 3; i++) {
    wf_fst *fst = test_fst_of(WF_TROPICAL, texts[i]);
    wf__gpu_batch *in, *out;
    wf__gpu_det_stats stats;
    assert_ok(wf__gpu_batch_create((const wf_fst *const *)&fst, 1, WF_TROPICAL, "cuda", &in, &err));
    assert_int_equal(wf__gpu_batch_determinize(in, 1.0 / 1024, 8, &out, &stats, &err), WF_ERR_UNSUPPORTED);
    assert_null(out);
    wf__gpu_batch_free(in);
    wf_fst_free(fst);
  }
}

int main(int argc, char **argv) {
  if (test_no_gpu_for_batches()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_acceptors), cmocka_unit_test(test_small_lexicons), cmocka_unit_test(test_small_refusals), cmocka_unit_test(test_races), cmocka_unit_test(test_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
