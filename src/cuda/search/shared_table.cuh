/* shared_table.cuh - a lane's table of tokens with keys and values in (distributed) shared memory;
 * token_table.cuh says what they are. A home is four slots, which one load reads. */
#ifndef WF_CUDA_SEARCH_SHARED_TABLE_CUH
#define WF_CUDA_SEARCH_SHARED_TABLE_CUH

#include "cuda/search/slot_table.cuh"

namespace wf_search {

template <class POLICY, int RANKS>
struct shared_table : slot_table<POLICY, RANKS> {
  typedef slot_table<POLICY, RANKS> slots;
  typedef typename slots::lane_shared lane_shared;
  using slots::THREADS;
  typedef typename slots::token_key token_key;
  using slots::base;
  using slots::bits;
  using slots::FREE;
  using slots::GROUP;
  using slots::HAS_EPSILONS;
  using slots::own;
  using slots::place_of;
  using slots::SLOTS;

  __device__ __forceinline__ explicit shared_table(const wf__lane_params *) {}

  /* --- this block's part, slot by slot --- */

  __device__ __forceinline__ token_key key_at(u32 slot) const {
    return own_words::load(base + OFFSET(keys) + slot * 4);
  }
  __device__ __forceinline__ u64 value_at(u32 slot) const { return own().values[slot]; }
  __device__ __forceinline__ ulonglong2 entry_at(u32 slot) const {
    return make_ulonglong2(key_at(slot), value_at(slot));
  }
  __device__ __forceinline__ void put_value(u32 slot, u64 value) { own().values[slot] = value; }
  __device__ __forceinline__ void free_slot(u32 slot, bool has_value = true) {
    if (has_value) own().values[slot] = NO_TOKEN;
    own().keys[slot] = FREE;
  }

  /* Empties the table from any state and sets its size for the next frame. */
  __device__ void clear(u32 new_bits) {
    ulonglong2 *values = (ulonglong2 *)own().values;
    for (u32 i = tid(); i < SLOTS / 2; i += THREADS)
      values[i] = make_ulonglong2(NO_TOKEN, NO_TOKEN);
    this->free_slots(new_bits);
  }
  /* The same for this block's part of a table after a frame. */
  __device__ __forceinline__ void empty_slots() {
    for (u32 at = tid(); at < 1u << bits; at += THREADS) free_slot(at);
  }

  /* --- all of it --- */

  /* Of the four keys from an address on, finds the first that is free or `key`; GROUP if none is.
   * *seen is the key found there. */
  template <bool CLUSTER>
  static __device__ __forceinline__ u32 first_of(u32 address, u32 key, u32 *seen) {
    const uint4 four = words<CLUSTER>::load128(address);
    u32 which = GROUP;
    if (four.w == key || four.w == FREE) which = 3, *seen = four.w;
    if (four.z == key || four.z == FREE) which = 2, *seen = four.z;
    if (four.y == key || four.y == FREE) which = 1, *seen = four.y;
    if (four.x == key || four.x == FREE) which = 0, *seen = four.x;
    return which;
  }

  /* Value of the key, whose home slot is `at`; NO_TOKEN if it is not there, or being put there. */
  __device__ __forceinline__ u64 value_of(u32 rank, u32 at, token_key key) const {
    constexpr bool CLUSTER = RANKS > 1;
    const u32 there = this->base_of(rank), mask = (1u << bits) - 1;
    for (u32 probes = 0; probes <= mask;) {
      u32 seen = 0;
      const u32 which = first_of<CLUSTER>(there + OFFSET(keys) + at * 4, key, &seen);
      if (which < GROUP && seen != key) return NO_TOKEN;
      if (which == GROUP) {
        probes += GROUP;
        at = (at + GROUP) & mask;
        continue;
      }
      return words<CLUSTER>::load64(there + OFFSET(values) + (at + which) * 8);
    }
    return NO_TOKEN;
  }

  /* Offers a candidate of each live thread of a warp to the table of the block whose shared
   * memory is at `to`; `at` is the home slot there. Called by whole warps, because the threads
   * synchronise between finding a slot and lowering its value; otherwise the first ones would
   * continue alone. (Synchronising only the active threads could deadlock with the compiler's own
   * convergence barriers: docs/engineering/gpu.md.) Returns true if it lowered the slot's value;
   * then *slot is the slot and *old its old value. By compare-and-swap: a 64-bit minimum is no
   * faster on the block's own shared memory, and not atomic on another block's
   * (docs/engineering/gpu.md). */
  template <bool CLUSTER>
  __device__ __forceinline__ bool offer_at(bool live, u32 to, u32 at, token_key key, u64 value,
                                           u32 *slot, u64 *old) {
    typedef words<CLUSTER> there;
    const u32 mask = (1u << bits) - 1;
    for (u32 left = min(MAX_PROBES, mask / (4 * GROUP)); live;) {
      const u32 address = to + OFFSET(keys) + at * 4;
      u32 seen = 0;
      const u32 which = first_of<CLUSTER>(address, key, &seen);
      if (which < GROUP) {
        if (seen == FREE) seen = there::swap(address + which * 4, FREE, key);
        if (seen == FREE || seen == key) {
          at += which;
          break;
        }
        continue; /* another state took the slot: check again */
      }
      if (left-- == 0) {
        for (int r = 0; r < RANKS; r++) this->of(r).full = 1;
        live = false;
      }
      at = (at + GROUP) & mask;
    }
    __syncwarp();
    if (!live) return false;
    *slot = at;
    const u32 address = to + OFFSET(values) + at * 8;
    u64 seen = there::load64(address);
    while (value < seen) {
      u64 was = there::swap64(address, seen, value);
      if (was == seen) {
        *old = seen;
        return true;
      }
      seen = was;
    }
    return false;
  }
  __device__ __forceinline__ bool offer(bool live, token_key key, u64 value, u32 *rank, u32 *slot,
                                        u64 *old) {
    u32 at;
    place_of(key & ~HAS_EPSILONS, bits, rank, &at);
    return offer_at<(RANKS > 1)>(live, this->base_of(*rank), at, key, value, slot, old);
  }
  /* Offers to the block's own part of the table. */
  __device__ __forceinline__ bool offer_own(bool live, token_key key, u64 value, u32 *slot,
                                            u64 *old) {
    u32 rank, at;
    place_of(key & ~HAS_EPSILONS, bits, &rank, &at);
    return offer_at<false>(live, base, at, key, value, slot, old);
  }

  /* Appends a candidate of each live thread of the warp to the list of the rank that owns its
   * state, in the slots [begin, end) behind the part of the table in use. Candidates that do not
   * fit are only counted. */
  __device__ __forceinline__ void send(bool live, u32 which, u32 begin, u32 end, token_key key,
                                       u64 value) {
    u32 rank = 0, slot;
    if (RANKS > 1) place_of(key & ~HAS_EPSILONS, bits, &rank, &slot);
    u32 peers = __ballot_sync(ALL, live);
    if (peers == 0) return;
    if (RANKS > 1) peers = __match_any_sync(ALL, live ? rank : RANKS);
    const u32 leader = __ffs(peers) - 1;
    u32 at = 0;
    if (live && in_warp() == leader)
      at = atomicAdd(&this->of(rank).num_listed[which], (u32)__popc(peers));
    at = begin + __shfl_sync(ALL, at, leader) + __popc(peers & lanes_before());
    if (live && at < end) {
      lane_shared &to = this->of(rank);
      to.values[at] = value;
      to.keys[at] = key;
    }
  }
};

}  // namespace wf_search

#endif
