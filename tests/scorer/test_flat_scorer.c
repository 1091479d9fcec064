/* test_flat_scorer.c - scorers flattened to plain arrays, as a GPU reads them, compared with the
 * original scorers: every cost bit for bit, and every context. Also the least costs of
 * words, and the number of words that contexts depend on. */
#include "random_scorers.h"
#include "scorer/scorer.h"
#include "table_scorer.h"

enum { WALKS = 20, STEPS = 15 };

static wf_error err;

/* `once`: the scorer is in its form for transducers. */
static void walk(test_rng *rng, const wf_scorer *scorer, const wf__flat_scorer *flat, bool once,
                 int *num_contexts, int *num_said, int *num_least, int *num_close) {
  void *memory = NULL;
  uint64_t context, at = flat->start, next;
  if (scorer->ops->open != NULL) assert_ok(scorer->ops->open(scorer, &memory, &err));
  assert_ok(scorer->ops->begin(scorer, memory, &context, &err));
  assert_true(context == at);
  for (int i = 0; i < STEPS; i++) {
    const int32_t word =
        1 + (int32_t)test_below(rng, RANDOM_WORDS + 1); /* includes a word that no scorer knows */
    float cost, flat_cost, last, flat_last;
    assert_ok(scorer->ops->final(scorer, memory, context, &last, &err));
    flat_last = once ? wf__flat_final_once(flat, at) : wf__flat_final(flat, at);
    assert_memory_equal(&last, &flat_last, sizeof last);
    uint64_t before = context;
    assert_ok(scorer->ops->step(scorer, memory, before, word, &cost, &context, &err));
    flat_cost = once ? wf__flat_step_once(flat, at, (uint32_t)word, &next)
                     : wf__flat_step(flat, at, (uint32_t)word, &next);
    assert_memory_equal(&cost, &flat_cost, sizeof cost);
    assert_true(wf__scorer_least(scorer, word) <= cost);
    *num_least += wf__scorer_least(scorer, word) == cost;
    if (wf__scorer_least(scorer, word) < INFINITY)
      assert_true(wf__flat_least(flat, (uint32_t)word) == wf__scorer_least(scorer, word));
    const wf__cost_bounds bounds = wf__scorer_bounds(scorer, memory, before);
    assert_true(bounds.least <= cost && cost <= bounds.most);
    *num_close += cost - bounds.least < 1e-3f || bounds.most - cost < 1e-3f;
    at = next;
    if (isinf(cost)) break;
    assert_true(context == at && at >> flat->bits == 0);
    *num_said += cost != 0;
    *num_contexts += context != before;
  }
  if (memory != NULL) scorer->ops->close(scorer, memory);
}

static void test_same_costs_and_contexts(void **state) {
  (void)state;
  int said = 0, contexts = 0, least = 0, close = 0, parts[WF__FLAT_PARTS + 1] = {0}, right = 0;
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= 600; seed++) {
    test_rng rng = {seed};
    wf_scorer *scorer = random_scorer(&rng, words);
    wf__flat_scorer flat;
    assert_null(wf__scorer_flatten(scorer, &flat));
    for (int w = 0; w < WALKS; w++)
      walk(&rng, scorer, &flat, w % 2 == 0, &contexts, &said, &least, &close);
    parts[flat.num_parts]++;
    right += (int)flat.right;
    wf_scorer_free(scorer);
  }
  wf_symbols_free(words);
  assert_true(said > 10000 && contexts > 10000 && least > 10000 && close > 10000 &&
              parts[1] > 100 && parts[2] > 100 && parts[3] > 100 && right > 50);
}

/* The form for transducers of scorers that have one. */
static void test_same_once(void **state) {
  (void)state;
  int said = 0, contexts = 0, least = 0, close = 0, differ = 0;
  wf_symbols *words = random_scorer_words();
  for (uint64_t seed = 1; seed <= 600; seed++) {
    test_rng rng = {seed};
    wf_scorer *scorer = random_scorer(&rng, words);
    const wf_scorer *once = wf__scorer_for_transducer(scorer);
    wf__flat_scorer flat;
    assert_null(wf__scorer_flatten(once, &flat));
    for (int w = 0; w < WALKS; w++) walk(&rng, once, &flat, true, &contexts, &said, &least, &close);
    differ += once != scorer;
    wf_scorer_free(scorer);
  }
  wf_symbols_free(words);
  assert_true(said > 10000 && contexts > 10000 && least > 5000 && close > 5000 && differ > 200);
}

/* Context after these words, from the start. */
static uint64_t context_after(const wf_scorer *scorer, void *memory, const int32_t *words,
                              int count) {
  uint64_t context;
  float cost;
  assert_ok(scorer->ops->begin(scorer, memory, &context, &err));
  for (int i = 0; i < count; i++)
    assert_ok(scorer->ops->step(scorer, memory, context, words[i], &cost, &context, &err));
  return context;
}

/* The last context_words words alone lead to the same context as all. Fewer words often do not. */
static void test_words_of_contexts(void **state) {
  (void)state;
  int too_few = 0;
  wf_symbols *symbols = random_scorer_words();
  for (uint64_t seed = 1; seed <= 600; seed++) {
    test_rng rng = {seed};
    wf_scorer *scorer = random_scorer(&rng, symbols);
    void *memory = NULL;
    if (scorer->ops->open != NULL) assert_ok(scorer->ops->open(scorer, &memory, &err));
    for (int w = 0; w < WALKS; w++) {
      int32_t words[STEPS];
      for (int i = 0; i < STEPS; i++) words[i] = 1 + (int32_t)test_below(&rng, RANDOM_WORDS + 1);
      const uint64_t context = context_after(scorer, memory, words, STEPS);
      const int needed = (int)scorer->context_words;
      assert_true(needed < STEPS);
      assert_true(context_after(scorer, memory, words + STEPS - needed, needed) == context);
      too_few += needed > 0 &&
                 context_after(scorer, memory, words + STEPS - needed + 1, needed - 1) != context;
    }
    if (memory != NULL) scorer->ops->close(scorer, memory);
    wf_scorer_free(scorer);
  }
  wf_symbols_free(symbols);
  assert_true(too_few > 1000);
}

static void test_scorers_that_cannot_be_flattened(void **state) {
  (void)state;
  test_rng rng = {1};
  wf_symbols *words = random_scorer_words();
  wf__flat_scorer flat;
  table_scorer_shape shape = {.max_contexts = 3, .num_words = 3};
  oracle_scorer tables = test_random_tables(&rng, &shape);
  wf_scorer *boost = random_word_boost(&rng), *table = test_table_scorer(&tables, false), *two,
            *four, *mixed;
  assert_ok(wf_scorer_chain(boost, boost, &two, &err));
  assert_ok(wf_scorer_chain(two, two, &four, &err));
  assert_ok(wf_scorer_chain(two, table, &mixed, &err));
  assert_null(wf__scorer_flatten(two, &flat));
  assert_string_equal(wf__scorer_flatten(four, &flat), WF__FLAT_TOO_LONG);
  assert_string_equal(wf__scorer_flatten(table, &flat), table->ops->name);
  assert_string_equal(wf__scorer_flatten(mixed, &flat), table->ops->name);
  wf_scorer *all[] = {boost, table, two, four, mixed};
  for (int i = 0; i < 5; i++) wf_scorer_free(all[i]);
  test_free_tables(&tables);
  wf_symbols_free(words);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_costs_and_contexts),
                                     cmocka_unit_test(test_same_once),
                                     cmocka_unit_test(test_words_of_contexts),
                                     cmocka_unit_test(test_scorers_that_cannot_be_flattened)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
