/* fake_kernels.h - CUDA's words for src/cuda/fstops/ops_kernels.cu and sparse_kernels.cu where a
 * C++ compiler takes it: a grid is one thread, a warp one lane. */
#ifndef FAKE_KERNELS_H
#define FAKE_KERNELS_H

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "warpfst_all.h"

#define __global__
#define __device__
enum { cudaSuccess = 0, LANES = 1 };
#define ALL_LANES 1u
#define LAUNCH(kernel, count, stream, ...) ((void)(count), (void)(stream), kernel(__VA_ARGS__), 0)

static uint64_t this_thread() { return 0; }
static uint64_t num_threads() { return 1; }
static uint32_t this_lane() { return 0; }
static void grid_sync() {}
static void __syncthreads() {}
#define WF__SHARED(type, name) type name

template <class T>
static T __ldcg(const T *at) {
  return *at;
}
template <class T>
static T __shfl_sync(uint32_t, T value, int) {
  return value;
}
template <class T>
static T __shfl_xor_sync(uint32_t, T value, uint32_t) {
  return value;
}
static uint32_t __ballot_sync(uint32_t, bool value) { return value; }
static int __ffs(int bits) { return __builtin_ffs(bits); }
static int __popc(uint32_t bits) { return __builtin_popcount(bits); }
static uint32_t atomicExch(uint32_t *at, uint32_t value) {
  std::swap(*at, value);
  return value;
}
static uint32_t atomicAdd(uint32_t *at, uint32_t value) { return (*at += value) - value; }
static double atomicAdd(double *at, double value) { return (*at += value) - value; }
static uint32_t atomicSub(uint32_t *at, uint32_t value) { return (*at -= value) + value; }
static unsigned long long atomicMin(unsigned long long *at, unsigned long long value) {
  return *at = std::min(*at, value);
}
static unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
  return (*at += value) - value;
}
static unsigned long long atomicCAS(unsigned long long *at, unsigned long long old,
                                    unsigned long long value) {
  unsigned long long was = *at;
  return was == old ? *at = value, was : was;
}
static uint32_t atomicMin(uint32_t *at, uint32_t value) { return *at = std::min(*at, value); }
static uint32_t atomicMax(uint32_t *at, uint32_t value) { return *at = std::max(*at, value); }
static uint32_t atomicCAS(uint32_t *at, uint32_t old, uint32_t value) {
  uint32_t was = *at;
  return was == old ? *at = value, was : was;
}
static uint32_t atomicOr(uint32_t *at, uint32_t value) { return *at |= value; }
static uint32_t warp_or(uint32_t value) { return value; }
static double __longlong_as_double(long long bits) {
  double value;
  return memcpy(&value, &bits, 8), value;
}
static long long __double_as_longlong(double value) {
  long long bits;
  return memcpy(&bits, &value, 8), bits;
}

/* In every program of kernels; the linker keeps one. */
extern "C" __attribute__((weak)) int wf__ops_sort(const uint32_t *keys, uint32_t *keys_out,
                                                  const uint32_t *index, uint32_t *index_out,
                                                  uint64_t count, int key_bits, void *scratch,
                                                  size_t *scratch_bytes, void *) {
  if (scratch == nullptr) return *scratch_bytes = 1, 0;
  std::vector<uint64_t> order(count);
  uint32_t mask = key_bits >= 32 ? ~0u : (1u << key_bits) - 1;
  for (uint64_t i = 0; i < count; i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint64_t x, uint64_t y) { return (keys[x] & mask) < (keys[y] & mask); });
  for (uint64_t i = 0; i < count; i++) keys_out[i] = keys[order[i]], index_out[i] = index[order[i]];
  return 0;
}
extern "C" __attribute__((weak)) int wf__ops_scan(const uint32_t *in, uint32_t *out, uint64_t count,
                                                  void *scratch, size_t *scratch_bytes, void *) {
  if (scratch == nullptr) return *scratch_bytes = 1, 0;
  uint32_t sum = 0;
  for (uint64_t i = 0; i < count; i++) out[i] = sum, sum += in[i];
  return 0;
}

extern "C" __attribute__((weak)) int wf__sparse_sort(const uint64_t *in, uint64_t *out,
                                                     uint64_t count, int key_bits, void *scratch,
                                                     size_t *scratch_bytes, void *) {
  if (scratch == nullptr) return *scratch_bytes = 1, 0;
  std::copy(in, in + count, out);
  uint64_t mask = key_bits >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << key_bits) - 1;
  std::stable_sort(out, out + count,
                   [&](uint64_t x, uint64_t y) { return (x & mask) < (y & mask); });
  return 0;
}
extern "C" __attribute__((weak)) int wf__ops_scan64(const uint64_t *in, uint64_t *out,
                                                    uint64_t count, void *scratch,
                                                    size_t *scratch_bytes, void *) {
  if (scratch == nullptr) return *scratch_bytes = 1, 0;
  uint64_t sum = 0, value;
  for (uint64_t i = 0; i < count; i++) value = in[i], out[i] = sum, sum += value;
  return 0;
}

extern "C" __attribute__((weak)) int wf__rmepsilon_sort(const uint64_t *keys, uint64_t *keys_out,
                                                        const uint32_t *values,
                                                        uint32_t *values_out, uint64_t count,
                                                        void *scratch, size_t *scratch_bytes,
                                                        void *) {
  if (scratch == nullptr) return *scratch_bytes = 1, 0;
  std::vector<uint64_t> order(count);
  for (uint64_t i = 0; i < count; i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint64_t x, uint64_t y) { return keys[x] < keys[y]; });
  for (uint64_t i = 0; i < count; i++)
    keys_out[i] = keys[order[i]], values_out[i] = values[order[i]];
  return 0;
}
extern "C" __attribute__((weak)) int wf__determinize_sort(const uint64_t *keys, uint64_t *keys_out,
                                                          const uint32_t *values,
                                                          uint32_t *values_out, uint64_t count, int,
                                                          void *scratch, size_t *scratch_bytes,
                                                          void *stream) {
  return wf__rmepsilon_sort(keys, keys_out, values, values_out, count, scratch, scratch_bytes,
                            stream); /* there is nothing above key_bits */
}

#endif
