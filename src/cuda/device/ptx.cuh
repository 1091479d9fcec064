/* ptx.cuh - basic operations of the kernels: instructions without a CUDA C++ function, shared
 * memory, launches. Everything that only nvcc can compile is here, so that tests/simt/ can replace
 * it by an emulated GPU. */
#ifndef WF_CUDA_DEVICE_PTX_CUH
#define WF_CUDA_DEVICE_PTX_CUH

#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <stdint.h>
#ifdef WF__BOUNDED_WAITS
#include <stdio.h>
#endif

#include "cuda/device/gpu_profile.h"

/* Declares a variable in shared memory; and an array in the dynamic shared memory, whose size is
 * given at launch. */
#define WF__SHARED(type, name) __shared__ type name
#define WF__DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
/* Launches a kernel and returns the error of this launch; an earlier error is cleared first. */
#define WF__LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  ((void)cudaGetLastError(),                                       \
   kernel<<<grid, block, shared_bytes, (cudaStream_t)(stream)>>>(__VA_ARGS__), cudaGetLastError())

/* 32-bit words of shared memory by address, for the inner loops: in a cluster, access by name would
 * compute the base address of the block's shared memory each time. CLUSTER: the address may be in
 * any block of the cluster. These operations keep their order; only barriers order them with other
 * accesses. */
template <bool CLUSTER>
struct words {
  static __device__ __forceinline__ uint32_t load(uint32_t address) {
    uint32_t value;
    if (CLUSTER)
      asm volatile("ld.volatile.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address));
    else
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"(address));
    return value;
  }
  static __device__ __forceinline__ uint4 load128(uint32_t address) {
    uint4 v;
    if (CLUSTER)
      asm volatile("ld.volatile.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(address));
    else
      asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                   : "r"(address));
    return v;
  }
  static __device__ __forceinline__ unsigned long long load64(uint32_t address) {
    unsigned long long value;
    if (CLUSTER)
      asm volatile("ld.volatile.shared::cluster.u64 %0, [%1];" : "=l"(value) : "r"(address));
    else
      asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(value) : "r"(address));
    return value;
  }
  static __device__ __forceinline__ uint32_t swap(uint32_t address, uint32_t seen, uint32_t value) {
    uint32_t was;
    if (CLUSTER)
      asm volatile("atom.relaxed.cluster.shared::cluster.cas.b32 %0, [%1], %2, %3;"
                   : "=r"(was)
                   : "r"(address), "r"(seen), "r"(value));
    else
      asm volatile("atom.relaxed.cta.shared.cas.b32 %0, [%1], %2, %3;"
                   : "=r"(was)
                   : "r"(address), "r"(seen), "r"(value));
    return was;
  }
  static __device__ __forceinline__ unsigned long long swap64(uint32_t address,
                                                              unsigned long long seen,
                                                              unsigned long long value) {
    unsigned long long was;
    if (CLUSTER)
      asm volatile("atom.relaxed.cluster.shared::cluster.cas.b64 %0, [%1], %2, %3;"
                   : "=l"(was)
                   : "r"(address), "l"(seen), "l"(value));
    else
      asm volatile("atom.relaxed.cta.shared.cas.b64 %0, [%1], %2, %3;"
                   : "=l"(was)
                   : "r"(address), "l"(seen), "l"(value));
    return was;
  }
};
typedef words<false> own_words;

__device__ __forceinline__ uint32_t load_own16(uint32_t address) {
  unsigned short value;
  asm volatile("ld.volatile.shared.u16 %0, [%1];" : "=h"(value) : "r"(address));
  return value;
}
__device__ __forceinline__ void store_own_pair(uint32_t address, uint32_t x, float y) {
  asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(x), "f"(y));
}
/* Reads two 64-bit words of global memory from the L2 cache, each word atomically, and again at
 * every call. */
__device__ __forceinline__ ulonglong2 load_global128(const ulonglong2 *at) {
  ulonglong2 v;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(at));
  return v;
}
/* A turn of a loop that waits for what another thread writes. A wait takes some hundred turns. In
 * builds with WARPFST_BOUNDED_WAITS, as the soak's, one that lasts seconds is reported and becomes
 * an error of the launch, not a kernel that never ends. */
__device__ __forceinline__ void count_turn(uint32_t *turns, const char *what) {
#ifdef WF__BOUNDED_WAITS
  if (++*turns == 1u << 26) {
    printf("block %u, thread %u waits for %s\n", blockIdx.x, threadIdx.x, what);
    __trap();
  }
#endif
}
/* The block's number in the grid, and the lanes of the warp before this one (with it). They are
 * read from the special registers at every call, since the compiler would keep a copy in local
 * memory. */
__device__ __forceinline__ uint32_t read_block_index() {
  uint32_t value;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(value));
  return value;
}
__device__ __forceinline__ uint32_t lanes_before() {
  uint32_t value;
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(value));
  return value;
}
__device__ __forceinline__ uint32_t lanes_up_to() {
  uint32_t value;
  asm volatile("mov.u32 %0, %%lanemask_le;" : "=r"(value));
  return value;
}
/* A block's rank in its cluster; the barrier of all threads of the cluster; the address in block
 * `rank` that corresponds to `own` in this block. Not called without clusters. */
#if WF__HAS_CLUSTERS
__device__ __forceinline__ uint32_t cluster_rank() {
  return cooperative_groups::this_cluster().block_rank();
}
__device__ __forceinline__ void sync_cluster() { cooperative_groups::this_cluster().sync(); }
template <class T>
__device__ __forceinline__ T *shared_of_rank(T *own, uint32_t rank) {
  return cooperative_groups::this_cluster().map_shared_rank(own, rank);
}
#else
__device__ __forceinline__ uint32_t cluster_rank() { return 0; }
__device__ __forceinline__ void sync_cluster() {}
template <class T>
__device__ __forceinline__ T *shared_of_rank(T *own, uint32_t) {
  return own;
}
#endif

/* Reduce the values of all lanes of a warp; every lane gets the result. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__device__ __forceinline__ uint32_t warp_sum(uint32_t value) {
  return __reduce_add_sync(0xffffffffu, value);
}
__device__ __forceinline__ uint32_t warp_min(uint32_t value) {
  return __reduce_min_sync(0xffffffffu, value);
}
__device__ __forceinline__ uint32_t warp_max(uint32_t value) {
  return __reduce_max_sync(0xffffffffu, value);
}
__device__ __forceinline__ uint32_t warp_or(uint32_t value) {
  return __reduce_or_sync(0xffffffffu, value);
}
#else
template <class F>
__device__ __forceinline__ uint32_t warp_reduce(uint32_t value, F f) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) value = f(value, __shfl_xor_sync(0xffffffffu, value, d));
  return value;
}
__device__ __forceinline__ uint32_t warp_sum(uint32_t value) {
  return warp_reduce(value, [](uint32_t a, uint32_t b) { return a + b; });
}
__device__ __forceinline__ uint32_t warp_min(uint32_t value) {
  return warp_reduce(value, [](uint32_t a, uint32_t b) { return min(a, b); });
}
__device__ __forceinline__ uint32_t warp_max(uint32_t value) {
  return warp_reduce(value, [](uint32_t a, uint32_t b) { return max(a, b); });
}
__device__ __forceinline__ uint32_t warp_or(uint32_t value) {
  return warp_reduce(value, [](uint32_t a, uint32_t b) { return a | b; });
}
#endif

/* The shared-memory address in block `rank` of the cluster that corresponds to `address` in this
 * block. */
__device__ __forceinline__ uint32_t address_of_rank(uint32_t address, uint32_t rank) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

__device__ __forceinline__ float half_to_float(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/* Tensor cores on bytes. Four matrices of 8 rows of 16 bytes in shared memory: lane l has the
 * address of row l % 8 of matrix l / 8, and gets bytes l % 4 * 4 .. + 3 of row l / 4 of each. */
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row))
               : "memory");
}
/* sum += a b^T of 16 rows a and 8 rows b of 32 bytes, signed or not. Of a's rows l / 4 and
 * l / 4 + 8 lane l has bytes l % 4 * 4 .. + 3, then those 16 further on; the same of b's row l / 4.
 * Its sums are of a's rows l / 4 (two) and l / 4 + 8 (two) with b's rows l % 4 * 2 and the next. */
template <bool A_SIGNED, bool B_SIGNED>
__device__ __forceinline__ void multiply_bytes(int (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define WF__MULTIPLY(types)                                                  \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." types                         \
      ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])               \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#else
#define WF__MULTIPLY_8(types, low, high, x, y)                                             \
  asm("mma.sync.aligned.m8n8k16.row.col.s32." types ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};" \
      : "+r"(low), "+r"(high)                                                              \
      : "r"(x), "r"(y))
#define WF__MULTIPLY(types)                        \
  WF__MULTIPLY_8(types, sum[0], sum[1], a[0], b0); \
  WF__MULTIPLY_8(types, sum[2], sum[3], a[1], b0); \
  WF__MULTIPLY_8(types, sum[0], sum[1], a[2], b1); \
  WF__MULTIPLY_8(types, sum[2], sum[3], a[3], b1)
#endif
  if (A_SIGNED && B_SIGNED) {
    WF__MULTIPLY("s8.s8");
  } else if (A_SIGNED) {
    WF__MULTIPLY("s8.u8");
  } else if (B_SIGNED) {
    WF__MULTIPLY("u8.s8");
  } else {
    WF__MULTIPLY("u8.u8");
  }
#undef WF__MULTIPLY
#undef WF__MULTIPLY_8
}
/* All products of three digits each, the first of which has the sign: sum[i + j] of digits i and
 * j. b: of the tile whose registers begin at `at`. */
__device__ __forceinline__ void multiply_digits(int (&sum)[5][4], const uint32_t (&a)[3][4],
                                                const uint32_t (&b)[3][4], uint32_t at) {
  multiply_bytes<true, true>(sum[0], a[0], b[0][at], b[0][at + 1]);
  multiply_bytes<true, false>(sum[1], a[0], b[1][at], b[1][at + 1]);
  multiply_bytes<true, false>(sum[2], a[0], b[2][at], b[2][at + 1]);
  multiply_bytes<false, false>(sum[3], a[1], b[2][at], b[2][at + 1]);
  multiply_bytes<false, false>(sum[4], a[2], b[2][at], b[2][at + 1]);
  multiply_bytes<false, true>(sum[1], a[1], b[0][at], b[0][at + 1]);
  multiply_bytes<false, false>(sum[2], a[1], b[1][at], b[1][at + 1]);
  multiply_bytes<false, false>(sum[3], a[2], b[1][at], b[1][at + 1]);
  multiply_bytes<false, true>(sum[2], a[2], b[0][at], b[0][at + 1]);
}

/* Tensor cores for four warps together, of GPUs of compute capability 9.0 alone: a's rows are in
 * registers as for multiply_bytes, 16 a warp; b's 64 rows in shared memory. */
#define WF__HAS_WARPGROUPS
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/* Describes 64 rows of 64 bytes in shared memory, of which STEP bytes are read, with the chunks of 16
 * bytes of eight rows exchanged by bits 1 and 2 of the row's number. */
__device__ __forceinline__ uint64_t describe_rows(const void *first) {
  return (uint64_t)2 << 62 | (uint64_t)(512 >> 4) << 32 | (uint64_t)1 << 16 |
         (((uint32_t)__cvta_generic_to_shared(first) & 0x3ffff) >> 4);
}
__device__ __forceinline__ void begin_warpgroup() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_warpgroup() {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}
/* Copies that this thread has waited for are seen by the operations of warpgroups. */
__device__ __forceinline__ void show_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
template <bool A_SIGNED, bool B_SIGNED>
__device__ __forceinline__ void multiply_rows(int (&sum)[32], const uint32_t (&a)[4], uint64_t b) {
#define WF__MULTIPLY(types)                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32." types                                 \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "          \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, " \
               "{%32, %33, %34, %35}, %36, 1;"                                                     \
               : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]),             \
                 "+r"(sum[5]), "+r"(sum[6]), "+r"(sum[7]), "+r"(sum[8]), "+r"(sum[9]),             \
                 "+r"(sum[10]), "+r"(sum[11]), "+r"(sum[12]), "+r"(sum[13]), "+r"(sum[14]),        \
                 "+r"(sum[15]), "+r"(sum[16]), "+r"(sum[17]), "+r"(sum[18]), "+r"(sum[19]),        \
                 "+r"(sum[20]), "+r"(sum[21]), "+r"(sum[22]), "+r"(sum[23]), "+r"(sum[24]),        \
                 "+r"(sum[25]), "+r"(sum[26]), "+r"(sum[27]), "+r"(sum[28]), "+r"(sum[29]),        \
                 "+r"(sum[30]), "+r"(sum[31])                                                      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
  if (A_SIGNED && B_SIGNED) {
    WF__MULTIPLY("s8.s8");
  } else if (A_SIGNED) {
    WF__MULTIPLY("s8.u8");
  } else if (B_SIGNED) {
    WF__MULTIPLY("u8.s8");
  } else {
    WF__MULTIPLY("u8.u8");
  }
#undef WF__MULTIPLY
}
#endif

#endif
