/* test_gpu_host.c - the host code of the GPU decoder: every form of scores, memory plans and
 * budgets, the caller's CUDA stream, several GPUs. Every bit of every result must equal the CPU
 * decoder's.
 *
 * Compiled in three ways: with CUDA for a GPU (exits with 77 if there is none); with FAKE_CUDA for
 * the imitated GPUs of tests/fake_cuda, which also inject failures; with FAKE_CUDA and SIMT for
 * imitated GPUs that run the kernels of src/cuda, with smaller tests. */
#include <cuda_runtime_api.h>

#include "base/interrupt.h"
#include "cuda/device/gpu_profile.h"
#include "decode_tasks.h"

enum { BATCH = 24, SLACK = 8 };

static void assert_cuda(cudaError_t code) {
  if (code != cudaSuccess) fail_msg("CUDA: %s", cudaGetErrorString(code));
}

#ifdef FAKE_CUDA
static const char *const devices[] = {"cuda",       "cuda:2",   "cuda:0,0",
                                      "cuda:0,1,2", "cuda:all", "cuda:1,0,1"};
#else
static const char *const devices[] = {"cuda", "cuda:0,0", "cuda:all", "cuda:0,0,0"};
#endif
enum { NUM_DEVICES = sizeof devices / sizeof *devices };

/* --- scores in every form ---------------------------------------------------------------- */

/* A batch of the same values in two forms: float32 matrices in host memory (plain), and a requested
 * type, stride and place (shaped). */
struct forms {
  wf_scores plain[BATCH], shaped[BATCH];
  void *owned[2 * BATCH]; /* host */
  void *on_device[BATCH];
};

static void *to_device(const void *data, size_t bytes) {
  void *copy;
  assert_cuda(cudaMalloc(&copy, bytes + 1));
  assert_cuda(cudaMemcpy(copy, data, bytes, cudaMemcpyHostToDevice));
  return copy;
}

/* Copies a matrix to one with `extra` more columns and `stride` elements a frame. All other
 * elements are NaN, because they must not be read. */
static wf_scores shape_matrix(const wf_scores *plain, int32_t extra, int64_t stride, wf_dtype dtype,
                              void **owned) {
  int64_t size = plain->num_frames * stride;
  *owned = malloc((size_t)(size + 1) * test_score_size(dtype));
  for (int64_t i = 0; i < size; i++) test_put_score(*owned, i, NAN, dtype);
  for (int64_t t = 0; t < plain->num_frames; t++)
    for (int32_t c = 0; c < plain->num_columns; c++)
      test_put_score(*owned, t * stride + c, ((const float *)plain->data)[t * plain->stride + c],
                     dtype);
  return (wf_scores){.data = *owned,
                     .num_frames = plain->num_frames,
                     .num_columns = plain->num_columns + extra,
                     .stride = stride,
                     .dtype = dtype};
}

/* `plain` has only the columns that the graph reads, which may be fewer than the task's. */
static void make_forms(struct forms *forms, struct decode_task *task, uint64_t seed,
                       int64_t max_frames, wf_dtype dtype, bool on_device) {
  test_rng rng = {seed * 77 + 5};
  float *data[BATCH];
  *forms = (struct forms){0};
  test_random_batch(task, forms->plain, data, BATCH, seed, max_frames);
  for (size_t i = 0; i < BATCH; i++) {
    wf_scores *plain = &forms->plain[i];
    forms->owned[i] = data[i];
    for (int64_t k = 0; k < plain->num_frames * plain->stride; k++)
      test_put_score(data[i], k, test_below(&rng, 30) == 0 ? -INFINITY : data[i][k], WF_FLOAT32);
    plain->num_columns = wf_graph_min_columns(task->graph);
    int32_t extra = (int32_t)test_below(&rng, 3) * 7;
    int64_t stride = plain->num_columns + extra + (int64_t)test_below(&rng, 2) * 3;
    forms->shaped[i] = shape_matrix(plain, extra, stride, dtype, &forms->owned[BATCH + i]);
    if (!on_device) continue;
    forms->on_device[i] = to_device(forms->shaped[i].data,
                                    (size_t)(plain->num_frames * stride) * test_score_size(dtype));
    forms->shaped[i].data = forms->on_device[i];
    forms->shaped[i].on_device = true;
  }
}

static void free_forms(struct forms *forms) {
  for (size_t i = 0; i < 2 * BATCH; i++) free(forms->owned[i]);
  for (size_t i = 0; i < BATCH; i++) assert_cuda(cudaFree(forms->on_device[i]));
}

static void test_forms_of_scores(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(90); seed++) {
    struct decode_task task = test_random_task(seed);
    struct forms forms;
    wf_result *cpu[BATCH], *cpu_shaped[BATCH], *gpu[BATCH];
    wf_dtype dtype = (wf_dtype)(seed % 3);
    bool on_device = seed / 3 % 2;
    make_forms(&forms, &task, seed, 20, dtype, on_device);
    task.options.lattice_beam = (float)(seed / 6 % 4);
    test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
    if (!on_device) {
      test_decode_on("cpu", task.graph, task.options, forms.shaped, BATCH, cpu_shaped);
      test_assert_same_batch(seed, cpu, cpu_shaped, BATCH);
      test_free_results(cpu_shaped, BATCH);
    }
    test_decode_on(devices[seed % NUM_DEVICES], task.graph, task.options, forms.shaped, BATCH, gpu);
    test_assert_same_batch(seed, cpu, gpu, BATCH);
    test_free_results(gpu, BATCH);
    for (size_t i = 0; i < BATCH / 2; i++)
      forms.shaped[i] = forms.plain[i]; /* both types and both places in one batch */
    test_decode_on(devices[seed % NUM_DEVICES], task.graph, task.options, forms.shaped, BATCH, gpu);
    test_assert_same_batch(seed, cpu, gpu, BATCH);
    test_free_results(gpu, BATCH);
    test_free_results(cpu, BATCH);
    free_forms(&forms);
    test_free_task(&task);
  }
}

/* Alignment reads scores of a GPU as it reads those of the host. */
static void test_aligned_scores(void **state) {
  (void)state;
  wf_error err = {0};
  for (uint64_t seed = 300; seed < 300 + test_seeds(12); seed++) {
    test_rng rng = {seed};
    struct decode_task task = test_random_task(seed);
    struct forms forms;
    int32_t tokens[BATCH][8];
    wf_align_input inputs[2][BATCH] = {0};
    wf_alignment *host[BATCH], *gpu[BATCH];
    make_forms(&forms, &task, seed, 20, (wf_dtype)(seed % 3), true);
    for (size_t i = 0; i < BATCH; i++) {
      for (int k = 0; k < 8; k++)
        tokens[i][k] = 1 + (int32_t)test_below(&rng, (uint32_t)forms.plain[i].num_columns + 1);
      inputs[0][i] = (wf_align_input){
          .scores = forms.plain[i], .tokens = tokens[i], .num_tokens = test_below(&rng, 9)};
      inputs[1][i] = inputs[0][i];
      inputs[1][i].scores = forms.shaped[i];
      inputs[1][i].scores.num_columns = forms.plain[i].num_columns;
    }
    assert_int_equal(wf_align(inputs[0], BATCH, NULL, host, &err), WF_OK);
    assert_int_equal(wf_align(inputs[1], BATCH, NULL, gpu, &err), WF_OK);
    for (size_t i = 0; i < BATCH; i++) {
      assert_string_equal(host[i]->message, gpu[i]->message);
      assert_int_equal(host[i]->status, gpu[i]->status);
      if (host[i]->status == WF_OK) {
        assert_int_equal(host[i]->num_tokens, gpu[i]->num_tokens);
        assert_memory_equal(host[i]->tokens, gpu[i]->tokens,
                            host[i]->num_tokens * sizeof *host[i]->tokens);
        assert_memory_equal(&host[i]->log_prob, &gpu[i]->log_prob, sizeof host[i]->log_prob);
      }
      wf_alignment_free(host[i]);
      wf_alignment_free(gpu[i]);
    }
    free_forms(&forms);
    test_free_task(&task);
  }
}

/* One tensor [utterance, frame, column], padded with NaN. */
static void test_padded_scores(void **state) {
  (void)state;
  wf_error err = {0};
  for (uint64_t seed = 200; seed < 200 + test_seeds(24); seed++) {
    struct decode_task task = test_random_task(seed);
    struct forms forms;
    wf_result *cpu[BATCH], *gpu[BATCH];
    wf_dtype dtype = (wf_dtype)(seed % 3);
    int64_t lengths[BATCH], longest = 19, columns, frame_stride, utterance_stride;
    make_forms(&forms, &task, seed, longest + 1, WF_FLOAT32, false);
    columns = forms.plain[0].num_columns;
    frame_stride = seed % 2 == 0 ? columns : columns + 5;
    utterance_stride = seed % 4 < 2 ? longest * frame_stride : longest * frame_stride + 11;
    char *tensor = malloc((size_t)(BATCH * utterance_stride + 1) * test_score_size(dtype));
    for (int64_t i = 0; i < BATCH * utterance_stride; i++) test_put_score(tensor, i, NAN, dtype);
    for (int64_t i = 0; i < BATCH; i++) {
      lengths[i] = forms.plain[i].num_frames;
      for (int64_t t = 0; t < lengths[i]; t++)
        for (int64_t c = 0; c < columns; c++)
          test_put_score(tensor, i * utterance_stride + t * frame_stride + c,
                         ((const float *)forms.plain[i].data)[t * forms.plain[i].stride + c],
                         dtype);
    }
    wf_padded_scores padded = {.data = tensor,
                               .num_utterances = BATCH,
                               .max_frames = longest,
                               .num_columns = (int32_t)columns,
                               .lengths = lengths,
                               .dtype = dtype};
    if (seed % 2 != 0) padded.frame_stride = frame_stride;
    if (seed % 4 >= 2) padded.utterance_stride = utterance_stride;
    void *copy = to_device(tensor, (size_t)(BATCH * utterance_stride) * test_score_size(dtype));
    test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
    for (int on_device = 0; on_device < 2; on_device++) {
      wf_scores list[BATCH];
      padded.on_device = on_device;
      padded.data = on_device ? copy : tensor;
      assert_ok(wf_scores_from_padded(&padded, list, &err));
      test_decode_on("cuda", task.graph, task.options, list, BATCH, gpu);
      test_assert_same_batch(seed, cpu, gpu, BATCH);
      test_free_results(gpu, BATCH);
    }
    test_free_results(cpu, BATCH);
    assert_cuda(cudaFree(copy));
    free(tensor);
    free_forms(&forms);
    test_free_task(&task);
  }
}

/* The first bad score gives the same message for scores in host and in device memory. The other
 * utterances are decoded. */
static void test_bad_scores(void **state) {
  (void)state;
  static const uint32_t bad[3][4] = {{0x7fc00000, 0x7f800000, 0x60ad78ed, 0xe0ad78ed},
                                     {0x7e00, 0x7c00, 0xfe00, 0xfc01},
                                     {0x7fc0, 0x7f80, 0x60ae, 0xe0ae}};
  for (uint64_t seed = 300; seed < 300 + test_seeds(24); seed++) {
    struct decode_task task = test_random_task(seed);
    struct forms forms;
    wf_result *cpu[BATCH], *gpu[BATCH];
    test_rng rng = {seed};
    wf_dtype dtype = (wf_dtype)(seed % 3);
    make_forms(&forms, &task, seed, 20, dtype, false);
    for (size_t i = 0; i < BATCH; i += 1 + test_below(&rng, 4)) {
      const wf_scores *s = &forms.shaped[i];
      int32_t columns = forms.plain[i].num_columns;
      for (uint32_t k = test_below(&rng, 3); s->num_frames > 0 && columns > 0 && k < 3; k++) {
        int64_t at = test_below(&rng, (uint32_t)s->num_frames) * s->stride +
                     test_below(&rng, (uint32_t)columns);
        uint32_t bits = bad[dtype][test_below(&rng, 4)];
        if (dtype == WF_FLOAT32)
          ((uint32_t *)forms.owned[BATCH + i])[at] = bits;
        else
          ((uint16_t *)forms.owned[BATCH + i])[at] = (uint16_t)bits;
      }
    }
    test_decode_on("cpu", task.graph, task.options, forms.shaped, BATCH, cpu);
    for (int on_device = 0; on_device < 2; on_device++) {
      for (size_t i = 0; i < BATCH && on_device; i++) {
        forms.on_device[i] = to_device(
            forms.shaped[i].data,
            (size_t)(forms.shaped[i].num_frames * forms.shaped[i].stride) * test_score_size(dtype));
        forms.shaped[i].data = forms.on_device[i];
        forms.shaped[i].on_device = true;
      }
      test_decode_on(devices[seed % NUM_DEVICES], task.graph, task.options, forms.shaped, BATCH,
                     gpu);
      test_assert_same_batch(seed, cpu, gpu, BATCH);
      for (size_t i = 0; i < BATCH; i++)
        if (strncmp(cpu[i]->message, "score of", 8) == 0)
          assert_string_equal(cpu[i]->message, gpu[i]->message);
      test_free_results(gpu, BATCH);
    }
    test_free_results(cpu, BATCH);
    /* host memory that claims to be on the device gives an error, not a crash */
    wf_scores wrong = {
        .data = forms.owned[0], .num_frames = 1, .num_columns = 8, .stride = 8, .on_device = true};
    test_decode_on("cuda", task.graph, task.options, &wrong, 1, gpu);
    assert_int_equal(gpu[0]->status, WF_ERR_ARGUMENT);
    test_free_results(gpu, 1);
    free_forms(&forms);
    test_free_task(&task);
  }
}

/* --- memory ------------------------------------------------------------------------------ */

static wf_batch_shape shape_of(const wf_scores *scores, size_t count) {
  wf_batch_shape shape = {
      .num_utterances = count, .dtype = scores[0].dtype, .on_device = scores[0].on_device};
  for (size_t i = 0; i < count; i++) {
    shape.sum_frames += scores[i].num_frames;
    if (scores[i].num_frames > shape.max_frames) shape.max_frames = scores[i].num_frames;
  }
  return shape;
}

/* Memory budgets from large to tiny. Within each, the decoder keeps to the plan and gives the same
 * results. A budget that is too small gives an error that says which option to lower. */
static void test_memory_budgets(void **state) {
  (void)state;
  wf_error err = {0};
  int refused = 0, decoded = 0, named[2] = {0};
  for (uint64_t seed = 400; seed < 400 + test_seeds(12); seed++) {
    struct decode_task task = test_random_task(seed);
    struct forms forms;
    wf_result *cpu[BATCH], *gpu[BATCH];
    bool on_device = seed % 2;
    if (seed % 3 == 0) task.options.max_tokens = 100000; /* clusters of 8 */
    task.options.lattice_beam = seed / 4 % 2 == 0 ? 2 : 0;
    make_forms(&forms, &task, seed, 400, WF_FLOAT16, on_device);
    wf_batch_shape shape = shape_of(forms.shaped, BATCH);
    test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
    task.options.device = seed % 4 < 2 ? "cuda" : "cuda:0,0";
    for (int64_t budget = 500000000; budget > 50000; budget = budget * 3 / 5) {
      wf_decoder *decoder = NULL;
      wf_plan plan;
      task.options.gpu_memory = budget;
      wf_status planned = wf_plan_batch(task.graph, &task.options, &shape, &plan, &err);
      if (planned != WF_OK) {
        assert_int_equal(planned, WF_ERR_MEMORY);
        char message[sizeof err.message];
        memcpy(message, err.message, sizeof message);
        assert_non_null(strstr(message, "bytes for this batch"));
        named[strstr(message, "lower max_") != NULL]++;
        wf_status created = wf_decoder_create(task.graph, &task.options, &decoder, &err);
        assert_ok(created);
        assert_int_equal(test_decode(decoder, forms.shaped, BATCH, NULL, gpu, &err), WF_ERR_MEMORY);
        for (size_t i = 0; i < BATCH; i++) assert_null(gpu[i]);
        assert_string_equal(err.message, message);
        refused++;
      } else {
        assert_true(plan.total_bytes <=
                    (uint64_t)budget / (task.options.device[4] != '\0' ? 2 : 1));
        assert_true(plan.total_bytes == plan.graph_bytes + plan.lane_bytes + plan.trace_bytes +
                                            plan.score_bytes + plan.result_bytes);
        assert_true((plan.score_bytes == 0) == on_device);
        assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
        assert_ok(test_decode(decoder, forms.shaped, BATCH, NULL, gpu, &err));
        wf_plan followed;
        wf_decoder_get_plan(decoder, &followed);
        assert_memory_equal(&plan, &followed, sizeof plan);
#ifdef FAKE_CUDA
        size_t expected = (size_t)plan.total_bytes * (size_t)plan.num_gpus, scores = 0;
        for (size_t i = 0; i < BATCH && on_device; i++)
          scores += (size_t)(forms.shaped[i].num_frames * forms.shaped[i].stride) * 2 + 1;
        assert_int_equal(fake_gpus.device_bytes, expected + scores);
        assert_int_equal(fake_gpus.pinned_bytes,
                         (plan.pinned_bytes + sizeof(uint32_t)) *
                             (uint64_t)plan.num_gpus); /* plus the flag that stops kernels */
#endif
        test_assert_same_batch(seed, cpu, gpu, BATCH);
        test_free_results(gpu, BATCH);
        decoded++;
      }
      wf_decoder_free(decoder);
    }
    test_free_results(cpu, BATCH);
    free_forms(&forms);
    test_free_task(&task);
  }
  print_message("%d budgets were kept, %d refused\n", decoded, refused);
  assert_true(decoded > 0 && refused > 0 && named[1] > 0);
}

/* A task in which all states are alive after a few frames, each with `degree` arcs. */
static struct decode_task dense_task(uint32_t num_states, uint32_t degree) {
  wf_error err = {0};
  wf_builder *builder;
  wf_fst *fst;
  struct decode_task task = {.scores = {.num_columns = (int32_t)degree}};
  assert_ok(wf_builder_create(WF_TROPICAL, &builder, &err));
  assert_ok(wf_builder_add_states(builder, num_states, NULL, &err));
  assert_ok(wf_builder_set_start(builder, 0, &err));
  for (uint32_t s = 0; s < num_states; s++) {
    for (uint32_t k = 1; k <= degree; k++) {
      wf_arc arc = {.nextstate = (s * (degree + 1) + k * 7) % num_states,
                    .weight = (float)k / 8,
                    .ilabel = (int32_t)k,
                    .olabel = (int32_t)s};
      assert_ok(wf_builder_add_arc(builder, s, arc, &err));
    }
    assert_ok(wf_builder_set_final(builder, s, 0, &err));
  }
  assert_ok(wf_builder_finish(builder, NULL, NULL, &fst, &err));
  wf_builder_free(builder);
  assert_ok(wf_graph_create(fst, NULL, 0, &task.graph, &err));
  wf_fst_free(fst);
  wf_decoder_options_init(&task.options);
  task.options.beam = 1000;
  return task;
}

/* The trace memory has room for a third of the tokens. A GPU frees tokens that no live token
 * descends from. The imitated GPU without kernels leaves the longest utterances to the CPU. */
static void test_too_little_trace_memory(void **state) {
  (void)state;
  wf_error err = {0};
#ifdef SIMT
  enum { STATES = 60, LONGEST = 30 };
#else
  enum { STATES = 400, LONGEST = 300 };
#endif
  struct decode_task task = dense_task(STATES, 4);
  task.options.max_active = task.options.max_tokens = STATES;
  for (int on_device = 0; on_device < 2; on_device++) {
    struct forms forms;
    wf_result *cpu[BATCH], *gpu[BATCH];
    wf_plan plan, tight;
    make_forms(&forms, &task, 7, LONGEST, WF_BFLOAT16, on_device);
    wf_batch_shape shape = shape_of(forms.shaped, BATCH);
    task.options.device = "cuda";
    task.options.gpu_memory = 0;
    assert_ok(wf_plan_batch(task.graph, &task.options, &shape, &plan, &err));
    task.options.gpu_memory = (int64_t)(plan.total_bytes - plan.trace_bytes + plan.trace_bytes / 3);
    assert_ok(wf_plan_batch(task.graph, &task.options, &shape, &tight, &err));
    assert_true(tight.trace_bytes < plan.trace_bytes && tight.num_lanes == plan.num_lanes);
    test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
    struct test_heard misfits = {"did not fit", 0};
    wf_set_log(test_listen, &misfits);
    test_decode_on("cuda", task.graph, task.options, forms.shaped, BATCH, gpu);
    wf_set_log(NULL, NULL);
    test_assert_same_batch(7, cpu, gpu, BATCH);
#if defined FAKE_CUDA && !defined SIMT
    assert_true(misfits.times > 0);
#else
    assert_int_equal(misfits.times, 0);
#endif
    test_free_results(cpu, BATCH);
    test_free_results(gpu, BATCH);
    free_forms(&forms);
  }
  test_free_task(&task);
}

/* A batch so small that lanes of several sizes share the GPU. */
static void test_lanes_of_several_sizes(void **state) {
  (void)state;
  wf_error err = {0};
#ifdef FAKE_CUDA
  enum { COUNT = 5 }; /* on 12 processors: lanes of two blocks would leave two idle */
#else
  enum { COUNT = BATCH };
#endif
#if defined(FAKE_CUDA) && !defined(SIMT)
  long num_large = 0; /* searches in lanes of more than two blocks */
#endif
  for (uint64_t seed = 700; seed < 700 + test_seeds(6); seed++) {
    struct decode_task task = test_random_task(seed);
    struct forms forms;
    wf_decoder *decoder;
    wf_result *cpu[COUNT], *gpu[COUNT];
    make_forms(&forms, &task, seed, 100, WF_FLOAT32, true);
    test_decode_on("cpu", task.graph, task.options, forms.plain, COUNT, cpu);
    task.options.device = "cuda";
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
#if defined(FAKE_CUDA) && !defined(SIMT)
    memset(fake_gpus.num_searches, 0, sizeof fake_gpus.num_searches);
#endif
    assert_ok(test_decode(decoder, forms.shaped, COUNT, NULL, gpu, &err));
    test_assert_same_batch(seed, cpu, gpu, COUNT);
#if defined(FAKE_CUDA) && !defined(SIMT)
    for (int ranks = 4; ranks <= 8; ranks *= 2) num_large += fake_gpus.num_searches[ranks];
#endif
    test_free_results(gpu, COUNT);
    test_free_results(cpu, COUNT);
    wf_decoder_free(decoder);
    free_forms(&forms);
    test_free_task(&task);
  }
#if defined(FAKE_CUDA) && !defined(SIMT)
  int32_t compiled_for[2];
  assert_cuda((cudaError_t)wf__gpu_compiled_for(compiled_for));
  assert_true(compiled_for[1] == 0 || num_large > 0);
#endif
}

/* Frames have more tokens than one block holds, which the plan did not expect. These utterances are
 * decoded again in lanes of several blocks, or on the CPU if there is no memory for such lanes. The
 * next batch uses such lanes from the start. */
static void test_wide_frames(void **state) {
  (void)state;
  wf_error err = {0};
#ifdef FAKE_CUDA
  enum { TIMES = 1 };
#else
  enum { TIMES = 9 }; /* enough utterances that lanes have one block even on a large GPU */
#endif
  struct decode_task task = dense_task(24000, 16);
  task.options.max_active = 10000;
  task.options.max_tokens = 28000;
#if defined(FAKE_CUDA) && !defined(SIMT) /* the search is the CPU's, which is slow */
  const int step = 4;
#else
  const int step = test_seeds(4) < 4 ? 3 : 1;
#endif
  for (int form = 0; form < 4; form += step) {
    struct forms forms;
    wf_scores scores[TIMES * BATCH];
    wf_result *cpu[BATCH], *gpu[TIMES * BATCH];
    wf_decoder *decoder;
    wf_plan plan;
    const bool on_device = form % 2, tight = form / 2;
    struct test_heard again = {"again in larger", 0};
    make_forms(&forms, &task, (uint64_t)form, 24, WF_FLOAT32, on_device);
    for (int i = 0; i < TIMES * BATCH; i++) scores[i] = forms.shaped[i % BATCH];
    wf_batch_shape shape = shape_of(scores, TIMES * BATCH);
    task.options.device = on_device ? "cuda" : devices[form];
    task.options.gpu_memory = 0;
    assert_ok(wf_plan_batch(task.graph, &task.options, &shape, &plan, &err));
    int32_t compiled_for[2];
    assert_cuda((cudaError_t)wf__gpu_compiled_for(compiled_for));
    const bool is_large_gpu =
        compiled_for[0] == 227; /* on smaller GPUs, max_active gives larger lanes from the start */
    if (is_large_gpu) assert_int_equal(plan.lane_blocks, 1);
    if (tight)
      task.options.gpu_memory = (int64_t)(plan.graph_bytes + (plan.total_bytes - plan.graph_bytes) /
                                                                 (uint64_t)plan.num_lanes) *
                                (on_device ? 1 : 2);
    test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    wf_set_log(test_listen, &again);
    for (int batch = 0; batch < 2; batch++) {
      assert_ok(test_decode(decoder, scores, TIMES * BATCH, NULL, gpu, &err));
      for (int k = 0; k < TIMES; k++)
        test_assert_same_batch((uint64_t)form, cpu, gpu + k * BATCH, BATCH);
      test_free_results(gpu, TIMES * BATCH);
    }
    wf_set_log(NULL, NULL);
    /* A single worker uses larger lanes after the first batch. With several workers, one may get
     * its first large frame in the second batch. */
    if (is_large_gpu)
      assert_in_range(again.times, 1, strchr(task.options.device, ',') == NULL ? 1 : 2);
    wf_decoder_free(decoder);
    test_free_results(cpu, BATCH);
    free_forms(&forms);
  }
  test_free_task(&task);
}

/* --- streams and reuse ------------------------------------------------------------------- */

/* When wf_decode is called, the scores are still being copied to the GPU on the caller's stream,
 * after a long copy. The decoder must wait for them. */
static void test_stream_of_the_caller(void **state) {
  (void)state;
  wf_error err = {0};
  enum { LONG_BYTES = 64 << 20, MATRIX_FLOATS = 64 };
  struct decode_task task = test_random_task(11);
  wf_decoder *decoder;
  wf_scores host = {.num_frames = 8, .num_columns = MATRIX_FLOATS / 8, .stride = MATRIX_FLOATS / 8},
            device = host;
  wf_result *cpu, *gpu;
  void *pinned, *target, *big, *long_copy;
  cudaStream_t stream;
  assert_cuda(cudaSetDevice(0));
  assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  assert_cuda(cudaHostAlloc(&pinned, MATRIX_FLOATS * sizeof(float), 0));
  assert_cuda(cudaHostAlloc(&long_copy, LONG_BYTES, 0));
  assert_cuda(cudaMalloc(&big, LONG_BYTES));
  for (int i = 0; i < MATRIX_FLOATS; i++) ((float *)pinned)[i] = -(float)(i * 37 % 11) / 4;
  float nans[MATRIX_FLOATS];
  memset(nans, 0xff, sizeof nans);
  target = to_device(nans, sizeof nans);
  host.data = pinned;
  device.data = target;
  device.on_device = true;
  test_decode_on("cpu", task.graph, task.options, &host, 1, &cpu);
  task.options.device = "cuda";
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  for (int round = 0; round < 3;
       round++) { /* the default stream, the caller's stream, then the default stream again */
    cudaStream_t use = round == 1 ? stream : NULL;
    assert_ok(wf_decoder_set_stream(decoder, use, &err));
    assert_cuda(cudaMemcpy(target, nans, sizeof nans, cudaMemcpyHostToDevice));
    for (int k = 0; k < 10; k++)
      assert_cuda(cudaMemcpyAsync(big, long_copy, LONG_BYTES, cudaMemcpyHostToDevice, use));
    assert_cuda(cudaMemcpyAsync(target, pinned, sizeof nans, cudaMemcpyHostToDevice, use));
    assert_ok(test_decode(decoder, &device, 1, NULL, &gpu, &err));
    test_assert_same_batch((uint64_t)round, &cpu, &gpu, 1);
    wf_result_free(gpu);
  }
  wf_decoder_free(decoder);
  wf_result_free(cpu);
  assert_cuda(cudaStreamDestroy(stream));
  assert_cuda(cudaFree(target));
  assert_cuda(cudaFree(big));
  assert_cuda(cudaFreeHost(pinned));
  assert_cuda(cudaFreeHost(long_copy));
  /* decoders that cannot have a stream */
  task.options.device = "cpu";
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  assert_int_equal(wf_decoder_set_stream(decoder, NULL, &err), WF_ERR_UNSUPPORTED);
  wf_decoder_free(decoder);
#ifdef FAKE_CUDA
  task.options.device = "cuda:0,1";
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  assert_int_equal(wf_decoder_set_stream(decoder, NULL, &err), WF_ERR_ARGUMENT);
  wf_decoder_free(decoder);
#endif
  test_free_task(&task);
}

/* One decoder decodes many batches of different sizes and orders. Its memory is reused, and results
 * do not depend on the other utterances of the batch. */
static void test_one_decoder_many_batches(void **state) {
  (void)state;
  wf_error err = {0};
  enum { MANY = 300 };
  for (int d = 0; d < NUM_DEVICES; d++) {
    struct decode_task task = test_random_task(31 + (uint64_t)d);
    static wf_scores all[MANY], some[MANY];
    static float *data[MANY];
    static wf_result *want[MANY], *got[MANY];
    test_rng rng = {(uint64_t)d + 1};
    wf_decoder *decoder;
    task.options.lattice_beam = (float)(d % 3);
    test_random_batch(&task, all, data, MANY, 3, 60);
    test_decode_on("cpu", task.graph, task.options, all, MANY, want);
    task.options.device = devices[d];
    task.options.num_threads = d;
    assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
    for (uint64_t round = 0; round < test_seeds(20); round++) {
      size_t count = round % 4 == 0 ? MANY : 1 + test_below(&rng, 1 + test_below(&rng, MANY));
      uint32_t order[MANY];
      for (uint32_t i = 0; i < MANY; i++) order[i] = i;
      for (uint32_t i = 0; i < count; i++) {
        uint32_t k = i + test_below(&rng, MANY - i), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
        some[i] = all[order[i]];
      }
      assert_ok(test_decode(decoder, some, count, NULL, got, &err));
      for (uint32_t i = 0; i < count; i++) {
        test_assert_same_result(want[order[i]], got[i]);
        wf_result_free(got[i]);
      }
    }
    wf_decoder_free(decoder);
    test_free_results(want, MANY);
    for (size_t i = 0; i < MANY; i++) free(data[i]);
    test_free_task(&task);
  }
}

/* --- errors ------------------------------------------------------------------------------ */

static bool stop(void *user, const char *stage, double fraction) { return --*(int *)user > 0; }

static void test_cancelled_by_the_progress_function(void **state) {
  (void)state;
  wf_error err = {0};
  struct decode_task task = test_random_task(5);
  struct forms forms;
  wf_result *cpu[BATCH], *gpu[BATCH];
  wf_decoder *decoder;
  make_forms(&forms, &task, 5, 20, WF_FLOAT32, false);
  test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
  task.options.device = "cuda:0,0";
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  for (int calls = 1; calls < 4; calls++) {
    int left = calls;
    wf_progress progress = {stop, &left};
    wf_status status = test_decode(decoder, forms.shaped, BATCH, &progress, gpu, &err);
    if (calls == 1) assert_int_equal(status, WF_ERR_CANCELLED);
    for (size_t i = 0; i < BATCH && status != WF_OK; i++) assert_null(gpu[i]);
    if (status == WF_OK) test_free_results(gpu, BATCH);
    assert_ok(test_decode(decoder, forms.shaped, BATCH, NULL, gpu, &err));
    test_assert_same_batch(0, cpu, gpu, BATCH);
    test_free_results(gpu, BATCH);
  }
  wf_decoder_free(decoder);
  test_free_results(cpu, BATCH);
  free_forms(&forms);
  test_free_task(&task);
}

#if !defined(FAKE_CUDA) || \
    defined(SIMT) /* the fake search calls the library, which would be interrupted, too */
/* The thread's interrupt function stops the decoder at the n-th poll. */
static bool look(void *user) {
  wf__interrupt_poll();
  return --*(int *)user > 0;
}

static void assert_interrupts(float lattice_beam) {
  wf_error err = {0};
  struct decode_task task = test_random_task(5);
  struct forms forms;
  wf_result *cpu[BATCH], *gpu[BATCH];
  wf_decoder *decoder;
  make_forms(&forms, &task, 5, 20, WF_FLOAT32, false);
  task.options.lattice_beam = lattice_beam;
  test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
  task.options.device = "cuda:0,0";
  assert_ok(wf_decoder_create(task.graph, &task.options, &decoder, &err));
  wf_status status = WF_ERR_CANCELLED;
  const int density = test_seeds(8) > 2 ? 4 : 1;
  for (int looks = 1; status != WF_OK; looks += 1 + looks / density) {
    int left = looks;
    wf_set_interrupt(look, &left);
    status = test_decode(decoder, forms.shaped, BATCH, NULL, gpu, &err);
    wf_set_interrupt(NULL, NULL);
    if (looks == 1 || status != WF_OK) assert_int_equal(status, WF_ERR_CANCELLED);
    for (size_t i = 0; i < BATCH && status != WF_OK; i++) assert_null(gpu[i]);
    if (status != WF_OK) assert_ok(test_decode(decoder, forms.shaped, BATCH, NULL, gpu, &err));
    test_assert_same_batch(0, cpu, gpu, BATCH);
    test_free_results(gpu, BATCH);
  }
  wf_decoder_free(decoder);
  test_free_results(cpu, BATCH);
  free_forms(&forms);
  test_free_task(&task);
}

static void test_interrupted_at_every_poll(void **state) {
  (void)state;
  assert_interrupts(0);
  assert_interrupts(4);
}
#endif

static void test_no_such_gpu(void **state) {
  (void)state;
  wf_error err = {0};
  struct decode_task task = test_random_task(1);
  wf_decoder *decoder;
  static const char *const wrong[] = {"cuda:63", "cuda:0,99", "cuda:1023"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    task.options.device = wrong[i];
    assert_int_equal(wf_decoder_create(task.graph, &task.options, &decoder, &err), WF_ERR_DEVICE);
    assert_null(decoder);
    assert_non_null(strstr(err.message, "numbered from 0"));
  }
  task.options.device = "cuda";
#if defined(FAKE_CUDA) && !defined(SIMT)
  const struct fake_gpus real = fake_gpus;
  if (getenv("WARPFST_FAKE_SHARED_KB") == NULL) {
    fake_gpus.shared_kb = 0;
    assert_int_equal(wf_decoder_create(task.graph, &task.options, &decoder, &err), WF_ERR_DEVICE);
    assert_string_equal(err.message,
                        "device cuda:0: this build has no code for GPUs of compute capability 7.0; "
                        "the oldest that warpfst supports is 7.5");
    fake_gpus.shared_kb = real.shared_kb;
  }
  fake_gpus.driver = 11080;
  assert_int_equal(wf_decoder_create(task.graph, &task.options, &decoder, &err), WF_ERR_DEVICE);
  assert_string_equal(
      err.message,
      "no GPU: the NVIDIA driver is too old: it supports CUDA 11.8, this build needs 12.0");
  fake_gpus.driver = 0;
  assert_int_equal(wf_decoder_create(task.graph, &task.options, &decoder, &err), WF_ERR_DEVICE);
  assert_string_equal(err.message, "no GPU: there is no NVIDIA driver");
  fake_gpus.driver = real.driver;
#endif
  task.options.gpu_memory = 100;
  assert_int_equal(wf_decoder_create(task.graph, &task.options, &decoder, &err), WF_ERR_MEMORY);
  assert_non_null(strstr(err.message, "no room for the graph"));
  test_free_task(&task);
}

#ifdef FAKE_CUDA
/* Every CUDA call fails once. This must give an error or the right results, and leak nothing. */
static void test_every_cuda_call_fails_once(void **state) {
  (void)state;
  wf_error err = {0};
  int errors = 0;
  for (int variant = 0; variant < 4; variant++) {
    struct decode_task task = test_random_task(40 + (uint64_t)variant);
    struct forms forms;
    wf_result *cpu[BATCH], *gpu[BATCH];
    make_forms(&forms, &task, 5, 12, (wf_dtype)(variant % 3), variant % 2);
    task.options.lattice_beam = variant % 3 == 0 ? 3 : 0;
    test_decode_on("cpu", task.graph, task.options, forms.plain, BATCH, cpu);
    task.options.device = variant < 2 ? "cuda" : "cuda:0,1";
    task.options.num_threads = 2;
    long objects = fake_gpus.num_objects;
    bool reached = true;
    for (long n = 1; reached; n++) {
      wf_decoder *decoder;
      fake_gpus.num_calls = 0;
      fake_gpus.fail_at = n;
      wf_status status = wf_decoder_create(task.graph, &task.options, &decoder, &err);
      if (status == WF_OK)
        status = test_decode(decoder, forms.shaped, BATCH, NULL, gpu, &err);
      else
        assert_null(decoder);
      if (status == WF_OK) {
        test_assert_same_batch((uint64_t)n, cpu, gpu, BATCH);
        test_free_results(gpu, BATCH);
      } else {
        if (status != WF_ERR_DEVICE && status != WF_ERR_MEMORY)
          fail_msg("call %ld: status %d, %s", n, status, err.message);
        errors++;
      }
      wf_decoder_free(decoder);
      reached = fake_gpus.num_calls >= n;
      fake_gpus.fail_at = 0;
      assert_int_equal(cudaSetDevice(0), cudaSuccess);
      if (fake_gpus.num_objects != objects)
        fail_msg("call %ld: %ld objects more than before (%s)", n, fake_gpus.num_objects - objects,
                 err.message);
    }
    test_free_results(cpu, BATCH);
    free_forms(&forms);
    test_free_task(&task);
  }
  print_message("%d planted failures were reported\n", errors);
  assert_true(errors > 100);
}

/* The imitated GPU does some work at random moments instead of as late as possible. */
static void test_work_at_random_moments(void **state) {
  for (unsigned seed = 1; seed <= test_seeds(5); seed++) {
    fake_gpus.eager = seed;
    test_one_decoder_many_batches(state);
    test_stream_of_the_caller(state);
  }
  fake_gpus.eager = 0;
}
#endif

/* Suspicious scores in device memory, and probabilities, are detected from a copy of frames in the
 * middle of the utterance. Here the utterance has more frames than are copied. */
static void test_check_of_scores_on_the_device(void **state) {
  (void)state;
  enum { FRAMES = 20000, COLUMNS = 3, STRIDE = 16 };
  wf_error err = {0};
  wf_symbols *symbols;
  wf_fst *fst = test_fst_of(WF_TROPICAL, "0 0 1 0 0;0 0 2 1 0;0 0 3 2 0;0 0"), *named;
  struct decode_task task = {.graph = NULL};
  assert_ok(wf_symbols_create("tokens", &symbols, &err));
  for (int i = 0; i < 4; i++)
    assert_ok(
        wf_symbols_add(symbols, (const char *[]){"<eps>", "<blk>", "a", "b"}[i], i, NULL, &err));
  assert_ok(wf_fst_with_symbols(fst, symbols, NULL, &named, &err));
  assert_ok(wf_graph_create(named, NULL, 0, &task.graph, &err));
  wf_decoder_options_init(&task.options);
  float *data = calloc((size_t)FRAMES * STRIDE, sizeof *data);
  assert_non_null(data);
  enum { RIGHT, BASE_10, PROBABILITIES, CASES };
  for (int wrong = 0; wrong < CASES; wrong++) {
    for (int i = 0; i < FRAMES; i++)
      for (int c = 0; c < COLUMNS; c++) {
        float p = c == 0 ? 0.5f : 0.25f;
        data[i * STRIDE + c] = wrong == RIGHT ? logf(p) : wrong == BASE_10 ? log10f(p) : p;
      }
    void *copy = to_device(data, (size_t)FRAMES * STRIDE * sizeof *data);
    wf_scores batch[2] = {{.data = copy,
                           .num_frames = FRAMES,
                           .num_columns = COLUMNS,
                           .stride = STRIDE,
                           .on_device = true}};
    batch[1] = batch[0];
    wf_result *results[2];
    struct test_heard heard = {"the scores look like", 0};
    task.options.check_scores = 0;
    wf_set_log(test_listen, &heard);
    test_decode_on("cuda", task.graph, task.options, batch, 2, results);
    wf_set_log(NULL, NULL);
    assert_int_equal(heard.times, wrong != RIGHT);
    for (int i = 0; i < 2; i++)
      assert_int_equal(results[i]->status, wrong == PROBABILITIES ? WF_ERR_ARGUMENT : WF_OK);
    test_free_results(results, 2);
    task.options.check_scores = 1;
    test_decode_on("cuda", task.graph, task.options, batch, 2, results);
    for (int i = 0; i < 2; i++)
      assert_int_equal(results[i]->status, wrong ? WF_ERR_ARGUMENT : WF_OK);
    test_free_results(results, 2);
    assert_cuda(cudaFree(copy));
  }
  free(data);
  wf_graph_free(task.graph);
  wf_fst_free(named);
  wf_fst_free(fst);
  wf_symbols_free(symbols);
}

/* A part of each test, for compute-sanitizer. */
static void test_small(void **state) {
  test_forms_of_scores(state);
  test_padded_scores(state);
  test_bad_scores(state);
  test_stream_of_the_caller(state);
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  const struct CMUnitTest small[] = {cmocka_unit_test(test_small)};
  const struct CMUnitTest kernels[] = {
    cmocka_unit_test(test_small),
    cmocka_unit_test(test_too_little_trace_memory),
    cmocka_unit_test(test_lanes_of_several_sizes),
#if !defined(FAKE_CUDA) || defined(SIMT)
    cmocka_unit_test(test_interrupted_at_every_poll),
#endif
  };
  if (argc > 1 && strcmp(argv[1], "test_kernels") == 0)
    return cmocka_run_group_tests(kernels, NULL, NULL);
  if (argc > 1 && strcmp(argv[1], "test_small") == 0)
    return cmocka_run_group_tests(small, NULL, NULL);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_forms_of_scores),
    cmocka_unit_test(test_padded_scores),
    cmocka_unit_test(test_aligned_scores),
    cmocka_unit_test(test_bad_scores),
    cmocka_unit_test(test_memory_budgets),
    cmocka_unit_test(test_too_little_trace_memory),
    cmocka_unit_test(test_lanes_of_several_sizes),
    cmocka_unit_test(test_wide_frames),
    cmocka_unit_test(test_stream_of_the_caller),
    cmocka_unit_test(test_one_decoder_many_batches),
    cmocka_unit_test(test_cancelled_by_the_progress_function),
    cmocka_unit_test(test_no_such_gpu),
    cmocka_unit_test(test_check_of_scores_on_the_device),
#if !defined(FAKE_CUDA) || defined(SIMT)
    cmocka_unit_test(test_interrupted_at_every_poll),
#endif
#ifdef FAKE_CUDA
    cmocka_unit_test(test_every_cuda_call_fails_once),
    cmocka_unit_test(test_work_at_random_moments),
#endif
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
#ifdef FAKE_CUDA
  if (fake_gpus.num_objects != 0) {
    printf("%ld allocations, streams or events are left\n", fake_gpus.num_objects);
    return 1;
  }
#endif
  return failed;
}
