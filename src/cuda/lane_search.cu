/* lane_search.cu - the beam search of one utterance by one lane, frame by frame; docs/semantics.md step by step.
 *
 * What a block reads and writes in a frame: sources in, candidates into the table, epsilon rounds within it, sources and trace out. Costs are
 * compared, never summed across threads, so the order of threads cannot show. */
#include "lane_table.cuh"

struct frame_state {
  u32 num_sources;   /* of this rank */
  u64 total_sources; /* of the lane */
  u64 select_key;    /* sources above this (ordered cost, state) are not expanded */
  float best;        /* cost the last frame was normalised by; 0 for the start */
};

struct candidate_rule {
  u64 last;   /* FIXED, COUNT, HIST: largest key let in */
  u64 prefix; /* HIST: the key's bits above `shift` + 8 must be these */
  int shift;
};

enum expand_mode { EXPAND_RUNNING, EXPAND_FIXED, EXPAND_BEST, EXPAND_COUNT, EXPAND_HIST };

/* What a thread keeps at hand during a launch. */
template <int RANKS>
struct searcher {
  lane<RANKS> l;
  const wf__lane_params *p;
  const uint4 *arcs, *states;
  uint4 *sources, *slots;
  u32 *agenda;
  uint2 *trace;
  u32 *frame_off;
  uint16_t *group_off;
  u32 agenda_now;
  /* the utterance */
  const void *scores;
  const void *row; /* the frame's scores in global memory */
  int dtype;
  int64_t stride;
  bool row_in_shared;
  u32 num_frames;
  u32 frame;       /* trace frames written */
  u32 trace_used;
  u32 flags;
  frame_state f;
  u64 num_arcs;    /* this thread's share */
  u64 num_emitted; /* tokens of the frame before epsilons */
  u64 num_tokens, num_expanded, num_narrowed; /* the lane's, same in all threads */

  __device__ searcher(const wf__lane_params *params, lane_shared *sh);
  __device__ void run();

 private:
  __device__ float loglike(const void *from, u32 column) const;
  __device__ float label_cost(u32 column) const;
  __device__ void load_row(u32 t);
  __device__ void clear_table();
  __device__ u32 pick_bin(u64 want, u32 *bin);
  __device__ bool select_by_cost(u64 want);
  __device__ void select_sources();
  template <int MODE>
  __device__ void expand(const candidate_rule &rule, u64 *count, u64 *least);
  __device__ u64 candidate_rank(u64 k, u64 last, bool cost_only);
  __device__ u64 settle_emission(float cutoff);
  __device__ bool admit(u64 last, u64 *num_tokens);
  __device__ int emit(u64 *last, u64 *num_tokens);
  __device__ void put_agenda(u32 rank, u32 which, u32 place, u32 slot);
  __device__ u32 get_agenda(u32 which, u32 place);
  __device__ void seal(u32 at, u64 value, u32 state, uint4 info);
  __device__ int close(float cutoff, bool *overflow);
  __device__ int close_within_room(u64 last);
  __device__ bool finish_frame();
  __device__ int begin();
  __device__ u32 find_token(u32 state, u32 frame_number, u32 *owner);
  __device__ void finish(bool died, wf__lane_outcome *outcome);
  __device__ void decode(const wf__lane_utterance &utterance, wf__lane_outcome *outcome);
};

/* --- setting up ------------------------------------------------------------------------------------------------------ */

template <int RANKS>
__device__ searcher<RANKS>::searcher(const wf__lane_params *params, lane_shared *sh) : p(params) {
  l.sh = sh;
  l.rank = RANKS == 1 ? 0 : cg::this_cluster().block_rank();
  l.tid = threadIdx.x;
  l.warp = threadIdx.x >> 5;
  l.in_warp = threadIdx.x & 31;
  l.turn = 0;
  u64 part = (u64)(blockIdx.x / RANKS) * RANKS + l.rank;
  arcs = (const uint4 *)p->arcs;
  states = (const uint4 *)p->states;
  sources = (uint4 *)p->sources + part * SLOTS;
  slots = (uint4 *)p->slots + part * SLOTS;
  agenda = p->agenda + part * 2 * SLOTS;
  trace = (uint2 *)p->trace + part * p->trace_cap;
  frame_off = p->frame_off + part * (p->frames_cap + 2);
  group_off = p->group_off + part * (p->frames_cap + 1) * WF__LANE_GROUPS;
  row_in_shared = p->num_columns <= WF__LANE_MAX_ROW;
}

template <int RANKS>
__device__ void searcher<RANKS>::clear_table() {
  ulonglong2 *values = (ulonglong2 *)l.sh->values;
  uint4 *keys = (uint4 *)l.sh->keys;
  for (u32 i = l.tid; i < SLOTS / 2; i += THREADS) values[i] = make_ulonglong2(NO_TOKEN, NO_TOKEN);
  for (u32 i = l.tid; i < SLOTS / 4; i += THREADS) keys[i] = make_uint4(NO_STATE, NO_STATE, NO_STATE, NO_STATE);
  if (l.tid == 0) {
    l.sh->inserted = 0;
    l.sh->full = 0;
    l.sh->best = ALL;
    l.sh->agenda_size[0] = l.sh->agenda_size[1] = 0;
    l.sh->next_batch = 0;
  }
}

/* --- scores ---------------------------------------------------------------------------------------------------------- */

template <int RANKS>
__device__ __forceinline__ float searcher<RANKS>::loglike(const void *from, u32 column) const {
  if (dtype == 0) return __ldg((const float *)from + column);
  u32 bits = __ldg((const unsigned short *)from + column);
  if (dtype == 2) return __uint_as_float(bits << 16); /* bfloat16 */
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
  return value;
}

template <int RANKS>
__device__ __forceinline__ float searcher<RANKS>::label_cost(u32 column) const {
  if (row_in_shared) return l.sh->row[column];
  float value = loglike(row, column);
  return value == -INFINITY ? INFINITY : -__fmul_rn(p->acoustic_scale, value);
}

template <int RANKS>
__device__ void searcher<RANKS>::load_row(u32 t) {
  row = (const char *)scores + (int64_t)t * stride * (dtype == 0 ? 4 : 2);
  if (!row_in_shared) return;
  for (u32 c = l.tid; c < (u32)p->num_columns; c += THREADS) {
    float value = loglike(row, c);
    l.sh->row[c] = value == -INFINITY ? INFINITY : -__fmul_rn(p->acoustic_scale, value);
  }
}

/* --- ranks ------------------------------------------------------------------------------------------------------------- */

/* Given the ranks' histograms: the bin that holds the want-th entry, and how many entries lie below it. */
template <int RANKS>
__device__ u32 searcher<RANKS>::pick_bin(u64 want, u32 *bin) {
  l.sync();
  if (l.tid < 256) {
    u32 all = 0;
#pragma unroll
    for (int r = 0; r < RANKS; r++) all += l.of(r)->hist[l.tid];
    l.sh->hist_all[l.tid] = all;
  }
  l.sync(); /* the histograms may be cleared again */
  u32 mine[8], sum = 0, found = 0, below = 0;
#pragma unroll
  for (int b = 0; b < 8; b++) sum += mine[b] = l.sh->hist_all[l.in_warp * 8 + b];
  u32 upto = sum;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    u32 x = __shfl_up_sync(ALL, upto, d);
    if (l.in_warp >= d) upto += x;
  }
  bool here = upto - sum < want && want <= upto;
  if (here) {
    below = upto - sum;
#pragma unroll
    for (int b = 0; b < 7; b++) {
      if (found == b && below + mine[b] < want) {
        below += mine[b];
        found++;
      }
    }
  }
  u32 owner = __ffs(__ballot_sync(ALL, here)) - 1;
  *bin = __shfl_sync(ALL, found + l.in_warp * 8, owner);
  return __shfl_sync(ALL, below, owner);
}

/* --- selection of sources --------------------------------------------------------------------------------------------- */

/* Exact key of the want-th source by (cost, state): 256 even steps of cost, then a count among the few of the right step. False, with nothing done,
 * if those are not few. */
template <int RANKS>
__device__ bool searcher<RANKS>::select_by_cost(u64 want) {
  const float scale = p->beam > 1e-20f ? 256 / p->beam : 0;
  u64 *near = (u64 *)l.sh->boxes;
  constexpr u32 MOST = sizeof(l.sh->boxes) / sizeof *near;
  if (l.tid < 256) l.sh->hist[l.tid] = 0;
  if (l.tid == 0) l.sh->num_near = 0;
  __syncthreads();
  for (u32 i = l.tid; i < f.num_sources; i += THREADS) atomicAdd(&l.sh->hist[(u32)fminf(__uint_as_float(sources[i].z) * scale, 255)], 1u);
  u32 bin;
  want -= pick_bin(want, &bin);
  for (u32 i = l.tid; i < f.num_sources; i += THREADS) {
    uint4 s = sources[i];
    float cost = __uint_as_float(s.z);
    if ((u32)fminf(cost * scale, 255) != bin) continue;
    for (int r = 0; r < RANKS; r++) {
      u32 place = atomicAdd(&l.of(r)->num_near, 1u);
      if (place < MOST) ((u64 *)l.of(r)->boxes)[place] = (u64)ordered(cost) << 32 | s.w;
    }
  }
  l.sync();
  u32 size = l.sh->num_near;
  if (size > MOST) return false;
  for (u32 i = l.tid; i < size; i += THREADS) {
    u64 mine = near[i], below = 0;
    for (u32 k = 0; k < size; k++) below += near[k] < mine;
    if (below == want - 1) l.sh->select_key = mine;
  }
  __syncthreads();
  f.select_key = l.sh->select_key;
  return true;
}

/* Exact key of the max_active-th source by (cost, state), by radix selection, eight bits at a time, where select_by_cost gives up. */
template <int RANKS>
__device__ void searcher<RANKS>::select_sources() {
  f.select_key = NO_TOKEN;
  if (f.total_sources <= p->max_active) {
    num_expanded += f.total_sources;
    return;
  }
  flags |= 2; /* WF_RESULT_NARROWED */
  num_narrowed++;
  num_expanded += p->max_active;
  const u64 want = p->max_active;
  if (select_by_cost(want)) return;
  u64 prefix = 0, left = want; /* the left-th of those with this prefix */
  for (int shift = 56; shift >= 0; shift -= 8) {
    if (l.tid < 256) l.sh->hist[l.tid] = 0;
    __syncthreads();
    for (u32 i = l.tid; i < f.num_sources; i += THREADS) {
      uint4 s = sources[i];
      u64 key = (u64)ordered(__uint_as_float(s.z)) << 32 | s.w;
      if (shift == 56 || key >> (shift + 8) == prefix) atomicAdd(&l.sh->hist[(u32)(key >> shift) & 255], 1u);
    }
    u32 bin;
    left -= pick_bin(left, &bin);
    prefix = prefix << 8 | bin;
  }
  f.select_key = prefix;
}

/* --- emitting arcs ---------------------------------------------------------------------------------------------------- */

/* Goes over the emitting arcs of the selected sources. RUNNING and FIXED fill the table; BEST, COUNT and HIST only look. A warp takes 32 sources
 * at a time and shares out their arcs evenly. */
template <int RANKS>
template <int MODE>
__device__ void searcher<RANKS>::expand(const candidate_rule &rule, u64 *count, u64 *least) {
  const float beam = p->beam, word_score = p->word_score;
  u64 my_count = 0;
  u32 my_best = ALL;
  for (u32 base = l.warp * 32;; base += THREADS) {
    if (MODE == EXPAND_RUNNING) { /* whoever is free takes the next 32 */
      if (l.in_warp == 0) base = atomicAdd(&l.sh->next_batch, 32u);
      base = __shfl_sync(ALL, base, 0);
    }
    if (base >= f.num_sources) break;
    u32 i = base + l.in_warp, first = 0, degree = 0;
    float source_cost = 0;
    if (i < f.num_sources) {
      uint4 s = sources[i];
      source_cost = __uint_as_float(s.z);
      first = s.x;
      degree = ((u64)ordered(source_cost) << 32 | s.w) <= f.select_key ? s.y : 0;
    }
    arc_share share(l.sh->boxes[l.warp], l.in_warp, first, degree, source_cost);
    if (MODE == EXPAND_RUNNING && l.in_warp == 0) num_arcs += share.total;
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 a;
      float candidate;
      share.at(k0, l.in_warp, &a, &candidate);
      bool live = k0 + l.in_warp < share.total;
      uint4 arc = make_uint4(0, 0, 0, 0);
      if (live) {
        arc = __ldg(arcs + a);
        candidate = __fadd_rn(candidate, __uint_as_float(arc.y));
        if (arc.w != 0) candidate = __fsub_rn(candidate, word_score);
        candidate = __fadd_rn(candidate, label_cost(arc.z));
      }
      const u32 order = ordered(candidate);
      const u64 key = (u64)order << 32 | a;
      live = live && candidate <= FLT_MAX;
      if (MODE == EXPAND_RUNNING) {
        u32 known = *(volatile u32 *)&l.sh->best;
        u32 lowest = __reduce_min_sync(ALL, live ? order : ALL);
        if (lowest < known) {
          if (l.in_warp < RANKS) atomicMin(&l.of(l.in_warp)->best, lowest);
          known = lowest;
        }
        live = live && candidate <= add_finite(cost_of(known), beam);
      } else if (MODE == EXPAND_BEST) {
        if (live) my_best = min(my_best, order);
      } else {
        live = live && key <= rule.last;
      }
      if (MODE == EXPAND_COUNT) my_count += live;
      if (MODE == EXPAND_HIST && live && (rule.shift == 56 || key >> (rule.shift + 8) == rule.prefix))
        atomicAdd(&l.sh->hist[(u32)(key >> rule.shift) & 255], 1u);
      if ((MODE == EXPAND_RUNNING || MODE == EXPAND_FIXED) && live) {
        u32 rank, slot;
        u64 old;
        offer<RANKS>(l, arc.x, (u64)order << 32 | (a + 1), &rank, &slot, &old);
      }
    }
  }
  if (MODE == EXPAND_COUNT) *count = l.sum(my_count);
  if (MODE == EXPAND_BEST) *least = l.least(my_best);
}

/* Key of the k-th candidate by (cost, arc) among those at most `last`; by cost alone, its low half is all ones. */
template <int RANKS>
__device__ u64 searcher<RANKS>::candidate_rank(u64 k, u64 last, bool cost_only) {
  candidate_rule rule = {last, 0, 0};
  for (int shift = 56; shift >= (cost_only ? 32 : 0); shift -= 8) {
    if (l.tid < 256) l.sh->hist[l.tid] = 0;
    __syncthreads();
    rule.shift = shift;
    expand<EXPAND_HIST>(rule, NULL, NULL);
    u32 bin;
    k -= pick_bin(k, &bin);
    rule.prefix = rule.prefix << 8 | bin;
  }
  return cost_only ? rule.prefix << 32 | 0xffffffffu : rule.prefix;
}

/* After the candidates: drops tokens above the cutoff, seals the others, fetches what the graph says of their states and puts those with epsilon
 * arcs on the agenda. Returns the lane's number of tokens. */
template <int RANKS>
__device__ u64 searcher<RANKS>::settle_emission(float cutoff) {
  u32 kept = 0;
  const u32 limit = ordered(cutoff);
  for (u32 at = l.tid; at < SLOTS; at += THREADS) {
    u64 value = l.sh->values[at];
    bool token = value != NO_TOKEN;
    if (token && (u32)(value >> 32) > limit) {
      l.sh->values[at] = NO_TOKEN;
      token = false;
    }
    bool epsilons = false;
    if (token) {
      uint4 info = __ldg(states + l.sh->keys[at]);
      seal(at, value, l.sh->keys[at], info);
      epsilons = info.y < info.z;
      kept++;
    }
    u32 vote = __ballot_sync(ALL, epsilons), at_list = 0;
    if (vote != 0) {
      if (l.in_warp == 0) at_list = atomicAdd(&l.sh->agenda_size[agenda_now], (u32)__popc(vote));
      at_list = __shfl_sync(ALL, at_list, 0);
      if (epsilons) put_agenda(l.rank, agenda_now, at_list + __popc(vote & ((1u << l.in_warp) - 1)), at);
    }
  }
  return num_emitted = l.sum(kept);
}

/* Tokens of the candidates whose key is at most `last`; *num is how many. False if a rank's table was full. */
template <int RANKS>
__device__ bool searcher<RANKS>::admit(u64 last, u64 *num) {
  clear_table();
  agenda_now = 0;
  l.sync();
  candidate_rule rule = {last, 0, 0};
  expand<EXPAND_FIXED>(rule, NULL, NULL);
  l.sync();
  if (l.sum(l.tid == 0 && l.sh->full) != 0) {
    u32 mine = 0;
    for (u32 at = l.tid; at < SLOTS; at += THREADS) mine += l.sh->keys[at] != NO_STATE;
    *num = l.sum(mine);
    return false;
  }
  *num = settle_emission(FLT_MAX);
  return true;
}

/* Emitting arcs of one frame up to the cutoff of beam, min_active and max_tokens. *last is the key of that cutoff. */
template <int RANKS>
__device__ int searcher<RANKS>::emit(u64 *last, u64 *num) {
  const u64 every = (u64)ordered(FLT_MAX) << 32 | 0xffffffffu;
  agenda_now = 0;
  candidate_rule none = {0, 0, 0};
  expand<EXPAND_RUNNING>(none, NULL, NULL);
  l.sync();
  u64 best = l.combine(l.sh->best, [](u64 a, u64 b) { return min(a, b); });
  bool full = l.sum(l.tid == 0 && l.sh->full) != 0;
  if (best == ALL) {
    *num = 0;
    return WF__LANE_OK;
  }
  float cutoff = add_finite(cost_of((u32)best), p->beam);
  *last = (u64)ordered(cutoff) << 32 | 0xffffffffu;
  bool fits = !full;
  if (full) fits = admit(*last, num);
  else *num = settle_emission(cutoff);
  if (fits && *num < p->min_active) {
    candidate_rule rule = {*last, 0, 0};
    u64 within, all;
    expand<EXPAND_COUNT>(rule, &within, NULL);
    if (within < p->min_active) {
      rule.last = every;
      expand<EXPAND_COUNT>(rule, &all, NULL);
      *last = all <= p->min_active ? every : candidate_rank(p->min_active, every, true);
      if (all > within) fits = admit(*last, num);
    }
  }
  if (!fits && *num <= p->max_tokens) return WF__LANE_NO_ROOM; /* one rank overflowed, not the lane */
  if (*num <= p->max_tokens) return WF__LANE_OK;
  flags |= 8; /* WF_RESULT_OVERFLOW */
  *last = candidate_rank(p->max_tokens, *last, false);
  return admit(*last, num) ? WF__LANE_OK : WF__LANE_NO_ROOM;
}

/* --- epsilon arcs ------------------------------------------------------------------------------------------------------ */

template <int RANKS>
__device__ __forceinline__ void searcher<RANKS>::put_agenda(u32 rank, u32 which, u32 place, u32 slot) {
  if (place < THREADS) l.of(rank)->agenda[which][place] = (uint16_t)slot;
  else (agenda + ((int64_t)rank - l.rank) * 2 * SLOTS + which * SLOTS)[place] = slot;
}

template <int RANKS>
__device__ __forceinline__ u32 searcher<RANKS>::get_agenda(u32 which, u32 place) {
  return place < THREADS ? l.sh->agenda[which][place] : agenda[which * SLOTS + place];
}

/* Makes the slot's value of this round the token: its arc goes beside the table, the value then wins every tie. */
template <int RANKS>
__device__ __forceinline__ void searcher<RANKS>::seal(u32 at, u64 value, u32 state, uint4 info) {
  l.sh->values[at] = value & 0xffffffff00000000ull;
  slots[at] = make_uint4((u32)value - 1, info.x, info.y - info.x, __float_as_uint(cost_of((u32)(value >> 32))));
}

/* Relaxes epsilon arcs round by round, from the agenda that settle_emission or begin made. *overflow: more tokens than max_tokens. */
template <int RANKS>
__device__ int searcher<RANKS>::close(float cutoff, bool *overflow) {
  *overflow = false;
  const float word_score = p->word_score, slack = p->epsilon_slack;
  u64 rounds = 0;
  bool first_round = true;
  for (;;) {
    l.sync(); /* the agenda of this round stands */
    const u32 now = agenda_now, next = now ^ 1, size = l.sh->agenda_size[now];
    u32 any = 0;
#pragma unroll
    for (int r = 0; r < RANKS; r++) any += l.of(r)->agenda_size[now];
    if (any == 0) break;
    if (rounds++ > p->num_states) return WF__LANE_CYCLE;
    /* Seal what the last round improved (round 1 finds it sealed), so that everybody reads the costs it left. A thread's first entry stays at hand. */
    u32 my_first = 0, my_degree = 0;
    float my_cost = 0;
    for (u32 i = l.tid; i < size; i += THREADS) {
      u32 at = get_agenda(now, i), state = l.sh->keys[at];
      if (first_round && i >= THREADS) break;
      uint4 info = __ldg(states + state);
      u64 value = l.sh->values[at];
      if (!first_round) seal(at, value, state, info);
      if (i >= THREADS) continue;
      my_first = info.y;
      my_degree = info.z - info.y;
      my_cost = cost_of((u32)(value >> 32));
    }
    if (l.tid == 0) l.sh->agenda_size[next] = 0;
    l.sync();
    first_round = false;
    for (u32 base = l.warp * 32; base < size; base += THREADS) {
      u32 i = base + l.in_warp;
      if (base >= THREADS) {
        my_degree = 0;
        if (i < size) { /* slots improved in this round already have another value; the sealed cost is kept beside the table */
          u32 at = get_agenda(now, i);
          uint4 info = __ldg(states + l.sh->keys[at]);
          my_cost = __uint_as_float(slots[at].w);
          my_first = info.y;
          my_degree = info.z - info.y;
        }
      }
      arc_share share(l.sh->boxes[l.warp], l.in_warp, my_first, my_degree, my_cost);
      if (l.in_warp == 0) num_arcs += share.total;
      for (u32 k0 = 0; k0 < share.total; k0 += 32) {
        u32 a;
        float candidate;
        share.at(k0, l.in_warp, &a, &candidate);
        if (k0 + l.in_warp >= share.total) continue;
        uint4 arc = __ldg(arcs + a);
        candidate = __fadd_rn(candidate, __uint_as_float(arc.y));
        if (arc.w != 0) candidate = __fsub_rn(candidate, word_score);
        if (!(candidate <= cutoff)) continue;
        u32 rank, slot;
        u64 old;
        if (slack != 0) { /* must be cheaper than the sealed cost by the slack; an unsealed one already is */
          place_of<RANKS>(arc.x, &rank, &slot);
          lane_shared *sh = l.of(rank);
          u32 key, probes = 0;
          while ((key = *(volatile u32 *)&sh->keys[slot]) != arc.x && key != NO_STATE && probes++ < SLOTS) slot = (slot + 1) & SLOT_MASK;
          u64 value = key == arc.x ? *(volatile u64 *)&sh->values[slot] : NO_TOKEN;
          if (value != NO_TOKEN && (u32)value == 0 && !(candidate < __fsub_rn(cost_of((u32)(value >> 32)), slack))) continue;
        }
        if (!offer<RANKS>(l, arc.x, (u64)ordered(candidate) << 32 | (a + 1), &rank, &slot, &old)) continue;
        if (old == NO_TOKEN) atomicAdd(&l.of(rank)->inserted, 1u);
        if (old == NO_TOKEN || (u32)old == 0) { /* the first improvement of this slot in this round */
          u32 place = atomicAdd(&l.of(rank)->agenda_size[next], 1u);
          put_agenda(rank, next, place, slot);
        }
      }
    }
    agenda_now = next;
  }
  u32 full = 0, inserted = 0;
#pragma unroll
  for (int r = 0; r < RANKS; r++) {
    full |= l.of(r)->full;
    inserted += l.of(r)->inserted;
  }
  if (full == 0 && num_emitted + inserted <= p->max_tokens) return WF__LANE_OK;
  u32 mine = 0;
  for (u32 at = l.tid; at < SLOTS; at += THREADS) mine += l.sh->values[at] != NO_TOKEN;
  u64 tokens = l.sum(mine);
  if (full != 0 && tokens <= p->max_tokens) return WF__LANE_NO_ROOM;
  *overflow = tokens > p->max_tokens;
  return WF__LANE_OK;
}

template <int RANKS>
__device__ int searcher<RANKS>::close_within_room(u64 last) {
  bool overflow = false;
  u64 arcs_before = num_arcs;
  int status = close(cost_of((u32)(last >> 32)), &overflow);
  while (status == WF__LANE_OK && overflow) {
    flags |= 8;
    num_arcs = arcs_before;
    candidate_rule rule = {last, 0, 0};
    u64 admitted, tokens;
    expand<EXPAND_COUNT>(rule, &admitted, NULL);
    admitted /= 2;
    if (admitted == 0) return WF__LANE_CLOSURE;
    last = candidate_rank(admitted, last, false);
    if (!admit(last, &tokens)) return WF__LANE_NO_ROOM;
    status = close(cost_of((u32)(last >> 32)), &overflow);
  }
  return status;
}

/* --- the end of a frame ------------------------------------------------------------------------------------------------ */

/* Table to sources and trace, in table order; clears the table. False if the trace is full. */
template <int RANKS>
__device__ bool searcher<RANKS>::finish_frame() {
  constexpr u32 SPAN = SLOTS / WARPS; /* consecutive slots of a warp */
  u32 count = 0, lowest = ALL;
  const u32 begin = l.warp * SPAN;
  uint16_t *groups = group_off + (u64)frame * WF__LANE_GROUPS;
  for (u32 at = begin + l.in_warp; at < begin + SPAN; at += 32) {
    u64 value = l.sh->values[at];
    count += __popc(__ballot_sync(ALL, value != NO_TOKEN));
    lowest = min(lowest, (u32)(value >> 32));
  }
  lowest = __reduce_min_sync(ALL, lowest);
  if (l.in_warp == 0) {
    l.sh->warp_counts[l.warp] = count;
    l.sh->warp_values[l.warp] = lowest;
  }
  __syncthreads();
  u32 upto = l.sh->warp_counts[l.in_warp], size = upto;
  lowest = __reduce_min_sync(ALL, (u32)l.sh->warp_values[l.in_warp]);
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    u32 x = __shfl_up_sync(ALL, upto, d);
    if (l.in_warp >= d) upto += x;
  }
  const u32 total = __shfl_sync(ALL, upto, 31);
  u32 to = __shfl_sync(ALL, upto - size, l.warp);
  u64 packed = l.combine((u64)lowest << 32 | total, [](u64 a, u64 b) {
    u64 low = min(a >> 32, b >> 32);
    return low << 32 | ((a & 0xffffffffu) + (b & 0xffffffffu));
  });
  const float best = cost_of((u32)(packed >> 32));
  bool room = trace_used + total <= p->trace_cap && frame <= p->frames_cap;
  room = l.combine(room, [](u64 a, u64 b) { return a & b; }) != 0;
  if (!room) return false;
  for (u32 at = begin + l.in_warp; at < begin + SPAN; at += 32) {
    u64 value = l.sh->values[at];
    bool token = value != NO_TOKEN;
    u32 vote = __ballot_sync(ALL, token);
    if (at % (1 << WF__LANE_GROUP_BITS) == 0) groups[at >> WF__LANE_GROUP_BITS] = (uint16_t)to;
    if (token) {
      u32 place = to + __popc(vote & ((1u << l.in_warp) - 1)), state = l.sh->keys[at];
      uint4 slot = slots[at];
      sources[place] = make_uint4(slot.y, slot.z, __float_as_uint(__fsub_rn(cost_of((u32)(value >> 32)), best)), state);
      trace[trace_used + place] = make_uint2(state, slot.x);
    }
    to += __popc(vote);
  }
  if (l.tid == 0) {
    frame_off[frame] = trace_used;
    frame_off[frame + 1] = trace_used + total;
  }
  trace_used += total;
  frame++;
  f.num_sources = total;
  f.total_sources = packed & 0xffffffffu;
  __syncthreads();
  clear_table();
  return true;
}

/* --- the utterance ------------------------------------------------------------------------------------------------------ */

template <int RANKS>
__device__ int searcher<RANKS>::begin() {
  clear_table();
  agenda_now = 0;
  frame = trace_used = flags = 0;
  f.select_key = NO_TOKEN;
  num_arcs = num_tokens = num_expanded = num_narrowed = 0;
  num_emitted = 1;
  l.sync();
  u32 rank, slot;
  u64 old;
  place_of<RANKS>(p->start, &rank, &slot);
  if (rank == l.rank && l.tid == 0) {
    uint4 info = __ldg(states + p->start);
    offer<RANKS>(l, p->start, (u64)ordered(0.0f) << 32, &rank, &slot, &old); /* arc + 1 == 0: NO_ARC */
    seal(slot, (u64)ordered(0.0f) << 32, p->start, info);
    if (info.y < info.z) {
      l.sh->agenda_size[0] = 1;
      put_agenda(l.rank, 0, 0, slot);
    }
  }
  bool overflow;
  int status = close(p->beam, &overflow);
  if (status == WF__LANE_OK && overflow) status = WF__LANE_CLOSURE;
  if (status == WF__LANE_OK && !finish_frame()) status = WF__LANE_NO_ROOM;
  return status;
}

/* Place of the state's token in the trace of a frame; by one warp. */
template <int RANKS>
__device__ u32 searcher<RANKS>::find_token(u32 state, u32 number, u32 *owner) {
  u32 slot;
  place_of<RANKS>(state, owner, &slot);
  int64_t parts = (int64_t)*owner - l.rank;
  const uint2 *tokens = trace + parts * p->trace_cap;
  const u32 *off = frame_off + parts * (p->frames_cap + 2);
  const uint16_t *groups = group_off + parts * (int64_t)(p->frames_cap + 1) * WF__LANE_GROUPS + (u64)number * WF__LANE_GROUPS;
  u32 first = off[number], size = off[number + 1] - first, from = groups[slot >> WF__LANE_GROUP_BITS];
  for (u32 seen = 0; seen < size + 32; seen += 32) {
    u32 at = from + seen + l.in_warp;
    if (at >= size) at -= size; /* probing wraps round the table */
    bool here = at < size && seen + l.in_warp < size && tokens[first + at].x == state;
    u32 vote = __ballot_sync(ALL, here);
    if (vote != 0) return first + __shfl_sync(ALL, at, __ffs(vote) - 1);
  }
  return ALL; /* cannot be */
}

/* Best token, the way back, the outcome. Called by all threads after the last frame. */
template <int RANKS>
__device__ void searcher<RANKS>::finish(bool died, wf__lane_outcome *outcome) {
  u64 with_final = NO_TOKEN, any = NO_TOKEN;
  for (u32 i = l.tid; i < f.num_sources; i += THREADS) {
    uint4 s = sources[i];
    float cost = __uint_as_float(s.z);
    u64 key = (u64)ordered(cost) << 32 | s.w;
    if (died && key > f.select_key) continue;
    any = min(any, key);
    float total = __fadd_rn(cost, __uint_as_float(__ldg(states + s.w).w));
    if (total <= FLT_MAX) with_final = min(with_final, (u64)ordered(total) << 32 | s.w);
  }
  with_final = l.least(with_final);
  any = l.least(any);
  u64 arcs_seen = l.sum(num_arcs);
  if (died) with_final = NO_TOKEN;
  u64 best = with_final != NO_TOKEN ? with_final : any;
  if (with_final == NO_TOKEN) flags |= 1; /* WF_RESULT_NOT_FINAL */
  if (l.rank == 0 && l.warp == 0) {
    wf__lane_step *path = p->path_scratch + (u64)(blockIdx.x / RANKS) * p->path_cap;
    u32 state = (u32)best, number = frame - 1, size = 0;
    int status = WF__LANE_OK;
    for (;;) {
      u32 owner, at = find_token(state, number, &owner);
      u32 a = at == ALL ? NO_ARC : (trace + ((int64_t)owner - l.rank) * p->trace_cap)[at].y;
      if (a == NO_ARC) break;
      if (size == p->path_cap) {
        status = WF__LANE_NO_ROOM;
        break;
      }
      int column = (int)__ldg(arcs + a).z;
      if (column >= 0) number--; /* it consumed a frame */
      if (l.in_warp == 0) {
        const char *from = (const char *)scores + (int64_t)number * stride * (dtype == 0 ? 4 : 2);
        path[size] = wf__lane_step{a, column >= 0 ? loglike(from, (u32)column) : 0};
      }
      size++;
      /* The arc's source state: the last state whose first arc is at or before it. 32 probes a step. */
      u32 low = 0, high = p->num_states; /* first_arc[low] <= a; first_arc[high] > a */
      while (high - low > 1) {
        u32 step = (high - low + 31) / 32, probe = low + step * l.in_warp;
        bool before = probe < high && __ldg(states + probe).x <= a;
        u32 votes = __ballot_sync(ALL, before);
        u32 last = 31 - __clz(votes); /* first arcs rise with the states, so the votes are a prefix */
        u32 new_low = low + step * last;
        high = min(high, new_low + step);
        low = new_low;
      }
      state = low;
    }
    u64 off = 0;
    if (l.in_warp == 0) off = atomicAdd((u64 *)p->steps_used, (u64)size);
    off = __shfl_sync(ALL, off, 0);
    if (off + size > p->steps_cap) status = WF__LANE_NO_ROOM;
    __syncwarp();
    for (u32 i = l.in_warp; i < size && status == WF__LANE_OK; i += 32) p->steps[off + i] = path[size - 1 - i];
    if (l.in_warp == 0) {
      outcome->status = status;
      outcome->flags = flags;
      outcome->num_decoded = frame - 1;
      outcome->final_cost = with_final != NO_TOKEN ? __uint_as_float(__ldg(states + (u32)best).w) : 0;
      outcome->path_off = off;
      outcome->path_size = size;
      outcome->num_tokens = num_tokens;
      outcome->num_expanded = num_expanded;
      outcome->num_arcs = arcs_seen;
      outcome->num_narrowed = num_narrowed;
    }
  }
}

template <int RANKS>
__device__ void searcher<RANKS>::decode(const wf__lane_utterance &utterance, wf__lane_outcome *outcome) {
  scores = utterance.scores;
  dtype = utterance.dtype;
  stride = utterance.stride;
  num_frames = (u32)utterance.num_frames;
  int status = begin();
  bool died = false;
  for (u32 t = 0; t < num_frames && status == WF__LANE_OK; t++) {
    u64 last, tokens;
    load_row(t);
    l.sync(); /* row and cleared table stand */
    select_sources();
    status = emit(&last, &tokens);
    if (status == WF__LANE_OK && tokens == 0) {
      died = true;
      flags |= 4; /* WF_RESULT_DIED */
      break;
    }
    if (status == WF__LANE_OK) status = close_within_room(last);
    if (status == WF__LANE_OK && !finish_frame()) status = WF__LANE_NO_ROOM;
    num_tokens += f.total_sources;
  }
  l.sync();
  if (status == WF__LANE_OK) finish(died, outcome);
  else if (l.rank == 0 && l.tid == 0) outcome->status = status;
}

template <int RANKS>
__device__ void searcher<RANKS>::run() {
  for (;;) {
    l.sync();
    if (l.rank == 0 && l.tid < RANKS) {
      u32 place = 0;
      if (l.tid == 0) place = atomicAdd(p->queue, 1u);
      place = __shfl_sync((1u << RANKS) - 1, place, 0);
      l.of(l.tid)->utterance = place < p->num_utterances ? p->order[place] : ALL;
    }
    l.sync();
    u32 u = l.sh->utterance;
    if (u == ALL) return;
    decode(p->utterances[u], &p->outcomes[u]);
  }
}

template <int RANKS>
__global__ void __launch_bounds__(WF__LANE_THREADS, 1) lane_search(const __grid_constant__ wf__lane_params p) {
  extern __shared__ __align__(16) unsigned char memory[];
  searcher<RANKS> s(&p, (lane_shared *)memory);
  s.run();
  if (RANKS > 1) cg::this_cluster().sync(); /* nobody leaves while others may read its shared memory */
}

/* --- checking scores ---------------------------------------------------------------------------------------------------- */

__global__ void check_scores(const wf__lane_utterance *utterances, u64 *bad) {
  const wf__lane_utterance u = utterances[blockIdx.x];
  u64 first = ~0ull;
  for (int32_t t = blockIdx.y; t < u.num_frames; t += gridDim.y) {
    for (int32_t c = threadIdx.x; c < u.num_columns; c += blockDim.x) {
      int64_t i = t * u.stride + c;
      float value;
      if (u.dtype == 0) {
        value = __ldg((const float *)u.scores + i);
      } else {
        u32 bits = __ldg((const unsigned short *)u.scores + i);
        value = __uint_as_float(bits << 16);
        if (u.dtype == 1) asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
      }
      bool fine = value <= 1e20f && (value >= -1e20f || value == -INFINITY);
      if (!fine) first = min(first, (u64)t << 32 | (u32)c);
    }
  }
  if (first != ~0ull) atomicMin(&bad[blockIdx.x], first);
}

extern "C" int wf__check_scores_launch(const wf__lane_utterance *utterances, uint32_t count, uint64_t *bad, void *stream) {
  if (count == 0) return cudaSuccess;
  check_scores<<<dim3(count, 32), 256, 0, (cudaStream_t)stream>>>(utterances, (u64 *)bad);
  return cudaGetLastError();
}

/* --- launching --------------------------------------------------------------------------------------------------------- */

static size_t shared_bytes(int32_t num_columns) {
  size_t row = num_columns <= WF__LANE_MAX_ROW ? (size_t)num_columns : 1;
  return sizeof(lane_shared) + row * sizeof(float);
}

template <int RANKS>
static cudaError_t configure(cudaLaunchConfig_t *config, cudaLaunchAttribute *attribute, unsigned lanes, int32_t num_columns, cudaStream_t stream) {
  size_t bytes = shared_bytes(num_columns);
  cudaError_t code = cudaFuncSetAttribute(lane_search<RANKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
  if (code != cudaSuccess) return code;
  attribute->id = cudaLaunchAttributeClusterDimension;
  attribute->val.clusterDim.x = RANKS;
  attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
  *config = cudaLaunchConfig_t{};
  config->gridDim = dim3(lanes * RANKS);
  config->blockDim = dim3(WF__LANE_THREADS);
  config->dynamicSmemBytes = bytes;
  config->stream = stream;
  config->attrs = attribute;
  config->numAttrs = RANKS > 1 ? 1 : 0;
  return cudaSuccess;
}

template <int RANKS>
static cudaError_t launch(const wf__lane_params *params, cudaStream_t stream) {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attribute;
  cudaError_t code = configure<RANKS>(&config, &attribute, params->num_lanes, params->num_columns, stream);
  if (code != cudaSuccess) return code;
  code = cudaLaunchKernelEx(&config, lane_search<RANKS>, *params);
  return code != cudaSuccess ? code : cudaGetLastError();
}

template <int RANKS>
static cudaError_t capacity(int32_t num_columns, int *out_lanes) {
  cudaLaunchConfig_t config;
  cudaLaunchAttribute attribute;
  cudaError_t code = configure<RANKS>(&config, &attribute, 1, num_columns, 0);
  if (code != cudaSuccess) return code;
  if (RANKS > 1) return cudaOccupancyMaxActiveClusters(out_lanes, lane_search<RANKS>, &config);
  int device = 0, processors = 0, blocks = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, lane_search<RANKS>, WF__LANE_THREADS, config.dynamicSmemBytes);
  *out_lanes = blocks * processors;
  return code;
}

extern "C" int wf__lane_search_launch(const wf__lane_params *params, void *stream) {
  switch (params->ranks) {
    case 1: return launch<1>(params, (cudaStream_t)stream);
    case 2: return launch<2>(params, (cudaStream_t)stream);
    case 4: return launch<4>(params, (cudaStream_t)stream);
    case 8: return launch<8>(params, (cudaStream_t)stream);
  }
  return cudaErrorInvalidValue;
}

extern "C" int wf__lane_search_capacity(int ranks, int32_t num_columns, int *out_lanes) {
  *out_lanes = 0;
  switch (ranks) {
    case 1: return capacity<1>(num_columns, out_lanes);
    case 2: return capacity<2>(num_columns, out_lanes);
    case 4: return capacity<4>(num_columns, out_lanes);
    case 8: return capacity<8>(num_columns, out_lanes);
  }
  return cudaErrorInvalidValue;
}
