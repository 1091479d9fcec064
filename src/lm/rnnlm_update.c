/* rnnlm_update.c - training on one sentence: forward, output, backward through time, update.
 *
 *   forward    hidden[t + 1] = layer(embedding, hidden[t])
 *   output     for each node on the path of the next word: adds its gradient to delta[t], then
 *              updates the node's row and MaxEnt cells at once
 *   backward   delta[t], the gradient of ln p at hidden[t + 1], is propagated from t + 1 to t
 *   update     recurrent matrices: once per segment, by the sum over its positions
 *
 * Gradients are of ln p, which is maximised, so updates are added. */
#include "lm/rnnlm_update.h"

#include <stdlib.h>

wf_status wf__rnn_tape_init(const wf_rnnlm *lm, wf__rnn_tape *tape, wf_error *err) {
  size_t n = wf__padded(lm->hidden), rows = WF__RNN_SEGMENT;
  float **parts[] = {&tape->delta,  &tape->reset,   &tape->update,   &tape->fresh,
                     &tape->scaled, &tape->d_reset, &tape->d_update, &tape->d_fresh};
  size_t num_parts = lm->kind == WF__RNN_GRU ? 8 : 1;
  uint64_t floats = n * ((rows + 1) + rows * num_parts + 3);
  *tape = (wf__rnn_tape){0};
  tape->memory = tape->hidden = wf__calloc(floats, sizeof(float));
  if (tape->memory == NULL) return wf__fail_memory(err, floats * sizeof(float), "training");
  float *at = tape->memory + (rows + 1) * n;
  for (size_t i = 0; i < num_parts; i++, at += rows * n) *parts[i] = at;
  tape->back = at;
  return WF_OK;
}

void wf__rnn_tape_free(wf__rnn_tape *tape) {
  free(tape->memory);
  *tape = (wf__rnn_tape){0};
}

/* --- output ------------------------------------------------------------------------------ */

static float clipped(float x, float bound) { return x > bound ? bound : x < -bound ? -bound : x; }

static void prefetch_cells(const wf_rnnlm *lm, const uint64_t *hash, int orders, int32_t word) {
  for (uint64_t i = lm->path_off[word]; i < lm->path_off[word + 1]; i++)
    for (int o = 0; o < orders; o++)
      __builtin_prefetch(&lm->own_cells[hash[o] + (lm->path[i] >> 1)], 1);
}

/* Updates the nodes on the path of a word. Returns -ln p(word). Adds the gradient of ln p at the
 * hidden vector to delta. */
static double update_path(wf_rnnlm *lm, const wf__rnn_rates *rates, const float *hidden,
                          const uint64_t *hash, int orders, int32_t word, float *delta) {
  double product = 1;
  size_t n = lm->output.stride;
  for (uint64_t i = lm->path_off[word]; i < lm->path_off[word + 1]; i++) {
    uint64_t node = lm->path[i] >> 1;
    float *row = lm->output.data + node * n, score = wf__dot(row, hidden, n);
    for (int o = 0; o < orders; o++) score += lm->own_cells[hash[o] + node];
    score = clipped(score, 50);
    float p = 1 / (1 + expf(-score)); /* of branch 0 */
    bool zero = (lm->path[i] & 1) == 0;
    product *= zero ? (double)p : 1 - (double)p;
    if (product < 1e-280) product = 1e-280; /* the returned cost is only reported */
    float gradient = clipped((zero ? 1 : 0) - p, rates->clip);
    wf__update_row(row, hidden, delta, n, gradient, 1 - rates->weights_l2,
                   rates->weights * gradient);
    for (int o = 0; o < orders; o++) {
      float *cell = &lm->own_cells[hash[o] + node];
      *cell = *cell * (1 - rates->cells_l2) + rates->cells * gradient;
    }
  }
  return -log(product);
}

/* Trains the outputs at positions t in [begin, begin + count): words[t + 1] is predicted from row
 * t + 1 - begin of tape->hidden. */
static double update_outputs(wf_rnnlm *lm, const wf__rnn_rates *rates, wf__rnn_tape *tape,
                             const int32_t *words, size_t begin, size_t count) {
  size_t n = lm->output.stride;
  double cost = 0;
  uint64_t hash[2][WF_RNNLM_MAX_ORDER];
  int orders[2] = {0, 0};
  memset(tape->delta, 0, count * n * sizeof(float));
  for (size_t i = 0; i <= count; i++) { /* prefetches position i, then updates position i - 1 */
    size_t t = begin + i;
    if (i < count) {
      int32_t previous[WF_RNNLM_MAX_ORDER];
      int32_t num = 0;
      for (; num < wf__rnn_history(lm) && (size_t)num <= t; num++)
        previous[num] = words[t - (size_t)num];
      orders[i & 1] = wf__rnn_hashes(lm, previous, num, hash[i & 1]);
      prefetch_cells(lm, hash[i & 1], orders[i & 1], words[t + 1]);
    }
    if (i > 0)
      cost += update_path(lm, rates, tape->hidden + i * n, hash[(i - 1) & 1], orders[(i - 1) & 1],
                          words[t], tape->delta + (i - 1) * n);
  }
  return cost;
}

/* --- hidden layer ------------------------------------------------------------------------ */

static void product(const wf__rnn_matrix *m, const float *x, float *y) {
  wf__rows_dot(m->data, m->rows, m->stride, x, 0, 1, y, 0);
}

static void zero_padding(const wf_rnnlm *lm, float *x) {
  for (size_t k = lm->hidden; k < wf__padded(lm->hidden); k++) x[k] = 0;
}

static void forward_sigmoid(const wf_rnnlm *lm, const float *x, const float *previous,
                            float *hidden) {
  size_t n = wf__padded(lm->hidden);
  product(&lm->layers[0].matrix[WF__RNN_W], previous, hidden);
  for (size_t k = 0; k < n; k++) hidden[k] += x[k];
  wf__vec_sigmoid(hidden, n);
  zero_padding(lm, hidden);
}

static void forward_gru(const wf_rnnlm *lm, wf__rnn_tape *tape, size_t i, const float *x,
                        const float *h, float *hidden) {
  size_t n = wf__padded(lm->hidden);
  const wf__rnn_matrix *m = lm->layers[0].matrix;
  float *r = tape->reset + i * n, *u = tape->update + i * n, *c = tape->fresh + i * n,
        *rh = tape->scaled + i * n;
  product(&m[WF__GRU_RW], h, r);
  product(&m[WF__GRU_UW], h, u);
  for (size_t k = 0; k < n; k++) r[k] += x[k], u[k] += x[k];
  wf__vec_sigmoid(r, n);
  wf__vec_sigmoid(u, n);
  for (size_t k = 0; k < n; k++) rh[k] = r[k] * h[k];
  product(&m[WF__GRU_QW], rh, c);
  for (size_t k = 0; k < n; k++) c[k] += x[k];
  wf__vec_tanh(c, n);
  for (size_t k = 0; k < n; k++) hidden[k] = (c[k] - h[k]) * u[k] + h[k];
  zero_padding(lm, hidden);
}

/* Turns row i of delta into the gradient before the activation. Sets the first vector of `back` to
 * the gradient at the previous state. */
static void backward_sigmoid(const wf_rnnlm *lm, wf__rnn_tape *tape, size_t i, float clip) {
  size_t n = wf__padded(lm->hidden);
  float *d = tape->delta + i * n, *back = tape->back;
  const float *h = tape->hidden + (i + 1) * n;
  for (size_t k = 0; k < n; k++) {
    d[k] = clipped((d[k] + back[k]) * h[k] * (1 - h[k]), clip);
    back[k] = 0;
  }
  const wf__rnn_matrix *w = &lm->layers[0].matrix[WF__RNN_W];
  wf__transposed_dot(w->data, w->rows, w->stride, d, back);
}

static void backward_gru(const wf_rnnlm *lm, wf__rnn_tape *tape, size_t i, float clip) {
  size_t n = wf__padded(lm->hidden);
  const wf__rnn_matrix *m = lm->layers[0].matrix;
  float *d = tape->delta + i * n, *back = tape->back, *d_scaled = back + n;
  float *dr = tape->d_reset + i * n, *du = tape->d_update + i * n, *dc = tape->d_fresh + i * n;
  const float *h = tape->hidden + i * n, *r = tape->reset + i * n, *u = tape->update + i * n,
              *c = tape->fresh + i * n;
  for (size_t k = 0; k < n; k++) {
    float dh = d[k] + back[k];
    dc[k] = clipped(dh * u[k] * (1 - c[k] * c[k]), clip);
    du[k] = clipped(dh * (c[k] - h[k]) * u[k] * (1 - u[k]), clip);
    back[k] = dh * (1 - u[k]);
    d_scaled[k] = 0;
  }
  wf__transposed_dot(m[WF__GRU_QW].data, lm->hidden, n, dc, d_scaled);
  for (size_t k = 0; k < n; k++) {
    dr[k] = clipped(d_scaled[k] * h[k] * r[k] * (1 - r[k]), clip);
    back[k] += d_scaled[k] * r[k];
    d[k] = dc[k] + dr[k] + du[k];
  }
  wf__transposed_dot(m[WF__GRU_RW].data, lm->hidden, n, dr, back);
  wf__transposed_dot(m[WF__GRU_UW].data, lm->hidden, n, du, back);
}

static void move_matrix(const wf_rnnlm *lm, const wf__rnn_rates *rates, const wf__rnn_matrix *m,
                        const float *d, const float *x, size_t count) {
  size_t n = wf__padded(lm->hidden);
  wf__outer_add(m->data, lm->hidden, n, 1 - rates->weights_l2, rates->weights, d, n, x, n, count);
}

static double update_segment(wf_rnnlm *lm, const wf__rnn_rates *rates, wf__rnn_tape *tape,
                             const int32_t *words, size_t begin, size_t count) {
  size_t n = wf__padded(lm->hidden);
  bool gru = lm->kind == WF__RNN_GRU;
  const wf__rnn_matrix *m = lm->layers[0].matrix;
  for (size_t i = 0; i < count; i++) {
    const float *x = lm->embedding.data + (size_t)words[begin + i] * n;
    if (gru)
      forward_gru(lm, tape, i, x, tape->hidden + i * n, tape->hidden + (i + 1) * n);
    else
      forward_sigmoid(lm, x, tape->hidden + i * n, tape->hidden + (i + 1) * n);
  }
  double cost = update_outputs(lm, rates, tape, words, begin, count);
  memset(tape->back, 0, n * sizeof(float));
  for (size_t i = count; i-- > 0;)
    (gru ? backward_gru : backward_sigmoid)(lm, tape, i, rates->clip);
  if (gru) {
    move_matrix(lm, rates, &m[WF__GRU_RW], tape->d_reset, tape->hidden, count);
    move_matrix(lm, rates, &m[WF__GRU_UW], tape->d_update, tape->hidden, count);
    move_matrix(lm, rates, &m[WF__GRU_QW], tape->d_fresh, tape->scaled, count);
  } else {
    move_matrix(lm, rates, &m[WF__RNN_W], tape->delta, tape->hidden, count);
  }
  for (size_t i = 0; i < count; i++)
    wf__axpy(rates->weights, tape->delta + i * n, lm->embedding.data + (size_t)words[begin + i] * n,
             n);
  memcpy(tape->hidden, tape->hidden + count * n, n * sizeof(float));
  return cost;
}

double wf__rnn_update_estimates(wf_rnnlm *lm, const wf__rnn_rates *rates, wf__rnn_tape *tape,
                                const int32_t *words, size_t size) {
  double cost = 0;
  memset(tape->hidden, 0, wf__padded(lm->hidden) * sizeof(float));
  for (size_t begin = 0; begin + 1 < size; begin += WF__RNN_SEGMENT) {
    size_t left = size - 1 - begin;
    cost += update_segment(lm, rates, tape, words, begin,
                           left < WF__RNN_SEGMENT ? left : WF__RNN_SEGMENT);
  }
  return cost;
}
