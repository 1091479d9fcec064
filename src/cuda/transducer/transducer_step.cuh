/* transducer_step.cuh - a step of a lane (transducer_lanes.h), by its block: from the sources' logits
 * to the tokens that stay in the frame and those that wait for later ones.
 *
 * A warp looks at each row of logits and lists the log-probabilities that can matter. Then there is
 * a warp for each set of tokens: those that wait for the next frames, by duration, and those that
 * stay in this one, of duration 0. It looks at the candidates of its duration and keeps the best of
 * each predictor context, at most K. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_STEP_CUH
#define WF_CUDA_TRANSDUCER_TRANSDUCER_STEP_CUH

#include "cuda/transducer/row_scores.cuh"
#include "cuda/transducer/transducer_lanes.h"
#include "cuda/transducer/transducer_lists.cuh"

enum {
  RANK_BIT = 26, /* of u32: above it a source, below it a column or an arc */
  MOST_SETS = WF__TLANE_MOST_SETS,
  MOST_K = WF__DEVICE_MOST_HYPOTHESES,
  WARPS = THREADS / LANES
};
static_assert(MOST_SETS <= WARPS, "a warp for each set");
#ifndef WF__LANE_ENTRIES /* a test makes it small */
#define WF__LANE_ENTRIES 512
#endif

/* A log-probability that can matter: source << RANK_BIT | column. */
struct lane_entry {
  u32 at;
  float loglike;
};

/* What the block's threads share, besides the lists. */
struct lane_shared {
  wf__tlane lane;
  wf__row_done done[MOST_K]; /* of the sources' rows */
  float durations[MOST_K][MOST_SETS];
  u32 num_entries; /* beyond WF__LANE_ENTRIES: rows are looked at whole */
  float best[WARPS];
};

/* A lane at work: pointers into shared memory. */
struct lane_at_work {
  const wf__tlane_work &w;
  lane_shared &s;
  wf__tlane_token *sources, *sets;
  u64 *contexts;
  offered *lists; /* [sets][ROOM] */
  lane_entry *entries;
  u32 *marks; /* [slots] */
  __device__ wf__tlane_token *set_of(u32 set) const {
    return sets + set * w.options.max_hypotheses;
  }
  __device__ u32 set_at(int32_t frame) const { return (u32)frame % w.num_sets; }
};

__host__ __device__ inline u64 shared_bytes(const wf__tlane_work &w) {
  return (u64)w.num_sets * ROOM * sizeof(offered) + WF__LANE_ENTRIES * sizeof(lane_entry) +
         (u64)(w.num_sets + 1) * w.options.max_hypotheses * sizeof(wf__tlane_token) +
         (u64)w.num_slots * (sizeof(u64) + sizeof(u32));
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

__device__ inline bool before(float cost, u64 predictor, float other_cost, u64 other_predictor) {
  return cost != other_cost ? cost < other_cost : predictor < other_predictor;
}

__device__ inline u64 context_after(const wf__tlane_work &w, u64 context, u32 token) {
  const wf__device_search_options &o = w.options;
  if (o.context_size == 0) return wf__hash_combine(context, token) & INT64_MAX;
  if (w.table != nullptr) /* 32 bits */
    return (u32)context % (u32)o.context_high * (u32)o.context_base + token;
  return context % o.context_high * o.context_base + token;
}

/* --- rows of scores ----------------------------------------------------------------------- */

__device__ inline bool only_blank(const lane_at_work &a) {
  return a.w.options.num_durations == 0 && a.s.lane.step == (int32_t)a.w.options.max_symbols;
}

/* What a source needs of its row. */
__device__ inline wf__row_need need_of(const lane_at_work &a, u32 source) {
  const float cost = a.sources[source].cost,
              token = only_blank(a) ? INFINITY : cost + a.w.options.token_weight;
  return {token, cost + a.w.options.blank_weight, token};
}

__device__ inline scored_row scored(const lane_at_work &a, u32 source) {
  return {logits_of(a.w.answer, a.s.lane.first_row + source), a.s.done[source], need_of(a, source)};
}

/* Adds what lanes of a warp have to the block's list. */
__device__ inline void add_entries(const lane_at_work &a, bool is, u32 source, u32 column,
                                   float loglike) {
  const u32 those = __ballot_sync(ALL_LANES, is);
  if (those == 0) return;
  u32 at = 0;
  if (this_lane() == 0) at = atomicAdd(&a.s.num_entries, (u32)__popc(those));
  at = __shfl_sync(ALL_LANES, at, 0) + (u32)__popc(those & ((1u << this_lane()) - 1));
  if (is && at < WF__LANE_ENTRIES) a.entries[at] = {source << RANK_BIT | column, loglike};
}

/* Lists the log-probabilities of a row that can matter, by a warp. */
__device__ inline void list_row(const lane_at_work &a, u32 source, const cost_limits &most) {
  const wf__answer_work &w = a.w.answer;
  const scored_row row = scored(a, source);
  const kept_scores kept = find_kept(w, row, most);
  const float least = least_logit(w, kept, row.done.tokens);
  for_row<true>(row.logits, 0, w.num_tokens, [&](u32 k, float logit) {
    if (!__any_sync(ALL_LANES, logit >= least || k == w.blank)) return;
    const float value = log_prob(row.done.tokens, logit);
    add_entries(a, is_kept(w, kept, k, value), source, k, value);
  });
}

/* The same for a row that the model's kernels have answered. */
__device__ inline void copy_row(const lane_at_work &a, u32 source) {
  const u32 row = a.s.lane.first_row + source, count = a.w.answer.answers.heads[row].num_entries;
  const wf__score_entry *entries = a.w.answer.answers.entries + (u64)row * WF__ANSWER_ENTRIES;
  if (count > WF__ANSWER_ENTRIES) {
    if (this_lane() == 0) atomicAdd(&a.s.num_entries, WF__LANE_ENTRIES + 1u);
    return;
  }
  for (u32 first = 0; first < count; first += LANES) {
    const bool is = first + this_lane() < count;
    const wf__score_entry own = is ? entries[first + this_lane()] : wf__score_entry{0, 0};
    add_entries(a, is, source, (u32)own.column, own.loglike);
  }
}

/* False: a row cannot be used, and the utterance is over. */
__device__ inline bool are_usable(const lane_at_work &a) {
  for (u32 k = 0; k < a.s.lane.num_sources; k++) {
    const wf__bad_logit &bad = bad_of(a.s.done[k]);
    if (bad.column < 0) continue;
    if (threadIdx.x == 0) {
      wf__device_result *result = &a.w.results[a.s.lane.utterance];
      result->outcome = WF__DEVICE_BAD_LOGIT;
      result->bad = bad;
      result->frame = a.s.lane.frame;
    }
    return false;
  }
  return true;
}

/* Scores the sources' rows, and lists what can matter. False: as above. */
__device__ inline bool look_at_rows(const lane_at_work &a) {
  const wf__answer_work &w = a.w.answer;
  const u32 warp = threadIdx.x / LANES, n = a.s.lane.num_sources, first = a.s.lane.first_row;
  for (u32 i = warp; i < n; i += WARPS) {
    const wf__row_done done =
        a.w.is_wide != 0 ? w.rows_done[first + i] : score_row(w, logits_of(w, first + i));
    if (this_lane() == 0) a.s.done[i] = done;
    if (this_lane() < w.num_durations)
      a.s.durations[i][this_lane()] =
          log_prob(done.durations, logits_of(w, first + i)[w.num_tokens + this_lane()]);
  }
  if (threadIdx.x == 0) a.s.num_entries = 0;
  __syncthreads();
  if (!are_usable(a)) return false;
  if (a.w.is_wide != 0) {
    for (u32 i = warp; i < n; i += WARPS) copy_row(a, i);
  } else if (warp < n) {
    const cost_limits most =
        find_limits(w, n, a.s.lane.least_waiting, [&](u32 k) { return scored(a, k); });
    for (u32 i = warp; i < n; i += WARPS) list_row(a, i, most);
  }
  if (threadIdx.x == 0) a.s.lane.num_arcs += (u64)n * a.w.options.num_arcs;
  __syncthreads();
  return true;
}

/* --- candidates -------------------------------------------------------------------------- */

/* Calls f(is, source, column, cost without the model's, log-probability of the token) for candidates
 * before durations: begin + lane, then those `step` further, ... All lanes of a warp as often. */
template <class F>
__device__ inline void for_entries(const lane_at_work &a, u32 begin, u32 step, const F &f) {
  const wf__device_search_options &o = a.w.options;
  const bool whole = a.s.num_entries > WF__LANE_ENTRIES;
  const u32 total = whole ? a.s.lane.num_sources * o.num_tokens : a.s.num_entries;
  for (u32 first = begin; first < total; first += step) {
    const u32 at = first + this_lane();
    bool is = at < total;
    u32 column = 0, source = 0;
    float cost = 0, loglike = 0;
    if (is) {
      if (whole) {
        source = at / o.num_tokens;
        column = at % o.num_tokens;
        loglike = log_prob(a.s.done[source].tokens,
                           logits_of(a.w.answer, a.s.lane.first_row + source)[column]);
      } else {
        const lane_entry entry = a.entries[at];
        source = entry.at >> RANK_BIT;
        column = entry.at & ((1u << RANK_BIT) - 1);
        loglike = entry.loglike;
      }
      const wf__device_search_arc arc = a.w.arcs[column];
      cost = a.sources[source].cost + arc.weight;
      if (arc.has_word != 0) cost -= o.word_score;
      if (column == o.blank) loglike -= o.blank_penalty;
      is = arc.number != NONE && (column == o.blank || !only_blank(a));
    }
    f(is, source, column, cost, loglike);
  }
}

/* May a token, or the blank, have this duration? */
__device__ inline bool is_allowed(const lane_at_work &a, bool blank, u32 duration) {
  if (a.w.options.num_durations == 0) return duration == (blank ? 1u : 0u);
  const bool last = a.s.lane.step + 1 == (int32_t)a.w.options.max_symbols;
  return duration > 0 || !(blank || last);
}

/* Adds the duration's log-probability. Returns the cost; +infinity: the duration is not allowed. */
__device__ inline float with_duration(const lane_at_work &a, u32 source, u32 column, float base,
                                      u32 duration, float *loglike) {
  if (!is_allowed(a, column == a.w.options.blank, duration)) return INFINITY;
  if (a.w.options.num_durations > 0) *loglike += a.s.durations[source][duration];
  return base + acoustic_cost(a.w, *loglike);
}

/* The token that a candidate makes. */
__device__ inline wf__tlane_token make_token(const lane_at_work &a, u32 source, u32 column,
                                             float cost, float loglike, u64 predictor) {
  const wf__tlane_token &from = a.sources[source];
  const bool blank = column == a.w.options.blank;
  const u32 first = a.s.lane.num_records - a.s.lane.num_sources; /* record of the first source */
  wf__tlane_token token = from;
  token.predictor = predictor;
  token.cost = cost;
  token.loglike = loglike;
  token.arc = a.w.options.first_arc + a.w.arcs[column].number;
  token.prev = first + source;
  token.frame = a.s.lane.frame;
  if (!blank) {
    token.parent = from.slot;
    token.slot = NONE;
    token.label = (int32_t)column;
  }
  return token;
}

__device__ inline u64 predictor_after(const lane_at_work &a, u32 source, u32 column) {
  const u64 predictor = a.sources[source].predictor;
  return column == a.w.options.blank ? predictor : context_after(a.w, predictor, column);
}

/* --- a step ------------------------------------------------------------------------------ */

/* The cutoff of the step: `beam` above the best candidate, or token that waits. */
__device__ inline float find_cutoff(const lane_at_work &a) {
  const u32 warp = threadIdx.x / LANES;
  float best = a.s.lane.least_waiting;
  for_entries(a, warp * LANES, THREADS,
              [&](bool is, u32 source, u32 column, float base, float of_token) {
                for (u32 d = 0; d < a.w.num_sets && is; d++) {
                  float loglike = of_token;
                  best = fminf(best, with_duration(a, source, column, base, d, &loglike));
                }
              });
  best = warp_least(best);
  if (this_lane() == 0) a.s.best[warp] = best;
  __syncthreads();
  for (u32 i = 0; i < WARPS; i++) best = fminf(best, a.s.best[i]);
  return add_finite(best, a.w.options.beam);
}

/* The first candidates of a duration, and tokens that waited for its frame, by a warp. Returns their
 * number. */
__device__ inline u32 list_candidates(const lane_at_work &a, u32 duration, float cutoff) {
  const u32 lane = this_lane(), set = a.set_at(a.s.lane.frame + (int32_t)duration);
  kept_list keep = {a.lists + duration * ROOM, 0, a.w.options.max_hypotheses, cutoff};
  if (duration > 0) {
    const bool is = lane < a.s.lane.sizes[set];
    offered own = {0, 0, 0, lane, 0};
    float cost = INFINITY;
    if (is) {
      const wf__tlane_token &token = a.set_of(set)[lane];
      cost = token.cost;
      own.predictor = token.predictor;
      own.key = key_of(cost);
    }
    keep.add(is, cost, own);
  }
  for_entries(a, 0, LANES, [&](bool is, u32 source, u32 column, float base, float loglike) {
    const float cost = is ? with_duration(a, source, column, base, duration, &loglike) : INFINITY;
    offered own = {0, 0, 0, column, loglike};
    is = cost != INFINITY && cost <= keep.limit;
    if (is) {
      own.predictor = predictor_after(a, source, column);
      own.key = key_of(cost);
      own.order = (source + 1) << RANK_BIT | a.w.arcs[column].number;
    }
    keep.add(is, cost, own);
  });
  return reduce(keep.list, keep.size, keep.most);
}

__device__ inline void expand(const lane_at_work &a) {
  const u32 duration = threadIdx.x / LANES, lane = this_lane(),
            set = a.set_at(a.s.lane.frame + (int32_t)duration);
  const bool has_set = duration < a.w.num_sets;
  const float cutoff = find_cutoff(a);
  const u32 size = has_set ? list_candidates(a, duration, cutoff) : 0;
  wf__tlane_token token;
  if (lane < size) {
    const offered &own = a.lists[duration * ROOM + lane];
    token = own.order == 0 ? a.set_of(set)[own.from]
                           : make_token(a, (own.order >> RANK_BIT) - 1, own.from, cost_of(own.key),
                                        own.loglike, own.predictor);
  }
  __syncthreads(); /* the sources are not needed any more */
  if (lane < size) (duration == 0 ? a.sources : a.set_of(set))[lane] = token;
  if (has_set && lane == 0) (duration == 0 ? a.s.lane.num_sources : a.s.lane.sizes[set]) = size;
}

/* Of all candidates, one. By the first warp, from the only source. */
__device__ inline void expand_greedy(const lane_at_work &a) {
  const wf__tlane_work &w = a.w;
  const u32 lane = this_lane();
  u32 key = NONE, number = NONE, column = 0;
  float base = 0, loglike = 0;
  for_entries(a, 0, LANES, [&](bool is, u32, u32 entry, float cost, float of_entry) {
    const float with = cost + acoustic_cost(w, of_entry);
    if (!is || !(with <= FLT_MAX)) return;
    const u32 own = key_of(with), own_number = w.arcs[entry].number;
    if (own > key || (own == key && own_number >= number)) return;
    key = own;
    number = own_number;
    column = entry;
    base = cost;
    loglike = of_entry;
  });
  const u32 least = warp_min(key), first = warp_min(key == least ? number : NONE);
  const bool wins = least != NONE && key == least && number == first;
  wf__tlane_token token;
  u32 duration = 0, is_kept = 0;
  if (wins) {
    const bool blank = column == w.options.blank;
    if (w.options.num_durations == 0) {
      duration = blank ? 1 : 0;
    } else {
      const float *durations = a.s.durations[0];
      for (u32 d = 1; d < w.options.num_durations; d++)
        if (durations[d] > durations[duration]) duration = d;
      if (duration == 0 && !is_allowed(a, blank, 0)) duration = 1;
      loglike += durations[duration];
    }
    const float cost = base + acoustic_cost(w, loglike);
    is_kept = cost <= FLT_MAX;
    token = make_token(a, 0, column, cost, loglike, predictor_after(a, 0, column));
  }
  __syncwarp();
  if (lane == 0) a.s.lane.num_sources = 0;
  __syncwarp();
  if (is_kept != 0) {
    const u32 set = a.set_at(a.s.lane.frame + (int32_t)duration);
    (duration == 0 ? a.sources : a.set_of(set))[0] = token;
    (duration == 0 ? a.s.lane.num_sources : a.s.lane.sizes[set]) = 1;
  }
  __syncwarp();
}

#endif
