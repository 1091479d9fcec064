/* transducer_lane.cuh - a lane at work (transducer_lanes.h): what the threads of its block share, and
 * what all parts of a step need. WORDS: any graph, with scorers; else tokens alone. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_LANE_CUH
#define WF_CUDA_TRANSDUCER_TRANSDUCER_LANE_CUH

#include "cuda/transducer/row_scores.cuh"
#include "cuda/transducer/transducer_lanes.h"
#include "cuda/transducer/transducer_lists.cuh"

enum {
  RANK_BIT = WF__DEVICE_RANK_BIT, /* of u32: above it a source, below it a column or an arc */
  MOST_SETS = WF__TLANE_MOST_SETS,
  MOST_K = WF__DEVICE_MOST_HYPOTHESES,
  WARPS = THREADS / LANES
};
static_assert(MOST_SETS <= WARPS, "a warp for each set");
#ifndef WF__LANE_ENTRIES /* a test makes these small */
#define WF__LANE_ENTRIES 512
#endif
#ifndef WF__LANE_TOKENS
#define WF__LANE_TOKENS 128 /* of a closed set; with more, an utterance is searched elsewhere */
#endif
enum { MOST_TOKENS = WF__LANE_TOKENS, MOST_ENTRIES = WF__LANE_ENTRIES + WF__LANE_MORE_ENTRIES };
static_assert((int)MOST_TOKENS <= (int)ROOM && MOST_TOKENS % LANES == 0,
              "a list has room for a set");
static_assert(sizeof(wf__tlane_token) <= 2 * sizeof(offered<true>), "... with those of two sets");

/* What the block's threads share, besides the lists. */
template <bool WORDS>
struct lane_shared {
  wf__tlane lane;
  wf__row_done done[MOST_K]; /* of the rows */
  float durations[MOST_K][MOST_SETS];
  u32 list_sizes[MOST_SETS]; /* for offers */
  u32 num_entries;           /* beyond MOST_ENTRIES: rows are looked at whole */
  float best[WARPS];
};
template <>
struct lane_shared<true> {
  wf__tlane lane;
  wf__row_done done[MOST_K];
  float durations[MOST_K][MOST_SETS];
  u32 list_sizes[MOST_SETS]; /* for offers */
  u32 best;                  /* ordered cost of the best candidate so far, or token that waits */
  u32 limits[MOST_SETS];     /* ordered costs: K tokens of a set cost no more */
  u32 num_candidates, num_arcs;
  float cutoff;
  u32 rounds[MOST_TOKENS]; /* of the closure: the one that made a token; 0: none did */
  u32 order[MOST_TOKENS];  /* scratch */
  wf__flat_scorer scorer;
};

/* Pointers into shared memory. */
template <bool WORDS>
struct lane_at_work {
  const wf__tlane_work &w;
  lane_shared<WORDS> &s;
  wf__tlane_token *sources, *sets;
  u64 *contexts;
  offered<WORDS> *lists;    /* [sets][ROOM] */
  wf__tlane_entry *entries; /* without words: the first WF__LANE_ENTRIES */
  u32 *marks;               /* [slots] */
  __device__ wf__tlane_token *set_of(u32 set) const {
    return sets + set * w.options.max_hypotheses;
  }
  __device__ u32 set_at(int32_t frame) const { return (u32)frame % w.num_sets; }
  __device__ wf__tlane_candidate *candidates() const {
    return w.candidates + (u64)blockIdx.x * WF__LANE_CANDIDATES;
  }
  __device__ bool has_scorer() const { return WORDS && s.lane.own.scorer != nullptr; }
};

/* Sources that there is room for. */
template <bool WORDS>
__host__ __device__ u32 most_sources(const wf__tlane_work &w) {
  return WORDS ? (u32)MOST_TOKENS : w.options.max_hypotheses;
}

template <bool WORDS>
__host__ __device__ u64 shared_bytes(const wf__tlane_work &w) {
  return (u64)w.num_sets * ROOM * sizeof(offered<WORDS>) +
         (WORDS ? 0 : WF__LANE_ENTRIES * sizeof(wf__tlane_entry)) +
         ((u64)w.num_sets * w.options.max_hypotheses + most_sources<WORDS>(w)) *
             sizeof(wf__tlane_token) +
         (u64)w.num_slots * (sizeof(u64) + sizeof(u32));
}

/* Takes places in a list of the block for those lanes of a warp that add to it. `size`: how many are
 * taken. Returns the lane's own place. */
__device__ inline u32 place_in_list(bool adds, u32 *size) {
  const u32 those = __ballot_sync(ALL_LANES, adds);
  u32 first = 0;
  if (those == 0) return 0;
  if (this_lane() == 0) first = atomicAdd(size, (u32)__popc(those));
  return __shfl_sync(ALL_LANES, first, 0) + (u32)__popc(those & ((1u << this_lane()) - 1));
}

/* --- costs ------------------------------------------------------------------------------- */

/* As on the CPU (transducer_expand.c), to the bit. */
__device__ inline float acoustic_cost(const wf__tlane_work &w, float loglike) {
  return acoustic_cost(w.options.acoustic_scale, loglike);
}
__device__ inline float add_finite(float a, float b) {
  const float sum = a + b;
  return sum < FLT_MAX ? sum : FLT_MAX;
}

/* The order by rank. */
__device__ inline bool before(const wf__tlane_token &a, const wf__tlane_token &b) {
  if (a.cost != b.cost) return a.cost < b.cost;
  if (a.state != b.state) return a.state < b.state;
  return a.predictor != b.predictor ? a.predictor < b.predictor : a.context < b.context;
}

__device__ inline u64 context_after(const wf__tlane_work &w, u64 context, u32 token) {
  const wf__device_search_options &o = w.options;
  if (o.context_size == 0) return wf__hash_combine(context, token) & INT64_MAX;
  if (w.table != nullptr) /* 32 bits */
    return (u32)context % (u32)o.context_high * (u32)o.context_base + token;
  return context % o.context_high * o.context_base + token;
}

/* Is this the last step of a frame in RNN-T, which has no token arcs? */
template <bool WORDS>
__device__ bool only_blank(const lane_at_work<WORDS> &a) {
  return a.w.options.num_durations == 0 && a.s.lane.step == (int32_t)a.w.options.max_symbols;
}

/* May a token, or the blank, have this duration? */
template <bool WORDS>
__device__ bool is_allowed(const lane_at_work<WORDS> &a, bool blank, u32 duration) {
  if (a.w.options.num_durations == 0) return duration == (blank ? 1u : 0u);
  const bool last = a.s.lane.step + 1 == (int32_t)a.w.options.max_symbols;
  return duration > 0 || !(blank || last);
}

/* Adds the duration's log-probability. Returns the cost; +infinity: the duration is not allowed. */
template <bool WORDS>
__device__ float with_duration(const lane_at_work<WORDS> &a, u32 source, u32 column, float base,
                               u32 duration, float *loglike) {
  if (!is_allowed(a, column == a.w.options.blank, duration)) return INFINITY;
  if (a.w.options.num_durations > 0) *loglike += a.s.durations[a.sources[source].row][duration];
  return base + acoustic_cost(a.w, *loglike);
}

/* --- offers, for lattices and streams ------------------------------------------------------ */

template <bool WORDS>
__device__ wf__device_offer *offer_at(const lane_at_work<WORDS> &a, u32 number) {
  const wf__tlane_utterance &own = a.s.lane.own;
  return number < own.most_offers ? a.w.offers + own.first_offer + number : nullptr;
}

/* What a link to a token of this cost can cost, and more than its roundings. */
template <bool WORDS>
__device__ float most_of_link(const lane_at_work<WORDS> &a, float cost) {
  const float beam = a.w.options.lattice_beam;
  return cost + beam + 1e-4f * (1 + fabsf(cost) + beam);
}

/* By one thread, before and after those of a step. */
template <bool WORDS>
__device__ void begin_offers(const lane_at_work<WORDS> &a) {
  a.s.lane.step_offer = a.s.lane.num_offers++;
}
template <bool WORDS>
__device__ void end_offers(const lane_at_work<WORDS> &a) {
  const u32 first = a.s.lane.step_offer;
  if (wf__device_offer *offer = offer_at(a, first))
    *offer = {0, NONE, a.s.lane.num_offers - first - 1, 0, 0};
}

/* What lanes of a warp have. */
template <bool WORDS>
__device__ void add_offers(const lane_at_work<WORDS> &a, bool is, const wf__device_offer &own) {
  const u32 at = place_in_list(is, &a.s.lane.num_offers);
  wf__device_offer *offer = offer_at(a, at);
  if (is && offer != nullptr) *offer = own;
}

/* --- results ----------------------------------------------------------------------------- */

/* By one thread. */
template <bool WORDS>
__device__ void write_result(const lane_at_work<WORDS> &a, u32 outcome, u32 flags, u32 end,
                             int32_t frame, const wf__bad_logit &bad = {-1, 0}, u32 first_kept = 0,
                             u32 num_kept = 0) {
  const wf__tlane &lane = a.s.lane;
  a.w.results[lane.utterance] = {outcome,           flags,        end,      frame, 0,
                                 lane.num_offers,   first_kept,   num_kept, bad,   lane.num_tokens,
                                 lane.num_expanded, lane.num_arcs};
}

#endif
