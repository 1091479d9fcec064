/* test_gpu_transducer_log_probs.c - log-probabilities of transducers on a GPU have the bits of the
 * CPU's, for every kind of model, every batch and order. Exits with 77 if there is no GPU. Also
 * built for the imitated GPU of tests/simt, with small limits on the size of a batch. */
#include "decode_tasks.h"
#include "random_transducers.h"
#include "search/transducer/transducer_device.h"

static wf_error err;

enum { MOST_FRAMES = 12, LANES = 5, MOST_CONTEXTS = 9, MOST_LOGITS = 64 };
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

static void check_equal(const struct asking *a, const wf_transducer *model,
                        const wf__score_row *want_rows, const wf__score_row *got_rows) {
  const size_t size = wf__transducer_num_logits(model);
  float want[MOST_LOGITS], got[MOST_LOGITS];
  for (size_t r = 0; r < a->num_contexts; r++) {
    take_all(&want_rows[r], model, want);
    take_all(&got_rows[r], model, got);
    for (size_t i = 0; i < size; i++)
      if (memcmp(&want[i], &got[i], sizeof *want) != 0)
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
    check_equal(&asking[l], model, want, got[l]);
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

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_log_probs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
