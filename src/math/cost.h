/* cost.h - arithmetic on costs: log-add, conversion to the stored float, and an order-preserving
 * map from floats to integers.
 *
 * Results must agree bit for bit on every backend, so files that include this are compiled without
 * fused multiply-add (-ffp-contract=off, -fmad=false). */
#ifndef WF_MATH_COST_H
#define WF_MATH_COST_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "math/hash.h"

/* -log(e^-a + e^-b); +infinity is the semiring's Zero. */
static inline WF__HD double wf__log_add(double a, double b) {
  if (a == INFINITY) return b;
  if (b == INFINITY) return a;
  double low = a < b ? a : b, gap = a < b ? b - a : a - b;
  return low - log1p(exp(-gap));
}

/* Converts a cost to its stored form: a cost outside the range of float becomes the nearest valid
 * one. */
static inline WF__HD float wf__cost_to_float(double cost) {
  return cost > FLT_MAX ? INFINITY : cost < -FLT_MAX ? -FLT_MAX : (float)cost;
}

/* The cost of a base-10 logarithm of a probability, such as those of ARPA files. + 0 turns -0 into
 * 0. */
static inline float wf__cost_of_log10(double log10p) { return (float)(-M_LN10 * log10p) + 0.0f; }

/* a < b as floats (no NaN) <=> ordered(a) < ordered(b) as integers; -0.0 sorts just below +0.0. */
static inline WF__HD uint32_t wf__ordered_cost(float cost) {
  uint32_t bits;
  memcpy(&bits, &cost, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
static inline float wf__cost_of_ordered(uint32_t ordered) {
  uint32_t bits = ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered;
  float cost;
  memcpy(&cost, &bits, sizeof cost);
  return cost;
}

/* Sorts as the score does, from high to low. No NaN. */
static inline uint64_t wf__descending_score(double score) {
  uint64_t bits;
  memcpy(&bits, &score, sizeof bits);
  return bits >> 63 ? bits : ~bits & INT64_MAX;
}
static inline double wf__score_of_descending(uint64_t descending) {
  uint64_t bits = descending >> 63 ? descending : ~descending & INT64_MAX;
  double score;
  memcpy(&score, &bits, sizeof score);
  return score;
}

/* Bin of a cost, for comparison within a tolerance: bins are 1 / inverse_delta wide. With
 * inverse_delta 0 only equal costs share a bin. */
static inline WF__HD uint32_t wf__cost_bin(double inverse_delta, float cost) {
  double scaled = (double)cost * inverse_delta;
  if (inverse_delta != 0 && scaled > -1e9 && scaled < 1e9)
    return (uint32_t)(int32_t)(scaled + (scaled >= 0 ? 0.5 : -0.5));
  return wf__ordered_cost(cost);
}

#endif
