/* test_gpu_several.c - decoders on several GPUs, and scores that lie on a GPU other than the one
 * that searches them. Every bit of every result must equal the CPU decoder's. Exits with 77
 * (skipped) if there are fewer than two GPUs. Also compiled for the imitated GPUs of tests/simt/,
 * of which there are three. */
#include <cuda_runtime_api.h>

#include "cuda/decoder/move_scores.h"
#include "cuda/scorer/host_model.h"
#include "decode/decoder.h"
#include "decode_tasks.h"

enum { BATCH = 30, MOST_GPUS = 64 };

static wf_error err;

static void assert_cuda(cudaError_t code) {
  if (code != cudaSuccess) fail_msg("CUDA: %s", cudaGetErrorString(code));
}

static int num_gpus(void) {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/* --- scores on GPUs ---------------------------------------------------------------------- */

/* Random matrices in host memory, and copies of them on GPUs with more columns and a longer
 * stride. */
struct task {
  struct decode_task task;
  wf_scores plain[BATCH], placed[BATCH];
  float *data[BATCH];
  void *copies[BATCH];
  int devices[BATCH];
};

static void *send(int device, const void *data, size_t bytes) {
  void *copy;
  assert_cuda(cudaSetDevice(device));
  assert_cuda(cudaMalloc(&copy, bytes + 1));
  assert_cuda(cudaMemcpy(copy, data, bytes, cudaMemcpyHostToDevice));
  return copy;
}

/* Puts the scores on a GPU, in another type; unused elements are NaN. */
static void place(struct task *t, size_t i, int device, wf_dtype dtype) {
  wf_scores *plain = &t->plain[i];
  const int64_t stride = plain->num_columns + 3 * (int64_t)(i % 3);
  const size_t bytes = (size_t)(plain->num_frames * stride) * test_score_size(dtype);
  void *shaped = malloc(bytes + 1);
  for (int64_t k = 0; k < plain->num_frames * stride; k++) test_put_score(shaped, k, NAN, dtype);
  for (int64_t k = 0; k < plain->num_frames; k++)
    for (int32_t c = 0; c < plain->num_columns; c++) {
      test_put_score(t->data[i], k * plain->stride + c, t->data[i][k * plain->stride + c],
                     WF_FLOAT32);
      test_put_score(shaped, k * stride + c, t->data[i][k * plain->stride + c], dtype);
    }
  t->devices[i] = device;
  t->copies[i] = send(device, shaped, bytes);
  t->placed[i] = *plain;
  t->placed[i].data = t->copies[i];
  t->placed[i].stride = stride;
  t->placed[i].dtype = dtype;
  t->placed[i].on_device = true;
  free(shaped);
}

/* device < 0: all GPUs in turn. */
static struct task make_task(uint64_t seed, int device) {
  struct task t = {.task = test_random_task(seed)};
  test_random_batch(&t.task, t.plain, t.data, BATCH, seed, 25);
  for (size_t i = 0; i < BATCH; i++)
    place(&t, i, device >= 0 ? device : (int)i % num_gpus(), (wf_dtype)(seed % 3));
  assert_cuda(cudaSetDevice(0));
  return t;
}

static void free_task(struct task *t) {
  for (size_t i = 0; i < BATCH; i++) {
    free(t->data[i]);
    assert_cuda(cudaSetDevice(t->devices[i]));
    assert_cuda(cudaFree(t->copies[i]));
  }
  assert_cuda(cudaSetDevice(0));
  test_free_task(&t->task);
}

/* --- batches ----------------------------------------------------------------------------- */

static void test_small_batches(void **state) {
  (void)state;
  static const char *const devices[] = {"cuda:0,1", "cuda:1", "cuda:all", "cuda:1,0,1"};
  for (uint64_t seed = 1; seed <= test_seeds(24); seed++) {
    struct task t = make_task(seed, seed % 3 == 2 ? -1 : (int)(seed % 2));
    wf_result *cpu[BATCH], *gpu[BATCH];
    t.task.options.lattice_beam = (float)(seed / 4 % 2) * 3;
    test_decode_on("cpu", t.task.graph, t.task.options, t.plain, BATCH, cpu);
    test_decode_on(devices[seed % 4], t.task.graph, t.task.options, t.placed, BATCH, gpu);
    test_assert_same_batch(seed, cpu, gpu, BATCH);
    test_free_results(gpu, BATCH);
    for (size_t i = 0; i < BATCH; i += 3) t.placed[i] = t.plain[i]; /* some in host memory */
    test_decode_on(devices[seed % 4], t.task.graph, t.task.options, t.placed, BATCH, gpu);
    test_assert_same_batch(seed, cpu, gpu, BATCH);
    test_free_results(gpu, BATCH);
    test_free_results(cpu, BATCH);
    free_task(&t);
  }
}

/* A decoder warns once of scores on a GPU that is not its own. Its batches may have any size. */
static void test_small_warning(void **state) {
  (void)state;
  struct task t = make_task(4, 0);
  struct test_heard heard = {"none of this decoder's", 0};
  wf_result *want[BATCH], *got[BATCH];
  wf_decoder *decoder;
  test_decode_on("cpu", t.task.graph, t.task.options, t.plain, BATCH, want);
  t.task.options.device = "cuda:1";
  assert_ok(wf_decoder_create(t.task.graph, &t.task.options, &decoder, &err));
  wf_set_log(test_listen, &heard);
  for (size_t count = 1; count <= BATCH; count += 9) {
    assert_ok(test_decode(decoder, t.placed, count, NULL, got, &err));
    test_assert_same_batch(count, want, got, count);
    test_free_results(got, count);
  }
  wf_set_log(NULL, NULL);
  assert_int_equal(heard.times, 1);
  wf_decoder_free(decoder);
  test_free_results(want, BATCH);
  free_task(&t);
}

/* A score that is not a number is found on the other GPU, and named. */
static void test_small_bad_score(void **state) {
  (void)state;
  struct task t = make_task(7, 0);
  wf_result *got[BATCH];
  const float nan = NAN;
  size_t bad = 0;
  while (t.plain[bad].num_frames < 5) bad++;
  place(&t, bad, 0, WF_FLOAT32);
  float *scores = t.copies[bad];
  assert_cuda(
      cudaMemcpy(scores + 3 * t.placed[bad].stride + 1, &nan, sizeof nan, cudaMemcpyHostToDevice));
  test_decode_on("cuda:1", t.task.graph, t.task.options, t.placed, BATCH, got);
  assert_int_equal(got[bad]->status, WF_ERR_ARGUMENT);
  assert_non_null(strstr(got[bad]->message, "frame 3"));
  assert_non_null(strstr(got[bad]->message, "column 1"));
  test_free_results(got, BATCH);
  free_task(&t);
}

/* --- which GPU searches what ------------------------------------------------------------- */

/* The frames of each GPU differ by at most two utterances, and none moves without need. */
static void check_spread(const wf_scores *scores, const int *homes, size_t count, int num_workers) {
  wf__gpu_worker workers[3] = {{.device = 0}, {.device = 1}, {.device = 2}};
  const struct wf__cuda_backend backend = {
      .devices = {true, num_workers, {0, 1, 2}}, .workers = workers, .num_workers = num_workers};
  int64_t before[4] = {0}, after[4] = {0}, moved = 0, all = 0, longest = 0, needed = 0;
  uint32_t order[BATCH];
  int targets[BATCH];
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  wf__spread_scores(&backend, scores, order, (uint32_t)count, homes, targets);
  for (size_t i = 0; i < count; i++) {
    if (homes[i] < 0) {
      assert_int_equal(targets[i], homes[i]);
      continue;
    }
    assert_true(targets[i] >= 0 && targets[i] < num_workers);
    before[homes[i]] += scores[i].num_frames + 1;
    after[targets[i]] += scores[i].num_frames + 1;
    moved += targets[i] != homes[i] ? scores[i].num_frames + 1 : 0;
    all += scores[i].num_frames + 1;
    if (scores[i].num_frames >= longest) longest = scores[i].num_frames + 1;
  }
  for (int d = 0; d < 4; d++) {
    const int64_t share = d < num_workers ? all / num_workers : 0;
    needed += before[d] > share ? before[d] - share : 0;
    if (d < num_workers) assert_true(llabs(after[d] - share) <= 2 * longest);
  }
  assert_true(moved <= needed + 4 * longest);
}

static void test_small_spread(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    test_rng rng = {seed};
    wf_scores scores[BATCH] = {{0}};
    int homes[BATCH];
    const size_t count = test_below(&rng, BATCH + 1);
    const int num_workers = 1 + (int)test_below(&rng, 3), kind = (int)test_below(&rng, 3);
    for (size_t i = 0; i < count; i++) {
      scores[i].num_frames = (int64_t)test_below(&rng, kind == 0 ? 10 : 1000);
      homes[i] = kind == 2 ? 0 : (int)test_below(&rng, 6) - 2; /* also none, and GPU 3 */
    }
    check_spread(scores, homes, count, num_workers);
  }
}

/* --- streams ----------------------------------------------------------------------------- */

/* The numbers of streams on the decoder's GPUs differ by at most one. */
static void assert_balanced(const wf_decoder *decoder) {
  const struct wf__cuda_backend *backend = decoder->search;
  for (int i = 1; i < backend->num_workers; i++) {
    const int64_t here = (int64_t)backend->workers[i].streams->num_channels,
                  first = (int64_t)backend->workers[0].streams->num_channels;
    assert_true(llabs(here - first) <= 1);
  }
}

/* When streams of one GPU end, it gets the next ones. */
static void test_small_balance(void **state) {
  (void)state;
  struct task t = make_task(3, 0);
  wf_stream *streams[BATCH];
  wf_decoder *decoder;
  t.task.options.device = "cuda:0,1";
  assert_ok(wf_decoder_create(t.task.graph, &t.task.options, &decoder, &err));
  for (size_t i = 0; i < BATCH; i++) assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
  assert_balanced(decoder);
  for (size_t i = 0; i < BATCH; i += 2) wf_stream_free(streams[i]); /* all on one GPU */
  for (size_t i = 0; i < BATCH; i += 2)
    assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
  assert_balanced(decoder);
  for (size_t i = 0; i < BATCH; i++) wf_stream_free(streams[i]);
  wf_decoder_free(decoder);
  free_task(&t);
}

/* Streams of a decoder with two GPUs, or with the second alone, get chunks that lie on either GPU
 * or in host memory. */
static void test_small_streams(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_seeds(8); seed++) {
    struct task t = make_task(seed, (int)(seed % 2));
    wf_result *want[BATCH], *got;
    wf_stream *streams[BATCH];
    wf_scores chunks[BATCH];
    wf_stream_event events[BATCH];
    wf_decoder *decoder;
    test_decode_on("cpu", t.task.graph, t.task.options, t.plain, BATCH, want);
    t.task.options.device = seed % 4 < 2 ? "cuda:0,1" : "cuda:1";
    assert_ok(wf_decoder_create(t.task.graph, &t.task.options, &decoder, &err));
    for (size_t i = 0; i < BATCH; i++)
      assert_ok(wf_stream_create(decoder, NULL, &streams[i], &err));
    for (int64_t from = 0; from < 25; from += 6) {
      for (size_t i = 0; i < BATCH; i++) {
        const wf_scores *whole = i % 4 == 3 ? &t.plain[i] : &t.placed[i];
        const int64_t left = whole->num_frames - from;
        chunks[i] = *whole;
        chunks[i].num_frames = left < 0 ? 0 : left < 6 ? left : 6;
        chunks[i].data =
            (const char *)whole->data +
            (left > 0 ? (size_t)(from * whole->stride) : 0) * test_score_size(whole->dtype);
      }
      assert_ok(wf_streams_advance(decoder, streams, chunks, BATCH, events, &err));
    }
    for (size_t i = 0; i < BATCH; i++) {
      assert_ok(wf_stream_finish(streams[i], &got, &err));
      test_assert_same_result(want[i], got);
      wf_result_free(got);
      wf_stream_free(streams[i]);
    }
    wf_decoder_free(decoder);
    test_free_results(want, BATCH);
    free_task(&t);
  }
}

/* --- language models in host memory ------------------------------------------------------ */

static void fill(void *times, char *to) {
  ++*(int *)times;
  to[0] = 'x';
}

/* Two users of a model at the same placement share a copy, which is gone after the last. */
static void test_small_host_copies(void **state) {
  (void)state;
  int model, other, times = 0;
  char *copies[4];
  for (int i = 0; i < 4; i++)
    assert_ok(wf__host_model_acquire(i == 3 ? &other : &model, i == 2 ? 1 : 2, 1000, fill, &times,
                                     &copies[i], &err));
  assert_ptr_equal(copies[0], copies[1]);
  assert_true(copies[2] != copies[0] && copies[3] != copies[0] && copies[3] != copies[2]);
  assert_int_equal(times, 3);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(copies[i][0], 'x');
    wf__host_model_release(copies[i]);
  }
  assert_ok(wf__host_model_acquire(&model, 2, 1000, fill, &times, &copies[0], &err));
  assert_int_equal(times, 4);
  wf__host_model_release(copies[0]);
  wf__host_model_release(NULL);
#ifdef SIMT
  fake_gpus.fail_at = fake_gpus.num_calls + 1;
  assert_int_equal(wf__host_model_acquire(&model, 2, 1000, fill, &times, &copies[0], &err),
                   WF_ERR_MEMORY);
  assert_null(copies[0]);
  fake_gpus.fail_at = 0;
#endif
}

int main(int argc, char **argv) {
  if (test_no_gpu()) return 77;
  if (num_gpus() < 2) {
    fprintf(stderr, "there is only one GPU\n");
    return 77;
  }
  test_filter(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_small_batches),     cmocka_unit_test(test_small_warning),
      cmocka_unit_test(test_small_bad_score),   cmocka_unit_test(test_small_spread),
      cmocka_unit_test(test_small_host_copies), cmocka_unit_test(test_small_balance),
      cmocka_unit_test(test_small_streams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
