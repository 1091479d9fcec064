/* compact_history.cuh - makes room in a full trace: drops tokens that no token of the newest
 * frame can be traced back to. Few tokens of old frames remain, so long audio needs little more
 * memory than its newest frames.
 *
 * Backward over the frames, tokens mark their predecessors (the mark is a bit of the state; a
 * bit of the arc says that it has been followed). Forward, the marked tokens are compacted, and
 * the frame's index is updated. All tokens of the newest frame stay.
 *
 * With lattices, tokens that may still be in one stay, too (prune_history.cuh), and their costs
 * move with them. */
#ifndef WF_CUDA_SEARCH_COMPACT_HISTORY_CUH
#define WF_CUDA_SEARCH_COMPACT_HISTORY_CUH

#include "cuda/search/searcher.cuh"

namespace wf_search {

constexpr u32 FOLLOWED =
    0x80000000u; /* a bit of an arc; NO_ARC, the start token's, always has it */

/* Source of an arc, both as in the trace: the last state whose first arc is at or before it. By one
 * warp, 32 probes a step. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::source_of(u32 arc) const {
  u64 context = 0;
  arc = split_pair(arc, &context);
  if constexpr (SCORED)
    if (is_added_arc(arc)) return added_source(arc) & ~WF__LANE_EPSILON;
  u32 low = 0, high = p->graph.num_states; /* first_arc[low] <= arc; first_arc[high] > arc */
  while (high - low > 1) {
    const u32 step = (high - low + 31) / 32, probe = low + step * in_warp();
    const bool before = probe < high && __ldg(states() + probe).x <= arc;
    const u32 last =
        31 - __clz(__ballot_sync(
                 ALL, before)); /* first arcs increase with the states, so the votes are a prefix */
    const u32 new_low = low + step * last;
    high = min(high, new_low + step);
    low = new_low;
  }
  return pair_of(low, (u32)context);
}

/* Place of the token of the state (and context) in the trace of a frame; by one warp. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::find_token(u32 state, u64 context, u32 number, u32 *owner) {
  const u32 bits = index()[(u64)number * WF__LANE_INDEX + WF__LANE_GROUPS];
  u32 slot;
  l.place_of(key_of_traced(state, context), bits, owner, &slot);
  int64_t parts = (int64_t)*owner - l.rank();
  const uint2 *tokens = trace() + parts * p->memory.trace_cap;
  const ulonglong2 *pairs = contexts() + parts * p->memory.trace_cap;
  const u32 *off = frame_off() + parts * (p->memory.frames_cap + 2);
  const uint16_t *groups = index() + parts * (int64_t)(p->memory.frames_cap + 1) * WF__LANE_INDEX +
                           (u64)number * WF__LANE_INDEX;
  u32 first = off[number], size = off[number + 1] - first,
      from = groups[slot >> (bits - WF__LANE_GROUP_BITS)];
  for (u32 seen = 0; seen < size + 32; seen += 32) {
    u32 at = from + seen + in_warp();
    if (at >= size) at -= size; /* probing wraps round the table */
    bool here =
        at < size && seen + in_warp() < size && (__ldcg(tokens + first + at).x & ~MARKED) == state;
    if (SCORED) here = here && is_same(__ldcg((const u64 *)(pairs + first + at)), context);
    u32 vote = __ballot_sync(ALL, here);
    if (vote != 0) return first + __shfl_sync(ALL, at, __ffs(vote) - 1);
  }
  return ALL; /* cannot happen */
}

/* Follows the arcs, not followed before, of this block's marked tokens of a frame (of all tokens
 * in the newest). Returns true if that marked a token of the same frame. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::follow_arcs(u32 number) {
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  bool again = false;
  for (u32 base = warp() * 32; base < size; base += THREADS) {
    const u32 i = base + in_warp();
    const uint2 token = i < size ? __ldcg(trace() + first + i) : make_uint2(0, NO_ARC);
    const bool follow =
        (number + 1 == frame || (token.x & MARKED) != 0) && (token.y & FOLLOWED) == 0;
    for (u32 left = __ballot_sync(ALL, follow); left != 0; left &= left - 1) {
      const u32 arc = __shfl_sync(ALL, token.y, __ffs(left) - 1);
      const bool emits = (int)any_arc_at(arc).z >= 0;
      u64 context = 0;
      if (SCORED) context = __ldcg((const u64 *)(contexts() + first + base + __ffs(left) - 1) + 1);
      u32 owner, at = find_token(source_of(arc), context, emits ? number - 1 : number, &owner),
                 was = MARKED;
      if (in_warp() == 0 && at != ALL)
        was =
            atomicOr(&(trace() + ((int64_t)owner - l.rank()) * p->memory.trace_cap)[at].x, MARKED);
      again = again || (!emits && (was & MARKED) == 0);
    }
    if (follow) trace()[first + i].y = token.y | FOLLOWED;
    __syncwarp();
  }
  return __any_sync(ALL, again);
}

/* Place of each live thread among those of the block, from *count on; *count is advanced past
 * them. Called by the whole block; a barrier must follow before the next use. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::place_in_block(bool live, u32 *count) {
  const u32 votes = __ballot_sync(ALL, live);
  if (in_warp() == 0) own().warp_counts[warp()] = __popc(votes);
  __syncthreads();
  const u32 others = in_warp() < WARPS ? own().warp_counts[in_warp()] : 0;
  const u32 place =
      *count + warp_sum(in_warp() < warp() ? others : 0) + __popc(votes & ((1u << in_warp()) - 1));
  *count += warp_sum(others);
  return place;
}

/* Moves this block's tokens of a frame (those that are marked or may be in the lattice, or all)
 * to `to` and updates the index. Returns their number. `first`, `size`: where they were. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::move_tokens(u32 number, bool all, u32 first, u32 size,
                                                    u32 to) {
  uint16_t *groups = index() + (u64)number * WF__LANE_INDEX, *kept_before = &own().frontier[0][0];
  static_assert(sizeof own().frontier / sizeof(uint16_t) >= THREADS,
                "both rows are one array here");
  const u32 group = tid() < WF__LANE_GROUPS ? groups[tid()] : ALL;
  u32 count = 0;
  for (u32 base = 0; base < size; base += THREADS) {
    const u32 i = base + tid();
    const uint2 token = i < size ? __ldcg(trace() + first + i) : make_uint2(0, 0);
    const float2 known =
        keeps_lattice() && i < size ? __ldcg(past() + first + i) : make_float2(0, 0);
    const bool kept =
        i < size &&
        (all || (keeps_lattice() ? known.y <= p->rules.lattice_beam : (token.x & MARKED) != 0));
    ulonglong2 pair = make_ulonglong2(0, 0);
    if (SCORED && kept) pair = contexts()[first + i];
    const u32 place = place_in_block(kept, &count);
    kept_before[tid()] = (uint16_t)place;
    if (kept)
      trace()[to + place] = make_uint2(
          token.x & ~MARKED, keeps_lattice() || token.y == NO_ARC ? token.y : token.y & ~FOLLOWED);
    if (kept && keeps_lattice()) past()[to + place] = known;
    if (SCORED && kept) contexts()[to + place] = pair;
    __syncthreads();
    if (group != ALL && group - base < THREADS && group < size)
      groups[tid()] = kept_before[group - base];
    __syncthreads();
  }
  if (group != ALL && group >= size) groups[tid()] = (uint16_t)count;
  return count;
}

/* Compacts the frames from `from` on. Returns false if so many tokens remain that the trace would
 * soon be full again. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::slide(u32 from) {
  u32 first = frame_off()[from], to = first;
  __syncthreads(); /* all threads have read it */
  for (u32 number = from; number < frame; number++) {
    const u32 end = frame_off()[number + 1];
    const u32 count = move_tokens(number, number + 1 == frame, first, end - first, to);
    __syncthreads(); /* all threads have read where the frame ends */
    if (tid() == 0) frame_off()[number] = to;
    first = end;
    to += count;
  }
  if (tid() == 0) frame_off()[frame] = to;
  trace_used = to;
  l.sync();
  return l.sum(tid() == 0 && to > p->memory.trace_room - p->memory.trace_room / 8) == 0;
}

/* Makes room for `total` tokens of this rank. */
template <class POLICY, int RANKS>
__device__ __noinline__ bool searcher<POLICY, RANKS>::collect(u32 total) {
  l.sync();
  for (u32 number = frame; number-- > 0;) {
    bool again = number > 0 || !resumes(); /* the tokens that a chunk began with have no arcs */
    while (again) {
      again = l.sum(follow_arcs(number)) != 0;
      l.sync(); /* marks are complete */
    }
  }
  return slide(0) && l.sum(tid() == 0 && trace_used + total > p->memory.trace_cap) == 0;
}

}  // namespace wf_search

#endif
