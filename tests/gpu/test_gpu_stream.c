/* test_gpu_stream.c - streams on the GPU are compared with streams on the CPU that get the same
 * chunks, and with whole utterances on the CPU: every bit of results, the words of partial results,
 * and events. Exits with 77 if there is no GPU. Also compiled for the imitated GPU of tests/simt.
 */
#include <cuda_runtime_api.h>

#include "decode_tasks.h"
#include "random_scorers.h"

static wf_error err;

/* Counts streams that did not fit the GPU. They continue on the CPU, so they would test nothing. */
static struct test_heard misfits = {"did not fit", 0};

static wf_decoder *decoder_on(const char *device, const wf_graph *graph,
                              wf_decoder_options options) {
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  return decoder;
}

static struct decode_task stream_task(uint64_t seed) {
  struct decode_task task = test_random_task(seed);
  test_rng rng = {seed * 31};
  if (wf_graph_min_columns(task.graph) > 0 && test_below(&rng, 3) == 0) {
    task.options.blank = (int32_t)test_below(&rng, (uint32_t)wf_graph_min_columns(task.graph));
    task.options.blank_skip_threshold = 0.3f;
    task.options.blank_penalty = (float)test_below(&rng, 3) / 2 - 0.5f;
  }
  task.options.recombine = (int32_t)(test_below(&rng, 3) == 0);
  return task;
}

/* The same stream on both devices. */
struct pair {
  wf_decoder *decoder[2];
  wf_stream *stream[2]; /* CPU, GPU */
};

static struct pair open_pair(const wf_graph *graph, wf_decoder_options options,
                             const wf_stream_options *stream_options) {
  struct pair pair;
  pair.decoder[0] = decoder_on("cpu", graph, options);
  pair.decoder[1] = decoder_on("cuda", graph, options);
  for (int i = 0; i < 2; i++)
    assert_ok(wf_stream_create(pair.decoder[i], stream_options, &pair.stream[i], &err));
  return pair;
}

static void close_pair(struct pair *pair) {
  for (int i = 0; i < 2; i++) {
    wf_stream_free(pair->stream[i]);
    wf_decoder_free(pair->decoder[i]);
  }
}

static void accept_both(const struct pair *pair, const wf_scores *chunk, bool events) {
  wf_stream_event event[2];
  memset(event, 0, sizeof event);
  for (int i = 0; i < 2; i++)
    assert_ok(wf_stream_advance(pair->stream[i], chunk, events ? &event[i] : NULL, &err));
  test_assert_same_event(&event[0], &event[1]);
}

static wf_result *decode_alone(const struct decode_task *task, const wf_scorer *scorer) {
  wf_decoder *decoder = decoder_on("cpu", task->graph, task->options);
  wf_result *result;
  assert_ok(test_decode_scored(decoder, &task->scores, &scorer, 1, NULL, &result, &err));
  wf_decoder_free(decoder);
  return result;
}

static void set_both(const struct pair *pair, const wf_scorer *scorer) {
  for (int i = 0; i < 2; i++) assert_ok(wf_stream_set_scorer(pair->stream[i], scorer, &err));
}

/* Decodes two utterances in one stream, in chunks of 0 to 3 frames, then in chunks longer than one
 * launch takes, with partial results in between. Every second stream has a scorer. */
static void test_chunks(void **state) {
  (void)state;
  uint64_t failed = 0, dead = 0, skipping = 0, scored = 0;
  wf_symbols *words = random_scorer_words();
  const uint64_t seeds = test_seeds(400);
  misfits.times = 0;
  wf_set_log(test_listen, &misfits);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    struct decode_task task = stream_task(seed);
    test_rng rng = {seed};
    wf_scorer *scorer = seed % 2 == 0 ? random_scorer(&rng, words) : NULL;
    wf_result *expected = decode_alone(&task, scorer), *result;
    struct pair pair = open_pair(task.graph, task.options, NULL);
    set_both(&pair, scorer);
    wf_scorer_free(scorer);
    for (int round = 0; round < 2; round++) {
      const uint32_t longest = round == 0 ? 4 : 40;
      for (int64_t fed = 0; fed < task.scores.num_frames;) {
        int64_t count = test_below(&rng, longest);
        if (count > task.scores.num_frames - fed) count = task.scores.num_frames - fed;
        const wf_scores chunk = test_rows(&task.scores, fed, count);
        accept_both(&pair, &chunk, test_below(&rng, 2) == 0);
        fed += count;
        if (test_below(&rng, 3) == 0) test_assert_same_partials(pair.stream);
      }
      for (int i = 0; i < 2; i++) {
        assert_ok(wf_stream_finish(pair.stream[i], &result, &err));
        test_assert_same_result(result, expected);
        failed += result->status != WF_OK;
        dead += (result->flags & WF_RESULT_DIED) != 0 && result->num_decoded > 0;
        scored += result->scorer_cost != 0;
        for (int64_t t = 0; t < result->num_decoded; t++) skipping += result->alignment[t] == 0;
        wf_result_free(result);
        assert_int_equal(wf_stream_finish(pair.stream[i], &result, &err), WF_ERR_STATE);
        assert_ok(wf_stream_reset(pair.stream[i], &err));
      }
    }
    close_pair(&pair);
    wf_result_free(expected);
    test_free_task(&task);
  }
  wf_symbols_free(words);
  wf_set_log(NULL, NULL);
  assert_int_equal(misfits.times, 0);
  if (seeds >= 400) assert_true(failed > 5 && dead > 20 && skipping > 50 && scored > 100);
}

/* The scorer is changed or removed in mid-utterance, with the same effect as on the CPU. */
static void test_scorer_changes(void **state) {
  (void)state;
  uint64_t scored = 0, dead = 0;
  const uint64_t seeds = test_seeds(200);
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    struct decode_task task = stream_task(seed + 2000);
    test_rng rng = {seed};
    wf_scorer *scorers[3] = {random_scorer(&rng, words), random_scorer(&rng, words), NULL};
    wf_result *result[2];
    struct pair pair = open_pair(task.graph, task.options, NULL);
    set_both(&pair, scorers[test_below(&rng, 3)]);
    for (int64_t fed = 0; fed < task.scores.num_frames;) {
      int64_t count = test_below(&rng, 5);
      if (count > task.scores.num_frames - fed) count = task.scores.num_frames - fed;
      const wf_scores chunk = test_rows(&task.scores, fed, count);
      accept_both(&pair, &chunk, test_below(&rng, 2) == 0);
      fed += count;
      if (test_below(&rng, 2) == 0) set_both(&pair, scorers[test_below(&rng, 3)]);
      if (test_below(&rng, 3) == 0) test_assert_same_partials(pair.stream);
    }
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_finish(pair.stream[i], &result[i], &err));
    test_assert_same_result(result[0], result[1]);
    scored += result[0]->scorer_cost != 0;
    dead += (result[0]->flags & WF_RESULT_DIED) != 0;
    test_free_results(result, 2);
    close_pair(&pair);
    for (int i = 0; i < 3; i++) wf_scorer_free(scorers[i]);
    test_free_task(&task);
  }
  wf_symbols_free(words);
  if (seeds >= 200) assert_true(scored > 50 && dead > 5);
}

/* Finishes the streams, compares their results with the expected ones, and frees streams and
 * scores.
 */
static void finish_all(wf_stream **streams, wf_result **expected, float **data, size_t count) {
  for (size_t i = 0; i < count; i++) {
    wf_result *result;
    assert_ok(wf_stream_finish(streams[i], &result, &err));
    test_assert_same_result(result, expected[i]);
    wf_result_free(result);
    wf_stream_free(streams[i]);
    free(data[i]);
  }
}

/* Many streams at once, with different amounts of frames in each call, and with batches of whole
 * utterances in between. Some streams are reset, or closed and reopened, in mid-utterance. */
static void test_many_streams_at_once(void **state) {
  (void)state;
  enum { MOST = 40 };
  static const char *const devices[] = {"cuda", "cuda:0,0"};
  const size_t count = test_seeds(400) < 400 ? 14 : MOST;
  for (uint64_t seed = 0; seed < 2; seed++) {
    struct decode_task task = stream_task(63 + seed);
    test_rng rng = {9 + seed};
    wf_scores batch[MOST], chunks[MOST];
    float *data[MOST];
    wf_result *expected[MOST], *result;
    wf_stream *streams[MOST], *ready[MOST];
    int64_t fed[MOST] = {0};
    size_t words_compared = 0;
    wf_stream_event events[MOST];
    test_random_batch(&task, batch, data, count, 5, test_seeds(400) < 400 ? 25 : 120);
    test_decode_on("cpu", task.graph, task.options, batch, count, expected);
    wf_decoder *decoder = decoder_on(devices[seed], task.graph, task.options);
    for (size_t i = 0; i < count; i++)
      assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    for (bool any = true; any;) {
      size_t num_ready = 0;
      any = false;
      for (size_t i = 0; i < count; i++) {
        int64_t left = batch[i].num_frames - fed[i], more = test_below(&rng, 12);
        if (left > 0) any = true;
        if (left == 0 || test_below(&rng, 3) == 0) continue;
        if (test_below(&rng, 30) == 0) {
          if (test_below(&rng, 2) == 0) {
            assert_ok(wf_stream_reset(streams[i], &err));
          } else {
            wf_stream_free(streams[i]);
            assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
          }
          left = batch[i].num_frames;
          fed[i] = 0;
        }
        if (more > left) more = left;
        ready[num_ready] = streams[i];
        chunks[num_ready++] = test_rows(&batch[i], fed[i], more);
        fed[i] += more;
      }
      assert_ok(wf_streams_advance(decoder, ready, chunks, num_ready, events, &err));
      if (test_below(&rng, 2) == 0) test_assert_partials(decoder, streams, count, &words_compared);
      if (test_below(&rng, 4) == 0) {
        assert_ok(test_decode(decoder, &batch[7], 1, NULL, &result, &err));
        test_assert_same_result(result, expected[7]);
        wf_result_free(result);
      }
    }
    assert_true(words_compared > 0);
    finish_all(streams, expected, data, count);
    wf_decoder_free(decoder);
    test_free_results(expected, count);
    test_free_task(&task);
  }
}

/* The graph and the beams are large enough to fill the token tables, and lanes have every number of
 * blocks. A single chunk also gets a lane of several blocks. */
static void test_large_tasks(void **state) {
  (void)state;
  enum { MOST = 9 };
  const bool few = test_seeds(400) < 400;
  struct decode_task task = test_large_task();
  for (size_t k = 0; k < 15; k += few ? 7 : 1) {
    const size_t count = k % 3 == 0 ? 1 : k % 3 == 1 ? 3 : few ? 4 : MOST;
    wf_scores batch[MOST], chunks[MOST];
    float *data[MOST];
    wf_result *expected[MOST];
    wf_stream *streams[MOST];
    test_set_large_limits(&task, k);
    test_random_batch(&task, batch, data, count, k, few ? 5 : 40);
    test_decode_on("cpu", task.graph, task.options, batch, count, expected);
    wf_decoder *decoder = decoder_on("cuda", task.graph, task.options);
    for (size_t i = 0; i < count; i++)
      assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    for (int64_t fed = 0; fed < 40; fed += 3) {
      for (size_t i = 0; i < count; i++) {
        const int64_t left = batch[i].num_frames - fed;
        chunks[i] = test_rows(&batch[i], fed, left > 3 ? 3 : left > 0 ? left : 0);
      }
      assert_ok(wf_streams_advance(decoder, streams, chunks, count, NULL, &err));
    }
    finish_all(streams, expected, data, count);
    wf_decoder_free(decoder);
    test_free_results(expected, count);
  }
  wf_graph_free(task.graph);
}

/* The memory that a stream keeps between chunks grows by less than 30 bytes a frame. */
static void test_memory_of_a_long_stream(void **state) {
  (void)state;
  const int64_t num_frames = test_seeds(400) < 400 ? 300 : 6000;
  enum { CHUNK = 40 };
  test_rng rng = {3};
  struct decode_task task = {0};
  test_fst_shape shape = {.num_states = 300,
                          .num_arcs = 1500,
                          .num_ilabels = 8,
                          .num_olabels = 50,
                          .epsilon_share = 0.1f,
                          .final_share = 0.5f,
                          .max_weight = 2};
  wf_fst *fst = test_random_fst(&rng, &shape);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  task.options.beam = 6;
  task.scores = (wf_scores){.num_frames = num_frames, .num_columns = 8, .stride = 8};
  task.data = malloc((size_t)num_frames * 8 * sizeof *task.data);
  for (int64_t i = 0; i < num_frames * 8; i++) task.data[i] = -test_unit(&rng) * 8;
  task.scores.data = task.data;
  wf_result *expected = test_decode_alone(&task), *result;
  struct pair pair = open_pair(task.graph, task.options, NULL);
  for (int64_t fed = 0; fed < num_frames; fed += CHUNK) {
    const wf_scores chunk =
        test_rows(&task.scores, fed, num_frames - fed < CHUNK ? num_frames - fed : CHUNK);
    accept_both(&pair, &chunk, fed % 3 == 0);
    if (fed % 1000 == 0) test_assert_same_partials(pair.stream);
    assert_true(wf_stream_bytes(pair.stream[1]) < 1500000 + (uint64_t)fed * 30);
  }
  for (int i = 0; i < 2; i++) {
    assert_ok(wf_stream_finish(pair.stream[i], &result, &err));
    test_assert_same_result(result, expected);
    wf_result_free(result);
  }
  close_pair(&pair);
  wf_result_free(expected);
  test_free_task(&task);
}

static void test_bad_chunks(void **state) {
  (void)state;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1 0;1 1 2 0 0;1 0");
  wf_graph *graph;
  wf_decoder_options options;
  wf_stream *streams[3];
  wf_result *result;
  wf_partial partial;
  wf_decoder_options_init(&options);
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_decoder *decoder = decoder_on("cuda", graph, options),
             *cpu = decoder_on("cpu", graph, options);
  for (int i = 0; i < 3; i++) assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
  float fine[6] = {-1, -2, -3, -1, -1, -1}, nan[6] = {-1, -2, -1, -1, -1, NAN};
  wf_scores first[3] = {{fine, 1, 2, 2}, {nan, 2, 2, 2}, {fine, 2, 1, 1}},
            second[3] = {{fine + 2, 2, 2, 2}, {nan + 4, 1, 2, 2}, {fine, 1, 2, 2}};
  assert_ok(wf_streams_advance(decoder, streams, first, 3, NULL, &err));
  assert_ok(wf_stream_partial(streams[1], &partial, &err));
  assert_ok(wf_streams_advance(decoder, streams, second, 3, NULL, &err));
  assert_int_equal(wf_stream_partial(streams[1], &partial, &err), WF_ERR_ARGUMENT);
  wf_scores whole = {fine, 3, 2, 2}, bad = {nan, 3, 2, 2};
  wf_result *expected[2];
  assert_ok(test_decode(cpu, (wf_scores[]){whole, bad}, 2, NULL, expected, &err));
  for (int i = 0; i < 3; i++) {
    assert_ok(wf_stream_finish(streams[i], &result, &err));
    if (i < 2) test_assert_same_result(result, expected[i]);
    if (i < 2)
      assert_string_equal(result->message, expected[i]->message);
    else
      assert_int_equal(result->status, WF_ERR_ARGUMENT);
    wf_result_free(result);
    assert_ok(wf_stream_reset(streams[i], &err));
  }
  test_free_results(expected, 2);
  /* A stream without frames. */
  assert_ok(test_decode(cpu, &(wf_scores){0}, 1, NULL, expected, &err));
  assert_ok(wf_stream_finish(streams[0], &result, &err));
  test_assert_same_result(result, expected[0]);
  wf_result_free(result);
  wf_result_free(expected[0]);
  for (int i = 0; i < 3; i++) wf_stream_free(streams[i]);
  wf_decoder_free(decoder);
  wf_decoder_free(cpu);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

/* Scores in GPU memory. A kernel checks all scores of a chunk before any of its frames is searched.
 */
static void test_device_scores(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(40); seed++) {
    struct decode_task task = stream_task(seed + 500);
    test_rng rng = {seed};
    const int64_t size = task.scores.num_frames * task.scores.stride;
    float *bad = seed % 3 == 0 && size > 0 ? &task.data[test_below(&rng, (uint32_t)size)] : NULL;
    if (bad != NULL) *bad = NAN;
    wf_result *expected = test_decode_alone(&task), *result;
    wf_decoder *decoder = decoder_on("cuda", task.graph, task.options);
    wf_stream *stream;
    void *copy;
    assert_int_equal(cudaMalloc(&copy, (size_t)size * 4 + 4), cudaSuccess);
    assert_int_equal(cudaMemcpy(copy, task.data, (size_t)size * 4, cudaMemcpyHostToDevice),
                     cudaSuccess);
    wf_scores there = task.scores;
    there.data = copy;
    there.on_device = true;
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    for (int64_t fed = 0; fed < there.num_frames;) {
      int64_t count = 1 + test_below(&rng, 25);
      if (count > there.num_frames - fed) count = there.num_frames - fed;
      const wf_scores chunk = test_rows(&there, fed, count);
      assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
      fed += count;
    }
    assert_ok(wf_stream_finish(stream, &result, &err));
    test_assert_same_result(result, expected);
    if (expected->status == WF_ERR_ARGUMENT)
      assert_string_equal(result->message, expected->message);
    wf_result_free(result);
    wf_result_free(expected);
    wf_stream_free(stream);
    wf_decoder_free(decoder);
    cudaFree(copy);
    test_free_task(&task);
  }
}

#ifdef FAKE_CUDA
/* Decodes a short utterance in each of two streams; the scorer of one changes. Stops at the first
 * failure. */
static wf_status live_once(const struct decode_task *task, wf_scorer *const *scorers,
                           wf_result **results) {
  wf_decoder *decoder;
  wf_stream *streams[2] = {NULL, NULL};
  wf_decoder_options options = task->options;
  options.device = "cuda";
  wf_status status = wf_decoder_create(task->graph, &options, &decoder, &err);
  for (int i = 0; i < 2 && status == WF_OK; i++)
    status = wf_stream_create(decoder, NULL, &streams[i], &err);
  if (status == WF_OK) status = wf_stream_set_scorer(streams[0], scorers[0], &err);
  for (int64_t fed = 0; fed < 6 && status == WF_OK; fed += 3) {
    const wf_scores chunks[2] = {test_rows(&task->scores, fed, 3),
                                 test_rows(&task->scores, fed, 3)};
    status = wf_streams_advance(decoder, streams, chunks, 2, NULL, &err);
    if (status == WF_OK && fed == 0) status = wf_stream_set_scorer(streams[0], scorers[1], &err);
  }
  for (int i = 0; i < 2 && status == WF_OK; i++) {
    status = wf_stream_finish(streams[i], &results[i], &err);
    if (status == WF_OK &&
        results[i]->status != WF_OK) { /* the failure concerns only this stream */
      status = results[i]->status;
      snprintf(err.message, sizeof err.message, "%s", results[i]->message);
    }
    if (status == WF_OK || results[i] == NULL) continue;
    wf_result_free(results[i]);
    results[i] = NULL;
  }
  for (int i = 0; i < 2; i++) wf_stream_free(streams[i]);
  wf_decoder_free(decoder);
  return status;
}

/* Each CUDA call fails in turn. This must give an error or the right results, and leak nothing. */
static void test_every_cuda_call_fails_once(void **state) {
  (void)state;
  test_rng rng = {6};
  wf_symbols *words = random_scorer_words();
  struct decode_task task = stream_task(7);
  for (uint64_t seed = 8; task.scores.num_frames < 6 || wf_graph_min_columns(task.graph) == 0;
       seed++) {
    test_free_task(&task);
    task = stream_task(seed);
  }
  task.options.max_active = task.options.max_tokens =
      400; /* little memory, since every attempt allocates it */
  wf_scorer *scorers[2] = {random_scorer(&rng, words), random_phrase_boost(&rng)};
  wf_result *expected[2], *results[2] = {NULL, NULL};
  assert_ok(live_once(&task, scorers, expected));
  const long objects = fake_gpus.num_objects;
  int errors = 0;
  bool reached = true;
  const long step = test_seeds(8) > 2 ? 1 : 5;
  for (long n = 1; reached; n += step) {
    fake_gpus.num_calls = 0;
    fake_gpus.fail_at = n;
    const wf_status status = live_once(&task, scorers, results);
    reached = fake_gpus.num_calls >= n;
    fake_gpus.fail_at = 0;
    if (status == WF_OK) {
      for (int i = 0; i < 2; i++) test_assert_same_result(results[i], expected[i]);
    } else {
      if (status != WF_ERR_DEVICE && status != WF_ERR_MEMORY)
        fail_msg("call %ld: status %d, %s", n, status, err.message);
      errors++;
    }
    for (int i = 0; i < 2; i++) {
      wf_result_free(results[i]);
      results[i] = NULL;
    }
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    if (fake_gpus.num_objects != objects)
      fail_msg("call %ld: %ld objects more than before (%s)", n, fake_gpus.num_objects - objects,
               err.message);
  }
  test_free_results(expected, 2);
  for (int i = 0; i < 2; i++) wf_scorer_free(scorers[i]);
  wf_symbols_free(words);
  test_free_task(&task);
  print_message("%d planted failures were reported\n", errors);
  assert_true(errors > 30 / step);
}

/* Streams with a long list, each in a chain of its own. It is sent for the first one only, and not
 * again when the streams are without it for a while. */
static void test_long_lists_are_sent_once(void **state) {
  (void)state;
  enum { COUNT = 4 };
  const size_t bytes = 300000;
  struct decode_task task = stream_task(3);
  test_rng rng = {4};
  wf_scorer *list = long_phrase_boost(), *chains[COUNT];
  wf_stream *streams[COUNT];
  wf_decoder *decoder = decoder_on("cuda:0", task.graph, task.options);
  for (int i = 0; i < COUNT; i++) {
    wf_scorer *own = random_word_boost(&rng);
    assert_ok(wf_scorer_chain(own, list, &chains[i], &err));
    wf_scorer_free(own);
    assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
  }
  wf_scorer_free(list);
  for (int round = 0; round < 2; round++) {
    const size_t before = fake_gpus.sent_bytes;
    for (int i = 0; i < COUNT; i++) assert_ok(wf_stream_set_scorer(streams[i], chains[i], &err));
    const size_t sent = fake_gpus.sent_bytes - before;
    assert_true(round == 0 ? sent > bytes && sent < 2 * bytes : sent < bytes);
    for (int i = 0; i < COUNT; i++) {
      struct decode_task alone = {
          .graph = task.graph, .options = task.options, .scores = task.scores};
      wf_result *expected = decode_alone(&alone, chains[i]), *result;
      assert_ok(wf_stream_advance(streams[i], &task.scores, NULL, &err));
      assert_ok(wf_stream_finish(streams[i], &result, &err));
      test_assert_same_result(result, expected);
      wf_result_free(result);
      wf_result_free(expected);
      assert_ok(wf_stream_reset(streams[i], &err));
      assert_ok(wf_stream_set_scorer(streams[i], NULL, &err));
    }
  }
  for (int i = 0; i < COUNT; i++) {
    wf_stream_free(streams[i]);
    wf_scorer_free(chains[i]);
  }
  wf_decoder_free(decoder);
  test_free_task(&task);
}
#else
static void test_every_cuda_call_fails_once(void **state) { (void)state; }
static void test_long_lists_are_sent_once(void **state) { (void)state; }
#endif

/* A part of each test, for compute-sanitizer. */
static void test_small(void **state) {
  test_bad_chunks(state);
  test_chunks(state);
  test_scorer_changes(state);
  test_device_scores(state);
}

/* Two streams, one with a scorer, in chunks of two frames. For racecheck, which scans all of a
 * block's shared memory at every barrier. */
static void test_races(void **state) {
  (void)state;
  wf_symbols *words = random_scorer_words();
  test_rng rng = {1};
  for (uint64_t seed = 1; seed <= test_seeds(8); seed++) {
    struct decode_task task = stream_task(seed);
    wf_scorer *scorer = random_scorer(&rng, words);
    wf_scores batch[2], chunks[2];
    float *data[2];
    wf_stream *streams[2];
    wf_result *result;
    wf_decoder *decoder = decoder_on("cuda", task.graph, task.options);
    test_random_batch(&task, batch, data, 2, seed, 6);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    assert_ok(wf_stream_set_scorer(streams[1], scorer, &err));
    for (int64_t fed = 0; fed < 6; fed += 2) {
      for (int i = 0; i < 2; i++) {
        const int64_t left = batch[i].num_frames - fed;
        chunks[i] = test_rows(&batch[i], fed, left > 2 ? 2 : left > 0 ? left : 0);
      }
      assert_ok(wf_streams_advance(decoder, streams, chunks, 2, NULL, &err));
    }
    for (int i = 0; i < 2; i++) {
      struct decode_task alone = {.graph = task.graph, .options = task.options, .scores = batch[i]};
      wf_result *expected = decode_alone(&alone, i == 1 ? scorer : NULL);
      assert_ok(wf_stream_finish(streams[i], &result, &err));
      test_assert_same_result(result, expected);
      wf_result_free(result);
      wf_result_free(expected);
      wf_stream_free(streams[i]);
      free(data[i]);
    }
    wf_decoder_free(decoder);
    wf_scorer_free(scorer);
    test_free_task(&task);
  }
  wf_symbols_free(words);
}

static void test_kernels(void **state) {
  test_small(state);
  test_every_cuda_call_fails_once(state);
  test_long_lists_are_sent_once(state);
  test_many_streams_at_once(state);
  test_memory_of_a_long_stream(state);
  test_large_tasks(state);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest races[] = {cmocka_unit_test(test_races)};
  if (argc > 1 && strcmp(argv[1], "test_races") == 0)
    return cmocka_run_group_tests(races, NULL, NULL);
  const struct CMUnitTest small[] = {cmocka_unit_test(test_small)},
                          kernels[] = {cmocka_unit_test(test_kernels)};
  if (argc > 1 && strcmp(argv[1], "test_small") == 0)
    return cmocka_run_group_tests(small, NULL, NULL);
  if (argc > 1 && strcmp(argv[1], "test_kernels") == 0)
    return cmocka_run_group_tests(kernels, NULL, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bad_chunks),           cmocka_unit_test(test_chunks),
      cmocka_unit_test(test_scorer_changes),       cmocka_unit_test(test_device_scores),
      cmocka_unit_test(test_many_streams_at_once), cmocka_unit_test(test_memory_of_a_long_stream),
      cmocka_unit_test(test_large_tasks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
