/* test_batch_results.c - the results of a batch as arrays equal those of wf_decode, and their texts
 * are the words of each utterance. */
#include <math.h>
#include <stdio.h>

#include "decode_tasks.h"
#include "lattice_paths.h"

enum { COUNT = 6 };

struct totals {
  int64_t words, failed, confident, named, numbers;
};

static void check_arrays(const wf_batch_results *batch, wf_result **results, struct totals *t) {
  assert_int_equal(batch->count, COUNT);
  assert_int_equal(batch->word_off[0], 0);
  for (size_t i = 0; i < COUNT; i++) {
    const wf_result *r = results[i];
    const int64_t first = batch->word_off[i], num_words = batch->word_off[i + 1] - first;
    assert_int_equal(batch->status[i], r->status);
    assert_int_equal(batch->num_frames[i], r->num_frames);
    if (r->status != WF_OK) {
      assert_true(num_words == 0 && isnan(batch->cost[i]) && isnan(batch->scorer_cost[i]));
      assert_string_equal(batch->results[i]->message, r->message);
      t->failed++;
      continue;
    }
    test_assert_same_result(batch->results[i], r);
    assert_true(batch->cost[i] == r->cost && batch->graph_cost[i] == r->graph_cost &&
                batch->acoustic_cost[i] == r->acoustic_cost &&
                batch->scorer_cost[i] == r->scorer_cost);
    assert_true(batch->flags[i] == r->flags && batch->num_decoded[i] == r->num_decoded &&
                (uint64_t)batch->num_tokens[i] == r->num_tokens &&
                (uint64_t)batch->num_expanded[i] == r->num_expanded &&
                (uint64_t)batch->num_arcs[i] == r->num_arcs &&
                (uint64_t)batch->num_narrowed[i] == r->num_narrowed &&
                (size_t)batch->num_estimated[i] == r->num_estimated);
    assert_int_equal(num_words, r->num_words);
    if (num_words > 0)
      assert_memory_equal(batch->words + first, r->words, r->num_words * sizeof *r->words);
    t->words += num_words;
    for (int64_t k = 0; k < num_words && batch->confidences != NULL; k++) {
      const wf_lattice_results *made = batch->results[i]->lattice_results;
      if (made == NULL || made->confidences == NULL) {
        assert_true(isnan(batch->confidences[first + k]));
      } else {
        assert_true(batch->confidences[first + k] == made->confidences[k]);
        t->confident++;
      }
    }
  }
}

/* Compares the texts with words put together here. `words` has every second label. */
static void check_texts(const wf_batch_results *batch, const wf_symbols *words, struct totals *t) {
  wf_error err = {0};
  char *texts, wanted[4096];
  size_t num_bytes, used = 0;
  assert_ok(wf_batch_results_texts(batch, words, &texts, &num_bytes, &err));
  for (size_t i = 0; i < batch->count; i++) {
    for (int64_t k = batch->word_off[i]; k < batch->word_off[i + 1]; k++) {
      const int label = batch->words[k].label;
      const bool named = words != NULL && label % 2 == 0;
      used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s%s%d",
                               k == batch->word_off[i] ? "" : " ", named ? "w" : "", label);
      *(named ? &t->named : &t->numbers) += 1;
    }
    wanted[used++] = '\0';
    assert_true(used < sizeof wanted - 64);
  }
  assert_int_equal(num_bytes, used);
  if (used > 0) assert_memory_equal(texts, wanted, used);
  wf_free(texts);
}

static void test_arrays_equal_results(void **state) {
  (void)state;
  wf_error err = {0};
  struct totals totals = {0};
  wf_symbols *words;
  wf_lattice_results_options made;
  wf_lattice_determinize_options determinizing;
  wf_lattice_determinize_options_init(&determinizing);
  wf_lattice_results_options_init(&made);
  made.confidences = true;
  assert_ok(wf_symbols_create("words", &words, &err));
  for (int label = 0; label < 1000; label += 2) {
    char text[16];
    snprintf(text, sizeof text, "w%d", label);
    assert_ok(wf_symbols_add(words, text, label, NULL, &err));
  }
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct decode_task task = test_random_task(seed + 900);
    wf_scores scores[COUNT];
    float *data[COUNT];
    wf_result *results[COUNT];
    wf_decoder *decoder;
    wf_batch_results *batch;
    test_random_batch(&task, scores, data, COUNT, seed, 15);
    if (scores[2].num_frames > 0) data[2][0] = NAN;
    scores[4].num_columns = 0;
    task.options.lattice_beam = seed % 2 ? 2 : 0;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    if (seed % 2) {
      assert_ok(wf_decoder_set_determinization(decoder, &determinizing, &err));
      assert_ok(wf_decoder_set_lattice_results(decoder, &made, &err));
    }
    assert_ok(test_decode(decoder, scores, COUNT, NULL, results, &err));
    assert_ok(wf_batch_decode(decoder, scores, NULL, NULL, COUNT, NULL, &batch, &err));
    check_arrays(batch, results, &totals);
    check_texts(batch, seed % 3 ? words : NULL, &totals);
    wf_batch_results_free(batch);
    assert_ok(wf_batch_results_take(results, COUNT, &batch, &err)); /* owns the results now */
    check_texts(batch, words, &totals);
    wf_batch_results_free(batch);
    assert_ok(wf_batch_decode(decoder, NULL, NULL, NULL, 0, NULL, &batch, &err));
    check_texts(batch, words, &totals);
    wf_batch_results_free(batch);
    wf_decoder_free(decoder);
    for (int i = 0; i < COUNT; i++) free(data[i]);
    test_free_task(&task);
  }
  wf_symbols_free(words);
  wf_batch_results_free(NULL);
  assert_true(totals.words > 100 && totals.failed > 40 && totals.confident > 20);
  assert_true(totals.named > 50 && totals.numbers > 50);
}

/* What a call for a whole batch makes equals what is made while decoding, in one call or two. */
static void test_completion(void **state) {
  (void)state;
  wf_error err = {0};
  int64_t num_words = 0, num_paths = 0, num_lattices = 0, num_failed = 0;
  wf_lattice_determinize_options determinizing;
  wf_lattice_results_options wanted, part;
  wf_lattice_determinize_options_init(&determinizing);
  determinizing.beam = 2;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct decode_task task = test_random_task(seed + 40);
    wf_scores scores[COUNT];
    float *data[COUNT];
    wf_decoder *decoder;
    wf_batch_results *at_once, *later;
    test_random_batch(&task, scores, data, COUNT, seed, 15);
    if (scores[2].num_frames > 0) data[2][0] = NAN;
    task.options.lattice_beam = seed % 8 == 0 ? 0 : 2;
    determinizing.num_threads = (int32_t)(seed % 4);
    wf_lattice_results_options_init(&wanted);
    wanted.confidences = true;
    wanted.nbest = (int32_t)(seed % 4);
    wanted.confidence_scale = 0.5f;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    assert_ok(wf_batch_decode(decoder, scores, NULL, NULL, COUNT, NULL, &later, &err));
    assert_null(later->confidences);
    if (task.options.lattice_beam > 0) {
      assert_ok(wf_decoder_set_determinization(decoder, &determinizing, &err));
      part = wanted;
      if (seed % 3 == 0) part.confidences = false; /* completed below, too */
      assert_ok(wf_decoder_set_lattice_results(decoder, &part, &err));
    }
    assert_ok(wf_batch_decode(decoder, scores, NULL, NULL, COUNT, NULL, &at_once, &err));
    if (at_once->confidences == NULL)
      assert_ok(wf_batch_results_complete(at_once, &determinizing, &wanted, &err));
    part = wanted;
    part.confidences = false;
    part.nbest = 0;
    if (seed % 5 == 0) assert_ok(wf_batch_results_complete(later, &determinizing, &part, &err));
    part.nbest = wanted.nbest;
    if (seed % 2 == 0) assert_ok(wf_batch_results_complete(later, &determinizing, &part, &err));
    for (int turn = 0; turn < 2; turn++)
      assert_ok(wf_batch_results_complete(later, &determinizing, &wanted, &err));
    const size_t count = (size_t)later->word_off[COUNT];
    assert_true(later->confidences != NULL && at_once->confidences != NULL);
    for (size_t i = 0; i < COUNT; i++) {
      const wf_result *a = at_once->results[i], *b = later->results[i];
      const bool has = b->status == WF_OK && b->lattice != NULL;
      num_failed += b->status != WF_OK;
      assert_int_equal(b->determinized != NULL, has);
      assert_int_equal(b->lattice_results != NULL, has);
      for (int64_t k = later->word_off[i]; k < later->word_off[i + 1]; k++)
        assert_int_equal(isnan(later->confidences[k]), !has);
      if (!has) continue;
      assert_true(test_same_compact(a->determinized->lattice, b->determinized->lattice));
      assert_int_equal(b->lattice_results->nbest != NULL, wanted.nbest > 0);
      for (size_t k = 0; wanted.nbest > 0 && k < wf_nbest_count(b->lattice_results->nbest); k++) {
        const wf_lattice_path x = wf_nbest_at(a->lattice_results->nbest, k),
                              y = wf_nbest_at(b->lattice_results->nbest, k);
        assert_true(x.graph_cost == y.graph_cost && x.acoustic_cost == y.acoustic_cost);
        num_paths++;
      }
      num_lattices++;
    }
    if (task.options.lattice_beam > 0) {
      assert_memory_equal(later->confidences, at_once->confidences, count * sizeof(float));
      num_words += (int64_t)count;
    }
    wf_batch_results_free(at_once);
    wf_batch_results_free(later);
    wf_decoder_free(decoder);
    for (int i = 0; i < COUNT; i++) free(data[i]);
    test_free_task(&task);
  }
  assert_true(num_words > 60 && num_paths > 60 && num_lattices > 100 && num_failed > 20);
}

/* A call that fails leaves nothing, also with scorers and graphs for each utterance. */
static void test_failed_calls(void **state) {
  (void)state;
  wf_error err = {0};
  struct decode_task task = test_random_task(7), other = test_random_task(8);
  const wf_graph *graphs[2] = {task.graph, other.graph};
  const wf_scores scores[2] = {task.scores, task.scores};
  const int32_t word = 1;
  const float boost = 1;
  wf_scorer *scorer;
  wf_decoder *decoder;
  wf_batch_results *batch = (wf_batch_results *)&err;
  task.options.recombine = 0;
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  assert_int_equal(wf_batch_decode(decoder, scores, NULL, graphs, 2, NULL, &batch, &err),
                   WF_ERR_ARGUMENT);
  assert_null(batch);
  assert_ok(wf_scorer_boost_words(&word, &boost, 1, &scorer, &err));
  const wf_scorer *scorers[2] = {NULL, scorer};
  assert_ok(wf_batch_decode(decoder, scores, scorers, NULL, 2, NULL, &batch, &err));
  assert_true(batch->count == 2 && batch->scorer_cost[0] == 0);
  wf_batch_results_free(batch);
  wf_scorer_free(scorer);
  wf_decoder_free(decoder);
  test_free_task(&task);
  test_free_task(&other);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_arrays_equal_results),
                                     cmocka_unit_test(test_completion),
                                     cmocka_unit_test(test_failed_calls)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
