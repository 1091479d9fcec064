/* hash.h - mixing functions shared by CPU and GPU tables. */
#ifndef WF_MATH_HASH_H
#define WF_MATH_HASH_H

#include <stdint.h>

#if defined(__CUDACC__)
#define WF__HD __host__ __device__
#else
#define WF__HD
#endif

/* Finaliser of MurmurHash3 (64 bits): every input bit affects every output bit. */
static inline WF__HD uint64_t wf__mix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

/* Cheap hash of a 64-bit key to a slot of a table of 2^bits slots (Fibonacci hashing). */
static inline WF__HD uint32_t wf__spread64(uint64_t x, int bits) {
  return (uint32_t)((x * 0x9e3779b97f4a7c15ULL) >> (64 - bits));
}

static inline WF__HD uint64_t wf__hash_combine(uint64_t seed, uint64_t value) {
  return wf__mix64(seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2)));
}

#endif
