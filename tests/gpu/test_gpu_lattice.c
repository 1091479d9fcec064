/* test_gpu_lattice.c - raw lattices of the GPU search must equal those of the CPU search, byte for
 * byte, and those of a brute-force decoder. Exits with 77 if there is no GPU. */
#include "decode_tasks.h"
#include "lattice_oracle.h"
#include "lattice_paths.h"
#include "random_scorers.h"
#include "search/decode_graph.h"

enum { BATCH = 12 };

static const float beams[] = {0.125f, 0.5f, 2, 8, 1000};

static void free_batch(wf_result **cpu, wf_result **gpu, float **data, size_t count) {
  test_free_results(cpu, count);
  test_free_results(gpu, count);
  for (size_t i = 0; i < count; i++) free(data[i]);
}

/* Compares the first utterance's lattice with that of the brute-force decoder. */
static void check_against_oracle(const struct decode_task *task, const wf_result *result,
                                 uint64_t seed) {
  wf_lattice_view expected;
  bool fits = oracle_lattice(wf_graph_fst(task->graph), &task->options, &task->scores, &expected);
  assert_int_equal(result->status, fits ? WF_OK : WF_ERR_LIMIT);
  if (!fits) return;
  wf_lattice_view lattice = wf_lattice_get_view(result->lattice);
  if (!oracle_same_lattice(&lattice, &expected, seed)) fail();
  oracle_check_shape(&lattice, result->num_decoded);
  oracle_free_view(&expected);
}

static void set_blank_options(wf_decoder_options *options, uint64_t seed) {
  static const float thresholds[] = {0.2f, 0.05f, 0.6f, 1}, penalties[] = {0, 0.75f, -0.5f};
  options->blank = 0;
  options->blank_skip_threshold = thresholds[seed % 4];
  options->blank_penalty = penalties[seed / 3 % 3];
}

/* Counts the frames that have no state in the lattice. */
static int64_t count_skipped(const wf_lattice_view *lattice, int64_t num_decoded) {
  int64_t count = num_decoded, last = -1;
  for (uint64_t s = 0; s < lattice->num_states; s++) {
    if (lattice->frames[s] != last && lattice->frames[s] < num_decoded) count--;
    last = lattice->frames[s];
  }
  return count;
}

/* Random tasks with ties, epsilon cycles, negative weights, frames where all paths end, and tight
 * limits, in batches of 1 to 12 utterances. With one utterance, lanes have several blocks. */
static void test_random_tasks(void **state) {
  (void)state;
  uint32_t flags = 0;
  uint64_t arcs = 0, epsilons = 0, branches = 0, cyclic = 0, skipped = 0;
  for (uint64_t seed = 1; seed <= test_seeds(400); seed++) {
    struct decode_task task = test_random_task(seed);
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_result *cpu[BATCH], *gpu[BATCH];
    const size_t count = 1 + seed * 7 % BATCH;
    test_random_batch(&task, batch, data, count, seed, 20);
    batch[0] = task.scores;
    task.options.lattice_beam = beams[seed % 5];
    task.options.lattice_prune_interval = 1 + (int32_t)(seed % 7);
    if (seed % 11 == 0) task.options.max_tokens = 100000; /* lanes of eight blocks */
    const bool blanks = seed % 3 == 1 && wf_graph_min_columns(task.graph) > 0;
    if (blanks) set_blank_options(&task.options, seed);
    test_decode_on("cpu", task.graph, task.options, batch, count, cpu);
    test_decode_on("cuda", task.graph, task.options, batch, count, gpu);
    test_assert_same_batch(seed, cpu, gpu, count);
    if (!blanks) check_against_oracle(&task, gpu[0], seed);
    for (size_t i = 0; i < count; i++) {
      flags |= gpu[i]->flags;
      if (gpu[i]->lattice == NULL) continue;
      wf_lattice_view lattice = wf_lattice_get_view(gpu[i]->lattice);
      arcs += lattice.num_arcs;
      branches += lattice.num_arcs >= lattice.num_states;
      for (uint64_t a = 0; a < lattice.num_arcs; a++) epsilons += lattice.arcs[a].ilabel == 0;
      cyclic += task.graph->epsilon_components != NULL;
      skipped += blanks && count_skipped(&lattice, gpu[i]->num_decoded) > 0;
    }
    free_batch(cpu, gpu, data, count);
    test_free_task(&task);
  }
  if (test_seeds(400) < 400) return;
  assert_int_equal(flags,
                   WF_RESULT_NOT_FINAL | WF_RESULT_NARROWED | WF_RESULT_DIED | WF_RESULT_OVERFLOW);
  assert_true(arcs > 20000 && epsilons > 3000 && branches > 300 && cyclic > 300 && skipped > 50);
}

/* A lattice does not depend on the other utterances of the batch, the utterance's place in it, or
 * the number of blocks of its lane. */
static void test_lattices_do_not_depend_on_the_batch(void **state) {
  (void)state;
  enum { MANY = 60 };
  wf_error err = {0};
  for (uint64_t seed = 1; seed <= (test_seeds(400) < 400 ? 1 : 8); seed++) {
    struct decode_task task = test_random_task(700 + seed);
    wf_scores all[MANY], some[MANY];
    float *data[MANY];
    wf_result *want[MANY], *got[MANY];
    wf_decoder *decoder;
    test_rng rng = {seed};
    test_random_batch(&task, all, data, MANY, seed, 25);
    task.options.lattice_beam = beams[seed % 4];
    test_decode_on("cpu", task.graph, task.options, all, MANY, want);
    task.options.device = "cuda";
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    for (int round = 0; round < (test_seeds(400) < 400 ? 2 : 6); round++) {
      uint32_t order[MANY];
      size_t count = round == 0 ? MANY : 1 + test_below(&rng, 1 + test_below(&rng, MANY));
      for (uint32_t i = 0; i < MANY; i++) order[i] = i;
      for (uint32_t i = 0; i < count; i++) {
        uint32_t k = i + test_below(&rng, MANY - i), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
        some[i] = all[order[i]];
      }
      assert_ok(test_decode(decoder, some, count, NULL, got, &err));
      for (uint32_t i = 0; i < count; i++)
        test_assert_same_batch(seed, &want[order[i]], &got[i], 1);
      test_free_results(got, count);
    }
    wf_decoder_free(decoder);
    free_batch(want, got, data, 0);
    for (size_t i = 0; i < MANY; i++) {
      wf_result_free(want[i]);
      free(data[i]);
    }
    test_free_task(&task);
  }
}

/* Decodes twice more without keeping raw lattices, so that their memory is used again. */
static void check_without_raw(wf_decoder *decoder, const wf_scores *batch,
                              const wf_scorer *const *scorers, size_t count,
                              wf_result *const *expected) {
  wf_error err = {0};
  wf_result *results[BATCH];
  wf_lattice_results_options o;
  wf_lattice_results_options_init(&o);
  o.keep_raw = false;
  assert_ok(wf_decoder_set_lattice_results(decoder, &o, &err));
  for (int turn = 0; turn < 2; turn++) {
    assert_ok(test_decode_scored(decoder, batch, scorers, count, NULL, results, &err));
    for (size_t i = 0; i < count; i++) {
      assert_int_equal(results[i]->determinized != NULL, expected[i]->determinized != NULL);
      if (results[i]->determinized == NULL) continue;
      assert_null(results[i]->lattice);
      assert_true(
          test_same_compact(results[i]->determinized->lattice, expected[i]->determinized->lattice));
    }
    test_free_results(results, count);
  }
}

/* A batch has several scorers of all kinds; some utterances have none. Some tasks have blank
 * options. tests/scorer/test_scorer.c compares the CPU's lattices with brute force. */
static void test_lattices_with_scorers(void **state) {
  (void)state;
  enum { SCORERS = 4 };
  wf_error err = {0};
  struct test_heard misfits = {"did not fit", 0};
  uint64_t arcs = 0, scored = 0, pairs = 0;
  wf_lattice_determinize_options determinizing;
  wf_lattice_determinize_options_init(&determinizing);
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= test_seeds(400); seed++) {
    test_rng rng = {seed};
    struct decode_task task = test_random_task(seed + 3000);
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_scorer *scorers[SCORERS];
    const wf_scorer *chosen[BATCH];
    wf_result *results[2][BATCH];
    const size_t count = seed % 3 == 0 ? 1 : seed % 3 == 1 ? BATCH : 4;
    test_random_batch(&task, batch, data, BATCH, seed, 20);
    for (int i = 0; i < SCORERS; i++) scorers[i] = random_scorer(&rng, words);
    for (int i = 0; i < BATCH; i++)
      chosen[i] = test_below(&rng, 8) == 0 ? NULL : scorers[test_below(&rng, SCORERS)];
    for (size_t i = 0; i < BATCH && seed % 4 > 1; i++) /* makes scores tie */
      for (int64_t k = 0; k < batch[i].num_frames * batch[i].stride; k++)
        data[i][k] = floorf(data[i][k]);
    task.options.lattice_beam = beams[seed % 4];
    if (seed % 5 == 0 && wf_graph_min_columns(task.graph) > 0)
      set_blank_options(&task.options, seed);
    for (int k = 0; k < 2; k++) {
      wf_decoder *decoder;
      task.options.device = k == 0 ? "cpu" : "cuda";
      wf_set_log(test_listen, &misfits);
      assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
      if (seed % 2 == 0) assert_ok(wf_decoder_set_determinization(decoder, &determinizing, &err));
      assert_ok(test_decode_scored(decoder, batch, chosen, count, NULL, results[k], &err));
      if (seed % 2 == 0 && k == 1) check_without_raw(decoder, batch, chosen, count, results[0]);
      wf_set_log(NULL, NULL);
      wf_decoder_free(decoder);
    }
    test_assert_same_batch(seed, results[0], results[1], count);
    for (size_t i = 0; i < count; i++) {
      if (results[1][i]->lattice == NULL) continue;
      assert_int_equal(results[1][i]->determinized != NULL, seed % 2 == 0);
      if (seed % 2 == 0)
        assert_true(test_same_compact(results[0][i]->determinized->lattice,
                                      results[1][i]->determinized->lattice));
      wf_lattice_view lattice = wf_lattice_get_view(results[1][i]->lattice);
      arcs += lattice.num_arcs;
      for (uint64_t a = 0; a < lattice.num_arcs; a++) scored += lattice.arcs[a].scorer_cost != 0;
      for (uint64_t s = 1; s < lattice.num_states; s++)
        pairs += lattice.frames[s] == lattice.frames[s - 1];
    }
    test_free_results(results[0], count);
    test_free_results(results[1], count);
    for (size_t i = 0; i < BATCH; i++) free(data[i]);
    for (int i = 0; i < SCORERS; i++) wf_scorer_free(scorers[i]);
    test_free_task(&task);
  }
  wf_symbols_free(words);
  assert_int_equal(misfits.times, 0);
  if (test_seeds(400) < 400) return;
  assert_true(arcs > 20000 && scored > 2000 && pairs > 5000);
}

/* A graph in which all states are alive after a few frames. */
static struct decode_task wide_task(uint32_t num_states, uint32_t num_arcs) {
  wf_error err = {0};
  test_rng rng = {9};
  struct decode_task task = {.scores = {.num_columns = 8}};
  test_fst_shape shape = {.num_states = num_states,
                          .num_arcs = num_arcs,
                          .num_ilabels = 8,
                          .num_olabels = 50,
                          .epsilon_share = 0.1f,
                          .final_share = 0.5f,
                          .max_weight = 2};
  wf_fst *fst = test_random_fst(&rng, &shape);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  task.options.beam = 100;
  task.options.max_active = task.options.max_tokens = (int32_t)num_states;
  return task;
}

static void decode_with(const char *device, struct decode_task *task, const wf_scores *batch,
                        const wf_scorer *scorer, size_t count, wf_result **results) {
  wf_error err = {0};
  wf_decoder *decoder;
  const wf_scorer *scorers[BATCH] = {scorer}; /* only the first utterance has it */
  task->options.device = device;
  assert_ok(wf_decoder_create(task->graph, &task->options, &decoder, &err));
  assert_ok(test_decode_scored(decoder, batch, scorer != NULL ? scorers : NULL, count, NULL,
                               results, &err));
  wf_decoder_free(decoder);
}

/* Decodes a batch of utterances of about num_frames frames. If `tight`, gives the GPU the smallest
 * memory that still allows as many lanes. Returns how many utterances did not fit the GPU. */
static int decode_long(struct decode_task *task, bool tight, const wf_scorer *scorer,
                       int64_t num_frames, size_t count) {
  wf_error err = {0};
  wf_scores batch[BATCH];
  float *data[BATCH];
  wf_result *cpu[BATCH], *gpu[BATCH];
  wf_plan full, plan;
  struct test_heard misfits = {"did not fit", 0};
  wf_batch_shape shape = {.num_utterances = count, .max_frames = num_frames};
  test_rng rng = {5};
  for (size_t i = 0; i < count; i++) {
    const int64_t frames = num_frames - 3 * (int64_t)i, columns = task->scores.num_columns;
    data[i] = malloc((size_t)(frames * columns) * sizeof **data);
    for (int64_t k = 0; k < frames * columns; k++) data[i][k] = -test_unit(&rng) * 4;
    batch[i] = (wf_scores){
        .data = data[i], .num_frames = frames, .num_columns = (int32_t)columns, .stride = columns};
    shape.sum_frames += frames;
  }
  task->options.device = "cuda";
  task->options.gpu_memory = 0;
  assert_ok(wf_plan_batch(task->graph, &task->options, &shape, &full, &err));
  for (plan = full; tight;) {
    const int64_t enough = task->options.gpu_memory;
    task->options.gpu_memory = (int64_t)(plan.total_bytes - plan.total_bytes / 128);
    if (wf_plan_batch(task->graph, &task->options, &shape, &plan, &err) == WF_OK &&
        plan.num_lanes == full.num_lanes)
      continue;
    task->options.gpu_memory = enough;
    assert_ok(wf_plan_batch(task->graph, &task->options, &shape, &plan, &err));
    assert_true(plan.trace_bytes * 2 < full.trace_bytes);
    break;
  }
  decode_with("cpu", task, batch, scorer, count, cpu);
  wf_set_log(test_listen, &misfits);
  decode_with("cuda", task, batch, scorer, count, gpu);
  wf_set_log(NULL, NULL);
  test_assert_same_batch((uint64_t)count, cpu, gpu, count);
  free_batch(cpu, gpu, data, count);
  return misfits.times;
}

/* The trace memory fills repeatedly and is pruned, with frames that were pruned before and frames
 * that were not. Lanes have one block, then several. */
static void test_pruning_when_memory_is_full(void **state) {
  (void)state;
  const bool few = test_seeds(400) < 400;
  struct decode_task task = few ? wide_task(150, 600) : wide_task(400, 1600);
  for (size_t count = 1; count <= (few ? 1 : BATCH); count += BATCH - 1) {
    task.options.lattice_beam = 0.5f;
    if (count > 1 || few) set_blank_options(&task.options, 4); /* 1/6 of the frames are skipped */
    assert_int_equal(decode_long(&task, true, NULL, few ? 40 : 400, count), 0);
  }
  test_free_task(&task);
}

/* The lattices have more arcs than fit the pages, so the CPU decodes these utterances. */
static void test_too_few_pages(void **state) {
  (void)state;
  struct decode_task task = wide_task(400, 4000);
  task.options.lattice_beam = 1000;
  assert_true(decode_long(&task, false, NULL, test_seeds(400) < 400 ? 12 : 60, 2) > 0);
  test_free_task(&task);
}

/* A graph of a chain of `depth` arcs, then a binary tree of `depth` levels whose leaves are final.
 * So the frames have 1 token each, then 1, 2, 4, ... tokens. The chain makes the utterance long
 * enough that there are enough pages. */
static struct decode_task tree_task(int depth) {
  wf_error err = {0};
  test_rng rng = {11};
  struct decode_task task = {.scores = {.num_columns = 8}};
  wf_builder *builder = NULL;
  wf_fst *fst;
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  const uint32_t inner = (1u << depth) - 1, all = 2 * inner + 1;
  assert_ok(wf_builder_add_states(builder, all + (uint32_t)depth, NULL, &err));
  assert_ok(wf_builder_set_start(builder, all + (uint32_t)depth - 1, &err));
  for (uint32_t s = all; s < all + (uint32_t)depth; s++)
    assert_ok(wf_builder_add_arc(
        builder, s,
        (wf_arc){
            .ilabel = 1, .olabel = 0, .weight = 0, .nextstate = (int32_t)(s > all ? s - 1 : 0)},
        &err));
  for (uint32_t s = 0; s < all; s++) {
    if (s >= inner) assert_ok(wf_builder_set_final(builder, s, test_unit(&rng), &err));
    for (uint32_t to = 2 * s + 1; s < inner && to <= 2 * s + 2; to++)
      assert_ok(wf_builder_add_arc(builder, s,
                                   (wf_arc){.ilabel = 1 + (int32_t)(to % 8),
                                            .olabel = (int32_t)(to % 50),
                                            .weight = test_unit(&rng),
                                            .nextstate = (int32_t)to},
                                   &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  task.options.beam = task.options.lattice_beam = 1000;
  task.options.max_active = task.options.max_tokens = (int32_t)inner + 1;
  return task;
}

/* Frames have more tokens in the lattice than the tables of the second launch hold. On the imitated
 * GPU these tables are small. */
static void test_frames_of_many_tokens(void **state) {
  (void)state;
#ifdef SIMT
  const int depth = 8;
#else
  const int depth = 13;
#endif
  struct decode_task task = tree_task(depth);
  test_rng rng = {3};
  wf_symbols *words = random_scorer_words();
  wf_scorer *scorer = random_scorer(&rng, words);
  assert_int_equal(decode_long(&task, false, NULL, 2 * depth, 1), 0);
  assert_int_equal(decode_long(&task, false, scorer, 2 * depth, 2), 0);
  wf_scorer_free(scorer);
  wf_symbols_free(words);
  test_free_task(&task);
}

/* Full tables, and lanes of every number of blocks that max_tokens and the batch sizes give. */
static void test_large_tasks(void **state) {
  (void)state;
  struct decode_task task = test_large_task();
  const bool few = test_seeds(400) < 400;
  for (size_t k = 0; k < (few ? 3 : 15); k++) {
    size_t count = k % 3 == 0 ? 1 : k % 3 == 1 ? 5 : BATCH;
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_result *cpu[BATCH], *gpu[BATCH];
    test_set_large_limits(&task, k);
    task.options.lattice_beam = 1 + (float)(k % 4);
    if (few) count = 1 + k % 2;
    test_random_batch(&task, batch, data, count, k, few ? 6 : 40);
    test_decode_on("cpu", task.graph, task.options, batch, count, cpu);
    test_decode_on("cuda", task.graph, task.options, batch, count, gpu);
    test_assert_same_batch(k, cpu, gpu, count);
    free_batch(cpu, gpu, data, count);
  }
  wf_graph_free(task.graph);
}

/* A part of each test, for compute-sanitizer. */
static void test_small(void **state) {
  test_random_tasks(state);
  test_lattices_do_not_depend_on_the_batch(state);
  test_lattices_with_scorers(state);
  test_pruning_when_memory_is_full(state);
  test_frames_of_many_tokens(state);
}

static void test_races(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(8); seed++) {
    struct decode_task task = test_random_task(seed);
    task.options.lattice_beam = beams[seed % 4];
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
  const struct CMUnitTest kernels[] = {cmocka_unit_test(test_random_tasks),
                                       cmocka_unit_test(test_lattices_do_not_depend_on_the_batch),
                                       cmocka_unit_test(test_lattices_with_scorers),
                                       cmocka_unit_test(test_pruning_when_memory_is_full),
                                       cmocka_unit_test(test_too_few_pages),
                                       cmocka_unit_test(test_frames_of_many_tokens)};
  if (argc > 1 && strcmp(argv[1], "test_kernels") == 0)
    return cmocka_run_group_tests(kernels, NULL, NULL); /* on an imitated GPU */
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_tasks),
                                     cmocka_unit_test(test_lattices_do_not_depend_on_the_batch),
                                     cmocka_unit_test(test_lattices_with_scorers),
                                     cmocka_unit_test(test_pruning_when_memory_is_full),
                                     cmocka_unit_test(test_too_few_pages),
                                     cmocka_unit_test(test_frames_of_many_tokens),
                                     cmocka_unit_test(test_large_tasks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
