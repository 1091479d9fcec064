/* test_gpu_scorer.c - with scorers, the GPU search must give every bit of every result of the CPU
 * search. Compiled for a GPU and for imitated ones, like test_gpu_host.c. Exits with 77 if there is
 * no GPU. */
#ifdef FAKE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "decode_tasks.h"
#include "lm/lm.h"
#include "random_fsts.h"
#include "random_scorers.h"
#include "table_scorer.h"

enum { BATCH = 12, SCORERS = 5 };
/* A batch where sizes do not matter: an utterance for each worker, and frames. */
enum { COUNTED = 3, COUNTED_FRAMES = 3 };

static wf_error err;

/* Counts utterances that did not fit the GPU. The CPU decodes these, so they would test nothing. */
static void count_misfits(void *user, wf_log_level level, const char *text) {
  *(int *)user += strstr(text, "did not fit") != NULL;
}

static void decode_on(const char *device, const wf_graph *graph, wf_decoder_options options,
                      const wf_scores *batch, const wf_scorer *const *scorers, size_t count,
                      wf_result **results) {
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(test_decode_scored(decoder, batch, scorers, count, NULL, results, &err));
  wf_decoder_free(decoder);
}

static void compare(uint64_t seed, const wf_graph *graph, wf_decoder_options options,
                    const wf_scores *batch, const wf_scorer *const *scorers, size_t count,
                    wf_result **cpu) {
  static const char *const devices[] = {"cuda", "cuda:0,0"};
  wf_result *gpu[BATCH];
  decode_on("cpu", graph, options, batch, scorers, count, cpu);
  int misfits = 0;
  wf_set_log(count_misfits, &misfits);
  decode_on(devices[seed % 2], graph, options, batch, scorers, count, gpu);
  wf_set_log(NULL, NULL);
  assert_int_equal(misfits, 0);
  test_assert_same_batch(seed, cpu, gpu, count);
  test_free_results(gpu, count);
}

/* One batch has utterances with several scorers of all kinds, or of boosts alone, and some without
 * a scorer. */
static void random_tasks(uint64_t first, uint64_t last) {
  uint32_t flags_seen = 0, cycles = 0, said = 0;
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = first; seed <= last; seed++) {
    test_rng rng = {seed};
    struct decode_task task = test_random_task(seed);
    const size_t count = seed % 3 == 0   ? 1
                         : seed % 3 == 1 ? BATCH
                                         : 3; /* with few utterances, lanes have several blocks */
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_scorer *scorers[SCORERS];
    const wf_scorer *chosen[BATCH];
    wf_result *cpu[BATCH];
    for (int i = 0; i < SCORERS; i++) scorers[i] = random_scorer(&rng, seed % 7 < 3 ? NULL : words);
    for (int i = 0; i < BATCH; i++)
      chosen[i] = test_below(&rng, 8) == 0 ? NULL : scorers[test_below(&rng, SCORERS)];
    task.options.recombine = (int32_t)(seed % 5 >= 3);
    if (seed % 5 == 3) { /* only the beam prunes, and it is so narrow that costs of wrong contexts
                            would change the results */
      task.options.beam = 2;
      task.options.max_active = task.options.max_tokens = 10000;
    }
    test_random_batch(&task, batch, data, BATCH, seed, 20);
    for (size_t i = 0; i < BATCH && seed % 4 > 0; i++) /* makes scores tie: rounded, or all equal */
      for (int64_t k = 0; k < batch[i].num_frames * batch[i].stride; k++)
        data[i][k] = seed % 4 == 1 ? floorf(data[i][k]) : -1;
    batch[0] = task.scores;
    compare(seed, task.graph, task.options, batch, chosen, count, cpu);
    for (size_t i = 0; i < BATCH; i++) free(data[i]);
    for (size_t i = 0; i < count; i++) {
      flags_seen |= cpu[i]->flags;
      cycles += cpu[i]->status == WF_ERR_NEGATIVE_CYCLE;
      said += cpu[i]->scorer_cost != 0;
      wf_result_free(cpu[i]);
    }
    for (int i = 0; i < SCORERS; i++) wf_scorer_free(scorers[i]);
    test_free_task(&task);
  }
  wf_symbols_free(words);
  if (last - first + 1 < 400) return;
  assert_int_equal(flags_seen,
                   WF_RESULT_NOT_FINAL | WF_RESULT_NARROWED | WF_RESULT_DIED | WF_RESULT_OVERFLOW);
  assert_true(said > 500 && cycles > 0);
}

static void test_random_tasks(void **state) {
  (void)state;
  random_tasks(1, test_seeds(400));
}

/* Few words begin a phrase, and phrases begin within others, so that the words that lead on from a
 * node are often those of its failure nodes alone. */
static void test_overlapping_phrases(void **state) {
  (void)state;
  static const int32_t said[] = {1, 2, 3, 2, 4, 1, 2, 3, 4, 3, 2, 3};
  static const uint64_t off[] = {0, 3, 5, 9, 12};
  static const float boosts[] = {1.5f, 2, 1, 0.75f};
  int words = 0;
  for (uint64_t seed = 1; seed <= (test_seeds(400) < 400 ? 40 : 400); seed++) {
    struct decode_task task = test_random_task(seed);
    wf_scorer *phrases, *others;
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_result *cpu[BATCH];
    assert_ok(wf_scorer_boost_phrases(said, off, boosts, 1 + seed % 4, &phrases, &err));
    assert_ok(
        wf_scorer_boost_phrases(said + 3, (const uint64_t[]){0, 2}, boosts, 1, &others, &err));
    test_random_batch(&task, batch, data, 4, seed, 20);
    compare(seed, task.graph, task.options, batch,
            (const wf_scorer *const[]){phrases, others, NULL, phrases}, 4, cpu);
    for (int i = 0; i < 4; i++) {
      words += (int)cpu[i]->num_words;
      free(data[i]);
    }
    test_free_results(cpu, 4);
    wf_scorer_free(phrases);
    wf_scorer_free(others);
    test_free_task(&task);
  }
  assert_true(words > 100);
}

/* Frames whose candidates overflow their first table, of which only one is within the beam, so that
 * min_active asks for words that were left out as too expensive. Every other task has words on both
 * sides of the beam instead. */
static void test_words_left_out_of_full_tables(void **state) {
  (void)state;
  enum { SOURCES = 2000, EACH = 5, WORDS_EACH = 2, FRAMES = 2 };
  test_rng rng = {5};
  wf_symbols *words = random_scorer_words();
  const float zeros[FRAMES] = {0};
  bool near = false;
  for (uint32_t cheap = 0; cheap < SOURCES;
       near = !near, cheap += test_seeds(400) < 400 ? 401 : 67) {
    wf_builder *builder = builder_of(WF_TROPICAL, 2 + SOURCES * (1 + EACH));
    for (uint32_t i = 0; i < SOURCES; i++) {
      const uint32_t source = 2 + i, first = 2 + SOURCES + i * EACH;
      add_arc(builder, 0, source, 1, 0, 0);
      if (i == cheap) add_arc(builder, source, first, 1, 0, 0);
      for (uint32_t k = 0; k < EACH; k++)
        add_arc(builder, source, first + k, 1, 0, 5 + (float)(i % 7) / 8);
      for (int32_t k = 0; k < WORDS_EACH; k++)
        add_arc(builder, source, near ? first + (uint32_t)k : 1, 1,
                1 + (int32_t)(i + (uint32_t)k) % 4,
                near ? (float)(i % 61) / 8 : 15 + (float)(i % 5));
    }
    for (uint32_t s = 1; s < 2 + SOURCES * (1 + EACH); s++) set_final(builder, s, 0);
    wf_fst *fst = finish(builder);
    struct decode_task task = {0};
    assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
    wf_fst_free(fst);
    wf_decoder_options_init(&task.options);
    task.options.beam = 4;
    task.options.min_active = near ? 0 : SOURCES * EACH + 7;
    task.options.max_active = task.options.max_tokens = 20000;
    const wf_scores scores = {.data = zeros, .num_frames = FRAMES, .num_columns = 1, .stride = 1};
    wf_scorer *ngram = random_ngram(&rng, words, false);
    wf_result *cpu[1];
    compare(cheap, task.graph, task.options, &scores, (const wf_scorer *const[]){ngram}, 1, cpu);
    assert_true(near || cpu[0]->num_tokens > SOURCES * (EACH + 1));
    test_free_results(cpu, 1);
    wf_scorer_free(ngram);
    wf_graph_free(task.graph);
  }
  wf_symbols_free(words);
}

/* Many states, arcs with words, and contexts; lanes of every number of blocks. */
static void test_large_tasks(void **state) {
  (void)state;
  static const int32_t actives[] = {300, 3000, 9000}, tokens[] = {600, 7000, 14000, 28000, 57000};
  test_rng rng = {9};
  const bool small = test_seeds(400) < 400;
  const uint32_t states = small ? 300 : 20000;
  test_fst_shape shape = {.num_states = states,
                          .num_arcs = states * 4,
                          .num_ilabels = 50,
                          .num_olabels = 4,
                          .epsilon_share = 0.12f,
                          .final_share = 0.1f,
                          .max_weight = 3};
  wf_fst *fst = test_random_fst(&rng, &shape);
  wf_symbols *words = random_scorer_words();
  struct decode_task task = {0};
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  task.scores.num_columns = 50;
  const size_t mixed = small ? 3 : 15; /* the tasks after these have only boosts */
  for (size_t k = 0; k < mixed + (small ? 3 : 9); k++) {
    const size_t count = k % 3 == 0 ? 1 : k % 3 == 1 ? 4 : BATCH;
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_scorer *ngram = random_ngram(&rng, words, false), *boost = random_phrase_boost(&rng), *chain;
    const wf_scorer *chosen[BATCH];
    wf_result *cpu[BATCH];
    assert_ok(wf_scorer_chain(ngram, boost, &chain, &err));
    for (size_t i = 0; i < BATCH; i++)
      chosen[i] = k >= mixed ? (i % 4 == 3 ? NULL : boost) : i % 3 == 0 ? chain : ngram;
    wf_decoder_options_init(&task.options);
    task.options.beam = k % 2 == 0 ? 6 : 9;
    task.options.max_active = small ? 100 : actives[k % 3];
    task.options.max_tokens = small ? 500 : tokens[k % 5];
    task.options.recombine = k < mixed && k % 4 == 2;
    test_random_batch(&task, batch, data, count, k, small ? 8 : 30);
    compare(k, task.graph, task.options, batch, chosen, count, cpu);
    test_free_results(cpu, count);
    for (size_t i = 0; i < count; i++) free(data[i]);
    wf_scorer_free(chain);
    wf_scorer_free(boost);
    wf_scorer_free(ngram);
  }
  wf_symbols_free(words);
  wf_graph_free(task.graph);
}

/* One decoder decodes several batches. Each has a new boost; the language model is replaced once;
 * some batches have no scorer. */
static void test_batches_with_changing_scorers(void **state) {
  (void)state;
  wf_symbols *words = random_scorer_words();
  struct decode_task task = test_random_task(3);
  wf_decoder_options on_gpu = task.options;
  on_gpu.device = "cuda";
  wf_decoder *cpu, *gpu;
  test_rng rng = {4};
  assert_ok(wf_decoder_create(task.graph, &task.options, &cpu, &err));
  assert_ok(wf_decoder_create(task.graph, &on_gpu, &gpu, &err));
  wf_scorer *kept = random_ngram(&rng, words, true);
  for (int turn = 0; turn < 6; turn++) {
    wf_scores batch[BATCH];
    float *data[BATCH];
    wf_scorer *fresh = random_scorer(&rng, words);
    wf_result *a[BATCH], *b[BATCH];
    const wf_scorer *chosen[BATCH];
    for (int i = 0; i < BATCH; i++) chosen[i] = turn % 3 == 2 ? NULL : i % 2 == 0 ? kept : fresh;
    test_random_batch(&task, batch, data, BATCH, (uint64_t)turn, 20);
    assert_ok(test_decode_scored(cpu, batch, chosen, BATCH, NULL, a, &err));
    assert_ok(test_decode_scored(gpu, batch, chosen, BATCH, NULL, b, &err));
    test_assert_same_batch((uint64_t)turn, a, b, BATCH);
    test_free_results(a, BATCH);
    test_free_results(b, BATCH);
    for (int i = 0; i < BATCH; i++) free(data[i]);
    wf_scorer_free(fresh);
    if (turn == 3) {
      wf_scorer_free(kept);
      kept = random_ngram(&rng, words, false);
    }
  }
  wf_scorer_free(kept);
  wf_decoder_free(cpu);
  wf_decoder_free(gpu);
  wf_symbols_free(words);
  test_free_task(&task);
}

/* The imitated GPU of tests/fake_cuda searches without the kernels, so its counters stay 0. */
#if defined(FAKE_CUDA) && !defined(SIMT)
enum { COUNTS = false };
#else
enum { COUNTS = true };
#endif

/* The average number of bytes in the 32-byte sectors that a record touches, over 256 records. */
static double sector_bytes(const wf_lm *lm) {
  const int bits =
      lm->mapped->view.cost_bits == 0
          ? 96
          : lm->mapped->view.word_bits + lm->mapped->view.next_bits + lm->mapped->view.cost_bits;
  int64_t sectors = 0;
  for (int64_t i = 0; i < 256; i++) sectors += (i * bits + bits - 1) / 256 - i * bits / 256 + 1;
  return 32 * (double)sectors / 256;
}

static void check_counters(wf_lm_stats stats, const wf_lm *lm,
                           const wf_ngram_scorer_options *options) {
  const bool on_device = options->placement == 0;
  assert_true((stats.host_bytes > 0) == !on_device && stats.gpu_bytes > 0);
  assert_true(!on_device || stats.host_reads == 0);
  assert_true(stats.cache_hits == 0 || (options->placement == 1 && options->lm_gpu_bytes > 1));
  assert_true(fabs((double)stats.bus_bytes - (double)stats.host_reads * sector_bytes(lm)) <
              3); /* up to three workers, each of which rounds */
  assert_true((stats.stall_cycles > 0) == (stats.host_reads > 0) &&
              (stats.stall_s > 0) == (stats.host_reads > 0));
#ifdef FAKE_CUDA /* its clock runs at 1 MHz; a block has 32 warps */
  assert_true(stats.stall_s * 1e6 * 32 <= (double)stats.stall_cycles * 1.000001);
#endif
}

static wf_lm_stats decode_again(wf_decoder *decoder, const struct decode_task *task,
                                const wf_scorer *scorer) {
  wf_scores batch[COUNTED];
  const wf_scorer *chosen[COUNTED];
  wf_result *results[COUNTED];
  for (int i = 0; i < COUNTED; i++) {
    batch[i] = task->scores;
    if (batch[i].num_frames > COUNTED_FRAMES) batch[i].num_frames = COUNTED_FRAMES;
    chosen[i] = scorer;
  }
  assert_ok(test_decode_scored(decoder, batch, chosen, COUNTED, NULL, results, &err));
  test_free_results(results, COUNTED);
  wf_lm_stats stats;
  wf_decoder_get_lm_stats(decoder, &stats);
  return stats;
}

/* Checks the counters after one batch, after two, and after the model was freed. Returns how many
 * n-grams the cache and host memory were asked for. */
static uint64_t count_requested(const char *device, const struct decode_task *task, wf_lm *lm,
                                const wf_symbols *words, const wf_ngram_scorer_options *options,
                                const wf_scorer *boost, int *num_gone) {
  wf_scorer *scorer;
  wf_decoder *decoder;
  wf_decoder_options decoding = task->options;
  decoding.device = device;
  decoding.num_threads = 1;
  if (wf_scorer_from_lm(lm, words, options, &scorer, &err) !=
      WF_OK) { /* the model has none of the words */
    wf_lm_free(lm);
    return 0;
  }
  assert_ok(wf_decoder_create(task->graph, &decoding, &decoder, &err));
  wf_lm_stats none;
  wf_decoder_get_lm_stats(decoder, &none);
  assert_true(none.gpu_bytes + none.host_bytes + none.cache_hits + none.host_reads +
                      none.bus_bytes + none.stall_cycles ==
                  0 &&
              none.stall_s == 0);
  const wf_lm_stats first = decode_again(decoder, task, scorer),
                    second = decode_again(decoder, task, scorer);
  check_counters(first, lm, options);
  check_counters(second, lm, options);
  const uint64_t requested = first.cache_hits + first.host_reads,
                 both = second.cache_hits + second.host_reads;
  assert_true(both >= requested && (requested == 0) == (both == 0) &&
              second.host_reads >= first.host_reads && second.stall_cycles >= first.stall_cycles);
  assert_true(second.cache_hits > 0 || both == 0 || options->lm_gpu_bytes <= 1 ||
              options->placement != 1);
  wf_scorer_free(scorer);
  wf_lm_free(lm);
  decode_again(decoder, task, boost); /* the workers release the scorer */
  const wf_lm_stats gone = decode_again(decoder, task, boost);
  *num_gone += gone.gpu_bytes + gone.host_bytes == 0;
  assert_true(gone.cache_hits == second.cache_hits && gone.host_reads == second.host_reads);
  assert_true(gone.bus_bytes == second.bus_bytes && gone.stall_cycles == second.stall_cycles &&
              gone.stall_s == second.stall_s);
  wf_decoder_free(decoder);
  return both;
}

static void test_lm_counters(void **state) {
  (void)state;
  wf_symbols *words = random_scorer_words();
  test_rng rng = {5};
  wf_scorer *boost = random_word_boost(&rng);
  uint64_t requested[4] = {0};
  int num_gone[2] = {0}; /* released models: with one worker, with three */
  const uint64_t last = test_seeds(12) > 3 ? test_seeds(12) : 3;
  for (uint64_t seed = 3; seed <= last; seed++) { /* those of 1 and 2 need nothing from a cache */
    struct decode_task task = test_random_task(seed);
    for (int k = 0; k < 4; k++) { /* placements: device; hybrid with a cache and without; host */
      wf_ngram_scorer_options options;
      wf_ngram_scorer_options_init(&options);
      options.placement = k == 0 ? 0 : k == 3 ? 2 : 1;
      options.lm_gpu_bytes = k == 1 ? 1 << 20 : 1;
      requested[k] += count_requested("cuda", &task, random_lm(&rng, false), words, &options, boost,
                                      &num_gone[0]);
      (void)count_requested("cuda:0,0,0", &task, random_lm(&rng, false), words, &options, boost,
                            &num_gone[1]);
    }
    test_free_task(&task);
  }
  wf_scorer_free(boost);
  wf_symbols_free(words);
  assert_true(num_gone[0] > 0 && num_gone[1] > 0 && requested[0] == 0 &&
              (requested[1] > 0) == COUNTS && (requested[2] > 0) == COUNTS &&
              (requested[3] > 0) == COUNTS);
}

/* gpu_memory holds for models as well. */
static void test_a_model_above_the_limit_is_refused(void **state) {
  (void)state;
  test_rng rng = {6};
  wf_symbols *words = random_scorer_words();
  struct decode_task task = test_random_task(1);
  wf_decoder *decoder;
  task.options.device = "cuda";
  task.options.gpu_memory = 1 << 28;
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  for (int large = 1; large >= 0; large--) {
    wf_ngram_scorer_options options;
    wf_ngram_scorer_options_init(&options);
    options.placement = 1;
    options.lm_gpu_bytes = large ? 1 << 30 : 1; /* with a cache */
    wf_scorer *scorer = NULL;
    while (scorer == NULL) {
      wf_lm *lm = random_lm(&rng, false);
      if (wf_scorer_from_lm(lm, words, &options, &scorer, &err) != WF_OK) scorer = NULL;
      wf_lm_free(lm);
    }
    const wf_scorer *chosen = scorer;
    wf_result *result;
    const wf_status status =
        test_decode_scored(decoder, &task.scores, &chosen, 1, NULL, &result, &err);
    if (large) {
      assert_int_equal(status, WF_ERR_MEMORY);
      assert_non_null(strstr(err.message, "no room for the language model"));
    } else {
      assert_ok(status);
      wf_result_free(result);
    }
    wf_scorer_free(scorer);
  }
  wf_decoder_free(decoder);
  wf_symbols_free(words);
  test_free_task(&task);
}

/* A scorer that only the CPU supports is refused by name. */
static void test_cpu_only_scorers_are_refused(void **state) {
  (void)state;
  test_rng rng = {1};
  struct decode_task task = test_random_task(1);
  table_scorer_shape shape = {.max_contexts = 3, .num_words = 3};
  oracle_scorer tables = test_random_tables(&rng, &shape);
  wf_scorer *table = test_table_scorer(&tables, false), *boost = random_word_boost(&rng);
  wf_decoder *decoder;
  task.options.device = "cuda";
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  assert_int_equal(wf_decoder_set_scorer(decoder, table, &err), WF_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.message, "on the CPU only"));
  assert_ok(wf_decoder_set_scorer(decoder, boost, &err));
  wf_decoder_free(decoder);
  wf_scorer_free(table);
  wf_scorer_free(boost);
  test_free_tables(&tables);
  test_free_task(&task);
}

#ifdef FAKE_CUDA
/* Decodes a batch on both devices. Returns the bytes that were sent to the GPU. */
static size_t sent_for(wf_decoder *cpu, wf_decoder *gpu, const wf_scores *batch,
                       const wf_scorer *const *chosen) {
  wf_result *a[COUNTED], *b[COUNTED];
  assert_ok(test_decode_scored(cpu, batch, chosen, COUNTED, NULL, a, &err));
  const size_t before = fake_gpus.sent_bytes;
  assert_ok(test_decode_scored(gpu, batch, chosen, COUNTED, NULL, b, &err));
  const size_t sent = fake_gpus.sent_bytes - before;
  test_assert_same_batch(0, a, b, COUNTED);
  test_free_results(a, COUNTED);
  test_free_results(b, COUNTED);
  return sent;
}

/* Utterances have a long list alone and in chains. It is sent for the first batch only, also if a
 * batch without it comes between; with a limit on memory it is not kept for that. */
static void test_long_lists_are_sent_once(void **state) {
  (void)state;
  for (int limited = 0; limited < 2; limited++) {
    struct decode_task task = test_random_task(3);
    test_rng rng = {4};
    wf_scores batch[COUNTED];
    float *data[COUNTED];
    wf_scorer *list = long_phrase_boost(), *other = random_word_boost(&rng), *before, *after;
    const wf_scorer *with[COUNTED], *without[COUNTED];
    wf_decoder *cpu, *gpu;
    wf_decoder_options on_gpu = task.options;
    on_gpu.device = "cuda:0";
    if (limited) on_gpu.gpu_memory = 500000000;
    assert_ok(wf_scorer_chain(other, list, &before, &err));
    assert_ok(wf_scorer_chain(list, other, &after, &err));
    for (int i = 0; i < COUNTED; i++) {
      with[i] = i % 3 == 0 ? list : i % 3 == 1 ? before : after;
      without[i] = other;
    }
    test_random_batch(&task, batch, data, COUNTED, 1, 20);
    assert_ok(wf_decoder_create(task.graph, &task.options, &cpu, &err));
    assert_ok(wf_decoder_create(task.graph, &on_gpu, &gpu, &err));
    sent_for(cpu, gpu, batch, without); /* sends the graph */
    const size_t rest = sent_for(cpu, gpu, batch, without), bytes = 300000;
    const size_t first = sent_for(cpu, gpu, batch, with);
    assert_true(first > rest + bytes && first < rest + 2 * bytes);
    assert_true(sent_for(cpu, gpu, batch, with) < rest + bytes);
    sent_for(cpu, gpu, batch, without);
    assert_int_equal(sent_for(cpu, gpu, batch, with) < rest + bytes, !limited);
    wf_decoder_free(cpu);
    wf_decoder_free(gpu);
    wf_scorer_free(list);
    wf_scorer_free(other);
    wf_scorer_free(before);
    wf_scorer_free(after);
    for (int i = 0; i < COUNTED; i++) free(data[i]);
    test_free_task(&task);
  }
}
#else
static void test_long_lists_are_sent_once(void **state) { (void)state; }
#endif

/* A part of each test, for compute-sanitizer. */
static void test_small(void **state) {
  test_batches_with_changing_scorers(state);
  test_random_tasks(state);
  random_tasks(
      28,
      28); /* recombine=state, where the result depends on contexts that change within a frame */
  test_large_tasks(state);
}

static void test_races(void **state) {
  (void)state;
  wf_symbols *words = random_scorer_words();
  test_rng rng = {1};
  for (uint64_t seed = 1; seed <= test_seeds(8); seed++) {
    struct decode_task task = test_random_task(seed);
    wf_scorer *scorer = random_scorer(&rng, words);
    task.options.lattice_beam = seed % 2 == 1 ? 2 : 0;
    test_short_batch(&task, scorer, seed);
    wf_scorer_free(scorer);
    test_free_task(&task);
  }
  wf_symbols_free(words);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest races[] = {cmocka_unit_test(test_races)};
  if (argc > 1 && strcmp(argv[1], "test_races") == 0)
    return cmocka_run_group_tests(races, NULL, NULL);
  const struct CMUnitTest small[] = {cmocka_unit_test(test_small)};
  const struct CMUnitTest kernels[] = {cmocka_unit_test(test_small),
                                       cmocka_unit_test(test_overlapping_phrases),
                                       cmocka_unit_test(test_words_left_out_of_full_tables),
                                       cmocka_unit_test(test_lm_counters),
                                       cmocka_unit_test(test_long_lists_are_sent_once),
                                       cmocka_unit_test(test_a_model_above_the_limit_is_refused),
                                       cmocka_unit_test(test_cpu_only_scorers_are_refused)};
  if (argc > 1 && strcmp(argv[1], "test_small") == 0)
    return cmocka_run_group_tests(small, NULL, NULL);
  if (argc > 1 && strcmp(argv[1], "test_kernels") == 0)
    return cmocka_run_group_tests(kernels, NULL, NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_tasks),
                                     cmocka_unit_test(test_batches_with_changing_scorers),
                                     cmocka_unit_test(test_words_left_out_of_full_tables),
                                     cmocka_unit_test(test_overlapping_phrases),
                                     cmocka_unit_test(test_large_tasks),
                                     cmocka_unit_test(test_lm_counters),
                                     cmocka_unit_test(test_long_lists_are_sent_once),
                                     cmocka_unit_test(test_a_model_above_the_limit_is_refused),
                                     cmocka_unit_test(test_cpu_only_scorers_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
