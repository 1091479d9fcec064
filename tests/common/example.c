/* example.c - decoding tasks that are small enough to work out by hand. */
#include "example.h"

struct example example_of(const char *graph, const float *scores, int num_frames, int num_columns) {
  struct example example = {.graph = graph,
                            .scores = {.data = scores,
                                       .num_frames = num_frames,
                                       .num_columns = num_columns,
                                       .stride = num_columns}};
  wf_decoder_options_init(&example.options);
  example.options.num_threads = 1;
  example.options.min_active = 0;
  example.options.check_scores = 2; /* off: the scores are made up, so they are not posteriors */
  return example;
}

wf_decoder *example_decoder(const struct example *example, wf_graph **out_graph) {
  wf_error err = {0};
  wf_decoder *decoder;
  wf_fst *fst = test_fst_of(WF_TROPICAL, example->graph);
  assert_ok(wf_graph_create(fst, NULL, 0, out_graph, &err));
  wf_fst_free(fst);
  assert_ok(wf_decoder_create(*out_graph, &example->options, &decoder, &err));
  return decoder;
}

wf_result *example_decode(const struct example *example, const wf_scorer *scorer) {
  wf_error err = {0};
  wf_graph *graph;
  wf_result *result;
  wf_decoder *decoder = example_decoder(example, &graph);
  const wf_utterance utterance = {.scores = example->scores, .scorer = scorer};
  assert_ok(wf_decode(decoder, &utterance, 1, NULL, &result, &err));
  if (result->status != WF_OK) fail_msg("the utterance failed: %s", result->message);
  wf_decoder_free(decoder);
  wf_graph_free(graph);
  return result;
}

const char *example_words(const wf_word *words, size_t count) {
  static char text[256];
  size_t used = 0;
  text[0] = '\0';
  for (size_t i = 0; i < count; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%d[%d,%d)", i > 0 ? " " : "",
                             words[i].label, words[i].start_frame, words[i].end_frame);
  return text;
}

void example_expect(const struct example *example, const wf_scorer *scorer, const char *words,
                    double cost, uint32_t flags) {
  wf_result *result = example_decode(example, scorer);
  assert_string_equal(example_words(result->words, result->num_words), words);
  test_assert_close(result->cost, cost, 1e-6);
  assert_int_equal(result->flags, flags);
  wf_result_free(result);
}

void example_expect_paths(const wf_fst *fst, size_t count, const char *const *pairs,
                          const double *costs) {
  enum { MAX_ARCS = 20, MAX_PATHS = 100 };
  test_relation found = test_enumerate(fst, MAX_ARCS, MAX_PATHS);
  assert_int_equal(found.size, count);
  for (size_t i = 0; i < count; i++) {
    char key[128]; /* in the form of test_enumerate */
    size_t at = 0;
    snprintf(key, sizeof key, "%s ", pairs[i]);
    while (at < found.size && strcmp(found.pairs[at].key, key) != 0) at++;
    if (at == found.size)
      fail_msg("no path \"%s\"; the first is \"%s\"", pairs[i], found.pairs[0].key);
    test_assert_close(found.pairs[at].cost, costs[i], 1e-6);
  }
  test_relation_free(&found);
}
