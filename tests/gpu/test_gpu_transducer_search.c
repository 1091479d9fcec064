/* test_gpu_transducer_search.c - the search over tokens alone on a GPU against the CPU's search with
 * the same model on the GPU: results must be equal bit for bit. Exits with 77 if there is no GPU.
 * Also built for the imitated GPU of tests/simt. */
#include "device_searches.h"
#include "token_tasks.h"
#ifdef FAKE_CUDA
#include "failing_calls.h"
#endif

static wf_error err;

static void make_task_of(struct task *task, uint64_t seed) {
  test_rng rng = {seed * 911 + 3};
  make_tokens_task(&rng, seed, &task->model, &task->graph, &task->options);
  for (int u = 0; u < UTTERANCES; u++)
    task->scores[u] = random_encoder_outputs(&rng, task->model,
                                             (int64_t)test_below(&rng, is_flat(seed) ? 2
                                                                       : u % 9 == 0  ? 40
                                                                                     : 12));
  if (seed % 3 == 0) task->options.lattice_beam = 1 + (float)test_below(&rng, 6);
  task->scorer = NULL;
}

/* Decodes with a decoder whose search is on the GPU, or on the CPU. */
static void decode_with(const struct task *task, const char *device, bool on_host,
                        const wf_scores *scores, size_t at_once, wf_result **results) {
  wf_decoder *decoder = decoder_that_searches(task, device, on_host);
  for (size_t i = 0; i < UTTERANCES; i += at_once)
    assert_ok(test_decode(decoder, scores + i, UTTERANCES - i < at_once ? UTTERANCES - i : at_once,
                          NULL, results + i, &err));
  wf_decoder_free(decoder);
}

static void test_small_search(void **unused) {
  (void)unused;
  uint64_t num_words = 0;
  struct test_heard heard = {.text = "no room on the GPU"};
  wf_set_log(test_listen, &heard);
  for (uint64_t seed = 0; seed < test_seeds(60); seed++) {
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    wf_scores there[UTTERANCES];
    make_task_of(&task, seed);
    decode_with(&task, "cuda", true, task.scores, UTTERANCES, want);
    decode_with(&task, "cuda", false, task.scores, UTTERANCES, got);
    check_same(seed, got, want, &num_words);
    test_free_results(got, UTTERANCES);
    decode_with(&task, seed % 2 == 0 ? "cuda:0,0" : "cuda", false, task.scores,
                1 + (size_t)(seed % 7), got);
    check_same(seed, got, want, &num_words);
    test_free_results(got, UTTERANCES);
    for (int u = 0; u < UTTERANCES; u++)
      there[u] = u % 2 == 0 ? on_gpu(&task.scores[u]) : task.scores[u];
    decode_with(&task, "cuda:0", false, there, UTTERANCES, got);
    check_same(seed, got, want, &num_words);
    for (int u = 0; u < UTTERANCES; u += 2)
      assert_int_equal(cudaFree((void *)(uintptr_t)there[u].data), cudaSuccess);
    test_free_results(got, UTTERANCES);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
  wf_set_log(NULL, NULL);
  print_message("%llu words; %d utterances had no room\n", (unsigned long long)num_words,
                (int)heard.times);
  assert_true(num_words > 0);
  if (getenv("WARPFST_TEST_SEEDS") == NULL) assert_true(heard.times > 0);
}

/* --- errors ------------------------------------------------------------------------------ */

static uint64_t at_most(uint64_t seeds) {
  const uint64_t wanted = test_seeds(seeds);
  return wanted < seeds ? wanted : seeds;
}

/* An utterance with a bad score fails alone, and says which score. */
static void test_small_bad_utterances(void **unused) {
  (void)unused;
  for (uint64_t seed = 1; seed < 1 + at_most(2); seed++) {
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    make_task_of(&task, seed);
    decode_with(&task, "cuda", true, task.scores, UTTERANCES, want);
    int bad = 0;
    while (task.scores[bad].num_frames < 3 || task.scores[bad].dtype != WF_FLOAT32) bad++;
    const wf_scores on_host = task.scores[bad];
    ((float *)(uintptr_t)on_host.data)[on_host.stride + 1] = NAN;
    for (int there = 0; there < 2; there++) {
      wf_result *other[UTTERANCES];
      if (there != 0) task.scores[bad] = on_gpu(&on_host);
      decode_with(&task, "cuda", false, task.scores, UTTERANCES, got);
      decode_with(&task, "cuda", true, task.scores, UTTERANCES, other);
      for (int u = 0; u < UTTERANCES; u++)
        if (u != bad) test_assert_same_result(got[u], want[u]);
      assert_int_equal(got[bad]->status, other[bad]->status);
      if (other[bad]->status != WF_OK) assert_string_equal(got[bad]->message, other[bad]->message);
      if (there == 0) assert_int_equal(got[bad]->status, WF_ERR_ARGUMENT);
      test_free_results(got, UTTERANCES);
      test_free_results(other, UTTERANCES);
    }
    assert_int_equal(cudaFree((void *)(uintptr_t)task.scores[bad].data), cudaSuccess);
    task.scores[bad] = on_host;
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}

static bool stop_later(void *user, const char *stage, double fraction) {
  int *left = user;
  return --*left > 0;
}

/* A batch that is cancelled changes none that comes after. */
static void test_small_cancelled(void **unused) {
  (void)unused;
  const uint64_t seeds = at_most(3);
  uint64_t num_cancelled = 0;
  for (uint64_t seed = 1; seed < 1 + seeds; seed++) {
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    make_task_of(&task, seed);
    decode_with(&task, "cuda", true, task.scores, UTTERANCES, want);
    wf_decoder *decoder = decoder_on(&task, "cuda");
    for (int reports = 1; reports < 40; reports += 1 + reports / (seeds == 1 ? 1 : 3)) {
      int left = reports;
      const wf_progress progress = {stop_later, &left};
      const wf_status status = test_decode(decoder, task.scores, UTTERANCES, &progress, got, &err);
      if (status != WF_OK) {
        assert_int_equal(status, WF_ERR_CANCELLED);
        num_cancelled++;
        assert_ok(test_decode(decoder, task.scores, UTTERANCES, NULL, got, &err));
      }
      for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
      test_free_results(got, UTTERANCES);
      if (status == WF_OK) break;
    }
    wf_decoder_free(decoder);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
  assert_true(num_cancelled >= 3 * seeds);
}

#ifdef FAKE_CUDA
enum { FEW = 3 };
static wf_result *few_want[FEW];

/* Some utterances, one of them on the GPU, in two batches of one decoder. */
static wf_status decode_few(const void *input, wf_error *error) {
  const struct task *task = input;
  wf_decoder_options options = task->options;
  wf_decoder *decoder;
  options.device = "cuda";
  wf_status status =
      wf_decoder_create_transducer(task->graph, task->model, &options, &decoder, error);
  if (status != WF_OK) return status;
  for (int batch = 0; batch < 2 && status == WF_OK; batch++) {
    wf_result *results[FEW] = {NULL};
    status = test_decode(decoder, task->scores, FEW, NULL, results, error);
    for (int u = 0; u < FEW && status == WF_OK; u++)
      test_assert_same_result(results[u], few_want[u]);
    if (status == WF_OK) test_free_results(results, FEW);
  }
  wf_decoder_free(decoder);
  return status;
}

static void test_small_every_call_fails_once(void **unused) {
  (void)unused;
  for (uint64_t seed = 3; seed < 3 + at_most(2); seed++) { /* stateless, LSTM */
    static struct task task;
    wf_result *want[UTTERANCES];
    make_task_of(&task, seed);
    for (int u = 0; u < FEW; u++) /* short ones */
      if (task.scores[u].num_frames > 2) task.scores[u].num_frames = 2;
    task.options.num_threads = 1;
    decode_with(&task, "cuda", true, task.scores, UTTERANCES, want);
    memcpy(few_want, want, sizeof few_want);
    fail_each_call(seed == 3 ? "stateless" : "LSTM", decode_few, &task, 60);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
#ifdef FAKE_CUDA
  fake_gpus.checks_copies = true;
#endif
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_search),
      cmocka_unit_test(test_small_bad_utterances),
      cmocka_unit_test(test_small_cancelled),
#ifdef FAKE_CUDA
      cmocka_unit_test(test_small_every_call_fails_once),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
