/* transducer_lists.cuh - lists of candidates that keep the best of each token. By a warp, which keeps
 * at most a candidate for each of its lanes. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_LISTS_CUH
#define WF_CUDA_TRANSDUCER_TRANSDUCER_LISTS_CUH

#include "cuda/device/grid.cuh"
#include "math/cost.h"

enum : u32 { NONE = 0xffffffffu };
enum { ROOM = 128 }; /* of a list: at least K tokens and a candidate of each lane of the warp */

/* A candidate, or a token that waited when the step began. With words: a token is told from others by
 * its state and its scorer's context, too. */
template <bool WORDS>
struct offered {
  u64 predictor;
  u32 key;   /* ordered cost */
  u32 order; /* of equal costs the first counts: 0 for tokens that waited, then by rank of the
                source and arc */
  u32 from;  /* column, or with words the number of the candidate; of a token: its number */
  float loglike;
  __device__ bool is_same(const offered &other) const { return predictor == other.predictor; }
};
template <>
struct offered<true> {
  u64 predictor, context;
  u32 key, order, from;
  float loglike;
  u32 state, unused;
  __device__ bool is_same(const offered &other) const {
    return predictor == other.predictor && state == other.state && context == other.context;
  }
};

__device__ inline u32 key_of(float cost) { return wf__ordered_cost(cost + 0.0f); /* -0 is 0 */ }
__device__ inline float cost_of(u32 key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/* What decides between equal costs, in order: part number 0, 1, ... */
template <bool WORDS>
__device__ u32 part_of(const offered<WORDS> &own, int part) {
  if constexpr (WORDS) {
    if (part == 0) return own.state;
    if (part == 3) return (u32)(own.context >> 32);
    if (part == 4) return (u32)own.context;
    if (part < 3) part--;
  }
  return part == 0 ? (u32)(own.predictor >> 32) : part == 1 ? (u32)own.predictor : own.order;
}

/* Of these lanes, the first by what decides between equal costs. */
template <bool WORDS>
__device__ u32 first_of_equal(u32 lanes, const offered<WORDS> &own) {
  const u32 lane = this_lane();
  for (int part = 0; part < (WORDS ? 6 : 3) && (lanes & (lanes - 1)) != 0; part++) {
    const u32 value = part_of(own, part);
    const bool is = lanes >> lane & 1;
    const u32 least = warp_min(is ? value : NONE);
    lanes = __ballot_sync(ALL_LANES, is && value == least);
  }
  return (u32)__ffs((int)lanes) - 1;
}

template <bool WORDS>
__device__ bool is_before(const offered<WORDS> &a, const offered<WORDS> &b) {
  if (a.key != b.key) return a.key < b.key;
  if constexpr (WORDS)
    if (a.state != b.state) return a.state < b.state;
  if (a.predictor != b.predictor) return a.predictor < b.predictor;
  if constexpr (WORDS)
    if (a.context != b.context) return a.context < b.context;
  return a.order < b.order;
}

/* Keeps the first of those that make the same token, of these the first `most` by rank, in order.
 * Returns their number. By a warp. */
template <bool WORDS>
__device__ u32 reduce(offered<WORDS> *list, u32 size, u32 most) {
  const u32 lane = this_lane();
  u32 count = 0;
  offered<WORDS> mine = {}; /* lane i keeps the i-th */
  u32 left = 0;             /* a bit for each of the lane's own */
  for (u32 i = 0; lane + i * LANES < size; i++) left |= 1u << i;
  u32 own = NONE; /* the lane's first of those left */
  bool is_stale = true;
  while (count < most) {
    if (is_stale) {
      own = NONE;
      for (u32 bits = left; bits != 0; bits &= bits - 1) {
        const u32 at = lane + ((u32)__ffs((int)bits) - 1) * LANES;
        if (own == NONE || is_before(list[at], list[own])) own = at;
      }
      is_stale = false;
    }
    const u32 any = __ballot_sync(ALL_LANES, own != NONE);
    if (any == 0) break;
    const u32 key = own != NONE ? list[own].key : NONE, least = warp_min(key),
              equal = __ballot_sync(ALL_LANES, own != NONE && key == least);
    const u32 winner = first_of_equal(equal, own != NONE ? list[own] : offered<WORDS>{}),
              at = __shfl_sync(ALL_LANES, own, (int)winner);
    const offered<WORDS> &best = list[at];
    if (lane == winner) {
      left &= ~(1u << (at / LANES));
      is_stale = true;
    }
    const bool is_there = __ballot_sync(ALL_LANES, lane < count && best.is_same(mine)) != 0;
    if (is_there) continue;
    if (lane == count) mine = best;
    count++;
  }
  __syncwarp();
  if (lane < count) list[lane] = mine;
  __syncwarp();
  return count;
}

/* Adds the warp's candidates to a list that keeps `most`. */
template <bool WORDS>
struct kept_list {
  offered<WORDS> *list;
  u32 size, most;
  float limit; /* candidates that cost more do not count */

  __device__ void add(bool is, float cost, const offered<WORDS> &own) {
    u32 adds = __ballot_sync(ALL_LANES, is && cost <= limit);
    if (adds == 0) return;
    if (size + (u32)__popc(adds) > ROOM) {
      size = reduce(list, size, most);
      if (size == most) limit = fminf(limit, cost_of(list[size - 1].key));
      adds = __ballot_sync(ALL_LANES, is && cost <= limit);
    }
    if (adds >> this_lane() & 1) list[size + (u32)__popc(adds & ((1u << this_lane()) - 1))] = own;
    size += (u32)__popc(adds);
    __syncwarp();
  }
};

#endif
