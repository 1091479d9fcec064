/* test_decode.c - what the decoder computes (docs/reference/semantics.md).
 *
 * First examples by hand, one rule each. Then thousands of random tasks are compared bit for bit
 * with an oracle that shares no code with the library, and with unpruned dynamic programming. */
#include "decode_oracle.h"
#include "decode_tasks.h"
#include "example.h"

/* --- examples by hand -------------------------------------------------------------------- */

/* Word 1 is the token A, one frame or more; word 2 is one frame of the token B.
 *
 *          A:1/0.5           B:2/0.25
 *   (0) -------------> (1) -------------> ((2))/0.125
 *                      ^ |
 *                      +-+  A:-/0.0625                      */
#define TWO_WORDS    \
  "0 1 1 1 0.5\n"    \
  "1 1 1 0 0.0625\n" \
  "1 2 2 2 0.25\n"   \
  "2 0.125\n"
static const float two_words[] = {-1,    -2,      /* frame 0: A, B */
                                  -0.5f, -3,      /* frame 1 */
                                  -4,    -0.25f}; /* frame 2 */

/* Three frames: A, A, B.
 *   graph     0.5 + 0.0625 + 0.25 + 0.125 (final) = 0.9375
 *   acoustic  1 + 0.5 + 0.25                      = 1.75
 *   cost                                            2.6875 */
static void test_example_best_path(void **state) {
  (void)state;
  struct example e = example_of(TWO_WORDS, two_words, 3, 2);
  example_expect(&e, NULL, "1[0,2) 2[2,3)", 2.6875, 0);
}

/* acoustic_scale is a factor on log-likelihoods alone: 0.9375 + 0.5 * 1.75. */
static void test_example_acoustic_scale(void **state) {
  (void)state;
  struct example e = example_of(TWO_WORDS, two_words, 3, 2);
  e.options.acoustic_scale = 0.5f;
  example_expect(&e, NULL, "1[0,2) 2[2,3)", 1.8125, 0);
}

/* word_score is subtracted for each word: 2.6875 - 2 * 0.5. */
static void test_example_word_score(void **state) {
  (void)state;
  struct example e = example_of(TWO_WORDS, two_words, 3, 2);
  e.options.word_score = 0.5f;
  example_expect(&e, NULL, "1[0,2) 2[2,3)", 1.6875, 0);
}

/* After two frames the token of state 1 (A, A) costs 0.5 + 0.0625 + 1 + 0.5 = 2.0625. That of state
 * 2 (A, B) costs 0.5 + 0.25 + 0.125 + 1 + 3 = 4.875, but state 2 is final: it wins. */
static void test_example_final_states_win(void **state) {
  (void)state;
  struct example e = example_of(TWO_WORDS, two_words, 2, 2);
  example_expect(&e, NULL, "1[0,1) 2[1,2)", 4.875, 0);
}

/* After one frame there is no token in a final state: the best token, without a final cost. */
static void test_example_not_final(void **state) {
  (void)state;
  struct example e = example_of(TWO_WORDS, two_words, 1, 2);
  example_expect(&e, NULL, "1[0,1)", 1.5, WF_RESULT_NOT_FINAL);
}

/* Frame 1: relative to its token, the self-loop costs 0.0625 + 0.5 = 0.5625 and the arc to state 2
 * costs 0.25 + 3 = 3.25. A beam of 1 drops candidates above 0.5625 + 1, so state 2 is lost. With a
 * min_active of 2 both stay. */
static void test_example_beam(void **state) {
  (void)state;
  struct example e = example_of(TWO_WORDS, two_words, 2, 2);
  e.options.beam = 1;
  example_expect(&e, NULL, "1[0,2)", 2.0625, WF_RESULT_NOT_FINAL);
  e.options.min_active = 2;
  example_expect(&e, NULL, "1[0,1) 2[1,2)", 4.875, 0);
}

/* A log-likelihood of -infinity makes an arc impossible. If no arc is possible, the search dies.
 * The result then covers the frames before. */
static void test_example_died(void **state) {
  (void)state;
  static const float scores[] = {-1, -2, -INFINITY, -INFINITY, -4, -0.25f};
  struct example e = example_of(TWO_WORDS, scores, 3, 2);
  example_expect(&e, NULL, "1[0,1)", 1.5, WF_RESULT_DIED | WF_RESULT_NOT_FINAL);
}

/* Arcs with label 0 (epsilon) read no frame. One frame, two arcs: 0.5 + 1 + 0.25.
 *
 *          A:1/0.5           -:2/0.25
 *   (0) -------------> (1) -------------> ((2))   */
static void test_example_epsilon(void **state) {
  (void)state;
  struct example e = example_of("0 1 1 1 0.5\n1 2 0 2 0.25\n2\n", two_words, 1, 2);
  example_expect(&e, NULL, "1[0,1) 2[1,1)", 1.75, 0);
}

/* --- random tasks ------------------------------------------------------------------------- */

static void test_against_oracle(void **state) {
  (void)state;
  int finals = 0, dead = 0, narrowed = 0, overflown = 0, tight = 0, worded = 0;
  oracle_result *expected = malloc(sizeof *expected);
  for (uint64_t seed = 1; seed <= 6000; seed++) {
    struct decode_task task = test_random_task(seed);
    wf_result *result = test_decode_alone(&task);
    oracle_decode(wf_graph_fst(task.graph), &task.options, &task.scores, expected, NULL);
    assert_int_equal(result->status, expected->fits ? WF_OK : WF_ERR_LIMIT);
    tight += !expected->fits;
    if (!expected->fits) {
      wf_result_free(result);
      test_free_task(&task);
      continue;
    }
    bool same = result->flags == expected->flags && result->num_decoded == expected->num_decoded &&
                result->graph_cost == expected->graph_cost &&
                result->acoustic_cost == expected->acoustic_cost &&
                (int)result->num_words == expected->num_words &&
                (result->num_words == 0 ||
                 memcmp(result->words, expected->words, result->num_words * sizeof(wf_word)) == 0);
    int64_t t = 0;
    for (int i = 0; i < expected->num_arcs; i++) {
      int32_t ilabel = wf_fst_get_view(wf_graph_fst(task.graph)).arcs[expected->arcs[i]].ilabel;
      if (ilabel != 0 && result->alignment[t++] != ilabel) same = false;
    }
    if (!same)
      fail_msg("seed %llu: flags %u/%u decoded %lld/%lld cost %.9g+%.9g / %.9g+%.9g words %zu/%d",
               (unsigned long long)seed, result->flags, expected->flags,
               (long long)result->num_decoded, (long long)expected->num_decoded, result->graph_cost,
               result->acoustic_cost, expected->graph_cost, expected->acoustic_cost,
               result->num_words, expected->num_words);
    finals += !(result->flags & WF_RESULT_NOT_FINAL);
    dead += (result->flags & WF_RESULT_DIED) != 0;
    narrowed += (result->flags & WF_RESULT_NARROWED) != 0;
    overflown += (result->flags & WF_RESULT_OVERFLOW) != 0;
    worded += result->num_words > 0;
    wf_result_free(result);
    test_free_task(&task);
  }
  free(expected);
  assert_true(finals > 1000 && dead > 300 && narrowed > 300 && overflown > 300 && tight > 20 &&
              worded > 1000); /* the tasks cover what they should */
}

static void test_against_all_paths(void **state) {
  (void)state;
  int compared = 0;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    struct decode_task task = test_random_task(seed);
    task.options.beam = 1e6f;
    task.options.max_active = task.options.max_tokens = 1000000;
    double best = oracle_best_cost(wf_graph_fst(task.graph), &task.options, &task.scores);
    wf_result *result = test_decode_alone(&task);
    assert_int_equal((result->flags & WF_RESULT_NOT_FINAL) != 0, best == INFINITY);
    if (best != INFINITY) {
      if (fabs(result->cost - best) > 1e-4)
        fail_msg("seed %llu: cost %.9g, best path %.9g", (unsigned long long)seed, result->cost,
                 best);
      compared++;
    }
    wf_result_free(result);
    test_free_task(&task);
  }
  assert_true(compared > 1000);
}

/* --- batches, threads, long audio -------------------------------------------------------- */

static void test_batches(void **state) {
  (void)state;
  enum { COUNT = 40 };
  wf_error err = {0};
  struct decode_task task = test_random_task(77);
  wf_scores batch[COUNT], shuffled[COUNT];
  float *data[COUNT];
  wf_result *alone[COUNT], *together[COUNT];
  test_random_batch(&task, batch, data, COUNT, 5, 80);
  for (size_t i = 0; i < COUNT; i++) {
    task.scores = batch[i];
    alone[i] = test_decode_alone(&task);
    shuffled[i] = batch[(i * 7 + 3) % COUNT];
  }
  for (int threads = 1; threads <= 5; threads += 2) {
    wf_decoder *decoder;
    task.options.num_threads = threads;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    for (int round = 0; round < 2;
         round++) { /* a used decoder gives the same results as a new one */
      assert_ok(test_decode(decoder, shuffled, COUNT, NULL, together, &err));
      for (size_t i = 0; i < COUNT; i++) {
        test_assert_same_result(together[i], alone[(i * 7 + 3) % COUNT]);
        wf_result_free(together[i]);
      }
    }
    wf_decoder_free(decoder);
  }
  for (size_t i = 0; i < COUNT; i++) {
    wf_result_free(alone[i]);
    free(data[i]);
  }
  test_free_task(&task);
}

/* Long enough that the token history is garbage-collected many times. Words and cost must equal
 * those of unpruned dynamic programming. */
static void test_long_audio(void **state) {
  (void)state;
  test_rng rng = {3};
  struct decode_task task = {0};
  wf_error err = {0};
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
  task.options.beam = 1e4f;
  task.options.num_threads = 1;
  task.scores = (wf_scores){.num_frames = 20000, .num_columns = 8, .stride = 8};
  task.data = malloc(20000 * 8 * sizeof *task.data);
  for (int i = 0; i < 20000 * 8; i++) task.data[i] = -(float)test_below(&rng, 64) / 8;
  task.scores.data = task.data;
  wf_result *result = test_decode_alone(&task);
  assert_int_equal(result->status, WF_OK);
  assert_true(result->num_tokens > 4000000);
  double best = oracle_best_cost(wf_graph_fst(task.graph), &task.options, &task.scores);
  assert_true(fabs(result->cost - best) < 1e-3);
  wf_result_free(result);
  test_free_task(&task);
}

/* --- bad input --------------------------------------------------------------------------- */

static void test_bad_scores(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1 0;1 1 2 0 0;1 0");
  wf_graph *graph;
  wf_decoder *decoder;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_int_equal(wf_graph_min_columns(graph), 2);
  assert_ok(wf_decoder_create(graph, NULL, &decoder, &err));
  float good[4] = {-1, -2, -3, -1}, nan[4] = {-1, -2, NAN, -1}, inf[4] = {INFINITY, 0, 0, 0},
        none[4] = {-INFINITY, -INFINITY, -1, -1}, huge[4] = {0, 0, 0, -1e30f};
  wf_scores batch[] = {{good, 2, 2, 2}, {nan, 2, 2, 2},  {inf, 2, 2, 2},  {none, 2, 2, 2},
                       {good, 4, 1, 1}, {good, 0, 2, 2}, {NULL, 0, 0, 0}, {good, 1, 2, 2},
                       {huge, 2, 2, 2}, {good, 2, 2, 1}, {NULL, 3, 2, 2}};
  wf_result *results[11];
  assert_ok(test_decode(decoder, batch, 11, NULL, results, &err));
  assert_int_equal(results[0]->status, WF_OK);
  assert_int_equal(results[0]->num_words, 1);
  assert_int_equal(results[0]->words[0].end_frame, 2);
  assert_int_equal(results[1]->status, WF_ERR_ARGUMENT);
  assert_non_null(strstr(results[1]->message, "frame 1, column 0"));
  assert_int_equal(results[2]->status, WF_ERR_ARGUMENT);
  assert_int_equal(results[3]->status, WF_OK); /* every token dies at the first frame */
  assert_int_equal(results[3]->flags, WF_RESULT_DIED | WF_RESULT_NOT_FINAL);
  assert_int_equal(results[3]->num_decoded, 0);
  assert_int_equal(results[4]->status, WF_ERR_ARGUMENT);
  assert_non_null(strstr(results[4]->message, "1 columns"));
  assert_int_equal(results[5]->status, WF_OK); /* no words, and the start is not final */
  assert_int_equal(results[5]->flags, WF_RESULT_NOT_FINAL);
  assert_int_equal(results[6]->status, WF_OK);
  assert_int_equal(results[7]->status, WF_OK);
  assert_int_equal(results[7]->flags, 0);
  for (int i = 8; i < 11; i++) assert_int_equal(results[i]->status, WF_ERR_ARGUMENT);
  for (int i = 0; i < 11; i++) wf_result_free(results[i]);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

static void test_bad_graphs(void **state) {
  (void)state;
  wf_error err = {0};
  wf_graph *graph = NULL;
  static const char *const bad[] = {"0 1 1 1 0;1 2 0 0 -1;2 1 0 0 0.5;2 0", "0 0 0 0 -0.5;0 0",
                                    "0 1 1 1 1e25;1 0"};
  static const wf_status expected[] = {WF_ERR_NEGATIVE_CYCLE, WF_ERR_NEGATIVE_CYCLE,
                                       WF_ERR_ARGUMENT};
  for (size_t i = 0; i < 3; i++) {
    wf_fst *fst = test_fst_of(WF_TROPICAL, bad[i]);
    assert_int_equal(wf_graph_create(fst, NULL, 0, &graph, &err), expected[i]);
    assert_null(graph);
    wf_fst_free(fst);
  }
  /* a cycle of cost zero is accepted, as is a negative chain */
  wf_fst *fine = test_fst_of(WF_TROPICAL, "0 1 1 1 0;1 2 0 0 -1;2 1 0 0 1;2 3 0 0 -5;3 0");
  assert_ok(wf_graph_create(fine, NULL, 0, &graph, &err));
  wf_graph_free(graph);
  int32_t columns[] = {-1, 7}, short_columns[] = {-1}, negative[] = {-1, -1};
  assert_ok(wf_graph_create(fine, columns, 2, &graph, &err));
  assert_int_equal(wf_graph_min_columns(graph), 8);
  wf_graph_free(graph);
  assert_int_equal(wf_graph_create(fine, short_columns, 1, &graph, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_graph_create(fine, negative, 2, &graph, &err), WF_ERR_ARGUMENT);
  wf_fst_free(fine);
  /* word_score can make a cycle negative that is not negative in the graph. That is an error of the
   * utterance, not a hang. */
  wf_fst *loop = test_fst_of(WF_TROPICAL, "0 1 1 0 0;1 1 0 5 0;1 0");
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  options.word_score = 1;
  wf_decoder *decoder;
  wf_result *result;
  float score = 0;
  assert_ok(wf_graph_create(loop, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode(decoder, &(wf_scores){&score, 1, 1, 1}, 1, NULL, &result, &err));
  assert_int_equal(result->status, WF_ERR_NEGATIVE_CYCLE);
  wf_result_free(result);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(loop);
  wf_fst *empty;
  wf_builder *builder;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_finish(builder, NULL, NULL, &empty, &err));
  assert_int_equal(wf_graph_create(empty, NULL, 0, &graph, &err), WF_ERR_ARGUMENT);
  wf_builder_free(builder);
  wf_fst_free(empty);
}

static bool stop_at_once(void *user, const char *stage, double fraction) {
  (void)user, (void)stage, (void)fraction;
  return false;
}

/* Scores that 16 bits represent exactly give the same result in every number format. */
static void test_number_formats(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    struct decode_task task = test_random_task(seed);
    size_t count = (size_t)(task.scores.num_frames * task.scores.stride);
    uint16_t *half = malloc((count + 1) * sizeof *half),
             *brain = malloc((count + 1) * sizeof *brain);
    test_rng rng = {seed};
    for (size_t i = 0; i < count; i++) {
      uint32_t eighths = test_below(&rng, 64); /* -0.125 * eighths: at most 6 significant bits */
      float value = eighths == 63 ? -INFINITY : -(float)eighths / 8;
      uint32_t bits;
      memcpy(&bits, &value, sizeof bits);
      task.data[i] = value;
      brain[i] = (uint16_t)(bits >> 16);
      half[i] = value == 0 ? 0x8000
                : eighths == 63
                    ? 0xfc00
                    : (uint16_t)(0x8000 | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 1023));
    }
    wf_result *full = test_decode_alone(&task);
    const void *data[] = {half, brain};
    for (int format = 0; format < 2; format++) {
      task.scores.data = data[format];
      task.scores.dtype = format == 0 ? WF_FLOAT16 : WF_BFLOAT16;
      wf_result *result = test_decode_alone(&task);
      if (full->status == WF_OK) test_assert_same_result(result, full);
      assert_int_equal(result->status, full->status);
      wf_result_free(result);
    }
    wf_result_free(full);
    free(half);
    free(brain);
    test_free_task(&task);
  }
}

static void test_cancel(void **state) {
  (void)state;
  wf_error err = {0};
  struct decode_task task = test_random_task(12);
  wf_decoder *decoder;
  wf_result *results[3] = {0};
  wf_scores batch[3] = {task.scores, task.scores, task.scores};
  wf_progress progress = {stop_at_once, NULL};
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  assert_int_equal(test_decode(decoder, batch, 3, &progress, results, &err), WF_ERR_CANCELLED);
  for (int i = 0; i < 3; i++) assert_null(results[i]);
  wf_decoder_free(decoder);
  test_free_task(&task);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_example_best_path),
                                     cmocka_unit_test(test_example_acoustic_scale),
                                     cmocka_unit_test(test_example_word_score),
                                     cmocka_unit_test(test_example_final_states_win),
                                     cmocka_unit_test(test_example_not_final),
                                     cmocka_unit_test(test_example_beam),
                                     cmocka_unit_test(test_example_died),
                                     cmocka_unit_test(test_example_epsilon),
                                     cmocka_unit_test(test_against_oracle),
                                     cmocka_unit_test(test_against_all_paths),
                                     cmocka_unit_test(test_batches),
                                     cmocka_unit_test(test_long_audio),
                                     cmocka_unit_test(test_bad_scores),
                                     cmocka_unit_test(test_bad_graphs),
                                     cmocka_unit_test(test_number_formats),
                                     cmocka_unit_test(test_cancel)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
