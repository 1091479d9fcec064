/* expand.cuh - steps 1 to 4 of a frame (docs/reference/semantics.md): which tokens are expanded,
 * their emitting arcs, the cutoff, the table. */
#ifndef WF_CUDA_SEARCH_EXPAND_CUH
#define WF_CUDA_SEARCH_EXPAND_CUH

#include "cuda/search/wide_states.cuh"

namespace wf_search {

/* --- selection of sources ---------------------------------------------------------------- */

/* Exact key of the want-th source by (cost, state): a histogram of 256 equal steps of cost, then
 * a count among the few sources of the right step. Returns false, with nothing changed, if they
 * are not few. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::select_by_cost(u64 want) {
  const float scale = p->rules.beam > 1e-20f ? 256 / p->rules.beam : 0;
  const uint2 *const tokens = this->tokens();
  const float *const costs = this->costs();
  u64 *near = (u64 *)own().arc_ranges;
  constexpr u32 MOST = sizeof(own().arc_ranges) / sizeof *near;
  if (tid() < 256) own().hist[tid()] = 0;
  if (tid() == 0) own().num_near = 0;
  __syncthreads();
  for (u32 i = tid(); i < f.num_sources; i += THREADS)
    atomicAdd(&own().hist[(u32)fminf(fmaxf(costs[i] * scale, 0), 255)], 1u);
  u32 bin;
  want -= pick_bin(want, &bin);
  for (u32 i = tid(); i < f.num_sources; i += THREADS) {
    const float cost = costs[i];
    if ((u32)fminf(fmaxf(cost * scale, 0), 255) != bin) continue;
    u64 key = (u64)ordered(cost) << 32 | tokens[i].x;
    for (int r = 0; r < RANKS; r++) {
      u32 place = atomicAdd(&l.of(r).num_near, 1u);
      if (place < MOST) ((u64 *)l.of(r).arc_ranges)[place] = key;
    }
  }
  l.sync();
  u32 size = own().num_near;
  if (size > MOST) return false;
  for (u32 i = tid(); i < size; i += THREADS) {
    u64 mine = near[i], below = 0, same = 0;
    for (u32 k = 0; k < size; k++) {
      below += near[k] < mine;
      if (SCORED) same += near[k] == mine;
    }
    if constexpr (SCORED)
      keep_selected(mine, below, same, want);
    else if (below == want - 1)
      own().select_key = mine;
  }
  __syncthreads();
  f.select_key = own().select_key;
  return true;
}

/* Exact key of the want-th source by (cost, state), by radix selection of eight bits at a time.
 * Used if select_by_cost returns false. */
template <class POLICY, int RANKS>
__device__ __noinline__ u64 searcher<POLICY, RANKS>::select_rank(u64 want) {
  if (select_by_cost(want)) {
    if constexpr (SCORED)
      if (selected_left() > 0) f.select_context = tied_source(f.select_key, selected_left());
    return f.select_key;
  }
  const uint2 *const tokens = this->tokens();
  const float *const costs = this->costs();
  u64 prefix = 0, left = want; /* the left-th of those with this prefix */
  for (int shift = 56; shift >= 0; shift -= 8) {
    if (tid() < 256) own().hist[tid()] = 0;
    __syncthreads();
    for (u32 i = tid(); i < f.num_sources; i += THREADS) {
      const u64 key = (u64)ordered(costs[i]) << 32 | tokens[i].x;
      if (shift == 56 || key >> (shift + 8) == prefix)
        atomicAdd(&own().hist[(u32)(key >> shift) & 255], 1u);
    }
    u32 bin;
    left -= pick_bin(left, &bin);
    prefix = prefix << 8 | bin;
    if constexpr (SCORED)
      if (shift == 0 && left < own().hist_all[bin]) f.select_context = tied_source(prefix, left);
  }
  return prefix;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::select_sources() {
  const bool narrow = f.total_sources > p->rules.max_active;
  f.select_key = f.select_context = NO_TOKEN;
  if (tid() == 0) {
    own().num_expanded += narrow ? p->rules.max_active : f.total_sources;
    own().num_narrowed += narrow;
    if (narrow) own().flags |= 2; /* WF_RESULT_NARROWED */
  }
  if (narrow)
    f.select_key = cold_path([&](searcher &self) { return self.select_rank(p->rules.max_active); });
}

/* --- emitting arcs ----------------------------------------------------------------------- */

/* The next `grain` sources of this warp. In the first pass of a frame, warps take them
 * dynamically. */
template <class POLICY, int RANKS>
template <int MODE>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::next_batch(u32 before, u32 grain) {
  if (MODE != EXPAND_RUNNING && MODE != EXPAND_LIST) return before + WARPS * grain;
  u32 base = 0;
  if (in_warp() == 0) base = atomicAdd(&own().next_batch, grain);
  return __shfl_sync(ALL, base, 0);
}

/* Processes, as the mode requires, a candidate of each live thread of the warp. It leads over an
 * emitting arc from a token of context `from` to one of context `to`. */
template <class POLICY, int RANKS>
template <int MODE>
__device__ __forceinline__ void searcher<POLICY, RANKS>::consider(const candidate_rule &rule,
                                                                  bool live, u32 a, uint4 arc,
                                                                  float candidate, u64 from, u64 to,
                                                                  u64 *my_count) {
  constexpr bool FIRST_PASS = MODE == EXPAND_RUNNING || MODE == EXPAND_LIST;
  const u32 order = ordered(candidate);
  const u64 key = (u64)order << 32 | a;
  live = live && candidate <= FLT_MAX;
  if (FIRST_PASS) {
    u32 known = own_words::load(l.base + OFFSET(best));
    u32 lowest = warp_min(live ? order : ALL);
    if (lowest < known) {
      if (in_warp() < RANKS) atomicMin(&l.of(in_warp()).best, lowest);
      known = lowest;
    }
    if (MODE == EXPAND_RUNNING || rule.shift != 0)
      live = live && candidate <= add_finite(cost_of(known), p->rules.beam);
  } else {
    if (MODE == EXPAND_COUNT) *my_count += live;
    live = live && (MODE == EXPAND_TIES ? key == rule.last && from <= f.last_context
                                        : is_within(key, rule.last, from));
    if (MODE == EXPAND_COUNT) *my_count += (u64)live << 32;
  }
  if (MODE == EXPAND_LIST)
    list_candidate(live, key_of(arc.x, to), SCORED && arc.w != 0 ? key | WF__LANE_LISTED_WORD : key,
                   by_state() ? to : from);
  if (MODE == EXPAND_STEPS) {
    const u32 step = (u32)fminf(fmaxf((candidate - rule.origin) * rule.scale, 0), 255);
    if (rule.prefix != NO_STEP)
      keep_near(live && step == rule.prefix, key);
    else if (live)
      atomicAdd(&own().hist[step], 1u);
  }
  if (MODE == EXPAND_HIST && live && (rule.shift == 56 || key >> (rule.shift + 8) == rule.prefix))
    atomicAdd(&own().hist[(u32)(key >> rule.shift) & 255], 1u);
  if (MODE == EXPAND_TIES && live && (rule.shift == 56 || from >> (rule.shift + 8) == rule.prefix))
    atomicAdd(&own().hist[(u32)(from >> rule.shift) & 255], 1u);
  if (MODE == EXPAND_RUNNING || MODE == EXPAND_FIXED) {
    u32 rank, slot;
    u64 old;
    const u64 value = (u64)order << 32 | (a + 1);
    const bool lowered = l.offer(live, key_of(arc.x, to), value, &rank, &slot, &old);
    if constexpr (SCORED)
      if (live && (lowered || old == value)) log_candidate(arc.w, rank, slot, value, from, to);
  }
  __syncwarp(); /* otherwise the threads that probed longer would continue alone */
}

/* The gathered candidates over arcs with words. The first pass of a frame calls the scorer, a
 * whole warp at a time, and keeps the results for the other passes. */
template <class POLICY, int RANKS>
template <int MODE>
__device__ __forceinline__ void searcher<POLICY, RANKS>::consider_words(const candidate_rule &rule,
                                                                        u64 *my_count) {
  constexpr bool FIRST_PASS = MODE == EXPAND_RUNNING || MODE == EXPAND_LIST;
  if (FIRST_PASS) {
    __syncthreads(); /* all are gathered */
    mark(PHASE_ARCS);
    f.num_words = min(num_word_candidates(), (u32)WF__LANE_WORD_CANDIDATES);
  }
  for (u32 base = warp() * 32; base < f.num_words; base += THREADS) {
    const u32 i = base + in_warp();
    const bool live = i < f.num_words;
    wf__word_candidate word = word_candidate(live, i);
    if (FIRST_PASS && live) {
      u64 to = word.from;
      const float label = label_cost((u32)word.to);
      if (is_beyond<MODE>(rule, __fadd_rn(least_word_cost(word.word, word.cost), label))) {
        word.cost = INFINITY;
        own().with_scorer.left_out = 1;
      } else {
        word.cost = __fadd_rn(memoized_cost(word.word, word.cost, &to), label);
      }
      word_candidates()[i].to = word.to = to;
      word_candidates()[i].cost = word.cost;
    }
    consider<MODE>(rule, live, word.arc, make_uint4(word.next, 0, 0, word.word), word.cost,
                   word.from, word.to, my_count);
  }
}

/* An emitting arc of each live thread of the warp, from a token of this cost and context. */
template <class POLICY, int RANKS>
template <int MODE>
__device__ __forceinline__ void searcher<POLICY, RANKS>::expand_arc(const candidate_rule &rule,
                                                                    bool live, u32 a, uint4 arc,
                                                                    float candidate, u64 from,
                                                                    u64 *my_count) {
  constexpr bool FIRST_PASS = MODE == EXPAND_RUNNING || MODE == EXPAND_LIST;
  u64 to = from;
  if (live) {
    candidate = __fadd_rn(candidate, __uint_as_float(arc.y));
    if (arc.w != 0) candidate = __fsub_rn(candidate, p->rules.word_score);
    if constexpr (DEFERRED)
      if (arc.w != 0) candidate = word_cost(arc.w, candidate, &to);
    if constexpr (PAIRS)
      if (arc.w != 0) {
        const float least = __fadd_rn(candidate, own().with_pairs.least);
        live = !is_beyond<MODE>(rule, __fadd_rn(least, label_cost(arc.z)));
        if (live) candidate = boosted_cost(arc.w, candidate, &to);
      }
    if (FIRST_PASS && arc.w != 0) count_word();
  }
  if constexpr (GATHERS)
    if (has_scorer()) {
      const bool waits = live && arc.w != 0;
      if (FIRST_PASS) {
        const bool out = waits && is_beyond<MODE>(rule, __fadd_rn(least_word_cost(arc.w, candidate),
                                                                  label_cost(arc.z)));
        if (out) own().with_scorer.left_out = 1;
        gather_word(waits && !out, a, arc, candidate, from);
      }
      live = live && !waits;
    }
  if (live) candidate = __fadd_rn(candidate, label_cost(arc.z));
  consider<MODE>(rule, live, a, arc, candidate, from, to, my_count);
}

/* Expands the emitting arcs of the selected sources. RUNNING (compared with the running best)
 * and FIXED fill the table. LIST sends candidates to the lists of the ranks that own their
 * states (key among the values, next state among the keys); with rule.shift it drops those well
 * above the running best. STEPS counts candidates by equal steps of cost, or writes the keys of
 * one step to the frontier's memory. HIST only counts. COUNT returns the number of candidates
 * and, in the upper half, how many of them the rule accepts. A warp takes up to 32 sources at a
 * time and distributes their arcs evenly over its threads; the next sources and arcs are
 * prefetched. */
template <class POLICY, int RANKS>
template <int MODE>
__device__ __forceinline__ u64 searcher<POLICY, RANKS>::expand(const candidate_rule &rule) {
  const uint2 *tokens = this->tokens();
  const float *const source_costs = costs();
  const uint4 *const arcs = this->arcs(), *const states = this->states();
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  const u32 grain = min(32u, (f.num_sources + WARPS - 1) / WARPS);
  u64 my_count = 0;
  constexpr bool FIRST_PASS = MODE == EXPAND_RUNNING || MODE == EXPAND_LIST;
  u32 base = FIRST_PASS ? next_batch<MODE>(0, grain) : warp() * grain;
  u32 state = (u32)NO_STATE;
  float cost = 0;
  u64 context = 0;
  bool mine = in_warp() < grain && base + in_warp() < f.num_sources;
  if (mine) {
    state = tokens[base + in_warp()].x;
    cost = source_costs[base + in_warp()];
    context = source_context(base + in_warp());
  }
  uint4 info = make_uint4(0, 0, 0, 0);
  u32 own_state = split_pair(state, &context);
  if (mine && !is_wide(own_state) && is_selected(cost, state, context))
    info = state_at(states, own_state);
  while (base < f.num_sources) {
    base = next_batch<MODE>(base, grain);
    arc_share<POLICY> share(arc_ranges, in_warp(), info.x, info.y - info.x, cost, context);
    mine = in_warp() < grain && base + in_warp() < f.num_sources;
    if (mine) {
      state = tokens[base + in_warp()].x;
      cost = source_costs[base + in_warp()];
      context = source_context(base + in_warp());
    }
    if (FIRST_PASS && in_warp() == 0) frame_arcs += share.total;
    u32 a_next;
    float from_next;
    u64 context_next;
    uint4 arc_next = make_uint4(0, 0, 0, 0);
    share.at(0, in_warp(), &a_next, &from_next, &context_next);
    u32 number = split_pair(a_next, &context_next);
    if (in_warp() < share.total) arc_next = arc_at(arcs, number);
    info = make_uint4(0, 0, 0, 0);
    own_state = split_pair(state, &context);
    if (mine && !is_wide(own_state) && is_selected(cost, state, context))
      info = state_at(states, own_state);
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      const u32 a = a_next;
      const uint4 arc = arc_next;
      const float candidate = from_next;
      const u64 from = context_next;
      const bool live = k0 + in_warp() < share.total;
      if (k0 + 32 < share.total) {
        share.at(k0 + 32, in_warp(), &a_next, &from_next, &context_next);
        number = split_pair(a_next, &context_next);
        if (k0 + 32 + in_warp() < share.total) arc_next = arc_at(arcs, number);
      }
      expand_arc<MODE>(rule, live, a, arc, candidate, from, &my_count);
    }
  }
  if (has_wide())
    my_count += cold_path([rule](searcher &self) { return self.template expand_wide<MODE>(rule); });
  if constexpr (GATHERS)
    if (has_scorer()) consider_words<MODE>(rule, &my_count);
  return MODE == EXPAND_COUNT ? l.sum(my_count) : 0;
}

/* Lists the keys of the live threads of a warp. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::keep_near(bool live, u64 key) {
  const u32 vote = __ballot_sync(ALL, live);
  u32 first = 0;
  if (in_warp() == 0 && vote != 0) first = atomicAdd(&own().num_near, (u32)__popc(vote));
  first = __shfl_sync(ALL, first, 0);
  const u32 place = first + __popc(vote & lanes_before());
  if (live && place < 2 * SLOTS) near_keys()[place] = key;
}

/* Lists, in the frontier's memory, the candidates up to `last` in the same step of cost as the
 * k-th of them, and sets *k to its rank among these. There are 256 equal steps in `span` from
 * `origin` on. Returns false if a rank's part does not fit. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::list_near(u64 last, float origin, float span, u64 *k) {
  candidate_rule rule = {last, NO_STEP, 0, origin, span > 1e-20f ? 256 / span : 0};
  if (tid() < 256) own().hist[tid()] = 0;
  if (tid() == 0) own().num_near = 0;
  __syncthreads();
  expand<EXPAND_STEPS>(rule);
  u32 bin;
  *k -= pick_bin(*k, &bin);
  rule.prefix = bin;
  expand<EXPAND_STEPS>(rule);
  l.sync();
  bool fits = true;
#pragma unroll
  for (int r = 0; r < RANKS; r++) fits = fits && l.of(r).num_near <= 2 * SLOTS;
  return fits;
}

/* Key of the k-th candidate by (cost, arc) among those up to `last`; by cost alone, its low half
 * is all ones. Radix selection of eight bits at a time among the candidates in its step of cost
 * (`origin`: where the steps begin), or among all if these are too many. Overwrites the
 * frontier. */
template <class POLICY, int RANKS>
__device__ u64 searcher<POLICY, RANKS>::candidate_rank(u64 k, u64 last, float origin,
                                                       bool cost_only) {
  u64 left = k;
  const bool listed = list_near(last, origin, cost_only ? 4 * p->rules.beam : p->rules.beam, &left);
  const u32 size = listed ? own().num_near : 0;
  if (!listed) left = k;
  candidate_rule rule = {last, 0, 0};
  for (int shift = 56; shift >= (cost_only ? 32 : 0); shift -= 8) {
    if (tid() < 256) own().hist[tid()] = 0;
    __syncthreads();
    rule.shift = shift;
    if (!listed) expand<EXPAND_HIST>(rule);
    for (u32 i = tid(); i < size; i += THREADS) {
      const u64 key = near_keys()[i];
      if (shift == 56 || key >> (shift + 8) == rule.prefix)
        atomicAdd(&own().hist[(u32)(key >> shift) & 255], 1u);
    }
    u32 bin;
    left -= pick_bin(left, &bin);
    rule.prefix = rule.prefix << 8 | bin;
    if constexpr (SCORED) {
      if (shift > 0) continue;
      const u64 ties = own().hist_all[bin];
      if (rule.prefix != last) f.last_context = NO_TOKEN;
      f.last_context = left < ties ? tied_candidate(rule.prefix, left) : NO_TOKEN;
    }
  }
  return cost_only ? rule.prefix << 32 | 0xffffffffu : rule.prefix;
}

/* After all candidates are in the table: drops tokens above the cutoff (DROPS: there may be
 * some) and puts tokens with epsilon arcs on the frontier. Returns the lane's number of tokens. */
template <class POLICY, int RANKS>
template <bool DROPS>
__device__ __forceinline__ u64 searcher<POLICY, RANKS>::finish_emission(float cutoff) {
  u32 kept = 0;
  const u32 limit = ordered(cutoff), end = 1u << l.bits;
  for (u32 first = tid(); first < end; first += AHEAD * THREADS) {
    u64 values[AHEAD];
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++)
      values[k] = DROPS && first + k * THREADS < end ? l.value_at(first + k * THREADS) : NO_TOKEN;
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++) {
      const u32 at = first + k * THREADS;
      bool token = DROPS ? values[k] != NO_TOKEN : at < end && l.is_taken(at);
      if (DROPS && token && (u32)(values[k] >> 32) > limit) {
        l.put_value(at, NO_TOKEN);
        token = false;
      }
      kept += __popc(__ballot_sync(ALL, token));
      const bool epsilons = token && l.has_epsilons_at(at);
      u32 vote = __ballot_sync(ALL, epsilons), at_list = 0;
      if (vote == 0) continue;
      if (in_warp() == 0) {
        at_list = atomicAdd(&own().frontier_size[frontier_now], (u32)__popc(vote));
        own().frontier_work[frontier_now] = 1;
      }
      at_list = __shfl_sync(ALL, at_list, 0);
      if (epsilons)
        put_frontier(l.rank(), frontier_now, at_list + __popc(vote & lanes_before()), at);
    }
  }
  if (in_warp() < RANKS && kept > 0) atomicAdd(&l.of(in_warp()).kept, kept);
  l.sync(); /* the frontier is complete too */
  return num_emitted = own().kept;
}

/* Makes the tokens of the candidates with keys up to `last`; *num is their number. The table has
 * its full size. With scorers, clearing that takes long, so the table keeps its size if there is
 * room. Returns false if a rank's table was full. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::admit(u64 last, u64 *num) {
  u32 bits = SCORED && own().full == 0 ? l.bits : SLOT_BITS;
  for (;; bits = SLOT_BITS) {
    l.sync(); /* no thread still reads the old table */
    if (SCORED)
      l.empty_slots();
    else
      l.clear(SLOT_BITS);
    if (tid() == 0) own().begin_frame();
    l.bits = bits;
    frontier_now = 0;
    l.sync();
    candidate_rule rule = {last, 0, 0};
    expand<EXPAND_FIXED>(rule);
    l.sync();
    if (own().full == 0) {
      *num = finish_emission<false>(FLT_MAX);
      return true;
    }
    if (bits == SLOT_BITS) break;
  }
  u32 mine = 0;
  for (u32 at = tid(); at < SLOTS; at += THREADS) mine += l.is_taken(at);
  *num = l.sum(mine);
  return false;
}

/* --- frames of few candidates ------------------------------------------------------------ */

/* Appends a candidate of each live thread of the warp to the list of the rank that owns its
 * state; with scorers to this rank's list, as {`rank`, key, `context`}. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::list_candidate(bool live, token_key key,
                                                                        u64 rank, u64 context) {
  if constexpr (SCORED) {
    const u32 vote = __ballot_sync(ALL, live);
    if (vote == 0) return;
    u32 place = 0;
    if (in_warp() == 0) place = atomicAdd(&own().num_listed[0], (u32)__popc(vote));
    place = __shfl_sync(ALL, place, 0) + __popc(vote & lanes_before());
    if (!live || place >= WF__LANE_LISTED) return;
    listed()[place] = make_ulonglong2(rank, key);
    if (is_logged((u32)rank & WF__LANE_LISTED_WORD)) listed_contexts()[place] = context;
  } else {
    l.send(live, 0, 1u << l.bits, SLOTS, key, rank);
  }
}

/* Ordered cost of the k-th cheapest candidate of the lane's lists; `size` of them are this
 * rank's. Works like select_by_cost: equal steps of cost, here over four beams from the best on,
 * then a count among the few candidates of the right step. If they are not few, uses radix
 * selection. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u64 searcher<POLICY, RANKS>::listed_rank(u32 k, u32 size) {
  const float best = cost_of(own().best), scale = p->rules.beam > 1e-20f ? 64 / p->rules.beam : 0;
  u32 *near = (u32 *)own().arc_ranges, bin;
  constexpr u32 MOST = sizeof(own().arc_ranges) / sizeof *near;
  if (tid() < 256) own().hist[tid()] = 0;
  if (tid() == 0) own().num_near = 0;
  __syncthreads();
  u32 beyond = 0; /* all are in one step, so radix selection */
  for (u32 i = tid(); i < size; i += THREADS) {
    u32 step = (u32)fminf((cost_of(listed_order(i)) - best) * scale, 255);
    if (step == 255)
      beyond++;
    else
      atomicAdd(&own().hist[step], 1u);
  }
  beyond = warp_sum(beyond);
  if (in_warp() == 0 && beyond > 0) atomicAdd(&own().hist[255], beyond);
  const u32 want = k - pick_bin(k, &bin);
  for (u32 i = tid(); i < size; i += THREADS) {
    const u32 order = listed_order(i);
    if ((u32)fminf((cost_of(order) - best) * scale, 255) != bin) continue;
    for (int r = 0; r < RANKS; r++) {
      u32 place = atomicAdd(&l.of(r).num_near, 1u);
      if (place < MOST) ((u32 *)l.of(r).arc_ranges)[place] = order;
    }
  }
  l.sync();
  const u32 count = own().num_near;
  if (count > MOST)
    return cold_path([&](searcher &self) { return self.listed_radix_rank(k, size); });
  for (u32 i = tid(); i < count; i += THREADS) {
    u32 mine = near[i], below = 0, same = 0;
    for (u32 n = 0; n < count; n++) {
      below += near[n] < mine;
      same += near[n] == mine;
    }
    if (below < want && want <= below + same)
      atomicExch(&own().select_key, (u64)mine); /* equal candidates write the same value */
  }
  __syncthreads();
  return own().select_key;
}

template <class POLICY, int RANKS>
__device__ __noinline__ u64 searcher<POLICY, RANKS>::listed_radix_rank(u32 k, u32 size) {
  u32 prefix = 0;
  u64 left = k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (tid() < 256) own().hist[tid()] = 0;
    __syncthreads();
    for (u32 i = tid(); i < size; i += THREADS) {
      u32 order = listed_order(i);
      if (shift == 24 || order >> (shift + 8) == prefix)
        atomicAdd(&own().hist[(order >> shift) & 255], 1u);
    }
    u32 bin;
    left -= pick_bin(left, &bin);
    prefix = prefix << 8 | bin;
  }
  return prefix;
}

/* Offers the listed candidates with keys above `above` (0: all) and up to `last` to the table.
 * Returns this thread's number of them. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::insert_listed(u32 size, u64 above,
                                                                      u64 last) {
  u32 count = 0;
  for (u32 base = 0; base < size; base += THREADS) {
    const u32 i = base + tid();
    u32 slot;
    u64 old;
    if constexpr (SCORED) {
      const ulonglong2 entry = i < size ? listed()[i] : make_ulonglong2(NO_TOKEN, 0);
      const u64 key = entry.x & ~(u64)WF__LANE_LISTED_WORD, value = key + 1; /* arc + 1 */
      const u32 word = (u32)entry.x & WF__LANE_LISTED_WORD;
      const bool live = i < size && key <= last && (above == 0 || key > above);
      const u64 context = live && is_logged(word) ? listed_contexts()[i] : 0;
      u32 rank;
      const bool lowered = l.template offer<false>(live, entry.y, value, &rank, &slot, &old);
      if (live && (lowered || old == value))
        log_candidate(word, rank, slot, value, context, context);
      count += live;
    } else {
      const u64 key = i < size ? own().values[(1u << l.bits) + i] : NO_TOKEN;
      const bool live = i < size && key <= last && (above == 0 || key > above);
      l.offer_own(live, live ? own().keys[(1u << l.bits) + i] : 0, key + 1, &slot,
                  &old); /* arc + 1 */
      count += live;
    }
    __syncwarp();
  }
  return count;
}

/* Emission through lists of candidates. Few candidates are all listed, which makes min_active
 * cheap. Otherwise those near the best are listed, so that the blocks of a lane do not probe
 * each other's tables, and with scorers so that whole warps offer the candidates within the
 * beam. Returns false if there are too many; the table is then empty again. */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::emit_from_list(bool all_of_them, u64 *last,
                                                                        u64 *num) {
  expand<EXPAND_LIST>(candidate_rule{0, 0, all_of_them ? 0 : 1});
  l.sync();
  if constexpr (GATHERS)
    if (!has_all_words()) return false; /* the other method detects this, too */
  const u32 room = room_of_list(), best = own().best, size = min(own().num_listed[0], room);
  bool fits = true;
#pragma unroll
  for (int r = 0; r < RANKS; r++) fits = fits && l.of(r).num_listed[0] <= room;
  mark(PHASE_WORDS);
  if (fits && best != ALL) {
    *last = (u64)ordered(add_finite(cost_of(best), p->rules.beam)) << 32 | 0xffffffffu;
    u32 within = insert_listed(size, 0, *last);
    if (all_of_them) {
      within = (u32)l.sum(within);
      if (within < p->rules.min_active) {
        u64 all = RANKS == 1 ? size : l.sum(tid() == 0 ? size : 0), old = *last;
        *last = all <= p->rules.min_active
                    ? (u64)ordered(FLT_MAX) << 32 | 0xffffffffu
                    : listed_rank(p->rules.min_active, size) << 32 | 0xffffffffu;
        if (all > within) insert_listed(size, old, *last);
      }
    }
    __syncthreads();
  }
  if constexpr (SCORED) {
    l.sync(); /* candidates of all ranks are in the table */
    mark(PHASE_TABLE);
  } else {
    for (u32 i = tid(); i < size; i += THREADS) {
      own().values[(1u << l.bits) + i] = NO_TOKEN;
      own().keys[(1u << l.bits) + i] = NO_STATE;
    }
  }
  note_standing();
  *num = fits && best != ALL ? finish_emission<false>(FLT_MAX)
                             : 0; /* includes a barrier of the lane */
  if (fits && own().full == 0) {
    if (best == ALL) l.sync();
    if (tid() == 0) own().num_listed[0] = 0;
    return true;
  }
  if (SCORED && !fits) f.crowded = (u32)f.total_sources;
  empty_table(SLOT_BITS);
  return false;
}

/* Empties the table to expand the frame again, with 2^bits slots a rank. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::empty_table(u32 bits) {
  frame_arcs = 0;
  if constexpr (DEFERRED) this->frame_words = 0;
  l.sync();
  if constexpr (SCORED) {
    l.empty_slots();
    l.bits = bits;
    if (tid() == 0) {
      own().begin_frame();
      forget_words();
    }
  } else {
    l.clear(bits);
  }
  frontier_now = 0;
  l.sync();
}

/* Corrects an emission that made too many or too few tokens; `full`: the table had no room for
 * the candidates up to `last`. */
template <class POLICY, int RANKS>
__device__ __noinline__ int searcher<POLICY, RANKS>::emit_rest(bool full, u64 *last, u64 *num) {
  const u64 every = (u64)ordered(FLT_MAX) << 32 | 0xffffffffu;
  const float origin = cost_of((u32)(*last >> 32)) - p->rules.beam; /* the best cost, or near it */
  const bool left_out = left_words_out();                           /* admit forgets it */
  bool fits = !full || admit(*last, num);
  if constexpr (GATHERS)
    if (fits && *num < p->rules.min_active && left_out) {
      candidate_rule rule = {0, 0, 0};
      rule.all_words = true;
      empty_table(l.bits);
      expand<EXPAND_RUNNING>(rule);
      l.sync();
      if (!has_all_words()) return WF__LANE_NO_ROOM;
      fits = admit(*last, num);
    }
  if (fits && *num < p->rules.min_active) {
    u64 counts = expand<EXPAND_COUNT>(candidate_rule{*last, 0, 0});
    u32 all = (u32)counts, within = (u32)(counts >> 32);
    if (within < p->rules.min_active) {
      *last = all <= p->rules.min_active ? every
                                         : candidate_rank(p->rules.min_active, every, origin, true);
      if (all > within) fits = admit(*last, num);
    }
  }
  if (!fits && *num <= p->rules.max_tokens)
    return WF__LANE_TABLE_FULL; /* one rank overflowed, not the lane */
  if (*num <= p->rules.max_tokens) return WF__LANE_OK;
  if (tid() == 0) own().flags |= 8; /* WF_RESULT_OVERFLOW */
  *last = candidate_rank(p->rules.max_tokens, *last, origin, false);
  return admit(*last, num) ? WF__LANE_OK : WF__LANE_TABLE_FULL;
}

/* Emitting arcs of one frame up to the cutoff of beam, min_active and max_tokens. *last is the key
 * of that cutoff. Of wide states those of the listed columns. */
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::emit_listed(u64 *last, u64 *num) {
  frontier_now = 0;
  frame_arcs = 0;
  f.last_context = NO_TOKEN;
  bool few = f.total_sources <= RANKS * WF__LANE_FEW || (SCORED && f.sparse);
  bool full = false, listed = false;
  if (SCORED ? f.crowded == 0 || f.total_sources < f.crowded : few || RANKS > 1)
    for (;;) {
      listed = emit_from_list(few, last, num);
      if (!SCORED || !listed || few || *num >= p->rules.min_active) break;
      few = true; /* list all candidates, to find those up to min_active */
      empty_table(l.bits);
    }
  if (SCORED && listed && few) {
    const float cutoff = add_finite(cost_of(own().best), p->rules.beam);
    f.sparse = (u32)(*last >> 32) > ordered(cutoff);
  }
  if (!listed) {
    expand<EXPAND_RUNNING>(candidate_rule{0, 0, 0});
    l.sync();
    if constexpr (GATHERS)
      if (!has_all_words()) return WF__LANE_NO_ROOM;
    mark(PHASE_WORDS);
    const u32 best = own().best;
    full = own().full != 0;
    *num = 0;
    if (best == ALL) return WF__LANE_OK;
    const float cutoff = add_finite(cost_of(best), p->rules.beam);
    *last = (u64)ordered(cutoff) << 32 | 0xffffffffu;
    if (!full) *num = finish_emission<true>(cutoff);
  }
  mark(PHASE_FINISH);
  if (!full && *num <= p->rules.max_tokens && ((listed && few) || *num >= p->rules.min_active))
    return WF__LANE_OK;
  u64 key = *last, count = *num;
  int status = cold_path([&](searcher &self) {
    u64 k = key, n = count;
    int code = self.emit_rest(full, &k, &n);
    key = k;
    count = n;
    return code;
  });
  *last = key;
  *num = count;
  return status;
}

/* The same; with wide states, until the listed columns suffice. */
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::emit(u64 *last, u64 *num) {
  if (has_wide()) cold_path([](searcher &self) { return self.begin_columns(); });
  for (;;) {
    const int status = emit_listed(last, num);
    if (!has_wide() || status != WF__LANE_OK) return status;
    const u64 key = *last;
    if (!cold_path([key](searcher &self) { return self.lists_more(key); })) return status;
  }
}

}  // namespace wf_search

#endif
