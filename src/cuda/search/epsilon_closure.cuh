/* epsilon_closure.cuh - step 5 of a frame (docs/reference/semantics.md): epsilon arcs, in rounds,
 * within the table. */
#ifndef WF_CUDA_SEARCH_EPSILON_CLOSURE_CUH
#define WF_CUDA_SEARCH_EPSILON_CLOSURE_CUH

#include "cuda/search/searcher.cuh"

namespace wf_search {

template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::put_frontier(u32 rank, u32 which,
                                                                      u32 place, u32 slot) {
  if (place < FRONTIER)
    l.of(rank).frontier[which][place] = (uint16_t)slot;
  else
    (frontier() + ((int64_t)rank - l.rank()) * 2 * SLOTS + which * SLOTS)[place].x = slot;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::get_frontier(u32 which, u32 place) {
  constexpr u32 ROW = sizeof own().frontier[0];
  return place < FRONTIER ? load_own16(l.base + OFFSET(frontier) + which * ROW + place * 2)
                          : frontier()[which * SLOTS + place].x;
}

/* Is the candidate cheaper, by more than the slack, than the cost an earlier round left? (It is
 * cheaper than a cost of this round.) `at` is the home slot. */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::gains(u32 rank, u32 at, token_key key,
                                                               float candidate) const {
  const u64 value = l.value_of(rank, at, key);
  return value == NO_TOKEN || ((u32)value & FRESH) ||
         candidate < __fsub_rn(cost_of((u32)(value >> 32)), slack());
}

/* A candidate of each live thread of the warp, over epsilon arc `a` from a token of context
 * `from` to one of context `to`, is offered to the table. A slot that it improves goes on the
 * frontier `next`. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::relax_to(bool live, u32 a, uint4 arc,
                                                                  float candidate, u64 from, u64 to,
                                                                  float cutoff, u32 next) {
  live = live && candidate <= cutoff;
  const token_key key = key_of(arc.x, to);
  const u64 value = (u64)ordered(candidate) << 32 | FRESH | (a + 1);
  u32 rank, slot;
  u64 old;
  if (slack() != 0) {
    l.place_of(key & ~HAS_EPSILONS, l.bits, &rank, &slot);
    live = live && gains(rank, slot, key, candidate);
  }
  const bool lowered = l.offer(live, key, value, &rank, &slot, &old);
  if constexpr (SCORED)
    if (live && (lowered || old == value)) log_candidate(arc.w, rank, slot, value, from, to);
  if (!lowered) return;
  note_lowered((u32)(value >> 32));
  if (old == NO_TOKEN) atomicAdd(&l.of(rank).inserted, 1u);
  if (old == NO_TOKEN ||
      ((u32)old & FRESH) == 0) { /* the first improvement of this slot in this round */
    u32 place = atomicAdd(&l.of(rank).frontier_size[next], 1u);
    put_frontier(rank, next, place, slot);
    if (key & HAS_EPSILONS) l.of(rank).frontier_work[next] = 1;
  }
}

/* Epsilon arc `a` from a token of this cost and context, of each live thread of the warp. Arcs
 * whose words need the scorer are gathered for later. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::relax(bool live, u32 a, float cost,
                                                               u64 context, float cutoff,
                                                               u32 next) {
  uint4 arc = make_uint4(0, 0, 0, 0);
  const u32 number = split_pair(a, &context);
  u64 to = context;
  if (live) {
    arc = arc_at(arcs(), number);
    cost = __fadd_rn(cost, __uint_as_float(arc.y));
    if (arc.w != 0) cost = __fsub_rn(cost, p->rules.word_score);
    if constexpr (DEFERRED)
      if (arc.w != 0) cost = word_cost(arc.w, cost, &to);
    if constexpr (PAIRS)
      if (arc.w != 0) {
        live = __fadd_rn(cost, own().with_pairs.least) <= cutoff;
        if (live) cost = boosted_cost(arc.w, cost, &to);
      }
    if (arc.w != 0) count_word();
  }
  if constexpr (GATHERS)
    if (has_scorer()) {
      const bool waits = live && arc.w != 0;
      gather_word(waits, a, arc, cost, context);
      live = live && !waits;
    }
  relax_to(live, a, arc, cost, context, to, cutoff, next);
}

/* Relaxes the gathered arcs of this round, from number `first` on. Begins with a barrier of the
 * block. Returns false if there were none. */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::relax_words(u32 first, float cutoff,
                                                                     u32 next) {
  __syncthreads(); /* all are gathered */
  mark(PHASE_CLOSURE_ARCS);
  const u32 end = min(num_word_candidates(), (u32)WF__LANE_WORD_CANDIDATES);
  for (u32 base = first + warp() * 32; base < end; base += THREADS) {
    const u32 i = base + in_warp();
    const bool live = i < end;
    const wf__word_candidate word = word_candidate(live, i);
    u64 to = word.from;
    const float cost = live ? memoized_cost(word.word, word.cost, &to, cutoff) : 0;
    relax_to(live, word.arc, make_uint4(word.next, 0, 0, word.word), cost, word.from, to, cutoff,
             next);
    __syncwarp();
  }
  return end > first;
}

/* Relaxes epsilon arcs round by round, from the frontier that finish_emission or begin made; a
 * barrier has passed since. */
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::relax_rounds(float cutoff) {
  const uint4 *const states = this->states();
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  for (u64 rounds = 0;; rounds++) {
    const u32 now = frontier_now, next = now ^ 1, size = own().frontier_size[now];
    u32 work = 0;
#pragma unroll
    for (int r = 0; r < RANKS; r++) work |= l.of(r).frontier_work[now];
    if constexpr (GATHERS)
      if (!has_all_words()) return WF__LANE_NO_ROOM;
    if (work == 0) return WF__LANE_OK; /* nothing improved that has epsilon arcs */
#ifdef WF_LANE_PROFILE
    if (tid() == 0) {
      own().rounds++;
      own().frontier_entries += size;
    }
#endif
    if constexpr (SCORED ||
                  PAIRS) { /* if word costs make a cycle negative, there may be too many tokens
                               before there are too many rounds; that error has priority */
      u64 tokens = num_emitted;
#pragma unroll
      for (int r = 0; r < RANKS; r++) tokens += l.of(r).inserted;
      if (own().full != 0) return WF__LANE_OK; /* close checks it */
      if (tokens > p->rules.max_tokens) return CLOSURE_OVERFLOW;
      if (rounds + 1 > (by_state() ? all_states() : tokens)) return WF__LANE_CYCLE;
      if constexpr (SCORED)
        if (by_state() && !place_contexts()) return WF__LANE_NO_ROOM;
    } else if (rounds > p->graph.num_states) {
      return WF__LANE_CYCLE;
    }
    u32 first_word = 0;
    if constexpr (GATHERS) first_word = num_word_candidates();
    /* The last round's improvements become old costs, and all threads relax from them. A thread
     * keeps its first entry in registers. */
    const u32 grain = min(32u, (size + WARPS - 1) / WARPS);
    uint4 info = make_uint4(0, 0, 0, 0);
    float my_cost = 0;
    u64 my_context = 0;
    for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
      const u32 i = base + in_warp();
      if (in_warp() >= grain || i >= size) break;
      u32 at = get_frontier(now, i);
      const ulonglong2 entry = l.entry_at(at);
      const token_key key = (token_key)entry.x;
      const u64 value = entry.y;
      float cost = cost_of((u32)(value >> 32));
      if ((u32)value & FRESH) l.put_value(at, value & ~(u64)FRESH);
      if (i >= THREADS) {
        frontier()[now * SLOTS + i].y = __float_as_uint(cost);
        continue;
      }
      if (key & HAS_EPSILONS) info = state_at(states, state_of(key));
      my_cost = cost;
      my_context = context_at(at, key);
    }
    if (tid() == 0) own().frontier_size[next] = own().frontier_work[next] = 0;
    l.sync();
    mark(PHASE_FRONTIER);
    for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
      const u32 i = base + in_warp();
      if (base >= THREADS) {
        info = make_uint4(0, 0, 0, 0);
        if (i < size) {
          uint2 entry = frontier()[now * SLOTS + i];
          token_key key = l.key_at(entry.x);
          if (key & HAS_EPSILONS) info = state_at(states, state_of(key));
          my_cost = __uint_as_float(entry.y);
          my_context = context_at(entry.x, key);
        }
      }
      arc_share<POLICY> share(arc_ranges, in_warp(), info.y, info.z - info.y, my_cost, my_context);
      if (in_warp() == 0) frame_arcs += share.total;
      for (u32 k0 = 0; k0 < share.total; k0 += 32) {
        u32 a;
        float candidate;
        u64 context;
        share.at(k0, in_warp(), &a, &candidate, &context);
        relax(k0 + in_warp() < share.total, a, candidate, context, cutoff, next);
        __syncwarp(); /* otherwise the threads that probed longer would continue alone */
      }
    }
    bool complete = false; /* no thread has changed anything since the last barrier */
    if constexpr (GATHERS)
      if (has_scorer()) complete = !relax_words(first_word, cutoff, next) && RANKS == 1;
    mark(PHASE_CLOSURE_WORDS);
    frontier_now = next;
    if (!complete) l.sync(); /* the frontier of the next round is complete */
    mark(PHASE_CLOSURE_WAIT);
#ifdef WF_LANE_PROFILE
    if constexpr (GATHERS)
      if (tid() == 0) own().closure_words += num_word_candidates() - first_word;
#endif
  }
}

/* Puts a received candidate of each live thread of the warp into the table, and the slots that
 * it improves on the frontier `next`. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::take_exchanged(bool live, u32 place,
                                                                        u32 next) {
  u64 value = NO_TOKEN, old;
  u32 key = 0, rank, slot;
  if (live) {
    value = own().values[place];
    key = own().keys[place];
    own().values[place] = NO_TOKEN;
    own().keys[place] = table::FREE;
  }
  if (p->graph.epsilon_slack != 0) {
    l.place_of(key & ~HAS_EPSILONS, l.bits, &rank, &slot);
    live = live && gains(l.rank(), slot, key, cost_of((u32)(value >> 32)));
  }
  if (!l.offer_own(live, key, value, &slot, &old)) return;
  if (old == NO_TOKEN) atomicAdd(&own().inserted, 1u);
  if (old == NO_TOKEN || ((u32)old & FRESH) == 0)
    put_frontier(l.rank(), next, atomicAdd(&own().frontier_size[next], 1u), slot);
}

/* The same for a lane of several blocks while their tables leave room for an exchange buffer.
 * Candidates are sent to the block that owns the state, which offers them to its own table. A
 * round takes one barrier of the lane, and no block probes another block's memory. */
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::relax_rounds_by_exchange(float cutoff) {
  const float word_score = p->rules.word_score;
  const uint4 *const arcs = this->arcs(), *const states = this->states();
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  const u32 room = (SLOTS - (1u << l.bits)) / 2; /* slots for the candidates of one round; those of
                                                    the next may arrive while these are read */
  u32 which = 1;                                 /* of num_listed and sent; the emission used 0 */
  for (u64 rounds = 0;; rounds++, which ^= 1) {
    if (rounds > p->graph.num_states) return WF__LANE_CYCLE;
    const u32 exchange = (1u << l.bits) + which * room;
    const u32 now = frontier_now, next = now ^ 1, size = own().frontier_size[now],
              grain = min(32u, (size + WARPS - 1) / WARPS);
    bool sent = false;
    for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
      const u32 i = base + in_warp();
      uint4 info = make_uint4(0, 0, 0, 0);
      float cost = 0;
      if (in_warp() < grain && i < size) {
        u32 at = get_frontier(now, i), key = own_words::load(l.base + OFFSET(keys) + at * 4);
        u64 value = own_words::load64(l.base + OFFSET(values) + at * 8);
        cost = cost_of((u32)(value >> 32));
        if ((u32)value & FRESH) own().values[at] = value & ~(u64)FRESH;
        if (key & HAS_EPSILONS) info = __ldg(states + (key & ~HAS_EPSILONS));
      }
      arc_share<POLICY> share(arc_ranges, in_warp(), info.y, info.z - info.y, cost);
      if (in_warp() == 0) frame_arcs += share.total;
      for (u32 k0 = 0; k0 < share.total; k0 += 32) {
        u32 a;
        float candidate;
        u64 none;
        share.at(k0, in_warp(), &a, &candidate, &none);
        bool live = k0 + in_warp() < share.total;
        uint4 arc = make_uint4(0, 0, 0, 0);
        if (live) {
          arc = __ldg(arcs + a);
          candidate = __fadd_rn(candidate, __uint_as_float(arc.y));
          if (arc.w != 0) candidate = __fsub_rn(candidate, word_score);
          live = candidate <= cutoff;
        }
        l.send(live, which, exchange, exchange + room, arc.x,
               (u64)ordered(candidate) << 32 | FRESH | (a + 1));
        sent = sent || __any_sync(ALL, live);
      }
    }
    if (sent && in_warp() < RANKS) l.of(in_warp()).sent[which] = 1;
    if (tid() == 0)
      own().frontier_size[next] = own().num_listed[which ^ 1] = own().sent[which ^ 1] = 0;
    l.sync(); /* the candidates have arrived */
    if (own().sent[which] == 0) return WF__LANE_OK;
    const u32 listed = own().num_listed[which], count = min(listed, room);
    if (listed > count && tid() < RANKS) l.of(tid()).full = 1;
    for (u32 first = 0; first < count; first += THREADS) {
      take_exchanged(first + tid() < count, exchange + first + tid(), next);
      __syncwarp();
    }
    frontier_now = next;
    __syncthreads(); /* the frontier of the next round is complete */
  }
}

/* The closure in the table as it is. WF__LANE_*, CLOSURE_OVERFLOW (more than max_tokens) or
 * CLOSURE_GROW (the table is too small). */
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::close(float cutoff) {
  int status;
  if constexpr (SCORED || PAIRS)
    status = relax_rounds(cutoff);
  else
    status =
        RANKS > 1 && l.bits < SLOT_BITS ? relax_rounds_by_exchange(cutoff) : relax_rounds(cutoff);
  if (status != WF__LANE_OK) return status;
  u32 inserted = 0;
#pragma unroll
  for (int r = 0; r < RANKS; r++) inserted += l.of(r).inserted;
  const bool full = own().full != 0;
  if (full && l.bits < SLOT_BITS) return CLOSURE_GROW;
  if (!full && num_emitted + inserted <= p->rules.max_tokens) return WF__LANE_OK;
  u32 mine = 0;
  for (u32 at = tid(); at < SLOTS && at >> l.bits == 0; at += THREADS)
    mine += l.value_at(at) != NO_TOKEN;
  u64 tokens = l.sum(mine);
  if (tokens > p->rules.max_tokens) return CLOSURE_OVERFLOW;
  return full ? WF__LANE_TABLE_FULL : WF__LANE_OK;
}

/* Repeats the closure of frame t's candidates up to the key `last` after the first try failed:
 * in a larger table, or of fewer candidates if it makes too many tokens. */
template <class POLICY, int RANKS>
__device__ __noinline__ int searcher<POLICY, RANKS>::close_again(int status, u64 last, u32 t) {
  l.sync();
  __pipeline_wait_prior(0); /* the next frame's row was being fetched */
  load_row(t);
  finish_row();
  while (status < 0) {
    l.sync();
    if (status == CLOSURE_OVERFLOW) {
      if (tid() == 0) own().flags |= 8; /* WF_RESULT_OVERFLOW */
      u32 admitted = (u32)(expand<EXPAND_COUNT>(candidate_rule{last, 0, 0}) >> 32) / 2;
      if (admitted == 0) return WF__LANE_CLOSURE;
      last = candidate_rank(admitted, last, cost_of((u32)(last >> 32)) - p->rules.beam, false);
    }
    u64 tokens;
    frame_arcs = emission_arcs;
    if (!admit(last, &tokens)) return WF__LANE_TABLE_FULL;
    status = close(cost_of((u32)(last >> 32)));
  }
  if (tid() == 0) own().last = last;
  l.sync();
  load_row(row_after(t));
  return status;
}

}  // namespace wf_search

#endif
