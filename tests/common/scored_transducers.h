/* scored_transducers.h - random tasks with a transducer and a scorer that scores in batches, on any
 * device, and what batches and streams must have in common. */
#ifndef TESTS_SCORED_TRANSDUCERS_H
#define TESTS_SCORED_TRANSDUCERS_H

#include "lattice_paths.h"
#include "random_transducers.h"
#include "table_scorer.h"
/* After the library's headers, because it defines `model`. */
#include "random_scorers.h"
#include "rnn_models.h"

enum { UTTERANCES = 9, NUM_WORDS = 5 };

struct task {
  wf_transducer *model;
  wf_graph *graph;
  wf_decoder_options options;
  wf_scores scores[UTTERANCES];
};

static inline void make_task(struct task *task, test_rng *rng, uint64_t seed, int num_words) {
  wf_error err = {0};
  transducer_shape s = random_transducer_shape(rng, seed);
  s.num_tokens = 3 + (int)test_below(rng, 5);
  task->model = random_transducer(rng, &s);
  wf_fst *fst = test_transducer_graph(rng, s.num_tokens, num_words, 2 + (int)test_below(rng, 5));
  assert_ok(wf_graph_create(fst, NULL, 0, &task->graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task->options);
  task->options.beam = 4 + (float)test_below(rng, 8);
  task->options.max_hypotheses = 1 + (int32_t)test_below(rng, 8);
  task->options.max_symbols = 1 + (int32_t)test_below(rng, 3);
  task->options.greedy = seed % 7 == 6;
  task->options.word_score = test_below(rng, 2) ? 0.5f : 0;
  task->options.lattice_beam = seed % 3 == 1 ? 2 : 0;
  task->options.num_threads = 1 + (int32_t)(seed % 3);
  for (int u = 0; u < UTTERANCES; u++)
    task->scores[u] = random_encoder_outputs(rng, task->model, (int64_t)test_below(rng, 12));
}

static inline void free_task(struct task *task) {
  for (int u = 0; u < UTTERANCES; u++) free((void *)(uintptr_t)task->scores[u].data);
  wf_graph_free(task->graph);
  wf_transducer_free(task->model);
}

static inline wf_decoder *decoder_with(const struct task *task, const wf_transducer *transducer,
                                       const wf_scorer *scorer) {
  wf_error err = {0};
  wf_decoder *decoder;
  assert_ok(wf_decoder_create_transducer(task->graph, transducer, &task->options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  return decoder;
}

static inline wf_result *decode_as_stream(const struct task *task, const wf_scorer *scorer, int u,
                                          test_rng *rng) {
  wf_error err = {0};
  wf_decoder *decoder = decoder_with(task, task->model, scorer);
  wf_stream *stream;
  wf_stream_event event;
  wf_result *result;
  assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
  for (int64_t t = 0, size; t < task->scores[u].num_frames; t += size) {
    size = 1 + test_below(rng, 5);
    if (t + size > task->scores[u].num_frames) size = task->scores[u].num_frames - t;
    wf_scores chunk = test_rows(&task->scores[u], t, size);
    assert_ok(wf_stream_advance(stream, &chunk, &event, &err));
  }
  assert_ok(wf_stream_finish(stream, &result, &err));
  wf_stream_free(stream);
  wf_decoder_free(decoder);
  return result;
}

static inline void check_same(uint64_t seed, int u, const wf_result *got, const wf_result *want) {
  if (got->status != WF_OK || got->cost != want->cost || got->num_words != want->num_words)
    fail_msg("seed %llu, utterance %d: %s: cost %.9g and %zu words, as a stream %.9g and %zu",
             (unsigned long long)seed, u, got->message, got->cost, got->num_words, want->cost,
             want->num_words);
  test_assert_same_result(got, want);
  assert_true((got->lattice == NULL) == (want->lattice == NULL));
  if (got->lattice != NULL) assert_true(test_same_raw(got->lattice, want->lattice));
  for (size_t w = 0; w < got->num_words; w++)
    if (got->words[w].label != want->words[w].label)
      fail_msg("seed %llu, utterance %d: word %zu is %d, as a stream %d", (unsigned long long)seed,
               u, w, got->words[w].label, want->words[w].label);
}

/* Batches of all utterances and of one give what streams give. Twice with the same decoder: the
 * scorer's memories stay. In between, utterances have scorers of their own, and are not searched
 * together. */
static inline void check_model(uint64_t seed, const struct task *task,
                               const wf_transducer *transducer, const wf_scorer *scorer,
                               const wf_scorer *other, wf_result **want) {
  wf_error err = {0};
  wf_decoder *decoder = decoder_with(task, transducer, scorer);
  for (int round = 0; round < 4; round++) {
    wf_result *results[UTTERANCES];
    wf_utterance utterances[UTTERANCES] = {0};
    const size_t count = round == 1 ? 1 : UTTERANCES;
    for (size_t u = 0; u < count; u++)
      utterances[u] = (wf_utterance){.scores = task->scores[u],
                                     .scorer = round == 2 && u % 2 == 0 ? other : NULL};
    assert_ok(wf_decode(decoder, utterances, count, NULL, results, &err));
    for (size_t u = 0; u < count; u++) {
      if (utterances[u].scorer == NULL) check_same(seed, (int)u, results[u], want[u]);
      wf_result_free(results[u]);
    }
  }
  wf_decoder_free(decoder);
}

static inline void free_results(wf_result **results, uint64_t *num_words) {
  for (int u = 0; u < UTTERANCES; u++) {
    *num_words += results[u]->num_words;
    wf_result_free(results[u]);
  }
}

/* The cost of the words of a complete path, with the n-gram model `small` subtracted once more. */
static inline double defined_cost(const models *m, const wf_rnn_scorer_options *o, float subtracted,
                                  const wf_result *result) {
  int32_t labels[65];
  double cost = 0;
  for (size_t w = 0; w <= result->num_words; w++) {
    labels[w] = w < result->num_words ? result->words[w].label : 0;
    cost += cost_by_definition(m, o, labels, w + 1) -
            (double)subtracted * ngram_cost(m->small, labels, w + 1);
  }
  return cost;
}

static inline wf_scorer *subtract(const wf_scorer *scorer, const models *m, float factor) {
  wf_error err = {0};
  wf_ngram_scorer_options options;
  wf_lm *lm;
  wf_scorer *small, *both;
  const char *out = test_temp_path("small.wlm");
  char arpa[512];
  snprintf(arpa, sizeof arpa, "%s", test_write_file("small.arpa", small_text, strlen(small_text)));
  assert_ok(wf_lm_convert(arpa, out, NULL, NULL, NULL, NULL, NULL, &err));
  assert_ok(wf_lm_open_mapped(out, &lm, &err));
  wf_ngram_scorer_options_init(&options);
  options.lm_scale = -factor;
  assert_ok(wf_scorer_from_lm(lm, m->words, &options, &small, &err));
  assert_ok(wf_scorer_chain(scorer, small, &both, &err));
  wf_scorer_free(small);
  wf_lm_free(lm);
  remove(arpa);
  remove(out);
  return both;
}

#endif
