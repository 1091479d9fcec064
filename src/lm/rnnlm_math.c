/* rnnlm_math.c - the kernels of rnnlm_math.h, each written once over vectors of eight floats.
 *
 * A matrix product processes tiles of four rows by two vectors: eight sums of eight lanes stay in
 * registers, and six loads serve eight multiply-adds. */
#include "lm/rnnlm_math.h"

#include <stdbool.h>

typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t v8i __attribute__((vector_size(32), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Sum over the lanes, in an order of pairs that is the same for every instruction set. */
INLINE float across(const v8 *v) {
  const float *l = (const float *)v;
  return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

INLINE void dot_tile(int num_rows, int num_vectors, const float *rows, size_t stride,
                     const float *x, size_t x_stride, float *y, size_t y_stride) {
  v8 sum[4][2] = {{{0}}};
  for (size_t k = 0; k < stride; k += WF__LANES)
    for (int r = 0; r < num_rows; r++)
      for (int c = 0; c < num_vectors; c++)
        sum[r][c] += *(const v8 *)(rows + (size_t)r * stride + k) *
                     *(const v8 *)(x + (size_t)c * x_stride + k);
  for (int r = 0; r < num_rows; r++)
    for (int c = 0; c < num_vectors; c++) y[(size_t)c * y_stride + (size_t)r] = across(&sum[r][c]);
}

INLINE void rows_dot(const float *rows, size_t num_rows, size_t stride, const float *x,
                     size_t x_stride, size_t count, float *y, size_t y_stride) {
  size_t i = 0;
  for (; i + 4 <= num_rows; i += 4) {
    size_t b = 0;
    for (; b + 2 <= count; b += 2)
      dot_tile(4, 2, rows + i * stride, stride, x + b * x_stride, x_stride, y + b * y_stride + i,
               y_stride);
    if (b < count)
      dot_tile(4, 1, rows + i * stride, stride, x + b * x_stride, x_stride, y + b * y_stride + i,
               y_stride);
  }
  for (; i < num_rows; i++)
    for (size_t b = 0; b < count; b++)
      dot_tile(1, 1, rows + i * stride, stride, x + b * x_stride, x_stride, y + b * y_stride + i,
               y_stride);
}

INLINE void axpy(float a, const float *x, float *y, size_t n) {
  for (size_t k = 0; k < n; k += WF__LANES) *(v8 *)(y + k) += a * *(const v8 *)(x + k);
}

INLINE void transposed_dot(const float *rows, size_t num_rows, size_t stride, const float *d,
                           float *y) {
  size_t i = 0;
  for (; i + 4 <= num_rows; i += 4) {
    const float *r = rows + i * stride;
    for (size_t k = 0; k < stride; k += WF__LANES)
      *(v8 *)(y + k) += (d[i] * *(const v8 *)(r + k) + d[i + 1] * *(const v8 *)(r + stride + k)) +
                        (d[i + 2] * *(const v8 *)(r + 2 * stride + k) +
                         d[i + 3] * *(const v8 *)(r + 3 * stride + k));
  }
  for (; i < num_rows; i++) axpy(d[i], rows + i * stride, y, stride);
}

INLINE void outer_add(float *rows, size_t num_rows, size_t stride, float keep, float scale,
                      const float *d, size_t d_stride, const float *x, size_t x_stride,
                      size_t count) {
  for (size_t i = 0; i < num_rows; i++) {
    float *row = rows + i * stride;
    size_t k = 0;
    for (; k + 4 * WF__LANES <= stride;
         k += 4 * WF__LANES) { /* sums over the positions stay in registers */
      v8 sum[4] = {{0}};
      for (size_t t = 0; t < count; t++)
        for (int j = 0; j < 4; j++)
          sum[j] +=
              d[t * d_stride + i] * *(const v8 *)(x + t * x_stride + k + (size_t)j * WF__LANES);
      for (int j = 0; j < 4; j++) {
        v8 *at = (v8 *)(row + k + (size_t)j * WF__LANES);
        *at = keep * *at + scale * sum[j];
      }
    }
    for (; k < stride; k += WF__LANES) {
      v8 sum = {0};
      for (size_t t = 0; t < count; t++)
        sum += d[t * d_stride + i] * *(const v8 *)(x + t * x_stride + k);
      *(v8 *)(row + k) = keep * *(v8 *)(row + k) + scale * sum;
    }
  }
}

INLINE void update_row(float *row, const float *hidden, float *delta, size_t n, float gradient,
                       float keep, float step) {
  for (size_t k = 0; k < n; k += WF__LANES) {
    v8 *at = (v8 *)(row + k);
    *(v8 *)(delta + k) += gradient * *at;
    *at = keep * *at + step * *(const v8 *)(hidden + k);
  }
}

/* e^x = 2^n e^r, |r| <= ln(2) / 2, e^r by its Taylor polynomial of degree 7. x is clamped to [-87,
 * 88]. */
INLINE void exp8(v8 *x) {
  const v8 low = {-87, -87, -87, -87, -87, -87, -87, -87}, high = {88, 88, 88, 88, 88, 88, 88, 88};
  v8 v = *x;
  v8i below = v<low, above = v> high;
  v = (v8)(((v8i)v & ~below & ~above) | ((v8i)low & below) | ((v8i)high & above));
  v8 shifted =
      v * 1.44269504f + 12582912.0f; /* 1.5 2^23: the low bits become the nearest integer */
  v8i n = (v8i)shifted - 0x4b400000;
  v8 whole = shifted - 12582912.0f;
  v8 r = (v - whole * 0.693359375f) - whole * -2.12194440e-4f;
  v8 p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1;
  p = p * r + 1;
  v8i power = (n + 127) << 23;
  *x = p * (v8)power;
}

enum { EXP, SIGMOID, TANH };

INLINE void map(int function, float *x, size_t n) {
  const float factor = function == EXP ? 1.0f : function == SIGMOID ? -1.0f : -2.0f;
  for (size_t k = 0; k < n; k += WF__LANES) {
    v8 *at = (v8 *)(x + k), e = factor * *at;
    exp8(&e);
    if (function == SIGMOID) e = 1.0f / (1.0f + e);
    if (function == TANH) e = 2.0f / (1.0f + e) - 1.0f;
    *at = e;
  }
}

#if defined(__x86_64__)
#define TWICE(name, parameters, arguments)                                               \
  __attribute__((target("avx2"))) static void name##_avx2 parameters { name arguments; } \
  static void name##_plain parameters { name arguments; }                                \
  void wf__##name parameters {                                                           \
    if (__builtin_cpu_supports("avx2"))                                                  \
      name##_avx2 arguments;                                                             \
    else                                                                                 \
      name##_plain arguments;                                                            \
  }
#else
#define TWICE(name, parameters, arguments) \
  void wf__##name parameters { name arguments; }
#endif

INLINE void vec_exp(float *x, size_t n) { map(EXP, x, n); }
INLINE void vec_sigmoid(float *x, size_t n) { map(SIGMOID, x, n); }
INLINE void vec_tanh(float *x, size_t n) { map(TANH, x, n); }

TWICE(rows_dot,
      (const float *rows, size_t num_rows, size_t stride, const float *x, size_t x_stride,
       size_t count, float *y, size_t y_stride),
      (rows, num_rows, stride, x, x_stride, count, y, y_stride))
TWICE(axpy, (float a, const float *x, float *y, size_t n), (a, x, y, n))
TWICE(transposed_dot, (const float *rows, size_t num_rows, size_t stride, const float *d, float *y),
      (rows, num_rows, stride, d, y))
TWICE(outer_add,
      (float *rows, size_t num_rows, size_t stride, float keep, float scale, const float *d,
       size_t d_stride, const float *x, size_t x_stride, size_t count),
      (rows, num_rows, stride, keep, scale, d, d_stride, x, x_stride, count))
TWICE(update_row,
      (float *row, const float *hidden, float *delta, size_t n, float gradient, float keep,
       float step),
      (row, hidden, delta, n, gradient, keep, step))
TWICE(vec_exp, (float *x, size_t n), (x, n))
TWICE(vec_sigmoid, (float *x, size_t n), (x, n))
TWICE(vec_tanh, (float *x, size_t n), (x, n))

float wf__dot(const float *a, const float *b, size_t n) {
  float sum;
  wf__rows_dot(a, 1, n, b, n, 1, &sum, 1);
  return sum;
}
