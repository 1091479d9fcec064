/* rnn_slices.c - exact products of a recurrent model on a GPU: the integers of its matrices
 * (rnn_weights.h). */
#include "cuda/device/cuda_call.h"
#include "cuda/rnn/rnn_weights.h"

wf_status wf__rnn_slices_make(const wf_rnnlm *lm, wf__rnn_weights *w, wf_error *err) {
  static const char what[] = "an LSTM";
  const float *dense = w->dense.data;
  uint64_t bytes = 0;
  if (lm->slices == NULL) return WF_OK;
  for (size_t i = 0; i < 2 * lm->num_layers; i++)
    bytes += wf__sliced_bytes(lm->slices[i].rows, wf__slice_stride(lm->slices[i].cols));
  WF__TRY(wf__device_reserve(&w->slices, bytes, what, err));
  char *at = w->slices.data;
  for (size_t i = 0; i < 2 * lm->num_layers; i++) {
    const wf__rnn_matrix *m = &lm->layers[i / 2].matrix[i % 2 == 0 ? WF__TORCH_IH : WF__TORCH_HH];
    w->sliced[i] = wf__sliced_in(at, m->rows, wf__slice_stride(m->cols));
    at += wf__sliced_bytes(m->rows, w->sliced[i].stride);
    WF__CUDA_TRY(wf__slice_rows(dense + (m->data - lm->dense), (uint32_t)m->cols,
                                (uint32_t)m->stride, wf__rows(m->rows), w->sliced[i], NULL),
                 what);
  }
  WF__CUDA_TRY(cudaStreamSynchronize(NULL), what);
  return WF_OK;
}

wf_status wf__rnn_exact_inputs(const wf_rnnlm *lm, wf__rnn_weights *w, uint32_t gates,
                               wf_error *err) {
  static const char what[] = "an LSTM";
  const wf__sliced *matrix = wf__rnn_sliced(w, 0, WF__TORCH_IH);
  const wf__rnn_matrix *words = &lm->embedding;
  const float *dense = w->dense.data;
  wf__device_buffer room = {0};
  WF__TRY(wf__device_reserve(&room, wf__sliced_bytes(words->rows, matrix->stride), what, err));
  const wf__sliced sliced = wf__sliced_in(room.data, words->rows, matrix->stride);
  int code = wf__slice_rows(dense + (words->data - lm->dense), (uint32_t)words->cols,
                            (uint32_t)words->stride, wf__rows(words->rows), sliced, NULL);
  if (code == cudaSuccess)
    code = wf__gpu_slice_product(
        &(wf__slice_product){.w = *matrix,
                             .num_rows = (uint32_t)lm->layers[0].matrix[WF__TORCH_IH].rows,
                             .x = sliced,
                             .count = wf__rows(words->rows),
                             .bias = dense + (lm->layers[0].vector[0] - lm->dense),
                             .y = w->inputs.data,
                             .y_stride = gates},
        NULL);
  if (code == cudaSuccess) code = (int)cudaStreamSynchronize(NULL);
  cudaFree(room.data);
  return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, (cudaError_t)code, what);
}
