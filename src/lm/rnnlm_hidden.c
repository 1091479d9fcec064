/* rnnlm_hidden.c - the recurrent layers: compute the next states from states and words, in batches.
 *
 *   embedding row --> layer 0 --> layer 1 ...
 *   each layer: (input, its previous state) -> its next state
 *
 * The inputs and previous states of a layer are gathered into rows, so that each weight matrix is
 * read once for the whole batch. */
#include <stdlib.h>

#include "lm/rnnlm.h"

wf_status wf__rnn_work_init(const wf_rnnlm *lm, size_t max_batch, wf__rnn_work *work,
                            wf_error *err) {
  size_t hidden = wf__padded(lm->hidden),
         widest = wf__padded(lm->embed > lm->hidden ? lm->embed : lm->hidden);
  *work = (wf__rnn_work){.max_batch = max_batch};
  work->gates_floats = hidden * (lm->kind == WF__RNN_TORCH_LSTM  ? 4
                                 : lm->kind == WF__RNN_TORCH_GRU ? 3
                                                                 : 1);
  size_t scores = lm->output_kind == WF_RNNLM_SOFTMAX ? WF__RNN_SOFTMAX_BLOCK : 0;
  uint64_t floats = (widest + 2 * hidden + 2 * work->gates_floats + scores) * (uint64_t)max_batch;
  size_t slices = lm->slices != NULL ? wf__slice_scratch(widest) : 0;
  float *at = work->input = wf__calloc(floats, sizeof *at);
  if (slices > 0) work->slices = wf__alloc(slices, sizeof *work->slices);
  if (at == NULL || (slices > 0 && work->slices == NULL)) {
    wf__rnn_work_free(work); /* so that it counts as not made */
    return wf__fail_memory(err, floats * sizeof *at, "hidden states");
  }
  work->previous = at += widest * max_batch;
  work->scaled = at += hidden * max_batch;
  work->gates = at += hidden * max_batch;
  work->gates2 = at += work->gates_floats * max_batch;
  work->scores = at + work->gates_floats * max_batch;
  return WF_OK;
}

void wf__rnn_work_free(wf__rnn_work *work) {
  free(work->input);
  free(work->slices);
  *work = (wf__rnn_work){0};
}

/* The computation of one layer: rows of `stride` floats. */
struct step {
  const wf_rnnlm *lm;
  const wf__rnn_layer *layer;
  wf__rnn_work *work;
  size_t count, input_stride, stride;
  size_t layer_idx;
  float *const *to; /* the layer's part of the i-th next state starts at to[i] + offset */
  size_t offset;
};

static void product(const wf__rnn_matrix *m, const float *x, size_t x_stride, size_t count,
                    float *y, size_t y_stride) {
  wf__rows_dot(m->data, m->rows, m->stride, x, x_stride, count, y, y_stride);
}

/* Of PyTorch's layers, which may have exact products. */
static void torch_product(const wf__rnn_matrix *m, const float *x, size_t x_stride,
                          const wf__rnn_work *work, size_t count, float *y) {
  if (m->slices != NULL)
    wf__slice_multiply(m->slices, x, x_stride, count, y, work->gates_floats, work->slices);
  else
    product(m, x, x_stride, count, y, work->gates_floats);
}

static void add(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += x[i];
}

/* Stores values[0, hidden) as the new hidden vector of state i. Sets the padding to zero. */
static void store(const struct step *s, size_t i, const float *values) {
  float *to = s->to[i] + s->offset;
  memcpy(to, values, s->lm->hidden * sizeof *to);
  for (size_t k = s->lm->hidden; k < s->stride; k++) to[k] = 0;
}

static void activate(wf__rnn_kind kind, float *x, size_t n) {
  if (kind == WF__RNN_SIGMOID) wf__vec_sigmoid(x, n);
  if (kind == WF__RNN_TANH) wf__vec_tanh(x, n);
  if (kind == WF__RNN_RELU || kind == WF__RNN_RELU_TRUNC)
    for (size_t i = 0; i < n; i++) {
      x[i] = x[i] > 0 ? x[i] : 0;
      if (kind == WF__RNN_RELU_TRUNC && x[i] > 20) x[i] = 20;
    }
}

static void simple_layer(const struct step *s) {
  wf__rnn_work *w = s->work;
  product(&s->layer->matrix[WF__RNN_W], w->previous, s->stride, s->count, w->gates, s->stride);
  const float *input = w->input;
  if (s->layer_idx > 0) {
    product(&s->layer->matrix[WF__RNN_I], w->input, s->input_stride, s->count, w->scaled,
            s->stride);
    input = w->scaled;
  }
  for (size_t i = 0; i < s->count; i++) {
    float *gate = w->gates + i * s->stride;
    add(gate, input + i * s->stride, s->stride);
    activate(s->lm->kind, gate, s->stride);
    store(s, i, gate);
  }
}

/* Adds to each gate the input, multiplied by matrix `which` if the variant has input matrices, and
 * the bias if it is not NULL. */
static void add_input(const struct step *s, int which, const float *bias, float *gate) {
  wf__rnn_work *w = s->work;
  const float *input = w->input;
  if (s->lm->gru_input) {
    product(&s->layer->matrix[which], w->input, s->input_stride, s->count, w->scaled, s->stride);
    input = w->scaled;
  }
  for (size_t i = 0; i < s->count; i++) {
    add(gate + i * s->stride, input + i * s->stride, s->stride);
    if (bias != NULL) add(gate + i * s->stride, bias, s->stride);
  }
}

/* r, u = sigmoid(inputs + recurrent of h); c = tanh(input + recurrent of r h); h += u (c - h). */
static void gru_layer(const struct step *s) {
  wf__rnn_work *w = s->work;
  const wf__rnn_matrix *m = s->layer->matrix;
  size_t all = s->count * s->stride;
  product(&m[WF__GRU_RW], w->previous, s->stride, s->count, w->gates, s->stride);
  add_input(s, WF__GRU_RI, s->layer->vector[WF__GRU_RESET_BIAS], w->gates);
  wf__vec_sigmoid(w->gates, all);
  for (size_t k = 0; k < all; k++) w->gates[k] *= w->previous[k];
  product(&m[WF__GRU_QW], w->gates, s->stride, s->count, w->gates2, s->stride);
  add_input(s, WF__GRU_QI, NULL, w->gates2);
  wf__vec_tanh(w->gates2, all);
  product(&m[WF__GRU_UW], w->previous, s->stride, s->count, w->gates, s->stride);
  add_input(s, WF__GRU_UI, s->layer->vector[WF__GRU_UPDATE_BIAS], w->gates);
  wf__vec_sigmoid(w->gates, all);
  for (size_t k = 0; k < all; k++)
    w->gates[k] = (w->gates2[k] - w->previous[k]) * w->gates[k] + w->previous[k];
  for (size_t i = 0; i < s->count; i++) store(s, i, w->gates + i * s->stride);
}

/* The first c values of the state are the slow context, the others the fast hidden units. Processes
 * one state at a time, because these models are rare. */
static void scrn_state(const struct step *s, size_t i) {
  const wf_rnnlm *lm = s->lm;
  const wf__rnn_matrix *m = s->layer->matrix;
  size_t c = lm->scrn_context, fast = lm->hidden - c;
  const float *x = s->work->input + i * s->input_stride,
              *previous = s->work->previous + i * s->stride;
  float *context = s->work->gates + i * s->stride, *units = s->work->gates2 + i * s->stride,
        *sum = s->work->scaled + i * s->stride;
  bool through_matrices = !lm->scrn_fast || s->layer_idx > 0;
  memset(context, 0, s->stride * sizeof *context);
  if (through_matrices)
    product(&m[WF__SCRN_B], x, 0, 1, context, 0);
  else
    memcpy(context, x, c * sizeof *context);
  const float *decay = s->layer->vector[0];
  for (size_t k = 0; k < c; k++) context[k] = (1 - decay[k]) * context[k] + decay[k] * previous[k];
  memset(sum, 0, s->stride * sizeof *sum);
  memcpy(sum, previous + c, fast * sizeof *sum);
  product(&m[WF__SCRN_R], sum, 0, 1, units, 0);
  product(&m[WF__SCRN_P], context, 0, 1, sum, 0);
  add(units, sum, fast);
  if (through_matrices)
    product(&m[WF__SCRN_A], x, 0, 1, sum, 0);
  else
    memcpy(sum, x + c, fast * sizeof *sum);
  add(units, sum, fast);
  wf__vec_sigmoid(units, wf__padded(fast));
  memcpy(context + c, units, fast * sizeof *context);
  store(s, i, context);
}

/* Gates of PyTorch layers: work->gates from the input, work->gates2 from the previous state, each
 * with its bias. Each gate takes padded(H) values. */
static void torch_gates(const struct step *s, int num_gates) {
  wf__rnn_work *w = s->work;
  torch_product(&s->layer->matrix[WF__TORCH_IH], w->input, s->input_stride, w, s->count, w->gates);
  torch_product(&s->layer->matrix[WF__TORCH_HH], w->previous, s->stride, w, s->count, w->gates2);
  for (size_t i = 0; i < s->count; i++) {
    add(w->gates + i * w->gates_floats, s->layer->vector[0], s->stride * (size_t)num_gates);
    add(w->gates2 + i * w->gates_floats, s->layer->vector[1], s->stride * (size_t)num_gates);
  }
}

/* Gates input, forget, cell, output: c = f c + i g, h = o tanh(c). from[i] may be to[i]. */
static void lstm_layer(const struct step *s, const float *const *from) {
  torch_gates(s, 4);
  size_t n = s->stride;
  for (size_t i = 0; i < s->count; i++) {
    float *gate = s->work->gates + i * s->work->gates_floats, *out = s->work->scaled + i * n;
    add(gate, s->work->gates2 + i * s->work->gates_floats, 4 * n);
    wf__vec_sigmoid(gate, 2 * n);
    wf__vec_tanh(gate + 2 * n, n);
    wf__vec_sigmoid(gate + 3 * n, n);
    const float *cell = from[i] + s->offset + n;
    float *to_cell = s->to[i] + s->offset + n;
    for (size_t k = 0; k < n; k++)
      to_cell[k] = out[k] = gate[n + k] * cell[k] + gate[k] * gate[2 * n + k];
    wf__vec_tanh(out, n);
    for (size_t k = 0; k < n; k++) out[k] *= gate[3 * n + k];
    store(s, i, out);
  }
}

/* Gates reset, update, new: n = tanh(x + r h'), h = (1 - u) n + u h. */
static void torch_gru_layer(const struct step *s) {
  torch_gates(s, 3);
  size_t n = s->stride;
  for (size_t i = 0; i < s->count; i++) {
    float *gate = s->work->gates + i * s->work->gates_floats;
    const float *recurrent = s->work->gates2 + i * s->work->gates_floats,
                *previous = s->work->previous + i * n;
    add(gate, recurrent, 2 * n);
    wf__vec_sigmoid(gate, 2 * n);
    float *fresh = gate + 2 * n;
    for (size_t k = 0; k < n; k++) fresh[k] += gate[k] * recurrent[2 * n + k];
    wf__vec_tanh(fresh, n);
    for (size_t k = 0; k < n; k++)
      fresh[k] = (1 - gate[n + k]) * fresh[k] + gate[n + k] * previous[k];
    store(s, i, fresh);
  }
}

void wf__rnn_advance(const wf_rnnlm *lm, size_t count, const float *const *from,
                     const int32_t *words, float *const *to, wf__rnn_work *work) {
  struct step s = {
      .lm = lm, .work = work, .count = count, .stride = wf__padded(lm->hidden), .to = to};
  for (size_t l = 0; l < lm->num_layers; l++) {
    s.layer = &lm->layers[l];
    s.layer_idx = l;
    s.offset = l * wf__rnn_layer_floats(lm);
    s.input_stride = l == 0 ? lm->embedding.stride : s.stride;
    for (size_t i = 0; i < count; i++) {
      const float *input = l == 0 ? lm->embedding.data + (size_t)words[i] * s.input_stride
                                  : to[i] + s.offset - wf__rnn_layer_floats(lm);
      memcpy(work->input + i * s.input_stride, input, s.input_stride * sizeof(float));
      memcpy(work->previous + i * s.stride, from[i] + s.offset, s.stride * sizeof(float));
    }
    if (lm->kind == WF__RNN_GRU)
      gru_layer(&s);
    else if (lm->kind == WF__RNN_TORCH_LSTM)
      lstm_layer(&s, from);
    else if (lm->kind == WF__RNN_TORCH_GRU)
      torch_gru_layer(&s);
    else if (lm->kind == WF__RNN_SCRN)
      for (size_t i = 0; i < count; i++) scrn_state(&s, i);
    else
      simple_layer(&s);
  }
}
