/* rnn_kernels.cu - kernels of recurrent language models (rnn_kernels.h): one matrix product, the
 * cells of all kinds of layers, and costs, one warp a request.
 *
 * Why not BLAS: BLAS libraries choose the order of summation by the number of rows, and results
 * must not depend on the batch. Here each element is one chain of multiply-adds over the inner
 * dimension. */
#include "cuda/device/grid.cuh"
#include "cuda/rnn/rnn_kernels.h"
#include "cuda/rnn/row_count.cuh"
#include "cuda/rnn/slice_rows.cuh"
#include "warpfst_all.h"

/* --- matrix product ---------------------------------------------------------------------- */

/* Columns at a time, in floats and in groups of four; floats between rows in shared memory. */
enum { DEPTH = 16, QUADS = DEPTH / 4, PITCH = DEPTH + 4 };
#ifndef WF__LARGE_PRODUCT /* blocks from which large ones are better; a test makes it small */
#define WF__LARGE_PRODUCT 200
#endif

/* A block computes ROWS rows of W by VECTORS vectors, each thread MY_ROWS by MY_VECTORS of them.
 * DEPTH columns at a time are in shared memory, while the next AHEAD times DEPTH are on their way
 * into registers. Small blocks are for products that large ones would not fill the GPU with: there
 * the latency of memory decides. BLOCKS of them fit a multiprocessor. All shapes give the same
 * bits. */
template <u32 ROWS, u32 VECTORS, u32 MY_ROWS, u32 MY_VECTORS, u32 AHEAD, u32 BLOCKS>
struct product_shape {
  static constexpr u32 rows = ROWS, vectors = VECTORS, my_rows = MY_ROWS, my_vectors = MY_VECTORS,
                       ahead = AHEAD, blocks = BLOCKS, across = ROWS / MY_ROWS,
                       threads = across * (VECTORS / MY_VECTORS),
                       row_quads = ROWS * QUADS / threads, vector_quads = VECTORS * QUADS / threads;
  /* Rows are PITCH floats apart, so that eight of them are in different banks. */
  struct tiles {
    float w[2][ROWS * PITCH], x[2][VECTORS * PITCH];
  };
};
typedef product_shape<32, 32, 4, 4, 3, 8> small_product;
typedef product_shape<128, 64, 8, 8, 1, 3> large_product;

/* The quads of a tile that a thread moves. */
template <u32 COUNT, u32 NUM_THREADS>
struct quads {
  const float *from[COUNT]; /* NULL: beyond the matrix */

  __device__ quads(const float *rows, u32 num_rows, u32 stride, u32 first) {
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) {
      const u32 k = threadIdx.x + i * NUM_THREADS, row = first + k / QUADS;
      from[i] = row < num_rows ? rows + (u64)row * stride + k % QUADS * 4 : nullptr;
    }
  }
  /* From column `column` on; zeros from `depth` on. */
  __device__ void load(u32 column, u32 depth, float4 *to) const {
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) {
      const bool there = from[i] != nullptr && column + threadIdx.x % QUADS * 4 < depth;
      to[i] = there ? __ldg((const float4 *)(from[i] + column)) : make_float4(0, 0, 0, 0);
    }
  }
  __device__ static void put(const float4 *values, float *tile) {
#pragma unroll
    for (u32 i = 0; i < COUNT; i++) {
      const u32 k = threadIdx.x + i * NUM_THREADS;
      *(float4 *)(tile + k / QUADS * PITCH + k % QUADS * 4) = values[i];
    }
  }
};

template <class S>
__global__ static void __launch_bounds__(S::threads, S::blocks)
    product_kernel(const float *w, u32 num_rows, u32 w_stride, const float *x, u32 x_stride,
                   const wf__row_count vectors, float *y, u32 y_stride) {
  WF__SHARED(typename S::tiles, tiles);
  const u32 first_row = blockIdx.x * S::rows, first_vector = blockIdx.y * S::vectors,
            count = rows_of(vectors);
  if (first_vector >= count) return;
  const u32 my_row = threadIdx.x % S::across, my_vector = threadIdx.x / S::across;
  const u32 vectors_apart = S::vectors / S::my_vectors;
  const quads<S::row_quads, S::threads> of_rows(w, num_rows, w_stride, first_row);
  const quads<S::vector_quads, S::threads> of_vectors(x, count, x_stride, first_vector);
  float sum[S::my_vectors][S::my_rows] = {};
  float4 next_w[S::ahead][S::row_quads], next_x[S::ahead][S::vector_quads];
#pragma unroll
  for (u32 a = 0; a < S::ahead; a++) {
    of_rows.load(a * DEPTH, w_stride, next_w[a]);
    of_vectors.load(a * DEPTH, w_stride, next_x[a]);
  }
  u32 buffer = 0;
  for (u32 first = 0; first < w_stride; first += S::ahead * DEPTH)
#pragma unroll
    for (u32 a = 0; a < S::ahead; a++) {
      const u32 k = first + a * DEPTH;
      if (k >= w_stride) break;
      of_rows.put(next_w[a], tiles.w[buffer]);
      of_vectors.put(next_x[a], tiles.x[buffer]);
      of_rows.load(k + S::ahead * DEPTH, w_stride, next_w[a]);
      of_vectors.load(k + S::ahead * DEPTH, w_stride, next_x[a]);
      __syncthreads(); /* and all have done with the other buffer */
#pragma unroll
      for (u32 d = 0; d < DEPTH; d += 4) {
        float4 of_w[S::my_rows], of_x[S::my_vectors];
#pragma unroll
        for (u32 r = 0; r < S::my_rows; r++)
          of_w[r] = *(const float4 *)&tiles.w[buffer][(my_row + r * S::across) * PITCH + d];
#pragma unroll
        for (u32 v = 0; v < S::my_vectors; v++)
          of_x[v] = *(const float4 *)&tiles.x[buffer][(my_vector + v * vectors_apart) * PITCH + d];
#pragma unroll
        for (u32 v = 0; v < S::my_vectors; v++)
#pragma unroll
          for (u32 r = 0; r < S::my_rows; r++) {
            sum[v][r] = fmaf(of_w[r].x, of_x[v].x, sum[v][r]);
            sum[v][r] = fmaf(of_w[r].y, of_x[v].y, sum[v][r]);
            sum[v][r] = fmaf(of_w[r].z, of_x[v].z, sum[v][r]);
            sum[v][r] = fmaf(of_w[r].w, of_x[v].w, sum[v][r]);
          }
      }
      buffer ^= 1;
    }
  for (u32 v = 0; v < S::my_vectors; v++) {
    const u32 vector = first_vector + my_vector + v * vectors_apart;
    for (u32 r = 0; r < S::my_rows; r++) {
      const u32 row = first_row + my_row + r * S::across;
      if (vector < count && row < num_rows) y[(u64)vector * y_stride + row] = sum[v][r];
    }
  }
}

template <class S>
static int launch_product(const float *w, u32 num_rows, u32 w_stride, const float *x, u32 x_stride,
                          wf__row_count count, float *y, u32 y_stride, void *stream) {
  const dim3 grid((num_rows + S::rows - 1) / S::rows, (count.most + S::vectors - 1) / S::vectors);
  return (int)WF__LAUNCH(product_kernel<S>, grid, S::threads, 0, stream, w, num_rows, w_stride, x,
                         x_stride, count, y, y_stride);
}

int wf__rnn_product(const float *w, u32 num_rows, u32 w_stride, const float *x, u32 x_stride,
                    wf__row_count count, float *y, u32 y_stride, void *stream) {
  const u64 large_blocks = (u64)((num_rows + large_product::rows - 1) / large_product::rows) *
                           ((count.most + large_product::vectors - 1) / large_product::vectors);
  return large_blocks >= WF__LARGE_PRODUCT
             ? launch_product<large_product>(w, num_rows, w_stride, x, x_stride, count, y, y_stride,
                                             stream)
             : launch_product<small_product>(w, num_rows, w_stride, x, x_stride, count, y, y_stride,
                                             stream);
}

/* --- layers ------------------------------------------------------------------------------ */

/* Of a hidden vector of all rows. */
__device__ static u64 elements_of(const wf__rnn_rows &r) {
  return (u64)rows_of(r.count) * r.stride;
}

__global__ static void gather_kernel(const wf__rnn_rows r) {
  const u32 width = r.input_stride > r.stride ? r.input_stride : r.stride;
  const u64 all = (u64)rows_of(r.count) * width;
  FOR_ALL(i, all) {
    const u64 b = i / width, k = i % width;
    const wf__rnn_move move = r.moves[b];
    const float *to = r.states + move.to * r.state_floats + r.layer;
    if (k < r.input_stride && r.inputs == nullptr)
      r.input[b * r.input_stride + k] = r.embedding != nullptr
                                            ? r.embedding[(u64)move.word * r.input_stride + k]
                                            : to[(int64_t)k - (int64_t)r.layer_floats];
    if (k < r.stride)
      r.previous[b * r.stride + k] = r.states[move.from * r.state_floats + r.layer + k];
  }
}
int wf__rnn_gather(const wf__rnn_rows *r, void *stream) {
  return LAUNCH(gather_kernel, (u64)r->count.most * r->stride, stream, *r);
}

__device__ static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/* Element k of row b's new hidden vector. */
__device__ static void store(const wf__rnn_rows &r, u64 b, u64 k, float value) {
  r.states[r.moves[b].to * r.state_floats + r.layer + k] = k < r.hidden ? value : 0;
}

__global__ static void simple_kernel(const wf__rnn_rows r, const float *in, int kind) {
  const u64 all = elements_of(r);
  FOR_ALL(i, all) {
    const u64 b = i / r.stride, k = i % r.stride;
    float x = r.gates[b * r.gates_stride + k] + in[i];
    if (kind == WF__RNN_SIGMOID)
      x = sigmoid(x);
    else if (kind == WF__RNN_TANH)
      x = tanhf(x);
    else
      x = x > 0 ? x : 0;
    if (kind == WF__RNN_RELU_TRUNC && x > 20) x = 20;
    store(r, b, k, x);
  }
}
int wf__rnn_simple(const wf__rnn_rows *r, const float *in, int kind, void *stream) {
  return LAUNCH(simple_kernel, (u64)r->count.most * r->stride, stream, *r, in, kind);
}

__device__ static float gate_of(const wf__rnn_rows &r, u64 i, const float *in, const float *bias) {
  const u64 b = i / r.stride, k = i % r.stride;
  const float sum = r.gates[b * r.gates_stride + k] + in[i];
  return sigmoid(bias != nullptr ? sum + bias[k] : sum);
}

__global__ static void gru_reset_kernel(const wf__rnn_rows r, const float *in, const float *bias) {
  const u64 all = elements_of(r);
  FOR_ALL(i, all)
  r.gates[i / r.stride * r.gates_stride + i % r.stride] = gate_of(r, i, in, bias) * r.previous[i];
}
__global__ static void gru_fresh_kernel(const wf__rnn_rows r, const float *in) {
  const u64 all = elements_of(r);
  FOR_ALL(i, all) {
    float *at = &r.gates2[i / r.stride * r.gates_stride + i % r.stride];
    *at = tanhf(*at + in[i]);
  }
}
__global__ static void gru_update_kernel(const wf__rnn_rows r, const float *in, const float *bias) {
  const u64 all = elements_of(r);
  FOR_ALL(i, all) {
    const float fresh = r.gates2[i / r.stride * r.gates_stride + i % r.stride];
    store(r, i / r.stride, i % r.stride,
          (fresh - r.previous[i]) * gate_of(r, i, in, bias) + r.previous[i]);
  }
}
int wf__rnn_gru_reset(const wf__rnn_rows *r, const float *in, const float *bias, void *stream) {
  return LAUNCH(gru_reset_kernel, (u64)r->count.most * r->stride, stream, *r, in, bias);
}
int wf__rnn_gru_fresh(const wf__rnn_rows *r, const float *in, void *stream) {
  return LAUNCH(gru_fresh_kernel, (u64)r->count.most * r->stride, stream, *r, in);
}
int wf__rnn_gru_update(const wf__rnn_rows *r, const float *in, const float *bias, void *stream) {
  return LAUNCH(gru_update_kernel, (u64)r->count.most * r->stride, stream, *r, in, bias);
}

/* Gates reset, update, new. */
__device__ static const float *input_gates(const wf__rnn_rows &r, u64 b) {
  return r.inputs != nullptr ? r.inputs + (u64)r.moves[b].word * r.gates_stride
                             : r.gates + b * r.gates_stride;
}

__global__ static void torch_gru_kernel(const wf__rnn_rows r, const float *bias_ih,
                                        const float *bias_hh) {
  const u64 all = elements_of(r);
  FOR_ALL(i, all) {
    const u64 b = i / r.stride, k = i % r.stride, n = r.stride;
    const float *x = input_gates(r, b) + k, *h = r.gates2 + b * r.gates_stride + k;
    const float reset = sigmoid((x[0] + bias_ih[k]) + (h[0] + bias_hh[k]));
    const float update = sigmoid((x[n] + bias_ih[n + k]) + (h[n] + bias_hh[n + k]));
    const float fresh =
        tanhf((x[2 * n] + bias_ih[2 * n + k]) + reset * (h[2 * n] + bias_hh[2 * n + k]));
    store(r, b, k, (1 - update) * fresh + update * r.previous[i]);
  }
}
int wf__rnn_torch_gru(const wf__rnn_rows *r, const float *bias_ih, const float *bias_hh,
                      void *stream) {
  return LAUNCH(torch_gru_kernel, (u64)r->count.most * r->stride, stream, *r, bias_ih, bias_hh);
}

/* Gates input, forget, cell, output. A layer's part of a state is the hidden vector, then the
 * cell; only this thread reads its element of the cell. */
__global__ static void torch_lstm_kernel(const wf__rnn_rows r, const float *bias_ih,
                                         const float *bias_hh) {
  const u64 all = elements_of(r);
  FOR_ALL(i, all) {
    const u64 b = i / r.stride, k = i % r.stride, n = r.stride;
    const float *x = input_gates(r, b) + k, *h = r.gates2 + b * r.gates_stride + k;
    float gate[4];
    for (int g = 0; g < 4; g++)
      gate[g] = (x[g * n] + bias_ih[g * n + k]) + (h[g * n] + bias_hh[g * n + k]);
    const float was = r.states[r.moves[b].from * r.state_floats + r.layer + n + k];
    const float cell = sigmoid(gate[1]) * was + sigmoid(gate[0]) * tanhf(gate[2]);
    r.states[r.moves[b].to * r.state_floats + r.layer + n + k] = cell;
    store(r, b, k, sigmoid(gate[3]) * tanhf(cell));
  }
}
int wf__rnn_torch_lstm(const wf__rnn_rows *r, const float *bias_ih, const float *bias_hh,
                       void *stream) {
  return LAUNCH(torch_lstm_kernel, (u64)r->count.most * r->stride, stream, *r, bias_ih, bias_hh);
}

/* An element of the cell, which changes, and of the hidden vector. */
__device__ static float exact_element(float input, float forget, float fresh, float output,
                                      float *cell) {
  *cell = wf__sigmoid(forget) * *cell + wf__sigmoid(input) * wf__tanh(fresh);
  return wf__sigmoid(output) * wf__tanh(*cell);
}

/* A block computes a state. */
__global__ static void __launch_bounds__(SLICE_THREADS)
    exact_lstm_kernel(const wf__rnn_rows r, const wf__sliced hidden, u32 times, u32 plus) {
  const u32 num = rows_of(r.count);
  for (u32 b = blockIdx.x; b < num; b += gridDim.x) {
    const wf__rnn_move move = r.moves[b];
    const float *x = input_gates(r, b), *h = r.gates2 + (u64)b * r.gates_stride,
                *was = r.states + move.from * r.state_floats + r.layer + r.stride;
    float *cells = r.states + move.to * r.state_floats + r.layer + r.stride;
    slice_row(
        [&](u32 k) {
          if (k >= r.stride) return make_float4(0, 0, 0, 0);
          float4 gate[4], cell = *(const float4 *)(was + k), out;
#pragma unroll
          for (u32 g = 0; g < 4; g++) {
            const float4 of_x = *(const float4 *)(x + g * r.stride + k),
                         of_h = *(const float4 *)(h + g * r.stride + k);
            gate[g] =
                make_float4(of_x.x + of_h.x, of_x.y + of_h.y, of_x.z + of_h.z, of_x.w + of_h.w);
          }
          out.x = exact_element(gate[0].x, gate[1].x, gate[2].x, gate[3].x, &cell.x);
          out.y = exact_element(gate[0].y, gate[1].y, gate[2].y, gate[3].y, &cell.y);
          out.z = exact_element(gate[0].z, gate[1].z, gate[2].z, gate[3].z, &cell.z);
          out.w = exact_element(gate[0].w, gate[1].w, gate[2].w, gate[3].w, &cell.w);
          *(float4 *)(cells + k) = cell;
          return make_float4(k < r.hidden ? out.x : 0, k + 1 < r.hidden ? out.y : 0,
                             k + 2 < r.hidden ? out.z : 0, k + 3 < r.hidden ? out.w : 0);
        },
        hidden, (u64)move.to * times + plus);
  }
}
int wf__rnn_exact_lstm(const wf__rnn_rows *r, wf__sliced hidden, u32 times, u32 plus,
                       void *stream) {
  const u32 blocks = r->count.most < MAX_BLOCKS ? r->count.most : MAX_BLOCKS;
  return (int)WF__LAUNCH(exact_lstm_kernel, blocks, SLICE_THREADS, 0, stream, *r, hidden, times,
                         plus);
}

__device__ static float dot(const float *a, const float *b, u32 n) {
  float sum = 0;
  for (u32 k = 0; k < n; k++) sum = fmaf(a[k], b[k], sum);
  return sum;
}

/* One block computes one state, because these models are rare. First the slow context, then the
 * fast units, which read it. */
__global__ static void scrn_kernel(const wf__rnn_rows r, const wf__rnn_scrn s) {
  const u32 fast = r.hidden - s.context;
  const u32 count = rows_of(r.count);
  for (u64 b = blockIdx.x; b < count; b += gridDim.x) {
    const float *x = r.input + b * r.input_stride, *previous = r.previous + b * r.stride;
    float *context = r.gates + b * r.gates_stride;
    for (u32 k = threadIdx.x; k < s.context; k += THREADS) {
      const float in = s.b != nullptr ? dot(s.b + (u64)k * s.b_stride, x, r.input_stride) : x[k];
      context[k] = (1 - s.decay[k]) * in + s.decay[k] * previous[k];
      store(r, b, k, context[k]);
    }
    __syncthreads();
    for (u32 j = threadIdx.x; j < fast; j += THREADS) {
      float sum = dot(s.r + (u64)j * s.r_stride, previous + s.context, fast);
      sum += dot(s.p + (u64)j * s.p_stride, context, s.context);
      sum += s.b != nullptr ? dot(s.a + (u64)j * s.a_stride, x, r.input_stride) : x[s.context + j];
      store(r, b, s.context + j, sigmoid(sum));
    }
    for (u32 k = r.hidden + threadIdx.x; k < r.stride; k += THREADS) store(r, b, k, 0);
  }
}
int wf__rnn_scrn_layer(const wf__rnn_rows *r, const wf__rnn_scrn *s, void *stream) {
  return LAUNCH(scrn_kernel, (u64)r->count.most * THREADS, stream, *r, *s);
}

/* --- costs ------------------------------------------------------------------------------- */

__device__ static float sum_of_warp(float x) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) x += __shfl_xor_sync(ALL_LANES, x, d);
  return x;
}
__device__ static double sum_of_warp(double x) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) x += __shfl_xor_sync(ALL_LANES, x, d);
  return x;
}

/* This lane's share of the product of an output row and a hidden vector. */
__device__ static float partial_dot(const float *row, const float *top, u32 stride) {
  float sum = 0;
  for (u32 k = this_lane() * 4; k < stride; k += LANES * 4) {
    const float4 a = __ldg((const float4 *)(row + k)), b = *(const float4 *)(top + k);
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
    sum = fmaf(a.z, b.z, sum);
    sum = fmaf(a.w, b.w, sum);
  }
  return sum;
}

/* A request being computed, the same in all lanes of its warp. */
struct score_request {
  const float *top;
  const u64 *hash;
  u32 orders; /* of features that still count */
};

/* Sum of the features' cells at `row`. */
__device__ static float feature_sum(const wf__rnn_output &o, const score_request &q, u32 orders,
                                    u64 row) {
  float sum = 0;
  for (u32 i = 0; i < orders; i++) sum += __ldg(o.cells + q.hash[i] + row);
  return sum;
}

/* ln(1 + e^-x), of any x. */
__device__ static double softplus_of_minus(double x) { return x < -500 ? -x : log1p(exp(-x)); }

/* The cost of a word's path in a binary tree, 32 nodes at a time. Lane j looks up the features of
 * node j. All lanes compute the node's dot product together, and lane j gets the score. */
__device__ static double binary_path(const wf__rnn_output &o, score_request q, int32_t word) {
  enum { TOGETHER = 4 };
  const u64 end = o.path_off[word + 1];
  double cost = 0;
  for (u64 first = o.path_off[word]; first < end; first += LANES) {
    const u32 num = end - first < LANES ? (u32)(end - first) : LANES;
    const bool mine = this_lane() < num;
    const u32 entry = mine ? __ldg(o.path + first + this_lane()) : 0, node = entry >> 1;
    u32 alive = q.orders;
    for (u32 i = 0; mine && i < q.orders; i++)
      if (fabsf(__ldg(o.cells + q.hash[i] + node)) < 1e-6f && i < alive) alive = i;
#pragma unroll
    for (u32 d = 1; d < LANES; d *= 2) { /* a path that has ended stays ended at deeper nodes */
      const u32 above = __shfl_up_sync(ALL_LANES, alive, d);
      if (this_lane() >= d && above < alive) alive = above;
    }
    const float features = mine ? feature_sum(o, q, alive, node) : 0;
    q.orders = __shfl_sync(ALL_LANES, alive, LANES - 1);
    float score = 0;
    for (u32 j = 0; j < num; j += TOGETHER) {
      float sum[TOGETHER];
#pragma unroll
      for (u32 t = 0; t < TOGETHER; t++) {
        const u32 at = __shfl_sync(ALL_LANES, node, j + t < num ? j + t : num - 1);
        sum[t] = partial_dot(o.rows + (u64)at * o.stride, q.top, o.stride);
      }
#pragma unroll
      for (u32 t = 0; t < TOGETHER; t++) {
        sum[t] = sum_of_warp(sum[t]);
        if (this_lane() == j + t) score = sum[t];
      }
    }
    const double x = (double)(score + features);
    cost += sum_of_warp(mine ? softplus_of_minus(entry & 1 ? -x : x)
                             : 0.0); /* branch 0 has probability sigmoid(score) */
  }
  return cost;
}

/* Arity above 2: arity - 1 scores a node, the last branch has score 0. */
__device__ static double nary_path(const wf__rnn_output &o, score_request q, int32_t word) {
  const u32 own = (u32)o.arity - 1;
  double cost = 0;
  for (u64 i = o.path_off[word]; i < o.path_off[word + 1]; i++) {
    const u64 row = (u64)(o.path[i] / (u32)o.arity) * own;
    const u32 branch = o.path[i] % (u32)o.arity;
    u32 alive = q.orders;
    for (u32 order = 0; order < q.orders; order++)
      for (u32 j = this_lane(); j < own; j += LANES)
        if (fabsf(__ldg(o.cells + q.hash[order] + row + j)) < 1e-6f && order < alive) alive = order;
    q.orders = warp_min(alive);
    double high = 0, sum = 1, taken = 0;
    for (u32 j = 0; j < own; j++) {
      const double score =
          (double)(sum_of_warp(partial_dot(o.rows + (row + j) * o.stride, q.top, o.stride)) +
                   feature_sum(o, q, q.orders, row + j));
      if (j == branch) taken = score;
      sum = score > high ? sum * exp(high - score) + 1 : sum + exp(score - high);
      if (score > high) high = score;
    }
    cost += high + log(sum) - taken;
  }
  return cost;
}

__global__ static void __launch_bounds__(THREADS)
    costs_kernel(const wf__rnn_output o, const wf__rnn_request *requests, u32 count,
                 const u64 *hashes, float *costs) {
  for (u64 i = this_thread() / LANES; i < count; i += num_threads() / LANES) {
    const wf__rnn_request r = requests[i];
    if (r.word < 0) continue;
    const score_request q = {o.states + r.slot * o.state_floats + o.top, hashes + r.first_hash,
                             r.orders};
    double cost;
    if (o.kind == WF_RNNLM_HIERARCHICAL) {
      cost = o.arity == 2 ? binary_path(o, q, r.word) : nary_path(o, q, r.word);
    } else {
      double score =
          (double)(sum_of_warp(partial_dot(o.rows + (u64)r.word * o.stride, q.top, o.stride)) +
                   feature_sum(o, q, q.orders, (u64)r.word));
      if (o.bias != nullptr) score += (double)o.bias[r.word];
      cost = (double)(o.kind == WF_RNNLM_NCE ? o.nce_lnz : o.norms[r.slot]) - score;
    }
    if (this_lane() == 0)
      costs[i] =
          cost == cost ? (float)cost : INFINITY; /* not NaN: cells are not checked on reading */
  }
}
int wf__rnn_output_costs(const wf__rnn_output *o, const wf__rnn_request *requests, u32 count,
                         const u64 *hashes, float *costs, void *stream) {
  return LAUNCH(costs_kernel, (u64)count * LANES, stream, *o, requests, count, hashes, costs);
}

/* --- norms of the softmax ---------------------------------------------------------------- */

__global__ static void tops_kernel(const wf__rnn_output o, const u32 *slots,
                                   const wf__row_count count, float *to) {
  const u64 all = (u64)rows_of(count) * o.stride;
  FOR_ALL(i, all)
  to[i] = o.states[slots[i / o.stride] * o.state_floats + o.top + i % o.stride];
}
int wf__rnn_gather_tops(const wf__rnn_output *o, const u32 *slots, wf__row_count count, float *to,
                        void *stream) {
  return LAUNCH(tops_kernel, (u64)count.most * o->stride, stream, *o, slots, count, to);
}

/* One warp handles one row. The running value of ln(sum of e^score) is high + ln(sum). */
__global__ static void scores_kernel(const float *scores, u32 count, u32 num, u32 stride,
                                     const float *bias, int is_first, float *high, double *sum) {
  for (u64 row = this_thread() / LANES; row < count; row += num_threads() / LANES) {
    const float *own = scores + row * stride;
    const float was = is_first ? -1e30f : high[row];
    float top = was;
    double total = 0;
    for (u32 k = this_lane(); k < num; k += LANES)
      top = fmaxf(top, bias != nullptr ? own[k] + bias[k] : own[k]);
#pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(ALL_LANES, top, d));
    for (u32 k = this_lane(); k < num; k += LANES)
      total += (double)expf((bias != nullptr ? own[k] + bias[k] : own[k]) - top);
    total = sum_of_warp(total);
    if (this_lane() == 0) {
      sum[row] = (is_first ? 0 : sum[row] * exp((double)was - (double)top)) + total;
      high[row] = top;
    }
  }
}
int wf__rnn_add_scores(const float *scores, u32 count, u32 num, u32 stride, const float *bias,
                       int is_first, float *high, double *sum, void *stream) {
  return LAUNCH(scores_kernel, (u64)count * LANES, stream, scores, count, num, stride, bias,
                is_first, high, sum);
}

__global__ static void norms_kernel(const u32 *slots, u32 count, const float *high,
                                    const double *sum, float *norms) {
  FOR_ALL(i, count) norms[slots[i]] = (float)((double)high[i] + log(sum[i]));
}
int wf__rnn_end_norms(const u32 *slots, u32 count, const float *high, const double *sum,
                      float *norms, void *stream) {
  return LAUNCH(norms_kernel, count, stream, slots, count, high, sum, norms);
}
