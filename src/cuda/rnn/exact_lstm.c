/* exact_lstm.c - see exact_lstm.h. */
#include "cuda/rnn/exact_lstm.h"

#include "cuda/device/cuda_call.h"
#include "cuda/rnn/rnn_weights.h"

static const char what[] = "hidden states";

static uint64_t rows_of(const wf_rnnlm *lm, uint64_t num_slots) {
  return (num_slots + 1) * lm->num_layers;
}

wf_status wf__exact_lstm_make(wf__exact_lstm *x, const wf_rnnlm *lm, uint64_t num_slots,
                              uint64_t num_rows, cudaStream_t stream, wf_error *err) {
  if (lm->slices == NULL) return WF_OK;
  x->hidden.stride = wf__slice_stride(wf__padded(lm->hidden));
  const uint64_t digits = wf__sliced_digit_bytes(rows_of(lm, num_slots), x->hidden.stride);
  WF__TRY(wf__device_reserve(&x->digits, digits, what, err));
  WF__TRY(wf__device_reserve(&x->scales, rows_of(lm, num_slots) * sizeof(float), what, err));
  WF__CUDA_TRY(cudaMemsetAsync(x->digits.data, 0, x->digits.bytes, stream), what);
  WF__CUDA_TRY(cudaMemsetAsync(x->scales.data, 0, x->scales.bytes, stream), what);
  x->hidden.digits = x->digits.data;
  x->hidden.scales = x->scales.data;
  return lm->on_device->inputs.data != NULL
             ? WF_OK
             : wf__device_reserve(&x->inputs,
                                  wf__sliced_bytes(num_rows, wf__slice_stride(lm->embedding.cols)),
                                  what, err);
}

wf_status wf__exact_lstm_grow(wf__exact_lstm *x, const wf_rnnlm *lm, uint64_t num_slots,
                              cudaStream_t stream, wf_error *err) {
  if (lm->slices == NULL) return WF_OK;
  const uint64_t digits = wf__sliced_digit_bytes(rows_of(lm, num_slots), x->hidden.stride);
  WF__TRY(wf__device_grow(&x->digits, digits, stream, what, err));
  x->hidden.digits = x->digits.data;
  WF__TRY(wf__device_grow(&x->scales, rows_of(lm, num_slots) * sizeof(float), stream, what, err));
  x->hidden.scales = x->scales.data;
  return WF_OK;
}

void wf__exact_lstm_free(wf__exact_lstm *x) {
  cudaFree(x->inputs.data);
  cudaFree(x->digits.data);
  cudaFree(x->scales.data);
}

/* y = matrix `which` of layer l times rows x + its bias. */
static int multiply(const wf_rnnlm *lm, const wf__rnn_rows *rows, size_t l, int which, wf__sliced x,
                    wf__row_choice from, float *y, cudaStream_t stream) {
  const wf__rnn_layer *layer = &lm->layers[l];
  const float *bias = layer->vector[which == WF__TORCH_HH], *dense = lm->on_device->dense.data;
  return wf__gpu_slice_product(&(wf__slice_product){.w = *wf__rnn_sliced(lm->on_device, l, which),
                                                    .num_rows = (uint32_t)layer->matrix[which].rows,
                                                    .x = x,
                                                    .from = from,
                                                    .count = rows->count,
                                                    .bias = dense + (bias - lm->dense),
                                                    .y = y,
                                                    .y_stride = rows->gates_stride},
                               stream);
}

/* The hidden vectors of layer l that moves begin or end with. */
static wf__row_choice hidden_of(const wf_rnnlm *lm, const uint32_t *of, size_t l) {
  return (wf__row_choice){of, sizeof(wf__rnn_move) / sizeof *of, (uint32_t)lm->num_layers,
                          (uint32_t)l};
}

/* The first layer's products of the input, if they are not kept. */
static int multiply_inputs(const wf__exact_lstm *x, const wf_rnnlm *lm, const wf__rnn_rows *rows,
                           cudaStream_t stream) {
  const wf__sliced sliced =
      wf__sliced_in(x->inputs.data, rows->count.most, wf__slice_stride(lm->embedding.cols));
  int code = wf__rnn_gather(rows, stream);
  if (code == cudaSuccess)
    code = wf__slice_rows(rows->input, (uint32_t)lm->embedding.cols, rows->input_stride,
                          rows->count, sliced, stream);
  return code == cudaSuccess ? multiply(lm, rows, 0, WF__TORCH_IH, sliced, wf__choose_rows(NULL),
                                        rows->gates, stream)
                             : code;
}

int wf__exact_lstm_layer(const wf__exact_lstm *x, const wf_rnnlm *lm, const wf__rnn_rows *rows,
                         size_t l, cudaStream_t stream) {
  int code = cudaSuccess;
  if (l == 0 && rows->inputs == NULL) code = multiply_inputs(x, lm, rows, stream);
  if (l > 0)
    code = multiply(lm, rows, l, WF__TORCH_IH, x->hidden, hidden_of(lm, &rows->moves->to, l - 1),
                    rows->gates, stream);
  if (code == cudaSuccess)
    code = multiply(lm, rows, l, WF__TORCH_HH, x->hidden, hidden_of(lm, &rows->moves->from, l),
                    rows->gates2, stream);
  return code == cudaSuccess
             ? wf__rnn_exact_lstm(rows, x->hidden, (uint32_t)lm->num_layers, (uint32_t)l, stream)
             : code;
}
