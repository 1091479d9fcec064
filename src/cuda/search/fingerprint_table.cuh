/* fingerprint_table.cuh - a lane's table of tokens with fingerprints of the keys in (distributed)
 * shared memory, keys of 64 bits and values in device memory; token_table.cuh says what they are.
 *
 * A fingerprint has 16 bits; its top bit is the key's HAS_EPSILONS. Key and value are in device
 * memory at the same slot number, where one load reads both. Two keys may have the same
 * fingerprint: a thread that finds it compares the key, and continues with the next slot if the
 * keys differ. A home is eight slots, taken in the order 0, 2, 4, 6, 1, 3, 5, 7. */
#ifndef WF_CUDA_SEARCH_FINGERPRINT_TABLE_CUH
#define WF_CUDA_SEARCH_FINGERPRINT_TABLE_CUH

#include "cuda/search/slot_table.cuh"

namespace wf_search {

#ifndef WF__FINGERPRINT_BITS /* a test uses few bits, so that fingerprints are often those of \
                                other keys */
#define WF__FINGERPRINT_BITS 15
#endif

template <class POLICY, int RANKS>
struct fingerprint_table : slot_table<POLICY, RANKS> {
  typedef slot_table<POLICY, RANKS> slots;
  typedef typename slots::lane_shared lane_shared;
  using slots::THREADS;
  typedef typename slots::token_key token_key;
  typedef typename slots::fingerprint fingerprint;
  using slots::base;
  using slots::bits;
  using slots::FREE;
  using slots::GROUP;
  using slots::HAS_EPSILONS;
  using slots::is_taken;
  using slots::NO_STATE;
  using slots::own;
  using slots::place_of;
  using slots::SLOTS;

  ulonglong2 *entries; /* {key, value} of the slots of rank 0, then of rank 1, ... */

  __device__ __forceinline__ explicit fingerprint_table(const wf__lane_params *p)
      : entries((ulonglong2 *)p->memory.entries + (u64)(blockIdx.x / RANKS * RANKS) * SLOTS) {}

  __device__ __forceinline__ void set_constants(const fingerprint_table &from) {
    slots::set_constants(from);
    entries = from.entries;
  }

  /* --- this block's part, slot by slot --- */

  __device__ __forceinline__ ulonglong2 *own_entries() const {
    return entries + (u64)this->rank() * SLOTS;
  }
  __device__ __forceinline__ token_key key_at(u32 slot) const {
    return __ldcg((const u64 *)(own_entries() + slot));
  }
  __device__ __forceinline__ ulonglong2 entry_at(u32 slot) const {
    return __ldcg(own_entries() + slot);
  } /* if it is taken */
  __device__ __forceinline__ u64 value_at(u32 slot) const {
    return is_taken(slot) ? __ldcg((const u64 *)(own_entries() + slot) + 1) : NO_TOKEN;
  }
  __device__ __forceinline__ void put_value(u32 slot, u64 value) {
    __stcg((u64 *)(own_entries() + slot) + 1, value);
  }
  __device__ __forceinline__ void free_slot(u32 slot, bool = true) {
    if (is_taken(slot)) __stcg(own_entries() + slot, make_ulonglong2(NO_STATE, NO_TOKEN));
    own().keys[slot] = FREE;
  }
  __device__ __forceinline__ u64 value_of_rank(u32 rank, u32 slot) const {
    return __ldcg((const u64 *)(entries + (u64)rank * SLOTS + slot) + 1);
  }

  /* Empties the table from any state and sets its size for the next frame. Without
   * `entries_too`, device memory is already that of an empty table. */
  __device__ void clear(u32 new_bits, bool entries_too = true) {
    for (u32 i = tid(); i < SLOTS && entries_too; i += THREADS)
      __stcg(own_entries() + i, make_ulonglong2(NO_STATE, NO_TOKEN));
    this->free_slots(new_bits);
  }
  /* The same for this block's part of a table after a frame. */
  __device__ __forceinline__ void empty_slots() {
    for (u32 at = tid(); at < 1u << bits; at += THREADS) free_slot(at);
  }

  /* --- fingerprints --- */

  static __device__ __forceinline__ u32 fingerprint_of(u64 key) {
    u32 print = (u32)(key >> 32 & 0x7fffffffu) * 0xC2B2AE3Du ^ (u32)key * 0x27D4EB2Fu;
    print = (print ^ print >> 15) * 0x165667B1u >> (32 - WF__FINGERPRINT_BITS);
    return (u32)(key >> 63) << 15 | min(print, 0x7ffeu); /* never FREE */
  }
  /* The top bit of each half of a word that is 0. */
  static __device__ __forceinline__ u32 zero_halves(u32 word) {
    return ~(((word & 0x7fff7fffu) + 0x7fff7fffu) | word) & 0x80008000u;
  }
  /* A bit for each of the eight fingerprints that is 0 in all words: bit 0 to 3, then 16 to 19, in
   * the order in which slots are taken. */
  static __device__ __forceinline__ u32 zero_of_eight(uint4 words) {
    return zero_halves(words.x) >> 15 | zero_halves(words.y) >> 14 | zero_halves(words.z) >> 13 |
           zero_halves(words.w) >> 12;
  }
  /* Of the eight slots from an address on, the first after `done` (those checked before, in the
   * order in which slots are taken) that is free or has the fingerprint; GROUP if there is none. */
  template <bool CLUSTER>
  static __device__ __forceinline__ u32 first_of(u32 address, u32 print, bool *is_free, u32 *done) {
    const uint4 eight = words<CLUSTER>::load128(address);
    const u32 both = print << 16 | print;
    const u32 free = zero_of_eight(make_uint4(~eight.x, ~eight.y, ~eight.z, ~eight.w));
    const u32 found = (free | zero_of_eight(make_uint4(eight.x ^ both, eight.y ^ both,
                                                       eight.z ^ both, eight.w ^ both))) &
                      ~*done;
    if (found == 0) return GROUP;
    const u32 first = found & (0u - found), place = __ffs(first) - 1;
    *is_free = (free & first) != 0;
    *done |= first | (first - 1);
    return 2 * (place & 3) + (place >> 4);
  }
  /* Puts a fingerprint into the slot at an address, if that is free and no other thread changes
   * its neighbour meanwhile. */
  template <bool CLUSTER>
  static __device__ __forceinline__ bool take_slot(u32 address, u32 print) {
    const u32 shift = (address & 2) * 8, word = words<CLUSTER>::load(address & ~3u);
    if ((word >> shift & FREE) != FREE) return false;
    return words<CLUSTER>::swap(address & ~3u, word, word ^ (FREE ^ print) << shift) == word;
  }

  /* --- all of it --- */

  /* Value of the key, whose home slot is `at`; NO_TOKEN if it is not there, or being put there. */
  __device__ __forceinline__ u64 value_of(u32 rank, u32 at, token_key key) const {
    const u32 there = this->base_of(rank), mask = (1u << bits) - 1, print = fingerprint_of(key);
    u32 done = 0;
    for (u32 probes = 0; probes <= mask;) {
      bool is_free = false;
      const u32 which = first_of<(RANKS > 1)>(there + OFFSET(keys) + at * (u32)sizeof(fingerprint),
                                              print, &is_free, &done);
      if (is_free) return NO_TOKEN;
      if (which < GROUP) {
        ulonglong2 entry;
        u32 turns = 0;
        while ((entry = load_global128(entries + (u64)rank * SLOTS + at + which)).x == NO_STATE)
          count_turn(&turns, "a key of the token table");
        if (entry.x == key) return entry.y;
        continue; /* another key with this fingerprint */
      }
      done = 0;
      probes += GROUP;
      at = (at + GROUP) & mask;
    }
    return NO_TOKEN;
  }

  /* Offers a candidate of each live thread of a warp to the part of the table at shared memory
   * `to` and device memory `there`; `at` is the home slot. Called by whole warps. Returns true
   * if it lowered the slot's value. *slot is the slot and *old its old value, NO_TOKEN if there
   * is no slot. The value is lowered by an atomic 64-bit minimum in device memory. The thread
   * that takes a slot writes the key there at once, so that others do not wait long. Without
   * TELLS no thread waits for the minimum either: *old may then be larger than the value that it
   * replaced. */
  template <bool CLUSTER, bool TELLS>
  __device__ __forceinline__ bool offer_at(bool live, u32 to, ulonglong2 *there, u32 at,
                                           token_key key, u64 value, u32 *slot, u64 *old) {
    const u32 mask = (1u << bits) - 1, print = fingerprint_of(key);
    u32 left = min(MAX_PROBES, mask / (4 * GROUP)), done = 0, which = 0;
    bool lowered = false;
    *old = NO_TOKEN;
    do {
      bool mine = false;
      while (live) {
        const u32 address = to + OFFSET(keys) + at * (u32)sizeof(fingerprint), before = done;
        bool is_free = false;
        which = first_of<CLUSTER>(address, print, &is_free, &done);
        if (which < GROUP) {
          if (!is_free) break;
          mine = take_slot<CLUSTER>(address + which * (u32)sizeof(fingerprint), print);
          if (mine) {
            ((volatile u64 *)&there[at + which])[0] = key;
            break;
          }
          done = before;
          continue; /* another key took the slot, or its neighbour: check again */
        }
        if (left-- == 0) {
          for (int r = 0; r < RANKS; r++) this->of(r).full = 1;
          live = false;
        }
        at = (at + GROUP) & mask;
        done = 0;
      }
      __syncwarp();
      if (live) {
        ulonglong2 entry = make_ulonglong2(key, NO_TOKEN);
        u32 turns = 0;
        while (!mine && (entry = load_global128(&there[at + which])).x == NO_STATE)
          count_turn(&turns, "a key of the token table");
        if (entry.x == key) {
          *old = entry.y;
          lowered = value < entry.y;
          if (lowered) {
            const u64 was = atomicMin((u64 *)&there[at + which] + 1, value);
            if (TELLS) {
              *old = was;
              lowered = value < was;
            }
          }
          *slot = at + which;
          live = false;
        } /* otherwise another key with this fingerprint: continue after it */
      }
    } while (__any_sync(ALL, live));
    return lowered;
  }
  template <bool TELLS = true>
  __device__ __forceinline__ bool offer(bool live, token_key key, u64 value, u32 *rank, u32 *slot,
                                        u64 *old) {
    u32 at;
    place_of(key & ~HAS_EPSILONS, bits, rank, &at);
    return offer_at<(RANKS > 1), TELLS>(live, this->base_of(*rank), entries + (u64)*rank * SLOTS,
                                        at, key, value, slot, old);
  }
  /* Offers to the block's own part of the table. */
  __device__ __forceinline__ bool offer_own(bool live, token_key key, u64 value, u32 *slot,
                                            u64 *old) {
    u32 rank, at;
    place_of(key & ~HAS_EPSILONS, bits, &rank, &at);
    return offer_at<false, true>(live, base, own_entries(), at, key, value, slot, old);
  }
};

}  // namespace wf_search

#endif
