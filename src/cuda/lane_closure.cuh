/* lane_closure.cuh - step 5 of a frame (docs/semantics.md): epsilon arcs, in rounds, within the table. */
#ifndef WF_CUDA_LANE_CLOSURE_CUH
#define WF_CUDA_LANE_CLOSURE_CUH

#include "lane_searcher.cuh"

template <int RANKS>
__device__ __forceinline__ void searcher<RANKS>::put_agenda(u32 rank, u32 which, u32 place, u32 slot) {
  if (place < THREADS) l.of(rank).agenda[which][place] = (uint16_t)slot;
  else (agenda() + ((int64_t)rank - l.rank()) * 2 * SLOTS + which * SLOTS)[place].x = slot;
}

template <int RANKS>
__device__ __forceinline__ u32 searcher<RANKS>::get_agenda(u32 which, u32 place) {
  return place < THREADS ? own().agenda[which][place] : agenda()[which * SLOTS + place].x;
}

/* Relaxes epsilon arcs round by round, from the agenda that settle_emission or begin made; a barrier has passed since. */
template <int RANKS>
__device__ __forceinline__ int searcher<RANKS>::relax_rounds(float cutoff) {
  const float word_score = p->word_score, slack = p->epsilon_slack;
  for (u64 rounds = 0;; rounds++) {
    const u32 now = agenda_now, next = now ^ 1, size = own().agenda_size[now];
    u32 work = 0;
#pragma unroll
    for (int r = 0; r < RANKS; r++) work |= l.of(r).agenda_work[now];
    if (work == 0) return WF__LANE_OK; /* nothing improved that has epsilon arcs */
#ifdef WF_LANE_PROFILE
    if (tid() == 0) own().rounds++, own().entries += size, own().small += size <= 32;
#endif
    if (rounds > p->num_states) return WF__LANE_CYCLE;
    /* What the last round improved is no longer fresh, and everybody relaxes from the costs it left: a thread's first entry is kept at hand. */
    const u32 grain = min(32u, (size + WARPS - 1) / WARPS);
    uint4 info = make_uint4(0, 0, 0, 0);
    float my_cost = 0;
    for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
      const u32 i = base + in_warp();
      if (in_warp() >= grain || i >= size) break;
      u32 at = get_agenda(now, i);
      u64 value = own().values[at];
      float cost = cost_of((u32)(value >> 32));
      if ((u32)value & FRESH) own().values[at] = value & ~(u64)FRESH;
      if (i >= THREADS) {
        agenda()[now * SLOTS + i].y = __float_as_uint(cost);
        continue;
      }
      u32 key = own().keys[at];
      if (key & HAS_EPSILONS) info = __ldg(states() + (key & ~HAS_EPSILONS));
      my_cost = cost;
    }
    if (tid() == 0) own().agenda_size[next] = own().agenda_work[next] = 0;
    l.sync();
    for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
      const u32 i = base + in_warp();
      if (base >= THREADS) {
        info = make_uint4(0, 0, 0, 0);
        if (i < size) {
          uint2 entry = agenda()[now * SLOTS + i];
          u32 key = own().keys[entry.x];
          if (key & HAS_EPSILONS) info = __ldg(states() + (key & ~HAS_EPSILONS));
          my_cost = __uint_as_float(entry.y);
        }
      }
      arc_share share(own().boxes[warp()], in_warp(), info.y, info.z - info.y, my_cost);
      if (in_warp() == 0) frame_arcs += share.total;
      for (u32 k0 = 0; k0 < share.total; k0 += 32) {
        u32 a;
        float candidate;
        share.at(k0, in_warp(), &a, &candidate);
        if (k0 + in_warp() >= share.total) continue;
        uint4 arc = __ldg(arcs() + a);
        candidate = __fadd_rn(candidate, __uint_as_float(arc.y));
        if (arc.w != 0) candidate = __fsub_rn(candidate, word_score);
        if (!(candidate <= cutoff)) continue;
        u32 rank, slot;
        u64 old;
        if (slack != 0) { /* must be cheaper than what an earlier round left by the slack; what is fresh already is */
          const u32 mask = (1u << l.bits) - 1;
          place_of<RANKS>(arc.x & ~HAS_EPSILONS, l.bits, &rank, &slot);
          lane_shared &sh = l.of(rank);
          u32 key, probes = 0;
          while ((key = *(volatile u32 *)&sh.keys[slot]) != arc.x && key != NO_STATE && probes++ < SLOTS) slot = (slot + 1) & mask;
          u64 value = key == arc.x ? *(volatile u64 *)&sh.values[slot] : NO_TOKEN;
          if (value != NO_TOKEN && !((u32)value & FRESH) && !(candidate < __fsub_rn(cost_of((u32)(value >> 32)), slack))) continue;
        }
        if (!offer<RANKS>(l, arc.x, (u64)ordered(candidate) << 32 | FRESH | (a + 1), &rank, &slot, &old)) continue;
        if (old == NO_TOKEN) atomicAdd(&l.of(rank).inserted, 1u);
        if (old == NO_TOKEN || ((u32)old & FRESH) == 0) { /* the first improvement of this slot in this round */
          u32 place = atomicAdd(&l.of(rank).agenda_size[next], 1u);
          put_agenda(rank, next, place, slot);
          if (arc.x & HAS_EPSILONS) l.of(rank).agenda_work[next] = 1;
        }
      }
    }
    agenda_now = next;
    l.sync(); /* the agenda of the next round stands */
  }
}

/* The closure in the table as it is. WF__LANE_*, CLOSURE_OVERFLOW (more than max_tokens) or CLOSURE_GROW (the table is too small). */
template <int RANKS>
__device__ __forceinline__ int searcher<RANKS>::close(float cutoff) {
  int status = relax_rounds(cutoff);
  if (status != WF__LANE_OK) return status;
  u32 inserted = 0;
#pragma unroll
  for (int r = 0; r < RANKS; r++) inserted += l.of(r).inserted;
  const bool full = own().full != 0;
  if (full && l.bits < WF__LANE_SLOT_BITS) return CLOSURE_GROW;
  if (!full && num_emitted + inserted <= p->max_tokens) return WF__LANE_OK;
  u32 mine = 0;
  for (u32 at = tid(); at < SLOTS && at >> l.bits == 0; at += THREADS) mine += own().values[at] != NO_TOKEN;
  u64 tokens = l.sum(mine);
  if (tokens > p->max_tokens) return CLOSURE_OVERFLOW;
  return full ? WF__LANE_NO_ROOM : WF__LANE_OK;
}

/* The closure of frame t's candidates up to the key `last` where the first try failed: in a larger table, or of fewer of them if it makes too many
 * tokens. */
template <int RANKS>
__device__ __noinline__ int searcher<RANKS>::close_again(int status, u64 last, u32 t) {
  l.sync();
  load_row(t); /* the next frame's was on its way */
  __pipeline_wait_prior(0);
  while (status < 0) {
    l.sync();
    if (status == CLOSURE_OVERFLOW) {
      if (tid() == 0) own().flags |= 8; /* WF_RESULT_OVERFLOW */
      u32 admitted = (u32)(expand<EXPAND_COUNT>(candidate_rule{last, 0, 0}) >> 32) / 2;
      if (admitted == 0) return WF__LANE_CLOSURE;
      last = candidate_rank(admitted, last, false);
    }
    u64 tokens;
    frame_arcs = emission_arcs;
    if (!admit(last, &tokens)) return WF__LANE_NO_ROOM;
    status = close(cost_of((u32)(last >> 32)));
  }
  l.sync();
  load_row(t + 1);
  return status;
}

#endif
