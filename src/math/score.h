/* score.h - reads a score of any dtype as float32. */
#ifndef WF_MATH_SCORE_H
#define WF_MATH_SCORE_H

#include <math.h>
#include <string.h>

#include "warpfst_all.h"

static inline float wf__float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t wf__bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* IEEE 754 binary16, exactly. Without branches, so that the compiler makes vectors of it, and
 * without subnormal float32 numbers, which a program may have turned off. */
static inline float wf__float_of_half(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16, bits = (uint32_t)(half & 0x7fff) << 13,
                 normal = bits + (bits < 31u << 23 ? 112u << 23 : 224u << 23),
                 tiny = wf__bits_of_float(wf__float_of_bits(bits + (113u << 23)) - 0x1p-14f),
                 is_tiny = 0u - (bits < 1u << 23);
  return wf__float_of_bits(sign | (tiny & is_tiny) | (normal & ~is_tiny));
}

/* False for NaN, +infinity and values beyond 1e20. */
static inline bool wf__score_usable(float value) {
  return value <= 1e20f && (value >= -1e20f || value == -INFINITY);
}

/* wf__score_usable of all, likewise without branches. */
static inline bool wf__scores_usable(const float *values, int32_t count) {
  const uint32_t largest = wf__bits_of_float(1e20f), minus_infinity = wf__bits_of_float(-INFINITY);
  uint32_t bad = 0;
  for (int32_t i = 0; i < count; i++) {
    const uint32_t bits = wf__bits_of_float(values[i]);
    bad |= (uint32_t)((int32_t)(bits & INT32_MAX) > (int32_t)largest) & (bits != minus_infinity);
  }
  return bad == 0;
}

static inline float wf__score_at(const wf_scores *scores, int64_t frame, int32_t column) {
  int64_t i = frame * scores->stride + column;
  if (scores->dtype == WF_FLOAT32) return ((const float *)scores->data)[i];
  uint16_t bits = ((const uint16_t *)scores->data)[i];
  return scores->dtype == WF_FLOAT16 ? wf__float_of_half(bits)
                                     : wf__float_of_bits((uint32_t)bits << 16);
}

#endif
