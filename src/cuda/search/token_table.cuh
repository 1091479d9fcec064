/* token_table.cuh - a lane's table of tokens in (distributed) shared memory, and the small collective operations of a lane.
 *
 *   value of a slot  ordered cost << 32 | arc + 1            the token as the emission or an earlier epsilon round left it
 *                    ordered cost << 32 | FRESH | arc + 1    from this epsilon round: loses ties against what stood before
 *                    all ones                                no token (yet, or no longer)
 *   key              state | HAS_EPSILONS if it has epsilon arcs
 *
 * The state's hash names the rank that owns it (top bits) and its home there, four slots that one load shows (the next bits); then the next four. They are
 * taken in order, so a state is never behind a free slot. A frame uses 2^bits slots.
 *
 * The kernels are compiled once for each file of instances/, which says what is searched. With scorers SCORED is true, a key is 64 bits, and the pair (state, context) takes the
 * state's place:
 *
 *   key  HAS_EPSILONS (1 bit) | state | context (context_bits)
 *
 * Shared memory has a print of each key, 16 bits with the same first bit, in twice as many slots; key and value are in device memory by the same slot, where one load shows
 * both. Two keys may have one print: whoever finds a print looks at the key, and goes on to the next slot if that is another. A home is eight slots, taken in the order 0, 2, 4, 6, 1, 3, 5, 7. */
#ifndef WF_CUDA_SEARCH_TOKEN_TABLE_CUH
#define WF_CUDA_SEARCH_TOKEN_TABLE_CUH

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>
#include <float.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/device/ptx.cuh"
#include "cuda/search/search_params.h"

#if defined(WF_BACKWARD_GLOBAL) && defined(WF_LANE_SCORED)
#define WF_LANE_SPACE backward_global_scored
#elif defined(WF_BACKWARD_GLOBAL)
#define WF_LANE_SPACE backward_global
#elif defined(WF_LANE_ASKING) && defined(WF_LANE_STREAMS)
#define WF_LANE_SPACE lane_asking_streams
#elif defined(WF_LANE_ASKING)
#define WF_LANE_SPACE lane_asking
#elif defined(WF_LANE_SCORED) && defined(WF_LANE_STREAMS)
#define WF_LANE_SPACE lane_scored_streams
#elif defined(WF_LANE_SCORED)
#define WF_LANE_SPACE lane_scored
#elif defined(WF_LANE_STREAMS)
#define WF_LANE_SPACE lane_streams
#else
#define WF_LANE_SPACE lane_plain
#endif

namespace WF_LANE_SPACE {

typedef unsigned long long u64;
typedef uint32_t u32;

#ifdef WF_LANE_SCORED
constexpr bool SCORED = true;
typedef u64 token_key;
#else
constexpr bool SCORED = false;
typedef u32 token_key;
#endif
#ifdef WF_LANE_STREAMS
constexpr bool STREAMS = true;
#else
constexpr bool STREAMS = false;
#endif
#ifdef WF_LANE_ASKING
constexpr bool ASKING = true; /* with WF_LANE_SCORED */
#else
constexpr bool ASKING = false;
#endif
constexpr bool GATHERS = SCORED && !ASKING; /* candidates over arcs with words, to ask for them together */
constexpr bool LATTICES = !STREAMS && !ASKING;
constexpr u32 SLOT_BITS = SCORED ? WF__SCORED_SLOT_BITS(WF__SHARED_KB) : WF__PLAIN_SLOT_BITS(WF__SHARED_KB), SLOTS = 1u << SLOT_BITS, THREADS = WF__LANE_THREADS, WARPS = THREADS / 32;
constexpr token_key NO_STATE = ~(token_key)0, HAS_EPSILONS = (token_key)1 << (sizeof(token_key) * 8 - 1);
#ifdef WF_LANE_SCORED
typedef uint16_t table_print; /* what shared memory has of a key */
#else
typedef u32 table_print;
#endif
constexpr u32 FREE = (table_print)~0u, PRINT_HAS_EPSILONS = 1u << (sizeof(table_print) * 8 - 1);
constexpr u32 GROUP = 16 / sizeof(table_print); /* slots that one load of shared memory shows */
constexpr u32 AHEAD = SCORED ? 4 : 1;    /* slots whose values are on their way at a time, in passes over the table */
constexpr u32 SPARE = SCORED ? 2 : 3; /* slots of a table for each one that a frame is likely to take */
constexpr u32 ALL = 0xffffffffu, NO_ARC = 0xffffffffu;
#define NO_TOKEN (~0ull)
constexpr u32 FRESH = 0x80000000u, MARKED = 0x80000000u; /* MARKED: of a state in the trace */
constexpr u32 WITH_EPSILONS = 0x80000000u; /* of an arc in the trace, if lattices are asked for: the state has epsilon arcs. NO_ARC has it always */
constexpr u32 MAX_PROBES = 256; /* if so many times four slots, or a quarter of the table, are taken from a state's home on, the table counts as full */

__device__ __forceinline__ u32 ordered(float cost) {
  u32 bits = __float_as_uint(cost);
  return bits ^ ((u32)((int)bits >> 31) | 0x80000000u);
}
__device__ __forceinline__ float cost_of(u32 key) { return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key); }
/* As the CPU's add_finite: comparisons with +infinity must keep their meaning. */
__device__ __forceinline__ float add_finite(float a, float b) { return fminf(__fadd_rn(a, b), FLT_MAX); }

/* Where the cycles of a frame go, as WF_LANE_PROFILE tells. */
enum lane_phase {
  PHASE_BEGIN, PHASE_WAIT, PHASE_SELECT, PHASE_ARCS, PHASE_WORDS, PHASE_TABLE, PHASE_SETTLE, PHASE_REST, PHASE_AGENDA, PHASE_CLOSURE_ARCS, PHASE_CLOSURE_WORDS, PHASE_CLOSURE_WAIT,
  PHASE_CLOSE, PHASE_FIRST_PASS, PHASE_WRITING, NUM_PHASES
};

/* The tables come last: the way back for lattices (backward.cuh) has its own in their place. */
struct lane_shared {
  u32 hist[256];
  u32 hist_all[256];       /* summed over the ranks */
  uint2 boxes[WARPS][32];  /* of each warp: what the arcs of its tokens share */
  uint16_t agenda[2][THREADS];
  u64 exchange[2][8];      /* one cell per rank: results of its block, in turns */
  u64 warp_values[WARPS];
  u32 warp_counts[WARPS];
  u32 best;                /* running best candidate, ordered */
  u32 kept;                /* tokens of all ranks after the emission */
  u32 inserted;            /* tokens that epsilons made in this frame, on this rank */
#ifdef WF_LANE_SCORED
  u32 all_stand;           /* each slot that is taken has a token, and the best of them is `best` or `lowest` */
  u32 lowest;              /* best of those that epsilons made on this rank, ordered */
#endif
  u32 num_near;            /* keys in `boxes` while sources are selected */
  u64 select_key;
  u64 last;                /* candidate that the frame let in */
  u32 next;                /* frame of the scores to be searched next */
  u32 full;                /* on any rank */
  u32 agenda_size[2];
  u32 agenda_work[2];      /* some entry has epsilon arcs */
  u32 next_batch;          /* sources handed out so far */
  u32 num_listed[2];       /* candidates in the list of this rank, or sent to it in this epsilon round and the next */
  u32 sent[2];             /* somebody sent a candidate in this round */
  u32 utterance;
  wf__lane_utterance scores;
  u32 flags;               /* this and the sums are kept by thread 0 */
  u32 stopped;             /* by the host, as rank 0 has seen it */
  u64 num_tokens, num_expanded, num_narrowed, num_arcs;
#ifdef WF_LANE_SCORED
  u64 box_contexts[WARPS][32]; /* beside `boxes` */
  wf__flat_scorer scorer;  /* of the utterance, if it has one */
  wf__lane_words words;    /* added to its graph */
  u32 num_asked;           /* words of the frame's emitting arcs, on this rank */
  const wf__flat_scorer *memo_of; /* whose answers the memo has */
  u32 num_logged;          /* candidates in the log of this rank */
  u32 num_settled;         /* with recombine=state: of these, those whose contexts are where they belong */
  u32 select_left;         /* with select_key: how many of the sources with that key are in, 0: all */
#endif
#ifdef WF_LANE_ASKING
  u32 asks;                /* some answer is missing */
  u64 num_requests;
#endif
#ifdef WF_LANE_PROFILE
  long long phase[NUM_PHASES], since, rounds, agenda_entries, closure_words;
#endif
  alignas(16) u64 values[SCORED ? 2 : SLOTS];
  table_print keys[SLOTS]; /* aligned as the values */
  float row[1];            /* costs of the columns, if they fit */

  __device__ __forceinline__ void begin_frame() {
    kept = inserted = full = next_batch = num_listed[0] = num_listed[1] = sent[0] = sent[1] = 0;
    best = ALL;
    agenda_size[0] = agenda_size[1] = agenda_work[0] = agenda_work[1] = 0;
#ifdef WF_LANE_SCORED
    num_logged = num_settled = all_stand = 0;
    lowest = ALL;
#endif
  }
};

/* The same for the host, which learns from the profile what the device's code was compiled for. */
__host__ __device__ constexpr u32 tables_of_search(int shared_kb) {
  return SCORED ? 2 * 8 + (2u << WF__SCORED_SLOT_BITS(shared_kb)) : 12u << WF__PLAIN_SLOT_BITS(shared_kb);
}
/* Bytes before the row of costs, and columns that have room in it; wider rows are read where they are. */
__host__ __device__ constexpr u32 bytes_before_row(int shared_kb) { return offsetof(lane_shared, values) + tables_of_search(shared_kb); }
__host__ __device__ constexpr u32 most_columns(int shared_kb) {
  const u32 room = ((u32)shared_kb * 1024 - bytes_before_row(shared_kb)) / sizeof(float) - 4;
  return room < WF__LANE_MAX_ROW ? room : WF__LANE_MAX_ROW;
}
static_assert(offsetof(lane_shared, row) == bytes_before_row(WF__SHARED_KB), "the host must know the layout");

__device__ __forceinline__ lane_shared &own() {
  WF__DYNAMIC_SHARED(unsigned char, lane_memory);
  return *reinterpret_cast<lane_shared *>(lane_memory);
}
__device__ __forceinline__ u32 tid() { return threadIdx.x; }
__device__ __forceinline__ u32 warp() { return threadIdx.x >> 5; }
__device__ __forceinline__ u32 in_warp() { return threadIdx.x & 31; }

#define OFFSET(field) ((u32)offsetof(lane_shared, field))

template <int RANKS>
struct lane {
  u32 base; /* address of this block's shared memory */
  u32 turn;
  u32 bits; /* slots of a rank in this frame: 2^bits */
#ifdef WF_LANE_SCORED
  ulonglong2 *entries; /* {key, value} of the slots of rank 0, then of rank 1, ... */
#endif

  __device__ __forceinline__ lane() : turn(0) { base = __shfl_sync(ALL, (u32)__cvta_generic_to_shared(&own()), 0); }
  /* Address of the shared memory of a rank. */
  __device__ __forceinline__ u32 base_of(u32 r) const { return RANKS == 1 ? base : address_of_rank(base, r); }

  __device__ __forceinline__ u32 rank() const { return RANKS == 1 ? 0 : cluster_rank(); }
  __device__ __forceinline__ void sync() {
    if (RANKS == 1) __syncthreads();
    else sync_cluster();
  }
  __device__ __forceinline__ lane_shared &of(u32 r) {
    if (RANKS == 1) return own();
    return *shared_of_rank(&own(), r);
  }
  /* Every thread of the lane gets the combination of every rank's value. Two syncs apart from the next use of the same cell. */
  template <typename F>
  __device__ __forceinline__ u64 combine(u64 mine, F f) {
    if (RANKS == 1) return mine;
    turn ^= 1;
    if (tid() < RANKS) of(tid()).exchange[turn][rank()] = mine;
    sync();
    u64 all = own().exchange[turn][0];
#pragma unroll
    for (int r = 1; r < RANKS; r++) all = f(all, own().exchange[turn][r]);
    return all;
  }
  /* Sum or minimum over all threads of the lane, given to all. */
  __device__ __forceinline__ u64 sum(u64 value) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) value += __shfl_xor_sync(ALL, value, d);
    if (in_warp() == 0) own().warp_values[warp()] = value;
    __syncthreads();
    u64 block = in_warp() < WARPS ? own().warp_values[in_warp()] : 0;
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) block += __shfl_xor_sync(ALL, block, d);
    __syncthreads();
    return combine(block, [](u64 a, u64 b) { return a + b; });
  }
  __device__ __forceinline__ u64 least(u64 value) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) value = min(value, (u64)__shfl_xor_sync(ALL, value, d));
    if (in_warp() == 0) own().warp_values[warp()] = value;
    __syncthreads();
    u64 block = in_warp() < WARPS ? own().warp_values[in_warp()] : ~0ull;
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) block = min(block, (u64)__shfl_xor_sync(ALL, block, d));
    __syncthreads();
    return combine(block, [](u64 a, u64 b) { return min(a, b); });
  }
};

/* From a box to that of the token's context. */
#ifdef WF_LANE_SCORED
#define CONTEXT_BOXES (OFFSET(box_contexts) - OFFSET(boxes))
#else
#define CONTEXT_BOXES 0
#endif

/* Shares the arcs of a warp's 32 tokens out evenly: for k0 = 0, 32, ... every lane gets arc number k0 + lane of all of them. */
struct arc_share {
  u32 box; /* address of {first arc - arcs before it, cost} of the tokens that have arcs */
  u32 before, degree, total, started;

  __device__ __forceinline__ arc_share(u32 boxes, u32 lane, u32 first, u32 arcs, float cost, u64 context = 0) : box(boxes), degree(arcs), started(0) {
    u32 upto = arcs;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      u32 x = __shfl_up_sync(ALL, upto, d);
      if (lane >= d) upto += x;
    }
    total = __shfl_sync(ALL, upto, 31);
    before = upto - arcs;
    u32 some = __ballot_sync(ALL, arcs > 0);
    __syncwarp(); /* nobody still reads the boxes of the 32 tokens before */
    const u32 mine = box + 8 * __popc(some & ((1u << lane) - 1));
    if (arcs > 0) store_own_pair(mine, first - before, cost);
    if (SCORED && arcs > 0) store_own_pair(mine + CONTEXT_BOXES, (u32)context, __uint_as_float((u32)(context >> 32)));
    __syncwarp();
  }
  /* Arc and source cost (and source context) of arc k0 + lane. */
  __device__ __forceinline__ void at(u32 k0, u32 lane, u32 *arc, float *cost, u64 *context) {
    u32 from = before - k0;
    u32 starts = warp_or(degree > 0 && from < 32 ? 1u << from : 0);
    const u32 mine = box + 8 * (started + __popc(starts & ((2u << lane) - 1)) - 1);
    u64 own = own_words::load64(mine);
    *context = SCORED ? own_words::load64(mine + CONTEXT_BOXES) : 0;
    started += __popc(starts);
    *arc = (u32)own + k0 + lane;
    *cost = __uint_as_float((u32)(own >> 32));
  }
};

__device__ __forceinline__ u32 folded(u32 key) { return key; }
__device__ __forceinline__ u32 folded(u64 key) { return (u32)((key ^ key >> 32) * 0x9E3779B97F4A7C15ull >> 32); }

/* `state`: a key without HAS_EPSILONS. */
template <int RANKS>
__device__ __forceinline__ void place_of(token_key state, u32 bits, u32 *rank, u32 *slot) {
  constexpr int RANK_BITS = RANKS == 1 ? 0 : RANKS == 2 ? 1 : RANKS == 4 ? 2 : 3;
  u32 hash = folded(state) * 0x9E3779B1u;
  hash ^= hash >> 15;
  hash *= 0x85EBCA77u;
  *rank = RANK_BITS == 0 ? 0 : hash >> (32 - RANK_BITS) % 32;
  *slot = (hash << RANK_BITS) >> (32 - bits) & ~(GROUP - 1);
}

#ifdef WF_LANE_SCORED
#ifndef WF__PRINT_BITS /* a test takes few, so that prints are often those of other keys */
#define WF__PRINT_BITS 15
#endif
__device__ __forceinline__ u32 print_of(u64 key) {
  u32 print = (u32)(key >> 32 & 0x7fffffffu) * 0xC2B2AE3Du ^ (u32)key * 0x27D4EB2Fu;
  print = (print ^ print >> 15) * 0x165667B1u >> (32 - WF__PRINT_BITS);
  return (u32)(key >> 63) << 15 | min(print, 0x7ffeu); /* never FREE */
}

/* The top bit of each half of a word that is 0. */
__device__ __forceinline__ u32 zero_halves(u32 word) { return ~(((word & 0x7fff7fffu) + 0x7fff7fffu) | word) & 0x80008000u; }

/* A bit for each of the eight prints that is 0 in all words: bit 0 to 3, then 16 to 19, in the order in which slots are taken. */
__device__ __forceinline__ u32 zero_prints(uint4 words) {
  return zero_halves(words.x) >> 15 | zero_halves(words.y) >> 14 | zero_halves(words.z) >> 13 | zero_halves(words.w) >> 12;
}

/* Of the eight slots from an address on, the first behind `done` (those looked at before, in the order in which they are taken) that is free or has the print; GROUP if none does. */
template <bool CLUSTER>
__device__ __forceinline__ u32 first_of(u32 address, u32 print, bool *is_free, u32 *done) {
  const uint4 eight = words<CLUSTER>::load128(address);
  const u32 both = print << 16 | print;
  const u32 free = zero_prints(make_uint4(~eight.x, ~eight.y, ~eight.z, ~eight.w));
  const u32 found = (free | zero_prints(make_uint4(eight.x ^ both, eight.y ^ both, eight.z ^ both, eight.w ^ both))) & ~*done;
  if (found == 0) return GROUP;
  const u32 first = found & (0u - found), place = __ffs(first) - 1;
  *is_free = (free & first) != 0;
  *done |= first | (first - 1);
  return 2 * (place & 3) + (place >> 4);
}

/* Puts a print into a slot, whose address is given, if that is free and nobody changes its neighbour meanwhile. */
template <bool CLUSTER>
__device__ __forceinline__ bool take_slot(u32 address, u32 print) {
  const u32 shift = (address & 2) * 8, word = words<CLUSTER>::load(address & ~3u);
  if ((word >> shift & FREE) != FREE) return false;
  return words<CLUSTER>::swap(address & ~3u, word, word ^ (FREE ^ print) << shift) == word;
}

/* As below; the value is lowered by a 64-bit minimum in device memory, which is atomic. Who takes a slot puts the key there at once, so that nobody waits for it long. Without TELLS
 * nobody waits for the minimum either: then *old may be more than what it found. */
template <bool CLUSTER, bool TELLS, int RANKS>
__device__ __forceinline__ bool offer_at(lane<RANKS> &l, bool live, u32 base, ulonglong2 *entries, u32 at, token_key key, u64 value, u32 *slot, u64 *old) {
  const u32 mask = (1u << l.bits) - 1, print = print_of(key);
  u32 left = min(MAX_PROBES, mask / (4 * GROUP)), done = 0, which = 0;
  bool lowered = false;
  *old = NO_TOKEN;
  do {
    bool mine = false;
    while (live) {
      const u32 address = base + OFFSET(keys) + at * (u32)sizeof(table_print), before = done;
      bool is_free = false;
      which = first_of<CLUSTER>(address, print, &is_free, &done);
      if (which < GROUP) {
        if (!is_free) break;
        mine = take_slot<CLUSTER>(address + which * (u32)sizeof(table_print), print);
        if (mine) {
          ((volatile u64 *)&entries[at + which])[0] = key;
          break;
        }
        done = before;
        continue; /* another key took the slot, or its neighbour: look again */
      }
      if (left-- == 0) {
        for (int r = 0; r < RANKS; r++) l.of(r).full = 1;
        live = false;
      }
      at = (at + GROUP) & mask;
      done = 0;
    }
    __syncwarp();
    if (live) {
      ulonglong2 entry = make_ulonglong2(key, NO_TOKEN);
      while (!mine && (entry = load_global128(&entries[at + which])).x == NO_STATE) {}
      if (entry.x == key) {
        *old = entry.y;
        lowered = value < entry.y;
        if (lowered) {
          const u64 was = atomicMin((u64 *)&entries[at + which] + 1, value);
          if (TELLS) {
            *old = was;
            lowered = value < was;
          }
        }
        *slot = at + which;
        live = false;
      } /* else another key of this print: on behind it */
    }
  } while (__any_sync(ALL, live));
  return lowered;
}

template <int RANKS, bool TELLS = true>
__device__ __forceinline__ bool offer(lane<RANKS> &l, bool live, token_key key, u64 value, u32 *rank, u32 *slot, u64 *old) {
  u32 at;
  place_of<RANKS>(key & ~HAS_EPSILONS, l.bits, rank, &at);
  return offer_at<(RANKS > 1), TELLS>(l, live, l.base_of(*rank), l.entries + (u64)*rank * SLOTS, at, key, value, slot, old);
}

/* Offers to the block's own part of the table. */
template <int RANKS>
__device__ __forceinline__ bool offer_own(lane<RANKS> &l, bool live, token_key key, u64 value, u32 *slot, u64 *old) {
  u32 rank, at;
  place_of<RANKS>(key & ~HAS_EPSILONS, l.bits, &rank, &at);
  return offer_at<false, true>(l, live, l.base, l.entries + (u64)l.rank() * SLOTS, at, key, value, slot, old);
}
#else

/* Of the four keys from an address on, the first that is free or `key`; GROUP if none is. *seen is what stands there. */
template <bool CLUSTER>
__device__ __forceinline__ u32 first_of(u32 address, u32 key, u32 *seen) {
  const uint4 four = words<CLUSTER>::load128(address);
  u32 which = GROUP;
  if (four.w == key || four.w == FREE) which = 3, *seen = four.w;
  if (four.z == key || four.z == FREE) which = 2, *seen = four.z;
  if (four.y == key || four.y == FREE) which = 1, *seen = four.y;
  if (four.x == key || four.x == FREE) which = 0, *seen = four.x;
  return which;
}

/* Offers a candidate of each live thread of a warp to the table of the block whose shared memory is at `base`; `at` is the home slot there. Called by whole
 * warps: they wait for each other between finding a slot and lowering its value, else those who are done first would go on alone. (With the threads that
 * happen to be active in place of the warp, the compiler's own convergence barriers and that wait could wait for each other: docs/gpu.md.) True if it
 * lowered the slot's value; then *slot says where and *old what stood there; with scorers, above, *slot and *old are right also if it did not (*old: NO_TOKEN if
 * there is no slot). By compare-and-swap: a 64-bit minimum is no faster on the block's own shared memory, and not atomic on another block's (docs/gpu.md). */
template <bool CLUSTER, int RANKS>
__device__ __forceinline__ bool offer_at(lane<RANKS> &l, bool live, u32 base, u32 at, token_key key, u64 value, u32 *slot, u64 *old) {
  typedef words<CLUSTER> there;
  const u32 mask = (1u << l.bits) - 1;
  for (u32 left = min(MAX_PROBES, mask / (4 * GROUP)); live;) {
    const u32 address = base + OFFSET(keys) + at * 4;
    u32 seen = 0;
    const u32 which = first_of<CLUSTER>(address, key, &seen);
    if (which < GROUP) {
      if (seen == FREE) seen = there::swap(address + which * 4, FREE, key);
      if (seen == FREE || seen == key) {
        at += which;
        break;
      }
      continue; /* another state took the slot: look again */
    }
    if (left-- == 0) {
      for (int r = 0; r < RANKS; r++) l.of(r).full = 1;
      live = false;
    }
    at = (at + GROUP) & mask;
  }
  __syncwarp();
  if (!live) return false;
  *slot = at;
  const u32 address = base + OFFSET(values) + at * 8;
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

template <int RANKS>
__device__ __forceinline__ bool offer(lane<RANKS> &l, bool live, token_key key, u64 value, u32 *rank, u32 *slot, u64 *old) {
  u32 at;
  place_of<RANKS>(key & ~HAS_EPSILONS, l.bits, rank, &at);
  return offer_at<(RANKS > 1)>(l, live, l.base_of(*rank), at, key, value, slot, old);
}

/* Offers to the block's own part of the table. */
template <int RANKS>
__device__ __forceinline__ bool offer_own(lane<RANKS> &l, bool live, token_key key, u64 value, u32 *slot, u64 *old) {
  u32 rank, at;
  place_of<RANKS>(key & ~HAS_EPSILONS, l.bits, &rank, &at);
  return offer_at<false>(l, live, l.base, at, key, value, slot, old);
}
#endif

/* Appends a candidate of each live thread of the warp to the list of the rank that owns its state, in the slots [begin, end) behind the part of the
 * table in use. What does not fit is only counted. */
template <int RANKS>
__device__ __forceinline__ void send(lane<RANKS> &l, bool live, u32 which, u32 begin, u32 end, token_key key, u64 value) {
  u32 rank = 0, slot;
  if (RANKS > 1) place_of<RANKS>(key & ~HAS_EPSILONS, l.bits, &rank, &slot);
  u32 peers = __ballot_sync(ALL, live);
  if (peers == 0) return;
  if (RANKS > 1) peers = __match_any_sync(ALL, live ? rank : RANKS);
  const u32 leader = __ffs(peers) - 1;
  u32 at = 0;
  if (live && in_warp() == leader) at = atomicAdd(&l.of(rank).num_listed[which], (u32)__popc(peers));
  at = begin + __shfl_sync(ALL, at, leader) + __popc(peers & ((1u << in_warp()) - 1));
  if (live && at < end) {
    lane_shared &to = l.of(rank);
    to.values[at] = value;
    to.keys[at] = key;
  }
}

}  // namespace WF_LANE_SPACE

#endif
