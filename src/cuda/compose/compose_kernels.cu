/* compose_kernels.cu - dense composition on the GPU, with the same rows of bits as
 * fstops/compose_reach.c.
 *
 * The search (compose_search.cuh, compose_pairs.cuh) finds a set of bits. All numbers of the result
 * are ranks in this set, so they do not depend on the order of threads. */
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_scan.cuh>

#include "cuda/compose/compose_kernels.h"
#include "cuda/device/cluster_ptx.cuh"
#include "cuda/device/cooperative_launch.cuh"

namespace cg = cooperative_groups;

typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned long long ull;

enum {
  STEP_LABEL = WF__GPU_STEP_LABEL,
  NO_ARC = 0xffffffffu,
  THREADS = 256,
  MAX_LIGHT = 64,
  STAGE = 288,
  MAX_BLOCKS = 8192
};

static unsigned blocks_of(u64 num_threads) {
  u64 wanted = (num_threads + THREADS - 1) / THREADS;
  return (unsigned)(wanted < 1 ? 1 : wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS);
}

/* One block can do all prefix sums (compose_small.cuh): there are few words, each with at most one
 * slot. */
static bool is_small(const wf__gpu_compose *c) {
  enum { SMALL = 4096 };
  return c->num_words <= SMALL && c->num_pairs <= SMALL && c->num_parts == 0;
}

#include "cuda/compose/compose_search.cuh"

__global__ static void count_reached_kernel(const wf__gpu_compose c) {
  for (u64 base = ((u64)blockIdx.x * THREADS + threadIdx.x) & ~(u64)31; base < c.num_words;
       base += (u64)gridDim.x * THREADS) {
    u64 at = base + (threadIdx.x & 31);
    u32 pair = at < c.num_words ? c.rows[c.word_row[at]].pair : NO_ARC,
        count = at < c.num_words ? (u32)__popcll(c.reached[at]) : 0;
    bool one =
        __all_sync(~0u, pair == __shfl_sync(~0u, pair, 0)); /* all words of the warp belong to one
                                                               pair: one atomic addition */
    u32 sum = warp_sum(count);
    if (one && (threadIdx.x & 31) == 0 && sum != 0)
      atomicAdd((ull *)&c.reached_count[pair], (ull)sum);
    if (!one && count != 0) atomicAdd((ull *)&c.reached_count[pair], (ull)count);
  }
}

#include "cuda/compose/compose_pairs.cuh"

uint32_t wf__gpu_compose_most_words(uint32_t shared_bytes) {
  const u32 words = (shared_bytes - (u32)group_memory<THREADS>::bytes(0, 0)) /
                    (2 * sizeof(u64)); /* the fresh bits and as many moved bits */
  return words < WF__GPU_MAX_WORDS ? words : WF__GPU_MAX_WORDS;
}

/* If pairs are many or small, a block or cluster searches each pair. Otherwise the whole grid
 * visits the rows, with as many threads a row as keep the GPU busy. */
void wf__gpu_compose_shape(wf__gpu_compose *c) {
  enum { WARP_OUT = 512, BLOCK_OUT = 4096 };
  bool many = c->num_pairs >= WF__GPU_MANY_PAIRS;
  c->ranks = many || !c->has_clusters ? 1 : WF__GPU_PAIR_RANKS;
  bool fits = c->max_pair_words + (u64)(c->ranks - 1) * c->max_words <=
                  (u64)WF__GPU_PAIR_WORDS * c->ranks &&
              c->num_steps >> (32 - PAIR_STEP_BITS) == 0;
  fits = fits && pair_shared_bytes(c, c->ranks) <= c->shared_bytes && (many || c->has_clusters);
  bool little =
      c->max_pair_work <= WF__GPU_PAIR_WORK ||
      (c->max_pair_effort <= WF__GPU_PAIR_EFFORT && c->max_pair_rows < WF__GPU_THREAD_ROWS);
  bool narrow = c->max_words <= WF__GPU_NARROW_WORDS,
       lines =
           narrow && c->max_pair_rows >= WF__GPU_LINE_ROWS && 2 * c->num_steps <= 3 * c->num_rows;
  if (fits && (many || (little && !lines)))
    c->group = 0;
  else if (narrow && (lines || c->num_rows >= WF__GPU_THREAD_ROWS))
    c->group = 1;
  else
    c->group =
        c->max_words <= WF__GPU_WARP_WORDS && c->num_rows >= WF__GPU_WARP_ROWS ? 32 : THREADS;
  c->both = c->connect && c->group >= 1 &&
            c->num_words <= (c->group == 1 ? WF__GPU_BOTH_NARROW : WF__GPU_BOTH_WORDS);
  c->tile_words = c->num_words < WF__GPU_MANY_WORDS ? 1 : WF__GPU_TILE_WORDS;
  u64 most = c->group == 32 ? WARP_OUT : BLOCK_OUT,
      wanted = (u64)c->max_words * (c->max_row_runs > 1 ? c->max_row_runs : 1);
  if (wanted < most) most = wanted; /* less shared memory allows more groups at once */
  const u64 room = c->group <= 1
                       ? most
                       : (c->shared_bytes / (u32)(THREADS / c->group) -
                          (c->group == 32 ? group_memory<32>::bytes(c->max_words, 0)
                                          : group_memory<THREADS>::bytes(c->max_words, 0))) /
                             sizeof(u64);
  if (room < most) most = room;
  c->out_words = c->max_words > most ? c->max_words : (u32)most;
}

template <int GROUP, int W = 1>
static cudaError_t launch_search(const wf__gpu_compose *c, cudaStream_t stream) {
  size_t shared =
      GROUP == 1 ? 0 : THREADS / GROUP * group_memory<GROUP>::bytes(c->max_words, c->out_words);
  /* The attribute belongs to the kernel and is shared by all host threads, so it is always set to
   * the same value. */
  cudaError_t code = GROUP == 1 ? cudaSuccess
                                : cudaFuncSetAttribute(search_kernel<GROUP, W>,
                                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                       (int)c->shared_bytes);
  u64 blocks = (c->num_rows * GROUP + THREADS - 1) / THREADS + (GROUP == 1 ? c->num_chunks[0] : 0);
  return code == cudaSuccess
             ? launch_together(search_kernel<GROUP, W>, c->both ? 2 * blocks : blocks, c->both,
                               THREADS, shared, stream, *c)
             : code;
}

int wf__gpu_compose_search(const wf__gpu_compose *c, void *opaque) {
  cudaStream_t stream = (cudaStream_t)opaque;
  cudaError_t code = cudaMemsetAsync(c->zeroed, 0, c->zeroed_bytes, stream);
  if (code != cudaSuccess) return code;
  if (c->group == 0)
    code = c->ranks == 1 ? launch_pairs<1>(c, stream) : launch_pairs<WF__GPU_PAIR_RANKS>(c, stream);
  else if (c->group == 1)
    code = c->max_words <= 4 ? launch_search<1, 4>(c, stream)
                             : launch_search<1, WF__GPU_NARROW_WORDS>(c, stream);
  else if (c->group == 32)
    code = launch_search<32>(c, stream);
  else
    code = launch_search<THREADS>(c, stream);
  if (code != cudaSuccess || c->reached_count == nullptr) return code;
  code = cudaMemsetAsync(c->reached_count, 0, c->num_pairs * sizeof(u64), stream);
  return code == cudaSuccess
             ? WF__LAUNCH(count_reached_kernel, blocks_of(c->num_words), THREADS, 0, stream, *c)
             : code;
}

/* --- positions in the result ------------------------------------------------------------- */

__global__ static void word_rows_kernel(const wf__gpu_compose c, u32 *word_row) {
  for (u64 row = (u64)blockIdx.x * THREADS + threadIdx.x; row < c.num_rows;
       row += (u64)gridDim.x * THREADS)
    for (u32 w = 0; w < c.pairs[c.rows[row].pair].num_words; w++)
      word_row[c.rows[row].word_off + w] = (u32)row;
}

int wf__gpu_compose_word_rows(const wf__gpu_compose *c, u32 *word_row, void *stream) {
  return WF__LAUNCH(word_rows_kernel, blocks_of(c->num_rows), THREADS, 0, stream, *c, word_row);
}

__device__ static u32 num_segments(const wf__gpu_compose &c, u32 row) {
  u64 count = c.link_off[row + 1] - c.link_off[row];
  return count <= WF__GPU_SEGMENT ? 1 : (u32)((count + WF__GPU_PART - 1) / WF__GPU_PART);
}

struct states_of_word {
  const u64 *kept;
  u64 num_words;
  __device__ u32 operator()(u64 at) const { return at < num_words ? (u32)__popcll(kept[at]) : 0; }
};

/* The number of slots of the tile that begins with word `at`. */
__device__ static u64 slots_of(const wf__gpu_compose &c, u64 at) {
  if (at >= c.num_words) return 0;
  const u32 row = c.word_row[at], segments = num_segments(c, row);
  if (segments != 1) return (u64)__popcll(c.kept[at]) * segments;
  const u64 begin = c.rows[row].word_off,
            row_end = row + 1 < c.num_rows ? c.rows[row + 1].word_off : c.num_words,
            end = at + c.tile_words < row_end ? at + c.tile_words : row_end;
  if ((at - begin) % c.tile_words != 0) return 0;
  for (u64 word = at; word < end; word++)
    if (c.kept[word] != 0) return 1;
  return 0;
}

struct slots_of_word {
  wf__gpu_compose c;
  __device__ u64 operator()(u64 at) const { return slots_of(c, at); }
};

/* Writes the totals, and the halves of the words thread, thread + num_threads, ... */
__device__ static void place_halves(const wf__gpu_compose &c, u64 thread, u64 num_threads) {
  if (thread == 0) {
    c.totals[0] = c.first[c.num_words];
    c.totals[1] = c.first_slot[c.num_words];
  }
  for (u64 at = thread; at < c.num_words; at += num_threads) {
    const u32 first = c.first[at] - c.first[c.pairs[c.rows[c.word_row[at]].pair].word_base],
              low = (u32)c.kept[at], high = (u32)(c.kept[at] >> 32);
    ((uint4 *)c.halves)[at] = make_uint4(low, first, high, first + (u32)__popc(low));
  }
}

__global__ static void halves_kernel(const __grid_constant__ wf__gpu_compose c) {
  place_halves(c, (u64)blockIdx.x * THREADS + threadIdx.x, (u64)gridDim.x * THREADS);
}

/* Writes each pair's first state and arc, the ends of its arc_off, and its start state. */
__device__ static void place_pairs(const wf__gpu_compose &c, u64 thread, u64 num_threads) {
  if (thread == 0) c.totals[2] = c.slots[c.totals[1]];
  for (u64 p = thread; p <= c.num_pairs; p += num_threads) {
    u64 word = p < c.num_pairs ? c.pairs[p].word_base : c.num_words, state = c.first[word],
        arc = c.slots[c.first_slot[word]];
    c.places[p].state_base = state;
    c.places[p].arc_base = arc;
    c.places[p].start = -1;
    if (p > 0) c.arc_off[state + p - 1] = arc - c.slots[c.first_slot[c.pairs[p - 1].word_base]];
    if (p == c.num_pairs || c.pairs[p].num_b == 0) continue;
    const wf__gpu_pair &pair = c.pairs[p];
    u64 at = c.rows[pair.start_row].word_off + pair.start_b / 64,
        below = ((u64)1 << (pair.start_b & 63)) - 1;
    if (c.kept[at] >> (pair.start_b & 63) & 1)
      c.places[p].start = (int64_t)(c.first[at] - state + (u64)__popcll(c.kept[at] & below));
  }
}

__global__ static void pairs_kernel(const __grid_constant__ wf__gpu_compose c) {
  if (c.totals[0] > c.room_states || c.totals[1] > c.room_slots) return;
  place_pairs(c, (u64)blockIdx.x * THREADS + threadIdx.x, (u64)gridDim.x * THREADS);
}

#include "cuda/compose/compose_small.cuh"

int wf__gpu_compose_place(const wf__gpu_compose *c, void *scratch, size_t *scratch_bytes,
                          void *opaque) {
  cudaStream_t stream = (cudaStream_t)opaque;
  thrust::counting_iterator<u64> at(0);
  auto states = thrust::make_transform_iterator(at, states_of_word{c->kept, c->num_words});
  auto slots = thrust::make_transform_iterator(at, slots_of_word{*c});
  size_t bytes[2] = {*scratch_bytes, *scratch_bytes};
  if (scratch != nullptr && is_small(c))
    return WF__LAUNCH(place_small_kernel, 1, SMALL_THREADS, 0, stream, *c);
  cudaError_t code = cub::DeviceScan::ExclusiveSum(scratch, bytes[0], states, c->first,
                                                   (int64_t)(c->num_words + 1), stream);
  if (code == cudaSuccess)
    code = cub::DeviceScan::ExclusiveSum(scratch, bytes[1], slots, c->first_slot,
                                         (int64_t)(c->num_words + 1), stream);
  if (scratch == nullptr) {
    *scratch_bytes = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    return code;
  }
  return code == cudaSuccess
             ? WF__LAUNCH(halves_kernel, blocks_of(c->num_words), THREADS, 0, stream, *c)
             : code;
}

/* --- count and fill ---------------------------------------------------------------------- */

#include "cuda/compose/compose_arcs.cuh"

/* The number of blocks for one warp a tile. */
static unsigned blocks_for(const wf__gpu_compose *c, u32 threads) {
  u64 tiles = c->num_words / c->tile_words + 1 + c->num_part_words,
      blocks = (tiles * 32 + threads - 1) / threads;
  return (unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
}

int wf__gpu_compose_count(const wf__gpu_compose *c, uint64_t num_slots, void *scratch,
                          size_t *scratch_bytes, void *opaque) {
  cudaStream_t stream = (cudaStream_t)opaque;
  if (scratch == nullptr)
    return cub::DeviceScan::ExclusiveSum(scratch, *scratch_bytes, c->slots, c->slots,
                                         (int64_t)(num_slots + 1), stream);
  cudaError_t code = WF__LAUNCH(count_kernel, blocks_for(c, THREADS), THREADS, 0, stream, *c);
  if (code == cudaSuccess && is_small(c))
    return WF__LAUNCH(sum_small_kernel, 1, SMALL_THREADS, 0, stream, *c);
  if (code == cudaSuccess) code = cudaMemsetAsync(c->slots + num_slots, 0, sizeof(u64), stream);
  if (code == cudaSuccess)
    code = cub::DeviceScan::ExclusiveSum(scratch, *scratch_bytes, c->slots, c->slots,
                                         (int64_t)(num_slots + 1), stream);
  return code == cudaSuccess ? WF__LAUNCH(pairs_kernel, (unsigned)(c->num_pairs / THREADS + 1),
                                          THREADS, 0, stream, *c)
                             : code;
}

int wf__gpu_compose_fill(const wf__gpu_compose *c, void *opaque) {
  return c->num_words != 0 ? WF__LAUNCH(fill_kernel, blocks_for(c, FILL_THREADS), FILL_THREADS, 0,
                                        (cudaStream_t)opaque, *c)
                           : cudaSuccess;
}
