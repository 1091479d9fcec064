/* backward_table.cuh - tables of tokens for the way back (backward.cuh), and what else its block holds in shared memory, behind what the search keeps in front of its own table:
 *
 *   2 x {keys, costs, extras [2^bits], places [2^bits] of the slots taken}
 *   list   [WINDOW] tokens looked at; while the frame's arcs are put in order (backward_emit.cuh), levels of its tokens, by slot
 *   marks  2 bitmaps, in turns
 *   news   2 bitmaps of the slots that an epsilon round has changed, in turns
 *   counts, ranks, firsts  by slot: arcs of the token so far; its number in its frame; its arcs' place in the frame */
#ifndef WF_CUDA_LATTICE_BACKWARD_TABLE_CUH
#define WF_CUDA_LATTICE_BACKWARD_TABLE_CUH

#include "cuda/lattice/prune_history.cuh"

namespace WF_LANE_SPACE {

#ifndef WF__BACK_BITS /* a test makes them small, to see every boundary */
#define WF__BACK_BITS (SCORED ? 10 : 11) /* slots of a table are 2^this: two blocks a processor */
#define WF__BACK_LARGE_BITS 12
#define WF__BACK_WINDOW 8192             /* tokens of a frame that are listed at a time */
#define WF__BACK_MARKED 16384            /* arcs into a state; if one has more, all tokens are looked at */
#define WF__BACK_HUB 256
#endif
constexpr u32 BACK_THREADS = WF__BACK_THREADS, BACK_WARPS = BACK_THREADS / 32;
constexpr u32 BACK_BITS = WF__BACK_BITS, LARGE_BITS = WF__BACK_LARGE_BITS; /* of a second launch, for utterances that found no room in the first: one block a processor */
constexpr u32 GLOBAL_BITS = 14;              /* of a third one, for those that found none in the second, with tables in device memory */
constexpr u32 WINDOW = WF__BACK_WINDOW, MOST_MARKED = WF__BACK_MARKED;
constexpr u32 MARK_BITS = 15; /* of a bitmap of marks */
constexpr u32 HELD_BITS = 14; /* of a bitmap of states in a table, with scorers */
constexpr u32 HUB = WF__BACK_HUB, MOST_HUBS = 16; /* arcs into a state that a warp is not left alone with; such states in a table, or all tokens are looked at */
constexpr u32 NO_PAGE = 0xffffffffu;

/* What is known of the marks of a bitmap. */
struct back_marks {
  u32 any, all; /* something is marked; all is */
  u32 num_hubs, hub_first[MOST_HUBS], hub_count[MOST_HUBS];
};

/* In lane_shared.hist. */
struct back_work {
  u32 bound;               /* of the newest table's tokens: the largest cost - extra, ordered */
  u32 size[2];             /* tokens in either table */
  u32 ends[8], shifts[8];  /* of the ranks' tokens among those of a frame; from there to their places in the rank's trace */
  u32 num_listed, num_gathered, gathers; /* num_gathered: tokens with epsilon arcs, if the frame `gathers` them */
  u32 any_news[2];         /* an epsilon round has changed something; in turns */
  back_marks marks[2];
  u32 num_staged, any_epsilons; /* arcs of the frame; some are epsilons */
  u32 page, fill;          /* written to last, NO_PAGE if none is, and its entries so far, the first one counted */
  u32 page_before, fill_before, page_after; /* of the frame's arcs: where they begin, and the first page that was opened for them */
  u32 num_states, num_links; /* of the lattice so far */
  u32 no_room, no_pages, full; /* for the frame's arcs; for pages; in a table */
  char *global_tables;            /* of the lattice, in the third launch */
};
static_assert(sizeof(back_work) <= sizeof(lane_shared::hist), "back_work must fit the histogram");
static_assert(2 * sizeof(u32) << (HELD_BITS - 5) <= sizeof(lane_shared::agenda), "the bitmaps must fit the agenda");

struct back_table {
  token_key *keys;
  float *costs;
  int *extras;
  uint16_t *places;
  u32 *news; /* bitmap of the slots whose extra costs an epsilon round has changed; NULL: nobody asks */
  u32 *any_news;
  u32 *held; /* with scorers: bitmap of its states */
  u32 *size;
  u32 mask;
};

__device__ __forceinline__ back_work &own_back() { return *reinterpret_cast<back_work *>(own().hist); }

constexpr u32 BACK_SLOT_BYTES = sizeof(token_key) + sizeof(float) + sizeof(int) + sizeof(uint16_t);
constexpr u32 BACK_OFFSET = offsetof(lane_shared, values);
static_assert(BACK_OFFSET % 16 == 0, "the tables must be aligned");
__host__ __device__ constexpr u32 list_bytes(u32 bits) { return WINDOW * (u32)sizeof(uint16_t) > (u32)sizeof(u32) << bits ? WINDOW * (u32)sizeof(uint16_t) : (u32)sizeof(u32) << bits; }
/* Followers of tokens in a bin (backward_emit.cuh) are where marks are, if there is room. */
__host__ __device__ constexpr u32 follower_bytes(u32 bits) { return sizeof(uint16_t) << bits <= 2 * ((1u << MARK_BITS) / 8) ? 0 : (u32)sizeof(uint16_t) << bits; }
__host__ __device__ constexpr u32 tables_bytes(u32 bits) {
  return 2 * (BACK_SLOT_BYTES << bits) + list_bytes(bits) + 2 * ((1u << MARK_BITS) / 8) + 2 * ((1u << bits) / 8) + (3 * (u32)sizeof(uint16_t) << bits) + follower_bytes(bits);
}
__host__ __device__ constexpr u32 back_bytes(u32 bits) { return BACK_OFFSET + tables_bytes(bits); }
/* The largest tables of at most 2^most slots that a block has shared memory for. */
__host__ __device__ constexpr u32 back_bits(int shared_kb, u32 most) { return back_bytes(most) <= (u32)shared_kb * 1024 ? most : back_bits(shared_kb, most - 1); }
constexpr u32 GLOBAL_BYTES = (tables_bytes(GLOBAL_BITS) + 255) / 256 * 256, GLOBAL_HEAD = 256;

__device__ __forceinline__ char *back_tables() {
#ifdef WF_BACKWARD_GLOBAL
  return own_back().global_tables;
#else
  return (char *)&own() + BACK_OFFSET;
#endif
}

__device__ __forceinline__ back_table table_at(u32 which, u32 bits) {
  char *at = back_tables() + which * (BACK_SLOT_BYTES << bits);
  back_table table;
  table.keys = (token_key *)at;
  table.costs = (float *)(at + (sizeof(token_key) << bits));
  table.extras = (int *)(table.costs + (1u << bits));
  table.places = (uint16_t *)(table.extras + (1u << bits));
  table.held = (u32 *)own().agenda + which * (1u << (HELD_BITS - 5));
  table.news = table.any_news = NULL;
  table.size = &own_back().size[which];
  table.mask = (1u << bits) - 1;
  return table;
}
__device__ __forceinline__ char *behind_tables(u32 bits) { return back_tables() + 2 * (BACK_SLOT_BYTES << bits); }
__device__ __forceinline__ uint16_t *list_at(u32 bits) { return (uint16_t *)behind_tables(bits); }
__device__ __forceinline__ u32 *levels_at(u32 bits) { return (u32 *)behind_tables(bits); }
__device__ __forceinline__ u32 *marks_at(u32 turn, u32 bits) { return (u32 *)(behind_tables(bits) + list_bytes(bits)) + turn * ((1u << MARK_BITS) / 32); }
__device__ __forceinline__ u32 *news_at(u32 turn, u32 bits) { return marks_at(2, bits) + turn * ((1u << bits) / 32); }
__device__ __forceinline__ uint16_t *counts_at(u32 bits) { return (uint16_t *)news_at(2, bits); }
__device__ __forceinline__ uint16_t *ranks_at(u32 bits) { return counts_at(bits) + (1u << bits); }
__device__ __forceinline__ uint16_t *firsts_at(u32 bits) { return ranks_at(bits) + (1u << bits); }

__device__ __forceinline__ uint16_t *followers_at(u32 bits) { return follower_bytes(bits) == 0 ? (uint16_t *)marks_at(0, bits) : firsts_at(bits) + (1u << bits); }

__device__ __forceinline__ void clear(const back_table &table) {
  for (u32 i = tid(); i <= table.mask; i += BACK_THREADS) {
    table.keys[i] = NO_STATE;
    table.extras[i] = __float_as_int(INFINITY);
  }
  for (u32 i = tid(); SCORED && i < 1u << (HELD_BITS - 5); i += BACK_THREADS) table.held[i] = 0;
  if (tid() == 0) *table.size = 0;
}

__device__ __forceinline__ void clear_marks(u32 turn, u32 bits) {
  u32 *marks = marks_at(turn, bits);
  for (u32 i = tid(); i < (1u << MARK_BITS) / 32; i += BACK_THREADS) marks[i] = 0;
  if (tid() == 0) own_back().marks[turn].any = own_back().marks[turn].all = own_back().marks[turn].num_hubs = 0;
}

__device__ __forceinline__ void clear_news(u32 turn, u32 bits) {
  u32 *news = news_at(turn, bits);
  for (u32 i = tid(); i < (1u << bits) / 32; i += BACK_THREADS) news[i] = 0;
  if (tid() == 0) own_back().any_news[turn] = 0;
}

__device__ __forceinline__ u32 home_of(const back_table &table, token_key key) {
  u32 hash = folded(key) * 0x9E3779B1u;
  return (hash ^ hash >> 15) & table.mask;
}

__device__ __forceinline__ u32 held_bit(u32 state) { return state * 0x9E3779B1u >> (32 - HELD_BITS); }

/* False: no token of the graph's state is in the table, whatever its context. */
__device__ __forceinline__ bool may_have(const back_table &table, u32 state) {
  const u32 bit = held_bit(state);
  return !SCORED || (*(volatile u32 *)&table.held[bit >> 5] >> (bit & 31) & 1) != 0;
}

/* Slot of the key's token; ALL: it is not there. */
__device__ __forceinline__ u32 find_slot(const back_table &table, token_key key) {
  u32 at = home_of(table, key);
  for (u32 left = table.mask + 1; left > 0; left--) {
    const token_key seen = *(volatile token_key *)&table.keys[at];
    if (seen == key) return at;
    if (seen == NO_STATE) break;
    at = (at + 1) & table.mask;
  }
  return ALL;
}

/* Extra cost of a candidate for the token in a slot, +infinity if it is not known to be within the beam. */
__device__ __forceinline__ float way_on(const back_table &table, u32 slot, float candidate, float beam) {
  const float extra = __int_as_float(*(volatile int *)&table.extras[slot]);
  if (!(extra <= beam)) return INFINITY; /* it is being put there */
  __threadfence_block();
  const float cost = *(volatile float *)&table.costs[slot];
  return __fadd_rn(candidate > cost ? __fsub_rn(candidate, cost) : 0, extra);
}

__device__ __forceinline__ token_key swap_table_key(token_key *place, token_key key) {
#ifdef WF_LANE_SCORED
  return atomicCAS((u64 *)place, (u64)NO_STATE, key);
#else
  return atomicCAS(place, NO_STATE, key);
#endif
}

/* The token has a way on at this extra cost. Returns its slot, ALL if there is none. */
__device__ __forceinline__ u32 put_token(const back_table &table, u32 state, token_key key, float cost, float extra) {
  back_work &work = own_back();
  u32 at = home_of(table, key);
  for (u32 left = table.mask + 1;; at = (at + 1) & table.mask) {
    token_key seen = *(volatile token_key *)&table.keys[at];
    if (seen == NO_STATE) {
      seen = swap_table_key(&table.keys[at], key);
      if (seen == NO_STATE) {
        table.places[atomicAdd(table.size, 1u)] = (uint16_t)at;
        break;
      }
    }
    if (seen == key) break;
    if (--left == 0) {
      work.full = 1;
      return ALL;
    }
  }
  if (SCORED) atomicOr(&table.held[held_bit(state) >> 5], 1u << (held_bit(state) & 31));
  *(volatile float *)&table.costs[at] = cost; /* all who come write the same */
  __threadfence_block();
  if (atomicMin(&table.extras[at], __float_as_int(extra)) <= __float_as_int(extra)) return at; /* never negative, so the bits are ordered */
  atomicMax(&work.bound, ordered(__fsub_rn(cost, extra)));
  if (table.news != NULL) {
    atomicOr(&table.news[at >> 5], 1u << (at & 31));
    *table.any_news = 1;
  }
  return at;
}

}  // namespace WF_LANE_SPACE

#endif
