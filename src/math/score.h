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

/* IEEE 754 binary16, exactly. */
static inline float wf__float_of_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
           fraction = half & 1023;
  if (exponent == 31) return wf__float_of_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return wf__float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float tiny = (float)fraction * 0x1p-24f; /* subnormal */
  return sign != 0 ? -tiny : tiny;
}

/* False for NaN, +infinity and values beyond 1e20. */
static inline bool wf__score_usable(float value) {
  return value <= 1e20f && (value >= -1e20f || value == -INFINITY);
}

static inline float wf__score_at(const wf_scores *scores, int64_t frame, int32_t column) {
  int64_t i = frame * scores->stride + column;
  if (scores->dtype == WF_FLOAT32) return ((const float *)scores->data)[i];
  uint16_t bits = ((const uint16_t *)scores->data)[i];
  return scores->dtype == WF_FLOAT16 ? wf__float_of_half(bits)
                                     : wf__float_of_bits((uint32_t)bits << 16);
}

#endif
