/* compose_kernels.cu - dense composition on the GPU: the same rows of bits as fstops/compose_reach.c, level by level.
 *
 * A visit of a row takes its fresh bits, moves them along each kind of step, and adds the result to the rows that the steps lead to. Who finds a bit
 * first does not matter: the set of bits that is found in the end is the same, and all numbers of the result are ranks in it. */
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_scan.cuh>

#include "cuda/compose_kernels.h"

namespace cg = cooperative_groups;

typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned long long ull;

enum { STEP_LABEL = WF__GPU_STEP_LABEL, NO_ARC = 0xffffffffu, THREADS = 256, MAX_LIGHT = 64, STAGE = 160, MAX_BLOCKS = 8192 };

/* --- the search ------------------------------------------------------------------------------------------------------- */

/* One direction of it, and the level it is at. What is found in a level is visited in the next, after a barrier of the grid; so a visit may come upon
 * bits of its own level or miss them, but no fence is needed for any to be found. */
struct direction {
  const u64 *step_off;
  const wf__gpu_step *steps;
  const u64 *mask; /* NULL: none */
  u64 *bits;
  int back;
  u32 level;
};

__device__ static u64 or_word(u64 *word, u64 value) { return atomicOr((ull *)word, (ull)value); }

/* Whether a level has rows: how many in its list, or 1 for some where every row is looked at. */
__device__ static u32 *count_of(const wf__gpu_compose &c, u32 level) { return &c.counts[level % 3]; }
__device__ static u32 *list_of(const wf__gpu_compose &c, u32 level) { return c.list + (level & 1) * c.num_rows; }
/* Narrow rows: 1 in the row's cell for the level, no list. */
__device__ static u32 *dirty_of(const wf__gpu_compose &c, u32 level) { return c.dirty + (level & 1) * c.num_rows; }

/* A row has fresh bits for the visits of `level`. */
template <int GROUP>
__device__ static void mark_dirty(const wf__gpu_compose &c, u32 row, u32 level) {
  if (GROUP == 1) {
    dirty_of(c, level)[row] = 1;
    if (__ldcg(count_of(c, level)) == 0) *count_of(c, level) = 1;
  } else if (atomicExch(&c.dirty[row], level + 1) != level + 1) { /* on the list once */
    list_of(c, level)[atomicAdd(count_of(c, level), 1u)] = row;
  }
}

/* What of `add` is new at a word that held `bits` a moment ago; it is fresh from now on. */
__device__ static u64 add_word(const wf__gpu_compose &c, const direction &d, u64 at, u64 add, u64 bits) {
  add &= ~bits;
  if (d.mask != nullptr && add != 0) add &= d.mask[at];
  if (add == 0) return 0;
  add &= ~or_word(&d.bits[at], add);
  if (add != 0) or_word(&c.fresh[at], add);
  return add;
}

__device__ static const u64 *mask_of(const wf__gpu_compose &c, const wf__gpu_pair &pair, u32 kind) { return c.masks + pair.mask_base + (u64)kind * pair.num_words; }

/* --- narrow rows: a thread each --------------------------------------------------------------------------------------- */

enum { NARROW = WF__GPU_NARROW_WORDS };

struct narrow {
  u64 in[NARROW], out[NARROW];
};

/* All words are read before the first is taken: one wait, not eight. */
__device__ static void take_narrow(const wf__gpu_compose &c, u64 word_off, u32 num_words, u64 *in) {
  for (u32 w = 0; w < NARROW; w++) in[w] = w < num_words ? __ldcg(&c.fresh[word_off + w]) : 0;
  for (u32 w = 0; w < NARROW; w++)
    if (in[w] != 0) in[w] = atomicExch((ull *)&c.fresh[word_off + w], 0ull);
}

__device__ static void move_narrow(const wf__gpu_compose &c, const direction &d, const wf__gpu_pair &pair, u32 kind, narrow &n) {
  if (kind < STEP_LABEL) {
    const u64 *mask = mask_of(c, pair, kind);
    for (u32 w = 0; w < pair.num_words; w++) n.out[w] = n.in[w] != 0 ? n.in[w] & mask[w] : 0;
    return;
  }
  const u32 *off = c.off + pair.off_base[d.back] + (u64)(kind - STEP_LABEL) * pair.num_b, *to = c.to + pair.to_base[d.back];
  for (u32 w = 0; w < pair.num_words; w++) n.out[w] = 0;
  for (u32 w = 0; w < pair.num_words; w++) {
    for (u64 bits = n.in[w]; bits != 0; bits &= bits - 1) {
      u32 state = w * 64 + (u32)__ffsll((long long)bits) - 1, end = off[state + 1];
      for (u32 k = off[state]; k < end; k++) n.out[to[k] >> 6] |= (u64)1 << (to[k] & 63);
    }
  }
}

/* Steps begin, begin + stride, ... of a row whose fresh bits are in n.in. */
__device__ static void take_steps(const wf__gpu_compose &c, const direction &d, const wf__gpu_pair &pair, narrow &n, u64 begin, u64 end, u32 stride) {
  u32 kind = NO_ARC;
  for (u64 i = begin; i < end; i += stride) {
    wf__gpu_step step = d.steps[i];
    if (step.kind != kind) move_narrow(c, d, pair, kind = step.kind, n);
    u64 had[NARROW], any = 0;
    for (u32 w = 0; w < NARROW; w++) had[w] = w < pair.num_words && n.out[w] != 0 ? __ldcg(&d.bits[step.word_off + w]) : ~(u64)0;
    for (u32 w = 0; w < NARROW; w++)
      if (~had[w] != 0) any |= add_word(c, d, step.word_off + w, n.out[w], had[w]);
    if (any != 0) mark_dirty<1>(c, step.row, d.level + 1);
  }
}

/* Heavy rows: their fresh bits are set aside in one level and taken by all blocks in the next, so that every block finds the same bits. */
__device__ static u64 *heavy_bits_of(const wf__gpu_compose &c, const direction &d, u32 level, u64 heavy) {
  return c.heavy_bits + ((level & 1) * c.num_heavy[d.back] + heavy) * NARROW;
}

__device__ static void set_heavy_aside(const wf__gpu_compose &c, const direction &d) {
  for (u64 h = (u64)blockIdx.x * THREADS + threadIdx.x; h < c.num_heavy[d.back]; h += (u64)gridDim.x * THREADS) {
    u32 row = c.heavy[d.back][h], *dirty = &dirty_of(c, d.level)[row];
    if (__ldcg(dirty) == 0) continue;
    *dirty = 0;
    u64 in[NARROW], *bits = heavy_bits_of(c, d, d.level + 1, h);
    take_narrow(c, c.rows[row].word_off, c.pairs[c.rows[row].pair].num_words, in);
    for (u32 w = 0; w < NARROW; w++) bits[w] = in[w];
    c.heavy_level[((d.level + 1) & 1) * c.num_heavy[d.back] + h] = d.level + 2;
    if (__ldcg(count_of(c, d.level + 1)) == 0) *count_of(c, d.level + 1) = 1;
  }
}

__device__ static void visit_chunks(const wf__gpu_compose &c, const direction &d) {
  for (u64 i = blockIdx.x; i < c.num_chunks[d.back]; i += gridDim.x) {
    wf__gpu_chunk chunk = c.chunks[d.back][i];
    if (__ldcg(&c.heavy_level[(d.level & 1) * c.num_heavy[d.back] + chunk.heavy]) != d.level + 1) continue;
    u32 row = c.heavy[d.back][chunk.heavy];
    u64 begin = d.step_off[row] + chunk.first, end = d.step_off[row + 1];
    if (begin + WF__GPU_CHUNK < end) end = begin + WF__GPU_CHUNK;
    const u64 *bits = heavy_bits_of(c, d, d.level, chunk.heavy);
    narrow n;
    for (u32 w = 0; w < NARROW; w++) n.in[w] = __ldcg(&bits[w]);
    take_steps(c, d, c.pairs[c.rows[row].pair], n, begin + threadIdx.x, end, THREADS);
  }
}

struct narrow_shared {
  u32 heavy[THREADS], num_heavy;
  u64 in[NARROW];
};

/* Looks at every row. Rows with many steps wait until the block takes them together; the heaviest are not taken here. */
__device__ static void visit_narrow(const wf__gpu_compose &c, const direction &d, narrow_shared &sh) {
  u32 *dirty = dirty_of(c, d.level);
  for (u64 base = (u64)blockIdx.x * THREADS; base < c.num_rows; base += (u64)gridDim.x * THREADS) {
    u64 mine = base + threadIdx.x;
    if (threadIdx.x == 0) sh.num_heavy = 0;
    __syncthreads();
    if (mine < c.num_rows && __ldcg(&dirty[mine]) != 0) {
      u64 begin = d.step_off[mine], end = d.step_off[mine + 1];
      if (end - begin <= WF__GPU_HEAVY_STEPS) dirty[mine] = 0;
      if (end - begin > WF__GPU_HEAVY_STEPS) {
        /* set_heavy_aside takes it */
      } else if (end - begin > MAX_LIGHT) {
        sh.heavy[atomicAdd(&sh.num_heavy, 1u)] = (u32)mine;
      } else {
        const wf__gpu_row info = c.rows[mine];
        const wf__gpu_pair &pair = c.pairs[info.pair];
        narrow n;
        take_narrow(c, info.word_off, pair.num_words, n.in);
        take_steps(c, d, pair, n, begin, end, 1);
      }
    }
    __syncthreads();
    for (u32 i = 0; i < sh.num_heavy; i++) {
      u32 row = sh.heavy[i];
      const wf__gpu_row info = c.rows[row];
      const wf__gpu_pair &pair = c.pairs[info.pair];
      if (threadIdx.x < pair.num_words) sh.in[threadIdx.x] = atomicExch((ull *)&c.fresh[info.word_off + threadIdx.x], 0ull);
      __syncthreads();
      narrow n;
      for (u32 w = 0; w < NARROW; w++) n.in[w] = w < pair.num_words ? sh.in[w] : 0;
      take_steps(c, d, pair, n, d.step_off[row] + threadIdx.x, d.step_off[row + 1], THREADS);
      __syncthreads();
    }
    __syncthreads(); /* before num_heavy begins again */
  }
}

/* --- wide rows: a warp or a block each -------------------------------------------------------------------------------- */

template <int GROUP>
__device__ static void sync_group() {
  if (GROUP == 32) __syncwarp();
  else __syncthreads();
}

/* out |= in moved along a label; a warp takes 32 states at a time, a lane each. */
template <int GROUP>
__device__ static void move_wide(const u32 *off, const u32 *to, u32 num_words, const u32 *in, u32 *out, u32 rank) {
  for (u32 w = rank / 32; w < num_words * 2; w += GROUP / 32) {
    u32 bits = in[w];
    if (!(bits >> (rank & 31) & 1)) continue;
    u32 state = w * 32 + (rank & 31), end = off[state + 1];
    for (u32 k = off[state]; k < end; k++) atomicOr(&out[to[k] >> 5], 1u << (to[k] & 31));
  }
}

template <int GROUP>
__device__ static void visit_wide(const wf__gpu_compose &c, const direction &d, u32 row, u64 *in, u64 *out, u32 rank) {
  const wf__gpu_row info = c.rows[row];
  const wf__gpu_pair &pair = c.pairs[info.pair];
  const u32 num_words = pair.num_words;
  for (u32 w = rank; w < num_words; w += GROUP) {
    u64 *fresh = &c.fresh[info.word_off + w];
    in[w] = __ldcg(fresh) != 0 ? atomicExch((ull *)fresh, 0ull) : 0;
  }
  u64 i = d.step_off[row], end = d.step_off[row + 1];
  while (i < end) {
    u32 kind = d.steps[i].kind;
    if (kind >= STEP_LABEL) {
      for (u32 w = rank; w < num_words; w += GROUP) out[w] = 0;
      sync_group<GROUP>();
      move_wide<GROUP>(c.off + pair.off_base[d.back] + (u64)(kind - STEP_LABEL) * pair.num_b, c.to + pair.to_base[d.back], num_words, (const u32 *)in, (u32 *)out, rank);
      sync_group<GROUP>();
    } else {
      const u64 *mask = mask_of(c, pair, kind);
      for (u32 w = rank; w < num_words; w += GROUP) out[w] = in[w] & mask[w];
    }
    for (; i < end; i++) {
      wf__gpu_step step = d.steps[i];
      if (step.kind != kind) break;
      u64 any = 0;
      for (u32 w = rank; w < num_words; w += GROUP)
        if (out[w] != 0) any |= add_word(c, d, step.word_off + w, out[w], __ldcg(&d.bits[step.word_off + w]));
      if (any != 0) mark_dirty<GROUP>(c, step.row, d.level + 1);
    }
    sync_group<GROUP>();
  }
  sync_group<GROUP>();
}

/* --- levels ----------------------------------------------------------------------------------------------------------- */

/* The first bits of either direction, for the visits of its first level. */
template <int GROUP>
__device__ static void seed(const wf__gpu_compose &c, const direction &d) {
  u64 thread = (u64)blockIdx.x * THREADS + threadIdx.x, num_threads = (u64)gridDim.x * THREADS;
  if (!d.back) {
    for (u64 p = thread; p < c.num_pairs; p += num_threads) {
      const wf__gpu_pair &pair = c.pairs[p];
      if (pair.num_b == 0) continue;
      add_word(c, d, c.rows[pair.start_row].word_off + pair.start_b / 64, (u64)1 << (pair.start_b & 63), 0);
      mark_dirty<GROUP>(c, pair.start_row, d.level);
    }
    return;
  }
  for (u64 at = thread; at < c.num_words; at += num_threads) {
    u32 row = c.word_row[at];
    const wf__gpu_row info = c.rows[row];
    if (info.a_final == INFINITY) continue;
    u64 add = mask_of(c, c.pairs[info.pair], WF__GPU_NUM_MASKS - 1)[at - info.word_off];
    if (add != 0 && add_word(c, d, at, add, 0) != 0) mark_dirty<GROUP>(c, row, d.level);
  }
}

/* Level by level until one finds nothing. */
template <int GROUP>
__device__ static void run_levels(const wf__gpu_compose &c, direction &d, narrow_shared &sh, u64 *words) {
  cg::grid_group grid = cg::this_grid();
  if (blockIdx.x == 0 && threadIdx.x < 3) c.counts[threadIdx.x] = 0;
  grid.sync();
  seed<GROUP>(c, d);
  grid.sync();
  for (;; d.level++) {
    u32 count = __ldcg(count_of(c, d.level));
    if (count == 0) break;
    if (blockIdx.x == 0 && threadIdx.x == 0) *count_of(c, d.level + 2) = 0;
    if (GROUP == 1) {
      set_heavy_aside(c, d);
      visit_chunks(c, d);
      visit_narrow(c, d, sh);
    } else {
      u32 group = threadIdx.x / GROUP, per_block = THREADS / GROUP;
      u64 *in = words + (u64)group * 2 * c.max_words;
      for (u32 i = blockIdx.x * per_block + group; i < count; i += gridDim.x * per_block) visit_wide<GROUP>(c, d, list_of(c, d.level)[i], in, in + c.max_words, threadIdx.x % GROUP);
    }
    grid.sync();
  }
}

template <int GROUP>
__global__ static void __launch_bounds__(THREADS) search_kernel(const wf__gpu_compose c) {
  extern __shared__ u64 words[];
  __shared__ narrow_shared sh;
  direction forward = {c.step_off[0], c.steps[0], nullptr, c.reached, 0, 0};
  run_levels<GROUP>(c, forward, sh, words);
  if (!c.connect) return;
  direction backward = {c.step_off[1], c.steps[1], c.reached, c.kept, 1, forward.level};
  cg::this_grid().sync();
  run_levels<GROUP>(c, backward, sh, words);
}

__global__ static void count_reached_kernel(const wf__gpu_compose c) {
  for (u64 base = ((u64)blockIdx.x * THREADS + threadIdx.x) & ~(u64)31; base < c.num_words; base += (u64)gridDim.x * THREADS) {
    u64 at = base + (threadIdx.x & 31);
    u32 pair = at < c.num_words ? c.rows[c.word_row[at]].pair : NO_ARC, count = at < c.num_words ? (u32)__popcll(c.reached[at]) : 0;
    bool one = __all_sync(~0u, pair == __shfl_sync(~0u, pair, 0)); /* the warp's words belong to one pair: one addition */
    u32 sum = __reduce_add_sync(~0u, count);
    if (one && (threadIdx.x & 31) == 0 && sum != 0) atomicAdd((ull *)&c.reached_count[pair], (ull)sum);
    if (!one && count != 0) atomicAdd((ull *)&c.reached_count[pair], (ull)count);
  }
}

#include "cuda/compose_pairs.cuh"

static cudaError_t launch_pairs(const wf__gpu_compose *c, cudaStream_t stream) {
  size_t shared = pair_shared_bytes(c);
  cudaError_t code = cudaFuncSetAttribute(search_pairs_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (code == cudaSuccess) search_pairs_kernel<<<(unsigned)c->num_pairs, PAIR_THREADS, shared, stream>>>(*c);
  return code == cudaSuccess ? cudaGetLastError() : code;
}

template <int GROUP>
static cudaError_t launch_search(const wf__gpu_compose *c, cudaStream_t stream) {
  int device = 0, num_processors = 0, per_processor = 0;
  size_t shared = GROUP == 1 ? 0 : (size_t)(THREADS / GROUP) * 2 * c->max_words * sizeof(u64);
  cudaError_t code = cudaFuncSetAttribute(search_kernel<GROUP>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
  if (code == cudaSuccess) code = cudaGetDevice(&device);
  if (code == cudaSuccess) code = cudaDeviceGetAttribute(&num_processors, cudaDevAttrMultiProcessorCount, device);
  if (code == cudaSuccess) code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, search_kernel<GROUP>, THREADS, shared);
  if (code != cudaSuccess) return code;
  u64 wanted = (c->num_rows * GROUP + THREADS - 1) / THREADS + (GROUP == 1 ? c->num_chunks[0] : 0), most = (u64)num_processors * (u64)per_processor;
  void *arguments[] = {(void *)c};
  return cudaLaunchCooperativeKernel((const void *)search_kernel<GROUP>, dim3((unsigned)(wanted < most ? wanted : most)), dim3(THREADS), arguments, shared, stream);
}

int wf__gpu_compose_search(const wf__gpu_compose *c, void *opaque) {
  cudaStream_t stream = (cudaStream_t)opaque;
  cudaError_t code = cudaMemsetAsync(c->zeroed, 0, c->zeroed_bytes, stream);
  if (code != cudaSuccess) return code;
  if (c->max_pair_words <= WF__GPU_PAIR_WORDS) code = launch_pairs(c, stream);
  else if (c->max_words <= WF__GPU_NARROW_WORDS) code = launch_search<1>(c, stream);
  else if (c->max_words <= WF__GPU_WARP_WORDS) code = launch_search<32>(c, stream);
  else code = launch_search<THREADS>(c, stream);
  if (code != cudaSuccess || c->reached_count == nullptr) return code;
  code = cudaMemsetAsync(c->reached_count, 0, c->num_pairs * sizeof(u64), stream);
  if (code == cudaSuccess) count_reached_kernel<<<528, THREADS, 0, stream>>>(*c);
  return code == cudaSuccess ? cudaGetLastError() : code;
}

/* --- places ----------------------------------------------------------------------------------------------------------- */

__global__ static void word_rows_kernel(const wf__gpu_compose c, u32 *word_row) {
  for (u64 row = (u64)blockIdx.x * THREADS + threadIdx.x; row < c.num_rows; row += (u64)gridDim.x * THREADS)
    for (u32 w = 0; w < c.pairs[c.rows[row].pair].num_words; w++) word_row[c.rows[row].word_off + w] = (u32)row;
}

int wf__gpu_compose_word_rows(const wf__gpu_compose *c, u32 *word_row, void *stream) {
  word_rows_kernel<<<528, THREADS, 0, (cudaStream_t)stream>>>(*c, word_row);
  return cudaGetLastError();
}

__device__ static u32 num_segments(const wf__gpu_compose &c, u32 row) {
  u64 count = c.link_off[row + 1] - c.link_off[row];
  return count <= WF__GPU_SEGMENT ? 1 : (u32)((count + WF__GPU_SEGMENT - 1) / WF__GPU_SEGMENT);
}

struct states_of_word {
  const u64 *kept;
  u64 num_words;
  __device__ u32 operator()(u64 at) const { return at < num_words ? (u32)__popcll(kept[at]) : 0; }
};

struct slots_of_word {
  wf__gpu_compose c;
  __device__ u64 operator()(u64 at) const {
    if (at >= c.num_words || c.kept[at] == 0) return 0;
    return (u64)__popcll(c.kept[at]) * num_segments(c, c.word_row[at]);
  }
};

__global__ static void totals_kernel(const wf__gpu_compose c) {
  c.totals[0] = c.first[c.num_words];
  c.totals[1] = c.first_slot[c.num_words];
}

int wf__gpu_compose_place(const wf__gpu_compose *c, void *scratch, size_t *scratch_bytes, void *opaque) {
  cudaStream_t stream = (cudaStream_t)opaque;
  thrust::counting_iterator<u64> at(0);
  auto states = thrust::make_transform_iterator(at, states_of_word{c->kept, c->num_words});
  auto slots = thrust::make_transform_iterator(at, slots_of_word{*c});
  size_t bytes[2] = {*scratch_bytes, *scratch_bytes};
  cudaError_t code = cub::DeviceScan::ExclusiveSum(scratch, bytes[0], states, c->first, (int64_t)(c->num_words + 1), stream);
  if (code == cudaSuccess) code = cub::DeviceScan::ExclusiveSum(scratch, bytes[1], slots, c->first_slot, (int64_t)(c->num_words + 1), stream);
  if (scratch == nullptr) {
    *scratch_bytes = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    return code;
  }
  if (code == cudaSuccess) totals_kernel<<<1, 1, 0, stream>>>(*c);
  return code == cudaSuccess ? cudaGetLastError() : code;
}

/* --- count and fill --------------------------------------------------------------------------------------------------- */

/* A word of states of a row with one segment of its links. */
struct piece {
  u64 word, links, links_end;
  u32 row, segment, num_segments;
};

/* Piece `i`: words with the first segment, then the parts of long rows. */
__device__ static bool find_piece(const wf__gpu_compose &c, u64 i, piece &p) {
  if (i < c.num_words) {
    p.word = i;
    p.row = c.word_row[i];
    p.segment = 0;
  } else {
    u64 low = 0, high = c.num_parts; /* the last part whose words begin at or before i */
    i -= c.num_words;
    while (high - low > 1) {
      u64 middle = (low + high) / 2;
      if (c.part_word[middle] <= i) low = middle;
      else high = middle;
    }
    p.row = c.parts[low].row;
    p.segment = c.parts[low].segment;
    p.word = c.rows[p.row].word_off + (i - c.part_word[low]);
  }
  if (c.kept[p.word] == 0) return false;
  u64 end = c.link_off[p.row + 1];
  p.num_segments = num_segments(c, p.row);
  p.links = c.link_off[p.row] + (u64)p.segment * WF__GPU_SEGMENT;
  p.links_end = p.links + WF__GPU_SEGMENT < end ? p.links + WF__GPU_SEGMENT : end;
  return true;
}

struct arc_writer {
  const wf__gpu_compose &c;
  const wf__gpu_pair &pair;
  u32 first_state; /* of the pair */
  float4 *arcs;    /* arc i of the result goes to arcs[i - begin] */
  u64 begin;

  __device__ u32 number_of(u64 word_off, u32 state) const {
    u64 at = word_off + state / 64;
    return c.first[at] - first_state + (u32)__popcll(c.kept[at] & (((u64)1 << (state & 63)) - 1));
  }
  __device__ void put(u64 at, const wf__gpu_link &link, u32 b_arc, u32 next) const {
    float4 made; /* as wf_arc, so that it is written at once */
    wf_arc x = {0, 0, 0, 0}, y = {0, 0, 0, 0};
    if (link.arc != NO_ARC) x = c.a_arcs[pair.a_base + link.arc];
    if (b_arc != NO_ARC) y = c.b_arcs[pair.b_base + b_arc];
    made.x = __uint_as_float(next);
    made.y = link.arc == NO_ARC ? y.weight : b_arc == NO_ARC ? x.weight : x.weight + y.weight;
    made.z = __int_as_float(x.ilabel);
    made.w = __int_as_float(y.olabel);
    arcs[at - begin] = made;
    if (c.origins != nullptr) {
      c.origins[at].a = link.arc;
      c.origins[at].b = b_arc;
    }
  }
};

/* The arcs of a state along the links of a piece: counted, or written from `at` on. Returns their number. */
template <bool WRITE>
__device__ static u64 arcs_of(const arc_writer &w, const piece &p, u32 state, u64 at) {
  const wf__gpu_compose &c = w.c;
  u64 begin = at;
  for (u64 i = p.links; i < p.links_end; i++) {
    wf__gpu_link link = c.links[i];
    const u64 *bits = c.kept + link.word_off;
    if (link.kind < STEP_LABEL) {
      const u64 *mask = mask_of(c, w.pair, link.kind);
      if (!(mask[state / 64] & bits[state / 64] & (u64)1 << (state & 63))) continue;
      if (WRITE) w.put(at, link, NO_ARC, w.number_of(link.word_off, state));
      at++;
      continue;
    }
    const u32 *off = c.off + w.pair.off_base[0] + (u64)(link.kind - STEP_LABEL) * w.pair.num_b + state;
    for (u32 k = off[0], end = off[1]; k < end; k++) {
      u32 to = c.to[w.pair.to_base[0] + k];
      if (!(bits[to / 64] >> (to & 63) & 1)) continue;
      if (WRITE) w.put(at, link, c.b_arc[w.pair.to_base[0] + k], w.number_of(link.word_off, to));
      at++;
    }
  }
  return at - begin;
}

/* A warp a piece, a lane a state of half a word. */
__global__ static void __launch_bounds__(THREADS) count_kernel(const wf__gpu_compose c) {
  u64 warp = ((u64)blockIdx.x * THREADS + threadIdx.x) / 32, num_warps = (u64)gridDim.x * THREADS / 32;
  for (u64 i = warp; i < c.num_words + c.num_part_words; i += num_warps) {
    piece p;
    if (!find_piece(c, i, p)) continue;
    const wf__gpu_row info = c.rows[p.row];
    arc_writer w = {c, c.pairs[info.pair], 0, nullptr, 0};
    u64 kept = c.kept[p.word];
    for (u32 bit = threadIdx.x & 31; bit < 64; bit += 32) {
      if (!(kept >> bit & 1)) continue;
      u64 rank = (u64)__popcll(kept & (((u64)1 << bit) - 1));
      c.slots[c.first_slot[p.word] + rank * p.num_segments + p.segment] = arcs_of<false>(w, p, (u32)(p.word - info.word_off) * 64 + bit, 0);
    }
  }
}

/* What a state has besides its arcs. */
__device__ static void put_state(const wf__gpu_compose &c, const wf__gpu_pair &pair, const wf__gpu_row &info, u64 number, u32 state, u64 at) {
  c.arc_off[number + (u64)info.pair] = at - c.slots[c.first_slot[pair.word_base]];
  c.final_cost[number] = info.a_final + c.b_final[pair.b_final_base + state];
}

/* The same for writing. The arcs of half a word lie side by side where the row has one segment: if they are few enough, they are put together in shared
 * memory and go out in order. */
__global__ static void __launch_bounds__(THREADS) fill_kernel(const wf__gpu_compose c) {
  __shared__ float4 stages[THREADS / 32][STAGE];
  u64 warp = ((u64)blockIdx.x * THREADS + threadIdx.x) / 32, num_warps = (u64)gridDim.x * THREADS / 32;
  u32 lane = threadIdx.x & 31;
  float4 *stage = stages[threadIdx.x / 32];
  for (u64 i = warp; i < c.num_words + c.num_part_words; i += num_warps) {
    piece p;
    if (!find_piece(c, i, p)) continue;
    const wf__gpu_row info = c.rows[p.row];
    const wf__gpu_pair &pair = c.pairs[info.pair];
    u64 kept = c.kept[p.word], slot = c.first_slot[p.word];
    for (u32 half = 0; half < 64; half += 32) {
      u32 low = (u32)__popcll(kept & (((u64)1 << half) - 1)), count = (u32)__popcll(kept >> half & 0xffffffffu);
      if (count == 0) continue;
      u64 begin = c.slots[slot + (u64)low * p.num_segments], num_arcs = c.slots[slot + (u64)(low + count) * p.num_segments] - begin;
      bool staged = p.num_segments == 1 && num_arcs <= STAGE;
      arc_writer w = {c, pair, c.first[pair.word_base], staged ? stage : (float4 *)c.arcs, staged ? begin : 0};
      if (kept >> (half + lane) & 1) {
        u32 rank = (u32)__popcll(kept & (((u64)1 << (half + lane)) - 1)), state = (u32)(p.word - info.word_off) * 64 + half + lane;
        u64 at = c.slots[slot + (u64)rank * p.num_segments + p.segment];
        if (p.segment == 0) put_state(c, pair, info, c.first[p.word] + rank, state, at);
        arcs_of<true>(w, p, state, at);
      }
      if (!staged) continue;
      __syncwarp();
      for (u32 k = lane; k < num_arcs; k += 32) ((float4 *)c.arcs)[begin + k] = stage[k];
      __syncwarp();
    }
  }
}

static unsigned blocks_for(const wf__gpu_compose *c) {
  u64 wanted = ((c->num_words + c->num_part_words) * 32 + THREADS - 1) / THREADS;
  return (unsigned)(wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS);
}

int wf__gpu_compose_count(const wf__gpu_compose *c, uint64_t num_slots, void *scratch, size_t *scratch_bytes, void *opaque) {
  cudaStream_t stream = (cudaStream_t)opaque;
  if (scratch != nullptr) {
    cudaError_t code = cudaMemsetAsync(c->slots + num_slots, 0, sizeof(u64), stream);
    if (code != cudaSuccess) return code;
    count_kernel<<<blocks_for(c), THREADS, 0, stream>>>(*c);
  }
  return cub::DeviceScan::ExclusiveSum(scratch, *scratch_bytes, c->slots, c->slots, (int64_t)(num_slots + 1), stream);
}

/* Where each pair's part begins, the ends of their arc_off, their starts. */
__global__ static void places_kernel(const wf__gpu_compose c) {
  for (u64 p = (u64)blockIdx.x * THREADS + threadIdx.x; p <= c.num_pairs; p += (u64)gridDim.x * THREADS) {
    u64 word = p < c.num_pairs ? c.pairs[p].word_base : c.num_words, state = c.first[word], arc = c.slots[c.first_slot[word]];
    c.places[p].state_base = state;
    c.places[p].arc_base = arc;
    c.places[p].start = -1;
    if (p > 0) c.arc_off[state + p - 1] = arc - c.slots[c.first_slot[c.pairs[p - 1].word_base]];
    if (p == c.num_pairs || c.pairs[p].num_b == 0) continue;
    const wf__gpu_pair &pair = c.pairs[p];
    u64 at = c.rows[pair.start_row].word_off + pair.start_b / 64, below = ((u64)1 << (pair.start_b & 63)) - 1;
    if (c.kept[at] >> (pair.start_b & 63) & 1) c.places[p].start = (int64_t)(c.first[at] - state + (u64)__popcll(c.kept[at] & below));
  }
}

int wf__gpu_compose_fill(const wf__gpu_compose *c, void *opaque) {
  cudaStream_t stream = (cudaStream_t)opaque;
  places_kernel<<<(unsigned)(c->num_pairs / THREADS + 1), THREADS, 0, stream>>>(*c);
  if (c->num_words != 0) fill_kernel<<<blocks_for(c), THREADS, 0, stream>>>(*c);
  return cudaGetLastError();
}
