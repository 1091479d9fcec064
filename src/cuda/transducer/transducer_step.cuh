/* transducer_step.cuh - a step of a lane (transducer_lanes.h), by its block: from the sources' logits
 * to the tokens that stay in the frame and those that wait for later ones.
 *
 * First candidates: over tokens alone, a warp looks at each row of logits and lists the
 * log-probabilities that can matter; with words, transducer_words.cuh. Then there is a warp for each
 * set of tokens: those that wait for the next frames, by duration, and those that stay in this one,
 * of duration 0. It looks at the candidates of its duration and keeps the best of each token, at
 * most K. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_STEP_CUH
#define WF_CUDA_TRANSDUCER_TRANSDUCER_STEP_CUH

#include "cuda/transducer/transducer_words.cuh"

/* --- rows of scores ----------------------------------------------------------------------- */

/* False: a row cannot be used, and the utterance is over. */
template <bool WORDS>
__device__ bool are_usable(const lane_at_work<WORDS> &a) {
  for (u32 k = 0; k < a.s.lane.num_rows; k++) {
    const wf__bad_logit &bad = bad_of(a.s.done[k]);
    if (bad.column < 0) continue;
    if (threadIdx.x == 0) write_result(a, WF__DEVICE_BAD_LOGIT, 0, NONE, a.s.lane.frame, bad);
    return false;
  }
  return true;
}

/* Scores the rows. False: as above. */
template <bool WORDS>
__device__ bool score_rows(const lane_at_work<WORDS> &a) {
  const wf__answer_work &w = a.w.answer;
  const u32 n = a.s.lane.num_rows, first = a.s.lane.first_row;
  for (u32 i = threadIdx.x / LANES; i < n; i += WARPS) {
    const wf__row_done done =
        a.w.is_wide != 0 ? w.rows_done[first + i] : score_row(w, logits_of(w, first + i));
    if (this_lane() == 0) a.s.done[i] = done;
    if (this_lane() < w.num_durations)
      a.s.durations[i][this_lane()] =
          log_prob(done.durations, logits_of(w, first + i)[w.num_tokens + this_lane()]);
  }
  __syncthreads();
  return are_usable(a);
}

/* --- tokens alone -------------------------------------------------------------------------- */

/* What a source needs of its row. */
__device__ inline wf__row_need need_of(const lane_at_work<false> &a, u32 source) {
  const float cost = a.sources[source].cost,
              token = only_blank(a) ? INFINITY : cost + a.w.options.token_weight;
  return {token, cost + a.w.options.blank_weight, token};
}
/* With words, arcs are looked at. */
__device__ inline wf__row_need need_of(const lane_at_work<true> &a, u32 source) {
  return {INFINITY, INFINITY, INFINITY};
}

__device__ inline scored_row scored(const lane_at_work<false> &a, u32 source) {
  return {logits_of(a.w.answer, a.s.lane.first_row + source), a.s.done[source], need_of(a, source)};
}

/* Those that shared memory has no room for. */
__device__ inline wf__tlane_entry *more_entries(const lane_at_work<false> &a) {
  return a.w.entries + (u64)blockIdx.x * WF__LANE_MORE_ENTRIES;
}

/* Adds what lanes of a warp have to the block's list. */
__device__ inline void add_entries(const lane_at_work<false> &a, bool is, u32 source, u32 column,
                                   float loglike) {
  const u32 at = place_in_list(is, &a.s.num_entries);
  const wf__tlane_entry own = {source << RANK_BIT | column, loglike};
  if (!is) return;
  if (at < WF__LANE_ENTRIES)
    a.entries[at] = own;
  else if (at < MOST_ENTRIES)
    more_entries(a)[at - WF__LANE_ENTRIES] = own;
}

/* Lists the log-probabilities of a row that can matter, by a warp. */
__device__ inline void list_row(const lane_at_work<false> &a, u32 source, const cost_limits &most) {
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
__device__ inline void copy_row(const lane_at_work<false> &a, u32 source) {
  const u32 row = a.s.lane.first_row + source, count = a.w.answer.answers.heads[row].num_entries;
  const wf__score_entry *entries = a.w.answer.answers.entries + (u64)row * WF__ANSWER_ENTRIES;
  if (count > WF__ANSWER_ENTRIES) {
    if (this_lane() == 0) atomicAdd(&a.s.num_entries, MOST_ENTRIES + 1u);
    return;
  }
  for (u32 first = 0; first < count; first += LANES) {
    const bool is = first + this_lane() < count;
    const wf__score_entry own = is ? entries[first + this_lane()] : wf__score_entry{0, 0};
    add_entries(a, is, source, (u32)own.column, own.loglike);
  }
}

/* Lists what can matter. */
__device__ inline void look_at_sources(const lane_at_work<false> &a) {
  const wf__answer_work &w = a.w.answer;
  const u32 warp = threadIdx.x / LANES, n = a.s.lane.num_sources;
  if (threadIdx.x == 0) a.s.num_entries = 0;
  if (threadIdx.x == 0 && a.w.options.keeps_offers != 0) begin_offers(a);
  __syncthreads();
  if (a.w.is_wide != 0) {
    for (u32 i = warp; i < n; i += WARPS) copy_row(a, i);
  } else if (warp < n) {
    const cost_limits most =
        find_limits(w, n, a.s.lane.least_waiting, [&](u32 k) { return scored(a, k); });
    for (u32 i = warp; i < n; i += WARPS) list_row(a, i, most);
  }
  if (threadIdx.x == 0) a.s.lane.num_arcs += (u64)n * a.w.options.num_arcs;
  __syncthreads();
}

/* Calls f(is, candidate) for candidates before durations: begin + lane, then those `step` further,
 * ... All lanes of a warp as often. */
template <class F>
__device__ void for_candidates(const lane_at_work<false> &a, u32 begin, u32 step, const F &f) {
  const wf__device_search_options &o = a.w.options;
  const bool whole = a.s.num_entries > MOST_ENTRIES;
  const u32 total = whole ? a.s.lane.num_sources * o.num_tokens : a.s.num_entries;
  for (u32 first = begin; first < total; first += step) {
    const u32 at = first + this_lane();
    bool is = at < total;
    candidate c = {};
    if (is) {
      if (whole) {
        c.source = at / o.num_tokens;
        c.column = at % o.num_tokens;
        c.loglike = log_prob(a.s.done[c.source].tokens,
                             logits_of(a.w.answer, a.s.lane.first_row + c.source)[c.column]);
      } else {
        const wf__tlane_entry entry =
            at < WF__LANE_ENTRIES ? a.entries[at] : more_entries(a)[at - WF__LANE_ENTRIES];
        c.source = entry.at >> RANK_BIT;
        c.column = entry.at & ((1u << RANK_BIT) - 1);
        c.loglike = entry.loglike;
      }
      const wf__device_search_arc arc = a.w.arcs[c.column];
      c.from = c.column;
      c.number = arc.number;
      c.base = a.sources[c.source].cost + arc.weight;
      if (arc.has_word != 0) c.base -= o.word_score;
      if (c.column == o.blank) c.loglike -= o.blank_penalty;
      is = arc.number != NONE && (c.column == o.blank || !only_blank(a));
    }
    f(is, c);
  }
}

/* The cutoff of the step: `beam` above the best candidate, or token that waits. */
__device__ inline float find_cutoff(const lane_at_work<false> &a) {
  const u32 warp = threadIdx.x / LANES;
  float best = a.s.lane.least_waiting;
  for_candidates(a, warp * LANES, THREADS, [&](bool is, const candidate &c) {
    for (u32 d = 0; d < a.w.num_sets && is; d++) {
      float loglike = c.loglike;
      best = fminf(best, with_duration(a, c.source, c.column, c.base, d, &loglike));
    }
  });
  best = warp_least(best);
  if (this_lane() == 0) a.s.best[warp] = best;
  __syncthreads();
  for (u32 i = 0; i < WARPS; i++) best = fminf(best, a.s.best[i]);
  return add_finite(best, a.w.options.beam);
}

__device__ inline led_to follow(const lane_at_work<false> &a, u32 source, u32 from) {
  return {a.w.options.first_arc + a.w.arcs[from].number, a.w.options.start, from, 0};
}

/* --- a step ------------------------------------------------------------------------------ */

template <bool WORDS>
__device__ u64 predictor_after(const lane_at_work<WORDS> &a, u32 source, u32 column) {
  const u64 predictor = a.sources[source].predictor;
  return column == a.w.options.blank ? predictor : context_after(a.w, predictor, column);
}

/* The token that a candidate makes. */
template <bool WORDS>
__device__ wf__tlane_token make_token(const lane_at_work<WORDS> &a, u32 source, u32 number,
                                      float cost, float loglike) {
  const wf__tlane_token &from = a.sources[source];
  const led_to to = follow(a, source, number);
  wf__tlane_token token = from;
  token.predictor = predictor_after(a, source, to.column);
  token.context = to.context;
  token.state = to.state;
  token.cost = cost;
  token.loglike = loglike;
  token.arc = to.arc;
  token.frame = a.s.lane.frame;
  if (to.column != a.w.options.blank) {
    token.parent = from.slot;
    token.slot = NONE;
    token.label = (int32_t)to.column;
  }
  return token;
}

/* A token of a set as an entry of a list. */
__device__ inline offered<false> entry_of(const wf__tlane_token &token, u32 number,
                                          const offered<false> &) {
  return {token.predictor, key_of(token.cost), 0, number, 0};
}
__device__ inline offered<true> entry_of(const wf__tlane_token &token, u32 number,
                                         const offered<true> &) {
  return {token.predictor, token.context, key_of(token.cost), 0, number, 0, token.state, 0};
}
template <bool WORDS>
__device__ offered<WORDS> entry_of(const wf__tlane_token &token, u32 number) {
  return entry_of(token, number, offered<WORDS>{});
}

/* A candidate of this cost as an entry. */
template <bool WORDS>
__device__ offered<WORDS> entry_of(const lane_at_work<WORDS> &a, const candidate &c, float cost,
                                   float loglike) {
  offered<WORDS> own = {};
  own.predictor = predictor_after(a, c.source, c.column);
  own.key = key_of(cost);
  own.order = (c.source + 1) << RANK_BIT | c.number;
  own.from = c.from;
  own.loglike = loglike;
  if constexpr (WORDS) {
    own.context = c.context;
    own.state = c.state;
  }
  return own;
}

/* The first candidates of a duration, and tokens that waited for its frame, by a warp. Returns their
 * number. */
template <bool WORDS>
__device__ u32 list_candidates(const lane_at_work<WORDS> &a, u32 duration, float cutoff) {
  const u32 lane = this_lane(), set = a.set_at(a.s.lane.frame + (int32_t)duration);
  kept_list<WORDS> keep = {a.lists + duration * ROOM, 0, a.w.options.max_hypotheses, cutoff};
  if (duration > 0) {
    const bool is = lane < a.s.lane.sizes[set];
    keep.add(is, is ? a.set_of(set)[lane].cost : INFINITY,
             is ? entry_of<WORDS>(a.set_of(set)[lane], lane) : offered<WORDS>{});
  }
  for_candidates(a, 0, LANES, [&](bool is, const candidate &c) {
    float loglike = c.loglike;
    const float cost =
        is ? with_duration(a, c.source, c.column, c.base, duration, &loglike) : INFINITY;
    is = cost != INFINITY && cost <= keep.limit;
    keep.add(is, cost, is ? entry_of(a, c, cost, loglike) : offered<WORDS>{});
  });
  return reduce(keep.list, keep.size, keep.most);
}

/* May a candidate be a link of the lattice? A token that is not in the list of its duration may still
 * come into a waiting set, in a later step, and into the frame's own by an epsilon arc. */
template <bool WORDS>
__device__ bool may_be_link(const lane_at_work<WORDS> &a, const candidate &c, u32 duration,
                            float cost, float loglike) {
  const offered<WORDS> *list = a.lists + duration * ROOM;
  const u32 size = a.s.list_sizes[duration];
  const bool comes_by_epsilon = duration == 0 && a.w.options.has_epsilons != 0;
  if (size == 0 || (!comes_by_epsilon && cost > most_of_link(a, cost_of(list[size - 1].key))))
    return false;
  const offered<WORDS> own = entry_of(a, c, cost, loglike);
  u32 to = 0;
  while (to < size && !list[to].is_same(own)) to++;
  return to < size ? cost <= most_of_link(a, cost_of(list[to].key))
                   : duration > 0 || comes_by_epsilon;
}

/* Writes those that may be, by all warps, when all lists are complete. */
template <bool WORDS>
__device__ void list_offers(const lane_at_work<WORDS> &a, float cutoff) {
  for_candidates(a, threadIdx.x / LANES * LANES, THREADS, [&](bool is, const candidate &c) {
    for (u32 d = 0; d < a.w.num_sets; d++) {
      float loglike = c.loglike;
      const float cost = is ? with_duration(a, c.source, c.column, c.base, d, &loglike) : INFINITY;
      add_offers(a, cost != INFINITY && cost <= cutoff && may_be_link(a, c, d, cost, loglike),
                 {c.context, c.source << RANK_BIT | c.number, d, cost, loglike});
    }
  });
}

template <bool WORDS>
__device__ void expand(const lane_at_work<WORDS> &a) {
  const u32 duration = threadIdx.x / LANES, lane = this_lane(),
            set = a.set_at(a.s.lane.frame + (int32_t)duration);
  const bool has_set = duration < a.w.num_sets;
  const float cutoff = find_cutoff(a);
  const u32 size = has_set ? list_candidates(a, duration, cutoff) : 0;
  if (a.w.options.keeps_offers != 0) {
    if (has_set && lane == 0) a.s.list_sizes[duration] = size;
    __syncthreads();
    list_offers(a, cutoff);
  }
  wf__tlane_token token;
  if (lane < size) {
    const offered<WORDS> &own = a.lists[duration * ROOM + lane];
    token = own.order == 0 ? a.set_of(set)[own.from]
                           : make_token(a, (own.order >> RANK_BIT) - 1, own.from, cost_of(own.key),
                                        own.loglike);
  }
  __syncthreads(); /* the sources are not needed any more */
  if (a.w.options.keeps_offers != 0 && threadIdx.x == 0) end_offers(a);
  if (lane < size) (duration == 0 ? a.sources : a.set_of(set))[lane] = token;
  if (has_set && lane == 0) (duration == 0 ? a.s.lane.num_sources : a.s.lane.sizes[set]) = size;
}

/* Of all candidates, one. By the first warp, from the only source. */
template <bool WORDS>
__device__ void expand_greedy(const lane_at_work<WORDS> &a) {
  const wf__tlane_work &w = a.w;
  const u32 lane = this_lane();
  u32 key = NONE;
  candidate best = {};
  best.number = NONE;
  for_candidates(a, 0, LANES, [&](bool is, const candidate &c) {
    const float with = c.base + acoustic_cost(w, c.loglike);
    if (!is || !(with <= FLT_MAX)) return;
    const u32 own = key_of(with);
    if (own > key || (own == key && c.number >= best.number)) return;
    key = own;
    best = c;
  });
  const u32 least = warp_min(key), first = warp_min(key == least ? best.number : NONE);
  const bool wins = least != NONE && key == least && best.number == first;
  wf__tlane_token token;
  u32 duration = 0, is_kept = 0;
  if (wins) {
    const bool blank = best.column == w.options.blank;
    if (w.options.num_durations == 0) {
      duration = blank ? 1 : 0;
    } else {
      const float *durations = a.s.durations[0];
      for (u32 d = 1; d < w.options.num_durations; d++)
        if (durations[d] > durations[duration]) duration = d;
      if (duration == 0 && !is_allowed(a, blank, 0)) duration = 1;
      best.loglike += durations[duration];
    }
    const float cost = best.base + acoustic_cost(w, best.loglike);
    is_kept = cost <= FLT_MAX;
    token = make_token(a, 0, best.from, cost, best.loglike);
  }
  __syncwarp();
  if (w.options.keeps_offers != 0) {
    add_offers(a, is_kept != 0, {best.context, best.number, duration, token.cost, token.loglike});
    if (lane == 0) end_offers(a);
  }
  if (lane == 0) a.s.lane.num_sources = 0;
  __syncwarp();
  if (is_kept != 0) {
    const u32 set = a.set_at(a.s.lane.frame + (int32_t)duration);
    (duration == 0 ? a.sources : a.set_of(set))[0] = token;
    (duration == 0 ? a.s.lane.num_sources : a.s.lane.sizes[set]) = 1;
  }
  __syncwarp();
}

/* All of it. False: the utterance is over: a row cannot be used, or there is no room. */
template <bool WORDS>
__device__ bool make_step(const lane_at_work<WORDS> &a) {
  if (!score_rows(a)) return false;
  look_at_sources(a);
  if constexpr (WORDS)
    if (!has_all_candidates(a)) return false;
  if (a.w.options.greedy == 0)
    expand(a);
  else if (threadIdx.x < LANES)
    expand_greedy(a);
  return true;
}

#endif
