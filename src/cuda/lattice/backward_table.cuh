/* backward_table.cuh - tables of tokens for the backward pass (backward.cuh), and the rest of
 * its block's shared memory, which begins where the search's own table would be:
 *
 *   2 x {keys, costs, extra_costs [2^bits], places [2^bits] of the slots taken}
 *   list   [WINDOW] tokens examined; while the frame's arcs are sorted (backward_emit.cuh),
 *          levels of its tokens, by slot
 *   marks  2 bitmaps, in turns
 *   news   2 bitmaps of the slots that an epsilon round has changed, in turns
 *   counts, ranks, firsts  by slot: arcs of the token so far; its number in its frame; its arcs'
 *                          place in the frame */
#ifndef WF_CUDA_LATTICE_BACKWARD_TABLE_CUH
#define WF_CUDA_LATTICE_BACKWARD_TABLE_CUH

#include "cuda/lattice/prune_history.cuh"

namespace wf_search {

#ifndef WF__BACKWARD_BITS /* a test makes them small, to reach every boundary */
#define WF__BACKWARD_BITS \
  (POLICY::SCORED ? 10 : 11) /* slots of a table are 2^this: two blocks a processor */
#define WF__BACKWARD_LARGE_BITS 12
#define WF__BACKWARD_WINDOW 8192 /* tokens of a frame that are listed at a time */
#define WF__BACKWARD_MARKED \
  16384 /* arcs into a state; if one has more, all tokens are examined \
         */
#define WF__BACKWARD_HUB 256
#endif
constexpr u32 BACK_THREADS = WF__BACKWARD_THREADS, BACK_WARPS = BACK_THREADS / 32;
constexpr u32 GLOBAL_BITS =
    14; /* of tables in device memory, for utterances that do not fit shared memory */
constexpr u32 GLOBAL_HEAD = 256; /* bytes before the first of these */
constexpr u32 WINDOW = WF__BACKWARD_WINDOW, MOST_MARKED = WF__BACKWARD_MARKED;
constexpr u32 MARK_BITS = 15;   /* of a bitmap of marks */
constexpr u32 BITMAP_BITS = 14; /* of a bitmap of states in a table, with scorers */
constexpr u32 HUB = WF__BACKWARD_HUB,
              MOST_HUBS = 16; /* arcs into a state that are shared by several warps; number of such
                                 states in a table, beyond which all tokens are examined */
constexpr u32 NO_PAGE = 0xffffffffu;

/* A summary of a bitmap of marks. */
struct backward_marks {
  u32 any, all; /* some state is marked; all states count as marked */
  u32 num_hubs, hub_first[MOST_HUBS], hub_count[MOST_HUBS];
};

/* In lane_shared.hist. */
struct backward_work {
  u32 bound;              /* of the newest table's tokens: the largest cost - extra cost, ordered */
  u32 size[2];            /* tokens in either table */
  u32 ends[8], shifts[8]; /* of the ranks' tokens among those of a frame; from there to their places
                             in the rank's trace */
  u32 num_listed, num_gathered,
      gathers;     /* num_gathered: tokens with epsilon arcs, if the frame `gathers` them */
  u32 any_news[2]; /* an epsilon round has changed something; in turns */
  backward_marks marks[2];
  u32 num_staged, any_epsilons; /* arcs of the frame; some are epsilons */
  u32 page,
      fill; /* written to last, NO_PAGE if none is, and its entries so far, the first one counted */
  u32 page_before, fill_before, page_after; /* of the frame's arcs: where they begin, and the first
                                               page that was opened for them */
  u32 num_states, num_links;                /* of the lattice so far */
  u32 no_room, no_pages, full;              /* for the frame's arcs; for pages; in a table */
  char *global_tables;                      /* of the lattice, if its tables are in device memory */
};

__device__ __forceinline__ u32 bitmap_bit(u32 state) {
  return state * 0x9E3779B1u >> (32 - BITMAP_BITS);
}

/* --- a table ----------------------------------------------------------------------------- */

template <class POLICY>
struct backward_table {
  typedef typename POLICY::table::token_key token_key;
  static constexpr token_key NO_STATE = ~(token_key)0;
  static constexpr u32 SLOT_BYTES =
      sizeof(token_key) + sizeof(float) + sizeof(int) + sizeof(uint16_t);
  token_key *keys;
  float *costs;
  int *extra_costs;
  uint16_t *places;
  u32 *news; /* bitmap of the slots whose extra costs an epsilon round has changed; NULL: not needed
              */
  u32 *any_news;
  u32 *bitmap; /* with scorers: bitmap of its states */
  u32 *size;
  u32 *bound, *full; /* of the block's work */
  u32 mask;

  /* Makes the table empty, whatever its memory has. By the whole block. */
  __device__ __forceinline__ void create() const {
    for (u32 i = tid(); i <= mask; i += BACK_THREADS) {
      keys[i] = NO_STATE;
      costs[i] = 0; /* put() reads them */
      extra_costs[i] = __float_as_int(INFINITY);
    }
    clear_bitmap();
    if (tid() == 0) *size = 0;
  }
  /* Empties the slots. By the whole block; *size must be set to 0 after a barrier. */
  __device__ __forceinline__ void clear() const {
    const u32 taken = *size;
    for (u32 i = tid(); i < taken; i += BACK_THREADS) {
      keys[places[i]] = NO_STATE;
      extra_costs[places[i]] = __float_as_int(INFINITY);
    }
    clear_bitmap();
  }
  __device__ __forceinline__ void clear_bitmap() const {
    for (u32 i = tid(); POLICY::SCORED && i < 1u << (BITMAP_BITS - 5); i += BACK_THREADS)
      bitmap[i] = 0;
  }

  __device__ __forceinline__ u32 home_of(token_key key) const {
    u32 hash = folded(key) * 0x9E3779B1u;
    return (hash ^ hash >> 15) & mask;
  }

  /* False: no token of the graph's state is in the table, whatever its context. */
  __device__ __forceinline__ bool may_have(u32 state) const {
    const u32 bit = bitmap_bit(state);
    return !POLICY::SCORED || (*(volatile u32 *)&bitmap[bit >> 5] >> (bit & 31) & 1) != 0;
  }

  /* Slot of the key's token; ALL: it is not there. */
  __device__ __forceinline__ u32 find(token_key key) const {
    u32 at = home_of(key);
    for (u32 left = mask + 1; left > 0; left--) {
      const token_key seen = *(volatile token_key *)&keys[at];
      if (seen == key) return at;
      if (seen == NO_STATE) break;
      at = (at + 1) & mask;
    }
    return ALL;
  }

  /* Extra cost of a candidate for the token in a slot, +infinity if it is not known to be within
   * the beam. */
  __device__ __forceinline__ float extra_cost_over(u32 slot, float candidate, float beam) const {
    const float extra_cost = __int_as_float(*(volatile int *)&extra_costs[slot]);
    if (!(extra_cost <= beam)) return INFINITY; /* also if its cost is still being written */
    __threadfence_block();
    const float cost = *(volatile float *)&costs[slot];
    return __fadd_rn(candidate > cost ? __fsub_rn(candidate, cost) : 0, extra_cost);
  }

  /* Lowers the token's extra cost to this. Returns its slot, ALL if there is no room. */
  __device__ __forceinline__ u32 put(u32 state, token_key key, float cost, float extra_cost) const {
    u32 at = home_of(key);
    for (u32 left = mask + 1;; at = (at + 1) & mask) {
      token_key seen = *(volatile token_key *)&keys[at];
      if (seen == NO_STATE) {
        seen = atomicCAS(&keys[at], NO_STATE, key);
        if (seen == NO_STATE) {
          places[atomicAdd(size, 1u)] = (uint16_t)at;
          break;
        }
      }
      if (seen == key) break;
      if (--left == 0) {
        *full = 1;
        return ALL;
      }
    }
    if (POLICY::SCORED) atomicOr(&bitmap[bitmap_bit(state) >> 5], 1u << (bitmap_bit(state) & 31));
    atomicExch(&costs[at], cost); /* all threads write the same value, while others may read it */
    __threadfence_block();
    if (atomicMin(&extra_costs[at], __float_as_int(extra_cost)) <= __float_as_int(extra_cost))
      return at; /* never negative, so the bits are ordered */
    atomicMax(bound, ordered(__fsub_rn(cost, extra_cost)));
    if (news != NULL) {
      atomicOr(&news[at >> 5], 1u << (at & 31));
      *any_news = 1;
    }
    return at;
  }
};

/* --- memory layout ----------------------------------------------------------------------- */

template <class POLICY>
struct backward_layout {
  typedef wf_search::lane_shared<POLICY> lane_shared;
  typedef backward_table<POLICY> table;
  typedef typename table::token_key token_key;
  /* Slots of tables in shared memory: two blocks a processor, or one. */
  static constexpr u32 SMALL_BITS = WF__BACKWARD_BITS, LARGE_BITS = WF__BACKWARD_LARGE_BITS;

  static __device__ __forceinline__ lane_shared &own() { return own_shared<POLICY>(); }
  static __device__ __forceinline__ backward_work &work() {
    return *reinterpret_cast<backward_work *>(own().hist);
  }

  __host__ __device__ static constexpr u32 offset() { return OFFSET(values); }
  __host__ __device__ static constexpr u32 list_bytes(u32 bits) {
    return WINDOW * (u32)sizeof(uint16_t) > (u32)sizeof(u32) << bits
               ? WINDOW * (u32)sizeof(uint16_t)
               : (u32)sizeof(u32) << bits;
  }
  /* The chains of tokens in a bin (backward_emit.cuh) use the memory of marks, if they fit. */
  __host__ __device__ static constexpr u32 follower_bytes(u32 bits) {
    return sizeof(uint16_t) << bits <= 2 * ((1u << MARK_BITS) / 8) ? 0
                                                                   : (u32)sizeof(uint16_t) << bits;
  }
  __host__ __device__ static constexpr u32 tables_bytes(u32 bits) {
    return 2 * (table::SLOT_BYTES << bits) + list_bytes(bits) + 2 * ((1u << MARK_BITS) / 8) +
           2 * ((1u << bits) / 8) + (3 * (u32)sizeof(uint16_t) << bits) + follower_bytes(bits);
  }
  __host__ __device__ static constexpr u32 shared_bytes(u32 bits) {
    return offset() + tables_bytes(bits);
  }
  /* The largest tables of at most 2^most slots that a block has shared memory for. */
  __host__ __device__ static constexpr u32 fitting_bits(int shared_kb, u32 most) {
    return shared_bytes(most) <= (u32)shared_kb * 1024 ? most : fitting_bits(shared_kb, most - 1);
  }
  __host__ __device__ static constexpr u32 global_bytes() {
    return (tables_bytes(GLOBAL_BITS) + 255) / 256 * 256;
  }

  static __device__ __forceinline__ char *tables() {
    if constexpr (POLICY::BACKWARD_GLOBAL)
      return work().global_tables;
    else
      return (char *)&own() + offset();
  }
  static __device__ __forceinline__ table table_at(u32 which, u32 bits) {
    static_assert(sizeof(backward_work) <= sizeof(lane_shared::hist),
                  "backward_work must fit the histogram");
    static_assert(2 * sizeof(u32) << (BITMAP_BITS - 5) <= sizeof(lane_shared::frontier),
                  "the bitmaps must fit the frontier");
    static_assert(offset() % 16 == 0, "the tables must be aligned");
    char *at = tables() + which * (table::SLOT_BYTES << bits);
    table t;
    t.keys = (token_key *)at;
    t.costs = (float *)(at + (sizeof(token_key) << bits));
    t.extra_costs = (int *)(t.costs + (1u << bits));
    t.places = (uint16_t *)(t.extra_costs + (1u << bits));
    t.bitmap = (u32 *)own().frontier + which * (1u << (BITMAP_BITS - 5));
    t.news = t.any_news = NULL;
    t.size = &work().size[which];
    t.bound = &work().bound;
    t.full = &work().full;
    t.mask = (1u << bits) - 1;
    return t;
  }
  static __device__ __forceinline__ char *behind_tables(u32 bits) {
    return tables() + 2 * (table::SLOT_BYTES << bits);
  }
  static __device__ __forceinline__ uint16_t *list_at(u32 bits) {
    return (uint16_t *)behind_tables(bits);
  }
  static __device__ __forceinline__ u32 *levels_at(u32 bits) { return (u32 *)behind_tables(bits); }
  static __device__ __forceinline__ u32 *marks_at(u32 turn, u32 bits) {
    return (u32 *)(behind_tables(bits) + list_bytes(bits)) + turn * ((1u << MARK_BITS) / 32);
  }
  static __device__ __forceinline__ u32 *news_at(u32 turn, u32 bits) {
    return marks_at(2, bits) + turn * ((1u << bits) / 32);
  }
  static __device__ __forceinline__ uint16_t *counts_at(u32 bits) {
    return (uint16_t *)news_at(2, bits);
  }
  static __device__ __forceinline__ uint16_t *ranks_at(u32 bits) {
    return counts_at(bits) + (1u << bits);
  }
  static __device__ __forceinline__ uint16_t *firsts_at(u32 bits) {
    return ranks_at(bits) + (1u << bits);
  }
  static __device__ __forceinline__ uint16_t *followers_at(u32 bits) {
    return follower_bytes(bits) == 0 ? (uint16_t *)marks_at(0, bits)
                                     : firsts_at(bits) + (1u << bits);
  }
  static __device__ __forceinline__ u32 *bin_sums() { return own().hist_all; }
  static __device__ __forceinline__ u32 *bin_heads() {
    return (u32 *)own().arc_ranges[BACK_WARPS];
  } /* the block has half as many warps as the search */

  static __device__ __forceinline__ void clear_marks(u32 turn, u32 bits) {
    u32 *marks = marks_at(turn, bits);
    for (u32 i = tid(); i < (1u << MARK_BITS) / 32; i += BACK_THREADS) marks[i] = 0;
    if (tid() == 0)
      work().marks[turn].any = work().marks[turn].all = work().marks[turn].num_hubs = 0;
  }
  static __device__ __forceinline__ void clear_news(u32 turn, u32 bits) {
    u32 *news = news_at(turn, bits);
    for (u32 i = tid(); i < (1u << bits) / 32; i += BACK_THREADS) news[i] = 0;
    if (tid() == 0) work().any_news[turn] = 0;
  }
};

}  // namespace wf_search

#endif
