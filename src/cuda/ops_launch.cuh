/* ops_launch.cuh - what the kernels of operations share: threads by number, launches, loops over all of something. For the imitated GPU of tests/fake_ops/ the
 * same words are in fake_kernels.h, where a grid is one thread and a warp has one lane. */
#ifndef WF_CUDA_OPS_LAUNCH_CUH
#define WF_CUDA_OPS_LAUNCH_CUH

#ifndef FAKE_CUDA
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "cuda/launch_together.cuh"
#include "cuda/ptx.cuh"
#endif
#include "warpfst.h"

typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned long long ull;

#ifndef FAKE_CUDA
enum { THREADS = 256, LANES = 32, MAX_BLOCKS = 8192 };
#define ALL_LANES 0xffffffffu

__device__ inline u64 this_thread() { return (u64)blockIdx.x * THREADS + threadIdx.x; }
__device__ inline u64 num_threads() { return (u64)gridDim.x * THREADS; }
__device__ inline u32 this_lane() { return threadIdx.x % LANES; }

inline unsigned blocks_for(u64 count) {
  u64 wanted = (count + THREADS - 1) / THREADS;
  return (unsigned)(wanted < 1 ? 1 : wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS);
}
#define LAUNCH(kernel, count, stream, ...) ((int)WF__LAUNCH(kernel, blocks_for(count), THREADS, 0, stream, __VA_ARGS__))
#endif

#define FOR_ALL(i, count) for (u64 i = this_thread(); i < (count); i += num_threads())

#endif
