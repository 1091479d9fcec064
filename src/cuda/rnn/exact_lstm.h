/* exact_lstm.h - the LSTM of a transducer's predictor on a GPU, with exact products (math/slices.h):
 * a layer's hidden vectors are kept as integers, from which the next products are made. */
#ifndef WF_CUDA_RNN_EXACT_LSTM_H
#define WF_CUDA_RNN_EXACT_LSTM_H

#include "cuda/device/device_memory.h"
#include "cuda/rnn/rnn_kernels.h"
#include "lm/rnnlm.h"

typedef struct wf__exact_lstm {
  wf__device_buffer inputs; /* integers of input rows, if their products are not kept */
  wf__device_buffer digits, scales;
  wf__sliced hidden; /* in these; of slot s in row s * num_layers + layer */
} wf__exact_lstm;

/* Makes room for slots 0 .. num_slots, whose hidden vectors are 0, and for `num_rows` input rows. Does
 * nothing for a model without exact products. */
wf_status wf__exact_lstm_make(wf__exact_lstm *lstm, const wf_rnnlm *lm, uint64_t num_slots,
                              uint64_t num_rows, cudaStream_t stream, wf_error *err);
/* Adds slots; hidden vectors are kept. */
wf_status wf__exact_lstm_grow(wf__exact_lstm *lstm, const wf_rnnlm *lm, uint64_t num_slots,
                              cudaStream_t stream, wf_error *err);
void wf__exact_lstm_free(wf__exact_lstm *lstm);
/* Computes layer l of moves. Returns a cudaError_t. */
int wf__exact_lstm_layer(const wf__exact_lstm *lstm, const wf_rnnlm *lm, const wf__rnn_rows *rows,
                         size_t l, cudaStream_t stream);

#endif
