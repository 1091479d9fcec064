/* grid.cuh - thread indices, launches, and grid-stride loops. */
#ifndef WF_CUDA_DEVICE_GRID_CUH
#define WF_CUDA_DEVICE_GRID_CUH

#include <stdint.h>

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "cuda/device/cooperative_launch.cuh"
#include "cuda/device/ptx.cuh"

typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned long long ull;

enum { THREADS = 256, LANES = 32, MAX_BLOCKS = 8192 };
#define ALL_LANES 0xffffffffu

__device__ inline u64 this_thread() { return (u64)blockIdx.x * THREADS + threadIdx.x; }
__device__ inline u64 num_threads() { return (u64)gridDim.x * THREADS; }
__device__ inline u32 this_lane() { return threadIdx.x % LANES; }

inline unsigned blocks_for(u64 count) {
  u64 wanted = (count + THREADS - 1) / THREADS;
  return (unsigned)(wanted < 1 ? 1 : wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS);
}
#define LAUNCH(kernel, count, stream, ...) \
  ((int)WF__LAUNCH(kernel, blocks_for(count), THREADS, 0, stream, __VA_ARGS__))

#define FOR_ALL(i, count) for (u64 i = this_thread(); i < (count); i += num_threads())

/* The owner of an item, if owner k has the items off[k] .. off[k + 1] - 1. */
template <class T>
__device__ u64 owner_of(const T *off, u64 num_owners, u64 item) {
  u64 low = 0, high = num_owners;
  while (high - low > 1) {
    u64 middle = (low + high) / 2;
    if (off[middle] <= item)
      low = middle;
    else
      high = middle;
  }
  return low;
}

enum { MANY_ARCS = 64 };

/* Calls work.visit for the states list[begin .. end). One lane visits a state; the whole warp
 * visits a state of more than MANY_ARCS arcs. `list` NULL: the states begin .. end - 1, in
 * descending order. */
template <class Work>
__device__ void for_states(const u32 *list, u64 begin, u64 end, const Work &work) {
  u64 stride = num_threads(), base = begin + this_thread() / LANES * LANES;
  for (; base < end; base += stride) {
    u64 k = base + this_lane();
    u32 state = k >= end ? 0 : list != nullptr ? __ldcg(&list[k]) : (u32)(begin + end - 1 - k);
    bool many = k < end && work.size(state) > MANY_ARCS;
    if (k < end && !many) work.visit(state, 0, 1);
    for (u32 mask = __ballot_sync(ALL_LANES, many); mask != 0; mask &= mask - 1)
      work.visit(__shfl_sync(ALL_LANES, state, __ffs((int)mask) - 1), this_lane(), LANES);
  }
}

#endif
