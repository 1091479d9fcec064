/* bias_batch.c - the hypotheses of a batch in a GPU's memory. Each step that changes their states
 * reads them in one place and writes them in the other. */
#include <stdlib.h>

#include "cuda/generation/bias_gpu.h"

static const char what[] = "hypotheses on the GPU";

struct wf_bias_batch {
  int device;
  wf_bias_gpu **biases; /* [num_biases] that the hypotheses had at first */
  uint64_t num_biases;
  uint32_t num_tokens; /* the most of a bias */
  uint32_t count, most, most_blocks;
  int now, turn; /* which of `hypotheses` are those, which of num_passes is 0 */
  char *memory;
  wf__gpu_hypothesis *hypotheses[2]; /* [most] */
  wf__bias_ends *ends;               /* [most] */
  uint32_t *passes;                  /* [most] */
  uint32_t *num_passes;              /* [2] */
};

static wf_status make_memory(wf_bias_batch *batch, wf_error *err) {
  const uint64_t states = (uint64_t)batch->most * sizeof *batch->hypotheses[0],
                 ends = (uint64_t)batch->most * sizeof *batch->ends,
                 passes = (uint64_t)batch->most * sizeof *batch->passes,
                 bytes = 2 * states + ends + passes + 2 * sizeof *batch->num_passes;
  WF__TRY(wf__device_alloc((void **)&batch->memory, bytes, what, err));
  WF__CUDA_TRY(cudaMemsetAsync(batch->memory, 0, bytes, NULL), what);
  batch->hypotheses[0] = (void *)batch->memory;
  batch->hypotheses[1] = (void *)(batch->memory + states);
  batch->ends = (void *)(batch->memory + 2 * states);
  batch->passes = (void *)(batch->memory + 2 * states + ends);
  batch->num_passes = batch->passes + batch->most;
  return WF_OK;
}

static wf_status send_start(wf_bias_batch *batch, wf_error *err) {
  wf__gpu_hypothesis *all = wf__alloc(batch->count, sizeof *all);
  if (all == NULL) return wf__fail_memory(err, batch->count * sizeof *all, what);
  for (uint32_t i = 0; i < batch->count; i++)
    all[i] = (wf__gpu_hypothesis){batch->biases[i]->start, batch->biases[i]->there};
  const wf_status status =
      wf__device_send(batch->hypotheses[0], all, batch->count * sizeof *all, NULL, what, err);
  free(all);
  return status;
}

static wf_status fill(wf_bias_batch *batch, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(batch->device), "choosing the GPU");
  WF__CUDA_TRY(wf__bias_most_blocks(&batch->most_blocks), what);
  WF__TRY(make_memory(batch, err));
  WF__TRY(send_start(batch, err));
  return wf__device_settle(what, err);
}

wf_status wf__bias_batch_create(wf_bias_gpu *const *biases, size_t count, size_t most,
                                wf_bias_batch **out, wf_error *err) {
  *out = NULL;
  for (size_t i = 0; i < count; i++)
    if (biases[i]->device != biases[0]->device)
      return wf__fail(err, WF_ERR_ARGUMENT, "bias: hypotheses on cuda:%d and on cuda:%d",
                      biases[0]->device, biases[i]->device);
  wf_bias_batch *batch = wf__calloc(1, sizeof *batch);
  if (batch == NULL) return wf__fail_memory(err, sizeof *batch, what);
  batch->device = biases[0]->device;
  batch->count = (uint32_t)count;
  batch->most = (uint32_t)most;
  batch->biases = wf__alloc(count, sizeof *batch->biases);
  wf_status status =
      batch->biases != NULL ? WF_OK : wf__fail_memory(err, count * sizeof *batch->biases, what);
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    batch->biases[batch->num_biases++] = wf__bias_gpu_ref(biases[i]);
    if (biases[i]->num_tokens > batch->num_tokens) batch->num_tokens = biases[i]->num_tokens;
  }
  const int caller = wf__callers_device();
  if (status == WF_OK) status = fill(batch, err);
  wf__restore_device(caller);
  if (status != WF_OK) {
    wf__bias_batch_free(batch);
    return status;
  }
  *out = batch;
  return WF_OK;
}

void wf__bias_batch_free(wf_bias_batch *batch) {
  if (batch == NULL) return;
  const int caller = wf__callers_device();
  cudaSetDevice(batch->device);
  cudaFree(batch->memory);
  for (uint64_t i = 0; i < batch->num_biases; i++) wf__bias_gpu_free(batch->biases[i]);
  wf__restore_device(caller);
  (void)cudaGetLastError(); /* a lost device has been reported, and no later call must */
  free(batch->biases);
  free(batch);
}

static wf_status check_step(const wf_bias_batch *batch, const wf_bias_step *step, wf_error *err) {
  if (step->count == 0 || step->count > batch->most)
    return wf__fail(err, WF_ERR_ARGUMENT, "bias: %zu hypotheses, expected 1 to %u", step->count,
                    batch->most);
  if (step->places == NULL && step->count != batch->count)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "bias: %zu hypotheses without places, before there were %u", step->count,
                    batch->count);
  if (step->logits != NULL && (batch->num_tokens > step->width || step->width > step->stride))
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "bias: rows of %zu columns, each %zu after the last, for %u tokens",
                    step->width, step->stride, batch->num_tokens);
  return WF_OK;
}

wf_status wf__bias_batch_step(wf_bias_batch *batch, const wf_bias_step *step, wf_error *err) {
  WF__TRY(check_step(batch, step, err));
  const bool changes = step->places != NULL || step->tokens != NULL;
  const int to = changes ? 1 - batch->now : batch->now, turn = batch->turn;
  const wf__bias_work work = {.from = batch->hypotheses[batch->now],
                              .to = batch->hypotheses[to],
                              .ends = batch->ends,
                              .passes = batch->passes,
                              .num_passes = &batch->num_passes[turn],
                              .next_num_passes = &batch->num_passes[1 - turn],
                              .places = step->places,
                              .tokens = step->tokens,
                              .costs = step->costs,
                              .logits = step->logits,
                              .width = step->width,
                              .stride = step->stride,
                              .num_before = batch->count,
                              .count = (uint32_t)step->count,
                              .index_bytes = (uint32_t)step->index_bytes};
  const int caller = wf__callers_device();
  cudaError_t code = caller != batch->device ? cudaSetDevice(batch->device) : cudaSuccess;
  if (code == cudaSuccess)
    code = (cudaError_t)wf__bias_step_launch(&work, batch->most_blocks, step->stream);
  wf__restore_device(caller);
  WF__CUDA_TRY(code, "a step of hypotheses");
  batch->now = to;
  batch->count = work.count;
  if (step->logits != NULL) batch->turn = 1 - turn;
  return WF_OK;
}

static wf_status fetch(const wf_bias_batch *batch, cudaStream_t stream, wf__gpu_hypothesis *to,
                       wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(batch->device), "choosing the GPU");
  WF__CUDA_TRY(cudaMemcpyAsync(to, batch->hypotheses[batch->now], batch->count * sizeof *to,
                               cudaMemcpyDeviceToHost, stream),
               what);
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  return WF_OK;
}

wf_status wf__bias_batch_get_states(const wf_bias_batch *batch, void *stream, wf_bias_state *states,
                                    wf_error *err) {
  wf__gpu_hypothesis *all = wf__alloc(batch->count, sizeof *all);
  if (all == NULL) return wf__fail_memory(err, batch->count * sizeof *all, what);
  const int caller = wf__callers_device();
  const wf_status status = fetch(batch, stream, all, err);
  wf__restore_device(caller);
  for (uint32_t i = 0; i < batch->count && status == WF_OK; i++) states[i] = all[i].state;
  free(all);
  return status;
}

const struct wf__device_bias wf__cuda_bias = {.create = wf__bias_gpu_create,
                                              .free = wf__bias_gpu_free,
                                              .batch_create = wf__bias_batch_create,
                                              .batch_free = wf__bias_batch_free,
                                              .step = wf__bias_batch_step,
                                              .get_states = wf__bias_batch_get_states};
