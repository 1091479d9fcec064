/* test_gpu_transducer_scorers.c - transducers on a GPU with recurrent language models. Batches,
 * where the words of all utterances are scored together, give the results of streams, where each
 * search scores its own, and of the CPU. The language model is on the CPU or on a GPU, too.
 * Exits with 77 if there is no GPU. */
#include "scored_transducers.h"

static wf_error err;

/* The CPU gives the same. */
static void check_on_cpu(struct task *task, const wf_scorer *scorer, wf_result *const *got) {
  wf_result *want[UTTERANCES];
  task->options.device = "cpu";
  wf_decoder *decoder = decoder_with(task, task->model, scorer);
  assert_ok(test_decode(decoder, task->scores, UTTERANCES, NULL, want, &err));
  for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
  test_free_results(want, UTTERANCES);
  wf_decoder_free(decoder);
}

static void test_small_recurrent_models(void **unused) {
  uint64_t num_words = 0, num_rounds = 0, num_costs = 0;
  (void)unused;
  for (uint64_t seed = 0; seed < test_seeds(30); seed++) {
    test_rng rng = {seed * 89 + 3};
    struct task task;
    wf_result *want[UTTERANCES];
    models m = random_models(&rng);
    wf_rnn_scorer_options o = random_options(&rng);
    wf_rnnlm *there = NULL;
    wf_rnn_scorer_stats stats;
    wf_scorer *scorer, *other;
    if (seed % 3 == 2) assert_ok(wf_rnnlm_on_device(m.rnnlm, "cuda", &there, &err));
    const wf_rnnlm *lm = there != NULL ? there : m.rnnlm;
    o.rnnlm_memory = seed % 2 == 0 ? 65536 : 1 << 20;
    make_task(&task, &rng, seed, NUM_LABELS);
    task.options.device = "cuda";
    assert_ok(wf_scorer_from_rnnlm(lm, m.ngram, m.small, m.words, &o, &scorer, &err));
    assert_ok(wf_scorer_from_rnnlm(lm, m.ngram, m.small, m.words, &o, &other, &err));
    for (int u = 0; u < UTTERANCES; u++) want[u] = decode_as_stream(&task, scorer, u, &rng);
    check_model(seed, &task, task.model, scorer, other, want);
    wf_rnn_scorer_stats_init(&stats);
    assert_ok(wf_scorer_get_rnn_stats(scorer, &stats, &err));
    num_rounds += stats.num_rounds;
    num_costs += stats.num_costs;
    check_on_cpu(&task, scorer, want);
    free_results(want, &num_words);
    wf_scorer_free(scorer);
    wf_scorer_free(other);
    wf_rnnlm_free(there);
    free_models(&m);
    free_task(&task);
  }
  print_message("%llu words, %llu costs in %llu rounds\n", (unsigned long long)num_words,
                (unsigned long long)num_costs, (unsigned long long)num_rounds);
  assert_true(num_words > 0 && num_rounds > 0 && num_costs > 2 * num_rounds);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_recurrent_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
