/* rnn_types.h - types shared by the host code and the GPU kernels of a recurrent model: layer
 * types, moves, requests. */
#ifndef WF_LM_RNN_TYPES_H
#define WF_LM_RNN_TYPES_H

#include <stdint.h>

typedef enum wf__rnn_kind {
  WF__RNN_SIGMOID,
  WF__RNN_TANH,
  WF__RNN_RELU,
  WF__RNN_RELU_TRUNC,
  WF__RNN_GRU,
  WF__RNN_SCRN,
  WF__RNN_TORCH_GRU,
  WF__RNN_TORCH_LSTM,
} wf__rnn_kind;

/* How many rows a kernel computes. A launch in a CUDA graph finds their number in GPU memory, and
 * is large enough for the most that there may be. */
typedef struct wf__row_count {
  uint32_t most;
  uint32_t first;      /* with `num`: rows before this one are others' */
  const uint32_t *num; /* there: the number of all rows; NULL: it is `most` */
} wf__row_count;
static inline wf__row_count wf__rows(uint64_t count) {
  const wf__row_count rows = {(uint32_t)count, 0, 0};
  return rows;
}

/* Slot `to` becomes the state after `word` from the state in slot `from`. */
typedef struct wf__rnn_move {
  uint32_t from, to;
  int32_t word;
  uint32_t zero;
} wf__rnn_move;

/* Request of -ln p(word | slot); ignored for a word below 0. The MaxEnt features are
 * hashes[first_hash .. first_hash + orders), from wf__rnn_hashes. */
typedef struct wf__rnn_request {
  uint32_t slot;
  int32_t word;
  uint32_t first_hash, orders;
} wf__rnn_request;

/* The ids of a graph's word in the models of a recurrent scorer. */
typedef struct wf__rnn_labels {
  int32_t rnn, ngram, small; /* rnn -1: the model lacks it */
} wf__rnn_labels;

#endif
