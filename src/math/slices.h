/* slices.h - rows of float32 as integers, so that sums of products are exact.
 *
 * A row x becomes integers q of 24 bits and a scale, a power of two: x[k] is 2^-22 scale q[k], to
 * half of 2^-22 scale. A product of two rows is the sum of q[k] r[k], an integer of at most 60
 * bits, which is rounded to float32 once. Integers have no order of summation, so every processor
 * and every size of a batch gives the same bits. A row with a NaN or an infinity has the scale NaN,
 * and so have its products.
 *
 * q is two digits on a CPU (math/slice_product.h), three on a GPU (cuda/rnn/slice_kernels.h).
 *
 * The functions of activations are the same numbers everywhere, too: files that include this are
 * compiled without fused multiply-add. */
#ifndef WF_MATH_SLICES_H
#define WF_MATH_SLICES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "math/hash.h"

/* Most columns of a row: so many products of digits fit 32 bits. */
enum { WF__SLICE_COLUMNS = 16384 };

static inline WF__HD uint32_t wf__slice_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline WF__HD float wf__slice_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The scale of a row: `largest` has the bits of its largest absolute value, without the sign. The
 * power of two that is at most as large; 2^-61 for rows of zeros and tiny values. */
static inline WF__HD float wf__slice_scale(uint32_t largest) {
  const uint32_t least = 66u << 23, exponent = largest & 0x7f800000u;
  return exponent == 0x7f800000u ? NAN : wf__slice_float(exponent < least ? least : exponent);
}
/* 2^22 / scale; 0 for NaN. */
static inline WF__HD float wf__slice_factor(float scale) {
  return scale == scale ? wf__slice_float((276u << 23) - wf__slice_bits(scale)) : 0;
}
/* q of x, between -2^23 and 2^23 - 1: the nearest integer, of two the even one; 0 if the factor is
 * 0. */
static inline WF__HD int32_t wf__slice_integer(float x, float factor) {
  const float q = x * factor, shift = q < 0 ? -8388608.0f : 8388608.0f, whole = (q + shift) - shift;
  return factor == 0 ? 0 : whole < 8388607 ? (int32_t)whole : 8388607;
}
/* The product of two rows from the sum of the products of their integers. */
static inline WF__HD float wf__slice_value(int64_t sum, float x_scale, float w_scale) {
  return (float)sum * 0x1p-44f * x_scale * w_scale;
}

/* --- functions of activations and log-probabilities -------------------------------------- */

/* e^x = 2^n e^r, |r| <= ln(2) / 2, e^r by its Taylor polynomial of degree 7; x is clamped to
 * [-87, 88]. The same bits as wf__vec_exp (lm/rnnlm_math.h). */
static inline WF__HD float wf__exp(float x) {
  if (x < -87) x = -87;
  if (x > 88) x = 88;
  const float shifted = x * 1.44269504f + 12582912.0f; /* the low bits become the nearest integer */
  const uint32_t n = wf__slice_bits(shifted) - 0x4b400000u;
  const float whole = shifted - 12582912.0f;
  const float r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = r * (1.0f / 5040) + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1;
  p = p * r + 1;
  return p * wf__slice_float((n + 127) << 23);
}
static inline WF__HD float wf__sigmoid(float x) { return 1.0f / (1.0f + wf__exp(-1.0f * x)); }
static inline WF__HD float wf__tanh(float x) { return 2.0f / (1.0f + wf__exp(-2.0f * x)) - 1.0f; }

/* ln x of a normal number: x = 2^n m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh s with
 * s = (m - 1) / (m + 1). */
static inline WF__HD float wf__ln(float x) {
  const uint32_t bits = wf__slice_bits(x);
  const int32_t n = (int32_t)(bits - 0x3f3504f3u) >> 23;
  const float m = wf__slice_float(bits - ((uint32_t)n << 23));
  const float f = m - 1.0f, s = f / (2.0f + f), z = s * s, whole = (float)n;
  float p = z * (2.0f / 9) + 2.0f / 7;
  p = p * z + 2.0f / 5;
  p = p * z + 2.0f / 3;
  /* ln m = f - s (f - z p'), without a loss of digits where f is small */
  const float half = 0.5f * f * f;
  const float tail = s * (half + p * z);
  return whole * 0.693359375f - ((half - (tail + whole * -2.12194440e-4f)) - f);
}

#endif
