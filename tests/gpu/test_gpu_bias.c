/* test_gpu_bias.c - steps of batches of hypotheses on a GPU against wf_bias_advance and wf_bias_add:
 * costs, states and logits bit for bit, with reordered and growing batches. Exits with 77 (skipped)
 * if there is no GPU. Also compiled for the imitated GPU of tests/simt/, where chunks of columns
 * and long lists are small. */
#include <cuda_runtime_api.h>

#include "cuda/generation/bias_kernels.h"
#include "large_biases.h"
#include "random_biases.h"
#ifdef SIMT
#include "failing_calls.h"
#endif

enum { MOST_ROWS = 24, MOST_BIASES = 4 };

static wf_error err;

static void *on_gpu(uint64_t bytes) {
  void *at;
  assert_int_equal(cudaMalloc(&at, bytes), cudaSuccess);
  return at;
}
static void send(void *to, const void *from, uint64_t bytes) {
  assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
}
static void fetch(void *to, const void *from, uint64_t bytes) {
  assert_int_equal(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
}

/* The same batch on both sides. */
struct both {
  const wf_bias *biases[MOST_ROWS], *first[MOST_ROWS];
  wf_bias_state states[MOST_ROWS];
  size_t count, num_first, width, stride;
  float *logits, *got; /* [MOST_ROWS * stride] */
  void *places, *tokens;
  float *costs, *rows;
  wf_bias_batch *batch;
};

static void begin(test_rng *rng, struct both *b, wf_bias *const *biases, wf_bias_gpu *const *gpus,
                  size_t num_biases, size_t num_tokens) {
  wf_bias_gpu *first[MOST_ROWS];
  memset(b, 0, sizeof *b);
  b->count = b->num_first = 1 + test_below(rng, MOST_ROWS);
  for (size_t i = 0; i < b->count; i++) {
    const uint32_t which = test_below(rng, (uint32_t)num_biases);
    b->biases[i] = b->first[i] = biases[which];
    b->states[i] = wf_bias_start(biases[which]);
    first[i] = gpus[which];
  }
  assert_ok(wf_bias_batch_create(first, b->count, &b->batch, &err));
  b->width = num_tokens + test_below(rng, 3);
  b->stride = test_below(rng, 2) ? (b->width + 3) & ~(size_t)3 : b->width + test_below(rng, 4);
  b->logits = malloc(MOST_ROWS * b->stride * sizeof *b->logits);
  b->got = malloc(MOST_ROWS * b->stride * sizeof *b->got);
  assert_true(b->logits != NULL && b->got != NULL);
  b->places = on_gpu(MOST_ROWS * 8);
  b->tokens = on_gpu(MOST_ROWS * 8);
  b->costs = on_gpu(MOST_ROWS * sizeof *b->costs);
  b->rows = on_gpu(MOST_ROWS * b->stride * sizeof *b->rows);
}

static void end(struct both *b) {
  free(b->logits);
  free(b->got);
  cudaFree(b->places);
  cudaFree(b->tokens);
  cudaFree(b->costs);
  cudaFree(b->rows);
  wf_bias_batch_free(b->batch);
}

static void send_numbers(void *to, const int32_t *numbers, size_t count, int32_t bytes) {
  int64_t wide[MOST_ROWS];
  for (size_t i = 0; i < count; i++) wide[i] = numbers[i];
  send(to, bytes == 4 ? (const void *)numbers : wide, count * (size_t)bytes);
}

/* Reorders on both sides; sometimes from a place that is none. */
static void reorder(test_rng *rng, struct both *b, wf_bias_step *step, bool any_count) {
  const wf_bias *biases[MOST_ROWS];
  wf_bias_state states[MOST_ROWS];
  int32_t places[MOST_ROWS];
  const size_t count = any_count ? 1 + test_below(rng, MOST_ROWS) : b->count;
  for (size_t i = 0; i < count; i++) {
    places[i] = (int32_t)test_below(rng, (uint32_t)b->count);
    const bool none = test_below(rng, 50) == 0;
    const bool anew = none && i < b->num_first;
    biases[i] = anew ? b->first[i] : none ? b->first[0] : b->biases[places[i]];
    states[i] = anew   ? wf_bias_start(b->first[i])
                : none ? (wf_bias_state){.ended = 1}
                       : b->states[places[i]];
    if (none) places[i] = test_below(rng, 2) ? -1 : (int32_t)b->count;
  }
  b->count = count;
  memcpy(b->biases, biases, sizeof biases);
  memcpy(b->states, states, sizeof states);
  send_numbers(b->places, places, count, step->index_bytes);
  step->places = b->places;
}

static void advance(test_rng *rng, struct both *b, wf_bias_step *step, uint32_t num_tokens,
                    uint32_t (*choose)(test_rng *rng, uint32_t count)) {
  int32_t tokens[MOST_ROWS], ours[MOST_ROWS];
  float costs[MOST_ROWS], got[MOST_ROWS];
  for (size_t i = 0; i < b->count; i++) {
    tokens[i] = ours[i] = (int32_t)choose(rng, num_tokens);
    if (test_below(rng, 100) == 0) {
      tokens[i] = -1 - (int32_t)test_below(rng, 2);
      ours[i] = (int32_t)num_tokens;
    }
  }
  send_numbers(b->tokens, tokens, b->count, step->index_bytes);
  step->tokens = b->tokens;
  step->costs = test_below(rng, 2) ? b->costs : NULL;
  const bool wanted = step->costs != NULL;
  assert_ok(wf_bias_advance(b->biases, b->states, ours, b->count, costs, &err));
  step->count = b->count;
  assert_ok(wf_bias_batch_step(b->batch, step, &err));
  if (!wanted) return;
  fetch(got, b->costs, b->count * sizeof *got);
  assert_memory_equal(got, costs, b->count * sizeof *got);
}

static void fill_logits(test_rng *rng, struct both *b) {
  for (size_t i = 0; i < MOST_ROWS * b->stride; i++) {
    const uint32_t kind = test_below(rng, 16);
    b->logits[i] = kind == 0   ? 0
                   : kind == 1 ? -0.0f
                   : kind == 2 ? -INFINITY
                               : 8 * test_unit(rng) - 4;
  }
  send(b->rows, b->logits, MOST_ROWS * b->stride * sizeof *b->logits);
}

static bool is_same(float a, float b) {
  return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void check_logits(struct both *b, uint64_t *changed) {
  float *before = malloc(MOST_ROWS * b->stride * sizeof *before);
  assert_non_null(before);
  memcpy(before, b->logits, MOST_ROWS * b->stride * sizeof *before);
  assert_ok(wf_bias_add(b->biases, b->states, b->count, b->logits, b->width, b->stride, 1, &err));
  fetch(b->got, b->rows, MOST_ROWS * b->stride * sizeof *b->got);
  for (size_t i = 0; i < MOST_ROWS * b->stride; i++) {
    if (!is_same(b->got[i], b->logits[i]))
      fail_msg("row %zu, column %zu: %a, on the CPU %a, before %a", i / b->stride, i % b->stride,
               (double)b->got[i], (double)b->logits[i], (double)before[i]);
    *changed += !is_same(before[i], b->logits[i]);
  }
  free(before);
}

static void check_states(struct both *b) {
  wf_bias_state got[MOST_ROWS];
  assert_ok(wf_bias_batch_copy_states(b->batch, NULL, got, &err));
  for (size_t i = 0; i < b->count; i++) {
    const wf_bias_state *want = &b->states[i];
    if (got[i].context != want->context || got[i].history != want->history ||
        got[i].word != want->word || got[i].grammar != want->grammar || got[i].ended != want->ended)
      fail_msg("hypothesis %zu: another state", i);
  }
}

/* A step of everything, or of a part, maybe in several calls. */
static void check_step(test_rng *rng, struct both *b, uint32_t num_tokens,
                       uint32_t (*choose)(test_rng *rng, uint32_t count), uint64_t *changed) {
  wf_bias_step step;
  wf_bias_step_init(&step);
  step.index_bytes = test_below(rng, 2) ? 4 : 8;
  step.width = b->width;
  step.stride = b->stride;
  const bool adds = test_below(rng, 4) > 0, apart = test_below(rng, 3) == 0;
  if (adds) fill_logits(rng, b);
  if (adds && !apart) step.logits = b->rows;
  if (test_below(rng, 2)) reorder(rng, b, &step, test_below(rng, 2));
  advance(rng, b, &step, num_tokens, choose);
  if (adds && apart) {
    wf_bias_step_init(&step);
    step.count = b->count;
    step.logits = b->rows;
    step.width = b->width;
    step.stride = b->stride;
    assert_ok(wf_bias_batch_step(b->batch, &step, &err));
  }
  if (adds) check_logits(b, changed);
  check_states(b);
}

static uint32_t any_token(test_rng *rng, uint32_t count) {
  return test_below(rng, test_below(rng, 20) == 0 ? count : count - 1);
}

/* A bias that has other phrases besides those of `base`. */
static wf_bias *with_phrases(const wf_token_texts *tokens, wf_scorer *list, const wf_bias *base,
                             const wf_scorer *others) {
  wf_bias_parts parts;
  wf_bias *out;
  wf_bias_parts_init(&parts);
  parts.tokens = tokens;
  parts.base = base;
  wf_scorer *chain = NULL;
  if (others != NULL) assert_ok(wf_scorer_chain(list, others, &chain, &err));
  parts.scorer = chain != NULL ? chain : list;
  assert_ok(wf_bias_create(&parts, &out, &err));
  wf_scorer_free(chain);
  wf_scorer_free(list);
  return out;
}

static void copy_biases(wf_bias *const *biases, size_t count, bool shares, wf_bias_gpu **gpus) {
  for (size_t k = 0; k < count; k++)
    assert_ok(
        wf_bias_gpu_create(biases[k], "cuda", shares && k > 0 ? gpus[0] : NULL, &gpus[k], &err));
}

static void free_biases(wf_bias **biases, wf_bias_gpu **gpus, size_t count) {
  for (size_t k = 0; k < count; k++) {
    wf_bias_free(biases[k]);
    wf_bias_gpu_free(gpus[k]);
  }
}

/* Few tokens, and everything that a bias can be made of. */
static void check_few_tokens(uint64_t seed, uint64_t *changed) {
  test_rng rng = {seed};
  struct task task;
  struct phrase_list phrases;
  make_task(&rng, &task, seed % 16 & 2, seed % 16 & 4, seed % 16 & 8, seed % 16 & 1);
  if (task.bias != NULL) {
    wf_bias *biases[MOST_BIASES] = {task.bias};
    wf_bias_gpu *gpus[MOST_BIASES];
    struct both b;
    size_t count = 1;
    while (count < MOST_BIASES && test_below(&rng, 3) > 0)
      biases[count++] =
          with_phrases(task.tokens.table, random_phrases(&rng, &task.tokens, &phrases), task.bias,
                       task.parts.scorer);
    copy_biases(biases, count, test_below(&rng, 2), gpus);
    begin(&rng, &b, biases, gpus, count, TOKENS);
    for (int i = 0; i < 8; i++) check_step(&rng, &b, TOKENS, any_token, changed);
    end(&b);
    free_biases(biases, gpus, count);
    task.bias = NULL;
  }
  free_task(&task);
}

static void test_small_vocabularies(void **unused) {
  (void)unused;
  uint64_t changed = 0;
  for (uint64_t seed = 1; seed <= 16 * test_seeds(20); seed++) check_few_tokens(seed, &changed);
  assert_true(test_many(changed, 200000, 20));
}

/* Many tokens: chunks of columns, and lists that are long. */
static void check_many_tokens(uint64_t seed, uint64_t *changed) {
  test_rng rng = {seed};
  const uint32_t count = 2 * WF__BIAS_COLUMNS + test_below(&rng, 2 * WF__BIAS_COLUMNS);
  const bool phrases = seed % 4 != 3, ngrams = seed % 4 > 1;
  wf_token_texts *tokens = many_tokens(&rng, count);
  wf_lm *lm = ngrams ? many_ngrams(&rng, count, 3, 60) : NULL;
  wf_scorer *scorer = ngrams ? many_ngrams_scorer(lm, count, 0.5f) : NULL;
  wf_bias_parts parts;
  wf_bias *biases[MOST_BIASES];
  wf_bias_gpu *gpus[MOST_BIASES];
  size_t num_biases = 1;
  wf_bias_parts_init(&parts);
  parts.tokens = tokens;
  if (scorer == NULL)
    scorer = many_phrases(&rng, count, 1 + test_below(&rng, 800), 1 + test_below(&rng, count));
  parts.scorer = scorer;
  assert_ok(wf_bias_create(&parts, &biases[0], &err));
  for (; phrases && num_biases < MOST_BIASES; num_biases++)
    biases[num_biases] = with_phrases(
        tokens, many_phrases(&rng, count, 1 + test_below(&rng, 400), 1 + test_below(&rng, count)),
        biases[0], test_below(&rng, 4) > 0 ? scorer : NULL);
  copy_biases(biases, num_biases, test_below(&rng, 2), gpus);
  struct both b;
  begin(&rng, &b, biases, gpus, num_biases, count);
  for (int i = 0; i < 6; i++) check_step(&rng, &b, count, likely_token, changed);
  end(&b);
  free_biases(biases, gpus, num_biases);
  wf_scorer_free(scorer);
  wf_lm_free(lm);
  wf_token_texts_free(tokens);
}

static void test_kernels(void **unused) {
  (void)unused;
  uint64_t changed = 0;
  for (uint64_t seed = 1; seed <= 4 * test_seeds(10); seed++) check_many_tokens(seed, &changed);
  assert_true(test_many(changed, 1000000, 10));
}

static void test_small_errors(void **unused) {
  (void)unused;
  test_rng rng = {1};
  struct task task;
  wf_bias_gpu *gpu;
  wf_bias_batch *batch;
  wf_bias_step step;
  make_task(&rng, &task, true, true, true, false);
  assert_int_equal(wf_bias_gpu_create(task.bias, "cuda:99", NULL, &gpu, &err), WF_ERR_DEVICE);
  assert_null(gpu);
  assert_int_equal(wf_bias_gpu_create(task.bias, "cpu", NULL, &gpu, &err), WF_ERR_ARGUMENT);
  assert_ok(wf_bias_gpu_create(task.bias, "cuda:0", NULL, &gpu, &err));
  assert_int_equal(wf_bias_batch_create(&gpu, 0, &batch, &err), WF_ERR_ARGUMENT);
  assert_null(batch);
  assert_ok(wf_bias_batch_create(&gpu, 1, &batch, &err));
  wf_bias_step_init(&step);
  void *const memory = on_gpu(1024);
  step.count = 0;
  assert_int_equal(wf_bias_batch_step(batch, &step, &err), WF_ERR_ARGUMENT);
  step.count = 2; /* but there is one, and no places */
  assert_int_equal(wf_bias_batch_step(batch, &step, &err), WF_ERR_ARGUMENT);
  step.count = 1;
  step.tokens = memory;
  assert_int_equal(wf_bias_batch_step(batch, &step, &err), WF_ERR_ARGUMENT);
  step.tokens = NULL;
  step.logits = memory;
  step.width = step.stride = TOKENS - 1;
  assert_int_equal(wf_bias_batch_step(batch, &step, &err), WF_ERR_ARGUMENT);
  cudaFree(memory);
  wf_bias_batch_free(batch);
  wf_bias_gpu_free(gpu);
  free_task(&task);
}

#ifdef SIMT
static wf_status use(const void *input, wf_error *error) {
  const struct task *task = input;
  wf_bias_gpu *gpu;
  wf_bias_batch *batch = NULL;
  wf_bias_step step;
  wf_bias_state states[3];
  const int32_t places[3] = {0};
  wf_bias_step_init(&step);
  step.count = 3; /* grows */
  step.index_bytes = 4;
  step.places = places; /* the imitated GPU's memory is the host's */
  wf_status status = wf_bias_gpu_create(task->bias, "cuda", NULL, &gpu, error);
  if (status == WF_OK) status = wf_bias_batch_create(&gpu, 1, &batch, error);
  if (status == WF_OK) status = wf_bias_batch_step(batch, &step, error);
  if (status == WF_OK) status = wf_bias_batch_copy_states(batch, NULL, states, error);
  wf_bias_batch_free(batch);
  wf_bias_gpu_free(gpu);
  return status;
}

static void test_small_failures(void **unused) {
  (void)unused;
  test_rng rng = {7};
  struct task task;
  make_task(&rng, &task, true, true, true, true);
  assert_non_null(task.bias);
  fail_each_call("a bias", use, &task, 40);
  free_task(&task);
}
#endif

static bool no_gpu(void) {
  test_rng rng = {1};
  struct task task;
  wf_bias_gpu *gpu;
  make_task(&rng, &task, true, false, false, false);
  const wf_status status = wf_bias_gpu_create(task.bias, "cuda", NULL, &gpu, &err);
  if (status == WF_ERR_DEVICE) fprintf(stderr, "%s\n", err.message);
  wf_bias_gpu_free(gpu);
  free_task(&task);
  return status == WF_ERR_DEVICE;
}

int main(int argc, char **argv) {
  if (no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_vocabularies),
      cmocka_unit_test(test_kernels),
      cmocka_unit_test(test_small_errors),
#ifdef SIMT
      cmocka_unit_test(test_small_failures),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
