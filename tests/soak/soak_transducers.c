/* soak_transducers.c - decodes with transducers whose model runs on the GPU. Batches of any size
 * must give the bits of streams, which are decoded on the CPU or on the GPU. */
#include "scored_transducers.h"
#include "soak.h"
#include "token_tasks.h"

/* Half of the tasks are over tokens alone. Batches are searched on the GPU, unless they have lattices or
 * scorers that the GPU does not take; streams on the CPU. */
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

void soak_transducers(test_rng *rng, struct soak_counts *counts) {
  const uint64_t seed = test_next(rng) % 1000;
  struct task *task = malloc(sizeof *task);
  wf_result *want[UTTERANCES];
  assert_non_null(task);
  make_any_task(task, rng, seed);
  wf_symbols *words = random_scorer_words();
  wf_scorer *scorer = test_below(rng, 2) == 0 ? random_scorer(rng, words) : NULL;
  task->options.device = test_below(rng, 2) == 0 ? "cpu" : "cuda";
  soak_note("streams of a transducer");
  for (int u = 0; u < UTTERANCES; u++) want[u] = decode_as_stream(task, scorer, u, rng);
  task->options.device = "cuda";
  if (soak_plant()) want[UTTERANCES - 1]->cost += 1;
  soak_note("batches of a transducer");
  check_model(seed, task, task->model, scorer, NULL, want);
  test_free_results(want, UTTERANCES);
  counts->utterances += 2 * UTTERANCES;
  wf_scorer_free(scorer);
  wf_symbols_free(words);
  free_task(task);
  free(task);
}
