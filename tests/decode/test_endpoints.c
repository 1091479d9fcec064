/* test_endpoints.c - when a stream says that an utterance has ended. */
#include "testing.h"

static wf_error err;

/* A word with label 1 (column 0) between silences (columns 1 and 2), which the graph's loops read.
 * Only silence after a word is final. */
static void test_endpoints(void **state) {
  (void)state;
  static const struct {
    const char *
        spoken; /* columns; '3' is the second frame of a word, after which no final state is near */
    int32_t endpoint;
    double silence;
  } cases[] = {{"", 0, 0},
               {"1111", 0, 0.4},
               {"11111", 1, 0.5},
               {"12112", 1, 0.5},
               {"01", 0, 0.1},
               {"1011", 2, 0.2},
               {"10111", 2, 0.3},
               {"0", 0, 0},
               {"00000000000", 0, 0},
               {"000000000000", 5, 0},
               {"0110", 0, 0}};
  wf_fst *fst = test_fst_of(WF_TROPICAL,
                            "0 0 2 0 0;0 0 3 0 0;0 1 1 7 0;1 1 1 0 0;1 2 2 0 0;1 2 3 0 0;2 2 2 0 "
                            "0;2 2 3 0 0;2 1 1 7 0;2 0");
  wf_graph *graph;
  wf_decoder_options decoder_options;
  wf_decoder *decoder;
  wf_stream_options options;
  wf_stream *stream;
  wf_stream_options_init(&options);
  wf_decoder_options_init(&decoder_options);
  decoder_options.blank = 1;
  options.frame_shift = 0.1f;
  options.silence = "2-2";
  options.rule1_min_trailing_silence = 0.5f;
  options.rule2_min_trailing_silence = 0.2f;
  options.rule5_min_utterance_length = 1.2f;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  assert_ok(wf_decoder_create(graph, &decoder_options, &decoder, &err));
  assert_ok(wf_stream_create(decoder, &options, &stream, &err));
  int64_t start = 0;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    wf_stream_event event = {0};
    size_t size = strlen(cases[k].spoken);
    for (size_t t = 0; t <= size; t++) { /* and an empty chunk at the end */
      float row[3] = {-9, -9, -9};
      if (t < size) row[cases[k].spoken[t] - '0'] = 0;
      wf_scores chunk = {row, t < size, 3, 3};
      assert_ok(wf_stream_advance(stream, &chunk, &event, &err));
    }
    if (event.endpoint != cases[k].endpoint)
      fail_msg("'%s': endpoint %d, not %d", cases[k].spoken, event.endpoint, cases[k].endpoint);
    test_assert_close(event.trailing_silence, cases[k].silence, 1e-6);
    assert_int_equal(event.num_frames, size);
    bool ends =
        size > 0 && cases[k].spoken[size - 1] != '0' && strchr(cases[k].spoken, '0') != NULL;
    if (ends)
      assert_true(event.relative_cost == 0);
    else
      assert_true(event.relative_cost > 2);
    wf_partial partial;
    assert_ok(wf_stream_partial(stream, &partial, &err));
    assert_int_equal(partial.start_frame, start);
    start += (int64_t)size;
    assert_ok(wf_stream_reset(stream, &err));
  }
  wf_stream_free(stream);
  static const char *const bad[] = {"x", "1,", ",1", "3-1", "-1", "1-", "1;2", "99999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    options.silence = bad[i];
    assert_int_equal(wf_stream_create(decoder, &options, &stream, &err), WF_ERR_ARGUMENT);
    assert_null(stream);
  }
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  wf_fst_free(fst);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_endpoints)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
