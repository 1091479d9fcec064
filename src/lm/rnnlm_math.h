/* rnnlm_math.h - float32 vectors and matrices of the recurrent LM.
 *
 * Vectors are padded with zeros to a multiple of WF__LANES. A matrix is a sequence of padded rows.
 * Every sum has one fixed order: eight lanes, then the sum over the lanes. The order does not
 * depend on the number of vectors in a call, the position in the batch, or the processor. So
 * results do not depend on batching. On x86-64 the code is compiled twice, for AVX2 and for the
 * baseline. Both agree bit for bit, because fused multiply-add is not used. */
#ifndef WF_LM_RNNLM_MATH_H
#define WF_LM_RNNLM_MATH_H

#include <stddef.h>
#include <stdint.h>

enum { WF__LANES = 8 };
static inline size_t wf__padded(size_t n) { return (n + WF__LANES - 1) / WF__LANES * WF__LANES; }

/* In all functions, n and stride are multiples of WF__LANES. */
float wf__dot(const float *a, const float *b, size_t n);
/* y[b * y_stride + i] = rows[i] . x[b], with x[b] at x + b * x_stride, for i < num_rows, b < count.
 */
void wf__rows_dot(const float *rows, size_t num_rows, size_t stride, const float *x,
                  size_t x_stride, size_t count, float *y, size_t y_stride);
/* y += a x. */
void wf__axpy(float a, const float *x, float *y, size_t n);
/* y[0, stride) += sum_i d[i] rows[i]: the transposed product. */
void wf__transposed_dot(const float *rows, size_t num_rows, size_t stride, const float *d,
                        float *y);
/* rows[i] = keep * rows[i] + scale * sum_t d[t][i] x[t], t < count: updates a weight matrix from
 * `count` positions. */
void wf__outer_add(float *rows, size_t num_rows, size_t stride, float keep, float scale,
                   const float *d, size_t d_stride, const float *x, size_t x_stride, size_t count);
/* Updates an output row: delta += gradient row, then row = keep row + step hidden. */
void wf__update_row(float *row, const float *hidden, float *delta, size_t n, float gradient,
                    float keep, float step);
/* In place, elementwise. The relative error of the exponential is below 2e-7. wf__vec_exp clamps
 * its arguments to [-87, 88]. */
void wf__vec_exp(float *x, size_t n);
void wf__vec_sigmoid(float *x, size_t n);
void wf__vec_tanh(float *x, size_t n);

#endif
