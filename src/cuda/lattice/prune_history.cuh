/* prune_history.cuh - makes room in a full trace during a search with a raw lattice
 * (docs/reference/semantics.md, "Lattice"). The lattice itself is made after the search
 * (backward.cuh).
 *
 * Tokens keep their costs. prune() runs between two frames. It goes backward from the newest
 * frame, as if each of its tokens were an end, to a frame in which nothing has changed since the
 * last time. Tokens beyond the beam would be beyond it at the end, too, and are dropped. Arcs
 * between the remaining tokens are found again at the end, so only tokens are kept.
 *
 *   table   tokens of frame t within the beam: state -> its place in the frame     <- arcs from the
 *           tokens of t - 1, of t if they are epsilons
 *   past    {cost, extra cost} of every token: the cost of the best path through it above the
 *           best path of all
 *
 * With a scorer, states are pairs (state, context), and words are scored again. Word costs have
 * no known lower bound, so only arcs to states in the table (a bitmap of the graph's states) are
 * scored.
 *
 * A token is ignored, with its arcs, if its cost plus the least cost of an arc exceeds every
 * cost that could lead to a token in the table. Extra costs are minima over paths, kept as
 * ordered integers, so the result does not depend on the order of threads. */
#ifndef WF_CUDA_LATTICE_PRUNE_HISTORY_CUH
#define WF_CUDA_LATTICE_PRUNE_HISTORY_CUH

#include "cuda/search/wide_states.cuh"

namespace wf_search {

/* In lane_shared.hist, which is unused here. (With scorers, hist_all is the bitmap of states.) */
struct lattice_work {
  u32 bound;      /* of this rank's tokens in the table: the largest cost - extra cost, ordered */
  u32 changed[3]; /* whether an extra cost of this rank changed, in this epsilon round, the next,
                     the previous one */
};
static_assert(sizeof(lattice_work) <= sizeof(lane_shared<plain>::hist),
              "lattice_work must fit the histogram");

template <class LANE>
__device__ __forceinline__ lattice_work &work_of(LANE &l, u32 rank) {
  return *reinterpret_cast<lattice_work *>(l.of(rank).hist);
}

/* --- the table of a frame ---------------------------------------------------------------- */

/* Records that the lane's table has a token of the graph's state, in any context. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::note_state(u32 state) {
  constexpr u32 BITS = 8 * sizeof own().hist_all;
  const u32 bit = state * 0x9E3779B1u >> 16 & (BITS - 1);
  for (int r = 0; SCORED && r < RANKS; r++) atomicOr(&l.of(r).hist_all[bit >> 5], 1u << (bit & 31));
}

/* False: the lane's table has no token of the graph's state, in any context. */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::may_hold(u32 state) const {
  constexpr u32 BITS = 8 * sizeof own().hist_all;
  const u32 bit = state * 0x9E3779B1u >> 16 & (BITS - 1);
  return !SCORED || (*(volatile u32 *)&own().hist_all[bit >> 5] >> (bit & 31) & 1) != 0;
}

/* Puts this rank's tokens of the frame within the beam into the table, emptied and sized for the
 * frame. Barriers of the lane before and after. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::fill_table(u32 number) {
  lattice_work &work = work_of(l, l.rank());
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  l.sync(); /* no thread still reads the old table */
  l.empty_slots();
  u32 most = size; /* over the ranks, whose tables are alike */
  for (int r = 0; r < RANKS; r++) {
    const u32 *off = frame_off() + ((int64_t)r - l.rank()) * (p->memory.frames_cap + 2);
    most = max(most, off[number + 1] - off[number]);
  }
  l.bits = WF__LANE_MIN_BITS;
  while (l.bits < SLOT_BITS && (1u << l.bits) < SPARE * most) l.bits++;
  if (SCORED && tid() < 256) own().hist_all[tid()] = 0;
  if (tid() == 0) work.bound = 0;
  if (SCORED)
    l.sync();
  else
    __syncthreads();
  for (u32 base = 0; base < size; base += THREADS) {
    const u32 i = base + tid();
    const float2 known = i < size ? __ldcg(past() + first + i) : make_float2(0, INFINITY);
    const bool within = known.y <= p->rules.lattice_beam;
    const u32 bound = warp_max(within ? ordered(__fsub_rn(known.x, known.y)) : 0);
    if (in_warp() == 0 && bound > 0) atomicMax(&work.bound, bound);
    const u32 state = within ? __ldcg(trace() + first + i).x : 0;
    u32 slot;
    u64 old;
    l.offer_own(within, within ? key_of(state, traced_context(first + i)) : 0, i, &slot, &old);
    if (within) note_state(state);
    __syncwarp();
  }
  l.sync();
}

/* Place in its frame of the key's token, if that is in the table; else ALL. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::look_up(token_key key, u32 *owner) {
  u32 at;
  l.place_of(key, l.bits, owner, &at);
  return (u32)l.value_of(*owner, at, key); /* NO_TOKEN, cut short, if it is not there */
}

/* Extra cost of a candidate for the key's token of frame `number`, in the table; +infinity if there
 * is none. */
template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::extra_cost_over(float candidate, token_key key,
                                                          u32 number) {
  u32 owner;
  const u32 at = look_up(key, &owner);
  if (at == ALL) return INFINITY;
  const int64_t parts = (int64_t)owner - l.rank();
  const float2 target = __ldcg(past() + parts * p->memory.trace_cap +
                               (frame_off() + parts * (p->memory.frames_cap + 2))[number] + at);
  return __fadd_rn(candidate > target.x ? __fsub_rn(candidate, target.x) : 0, target.y);
}

/* Lowers the extra cost of token i of the frame that begins at `first`. Returns true if it was
 * beyond the beam before. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::improve(u32 i, u32 first, float extra_cost) {
  const int was =
      atomicMin((int *)&past()[first + i].y,
                __float_as_int(extra_cost)); /* never negative, so the bits are ordered */
  return __int_as_float(was) > p->rules.lattice_beam;
}

/* Largest cost of a candidate whose extra cost is within the beam, for any token in the table,
 * rounding errors included. */
template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::furthest() {
  u32 bound = 0;
  for (int r = 0; r < RANKS; r++) bound = max(bound, *(volatile u32 *)&work_of(l, (u32)r).bound);
  if (bound == 0) return -INFINITY; /* no token is in the table */
  const float cost = cost_of(bound), beam = p->rules.lattice_beam;
  return cost + beam + (fabsf(cost) + beam) * (1.0f / (1 << 18));
}

/* Lower bound of the cost, without acoustic cost, of a candidate over a consuming (0) or an
 * epsilon arc (1) from a token of this cost; rounding is monotonic. There is none with a scorer,
 * as boosts may be of any size, and added words have their own weights. */
template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::least_candidate(float cost, int epsilon) const {
  if (has_scorer() || has_words()) return -INFINITY;
  const float least = __fadd_rn(cost, p->graph.least_weights[epsilon]);
  return p->rules.word_score > 0 ? __fsub_rn(least, p->rules.word_score) : least;
}

/* --- arcs from a frame's tokens ---------------------------------------------------------- */

/* Relaxes consuming arcs from the tokens of frame `number` to those of the next, which are in
 * the table; the arcs read the scores of frame `row`. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::relax_emitting(u32 number, u32 row) {
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  const wf__lane_frame here = records()[number], next = records()[number + 1];
  const float best = here.best, beam = p->rules.lattice_beam;
  float *before = (float *)frontier();
  load_row(row);
  for (u32 i = tid(); i < size; i += THREADS) {
    before[i] = __ldcg(past() + first + i).y;
    past()[first + i].y = INFINITY;
  }
  finish_row();
  __syncthreads();
  const float least_label = least_of_block(least_of_columns());
  if (has_wide()) list_columns_again(next.last, least_label);
  const float bound = fminf(furthest(), FLT_MAX);
  /* Relaxes an arc from token i of the frame. */
  auto relax = [&](bool live, u32 a, uint4 arc, u32 i) {
    if (live) {
      const u32 to = arc.x & 0x7fffffffu;
      const u64 from = traced_context(first + i);
      u64 context = from;
      float candidate =
          __fadd_rn(__fsub_rn(__ldcg(past() + first + i).x, best), __uint_as_float(arc.y));
      if (arc.w != 0) candidate = __fsub_rn(candidate, p->rules.word_score);
      live = may_hold(to);
      if constexpr (SCORED)
        if (live && arc.w != 0) candidate = word_cost(arc.w, candidate, &context);
      candidate = __fadd_rn(candidate, label_cost(arc.z));
      live = live && candidate <= bound &&
             is_up_to((u64)ordered(candidate) << 32 | a, from, next.last, next.last_context);
      if (live) {
        const float extra_cost = extra_cost_over(candidate, key_of(to, context), number + 1);
        if (extra_cost <= beam) improve(i, first, extra_cost);
      }
    }
    __syncwarp();
  };
  const u32 grain = min(32u, (size + WARPS - 1) / WARPS);
  for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
    const u32 mine = base + in_warp();
    uint4 info = make_uint4(0, 0, 0, 0);
    float cost = INFINITY;
    u32 state = 0;
    bool wide = false;
    if (in_warp() < grain && mine < size) {
      cost = __fsub_rn(__ldcg(past() + first + mine).x, best);
      state = __ldcg(trace() + first + mine).x;
      const bool near = __fadd_rn(least_candidate(cost, 0), least_label) <= bound;
      if (near && is_up_to((u64)ordered(cost) << 32 | state, traced_context(first + mine),
                           here.select, here.select_context)) {
        wide = is_wide(state);
        if (!wide) info = state_at(states(), state);
      }
    }
    arc_share<POLICY> share(arc_ranges, in_warp(), info.x, info.y - info.x, __uint_as_float(mine));
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 a;
      float which;
      u64 none;
      share.at(k0, in_warp(), &a, &which, &none);
      const bool live = k0 + in_warp() < share.total;
      relax(live, a, live ? arc_at(arcs(), a) : make_uint4(0, 0, 0, 0), __float_as_uint(which));
    }
    if (has_wide())
      for_wide_of_warp(wide, state, cost, [&](bool live, u32 a, uint4 arc, int who) {
        relax(live, a, arc, base + (u32)who);
      });
  }
}

/* Relaxes the epsilon arcs between tokens of frame `number`, once. Tokens within the beam are in
 * the table; tokens that come within it are added. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::relax_epsilons(u32 number, u32 round) {
  lattice_work &work = work_of(l, l.rank());
  const u32 arc_ranges = l.base + OFFSET(arc_ranges) + warp() * (u32)sizeof own().arc_ranges[0];
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  const float beam = p->rules.lattice_beam, bound = furthest(),
              cutoff = cost_of((u32)(records()[number].last >> 32));
  const u32 grain = min(32u, (size + WARPS - 1) / WARPS);
  for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
    const u32 mine = base + in_warp();
    uint4 info = make_uint4(0, 0, 0, 0);
    if (in_warp() < grain && mine < size) {
      const float2 known = __ldcg(past() + first + mine);
      if (least_candidate(known.x, 1) <= bound)
        info = state_at(states(), __ldcg(trace() + first + mine).x);
    }
    arc_share<POLICY> share(arc_ranges, in_warp(), info.y, info.z - info.y, __uint_as_float(mine));
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 a, state = 0, to = 0;
      float which, cost = 0, extra_cost = INFINITY;
      u64 none, context = 0, to_context = 0;
      share.at(k0, in_warp(), &a, &which, &none);
      const u32 i = __float_as_uint(which);
      if (k0 + in_warp() < share.total) {
        const uint4 arc = arc_at(arcs(), a);
        cost = __ldcg(past() + first + i).x;
        state = __ldcg(trace() + first + i).x;
        context = to_context = traced_context(first + i);
        to = arc.x & 0x7fffffffu;
        float candidate = __fadd_rn(cost, __uint_as_float(arc.y));
        if (arc.w != 0) candidate = __fsub_rn(candidate, p->rules.word_score);
        const bool in_table = may_hold(to);
        if constexpr (SCORED)
          if (in_table && arc.w != 0) candidate = word_cost(arc.w, candidate, &to_context);
        if (in_table && candidate <= cutoff)
          extra_cost = extra_cost_over(candidate, key_of(to, to_context), number);
      }
      __syncwarp();
      const bool live = leads_on(extra_cost <= beam, state, context, to, to_context, number);
      const bool better = live && extra_cost < __ldcg(past() + first + i).y,
                 improved = better && improve(i, first, extra_cost);
      u32 slot;
      u64 old;
      l.offer_own(improved, key_of(state, context), i, &slot, &old);
      if (improved) note_state(state);
      if (better) {
        atomicMax(&work.bound, ordered(__fsub_rn(cost, extra_cost)));
        work.changed[round % 3] = 1;
      }
      __syncwarp();
    }
  }
}

/* Epsilon arcs that a token came over in frame `number`; by one warp. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::depth_of(u32 state, u64 context, u32 number) {
  for (u32 depth = 0;; depth++) {
    u32 owner, at = find_token(state, context, number, &owner);
    const int64_t part = ((int64_t)owner - l.rank()) * p->memory.trace_cap;
    u32 arc = at == ALL ? NO_ARC : __ldcg(trace() + part + at).y;
    if (arc != NO_ARC) arc &= ~WITH_EPSILONS;
    if (arc == NO_ARC || (int)any_arc_at(arc).z >= 0 || depth > most_rounds()) return depth;
    state = source_of(arc);
    if (SCORED) context = __ldcg((const u64 *)(contexts() + part + at) + 1);
  }
}

/* May a live thread's epsilon arc be in a lattice, which has no cycles? Called by a whole warp. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::leads_on(bool live, u32 from, u64 from_context, u32 to,
                                                  u64 to_context, u32 number) {
  if (p->graph.components == NULL) return live;
  const bool cyclic = live && !is_added(from) && !is_added(to) &&
                      __ldg(p->graph.components + from) == __ldg(p->graph.components + to);
  for (u32 left = __ballot_sync(ALL, cyclic); left != 0; left &= left - 1) {
    const int who = __ffs(left) - 1;
    const u32 depth = depth_of(__shfl_sync(ALL, from, who),
                               SCORED ? __shfl_sync(ALL, from_context, who) : 0, number);
    const bool on = depth < depth_of(__shfl_sync(ALL, to, who),
                                     SCORED ? __shfl_sync(ALL, to_context, who) : 0, number);
    if (in_warp() == (u32)who) live = on;
  }
  return live;
}

/* Computes the extra costs of frame `number` over its epsilon arcs, in rounds until nothing
 * changes. These arcs make no cycle, so every order of relaxing them gives the same costs.
 * Returns false if the rounds do not end, which cannot happen. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::close_back(u32 number) {
  if (!p->graph.has_epsilons) return true;
  lattice_work &work = work_of(l, l.rank());
  if (tid() < 3) work.changed[tid()] = 0;
  l.sync();
  for (u32 round = 0; round <= most_rounds(); round++) {
    relax_epsilons(number, round);
    if (tid() == 0) work.changed[(round + 1) % 3] = 0; /* last read two barriers ago */
    l.sync();
    u32 changed = 0;
    for (int r = 0; r < RANKS; r++) changed |= work_of(l, (u32)r).changed[round % 3];
    if (changed == 0) return true;
  }
  return false;
}

/* Are the extra costs of a frame the same as after the last pruning? */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::as_before(u32 number) {
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  const float *before = (const float *)frontier();
  u32 changed = 0;
  for (u32 i = tid(); i < size; i += THREADS) changed += __ldcg(past() + first + i).y != before[i];
  return l.sum(changed) == 0;
}

/* --- pruning ----------------------------------------------------------------------------- */

/* Makes room in the trace between two frames. Returns false if it cannot. */
template <class POLICY, int RANKS>
__device__ __noinline__ bool searcher<POLICY, RANKS>::prune() {
  const u32 newest = frame - 1, pruned_frames = records()[0].pruned_frames, next = own().next;
  u32 from = 0, row = next; /* the first whose scores have not been searched */
  bool fits = true;
  __pipeline_wait_prior(0); /* a row may still be in flight */
  l.sync();
  l.clear(SLOT_BITS);
  __syncthreads();
  for (u32 number = newest;; number--) {
    fill_table(number);
    if (number < newest && !close_back(number)) fits = false;
    if (own().full != 0) fits = false;
    if (!fits) break;
    if (number < newest && number < pruned_frames && as_before(number)) {
      from = number + 1;
      break;
    }
    if (number == 0) break;
    row = row_before(row);
    relax_emitting(number - 1, row);
    l.sync(); /* extra costs are complete */
  }
  l.sync();
  if (fits) {
    fits = slide(from);
    if (l.rank() == 0 && tid() == 0) records()[0].pruned_frames = frame;
  }
  l.clear(SLOT_BITS);
  l.sync();
  load_row(next);
  return fits;
}

/* Sets the extra costs of the newest frame's tokens: the cost of ending there above that of the
 * best ending, `least`. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::set_endings(bool died, bool final, float least) {
  const uint2 *tokens = this->tokens();
  const u32 first = trace_used - f.num_sources;
  for (u32 i = tid(); i < f.num_sources; i += THREADS) {
    float cost = final ? ending_cost(i) : costs()[i];
    if (died && !is_selected(cost, tokens[i].x, source_context(i)))
      cost = INFINITY; /* then none is final */
    past()[first + i].y = cost <= FLT_MAX ? __fsub_rn(cost, least) : INFINITY;
  }
}

}  // namespace wf_search

#endif
