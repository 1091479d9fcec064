/* lane_lattice.cuh - the raw lattice of an utterance (docs/semantics.md, "Lattice"), made by the lane that searched it, backward from the newest frame.
 *
 * The search notes no arcs. It keeps each token's cost, and of each frame what decided which candidates were let in; the arcs are gone over again, with the
 * arithmetic of the search, once it is known which tokens of the frame that they lead to are within the beam. Those are few, and lie in the table:
 *
 *   table   tokens of frame t within the beam: state -> its place in the frame     <- arcs from the tokens of t - 1, of t if they are epsilons
 *   past    {cost, extra} of every token; extra: cost of the best way through it above that of the best way of all
 *
 * With a scorer, states are pairs (state, context), and the scorer is asked again. Nothing is known of the least that a word may cost, so a bitmap of the graph's
 * states in the table tells which arcs are worth asking for.
 *
 * A token whose cost and the least that an arc may add are beyond every cost that could lead to a token in the table is passed over with its arcs.
 * Extra costs are minima over ways, kept as ordered integers: no order of threads can show.
 *
 * prune(), when the trace is full: as if every token of the newest frame were an end; tokens beyond the beam are dropped. end_lattice(), at the end: from
 * the true ends, over all frames, and what stays goes out to pages. Arcs between tokens that stayed are found again then, so only tokens are kept. */
#ifndef WF_CUDA_LANE_LATTICE_CUH
#define WF_CUDA_LANE_LATTICE_CUH

#include "lane_searcher.cuh"

namespace WF_LANE_SPACE {

/* In lane_shared.hist, which nothing here needs otherwise. (hist_all is the bitmap of states, with scorers.) */
struct lattice_work {
  u32 page[WARPS], fill[WARPS]; /* of each warp: the page it writes to, NO_PAGE if none, and its entries so far, the first one counted */
  u32 bound;                    /* of this rank's tokens in the table: the largest cost - extra, ordered */
  u32 least_label;              /* cost of the best column of the frame, ordered */
  u32 changed[3];               /* an extra cost of this rank, in this epsilon round, the next, the one before */
  u32 no_room;                  /* for pages */
};
static_assert(sizeof(lattice_work) <= sizeof(lane_shared::hist), "lattice_work must fit the histogram");
constexpr u32 NO_PAGE = 0xffffffffu;

template <int RANKS>
__device__ __forceinline__ lattice_work &work_of(lane<RANKS> &l, u32 rank) {
  return *reinterpret_cast<lattice_work *>(l.of(rank).hist);
}

/* --- the table of a frame ------------------------------------------------------------------------------------------------ */

/* Notes that a token of the graph's state is in the lane's table, whatever its context. */
template <int RANKS>
__device__ __forceinline__ void searcher<RANKS>::note_state(u32 state) {
  constexpr u32 BITS = 8 * sizeof own().hist_all;
  const u32 bit = state * 0x9E3779B1u >> 16 & (BITS - 1);
  for (int r = 0; SCORED && r < RANKS; r++) atomicOr(&l.of(r).hist_all[bit >> 5], 1u << (bit & 31));
}

/* False: no token of the graph's state is in the lane's table, whatever its context. */
template <int RANKS>
__device__ __forceinline__ bool searcher<RANKS>::may_hold(u32 state) const {
  constexpr u32 BITS = 8 * sizeof own().hist_all;
  const u32 bit = state * 0x9E3779B1u >> 16 & (BITS - 1);
  return !SCORED || (*(volatile u32 *)&own().hist_all[bit >> 5] >> (bit & 31) & 1) != 0;
}

/* Puts this rank's tokens of the frame that are within the beam into the table, emptied and as large as the frame calls for. Barriers of the lane before
 * and after. */
template <int RANKS>
__device__ void searcher<RANKS>::fill_table(u32 number) {
  lattice_work &work = work_of(l, l.rank());
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  l.sync(); /* nobody looks at the table before */
  for (u32 i = tid(); i < 1u << l.bits; i += THREADS) {
    own().values[i] = NO_TOKEN;
    own().keys[i] = NO_STATE;
  }
  u32 most = size; /* over the ranks, whose tables are alike */
  for (int r = 0; r < RANKS; r++) {
    const u32 *off = frame_off() + ((int64_t)r - l.rank()) * (p->frames_cap + 2);
    most = max(most, off[number + 1] - off[number]);
  }
  l.bits = WF__LANE_MIN_BITS;
  while (l.bits < SLOT_BITS && (1u << l.bits) < 3 * most) l.bits++;
  if (SCORED && tid() < 256) own().hist_all[tid()] = 0;
  if (tid() == 0) work.bound = 0;
  if (SCORED) l.sync();
  else __syncthreads();
  for (u32 base = 0; base < size; base += THREADS) {
    const u32 i = base + tid();
    const float2 known = i < size ? __ldcg(past() + first + i) : make_float2(0, INFINITY);
    const bool within = known.y <= p->lattice_beam;
    const u32 bound = __reduce_max_sync(ALL, within ? ordered(__fsub_rn(known.x, known.y)) : 0);
    if (in_warp() == 0 && bound > 0) atomicMax(&work.bound, bound);
    const u32 state = within ? __ldcg(trace() + first + i).x : 0;
    u32 slot;
    u64 old;
    offer_own<RANKS>(l, within, within ? key_of(state, traced_context(first + i)) : 0, i, &slot, &old);
    if (within) note_state(state);
    __syncwarp();
  }
  l.sync();
}

/* Place in its frame of the key's token, if that is in the table; else ALL. */
template <int RANKS>
__device__ u32 searcher<RANKS>::look_up(token_key key, u32 *owner) {
  typedef words<(RANKS > 1)> there;
  constexpr u32 STEP = 16 / sizeof key;
  u32 at;
  place_of<RANKS>(key, l.bits, owner, &at);
  const u32 base = l.base_of(*owner), mask = (1u << l.bits) - 1;
  for (u32 probes = 0; probes <= mask; probes += STEP) {
    token_key seen = 0;
    const u32 which = first_of<(RANKS > 1)>(base + OFFSET(keys) + at * (u32)sizeof key, key, &seen);
    if (which < STEP && seen != key) return ALL;
    if (which < STEP) return (u32)there::load64(base + OFFSET(values) + (at + which) * 8); /* NO_TOKEN, cut short, if it is being put there */
    at = (at + STEP) & mask;
  }
  return ALL;
}

/* Extra cost of a candidate for the key's token of frame `number`, in the table; +infinity if there is none. */
template <int RANKS>
__device__ float searcher<RANKS>::extra_over(float candidate, token_key key, u32 number) {
  u32 owner;
  const u32 at = look_up(key, &owner);
  if (at == ALL) return INFINITY;
  const int64_t parts = (int64_t)owner - l.rank();
  const float2 target = __ldcg(past() + parts * p->trace_cap + (frame_off() + parts * (p->frames_cap + 2))[number] + at);
  return __fadd_rn(candidate > target.x ? __fsub_rn(candidate, target.x) : 0, target.y);
}

/* Token i of the frame that begins at `first` has a way on at this extra cost. True if it had none within the beam before. */
template <int RANKS>
__device__ bool searcher<RANKS>::improve(u32 i, u32 first, float extra) {
  const int was = atomicMin((int *)&past()[first + i].y, __float_as_int(extra)); /* never negative, so the bits are ordered */
  return __int_as_float(was) > p->lattice_beam;
}

/* What a candidate may cost at most if its extra cost is within the beam, for any token in the table; what rounding may add is in it. */
template <int RANKS>
__device__ float searcher<RANKS>::furthest() {
  u32 bound = 0;
  for (int r = 0; r < RANKS; r++) bound = max(bound, *(volatile u32 *)&work_of(l, (u32)r).bound);
  if (bound == 0) return -INFINITY; /* no token is in the table */
  const float cost = cost_of(bound), beam = p->lattice_beam;
  return cost + beam + (fabsf(cost) + beam) * (1.0f / (1 << 18));
}

/* No candidate over a consuming (0) or an epsilon arc (1) from a token of this cost, less its acoustic cost, is cheaper: rounding keeps order. A scorer may
 * favour words by any amount, and added words bring weights of their own. */
template <int RANKS>
__device__ float searcher<RANKS>::least_candidate(float cost, int epsilon) const {
  if (has_scorer() || has_words()) return -INFINITY;
  const float least = __fadd_rn(cost, p->least_weights[epsilon]);
  return p->word_score > 0 ? __fsub_rn(least, p->word_score) : least;
}

/* --- what goes out ------------------------------------------------------------------------------------------------------- */

/* Tells the warp's page how much of it is used, and clears the rest, as pages are copied whole. */
template <int RANKS>
__device__ void searcher<RANKS>::close_page() {
  lattice_work &work = work_of(l, l.rank());
  const u32 page = work.page[warp()], fill = work.fill[warp()];
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
  lattice_work &work = work_of(l, l.rank());
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
  lattice_work &work = work_of(l, l.rank());
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

/* Tokens of the newest frame that may be the end; their extra costs are what ending costs. */
template <int RANKS>
__device__ void searcher<RANKS>::put_endings() {
  const u32 first = frame_off()[frame - 1], size = frame_off()[frame] - first;
  for (u32 base = 0; base < size; base += THREADS) {
    const u32 i = base + tid();
    const bool ends = i < size && __ldcg(past() + first + i).y <= p->lattice_beam;
    put_links(ends, wf__lane_link{frame - 1, ends ? __ldcg(trace() + first + i).x : 0, WF__LANE_ENDING, 0}, ends ? traced_context(first + i) : 0);
  }
}

/* --- ways on from a frame's tokens --------------------------------------------------------------------------------------- */

/* Over consuming arcs: from the tokens of frame `number` to those of the next, which are in the table; they read the scores of frame `row`. `out`: the arcs
 * themselves go out. */
template <int RANKS>
__device__ void searcher<RANKS>::relax_emitting(u32 number, u32 row, bool out) {
  lattice_work &work = work_of(l, l.rank());
  const u32 boxes = l.base + OFFSET(boxes) + warp() * (u32)sizeof own().boxes[0];
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  const wf__lane_frame here = records()[number], next = records()[number + 1];
  const float best = here.best, beam = p->lattice_beam;
  float *before = (float *)agenda();
  load_row(row);
  for (u32 i = tid(); i < size; i += THREADS) {
    before[i] = __ldcg(past() + first + i).y;
    past()[first + i].y = INFINITY;
  }
  if (tid() == 0) work.least_label = ALL;
  finish_row();
  __syncthreads();
  u32 least = ALL;
  for (u32 c = tid(); c < (u32)p->num_columns; c += THREADS) least = min(least, ordered(label_cost(c)));
  least = __reduce_min_sync(ALL, least);
  if (in_warp() == 0) atomicMin(&work.least_label, least);
  __syncthreads();
  const float least_label = cost_of(work.least_label), bound = fminf(furthest(), FLT_MAX);
  const u32 grain = min(32u, (size + WARPS - 1) / WARPS);
  for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
    const u32 mine = base + in_warp();
    uint4 info = make_uint4(0, 0, 0, 0);
    if (in_warp() < grain && mine < size) {
      const float cost = __fsub_rn(__ldcg(past() + first + mine).x, best);
      const u32 state = __ldcg(trace() + first + mine).x;
      const bool near = __fadd_rn(least_candidate(cost, 0), least_label) <= bound;
      if (near && is_up_to((u64)ordered(cost) << 32 | state, traced_context(first + mine), here.select, here.select_context)) info = state_at(states(), state);
    }
    arc_share share(boxes, in_warp(), info.x, info.y - info.x, __uint_as_float(mine));
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 a;
      float which;
      u64 none;
      share.at(k0, in_warp(), &a, &which, &none);
      const u32 i = __float_as_uint(which);
      bool live = k0 + in_warp() < share.total;
      u32 column = 0;
      u64 from = 0;
      if (live) {
        const uint4 arc = arc_at(arcs(), a);
        const u32 to = arc.x & 0x7fffffffu;
        u64 context = from = traced_context(first + i);
        float candidate = __fadd_rn(__fsub_rn(__ldcg(past() + first + i).x, best), __uint_as_float(arc.y));
        if (arc.w != 0) candidate = __fsub_rn(candidate, p->word_score);
        live = may_hold(to);
        if (SCORED && live && arc.w != 0) candidate = word_cost(arc.w, candidate, &context);
        candidate = __fadd_rn(candidate, label_cost(arc.z));
        column = arc.z;
        live = live && candidate <= bound && is_up_to((u64)ordered(candidate) << 32 | a, from, next.last, next.last_context);
        if (live) {
          const float extra = extra_over(candidate, key_of(to, context), number + 1);
          live = extra <= beam;
          if (live) improve(i, first, extra);
        }
      }
      __syncwarp();
      if (out) put_links(live, live ? wf__lane_link{number, __ldcg(trace() + first + i).x, a, penalised(loglike(row_of(row), column), column)} : wf__lane_link{}, from);
    }
  }
}

/* Over the epsilon arcs between tokens of frame `number`, once; those within the beam are in the table, and who becomes one of them is put there. OUT: extra
 * costs stand, and the arcs go out. */
template <int RANKS>
template <bool OUT>
__device__ void searcher<RANKS>::relax_epsilons(u32 number, u32 round) {
  lattice_work &work = work_of(l, l.rank());
  const u32 boxes = l.base + OFFSET(boxes) + warp() * (u32)sizeof own().boxes[0];
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  const float beam = p->lattice_beam, bound = furthest(), cutoff = cost_of((u32)(records()[number].last >> 32));
  const u32 grain = min(32u, (size + WARPS - 1) / WARPS);
  for (u32 base = warp() * grain; base < size; base += WARPS * grain) {
    const u32 mine = base + in_warp();
    uint4 info = make_uint4(0, 0, 0, 0);
    if (in_warp() < grain && mine < size) {
      const float2 known = __ldcg(past() + first + mine);
      if (OUT ? known.y <= beam : least_candidate(known.x, 1) <= bound) info = state_at(states(), __ldcg(trace() + first + mine).x);
    }
    arc_share share(boxes, in_warp(), info.y, info.z - info.y, __uint_as_float(mine));
    for (u32 k0 = 0; k0 < share.total; k0 += 32) {
      u32 a, state = 0, to = 0;
      float which, cost = 0, extra = INFINITY;
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
        if (arc.w != 0) candidate = __fsub_rn(candidate, p->word_score);
        const bool ask = may_hold(to);
        if (SCORED && ask && arc.w != 0) candidate = word_cost(arc.w, candidate, &to_context);
        if (ask && candidate <= cutoff) extra = extra_over(candidate, key_of(to, to_context), number);
      }
      __syncwarp();
      const bool live = leads_on(extra <= beam, state, context, to, to_context, number);
      if (OUT) {
        put_links(live, wf__lane_link{number, state, a, 0}, context);
      } else {
        const bool better = live && extra < __ldcg(past() + first + i).y, improved = better && improve(i, first, extra);
        u32 slot;
        u64 old;
        offer_own<RANKS>(l, improved, key_of(state, context), i, &slot, &old);
        if (improved) note_state(state);
        if (better) {
          atomicMax(&work.bound, ordered(__fsub_rn(cost, extra)));
          work.changed[round % 3] = 1;
        }
      }
      __syncwarp();
    }
  }
}

/* Epsilon arcs that a token came over in frame `number`; by one warp. */
template <int RANKS>
__device__ u32 searcher<RANKS>::depth_of(u32 state, u64 context, u32 number) {
  for (u32 depth = 0;; depth++) {
    u32 owner, at = find_token(state, context, number, &owner);
    const int64_t part = ((int64_t)owner - l.rank()) * p->trace_cap;
    const u32 arc = at == ALL ? NO_ARC : __ldcg(trace() + part + at).y;
    if (arc == NO_ARC || (int)arc_at(arcs(), arc).z >= 0 || depth > most_rounds()) return depth;
    state = source_of(arc);
    if (SCORED) context = __ldcg((const u64 *)(contexts() + part + at) + 1);
  }
}

/* May a live thread's epsilon arc be in a lattice, which has no cycles? Asked by a whole warp. */
template <int RANKS>
__device__ bool searcher<RANKS>::leads_on(bool live, u32 from, u64 from_context, u32 to, u64 to_context, u32 number) {
  if (p->components == NULL) return live;
  const bool cyclic = live && !is_added(from) && !is_added(to) && __ldg(p->components + from) == __ldg(p->components + to);
  for (u32 left = __ballot_sync(ALL, cyclic); left != 0; left &= left - 1) {
    const int who = __ffs(left) - 1;
    const u32 depth = depth_of(__shfl_sync(ALL, from, who), SCORED ? __shfl_sync(ALL, from_context, who) : 0, number);
    const bool on = depth < depth_of(__shfl_sync(ALL, to, who), SCORED ? __shfl_sync(ALL, to_context, who) : 0, number);
    if (in_warp() == (u32)who) live = on;
  }
  return live;
}

/* Extra costs of frame `number` over its epsilon arcs, in rounds until nothing changes: these arcs make no cycle, so every order of relaxing them ends with
 * the same costs. False if they go round for ever, which cannot be. */
template <int RANKS>
__device__ bool searcher<RANKS>::close_back(u32 number) {
  if (!p->has_epsilons) return true;
  lattice_work &work = work_of(l, l.rank());
  if (tid() < 3) work.changed[tid()] = 0;
  l.sync();
  for (u32 round = 0; round <= most_rounds(); round++) {
    relax_epsilons<false>(number, round);
    if (tid() == 0) work.changed[(round + 1) % 3] = 0; /* last read two barriers ago */
    l.sync();
    u32 changed = 0;
    for (int r = 0; r < RANKS; r++) changed |= work_of(l, (u32)r).changed[round % 3];
    if (changed == 0) return true;
  }
  return false;
}

/* Are the extra costs of a frame those of the last time? */
template <int RANKS>
__device__ bool searcher<RANKS>::as_before(u32 number) {
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  const float *before = (const float *)agenda();
  u32 changed = 0;
  for (u32 i = tid(); i < size; i += THREADS) changed += __ldcg(past() + first + i).y != before[i];
  return l.sum(changed) == 0;
}

/* --- the way back -------------------------------------------------------------------------------------------------------- */

/* Extra costs from those of the newest frame on back. `ends`: these are what ending costs, the way goes to the first frame, and the lattice out; else to a
 * frame that has been pruned before and in which nothing has changed, and what is beyond the beam is dropped. `row`: the first whose scores have not been
 * searched. False if there is no room. */
template <int RANKS>
__device__ bool searcher<RANKS>::go_back(u32 row, bool ends) {
  lattice_work &work = work_of(l, l.rank());
  const u32 newest = frame - 1, settled = records()[0].settled;
  u32 from = 0;
  bool fits = true;
  __pipeline_wait_prior(0); /* a row may be on its way */
  l.sync();
  clear_table(SLOT_BITS);
  if (tid() < WARPS) work.page[tid()] = NO_PAGE;
  if (tid() == 0) work.no_room = 0;
  __syncthreads();
  if (ends) put_endings();
  for (u32 number = newest;; number--) {
    fill_table(number);
    if ((ends || number < newest) && !close_back(number)) fits = false;
    if (own().full != 0) fits = false;
    if (!fits) break;
    if (ends && p->has_epsilons) relax_epsilons<true>(number, 0);
    if (!ends && number < newest && number < settled && as_before(number)) {
      from = number + 1;
      break;
    }
    if (number == 0) break;
    row = row_before(row);
    relax_emitting(number - 1, row, ends);
    l.sync(); /* extra costs stand */
  }
  l.sync();
  if (ends) {
    close_page();
    fits = l.sum(tid() == 0 && work.no_room != 0) == 0 && fits;
  } else if (fits) {
    fits = slide(from);
    if (l.rank() == 0 && tid() == 0) records()[0].settled = frame;
  }
  clear_table(SLOT_BITS);
  l.sync();
  return fits;
}

/* Makes room in the trace between two frames. */
template <int RANKS>
__device__ __noinline__ bool searcher<RANKS>::prune() {
  const u32 next = own().next;
  const bool fits = go_back(next, false);
  load_row(next);
  return fits;
}

/* What ending in each token of the newest frame costs above the best ending, which costs `least`. */
template <int RANKS>
__device__ void searcher<RANKS>::set_endings(bool died, bool final, float least) {
  const uint2 *tokens = this->tokens();
  const u32 first = trace_used - f.num_sources;
  for (u32 i = tid(); i < f.num_sources; i += THREADS) {
    float cost = final ? ending_cost(i) : costs()[i];
    if (died && !is_selected(cost, tokens[i].x, source_context(i))) cost = INFINITY; /* then none is final */
    past()[first + i].y = cost <= FLT_MAX ? __fsub_rn(cost, least) : INFINITY;
  }
}

/* The lattice of the utterance into pages; `end` is the first frame that was not searched. False if there are not enough. */
template <int RANKS>
__device__ __noinline__ bool searcher<RANKS>::end_lattice(u32 end, bool died, bool final, float least) {
  set_endings(died, final, least);
  return go_back(end, true);
}

}  // namespace WF_LANE_SPACE

#endif
