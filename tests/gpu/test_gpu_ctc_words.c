/* test_gpu_ctc_words.c - words added to CTC graphs that keep their token graph, on the GPU: every bit
 * of every result is that of the CPU, in batches, with lattices, with scorers, and in streams. Exits
 * with 77 if there is no GPU. Also compiled for the imitated GPU of tests/simt. */
#include "ctc_words.h"
/* After the library's headers, because it defines `model`. */
#include "random_scorers.h"

enum { BATCH = 5 };

static wf_error err;

/* Counts utterances and streams that went to the CPU, and so would test nothing. */
static struct test_heard misfits = {"did not fit", 0};

struct seen {
  uint64_t tried, said, scored, lattices, wide_trees;
};

static void count(struct seen *seen, const struct ctc_words *words, const wf_result *result) {
  seen->said += result->num_words > 0;
  seen->scored += result->scorer_cost != 0;
  seen->lattices += result->lattice != NULL && wf_lattice_get_view(result->lattice).num_arcs > 10;
  for (int32_t c = 0; c < words->with->classes->count; c++) {
    const wf__phrase_tree *tree = words->with->added[c].tree;
    seen->wide_trees += tree != NULL && tree->ctc->first_wide < tree->ctc->num_states;
  }
}

static void check_batch(uint64_t seed, const struct ctc_words *words,
                        const wf_decoder_options *options, const wf_scorer *scorer,
                        struct seen *seen) {
  struct decode_task task = words->task.shared;
  test_rng rng = {seed};
  const wf_graph *graphs[BATCH];
  const wf_scorer *scorers[BATCH];
  wf_scores batch[BATCH];
  float *data[BATCH];
  wf_result *results[2][BATCH];
  test_random_batch(&task, batch, data, BATCH, seed, 12);
  batch[0] = task.scores;
  for (size_t i = 0; i < BATCH; i++) {
    graphs[i] = i % 3 == 2 ? NULL : words->with;
    scorers[i] = test_below(&rng, 4) > 0 ? scorer : NULL;
  }
  for (int gpu = 0; gpu < 2; gpu++) {
    wf_decoder *decoder;
    wf_decoder_options o = *options;
    o.device = gpu ? "cuda" : "cpu";
    assert_ok(wf_decoder_create(task.graph, &o, &decoder, &err));
    assert_ok(test_decode_each(decoder, batch, scorers, graphs, BATCH, NULL, results[gpu], &err));
    wf_decoder_free(decoder);
  }
  test_assert_same_batch(seed, results[0], results[1], BATCH);
  for (size_t i = 0; i < BATCH; i++)
    if (graphs[i] != NULL) count(seen, words, results[0][i]);
  test_free_results(results[0], BATCH);
  test_free_results(results[1], BATCH);
  for (size_t i = 0; i < BATCH; i++) free(data[i]);
}

static void feed(wf_stream *const *streams, const wf_scores *scores, test_rng *rng) {
  for (int64_t fed = 0, size; fed < scores->num_frames; fed += size) {
    size = 1 + test_below(rng, 5);
    if (size > scores->num_frames - fed) size = scores->num_frames - fed;
    const wf_scores chunk = test_rows(scores, fed, size);
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_advance(streams[i], &chunk, NULL, &err));
    if (test_below(rng, 3) == 0) test_assert_same_partials(streams);
  }
}

static void check_streams(uint64_t seed, const struct ctc_words *words, const wf_scorer *scorer) {
  test_rng rng = {seed};
  wf_decoder *decoders[2];
  wf_stream *streams[2];
  wf_result *results[2];
  for (int i = 0; i < 2; i++) {
    wf_decoder_options options = words->task.shared.options;
    options.device = i == 0 ? "cpu" : "cuda";
    assert_ok(wf_decoder_create(words->task.shared.graph, &options, &decoders[i], &err));
    assert_ok(wf_stream_create(decoders[i], NULL, &streams[i], &err));
    assert_ok(wf_stream_set_graph(streams[i], words->with, &err));
    assert_ok(wf_stream_set_scorer(streams[i], scorer, &err));
  }
  feed(streams, &words->task.shared.scores, &rng);
  for (int i = 0; i < 2; i++) assert_ok(wf_stream_finish(streams[i], &results[i], &err));
  test_assert_same_batch(seed, &results[0], &results[1], 1);
  test_free_results(results, 2);
  for (int i = 0; i < 2; i++) {
    wf_stream_free(streams[i]);
    wf_decoder_free(decoders[i]);
  }
}

/* The tasks' rooms are small for the CPU's sake; a GPU has its own limits for tokens. */
static void check(uint64_t seed, bool wide, const wf_symbols *texts, struct seen *seen) {
  struct ctc_words words;
  test_rng rng = {seed * 11};
  ctc_random_words(seed, wide, &words);
  if (words.with != NULL) {
    wf_scorer *scorer = random_scorer(&rng, texts);
    wf_decoder_options *options = &words.task.shared.options, plain = *options;
    plain.lattice_beam = 0;
    check_batch(seed, &words, &plain, scorer, seen);
    if (options->lattice_beam == 0) options->lattice_beam = 3;
    check_batch(seed, &words, options, seed % 2 == 0 ? scorer : NULL, seen);
    if (seed % 2 == 0) *options = plain;
    check_streams(seed, &words, seed % 3 == 0 ? scorer : NULL);
    wf_scorer_free(scorer);
    seen->tried++;
  }
  if (wide) misfits.times = 0; /* a frame can have more candidates with words than there is room */
  ctc_free_words(&words);
}

static struct seen run(uint64_t seeds) {
  struct seen seen = {0};
  wf_symbols *texts = random_scorer_words();
  misfits.times = 0;
  wf_set_log(test_listen, &misfits);
  for (uint64_t seed = 1; seen.tried < seeds; seed++) check(seed, seed % 8 == 0, texts, &seen);
  wf_set_log(NULL, NULL);
  wf_symbols_free(texts);
  assert_int_equal(misfits.times, 0);
  return seen;
}

static void test_words(void **state) {
  (void)state;
  const uint64_t seeds = test_seeds(120);
  const struct seen seen = run(seeds);
  print_message("%llu with words, %llu scored, %llu lattices, %llu wide trees\n",
                (unsigned long long)seen.said, (unsigned long long)seen.scored,
                (unsigned long long)seen.lattices, (unsigned long long)seen.wide_trees);
  assert_true(test_many(seen.said, 100, 120) && test_many(seen.scored, 60, 120) &&
              test_many(seen.lattices, 40, 120) && (seeds < 50 || seen.wide_trees > 5));
}

/* For sanitizers that take long. */
static void test_small(void **state) {
  (void)state;
  run(6);
}

/* For racecheck, which takes a minute for each task. */
static void test_races(void **state) {
  (void)state;
  run(1);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest small[] = {cmocka_unit_test(test_small)},
                          races[] = {cmocka_unit_test(test_races)},
                          tests[] = {cmocka_unit_test(test_words)};
  if (argc > 1 && strcmp(argv[1], "test_races") == 0)
    return cmocka_run_group_tests(races, NULL, NULL);
  if (argc > 1 && strcmp(argv[1], "test_small") == 0)
    return cmocka_run_group_tests(small, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
