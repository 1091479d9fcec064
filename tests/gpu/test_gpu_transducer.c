/* test_gpu_transducer.c - decoding with transducers on a GPU gives the results of the CPU, bit for
 * bit and lattices included, for every kind of model, batch and order, and for streams. Exits with
 * 77 if there is no GPU. Also built for the imitated GPU of tests/simt, with small limits on the
 * size of a batch. */
#include "device_searches.h"

static wf_error err;

/* --- decoding ---------------------------------------------------------------------------- */

static int num_gpus(void) {
  int count = 0;
  assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
  return count;
}

/* One decoder, batches of different sizes: lanes keep predictor contexts from one to the next. */
static void decode_in_turn(const struct task *task, const char *device, wf_result *const *want) {
  static const size_t sizes[] = {20, 2, 5, 1, 9, 3};
  wf_decoder *decoder = decoder_on(task, device);
  for (size_t i = 0, first = 0; i < sizeof sizes / sizeof *sizes; first += sizes[i++]) {
    wf_result *got[UTTERANCES];
    assert_true(first + sizes[i] <= UTTERANCES);
    assert_ok(test_decode(decoder, task->scores + first, sizes[i], NULL, got, &err));
    for (size_t k = 0; k < sizes[i]; k++) test_assert_same_result(got[k], want[first + k]);
    test_free_results(got, sizes[i]);
  }
  wf_decoder_free(decoder);
}

static void test_small_decoding(void **unused) {
  (void)unused;
  uint64_t num_words = 0;
  for (uint64_t seed = 0; seed < test_seeds(42); seed++) {
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES], *other[UTTERANCES];
    wf_scores moved[UTTERANCES];
    make_task(&task, seed);
    decode_on(&task, "cpu", task.scores, UTTERANCES, want);
    decode_on(&task, "cuda", task.scores, UTTERANCES, got);
    test_assert_same_batch(seed, want, got, UTTERANCES);
    for (int u = 0; u < UTTERANCES; u++) num_words += got[u]->num_words;
    for (size_t at_once = 1; at_once <= 3; at_once += 2) {
      decode_on(&task, "cuda", task.scores, at_once, other);
      for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(other[u], got[u]);
      test_free_results(other, UTTERANCES);
    }
    decode_in_turn(&task, "cuda", got);
    decode_in_turn(&task, "cuda:0,0", got);
    if (num_gpus() > 1) decode_in_turn(&task, "cuda:all", got);
    stream_on(&task, "cuda", NULL, NULL, got, seed);
    if (seed % 2 == 0)
      stream_on(&task, num_gpus() > 1 ? "cuda:1,0" : "cuda:0,0", NULL, NULL, got, seed);
    for (int u = 0; u < UTTERANCES; u++) moved[u] = on_gpu(&task.scores[UTTERANCES - 1 - u]);
    decode_on(&task, "cuda:0", moved, UTTERANCES, other);
    for (int u = 0; u < UTTERANCES; u++) {
      test_assert_same_result(other[u], got[UTTERANCES - 1 - u]);
      assert_int_equal(cudaFree((void *)(uintptr_t)moved[u].data), cudaSuccess);
    }
    test_free_results(other, UTTERANCES);
    test_free_results(want, UTTERANCES);
    test_free_results(got, UTTERANCES);
    free_task(&task);
  }
  print_message("%llu words; streams of %d decoders were searched in kernels\n",
                (unsigned long long)num_words, num_in_kernels);
  assert_true(num_words > 0);
  if (getenv("WARPFST_TEST_SEEDS") == NULL) assert_true(num_in_kernels > 0);
}

#ifdef FAKE_CUDA
/* Another GPU gives the same, and copies what is in this one's memory. */
static void test_small_another_gpu(void **unused) {
  (void)unused;
  static struct task task;
  wf_result *want[UTTERANCES], *got[UTTERANCES];
  int moved = 0;
  make_task(&task, 1);
  decode_on(&task, "cuda", task.scores, UTTERANCES, want);
  while (task.scores[moved].num_frames == 0) moved++;
  const wf_scores on_host = task.scores[moved];
  task.scores[moved] = on_gpu(&on_host);
  decode_on(&task, "cuda:1", task.scores, UTTERANCES, got);
  for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
  assert_int_equal(cudaFree((void *)(uintptr_t)task.scores[moved].data), cudaSuccess);
  task.scores[moved] = on_host;
  test_free_results(want, UTTERANCES);
  test_free_results(got, UTTERANCES);
  free_task(&task);
}
#endif

/* Of rounds that threads search. */
static void test_small_stats(void **unused) {
  (void)unused;
  static struct task task;
  wf_decoder *decoder;
  wf_result *results[UTTERANCES];
  wf_transducer_stats stats;
#ifdef FAKE_CUDA
  const long recorded = fake_gpus.num_recorded, launched = fake_gpus.num_launched;
#endif
  make_task(&task, 1);
  assert_int_equal(setenv("WARPFST_TRANSDUCER_SEARCH", "host", 1), 0);
  decoder = decoder_on(&task, "cuda");
  assert_int_equal(unsetenv("WARPFST_TRANSDUCER_SEARCH"), 0);
  assert_ok(test_decode(decoder, task.scores, UTTERANCES, NULL, results, &err));
  wf_decoder_get_transducer_stats(decoder, &stats);
  assert_true(stats.num_rounds > 0 && stats.num_rows > stats.num_rounds && stats.num_contexts > 0 &&
              stats.num_contexts < stats.num_rows);
#ifdef FAKE_CUDA /* most rounds are graphs, which are launched several times each */
  assert_true(fake_gpus.num_launched - launched > (long)stats.num_rounds / 2);
  assert_true(fake_gpus.num_recorded - recorded > 0 &&
              fake_gpus.num_launched - launched > 2 * (fake_gpus.num_recorded - recorded));
#endif
  test_free_results(results, UTTERANCES);
  wf_decoder_free(decoder);
  free_task(&task);
}

/* --- errors ------------------------------------------------------------------------------ */

/* An utterance with a bad score fails alone. */
static void test_small_bad_scores(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 6; seed++) {
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    make_task(&task, seed);
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    int bad = 0;
    while (task.scores[bad].num_frames == 0 || task.scores[bad].dtype != WF_FLOAT32) bad++;
    ((float *)(uintptr_t)task.scores[bad].data)[0] = NAN;
    const wf_scores on_host = task.scores[bad];
    for (int there = 0; there < 2; there++) {
      if (there != 0) task.scores[bad] = on_gpu(&on_host);
      decode_on(&task, "cuda", task.scores, UTTERANCES, got);
      for (int u = 0; u < UTTERANCES; u++)
        if (u != bad) test_assert_same_result(got[u], want[u]);
      assert_int_equal(got[bad]->status, WF_ERR_ARGUMENT);
      assert_non_null(
          strstr(got[bad]->message, there != 0 ? "frame 0: the logit of token 0 is nan" : "NaN"));
      test_free_results(got, UTTERANCES);
    }
    assert_int_equal(cudaFree((void *)(uintptr_t)task.scores[bad].data), cudaSuccess);
    task.scores[bad] = on_host;
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}

static bool no_predictions(void *user, const wf_predictor_rows *rows) {
  return user == NULL && rows->count == 0;
}
static bool no_logits(void *user, const wf_joiner_rows *rows) {
  return user == NULL && rows->count == 0;
}

static void test_small_refused(void **unused) {
  (void)unused;
  static struct task task;
  wf_decoder *decoder;
  wf_transducer *behind;
  wf_transducer_parts parts;
  make_task(&task, 0);
  task.options.device = "cuda:63";
  assert_int_equal(
      wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err),
      WF_ERR_DEVICE);
  wf_transducer_parts_init(&parts);
  parts.num_tokens = task.model->num_tokens;
  parts.encoder_size = parts.predictor_size = parts.context_size = 1;
  parts.predict = no_predictions;
  parts.join = no_logits;
  assert_ok(wf_transducer_create(&parts, &behind, &err));
  task.options.device = "cuda";
  assert_int_equal(wf_decoder_create_transducer(task.graph, behind, &task.options, &decoder, &err),
                   WF_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.message, "behind functions"));
  wf_transducer_free(behind);
  free_task(&task);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
#ifdef FAKE_CUDA
  fake_gpus.checks_copies = true;
#endif
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_decoding),    cmocka_unit_test(test_small_stats),
      cmocka_unit_test(test_small_bad_scores),  cmocka_unit_test(test_small_refused),
#ifdef FAKE_CUDA
      cmocka_unit_test(test_small_another_gpu),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
