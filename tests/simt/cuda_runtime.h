/* cuda_runtime.h - the CUDA keywords, types and device functions that src/cuda/ uses. With it, a
 * C++ compiler builds the kernels for the imitated GPU of simt.h. */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simt.h"
extern "C" {
#include "cuda_runtime_api.h" /* of fake_cuda */
}

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ /* host headers use this word within attributes */
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) {
  return {x, y};
}

/* --- numbers ----------------------------------------------------------------------------- */

template <class A, class B>
static inline std::common_type_t<A, B> min(A a, B b) {
  return std::min<std::common_type_t<A, B>>(a, b);
}
template <class A, class B>
static inline std::common_type_t<A, B> max(A a, B b) {
  return std::max<std::common_type_t<A, B>>(a, b);
}
template <class To, class From>
static inline To simt_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "both types must have the same size");
  To to;
  return memcpy(&to, &from, sizeof to), to;
}
static inline unsigned __float_as_uint(float value) { return simt_bits<unsigned>(value); }
static inline int __float_as_int(float value) { return simt_bits<int>(value); }
static inline float __uint_as_float(unsigned value) { return simt_bits<float>(value); }
static inline float __int_as_float(int value) { return simt_bits<float>(value); }
static inline long long __double_as_longlong(double value) { return simt_bits<long long>(value); }
static inline double __longlong_as_double(long long value) { return simt_bits<double>(value); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
static inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
static inline int __ffs(int bits) { return __builtin_ffs(bits); }
static inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
static inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz((unsigned)bits); }
static inline int __clzll(long long bits) {
  return bits == 0 ? 64 : __builtin_clzll((unsigned long long)bits);
}

/* --- memory ------------------------------------------------------------------------------ */

template <class T>
static inline T __ldg(const T *at) {
  return *at;
}
template <class T>
static inline T __ldcg(const T *at) {
  simt_touch();
  return *at;
}
template <class T>
static inline T __ldcs(const T *at) {
  return *at;
}
template <class T>
static inline void __stcg(T *at, std::common_type_t<T> value) {
  simt_touch();
  *at = value;
}
template <class T>
static inline void __stcs(T *at, std::common_type_t<T> value) {
  *at = value;
}
/* Advances with every call, and with every switch to another thread. */
static inline long long clock64() { return (long long)(++simt.num_looks + simt.num_switches); }
static inline void __threadfence() { simt_touch(); }
static inline void __threadfence_block() { simt_touch(); }
static inline void __threadfence_system() { simt_touch(); }
static inline size_t __cvta_generic_to_shared(const void *pointer) {
  return simt_shared_address(pointer);
}

/* Real GPUs lose updates of 64-bit minima in another block's shared memory
 * (docs/engineering/gpu.md), so these are errors here. */
template <class T>
static inline void simt_touch_atomic(const T *at, bool ordered) {
  if (ordered && sizeof(T) == 8 && simt_is_foreign_shared(at))
    simt_fail(
        simt_place{},
        "a 64-bit minimum or maximum in another block's shared memory is not atomic on real GPUs");
  if ((uintptr_t)at % sizeof(T) != 0) simt_fail(simt_place{}, "a misaligned atomic");
  simt_touch();
}
#define SIMT_ATOMIC(name, ordered, expression)               \
  template <class T>                                         \
  static inline T name(T *at, std::common_type_t<T> value) { \
    simt_touch_atomic(at, ordered);                          \
    const T was = *(volatile T *)at;                         \
    *(volatile T *)at = (T)(expression);                     \
    return was;                                              \
  }
SIMT_ATOMIC(atomicAdd, false, was + value)
SIMT_ATOMIC(atomicSub, false, was - value)
SIMT_ATOMIC(atomicExch, false, value)
SIMT_ATOMIC(atomicAnd, false, was &value)
SIMT_ATOMIC(atomicOr, false, was | value)
SIMT_ATOMIC(atomicXor, false, was ^ value)
SIMT_ATOMIC(atomicMin, true, value < was ? value : was)
SIMT_ATOMIC(atomicMax, true, value > was ? value : was)
template <class T>
static inline T atomicCAS(T *at, std::common_type_t<T> seen, std::common_type_t<T> value) {
  simt_touch_atomic(at, false);
  const T was = *(volatile T *)at;
  if (was == seen) *(volatile T *)at = value;
  return was;
}

/* --- warps and blocks -------------------------------------------------------------------- */

#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <class T>
static inline T simt_shuffle(unsigned mask, T value, unsigned source, simt_place place) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle takes 4 or 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = simt_exchange(SIMT_SHUFFLE, mask, bits, source, place);
  return memcpy(&value, &bits, sizeof value), value;
}
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_HERE) {
  const unsigned lane = simt.current->lane;
  return simt_shuffle(mask, value, (lane & ~(width - 1u)) | ((unsigned)source & (width - 1u)),
                      {file, line});
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, SIMT_HERE) {
  const unsigned lane = simt.current->lane, source = lane ^ (unsigned)bits;
  return simt_shuffle(mask, value, source < (lane | (width - 1u)) + 1 ? source : lane,
                      {file, line});
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_HERE) {
  const unsigned lane = simt.current->lane, rank = lane & (width - 1u);
  return simt_shuffle(mask, value, rank >= by ? lane - by : lane, {file, line});
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_HERE) {
  const unsigned lane = simt.current->lane, rank = lane & (width - 1u);
  return simt_shuffle(mask, value, rank + by < (unsigned)width ? lane + by : lane, {file, line});
}
static inline unsigned __ballot_sync(unsigned mask, int value, SIMT_HERE) {
  return (unsigned)simt_exchange(SIMT_BALLOT, mask, value != 0, 0, {file, line});
}
static inline int __any_sync(unsigned mask, int value, SIMT_HERE) {
  return (int)simt_exchange(SIMT_ANY, mask, value != 0, 0, {file, line});
}
static inline int __all_sync(unsigned mask, int value, SIMT_HERE) {
  return (int)simt_exchange(SIMT_ALL, mask, value != 0, 0, {file, line});
}
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value, SIMT_HERE) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return (unsigned)simt_exchange(SIMT_MATCH_ANY, mask, bits, 0, {file, line});
}
static inline unsigned __reduce_add_sync(unsigned mask, unsigned value, SIMT_HERE) {
  return (unsigned)simt_exchange(SIMT_ADD, mask, value, 0, {file, line});
}
static inline unsigned __reduce_min_sync(unsigned mask, unsigned value, SIMT_HERE) {
  return (unsigned)simt_exchange(SIMT_MIN, mask, value, 0, {file, line});
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned value, SIMT_HERE) {
  return (unsigned)simt_exchange(SIMT_MAX, mask, value, 0, {file, line});
}
static inline unsigned __reduce_and_sync(unsigned mask, unsigned value, SIMT_HERE) {
  return (unsigned)simt_exchange(SIMT_AND, mask, value, 0, {file, line});
}
static inline unsigned __reduce_or_sync(unsigned mask, unsigned value, SIMT_HERE) {
  return (unsigned)simt_exchange(SIMT_OR, mask, value, 0, {file, line});
}
static inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, SIMT_HERE) {
  return (unsigned)simt_exchange(SIMT_XOR, mask, value, 0, {file, line});
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_HERE) {
  (void)simt_exchange(SIMT_SYNC, mask, 0, 0, {file, line});
}
static inline __attribute__((always_inline)) unsigned __activemask(SIMT_HERE) {
  return simt_active_mask({file, line});
}
static inline void __syncthreads(SIMT_HERE) { (void)simt_barrier(SIMT_BLOCK, 0, {file, line}); }
static inline int __syncthreads_count(int value, SIMT_HERE) {
  return (int)simt_barrier(SIMT_BLOCK, value != 0, {file, line});
}
static inline int __syncthreads_or(int value, SIMT_HERE) {
  return simt_barrier(SIMT_BLOCK, value != 0, {file, line}) != 0;
}
static inline int __syncthreads_and(int value, SIMT_HERE) {
  return simt_barrier(SIMT_BLOCK, value == 0, {file, line}) == 0;
}

/* --- launching --------------------------------------------------------------------------- */

struct dim3 : simt_uint3 {
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : simt_uint3{a, b, c} {}
};
enum cudaLaunchAttributeID {
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  union {
    int cooperative;
    struct {
      unsigned x, y, z;
    } clusterDim;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute *attrs = nullptr;
  unsigned numAttrs = 0;
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaFuncAttributePreferredSharedMemoryCarveout
};

template <class... P>
struct simt_call : simt_launch {
  void (*kernel)(P...);
  std::tuple<std::decay_t<P>...> arguments;
};

/* Enqueues the kernel on the stream. Its arguments are copied now. */
template <class... P, class... A>
static cudaError_t simt_enqueue(const char *name, const cudaLaunchConfig_t &config,
                                void (*kernel)(P...), A &&...arguments) {
  typedef simt_call<P...> call_type;
  static_assert((std::is_trivially_copyable_v<std::decay_t<P>> && ...),
                "a kernel's arguments must be trivially copyable");
  call_type *call =
      new (malloc(sizeof(call_type))) call_type{{}, kernel, {std::forward<A>(arguments)...}};
  call->call = [](simt_launch *self) {
    std::tuple<std::decay_t<P>...> own =
        static_cast<call_type *>(self)->arguments; /* each thread has its own copy */
    std::apply(static_cast<call_type *>(self)->kernel, own);
  };
  call->name = name;
  call->grid = config.gridDim;
  call->block = config.blockDim;
  call->shared_bytes = ((uint32_t)config.dynamicSmemBytes + 15) & ~15u;
  call->cluster = 1;
  for (unsigned i = 0; i < config.numAttrs; i++) {
    if (config.attrs[i].id == cudaLaunchAttributeClusterDimension)
      call->cluster = config.attrs[i].val.clusterDim.x;
    if (config.attrs[i].id == cudaLaunchAttributeCooperative)
      call->cooperative = config.attrs[i].val.cooperative != 0;
  }
  return fake_enqueue(config.stream, simt_run, static_cast<simt_launch *>(call));
}
#define cudaLaunchKernelEx(config, kernel, ...) \
  simt_enqueue(#kernel, *(config), kernel, __VA_ARGS__)

/* The limit of shared memory applies to all threads of the process. Another thread may be about to
 * launch the kernel, so the limit of a kernel must never change. */
template <class F>
static cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute attribute, int value) {
  return attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
                 (value > SIMT_MOST_SHARED || !simt_keeps_limit((const void *)kernel, value))
             ? cudaErrorInvalidValue
             : fake_call();
}
template <class F>
static cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *, int threads,
                                                                 size_t shared_bytes) {
  *blocks = shared_bytes > SIMT_MOST_SHARED                        ? 0
            : shared_bytes > SIMT_MOST_SHARED / 2 || threads > 512 ? 1
                                                                   : 2;
  return fake_call();
}
template <class F>
static cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, F *,
                                                  const cudaLaunchConfig_t *config) {
  *clusters = config->dynamicSmemBytes > SIMT_MOST_SHARED
                  ? 0
                  : fake_gpus.num_processors /
                        (int)(config->numAttrs > 0 ? config->attrs[0].val.clusterDim.x : 1);
  return fake_call();
}

#define WF__PAIR_THREADS 64 /* replaces pair_threads of compose_pairs.cuh: 512 or 1024 */

/* --- what src/cuda/device/ptx.cuh has for real GPUs -------------------------------------- */

#define WF_CUDA_DEVICE_PTX_CUH
#include "cuda/device/gpu_profile.h"
#define WF__SHARED(type, name)   \
  static uint32_t name##_offset; \
  type &name = *(type *)simt_static_shared(&name##_offset, sizeof(type), alignof(type))
#define WF__DYNAMIC_SHARED(type, name) type *const name = (type *)simt_dynamic_shared()
#define WF__LAUNCH(kernel, grid, block, shared_bytes, stream_, ...)                                \
  simt_enqueue(#kernel,                                                                            \
               cudaLaunchConfig_t{dim3(grid), dim3(block), shared_bytes, (cudaStream_t)(stream_)}, \
               kernel, __VA_ARGS__)

template <bool CLUSTER>
struct words {
  template <class T>
  static T get(uint32_t address) {
    simt_touch();
    return *(volatile T *)simt_at_address(address, sizeof(T), !CLUSTER);
  }
  template <class T>
  static T exchange(uint32_t address, T seen, T value) {
    simt_touch();
    volatile T *at = (volatile T *)simt_at_address(address, sizeof(T), !CLUSTER);
    const T was = *at;
    if (was == seen) *at = value;
    return was;
  }
  static uint32_t load(uint32_t address) { return get<uint32_t>(address); }
  static unsigned long long load64(uint32_t address) { return get<unsigned long long>(address); }
  static uint4 load128(uint32_t address) {
    simt_touch();
    return *(const uint4 *)simt_at_address(address, sizeof(uint4), !CLUSTER);
  }
  static uint32_t swap(uint32_t address, uint32_t seen, uint32_t value) {
    return exchange(address, seen, value);
  }
  static unsigned long long swap64(uint32_t address, unsigned long long seen,
                                   unsigned long long value) {
    return exchange(address, seen, value);
  }
};
typedef words<false> own_words;

static inline uint32_t load_own16(uint32_t address) { return own_words::get<uint16_t>(address); }
static inline void store_own_pair(uint32_t address, uint32_t x, float y) {
  *(float2 *)simt_at_address(address, 8, true) = {simt_bits<float>(x), y};
}
static inline ulonglong2 load_global128(const ulonglong2 *at) { return __ldcg(at); }
static inline void count_turn(uint32_t *turns, const char *what) {
  if (++*turns < 1u << 26) return;
  fprintf(stderr, "a thread waits for %s\n", what);
  abort();
}
static inline uint32_t read_block_index() { return blockIdx.x; }
static inline uint32_t lanes_before() { return (1u << (threadIdx.x & 31)) - 1; }
static inline uint32_t lanes_up_to() { return (2u << (threadIdx.x & 31)) - 1; }
static inline uint32_t cluster_rank() { return simt.current->block->rank; }
static inline void sync_cluster(SIMT_HERE) { (void)simt_barrier(SIMT_CLUSTER, 0, {file, line}); }
template <class T>
static inline T *shared_of_rank(T *own, uint32_t rank) {
  return (T *)simt_shared_of(own, rank);
}
static inline uint32_t warp_sum(uint32_t value, SIMT_HERE) {
  return (uint32_t)simt_exchange(SIMT_ADD, ~0u, value, 0, {file, line});
}
static inline uint32_t warp_min(uint32_t value, SIMT_HERE) {
  return (uint32_t)simt_exchange(SIMT_MIN, ~0u, value, 0, {file, line});
}
static inline uint32_t warp_max(uint32_t value, SIMT_HERE) {
  return (uint32_t)simt_exchange(SIMT_MAX, ~0u, value, 0, {file, line});
}
static inline uint32_t warp_or(uint32_t value, SIMT_HERE) {
  return (uint32_t)simt_exchange(SIMT_OR, ~0u, value, 0, {file, line});
}
static inline uint32_t address_of_rank(uint32_t address, uint32_t rank) {
  return simt_address_of_rank(address, rank);
}
/* cluster_ptx.cuh */
#define WF_CUDA_DEVICE_CLUSTER_PTX_CUH
template <bool CLUSTER>
static inline void set_shared_bits(uint32_t address, uint32_t bits) {
  simt_touch();
  *(volatile uint32_t *)simt_at_address(address, 4, !CLUSTER) |= bits;
}
static inline void store_of_rank(uint32_t address, uint32_t value) {
  simt_touch();
  *(volatile uint32_t *)simt_at_address(address, 4, false) = value;
}
/* Tensor cores. A lane puts what it has into a table for the others, and two tables take turns: who
 * writes to one has seen that all have read it the time before. */
struct simt_lane_data {
  const void *row;
  uint32_t a[3][4], b[3][4];
};
static simt_lane_data simt_tables[2][SIMT_MOST_HERE * SIMT_MOST_THREADS / 32][32];
static uint8_t simt_turns[SIMT_MOST_HERE * SIMT_MOST_THREADS / 32][32];
static inline simt_lane_data *simt_next_table() {
  uint8_t *turn = &simt_turns[simt.current->warp][simt.current->lane];
  return simt_tables[(*turn)++ % 2][simt.current->warp];
}
static inline void load_matrices(uint32_t (&to)[4], const void *row, SIMT_HERE) {
  const unsigned lane = simt.current->lane;
  simt_lane_data *table = simt_next_table();
  if ((uintptr_t)row % 16 != 0) simt_fail({file, line}, "a row of a matrix is not aligned");
  table[lane].row = row;
  simt_exchange(SIMT_SYNC, ~0u, 0, 0, {file, line});
  for (unsigned i = 0; i < 4; i++)
    memcpy(&to[i], (const char *)table[i * 8 + lane / 4].row + lane % 4 * 4, 4);
}
static inline int simt_byte(uint32_t word, unsigned byte, bool has_sign) {
  return has_sign ? (int8_t)(word >> (8 * byte)) : (int)(uint8_t)(word >> (8 * byte));
}
static inline void multiply_digits(int (&sum)[5][4], const uint32_t (&a)[3][4],
                                   const uint32_t (&b)[3][4], uint32_t at, SIMT_HERE) {
  const unsigned lane = simt.current->lane;
  simt_lane_data *table = simt_next_table();
  memcpy(table[lane].a, a, sizeof a);
  memcpy(table[lane].b, b, sizeof b);
  simt_exchange(SIMT_SYNC, ~0u, 0, 0, {file, line});
  for (unsigned i = 0; i < 4; i++) /* of two rows of a and two of b */
    for (unsigned word = 0; word < 8; word++) {
      const simt_lane_data *x = &table[lane / 4 * 4 + word % 4],
                           *y = &table[(lane % 4 * 2 + i % 2) * 4 + word % 4];
      for (unsigned p = 0; p < 3; p++) {
        const uint32_t of_a = x->a[p][i / 2 + word / 4 * 2];
        for (unsigned q = 0; q < 3 && of_a != 0; q++)
          for (unsigned byte = 0; byte < 4; byte++)
            sum[p + q][i] +=
                simt_byte(of_a, byte, p == 0) * simt_byte(y->b[q][at + word / 4], byte, q == 0);
      }
    }
}
static inline float half_to_float(unsigned short bits) { return (float)simt_bits<_Float16>(bits); }

#endif
