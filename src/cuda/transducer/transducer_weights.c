/* transducer_weights.c - the weights of a transducer on a GPU (search/transducer/transducer_device.h). */
#include "cuda/transducer/transducer_weights.h"

#include <stdio.h>

#include "cuda/device/gpu_profile.h"
#include "cuda/transducer/transducer_kernels.h"

enum { TOKENS_AT_ONCE = 16384 };

/* Room for the integers that a predictor's places are made of: of a place's matrix, and of some
 * tokens' embeddings. */
struct place_work {
  wf__sliced matrix, embeddings;
};

/* What some tokens add in one place, whose matrix is ready. */
static int make_some_places(wf__transducer_weights *w, uint32_t place, uint32_t first,
                            uint32_t count, const struct place_work *work) {
  const struct wf__network *n = w->model->network;
  const uint32_t stride = (uint32_t)n->predictor.stride;
  float *to = (float *)w->places.data + ((uint64_t)place * n->embedding.rows + first) * stride;
  const int code = wf__slice_rows(
      wf__transducer_weight(w, n->embedding.data) + (uint64_t)first * n->embedding.stride,
      (uint32_t)n->embedding.cols, (uint32_t)n->embedding.stride, wf__rows(count), work->embeddings,
      NULL);
  return code == cudaSuccess
             ? wf__gpu_slice_product(&(wf__slice_product){.w = work->matrix,
                                                          .num_rows = (uint32_t)n->conv.rows,
                                                          .x = work->embeddings,
                                                          .count = wf__rows(count),
                                                          .y = to,
                                                          .y_stride = stride},
                                     NULL)
             : code;
}

static int make_all_places(wf__transducer_weights *w, const struct place_work *work) {
  const struct wf__network *n = w->model->network;
  const uint64_t rows = n->embedding.rows;
  int code = cudaSuccess;
  for (uint32_t place = 0; place < (uint32_t)w->model->context_size && code == cudaSuccess;
       place++) {
    code = wf__slice_rows(wf__transducer_weight(w, n->conv.data) + place * n->embedding.cols,
                          (uint32_t)n->embedding.cols, (uint32_t)n->conv.stride,
                          wf__rows(n->conv.rows), work->matrix, NULL);
    for (uint64_t first = 0; first < rows && code == cudaSuccess; first += TOKENS_AT_ONCE)
      code = make_some_places(
          w, place, (uint32_t)first,
          (uint32_t)(rows - first < TOKENS_AT_ONCE ? rows - first : TOKENS_AT_ONCE), work);
  }
  return code == cudaSuccess ? (int)cudaStreamSynchronize(NULL) : code;
}

static wf_status make_places(wf__transducer_weights *w, wf_error *err) {
  const struct wf__network *n = w->model->network;
  const uint64_t rows = n->embedding.rows, some = rows < TOKENS_AT_ONCE ? rows : TOKENS_AT_ONCE,
                 bytes =
                     (uint64_t)w->model->context_size * rows * n->predictor.stride * sizeof(float);
  const uint32_t stride = wf__slice_stride(n->embedding.cols);
  static const char what[] = "the transducer's predictor";
  wf__device_buffer room = {0};
  WF__TRY(wf__device_reserve(&w->places, bytes, what, err));
  WF__CUDA_TRY(cudaMemsetAsync(w->places.data, 0, bytes, NULL), what);
  WF__TRY(wf__device_reserve(
      &room, wf__sliced_bytes(n->conv.rows, stride) + wf__sliced_bytes(some, stride), what, err));
  const struct place_work work = {
      wf__sliced_in(room.data, n->conv.rows, stride),
      wf__sliced_in((char *)room.data + wf__sliced_bytes(n->conv.rows, stride), some, stride)};
  const int code = make_all_places(w, &work);
  cudaFree(room.data);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, (cudaError_t)code, what);
}

/* --- all contexts of a stateless predictor ------------------------------------------------ */

#ifndef WF__TABLE_CONTEXTS /* a test makes them few */
#define WF__TABLE_CONTEXTS (1 << 24)
#endif
enum { CONTEXTS_AT_ONCE = 16384, SHARE = 16 /* of the free memory, for the table */ };

/* 0: there are too many. */
static uint64_t num_contexts(const wf_transducer *model) {
  uint64_t count = model->context_size > 0 ? 1 : 0;
  for (int32_t i = 0; i < model->context_size && count <= WF__TABLE_CONTEXTS; i++)
    count *= wf__context_base(model);
  return count <= WF__TABLE_CONTEXTS ? count : 0;
}

static int make_rows(const wf__transducer_weights *w, uint64_t first, uint32_t count,
                     int32_t *tokens, wf__sliced outputs) {
  const wf_transducer *model = w->model;
  const struct wf__network *n = model->network;
  const uint32_t context = (uint32_t)model->context_size, width = (uint32_t)model->width;
  int code = wf__transducer_list(first, count, context, (uint32_t)wf__context_base(model),
                                 (uint32_t)n->embedding.rows, tokens, NULL);
  if (code == cudaSuccess)
    code = wf__transducer_predict(
        tokens, wf__rows(count), context, w->places.data, (uint32_t)n->embedding.rows,
        wf__transducer_weight(w, n->conv_bias), (uint32_t)n->predictor.stride, outputs, NULL);
  if (code != cudaSuccess) return code;
  return wf__gpu_slice_product(
      &(wf__slice_product){.w = w->predictor,
                           .num_rows = (uint32_t)n->predictor.rows,
                           .width = width,
                           .x = outputs,
                           .count = wf__rows(count),
                           .bias = wf__transducer_weight(w, n->predictor_bias),
                           .y = (float *)w->table.data + first * width,
                           .y_stride = width},
      NULL);
}

static wf_status make_table(wf__transducer_weights *w, uint64_t count, wf_error *err) {
  static const char what[] = "the transducer's predictor";
  const uint64_t most = count < CONTEXTS_AT_ONCE ? count : CONTEXTS_AT_ONCE,
                 slices = wf__sliced_bytes(most, w->predictor.stride);
  wf__device_buffer room = {0};
  WF__TRY(wf__device_reserve(&w->table, count * w->model->width * sizeof(float), what, err));
  WF__TRY(wf__device_reserve(
      &room, slices + most * (uint64_t)w->model->context_size * sizeof(int32_t), what, err));
  int32_t *tokens = (int32_t *)(void *)((char *)room.data + slices);
  int code = cudaSuccess;
  for (uint64_t first = 0; first < count && code == cudaSuccess; first += most)
    code = make_rows(w, first, (uint32_t)(count - first < most ? count - first : most), tokens,
                     wf__sliced_in(room.data, most, w->predictor.stride));
  if (code == cudaSuccess) code = (int)cudaStreamSynchronize(NULL);
  cudaFree(room.data);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, (cudaError_t)code, what);
}

wf_status wf__transducer_make_table(wf__transducer_weights *w, wf_error *err) {
  const uint64_t count = num_contexts(w->model);
  size_t free_bytes = 0, all_bytes = 0;
  if (count == 0 || w->table.data != NULL) return WF_OK;
  WF__CUDA_TRY(cudaMemGetInfo(&free_bytes, &all_bytes), "the transducer's predictor");
  if (count * w->model->width * sizeof(float) > free_bytes / SHARE) return WF_OK;
  const wf_status status = make_table(w, count, err);
  if (status != WF_OK) { /* half of it */
    cudaFree(w->table.data);
    w->table = (wf__device_buffer){0};
  }
  return status;
}

/* Makes the integers of the joiner's matrices. */
static wf_status make_slices(wf__transducer_weights *w, wf_error *err) {
  const struct wf__network *n = w->model->network;
  const wf__rnn_matrix *const matrices[] = {&n->encoder, &n->predictor, &n->output};
  wf__sliced *const to[] = {&w->encoder, &w->predictor, &w->output};
  static const char what[] = "the transducer";
  uint64_t bytes = 0;
  for (int i = 0; i < 3; i++)
    bytes += wf__sliced_bytes(matrices[i]->rows, wf__slice_stride(matrices[i]->cols));
  WF__TRY(wf__device_reserve(&w->slices, bytes, what, err));
  char *at = w->slices.data;
  for (int i = 0; i < 3; i++) {
    const wf__rnn_matrix *m = matrices[i];
    *to[i] = wf__sliced_in(at, m->rows, wf__slice_stride(m->cols));
    at += wf__sliced_bytes(m->rows, to[i]->stride);
    WF__CUDA_TRY(wf__slice_rows(wf__transducer_weight(w, m->data), (uint32_t)m->cols,
                                (uint32_t)m->stride, wf__rows(m->rows), *to[i], NULL),
                 what);
  }
  WF__CUDA_TRY(cudaStreamSynchronize(NULL), what);
  return WF_OK;
}

static wf_status send_weights(wf__transducer_weights *w, wf_error *err) {
  char name[32];
  const struct wf__network *n = w->model->network;
  static const char what[] = "the transducer";
  WF__CUDA_TRY(cudaSetDevice(w->number), "choosing the GPU");
  WF__TRY(wf__device_reserve(&w->memory, n->num_floats * sizeof(float), what, err));
  WF__TRY(
      wf__device_send(w->memory.data, n->memory, n->num_floats * sizeof(float), NULL, what, err));
  WF__TRY(make_slices(w, err));
  snprintf(name, sizeof name, "cuda:%d", w->number);
  return n->lstm != NULL ? wf_rnnlm_on_device(n->lstm, name, &w->lstm, err) : make_places(w, err);
}

wf_status wf__gpu_transducer_weights_send(const wf_transducer *model, int number,
                                          wf__transducer_weights **out, wf_error *err) {
  wf__gpu_profile profile;
  *out = NULL;
  wf__transducer_weights *w = wf__calloc(1, sizeof *w);
  if (w == NULL) return wf__fail_memory(err, sizeof *w, "a transducer");
  w->model = wf_transducer_ref(model);
  w->number = number;
  const int caller = wf__callers_device();
  wf_status status = wf__gpu_profile_read(w->number, &profile, err);
  if (status == WF_OK) w->shared_bytes = (uint64_t)profile.shared_kb << 10;
  if (status == WF_OK) status = send_weights(w, err);
  wf__restore_device(caller);
  if (status == WF_OK)
    *out = w;
  else
    wf__gpu_transducer_weights_free(w);
  return status;
}

void wf__gpu_transducer_weights_free(wf__transducer_weights *w) {
  if (w == NULL) return;
  if (w->memory.data != NULL) { /* else there may be no such GPU */
    const int caller = wf__callers_device();
    cudaSetDevice(w->number);
    cudaFree(w->memory.data);
    cudaFree(w->places.data);
    cudaFree(w->slices.data);
    cudaFree(w->table.data);
    (void)cudaGetLastError(); /* of cudaFree: all other errors have been reported */
    wf__restore_device(caller);
  }
  wf_rnnlm_free(w->lstm);
  wf_transducer_free(w->model);
  free(w);
}

static wf_status wait_for(int number, void *stream, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(number), "encoder outputs");
  WF__CUDA_TRY(cudaStreamSynchronize(stream), "encoder outputs");
  return WF_OK;
}

wf_status wf__gpu_transducer_scores_where(const wf__transducer_weights *w, const wf_scores *scores,
                                          void *stream, int *number, wf_error *err) {
  struct cudaPointerAttributes attributes = {0};
  *number = -1;
  if (!scores->on_device || scores->num_frames == 0) return WF_OK;
  WF__CUDA_TRY(cudaPointerGetAttributes(&attributes, scores->data), "encoder outputs");
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged)
    return wf__fail(err, WF_ERR_ARGUMENT, "the encoder outputs are not in a GPU's memory");
  *number = attributes.type == cudaMemoryTypeDevice ? attributes.device : w->number;
  if (*number == w->number) return WF_OK;
  const int caller = wf__callers_device();
  const wf_status status = wait_for(*number, stream, err);
  wf__restore_device(caller);
  return status;
}
