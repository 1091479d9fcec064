/* ops_batch.c - batches of fsts in device memory: their arrays, and the memory of operations.
 *
 * Batches derived from one another share a context, which is a stream and a memory pool. Each batch
 * owns its arrays. The temporary memory of an operation returns to the pool when it ends. */
#include "cuda/fstops/ops_batch.h"

#include <string.h>

#include "base/interrupt.h"

/* --- context and memory ------------------------------------------------------------------ */

void wf__gpu_context_release(wf__gpu_context *context) {
  if (context == NULL || --context->users > 0) return;
  const int caller = wf__callers_device();
  cudaSetDevice(context->device);
  cudaFreeHost(context->values);
  if (context->pool != NULL) cudaMemPoolDestroy(context->pool);
  if (context->stream != NULL) cudaStreamDestroy(context->stream);
  wf__restore_device(caller);
  free(context);
}

static wf_status context_open(wf__gpu_context *context, wf_error *err) {
  struct cudaMemPoolProps props;
  uint64_t keep = UINT64_MAX; /* freed memory stays in the pool for the next operation */
  memset(&props, 0, sizeof props);
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = context->device;
  WF__CUDA_TRY(cudaStreamCreateWithFlags(&context->stream, cudaStreamNonBlocking), "a stream");
  WF__CUDA_TRY(cudaMemPoolCreate(&context->pool, &props), "a memory pool");
  WF__CUDA_TRY(cudaMemPoolSetAttribute(context->pool, cudaMemPoolAttrReleaseThreshold, &keep),
               "a memory pool");
  return wf__pinned_alloc((void **)&context->values, WF__OPS_VALUE_BYTES, "a batch", err);
}

wf_status wf__gpu_context_create(int device, wf__gpu_context **out, wf_error *err) {
  wf__gpu_context *context = wf__calloc(1, sizeof *context);
  *out = NULL;
  if (context == NULL) return wf__fail_memory(err, sizeof *context, "a device");
  context->device = device;
  context->users = 1;
  wf__gpu_operation opening;
  wf_status status = wf__gpu_begin(context, &opening, err);
  if (status == WF_OK) {
    status = context_open(context, err);
    wf__gpu_end(&opening);
  }
  if (status == WF_OK)
    *out = context;
  else
    wf__gpu_context_release(context);
  return status;
}

wf_status wf__gpu_begin(wf__gpu_context *context, wf__gpu_operation *out, wf_error *err) {
  *out = (wf__gpu_operation){.context = context, .caller = wf__callers_device()};
  WF__CUDA_TRY(cudaSetDevice(context->device), "choosing the GPU");
  return WF_OK;
}

void wf__gpu_end(wf__gpu_operation *operation) {
  wf__ops_release(operation->context, &operation->scratch);
  wf__restore_device(operation->caller);
}

wf_status wf__ops_take(wf__gpu_context *context, wf__gpu_blocks *blocks, uint64_t bytes,
                       const char *what, void **out, wf_error *err) {
  *out = NULL;
  if (blocks->count == WF__GPU_MAX_BLOCKS)
    return wf__fail(err, WF_ERR_LIMIT, "too many arrays for %s", what);
  cudaError_t code =
      cudaMallocFromPoolAsync(out, bytes != 0 ? bytes : 1, context->pool, context->stream);
  if (code != cudaSuccess) return wf__fail_allocation(err, code, what, bytes);
  blocks->at[blocks->count++] = *out;
  return WF_OK;
}

void wf__ops_release(wf__gpu_context *context, wf__gpu_blocks *blocks) {
  for (int i = 0; i < blocks->count; i++) cudaFreeAsync(blocks->at[i], context->stream);
  blocks->count = 0;
}

wf_status wf__ops_to_device(wf__gpu_context *context, void *to, const void *from, uint64_t bytes,
                            wf_error *err) {
  if (bytes != 0)
    WF__CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, context->stream),
                 "fsts to the GPU");
  return WF_OK;
}

wf_status wf__ops_to_host(wf__gpu_context *context, void *to, const void *from, uint64_t bytes,
                          wf_error *err) {
  if (bytes != 0)
    WF__CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, context->stream),
                 "results from the GPU");
  return WF_OK;
}

wf_status wf__ops_finish(wf__gpu_context *context, const char *what, wf_error *err) {
  WF__TRY(wf__interrupted(err));
  WF__CUDA_TRY(cudaStreamSynchronize(context->stream), what);
  return WF_OK;
}

wf_status wf__ops_read(wf__gpu_context *context, const wf__gpu_value *values, int count,
                       const char *what, wf_error *err) {
  uint64_t at = 0;
  for (int i = 0; i < count; at += (values[i].bytes + 7) / 8 * 8, i++)
    WF__TRY(wf__ops_to_host(context, context->values + at, values[i].from, values[i].bytes, err));
  WF__TRY(wf__ops_finish(context, what, err));
  at = 0;
  for (int i = 0; i < count; at += (values[i].bytes + 7) / 8 * 8, i++)
    memcpy(values[i].to, context->values + at, values[i].bytes);
  return WF_OK;
}

wf_status wf__gpu_scan(wf__gpu_context *context, wf__gpu_blocks *blocks, const uint32_t *in,
                       uint32_t *out, uint64_t count, wf_error *err) {
  size_t bytes = 0;
  char *room;
  WF__CUDA_TRY(wf__ops_scan(in, out, count, NULL, &bytes, context->stream), "prefix sums");
  TAKE(context, blocks, room, bytes, "prefix sums");
  WF__CUDA_TRY(wf__ops_scan(in, out, count, room, &bytes, context->stream), "prefix sums");
  return WF_OK;
}

wf_status wf__gpu_scan64(wf__gpu_context *context, wf__gpu_blocks *blocks, uint64_t *values,
                         uint64_t count, wf_error *err) {
  size_t bytes = 0;
  char *room;
  WF__CUDA_TRY(wf__ops_scan64(values, values, count, NULL, &bytes, context->stream), "prefix sums");
  TAKE(context, blocks, room, bytes, "prefix sums");
  WF__CUDA_TRY(wf__ops_scan64(values, values, count, room, &bytes, context->stream), "prefix sums");
  return WF_OK;
}

/* --- batches ----------------------------------------------------------------------------- */

void wf__gpu_batch_free(wf__gpu_batch *batch) {
  if (batch == NULL) return;
  if (batch->context != NULL) {
    const int caller = wf__callers_device();
    cudaSetDevice(batch->context->device);
    wf__ops_release(batch->context, &batch->owned);
    wf__restore_device(caller);
  }
  wf__gpu_context_release(batch->context);
  free(batch->state_base);
  free(batch->arc_base);
  free(batch->start);
  free(batch->input_base[0]);
  free(batch->input_base[1]);
  free(batch);
}

/* Makes a batch of `count` fsts without arrays, which shares the context. */
static wf_status batch_new(wf__gpu_context *context, size_t count, bool log_semiring,
                           wf__gpu_batch **out, wf_error *err) {
  wf__gpu_batch *batch = *out = wf__calloc(1, sizeof *batch);
  if (batch == NULL) return wf__fail_memory(err, sizeof *batch, "a batch");
  batch->context = context;
  context->users++;
  batch->log_semiring = log_semiring;
  batch->f.num_fsts = count;
  batch->state_base = wf__calloc(count + 1, sizeof *batch->state_base);
  batch->arc_base = wf__calloc(count + 1, sizeof *batch->arc_base);
  batch->start = wf__calloc(count + 1, sizeof *batch->start);
  if (batch->state_base == NULL || batch->arc_base == NULL || batch->start == NULL)
    return wf__fail_memory(err, count * 24, "a batch");
  return WF_OK;
}

wf_status wf__gpu_batch_reserve(wf__gpu_batch *batch, uint64_t num_states, uint64_t num_arcs,
                                wf__gpu_arrays *a, wf_error *err) {
  wf__gpu_context *c = batch->context;
  if (num_states >= UINT32_MAX || num_arcs >= UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%llu states and %llu arcs in one batch, at most 2^32 - 2",
                    (unsigned long long)num_states, (unsigned long long)num_arcs);
  TAKE(c, &batch->owned, a->state_base, batch->f.num_fsts + 1, "a batch");
  TAKE(c, &batch->owned, a->start, batch->f.num_fsts + 1, "a batch");
  TAKE(c, &batch->owned, a->off, num_states + 1, "states");
  TAKE(c, &batch->owned, a->final_cost, num_states, "states");
  TAKE(c, &batch->owned, a->arcs, num_arcs, "arcs");
  batch->f.num_states = num_states;
  batch->f.num_arcs = num_arcs;
  batch->f.state_base = a->state_base;
  batch->f.start = a->start;
  batch->f.off = a->off;
  batch->f.arcs = a->arcs;
  batch->f.final_cost = a->final_cost;
  return WF_OK;
}

/* Reads the bases and starts from the device, once the arrays are filled. */
static wf_status finish(wf__gpu_batch *batch, const char *what, wf_error *err) {
  wf__gpu_context *c = batch->context;
  wf__gpu_blocks scratch = {.count = 0};
  uint64_t count = batch->f.num_fsts, *bases;
  WF__TRY(wf__ops_take(c, &scratch, (count + 1) * sizeof *bases, "a batch", (void **)&bases, err));
  cudaError_t code = (cudaError_t)wf__ops_arc_bases(&batch->f, bases, c->stream);
  wf_status status = code == cudaSuccess
                         ? wf__ops_to_host(c, batch->arc_base, bases, (count + 1) * 8, err)
                         : wf__cuda_fail(err, code, what);
  if (status == WF_OK)
    status = wf__ops_to_host(c, batch->state_base, batch->f.state_base, (count + 1) * 8, err);
  if (status == WF_OK) status = wf__ops_to_host(c, batch->start, batch->f.start, count * 8, err);
  if (status == WF_OK) status = wf__ops_finish(c, what, err);
  wf__ops_release(c, &scratch);
  return status;
}

/* Copies the bases and starts of `from`. */
static wf_status copy_bases(const wf__gpu_batch *from, const wf__gpu_arrays *a, wf_error *err) {
  uint64_t count = from->f.num_fsts;
  cudaStream_t stream = from->context->stream;
  WF__CUDA_TRY(cudaMemcpyAsync(a->state_base, from->f.state_base, (count + 1) * 8,
                               cudaMemcpyDeviceToDevice, stream),
               "a batch");
  WF__CUDA_TRY(
      cudaMemcpyAsync(a->start, from->f.start, count * 8, cudaMemcpyDeviceToDevice, stream),
      "a batch");
  return WF_OK;
}

wf_status wf__gpu_batch_begin_alike(wf__gpu_batch *batch, const wf__gpu_batch *from,
                                    wf__gpu_arrays *a, wf_error *err) {
  cudaStream_t stream = from->context->stream;
  batch->trimmed = from->trimmed;
  WF__TRY(wf__gpu_batch_reserve(batch, from->f.num_states, from->f.num_arcs, a, err));
  WF__CUDA_TRY(cudaMemcpyAsync(a->off, from->f.off, (from->f.num_states + 1) * 8,
                               cudaMemcpyDeviceToDevice, stream),
               "states");
  WF__CUDA_TRY(cudaMemcpyAsync(a->final_cost, from->f.final_cost, from->f.num_states * 4,
                               cudaMemcpyDeviceToDevice, stream),
               "states");
  return copy_bases(from, a, err);
}

wf_status wf__gpu_batch_input_bases(wf__gpu_batch *to, const uint64_t *const from[2],
                                    wf_error *err) {
  for (int side = 0; side < 2; side++) {
    uint64_t bytes = (to->f.num_fsts + 1) * sizeof **from;
    to->input_base[side] = wf__alloc(to->f.num_fsts + 1, sizeof **from);
    if (to->input_base[side] == NULL) return wf__fail_memory(err, bytes, "a batch");
    memcpy(to->input_base[side], from[side], bytes);
  }
  return WF_OK;
}

wf_status wf__gpu_batch_make_on(wf__gpu_context *context, size_t count, bool log_semiring,
                                wf__gpu_make_fn *make, const void *from, int how, const char *what,
                                wf__gpu_batch **out, wf_error *err) {
  wf__gpu_operation making;
  wf__gpu_batch *batch;
  *out = NULL;
  WF__TRY(wf__gpu_begin(context, &making, err));
  wf_status status = batch_new(context, count, log_semiring, &batch, err);
  if (status == WF_OK) status = make(batch, from, &making.scratch, how, err);
  if (status == WF_OK) status = finish(batch, what, err);
  wf__gpu_end(&making);
  if (status == WF_OK)
    *out = batch;
  else
    wf__gpu_batch_free(batch);
  return status;
}

wf_status wf__gpu_batch_make(const wf__gpu_batch *from, wf__gpu_make_fn *make, int how,
                             const char *what, wf__gpu_batch **out, wf_error *err) {
  return wf__gpu_batch_make_on(from->context, from->f.num_fsts, from->log_semiring, make, from, how,
                               what, out, err);
}
