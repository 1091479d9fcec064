/* soak_transducers.c - decodes with transducers whose model runs on the GPU. Batches of any size
 * must give the bits of streams; costs must be the CPU's up to rounding. */
#include "scored_transducers.h"
#include "soak.h"

static void check_costs(struct task *task, wf_result *const *got) {
  wf_error err = {0};
  wf_result *want[UTTERANCES];
  task->options.device = "cpu";
  wf_decoder *decoder = decoder_with(task, task->model, NULL);
  assert_ok(test_decode(decoder, task->scores, UTTERANCES, NULL, want, &err));
  for (int u = 0; u < UTTERANCES; u++)
    if (!(fabs(got[u]->cost - want[u]->cost) <= 1e-3 * (1 + fabs(want[u]->cost))))
      fail_msg("utterance %d: cost %.9g on the GPU, %.9g on the CPU", u, got[u]->cost,
               want[u]->cost);
  test_free_results(want, UTTERANCES);
  wf_decoder_free(decoder);
}

void soak_transducers(test_rng *rng, struct soak_counts *counts) {
  const uint64_t seed = test_next(rng) % 1000;
  struct task *task = malloc(sizeof *task);
  wf_result *want[UTTERANCES];
  assert_non_null(task);
  make_task(task, rng, seed, NUM_WORDS);
  task->options.device = "cuda";
  soak_note("streams of a transducer");
  for (int u = 0; u < UTTERANCES; u++) want[u] = decode_as_stream(task, NULL, u, rng);
  if (soak_plant()) want[UTTERANCES - 1]->cost += 1;
  soak_note("batches of a transducer");
  check_model(seed, task, task->model, NULL, NULL, want);
  soak_note("costs of a transducer");
  check_costs(task, want);
  test_free_results(want, UTTERANCES);
  counts->utterances += 2 * UTTERANCES;
  free_task(task);
  free(task);
}
