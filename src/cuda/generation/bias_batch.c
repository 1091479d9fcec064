/* bias_batch.c - the hypotheses of a batch in a GPU's memory. Each step that changes their states
 * reads them in one place and writes them in the other. */
#include <stdlib.h>

#include "cuda/generation/bias_gpu.h"

static const char what[] = "hypotheses on the GPU";

/* Of one size, in one allocation. */
struct room {
  uint32_t most;
  char *memory;
  wf__gpu_hypothesis *hypotheses[2]; /* [most] */
  wf__bias_ends *ends;               /* [most] */
  uint32_t *passes;                  /* [most] */
  uint32_t *num_passes;              /* [2] */
};

struct wf_bias_batch {
  int device;
  wf_bias_gpu **biases;      /* [num_first] that the hypotheses had at first */
  wf__gpu_hypothesis *first; /* [num_first] */
  uint32_t num_first;
  uint32_t num_tokens; /* the most of a bias */
  uint32_t count, most_blocks;
  int now, turn; /* which of room.hypotheses are those, which of room.num_passes is 0 */
  struct room room;
};

static wf_status make_room(uint32_t most, cudaStream_t stream, struct room *out, wf_error *err) {
  const uint64_t states = (uint64_t)most * sizeof *out->hypotheses[0],
                 ends = (uint64_t)most * sizeof *out->ends,
                 passes = (uint64_t)most * sizeof *out->passes,
                 bytes = 2 * states + ends + passes + 2 * sizeof *out->num_passes;
  out->most = most;
  WF__TRY(wf__device_alloc((void **)&out->memory, bytes, what, err));
  out->hypotheses[0] = (void *)out->memory;
  out->hypotheses[1] = (void *)(out->memory + states);
  out->ends = (void *)(out->memory + 2 * states);
  out->passes = (void *)(out->memory + 2 * states + ends);
  out->num_passes = out->passes + most;
  WF__CUDA_TRY(cudaMemsetAsync(out->memory, 0, bytes, stream), what);
  return WF_OK;
}

/* Makes room for `count` hypotheses, and takes those there are with it. */
static wf_status grow(wf_bias_batch *batch, uint32_t count, cudaStream_t stream, wf_error *err) {
  struct room room = {0};
  if (count <= batch->room.most) return WF_OK;
  wf_status status = make_room(count, stream, &room, err);
  if (status == WF_OK) {
    cudaError_t code = cudaMemcpyAsync(
        room.hypotheses[batch->now], batch->room.hypotheses[batch->now],
        batch->count * sizeof *room.hypotheses[0], cudaMemcpyDeviceToDevice, stream);
    if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
    if (code != cudaSuccess) status = wf__cuda_fail(err, code, what);
  }
  if (status != WF_OK) {
    cudaFree(room.memory);
    return status;
  }
  cudaFree(batch->room.memory);
  batch->room = room;
  return WF_OK;
}

static wf_status send_first(wf_bias_batch *batch, wf_error *err) {
  const uint64_t bytes = batch->count * sizeof *batch->first;
  wf__gpu_hypothesis *all = wf__alloc(batch->count, sizeof *all);
  if (all == NULL) return wf__fail_memory(err, bytes, what);
  for (uint32_t i = 0; i < batch->count; i++)
    all[i] = (wf__gpu_hypothesis){batch->biases[i]->start, batch->biases[i]->there};
  wf_status status = wf__device_alloc((void **)&batch->first, bytes, what, err);
  if (status == WF_OK) status = wf__device_send(batch->first, all, bytes, NULL, what, err);
  if (status == WF_OK)
    status = wf__device_send(batch->room.hypotheses[0], all, bytes, NULL, what, err);
  free(all);
  return status;
}

static wf_status fill(wf_bias_batch *batch, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(batch->device), "choosing the GPU");
  WF__CUDA_TRY(wf__bias_most_blocks(&batch->most_blocks), what);
  WF__TRY(make_room(batch->count, NULL, &batch->room, err));
  WF__TRY(send_first(batch, err));
  return wf__device_settle(what, err);
}

wf_status wf__bias_batch_create(wf_bias_gpu *const *biases, size_t count, wf_bias_batch **out,
                                wf_error *err) {
  *out = NULL;
  for (size_t i = 0; i < count; i++)
    if (biases[i]->device != biases[0]->device)
      return wf__fail(err, WF_ERR_ARGUMENT, "bias: hypotheses on cuda:%d and on cuda:%d",
                      biases[0]->device, biases[i]->device);
  wf_bias_batch *batch = wf__calloc(1, sizeof *batch);
  if (batch == NULL) return wf__fail_memory(err, sizeof *batch, what);
  batch->device = biases[0]->device;
  batch->count = (uint32_t)count;
  batch->biases = wf__alloc(count, sizeof *batch->biases);
  wf_status status =
      batch->biases != NULL ? WF_OK : wf__fail_memory(err, count * sizeof *batch->biases, what);
  for (size_t i = 0; i < count && status == WF_OK; i++) {
    batch->biases[batch->num_first++] = wf__bias_gpu_ref(biases[i]);
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
  cudaFree(batch->room.memory);
  cudaFree(batch->first);
  for (uint64_t i = 0; i < batch->num_first; i++) wf__bias_gpu_free(batch->biases[i]);
  wf__restore_device(caller);
  (void)cudaGetLastError(); /* a lost device has been reported, and no later call must */
  free(batch->biases);
  free(batch);
}

static wf_status check_step(const wf_bias_batch *batch, const wf_bias_step *step, wf_error *err) {
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

/* On the batch's GPU. */
static wf_status launch(wf_bias_batch *batch, const wf_bias_step *step, wf_error *err) {
  WF__TRY(grow(batch, (uint32_t)step->count, step->stream, err));
  const struct room *room = &batch->room;
  const bool changes = step->places != NULL || step->tokens != NULL;
  const int to = changes ? 1 - batch->now : batch->now, turn = batch->turn;
  const wf__bias_work work = {.from = room->hypotheses[batch->now],
                              .first = batch->first,
                              .to = room->hypotheses[to],
                              .ends = room->ends,
                              .passes = room->passes,
                              .num_passes = &room->num_passes[turn],
                              .next_num_passes = &room->num_passes[1 - turn],
                              .places = step->places,
                              .tokens = step->tokens,
                              .costs = step->costs,
                              .logits = step->logits,
                              .width = step->width,
                              .stride = step->stride,
                              .num_before = batch->count,
                              .num_first = batch->num_first,
                              .count = (uint32_t)step->count,
                              .index_bytes = (uint32_t)step->index_bytes};
  WF__CUDA_TRY(wf__bias_step_launch(&work, batch->most_blocks, step->stream), "a step");
  batch->now = to;
  batch->count = work.count;
  if (step->logits != NULL) batch->turn = 1 - turn;
  return WF_OK;
}

wf_status wf__bias_batch_step(wf_bias_batch *batch, const wf_bias_step *step, wf_error *err) {
  WF__TRY(check_step(batch, step, err));
  const int caller = wf__callers_device();
  if (caller != batch->device) WF__CUDA_TRY(cudaSetDevice(batch->device), "choosing the GPU");
  const wf_status status = launch(batch, step, err);
  wf__restore_device(caller);
  return status;
}

static wf_status fetch(const wf_bias_batch *batch, cudaStream_t stream, wf__gpu_hypothesis *to,
                       wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(batch->device), "choosing the GPU");
  WF__CUDA_TRY(cudaMemcpyAsync(to, batch->room.hypotheses[batch->now], batch->count * sizeof *to,
                               cudaMemcpyDeviceToHost, stream),
               what);
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  return WF_OK;
}

wf_status wf__bias_batch_copy_states(const wf_bias_batch *batch, void *stream,
                                     wf_bias_state *states, wf_error *err) {
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
                                              .copy_states = wf__bias_batch_copy_states};
