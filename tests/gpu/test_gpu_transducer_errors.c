/* test_gpu_transducer_errors.c - calls that are cancelled or that fail while transducers decode on a
 * GPU: what follows is as if they had not been made. Exits with 77 if there is no GPU. Also built for
 * the imitated GPU of tests/simt, where CUDA calls can be made to fail. */
#include "base/interrupt.h"
#include "gpu_transducers.h"
#ifdef FAKE_CUDA
#include "failing_calls.h"
#endif

static wf_error err;

/* --- cancelled calls --------------------------------------------------------------------- */

/* Cancels the call at the last poll of *user. */
static bool look(void *user) {
  int *looks = user;
  wf__interrupt_poll();
  return --*looks > 0;
}

enum { TOGETHER = 3 };

/* Utterances from number `first` on as one chunk of a stream each. If the call fails, returns its
 * status after the same streams have done it once more. `prepare` and `end`: before and after the
 * call that may fail. */
static wf_status stream_twice(wf_decoder *decoder, const struct task *task, int first,
                              void (*prepare)(void *user), void *user, void (*end)(void),
                              wf_result *const *want) {
  wf_stream *streams[TOGETHER];
  wf_scores chunks[TOGETHER];
  wf_result *result;
  for (int s = 0; s < TOGETHER; s++) {
    assert_ok(wf_stream_create(decoder, NULL, &streams[s], &err));
    chunks[s] = task->scores[(first + s) % UTTERANCES];
  }
  prepare(user);
  const wf_status status = wf_streams_advance(decoder, streams, chunks, TOGETHER, NULL, &err);
  end();
  for (int s = 0; s < TOGETHER && status != WF_OK; s++) {
    assert_ok(wf_stream_finish(streams[s], &result, &err));
    assert_int_equal(result->status, status);
    wf_result_free(result);
    assert_ok(wf_stream_reset(streams[s], &err));
  }
  if (status != WF_OK && status != WF_ERR_DEVICE)
    assert_ok(wf_streams_advance(decoder, streams, chunks, TOGETHER, NULL, &err));
  for (int s = 0; s < TOGETHER; s++) {
    if (status != WF_ERR_DEVICE) {
      assert_ok(wf_stream_finish(streams[s], &result, &err));
      test_assert_same_result(result, want[(first + s) % UTTERANCES]);
      wf_result_free(result);
    }
    wf_stream_free(streams[s]);
  }
  return status;
}

static void begin_looks(void *looks) { wf_set_interrupt(look, looks); }
static void end_looks(void) { wf_set_interrupt(NULL, NULL); }

static wf_status stream_cancelled(wf_decoder *decoder, const struct task *task, int first,
                                  int looks, wf_result *const *want) {
  const wf_status status = stream_twice(decoder, task, first, begin_looks, &looks, end_looks, want);
  if (status != WF_OK) assert_int_equal(status, WF_ERR_CANCELLED);
  return status;
}

/* The same for a batch of all utterances. */
static wf_status batch_cancelled(wf_decoder *decoder, const struct task *task, int looks,
                                 wf_result *const *want) {
  wf_result *got[UTTERANCES];
  wf_set_interrupt(look, &looks);
  const wf_status status = test_decode(decoder, task->scores, UTTERANCES, NULL, got, &err);
  wf_set_interrupt(NULL, NULL);
  if (status != WF_OK) assert_int_equal(status, WF_ERR_CANCELLED);
  if (status != WF_OK) assert_ok(test_decode(decoder, task->scores, UTTERANCES, NULL, got, &err));
  for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
  test_free_results(got, UTTERANCES);
  return status;
}

/* One decoder: cancelled calls change no later result, and none of a stream that is open. */
static void test_small_cancelled_calls(void **unused) {
  (void)unused;
  int num_cancelled = 0;
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_result *want[UTTERANCES], *result;
    wf_decoder *decoder;
    wf_stream *open;
    int64_t done = 0;
    make_task(&task, seed);
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    const int longest = longest_of(&task);
    const wf_scores *scores = &task.scores[longest];
    task.options.device = "cuda";
    assert_ok(wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
    assert_ok(wf_stream_create(decoder, NULL, &open, &err));
    bool in_batch = true, in_stream = true;
    for (int looks = 1; in_batch || in_stream; looks += 1 + looks / 2) {
      if (done < scores->num_frames) {
        const wf_scores chunk = test_rows(scores, done++, 1);
        assert_ok(wf_stream_advance(open, &chunk, NULL, &err));
      }
      if (in_batch) in_batch = batch_cancelled(decoder, &task, looks, want) != WF_OK;
      if (in_stream) in_stream = stream_cancelled(decoder, &task, longest, looks, want) != WF_OK;
      num_cancelled += in_batch + in_stream;
    }
    if (done < scores->num_frames) {
      const wf_scores chunk = test_rows(scores, done, scores->num_frames - done);
      assert_ok(wf_stream_advance(open, &chunk, NULL, &err));
    }
    assert_ok(wf_stream_finish(open, &result, &err));
    test_assert_same_result(result, want[longest]);
    wf_result_free(result);
    wf_stream_free(open);
    wf_decoder_free(decoder);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
  print_message("%d calls cancelled\n", num_cancelled);
  assert_true(num_cancelled > 20);
}

#ifdef FAKE_CUDA
static bool stop_at_once(void *user, const char *stage, double fraction) { return false; }

/* A batch that is cancelled leaves the streams of its decoder alone. */
static void test_small_cancelled_batch(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES], *result;
    wf_decoder *decoder;
    wf_stream *stream;
    wf_stream_event event;
    const wf_progress progress = {stop_at_once, NULL};
    make_task(&task, seed);
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    const int longest = longest_of(&task);
    const wf_scores *scores = &task.scores[longest];
    task.options.device = "cuda";
    assert_ok(wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    for (int64_t t = 0; t < scores->num_frames; t++) {
      const wf_scores chunk = test_rows(scores, t, 1);
      assert_ok(wf_stream_advance(stream, &chunk, &event, &err));
      if (t == scores->num_frames / 2)
        assert_int_equal(test_decode(decoder, task.scores, UTTERANCES, &progress, got, &err),
                         WF_ERR_CANCELLED);
    }
    assert_ok(wf_stream_finish(stream, &result, &err));
    test_assert_same_result(result, want[longest]);
    wf_result_free(result);
    wf_stream_free(stream);
    assert_ok(test_decode(decoder, task.scores, UTTERANCES, NULL, got, &err));
    for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
    wf_decoder_free(decoder);
    test_free_results(got, UTTERANCES);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}

/* --- failing calls of CUDA --------------------------------------------------------------- */

static void begin_failing(void *call) {
  fake_gpus.num_calls = 0;
  fake_gpus.failed_to_allocate = false;
  fake_gpus.fail_at = *(const long *)call;
}
static void end_failing(void) { fake_gpus.fail_at = 0; }

/* The first of the utterances together that have the fewest frames, but some. */
static int shortest_together(const struct task *task) {
  int64_t least = INT64_MAX;
  int best = 0;
  for (int u = 0; u + TOGETHER <= UTTERANCES; u++) {
    int64_t sum = 0;
    for (int s = 0; s < TOGETHER; s++) sum += task->scores[u + s].num_frames;
    if (sum >= 4 && sum < least) {
      least = sum;
      best = u;
    }
  }
  return best;
}

/* After memory could not be allocated, the decoder works as before; after another error of CUDA, it
 * says that it cannot be used. */
static void test_small_failing_calls_in_streams(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_result *want[UTTERANCES];
    int num_short = 0, num_broken = 0;
    bool reached = true;
    make_task(&task, seed);
    task.options.num_threads = 1;
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    task.options.device = "cuda";
    for (long n = 1; reached; n += STEP) {
      wf_decoder *decoder;
      assert_ok(
          wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
      const wf_status status = stream_twice(decoder, &task, shortest_together(&task), begin_failing,
                                            &n, end_failing, want);
      reached = fake_gpus.num_calls >= n;
      if (status == WF_ERR_DEVICE) {
        wf_stream *stream;
        assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
        assert_int_equal(wf_stream_advance(stream, &task.scores[0], NULL, &err), WF_ERR_DEVICE);
        assert_non_null(strstr(err.message, "an earlier CUDA error"));
        wf_stream_free(stream);
      }
      num_short += status == WF_ERR_MEMORY;
      num_broken += status == WF_ERR_DEVICE;
      wf_decoder_free(decoder);
    }
    print_message("%d times no memory, %d other errors\n", num_short, num_broken);
    assert_true(num_short > 3 / STEP && num_broken > 20 / STEP);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}

enum { FEW = 3 };

static wf_result *few_want[FEW];

/* The first utterance as a stream of two chunks. */
static wf_status stream_one(const struct task *task, wf_decoder *decoder, wf_error *error) {
  wf_stream *stream = NULL;
  wf_result *result = NULL;
  wf_stream_event event;
  const int64_t num_frames = task->scores[0].num_frames;
  wf_status status = wf_stream_create(decoder, NULL, &stream, error);
  for (int64_t first = 0; first < num_frames && status == WF_OK; first += num_frames - 1) {
    const wf_scores chunk = test_rows(&task->scores[0], first, first == 0 ? num_frames - 1 : 1);
    status = wf_stream_advance(stream, &chunk, &event, error);
  }
  if (status == WF_OK) status = wf_stream_finish(stream, &result, error);
  if (status == WF_OK && result->status != WF_OK) {
    snprintf(error->message, sizeof error->message, "%s", result->message);
    status = result->status;
  }
  if (status == WF_OK) test_assert_same_result(result, few_want[0]);
  wf_result_free(result);
  wf_stream_free(stream);
  return status;
}

/* Returns the error of the call, or else of the first utterance that failed. */
static wf_status decode_few(const void *input, wf_error *error) {
  const struct task *task = input;
  wf_decoder_options options = task->options;
  wf_decoder *decoder;
  wf_result *results[FEW] = {NULL};
  options.device = "cuda";
  wf_status status =
      wf_decoder_create_transducer(task->graph, task->model, &options, &decoder, error);
  if (status == WF_OK) status = test_decode(decoder, task->scores, FEW, NULL, results, error);
  for (int u = 0; u < FEW && status == WF_OK; u++) {
    if (results[u]->status == WF_OK)
      test_assert_same_result(results[u], few_want[u]);
    else
      snprintf(error->message, sizeof error->message, "%s", results[u]->message);
    status = results[u]->status;
  }
  for (int u = 0; u < FEW; u++) wf_result_free(results[u]);
  if (status == WF_OK) status = stream_one(task, decoder, error);
  wf_decoder_free(decoder);
  return status;
}

/* Of searches in threads (in kernels: test_gpu_transducer_search.c). */
static void test_small_every_cuda_call_fails_once(void **unused) {
  (void)unused;
  assert_int_equal(setenv("WARPFST_TRANSDUCER_SEARCH", "host", 1), 0);
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_scores all[FEW];
    make_task(&task, seed);
    task.options.num_threads = 1;
    int found = 0;
    for (int u = 0; u < UTTERANCES && found < FEW; u++)
      if (task.scores[u].num_frames >= 2 && task.scores[u].num_frames < 4)
        all[found++] = task.scores[u];
    assert_int_equal(found, FEW);
    const wf_scores saved[FEW] = {task.scores[0], task.scores[1], task.scores[2]};
    for (int u = 0; u < FEW; u++) task.scores[u] = all[u];
    all[2] = task.scores[2] = on_gpu(&task.scores[2]);
    wf_decoder *decoder;
    task.options.device = "cuda";
    assert_ok(wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
    assert_ok(test_decode(decoder, task.scores, FEW, NULL, few_want, &err));
    wf_decoder_free(decoder);
    fail_each_call(seed == 0 ? "stateless" : "LSTM", decode_few, &task, 40);
    assert_int_equal(cudaFree((void *)(uintptr_t)all[2].data), cudaSuccess);
    for (int u = 0; u < FEW; u++) task.scores[u] = saved[u];
    test_free_results(few_want, FEW);
    free_task(&task);
  }
  assert_int_equal(unsetenv("WARPFST_TRANSDUCER_SEARCH"), 0);
}
#endif

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_cancelled_calls),
#ifdef FAKE_CUDA
      cmocka_unit_test(test_small_cancelled_batch),
      cmocka_unit_test(test_small_failing_calls_in_streams),
      cmocka_unit_test(test_small_every_cuda_call_fails_once),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
