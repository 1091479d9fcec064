/* soak_batches.c - decodes batches of utterances with a decoder on the GPU and one on the CPU.
 *
 * Determinization may use 64 KB to 8 MB. With the default of 256 MB, a random graph whose lattices
 * fill that memory takes 1 to 2 seconds an utterance, which is 20 minutes a seed. */
#include <cuda_runtime_api.h>
#include <unistd.h>

#include "lattice_paths.h"
#include "soak.h"

enum { MOST = SOAK_SMALL ? 6 : 64, ROUNDS = SOAK_SMALL ? 2 : 24, TRIES = 20 };

struct pair {
  const struct soak_task *task;
  wf_decoder *cpu, *gpu;
  const char *device;
  bool determinizes;
  int64_t max_bytes;      /* the memory limit to determinize one lattice */
  char *data, *on_device; /* scores of a batch; a copy of them on the GPU, or NULL */
  size_t bytes;           /* of the scores of one utterance */
  int64_t max_frames;
};

struct batch {
  wf_scores host[MOST], gpu[MOST];
  const wf_scorer *scorers[MOST];
  const wf_graph *graphs[MOST];
  size_t count;
};

static void set_determinization(const struct pair *p, wf_decoder *decoder) {
  wf_error err = {0};
  wf_lattice_determinize_options options;
  wf_lattice_determinize_options_init(&options);
  options.max_bytes = p->max_bytes;
  if (p->determinizes) assert_ok(wf_decoder_set_determinization(decoder, &options, &err));
}

static void open_pair(struct pair *p, const struct soak_task *task, test_rng *rng) {
  *p = (struct pair){.task = task,
                     .device = test_below(rng, 6) == 0 ? "cuda:0,0" : "cuda",
                     .max_frames = soak_max_frames(task, rng)};
  p->determinizes = task->task.options.lattice_beam > 0 && test_below(rng, 3) == 0;
  p->max_bytes = (int64_t)1 << (16 + test_below(rng, 8));
  p->bytes = soak_score_bytes(task, p->max_frames);
  p->data = malloc(MOST * p->bytes);
  assert_non_null(p->data);
  if (test_below(rng, 4) == 0)
    assert_int_equal(cudaMalloc((void **)&p->on_device, MOST * p->bytes), cudaSuccess);
  p->cpu = soak_decoder(task, "cpu", false);
  p->gpu = soak_decoder(task, p->device, false);
  set_determinization(p, p->cpu);
  set_determinization(p, p->gpu);
}

static void close_pair(struct pair *p) {
  wf_decoder_free(p->cpu);
  wf_decoder_free(p->gpu);
  if (p->on_device != NULL) assert_int_equal(cudaFree(p->on_device), cudaSuccess);
  free(p->data);
}

static void make_batch(const struct pair *p, test_rng *rng, struct batch *b) {
  b->count = 1 + test_below(rng, test_below(rng, 3) == 0 ? 4 : MOST);
  if (p->task->is_large) b->count = 1 + b->count / 8;
  for (size_t i = 0; i < b->count; i++) {
    b->host[i] = b->gpu[i] = soak_scores(p->task, rng, p->max_frames,
                                         (wf_dtype)(test_below(rng, 2) ? 0 : test_below(rng, 3)),
                                         p->data + i * p->bytes);
    b->scorers[i] = soak_any_scorer(p->task, rng);
    b->graphs[i] = soak_any_graph(p->task, rng);
    if (p->on_device == NULL || test_below(rng, 8) == 0) continue;
    b->gpu[i].data = p->on_device + i * p->bytes;
    b->gpu[i].on_device = true;
  }
  if (p->on_device != NULL)
    assert_int_equal(cudaMemcpy(p->on_device, p->data, b->count * p->bytes, cudaMemcpyHostToDevice),
                     cudaSuccess);
}

/* If the planned memory is too small, the batch fails with WF_ERR_MEMORY. Then a decoder with more
 * memory is made. That may need several tries, because the decoders of other threads use memory of
 * the same GPU. */
static void decode_on_gpu(struct pair *p, const struct batch *b, wf_result **out) {
  wf_error err = {0};
  wf_status status =
      test_decode_each(p->gpu, b->gpu, b->scorers, b->graphs, b->count, NULL, out, &err);
  for (int tries = 0; status == WF_ERR_MEMORY && tries < TRIES; tries++) {
    for (size_t i = 0; i < b->count; i++) assert_null(out[i]);
    wf_decoder_free(p->gpu);
    p->gpu = soak_decoder(p->task, p->device, true);
    set_determinization(p, p->gpu);
    if (tries > 0) sleep(1);
    status = test_decode_each(p->gpu, b->gpu, b->scorers, b->graphs, b->count, NULL, out, &err);
  }
  if (status != WF_OK) fail_msg("the batch fails on the GPU: %s", err.message);
}

static void compare(wf_result **cpu, wf_result **gpu, size_t count) {
  if (soak_plant()) gpu[count - 1]->num_tokens++;
  test_assert_same_batch(0, cpu, gpu, count);
  for (size_t i = 0; i < count; i++) {
    if (cpu[i]->status != WF_OK) assert_string_equal(cpu[i]->message, gpu[i]->message);
    assert_int_equal(cpu[i]->num_estimated, gpu[i]->num_estimated);
    const wf_determinized *a = cpu[i]->determinized, *b = gpu[i]->determinized;
    assert_int_equal(a != NULL, b != NULL);
    if (a == NULL) continue;
    assert_int_equal(a->lattice != NULL, b->lattice != NULL);
    if (a->lattice != NULL && !test_same_compact(a->lattice, b->lattice))
      fail_msg("the determinized lattices of utterance %zu differ", i);
  }
}

void soak_batches(test_rng *rng, struct soak_counts *counts) {
  wf_error err = {0};
  struct soak_task task;
  struct pair pair;
  wf_result *cpu[MOST], *gpu[MOST];
  soak_make_task(rng, &task);
  open_pair(&pair, &task, rng);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    struct batch batch;
    make_batch(&pair, rng, &batch);
    soak_note("batch %u of %zu utterances on %s", round, batch.count, pair.device);
    assert_ok(test_decode_each(pair.cpu, batch.host, batch.scorers, batch.graphs, batch.count, NULL,
                               cpu, &err));
    decode_on_gpu(&pair, &batch, gpu);
    compare(cpu, gpu, batch.count);
    test_free_results(cpu, batch.count);
    test_free_results(gpu, batch.count);
    counts->utterances += batch.count;
  }
  close_pair(&pair);
  soak_free_task(&task);
}
