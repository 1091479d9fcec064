/* test_gpu_decode.c - the GPU search must give every bit of every result of the CPU search. Exits
 * with 77 if there is no GPU. Also compiled for the imitated GPU of tests/simt, which runs the same
 * kernels slowly, so with fewer seeds. */
#include "decode_tasks.h"

enum { BATCH = 24 };

/* Decodes on both devices. The caller frees the results. */
static void decode_both(const wf_graph *graph, wf_decoder_options options, const wf_scores *batch,
                        size_t count, wf_result **cpu, wf_result **gpu) {
  test_decode_on("cpu", graph, options, batch, count, cpu);
  test_decode_on("cuda", graph, options, batch, count, gpu);
}

static void test_random_tasks(void **state) {
  (void)state;
  uint32_t flags_seen = 0, errors_seen = 0;
  for (uint64_t seed = 1; seed <= test_seeds(400); seed++) {
    struct decode_task task = test_random_task(seed);
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_result *cpu[BATCH], *gpu[BATCH];
    test_random_batch(&task, batch, data, BATCH, seed, 20);
    batch[0] = task.scores;
    decode_both(task.graph, task.options, batch, BATCH, cpu, gpu);
    test_assert_same_batch(seed, cpu, gpu, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
      flags_seen |= cpu[i]->flags;
      errors_seen += cpu[i]->status != WF_OK;
      wf_result_free(cpu[i]);
      wf_result_free(gpu[i]);
      free(data[i]);
    }
    test_free_task(&task);
  }
  if (test_seeds(400) >= 400) {
    assert_int_equal(
        flags_seen, WF_RESULT_NOT_FINAL | WF_RESULT_NARROWED | WF_RESULT_DIED | WF_RESULT_OVERFLOW);
    assert_true(errors_seen > 0);
  }
}

/* With a penalty on blank, and with skipped blank frames. */
static void test_blank_skipping_and_penalty(void **state) {
  (void)state;
  static const float thresholds[] = {0.3f, 0, 0.7f, 1, 0.05f}, penalties[] = {0, 0.5f, -1.25f, 3};
  int64_t num_skipped = 0;
  for (uint64_t seed = 1; seed <= test_seeds(200); seed++) {
    struct decode_task task = test_random_task(seed + 1000);
    const int32_t num_columns = wf_graph_min_columns(task.graph);
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_result *cpu[BATCH], *gpu[BATCH];
    test_random_batch(&task, batch, data, BATCH, seed, seed % 4 == 0 ? 90 : 20);
    batch[0] = task.scores;
    task.options.blank = num_columns > 0 ? (int32_t)(seed % (uint64_t)num_columns) : -1;
    if (num_columns > 0) {
      task.options.blank_skip_threshold = thresholds[seed % 5];
      task.options.blank_penalty = penalties[seed % 4];
    }
    decode_both(task.graph, task.options, batch, BATCH, cpu, gpu);
    test_assert_same_batch(seed, cpu, gpu, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
      for (int64_t t = 0; t < gpu[i]->num_decoded; t++) num_skipped += gpu[i]->alignment[t] == 0;
      free(data[i]);
    }
    test_free_results(cpu, BATCH);
    test_free_results(gpu, BATCH);
    test_free_task(&task);
  }
  assert_true(num_skipped > 0);
}

/* The graph and the beams are large enough to fill the token tables. max_tokens and the batch sizes
 * give lanes of every number of blocks. */
static void test_large_tasks(void **state) {
  (void)state;
  const bool few = test_seeds(400) < 400;
  struct decode_task task = test_large_task();
  for (size_t k = 0; k < 15; k++) {
    size_t count = k % 3 == 0 ? 1 : k % 3 == 1 ? 5 : few ? 8 : 20;
    wf_scores batch[20];
    float *data[20];
    wf_result *cpu[20], *gpu[20];
    test_set_large_limits(&task, k);
    test_random_batch(&task, batch, data, count, k, few ? 5 : 40);
    decode_both(task.graph, task.options, batch, count, cpu, gpu);
    test_assert_same_batch(k, cpu, gpu, count);
    test_free_results(cpu, count);
    test_free_results(gpu, count);
    for (size_t i = 0; i < count; i++) free(data[i]);
  }
  wf_graph_free(task.graph);
}

/* max_tokens is one less than the widest frame needs, exactly as many, and one more. */
static void test_max_tokens_around_the_widest_frame(void **state) {
  (void)state;
  wf_error err = {0};
  enum { WIDTH = 300 };
  wf_builder *builder;
  wf_fst *fst;
  wf_graph *graph;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, WIDTH + 1, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 1; s <= WIDTH;
       s++) { /* the start state has an arc to every other state; those have self-loops */
    assert_ok(wf_builder_add_arc(
        builder, 0,
        (wf_arc){.nextstate = s, .weight = (float)s / 64, .ilabel = 1, .olabel = (int32_t)s},
        &err));
    assert_ok(wf_builder_add_arc(builder, s, (wf_arc){.nextstate = s, .ilabel = 1}, &err));
    assert_ok(wf_builder_set_final(builder, s, (float)(WIDTH - s) / 16, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  float scores[4] = {0};
  for (int room = WIDTH - 1; room <= WIDTH + 1; room++) {
    wf_decoder_options options;
    wf_decoder_options_init(&options);
    options.max_active = 10;
    options.min_active = 0;
    options.max_tokens = room;
    wf_result *cpu, *gpu;
    wf_scores one = {.data = scores, .num_frames = 1, .num_columns = 1, .stride = 1};
    decode_both(graph, options, &one, 1, &cpu, &gpu);
    test_assert_same_batch((uint64_t)room, &cpu, &gpu, 1);
    assert_int_equal((cpu->flags & WF_RESULT_OVERFLOW) != 0, room < WIDTH);
    assert_int_equal(
        cpu->words[0].label,
        room < WIDTH ? WIDTH - 1 : WIDTH); /* the dropped state has the best final path */
    wf_result_free(cpu);
    wf_result_free(gpu);
  }
  wf_graph_free(graph);
  wf_fst_free(fst);
}

static void test_bad_scores(void **state) {
  (void)state;
  wf_error err = {0};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 1 1 1 0;1 1 2 0 0;1 0");
  wf_graph *graph;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  float good[4] = {-1, -2, -3, -1}, nan[4] = {-1, -2, NAN, -1}, inf[4] = {INFINITY, 0, 0, 0},
        none[4] = {-INFINITY, -INFINITY, -1, -1};
  wf_scores batch[] = {{good, 2, 2, 2}, {nan, 2, 2, 2},  {inf, 2, 2, 2}, {none, 2, 2, 2},
                       {good, 4, 1, 1}, {good, 0, 2, 2}, {NULL, 0, 0, 0}};
  wf_result *cpu[7], *gpu[7];
  wf_decoder_options options;
  wf_decoder_options_init(&options);
  decode_both(graph, options, batch, 7, cpu, gpu);
  test_assert_same_batch(0, cpu, gpu, 7);
  for (size_t i = 0; i < 7; i++) assert_string_equal(cpu[i]->message, gpu[i]->message);
  test_free_results(cpu, 7);
  test_free_results(gpu, 7);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

/* A part of each test, for compute-sanitizer. */
static void test_small(void **state) {
  test_max_tokens_around_the_widest_frame(state);
  test_bad_scores(state);
  test_random_tasks(state);
  test_blank_skipping_and_penalty(state);
}

static void test_races(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(8); seed++) {
    struct decode_task task = test_random_task(seed);
    test_short_batch(&task, NULL, seed);
    test_free_task(&task);
  }
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest races[] = {cmocka_unit_test(test_races)};
  if (argc > 1 && strcmp(argv[1], "test_races") == 0)
    return cmocka_run_group_tests(races, NULL, NULL);
  const struct CMUnitTest small[] = {cmocka_unit_test(test_small)};
  if (argc > 1 && strcmp(argv[1], "test_small") == 0)
    return cmocka_run_group_tests(small, NULL, NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_max_tokens_around_the_widest_frame), cmocka_unit_test(test_bad_scores),
      cmocka_unit_test(test_random_tasks), cmocka_unit_test(test_blank_skipping_and_penalty),
      cmocka_unit_test(test_large_tasks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
