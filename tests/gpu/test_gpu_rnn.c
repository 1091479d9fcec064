/* test_gpu_rnn.c - recurrent language models on a GPU are compared with the CPU, for every kind of
 * layer and output. Costs agree within 1e-5 (relative). A GPU gives the same bits for every batch.
 * Exits with 77 if there is no GPU. Also built for the imitated GPU of tests/simt, with small
 * limits on the size of a batch. */
#include <cuda_runtime_api.h>

#include "cuda/rnn/rnn_kernels.h"
#include "decode_tasks.h"
#include "lm/rnn_device.h"
#include "random_tensors.h"
#include "rnn_chains.h"

static wf_error err;

typedef struct text {
  int32_t *words;
  uint64_t *first;
  size_t num_sentences;
} text;

static text random_text(test_rng *rng, size_t num_words, size_t num_sentences, uint32_t longest) {
  text t = {malloc(num_sentences * longest * sizeof(int32_t)),
            malloc((num_sentences + 1) * sizeof(uint64_t)), num_sentences};
  uint64_t size = 0;
  assert_true(t.words != NULL && t.first != NULL);
  for (size_t s = 0; s < num_sentences; s++) {
    t.first[s] = size;
    for (uint32_t n = test_below(rng, longest); n > 0; n--)
      t.words[size++] = (int32_t)test_below(rng, (uint32_t)num_words);
  }
  t.first[num_sentences] = size;
  return t;
}

static float *score_text(const wf_rnnlm *lm, const text *t) {
  float *costs = malloc((t->first[t->num_sentences] + t->num_sentences) * sizeof *costs);
  assert_ok(wf_rnnlm_score(lm, t->words, t->first, t->num_sentences, 1, costs, &err));
  return costs;
}

/* Compares the costs of a text on both devices, and on the GPU also with the costs of single
 * sentences. */
static void check_model(const wf_rnnlm *lm, const text *t, const char *what) {
  wf_rnnlm *on_gpu;
  assert_ok(wf_rnnlm_on_device(lm, "cuda", &on_gpu, &err));
  float *want = score_text(lm, t), *got = score_text(on_gpu, t);
  for (size_t i = 0; i < t->first[t->num_sentences] + t->num_sentences; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))))
      fail_msg("%s, word %zu of %zu: %.9g on the GPU, %.9g on the CPU", what, i,
               (size_t)t->first[t->num_sentences], (double)got[i], (double)want[i]);
  for (size_t s = 0; s < t->num_sentences; s += t->num_sentences / 3 + 1) {
    const uint64_t size = t->first[s + 1] - t->first[s];
    const text one = {t->words + t->first[s], (uint64_t[]){0, size}, 1};
    float *alone = score_text(on_gpu, &one);
    assert_memory_equal(alone, got + t->first[s] + s, (size + 1) * sizeof *alone);
    free(alone);
  }
  free(want);
  free(got);
  wf_rnnlm_free(on_gpu);
}

static void check_random(test_rng *rng, test_rnn r, size_t num_sentences, uint32_t longest,
                         float scale) {
  wf_rnnlm *lm;
  test_rnn_fill(&r, rng);
  for (size_t i = 0; i < r.num_floats; i++) r.floats[i] *= scale;
  assert_ok(wf_rnnlm_open(test_rnn_write(&r), NULL, &lm, &err));
  text t = random_text(rng, (size_t)r.num_words, num_sentences, longest);
  check_model(lm, &t, r.type);
  free(t.words);
  free(t.first);
  wf_rnnlm_free(lm);
  test_rnn_free(&r);
}

static void test_small_layers(void **unused) {
  (void)unused;
  static const char *const types[] = {"sigmoid", "tanh",     "relu",      "relu-trunc",
                                      "gru",     "gru-bias", "gru-insyn", "gru-full",
                                      "scrn3",   "scrnfast3"};
  for (uint64_t seed = 0; seed < test_seeds(40); seed++) {
    test_rng rng = {seed + 1};
    const int variant = (int)(seed / 10 + seed) % 4;
    const test_rnn r = test_random_rnn(&rng, types[seed % 10], variant);
    check_random(&rng, r, 1 + test_below(&rng, 60), 6, 1);
  }
}

/* Paths in the Huffman tree have more nodes than a warp has lanes: word counts that double make the
 * tree a list. */
static void test_small_deep_paths(void **unused) {
  (void)unused;
  test_rng rng = {5};
  test_rnn r = {.type = "sigmoid",
                .version = 6,
                .num_layers = 1,
                .arity = 2,
                .num_words = 50,
                .hidden = 70,
                .order = 3,
                .num_cells = 3000};
  wf_rnnlm *lm;
  wf_rnnlm_info info;
  wf_rnnlm_info_init(&info);
  test_rnn_fill(&r, &rng);
  for (int w = 1; w < r.num_words; w++) r.counts[w] = (int64_t)1 << (r.num_words - w);
  r.counts[0] = 1;
  assert_ok(wf_rnnlm_open(test_rnn_write(&r), NULL, &lm, &err));
  assert_ok(wf_rnnlm_get_info(lm, &info, &err));
  assert_true(info.max_path > 40);
  text t = random_text(&rng, 50, 8, 5);
  check_model(lm, &t, "deep paths");
  free(t.words);
  free(t.first);
  wf_rnnlm_free(lm);
  test_rnn_free(&r);
}

/* --- PyTorch's layers -------------------------------------------------------------------- */

/* Writes NAME.safetensors and NAME.words. Returns the path of the first. */
static const char *write_torch(test_rng *rng, size_t gates, size_t num_words, size_t embed,
                               size_t hidden, size_t num_layers) {
  static char path[512];
  char words[600], name[64];
  tensors all = {.header = "{", .header_size = 1};
  add_tensor(&all, rng, "embedding.weight", num_words, embed);
  if (embed != hidden || test_below(rng, 2) == 0)
    add_tensor(&all, rng, "output.weight", num_words, hidden);
  if (test_below(rng, 2) == 0) add_tensor(&all, rng, "output.bias", num_words, 0);
  for (size_t l = 0; l < num_layers; l++) {
    static const char *const kinds[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (int i = 0; i < 4; i++) {
      snprintf(name, sizeof name, "rnn.%s_l%zu", kinds[i], l);
      add_tensor(&all, rng, name, gates * hidden, i > 1 ? 0 : i == 0 && l == 0 ? embed : hidden);
    }
  }
  snprintf(path, sizeof path, "%s.safetensors", test_temp_path("torch"));
  write_tensors(&all, path);
  snprintf(words, sizeof words, "%.*s.words", (int)(strlen(path) - strlen(".safetensors")), path);
  FILE *file = fopen(words, "w");
  assert_non_null(file);
  fprintf(file, "</s> 0\n<s> 1\n");
  for (size_t w = 2; w < num_words; w++) fprintf(file, "w%zu %zu\n", w, w);
  assert_int_equal(fclose(file), 0);
  return path;
}

static void check_torch(test_rng *rng, size_t gates, size_t num_words, size_t embed, size_t hidden,
                        size_t num_layers, size_t num_sentences) {
  wf_rnnlm *lm;
  assert_ok(wf_rnnlm_open(write_torch(rng, gates, num_words, embed, hidden, num_layers), NULL, &lm,
                          &err));
  text t = random_text(rng, num_words, num_sentences, 6);
  check_model(lm, &t, gates == 4 ? "LSTM" : "GRU of PyTorch");
  free(t.words);
  free(t.first);
  wf_rnnlm_free(lm);
}

static void test_small_torch(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < test_seeds(12); seed++) {
    test_rng rng = {seed + 100};
    const size_t hidden = 4 + test_below(&rng, 10);
    check_torch(&rng, 3 + seed % 2, 30 + test_below(&rng, 80),
                seed % 3 == 0 ? hidden : 4 + test_below(&rng, 20), hidden, 1 + test_below(&rng, 3),
                1 + test_below(&rng, 20));
  }
}

/* --- slots ------------------------------------------------------------------------------- */

/* Moves between state slots: two states from one, a slot that is reused, and a state that replaces
 * its own source. Compared with the CPU, word by word. */
static void test_small_state_slots(void **unused) {
  (void)unused;
  test_rng rng = {9};
  test_rnn r = {
      .type = "gru", .version = 6, .num_layers = 2, .arity = 2, .num_words = 40, .hidden = 12};
  wf_rnnlm *lm, *on_gpu;
  wf__rnn_device *device;
  test_rnn_fill(&r, &rng);
  assert_ok(wf_rnnlm_open(test_rnn_write(&r), NULL, &lm, &err));
  assert_ok(wf_rnnlm_on_device(lm, "cuda:0", &on_gpu, &err));
  assert_ok(wf__gpu_rnn()->open(on_gpu, 4, &device, &err));
  const wf__rnn_move first[] = {{0, 1, 5, 0}, {0, 2, 6, 0}},
                     second[] = {{1, 3, 7, 0}, {2, 2, 8, 0}, {1, 4, 9, 0}},
                     third[] = {{3, 1, 10, 0}};
  assert_ok(wf__gpu_rnn()->advance(device, first, 2, &err));
  assert_ok(wf__gpu_rnn()->advance(device, second, 3, &err));
  assert_ok(wf__gpu_rnn()->advance(device, third, 1, &err));
  const int32_t words[] = {5, 7, 10, 3, 6, 8, 3, 5, 9, 3, 3};
  const uint64_t bounds[] = {0, 4, 7, 10, 11};
  float want[15], got[4];
  const wf__rnn_request requests[] = {{1, 3, 0, 0}, {2, 3, 0, 0}, {4, 3, 0, 0}, {0, 3, 0, 0}};
  assert_ok(wf__gpu_rnn()->costs(device, requests, 4, NULL, 0, got, &err));
  assert_ok(wf_rnnlm_score(lm, words, bounds, 4, 1, want, &err));
  const float expected[] = {want[3], want[7], want[11], want[13]};
  for (int i = 0; i < 4; i++) test_assert_close((double)got[i], (double)expected[i], 1e-5);
  wf__gpu_rnn()->close(device);
  wf_rnnlm_free(lm); /* the model on the GPU keeps what it needs */
  wf_rnnlm *again;
  assert_ok(wf_rnnlm_on_device(on_gpu, "cpu", &again, &err));
  wf_rnnlm_free(on_gpu);
  assert_ok(wf_rnnlm_score(again, words, bounds, 4, 1, want, &err));
  wf_rnnlm_free(again);
  test_rnn_free(&r);
}

static void test_small_errors(void **unused) {
  (void)unused;
  test_rng rng = {3};
  test_rnn r = {
      .type = "sigmoid", .version = 6, .num_layers = 1, .arity = 2, .num_words = 20, .hidden = 8};
  wf_rnnlm *lm, *on_gpu;
  test_rnn_fill(&r, &rng);
  assert_ok(wf_rnnlm_open(test_rnn_write(&r), NULL, &lm, &err));
  assert_int_equal(wf_rnnlm_on_device(lm, "cuda:63", &on_gpu, &err), WF_ERR_DEVICE);
  assert_int_equal(wf_rnnlm_on_device(lm, "cuda:0,0", &on_gpu, &err), WF_ERR_ARGUMENT);
  assert_int_equal(wf_rnnlm_on_device(lm, "gpu", &on_gpu, &err), WF_ERR_ARGUMENT);
  assert_null(on_gpu);
#ifdef FAKE_CUDA
  float costs[8];
  const long objects = fake_gpus.num_objects;
  bool reached = true;
  for (long n = 1; reached; n++) { /* every call fails once */
    fake_gpus.num_calls = 0;
    fake_gpus.fail_at = n;
    wf_status status = wf_rnnlm_on_device(lm, "cuda", &on_gpu, &err);
    if (status == WF_OK)
      status = wf_rnnlm_score(on_gpu, (int32_t[]){1, 2, 3}, (uint64_t[]){0, 3}, 1, 1, costs, &err);
    reached = fake_gpus.num_calls >= n;
    fake_gpus.fail_at = 0;
    wf_rnnlm_free(on_gpu);
    if (fake_gpus.num_objects != objects)
      fail_msg("call %ld: %ld objects more than before (%s)", n, fake_gpus.num_objects - objects,
               err.message);
  }
#endif
  wf_rnnlm_free(lm);
  test_rnn_free(&r);
}

/* --- decoding ---------------------------------------------------------------------------- */

static void decode_with(const wf_graph *graph, wf_decoder_options options, const char *device,
                        const wf_scorer *scorer, const wf_scores *scores, size_t at_once,
                        wf_result **results) {
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, scorer, &err));
  for (size_t i = 0; i < UTTERANCES; i += at_once)
    assert_ok(test_decode(decoder, scores + i, UTTERANCES - i < at_once ? UTTERANCES - i : at_once,
                          NULL, results + i, &err));
  wf_decoder_free(decoder);
}

/* Also searches on the GPU. Results must agree with the CPU's, and be the same bits in batches of
 * another size. */
static void check_search(uint64_t seed, const wf_graph *graph, wf_decoder_options options,
                         const wf_scorer *scorer, int cache, const wf_scores *scores,
                         wf_result *const *want) {
  wf_result *got[UTTERANCES], *other[UTTERANCES];
  if (cache == 0) return; /* unsupported: see test_small_unsupported_options_are_refused */
  decode_with(graph, options, "cuda", scorer, scores, UTTERANCES, got);
  decode_with(graph, options, "cuda", scorer, scores, 6 + seed % 4, other);
  for (int u = 0; u < UTTERANCES; u++) {
    check_alike(seed, u, got[u], want[u]);
    test_assert_same_result(other[u], got[u]);
  }
  test_free_results(got, UTTERANCES);
  test_free_results(other, UTTERANCES);
}

static void test_small_decoding(void **unused) {
  (void)unused;
  uint64_t words = 0;
  for (uint64_t seed = 1; seed <= (test_seeds(12) + 2) / 3; seed++) {
    test_rng rng = {seed * 991};
    models m = random_models(&rng);
    wf_rnn_scorer_options o = random_options(&rng);
    wf_fst *fst = random_word_fst(&rng, INPUTS);
    wf_graph *graph;
    assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
    wf_decoder_options options;
    wf_decoder_options_init(&options);
    options.beam = 6;
    options.max_active = 60;
    options.num_threads = 2;
    static float data[UTTERANCES][LONGEST * INPUTS];
    wf_scores scores[UTTERANCES];
    for (int u = 0; u < UTTERANCES; u++) {
      for (int i = 0; i < LONGEST * INPUTS; i++)
        data[u][i] =
            u % 5 == 4 ? data[u - 1][i] : -3 * test_unit(&rng); /* some utterances are equal */
      scores[u] = (wf_scores){data[u], (int64_t)test_below(&rng, LONGEST + 1), INPUTS, INPUTS};
    }
    wf_rnnlm *on_gpu;
    wf_result *want[UTTERANCES], *got[UTTERANCES], *alone[UTTERANCES];
    assert_ok(wf_rnnlm_on_device(m.rnnlm, "cuda", &on_gpu, &err));
    o.rnnlm_memory = seed % 2 == 0 ? 65536 : 1 << 20;
    wf_scorer *there = scorer_over(m.rnnlm, &m, &o);
    o.rnnlm_cache = (int32_t)(seed % 3);
    wf_scorer *here = scorer_over(on_gpu, &m, &o);
    decode_with(graph, options, "cpu", there, scores, UTTERANCES, want);
    decode_with(graph, options, "cpu", here, scores, UTTERANCES, got);
    decode_with(graph, options, "cpu", here, scores, 1 + seed % 3, alone);
    if (seed <= (test_seeds(40) + 3) / 5)
      check_search(seed, graph, options, seed % 4 < 2 ? there : here,
                   seed % 4 < 2 ? 1 : o.rnnlm_cache, scores, want);
    for (int u = 0; u < UTTERANCES; u++) {
      check_alike(seed, u, got[u], want[u]);
      words += got[u]->num_words;
      assert_true(got[u]->cost == alone[u]->cost &&
                  got[u]->scorer_cost == alone[u]->scorer_cost); /* for every batch size */
    }
    test_free_results(want, UTTERANCES);
    test_free_results(got, UTTERANCES);
    test_free_results(alone, UTTERANCES);
    wf_scorer_free(there);
    wf_scorer_free(here);
    wf_rnnlm_free(on_gpu);
    wf_graph_free(graph);
    wf_fst_free(fst);
    free_models(&m);
  }
  assert_true(words > 0);
}

/* --- chains ------------------------------------------------------------------------------ */

static void decode_each(const wf_graph *graph, wf_decoder_options options, const char *device,
                        const wf_scorer *const *scorers, const wf_scores *scores, size_t at_once,
                        wf_result **results) {
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
  for (size_t i = 0; i < UTTERANCES; i += at_once)
    assert_ok(test_decode_scored(decoder, scores + i, scorers + i,
                                 UTTERANCES - i < at_once ? UTTERANCES - i : at_once, NULL,
                                 results + i, &err));
  wf_decoder_free(decoder);
}

/* Results agree with the CPU's, and are the same bits for every batch size. */
static void test_small_chained_scorers(void **unused) {
  (void)unused;
  uint64_t num_words = 0;
  for (uint64_t seed = 1; seed <= (test_seeds(40) + 2) / 3; seed++) {
    test_rng rng = {seed * 617};
    static chain_task t;
    wf_result *want[UTTERANCES], *got[UTTERANCES], *other[UTTERANCES];
    make_chain_task(seed, &rng, &t);
    decode_each(t.graph, t.options, "cpu", t.scorers, t.scores, UTTERANCES, want);
    decode_each(t.graph, t.options, "cuda", t.scorers, t.scores, UTTERANCES, got);
    decode_each(t.graph, t.options, "cuda", t.scorers, t.scores, 1 + seed % 6, other);
    for (int u = 0; u < UTTERANCES; u++) {
      check_alike(seed, u, got[u], want[u]);
      test_assert_same_result(other[u], got[u]);
      num_words += got[u]->num_words;
    }
    test_free_results(want, UTTERANCES);
    test_free_results(got, UTTERANCES);
    test_free_results(other, UTTERANCES);
    free_chain_task(&t);
  }
  assert_true(num_words > 0);
}

/* --- streams ----------------------------------------------------------------------------- */

enum { STREAMS = 4 };

/* Each stream decodes several utterances, in chunks of 0 to 3 frames. Some streams are closed and
 * reopened between utterances. */
static void run_streams(const chain_task *t, test_rng *rng, const wf_scorer *const *scorers,
                        wf_result *const *want) {
  wf_decoder_options options = t->options;
  wf_decoder *decoder;
  wf_stream *streams[STREAMS] = {NULL};
  int utterance[STREAMS], next = 0, open = 0;
  int64_t fed[STREAMS];
  options.device = "cuda";
  assert_ok(wf_decoder_create(t->graph, &options, &decoder, &err));
  for (;;) {
    wf_stream *ready[STREAMS];
    wf_scores chunks[STREAMS];
    size_t count = 0;
    for (int i = 0; i < STREAMS; i++) {
      if (streams[i] == NULL && next < UTTERANCES) {
        utterance[i] = next++;
        fed[i] = 0;
        open++;
        assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
        assert_ok(wf_stream_set_scorer(streams[i], scorers[utterance[i]], &err));
      }
      if (streams[i] == NULL || test_below(rng, 4) == 0) continue;
      const wf_scores *scores = &t->scores[utterance[i]];
      int64_t some = test_below(rng, 4);
      if (some > scores->num_frames - fed[i]) some = scores->num_frames - fed[i];
      ready[count] = streams[i];
      chunks[count++] = test_rows(scores, fed[i], some);
      fed[i] += some;
    }
    if (open == 0) break;
    assert_ok(wf_streams_advance(decoder, ready, chunks, count, NULL, &err));
    for (int i = 0; i < STREAMS; i++) {
      wf_partial partial;
      wf_result *result;
      if (streams[i] == NULL) continue;
      if (test_below(rng, 3) == 0) assert_ok(wf_stream_partial(streams[i], &partial, &err));
      if (fed[i] < t->scores[utterance[i]].num_frames) continue;
      assert_ok(wf_stream_finish(streams[i], &result, &err));
      test_assert_same_result(result, want[utterance[i]]);
      wf_result_free(result);
      if (next < UTTERANCES && test_below(rng, 2)) {
        assert_ok(wf_stream_reset(streams[i], &err));
        utterance[i] = next++;
        fed[i] = 0;
        assert_ok(wf_stream_set_scorer(streams[i], scorers[utterance[i]], &err));
      } else {
        wf_stream_free(streams[i]);
        streams[i] = NULL;
        open--;
      }
    }
  }
  wf_decoder_free(decoder);
}

/* Streams give the same bits as batches on the GPU, for all chunks and neighbouring streams, and
 * even if entries of the tables are evicted in between. */
static void test_small_streams(void **unused) {
  (void)unused;
  uint64_t evicted = 0;
  static struct test_heard misfits = {"did not fit", 0};
  wf_set_log(test_listen, &misfits);
  for (uint64_t seed = 1; seed <= (test_seeds(40) + 2) / 3; seed++) {
    test_rng rng = {seed * 733};
    static chain_task t;
    wf_result *want[UTTERANCES];
    make_chain_task(seed, &rng, &t);
    decode_each(t.graph, t.options, "cuda", t.scorers, t.scores, UTTERANCES, want);
    wf_scorer *flat = random_part(&rng, t.words);
    const wf_scorer *scorers[UTTERANCES];
    memcpy(scorers, t.scorers, sizeof scorers);
    for (int u = 0; u < UTTERANCES; u += 3) { /* some streams have another scorer or none */
      wf_decoder *decoder;
      scorers[u] = test_below(&rng, 2) ? flat : NULL;
      wf_result_free(want[u]);
      assert_ok(wf_decoder_create(t.graph, &t.options, &decoder, &err));
      assert_ok(test_decode_scored(decoder, &t.scores[u], &scorers[u], 1, NULL, &want[u], &err));
      wf_decoder_free(decoder);
    }
    wf_rnn_scorer_stats before, after;
    wf_rnn_scorer_stats_init(&before);
    wf_rnn_scorer_stats_init(&after);
    assert_ok(wf_scorer_get_rnn_stats(t.chains[0], &before, &err));
    run_streams(&t, &rng, scorers, want);
    assert_ok(wf_scorer_get_rnn_stats(t.chains[0], &after, &err));
    evicted += after.num_evicted_contexts - before.num_evicted_contexts;
    test_free_results(want, UTTERANCES);
    wf_scorer_free(flat);
    free_chain_task(&t);
  }
  wf_set_log(NULL, NULL);
  assert_int_equal(misfits.times, 0);
#ifdef FAKE_CUDA /* its tables are small */
  if (test_seeds(40) > 3) assert_true(evicted > 0);
#endif
}

/* The scorer changes in mid-utterance: to, from and between recurrent scorers. Results agree with
 * the CPU's. */
static void test_small_scorer_changes_in_streams(void **unused) {
  (void)unused;
  for (uint64_t seed = 1; seed <= (test_seeds(40) + 2) / 3; seed++) {
    test_rng rng = {seed * 811};
    static chain_task t;
    make_chain_task(seed, &rng, &t);
    wf_scorer *flat = random_part(&rng, t.words);
    const wf_scorer *all[] = {t.chains[0], t.chains[t.num_chains - 1], flat, NULL};
    for (int u = 0; u < UTTERANCES; u += 3) {
      wf_result *results[2];
      const wf_scorer *scorers[3] = {all[test_below(&rng, 2)], all[test_below(&rng, 4)],
                                     all[test_below(&rng, 4)]};
      if (test_below(&rng, 3) == 0) scorers[0] = flat;
      for (int k = 0; k < 2; k++) {
        wf_decoder_options options = t.options;
        wf_decoder *decoder;
        wf_stream *stream;
        options.device = k == 0 ? "cpu" : "cuda";
        assert_ok(wf_decoder_create(t.graph, &options, &decoder, &err));
        assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
        for (int part = 0; part < 3; part++) {
          const int64_t from = t.scores[u].num_frames * part / 3,
                        end = t.scores[u].num_frames * (part + 1) / 3;
          const wf_scores chunk = test_rows(&t.scores[u], from, end - from);
          assert_ok(wf_stream_set_scorer(stream, scorers[part], &err));
          assert_ok(wf_stream_advance(stream, &chunk, NULL, &err));
        }
        assert_ok(wf_stream_finish(stream, &results[k], &err));
        wf_stream_free(stream);
        wf_decoder_free(decoder);
      }
      check_alike(seed, u, results[1], results[0]);
      test_free_results(results, 2);
    }
    wf_scorer_free(flat);
    free_chain_task(&t);
  }
}

#ifdef FAKE_CUDA
/* Every CUDA call fails once; nothing may leak. */
static void test_small_every_cuda_call_fails_once(void **unused) {
  (void)unused;
  test_rng rng = {21};
  static chain_task t;
  make_chain_task(1, &rng, &t);
  const long step = test_seeds(40) > 12 ? 7 : 61;
  bool reached = true;
  for (long n = 1; reached; n += step) {
    const long objects = fake_gpus.num_objects;
    wf_decoder *decoder = NULL;
    wf_stream *stream = NULL;
    wf_result *results[2] = {NULL, NULL}, *result = NULL;
    wf_decoder_options options = t.options;
    const wf_scores chunk = test_rows(&t.scores[0], 0, 2), scores[2] = {chunk, chunk};
    const wf_scorer *scorers[2] = {t.chains[0], t.chains[t.num_chains - 1]};
    options.device = "cuda";
    fake_gpus.num_calls = 0;
    fake_gpus.fail_at = n;
    wf_status status = wf_decoder_create(t.graph, &options, &decoder, &err);
    if (status == WF_OK)
      status = test_decode_scored(decoder, scores, scorers, 2, NULL, results, &err);
    if (status == WF_OK) status = wf_stream_create(decoder, NULL, &stream, &err);
    if (status == WF_OK) status = wf_stream_set_scorer(stream, scorers[1], &err);
    if (status == WF_OK) status = wf_stream_advance(stream, &chunk, NULL, &err);
    if (status == WF_OK) status = wf_stream_finish(stream, &result, &err);
    reached = fake_gpus.num_calls >= n;
    fake_gpus.fail_at = 0;
    wf_result_free(result);
    wf_stream_free(stream);
    test_free_results(results, 2);
    wf_decoder_free(decoder);
    if (fake_gpus.num_objects != objects)
      fail_msg("call %ld: %ld objects more than before (%s)", n, fake_gpus.num_objects - objects,
               err.message);
  }
  free_chain_task(&t);
}
#endif

/* What the GPU search does not support with a recurrent scorer is refused, by wf_decoder_set_scorer
 * or by the batch. */
static void test_small_unsupported_options_are_refused(void **unused) {
  (void)unused;
  test_rng rng = {77};
  models m = random_models(&rng);
  wf_fst *fst = random_word_fst(&rng, INPUTS);
  wf_graph *graph;
  wf_decoder *decoder;
  assert_ok(wf_graph_create(fst, NULL, 0, &graph, &err));
  for (int k = 0; k < 6; k++) {
    wf_rnn_scorer_options o = random_options(&rng);
    wf_decoder_options options;
    wf_decoder_options_init(&options);
    options.device = "cuda";
    options.max_active = 60;
    o.rnnlm_cache = k == 0 ? 0 : 1;
    o.history_merge_order = k == 1 ? 100 : 0;
    o.rnnlm_memory = 65536;
    if (k == 2) options.lattice_beam = 4;
    if (k == 3) options.recombine = 1;
    wf_scorer *scorer = scorer_over(m.rnnlm, &m, &o), *chain;
    assert_ok(wf_scorer_chain(scorer, scorer, &chain, &err));
    assert_ok(wf_decoder_create(graph, &options, &decoder, &err));
    if (k < 5)
      assert_int_equal(wf_decoder_set_scorer(decoder, k == 4 ? chain : scorer, &err),
                       WF_ERR_UNSUPPORTED);
    if (k == 5) { /* one utterance with the scorer, one without */
      static const float data[2 * INPUTS];
      const wf_scores scores[2] = {{data, 2, INPUTS, INPUTS}, {data, 1, INPUTS, INPUTS}};
      const wf_scorer *scorers[2] = {scorer, NULL};
      wf_result *results[2] = {NULL, NULL};
      assert_int_equal(test_decode_scored(decoder, scores, scorers, 2, NULL, results, &err),
                       WF_ERR_UNSUPPORTED);
      test_free_results(results, 2);
    }
    wf_decoder_free(decoder);
    wf_scorer_free(chain);
    wf_scorer_free(scorer);
  }
  wf_graph_free(graph);
  wf_fst_free(fst);
  free_models(&m);
}

/* Models and texts of realistic size, larger than the limits of one batch of kernel launches. */
static void test_large_models(void **unused) {
  (void)unused;
  test_rng rng = {11};
  check_random(&rng,
               (test_rnn){.type = "sigmoid",
                          .version = 6,
                          .num_layers = 1,
                          .arity = 2,
                          .num_words = 20001,
                          .hidden = 200,
                          .order = 4,
                          .num_cells = 1000000},
               12000, 20, 0.3f);
  check_random(&rng,
               (test_rnn){.type = "gru",
                          .version = 6,
                          .num_layers = 2,
                          .arity = 2,
                          .num_words = 5001,
                          .hidden = 515,
                          .order = 2,
                          .num_cells = 100000},
               3000, 10, 0.1f);
  check_torch(&rng, 4, 9001, 130, 260, 2, 2000);
}

/* --- for racecheck: every kernel once with tiny inputs, because a launch of the search takes
 * seconds --- */

static void race_models(void **unused) {
  test_small_layers(unused);
  test_small_torch(unused);
}

/* Decodes one frame, as an utterance or as the only chunk of a stream. */
static wf_result *decode_frame(const chain_task *t, const char *device, const wf_scorer *scorer,
                               bool streamed) {
  const wf_scores frame = {t->data[0], 1, INPUTS, INPUTS};
  wf_decoder_options options = t->options;
  wf_decoder *decoder;
  wf_stream *stream;
  wf_result *result;
  options.device = device;
  assert_ok(wf_decoder_create(t->graph, &options, &decoder, &err));
  if (streamed) {
    assert_ok(wf_stream_create(decoder, NULL, &stream, &err));
    assert_ok(wf_stream_set_scorer(stream, scorer, &err));
    assert_ok(wf_stream_advance(stream, &frame, NULL, &err));
    assert_ok(wf_stream_finish(stream, &result, &err));
    wf_stream_free(stream);
  } else {
    assert_ok(test_decode_scored(decoder, &frame, &scorer, 1, NULL, &result, &err));
  }
  wf_decoder_free(decoder);
  return result;
}

static void race(bool streamed) {
  test_rng rng = {1};
  static chain_task t;
  make_chain_task(1, &rng, &t);
  wf_scorer *chain = random_chain(&rng, t.chains[0], t.words);
  wf_rnn_scorer_stats stats;
  wf_rnn_scorer_stats_init(&stats);
  wf_result *want = decode_frame(&t, "cpu", chain, streamed);
  assert_ok(wf_scorer_get_rnn_stats(t.chains[0], &stats, &err));
  assert_true(stats.num_requests > 0); /* scores of words were requested */
  wf_result *got = decode_frame(&t, "cuda", chain, streamed);
  check_alike(1, 0, got, want);
  wf_result_free(want);
  wf_result_free(got);
  wf_scorer_free(chain);
  free_chain_task(&t);
}

static void race_chain(void **unused) {
  (void)unused;
  race(false);
}

static void race_stream(void **unused) {
  (void)unused;
  race(true);
}

static bool no_gpu(void) {
  test_rng rng = {1};
  test_rnn r = {
      .type = "sigmoid", .version = 6, .num_layers = 1, .arity = 2, .num_words = 20, .hidden = 8};
  wf_rnnlm *lm, *on_gpu;
  test_rnn_fill(&r, &rng);
  wf_status status = wf_rnnlm_open(test_rnn_write(&r), NULL, &lm, &err);
  if (status == WF_OK) status = wf_rnnlm_on_device(lm, "cuda", &on_gpu, &err);
  if (status == WF_ERR_DEVICE) fprintf(stderr, "%s\n", err.message);
  if (status == WF_OK) wf_rnnlm_free(on_gpu);
  wf_rnnlm_free(lm);
  test_rnn_free(&r);
  return status == WF_ERR_DEVICE;
}

/* --- matrix products --------------------------------------------------------------------- */

static void *to_gpu(const void *data, size_t bytes) {
  void *there;
  assert_int_equal(cudaMalloc(&there, bytes), cudaSuccess);
  assert_int_equal(cudaMemcpy(there, data, bytes, cudaMemcpyHostToDevice), cudaSuccess);
  return there;
}

/* Every element is one chain of multiply-adds, whatever the shape of the blocks. */
static void check_product(test_rng *rng, uint32_t num_rows, uint32_t count, uint32_t stride) {
  const uint32_t y_stride = num_rows + test_below(rng, 5), all = num_rows + count;
  const size_t bytes = (size_t)count * y_stride * sizeof(float);
  float *in = malloc((size_t)all * stride * sizeof *in), *y = malloc(bytes);
  assert_true(in != NULL && y != NULL);
  for (size_t i = 0; i < (size_t)all * stride; i++) in[i] = 2 * test_unit(rng) - 1;
  for (size_t i = 0; i < (size_t)count * y_stride; i++) y[i] = 7;
  float *there = to_gpu(in, (size_t)all * stride * sizeof *in), *result = to_gpu(y, bytes);
  const float *w = in, *x = in + (size_t)num_rows * stride;
  assert_int_equal(wf__rnn_product(there, num_rows, stride, there + (size_t)num_rows * stride,
                                   stride, wf__rows(count), result, y_stride, NULL),
                   cudaSuccess);
  assert_int_equal(cudaMemcpy(y, result, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  for (uint32_t v = 0; v < count; v++)
    for (uint32_t r = 0; r < y_stride; r++) {
      float sum = r < num_rows ? 0 : 7;
      for (uint32_t k = 0; k < stride && r < num_rows; k++)
        sum = fmaf(w[(size_t)r * stride + k], x[(size_t)v * stride + k], sum);
      if (y[(size_t)v * y_stride + r] != sum)
        fail_msg("%u rows, %u vectors of %u: [%u][%u] is %.9g, not %.9g", num_rows, count, stride,
                 v, r, (double)y[(size_t)v * y_stride + r], (double)sum);
    }
  assert_int_equal(cudaFree(there), cudaSuccess);
  assert_int_equal(cudaFree(result), cudaSuccess);
  free(in);
  free(y);
}

static void test_small_products(void **unused) {
  (void)unused;
  test_rng rng = {11};
  for (int i = 0; i < 20; i++)
    check_product(&rng, 1 + test_below(&rng, 70), 1 + test_below(&rng, 70),
                  8 * (1 + test_below(&rng, 20)));
  check_product(&rng, 1801, 850, 8); /* enough for large blocks */
  check_product(&rng, 1900, 833, 24);
}

int main(int argc, char **argv) {
  if (no_gpu()) return 77;
  const struct CMUnitTest races[] = {cmocka_unit_test(race_models), cmocka_unit_test(race_chain),
                                     cmocka_unit_test(race_stream)};
  if (argc > 1 && strcmp(argv[1], "test_races") == 0)
    return cmocka_run_group_tests(races, NULL, NULL);
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_products),
                                     cmocka_unit_test(test_small_layers),
                                     cmocka_unit_test(test_small_deep_paths),
                                     cmocka_unit_test(test_small_torch),
                                     cmocka_unit_test(test_small_state_slots),
                                     cmocka_unit_test(test_small_errors),
                                     cmocka_unit_test(test_small_decoding),
                                     cmocka_unit_test(test_small_chained_scorers),
                                     cmocka_unit_test(test_small_streams),
                                     cmocka_unit_test(test_small_scorer_changes_in_streams),
                                     cmocka_unit_test(test_small_unsupported_options_are_refused),
#ifdef FAKE_CUDA
                                     cmocka_unit_test(test_small_every_cuda_call_fails_once),
#endif
                                     cmocka_unit_test(test_large_models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
