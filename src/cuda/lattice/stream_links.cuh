/* stream_links.cuh - the part of the raw lattice (docs/reference/semantics.md, "Lattice") that a
 * chunk of a stream adds, found after the chunk has been searched.
 *
 * Every token of the newest frame is treated as an end. Backward over the chunk's frames, arcs
 * are expanded again with the arithmetic of the search, and their targets are looked up in the
 * trace; this gives each token's extra cost, that of the best path through it above the best
 * path of all. Tokens beyond the beam stay beyond it. The others are emitted to the host: tokens
 * as back-pointers (stream_ends.cuh), links between them by their numbers. The host keeps the
 * history, and later chunks prune it further.
 *
 *   past   {cost, extra cost} of every token beside the trace; extra costs are minima, kept as
 *          ordered integers, so the result does not depend on the order of threads */
#ifndef WF_CUDA_LATTICE_STREAM_LINKS_CUH
#define WF_CUDA_LATTICE_STREAM_LINKS_CUH

#include "cuda/search/searcher.cuh"

namespace wf_search {

/* A candidate for a token of frame `number`, by one thread: its cost above that token's, and with
 * that token's extra cost. */
template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::extra_cost_of(float candidate, u32 state, u64 context,
                                                        u32 number, link_end *to,
                                                        float *excess) const {
  to->place = locate(state, context, number, &to->rank);
  if (to->place == ALL) return INFINITY;
  const float2 target =
      __ldcg(past() + ((int64_t)to->rank - l.rank()) * p->memory.trace_cap + to->place);
  *excess = candidate > target.x ? __fsub_rn(candidate, target.x) : 0;
  return __fadd_rn(*excess, target.y);
}

/* Epsilon arcs that a token of frame `number` came over; by one thread. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::epsilons_behind(u32 state, u64 context, u32 number) const {
  for (u32 depth = 0;; depth++) {
    u32 owner;
    const u32 at = locate(state, context, number, &owner);
    const int64_t part = ((int64_t)owner - l.rank()) * p->memory.trace_cap;
    const u32 arc = __ldcg(trace() + part + at).y;
    if (arc == NO_ARC || depth > most_rounds()) return depth;
    const u32 source = source_by_thread(arc & ~FOLLOWED);
    if ((source & WF__LANE_EPSILON) == 0) return depth;
    state = source & ~WF__LANE_EPSILON;
    if (SCORED) context = __ldcg((const u64 *)(contexts() + part + at) + 1);
  }
}

/* May an epsilon arc between these tokens of a frame be in a lattice, which has no cycles? */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::may_link(u32 from, u64 from_context, u32 to,
                                                  u64 to_context, u32 number) const {
  if (p->graph.components == NULL || is_added(from) || is_added(to) ||
      __ldg(p->graph.components + from) != __ldg(p->graph.components + to))
    return true;
  return epsilons_behind(from, from_context, number) < epsilons_behind(to, to_context, number);
}

/* The host's number of a token of frame `number`. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::emitted_number(link_end token, u32 number) const {
  if (number == 0 && resumes())
    return __ldcg(
               &(trace() + ((int64_t)token.rank - l.rank()) * p->memory.trace_cap)[token.place].y) |
           WF__LANE_OLD;
  return number_of(token.rank, token.place, number);
}

/* Emits the links of the live threads of a warp, from this block's tokens at `from`; the lane's
 * room begins at `off`. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::put_chunk_links(bool live, u64 off, u32 from,
                                                         u32 from_frame, link_end to, u32 to_frame,
                                                         u32 arc, float score, float excess) {
  const u32 votes = __ballot_sync(ALL, live);
  u32 first = 0;
  if (in_warp() == 0 && votes != 0) first = atomicAdd(&l.of(0).num_near, (u32)__popc(votes));
  first = __shfl_sync(ALL, first, 0);
  if (live)
    p->streams.chunk_links[off + first + __popc(votes & ((1u << in_warp()) - 1))] =
        wf__lane_chunk_link{emitted_number({l.rank(), from}, from_frame),
                            emitted_number(to, to_frame),
                            arc,
                            score,
                            excess,
                            0};
  __syncwarp();
}

/* Relaxes the arcs from the tokens of frame `number`: consuming arcs, which lead to the next
 * frame, or epsilon arcs, which stay in it. OUT: emits the links within the beam from `off` on.
 * Otherwise lowers extra costs and adds to *count this thread's links within the beam. Returns
 * true if an extra cost has changed. */
template <class POLICY, int RANKS>
template <bool EPSILONS, bool OUT>
__device__ bool searcher<POLICY, RANKS>::pass_links(u32 number, u64 off, u32 *count) {
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first,
            target = EPSILONS ? number : number + 1;
  const wf__lane_frame *const here = records() + number, *const next = records() + target;
  const float best = EPSILONS ? 0 : __ldcg(&here->best), beam = p->rules.lattice_beam;
  const u64 select = __ldcg((const u64 *)&here->select),
            select_context = __ldcg((const u64 *)&here->select_context);
  const u64 last = __ldcg((const u64 *)&next->last),
            last_context = __ldcg((const u64 *)&next->last_context);
  const u32 row = EPSILONS ? 0 : __ldcg(rows() + target),
            grain = min(32u, (size + WARPS - 1) / WARPS);
  bool changed = false;
  if (!EPSILONS) {
    __syncthreads(); /* no thread still reads the old row */
    load_row(row);
    finish_row();
    __syncthreads();
    if (has_wide()) list_columns_again(last, least_of_block(least_of_columns()));
  }
  /* Relaxes or emits an arc from the token at i. */
  auto pass = [&](bool live, u32 a, uint4 arc, u32 i) {
    float excess = 0, score = 0;
    link_end to = {0, 0};
    if (live) {
      const u32 next_state = arc.x & 0x7fffffffu;
      const u64 from = traced_context(i);
      u64 context = from;
      float candidate = __ldcg(past() + i).x;
      if (!EPSILONS) candidate = __fsub_rn(candidate, best);
      candidate = __fadd_rn(candidate, __uint_as_float(arc.y));
      if (arc.w != 0) candidate = __fsub_rn(candidate, p->rules.word_score);
      if constexpr (SCORED)
        if (arc.w != 0) candidate = word_cost(arc.w, candidate, &context);
      if (!EPSILONS) candidate = __fadd_rn(candidate, label_cost(arc.z));
      if (EPSILONS)
        live = candidate <= cost_of((u32)(last >> 32));
      else
        live = candidate <= FLT_MAX &&
               is_up_to((u64)ordered(candidate) << 32 | a, from, last, last_context);
      float extra_cost = INFINITY;
      if (live) extra_cost = extra_cost_of(candidate, next_state, context, target, &to, &excess);
      live = extra_cost <= beam && (!EPSILONS || may_link(__ldcg(trace() + i).x & ~MARKED, from,
                                                          next_state, context, number));
      if (!EPSILONS && live) score = penalised(loglike(row_of(row), arc.z), arc.z);
      if (!OUT && live) {
        const int was =
            atomicMin((int *)&past()[i].y,
                      __float_as_int(extra_cost)); /* never negative, so the bits are ordered */
        changed = changed || __int_as_float(was) > extra_cost;
        ++*count;
      }
    }
    __syncwarp();
    if (OUT) put_chunk_links(live, off, i, number, to, target, a, score, excess);
  };
  for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
    const u32 mine = base + in_warp();
    uint4 info = make_uint4(0, 0, 0, 0);
    float cost = INFINITY;
    u32 state = 0;
    bool wide = false;
    if (in_warp() < grain && mine < size) {
      const float2 known = __ldcg(past() + first + mine);
      state = __ldcg(trace() + first + mine).x & ~MARKED;
      cost = __fsub_rn(known.x, best);
      const bool selected =
          EPSILONS || is_up_to((u64)ordered(cost) << 32 | state, traced_context(first + mine),
                               select, select_context);
      if (selected && (!OUT || known.y <= beam)) {
        wide = is_wide(state); /* these have no epsilon arcs */
        if (!wide) info = state_at(states(), state);
      }
      if (EPSILONS) info.x = info.y, info.y = info.z;
    }
    arc_share<POLICY> share(arc_ranges, in_warp(), info.x, info.y - info.x, __uint_as_float(mine));
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 a;
      float which;
      u64 none;
      share.at(k0, in_warp(), &a, &which, &none);
      const bool live = k0 + in_warp() < share.total;
      pass(live, a, live ? arc_at(arcs(), a) : make_uint4(0, 0, 0, 0),
           first + __float_as_uint(which));
    }
    if (!EPSILONS && has_wide())
      for_wide_of_warp(wide, state, cost, [&](bool live, u32 a, uint4 arc, int who) {
        pass(live, a, arc, first + base + (u32)who);
      });
  }
  return changed;
}

/* Computes the extra costs of the chunk's tokens and marks those within the beam. Returns the
 * number of links. `first`: the first frame of the chunk's tokens. */
template <class POLICY, int RANKS>
__device__ __noinline__ u32 searcher<POLICY, RANKS>::find_chunk_links(u32 first) {
  u32 count = 0;
  for (u32 number = frame - 1;; number--) {
    u32 links = 0;
    for (bool again = p->graph.has_epsilons != 0;
         again;) { /* these arcs make no cycle, so every order of relaxing them ends with the same
                      costs */
      links = 0;
      again = l.sum(pass_links<true, false>(number, 0, &links)) != 0;
      l.sync();
    }
    count += links;
    if (number == 0) break;
    const u32 begin = frame_off()[number - 1], end = frame_off()[number];
    for (u32 i = begin + tid(); i < end; i += THREADS) past()[i].y = INFINITY;
    __syncthreads();
    pass_links<false, false>(number - 1, 0, &count);
    l.sync(); /* extra costs are complete */
    if (number == first) break;
  }
  for (u32 i = frame_off()[first] + tid(); i < frame_off()[frame - 1]; i += THREADS)
    if (__ldcg(past() + i).y <= p->rules.lattice_beam) trace()[i].x |= MARKED;
  l.sync();
  return (u32)l.sum(count);
}

/* Emits the links to the host, from `off` on. */
template <class POLICY, int RANKS>
__device__ __noinline__ void searcher<POLICY, RANKS>::emit_links(u32 first, u64 off) {
  if (l.rank() == 0 && tid() == 0) own().num_near = 0;
  l.sync();
  for (u32 number = first > 0 ? first - 1 : 0; number < frame; number++) {
    if (number >= first && p->graph.has_epsilons) pass_links<true, true>(number, off, NULL);
    if (number + 1 < frame) pass_links<false, true>(number, off, NULL);
  }
  __pipeline_wait_prior(0);
  l.sync();
}

}  // namespace wf_search

#endif
