/* slot_table.cuh - the common part of the token tables (token_table.cuh): slots of shared
 * memory, each with a key or its fingerprint, or FREE. */
#ifndef WF_CUDA_SEARCH_SLOT_TABLE_CUH
#define WF_CUDA_SEARCH_SLOT_TABLE_CUH

#include "cuda/search/lane.cuh"

namespace wf_search {

template <class POLICY, int RANKS>
struct slot_table : lane<POLICY, RANKS> {
  typedef wf_search::lane_shared<POLICY> lane_shared;
  using lane<POLICY, RANKS>::THREADS;
  typedef typename POLICY::table::token_key token_key;
  typedef typename POLICY::table::fingerprint fingerprint;
  using lane<POLICY, RANKS>::bits;
  using lane<POLICY, RANKS>::own;
  static constexpr u32 SLOT_BITS = POLICY::table::slot_bits(WF__SHARED_KB), SLOTS = 1u << SLOT_BITS;
  static constexpr token_key NO_STATE = ~(token_key)0,
                             HAS_EPSILONS = (token_key)1 << (sizeof(token_key) * 8 - 1);
  static constexpr u32 FREE = (fingerprint)~0u,
                       MARK =
                           1u
                           << (sizeof(fingerprint) * 8 -
                               1); /* MARK: the bit of a stored key that stands for HAS_EPSILONS */
  static constexpr u32 GROUP = 16 / sizeof(fingerprint); /* slots that one load reads: a home */

  /* These read this block's part of the table. */
  __device__ __forceinline__ bool is_taken(u32 slot) const { return own().keys[slot] != FREE; }
  __device__ __forceinline__ bool has_epsilons_at(u32 slot) const {
    return (own().keys[slot] & MARK) != 0;
  } /* if it is taken */

  /* Rank and home slot of a key without HAS_EPSILONS in a table of ranks of 2^bits slots. */
  static __device__ __forceinline__ void place_of(token_key key, u32 bits, u32 *rank, u32 *slot) {
    table_place<RANKS>(key, bits, GROUP, rank, slot);
  }

 protected:
  /* Frees all slots of the block and begins a frame, whose table has 2^new_bits slots. */
  __device__ __forceinline__ void free_slots(u32 new_bits) {
    uint4 *keys = (uint4 *)own().keys;
    for (u32 i = tid(); i < sizeof own().keys / sizeof *keys; i += THREADS)
      keys[i] = make_uint4(ALL, ALL, ALL, ALL);
    if (tid() == 0) own().begin_frame();
    bits = new_bits;
  }
};

}  // namespace wf_search

#endif
