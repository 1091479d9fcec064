/* test_gpu_transducer.c - transducers on a GPU are compared with the CPU, for every kind of model.
 * Log-probabilities agree within 1e-4. A GPU gives the same bits for every batch and order. Exits
 * with 77 if there is no GPU. Also built for the imitated GPU of tests/simt, with small limits on
 * the size of a batch. */
#include <cuda_runtime_api.h>

#include "base/interrupt.h"
#include "decode_tasks.h"
#include "random_transducers.h"
#include "search/transducer/transducer_device.h"
#include "transducer_graphs.h"
#ifdef FAKE_CUDA
#include "failing_calls.h"
#endif

static wf_error err;

enum { MOST_FRAMES = 12, NUM_WORDS = 5 };

/* --- log-probabilities ------------------------------------------------------------------- */

enum { LANES = 5, MOST_CONTEXTS = 9, MOST_LOGITS = 64 };
static const wf__score_cut cut = {0.8f, 0.5f, 3, 0, 0};

/* A search that asks for random contexts. */
struct asking {
  wf_scores scores;
  wf__predictions on_cpu, on_gpu;
  wf__prediction_work work;
  uint64_t contexts[MOST_CONTEXTS];
  uint32_t numbers[MOST_CONTEXTS];
  size_t num_contexts;
};

/* Adds contexts: one token more after random ones of those that are done. */
static void extend(struct asking *a, test_rng *rng, const wf_transducer *model) {
  uint32_t on_gpu;
  const size_t done = a->num_contexts;
  while (a->num_contexts < MOST_CONTEXTS && (done == 0 || test_below(rng, 3) > 0)) {
    const size_t i = a->num_contexts++;
    if (done == 0) {
      a->contexts[i] = wf__context_start(model);
      assert_ok(wf__predictions_start(&a->on_cpu, &a->numbers[i], &err));
      assert_ok(wf__predictions_start(&a->on_gpu, &on_gpu, &err));
      return;
    }
    const size_t parent = test_below(rng, (uint32_t)done);
    const int32_t token = (int32_t)test_below(rng, (uint32_t)model->num_tokens);
    a->contexts[i] = wf__context_after(model, a->contexts[parent], token);
    assert_ok(wf__predictions_number(&a->on_cpu, a->contexts[i], a->numbers[parent], token,
                                     &a->numbers[i], &err));
    assert_ok(wf__predictions_number(&a->on_gpu, a->contexts[i], a->numbers[parent], token, &on_gpu,
                                     &err));
    assert_int_equal(on_gpu, a->numbers[i]);
  }
}

/* All log-probabilities of a row: tokens, then durations. */
static void take_all(const wf__score_row *row, const wf_transducer *model, float *out) {
  const size_t num_tokens = (size_t)model->num_tokens;
  if (row->tokens != NULL) memcpy(out, row->tokens, num_tokens * sizeof *out);
  assert_true(row->tokens != NULL || row->num_entries == num_tokens);
  for (size_t i = 0; row->tokens == NULL && i < num_tokens; i++) {
    assert_int_equal(row->entries[i].column, i);
    out[i] = row->entries[i].loglike;
  }
  memcpy(out + num_tokens, row->durations, (size_t)model->num_durations * sizeof *out);
}

static void check_close(const struct asking *a, const wf_transducer *model,
                        const wf__score_row *want_rows, const wf__score_row *got_rows) {
  const size_t size = wf__transducer_num_logits(model);
  float want[MOST_LOGITS], got[MOST_LOGITS];
  for (size_t r = 0; r < a->num_contexts; r++) {
    take_all(&want_rows[r], model, want);
    take_all(&got_rows[r], model, got);
    for (size_t i = 0; i < size; i++)
      if (!(fabs((double)want[i] - (double)got[i]) <= 1e-4 * (1 + fabs((double)want[i]))))
        fail_msg("row %zu, column %zu: %.9g on the GPU, %.9g on the CPU", r, i, (double)got[i],
                 (double)want[i]);
  }
}

static float acoustic_cost(float loglike) {
  return loglike == -INFINITY ? INFINITY : -(cut.acoustic_scale * loglike);
}

static int falling(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x < y) - (x > y);
}

/* The k-th largest log-probability of a row's tokens; k = 0: -infinity. */
static float kth_of(const float *all, const wf_transducer *model, uint32_t k) {
  float sorted[MOST_LOGITS];
  size_t size = 0;
  for (int32_t i = 0; i < model->num_tokens; i++)
    if (i != model->blank) sorted[size++] = all[i];
  qsort(sorted, size, sizeof *sorted, falling);
  return k > 0 && k <= size ? sorted[k - 1] : -INFINITY;
}

/* Asks again, for those log-probabilities alone that can matter. They must have the same bits. A
 * token may be left out if it costs more than the best candidate and `beam`, or more than k other
 * tokens of the row, or of any row if durations are the same for all. */
static void check_needed(struct asking *a, const wf_transducer *model, const wf__score_row *rows,
                         wf__transducer_group *alone, test_rng *rng, uint64_t *num_left_out) {
  const size_t count = a->num_contexts, size = (size_t)model->num_tokens;
  wf__row_need needs[MOST_CONTEXTS];
  float all[MOST_CONTEXTS][MOST_LOGITS], longest[MOST_CONTEXTS], kth[MOST_CONTEXTS],
      kth_of_any = INFINITY, least = 5 * test_unit(rng);
  wf__score_cut kth_cut = cut;
  kth_cut.most_tokens = test_below(rng, 6);
  const float least_waiting = least;
  const wf__score_row *some;
  for (size_t r = 0; r < count; r++) {
    needs[r] = (wf__row_need){test_below(rng, 5) == 0 ? INFINITY : 4 * test_unit(rng),
                              test_below(rng, 3) == 0 ? INFINITY : 4 * test_unit(rng), INFINITY};
    if (test_below(rng, 3) > 0) needs[r].all = needs[r].token + test_unit(rng);
    take_all(&rows[r], model, all[r]);
    kth[r] = needs[r].all + acoustic_cost(kth_of(all[r], model, kth_cut.most_tokens));
    kth_of_any = fminf(kth_of_any, kth[r]);
    longest[r] = model->num_durations > 0 ? -INFINITY : 0;
    float of_blank = longest[r];
    for (int d = 0; d < model->num_durations; d++) {
      longest[r] = fmaxf(longest[r], all[r][size + (size_t)d]);
      if (d > 0) of_blank = fmaxf(of_blank, all[r][size + (size_t)d]);
    }
    least = fminf(
        least, needs[r].blank + acoustic_cost(all[r][model->blank] - cut.blank_penalty + of_blank));
  }
  const int64_t frames[] = {a->scores.num_frames};
  wf__transducer_counts counts;
  struct asking one = {.num_contexts = count};
  wf__predictions_init(&one.on_gpu, model, true);
  for (size_t i = 0; i < count; i++) {
    const uint32_t n = a->numbers[i];
    assert_ok(n == 0
                  ? wf__predictions_start(&one.on_gpu, &one.numbers[i], &err)
                  : wf__predictions_number(&one.on_gpu, a->contexts[i], a->on_gpu.parents.data[n],
                                           a->on_gpu.tokens.data[n], &one.numbers[i], &err));
    /* Parents first: they are not all among the contexts that are asked for. */
    assert_ok(
        wf__predictions_request(&one.on_gpu, a->on_gpu.frame, &one.numbers[i], NULL, 0, 1, &err));
    assert_ok(wf__gpu_transducers()->group_begin(alone, &kth_cut, frames, 1, NULL, &err));
    wf__gpu_transducers()->group_put(alone, 0, &a->scores, -1, &one.on_gpu);
    assert_ok(wf__gpu_transducers()->group_submit(alone, &counts, &err));
    assert_ok(wf__gpu_transducers()->group_wait(alone, &err));
  }
  assert_ok(wf__predictions_request(&one.on_gpu, a->on_gpu.frame, one.numbers, needs, least_waiting,
                                    count, &err));
  wf__gpu_transducers()->group_put(alone, 0, NULL, -1, &one.on_gpu);
  assert_ok(wf__gpu_transducers()->group_submit(alone, &counts, &err));
  assert_int_equal(counts.num_rows, count);
  assert_ok(wf__gpu_transducers()->group_wait(alone, &err));
  assert_ok(wf__predictions_take(&one.on_gpu, &some, &err));
  for (size_t r = 0; r < count; r++) {
    uint32_t at = 0;
    for (size_t i = 0; i < size; i++) {
      float got = -INFINITY;
      if (some[r].tokens != NULL)
        got = some[r].tokens[i];
      else if (at < some[r].num_entries && some[r].entries[at].column == (int32_t)i)
        got = some[r].entries[at++].loglike;
      if (got == all[r][i]) continue;
      assert_true(got == -INFINITY && (int32_t)i != model->blank);
      const float token = needs[r].token + acoustic_cost(all[r][i] + longest[r]);
      if (token > least + cut.beam) {
        num_left_out[0]++;
        continue;
      }
      if (model->num_durations == 0)
        assert_true(token > kth_of_any);
      else
        assert_true(needs[r].token + acoustic_cost(all[r][i]) > kth[r]);
      num_left_out[1]++;
    }
    assert_true(some[r].tokens != NULL || at == some[r].num_entries);
    assert_memory_equal(some[r].durations, all[r] + size,
                        (size_t)model->num_durations * sizeof(float));
  }
  wf__predictions_free(&one.on_gpu);
}

/* Answers the lanes' requests together on the GPU, and one by one with a second group. */
static void check_answers(struct asking *asking, const wf_transducer *model,
                          wf__transducer_group *group, wf__transducer_group *alone, test_rng *rng,
                          bool begins, uint64_t *num_left_out) {
  bool asks[LANES];
  const wf__score_row *want, *got[LANES];
  wf__transducer_counts counts;
  const size_t size = wf__transducer_num_logits(model);
  for (int l = 0; l < LANES; l++) {
    struct asking *a = &asking[l];
    wf__predictions *on_cpu = &a->on_cpu;
    const int64_t frame = (int64_t)test_below(rng, (uint32_t)a->scores.num_frames);
    asks[l] = begins || test_below(rng, 4) > 0;
    if (!asks[l]) continue;
    extend(a, rng, model);
    assert_ok(wf__predictions_request(on_cpu, frame, a->numbers, NULL, 0, a->num_contexts, &err));
    assert_ok(
        wf__predictions_request(&a->on_gpu, frame, a->numbers, NULL, 0, a->num_contexts, &err));
    assert_ok(wf__predictions_answer(&on_cpu, 1, &a->work, &err));
    wf__gpu_transducers()->group_put(group, (size_t)l, begins ? &a->scores : NULL, -1, &a->on_gpu);
  }
  assert_ok(wf__gpu_transducers()->group_submit(group, &counts, &err));
  assert_ok(wf__gpu_transducers()->group_wait(group, &err));
  for (int l = 0; l < LANES; l++) {
    if (!asks[l]) continue;
    assert_ok(wf__predictions_take(&asking[l].on_cpu, &want, &err));
    assert_ok(wf__predictions_take(&asking[l].on_gpu, &got[l], &err));
    check_close(&asking[l], model, want, got[l]);
  }
  if (alone == NULL) return;
  /* All contexts anew, in a group of one. */
  for (int l = 0; l < LANES; l++) {
    if (!asks[l]) continue;
    struct asking *a = &asking[l], one = {.num_contexts = a->num_contexts};
    const wf__predictions *p = &a->on_gpu;
    wf__predictions_init(&one.on_gpu, model, true);
    for (size_t i = 0; i < a->num_contexts; i++) {
      const uint32_t n = a->numbers[i];
      assert_ok(n == 0 ? wf__predictions_start(&one.on_gpu, &one.numbers[i], &err)
                       : wf__predictions_number(&one.on_gpu, a->contexts[i], p->parents.data[n],
                                                p->tokens.data[n], &one.numbers[i], &err));
      const int64_t frames[] = {a->scores.num_frames};
      const wf__score_row *again;
      float bits[MOST_LOGITS], want_bits[MOST_LOGITS];
      assert_ok(wf__predictions_request(&one.on_gpu, p->frame, &one.numbers[i], NULL, 0, 1, &err));
      assert_ok(wf__gpu_transducers()->group_begin(alone, &cut, frames, 1, NULL, &err));
      wf__gpu_transducers()->group_put(alone, 0, &a->scores, -1, &one.on_gpu);
      assert_ok(wf__gpu_transducers()->group_submit(alone, &counts, &err));
      assert_ok(wf__gpu_transducers()->group_wait(alone, &err));
      assert_ok(wf__predictions_take(&one.on_gpu, &again, &err));
      take_all(again, model, bits);
      take_all(&got[l][i], model, want_bits);
      assert_memory_equal(bits, want_bits, size * sizeof *bits);
    }
    wf__predictions_free(&one.on_gpu);
    check_needed(a, model, got[l], alone, rng, num_left_out);
  }
}

/* Drops some contexts on both; slots are used again. */
static void drop_some(struct asking *a, test_rng *rng) {
  uint32_t copies[MOST_CONTEXTS], *kept[MOST_CONTEXTS], *copied[MOST_CONTEXTS];
  size_t count = 0;
  for (size_t i = 0; i < a->num_contexts; i++) {
    if (test_below(rng, 2) && (count > 0 || i + 1 < a->num_contexts)) continue;
    a->contexts[count] = a->contexts[i];
    a->numbers[count] = copies[count] = a->numbers[i];
    kept[count] = &a->numbers[count];
    copied[count] = &copies[count];
    count++;
  }
  a->num_contexts = count;
  assert_ok(wf__predictions_keep(&a->on_cpu, kept, count, &err));
  assert_ok(wf__predictions_keep(&a->on_gpu, copied, count, &err));
  assert_memory_equal(copies, a->numbers, count * sizeof *copies);
}

static void test_small_log_probs(void **unused) {
  (void)unused;
  uint64_t num_left_out[2] = {0};
  for (uint64_t seed = 0; seed < test_seeds(60); seed++) {
    test_rng rng = {seed + 1};
    const transducer_shape s = random_transducer_shape(&rng, seed);
    wf_transducer *model = random_transducer(&rng, &s);
    wf__transducer_weights *weights;
    wf__transducer_group *group, *alone;
    struct asking asking[LANES] = {0};
    int64_t num_frames[LANES];
    assert_ok(wf__gpu_transducers()->weights_send(model, 0, &weights, &err));
    assert_ok(wf__gpu_transducers()->group_open(weights, &group, &err));
    assert_ok(wf__gpu_transducers()->group_open(weights, &alone, &err));
    for (int l = 0; l < LANES; l++) {
      num_frames[l] = MOST_FRAMES;
      asking[l].scores =
          random_encoder_outputs(&rng, model, 1 + (int64_t)test_below(&rng, MOST_FRAMES));
      wf__predictions_init(&asking[l].on_cpu, model, false);
      wf__predictions_init(&asking[l].on_gpu, model, true);
      assert_ok(
          wf__predictions_encode(&asking[l].on_cpu, &asking[l].scores, 0, &asking[l].work, &err));
    }
    assert_ok(wf__gpu_transducers()->group_begin(group, &cut, num_frames, LANES, NULL, &err));
    for (int round = 0; round < 9; round++) {
      check_answers(asking, model, group, round == 3 ? alone : NULL, &rng, round == 0,
                    num_left_out);
      for (int l = 0; l < LANES && round > 3; l++) drop_some(&asking[l], &rng);
    }
    for (int l = 0; l < LANES; l++) {
      wf__predictions_free(&asking[l].on_cpu);
      wf__predictions_free(&asking[l].on_gpu);
      wf__prediction_work_free(&asking[l].work);
      free((void *)(uintptr_t)asking[l].scores.data);
    }
    wf__gpu_transducers()->group_close(group);
    wf__gpu_transducers()->group_close(alone);
    wf__gpu_transducers()->weights_free(weights);
    wf_transducer_free(model);
  }
  print_message("%llu log-probabilities left out, %llu because others are better\n",
                (unsigned long long)num_left_out[0], (unsigned long long)num_left_out[1]);
  assert_true(num_left_out[0] > 0 && num_left_out[1] > 0);
}

/* --- decoding ---------------------------------------------------------------------------- */

enum { UTTERANCES = 40 };

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
static wf_scorer *random_boosts(test_rng *rng) {
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

static wf_fst *tokens_graph(int num_tokens) {
  char text[8192];
  size_t at = 0;
  for (int t = 0; t < num_tokens; t++)
    at += (size_t)snprintf(text + at, sizeof text - at, "0 0 %d %d\n", t + 1, t);
  snprintf(text + at, sizeof text - at, "0\n");
  return test_fst_of(WF_TROPICAL, text);
}

static void make_task(struct task *task, uint64_t seed) {
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
  task->options.lattice_beam = !task->options.greedy && seed % 5 == 4 ? 2 : 0;
  task->options.num_threads = 1 + (int32_t)(seed % 3);
  for (int u = 0; u < UTTERANCES; u++)
    task->scores[u] =
        random_encoder_outputs(&rng, task->model, (int64_t)test_below(&rng, u % 9 == 0 ? 30 : 8));
  task->scorer = seed / 2 % 3 > 0 ? random_boosts(&rng) : NULL;
}

static wf_decoder *decoder_on(const struct task *task, const char *device) {
  wf_decoder_options options = task->options;
  wf_decoder *decoder;
  options.device = device;
  assert_ok(wf_decoder_create_transducer(task->graph, task->model, &options, &decoder, &err));
  assert_ok(wf_decoder_set_scorer(decoder, task->scorer, &err));
  return decoder;
}

static void free_task(struct task *task) {
  for (int u = 0; u < UTTERANCES; u++) free((void *)(uintptr_t)task->scores[u].data);
  wf_graph_free(task->graph);
  wf_transducer_free(task->model);
  wf_scorer_free(task->scorer);
}

static void decode_on(const struct task *task, const char *device, const wf_scores *scores,
                      size_t at_once, wf_result **results) {
  wf_decoder *decoder = decoder_on(task, device);
  for (size_t i = 0; i < UTTERANCES; i += at_once)
    assert_ok(test_decode(decoder, scores + i, UTTERANCES - i < at_once ? UTTERANCES - i : at_once,
                          NULL, results + i, &err));
  wf_decoder_free(decoder);
}

static bool same_words(const wf_result *a, const wf_result *b) {
  if (a->num_words != b->num_words || a->flags != b->flags) return false;
  for (size_t w = 0; w < a->num_words; w++)
    if (a->words[w].label != b->words[w].label) return false;
  return true;
}

/* The same words, unless the costs say that both are best. Counts the former. */
static void check_alike(uint64_t seed, int u, const wf_result *got, const wf_result *want,
                        int *num_alike) {
  assert_int_equal(got->status, WF_OK);
  if (!(fabs(got->cost - want->cost) <= 1e-3 * (1 + fabs(want->cost))))
    fail_msg("seed %llu, utterance %d: cost %.9g on the GPU, %.9g on the CPU",
             (unsigned long long)seed, u, got->cost, want->cost);
  *num_alike += same_words(got, want);
}

/* A copy in the memory of the GPU. */
static wf_scores on_gpu(const wf_scores *scores) {
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

static int num_gpus(void) {
  int count = 0;
  assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
  return count;
}

/* One decoder, batches of different sizes: lanes keep predictor contexts from one to the next. */
static void decode_in_turn(const struct task *task, const char *device, wf_result *const *want) {
  static const size_t sizes[] = {20, 2, 5, 1, 9, 3};
  wf_decoder *decoder = decoder_on(task, device);
  for (size_t i = 0, first = 0; i < sizeof sizes / sizeof *sizes; first += sizes[i++]) {
    wf_result *got[UTTERANCES];
    assert_true(first + sizes[i] <= UTTERANCES);
    assert_ok(test_decode(decoder, task->scores + first, sizes[i], NULL, got, &err));
    for (size_t k = 0; k < sizes[i]; k++) test_assert_same_result(got[k], want[first + k]);
    test_free_results(got, sizes[i]);
  }
  wf_decoder_free(decoder);
}

/* All utterances as streams of random chunks, some of them on the GPU. Streams end at different
 * times, and others begin in their place. */
static void stream_on(const struct task *task, const char *device, wf_result *const *want,
                      uint64_t seed) {
  enum { OPEN = 7 };
  test_rng rng = {seed + 99};
  wf_decoder *decoder = decoder_on(task, device);
  wf_stream *streams[OPEN];
  int utterances[OPEN], next = 0;
  int64_t done[OPEN] = {0};
  for (int s = 0; s < OPEN; s++) {
    assert_ok(wf_stream_open(decoder, NULL, &streams[s], &err));
    utterances[s] = next++;
  }
  for (int num_done = 0; num_done < UTTERANCES;) {
    wf_stream *some[OPEN];
    wf_scores chunks[OPEN];
    wf_stream_event events[OPEN];
    void *there[OPEN] = {NULL};
    size_t count = 0;
    for (int s = 0; s < OPEN; s++) {
      if (utterances[s] < 0) continue;
      const wf_scores *all = &task->scores[utterances[s]];
      const int64_t left = all->num_frames - done[s];
      if (left == 0) {
        wf_result *result;
        assert_ok(wf_stream_finish(streams[s], &result, &err));
        test_assert_same_result(result, want[utterances[s]]);
        wf_result_free(result);
        assert_ok(wf_stream_reset(streams[s], &err));
        utterances[s] = next < UTTERANCES ? next++ : -1;
        done[s] = 0;
        num_done++;
        continue;
      }
      if (test_below(&rng, 4) == 0) continue;
      const int64_t size = 1 + (int64_t)test_below(&rng, (uint32_t)left);
      chunks[count] = *all;
      chunks[count].data =
          (const char *)all->data + (size_t)(done[s] * all->stride) * test_score_size(all->dtype);
      chunks[count].num_frames = size;
      if (test_below(&rng, 3) == 0) {
        chunks[count] = on_gpu(&chunks[count]);
        there[count] = (void *)(uintptr_t)chunks[count].data;
      }
      some[count++] = streams[s];
      done[s] += size;
    }
    if (count > 0) assert_ok(wf_streams_advance(decoder, some, chunks, count, events, &err));
    for (size_t i = 0; i < count; i++)
      if (there[i] != NULL) assert_int_equal(cudaFree(there[i]), cudaSuccess);
  }
  for (int s = 0; s < OPEN; s++) wf_stream_close(streams[s]);
  wf_decoder_free(decoder);
}

static void test_small_decoding(void **unused) {
  (void)unused;
  int num_alike = 0, num_utterances = 0;
  uint64_t num_words = 0;
  for (uint64_t seed = 0; seed < test_seeds(42); seed++) {
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES], *other[UTTERANCES];
    wf_scores moved[UTTERANCES];
    make_task(&task, seed);
    decode_on(&task, "cpu", task.scores, UTTERANCES, want);
    decode_on(&task, "cuda", task.scores, UTTERANCES, got);
    for (int u = 0; u < UTTERANCES; u++) {
      check_alike(seed, u, got[u], want[u], &num_alike);
      num_words += got[u]->num_words;
      num_utterances++;
    }
    for (size_t at_once = 1; at_once <= 3; at_once += 2) {
      decode_on(&task, "cuda", task.scores, at_once, other);
      for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(other[u], got[u]);
      test_free_results(other, UTTERANCES);
    }
    decode_in_turn(&task, "cuda", got);
    decode_in_turn(&task, "cuda:0,0", got);
    if (num_gpus() > 1) decode_in_turn(&task, "cuda:all", got);
    stream_on(&task, "cuda", got, seed);
    if (seed % 2 == 0) stream_on(&task, num_gpus() > 1 ? "cuda:1,0" : "cuda:0,0", got, seed);
    for (int u = 0; u < UTTERANCES; u++) moved[u] = on_gpu(&task.scores[UTTERANCES - 1 - u]);
    decode_on(&task, "cuda:0", moved, UTTERANCES, other);
    for (int u = 0; u < UTTERANCES; u++) {
      test_assert_same_result(other[u], got[UTTERANCES - 1 - u]);
      assert_int_equal(cudaFree((void *)(uintptr_t)moved[u].data), cudaSuccess);
    }
    test_free_results(other, UTTERANCES);
    test_free_results(want, UTTERANCES);
    test_free_results(got, UTTERANCES);
    free_task(&task);
  }
  print_message("%d of %d utterances with the CPU's words, %llu words\n", num_alike, num_utterances,
                (unsigned long long)num_words);
  assert_true(num_words > 0 && num_alike >= num_utterances * 99 / 100);
}

/* --- errors ------------------------------------------------------------------------------ */

/* An utterance with a bad score fails alone. */
static void test_small_bad_scores(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 6; seed++) {
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES];
    make_task(&task, seed);
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    int bad = 0;
    while (task.scores[bad].num_frames == 0 || task.scores[bad].dtype != WF_FLOAT32) bad++;
    ((float *)(uintptr_t)task.scores[bad].data)[0] = NAN;
    const wf_scores on_host = task.scores[bad];
    for (int there = 0; there < 2; there++) {
      if (there != 0) task.scores[bad] = on_gpu(&on_host);
      decode_on(&task, "cuda", task.scores, UTTERANCES, got);
      for (int u = 0; u < UTTERANCES; u++)
        if (u != bad) test_assert_same_result(got[u], want[u]);
      assert_int_equal(got[bad]->status, WF_ERR_ARGUMENT);
      assert_non_null(
          strstr(got[bad]->message, there != 0 ? "frame 0: the logit of token 0 is nan" : "NaN"));
      test_free_results(got, UTTERANCES);
    }
    assert_int_equal(cudaFree((void *)(uintptr_t)task.scores[bad].data), cudaSuccess);
    task.scores[bad] = on_host;
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}

/* --- cancelled calls --------------------------------------------------------------------- */

/* Cancels the call at the last poll of *user. */
static bool look(void *user) {
  int *looks = user;
  wf__interrupt_poll();
  return --*looks > 0;
}

static int longest_of(const struct task *task) {
  int longest = 0;
  for (int u = 1; u < UTTERANCES; u++)
    if (task->scores[u].num_frames > task->scores[longest].num_frames) longest = u;
  return longest;
}

enum { TOGETHER = 3 };

/* Utterances from number `first` on as one chunk of a stream each. If the call fails, returns its
 * status after the same streams have done it once more. `prepare` and `end`: before and after the
 * call that may fail. */
static wf_status stream_twice(wf_decoder *decoder, const struct task *task, int first,
                              void (*prepare)(void *user), void *user, void (*end)(void),
                              wf_result *const *want) {
  wf_stream *streams[TOGETHER];
  wf_scores chunks[TOGETHER];
  wf_result *result;
  for (int s = 0; s < TOGETHER; s++) {
    assert_ok(wf_stream_open(decoder, NULL, &streams[s], &err));
    chunks[s] = task->scores[(first + s) % UTTERANCES];
  }
  prepare(user);
  const wf_status status = wf_streams_advance(decoder, streams, chunks, TOGETHER, NULL, &err);
  end();
  for (int s = 0; s < TOGETHER && status != WF_OK; s++) {
    assert_ok(wf_stream_finish(streams[s], &result, &err));
    assert_int_equal(result->status, status);
    wf_result_free(result);
    assert_ok(wf_stream_reset(streams[s], &err));
  }
  if (status != WF_OK && status != WF_ERR_DEVICE)
    assert_ok(wf_streams_advance(decoder, streams, chunks, TOGETHER, NULL, &err));
  for (int s = 0; s < TOGETHER; s++) {
    if (status != WF_ERR_DEVICE) {
      assert_ok(wf_stream_finish(streams[s], &result, &err));
      test_assert_same_result(result, want[(first + s) % UTTERANCES]);
      wf_result_free(result);
    }
    wf_stream_close(streams[s]);
  }
  return status;
}

static void begin_looks(void *looks) { wf_set_interrupt(look, looks); }
static void end_looks(void) { wf_set_interrupt(NULL, NULL); }

static wf_status stream_cancelled(wf_decoder *decoder, const struct task *task, int first,
                                  int looks, wf_result *const *want) {
  const wf_status status = stream_twice(decoder, task, first, begin_looks, &looks, end_looks, want);
  if (status != WF_OK) assert_int_equal(status, WF_ERR_CANCELLED);
  return status;
}

/* The same for a batch of all utterances. */
static wf_status batch_cancelled(wf_decoder *decoder, const struct task *task, int looks,
                                 wf_result *const *want) {
  wf_result *got[UTTERANCES];
  wf_set_interrupt(look, &looks);
  const wf_status status = test_decode(decoder, task->scores, UTTERANCES, NULL, got, &err);
  wf_set_interrupt(NULL, NULL);
  if (status != WF_OK) assert_int_equal(status, WF_ERR_CANCELLED);
  if (status != WF_OK) assert_ok(test_decode(decoder, task->scores, UTTERANCES, NULL, got, &err));
  for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
  test_free_results(got, UTTERANCES);
  return status;
}

/* One decoder: cancelled calls change no later result, and none of a stream that is open. */
static void test_small_cancelled_calls(void **unused) {
  (void)unused;
  int num_cancelled = 0;
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_result *want[UTTERANCES], *result;
    wf_decoder *decoder;
    wf_stream *open;
    int64_t done = 0;
    make_task(&task, seed);
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    const int longest = longest_of(&task);
    const wf_scores *scores = &task.scores[longest];
    task.options.device = "cuda";
    assert_ok(wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
    assert_ok(wf_stream_open(decoder, NULL, &open, &err));
    bool in_batch = true, in_stream = true;
    for (int looks = 1; in_batch || in_stream; looks += 1 + looks / 2) {
      if (done < scores->num_frames) {
        const wf_scores chunk = test_rows(scores, done++, 1);
        assert_ok(wf_stream_accept(open, &chunk, NULL, &err));
      }
      if (in_batch) in_batch = batch_cancelled(decoder, &task, looks, want) != WF_OK;
      if (in_stream) in_stream = stream_cancelled(decoder, &task, longest, looks, want) != WF_OK;
      num_cancelled += in_batch + in_stream;
    }
    if (done < scores->num_frames) {
      const wf_scores chunk = test_rows(scores, done, scores->num_frames - done);
      assert_ok(wf_stream_accept(open, &chunk, NULL, &err));
    }
    assert_ok(wf_stream_finish(open, &result, &err));
    test_assert_same_result(result, want[longest]);
    wf_result_free(result);
    wf_stream_close(open);
    wf_decoder_free(decoder);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
  print_message("%d calls cancelled\n", num_cancelled);
  assert_true(num_cancelled > 20);
}

static bool no_predictions(void *user, const wf_predictor_rows *rows) {
  return user == NULL && rows->count == 0;
}
static bool no_logits(void *user, const wf_joiner_rows *rows) {
  return user == NULL && rows->count == 0;
}

static void test_small_refused(void **unused) {
  (void)unused;
  static struct task task;
  wf_decoder *decoder;
  wf_transducer *behind;
  wf_transducer_parts parts;
  make_task(&task, 0);
  task.options.device = "cuda:63";
  assert_int_equal(
      wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err),
      WF_ERR_DEVICE);
  wf_transducer_parts_init(&parts);
  parts.num_tokens = task.model->num_tokens;
  parts.encoder_size = parts.predictor_size = parts.context_size = 1;
  parts.predict = no_predictions;
  parts.join = no_logits;
  assert_ok(wf_transducer_create(&parts, &behind, &err));
  task.options.device = "cuda";
  assert_int_equal(wf_decoder_create_transducer(task.graph, behind, &task.options, &decoder, &err),
                   WF_ERR_UNSUPPORTED);
  assert_non_null(strstr(err.message, "behind functions"));
  wf_transducer_free(behind);
  free_task(&task);
}

#ifdef FAKE_CUDA
/* Another GPU gives the same, and copies what is in this one's memory. */
static void test_small_another_gpu(void **unused) {
  (void)unused;
  static struct task task;
  wf_result *want[UTTERANCES], *got[UTTERANCES];
  int moved = 0;
  make_task(&task, 1);
  decode_on(&task, "cuda", task.scores, UTTERANCES, want);
  while (task.scores[moved].num_frames == 0) moved++;
  const wf_scores on_host = task.scores[moved];
  task.scores[moved] = on_gpu(&on_host);
  decode_on(&task, "cuda:1", task.scores, UTTERANCES, got);
  for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
  assert_int_equal(cudaFree((void *)(uintptr_t)task.scores[moved].data), cudaSuccess);
  task.scores[moved] = on_host;
  test_free_results(want, UTTERANCES);
  test_free_results(got, UTTERANCES);
  free_task(&task);
}

static bool stop_at_once(void *user, const char *stage, double fraction) { return false; }

/* A batch that is cancelled leaves the streams of its decoder alone. */
static void test_small_cancelled_batch(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_result *want[UTTERANCES], *got[UTTERANCES], *result;
    wf_decoder *decoder;
    wf_stream *stream;
    wf_stream_event event;
    const wf_progress progress = {stop_at_once, NULL};
    make_task(&task, seed);
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    const int longest = longest_of(&task);
    const wf_scores *scores = &task.scores[longest];
    task.options.device = "cuda";
    assert_ok(wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
    assert_ok(wf_stream_open(decoder, NULL, &stream, &err));
    for (int64_t t = 0; t < scores->num_frames; t++) {
      const wf_scores chunk = test_rows(scores, t, 1);
      assert_ok(wf_stream_accept(stream, &chunk, &event, &err));
      if (t == scores->num_frames / 2)
        assert_int_equal(test_decode(decoder, task.scores, UTTERANCES, &progress, got, &err),
                         WF_ERR_CANCELLED);
    }
    assert_ok(wf_stream_finish(stream, &result, &err));
    test_assert_same_result(result, want[longest]);
    wf_result_free(result);
    wf_stream_close(stream);
    assert_ok(test_decode(decoder, task.scores, UTTERANCES, NULL, got, &err));
    for (int u = 0; u < UTTERANCES; u++) test_assert_same_result(got[u], want[u]);
    wf_decoder_free(decoder);
    test_free_results(got, UTTERANCES);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}

static void begin_failing(void *call) {
  fake_gpus.num_calls = 0;
  fake_gpus.failed_to_allocate = false;
  fake_gpus.fail_at = *(const long *)call;
}
static void end_failing(void) { fake_gpus.fail_at = 0; }

/* The first of the utterances together that have the fewest frames, but some. */
static int shortest_together(const struct task *task) {
  int64_t least = INT64_MAX;
  int best = 0;
  for (int u = 0; u + TOGETHER <= UTTERANCES; u++) {
    int64_t sum = 0;
    for (int s = 0; s < TOGETHER; s++) sum += task->scores[u + s].num_frames;
    if (sum >= 4 && sum < least) {
      least = sum;
      best = u;
    }
  }
  return best;
}

/* After memory could not be allocated, the decoder works as before; after another error of CUDA, it
 * says that it cannot be used. */
static void test_small_failing_calls_in_streams(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_result *want[UTTERANCES];
    int num_short = 0, num_broken = 0;
    bool reached = true;
    make_task(&task, seed);
    task.options.num_threads = 1;
    decode_on(&task, "cuda", task.scores, UTTERANCES, want);
    task.options.device = "cuda";
    for (long n = 1; reached; n++) {
      wf_decoder *decoder;
      assert_ok(
          wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
      const wf_status status = stream_twice(decoder, &task, shortest_together(&task), begin_failing,
                                            &n, end_failing, want);
      reached = fake_gpus.num_calls >= n;
      if (status == WF_ERR_DEVICE) {
        wf_stream *stream;
        assert_ok(wf_stream_open(decoder, NULL, &stream, &err));
        assert_int_equal(wf_stream_accept(stream, &task.scores[0], NULL, &err), WF_ERR_DEVICE);
        assert_non_null(strstr(err.message, "an earlier CUDA error"));
        wf_stream_close(stream);
      }
      num_short += status == WF_ERR_MEMORY;
      num_broken += status == WF_ERR_DEVICE;
      wf_decoder_free(decoder);
    }
    print_message("%d times no memory, %d other errors\n", num_short, num_broken);
    assert_true(num_short > 3 && num_broken > 20);
    test_free_results(want, UTTERANCES);
    free_task(&task);
  }
}

enum { FEW = 3 };

static wf_result *few_want[FEW];

/* The first utterance as a stream of two chunks. */
static wf_status stream_one(const struct task *task, wf_decoder *decoder, wf_error *error) {
  wf_stream *stream = NULL;
  wf_result *result = NULL;
  wf_stream_event event;
  const int64_t num_frames = task->scores[0].num_frames;
  wf_status status = wf_stream_open(decoder, NULL, &stream, error);
  for (int64_t first = 0; first < num_frames && status == WF_OK; first += num_frames - 1) {
    const wf_scores chunk = test_rows(&task->scores[0], first, first == 0 ? num_frames - 1 : 1);
    status = wf_stream_accept(stream, &chunk, &event, error);
  }
  if (status == WF_OK) status = wf_stream_finish(stream, &result, error);
  if (status == WF_OK && result->status != WF_OK) {
    snprintf(error->message, sizeof error->message, "%s", result->message);
    status = result->status;
  }
  if (status == WF_OK) test_assert_same_result(result, few_want[0]);
  wf_result_free(result);
  wf_stream_close(stream);
  return status;
}

/* Returns the error of the call, or else of the first utterance that failed. */
static wf_status decode_few(const void *input, wf_error *error) {
  const struct task *task = input;
  wf_decoder_options options = task->options;
  wf_decoder *decoder;
  wf_result *results[FEW] = {NULL};
  options.device = "cuda";
  wf_status status =
      wf_decoder_create_transducer(task->graph, task->model, &options, &decoder, error);
  if (status == WF_OK) status = test_decode(decoder, task->scores, FEW, NULL, results, error);
  for (int u = 0; u < FEW && status == WF_OK; u++) {
    if (results[u]->status == WF_OK)
      test_assert_same_result(results[u], few_want[u]);
    else
      snprintf(error->message, sizeof error->message, "%s", results[u]->message);
    status = results[u]->status;
  }
  for (int u = 0; u < FEW; u++) wf_result_free(results[u]);
  if (status == WF_OK) status = stream_one(task, decoder, error);
  wf_decoder_free(decoder);
  return status;
}

static void test_small_every_cuda_call_fails_once(void **unused) {
  (void)unused;
  for (uint64_t seed = 0; seed < 2; seed++) { /* stateless, LSTM */
    static struct task task;
    wf_scores all[FEW];
    make_task(&task, seed);
    task.options.num_threads = 1;
    int found = 0;
    for (int u = 0; u < UTTERANCES && found < FEW; u++)
      if (task.scores[u].num_frames >= 2 && task.scores[u].num_frames < 4)
        all[found++] = task.scores[u];
    assert_int_equal(found, FEW);
    const wf_scores saved[FEW] = {task.scores[0], task.scores[1], task.scores[2]};
    for (int u = 0; u < FEW; u++) task.scores[u] = all[u];
    all[2] = task.scores[2] = on_gpu(&task.scores[2]);
    wf_decoder *decoder;
    task.options.device = "cuda";
    assert_ok(wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
    assert_ok(test_decode(decoder, task.scores, FEW, NULL, few_want, &err));
    wf_decoder_free(decoder);
    fail_each_call(seed == 0 ? "stateless" : "LSTM", decode_few, &task, 40);
    assert_int_equal(cudaFree((void *)(uintptr_t)all[2].data), cudaSuccess);
    for (int u = 0; u < FEW; u++) task.scores[u] = saved[u];
    test_free_results(few_want, FEW);
    free_task(&task);
  }
}
#endif

static void test_small_stats(void **unused) {
  (void)unused;
  static struct task task;
  wf_decoder *decoder;
  wf_result *results[UTTERANCES];
  wf_transducer_stats stats;
#ifdef FAKE_CUDA
  const long recorded = fake_gpus.num_recorded, launched = fake_gpus.num_launched;
#endif
  make_task(&task, 1);
  task.options.device = "cuda";
  assert_ok(wf_decoder_create_transducer(task.graph, task.model, &task.options, &decoder, &err));
  assert_ok(test_decode(decoder, task.scores, UTTERANCES, NULL, results, &err));
  wf_decoder_transducer_stats(decoder, &stats);
  assert_true(stats.num_rounds > 0 && stats.num_rows > stats.num_rounds && stats.num_contexts > 0 &&
              stats.num_contexts < stats.num_rows);
#ifdef FAKE_CUDA /* most rounds are graphs, which are launched several times each */
  assert_true(fake_gpus.num_launched - launched > (long)stats.num_rounds / 2);
  assert_true(fake_gpus.num_recorded - recorded > 0 &&
              fake_gpus.num_launched - launched > 2 * (fake_gpus.num_recorded - recorded));
#endif
  test_free_results(results, UTTERANCES);
  wf_decoder_free(decoder);
  free_task(&task);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_log_probs),
      cmocka_unit_test(test_small_decoding),
      cmocka_unit_test(test_small_bad_scores),
      cmocka_unit_test(test_small_cancelled_calls),
      cmocka_unit_test(test_small_refused),
      cmocka_unit_test(test_small_stats),
#ifdef FAKE_CUDA
      cmocka_unit_test(test_small_another_gpu),
      cmocka_unit_test(test_small_cancelled_batch),
      cmocka_unit_test(test_small_failing_calls_in_streams),
      cmocka_unit_test(test_small_every_cuda_call_fails_once),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
