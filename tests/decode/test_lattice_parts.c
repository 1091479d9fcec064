/* test_lattice_parts.c - lattices that a stream returns in parts. Joined, the parts equal the
 * offline lattice bit for bit. Memory stays bounded. */
#include "decode_tasks.h"
#include "function_transducers.h"
#include "table_scorer.h"
#include "transducer_graphs.h"

static wf_error err;

/* A task with lattices, often with skipped blanks, and with costs that seldom tie. If all tokens
 * tied, there would never be a single token. */
static struct decode_task part_task(uint64_t seed) {
  struct decode_task task = test_random_task(seed);
  test_rng rng = {seed * 31};
  task.options.lattice_beam = 0.25f * (float)(1 + test_below(&rng, 8));
  task.options.lattice_prune_interval = 1 + (int32_t)test_below(&rng, 5);
  if (wf_graph_min_columns(task.graph) > 0 && seed % 3 == 0) {
    task.options.blank = (int32_t)test_below(&rng, (uint32_t)wf_graph_min_columns(task.graph));
    task.options.blank_skip_threshold = 0.3f;
  }
  return task;
}

/* Checks that states and arcs of `whole` from `first` on equal those of the part. The part's last
 * state is the first state of the next part, so only its number is compared. */
static uint64_t check_part(const wf_lattice *whole, const wf_lattice *part, uint64_t first,
                           bool last) {
  wf_lattice_view x = wf_lattice_get_view(whole), y = wf_lattice_get_view(part);
  uint64_t count = last ? y.num_states : y.num_states - 1;
  assert_true(y.num_states > 0 && first + y.num_states <= x.num_states);
  for (uint64_t s = 0; s < count; s++) {
    assert_int_equal(x.arc_off[first + s + 1] - x.arc_off[first + s],
                     y.arc_off[s + 1] - y.arc_off[s]);
    assert_int_equal(x.frames[first + s], y.frames[s]);
    assert_memory_equal(&x.final_graph_cost[first + s], &y.final_graph_cost[s], sizeof(float));
    assert_memory_equal(&x.final_scorer_cost[first + s], &y.final_scorer_cost[s], sizeof(float));
    for (uint64_t i = y.arc_off[s]; i < y.arc_off[s + 1]; i++) {
      wf_lattice_arc arc = y.arcs[i];
      arc.nextstate += (int32_t)first;
      assert_memory_equal(&x.arcs[x.arc_off[first + s] + i - y.arc_off[s]], &arc, sizeof arc);
    }
  }
  if (last) return first + count;
  assert_true(y.arc_off[count] == y.num_arcs && y.final_graph_cost[count] == 0 &&
              x.frames[first + count] == y.frames[count]);
  return first + count;
}

/* Parts that are returned at random times and joined equal the offline lattice. */
static void test_joined_parts_equal_the_lattice(void **state) {
  (void)state;
  uint64_t num_parts = 0, in_parts = 0, scored = 0;
  for (uint64_t seed = 1; seed <= test_seeds(4000); seed++) {
    struct decode_task task = part_task(seed);
    test_rng rng = {seed * 5};
    oracle_scorer tables =
        test_random_tables(&rng, &(table_scorer_shape){3, 4, false, true, false});
    wf_scorer *scorer = seed % 4 == 0 ? test_table_scorer(&tables, true) : NULL;
    wf_decoder *decoder;
    wf_stream *stream;
    wf_result *expected, *result;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_ok(test_decode_scored(decoder, &task.scores, (const wf_scorer *const[]){scorer}, 1, NULL,
                                 &expected, &err));
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    assert_ok(wf_stream_set_scorer(stream, scorer, &err));
    uint64_t at = 0;
    for (int64_t fed = 0; fed < task.scores.num_frames; fed++) {
      wf_scores chunk = test_rows(&task.scores, fed, 1);
      wf_lattice *part = NULL;
      assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
      if (expected->lattice == NULL || test_below(&rng, 2) == 0 ||
          wf_stream_commit_lattice(stream, &part, &err) != WF_OK || part == NULL)
        continue;
      at = check_part(expected->lattice, part, at, false);
      num_parts++;
      wf_lattice_free(part);
    }
    assert_ok(wf_stream_finish(stream, &result, &err));
    test_assert_same_result(result, expected);
    if (expected->status == WF_OK) {
      wf_lattice_view whole = wf_lattice_get_view(expected->lattice);
      assert_int_equal(check_part(expected->lattice, result->lattice, at, true), whole.num_states);
      in_parts += at > 0;
      scored += at > 0 && scorer != NULL;
    }
    wf_result_free(expected);
    wf_result_free(result);
    wf_stream_free(stream);
    wf_decoder_free(decoder);
    wf_scorer_free(scorer);
    test_free_tables(&tables);
    test_free_task(&task);
  }
  print_message("%llu parts, of %llu lattices, %llu of them scored\n",
                (unsigned long long)num_parts, (unsigned long long)in_parts,
                (unsigned long long)scored);
  assert_true(test_many(num_parts, 2000, 4000) && test_many(in_parts, 800, 4000) &&
              test_many(scored, 150, 4000));
}

/* The same for a transducer, of RNN-T or TDT, whose frames hold any number of tokens. */
static void test_parts_of_transducers(void **state) {
  (void)state;
  uint64_t num_parts = 0, in_parts = 0, scored = 0;
  for (uint64_t seed = 1; seed <= test_seeds(1500); seed++) {
    test_rng rng = {seed};
    struct functions functions = {.seed = seed, .context_size = (int)test_below(&rng, 3)};
    const int num_tokens = 2 + (int)test_below(&rng, 3);
    wf_transducer_parts model =
        parts_of(&functions, num_tokens, seed % 2 == 0 ? 0 : 2 + (int)test_below(&rng, 3));
    wf_fst *fst = test_transducer_graph(&rng, num_tokens, 3, 1 + (int)test_below(&rng, 4));
    oracle_scorer tables =
        test_random_tables(&rng, &(table_scorer_shape){3, 3, false, true, false});
    wf_scorer *scorer = seed % 4 < 2 ? test_table_scorer(&tables, true) : NULL;
    float frames[24];
    for (int t = 0; t < 24; t++) frames[t] = (float)(t + (int)seed);
    const wf_scores scores = {.data = frames, .num_frames = 24, .num_columns = 1, .stride = 1};
    wf_transducer *transducer;
    wf_graph *graph;
    wf_decoder *decoder;
    wf_decoder_options options;
    wf_stream *stream;
    wf_result *expected, *result;
    wf_decoder_options_init(&options);
    options.lattice_beam = 0.5f * (float)(1 + test_below(&rng, 8));
    options.lattice_prune_interval = 1 + (int32_t)test_below(&rng, 5);
    options.max_hypotheses = 1 + (int32_t)test_below(&rng, 6);
    options.max_symbols = 1 + (int32_t)test_below(&rng, 3);
    options.num_threads = 1;
    assert_ok(wf_transducer_create(&model, &transducer, &err));
    assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
    assert_ok(wf_decoder_create_transducer(graph, transducer, &options, &decoder, &err));
    assert_ok(test_decode_scored(decoder, &scores, (const wf_scorer *const[]){scorer}, 1, NULL,
                                 &expected, &err));
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    assert_ok(wf_stream_set_scorer(stream, scorer, &err));
    uint64_t at = 0;
    for (int64_t fed = 0, size; fed < scores.num_frames; fed += size) {
      size = 1 + test_below(&rng, 3);
      if (size > scores.num_frames - fed) size = scores.num_frames - fed;
      const wf_scores chunk = test_rows(&scores, fed, size);
      wf_lattice *part;
      assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
      assert_ok(wf_stream_commit_lattice(stream, &part, &err));
      if (part != NULL) at = check_part(expected->lattice, part, at, false);
      num_parts += part != NULL;
      wf_lattice_free(part);
    }
    assert_ok(wf_stream_finish(stream, &result, &err));
    test_assert_same_result(result, expected);
    assert_int_equal(check_part(expected->lattice, result->lattice, at, true),
                     wf_lattice_get_view(expected->lattice).num_states);
    in_parts += at > 0;
    scored += at > 0 && scorer != NULL;
    wf_result_free(expected);
    wf_result_free(result);
    wf_stream_free(stream);
    wf_decoder_free(decoder);
    wf_graph_free(graph);
    wf_transducer_free(transducer);
    wf_scorer_free(scorer);
    test_free_tables(&tables);
    wf_fst_free(fst);
  }
  print_message("%llu parts, of %llu lattices, %llu of them scored\n",
                (unsigned long long)num_parts, (unsigned long long)in_parts,
                (unsigned long long)scored);
  assert_true(test_many(num_parts, 1500, 1500) && test_many(in_parts, 400, 1500) &&
              test_many(scored, 150, 1500));
}

/* A stream continues in a search object in which another stream, with more tokens, has just ended.
 */
static void test_search_reused_after_another_stream(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(300); seed++) {
    struct decode_task task = part_task(seed);
    wf_decoder *decoder;
    wf_stream *streams[2];
    wf_result *expected, *results[2];
    wf_lattice *part;
    const int64_t half = task.scores.num_frames / 2;
    const wf_scores first = test_rows(&task.scores, 0, half),
                    rest = test_rows(&task.scores, half, task.scores.num_frames - half);
    task.options.num_threads = 1;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_ok(test_decode(decoder, &task.scores, 1, NULL, &expected, &err));
    for (int i = 0; i < 2; i++) assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    assert_ok(wf_stream_advance(streams[0], &first, NULL, &err));
    assert_ok(wf_stream_advance(streams[1], &task.scores, NULL, &err));
    assert_ok(wf_stream_finish(streams[1], &results[1], &err));
    if (seed % 2 == 0 && wf_stream_partial_lattice(streams[0], &part, &err) == WF_OK)
      wf_lattice_free(part);
    assert_ok(wf_stream_advance(streams[0], &rest, NULL, &err));
    assert_ok(wf_stream_finish(streams[0], &results[0], &err));
    for (int i = 0; i < 2; i++) {
      test_assert_same_batch(seed, &expected, &results[i], 1);
      wf_stream_free(streams[i]);
    }
    test_free_results(results, 2);
    wf_result_free(expected);
    wf_decoder_free(decoder);
    test_free_task(&task);
  }
}

/* Many frames of a graph in which paths keep recombining. */
static void test_memory_is_bounded(void **state) {
  (void)state;
  enum { FRAMES = 30000, CHUNK = 40, COLUMNS = 6 };
  wf_fst *fst = test_fst_of(
      WF_TROPICAL, "0 1 1 1 0;0 2 2 2 0;1 1 3 0 0;1 0 4 0 0.5;2 2 3 0 0;2 0 5 3 0;0 0 6 0 0;0");
  float *data = malloc(FRAMES * COLUMNS * sizeof *data);
  wf_decoder_options options;
  wf_decoder *decoder;
  wf_graph *graph;
  wf_stream *stream[2];
  wf_result *result, *expected;
  test_rng rng = {1};
  for (int i = 0; i < FRAMES * COLUMNS; i++) data[i] = -test_unit(&rng) * 6;
  wf_scores scores = {data, FRAMES, COLUMNS, COLUMNS};
  wf_decoder_options_init(&options);
  options.lattice_beam = 4;
  options.num_threads = 1;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, &scores, 1, NULL, &expected, &err));
  for (int i = 0; i < 2; i++) assert_ok(wf_stream_create(decoder, NULL, &stream[i], &err));
  uint64_t most = 0, at = 0, all = 0;
  for (int64_t fed = 0; fed < FRAMES; fed += CHUNK) {
    wf_scores chunks[2] = {test_rows(&scores, fed, CHUNK), test_rows(&scores, fed, CHUNK)};
    wf_lattice *part;
    assert_ok(wf_streams_advance(decoder, stream, chunks, 2, NULL, &err));
    all = wf_stream_bytes(stream[1]);
    if (fed % 400 != 0) continue;
    assert_ok(wf_stream_commit_lattice(stream[0], &part, &err));
    if (part != NULL) at = check_part(expected->lattice, part, at, false);
    wf_lattice_free(part);
    uint64_t words = (uint64_t)fed * 3 / 2 * (sizeof(int32_t) + sizeof(wf_word)),
             bytes = wf_stream_bytes(stream[0]);
    bytes -= words < bytes ? words : bytes;
    if (bytes > most) most = bytes;
  }
  print_message("%llu bytes at most, %llu without commits; %llu states committed\n",
                (unsigned long long)most, (unsigned long long)all, (unsigned long long)at);
  assert_true(most < 400000 && all > 3000000);
  assert_ok(wf_stream_finish(stream[0], &result, &err));
  assert_int_equal(check_part(expected->lattice, result->lattice, at, true),
                   wf_lattice_get_view(expected->lattice).num_states);
  wf_result_free(result);
  wf_result_free(expected);
  for (int i = 0; i < 2; i++) wf_stream_free(stream[i]);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined_parts_equal_the_lattice),
                                     cmocka_unit_test(test_parts_of_transducers),
                                     cmocka_unit_test(test_search_reused_after_another_stream),
                                     cmocka_unit_test(test_memory_is_bounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
