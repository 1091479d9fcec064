/* backward.cuh - the raw lattice of an utterance (docs/reference/semantics.md, "Lattice"), made
 * backward from the newest frame after the search. The kernel runs after the search, with one
 * small block an utterance: only a few dozen tokens of a frame are in a lattice, so several
 * blocks share a multiprocessor. If a frame does not fit its tables, a pass with larger tables
 * goes on from there.
 *
 * The search records no arcs. It keeps each token's cost and each frame's limits of accepted
 * candidates. The backward pass expands arcs again, with the arithmetic of the search, between
 * the few tokens within the beam:
 *
 *   table   tokens of frame t within the beam: key -> {cost, extra cost}: the cost of the best path
 *           through the token above the best path of all (backward_table.cuh)
 *   marks   a bitmap of the states with arcs to the table's states, so of all tokens of t - 1 only
 *           some hundred are examined
 *   list    these tokens: over consuming arcs; then, round by round, over epsilon arcs within t -
 *           1, of those that have any, which the first pass has gathered in the lane's `costs`
 *
 * Of a wide state (wide_states.cuh), whose tokens are all listed, only the arcs over the tokens
 * that the table's states hold are looked up.
 *
 * Tokens within the beam over the arcs of the listed tokens make the table of t - 1. When it is
 * complete, its arcs are sorted and written to pages (backward_emit.cuh). Extra costs are minima
 * over paths, kept as ordered integers, so the result does not depend on the order of threads.
 *
 * A frame is a chain of short steps of the whole block. To save barriers, each step clears
 * memory for a later one, and bitmaps are used in turns.
 *
 * With a scorer, states are pairs (state, context), and words are scored again, but only for
 * arcs to states in the table (a bitmap of the graph's states). */
#ifndef WF_CUDA_LATTICE_BACKWARD_CUH
#define WF_CUDA_LATTICE_BACKWARD_CUH

#include "cuda/lattice/backward_emit.cuh"

namespace wf_search {

/* A token of the list, or of the table. */
struct back_token {
  u32 state;
  u64 context;
  float cost;
  uint4 info; /* of its state; with no arcs if the thread has no token */
  u32 slot;   /* of the table */
};

/* --- which tokens matter ----------------------------------------------------------------- */

__device__ __forceinline__ u32 mark_of(u32 state) {
  return state * 0x9E3779B1u >> (32 - MARK_BITS);
}

__device__ __forceinline__ void set_mark(u32 *marks, u32 state) {
  const u32 mark = mark_of(state);
  if ((*(volatile u32 *)&marks[mark >> 5] >> (mark & 31) & 1) == 0)
    atomicOr(&marks[mark >> 5], 1u << (mark & 31));
}

/* The arcs into a state of the table whose sources are marked. Arcs of added words are in no
 * list: all of their tokens are examined anyway, except that epsilon arcs lead to them from
 * other states. */
template <class POLICY, int RANKS>
template <bool EPSILONS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::arcs_into(u32 state, backward_marks &marks,
                                                                  u32 *first) {
  *first = 0;
  if (is_added(state)) {
    if (EPSILONS) marks.all = marks.any = 1;
    return 0;
  }
  *first = __ldg(p->graph.in_offsets[EPSILONS] + state);
  const u32 count = __ldg(p->graph.in_offsets[EPSILONS] + state + 1) - *first;
  if (count > 0 || has_words()) marks.any = 1; /* an added state's arc may lead there */
  if (count <= HUB) return count;
  const u32 hub = count <= MOST_MARKED ? atomicAdd(&marks.num_hubs, 1u) : MOST_HUBS;
  if (hub < MOST_HUBS) {
    marks.hub_first[hub] = *first;
    marks.hub_count[hub] = count;
  } else {
    marks.all = 1;
  }
  return 0;
}

/* Marks the states that consuming arcs, or epsilon arcs, lead from to states of the table;
 * `news`: only to those of these slots. Called by the whole block, with a barrier before and
 * after. */
template <class POLICY, int RANKS>
template <bool EPSILONS>
__device__ void searcher<POLICY, RANKS>::mark_sources(const backward_table &table, const u32 *news,
                                                      u32 turn) {
  constexpr u32 AT_ONCE = 4;
  backward_work &work = memory::work();
  backward_marks &known = work.marks[turn];
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0],
            size = *table.size;
  const u32 *sources = p->graph.in_sources[EPSILONS];
  u32 *marks = memory::marks_at(turn, p->lattices.backward_bits);
  const u32 grain = min(32u, (size + BACK_WARPS - 1) / BACK_WARPS);
  if (tid() == 0) work.num_listed = 0;
  for (u32 base = warp() * grain; base < size; base += BACK_WARPS * grain) {
    u32 first = 0, count = 0;
    if (in_warp() < grain && base + in_warp() < size) {
      const u32 slot = table.places[base + in_warp()];
      if (news == NULL || (news[slot >> 5] >> (slot & 31) & 1) != 0)
        count = arcs_into<EPSILONS>(state_of(table.keys[slot]), known, &first);
    }
    __syncwarp();
    arc_share<POLICY> share(arc_ranges, in_warp(), first, count, 0);
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 at;
      float zero;
      u64 none;
      share.at(k0, in_warp(), &at, &zero, &none);
      if (k0 + in_warp() < share.total) set_mark(marks, __ldg(sources + at));
      __syncwarp();
    }
  }
  __syncthreads(); /* the hubs are listed */
  const u32 num_hubs = min(known.num_hubs, MOST_HUBS);
  for (u32 hub = 0; hub < num_hubs; hub++) {
    const u32 first = known.hub_first[hub], count = known.hub_count[hub];
    for (u32 i = tid(); i < count; i += AT_ONCE * BACK_THREADS) {
      u32 state[AT_ONCE];
#pragma unroll
      for (u32 k = 0; k < AT_ONCE; k++)
        state[k] =
            i + k * BACK_THREADS < count ? __ldg(sources + first + i + k * BACK_THREADS) : ALL;
#pragma unroll
      for (u32 k = 0; k < AT_ONCE; k++)
        if (state[k] != ALL) set_mark(marks, state[k]);
    }
  }
  if (num_hubs > 0) __syncthreads();
}

/* Prepares place_of_token for frame `number`: tokens are numbered rank after rank. Called by the
 * first warp, with barriers of the block before and after. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::open_frame(u32 number) {
  backward_work &work = memory::work();
  if (warp() != 0) return;
  const u32 *off =
      frame_off() + (u64)min(in_warp(), RANKS - 1u) * (p->memory.frames_cap + 2) + number;
  const u32 first = __ldg(off), size = in_warp() < RANKS ? __ldg(off + 1) - first : 0;
  u32 end = size;
#pragma unroll
  for (int d = 1; d < RANKS; d <<= 1) {
    const u32 x = __shfl_up_sync(ALL, end, d);
    if (in_warp() >= d) end += x;
  }
  if (in_warp() < RANKS) {
    work.ends[in_warp()] = end;
    work.shifts[in_warp()] = first - (end - size);
  }
}

/* Place of token i of the frame in the traces of the lane. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u64 searcher<POLICY, RANKS>::place_of_token(u32 i) const {
  const backward_work &work = memory::work();
  u32 rank = 0;
#pragma unroll
  for (u32 r = 0; r + 1 < RANKS; r++) rank += i >= work.ends[r];
  return (u64)rank * p->memory.trace_cap + (u32)(work.shifts[rank] + i);
}

template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::has_gathered() const {
  return memory::work().gathers != 0 && memory::work().num_gathered <= MOST_GATHERED;
}

/* Reserves places in one of the block's lists, of *size entries so far, for all threads in the
 * votes of a warp. Returns the first place; places are in the order of votes, then of threads. */
template <u32 AT_ONCE>
__device__ __forceinline__ u32 place_in_list(u32 *size, const u32 votes[AT_ONCE]) {
  u32 count = 0, at = 0;
#pragma unroll
  for (u32 k = 0; k < AT_ONCE; k++) count += __popc(votes[k]);
  if (count == 0) return 0;
  if (in_warp() == 0) at = atomicAdd(size, count);
  return __shfl_sync(ALL, at, 0);
}

/* Lists the frame's tokens from `window` on whose states are marked, numbered from there.
 * EPSILONS: only tokens with epsilon arcs, which an earlier pass has gathered if there was room.
 * Called by the whole block, with a barrier before and after. */
template <class POLICY, int RANKS>
template <bool EPSILONS>
__device__ u32 searcher<POLICY, RANKS>::list_tokens(u32 window, u32 end, u32 turn) {
  constexpr u32 AT_ONCE = 4;
  backward_work &work = memory::work();
  const u32 size = min(WINDOW, end - window);
  uint16_t *list = memory::list_at(p->lattices.backward_bits);
  const u32 *marks = memory::marks_at(turn, p->lattices.backward_bits);
  if (window > 0) {
    __syncthreads(); /* no thread still reads the old list */
    if (tid() == 0) work.num_listed = 0;
    __syncthreads();
  }
  const bool all = work.marks[turn].all != 0, gathered = EPSILONS && has_gathered(),
             gathers = !EPSILONS && p->graph.has_epsilons;
  const u32 below = (1u << in_warp()) - 1;
  for (u32 base = warp() * 32; base < size; base += BACK_THREADS * AT_ONCE) {
    uint2 token[AT_ONCE];
    u32 votes[AT_ONCE], others[AT_ONCE];
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      const u32 i = base + k * BACK_THREADS + in_warp();
      token[k] = i >= size  ? make_uint2(0, 0)
                 : gathered ? gathered_tokens()[window + i]
                            : __ldg(trace() + place_of_token(window + i));
    }
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      const u32 i = base + k * BACK_THREADS + in_warp(), mark = mark_of(token[k].x);
      const bool has = i < size && (gathered || (token[k].y & WITH_EPSILONS) != 0);
      const bool taken = i < size && (!EPSILONS || has) &&
                         (all || (marks[mark >> 5] >> (mark & 31) & 1) != 0 ||
                          is_added(token[k].x) || is_wide(token[k].x));
      votes[k] = __ballot_sync(ALL, taken);
      others[k] = gathers ? __ballot_sync(ALL, has) : 0;
    }
    u32 at = place_in_list<AT_ONCE>(&work.num_listed, votes);
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      if (votes[k] >> in_warp() & 1)
        list[at + __popc(votes[k] & below)] = (uint16_t)(base + k * BACK_THREADS + in_warp());
      at += __popc(votes[k]);
    }
    at = place_in_list<AT_ONCE>(&work.num_gathered, others);
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      const u32 place = at + __popc(others[k] & below);
      if ((others[k] >> in_warp() & 1) != 0 && place < MOST_GATHERED)
        gathered_tokens()[place] =
            make_uint2(token[k].x, window + base + k * BACK_THREADS + in_warp());
      at += __popc(others[k]);
    }
    __syncwarp();
  }
  __syncthreads();
  return work.num_listed;
}

/* Lists the frame's tokens, as list_tokens, and calls take(live, token) for them, without `info`,
 * by whole warps. */
template <class POLICY, int RANKS>
template <bool EPSILONS, typename F>
__device__ __forceinline__ void searcher<POLICY, RANKS>::for_listed(u32 turn, F take) {
  const uint16_t *list = memory::list_at(p->lattices.backward_bits);
  const bool gathered = EPSILONS && has_gathered();
  const u32 end = gathered ? memory::work().num_gathered : memory::work().ends[RANKS - 1];
  for (u32 window = 0; window < end; window += WINDOW) {
    const u32 count = list_tokens<EPSILONS>(window, end, turn),
              grain = min(32u, (count + BACK_WARPS - 1) / BACK_WARPS);
    mark(EPSILONS ? 2 : 6);
    for (u32 base = warp() * grain; base < count; base += BACK_WARPS * grain) {
      const bool live = in_warp() < grain && base + in_warp() < count;
      back_token token = {0, 0, 0, make_uint4(0, 0, 0, 0), 0};
      if (live) {
        const u32 i = window + list[base + in_warp()];
        const u64 at = place_of_token(gathered ? gathered_tokens()[i].y : i);
        token.state = __ldg(trace() + at).x;
        token.cost = __ldg(past() + at).x;
        token.context = context_at(contexts() + at);
      }
      take(live, token);
    }
  }
}

/* --- arcs to the next tokens -------------------------------------------------------------- */

/* The arcs of a wide state over the listed columns, and those for blank and held token, in order:
 * take(live, number, arc), by a whole warp. */
template <class POLICY, int RANKS>
template <typename F>
__device__ __forceinline__ void searcher<POLICY, RANKS>::for_arcs_of_held(u32 state, F take) {
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0],
            number = __ldg(states() + state).x, size = own().num_wide_sources;
  const uint4 wide = __ldg((const uint4 *)p->graph.wide_states + (state - p->graph.first_wide));
  const uint4 *const run = arcs() + wide.x;
  for (u32 first = 0; first <= size; first += 32) {
    const u32 i = first + in_warp(), column = i < size ? columns()[i] : ALL;
    u32 at = wide.y, end = wide.y; /* places of the arcs of this thread's column */
    if (i == size) end += wide.z == ALL ? 1 : 2;
    if (i < size && column != wide.z) at = end = first_of_column(run, wide.y, column);
    while (i < size && end < wide.y && column != wide.z && __ldg(run + end).z == column) end++;
    arc_share<POLICY> share(arc_ranges, in_warp(), at, end - at, 0);
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 place;
      float zero;
      u64 none;
      share.at(k0, in_warp(), &place, &zero, &none);
      const bool live = k0 + in_warp() < share.total;
      uint4 arc = make_uint4(0, 0, 0, 0);
      if (live) arc = __ldg(place < wide.y ? run + place : arcs() + wide.w + (place - wide.y));
      take(live, number + place, arc);
      __syncwarp();
    }
  }
}

/* Follows the consuming arcs of a warp's tokens of frame `number` to tokens of the next frame in
 * `table`. Tokens within the beam are put into `before`, and the arcs are staged. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::take_emitting(const back_token &token, u32 number,
                                                       const backward_table &table,
                                                       const backward_table &before) {
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  const float best = records()[number].best;
  const u64 last = records()[number + 1].last,
            last_context = SCORED ? records()[number + 1].last_context : 0;
  const uint16_t *ranks = memory::ranks_at(p->lattices.backward_bits);
  /* Takes an arc of the token of the thread `from`. */
  auto take = [&](bool live, u32 a, uint4 arc, int from) {
    u32 to_rank = 0, slot = ALL;
    float extra_cost = INFINITY, score = 0;
    const u32 source = __shfl_sync(ALL, token.state, from);
    const float source_cost = __shfl_sync(ALL, token.cost, from);
    const u64 source_context = SCORED ? __shfl_sync(ALL, token.context, from) : 0;
    if (live) {
      const u32 to = arc.x & 0x7fffffffu;
      u64 to_context = source_context;
      float candidate = __fadd_rn(__fsub_rn(source_cost, best), __uint_as_float(arc.y));
      if (arc.w != 0) candidate = __fsub_rn(candidate, p->rules.word_score);
      const bool in_table = table.may_have(to);
      if constexpr (SCORED)
        if (in_table && arc.w != 0) candidate = word_cost(arc.w, candidate, &to_context);
      const u32 target = in_table ? table.find(key_of(to, to_context)) : ALL;
      if (target != ALL) {
        score = penalised(loglike(row_of(row_frame), arc.z), arc.z);
        candidate = __fadd_rn(candidate, cost_of_score(score));
        to_rank = ranks[target];
        if (candidate <= FLT_MAX &&
            is_up_to((u64)ordered(candidate) << 32 | a, source_context, last, last_context))
          extra_cost = table.extra_cost_over(target, candidate, p->rules.lattice_beam);
      }
    }
    if (extra_cost <= p->rules.lattice_beam)
      slot = before.put(source, key_of(source, source_context), source_cost, extra_cost);
    __syncwarp();
    stage_links(slot != ALL, slot, to_rank, a, __float_as_uint(score));
  };
  const bool wide = token.info.y > token.info.x && is_wide(token.state);
  arc_share<POLICY> share(arc_ranges, in_warp(), token.info.x,
                          wide ? 0 : token.info.y - token.info.x, __uint_as_float(in_warp()));
  for (u32 k0 = 0; k0 < share.total; k0 += 32) {
    u32 a;
    float who;
    u64 none;
    share.at(k0, in_warp(), &a, &who, &none);
    const bool live = k0 + in_warp() < share.total;
    take(live, a, live ? arc_at(arcs(), a) : make_uint4(0, 0, 0, 0),
         (int)(__float_as_uint(who) & 31));
  }
  if (!has_wide()) return;
  for (u32 left = __ballot_sync(ALL, wide); left != 0; left &= left - 1) {
    const int from = __ffs(left) - 1;
    for_arcs_of_held(__shfl_sync(ALL, token.state, from),
                     [&](bool live, u32 a, uint4 arc) { take(live, a, arc, from); });
  }
}

/* The same for the epsilon arcs within frame `number`, once. OUT: extra costs are final, and the
 * arcs are staged. */
template <class POLICY, int RANKS>
template <bool OUT>
__device__ void searcher<POLICY, RANKS>::take_epsilons(const back_token &token, u32 number,
                                                       const backward_table &table) {
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  const float cutoff = cost_of((u32)(records()[number].last >> 32));
  arc_share<POLICY> share(arc_ranges, in_warp(), token.info.y, token.info.z - token.info.y,
                          __uint_as_float(in_warp()));
  for (u32 k0 = 0; k0 < share.total; k0 += 32) {
    u32 a, to = 0, target = ALL;
    float who, extra_cost = INFINITY;
    u64 none;
    share.at(k0, in_warp(), &a, &who, &none);
    const int from = (int)(__float_as_uint(who) & 31);
    const u32 source = __shfl_sync(ALL, token.state, from),
              slot = OUT ? __shfl_sync(ALL, token.slot, from) : 0;
    const float source_cost = __shfl_sync(ALL, token.cost, from);
    const u64 source_context = SCORED ? __shfl_sync(ALL, token.context, from) : 0;
    u64 to_context = source_context;
    if (k0 + in_warp() < share.total) {
      const uint4 arc = arc_at(arcs(), a);
      to = arc.x & 0x7fffffffu;
      float candidate = __fadd_rn(source_cost, __uint_as_float(arc.y));
      if (arc.w != 0) candidate = __fsub_rn(candidate, p->rules.word_score);
      const bool in_table = table.may_have(to);
      if constexpr (SCORED)
        if (in_table && arc.w != 0) candidate = word_cost(arc.w, candidate, &to_context);
      if (in_table && candidate <= cutoff) target = table.find(key_of(to, to_context));
      if (target != ALL)
        extra_cost = table.extra_cost_over(target, candidate, p->rules.lattice_beam);
    }
    __syncwarp();
    const bool live = leads_on(extra_cost <= p->rules.lattice_beam, source, source_context, to,
                               to_context, number);
    if (OUT && live) memory::work().any_epsilons = 1;
    if (OUT)
      stage_links(live, slot, target | IN_FRAME, a, 0);
    else if (live)
      table.put(source, key_of(source, source_context), source_cost, extra_cost);
    __syncwarp();
  }
}

/* Context of a token of any rank's trace. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u64
searcher<POLICY, RANKS>::context_at(const ulonglong2 *contexts) const {
  return SCORED ? __ldg((const u64 *)contexts) : 0;
}

/* Lists the columns of the tokens that the table's states hold, in order. By the whole block, with
 * a barrier before and after. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::list_held(const backward_table &table) {
  u32 *const seen = columns_seen(), *const listed = columns();
  const u32 size = *table.size, words = (u32)p->graph.num_columns / 32 + 1,
            grain = (words + BACK_THREADS - 1) / BACK_THREADS, first = min(tid() * grain, words),
            end = min(first + grain, words);
  for (u32 i = tid(); i < size; i += BACK_THREADS) {
    const u32 state = state_of(table.keys[table.places[i]]),
              column = is_added(state) ? ALL : __ldg(p->graph.held_columns + state);
    if (column != ALL) atomicOr(&seen[column >> 5], 1u << (column & 31));
  }
  __syncthreads();
  u32 mine = 0;
  for (u32 word = first; word < end; word++) mine += __popc(__ldcg(seen + word));
  u32 upto = mine;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const u32 x = __shfl_up_sync(ALL, upto, d);
    if (in_warp() >= d) upto += x;
  }
  if (in_warp() == 31) own().warp_counts[warp()] = upto;
  __syncthreads();
  u32 place = upto - mine + warp_sum(in_warp() < warp() ? own().warp_counts[in_warp()] : 0);
  for (u32 word = first; word < end; word++) {
    for (u32 bits = __ldcg(seen + word); bits != 0; bits &= bits - 1)
      listed[place++] = word * 32 + (u32)__ffs(bits) - 1;
    seen[word] = 0;
  }
  if (tid() == BACK_THREADS - 1) own().num_wide_sources = place;
  __syncthreads();
}

/* From the tokens of frame `number`, which is open, to those of the next in `table`; puts tokens
 * within the beam into `before`. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::step_back(u32 number, const backward_table &table,
                                                   const backward_table &before) {
  const wf__lane_frame here = records()[number];
  if (has_wide()) list_held(table);
  for_listed<false>(0, [&](bool live, back_token &token) {
    if (live && is_up_to((u64)ordered(__fsub_rn(token.cost, here.best)) << 32 | token.state,
                         token.context, here.select, here.select_context))
      token.info = state_at(states(), token.state);
    take_emitting(token, number, table, before);
  });
}

/* Relaxes the epsilon arcs of the marked tokens of frame `number`, which is open, once. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::relax_back(u32 number, const backward_table &table,
                                                    u32 turn) {
  const u32 highest = memory::work().bound;
  const float beam = p->rules.lattice_beam, cost_bound = cost_of(highest),
              bound = highest == 0
                          ? -INFINITY
                          : cost_bound + beam + (fabsf(cost_bound) + beam) * (1.0f / (1 << 18));
  for_listed<true>(turn, [&](bool live, back_token &token) {
    if (live && least_candidate(token.cost, 1) <= bound)
      token.info = state_at(states(), token.state);
    take_epsilons<false>(token, number, table);
  });
}

/* Stages the epsilon arcs within frame `number` between tokens of the table, whose extra costs
 * are final. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::stage_epsilons(u32 number, const backward_table &table) {
  const u32 bits = p->lattices.backward_bits, size = *table.size,
            grain = min(32u, (size + BACK_WARPS - 1) / BACK_WARPS);
  u32 *levels = memory::levels_at(bits);
  for (u32 base = warp() * grain; base < size; base += BACK_WARPS * grain) {
    back_token token = {0, 0, 0, make_uint4(0, 0, 0, 0), 0};
    if (in_warp() < grain && base + in_warp() < size) {
      token.slot = table.places[base + in_warp()];
      levels[token.slot] = 0;
      token.state = state_of(table.keys[token.slot]);
      token.context = context_of(table.keys[token.slot]);
      token.cost = table.costs[token.slot];
      token.info = state_at(states(), token.state);
    }
    take_epsilons<true>(token, number, table);
  }
}

/* Computes the extra costs of frame `number`, which is open, over its epsilon arcs, in rounds of
 * arcs to the tokens that the last round changed. These arcs make no cycle, so every order of
 * relaxing them gives the same costs. Then stages the arcs. Returns false if the rounds do not
 * end, which cannot happen. Called by the whole block, with barriers before and after. Bitmaps
 * of marks and news are empty, except those that the consuming arcs were marked in. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::close_table(u32 number, backward_table table) {
  const u32 bits = p->lattices.backward_bits;
  for (u32 round = 0;; round++) {
    const u32 now = round & 1, turn = now ^ 1; /* consuming arcs used buffer 0 */
    if (round > most_rounds()) return false;
    memory::clear_marks(turn ^ 1, bits);
    mark_sources<true>(table, round > 0 ? memory::news_at(now ^ 1, bits) : NULL, turn);
    mark(1);
    if (memory::work().marks[turn].any == 0) break;
    memory::clear_news(now ^ 1, bits);
    table.news = memory::news_at(now, bits);
    table.any_news = &memory::work().any_news[now];
    relax_back(number, table, turn);
    __syncthreads();
    mark(3);
    if (memory::work().any_news[now] == 0) break;
  }
  table.news = NULL;
  stage_epsilons(number, table);
  return true;
}

/* --- the pass ---------------------------------------------------------------------------- */

/* Takes the tokens of the newest frame, which is open, that may be the end; their extra costs
 * are the costs of ending. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::take_endings(u32 number, const backward_table &table) {
  const u32 size = memory::work().ends[RANKS - 1];
  for (u32 base = warp() * 32; base < size; base += BACK_THREADS) {
    const u32 i = base + in_warp();
    const u64 at = i < size ? place_of_token(i) : 0;
    const float2 known = i < size ? __ldg(past() + at) : make_float2(0, INFINITY);
    const bool ends = known.y <= p->rules.lattice_beam;
    const u32 state = ends ? __ldg(trace() + at).x : 0;
    const u64 context = ends ? context_at(contexts() + at) : 0;
    const u32 slot = ends ? table.put(state, key_of(state, context), known.x, known.y) : ALL;
    __syncwarp();
    stage_links(slot != ALL, slot, 0, WF__LANE_ENDING, state);
  }
}

/* Makes both tables empty. By the whole block. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::create_tables() {
  const u32 bits = p->lattices.backward_bits;
  for (u32 which = 0; which < 2; which++) memory::table_at(which, bits).create();
  for (u32 i = tid(); i < 1u << bits; i += BACK_THREADS) memory::counts_at(bits)[i] = 0;
}

/* Makes room for the tokens of frame `number`, and their arcs. `behind` has the tokens of the next
 * frame, whose arcs are written. By the whole block; a barrier follows, and then the table's size
 * must be set to 0. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::clear_for(u32 number, const backward_table &table,
                                                   const backward_table &behind) {
  const u32 bits = p->lattices.backward_bits, size = *behind.size;
  table.clear();
  for (u32 i = tid(); i < size; i += BACK_THREADS) memory::counts_at(bits)[behind.places[i]] = 0;
  for (u32 turn = 0; turn < 2; turn++) {
    memory::clear_marks(turn, bits);
    memory::clear_news(turn, bits);
  }
  if (tid() < BINS) memory::bin_sums()[tid()] = memory::bin_heads()[tid()] = 0;
  if (tid() == 0)
    memory::work().bound = memory::work().num_staged = memory::work().any_epsilons =
        memory::work().num_gathered = 0;
  open_frame(number);
}

/* Saves the tokens of frame `number`, whose arcs are written, so that a pass with larger tables can
 * go on from there; number == frame: there is none. `row`: of the scores that the arcs to these
 * tokens' successors read. By the whole block. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::save_frame(u32 number, u32 row,
                                                    const backward_table &table) {
  const backward_work &work = memory::work();
  const u32 size = number < frame ? *table.size : 0;
  const uint16_t *ranks = memory::ranks_at(p->lattices.backward_bits);
  uint4 *saved = staged();
  if (tid() == 0) {
    saved[0] = make_uint4(number, row, size, 0);
    saved[1] = make_uint4(work.page, work.fill, work.num_states, work.num_links);
  }
  for (u32 i = tid(); i < size; i += BACK_THREADS) {
    const u32 slot = table.places[i];
    const u64 key = table.keys[slot];
    saved[2 + 2 * i] = make_uint4((u32)key, (u32)(key >> 32), __float_as_uint(table.costs[slot]),
                                  (u32)table.extra_costs[slot]);
    saved[3 + 2 * i] = make_uint4(ranks[slot], 0, 0, 0);
  }
}

/* Continues after a pass with smaller tables. *number: the last frame whose arcs are written; its
 * tokens are put into the table. Returns false if there is none. By the whole block. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::restore_frame(u32 *number, const backward_table &table) {
  backward_work &work = memory::work();
  const uint4 head = staged()[0], counts = staged()[1];
  if (head.x == frame) return false;
  if (tid() == 0) {
    work.page = counts.x;
    work.fill = counts.y;
    work.num_states = counts.z;
    work.num_links = counts.w;
  }
  for (u32 i = tid(); i < head.z; i += BACK_THREADS) {
    const uint4 token = staged()[2 + 2 * i];
    const token_key key = (token_key)((u64)token.y << 32 | token.x);
    const u32 slot =
        table.put(state_of(key), key, __uint_as_float(token.z), __int_as_float((int)token.w));
    memory::ranks_at(p->lattices.backward_bits)[slot] = (uint16_t)staged()[3 + 2 * i].x;
  }
  *number = head.x;
  row_frame = head.y;
  __syncthreads();
  return true;
}

/* Writes the lattice to pages. Returns false if a frame has more tokens within the beam than a
 * table holds, pages run out, or the host cancels. `resumes`: goes on where smaller tables were
 * full. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::run_backward(bool resumes) {
  backward_work &work = memory::work();
  const u32 bits = p->lattices.backward_bits;
  u32 which = 0, number = frame - 1, row_behind = 0;
  if (tid() == 0) {
    work.page = NO_PAGE;
    work.fill = work.num_states = work.num_links = work.no_room = work.no_pages = work.full = 0;
  }
  create_tables();
  for (u32 i = tid(); has_wide() && i <= (u32)p->graph.num_columns / 32; i += BACK_THREADS)
    columns_seen()[i] = 0;
  __syncthreads();
  bool written = resumes && restore_frame(&number, memory::table_at(0, bits));
  if (written)
    clear_for(number - 1, memory::table_at(1, bits), memory::table_at(0, bits));
  else
    clear_for(number, memory::table_at(0, bits), memory::table_at(1, bits));
  __syncthreads();
  if (!written) take_endings(number, memory::table_at(0, bits));
  for (;; number--, written = false) {
    const backward_table table = memory::table_at(which, bits),
                         before = memory::table_at(which ^ 1, bits);
    if (!written) {
      if (tid() == 0) {
        work.gathers = number + 1 < frame;
        if ((frame - 1 - number) % 64 == 0 && p->work.stop != nullptr)
          own().stopped = *(const volatile u32 *)p->work.stop; /* reads of host memory are slow */
      }
      __syncthreads(); /* the table is complete */
      mark(0);
      if (own().stopped != 0) return false;
      const bool closed = !p->graph.has_epsilons || close_table(number, table);
      __syncthreads(); /* the arcs are written */
      mark(4);
      if (!closed || !put_frame(number, table, [&] {
            if (number > 0) clear_for(number - 1, before, table);
          })) {
        if (work.full != 0) save_frame(number + 1, row_behind, before);
        return false;
      }
      mark(5);
      if (number == 0) break;
      if (tid() == 0) *before.size = 0;
    }
    row_behind = row_frame;
    row_frame = row_before(row_frame);
    mark_sources<false>(table, NULL, 0);
    mark(7);
    step_back(number - 1, table, before);
    which ^= 1;
  }
  close_page();
  return true;
}

/* For the utterances whose lattice is `wanted` (WF__LANE_OK: all that were searched;
 * WF__LANE_LARGE_LATTICE, WF__LANE_GLOBAL_LATTICE: those that did not fit smaller tables). */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::make_lattice(int wanted) {
  if (tid() == 0) {
    own().utterance = p->work.order[blockIdx.x / RANKS];
    own().scores = p->work.utterances[own().utterance];
    own().stopped = 0;
  }
  __syncthreads();
  wf__lane_outcome *outcome = &p->work.outcomes[own().utterance];
  if (outcome->status != wanted) return;
  __syncthreads(); /* all threads have read it */
  if constexpr (SCORED) load_scorer();
  if constexpr (POLICY::BACKWARD_GLOBAL) {
    if (tid() == 0)
      memory::work().global_tables =
          (char *)p->lattices.global_tables + GLOBAL_HEAD +
          (u64)atomicAdd((u32 *)p->lattices.global_tables, 1u) * memory::global_bytes();
    __syncthreads();
  }
  frame = records()[0].pruned_frames;
  row_frame = (u32)outcome->num_decoded;
  begin_marks();
  const bool fits = run_backward(wanted != WF__LANE_OK);
  __syncthreads();
  if (tid() != 0) return;
  outcome->last_page = memory::work().page + 1;
  outcome->num_states = memory::work().num_states;
  outcome->num_links = memory::work().num_links;
  outcome->status = own().stopped != 0                 ? WF__LANE_STOPPED
                    : fits                             ? WF__LANE_OK
                    : memory::work().full == 0         ? WF__LANE_NO_ROOM
                    : wanted == WF__LANE_OK            ? WF__LANE_LARGE_LATTICE
                    : wanted == WF__LANE_LARGE_LATTICE ? WF__LANE_GLOBAL_LATTICE
                                                       : WF__LANE_NO_ROOM;
#ifdef WF_LANE_PROFILE
  const double n = frame;
  const long long *c = own().phase;
  if (blockIdx.x == 0)
    printf(
        "way back of %u frames, a frame: %.1f tokens, %.1f arcs; cycles: mark %.0f list %.0f take "
        "%.0f; epsilons: mark %.0f list %.0f take %.0f stage %.0f; out %.0f\n",
        frame, memory::work().num_states / n, memory::work().num_links / n, c[7] / n, c[6] / n,
        c[0] / n, c[1] / n, c[2] / n, c[3] / n, c[4] / n, c[5] / n);
#endif
}

template <class POLICY, int RANKS>
__global__ void __launch_bounds__(BACK_THREADS, 2)
    backward_kernel(const __grid_constant__ wf__lane_params p, int wanted) {
  if constexpr (RANKS == 1 || WF__HAS_CLUSTERS) {
    if (blockIdx.x % RANKS != 0)
      return; /* blocks have the numbers of the search's blocks, because they use the same memory */
    searcher<POLICY, RANKS> s(&p);
    s.make_lattice(wanted);
  }
}

}  // namespace wf_search

#endif
