/* rnnlm.h - internals of the recurrent language model.
 *
 *   rnnlm_read.c, rnnlm_import.c, rnnlm_train.c --> wf_rnnlm
 *     --> rnnlm_hidden.c  (state, word) -> next hidden state
 *     --> rnnlm_output.c  (state, word) -> cost
 *     --> rnnlm_score.c   sentences, public calls
 *
 *   embedding [V][E]      row w is the input for word w (rows are padded: rnnlm_math.h)
 *   layers                their matrices and vectors, indexed by the enums below
 *   output [rows][H]      NCE and softmax: a row per word; hierarchical softmax: arity - 1 rows per
 *                         node
 *   cells [num_cells]     MaxEnt weights: float32, unaligned, often in a mapped file
 *   path_off, path        Huffman tree: the path from the root to word w is [path_off[w],
 *                         path_off[w + 1]) of `path`, an entry is node * arity + branch
 *
 * A hidden state has padded(H) floats per layer (LSTM: 2 padded(H), hidden then cell). Before <s>
 * it is all zeros. */
#ifndef WF_LM_RNNLM_H
#define WF_LM_RNNLM_H

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/input.h"
#include "base/memory.h"
#include "lm/rnn_types.h"
#include "lm/rnnlm_math.h"
#include "lm/safetensors.h"
#include "math/slice_product.h"

enum {
  WF__RNN_MAX_LAYERS = 64,
  WF__RNN_MAX_PATH = 1024,
  WF__RNN_MAX_WORD_BYTES = 99,
  WF__RNN_SOFTMAX_BLOCK = 256
};

typedef struct wf__rnn_matrix { /* data NULL: absent */
  float *data;
  size_t rows, cols, stride;
  const wf__slice_matrix *slices; /* for exact products; NULL: products are those of rnnlm_math.h */
} wf__rnn_matrix;

/* Indices of the matrices. */
enum { WF__RNN_W = 0, WF__RNN_I = 1 }; /* simple: recurrent, input */
enum {
  WF__GRU_RI = 0,
  WF__GRU_RW = 1,
  WF__GRU_UI = 2,
  WF__GRU_UW = 3,
  WF__GRU_QI = 4,
  WF__GRU_QW = 5
}; /* the toolkit's GRU */
enum { WF__SCRN_B = 0, WF__SCRN_P = 1, WF__SCRN_A = 2, WF__SCRN_R = 3 };
enum { WF__TORCH_IH = 0, WF__TORCH_HH = 1 }; /* the gates' rows one after another */
enum { WF__GRU_RESET_BIAS = 0, WF__GRU_UPDATE_BIAS = 1 };
enum { WF__RNN_MAX_MATRICES = 6, WF__RNN_MAX_VECTORS = 2 };

typedef struct wf__rnn_layer {
  wf__rnn_matrix matrix[WF__RNN_MAX_MATRICES];
  float
      *vector[WF__RNN_MAX_VECTORS]; /* gru: reset and update bias; scrn: decay; torch: b_ih, b_hh */
} wf__rnn_layer;

struct wf_rnnlm {
  atomic_int refs;
  wf_symbols *words;
  int64_t *counts; /* [V], or NULL */
  size_t num_words, hidden, embed, num_layers;
  wf__rnn_kind kind;
  char layer_type[64];
  bool gru_input, gru_bias; /* gru: input matrices, biases in use */
  bool scrn_fast;
  size_t scrn_context;
  wf_rnnlm_output output_kind;
  int32_t arity;
  bool reverse;
  float nce_lnz;
  int32_t bos, eos, unk;
  wf__rnn_matrix embedding, output;
  float *output_bias; /* [V], or NULL */
  wf__rnn_layer layers[WF__RNN_MAX_LAYERS];
  int32_t maxent_order;
  uint64_t num_cells;
  const uint8_t *cells;
  uint64_t *path_off; /* [V + 1] */
  uint32_t *path;
  int32_t max_path;
  wf__slice_matrix *slices; /* [num_layers][2] of a predictor's LSTM; NULL: none */
  float *start;             /* hidden state after <s> */
  float *dense;             /* holds every matrix and vector */
  size_t dense_size, dense_used;
  float *own_cells; /* memory of `cells`, unless they are mapped from the file */
  wf__input file;
  wf_rnnlm *base; /* owner of the arrays, if this is a copy of the model for a GPU; else NULL */
  struct wf__rnn_weights *on_device; /* rnn_device.h; NULL: on the CPU */
};

static inline size_t wf__rnn_layer_floats(const wf_rnnlm *lm) {
  return wf__padded(lm->hidden) * (lm->kind == WF__RNN_TORCH_LSTM ? 2 : 1);
}
static inline size_t wf__rnn_state_floats(const wf_rnnlm *lm) {
  return wf__rnn_layer_floats(lm) * lm->num_layers;
}
/* The part of a state that the output sees: the last layer's hidden vector. */
static inline const float *wf__rnn_top(const wf_rnnlm *lm, const float *state) {
  return state + wf__rnn_layer_floats(lm) * (lm->num_layers - 1);
}
/* Number of words before the predicted one that a cost depends on directly, not through the hidden
 * state. */
static inline int wf__rnn_history(const wf_rnnlm *lm) {
  return lm->maxent_order > 1 ? lm->maxent_order - 1 : 0;
}
static inline float wf__rnn_cell(const wf_rnnlm *lm, uint64_t i) {
  float value;
  memcpy(&value, lm->cells + i * sizeof value, sizeof value);
  return value;
}

/* --- construction (rnnlm_build.c) -------------------------------------------------------- */

/* Sets the layer type of a toolkit model: its kind and flags. */
wf_status wf__rnn_set_type(wf_rnnlm *lm, const char *layer_type, wf_error *err);
/* Sets the shapes of all matrices of a toolkit model, with data NULL. */
void wf__rnn_shape_layers(wf_rnnlm *lm);
/* Toolkit models: number of floats before the cells in the file. */
uint64_t wf__rnn_file_floats(const wf_rnnlm *lm);
/* Visits the matrices and vectors in the order of the file. `used`: scoring needs this one. */
typedef wf_status (*wf__rnn_visit_fn)(void *user, float **data, size_t rows, size_t cols, bool used,
                                      wf_error *err);
wf_status wf__rnn_visit(wf_rnnlm *lm, wf__rnn_visit_fn visit, void *user, wf_error *err);
/* Takes zeroed space for [rows][padded(cols)] floats from `dense`, which must be large enough. */
float *wf__rnn_take(wf_rnnlm *lm, size_t rows, size_t cols);
/* Allocates `dense` for the arrays that wf__rnn_visit marks as used. */
wf_status wf__rnn_alloc_dense(wf_rnnlm *lm, wf_error *err);
/* Allocates `dense` with `floats` zeroed elements. */
wf_status wf__rnn_alloc_floats(wf_rnnlm *lm, uint64_t floats, wf_error *err);
/* Builds the Huffman tree of `counts`. */
wf_status wf__rnn_build_tree(wf_rnnlm *lm, const char *path, wf_error *err);
/* Last step: computes the state after <s>. */
wf_status wf__rnn_finish(wf_rnnlm *lm, wf_error *err);
/* Reads a toolkit model from its two open files. Takes ownership of `net`, also on failure. */
wf_status wf__rnnlm_read_inputs(const wf__input *vocab, wf__input *net, wf_rnnlm **out,
                                wf_error *err);
/* Reads a safetensors model from its file and its words. */
wf_status wf__rnnlm_read_safetensors(const wf__input *file, const wf_symbols *words, wf_rnnlm **out,
                                     wf_error *err);

/* Reads the embedding and the LSTM of a transducer's predictor: a model without words and output,
 * whose `start` is the state after one step on token `start`. Marks its tensors as used. */
wf_status wf__rnn_read_predictor(const wf__input *file, wf__tensors *tensors, int32_t start,
                                 wf_rnnlm **out, wf_error *err);

/* --- inference --------------------------------------------------------------------------- */

/* Scratch memory of one thread, for up to max_batch states at a time. */
typedef struct wf__rnn_work {
  size_t max_batch;
  float *input, *previous, *gates, *gates2, *scaled; /* [max_batch][...] of rnnlm_hidden.c */
  size_t gates_floats;
  int32_t *slices; /* scratch of exact products; NULL: the model has none */
  float *scores;   /* softmax: [max_batch][rows of a block] */
} wf__rnn_work;
wf_status wf__rnn_work_init(const wf_rnnlm *lm, size_t max_batch, wf__rnn_work *work,
                            wf_error *err);
void wf__rnn_work_free(wf__rnn_work *work);

/* to[i] = state after words[i] from from[i], i < count <= max_batch. to[i] may be from[i]. */
void wf__rnn_advance(const wf_rnnlm *lm, size_t count, const float *const *from,
                     const int32_t *words, float *const *to, wf__rnn_work *work);

/* A query for -ln p(word | state). `previous` are the words before it, latest first. */
typedef struct wf__rnn_query {
  const float *state;
  const int32_t *previous; /* [num_previous], at most wf__rnn_history */
  int32_t num_previous;
  int32_t word;
  float log_norm; /* softmax: of the state */
} wf__rnn_query;
/* Softmax only: ln of the sum of exp(score) over all words, count <= max_batch. */
void wf__rnn_log_norms(const wf_rnnlm *lm, size_t count, const float *const *states, float *out,
                       wf__rnn_work *work);
void wf__rnn_costs(const wf_rnnlm *lm, size_t count, const wf__rnn_query *queries, float *costs);
/* Computes hash[o], the first cell of the MaxEnt feature of order o + 1 of a prediction. Returns
 * the number of orders. */
int wf__rnn_hashes(const wf_rnnlm *lm, const int32_t *previous, int num_previous, uint64_t *hash);
/* Returns the parameters of the hashes: hash[o] = (*first + sum of factors[o * order + i] *
 * (previous[i] + 1), i < o) modulo *modulus. `factors` has order * order elements. */
void wf__rnn_hash_factors(const wf_rnnlm *lm, uint64_t *factors, uint64_t *first,
                          uint64_t *modulus);

#endif
