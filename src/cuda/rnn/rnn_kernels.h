/* rnn_kernels.h - the parameters of the kernels of recurrent language models. Plain C.
 *
 * Matrices and vectors are as on the CPU (lm/rnnlm.h): rows padded with zeros to a multiple of 8
 * floats. A layer takes rows, one for each move: input and previous state are gathered, products
 * go to `gates`, `gates2` and `scaled`, and the last kernel of the layer writes the new states. */
#ifndef WF_CUDA_RNN_RNN_KERNELS_H
#define WF_CUDA_RNN_RNN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/rnn/slice_kernels.h"
#include "lm/rnn_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A layer at work on some rows. */
typedef struct wf__rnn_rows {
  const wf__rnn_move *moves;
  wf__row_count count;
  uint32_t hidden, stride; /* floats of a hidden vector, and padded */
  uint32_t input_stride, gates_stride;
  float *states; /* [slots][state_floats] */
  uint64_t state_floats, layer,
      layer_floats;       /* `layer`: where the layer's part of a state begins */
  const float *embedding; /* of the first layer; NULL: input is the layer before */
  const float *inputs;    /* [words][gates_stride] of PyTorch's first layer: the input's products of
                             all words; NULL: they are in `gates` */
  float *input, *previous, *scaled, *gates,
      *gates2; /* [count][input_stride, stride, stride, gates_stride, gates_stride] */
} wf__rnn_rows;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* y[b][i] = w[i] . x[b], i < num_rows, b < count; strides of w and x in floats, multiples of 8:
 * that of w is also the length of the sums. Each sum adds its products in
 * order, from the first to the last. */
int wf__rnn_product(const float *w, uint32_t num_rows, uint32_t w_stride, const float *x,
                    uint32_t x_stride, wf__row_count count, float *y, uint32_t y_stride,
                    void *stream);

int wf__rnn_gather(const wf__rnn_rows *rows, void *stream);
/* The last step of simple layers: adds `in` [count][stride] to `gates`. */
int wf__rnn_simple(const wf__rnn_rows *rows, const float *in, int kind, void *stream);
/* The GRU of faster-rnnlm; bias may be NULL. First gates = sigmoid(gates + in + bias) * previous
 * state; then gates2 = tanh(gates2 + in); then, with newly computed gates, the state. */
int wf__rnn_gru_reset(const wf__rnn_rows *rows, const float *in, const float *bias, void *stream);
int wf__rnn_gru_fresh(const wf__rnn_rows *rows, const float *in, void *stream);
int wf__rnn_gru_update(const wf__rnn_rows *rows, const float *in, const float *bias, void *stream);
/* PyTorch's layers: `gates` are of the input, `gates2` of the previous state. */
int wf__rnn_torch_gru(const wf__rnn_rows *rows, const float *bias_ih, const float *bias_hh,
                      void *stream);
int wf__rnn_torch_lstm(const wf__rnn_rows *rows, const float *bias_ih, const float *bias_hh,
                       void *stream);
/* The same with exact functions, of gates that have their bias. The new hidden vectors become
 * integers, of slot s in row s * times + plus; a state has the cell alone. */
int wf__rnn_exact_lstm(const wf__rnn_rows *rows, wf__sliced hidden, uint32_t times, uint32_t plus,
                       void *stream);

/* SCRN: matrix B is NULL where the input goes in directly. */
typedef struct wf__rnn_scrn {
  const float *b, *p, *a, *r, *decay;
  uint32_t b_stride, p_stride, a_stride, r_stride, context;
} wf__rnn_scrn;
int wf__rnn_scrn_layer(const wf__rnn_rows *rows, const wf__rnn_scrn *scrn, void *stream);

/* Where costs come from. */
typedef struct wf__rnn_output {
  const float
      *states; /* [slots][state_floats]; the output sees `top` floats from the beginning of each */
  uint64_t state_floats, top;
  const float *rows, *bias, *cells; /* bias NULL: none */
  const uint64_t *path_off;
  const uint32_t *path;
  const float *norms; /* [slots] softmax */
  uint32_t stride;
  int32_t kind, arity; /* wf_rnnlm_output */
  float nce_lnz;
} wf__rnn_output;

int wf__rnn_output_costs(const wf__rnn_output *output, const wf__rnn_request *requests,
                         uint32_t count, const uint64_t *hashes, float *costs, void *stream);

/* Norms: the states of some slots as rows of `stride` floats; then blocks of scores [count][num]
 * added to high, sum [count]; then norms of the slots. */
int wf__rnn_gather_tops(const wf__rnn_output *output, const uint32_t *slots, wf__row_count count,
                        float *to, void *stream);
int wf__rnn_add_scores(const float *scores, uint32_t count, uint32_t num, uint32_t stride,
                       const float *bias, int is_first, float *high, double *sum, void *stream);
int wf__rnn_end_norms(const uint32_t *slots, uint32_t count, const float *high, const double *sum,
                      float *norms, void *stream);

#ifdef __cplusplus
}
#endif
#endif
