/* test_transducer_scorers.c - transducers with scorers that score in batches. Batches, which share
 * the scorer's tables between utterances, give the results of streams, which test_transducer.c
 * compares with the oracle; so does the same model behind functions. Costs of recurrent models and
 * of subtracted n-gram models equal their definition. */
#include "wrapped_transducers.h"
/* After it, because it defines `model`. */
#include "scored_transducers.h"

static wf_error err;

static void check_batches(uint64_t seed, const struct task *task, const wf_scorer *scorer,
                          const wf_scorer *other, test_rng *rng, wf_result **want) {
  for (int u = 0; u < UTTERANCES; u++) want[u] = decode_as_stream(task, scorer, u, rng);
  check_model(seed, task, task->model, scorer, other, want);
  wf_transducer *wrapped = wrapped_transducer(task->model);
  check_model(seed, task, wrapped, scorer, other, want);
  wf_transducer_free(wrapped);
}

static void test_tables(void **unused) {
  uint64_t num_words = 0;
  (void)unused;
  for (uint64_t seed = 0; seed < test_seeds(300); seed++) {
    test_rng rng = {seed * 31 + 7};
    struct task task;
    wf_result *want[UTTERANCES];
    make_task(&task, &rng, seed, NUM_WORDS);
    table_scorer_shape shape = {
        .max_contexts = 4, .num_words = NUM_WORDS, .negative = test_below(&rng, 2)};
    oracle_scorer tables = test_random_tables(&rng, &shape);
    wf_scorer *scorer = test_table_scorer(&tables, true), *other = test_table_scorer(&tables, true);
    check_batches(seed, &task, scorer, other, &rng, want);
    free_results(want, &num_words);
    wf_scorer_free(scorer);
    wf_scorer_free(other);
    test_free_tables(&tables);
    free_task(&task);
  }
  print_message("%llu words\n", (unsigned long long)num_words);
  assert_true(num_words > test_seeds(300) * UTTERANCES / 4);
}

static void test_recurrent_and_subtracted(void **unused) {
  int num_final = 0;
  uint64_t num_words = 0, num_rounds = 0;
  (void)unused;
  for (uint64_t seed = 0; seed < test_seeds(60); seed++) {
    test_rng rng = {seed * 97 + 3};
    struct task task;
    wf_result *want[UTTERANCES];
    models m = random_models(&rng);
    wf_rnn_scorer_options o = random_options(&rng);
    wf_scorer *rnn, *scorer, *other;
    const float factor = 0.25f + test_unit(&rng);
    o.rnnlm_cache = (int32_t)test_below(&rng, 3);
    o.rnnlm_memory = seed % 2 == 0 ? 65536 : 1 << 20;
    make_task(&task, &rng, seed, NUM_LABELS);
    assert_ok(wf_scorer_from_rnnlm(m.rnnlm, m.ngram, m.small, m.words, &o, &rnn, &err));
    scorer = subtract(rnn, &m, factor);
    other = subtract(rnn, &m, factor);
    check_batches(seed, &task, scorer, other, &rng, want);
    for (int u = 0; u < UTTERANCES; u++) {
      if (want[u]->flags != 0 || want[u]->num_words > 60) continue;
      const double cost = defined_cost(&m, &o, factor, want[u]);
      if (fabs(cost - want[u]->scorer_cost) > 1e-4 * (1 + fabs(cost)))
        fail_msg("seed %llu: scorer's cost %.9g, by definition %.9g", (unsigned long long)seed,
                 want[u]->scorer_cost, cost);
      num_final++;
    }
    wf_rnn_scorer_stats stats;
    wf_rnn_scorer_stats_init(&stats);
    assert_ok(wf_scorer_get_rnn_stats(rnn, &stats, &err));
    num_rounds += stats.num_rounds;
    free_results(want, &num_words);
    wf_scorer_free(rnn);
    wf_scorer_free(scorer);
    wf_scorer_free(other);
    free_models(&m);
    free_task(&task);
  }
  print_message("%d complete paths, %llu words, %llu rounds of scoring\n", num_final,
                (unsigned long long)num_words, (unsigned long long)num_rounds);
  assert_true(num_rounds > 0 && num_words > test_seeds(60) * UTTERANCES / 4 && num_final > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables),
      cmocka_unit_test(test_recurrent_and_subtracted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
