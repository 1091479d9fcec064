/* rnn_weights.h - the arrays of a recurrent model in a GPU's memory (lm/rnn_device.h). */
#ifndef WF_CUDA_RNN_RNN_WEIGHTS_H
#define WF_CUDA_RNN_RNN_WEIGHTS_H

#include "cuda/device/device_memory.h"
#include "cuda/rnn/slice_kernels.h"
#include "lm/rnn_device.h"

struct wf__rnn_weights {
  int number; /* of the GPU */
  wf__device_buffer dense, cells, path_off, path;
  wf__device_buffer inputs; /* as in wf__rnn_rows */
  wf__device_buffer slices; /* of a model with exact products: integers of the layers' matrices */
  wf__sliced sliced[2 * WF__RNN_MAX_LAYERS];
};

/* rnn_slices.c: of a model with exact products (wf_rnnlm.slices). */

/* Makes the integers of the layers' matrices, if the model has exact products. */
wf_status wf__rnn_slices_make(const wf_rnnlm *lm, wf__rnn_weights *w, wf_error *err);
/* Makes `inputs`, rows of `gates` floats with the bias, for which there is room. */
wf_status wf__rnn_exact_inputs(const wf_rnnlm *lm, wf__rnn_weights *w, uint32_t gates,
                               wf_error *err);
/* The integers of matrix `which` of layer l, WF__TORCH_IH or WF__TORCH_HH. */
static inline const wf__sliced *wf__rnn_sliced(const wf__rnn_weights *w, size_t l, int which) {
  return &w->sliced[2 * l + (which == WF__TORCH_HH)];
}

#endif
