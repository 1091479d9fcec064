/* random.h - random numbers of the generated inputs: splitmix64. */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>

static inline uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}
static inline uint32_t below(uint64_t *state, uint32_t n) {
  return (uint32_t)(((next_random(state) >> 32) * (uint64_t)n) >> 32);
}
static inline float unit(uint64_t *state) { return (float)(next_random(state) >> 40) * 0x1p-24f; }

#endif
