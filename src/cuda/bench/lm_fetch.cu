/* lm_fetch.cu - the kernels of lm_fetch.h. Also compiled for the emulated GPU of tests/simt/. */
#include "cuda/bench/lm_fetch.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "cuda/device/ptx.cuh"
#include "math/hash.h"

typedef unsigned long long u64;
typedef uint32_t u32;

enum {
  THREADS = 1024,
  PLENTY = 264,
  ALONE_BYTES = 120 << 10,
  HOPS = 1024
}; /* with ALONE_BYTES of shared memory, an SM runs one block of a lane at a time, as in the
      search */

struct warp_sums {
  u64 of[THREADS / 32];
};

template <int WORDS>
struct record {
  u32 word[WORDS];
};

template <int WORDS>
static __device__ __forceinline__ record<WORDS> read_record(const u32 *from, u64 place) {
  record<WORDS> r;
  from += place * WORDS;
  if (WORDS % 4 != 0) {
    for (int k = 0; k < WORDS; k++) r.word[k] = from[k];
  } else {
    for (int k = 0; k < WORDS; k += 4) {
      const uint4 four = *(const uint4 *)(from + k);
      r.word[k] = four.x, r.word[k + 1] = four.y, r.word[k + 2] = four.z, r.word[k + 3] = four.w;
    }
  }
  return r;
}

template <int WORDS>
static __device__ __forceinline__ u64 sum_of(const record<WORDS> &r) {
  u64 sum = 0;
  for (int k = 0; k < WORDS; k++) sum += r.word[k];
  return sum;
}

/* Calls get(i) for each request of this block, which is part of a lane, and writes the sum of the
 * results. */
template <class GET>
static __device__ __forceinline__ void for_lane(const lm_fetch_frame &frame, u64 *sums, GET get) {
  WF__SHARED(warp_sums, parts);
  const u32 lane = blockIdx.x / frame.blocks_per_lane, part = blockIdx.x % frame.blocks_per_lane;
  u64 sum = 0;
#pragma unroll 1 /* as in the search, a thread waits for each n-gram before it requests the next \
                  */
  for (u32 i = frame.first[lane] + part * THREADS + threadIdx.x; i < frame.first[lane + 1];
       i += frame.blocks_per_lane * THREADS)
    sum += get(i);
  for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if (threadIdx.x % 32 == 0) parts.of[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < THREADS / 32; w++) sum += parts.of[w];
    sums[blockIdx.x] = sum;
  }
}

template <int WORDS>
static __global__ void __launch_bounds__(THREADS)
    direct_kernel(const u32 *table, lm_fetch_frame frame, u64 *sums) {
  for_lane(frame, sums, [&](u32 i) { return sum_of(read_record<WORDS>(table, frame.places[i])); });
}

template <int WORDS>
static __global__ void gather_kernel(const u32 *table, const u32 *distinct, const u32 *num_distinct,
                                     u32 *staged) {
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < *num_distinct;
       i += gridDim.x * blockDim.x) {
    const record<WORDS> r = read_record<WORDS>(table, distinct[i]);
    for (int k = 0; k < WORDS; k++) staged[(u64)i * WORDS + k] = r.word[k];
  }
}

template <int WORDS>
static __global__ void __launch_bounds__(THREADS)
    staged_kernel(lm_fetch_frame frame, const u32 *distinct, const u32 *num_distinct,
                  const u32 *staged, u64 *sums) {
  const u32 num = *num_distinct;
  for_lane(frame, sums, [&](u32 i) {
    const u32 place = frame.places[i];
    u32 low = 0;
    for (u32 size = num; size > 1; size -= size / 2)
      if (distinct[low + size / 2] <= place) low += size / 2;
    return sum_of(read_record<WORDS>(staged, low));
  });
}

static __global__ void publish_kernel(lm_fetch_room room, u32 turn) {
  const u32 num = *room.num_distinct;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < num; i += gridDim.x * blockDim.x)
    room.list[i] = room.distinct[i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x > 0 || atomicAdd(room.ticket, 1) != gridDim.x - 1) return;
  *room.ticket = 0;
  __threadfence_system();
  *room.list_ready = (u64)turn << 32 | num;
}

/* A slot is free if its key has another turn. */
template <int WORDS>
static __global__ void insert_kernel(const u32 *table, lm_fetch_frame frame, lm_fetch_room room,
                                     u32 turn) {
  const u32 mask = (1u << room.slot_bits) - 1;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < frame.num; i += gridDim.x * blockDim.x) {
    const u32 place = frame.places[i];
    const u64 key = (u64)turn << 32 | place;
    u32 slot = wf__spread64(place, room.slot_bits);
    for (;; slot = (slot + 1) & mask) {
      u64 seen = *(volatile u64 *)&room.keys[slot];
      if (seen >> 32 != turn) {
        const u64 was = atomicCAS((u64 *)&room.keys[slot], seen, key);
        if (was == seen) {
          const record<WORDS> r = read_record<WORDS>(table, place);
          for (int k = 0; k < WORDS; k++) room.records[(u64)slot * WORDS + k] = r.word[k];
          break;
        }
        seen = was;
      }
      if (seen == key) break;
    }
    room.slots[i] = slot;
  }
}

template <int WORDS>
static __global__ void __launch_bounds__(THREADS)
    look_up_kernel(lm_fetch_frame frame, lm_fetch_room room) {
  for_lane(frame, room.sums,
           [&](u32 i) { return sum_of(read_record<WORDS>(room.records, room.slots[i])); });
}

static __global__ void latency_kernel(const u32 *table, u32 words, u32 place_bits, u32 seed,
                                      u64 *cycles) {
  u32 place = seed & ((1u << place_bits) - 1);
  const long long began = clock64();
  for (int i = 0; i < HOPS; i++)
    place = (u32)wf__mix64(table[(u64)place * words] + (u64)i) & ((1u << place_bits) - 1);
  if (place != 0xffffffffu)
    *cycles = (u64)(clock64() - began) / HOPS; /* the clock is read after the last load has
                                                  arrived */
}

/* --- launches ---------------------------------------------------------------------------- */

#define WITH_WORDS(words, kernel) \
  ((words) == 3 ? (kernel<3>) : (words) == 4 ? (kernel<4>) : (kernel<8>))

extern "C" int lm_fetch_direct(const lm_fetch_table *table, const lm_fetch_frame *frame,
                               const lm_fetch_room *room, cudaStream_t stream) {
  auto kernel = WITH_WORDS(table->record_words, direct_kernel);
  const cudaError_t code =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ALONE_BYTES);
  if (code != cudaSuccess) return code;
  return WF__LAUNCH(kernel, frame->lanes * frame->blocks_per_lane, THREADS, ALONE_BYTES, stream,
                    table->records, *frame, room->sums);
}

extern "C" int lm_fetch_scratch(uint32_t num, int place_bits, size_t *out) {
  size_t sort = 0, unique = 0;
  cudaError_t code = cub::DeviceRadixSort::SortKeys(nullptr, sort, (const u32 *)nullptr,
                                                    (u32 *)nullptr, (int)num, 0, place_bits, 0);
  if (code == cudaSuccess)
    code = cub::DeviceSelect::Unique(nullptr, unique, (const u32 *)nullptr, (u32 *)nullptr,
                                     (u32 *)nullptr, (int)num, 0);
  *out = sort > unique ? sort : unique;
  return code;
}

extern "C" int lm_fetch_distinct(const lm_fetch_table *table, const lm_fetch_frame *frame,
                                 const lm_fetch_room *room, cudaStream_t stream) {
  size_t bytes = room->scratch_bytes;
  const cudaError_t code =
      cub::DeviceRadixSort::SortKeys(room->scratch, bytes, frame->places, room->sorted,
                                     (int)frame->num, 0, table->place_bits, stream);
  if (code != cudaSuccess) return code;
  return cub::DeviceSelect::Unique(room->scratch, bytes, room->sorted, room->distinct,
                                   room->num_distinct, (int)frame->num, stream);
}

static unsigned blocks_for(u32 num) {
  return num / 256 + 1 < PLENTY * 8 ? num / 256 + 1 : PLENTY * 8;
}

extern "C" int lm_fetch_gather(const lm_fetch_table *table, const lm_fetch_frame *frame,
                               const lm_fetch_room *room, cudaStream_t stream) {
  auto kernel = WITH_WORDS(table->record_words, gather_kernel);
  return WF__LAUNCH(kernel, blocks_for(frame->num), 256, 0, stream, table->records, room->distinct,
                    room->num_distinct, room->staged);
}

extern "C" int lm_fetch_publish(const lm_fetch_frame *frame, const lm_fetch_room *room,
                                uint32_t turn, cudaStream_t stream) {
  return WF__LAUNCH(publish_kernel, blocks_for(frame->num), 256, 0, stream, *room, turn);
}

extern "C" int lm_fetch_staged(const lm_fetch_table *table, const lm_fetch_frame *frame,
                               const lm_fetch_room *room, cudaStream_t stream) {
  auto kernel = WITH_WORDS(table->record_words, staged_kernel);
  return WF__LAUNCH(kernel, frame->lanes * frame->blocks_per_lane, THREADS, 0, stream, *frame,
                    room->distinct, room->num_distinct, room->staged, room->sums);
}

extern "C" int lm_fetch_hashed(const lm_fetch_table *table, const lm_fetch_frame *frame,
                               const lm_fetch_room *room, uint32_t turn, cudaStream_t stream) {
  auto insert = WITH_WORDS(table->record_words, insert_kernel);
  auto look_up = WITH_WORDS(table->record_words, look_up_kernel);
  const cudaError_t code = WF__LAUNCH(insert, blocks_for(frame->num), 256, 0, stream,
                                      table->records, *frame, *room, turn);
  if (code != cudaSuccess) return code;
  return WF__LAUNCH(look_up, frame->lanes * frame->blocks_per_lane, THREADS, 0, stream, *frame,
                    *room);
}

extern "C" int lm_fetch_latency(const lm_fetch_table *table, uint32_t seed,
                                unsigned long long *cycles, cudaStream_t stream) {
  return WF__LAUNCH(latency_kernel, 1, 1, 0, stream, table->records, (u32)table->record_words,
                    (u32)table->place_bits, seed, cycles);
}
