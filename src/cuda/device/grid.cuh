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

#ifndef WF__HUGE_ARCS /* tests set less */
#define WF__HUGE_ARCS 512
#endif
enum { MANY_ARCS = 64 };

/* Calls work.visit for the states of a warp's lanes (has: is there one?). A lane visits a state; the
 * whole warp visits a state of more than MANY_ARCS arcs. */
template <class Work>
__device__ void visit_states(bool has, u32 state, const Work &work) {
  const bool many = has && work.size(state) > MANY_ARCS;
  if (has && !many) work.visit(state, 0, 1);
  for (u32 mask = __ballot_sync(ALL_LANES, many); mask != 0; mask &= mask - 1)
    work.visit(__shfl_sync(ALL_LANES, state, __ffs((int)mask) - 1), this_lane(), LANES);
}

/* The same for the states list[begin .. end). `list` NULL: the states begin .. end - 1, in
 * descending order. */
template <class Work>
__device__ void for_states(const u32 *list, u64 begin, u64 end, const Work &work) {
  u64 stride = num_threads(), base = begin + this_thread() / LANES * LANES;
  for (; base < end; base += stride) {
    u64 k = base + this_lane();
    u32 state = k >= end ? 0 : list != nullptr ? __ldcg(&list[k]) : (u32)(begin + end - 1 - k);
    visit_states(k < end, state, work);
  }
}

struct huge_states {
  u32 count, of[THREADS];
};
/* The same for a kernel whose threads all call it; the whole block visits a state of more than
 * WF__HUGE_ARCS arcs, which would hold up a level. */
template <class Work>
__device__ void for_states_together(const u32 *list, u64 begin, u64 end, const Work &work) {
  WF__SHARED(huge_states, huge);
  for (u64 base = begin + (u64)blockIdx.x * THREADS; base < end; base += num_threads()) {
    if (threadIdx.x == 0) huge.count = 0;
    __syncthreads();
    const u64 k = base + threadIdx.x;
    const u32 state = k < end ? __ldcg(&list[k]) : 0;
    const bool is_huge = k < end && work.size(state) > WF__HUGE_ARCS;
    if (is_huge) huge.of[atomicAdd(&huge.count, 1u)] = state;
    visit_states(k < end && !is_huge, state, work);
    __syncthreads();
    for (u32 i = 0; i < huge.count; i++) work.visit(huge.of[i], threadIdx.x, THREADS);
    __syncthreads();
  }
}

#endif
