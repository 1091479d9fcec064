/* test_gpu_stream_lattice.c - lattices of streams on the GPU must equal those of streams on the
 * CPU, byte for byte: partial lattices, committed parts, and the rest at the end. Exits with 77 if
 * there is no GPU. Also compiled for the imitated GPU of tests/simt. */
#include "lattice_paths.h"
#include "random_scorers.h"
#include "random_words.h"

static wf_error err;

/* Counts streams that did not fit the GPU. They continue on the CPU, so they would test nothing. */
static struct test_heard misfits = {"did not fit", 0};

struct tally {
  uint64_t partial_arcs, parts, arcs, scored, skipped, dead, with_words;
};

static void compare_lattices(const wf_lattice *const *lattices, uint64_t *arcs) {
  assert_int_equal(lattices[0] != NULL, lattices[1] != NULL);
  if (lattices[0] == NULL) return;
  assert_true(test_same_raw(lattices[0], lattices[1]));
  *arcs += wf_lattice_get_view(lattices[0]).num_arcs;
}

/* Compares partial lattices, or committed parts, of both streams. */
static void look(wf_stream *const *streams, bool commits, struct tally *tally) {
  wf_lattice *lattices[2];
  wf_status status[2];
  for (int i = 0; i < 2; i++)
    status[i] = (commits ? wf_stream_commit_lattice : wf_stream_partial_lattice)(
        streams[i], &lattices[i], &err);
  assert_int_equal(status[0], status[1]);
  compare_lattices((const wf_lattice *const *)lattices, &tally->partial_arcs);
  tally->parts += commits && lattices[0] != NULL;
  for (int i = 0; i < 2; i++) wf_lattice_free(lattices[i]);
}

static void accept_chunks(wf_stream *const *streams, const wf_scores *scores, uint32_t longest,
                          bool commits, test_rng *rng, struct tally *tally) {
  for (int64_t fed = 0; fed < scores->num_frames;) {
    wf_scores chunk = *scores;
    const int64_t count = test_below(rng, longest), left = scores->num_frames - fed;
    chunk.data = (const float *)scores->data + fed * scores->stride;
    chunk.num_frames = count < left ? count : left;
    if (chunk.num_frames == 0) chunk = (wf_scores){0};
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_advance(streams[i], &chunk, NULL, &err));
    fed += chunk.num_frames;
    const uint32_t what = test_below(rng, 4);
    if (what < 2) look(streams, commits && what == 0, tally);
  }
}

/* Finishes both streams and compares the lattices; also with the whole utterance's, unless parts
 * were committed. */
static void finish(wf_stream *const *streams, wf_result *whole, bool commits, struct tally *tally) {
  wf_result *results[2];
  for (int i = 0; i < 2; i++) assert_ok(wf_stream_finish(streams[i], &results[i], &err));
  test_assert_same_result(results[0], results[1]);
  test_assert_same_result(results[0], whole);
  if (results[0]->status == WF_OK) {
    const wf_lattice *lattices[2] = {results[0]->lattice, results[1]->lattice};
    compare_lattices(lattices, &tally->arcs);
    if (!commits) assert_true(test_same_raw(whole->lattice, lattices[1]));
  }
  tally->scored += results[0]->scorer_cost != 0;
  tally->dead += (results[0]->flags & WF_RESULT_DIED) != 0 && results[0]->num_decoded > 0;
  for (int64_t t = 0; t < results[0]->num_decoded && results[0]->status == WF_OK; t++)
    tally->skipped += results[0]->alignment[t] == 0;
  test_free_results(results, 2);
}

/* Sets the scorer and the graph, now and then after an empty chunk or a result so far, which make
 * the start's tokens with others. */
static void set_up(wf_stream *const *streams, const wf_scorer *scorer, const wf_graph *graph,
                   test_rng *rng, struct tally *tally) {
  const uint32_t before = test_below(rng, 4);
  const wf_scores none = {0};
  for (int i = 0; i < 2; i++) {
    if (before == 1) assert_ok(wf_stream_set_scorer(streams[i], NULL, &err));
    if (before == 1) assert_ok(wf_stream_set_graph(streams[i], NULL, &err));
    if (before == 1 || before == 2) assert_ok(wf_stream_advance(streams[i], &none, NULL, &err));
  }
  if (before == 3) test_assert_same_partials(streams);
  if (before == 3) look(streams, false, tally);
  for (int i = 0; i < 2; i++) {
    assert_ok(wf_stream_set_scorer(streams[i], scorer, &err));
    assert_ok(wf_stream_set_graph(streams[i], graph, &err));
  }
}

/* Decodes an utterance three times in one stream on each device: in short chunks, in short chunks
 * with commits, and in chunks long enough to take several launches. */
static void compare_streams(const struct decode_task *task, const wf_graph *graph,
                            const wf_scorer *scorer, test_rng *rng, struct tally *tally) {
  wf_decoder *decoders[2];
  wf_stream *streams[2];
  wf_result *whole;
  for (int i = 0; i < 2; i++) {
    wf_decoder_options options = task->options;
    options.device = i == 0 ? "cpu" : "cuda";
    assert_ok(wf_decoder_create(task->graph, &options, &decoders[i], &err));
    assert_ok(wf_stream_create(decoders[i], NULL, &streams[i], &err));
  }
  assert_ok(test_decode_each(decoders[0], &task->scores, &scorer, &graph, 1, NULL, &whole, &err));
  tally->with_words += graph != NULL;
  for (int round = 0; round < 3; round++) {
    const bool commits = round == 1;
    if (round > 0)
      for (int i = 0; i < 2; i++) assert_ok(wf_stream_reset(streams[i], &err));
    set_up(streams, scorer, graph, rng, tally);
    accept_chunks(streams, &task->scores, round == 2 ? 40 : 5, commits, rng, tally);
    finish(streams, whole, commits, tally);
  }
  wf_result_free(whole);
  for (int i = 0; i < 2; i++) {
    wf_stream_free(streams[i]);
    wf_decoder_free(decoders[i]);
  }
}

/* Random tasks, some with skipped blanks, some with scorers, some with added words. */
static void test_random_tasks(void **state) {
  (void)state;
  static const float beams[] = {0.125f, 0.5f, 2, 8, 1000};
  struct tally tally = {0};
  const uint64_t seeds = test_seeds(300);
  wf_symbols *words = random_scorer_words();
  misfits.times = 0;
  wf_set_log(test_listen, &misfits);
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    struct added_task added;
    test_rng rng = {seed};
    if (seed % 4 != 0 || !is_fitting(seed, &added)) {
      if (seed % 4 == 0) free_added(&added);
      added = (struct added_task){.task = test_random_task(seed)};
    }
    struct decode_task *task = &added.task;
    task->options.lattice_beam = beams[seed % 5];
    task->options.lattice_prune_interval = 1 + (int32_t)(seed % 7);
    if (seed % 3 == 1 && wf_graph_min_columns(task->graph) > 0) {
      task->options.blank = 0;
      task->options.blank_skip_threshold = 0.3f;
    }
    wf_scorer *scorer = seed % 5 < 2 ? random_scorer(&rng, words) : NULL;
    compare_streams(task, added.with, scorer, &rng, &tally);
    wf_scorer_free(scorer);
    if (added.with != NULL)
      free_added(&added);
    else
      test_free_task(task);
  }
  wf_set_log(NULL, NULL);
  wf_symbols_free(words);
  assert_int_equal(misfits.times, 0);
  if (seeds < 300) return;
  print_message(
      "partial arcs %llu, parts %llu, arcs %llu, scored %llu, skipped %llu, dead %llu, with words "
      "%llu\n",
      (unsigned long long)tally.partial_arcs, (unsigned long long)tally.parts,
      (unsigned long long)tally.arcs, (unsigned long long)tally.scored,
      (unsigned long long)tally.skipped, (unsigned long long)tally.dead,
      (unsigned long long)tally.with_words);
  assert_true(tally.partial_arcs > 5000 && tally.parts > 20 && tally.arcs > 10000 &&
              tally.scored > 50 && tally.skipped > 20 && tally.dead > 10 && tally.with_words > 20);
}

/* Frames need lanes of several blocks; a call advances several streams. */
static void test_large_frames(void **state) {
  (void)state;
  enum { MOST = 5 };
  const bool few = test_seeds(300) < 300;
  struct decode_task task = test_large_task();
  for (size_t k = 0; k < 12; k += few ? 7 : 1) {
    const size_t count = k % 3 == 0 ? 1 : few ? 2 : MOST;
    wf_scores batch[MOST], chunks[MOST];
    float *data[MOST];
    wf_result *expected[MOST];
    wf_stream *streams[MOST];
    test_set_large_limits(&task, k);
    task.options.lattice_beam = 3;
    test_random_batch(&task, batch, data, count, k, few ? 4 : 24);
    test_decode_on("cpu", task.graph, task.options, batch, count, expected);
    wf_decoder_options options = task.options;
    wf_decoder *decoder;
    options.device = "cuda";
    assert_ok(wf_decoder_create(task.graph, &options, &decoder, &err));
    for (size_t i = 0; i < count; i++)
      assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    for (int64_t fed = 0; fed < 24; fed += 4) {
      for (size_t i = 0; i < count; i++) {
        const int64_t left = batch[i].num_frames - fed;
        chunks[i] = batch[i];
        chunks[i].data = (const float *)batch[i].data + (left > 0 ? fed * batch[i].stride : 0);
        chunks[i].num_frames = left > 4 ? 4 : left > 0 ? left : 0;
      }
      assert_ok(wf_streams_advance(decoder, streams, chunks, count, NULL, &err));
    }
    for (size_t i = 0; i < count; i++) {
      wf_result *result;
      assert_ok(wf_stream_finish(streams[i], &result, &err));
      test_assert_same_batch(k, &expected[i], &result, 1);
      wf_result_free(result);
      wf_stream_free(streams[i]);
      free(data[i]);
    }
    wf_decoder_free(decoder);
    test_free_results(expected, count);
  }
  wf_graph_free(task.graph);
}

static void test_kernels(void **state) {
  test_random_tasks(state);
  test_large_frames(state);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_tasks),
                                     cmocka_unit_test(test_large_frames)},
                          kernels[] = {cmocka_unit_test(test_kernels)},
                          small[] = {cmocka_unit_test(test_random_tasks)};
  if (argc > 1 && strcmp(argv[1], "test_kernels") == 0)
    return cmocka_run_group_tests(kernels, NULL, NULL);
  return argc > 1 ? cmocka_run_group_tests(small, NULL, NULL)
                  : cmocka_run_group_tests(tests, NULL, NULL);
}
