/* score_types.h - scores in the types "f32", "f16" and "bf16" of bench_decode's runs. */
#ifndef BENCH_SCORE_TYPES_H
#define BENCH_SCORE_TYPES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "warpfst_all.h"

static inline wf_dtype dtype_of(const char *dtype) {
  if (strcmp(dtype, "f32") == 0) return WF_FLOAT32;
  return strcmp(dtype, "f16") == 0 ? WF_FLOAT16 : WF_BFLOAT16;
}

static inline size_t element_bytes(const char *dtype) { return strcmp(dtype, "f32") == 0 ? 4 : 2; }

static inline uint16_t to_bfloat16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Rounds to nearest, ties to even; values below 2^-14 are multiples of 2^-24. */
static inline uint16_t to_float16(float x) {
  int exponent;
  float size = fabsf(x);
  uint16_t sign = signbit(x) ? 0x8000 : 0;
  if (size >= 65520) return sign | 0x7c00;
  if (size < 0x1p-14f) return sign | (uint16_t)nearbyintf(size * 0x1p24f);
  float fraction = frexpf(size, &exponent);
  return sign | (uint16_t)(((exponent + 14) << 10) + (int)nearbyintf(fraction * 2048) - 1024);
}

static inline void convert(const float *from, void *to, size_t size, const char *dtype) {
  if (strcmp(dtype, "f32") == 0) memcpy(to, from, size * sizeof *from);
  for (size_t i = 0; i < size && strcmp(dtype, "bf16") == 0; i++)
    ((uint16_t *)to)[i] = to_bfloat16(from[i]);
  for (size_t i = 0; i < size && strcmp(dtype, "f16") == 0; i++)
    ((uint16_t *)to)[i] = to_float16(from[i]);
}

#endif
