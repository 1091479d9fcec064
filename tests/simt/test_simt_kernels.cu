/* test_simt_kernels.cu - kernels for test_simt.c: correct ones with known results, and wrong ones,
 * whose errors the imitated GPU must detect. */
#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include "test_simt_kernels.h"

namespace cg = cooperative_groups;
typedef uint32_t u32;

static __global__ void exchanges(u32 *out) {
  const u32 i = threadIdx.x, lane = i & 31, value = i * 7 + 3, all = 0xffffffffu;
  u32 *mine = out + i * TRY_EXCHANGES;
  mine[0] = __shfl_sync(all, value, 5);
  mine[1] = __shfl_up_sync(all, value, 3);
  mine[2] = __shfl_down_sync(all, value, 3);
  mine[3] = __shfl_xor_sync(all, value, 9);
  mine[4] = __ballot_sync(all, value % 3 == 0);
  mine[5] = __any_sync(all, lane == 30) * 2 + __all_sync(all, lane < 31);
  mine[6] = __match_any_sync(all, lane % 5);
  mine[7] = __reduce_add_sync(all, value);
  mine[8] = __reduce_min_sync(all, value ^ 8);
  mine[9] = __reduce_or_sync(all, 1u << (lane % 7));
  const u32 part = lane < 10 ? 0x3ffu : ~0x3ffu; /* two groups that do not wait for each other */
  mine[10] = lane < 10 ? __reduce_max_sync(part, value) : __reduce_add_sync(part, value);
  mine[11] = __shfl_sync(part, value, lane < 10 ? 9 : 31);
  const u32 peers =
      lane < 20 ? __activemask() : 1u << lane; /* a subset of the 20 with this lane in it; all lanes
                                                  of the subset get the same mask */
  __syncwarp(peers);
  mine[12] = (peers >> lane & 1) && __reduce_and_sync(peers, peers) == peers &&
             (lane >= 20 || peers >> 20 == 0);
}

/* Each thread reads what the next thread of the block wrote. */
template <bool BARRIER>
static __global__ void neighbours(u32 *out) {
  typedef u32 cells[256];
  WF__SHARED(cells, sh);
  out[blockIdx.x * 512 + 256 + threadIdx.x] = sh[threadIdx.x];
  sh[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
  if (BARRIER) __syncthreads();
  out[blockIdx.x * 512 + threadIdx.x] = sh[(threadIdx.x + 1) % 256];
}

/* Each block of a cluster writes to the next block's shared memory, and increments two counters in
 * the first block's in two ways. */
static __global__ void clusters(u32 *out) {
  WF__DYNAMIC_SHARED(u32, sh);
  cg::cluster_group cluster = cg::this_cluster();
  const u32 rank = cluster.block_rank(), next = (rank + 1) % 4,
            here = (u32)__cvta_generic_to_shared(sh);
  if (threadIdx.x < 3) sh[threadIdx.x] = 0;
  cluster.sync();
  cluster.map_shared_rank(sh, next)[threadIdx.x + 3] = blockIdx.x * 100 + threadIdx.x;
  atomicAdd(cluster.map_shared_rank(&sh[0], 0), 1u);
  const u32 counter = address_of_rank(here + 4, 0);
  for (u32 seen = words<true>::load(counter);;) {
    u32 was = words<true>::swap(counter, seen, seen + 1);
    if (was == seen) break;
    seen = was;
  }
  cluster.sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sh[threadIdx.x + 3];
  if (threadIdx.x == 0)
    out[gridDim.x * blockDim.x + blockIdx.x] =
        words<true>::load(address_of_rank(here, 0)) + words<true>::load(counter);
  cluster.sync();
}

static __global__ void rounds(u32 *out) {
  for (u32 round = 0; round < 5; round++) {
    if (atomicAdd(&out[round], 1u) == 0 && round > 0)
      out[8 + round] = __ldcg(&out[round - 1]); /* all threads have counted in the round before */
    cg::this_grid().sync();
  }
}

static __global__ void copies(u32 *out) {
  typedef u32 cells[64];
  WF__SHARED(cells, sh);
  for (u32 k = 0; k < 2; k++) {
    __pipeline_memcpy_async(&sh[threadIdx.x + 32 * k], &out[threadIdx.x + 32 * k], 4);
    __pipeline_commit();
  }
  out[128 + threadIdx.x] = sh[threadIdx.x];
  __pipeline_wait_prior(1);
  out[64 + threadIdx.x] = sh[threadIdx.x];
  out[160 + threadIdx.x] = sh[threadIdx.x + 32];
  __pipeline_wait_prior(0);
  out[96 + threadIdx.x] = sh[threadIdx.x + 32];
}

/* Without atomics, increments are lost if other threads run between the read and the write. */
template <bool ATOMIC>
static __global__ void counts(u32 *out) {
  for (u32 k = 0; k < 20; k++) {
    if (ATOMIC)
      atomicAdd(out, 1u);
    else
      __stcg(out, __ldcg(out) + 1);
  }
}

static __global__ void wrong(u32 *out, int which) {
  typedef u32 cells[64];
  WF__SHARED(cells, sh);
  WF__DYNAMIC_SHARED(unsigned long long, memory);
  const u32 lane = threadIdx.x & 31;
  switch (which) {
    case WRONG_BARRIER:
      if (threadIdx.x < 40) __syncthreads();
      break;
    case WRONG_CLUSTER:
      if (blockIdx.x == 0)
        cg::this_cluster().sync();
      else
        __syncthreads();
      break;
    case WRONG_MASK:
      if (lane == 3) return;
      if (lane < 8) __syncwarp(0xffu);
      break;
    case WRONG_MASK_OF_OTHERS: __syncwarp(0xfff0u); break;
    case WRONG_KIND:
      if (lane < 16)
        out[0] = __ballot_sync(~0u, 1);
      else
        __syncwarp();
      break;
    case WRONG_LANE:
      if (lane < 16) out[0] = __shfl_sync(0xffffu, lane, 20);
      break;
    case WRONG_ADDRESS:
      out[0] = own_words::load((u32)__cvta_generic_to_shared(memory) + 4096);
      break;
    case WRONG_RANK:
      out[0] = own_words::load(address_of_rank((u32)__cvta_generic_to_shared(memory),
                                               1 - cg::this_cluster().block_rank()));
      break;
    case WRONG_BEYOND: memory[512 + lane] = 1; break;
    case WRONG_MINIMUM:
      if (cg::this_cluster().block_rank() == 1)
        atomicMin(cg::this_cluster().map_shared_rank(&memory[0], 0), 1ull);
      cg::this_cluster().sync();
      break;
    case WRONG_GONE:
      if (cg::this_cluster().block_rank() == 1)
        for (u32 k = 0; k < 1000; k++)
          __syncwarp(),
              words<true>::load(address_of_rank((u32)__cvta_generic_to_shared(memory), 0));
      break;
    case WRONG_COPY: __pipeline_memcpy_async(&sh[lane], out, 4); break;
    case WRONG_GLOBAL: out[TRY_WORDS] = 1; break;
  }
}

extern "C" int try_kernel(enum try_what what, u32 *out, int which) {
  cudaLaunchAttribute cooperative = {cudaLaunchAttributeCooperative, {1}},
                      pair = {cudaLaunchAttributeClusterDimension, {}}, four = pair;
  pair.val.clusterDim = {2, 1, 1};
  four.val.clusterDim = {4, 1, 1};
  cudaLaunchConfig_t in_pairs = {dim3(4), dim3(64), 4096, nullptr, &pair, 1},
                     in_fours = {dim3(12), dim3(64), 67 * 4, nullptr, &four, 1};
  cudaLaunchConfig_t whole_grid = {dim3(6), dim3(40), 0, nullptr, &cooperative, 1};
  switch (what) {
    case TRY_EXCHANGE: return WF__LAUNCH(exchanges, 1, 64, 0, nullptr, out);
    case TRY_BARRIER:
      return which ? WF__LAUNCH(neighbours<true>, 4, 256, 0, nullptr, out)
                   : WF__LAUNCH(neighbours<false>, 4, 256, 0, nullptr, out);
    case TRY_CLUSTER: return cudaLaunchKernelEx(&in_fours, clusters, out);
    case TRY_GRID: return cudaLaunchKernelEx(&whole_grid, rounds, out);
    case TRY_COPY: return WF__LAUNCH(copies, 1, 32, 0, nullptr, out);
    case TRY_COUNT:
      return which ? WF__LAUNCH(counts<true>, 3, 64, 0, nullptr, out)
                   : WF__LAUNCH(counts<false>, 3, 64, 0, nullptr, out);
    case TRY_WRONG: return cudaLaunchKernelEx(&in_pairs, wrong, out, which);
  }
  return cudaErrorInvalidValue;
}
