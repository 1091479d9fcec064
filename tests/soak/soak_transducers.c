/* soak_transducers.c - decodes with transducers whose model and search run on the GPU. Batches of any
 * size must give the bits of streams, which are decoded on the CPU or on the GPU, and large batches
 * the bits of the CPU. */
#include "scored_transducers.h"
#include "soak.h"
#include "token_tasks.h"

enum { MANY = SOAK_SMALL ? 12 : 2000 };

/* Half of the tasks are over tokens alone. */
static void make_any_task(struct task *task, test_rng *rng, uint64_t seed) {
  if (test_below(rng, 2) == 0) {
    make_task(task, rng, seed, NUM_WORDS);
    return;
  }
  make_tokens_task(rng, seed, &task->model, &task->graph, &task->options);
  for (int u = 0; u < UTTERANCES; u++)
    task->scores[u] = random_encoder_outputs(rng, task->model,
                                             (int64_t)test_below(rng, is_flat(seed) ? 3
                                                                      : SOAK_SMALL  ? 12
                                                                                    : 100));
}

static void decode_many(const struct task *task, const wf_scorer *scorer,
                        const wf_utterance *utterances, size_t at_once, wf_result **results) {
  wf_error err = {0};
  wf_decoder *decoder = decoder_with(task, task->model, scorer);
  for (size_t u = 0; u < MANY; u += at_once)
    assert_ok(wf_decode(decoder, utterances + u, MANY - u < at_once ? MANY - u : at_once, NULL,
                        results + u, &err));
  wf_decoder_free(decoder);
}

/* Every third utterance has a scorer of its own. */
static void compare_many(uint64_t seed, struct task *task, test_rng *rng, const wf_scorer *scorer,
                         const wf_scorer *other) {
  wf_utterance utterances[MANY] = {0};
  wf_result *want[MANY], *got[MANY];
  const uint32_t most_frames = is_flat(seed) ? 3 : SOAK_SMALL ? 12 : 60;
  for (int u = 0; u < MANY; u++)
    utterances[u] = (wf_utterance){
        .scores = random_encoder_outputs(rng, task->model, (int64_t)test_below(rng, most_frames)),
        .scorer = u % 3 == 0 ? other : NULL};
  soak_note("many utterances of a transducer");
  task->options.device = "cpu";
  decode_many(task, scorer, utterances, MANY, want);
  task->options.device = "cuda";
  decode_many(task, scorer, utterances, 1 + test_below(rng, 2 * MANY), got);
  for (int u = 0; u < MANY; u++) {
    check_same(seed, u, got[u], want[u]);
    wf_result_free(got[u]);
    wf_result_free(want[u]);
    free((void *)(uintptr_t)utterances[u].scores.data);
  }
}

void soak_transducers(test_rng *rng, struct soak_counts *counts) {
  const uint64_t seed = test_next(rng) % 1000;
  struct task *task = malloc(sizeof *task);
  wf_result *want[UTTERANCES];
  assert_non_null(task);
  make_any_task(task, rng, seed);
  wf_symbols *words = random_scorer_words();
  wf_scorer *scorer = test_below(rng, 2) == 0 ? random_scorer(rng, words) : NULL;
  wf_scorer *other = test_below(rng, 2) == 0 ? random_scorer(rng, words) : NULL;
  task->options.device = test_below(rng, 2) == 0 ? "cpu" : "cuda";
  soak_note("streams of a transducer");
  for (int u = 0; u < UTTERANCES; u++) want[u] = decode_as_stream(task, scorer, u, rng);
  task->options.device = "cuda";
  if (soak_plant()) want[UTTERANCES - 1]->cost += 1;
  soak_note("batches of a transducer");
  check_model(seed, task, task->model, scorer, NULL, want);
  test_free_results(want, UTTERANCES);
  compare_many(seed, task, rng, scorer, other);
  counts->utterances += 2 * UTTERANCES + MANY;
  wf_scorer_free(scorer);
  wf_scorer_free(other);
  wf_symbols_free(words);
  free_task(task);
  free(task);
}
