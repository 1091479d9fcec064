/* lane.cuh - the blocks that search an utterance together: a block's shared memory, barriers and
 * collective operations of a lane, the distribution of arcs over the threads of a warp. */
#ifndef WF_CUDA_SEARCH_LANE_CUH
#define WF_CUDA_SEARCH_LANE_CUH

#include <cuda_runtime.h>
#include <float.h>
#include <stddef.h>

#include "cuda/device/ptx.cuh"
#include "cuda/search/policy.cuh"

namespace wf_search {

constexpr u32 MAX_THREADS = WF__LANE_THREADS, MAX_WARPS = MAX_THREADS / 32;
constexpr u32 ALL = 0xffffffffu, NO_ARC = 0xffffffffu;
#define NO_TOKEN (~0ull)
constexpr u32 FRESH = 0x80000000u, MARKED = 0x80000000u; /* MARKED: a bit of a state in the trace */
constexpr u32 COLUMN_CLASSES = 16;
constexpr u32 MAX_PROBES = 256; /* the table counts as full if probing finds this many taken homes,
                                   or a quarter of the table */
constexpr u32 WITH_EPSILONS = 0x80000000u; /* a bit of an arc in the trace, with lattices: the arc's
                                              target state has epsilon arcs. NO_ARC always has it */

__device__ __forceinline__ u32 ordered(float cost) {
  u32 bits = __float_as_uint(cost);
  return bits ^ ((u32)((int)bits >> 31) | 0x80000000u);
}
__device__ __forceinline__ float cost_of(u32 key) {
  return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}
/* Like the CPU's add_finite: sums stay below +infinity, so that comparisons with it work. */
__device__ __forceinline__ float add_finite(float a, float b) {
  return fminf(__fadd_rn(a, b), FLT_MAX);
}

__device__ __forceinline__ u32 folded(u32 key) { return key; }
__device__ __forceinline__ u32 folded(u64 key) {
  return (u32)((key ^ key >> 32) * 0x9E3779B97F4A7C15ull >> 32);
}

/* Rank and home slot, the first of `group`, of a key in a table of ranks of 2^bits slots. */
template <int RANKS, class KEY>
__device__ __forceinline__ void table_place(KEY key, u32 bits, u32 group, u32 *rank, u32 *slot) {
  constexpr int RANK_BITS = RANKS == 1 ? 0 : RANKS == 2 ? 1 : RANKS == 4 ? 2 : 3;
  u32 hash = folded(key) * 0x9E3779B1u;
  hash ^= hash >> 15;
  hash *= 0x85EBCA77u;
  *rank = RANK_BITS == 0 ? 0 : hash >> (32 - RANK_BITS) % 32;
  *slot = (hash << RANK_BITS) >> (32 - bits) & ~(group - 1);
}

__device__ __forceinline__ u32 tid() { return threadIdx.x; }
__device__ __forceinline__ u32 warp() { return threadIdx.x >> 5; }
__device__ __forceinline__ u32 in_warp() { return threadIdx.x & 31; }

/* Phases of a frame, for WF_LANE_PROFILE. */
enum lane_phase {
  PHASE_BEGIN,
  PHASE_WAIT,
  PHASE_SELECT,
  PHASE_ARCS,
  PHASE_WORDS,
  PHASE_TABLE,
  PHASE_FINISH,
  PHASE_REST,
  PHASE_FRONTIER,
  PHASE_CLOSURE_ARCS,
  PHASE_CLOSURE_WORDS,
  PHASE_CLOSURE_WAIT,
  PHASE_CLOSE,
  PHASE_FIRST_PASS,
  PHASE_WRITING,
  NUM_PHASES
};

/* --- shared memory of a block ------------------------------------------------------------ */

/* The additional fields of searches with scorers; empty otherwise. */
template <bool SCORED>
struct scorer_shared {};
template <>
struct scorer_shared<true> {
  u64 range_contexts[MAX_WARPS][32]; /* beside `arc_ranges` */
  wf__flat_scorer scorer;            /* of the utterance, if it has one */
  wf__lane_words words;              /* added to its graph */
  const wf__flat_scorer *memo_of;    /* the scorer whose results the memo has */
  u32 num_word_candidates;           /* words of the frame's emitting arcs, on this rank */
  u32 left_out;                      /* some of them were left out, unscored */
  u32 num_logged;                    /* candidates in the log of this rank */
  u32 num_placed;  /* with recombine=state: how many of these have written their contexts */
  u32 select_left; /* with select_key: number of sources with that key that are expanded, 0: all */
  u32 all_stand;   /* every taken slot has a token, and the cheapest token is `best` or `lowest` */
  u32 lowest;      /* ordered cost of the cheapest token made by an epsilon arc on this rank */
};

/* Those of searches with few contexts (boost_pairs.cuh). */
constexpr u32 FILTER_BITS = 13;
template <bool PAIRS>
struct pairs_shared {};
template <>
struct pairs_shared<true> {
  wf__flat_scorer scorer;           /* of the utterance, if it has one */
  const wf__flat_scorer *filter_of; /* the scorer whose words the filter has */
  const wf__phrase_node *nodes;     /* of a scorer that is one list of phrases; NULL: it is not */
  u32 contexts;                     /* C, at least 2 */
  float least;                      /* no word costs less */
  u32 magic, shift;                 /* n / C is the upper half of n * magic, >> shift */
  u32 filter[(1u << FILTER_BITS) / 32]; /* of the keys of its tables */
};

template <bool DEFERRED>
struct deferred_shared {};
template <>
struct deferred_shared<true> {
  u32 missing; /* some score is missing */
  u64 num_requests;
};

/* The table comes last: the backward pass (backward.cuh) puts its own table there. */
template <class POLICY>
struct lane_shared {
  typedef typename POLICY::table table;
  u32 hist[256];
  u32 hist_all[256];               /* summed over the ranks */
  uint2 arc_ranges[MAX_WARPS][32]; /* of a warp's tokens: {first arc - arcs before it, cost} */
  uint16_t frontier[2][POLICY::PAIRS ? MAX_THREADS / 2 : MAX_THREADS]; /* pairs_shared takes room */
  u64 exchange[2][8]; /* one cell per rank: results of its block; two buffers, used alternately */
  u64 warp_values[MAX_WARPS];
  u32 warp_counts[MAX_WARPS];
  u32 best;     /* running best candidate, ordered */
  u32 kept;     /* tokens of all ranks after the emission */
  u32 inserted; /* tokens made by epsilon arcs in this frame, on this rank */
  u32 num_near; /* keys in `arc_ranges` while sources are selected */
  u64 select_key;
  u64 last; /* last candidate that the frame accepted */
  u32 next; /* frame of the scores to be searched next */
  u32 full; /* on any rank */
  u32 frontier_size[2];
  u32 frontier_work[2]; /* some entry has epsilon arcs */
  u32 next_batch;       /* sources taken so far */
  /* With wide states (wide_states.cuh): sources that are listed; columns that cost up to `reach`,
   * in classes of equal steps above `least_column`; by how much `reach` was too low before. */
  u32 num_wide_sources, class_ends[COLUMN_CLASSES + 1];
  float reach, least_column, class_scale, margin;
  u32 num_listed[2]; /* candidates in this rank's list, or sent to it in this epsilon round and in
                        the next one */
  u32 sent[2];       /* a block sent a candidate in this round */
  u32 utterance;
  wf__lane_utterance scores;
  u32 flags;   /* this and the sums are kept by thread 0 */
  u32 stopped; /* by the host, as rank 0 has seen it */
  u64 num_tokens, num_expanded, num_narrowed, num_arcs;
  scorer_shared<POLICY::SCORED> with_scorer;
  pairs_shared<POLICY::PAIRS> with_pairs;
  deferred_shared<POLICY::DEFERRED> with_deferred;
#ifdef WF_LANE_PROFILE
  long long phase[NUM_PHASES], since, rounds, frontier_entries, closure_words;
#endif
  alignas(16) u64 values[table::shared_values(WF__SHARED_KB)];
  typename table::fingerprint
      keys[1u << table::slot_bits(WF__SHARED_KB)]; /* aligned as the values */
  float row[1];                                    /* costs of the columns, if they fit */

  __device__ __forceinline__ void begin_frame() {
    kept = inserted = full = next_batch = num_listed[0] = num_listed[1] = sent[0] = sent[1] = 0;
    best = ALL;
    frontier_size[0] = frontier_size[1] = frontier_work[0] = frontier_work[1] = 0;
    if constexpr (POLICY::SCORED) {
      with_scorer.num_logged = with_scorer.num_placed = with_scorer.all_stand = 0;
      with_scorer.left_out = 0;
      with_scorer.lowest = ALL;
    }
  }
};

/* Bytes before the row of costs, and the number of columns that fit in the row; longer rows are
 * read from device memory. shared_kb is that of the profile that the device code was compiled for.
 */
template <class POLICY>
__host__ __device__ constexpr u32 bytes_before_row(int shared_kb) {
  typedef typename POLICY::table table;
  return offsetof(lane_shared<POLICY>, values) + 8 * table::shared_values(shared_kb) +
         ((u32)sizeof(typename table::fingerprint) << table::slot_bits(shared_kb));
}
template <class POLICY>
__host__ __device__ constexpr u32 most_columns(int shared_kb) {
  const u32 room =
      ((u32)shared_kb * 1024 - bytes_before_row<POLICY>(shared_kb)) / sizeof(float) - 4;
  return room < WF__LANE_MAX_ROW ? room : WF__LANE_MAX_ROW;
}

/* This block's shared memory. */
template <class POLICY>
__device__ __forceinline__ lane_shared<POLICY> &own_shared() {
  WF__DYNAMIC_SHARED(unsigned char, lane_memory);
  return *reinterpret_cast<lane_shared<POLICY> *>(lane_memory);
}

/* The utterance's scorer, in shared memory. */
template <class POLICY>
static __device__ __forceinline__ const wf__flat_scorer &own_scorer() {
  if constexpr (POLICY::PAIRS)
    return own_shared<POLICY>().with_pairs.scorer;
  else
    return own_shared<POLICY>().with_scorer.scorer;
}

/* Offset of a field in shared memory. `lane_shared` must name the policy's type. */
#define OFFSET(field) ((u32)offsetof(lane_shared, field))

/* --- the blocks of a lane ---------------------------------------------------------------- */

template <class POLICY, int RANKS>
struct lane {
  typedef wf_search::lane_shared<POLICY> lane_shared;
  static constexpr u32 THREADS = threads_of(RANKS), WARPS = THREADS / 32; /* of a block */
  u32 base; /* address of this block's shared memory */
  u32 turn;
  u32 bits; /* slots of a rank in this frame: 2^bits */

  static_assert(offsetof(lane_shared, row) == bytes_before_row<POLICY>(WF__SHARED_KB),
                "the host must know the layout");

  __device__ __forceinline__ lane() : turn(0) {
    base = own_base();
    if (RANKS > 1) base = __shfl_sync(ALL, base, 0); /* stays in a register */
  }
  static __device__ __forceinline__ lane_shared &own() { return own_shared<POLICY>(); }
  static __device__ __forceinline__ u32 own_base() { return (u32)__cvta_generic_to_shared(&own()); }
  /* Sets the members that never change, for the compiler to know. */
  __device__ __forceinline__ void set_constants(const lane &from) {
    base = RANKS == 1 ? own_base() : from.base;
  }
  /* Address of the shared memory of a rank. */
  __device__ __forceinline__ u32 base_of(u32 r) const {
    return RANKS == 1 ? base : address_of_rank(base, r);
  }

  __device__ __forceinline__ u32 rank() const { return RANKS == 1 ? 0 : cluster_rank(); }
  __device__ __forceinline__ void sync() {
    if (RANKS == 1)
      __syncthreads();
    else
      sync_cluster();
  }
  __device__ __forceinline__ lane_shared &of(u32 r) {
    if (RANKS == 1) return own();
    return *shared_of_rank(&own(), r);
  }
  /* Combines the values of all ranks; every thread of the lane gets the result. The same cell
   * may be used again after two syncs. */
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
  /* Sum or minimum over all threads of the lane; all get the result. */
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

/* --- arcs of a warp's tokens ------------------------------------------------------------- */

/* Distributes the arcs of a warp's 32 tokens evenly: for k0 = 0, 32, ... every thread gets arc
 * number k0 + its lane. With pairs (boost_pairs.cuh) what it gets is arc * C + context. */
template <class POLICY>
struct arc_share {
  typedef wf_search::lane_shared<POLICY> lane_shared;
  u32 range; /* address of {first arc - arcs before it, cost} of the tokens that have arcs */
  u32 before, degree, total, started;

  static __device__ __forceinline__ u32 stride() {
    if constexpr (POLICY::PAIRS)
      return own_shared<POLICY>().with_pairs.contexts;
    else
      return 1;
  }

  /* Offset from a range to the token's context. */
  static __device__ __forceinline__ u32 to_context() {
    return OFFSET(with_scorer) + (u32)offsetof(scorer_shared<true>, range_contexts) -
           OFFSET(arc_ranges);
  }

  __device__ __forceinline__ arc_share(u32 arc_ranges, u32 lane, u32 first, u32 arcs, float cost,
                                       u64 context = 0)
      : range(arc_ranges), degree(arcs), started(0) {
    u32 upto = arcs;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
      u32 x = __shfl_up_sync(ALL, upto, d);
      if (lane >= d) upto += x;
    }
    total = __shfl_sync(ALL, upto, 31);
    before = upto - arcs;
    u32 some = __ballot_sync(ALL, arcs > 0);
    __syncwarp(); /* no thread still reads the ranges of the previous 32 tokens */
    const u32 mine = range + 8 * __popc(some & lanes_before());
    const u32 numbered =
        POLICY::PAIRS ? (first - before) * stride() + (u32)context : first - before;
    if (arcs > 0) store_own_pair(mine, numbered, cost);
    if (POLICY::SCORED && arcs > 0)
      store_own_pair(mine + to_context(), (u32)context, __uint_as_float((u32)(context >> 32)));
    __syncwarp();
  }
  /* Arc and source cost (and source context) of arc k0 + lane. */
  __device__ __forceinline__ void at(u32 k0, u32 lane, u32 *arc, float *cost, u64 *context) {
    u32 from = before - k0;
    u32 starts = warp_or(degree > 0 && from < 32 ? 1u << from : 0);
    const u32 mine = range + 8 * (started + __popc(starts & lanes_up_to()) - 1);
    u64 own = own_words::load64(mine);
    *context = POLICY::SCORED ? own_words::load64(mine + to_context()) : 0;
    started += __popc(starts);
    *arc = (u32)own + (k0 + lane) * stride();
    *cost = __uint_as_float((u32)(own >> 32));
  }
};

}  // namespace wf_search

#endif
