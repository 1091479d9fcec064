/* gpu_transducers.h - a random transducer with utterances to decode on a GPU. Included by tests. */
#ifndef GPU_TRANSDUCERS_H
#define GPU_TRANSDUCERS_H

#include <cuda_runtime_api.h>

#include "decode_tasks.h"
#include "random_transducers.h"
#include "transducer_graphs.h"

enum { UTTERANCES = 40, NUM_WORDS = 5 };

struct task {
  wf_transducer *model;
  wf_graph *graph;
  wf_scorer *scorer; /* NULL: none */
  wf_decoder_options options;
  wf_scores scores[UTTERANCES];
};

/* Boosts of phrases of one to three words; for every second task with a boost of a word before
 * them.
 */
static inline wf_scorer *random_boosts(test_rng *rng) {
  wf_error err;
  enum { PHRASES = 6 };
  int32_t words[3 * PHRASES];
  uint64_t off[PHRASES + 1] = {0};
  float boosts[PHRASES];
  wf_scorer *phrases, *one, *both;
  for (int32_t i = 0; i < PHRASES; i++) {
    off[i + 1] = off[i];
    words[off[i + 1]++] = 1 + i; /* the first words differ, so phrases do */
    while (off[i + 1] - off[i] < 3 && test_below(rng, 3) > 0)
      words[off[i + 1]++] = 1 + (int32_t)test_below(rng, PHRASES);
    boosts[i] = 3 * test_unit(rng) - 0.5f;
  }
  assert_ok(wf_scorer_boost_phrases(words, off, boosts, PHRASES, &phrases, &err));
  if (test_below(rng, 2) == 0) return phrases;
  assert_ok(wf_scorer_boost_words(&words[1], &boosts[1], 1, &one, &err));
  assert_ok(wf_scorer_chain(one, phrases, &both, &err));
  wf_scorer_free(one);
  wf_scorer_free(phrases);
  return both;
}

static inline wf_fst *tokens_graph(int num_tokens) {
  char text[8192];
  size_t at = 0;
  for (int t = 0; t < num_tokens; t++)
    at += (size_t)snprintf(text + at, sizeof text - at, "0 0 %d %d\n", t + 1, t);
  snprintf(text + at, sizeof text - at, "0\n");
  return test_fst_of(WF_TROPICAL, text);
}

static inline void make_task(struct task *task, uint64_t seed) {
  wf_error err;
  test_rng rng = {seed * 577 + 5};
  const transducer_shape s = random_transducer_shape(&rng, seed);
  task->model = random_transducer(&rng, &s);
  wf_fst *fst = seed % 2 == 0 ? tokens_graph(s.num_tokens)
                              : test_transducer_graph(&rng, s.num_tokens, NUM_WORDS,
                                                      2 + (int)test_below(&rng, 5));
  assert_ok(wf_graph_create(fst, NULL, 0, &task->graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task->options);
  task->options.beam = 4 + (float)test_below(&rng, 8);
  /* Many make room for few lanes, which take one utterance after the other. */
  task->options.max_hypotheses = seed % 3 == 0 ? 1000000 : 1 + (int32_t)test_below(&rng, 8);
  if (seed % 3 == 0) task->options.beam = 2;
  task->options.max_symbols = 1 + (int32_t)test_below(&rng, 3);
  task->options.greedy = seed % 7 == 6;
  task->options.blank_penalty = test_below(&rng, 3) == 0 ? 0.5f : 0;
  task->options.lattice_beam = seed % 5 == 4 ? 2 : 0;
  task->options.num_threads = 1 + (int32_t)(seed % 3);
  for (int u = 0; u < UTTERANCES; u++)
    task->scores[u] =
        random_encoder_outputs(&rng, task->model, (int64_t)test_below(&rng, u % 9 == 0 ? 30 : 8));
  task->scorer = seed / 2 % 3 > 0 ? random_boosts(&rng) : NULL;
}

static inline wf_decoder *decoder_on(const struct task *task, const char *device) {
  wf_error err;
  wf_decoder_options options = task->options;
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create_transducer(task->graph, task->model, &options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, task->scorer, &err));
  return decoder;
}

static inline void free_task(struct task *task) {
  for (int u = 0; u < UTTERANCES; u++) free((void *)(uintptr_t)task->scores[u].data);
  wf_graph_free(task->graph);
  wf_transducer_free(task->model);
  wf_scorer_free(task->scorer);
}

static inline void decode_on(const struct task *task, const char *device, const wf_scores *scores,
                             size_t at_once, wf_result **results) {
  wf_error err;
  wf_decoder *decoder = decoder_on(task, device);
  for (size_t i = 0; i < UTTERANCES; i += at_once)
    assert_ok(test_decode(decoder, scores + i, UTTERANCES - i < at_once ? UTTERANCES - i : at_once,
                          NULL, results + i, &err));
  wf_decoder_free(decoder);
}

/* A copy in the memory of the GPU. */
static inline wf_scores on_gpu(const wf_scores *scores) {
  wf_scores copy = *scores;
  const size_t bytes =
      (size_t)(scores->num_frames * scores->stride) * test_score_size(scores->dtype);
  void *data;
  assert_int_equal(cudaMalloc(&data, bytes + 1), cudaSuccess);
  assert_int_equal(cudaMemcpy(data, scores->data, bytes, cudaMemcpyHostToDevice), cudaSuccess);
  copy.data = data;
  copy.on_device = true;
  return copy;
}

static inline int longest_of(const struct task *task) {
  int longest = 0;
  for (int u = 1; u < UTTERANCES; u++)
    if (task->scores[u].num_frames > task->scores[longest].num_frames) longest = u;
  return longest;
}

#endif
