/* transducer_weights.c - the weights of a transducer on a GPU (search/transducer/transducer_device.h). */
#include "cuda/transducer/transducer_weights.h"

#include <stdio.h>

#include "cuda/device/gpu_profile.h"
#include "cuda/rnn/rnn_kernels.h"
#include "cuda/transducer/transducer_kernels.h"

enum { TOKENS_AT_ONCE = 16384 };

/* What some tokens add in one place. `x`: room for their embeddings. */
static int make_some_places(wf__transducer_weights *w, uint32_t place, uint32_t first,
                            uint32_t count, float *x) {
  const struct wf__network *n = w->model->network;
  const uint32_t stride = (uint32_t)n->predictor.stride;
  float *to = (float *)w->places.data + ((uint64_t)place * n->embedding.rows + first) * stride;
  const int code = wf__transducer_embed(
      first, count, place, wf__transducer_weight(w, n->embedding.data), (uint32_t)n->embedding.cols,
      (uint32_t)n->embedding.stride, x, (uint32_t)n->conv.stride, NULL);
  return code == cudaSuccess
             ? wf__rnn_product(wf__transducer_weight(w, n->conv.data), (uint32_t)n->conv.rows,
                               (uint32_t)n->conv.stride, x, (uint32_t)n->conv.stride,
                               wf__rows(count), to, stride, NULL)
             : code;
}

static wf_status make_places(wf__transducer_weights *w, wf_error *err) {
  const struct wf__network *n = w->model->network;
  const uint64_t context = (uint64_t)w->model->context_size, rows = n->embedding.rows,
                 bytes = context * rows * n->predictor.stride * sizeof(float);
  static const char what[] = "the transducer's predictor";
  wf__device_buffer x = {0};
  int code = cudaSuccess;
  WF__TRY(wf__device_reserve(&w->places, bytes, what, err));
  WF__CUDA_TRY(cudaMemsetAsync(w->places.data, 0, bytes, NULL), what);
  WF__TRY(wf__device_reserve(
      &x, (rows < TOKENS_AT_ONCE ? rows : TOKENS_AT_ONCE) * n->conv.stride * sizeof(float), what,
      err));
  for (uint64_t place = 0; place < context; place++)
    for (uint64_t first = 0; first < rows && code == cudaSuccess; first += TOKENS_AT_ONCE)
      code = make_some_places(
          w, (uint32_t)place, (uint32_t)first,
          (uint32_t)(rows - first < TOKENS_AT_ONCE ? rows - first : TOKENS_AT_ONCE), x.data);
  if (code == cudaSuccess) code = cudaStreamSynchronize(NULL);
  cudaFree(x.data);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, (cudaError_t)code, what);
}

static wf_status send_weights(wf__transducer_weights *w, wf_error *err) {
  char name[32];
  const struct wf__network *n = w->model->network;
  static const char what[] = "the transducer";
  WF__CUDA_TRY(cudaSetDevice(w->number), "choosing the GPU");
  WF__TRY(wf__device_reserve(&w->memory, n->num_floats * sizeof(float), what, err));
  WF__TRY(
      wf__device_send(w->memory.data, n->memory, n->num_floats * sizeof(float), NULL, what, err));
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
