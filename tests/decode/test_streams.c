/* test_streams.c - utterances whose scores come in chunks.
 *
 * First an example by hand. Then random chunks, with other streams at the same time, are compared
 * with batches of the same decoder: every bit of results, partials and lattices. */
#include "decode_tasks.h"
#include "example.h"
#include "table_scorer.h"

/* --- an example by hand ------------------------------------------------------------------ */

/* The graph and scores of test_decode.c's first example.
 *
 *          A:1/0.5           B:2/0.25
 *   (0) -------------> (1) -------------> ((2))/0.125
 *                      ^ |
 *                      +-+  A:-/0.0625
 *
 * A frame at a time: the partial is the best token's, in a final state or not. The result is that
 * of the whole matrix. After a reset the stream takes the next utterance. */
static void test_example_chunks(void **state) {
  (void)state;
  static const float scores[] = {-1, -2, -0.5f, -3, -4, -0.25f};
  static const char *const partials[] = {"1[0,1)", "1[0,2)", "1[0,2) 2[2,3)"};
  struct example e =
      example_of("0 1 1 1 0.5\n1 1 1 0 0.0625\n1 2 2 2 0.25\n2 0.125\n", scores, 3, 2);
  wf_error failure = {0};
  wf_graph *graph;
  wf_decoder *decoder = example_decoder(&e, &graph);
  wf_stream *stream;
  if (wf_stream_create(decoder, NULL, &stream, &failure) != WF_OK) fail_msg("%s", failure.message);
  for (int round = 0; round < 2; round++) {
    wf_result *result;
    for (int t = 0; t < 3; t++) {
      wf_scores chunk = e.scores;
      wf_partial partial;
      chunk.data = scores + 2 * t;
      chunk.num_frames = 1;
      assert_int_equal(wf_stream_advance(stream, &chunk, NULL, &failure), WF_OK);
      assert_int_equal(wf_stream_partial(stream, &partial, &failure), WF_OK);
      assert_string_equal(example_words(partial.words, partial.num_words), partials[t]);
      assert_int_equal(partial.num_frames, t + 1);
    }
    assert_int_equal(wf_stream_finish(stream, &result, &failure), WF_OK);
    assert_string_equal(example_words(result->words, result->num_words), "1[0,2) 2[2,3)");
    test_assert_close(result->cost, 2.6875, 1e-6);
    wf_result_free(result);
    assert_int_equal(wf_stream_reset(stream, &failure), WF_OK);
  }
  wf_stream_free(stream);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
}

/* --- random tasks ------------------------------------------------------------------------- */

static wf_error err;

static void assert_same_lattice(const wf_lattice *a, const wf_lattice *b) {
  assert_int_equal(a != NULL, b != NULL);
  if (a == NULL) return;
  wf_lattice_view x = wf_lattice_get_view(a), y = wf_lattice_get_view(b);
  assert_int_equal(x.num_states, y.num_states);
  assert_int_equal(x.num_arcs, y.num_arcs);
  assert_memory_equal(x.arc_off, y.arc_off, (x.num_states + 1) * sizeof *x.arc_off);
  if (x.num_arcs > 0) assert_memory_equal(x.arcs, y.arcs, x.num_arcs * sizeof *x.arcs);
  assert_memory_equal(x.final_graph_cost, y.final_graph_cost, x.num_states * sizeof(float));
  assert_memory_equal(x.final_acoustic_cost, y.final_acoustic_cost, x.num_states * sizeof(float));
  assert_memory_equal(x.final_scorer_cost, y.final_scorer_cost, x.num_states * sizeof(float));
  assert_memory_equal(x.frames, y.frames, x.num_states * sizeof(int32_t));
}

static void assert_same(const wf_result *a, const wf_result *b) {
  test_assert_same_result(a, b);
  assert_string_equal(a->message, b->message);
  if (a->status == WF_OK) assert_same_lattice(a->lattice, b->lattice);
}

/* A random task that sometimes has lattices and blank options. */
static struct decode_task stream_task(uint64_t seed) {
  struct decode_task task = test_random_task(seed);
  test_rng rng = {seed * 31};
  if (seed % 3 == 0) task.options.lattice_beam = 0.25f * (float)(1 + test_below(&rng, 20));
  task.options.lattice_prune_interval = 1 + (int32_t)test_below(&rng, 5);
  if (wf_graph_min_columns(task.graph) > 0 && test_below(&rng, 3) == 0) {
    task.options.blank = (int32_t)test_below(&rng, (uint32_t)wf_graph_min_columns(task.graph));
    task.options.blank_skip_threshold = 0.3f;
    task.options.blank_penalty = (float)test_below(&rng, 3) / 2 - 0.5f;
  }
  return task;
}

/* The same graph with all final costs removed, so that any token may be the end. */
static wf_graph *endless(const wf_graph *graph) {
  wf_fst_view view = wf_fst_get_view(wf_graph_fst(graph));
  wf_builder *builder;
  wf_fst *fst;
  wf_graph *out;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, view.num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, (uint32_t)view.start, &err));
  for (uint64_t s = 0; s < view.num_states; s++)
    for (uint64_t a = view.arc_off[s]; a < view.arc_off[s + 1]; a++)
      assert_ok(wf_builder_add_arc(builder, (uint32_t)s, view.arcs[a], &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  assert_ok(wf_graph_create(fst, NULL, 0, &out, &err));
  wf_builder_free(builder);
  wf_fst_free(fst);
  return out;
}

struct seen {
  wf_word *words; /* the stable words of the last partial */
  size_t num_stable;
  uint64_t num_partials, num_with_stable;
};

/* A partial equals the offline result of the frames so far with a graph without final states.
 * Stable words have not changed. */
static void check_partial(wf_stream *stream, wf_decoder *endless_decoder, const wf_scores *scores,
                          int64_t fed, struct seen *seen) {
  wf_partial partial;
  wf_scores prefix = test_rows(scores, 0, fed);
  wf_result *expected;
  assert_ok(test_decode(endless_decoder, &prefix, 1, NULL, &expected, &err));
  if (expected->status != WF_OK) {
    assert_int_equal(wf_stream_partial(stream, &partial, &err), expected->status);
    wf_result_free(expected);
    return;
  }
  assert_ok(wf_stream_partial(stream, &partial, &err));
  assert_int_equal(partial.num_frames, fed);
  assert_int_equal(partial.num_words, expected->num_words);
  for (size_t i = 0; i < partial.num_words; i++)
    assert_memory_equal(&partial.words[i], &expected->words[i], sizeof(wf_word));
  assert_int_equal(partial.flags, expected->flags & ~(uint32_t)WF_RESULT_NOT_FINAL);
  assert_true(partial.num_stable >= seen->num_stable && partial.num_stable <= partial.num_words &&
              partial.stable_frames <= fed);
  for (size_t i = 0; i < seen->num_stable; i++)
    assert_true(
        partial.words[i].label == seen->words[i].label &&
        partial.words[i].start_frame == seen->words[i].start_frame &&
        (i + 1 == seen->num_stable || partial.words[i].end_frame == seen->words[i].end_frame));
  seen->num_stable = partial.num_stable;
  free(seen->words);
  seen->words = malloc((partial.num_stable + 1) * sizeof *seen->words);
  if (partial.num_stable > 0)
    memcpy(seen->words, partial.words, partial.num_stable * sizeof *seen->words);
  seen->num_partials++;
  seen->num_with_stable += partial.num_stable > 0;
  if (expected->lattice != NULL) {
    wf_lattice *lattice;
    assert_ok(wf_stream_partial_lattice(stream, &lattice, &err));
    assert_same_lattice(lattice, expected->lattice);
    wf_lattice_free(lattice);
  }
  wf_result_free(expected);
}

/* One stream with chunks of 0 to 3 frames, with partials now and then, used for two utterances.
 * Some have a scorer, which is sometimes replaced by an identical one. That must change nothing. */
static void test_random_chunks(void **state) {
  (void)state;
  struct seen seen = {0};
  uint64_t failed = 0, dead = 0, with_lattice = 0, skipping = 0, scored = 0;
  for (uint64_t seed = 1; seed <= test_seeds(4000); seed++) {
    struct decode_task task = stream_task(seed);
    test_rng rng = {seed};
    wf_graph *no_end = endless(task.graph);
    wf_decoder *decoder, *endless_decoder;
    wf_stream *stream;
    wf_result *expected, *result;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_ok(wf_decoder_create(no_end, &task.options, &endless_decoder, &err));
    table_scorer_shape shape = {.max_contexts = 5,
                                .num_words = 4,
                                .negative = seed % 8 < 4,
                                .wide = seed % 16 < 8,
                                .last_word = seed % 32 < 16};
    oracle_scorer tables = test_random_tables(&rng, &shape);
    wf_scorer *scorer = seed % 2 == 0 ? test_table_scorer(&tables, shape.wide) : NULL;
    assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
    assert_ok(wf_decoder_set_scorer(endless_decoder, scorer, &err));
    assert_ok(test_decode(decoder, &task.scores, 1, NULL, &expected, &err));
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    for (int round = 0; round < 2; round++) {
      seen.num_stable = 0;
      for (int64_t fed = 0; fed < task.scores.num_frames;) {
        int64_t count = test_below(&rng, 4);
        if (count > task.scores.num_frames - fed) count = task.scores.num_frames - fed;
        wf_scores chunk = count == 0 ? (wf_scores){0} : test_rows(&task.scores, fed, count);
        wf_stream_event event;
        assert_ok(
            wf_stream_advance(stream, &chunk, test_below(&rng, 2) == 0 ? &event : NULL, &err));
        fed += count;
        if (scorer != NULL && test_below(&rng, 3) == 0 && task.options.lattice_beam == 0) {
          wf_scorer *replacement = test_table_scorer(&tables, shape.wide);
          assert_ok(wf_stream_set_scorer(stream, replacement, &err));
          wf_scorer_free(replacement);
        }
        if (test_below(&rng, 3) == 0)
          check_partial(stream, endless_decoder, &task.scores, fed, &seen);
      }
      assert_ok(wf_stream_finish(stream, &result, &err));
      assert_same(result, expected);
      assert_true(result->num_words >= seen.num_stable || result->status != WF_OK);
      for (size_t i = 0; i < seen.num_stable && result->status == WF_OK; i++)
        assert_int_equal(result->words[i].label, seen.words[i].label);
      failed += result->status != WF_OK;
      dead += (result->flags & WF_RESULT_DIED) != 0 && result->num_decoded > 0;
      with_lattice += result->lattice != NULL;
      for (int64_t t = 0; t < result->num_decoded; t++) skipping += result->alignment[t] == 0;
      scored += result->scorer_cost != 0;
      wf_result_free(result);
      assert_int_equal(wf_stream_finish(stream, &result, &err), WF_ERR_STATE);
      assert_ok(wf_stream_reset(stream, &err));
    }
    wf_stream_free(stream);
    wf_result_free(expected);
    wf_decoder_free(decoder);
    wf_decoder_free(endless_decoder);
    wf_graph_free(no_end);
    wf_scorer_free(scorer);
    test_free_tables(&tables);
    test_free_task(&task);
  }
  free(seen.words);
  assert_true(test_many(failed, 20, 4000) && test_many(dead, 100, 4000) &&
              test_many(with_lattice, 1000, 4000) && test_many(skipping, 300, 4000) &&
              test_many(scored, 500, 4000) && test_many(seen.num_partials, 5000, 4000) &&
              test_many(seen.num_with_stable, 500, 4000));
}

/* What a client does before speech comes, which makes the start's tokens: an empty chunk, results
 * so far. A scorer that is set after it counts from the start, in lattices, too. */
static void open_connection(wf_stream *stream, test_rng *rng) {
  const wf_scores none = {0};
  wf_stream_event event;
  wf_partial partial;
  wf_lattice *lattice = NULL;
  for (uint32_t k = 1 + test_below(rng, 3); k > 0; k--) {
    const uint32_t kind = test_below(rng, 4);
    if (kind == 0) assert_ok(wf_stream_advance(stream, &none, NULL, &err));
    if (kind == 1) (void)wf_stream_advance(stream, &none, &event, &err);
    if (kind == 2) (void)wf_stream_partial(stream, &partial, &err);
    if (kind == 3) (void)wf_stream_partial_lattice(stream, &lattice, &err);
    wf_lattice_free(lattice);
    lattice = NULL;
  }
}

static void test_scorer_after_an_empty_chunk(void **state) {
  (void)state;
  uint64_t with_lattice = 0, scored = 0;
  for (uint64_t seed = 1; seed <= test_seeds(1500); seed++) {
    struct decode_task task = stream_task(seed * 3); /* with lattices */
    test_rng rng = {seed};
    oracle_scorer tables = test_random_tables(
        &rng,
        &(table_scorer_shape){.max_contexts = 5, .num_words = 4, .wide = true, .last_word = true});
    wf_scorer *scorers[3] = {NULL, test_table_scorer(&tables, true),
                             test_table_scorer(&tables, false)};
    const wf_scorer *last = NULL;
    wf_decoder *decoder;
    wf_stream *stream;
    wf_result *expected, *result;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    for (int round = 0; round < 2; round++) {
      for (uint32_t k = 1 + test_below(&rng, 2); k > 0; k--) {
        open_connection(stream, &rng);
        last = scorers[test_below(&rng, 3)];
        assert_ok(wf_stream_set_scorer(stream, last, &err));
      }
      assert_ok(test_decode_scored(decoder, &task.scores, &last, 1, NULL, &expected, &err));
      for (int64_t fed = 0, count; fed < task.scores.num_frames; fed += count) {
        count = test_below(&rng, 4);
        if (count > task.scores.num_frames - fed) count = task.scores.num_frames - fed;
        const wf_scores chunk = test_rows(&task.scores, fed, count);
        assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
      }
      assert_ok(wf_stream_finish(stream, &result, &err));
      assert_same(result, expected);
      with_lattice += result->lattice != NULL;
      scored += result->scorer_cost != 0;
      wf_result_free(result);
      wf_result_free(expected);
      assert_ok(wf_stream_reset(stream, &err));
    }
    wf_stream_free(stream);
    wf_decoder_free(decoder);
    wf_scorer_free(scorers[1]);
    wf_scorer_free(scorers[2]);
    test_free_tables(&tables);
    test_free_task(&task);
  }
  assert_true(test_many(with_lattice, 1000, 1500) && test_many(scored, 500, 1500));
}

/* Many streams at once, with chunks of different sizes, on several threads, between batches of
 * whole utterances. */
static void test_many_streams_at_once(void **state) {
  (void)state;
  enum { COUNT = 40 };
  struct decode_task task = stream_task(63);
  test_rng rng = {9};
  wf_scores batch[COUNT];
  float *data[COUNT];
  wf_result *expected[COUNT], *result;
  size_t words_compared = 0;
  test_random_batch(&task, batch, data, COUNT, 5, 120);
  test_decode_on("cpu", task.graph, task.options, batch, COUNT, expected);
  for (int threads = 1; threads <= 5; threads += 2) {
    wf_decoder *decoder;
    wf_stream *streams[COUNT], *ready[COUNT];
    wf_scores chunks[COUNT];
    int64_t fed[COUNT] = {0};
    wf_stream_event events[COUNT];
    task.options.num_threads = threads;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    for (size_t i = 0; i < COUNT; i++)
      assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    for (bool any = true; any;) {
      size_t num_ready = 0;
      any = false;
      for (size_t i = 0; i < COUNT; i++) {
        int64_t left = batch[i].num_frames - fed[i], count = test_below(&rng, 12);
        if (left > 0) any = true;
        if (left == 0 || test_below(&rng, 3) == 0) continue;
        if (count > left) count = left;
        ready[num_ready] = streams[i];
        chunks[num_ready++] = test_rows(&batch[i], fed[i], count);
        fed[i] += count;
      }
      assert_ok(wf_streams_advance(decoder, ready, chunks, num_ready, events, &err));
      if (test_below(&rng, 2) == 0) test_assert_partials(decoder, streams, COUNT, &words_compared);
      if (test_below(&rng, 4) == 0) {
        assert_ok(test_decode(decoder, &batch[7], 1, NULL, &result, &err));
        assert_same(result, expected[7]);
        wf_result_free(result);
      }
    }
    for (size_t i = 0; i < COUNT; i++) {
      assert_ok(wf_stream_finish(streams[i], &result, &err));
      assert_same(result, expected[i]);
      wf_result_free(result);
      wf_stream_free(streams[i]);
    }
    wf_decoder_free(decoder);
  }
  assert_true(words_compared > 1000);
  for (size_t i = 0; i < COUNT; i++) {
    wf_result_free(expected[i]);
    free(data[i]);
  }
  test_free_task(&task);
}

/* --- long audio -------------------------------------------------------------------------- */

static struct decode_task long_task(int64_t num_frames) {
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
  task.options.num_threads = 1;
  task.scores = (wf_scores){.num_frames = num_frames, .num_columns = 8, .stride = 8};
  task.data = malloc((size_t)num_frames * 8 * sizeof *task.data);
  for (int64_t i = 0; i < num_frames * 8; i++) task.data[i] = -test_unit(&rng) * 8;
  task.scores.data = task.data;
  return task;
}

/* Between chunks, a stream's memory is little more than the alignment and the words, for any length
 * of audio. With `forget`, and if all partials are read, it does not grow. */
static void test_long_audio_memory(void **state) {
  (void)state;
  enum { FRAMES = 30000, CHUNK = 40 };
  struct decode_task task = long_task(FRAMES);
  wf_result *expected = test_decode_alone(&task), *result;
  wf_decoder *decoder;
  wf_stream *stream[2];
  wf_stream_options options;
  wf_stream_options_init(&options);
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  assert_ok(wf_stream_create(decoder, &options, &stream[0], &err));
  options.forget = true;
  assert_ok(wf_stream_create(decoder, &options, &stream[1], &err));
  uint64_t most[2] = {0}, num_words = 0;
  for (int64_t fed = 0; fed < FRAMES; fed += CHUNK) {
    wf_scores chunks[2] = {test_rows(&task.scores, fed, CHUNK),
                           test_rows(&task.scores, fed, CHUNK)};
    assert_ok(wf_streams_advance(decoder, stream, chunks, 2, NULL, &err));
    if (fed == 2000)
      for (int i = 0; i < 2; i++)
        most[i] = 0; /* after 2000 frames only the committed part may grow */
    if (fed % 1000 == 0) {
      wf_partial partial;
      assert_ok(wf_stream_partial(stream[1], &partial, &err));
      assert_true(partial.num_stable > 0 && partial.num_words < 2000 &&
                  partial.stable_frames > fed - 500);
      for (size_t i = 0; i + 1 < partial.num_stable;
           i++) { /* each word is returned once, except the last, which is returned again */
        assert_memory_equal(&partial.words[i], &expected->words[num_words], sizeof(wf_word));
        num_words++;
      }
    }
    uint64_t committed =
        (uint64_t)fed * 3 / 2 *
        (sizeof(int32_t) +
         sizeof(wf_word)); /* at most one word for each frame, in arrays that have just grown */
    uint64_t bytes[2] = {wf_stream_bytes(stream[0]), wf_stream_bytes(stream[1])};
    bytes[0] -= committed < bytes[0] ? committed : bytes[0];
    for (int i = 0; i < 2; i++)
      if (bytes[i] > most[i]) most[i] = bytes[i];
  }
  assert_true(most[0] < 600000 && most[1] < 600000);
  assert_ok(wf_stream_finish(stream[0], &result, &err));
  assert_same(result, expected);
  wf_result_free(result);
  assert_ok(wf_stream_finish(stream[1], &result, &err));
  assert_null(result->alignment);
  assert_true(result->cost == expected->cost &&
              num_words + result->num_words == expected->num_words);
  assert_memory_equal(result->words, expected->words + num_words,
                      result->num_words * sizeof(wf_word));
  wf_result_free(result);
  wf_result_free(expected);
  for (int i = 0; i < 2; i++) wf_stream_free(stream[i]);
  wf_decoder_free(decoder);
  test_free_task(&task);
}

/* --- wrong use --------------------------------------------------------------------------- */

static void test_bad_chunks(void **state) {
  (void)state;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1 0;1 1 2 0 0;1 0");
  wf_graph *graph;
  wf_decoder *decoder, *other;
  wf_stream *good, *bad, *narrow, *foreign;
  wf_result *result, *expected;
  wf_partial partial;
  wf_lattice *lattice;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, NULL, &decoder, &err));
  assert_ok(wf_decoder_create(graph, NULL, &other, &err));
  assert_ok(wf_stream_create(decoder, NULL, &good, &err));
  assert_ok(wf_stream_create(decoder, NULL, &bad, &err));
  assert_ok(wf_stream_create(decoder, NULL, &narrow, &err));
  assert_ok(wf_stream_create(other, NULL, &foreign, &err));
  float fine[6] = {-1, -2, -3, -1, -1, -1}, nan[6] = {-1, -2, -1, -1, -1, NAN};
  wf_scores whole = {nan, 3, 2, 2};
  assert_ok(test_decode(decoder, &whole, 1, NULL, &expected, &err));
  wf_stream *three[3] = {good, bad, narrow};
  wf_scores first[3] = {{fine, 1, 2, 2}, {nan, 2, 2, 2}, {fine, 2, 1, 1}},
            second[3] = {{fine + 2, 2, 2, 2}, {nan + 4, 1, 2, 2}, {fine, 1, 2, 2}};
  assert_ok(wf_streams_advance(decoder, three, first, 3, NULL, &err));
  assert_ok(wf_streams_advance(decoder, three, second, 3, NULL, &err));
  assert_int_equal(wf_stream_partial(bad, &partial, &err), WF_ERR_ARGUMENT);
  wf_partial partials[3];
  assert_ok(wf_streams_partial(decoder, three, 3, partials, &err));
  assert_int_equal(partials[0].num_frames, 3);
  assert_true(partials[1].num_frames == 0 && partials[1].words == NULL); /* it has failed */
  assert_ok(wf_stream_finish(bad, &result, &err));
  assert_int_equal(result->status, WF_ERR_ARGUMENT);
  assert_string_equal(result->message, expected->message);
  assert_int_equal(result->num_frames, 3);
  wf_result_free(result);
  assert_ok(wf_stream_finish(narrow, &result, &err));
  assert_non_null(strstr(result->message, "1 columns"));
  wf_result_free(result);
  assert_ok(wf_stream_partial(good, &partial, &err));
  assert_int_equal(wf_stream_partial_lattice(good, &lattice, &err), WF_ERR_ARGUMENT);
  /* rejected without effect */
  wf_stream *twice[2] = {good, good}, *mixed[2] = {good, foreign}, *finished[2] = {good, bad};
  assert_int_equal(wf_streams_advance(decoder, twice, first, 2, NULL, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_streams_advance(decoder, mixed, first, 2, NULL, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_streams_advance(decoder, finished, first, 2, NULL, &err), WF_ERR_STATE);
  assert_int_equal(wf_stream_partial(bad, &partial, &err), WF_ERR_STATE);
  assert_int_equal(wf_streams_partial(decoder, twice, 2, partials, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_streams_partial(decoder, mixed, 2, partials, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_streams_partial(decoder, finished, 2, partials, &err), WF_ERR_STATE);
  assert_ok(wf_streams_partial(decoder, NULL, 0, NULL, &err));
  assert_ok(wf_streams_advance(decoder, NULL, NULL, 0, NULL, &err));
  assert_ok(wf_stream_finish(good, &result, &err));
  assert_int_equal(result->num_decoded, 3);
  assert_int_equal(result->flags, 0);
  wf_result_free(result);
  /* no frames */
  wf_scores nothing = {0};
  wf_result *empty;
  assert_ok(test_decode(decoder, &nothing, 1, NULL, &empty, &err));
  assert_ok(wf_stream_reset(good, &err));
  assert_ok(wf_stream_finish(good, &result, &err));
  assert_same(result, empty);
  wf_result_free(result);
  wf_result_free(empty);
  wf_result_free(expected);
  for (int i = 0; i < 3; i++) wf_stream_free(three[i]);
  wf_stream_free(foreign);
  wf_stream_free(NULL);
  wf_decoder_free(other);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

/* Thousands of open but idle channels take little memory. */
static void test_many_idle_channels(void **state) {
  (void)state;
  enum { COUNT = 5000 };
  struct decode_task task = long_task(100);
  wf_decoder *decoder;
  wf_stream **streams = malloc(COUNT * sizeof *streams);
  wf_scores *chunks = malloc(COUNT * sizeof *chunks);
  wf_result *expected = test_decode_alone(&task), *result;
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  for (int i = 0; i < COUNT; i++) {
    assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    assert_true(wf_stream_bytes(streams[i]) < 2500);
  }
  for (int64_t fed = 0; fed < 6; fed += 3) {
    for (int i = 0; i < COUNT; i++) chunks[i] = test_rows(&task.scores, fed, 3);
    assert_ok(wf_streams_advance(decoder, streams, chunks, COUNT, NULL, &err));
  }
  for (int i = 0; i < COUNT; i++) assert_true(wf_stream_bytes(streams[i]) < 60000);
  for (int i = 0; i < COUNT; i += 999) {
    wf_scores rest = test_rows(&task.scores, 6, 94);
    assert_ok(wf_stream_advance(streams[i], &rest, NULL, &err));
    assert_ok(wf_stream_finish(streams[i], &result, &err));
    assert_same(result, expected);
    wf_result_free(result);
  }
  for (int i = 0; i < COUNT; i++) wf_stream_free(streams[i]);
  free(streams);
  free(chunks);
  wf_result_free(expected);
  wf_decoder_free(decoder);
  test_free_task(&task);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example_chunks),
                                     cmocka_unit_test(test_random_chunks),
                                     cmocka_unit_test(test_scorer_after_an_empty_chunk),
                                     cmocka_unit_test(test_many_streams_at_once),
                                     cmocka_unit_test(test_long_audio_memory),
                                     cmocka_unit_test(test_bad_chunks),
                                     cmocka_unit_test(test_many_idle_channels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
