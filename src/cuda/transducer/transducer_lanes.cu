/* transducer_lanes.cu - the search over tokens alone in a kernel (transducer_lanes.h). A block is a
 * lane, with a warp for each set of tokens: those that wait for the next frames, by duration, and those that
 * stay in this one, of duration 0.
 *
 * In a step every warp looks at the candidates of its duration and keeps the best of each predictor
 * context, at most K. What comes between two steps is done by the first warp. */
#include "cuda/transducer/transducer_lanes.h"
#include "math/cost.h"
#include "warpfst_all.h"

#include "cuda/rnn/row_count.cuh"

enum : u32 { NONE = 0xffffffffu };
enum {
  ROOM = 128, /* of a list: at least K tokens and a candidate of each lane of the warp */
  RANK_BIT = 26,
  MOST_SETS = WF__TLANE_MOST_SETS,
  MOST_K = WF__DEVICE_MOST_HYPOTHESES
};
static const u64 NO_CONTEXT = ~(u64)0;

/* A candidate, or a token that waited when the step began. */
struct offered {
  u64 predictor;
  u32 key;   /* ordered cost */
  u32 order; /* of equal costs the first counts: 0 for tokens that waited, then by rank of the
                source and arc */
  u32 from;  /* column; of a token: its number */
  float loglike;
};

/* What the block's threads share, besides the lists. */
struct lane_shared {
  wf__tlane lane;
  u32 counts[MOST_K], offsets[MOST_K + 1]; /* entries of the sources' rows */
  int32_t bad[MOST_K];                     /* columns */
  float best[MOST_SETS];                   /* the least cost of a duration */
};

/* A lane at work: pointers into shared memory. */
struct lane_at_work {
  const wf__tlane_work &w;
  lane_shared &s;
  wf__tlane_token *sources, *sets;
  u64 *contexts;
  offered *lists; /* [sets][ROOM] */
  u32 *marks;     /* [slots] */
  __device__ wf__tlane_token *set_of(u32 set) const {
    return sets + set * w.options.max_hypotheses;
  }
  __device__ u32 set_at(int32_t frame) const { return (u32)frame % w.num_sets; }
};

__host__ __device__ static u64 shared_bytes(const wf__tlane_work &w) {
  return (u64)w.num_sets * ROOM * sizeof(offered) +
         (u64)(w.num_sets + 1) * w.options.max_hypotheses * sizeof(wf__tlane_token) +
         (u64)w.num_slots * (sizeof(u64) + sizeof(u32));
}

/* --- costs ------------------------------------------------------------------------------- */

/* As on the CPU (transducer_expand.c), to the bit. */
__device__ static float acoustic_cost(const wf__tlane_work &w, float loglike) {
  return loglike == -INFINITY ? INFINITY : -(w.options.acoustic_scale * loglike);
}
__device__ static float add_finite(float a, float b) {
  const float sum = a + b;
  return sum < FLT_MAX ? sum : FLT_MAX;
}
__device__ static u32 key_of(float cost) { return wf__ordered_cost(cost + 0.0f); /* -0 is 0 */ }
__device__ static float cost_of(u32 key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__device__ static float warp_least(float x) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) x = fminf(x, __shfl_xor_sync(ALL_LANES, x, d));
  return x;
}

__device__ static bool before(float cost, u64 predictor, float other_cost, u64 other_predictor) {
  return cost != other_cost ? cost < other_cost : predictor < other_predictor;
}

__device__ static u64 context_after(const wf__tlane_work &w, u64 context, u32 token) {
  if (w.options.context_size == 0) return wf__hash_combine(context, token) & INT64_MAX;
  return context % w.options.context_high * w.options.context_base + token;
}

/* --- lists ------------------------------------------------------------------------------- */

/* Of these lanes, the one with the least (predictor, order). */
__device__ static u32 first_of_equal(u32 lanes, const offered &own) {
  const u32 lane = this_lane();
  for (int part = 0; part < 3 && (lanes & (lanes - 1)) != 0; part++) {
    const u32 value = part == 0   ? (u32)(own.predictor >> 32)
                      : part == 1 ? (u32)own.predictor
                                  : own.order;
    const bool is = lanes >> lane & 1;
    const u32 least = warp_min(is ? value : NONE);
    lanes = __ballot_sync(ALL_LANES, is && value == least);
  }
  return (u32)__ffs((int)lanes) - 1;
}

__device__ static bool is_before(const offered &a, const offered &b) {
  if (a.key != b.key) return a.key < b.key;
  if (a.predictor != b.predictor) return a.predictor < b.predictor;
  return a.order < b.order;
}

/* Keeps the first of each predictor context, of these the first `most` by rank, in order. Returns
 * their number. By a warp. */
__device__ static u32 reduce(offered *list, u32 size, u32 most) {
  const u32 lane = this_lane();
  u32 count = 0, kept = 0; /* lane i keeps the i-th */
  u64 predictor = 0;
  u32 left = 0; /* a bit for each of the lane's own */
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
    const offered none = {0, 0, 0, 0, 0};
    const u32 winner = first_of_equal(equal, own != NONE ? list[own] : none),
              at = __shfl_sync(ALL_LANES, own, (int)winner);
    const u64 of_winner = list[at].predictor;
    if (lane == winner) {
      left &= ~(1u << (at / LANES));
      is_stale = true;
    }
    const bool is_there = __ballot_sync(ALL_LANES, lane < count && predictor == of_winner) != 0;
    if (is_there) continue;
    if (lane == count) {
      kept = at;
      predictor = of_winner;
    }
    count++;
  }
  const offered mine = list[lane < count ? kept : 0];
  __syncwarp();
  if (lane < count) list[lane] = mine;
  __syncwarp();
  return count;
}

/* Adds the warp's candidates to a list that keeps `most`. */
struct kept_list {
  offered *list;
  u32 size, most;
  float limit; /* candidates that cost more do not count */

  __device__ void add(bool is, float cost, const offered &own) {
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

/* --- candidates -------------------------------------------------------------------------- */

__device__ static bool only_blank(const lane_at_work &a) {
  return a.w.options.num_durations == 0 && a.s.lane.step == (int32_t)a.w.options.max_symbols;
}

/* Calls f(is, source, column, cost without the model's, log-probability of the token) for every
 * candidate before durations, by a warp: all lanes as often. */
template <class F>
__device__ static void for_entries(const lane_at_work &a, const F &f) {
  const wf__tlane_work &w = a.w;
  const u32 total = a.s.offsets[a.s.lane.num_sources];
  u32 source = 0;
  for (u32 first = 0; first < total; first += LANES) {
    const u32 at = first + this_lane();
    bool is = at < total;
    u32 column = 0;
    float cost = 0, loglike = 0;
    if (is) {
      while (at >= a.s.offsets[source + 1]) source++;
      const u32 row = a.s.lane.first_row + source, entry = at - a.s.offsets[source];
      if (a.s.counts[source] > WF__ANSWER_ENTRIES) {
        column = entry;
        loglike = w.answers.tokens[(u64)row * w.options.num_tokens + column];
      } else {
        const wf__score_entry there = w.answers.entries[(u64)row * WF__ANSWER_ENTRIES + entry];
        column = (u32)there.column;
        loglike = there.loglike;
      }
      const wf__device_search_arc arc = w.arcs[column];
      cost = a.sources[source].cost + arc.weight;
      if (arc.has_word != 0) cost -= w.options.word_score;
      if (column == w.options.blank) loglike -= w.options.blank_penalty;
      is = arc.number != NONE && (column == w.options.blank || !only_blank(a));
    }
    f(is, source, column, cost, loglike);
  }
}

/* May a token, or the blank, have this duration? */
__device__ static bool is_allowed(const lane_at_work &a, bool blank, u32 duration) {
  if (a.w.options.num_durations == 0) return duration == (blank ? 1u : 0u);
  const bool last = a.s.lane.step + 1 == (int32_t)a.w.options.max_symbols;
  return duration > 0 || !(blank || last);
}

/* The same with duration `duration`: f(is, source, column, log-probability, cost). */
template <class F>
__device__ static void for_candidates(const lane_at_work &a, u32 duration, const F &f) {
  const wf__tlane_work &w = a.w;
  for_entries(a, [&](bool is, u32 source, u32 column, float base, float loglike) {
    float cost = INFINITY;
    if (is && is_allowed(a, column == w.options.blank, duration)) {
      if (w.options.num_durations > 0)
        loglike +=
            w.answers
                .durations[(u64)(a.s.lane.first_row + source) * w.options.num_durations + duration];
      cost = base + acoustic_cost(w, loglike);
    }
    f(cost != INFINITY, source, column, loglike, cost);
  });
}

/* The token that a candidate makes. */
__device__ static wf__tlane_token make_token(const lane_at_work &a, u32 source, u32 column,
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

__device__ static u64 predictor_after(const lane_at_work &a, u32 source, u32 column) {
  const u64 predictor = a.sources[source].predictor;
  return column == a.w.options.blank ? predictor : context_after(a.w, predictor, column);
}

/* --- a step ------------------------------------------------------------------------------ */

/* How many entries the rows have. False: a row cannot be used, and the utterance is over. */
__device__ static bool look_at_rows(const lane_at_work &a) {
  const wf__tlane_work &w = a.w;
  const u32 i = threadIdx.x, n = a.s.lane.num_sources;
  if (i < n) {
    const wf__answer_head head = w.answers.heads[a.s.lane.first_row + i];
    a.s.counts[i] = head.num_entries;
    a.s.bad[i] = head.bad.column;
  }
  __syncthreads();
  for (u32 k = 0; k < n; k++)
    if (a.s.bad[k] >= 0) {
      if (i == 0) {
        wf__device_result *result = &w.results[a.s.lane.utterance];
        result->outcome = WF__DEVICE_BAD_LOGIT;
        result->bad = w.answers.heads[a.s.lane.first_row + k].bad;
        result->frame = a.s.lane.frame;
      }
      return false;
    }
  if (i == 0) {
    u32 total = 0;
    for (u32 k = 0; k < n; k++) {
      a.s.offsets[k] = total;
      total += a.s.counts[k] > WF__ANSWER_ENTRIES ? w.options.num_tokens : a.s.counts[k];
    }
    a.s.offsets[n] = total;
    a.s.lane.num_arcs += (u64)n * w.options.num_arcs;
  }
  __syncthreads();
  return true;
}

/* The cutoff of the step: `beam` above the best candidate, or token that waits. */
__device__ static float find_cutoff(const lane_at_work &a) {
  const u32 warp = threadIdx.x / LANES;
  float best = INFINITY;
  for_candidates(a, warp, [&](bool, u32, u32, float, float cost) { best = fminf(best, cost); });
  best = warp_least(best);
  if (this_lane() == 0) a.s.best[warp] = best;
  __syncthreads();
  best = a.s.lane.least_waiting;
  for (u32 d = 0; d < a.w.num_sets; d++) best = fminf(best, a.s.best[d]);
  return add_finite(best, a.w.options.beam);
}

__device__ static void expand(const lane_at_work &a) {
  const u32 duration = threadIdx.x / LANES, lane = this_lane();
  const u32 set = a.set_at(a.s.lane.frame + (int32_t)duration);
  const float cutoff = find_cutoff(a);
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
  for_candidates(a, duration, [&](bool is, u32 source, u32 column, float loglike, float cost) {
    offered own = {0, 0, 0, column, loglike};
    if (is && cost <= keep.limit) {
      own.predictor = predictor_after(a, source, column);
      own.key = key_of(cost);
      own.order = (source + 1) << RANK_BIT | a.w.arcs[column].number;
    }
    keep.add(is, cost, own);
  });
  const u32 size = reduce(keep.list, keep.size, keep.most);
  wf__tlane_token token;
  if (lane < size) {
    const offered &own = keep.list[lane];
    token = own.order == 0 ? a.set_of(set)[own.from]
                           : make_token(a, (own.order >> RANK_BIT) - 1, own.from, cost_of(own.key),
                                        own.loglike, own.predictor);
  }
  __syncthreads(); /* the sources are not needed any more */
  if (lane < size) (duration == 0 ? a.sources : a.set_of(set))[lane] = token;
  if (lane == 0) (duration == 0 ? a.s.lane.num_sources : a.s.lane.sizes[set]) = size;
}

/* Of all candidates, one. By the first warp, from the only source. */
__device__ static void expand_greedy(const lane_at_work &a) {
  const wf__tlane_work &w = a.w;
  const u32 lane = this_lane();
  u32 key = NONE, number = NONE, column = 0;
  float base = 0, loglike = 0;
  for_entries(a, [&](bool is, u32, u32 entry, float cost, float of_entry) {
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
      const float *durations =
          w.answers.durations + (u64)a.s.lane.first_row * w.options.num_durations;
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

/* --- between steps, by the first warp ------------------------------------------------------ */

/* Records of the sources. False: there is no room. */
__device__ static bool choose(const lane_at_work &a) {
  const wf__tlane_work &w = a.w;
  const wf__tlane_utterance &u = w.utterances[a.s.lane.utterance];
  const u32 lane = this_lane(), n = a.s.lane.num_sources, first = a.s.lane.num_records;
  if (first + (u64)n > u.most_records) return false;
  if (lane < n) {
    const wf__tlane_token &token = a.sources[lane];
    w.records[u.first_record + first + lane] = {token.prev, token.arc, token.loglike, token.frame};
  }
  __syncwarp();
  if (lane == 0) {
    a.s.lane.num_records += n;
    a.s.lane.num_tokens += n;
    a.s.lane.num_expanded += n;
  }
  __syncwarp();
  return true;
}

__device__ static bool is_anyone_waiting(const lane_at_work &a) {
  return __any_sync(ALL_LANES, this_lane() < a.w.num_sets && a.s.lane.sizes[this_lane()] > 0) != 0;
}

/* Makes the tokens that wait in a set the sources, as A(0). The costs of all become relative to the
 * best of them. */
__device__ static void begin_frame(const lane_at_work &a, u32 set) {
  const u32 lane = this_lane(), n = a.s.lane.sizes[set];
  const float beam = a.w.options.greedy != 0 ? FLT_MAX : a.w.options.beam,
              best = warp_least(lane < n ? a.set_of(set)[lane].cost : INFINITY);
  for (u32 s = 0; s < a.w.num_sets; s++)
    if (lane < a.s.lane.sizes[s]) a.set_of(s)[lane].cost -= best;
  __syncwarp();
  wf__tlane_token token;
  u32 rank = 0;
  if (lane < n) {
    token = a.set_of(set)[lane];
    for (u32 k = 0; k < n; k++) {
      const wf__tlane_token &other = a.set_of(set)[k];
      rank += k != lane && before(other.cost, other.predictor, token.cost, token.predictor);
    }
  }
  const u32 kept = __ballot_sync(ALL_LANES, lane < n && token.cost <= beam);
  if (kept >> lane & 1) a.sources[rank] = token; /* those that stay have the first ranks */
  __syncwarp();
  if (lane == 0) {
    a.s.lane.num_sources = (u32)__popc(kept);
    a.s.lane.sizes[set] = 0;
  }
  __syncwarp();
}

/* --- the end of an utterance --- */

/* Tokens that wait for later frames wait for the end. */
__device__ static void merge_waiting(const lane_at_work &a, u32 end) {
  const wf__tlane_work &w = a.w;
  const u32 lane = this_lane();
  kept_list keep = {a.lists, 0, w.options.max_hypotheses, INFINITY};
  for (u32 k = 0; k < w.num_sets; k++) {
    const u32 set = (end + k) % w.num_sets, n = a.s.lane.sizes[set];
    offered own = {0, 0, k, set * w.options.max_hypotheses + lane, 0};
    if (lane < n) {
      const wf__tlane_token &token = a.set_of(set)[lane];
      own.predictor = token.predictor;
      own.key = key_of(token.cost);
    }
    keep.add(lane < n, lane < n ? a.set_of(set)[lane].cost : INFINITY, own);
  }
  const u32 size = reduce(keep.list, keep.size, keep.most);
  wf__tlane_token token;
  if (lane < size) token = a.sets[keep.list[lane].from];
  __syncwarp();
  if (lane < size) a.set_of(end)[lane] = token;
  if (lane < w.num_sets) a.s.lane.sizes[lane] = lane == end ? size : 0;
  __syncwarp();
}

__device__ static void write_result(const lane_at_work &a, u32 outcome, u32 flags, u32 end,
                                    int32_t frame) {
  if (this_lane() != 0) return;
  wf__device_result *result = &a.w.results[a.s.lane.utterance];
  result->outcome = outcome;
  result->flags = flags;
  result->end = end;
  result->frame = frame;
  result->num_tokens = a.s.lane.num_tokens;
  result->num_expanded = a.s.lane.num_expanded;
  result->num_arcs = a.s.lane.num_arcs;
}

/* The number of the source that the path ends in; NONE: none is final. */
__device__ static u32 choose_end(const lane_at_work &a) {
  const u32 lane = this_lane(), n = a.s.lane.num_sources;
  offered own = {0, NONE, 0, 0, 0};
  float cost = INFINITY;
  if (lane < n) {
    cost = a.sources[lane].cost + a.w.options.final_cost;
    own.predictor = a.sources[lane].predictor;
  }
  if (cost != INFINITY) own.key = key_of(cost);
  const u32 least = warp_min(own.key),
            equal = __ballot_sync(ALL_LANES, cost != INFINITY && own.key == least);
  return equal == 0 ? NONE : first_of_equal(equal, own);
}

/* All frames are searched, or nobody is left. */
__device__ static void end_utterance(const lane_at_work &a) {
  const int32_t num_frames = a.w.utterances[a.s.lane.utterance].num_frames;
  if (!is_anyone_waiting(a)) {
    write_result(a, WF__DEVICE_DONE, WF_RESULT_DIED | WF_RESULT_NOT_FINAL, a.s.lane.best_record,
                 a.s.lane.last_frame);
    return;
  }
  const u32 set = a.set_at(num_frames);
  merge_waiting(a, set);
  begin_frame(a, set);
  const u32 first = a.s.lane.num_records;
  if (!choose(a)) {
    write_result(a, WF__DEVICE_NO_ROOM, 0, NONE, 0);
    return;
  }
  const u32 end = choose_end(a);
  write_result(a, WF__DEVICE_DONE, end == NONE ? WF_RESULT_NOT_FINAL : 0,
               first + (end == NONE ? 0 : end), num_frames);
}

/* The lane takes the next utterance, if there is one. */
__device__ static void take_utterance(const lane_at_work &a) {
  const wf__tlane_work &w = a.w;
  u32 next = 0;
  if (this_lane() == 0) {
    atomicAdd(&w.counters->num_done, 1u);
    next = atomicAdd(&w.counters->next_utterance, 1u);
  }
  next = __shfl_sync(ALL_LANES, next, 0);
  if (this_lane() == 0) {
    a.s.lane = {};
    a.s.lane.utterance = next < w.counters->num_utterances ? next : NONE;
  }
  __syncwarp();
}

__device__ static void begin_utterance(const lane_at_work &a) {
  if (this_lane() == 0) {
    wf__tlane_token start = {a.w.options.context_start,  0, 0, NONE, NONE, NONE, NONE,
                             (int32_t)a.w.options.blank, 0};
    a.sets[0] = start;
    a.s.lane.sizes[0] = 1;
  }
  __syncwarp();
}

/* --- requests to the model --- */

/* Frees the slots of contexts that no token needs. */
__device__ static void free_slots(const lane_at_work &a) {
  const u32 lane = this_lane();
  for (u32 j = lane; j < a.w.num_slots; j += LANES) a.marks[j] = 0;
  __syncwarp();
  for (u32 s = 0; s <= a.w.num_sets; s++) {
    const u32 n = s < a.w.num_sets ? a.s.lane.sizes[s] : a.s.lane.num_sources;
    if (lane >= n) continue;
    const wf__tlane_token &token = s < a.w.num_sets ? a.set_of(s)[lane] : a.sources[lane];
    if (token.slot != NONE) a.marks[token.slot] = 1;
    if (token.parent != NONE) a.marks[token.parent] = 1;
  }
  __syncwarp();
  for (u32 j = lane; j < a.w.num_slots; j += LANES)
    if (a.marks[j] == 0) a.contexts[j] = NO_CONTEXT;
  __syncwarp();
}

/* A slot with this context; NONE: there is none. */
__device__ static u32 find_context(const lane_at_work &a, u64 context) {
  for (u32 first = 0; first < a.w.num_slots; first += LANES) {
    const u32 j = first + this_lane(),
              there = __ballot_sync(ALL_LANES, j < a.w.num_slots && a.contexts[j] == context);
    if (there != 0) return first + (u32)__ffs((int)there) - 1;
  }
  return NONE;
}

/* Writes the request for a new context into the round's block. */
__device__ static void request_context(const lane_at_work &a, const wf__tlane_token &token,
                                       u32 slot) {
  const wf__tlane_work &w = a.w;
  const u32 first = w.first_slot + blockIdx.x * w.num_slots,
            at = atomicAdd(&w.counters->num_contexts, 1u);
  ((u32 *)(w.block + w.layout.slots_at))[at] = first + slot;
  char *input = w.block + w.layout.inputs_at + at * w.layout.input_bytes;
  if (w.options.context_size == 0) {
    *(wf__rnn_move *)input = {token.parent == NONE ? w.start_slot : first + token.parent,
                              first + slot, token.label, 0};
    return;
  }
  u64 context = token.predictor;
  for (u32 i = w.options.context_size; i-- > 0; context /= w.options.context_base)
    ((int32_t *)input)[i] = (int32_t)(context % w.options.context_base);
}

/* Gives each source's context a slot. */
__device__ static void place_contexts(const lane_at_work &a) {
  for (u32 i = 0; i < a.s.lane.num_sources; i++) {
    wf__tlane_token &token = a.sources[i];
    if (token.slot != NONE) continue;
    u32 slot = find_context(a, token.predictor);
    const bool is_new = slot == NONE;
    if (is_new) slot = find_context(a, NO_CONTEXT);
    if (slot == NONE) {
      free_slots(a);
      slot = find_context(a, NO_CONTEXT);
    }
    if (this_lane() == 0) {
      if (is_new) {
        a.contexts[slot] = token.predictor;
        request_context(a, token, slot);
      } else {
        token.parent = NONE;
      }
      token.slot = slot; /* its parent stays until the round is over */
    }
    __syncwarp();
  }
}

__device__ static void request(const lane_at_work &a) {
  const wf__tlane_work &w = a.w;
  const u32 lane = this_lane(), n = a.s.lane.num_sources;
  place_contexts(a);
  /* Those of a set are in order of their costs. */
  const float waiting =
      warp_least(lane < w.num_sets && a.s.lane.sizes[lane] > 0 ? a.set_of(lane)[0].cost : INFINITY);
  u32 row = 0;
  if (lane == 0) row = atomicAdd(&w.counters->num_rows, n);
  row = __shfl_sync(ALL_LANES, row, 0);
  if (lane == 0) {
    a.s.lane.waits = 1;
    a.s.lane.first_row = row;
    a.s.lane.least_waiting = waiting;
    atomicAdd(&w.counters->num_busy, 1u);
  }
  if (lane < n) {
    wf__tlane_token &token = a.sources[lane];
    const float of_token = only_blank(a) ? INFINITY : token.cost + w.options.token_weight;
    ((wf__joiner_row *)(w.block + w.layout.rows_at))[row + lane] = {
        w.utterances[a.s.lane.utterance].first_frame + (u32)a.s.lane.frame,
        w.first_slot + blockIdx.x * w.num_slots + token.slot,
        row,
        n,
        {of_token, token.cost + w.options.blank_weight, of_token},
        waiting};
    token.parent = NONE; /* the context is known from now on */
  }
  __syncwarp();
}

/* --- frames --- */

/* Begins the next frame for which tokens wait. False: there is none, or no room. */
__device__ static bool next_frame(const lane_at_work &a, bool *has_room) {
  const int32_t num_frames = a.w.utterances[a.s.lane.utterance].num_frames;
  while (a.s.lane.next_frame < num_frames && is_anyone_waiting(a)) {
    const int32_t frame = a.s.lane.next_frame;
    const u32 set = a.set_at(frame);
    __syncwarp();
    if (this_lane() == 0) a.s.lane.next_frame++;
    __syncwarp();
    if (a.s.lane.sizes[set] == 0) continue;
    begin_frame(a, set);
    const u32 best = a.s.lane.num_records;
    *has_room = choose(a);
    if (!*has_room) return false;
    if (this_lane() == 0) {
      a.s.lane.frame = a.s.lane.last_frame = frame;
      a.s.lane.step = 0;
      a.s.lane.best_record = best;
    }
    __syncwarp();
    return true;
  }
  return false;
}

/* Goes on to the next request. `good`: else the utterance is over. */
__device__ static void go_on(const lane_at_work &a, bool good) {
  bool has_room = true;
  if (a.s.lane.waits != 0 && good) { /* the step is made: A(n + 1) */
    has_room = choose(a);
    if (this_lane() == 0) a.s.lane.step++;
  } else if (a.s.lane.waits == 0) {
    begin_utterance(a);
  }
  __syncwarp();
  if (this_lane() == 0) a.s.lane.waits = 0;
  __syncwarp();
  for (;;) {
    if (good && has_room && a.s.lane.num_sources == 0) {
      good = next_frame(a, &has_room);
      if (!good && has_room) end_utterance(a);
    }
    if (!has_room) write_result(a, WF__DEVICE_NO_ROOM, 0, NONE, 0);
    if (good && has_room) {
      request(a);
      return;
    }
    __syncwarp();
    take_utterance(a);
    if (a.s.lane.utterance == NONE) return;
    good = has_room = true;
    begin_utterance(a);
  }
}

/* --- a round ----------------------------------------------------------------------------- */

/* Copies what the lane keeps between launches. */
__device__ static void copy_tokens(const lane_at_work &a, bool to_shared) {
  const u32 k = a.w.options.max_hypotheses, each = (a.w.num_sets + 1) * k;
  wf__tlane_token *there = a.w.tokens + (u64)blockIdx.x * each;
  for (u32 i = threadIdx.x; i < each; i += blockDim.x) {
    const u32 s = i / k, n = s == 0 ? a.s.lane.num_sources : a.s.lane.sizes[s - 1];
    if (i % k >= n) continue;
    if (to_shared)
      a.sources[i] = there[i];
    else
      there[i] = a.sources[i];
  }
  u64 *contexts = a.w.contexts + (u64)blockIdx.x * a.w.num_slots;
  for (u32 i = threadIdx.x; i < a.w.num_slots; i += blockDim.x) {
    if (to_shared)
      a.contexts[i] = contexts[i];
    else
      contexts[i] = a.contexts[i];
  }
}

/* The last block of a launch tells the model's kernels and the host what was asked. */
__device__ static void end_round(const wf__tlane_work &w) {
  wf__tlane_counters *c = w.counters;
  __threadfence();
  if (atomicAdd(&c->num_blocks, 1u) != gridDim.x - 1) return;
  __threadfence();
  const u32 num_busy = atomicExch(&c->num_busy, 0u), num_done = atomicAdd(&c->num_done, 0u),
            num_rows = atomicExch(&c->num_rows, 0u),
            num_contexts = atomicExch(&c->num_contexts, 0u), round = c->round++;
  volatile wf__tlane_status *status = &w.statuses[round % WF__TLANE_STATUSES];
  *(wf__round_head *)w.block = {num_rows, num_contexts};
  status->num_busy = num_busy;
  status->num_done = num_done;
  status->num_rows = num_rows;
  status->num_contexts = num_contexts;
  __threadfence_system();
  status->number = round + 1;
  c->num_blocks = 0;
}

__global__ static void step_kernel(const __grid_constant__ wf__tlane_work w) {
  WF__SHARED(lane_shared, s);
  WF__DYNAMIC_SHARED(u64, memory);
  const u32 k = w.options.max_hypotheses;
  u64 *contexts = memory;
  offered *lists = (offered *)(contexts + w.num_slots);
  wf__tlane_token *sources = (wf__tlane_token *)(lists + w.num_sets * ROOM);
  const lane_at_work a = {
      w, s, sources, sources + k, contexts, lists, (u32 *)(sources + (w.num_sets + 1) * k)};
  if (threadIdx.x == 0) s.lane = w.lanes[blockIdx.x];
  __syncthreads();
  if (s.lane.utterance != NONE) {
    copy_tokens(a, true);
    __syncthreads();
    bool good = true;
    if (s.lane.waits != 0) {
      good = look_at_rows(a);
      if (good && w.options.greedy == 0) expand(a);
      if (good && w.options.greedy != 0 && threadIdx.x < LANES) expand_greedy(a);
    }
    __syncthreads();
    if (threadIdx.x < LANES) go_on(a, good);
    __syncthreads();
    copy_tokens(a, false);
    if (threadIdx.x == 0) w.lanes[blockIdx.x] = s.lane;
  }
  __syncthreads();
  if (threadIdx.x == 0) end_round(w);
}

int wf__tlanes_step(const wf__tlane_work *work, void *stream) {
  return (int)WF__LAUNCH(step_kernel, work->num_lanes, work->num_sets * LANES, shared_bytes(*work),
                         stream, *work);
}

/* --- a batch ----------------------------------------------------------------------------- */

__global__ static void begin_kernel(const __grid_constant__ wf__tlane_work w, u32 num_utterances) {
  FOR_ALL(i, (u64)w.num_lanes * w.num_slots) w.contexts[i] = NO_CONTEXT;
  FOR_ALL(i, w.num_lanes) {
    wf__tlane lane = {};
    lane.utterance = i < num_utterances ? (u32)i : NONE;
    w.lanes[i] = lane;
  }
  if (this_thread() == 0) {
    *w.counters = {};
    w.counters->num_utterances = num_utterances;
    w.counters->next_utterance = w.num_lanes;
  }
}
int wf__tlanes_begin(const wf__tlane_work *work, u32 num_utterances, void *stream) {
  return LAUNCH(begin_kernel, (u64)work->num_lanes * work->num_slots, stream, *work,
                num_utterances);
}

/* Calls f(record) from the path's end back to its beginning. */
template <class F>
__device__ static void for_path(const wf__tlane_work &w, u32 u, const F &f) {
  const wf__tlane_record *records = w.records + w.utterances[u].first_record;
  for (u32 at = w.results[u].end; at != NONE;) {
    const wf__tlane_record record = records[at];
    if (record.arc != NONE) f(record);
    at = record.prev;
  }
}

__global__ static void trace_kernel(const __grid_constant__ wf__tlane_work w, u32 num_utterances,
                                    u32 most_path) {
  FOR_ALL(i, num_utterances) {
    const u32 u = (u32)i;
    wf__device_result *result = &w.results[u];
    if (result->outcome != WF__DEVICE_DONE) continue;
    u32 size = 0;
    for_path(w, u, [&](const wf__tlane_record &) { size++; });
    const u32 first = atomicAdd(&w.counters->num_path, size);
    result->first_step = first;
    result->num_steps = size;
    if (first + (u64)size > most_path) {
      result->outcome = WF__DEVICE_NO_ROOM;
      continue;
    }
    u32 at = first + size;
    for_path(w, u, [&](const wf__tlane_record &record) {
      w.path[--at] = {record.arc, record.loglike, record.frame};
    });
  }
}
int wf__tlanes_trace(const wf__tlane_work *work, u32 num_utterances, u32 most_path, void *stream) {
  return LAUNCH(trace_kernel, num_utterances, stream, *work, num_utterances, most_path);
}
