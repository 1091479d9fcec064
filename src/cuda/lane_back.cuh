/* lane_back.cuh - the raw lattice of an utterance (docs/semantics.md, "Lattice"), made backward from the newest frame when its lane has searched it. Launched behind the search: one
 * small block an utterance, as only a few dozen tokens of a frame are in a lattice, so several share a processor.
 *
 * The search notes no arcs. It keeps each token's cost, and of each frame what decided which candidates were let in; arcs are gone over again, with the arithmetic of the
 * search, between the few tokens that matter:
 *
 *   table   tokens of frame t within the beam: key -> {cost, extra}; extra: cost of the best way through it above that of the best way of all
 *   marks   a bitmap of the states with arcs to the table's states, so of all tokens of t - 1 only some hundred are looked at
 *   list    these tokens: over consuming arcs; then, round by round, over epsilon arcs within t - 1
 *
 * What is within the beam over the arcs of the listed tokens makes the table of t - 1, and goes out to pages. Extra costs are minima over ways, kept as ordered integers: no order of
 * threads can show.
 *
 * With a scorer, states are pairs (state, context), and the scorer is asked again: a bitmap of the graph's states in the table tells which arcs are worth asking for.
 *
 * In the block's shared memory, behind what the search keeps in front of its own table:
 *   2 x {keys, costs, extras [2^bits], places [2^bits] of the slots taken}, list [WINDOW], marks, 2 x news: bits of the slots that an epsilon round has changed */
#ifndef WF_CUDA_LANE_BACK_CUH
#define WF_CUDA_LANE_BACK_CUH

#include "lane_lattice.cuh"

namespace WF_LANE_SPACE {

#ifndef WF__BACK_BITS /* a test makes them small, to see every boundary */
#define WF__BACK_BITS (SCORED ? 10 : 11) /* slots of a table are 2^this: two blocks a processor */
#define WF__BACK_WINDOW 8192             /* tokens of a frame that are listed at a time */
#define WF__BACK_MARKED 16384            /* arcs into a state; if one has more, all tokens are looked at */
#define WF__BACK_HUB 256
#endif
constexpr u32 BACK_THREADS = WF__BACK_THREADS, BACK_WARPS = BACK_THREADS / 32;
constexpr u32 BACK_BITS = WF__BACK_BITS, WIDE_BITS = 12; /* of a second launch, for utterances that found no room in the first: one block a processor */
constexpr u32 WINDOW = WF__BACK_WINDOW, MOST_MARKED = WF__BACK_MARKED;
constexpr u32 MARK_BITS = 15; /* of the bitmap of marks */
constexpr u32 HELD_BITS = 14; /* of a bitmap of states in a table, with scorers */
constexpr u32 HUB = WF__BACK_HUB, MOST_HUBS = 16; /* arcs into a state that a warp is not left alone with; such states in a table, or all tokens are looked at */
constexpr u32 NO_PAGE = 0xffffffffu;

/* In lane_shared.hist. */
struct back_work {
  u32 page[BACK_WARPS], fill[BACK_WARPS]; /* of each warp: the page it writes to, NO_PAGE if none, and its entries so far, the first one counted */
  u32 bound;                              /* of the newest table's tokens: the largest cost - extra, ordered */
  u32 size[2];                            /* tokens in either table */
  u32 ends[8], shifts[8];                 /* of the ranks' tokens among those of a frame; from there to their places in the rank's trace */
  u32 num_listed;
  u32 any_marked, all_marked;
  u32 num_hubs, hub_first[MOST_HUBS], hub_count[MOST_HUBS];
  u32 no_room, full;                      /* for pages; in a table */
};
static_assert(sizeof(back_work) <= sizeof(lane_shared::hist), "back_work must fit the histogram");
static_assert(2 * sizeof(u32) << (HELD_BITS - 5) <= sizeof(lane_shared::agenda), "the bitmaps must fit the agenda");

struct back_table {
  token_key *keys;
  float *costs;
  int *extras;
  uint16_t *places;
  u32 *news; /* bitmap of the slots whose extra costs an epsilon round has changed; NULL: nobody asks */
  u32 *held; /* with scorers: bitmap of its states */
  u32 *size;
  u32 mask;
};

__device__ __forceinline__ back_work &own_back() { return *reinterpret_cast<back_work *>(own().hist); }

constexpr u32 BACK_SLOT_BYTES = sizeof(token_key) + sizeof(float) + sizeof(int) + sizeof(uint16_t);
constexpr u32 BACK_OFFSET = offsetof(lane_shared, values);
static_assert(BACK_OFFSET % 16 == 0, "the tables must be aligned");
__host__ __device__ constexpr u32 back_bytes(u32 bits) { return BACK_OFFSET + 2 * (BACK_SLOT_BYTES << bits) + WINDOW * (u32)sizeof(uint16_t) + (1u << MARK_BITS) / 8 + 2 * (1u << bits) / 8; }

__device__ __forceinline__ back_table table_at(u32 which, u32 bits) {
  char *at = (char *)&own() + BACK_OFFSET + which * (BACK_SLOT_BYTES << bits);
  back_table table;
  table.keys = (token_key *)at;
  table.costs = (float *)(at + (sizeof(token_key) << bits));
  table.extras = (int *)(table.costs + (1u << bits));
  table.places = (uint16_t *)(table.extras + (1u << bits));
  table.held = (u32 *)own().agenda + which * (1u << (HELD_BITS - 5));
  table.news = NULL;
  table.size = &own_back().size[which];
  table.mask = (1u << bits) - 1;
  return table;
}
__device__ __forceinline__ uint16_t *list_at(u32 bits) { return (uint16_t *)((char *)&own() + BACK_OFFSET + 2 * (BACK_SLOT_BYTES << bits)); }
__device__ __forceinline__ u32 *marks_at(u32 bits) { return (u32 *)(list_at(bits) + WINDOW); }

/* Of two bitmaps of slots, in turns. */
__device__ __forceinline__ u32 *news_at(u32 round, u32 bits) { return marks_at(bits) + (1u << MARK_BITS) / 32 + (round & 1) * ((1u << bits) / 32); }

/* --- the table of a frame ------------------------------------------------------------------------------------------------ */

__device__ __forceinline__ void clear(const back_table &table) {
  for (u32 i = tid(); i <= table.mask; i += BACK_THREADS) {
    table.keys[i] = NO_STATE;
    table.extras[i] = __float_as_int(INFINITY);
  }
  for (u32 i = tid(); SCORED && i < 1u << (HELD_BITS - 5); i += BACK_THREADS) table.held[i] = 0;
  if (tid() == 0) *table.size = 0;
}

__device__ __forceinline__ u32 home_of(const back_table &table, token_key key) {
  u32 hash = folded(key) * 0x9E3779B1u;
  return (hash ^ hash >> 15) & table.mask;
}

__device__ __forceinline__ u32 held_bit(u32 state) { return state * 0x9E3779B1u >> (32 - HELD_BITS); }

/* False: no token of the graph's state is in the table, whatever its context. */
__device__ __forceinline__ bool may_have(const back_table &table, u32 state) {
  const u32 bit = held_bit(state);
  return !SCORED || (*(volatile u32 *)&table.held[bit >> 5] >> (bit & 31) & 1) != 0;
}

/* Slot of the key's token; ALL: it is not there. */
__device__ __forceinline__ u32 find_slot(const back_table &table, token_key key) {
  u32 at = home_of(table, key);
  for (u32 left = table.mask + 1; left > 0; left--) {
    const token_key seen = *(volatile token_key *)&table.keys[at];
    if (seen == key) return at;
    if (seen == NO_STATE) break;
    at = (at + 1) & table.mask;
  }
  return ALL;
}

/* Extra cost of a candidate for the token in a slot, +infinity if it is not known to be within the beam. */
__device__ __forceinline__ float way_on(const back_table &table, u32 slot, float candidate, float beam) {
  const float extra = __int_as_float(*(volatile int *)&table.extras[slot]);
  if (!(extra <= beam)) return INFINITY; /* it is being put there */
  __threadfence_block();
  const float cost = *(volatile float *)&table.costs[slot];
  return __fadd_rn(candidate > cost ? __fsub_rn(candidate, cost) : 0, extra);
}

__device__ __forceinline__ token_key swap_table_key(token_key *place, token_key key) {
#ifdef WF_LANE_SCORED
  return atomicCAS((u64 *)place, (u64)NO_STATE, key);
#else
  return atomicCAS(place, NO_STATE, key);
#endif
}

/* The token has a way on at this extra cost. True if that is news. */
__device__ __forceinline__ bool put_token(const back_table &table, u32 state, token_key key, float cost, float extra) {
  back_work &work = own_back();
  u32 at = home_of(table, key);
  for (u32 left = table.mask + 1;; at = (at + 1) & table.mask) {
    token_key seen = *(volatile token_key *)&table.keys[at];
    if (seen == NO_STATE) {
      seen = swap_table_key(&table.keys[at], key);
      if (seen == NO_STATE) {
        table.places[atomicAdd(table.size, 1u)] = (uint16_t)at;
        break;
      }
    }
    if (seen == key) break;
    if (--left == 0) {
      work.full = 1;
      return false;
    }
  }
  if (SCORED) atomicOr(&table.held[held_bit(state) >> 5], 1u << (held_bit(state) & 31));
  *(volatile float *)&table.costs[at] = cost; /* all who come write the same */
  __threadfence_block();
  if (atomicMin(&table.extras[at], __float_as_int(extra)) <= __float_as_int(extra)) return false; /* never negative, so the bits are ordered */
  atomicMax(&work.bound, ordered(__fsub_rn(cost, extra)));
  if (table.news != NULL) atomicOr(&table.news[at >> 5], 1u << (at & 31));
  return true;
}

/* --- what goes out ------------------------------------------------------------------------------------------------------- */

/* Tells the warp's page how much of it is used, and clears the rest, as pages are copied whole. */
template <int RANKS>
__device__ void searcher<RANKS>::close_page() {
  const u32 page = own_back().page[warp()], fill = own_back().fill[warp()];
  if (page == NO_PAGE) return;
  wf__lane_link *const links = p->pages + (u64)page * WF__LANE_PAGE;
  for (u32 i = fill + in_warp(); i < WF__LANE_PAGE; i += 32) {
    links[i] = wf__lane_link{0, 0, 0, 0};
    if (SCORED) p->page_contexts[(u64)page * WF__LANE_PAGE + i] = 0;
  }
  if (in_warp() == 0) links[0].source = fill;
}

/* The warp's next page: before it in the chain is what was the last one. */
template <int RANKS>
__device__ void searcher<RANKS>::open_page() {
  back_work &work = own_back();
  u32 page = work.no_room == 0 ? atomicAdd(p->pages_used, 1u) : NO_PAGE;
  if (page >= p->pages_cap) {
    page = NO_PAGE;
    work.no_room = 1;
  } else {
    p->pages[(u64)page * WF__LANE_PAGE] = wf__lane_link{atomicExch(&p->outcomes[own().utterance].last_page, page + 1), 0, 0, 0};
    if (SCORED) p->page_contexts[(u64)page * WF__LANE_PAGE] = 0;
  }
  work.page[warp()] = page;
  work.fill[warp()] = 1;
}

/* Appends the links of the live threads of a warp, with the contexts of their sources. */
template <int RANKS>
__device__ void searcher<RANKS>::put_links(bool live, const wf__lane_link &link, u64 context) {
  back_work &work = own_back();
  const u32 votes = __ballot_sync(ALL, live), count = __popc(votes);
  if (count == 0) return;
  if (work.page[warp()] == NO_PAGE || work.fill[warp()] + count > WF__LANE_PAGE) {
    close_page();
    __syncwarp();
    if (in_warp() == 0) open_page();
    __syncwarp();
  }
  const u32 page = work.page[warp()], fill = work.fill[warp()];
  const u64 at = (u64)page * WF__LANE_PAGE + fill + __popc(votes & ((1u << in_warp()) - 1));
  if (live && page != NO_PAGE) p->pages[at] = link;
  if (SCORED && live && page != NO_PAGE) p->page_contexts[at] = context;
  __syncwarp();
  if (in_warp() == 0) work.fill[warp()] = fill + count;
  __syncwarp();
}

/* --- which tokens matter -------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ u32 mark_of(u32 state) { return state * 0x9E3779B1u >> (32 - MARK_BITS); }

__device__ __forceinline__ void set_mark(u32 *marks, u32 state) {
  const u32 mark = mark_of(state);
  if ((*(volatile u32 *)&marks[mark >> 5] >> (mark & 31) & 1) == 0) atomicOr(&marks[mark >> 5], 1u << (mark & 31));
}

/* The arcs into a state of the table that are to be marked. Those of words added to the graph are in no list: all of their tokens are looked at anyway, but epsilon arcs lead to them from others. */
template <int RANKS>
template <bool EPSILONS>
__device__ __forceinline__ u32 searcher<RANKS>::arcs_into(u32 state, u32 *first) {
  back_work &work = own_back();
  *first = 0;
  if (is_added(state)) {
    if (EPSILONS) work.all_marked = work.any_marked = 1;
    return 0;
  }
  *first = __ldg(p->in_offsets[EPSILONS] + state);
  const u32 count = __ldg(p->in_offsets[EPSILONS] + state + 1) - *first;
  if (count > 0 || has_words()) work.any_marked = 1; /* an added state's arc may lead there */
  if (count <= HUB) return count;
  const u32 hub = count <= MOST_MARKED ? atomicAdd(&work.num_hubs, 1u) : MOST_HUBS;
  if (hub < MOST_HUBS) {
    work.hub_first[hub] = *first;
    work.hub_count[hub] = count;
  } else {
    work.all_marked = 1;
  }
  return 0;
}

/* Marks the states that consuming arcs, or epsilon arcs, lead from to states of the table; `news`: only to those of these slots. By the whole block; a barrier before, and after. */
template <int RANKS>
template <bool EPSILONS>
__device__ void searcher<RANKS>::mark_sources(const back_table &table, const u32 *news) {
  constexpr u32 AT_ONCE = 4;
  back_work &work = own_back();
  const u32 boxes = l.base + OFFSET(boxes) + warp() * (u32)sizeof own().boxes[0], size = *table.size;
  const u32 *sources = p->in_sources[EPSILONS];
  u32 *marks = marks_at(p->back_bits);
  const u32 grain = min(32u, (size + BACK_WARPS - 1) / BACK_WARPS);
  for (u32 base = warp() * grain; base < size; base += BACK_WARPS * grain) {
    u32 first = 0, count = 0;
    if (in_warp() < grain && base + in_warp() < size) {
      const u32 slot = table.places[base + in_warp()];
      if (news == NULL || (news[slot >> 5] >> (slot & 31) & 1) != 0) count = arcs_into<EPSILONS>(state_of(table.keys[slot]), &first);
    }
    __syncwarp();
    arc_share share(boxes, in_warp(), first, count, 0);
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 at;
      float zero;
      u64 none;
      share.at(k0, in_warp(), &at, &zero, &none);
      if (k0 + in_warp() < share.total) set_mark(marks, __ldg(sources + at));
      __syncwarp();
    }
  }
  __syncthreads(); /* the hubs are known */
  for (u32 hub = 0; hub < min(work.num_hubs, MOST_HUBS); hub++) {
    const u32 first = work.hub_first[hub], count = work.hub_count[hub];
    for (u32 i = tid(); i < count; i += AT_ONCE * BACK_THREADS) {
      u32 state[AT_ONCE];
#pragma unroll
      for (u32 k = 0; k < AT_ONCE; k++) state[k] = i + k * BACK_THREADS < count ? __ldg(sources + first + i + k * BACK_THREADS) : ALL;
#pragma unroll
      for (u32 k = 0; k < AT_ONCE; k++)
        if (state[k] != ALL) set_mark(marks, state[k]);
    }
  }
}

/* Nothing is marked. By the whole block; barriers before and after. */
__device__ __forceinline__ void clear_marks(u32 bits) {
  back_work &work = own_back();
  u32 *marks = marks_at(bits);
  for (u32 i = tid(); i < (1u << MARK_BITS) / 32; i += BACK_THREADS) marks[i] = 0;
  if (tid() == 0) work.any_marked = work.all_marked = work.num_hubs = 0;
}

/* From here on place_of_token knows the tokens of frame `number`: those of one rank after those of the other. By the whole block, with barriers before and after. */
template <int RANKS>
__device__ void searcher<RANKS>::open_frame(u32 number) {
  back_work &work = own_back();
  __syncthreads();
  if (warp() == 0) {
    const u32 *off = frame_off() + (u64)min(in_warp(), RANKS - 1u) * (p->frames_cap + 2) + number;
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
  __syncthreads();
}

/* Place of token i of the frame in the traces of the lane. */
template <int RANKS>
__device__ __forceinline__ u64 searcher<RANKS>::place_of_token(u32 i) const {
  const back_work &work = own_back();
  u32 rank = 0;
#pragma unroll
  for (u32 r = 0; r + 1 < RANKS; r++) rank += i >= work.ends[r];
  return (u64)rank * p->trace_cap + (u32)(work.shifts[rank] + i);
}

/* Those of the frame's tokens from `window` on whose states are marked, and that have epsilon arcs if these are in question, into the list, counted from there. By the whole block, with barriers before and
 * after. */
template <int RANKS>
template <bool EPSILONS>
__device__ u32 searcher<RANKS>::list_tokens(u32 window) {
  constexpr u32 AT_ONCE = 4;
  back_work &work = own_back();
  const u32 size = min(WINDOW, work.ends[RANKS - 1] - window);
  uint16_t *list = list_at(p->back_bits);
  const u32 *marks = marks_at(p->back_bits);
  __syncthreads(); /* nobody reads the list before */
  if (tid() == 0) work.num_listed = 0;
  __syncthreads();
  const bool all = work.all_marked != 0;
  for (u32 base = warp() * 32; base < size; base += BACK_THREADS * AT_ONCE) {
    uint2 token[AT_ONCE];
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      const u32 i = base + k * BACK_THREADS + in_warp();
      token[k] = i < size ? __ldg(trace() + place_of_token(window + i)) : make_uint2(0, 0);
    }
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      const u32 i = base + k * BACK_THREADS + in_warp(), mark = mark_of(token[k].x);
      const bool taken = i < size && (!EPSILONS || (token[k].y & WITH_EPSILONS) != 0) && (all || (marks[mark >> 5] >> (mark & 31) & 1) != 0 || is_added(token[k].x));
      const u32 votes = __ballot_sync(ALL, taken);
      if (votes == 0) continue;
      u32 at = 0;
      if (in_warp() == 0) at = atomicAdd(&work.num_listed, (u32)__popc(votes));
      at = __shfl_sync(ALL, at, 0) + __popc(votes & ((1u << in_warp()) - 1));
      if (taken) list[at] = (uint16_t)i;
      __syncwarp();
    }
  }
  __syncthreads();
  return work.num_listed;
}

/* --- ways on -------------------------------------------------------------------------------------------------------------- */

/* Over the consuming arcs of a warp's tokens of frame `number`, to those of the next in `table`: who is within the beam goes to `before`, the arcs out. `info`:
 * of a token's state, without arcs if it has no part. */
template <int RANKS>
__device__ void searcher<RANKS>::take_emitting(uint4 info, u32 state, u64 context, float cost, u32 number, const back_table &table, const back_table &before) {
  const u32 boxes = l.base + OFFSET(boxes) + warp() * (u32)sizeof own().boxes[0];
  const float best = records()[number].best;
  const u64 last = records()[number + 1].last, last_context = SCORED ? records()[number + 1].last_context : 0;
  arc_share share(boxes, in_warp(), info.x, info.y - info.x, __uint_as_float(in_warp()));
  for (u32 k0 = 0; k0 < share.total; k0 += 32) {
    u32 a, column = 0;
    float who, extra = INFINITY;
    u64 none;
    share.at(k0, in_warp(), &a, &who, &none);
    const int from = (int)(__float_as_uint(who) & 31);
    const u32 source = __shfl_sync(ALL, state, from);
    const float source_cost = __shfl_sync(ALL, cost, from);
    const u64 source_context = SCORED ? __shfl_sync(ALL, context, from) : 0;
    if (k0 + in_warp() < share.total) {
      const uint4 arc = arc_at(arcs(), a);
      const u32 to = arc.x & 0x7fffffffu;
      u64 to_context = source_context;
      float candidate = __fadd_rn(__fsub_rn(source_cost, best), __uint_as_float(arc.y));
      if (arc.w != 0) candidate = __fsub_rn(candidate, p->word_score);
      bool live = may_have(table, to);
      if (SCORED && live && arc.w != 0) candidate = word_cost(arc.w, candidate, &to_context);
      const u32 slot = live ? find_slot(table, key_of(to, to_context)) : ALL;
      column = arc.z;
      if (slot != ALL) {
        candidate = __fadd_rn(candidate, cost_of_score(penalised(loglike(row_of(row_frame), column), column)));
        if (candidate <= FLT_MAX && is_up_to((u64)ordered(candidate) << 32 | a, source_context, last, last_context)) extra = way_on(table, slot, candidate, p->lattice_beam);
      }
    }
    const bool live = extra <= p->lattice_beam;
    if (live) put_token(before, source, key_of(source, source_context), source_cost, extra);
    __syncwarp();
    put_links(live, live ? wf__lane_link{number, source, a, penalised(loglike(row_of(row_frame), column), column)} : wf__lane_link{}, source_context);
  }
}

/* The same over the epsilon arcs within frame `number`, once. OUT: extra costs stand, and the arcs go out. */
template <int RANKS>
template <bool OUT>
__device__ void searcher<RANKS>::take_epsilons(uint4 info, u32 state, u64 context, float cost, u32 number, const back_table &table) {
  const u32 boxes = l.base + OFFSET(boxes) + warp() * (u32)sizeof own().boxes[0];
  const float cutoff = cost_of((u32)(records()[number].last >> 32));
  arc_share share(boxes, in_warp(), info.y, info.z - info.y, __uint_as_float(in_warp()));
  for (u32 k0 = 0; k0 < share.total; k0 += 32) {
    u32 a, to = 0;
    float who, extra = INFINITY;
    u64 none;
    share.at(k0, in_warp(), &a, &who, &none);
    const int from = (int)(__float_as_uint(who) & 31);
    const u32 source = __shfl_sync(ALL, state, from);
    const float source_cost = __shfl_sync(ALL, cost, from);
    const u64 source_context = SCORED ? __shfl_sync(ALL, context, from) : 0;
    u64 to_context = source_context;
    if (k0 + in_warp() < share.total) {
      const uint4 arc = arc_at(arcs(), a);
      to = arc.x & 0x7fffffffu;
      float candidate = __fadd_rn(source_cost, __uint_as_float(arc.y));
      if (arc.w != 0) candidate = __fsub_rn(candidate, p->word_score);
      const bool ask = may_have(table, to);
      if (SCORED && ask && arc.w != 0) candidate = word_cost(arc.w, candidate, &to_context);
      const u32 slot = ask && candidate <= cutoff ? find_slot(table, key_of(to, to_context)) : ALL;
      if (slot != ALL) extra = way_on(table, slot, candidate, p->lattice_beam);
    }
    __syncwarp();
    const bool live = leads_on(extra <= p->lattice_beam, source, source_context, to, to_context, number);
    if (OUT) put_links(live, wf__lane_link{number, source, a, 0}, source_context);
    else if (live) put_token(table, source, key_of(source, source_context), source_cost, extra);
    __syncwarp();
  }
}

/* Context of a token of any rank's trace. */
template <int RANKS>
__device__ __forceinline__ u64 searcher<RANKS>::context_at(const ulonglong2 *contexts) const {
  return SCORED ? __ldg((const u64 *)contexts) : 0;
}

/* From the tokens of frame `number`, which is open, to those of the next, in `table`; what is within the beam goes to `before`. */
template <int RANKS>
__device__ void searcher<RANKS>::step_back(u32 number, const back_table &table, const back_table &before) {
  const uint16_t *list = list_at(p->back_bits);
  const wf__lane_frame here = records()[number];
  for (u32 window = 0; window < own_back().ends[RANKS - 1]; window += WINDOW) {
    const u32 count = list_tokens<false>(window), grain = min(32u, (count + BACK_WARPS - 1) / BACK_WARPS);
    for (u32 base = warp() * grain; base < count; base += BACK_WARPS * grain) {
      uint4 info = make_uint4(0, 0, 0, 0);
      u32 state = 0;
      u64 context = 0;
      float cost = 0;
      if (in_warp() < grain && base + in_warp() < count) {
        const u64 at = place_of_token(window + list[base + in_warp()]);
        state = __ldg(trace() + at).x;
        cost = __ldg(past() + at).x;
        context = context_at(contexts() + at);
        const bool selected = is_up_to((u64)ordered(__fsub_rn(cost, here.best)) << 32 | state, context, here.select, here.select_context);
        if (selected) info = state_at(states(), state);
      }
      take_emitting(info, state, context, cost, number, table, before);
    }
  }
}

/* Over the epsilon arcs of the marked tokens of frame `number`, which is open, once. */
template <int RANKS>
__device__ void searcher<RANKS>::relax_back(u32 number, const back_table &table) {
  const uint16_t *list = list_at(p->back_bits);
  const u32 highest = own_back().bound;
  const float beam = p->lattice_beam, cost_bound = cost_of(highest), bound = highest == 0 ? -INFINITY : cost_bound + beam + (fabsf(cost_bound) + beam) * (1.0f / (1 << 18));
  for (u32 window = 0; window < own_back().ends[RANKS - 1]; window += WINDOW) {
    const u32 count = list_tokens<true>(window), grain = min(32u, (count + BACK_WARPS - 1) / BACK_WARPS);
    for (u32 base = warp() * grain; base < count; base += BACK_WARPS * grain) {
      uint4 info = make_uint4(0, 0, 0, 0);
      u32 state = 0;
      u64 context = 0;
      float cost = 0;
      if (in_warp() < grain && base + in_warp() < count) {
        const u64 at = place_of_token(window + list[base + in_warp()]);
        state = __ldg(trace() + at).x;
        cost = __ldg(past() + at).x;
        context = context_at(contexts() + at);
        if (least_candidate(cost, 1) <= bound) info = state_at(states(), state);
      }
      take_epsilons<false>(info, state, context, cost, number, table);
    }
  }
}

/* Extra costs of frame `number`, which is open, over its epsilon arcs, in rounds of arcs to what the last one has changed: these arcs make no cycle, so every order of relaxing them ends with
 * the same costs. Then the arcs go out. False if they go round for ever, which cannot be. */
template <int RANKS>
__device__ bool searcher<RANKS>::close_table(u32 number, back_table table) {
  const u32 bits = p->back_bits;
  for (u32 round = 0;; round++) {
    if (round > most_rounds()) return false;
    table.news = news_at(round, bits);
    for (u32 i = tid(); i < (1u << bits) / 32; i += BACK_THREADS) table.news[i] = 0;
    clear_marks(bits);
    __syncthreads();
    mark_sources<true>(table, round > 0 ? news_at(round - 1, bits) : NULL);
    __syncthreads();
    if (*(volatile u32 *)&own_back().any_marked == 0) break;
    relax_back(number, table);
    __syncthreads();
  }
  const u32 size = *table.size, grain = min(32u, (size + BACK_WARPS - 1) / BACK_WARPS);
  for (u32 base = warp() * grain; base < size; base += BACK_WARPS * grain) {
    uint4 info = make_uint4(0, 0, 0, 0);
    u32 state = 0;
    u64 context = 0;
    float cost = 0;
    if (in_warp() < grain && base + in_warp() < size) {
      const u32 slot = table.places[base + in_warp()];
      state = state_of(table.keys[slot]);
      context = context_of(table.keys[slot]);
      cost = table.costs[slot];
      info = state_at(states(), state);
    }
    take_epsilons<true>(info, state, context, cost, number, table);
  }
  return true;
}

/* --- the way back --------------------------------------------------------------------------------------------------------- */

/* Tokens of the newest frame, which is open, that may be the end: their extra costs are what ending costs. */
template <int RANKS>
__device__ void searcher<RANKS>::take_endings(u32 number, const back_table &table) {
  const u32 size = own_back().ends[RANKS - 1];
  for (u32 base = warp() * 32; base < size; base += BACK_THREADS) {
    const u32 i = base + in_warp();
    const u64 at = i < size ? place_of_token(i) : 0;
    const float2 known = i < size ? __ldg(past() + at) : make_float2(0, INFINITY);
    const bool ends = known.y <= p->lattice_beam;
    const u32 state = ends ? __ldg(trace() + at).x : 0;
    const u64 context = ends ? context_at(contexts() + at) : 0;
    if (ends) put_token(table, state, key_of(state, context), known.x, known.y);
    __syncwarp();
    put_links(ends, wf__lane_link{number, state, WF__LANE_ENDING, 0}, context);
  }
}

/* The lattice into pages. False if a frame has more tokens within the beam than a table holds, or there are not enough pages. */
template <int RANKS>
__device__ bool searcher<RANKS>::go_back() {
  back_work &work = own_back();
  u32 which = 0;
  if (tid() < BACK_WARPS) work.page[tid()] = NO_PAGE;
  if (tid() == 0) work.no_room = work.full = work.bound = 0;
  clear(table_at(0, p->back_bits));
  open_frame(frame - 1);
  take_endings(frame - 1, table_at(0, p->back_bits));
  for (u32 number = frame - 1;; number--) {
    const back_table table = table_at(which, p->back_bits), before = table_at(which ^ 1, p->back_bits);
    __syncthreads(); /* the table stands */
    if (p->has_epsilons && !close_table(number, table)) return false;
    __syncthreads(); /* nobody asks for marks any more */
    clear(before);
    clear_marks(p->back_bits);
    __syncthreads();
    if (work.full != 0 || work.no_room != 0) return false;
    if (number == 0) break;
    if (tid() == 0) work.bound = 0; /* read again behind the next barriers */
    row_frame = row_before(row_frame);
    mark_sources<false>(table, NULL);
    open_frame(number - 1);
    step_back(number - 1, table, before);
    which ^= 1;
  }
  close_page();
  return true;
}

/* Of the utterances whose lattice is `wanted` (WF__LANE_OK: all that were searched; WF__LANE_WIDE: those that found no room in smaller tables). */
template <int RANKS>
__device__ void searcher<RANKS>::make_lattice(int wanted) {
  if (tid() == 0) {
    own().utterance = p->order[blockIdx.x / RANKS];
    own().scores = p->utterances[own().utterance];
  }
  __syncthreads();
  wf__lane_outcome *outcome = &p->outcomes[own().utterance];
  if (outcome->status != wanted) return;
  __syncthreads(); /* everybody has seen it */
  if (SCORED) load_scorer();
  frame = records()[0].settled;
  row_frame = (u32)outcome->num_decoded;
  if (tid() == 0) outcome->last_page = 0;
  const bool fits = go_back();
  __syncthreads();
  if (tid() == 0) outcome->status = fits ? WF__LANE_OK : own_back().full != 0 && wanted == WF__LANE_OK ? WF__LANE_WIDE : WF__LANE_NO_ROOM;
}

template <int RANKS>
__global__ void __launch_bounds__(BACK_THREADS, 2) lattice_back(const __grid_constant__ wf__lane_params p, int wanted) {
  if (blockIdx.x % RANKS != 0) return; /* numbered as the blocks of the search, whose memory it is */
  searcher<RANKS> s(&p);
  s.make_lattice(wanted);
}

}  // namespace WF_LANE_SPACE

#endif
