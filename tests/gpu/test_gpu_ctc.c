/* test_gpu_ctc.c - CTC graphs that are stored as their token graph, on the GPU: every bit of every
 * result is that of the CPU, in batches, with lattices, with scorers, and in streams. Exits with 77
 * if there is no GPU. Also compiled for the imitated GPU of tests/simt. */
#include "decode_tasks.h"
#include "random_scorers.h"

static wf_error err;

enum { BATCH = 9 };

/* Counts utterances and streams that went to the CPU, and so would test nothing. Those of wide
 * states may: a frame can have more candidates with words than a block has room for. */
static struct test_heard misfits = {"did not fit", 0};

static void compare_batch(uint64_t seed, const struct decode_task *task,
                          const wf_decoder_options *options, const wf_scores *batch,
                          const wf_scorer *const *scorers, size_t count) {
  wf_result *results[2][BATCH];
  for (int gpu = 0; gpu < 2; gpu++) {
    wf_decoder *decoder;
    wf_decoder_options o = *options;
    o.device = gpu ? "cuda" : "cpu";
    assert_ok(wf_decoder_create(task->graph, &o, &decoder, &err));
    assert_ok(test_decode_scored(decoder, batch, scorers, count, NULL, results[gpu], &err));
    wf_decoder_free(decoder);
  }
  test_assert_same_batch(seed, results[0], results[1], count);
  test_free_results(results[0], count);
  test_free_results(results[1], count);
}

/* Some utterances have scores that hardly differ, so that all labels survive. */
static void make_batch(struct decode_task *task, wf_scores *batch, float **data, uint64_t seed,
                       size_t count) {
  test_random_batch(task, batch, data, count, seed, 14);
  for (size_t i = 0; i < count; i++) {
    test_rng rng = {seed * 100 + i};
    const int64_t size = batch[i].num_frames * batch[i].stride;
    const uint32_t kind = test_below(&rng, 4);
    for (int64_t k = 0; k < size && kind < 3; k++) {
      if (kind == 0) data[i][k] = -floorf(-data[i][k] * 4) / 4;
      if (kind == 1 && test_below(&rng, 12) > 0) data[i][k] -= 9;
      if (kind == 2) data[i][k] = -1;
    }
  }
  batch[0] = task->scores;
}

static void random_tasks(uint64_t first, uint64_t last) {
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = first; seed <= last; seed++) {
    struct decode_task task = test_ctc_task(seed);
    test_rng rng = {seed};
    wf_scores batch[BATCH];
    float *data[BATCH];
    const wf_scorer *scorers[BATCH];
    const size_t count = seed % 4 == 0 ? 1 : BATCH;
    wf_decoder_options options = task.options;
    make_batch(&task, batch, data, seed, BATCH);
    compare_batch(seed, &task, &options, batch, NULL, count);
    options.lattice_beam = (float)(1 + seed % 5);
    options.lattice_prune_interval = 1 + (int32_t)(seed % 7);
    compare_batch(seed, &task, &options, batch, NULL, count);
    for (size_t i = 0; i < BATCH; i++) scorers[i] = i % 4 == 3 ? NULL : random_scorer(&rng, words);
    compare_batch(seed, &task, &options, batch, scorers, count);
    for (size_t i = 0; i < BATCH; i++) {
      wf_scorer_free((wf_scorer *)(uintptr_t)scorers[i]);
      free(data[i]);
    }
    if (seed % 5 == 0) misfits.times = 0;
    test_free_task(&task);
  }
  wf_symbols_free(words);
}

static void feed(wf_stream *const *streams, const wf_scores *scores, test_rng *rng) {
  for (int64_t fed = 0; fed < scores->num_frames;) {
    int64_t count = 1 + test_below(rng, 6);
    if (count > scores->num_frames - fed) count = scores->num_frames - fed;
    const wf_scores chunk = test_rows(scores, fed, count);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_advance(streams[i], &chunk, NULL, &err));
    fed += count;
    if (test_below(rng, 3) == 0) test_assert_same_partials(streams);
  }
}

static void random_streams(uint64_t first, uint64_t last) {
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = first; seed <= last; seed++) {
    struct decode_task task = test_ctc_task(seed);
    test_rng rng = {seed};
    wf_scorer *scorer = seed % 2 == 0 ? random_scorer(&rng, words) : NULL;
    wf_decoder *decoders[2];
    wf_stream *streams[2];
    wf_result *results[2];
    task.options.lattice_beam = seed % 4 < 2 ? 4 : 0;
    for (int i = 0; i < 2; i++) {
      wf_decoder_options options = task.options;
      options.device = i == 0 ? "cpu" : "cuda";
      assert_ok(wf_decoder_create(task.graph, &options, &decoders[i], &err));
      assert_ok(wf_stream_create(decoders[i], NULL, &streams[i], &err));
      assert_ok(wf_stream_set_scorer(streams[i], scorer, &err));
    }
    feed(streams, &task.scores, &rng);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_finish(streams[i], &results[i], &err));
    test_assert_same_batch(seed, &results[0], &results[1], 1);
    test_free_results(results, 2);
    for (int i = 0; i < 2; i++) {
      wf_stream_free(streams[i]);
      wf_decoder_free(decoders[i]);
    }
    wf_scorer_free(scorer);
    if (seed % 5 == 0) misfits.times = 0;
    test_free_task(&task);
  }
  wf_symbols_free(words);
}

static void run_on_gpu(void (*run)(uint64_t, uint64_t), uint64_t first, uint64_t last) {
  misfits.times = 0;
  wf_set_log(test_listen, &misfits);
  run(first, last);
  wf_set_log(NULL, NULL);
  assert_int_equal(misfits.times, 0);
}

static void test_batches(void **state) {
  (void)state;
  run_on_gpu(random_tasks, 1, test_seeds(120));
}
static void test_streams(void **state) {
  (void)state;
  run_on_gpu(random_streams, 1, test_seeds(120));
}

/* For sanitizers that take long: a plain and a wide graph. */
static void test_small(void **state) {
  (void)state;
  run_on_gpu(random_tasks, 1, 5);
  run_on_gpu(random_streams, 1, 5);
}

/* For racecheck, which takes a minute for each graph: a wide one. */
static void test_races(void **state) {
  (void)state;
  run_on_gpu(random_tasks, 5, 5);
  run_on_gpu(random_streams, 5, 5);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest small[] = {cmocka_unit_test(test_small)},
                          races[] = {cmocka_unit_test(test_races)},
                          tests[] = {cmocka_unit_test(test_batches),
                                     cmocka_unit_test(test_streams)};
  if (argc > 1 && strcmp(argv[1], "test_races") == 0)
    return cmocka_run_group_tests(races, NULL, NULL);
  if (argc > 1 && strcmp(argv[1], "test_small") == 0)
    return cmocka_run_group_tests(small, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
