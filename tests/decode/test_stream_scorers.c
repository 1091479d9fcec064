/* test_stream_scorers.c - scorers of a stream that change in mid-utterance: examples by hand. */
#include "testing.h"

static wf_error err;

/* "read" (2) scores worse than "red" (1), but it begins "read box", which is boosted until the list
 * changes after the first word. */
static void test_boost_list_changes_in_mid_utterance(void **state) {
  (void)state;
  static const int32_t words[] = {2, 4};
  static const uint64_t off[] = {0, 2};
  static const float boost = 2.5f, data[] = {-1, -2, -9, -9, -9, -9, -1, -1.5f};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 1 1 0;0 0 2 2 0;0 0 3 3 0;0 0 4 4 0;0");
  wf_graph *graph;
  wf_decoder *decoder;
  wf_stream *stream;
  wf_scorer *scorer, *words_only, *chain;
  wf_result *result;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, NULL, &decoder, &err));
  assert_ok(wf_scorer_boost_phrases(words, off, &boost, 1, &scorer, &err));
  assert_ok(wf_scorer_boost_words(words, &(float){0}, 1, &words_only, &err));
  assert_ok(wf_scorer_chain(words_only, scorer, &chain, &err));
  assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
  const wf_scorer *first[] = {scorer, scorer, chain, NULL, NULL, chain},
                  *second[] = {scorer, NULL, NULL, scorer, NULL, scorer};
  for (int k = 0; k < 6; k++) {
    wf_scores chunks[2] = {{data, 1, 4, 4}, {data + 4, 1, 4, 4}};
    assert_ok(wf_stream_set_scorer(stream, first[k], &err));
    assert_ok(wf_stream_advance(stream, &chunks[0], NULL, &err));
    assert_ok(wf_stream_set_scorer(stream, second[k], &err));
    assert_ok(wf_stream_advance(stream, &chunks[1], NULL, &err));
    assert_ok(wf_stream_finish(stream, &result, &err));
    assert_int_equal(result->num_words, 2);
    assert_int_equal(result->words[0].label, first[k] != NULL && second[k] != NULL ? 2 : 1);
    assert_int_equal(result->words[1].label, first[k] != NULL && second[k] != NULL ? 4 : 3);
    wf_result_free(result);
    assert_ok(wf_stream_reset(stream, &err));
  }
  wf_stream_free(stream);
  wf_scorer_free(scorer);
  wf_scorer_free(words_only);
  wf_scorer_free(chain);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

/* Both words begin a phrase, so there are two tokens in the only state. Without the list they
 * become equal, and the cheaper one stays; of equal ones that with the smaller context, whose word
 * begins the first phrase. The list has no say in the next frame, which expands one token. */
static void test_tokens_that_become_equal(void **state) {
  (void)state;
  static const int32_t phrases[2][4] = {{1, 1, 2, 1}, {2, 1, 1, 1}};
  static const uint64_t off[] = {0, 2, 4};
  static const float boosts[] = {1, 1}, data[3][2] = {{-1, -1}, {-1, -1.5f}, {-1.5f, -1}};
  static const int32_t best[2][3] = {{1, 1, 2}, {2, 1, 2}};
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 1 1 0;0 0 2 2 0;0");
  wf_graph *graph;
  wf_decoder *decoder;
  wf_stream *stream;
  wf_scorer *scorer;
  wf_result *result;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, NULL, &decoder, &err));
  assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
  for (int list = 0; list < 2; list++) {
    assert_ok(wf_scorer_boost_phrases(phrases[list], off, boosts, 2, &scorer, &err));
    for (int k = 0; k < 3; k++) {
      const wf_scores chunk = {data[k], 1, 2, 2};
      assert_ok(wf_stream_set_scorer(stream, scorer, &err));
      assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
      assert_ok(wf_stream_set_scorer(stream, NULL, &err));
      assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
      assert_ok(wf_stream_finish(stream, &result, &err));
      assert_int_equal(result->words[0].label, best[list][k]);
      assert_int_equal(result->num_expanded, 2);
      wf_result_free(result);
      assert_ok(wf_stream_reset(stream, &err));
    }
    wf_scorer_free(scorer);
  }
  wf_stream_free(stream);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

/* The first frame of the second chunk leaves one token of four. The closure of its second frame has
 * more tokens than max_tokens, so the utterance fails. Scorers set after that are for the next
 * utterance, and nothing reads the state of the failed one. */
static void test_scorer_after_failure(void **state) {
  (void)state;
  static const int32_t words[] = {1, 2};
  static const uint64_t off[] = {0, 2};
  static const float boost = 1, data[] = {-50, 0, -50, -50, -50, 0, 0, -50, -50};
  wf_fst *fst = test_fst_of(WF_TROPICAL,
                            "0 0 2 1 0;0 5 2 1 0;0 6 2 1 0;0 7 2 1 0;0 8 3 2 0;8 1 1 1 0;1 2 0 0 "
                            "0;2 3 0 0 0;3 4 0 0 0;4 9 0 0 0;0;9");
  wf_graph *graph;
  wf_decoder *decoder;
  wf_decoder_options options;
  wf_stream *stream;
  wf_scorer *scorers[2];
  wf_result *result;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  wf_decoder_options_init(&options);
  options.beam = 5;
  options.max_active = options.max_tokens = 4;
  options.min_active = 0;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  for (int k = 0; k < 2; k++)
    assert_ok(wf_scorer_boost_phrases(words, off, &boost, 1, &scorers[k], &err));
  assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
  for (int round = 0; round < 2; round++) {
    const wf_scores first = {data, 1, 3, 3}, second = {data + 3, 2, 3, 3};
    assert_ok(wf_stream_advance(stream, &first, NULL, &err));
    assert_ok(wf_stream_advance(stream, &second, NULL, &err));
    for (int k = 0; k < 2; k++) assert_ok(wf_stream_set_scorer(stream, scorers[k], &err));
    assert_ok(wf_stream_finish(stream, &result, &err));
    assert_int_equal(result->status, WF_ERR_LIMIT);
    wf_result_free(result);
    assert_ok(wf_stream_reset(stream, &err));
    assert_ok(wf_stream_advance(stream, &first, NULL, &err));
    assert_ok(wf_stream_finish(stream, &result, &err));
    assert_int_equal(result->status, WF_OK);
    assert_int_equal(result->num_words, 1);
    wf_result_free(result);
    assert_ok(wf_stream_reset(stream, &err));
    assert_ok(wf_stream_set_scorer(stream, NULL, &err));
  }
  wf_stream_free(stream);
  for (int k = 0; k < 2; k++) wf_scorer_free(scorers[k]);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_boost_list_changes_in_mid_utterance),
                                     cmocka_unit_test(test_tokens_that_become_equal),
                                     cmocka_unit_test(test_scorer_after_failure)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
