/* test_gpu_words.c - words added at run time: the GPU must give every bit of the CPU's results, in
 * batches, lattices and streams. Exits with 77 if there is no GPU. Also compiled for the imitated
 * GPU of tests/simt. */
#include "random_scorers.h"
#include "random_words.h"

enum { BATCH = 6, GRAPHS = 3 };

static wf_error err;

/* Counts utterances that did not fit the GPU. The CPU decodes these, so they would test nothing. */
static struct test_heard misfits = {"did not fit", 0};

static wf_decoder *decoder_on(const char *device, const wf_graph *graph,
                              wf_decoder_options options) {
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  return decoder;
}

/* Makes three choices for an utterance: the graph with the task's words, with other words or a
 * spelling model, and without added words. */
static void make_graphs(const struct added_task *task, test_rng *rng, const wf_graph **graphs) {
  struct phrases others;
  random_phrases(rng, task->num_tokens, &others);
  graphs[0] = wf_graph_ref(task->with);
  const char *name = test_below(rng, 2) == 0 ? "<c>" : "<d>";
  graphs[1] = test_below(rng, 3) == 0
                  ? with_spelling(task->task.graph, name, rng, task->num_tokens)
                  : with_phrases(task->task.graph, name, &others); /* NULL: no path through it */
  graphs[2] = NULL;
}

static void free_graphs(const wf_graph **graphs) {
  for (int i = 0; i < GRAPHS; i++) wf_graph_free((wf_graph *)(uintptr_t)graphs[i]);
}

static int64_t longest = 20; /* frames */

/* One batch mixes utterances with different added words, with the same, and without; some have a
 * scorer. Then the same decoder decodes a batch with other words. */
static void test_batches_with_added_words(void **state) {
  (void)state;
  uint64_t tried = 0, lattices = 0, added = 0, scored = 0, flags = 0;
  const uint64_t seeds = test_seeds(300);
  wf_symbols *words = random_scorer_words();
  misfits.times = 0;
  wf_set_log(test_listen, &misfits);
  for (uint64_t seed = 1; tried < seeds; seed++) {
    struct added_task task;
    test_rng rng = {seed};
    if (!is_fitting(seed, &task)) {
      free_added(&task);
      continue;
    }
    const wf_graph *graphs[GRAPHS], *chosen[BATCH];
    wf_scorer *scorer = seed % 3 == 0 ? random_scorer(&rng, words) : NULL;
    const wf_scorer *scorers[BATCH];
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_result *cpu[BATCH], *gpu[BATCH];
    make_graphs(&task, &rng, graphs);
    test_random_batch(&task.task, batch, data, BATCH, seed, longest);
    batch[0] = task.task.scores;
    if (batch[0].num_frames > longest) batch[0].num_frames = longest;
    wf_decoder *decoders[2] = {
        decoder_on("cpu", task.task.graph, task.task.options),
        decoder_on(seed % 2 == 0 ? "cuda" : "cuda:0,0", task.task.graph, task.task.options)};
    for (int round = 0; round < 2; round++) {
      const size_t count = round == 0 ? BATCH : 1 + test_below(&rng, BATCH);
      for (size_t i = 0; i < count; i++) {
        chosen[i] = i == 0 ? task.with : graphs[test_below(&rng, GRAPHS)];
        scorers[i] = test_below(&rng, 3) > 0 ? scorer : NULL;
      }
      assert_ok(test_decode_each(decoders[0], batch, scorers, chosen, count, NULL, cpu, &err));
      assert_ok(test_decode_each(decoders[1], batch, scorers, chosen, count, NULL, gpu, &err));
      test_assert_same_batch(seed, cpu, gpu, count);
      for (size_t i = 0; i < count; i++) {
        lattices += chosen[i] != NULL && cpu[i]->lattice != NULL;
        scored += chosen[i] != NULL && cpu[i]->scorer_cost != 0;
        flags |= chosen[i] != NULL ? cpu[i]->flags : 0;
        for (int64_t t = 0; t < cpu[i]->num_decoded && cpu[i]->status == WF_OK && chosen[i] != NULL;
             t++)
          added += cpu[i]->alignment[t] > 1;
      }
      test_free_results(cpu, count);
      test_free_results(gpu, count);
    }
    for (int i = 0; i < 2; i++) wf_decoder_free(decoders[i]);
    for (size_t i = 0; i < BATCH; i++) free(data[i]);
    wf_scorer_free(scorer);
    free_graphs(graphs);
    free_added(&task);
    tried++;
  }
  wf_set_log(NULL, NULL);
  wf_symbols_free(words);
  assert_int_equal(misfits.times, 0);
  if (seeds < 300) return;
  assert_true(lattices > 60 && scored > 60 && added > 300);
  assert_int_equal(flags,
                   WF_RESULT_NOT_FINAL | WF_RESULT_NARROWED | WF_RESULT_DIED | WF_RESULT_OVERFLOW);
}

/* The decoder is created from a graph with added words. */
static void test_decoder_of_a_graph_with_added_words(void **state) {
  (void)state;
  uint64_t tried = 0;
  for (uint64_t seed = 3000; tried < test_seeds(40); seed++) {
    struct added_task task;
    if (is_fitting(seed, &task)) {
      wf_result *results[2];
      test_decode_on("cpu", task.with, task.task.options, &task.task.scores, 1, &results[0]);
      test_decode_on("cuda", task.with, task.task.options, &task.task.scores, 1, &results[1]);
      test_assert_same_batch(seed, &results[0], &results[1], 1);
      test_free_results(results, 2);
      tried++;
    }
    free_added(&task);
  }
}

/* Decodes an utterance in chunks on both streams. Scorers change in mid-utterance. */
static void decode_utterance(wf_stream *const *streams, const wf_scores *scores,
                             wf_scorer *const *scorers, test_rng *rng, wf_result **results) {
  for (int64_t fed = 0; fed < scores->num_frames;) {
    int64_t count = test_below(rng, 6);
    if (count > scores->num_frames - fed) count = scores->num_frames - fed;
    const wf_scores chunk = test_rows(scores, fed, count);
    const wf_scorer *scorer = scorers[test_below(rng, 3)];
    const bool changes = test_below(rng, 4) == 0;
    for (int i = 0; i < 2; i++) {
      assert_ok(wf_stream_advance(streams[i], &chunk, NULL, &err));
      if (changes) assert_ok(wf_stream_set_scorer(streams[i], scorer, &err));
    }
    fed += count;
    if (test_below(rng, 3) == 0) test_assert_same_partials(streams);
  }
  for (int i = 0; i < 2; i++) {
    assert_ok(wf_stream_finish(streams[i], &results[i], &err));
    results[i]->num_tokens = results[i]->num_arcs = results[i]->num_expanded =
        results[i]->num_narrowed = 0; /* not compared: scorers change in mid-utterance */
  }
}

/* A stream has words in its first utterance, other words in the second, and none in the third. */
static void test_streams_with_added_words(void **state) {
  (void)state;
  uint64_t tried = 0, said = 0, scored = 0;
  const uint64_t seeds = test_seeds(150);
  wf_symbols *words = random_scorer_words();
  misfits.times = 0;
  wf_set_log(test_listen, &misfits);
  for (uint64_t seed = 5000; tried < seeds; seed++) {
    struct added_task task;
    test_rng rng = {seed};
    if (!is_fitting(seed, &task)) {
      free_added(&task);
      continue;
    }
    const wf_graph *graphs[GRAPHS];
    wf_scorer *scorers[3] = {random_scorer(&rng, words), random_phrase_boost(&rng), NULL};
    wf_decoder *decoders[2];
    wf_stream *streams[2];
    make_graphs(&task, &rng, graphs);
    task.task.options.lattice_beam = 0;
    for (int i = 0; i < 2; i++) {
      decoders[i] = decoder_on(i == 0 ? "cpu" : "cuda", task.task.graph, task.task.options);
      assert_ok(wf_stream_create(decoders[i], NULL, &streams[i], &err));
    }
    for (int round = 0; round < GRAPHS; round++) {
      wf_result *results[2];
      for (int i = 0; i < 2; i++) {
        assert_ok(wf_stream_set_graph(streams[i], graphs[round], &err));
        assert_ok(wf_stream_set_scorer(streams[i], seed % 2 == 0 ? scorers[round] : NULL, &err));
      }
      const wf_scores said_here =
          test_rows(&task.task.scores, 0,
                    task.task.scores.num_frames < longest ? task.task.scores.num_frames : longest);
      decode_utterance(streams, &said_here, scorers, &rng, results);
      test_assert_same_result(results[0], results[1]);
      said += round < 2 && results[0]->num_words > 0;
      scored += round < 2 && results[0]->scorer_cost != 0;
      test_free_results(results, 2);
      for (int i = 0; i < 2; i++) assert_ok(wf_stream_reset(streams[i], &err));
    }
    for (int i = 0; i < 2; i++) {
      wf_stream_free(streams[i]);
      wf_decoder_free(decoders[i]);
    }
    for (int i = 0; i < 3; i++) wf_scorer_free(scorers[i]);
    free_graphs(graphs);
    free_added(&task);
    tried++;
  }
  wf_set_log(NULL, NULL);
  wf_symbols_free(words);
  assert_int_equal(misfits.times, 0);
  if (seeds >= 150) assert_true(said > 30 && scored > 18);
}

/* A part of each test, for compute-sanitizer. */
static void test_small(void **state) {
  test_batches_with_added_words(state);
  test_decoder_of_a_graph_with_added_words(state);
  test_streams_with_added_words(state);
}

/* Runs every kernel on a few frames, for compute-sanitizer's racecheck. */
static void test_races(void **state) {
  longest = 2;
  test_batches_with_added_words(state);
  test_streams_with_added_words(state);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest races[] = {cmocka_unit_test(test_races)};
  if (argc > 1 && strcmp(argv[1], "test_races") == 0)
    return cmocka_run_group_tests(races, NULL, NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_batches_with_added_words),
                                     cmocka_unit_test(test_decoder_of_a_graph_with_added_words),
                                     cmocka_unit_test(test_streams_with_added_words)},
                          small[] = {cmocka_unit_test(test_small)};
  return argc > 1 ? cmocka_run_group_tests(small, NULL, NULL)
                  : cmocka_run_group_tests(tests, NULL, NULL); /* test_small, test_kernels */
}
