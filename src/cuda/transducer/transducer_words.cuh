/* transducer_words.cuh - what a lane needs for any graph and for scorers (transducer_lanes.h): the
 * candidates of its sources' arcs, and closures over epsilon arcs.
 *
 * Candidates are found in three passes. Each arc's cost has a lower bound: what it costs without the
 * scorer, the least that the scorer gives its word, and the longest duration. Roundings are monotonic,
 * so a bound of the same sum is one to the last bit.
 *
 *   1. The K arcs of a source with the least bounds, if there are so many, are scored: K tokens cost
 *      no more than the worst of these.
 *   2. Arcs whose bounds are within the limits are listed.
 *   3. All threads score the words of the list, since a look-up waits for memory many times.
 *
 * States of words added at run time come after the graph's, and their arcs after its arcs, a copy of a
 * class's tree for each of its places (cuda/search/search_graph.cuh); memory has the trees once. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_WORDS_CUH
#define WF_CUDA_TRANSDUCER_TRANSDUCER_WORDS_CUH

#include "cuda/transducer/transducer_lane.cuh"

/* A candidate before durations, as what looks at all of them sees it. */
struct candidate {
  u32 source, column, number; /* number: of the arc, among its state's */
  u32 from;                   /* column, or with words place in the list */
  float base, loglike;
  u32 state; /* with words: where it leads to, and the scorer's context then */
  u64 context;
};

/* --- scorers ------------------------------------------------------------------------------ */

/* By the first warp: copies the scorer of the lane's utterance. */
__device__ inline void load_scorer(const lane_at_work<true> &a) {
  static_assert(sizeof(wf__flat_scorer) % sizeof(u32) == 0, "words");
  if (!a.has_scorer()) return;
  for (u32 i = this_lane(); i < sizeof(wf__flat_scorer) / sizeof(u32); i += LANES)
    ((u32 *)&a.s.scorer)[i] = __ldg((const u32 *)a.s.lane.own.scorer + i);
  __syncwarp();
}
__device__ inline void load_scorer(const lane_at_work<false> &) {}

/* Not inlined: its loops would raise the register pressure of all callers. */
__device__ __noinline__ inline float word_cost(const wf__flat_scorer *scorer, u32 word,
                                               u64 *context) {
  uint64_t next;
  const float cost = wf__flat_step_once(scorer, *context, word, &next);
  *context = next;
  return cost;
}

__device__ inline u64 start_context(const lane_at_work<true> &a) {
  return a.has_scorer() ? a.s.scorer.start : 0;
}
__device__ inline u64 start_context(const lane_at_work<false> &) { return 0; }

/* --- states ------------------------------------------------------------------------------- */

/* A state, and how to read its emitting arcs: number n is arcs[n], and leads to its `next` + shift. */
struct state_view {
  wf__device_search_state at;
  const wf__device_graph_arc *arcs;
  u32 shift;
};

__device__ inline bool is_added(const lane_at_work<true> &a, u32 state) {
  return state >= a.w.num_states;
}

/* Those of added words are not inlined, since they are rare. */
__device__ inline const wf__lane_class &class_of(const wf__lane_words *words, u32 state) {
  const wf__lane_class *c = words->classes + words->num_classes - 1;
  while (c->num_states == 0 || c->first_state > state) c--;
  return *c;
}
__device__ __noinline__ inline state_view added_state(const wf__lane_words *words, u32 state) {
  const wf__lane_class &c = class_of(words, state);
  const u32 copy = (state - c.first_state) / c.num_states, first = c.first_arc + copy * c.num_arcs,
            shift = c.first_state + copy * c.num_states;
  wf__device_search_state at = ((const wf__device_search_state *)c.states)[state - shift];
  at.first_arc += first;
  at.first_epsilon += first;
  at.end += first;
  return {at, (const wf__device_graph_arc *)c.arcs - first, shift};
}
__device__ __noinline__ inline wf__device_graph_arc added_epsilon(const wf__lane_words *words,
                                                                  const wf__device_place *places,
                                                                  u32 state, u32 number) {
  const wf__lane_class &c = class_of(words, state);
  const u32 copy = (state - c.first_state) / c.num_states;
  wf__device_graph_arc arc =
      ((const wf__device_graph_arc *)c.arcs)[number - c.first_arc - copy * c.num_arcs];
  if ((arc.next & WF__LANE_LEAVES) != 0)
    arc.next = places[c.first_place + copy].target;
  else
    arc.next = (arc.next & (WF__LANE_LEAVES - 1)) + c.first_state + copy * c.num_states;
  return arc;
}
/* The epsilon of a place, which leads to the root of its copy if its class has words. */
__device__ __noinline__ inline wf__device_graph_arc opened(const wf__lane_words *words,
                                                           const wf__device_place *places,
                                                           wf__device_graph_arc arc) {
  if (arc.next == NONE) return arc;
  const wf__device_place place = places[arc.next];
  const wf__lane_class &c = words->classes[place.word_class];
  if (c.num_states == 0) return arc;
  arc.weight = place.weight;
  arc.next = c.first_state + place.rank * c.num_states;
  return arc;
}

__device__ inline state_view state_at(const lane_at_work<true> &a, u32 state) {
  if (is_added(a, state)) return added_state(a.s.lane.own.words, state);
  return {a.w.states[state], a.w.graph_arcs, 0};
}

/* Epsilon arc `number` of a state, with the state that it leads to. */
__device__ inline wf__device_graph_arc epsilon_at(const lane_at_work<true> &a, u32 state,
                                                  u32 number) {
  const wf__lane_words *words = a.s.lane.own.words;
  if (is_added(a, state)) return added_epsilon(words, a.w.places, state, number);
  const wf__device_graph_arc arc = a.w.graph_arcs[number];
  return arc.weight == INFINITY && words != nullptr ? opened(words, a.w.places, arc) : arc;
}

/* The cost of ending in a token; +infinity: it is not final. */
__device__ inline float ending_cost(const lane_at_work<true> &a, const wf__tlane_token &token) {
  const float cost = token.cost + state_at(a, token.state).at.final_cost;
  if (cost == INFINITY || !a.has_scorer()) return cost;
  return cost + wf__flat_final_once(&a.s.scorer, token.context);
}
__device__ inline float ending_cost(const lane_at_work<false> &a, const wf__tlane_token &token) {
  return token.cost + a.w.options.final_cost;
}

/* --- candidates --------------------------------------------------------------------------- */

/* A source at work. */
struct source_view {
  u32 number;
  const wf__tlane_token &token;
  state_view of;
  const float *logits;
  const wf__softmax &softmax;
  float longest; /* log-probability of the likeliest duration; 0 if durations do not count */
};
__device__ inline source_view view_of(const lane_at_work<true> &a, u32 number) {
  const wf__tlane_token &token = a.sources[number];
  const wf__device_search_options &o = a.w.options;
  float longest = 0;
  if (o.num_durations > 0 && o.greedy == 0) {
    longest = a.s.durations[token.row][0];
    for (u32 d = 1; d < o.num_durations; d++) longest = fmaxf(longest, a.s.durations[token.row][d]);
  }
  return {number,
          token,
          state_at(a, token.state),
          logits_of(a.w.answer, a.s.lane.first_row + token.row),
          a.s.done[token.row].tokens,
          longest};
}

/* An arc of a source. */
struct source_arc {
  bool is; /* it is allowed in this step */
  u32 number;
  wf__device_graph_arc arc;
  float base; /* cost without scorer and model */
  float loglike, bound;
};
/* Does the scorer score the arc's word? */
__device__ inline bool is_scored(const lane_at_work<true> &a, const source_arc &x) {
  return x.arc.word != 0 && a.has_scorer();
}
__device__ inline source_arc look_at_arc(const lane_at_work<true> &a, const source_view &source,
                                         u32 number) {
  const wf__device_search_options &o = a.w.options;
  source_arc x = {};
  x.number = number;
  x.bound = INFINITY;
  if (number >= source.of.at.first_epsilon) return x;
  x.arc = source.of.arcs[number];
  const bool blank = x.arc.column == o.blank;
  x.is = blank || !only_blank(a);
  x.loglike = log_prob(source.softmax, source.logits[x.arc.column]);
  if (blank) x.loglike -= o.blank_penalty;
  x.base = source.token.cost + x.arc.weight;
  if (x.arc.word != 0) x.base -= o.word_score;
  const float with_least =
      is_scored(a, x) ? x.base + wf__flat_least(&a.s.scorer, x.arc.word) : x.base;
  if (x.is) x.bound = with_least + acoustic_cost(a.w, x.loglike + source.longest);
  return x;
}

/* What a candidate costs in the set of a duration; the choice of a greedy search comes before
 * durations. */
__device__ inline float cost_in_set(const lane_at_work<true> &a, u32 source, u32 column, float base,
                                    float loglike, u32 duration) {
  if (a.w.options.greedy == 0) return with_duration(a, source, column, base, duration, &loglike);
  return duration == 0 ? base + acoustic_cost(a.w, loglike) : INFINITY;
}
__device__ inline float least_in_sets(const lane_at_work<true> &a, u32 source, u32 column,
                                      float base, float loglike) {
  float least = INFINITY;
  for (u32 d = 0; d < a.w.num_sets; d++)
    least = fminf(least, cost_in_set(a, source, column, base, loglike, d));
  return least;
}

/* Lanes with the `most` least bounds, if so many have one. */
__device__ inline bool is_among_least(float bound, u32 most) {
  const bool is = rank_of_least(bound) < most && bound < INFINITY;
  return (u32)__popc(__ballot_sync(ALL_LANES, is)) == most && is;
}

/* Pass 1, by a warp. */
__device__ inline void limit_by_source(const lane_at_work<true> &a, const source_view &source) {
  const wf__device_search_options &o = a.w.options;
  float least = INFINITY, best = INFINITY;
  source_arc chosen = {};
  u32 last_column = NONE;
  const u32 end = source.of.at.first_epsilon;
  for (u32 first = source.of.at.first_arc; first < end; first += LANES) {
    const source_arc x = look_at_arc(a, source, first + this_lane());
    const u32 column = first + this_lane() < end ? x.arc.column : NONE,
              before = __shfl_up_sync(ALL_LANES, column, 1);
    /* Arcs of one column may make the same token. */
    const bool is_new = column != (this_lane() == 0 ? last_column : before);
    last_column = __shfl_sync(ALL_LANES, column, LANES - 1);
    if (x.is && !is_scored(a, x) && x.bound < best)
      best = fminf(best, least_in_sets(a, source.number, x.arc.column, x.base, x.loglike));
    if (x.is && is_new && x.arc.column != o.blank && x.bound < least) {
      least = x.bound;
      chosen = x;
    }
  }
  const bool by_label = o.by_label != 0 && !is_added(a, source.token.state),
             counts = is_among_least(by_label ? least : INFINITY, o.max_hypotheses);
  if (__any_sync(ALL_LANES, counts)) {
    float base = chosen.base;
    u64 context = source.token.context;
    if (counts && is_scored(a, chosen)) base += word_cost(&a.s.scorer, chosen.arc.word, &context);
    for (u32 d = 0; d < a.w.num_sets; d++) {
      const float cost =
          counts ? cost_in_set(a, source.number, chosen.arc.column, base, chosen.loglike, d)
                 : -INFINITY;
      if (counts) best = fminf(best, cost);
      const float limit = warp_most(cost);
      if (this_lane() == 0) atomicMin(&a.s.limits[d], key_of(limit));
    }
  }
  best = warp_least(best);
  if (this_lane() == 0) {
    atomicMin(&a.s.best, key_of(best));
    atomicAdd(&a.s.num_arcs, end - source.of.at.first_arc);
  }
}

/* The most that a candidate can cost which matters: one with a token, or the blank. */
struct arc_limits {
  float token, blank;
};
/* With a lattice, those count that are within its beam; epsilon arcs may make any token again. */
__device__ inline float limit_of_set(const lane_at_work<true> &a, u32 duration) {
  const wf__device_search_options &o = a.w.options;
  const float limit = cost_of(a.s.limits[duration]);
  if (o.keeps_offers == 0) return limit;
  return duration == 0 && o.has_epsilons != 0 ? INFINITY : most_of_link(a, limit);
}
__device__ inline arc_limits limits_of(const lane_at_work<true> &a) {
  const bool greedy = a.w.options.greedy != 0;
  const float any = greedy ? cost_of(a.s.best) : add_finite(cost_of(a.s.best), a.w.options.beam);
  arc_limits most = {-INFINITY, -INFINITY};
  if (greedy) return {any, any};
  for (u32 d = 0; d < a.w.num_sets; d++) {
    const float limit = fminf(limit_of_set(a, d), any);
    if (is_allowed(a, false, d)) most.token = fmaxf(most.token, limit);
    if (is_allowed(a, true, d)) most.blank = fmaxf(most.blank, limit);
  }
  return most;
}

/* Pass 2, by a warp. */
__device__ inline void list_source(const lane_at_work<true> &a, const source_view &source,
                                   const arc_limits &most) {
  const state_view &of = source.of;
  for (u32 first = of.at.first_arc; first < of.at.first_epsilon; first += LANES) {
    const source_arc x = look_at_arc(a, source, first + this_lane());
    const float limit = x.arc.column == a.w.options.blank ? most.blank : most.token;
    const bool is = x.is && x.bound < INFINITY && x.bound <= limit;
    const u32 at = place_in_list(is, &a.s.num_candidates);
    if (is && at < WF__LANE_CANDIDATES)
      a.candidates()[at] = {
          source.token.context,
          x.base,
          x.loglike,
          source.number << RANK_BIT | (x.number - of.at.first_arc),
          x.arc.column,
          (of.shift != 0 ? x.arc.next & (WF__LANE_LEAVES - 1) : x.arc.next) + of.shift,
          is_scored(a, x) ? x.arc.word : 0};
  }
}

__device__ inline u32 num_listed(const lane_at_work<true> &a) {
  return a.s.num_candidates < WF__LANE_CANDIDATES ? a.s.num_candidates : WF__LANE_CANDIDATES;
}

/* Pass 3, by all threads. */
__device__ inline void score_words(const lane_at_work<true> &a) {
  float best = INFINITY;
  for (u32 i = threadIdx.x; i < num_listed(a); i += THREADS) {
    wf__tlane_candidate &c = a.candidates()[i];
    if (c.word != 0) c.base += word_cost(&a.s.scorer, c.word, &c.context);
    best = fminf(best, least_in_sets(a, c.at >> RANK_BIT, c.column, c.base, c.loglike));
  }
  best = warp_least(best);
  if (this_lane() == 0) atomicMin(&a.s.best, key_of(best));
}

/* Lists what can matter, and finds the cutoff. */
__device__ inline void look_at_sources(const lane_at_work<true> &a) {
  const u32 warp = threadIdx.x / LANES, n = a.s.lane.num_sources;
  if (threadIdx.x == 0) {
    a.s.best = key_of(a.w.options.greedy != 0 ? INFINITY : a.s.lane.least_waiting);
    a.s.num_candidates = a.s.num_arcs = 0;
    if (a.w.options.keeps_offers != 0) begin_offers(a);
  }
  if (threadIdx.x < MOST_SETS) a.s.limits[threadIdx.x] = key_of(INFINITY);
  __syncthreads();
  for (u32 i = warp; i < n; i += WARPS) limit_by_source(a, view_of(a, i));
  __syncthreads();
  const arc_limits most = limits_of(a);
  for (u32 i = warp; i < n; i += WARPS) list_source(a, view_of(a, i), most);
  __syncthreads();
  score_words(a);
  __syncthreads();
  if (threadIdx.x == 0) {
    a.s.lane.num_arcs += a.s.num_arcs;
    a.s.cutoff =
        a.w.options.greedy != 0 ? FLT_MAX : add_finite(cost_of(a.s.best), a.w.options.beam);
  }
  __syncthreads();
}

/* False: there was no room, and the utterance is over. */
__device__ inline bool has_all_candidates(const lane_at_work<true> &a) {
  if (a.s.num_candidates <= WF__LANE_CANDIDATES) return true;
  if (threadIdx.x == 0) write_result(a, WF__DEVICE_NO_ROOM, 0, NONE, 0);
  return false;
}

/* As over tokens alone (transducer_step.cuh). */
template <class F>
__device__ void for_candidates(const lane_at_work<true> &a, u32 begin, u32 step, const F &f) {
  const u32 total = num_listed(a);
  for (u32 first = begin; first < total; first += step) {
    const u32 at = first + this_lane();
    candidate c = {};
    if (at < total) {
      const wf__tlane_candidate x = a.candidates()[at];
      c = {x.at >> RANK_BIT, x.column, x.at & ((1u << RANK_BIT) - 1), at, x.base, x.loglike,
           x.state,          x.context};
    }
    f(at < total, c);
  }
}

__device__ inline float find_cutoff(const lane_at_work<true> &a) { return a.s.cutoff; }

/* The arc of a candidate, and what it leads to. */
struct led_to {
  u32 arc, state, column;
  u64 context;
};
__device__ inline led_to follow(const lane_at_work<true> &a, u32 source, u32 from) {
  const wf__tlane_candidate &c = a.candidates()[from];
  return {state_at(a, a.sources[source].state).at.first_arc + (c.at & ((1u << RANK_BIT) - 1)),
          c.state, c.column, c.context};
}

/* --- closures, by the first warp ----------------------------------------------------------- */

__device__ inline bool has_epsilons(const lane_at_work<true> &a, u32 state) {
  const wf__device_search_state at = state_at(a, state).at;
  return at.first_epsilon < at.end;
}

/* Where tokens of the frontier are copied to while their arcs are followed. */
__device__ inline wf__tlane_token *copies_of(const lane_at_work<true> &a) {
  return (wf__tlane_token *)a.lists;
}

/* Puts numbers of these tokens in order of rank into a.s.order. `is[j]`: token j * LANES + lane is one
 * of them. Returns how many they are. */
enum { EACH = MOST_TOKENS / LANES };
__device__ inline u32 order_by_rank(const lane_at_work<true> &a, const u32 *is) {
  u32 count = 0;
#pragma unroll
  for (u32 j = 0; j < EACH; j++) count += (u32)__popc(is[j]);
#pragma unroll
  for (u32 j = 0; j < EACH; j++) {
    const u32 own = j * LANES + this_lane();
    if ((is[j] >> this_lane() & 1) == 0) continue;
    u32 rank = 0;
    for (u32 k = 0; k < EACH; k++)
      for (u32 bits = is[k]; bits != 0; bits &= bits - 1) {
        const u32 other = k * LANES + (u32)__ffs((int)bits) - 1;
        rank += other != own && before(a.sources[other], a.sources[own]);
      }
    a.s.order[rank] = own;
  }
  __syncwarp();
  return count;
}

/* Number of the token of a triple among the first `size`; NONE: it has none. */
__device__ inline u32 find_token(const lane_at_work<true> &a, u32 size, u32 state, u64 predictor,
                                 u64 context) {
  for (u32 first = 0; first < size; first += LANES) {
    const u32 i = first + this_lane();
    const bool is = i < size && a.sources[i].state == state &&
                    a.sources[i].predictor == predictor && a.sources[i].context == context;
    const u32 those = __ballot_sync(ALL_LANES, is);
    if (those != 0) return first + (u32)__ffs((int)those) - 1;
  }
  return NONE;
}

/* Follows an epsilon arc of a copied token. *size grows. False: there is no room. */
struct epsilon {
  u32 arc, state;
  float cost;
  u64 context;
};
__device__ inline bool relax(const lane_at_work<true> &a, const wf__tlane_token &from,
                             const epsilon &e, u32 round, u32 *size, u32 *frontier) {
  const float slack = a.s.lane.own.epsilon_slack;
  u32 at = find_token(a, *size, e.state, from.predictor, e.context);
  const bool is_new = at == NONE;
  if (is_new) {
    if (*size == MOST_TOKENS) return false;
    at = (*size)++;
  }
  const bool queued = !is_new && a.s.rounds[at] == round; /* then its cost is from this round */
  const float there = is_new ? INFINITY : a.sources[at].cost;
  if (!(queued ? e.cost < there : e.cost < there - slack)) return true;
  __syncwarp();
  if (this_lane() == 0) {
    wf__tlane_token token = from; /* its `prev` is its number in the set */
    token.cost = e.cost;
    token.loglike = 0;
    token.state = e.state;
    token.arc = e.arc;
    token.context = e.context;
    a.sources[at] = token;
    a.s.rounds[at] = round;
  }
  if (!queued && has_epsilons(a, e.state)) {
#pragma unroll
    for (u32 j = 0; j < EACH; j++)
      if (at / LANES == j) frontier[j] |= 1u << at % LANES;
  }
  __syncwarp();
  return true;
}

/* The epsilon arcs of a copied token. */
__device__ inline bool relax_arcs(const lane_at_work<true> &a, const wf__tlane_token &from,
                                  float cutoff, u32 round, u32 *size, u32 *frontier) {
  const wf__device_search_state state = state_at(a, from.state).at;
  for (u32 first = state.first_epsilon; first < state.end; first += LANES) {
    epsilon own = {first + this_lane(), 0, INFINITY, from.context};
    if (own.arc < state.end) {
      const wf__device_graph_arc arc = epsilon_at(a, from.state, own.arc);
      own.state = arc.next;
      own.cost = from.cost + arc.weight;
      if (arc.word != 0) own.cost -= a.w.options.word_score;
      if (arc.word != 0 && a.has_scorer() &&
          own.cost + wf__flat_least(&a.s.scorer, arc.word) <= cutoff)
        own.cost += word_cost(&a.s.scorer, arc.word, &own.context);
      else if (arc.word != 0 && a.has_scorer())
        own.cost = INFINITY;
    }
    u32 those = __ballot_sync(ALL_LANES, own.cost <= cutoff && own.cost != INFINITY);
    for (; those != 0; those &= those - 1) {
      const int lane = __ffs((int)those) - 1;
      const epsilon e = {
          __shfl_sync(ALL_LANES, own.arc, lane), __shfl_sync(ALL_LANES, own.state, lane),
          __shfl_sync(ALL_LANES, own.cost, lane), __shfl_sync(ALL_LANES, own.context, lane)};
      if (!relax(a, from, e, round, size, frontier)) return false;
    }
  }
  return true;
}

/* Closes the sources over epsilon arcs. Tokens that an arc made have the number of the token before
 * as `prev`, and a round. False: there is no room, or a cycle gains. */
__device__ inline bool close_sources(const lane_at_work<true> &a, float cutoff) {
  u32 size = a.s.lane.num_sources, frontier[EACH];
  bool any = false;
#pragma unroll
  for (u32 j = 0; j < EACH; j++) {
    const u32 i = j * LANES + this_lane();
    a.s.rounds[i] = 0;
    frontier[j] =
        __ballot_sync(ALL_LANES, i < size && has_epsilons(a, a.sources[i < size ? i : 0].state));
    any = any || frontier[j] != 0;
  }
  __syncwarp();
  for (u32 round = 1; any; round++) {
    if (round > size) return false;
    const u32 count = order_by_rank(a, frontier);
    for (u32 i = this_lane(); i < count; i += LANES) {
      copies_of(a)[i] = a.sources[a.s.order[i]];
      copies_of(a)[i].prev = a.s.order[i];
    }
#pragma unroll
    for (u32 j = 0; j < EACH; j++) frontier[j] = 0;
    __syncwarp();
    for (u32 i = 0; i < count; i++)
      if (!relax_arcs(a, copies_of(a)[i], cutoff, round, &size, frontier)) return false;
    any = false;
#pragma unroll
    for (u32 j = 0; j < EACH; j++) any = any || frontier[j] != 0;
  }
  if (this_lane() == 0) a.s.lane.num_sources = size;
  __syncwarp();
  return true;
}

/* Sorts the sources by rank. */
__device__ inline void sort_sources(const lane_at_work<true> &a) {
  const u32 size = a.s.lane.num_sources;
  u32 is[EACH];
#pragma unroll
  for (u32 j = 0; j < EACH; j++) is[j] = __ballot_sync(ALL_LANES, j * LANES + this_lane() < size);
  order_by_rank(a, is);
  for (u32 i = this_lane(); i < size; i += LANES) copies_of(a)[i] = a.sources[a.s.order[i]];
  __syncwarp();
  for (u32 i = this_lane(); i < size; i += LANES) a.sources[i] = copies_of(a)[i];
  __syncwarp();
}

#endif
