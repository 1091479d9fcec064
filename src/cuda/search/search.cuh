/* search.cuh - the beam search of one utterance by one lane, frame by frame;
 * docs/reference/semantics.md step by step: the order of the steps, the end of a frame, the best
 * path. */
#ifndef WF_CUDA_SEARCH_SEARCH_CUH
#define WF_CUDA_SEARCH_SEARCH_CUH

#ifdef WF_LANE_PROFILE /* nvcc -DWF_LANE_PROFILE: block 0 prints where the cycles of each \
                          utterance went */
#include <stdio.h>
#endif

#include "cuda/search/boost_pairs.cuh"
#include "cuda/search/compact_history.cuh"
#include "cuda/search/epsilon_closure.cuh"
#include "cuda/search/expand.cuh"
#include "cuda/search/search_graph.cuh"
#include "cuda/search/stream_ends.cuh"
#include "cuda/search/word_scores.cuh"

#include "cuda/search/deferred_scores.cuh"

namespace wf_search {

/* --- the end of a frame ------------------------------------------------------------------ */

/* Writes this warp's tokens from the table to costs and trace, in table order, from place `to`
 * on, and empties the table. REMEMBERS: also the records for a lattice. `words`: find_sources
 * has found some. */
template <class POLICY, int RANKS>
template <bool REMEMBERS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::write_tokens(u32 to, float best,
                                                                      bool words) {
  const u32 span = (1u << l.bits) / WARPS, begin = warp() * span,
            group_bits = l.bits - WF__LANE_GROUP_BITS;
  uint16_t *groups = index() + (u64)frame * WF__LANE_INDEX;
  for (u32 first = begin + in_warp(); first < begin + span; first += AHEAD * 32) {
    u64 values[AHEAD], sources_at[AHEAD];
    token_key keys[AHEAD];
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++) {
      const u32 at = first + k * 32;
      if (!SCORED) {
        values[k] = at < begin + span ? l.value_at(at) : NO_TOKEN;
        continue;
      }
      const bool taken = at < begin + span && l.is_taken(at);
      const ulonglong2 entry = taken ? l.entry_at(at) : make_ulonglong2(NO_STATE, NO_TOKEN);
      keys[k] = (token_key)entry.x;
      values[k] = entry.y;
      sources_at[k] = taken && words ? __ldcg(sources() + at) : NO_TOKEN;
    }
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++) {
      const u32 at = first + k * 32;
      if (at >= begin + span) break;
      const u64 value = values[k];
      const bool token = value != NO_TOKEN;
      const token_key key = SCORED ? keys[k] : token ? l.key_at(at) : NO_STATE;
      const u32 vote = __ballot_sync(ALL, token), place = to + __popc(vote & lanes_before());
      if ((at & ((1u << group_bits) - 1)) == 0) groups[at >> group_bits] = (uint16_t)place;
      if (token) {
        costs()[place] = __fsub_rn(cost_of((u32)(value >> 32)), best);
        u32 arc = ((u32)value & ~FRESH) - 1;
        if (REMEMBERS && LATTICES && (key & HAS_EPSILONS) != 0)
          arc |= WITH_EPSILONS; /* streams use this bit for another purpose */
        trace()[trace_used + place] = make_uint2(traced_of(key), arc);
        if (SCORED) {
          u64 source = sources_at[k];
          if (source != NO_TOKEN)
            sources()[at] = NO_TOKEN;
          else
            source = context_of(key);
          contexts()[trace_used + place] = make_ulonglong2(context_at(at, key), source);
        }
        if (REMEMBERS) past()[trace_used + place] = make_float2(cost_of((u32)(value >> 32)), 0);
      }
      l.free_slot(at, token);
      to += __popc(vote);
    }
  }
  if (!REMEMBERS || l.rank() != 0 || tid() != 0) return;
  records()[frame].last = own().last;
  if (SCORED) records()[frame].last_context = f.last_context;
  records()[frame].best = best;
  if (frame == 0) return;
  records()[frame - 1].select = f.select_key; /* of the frame that these tokens came from */
  if (SCORED) records()[frame - 1].select_context = f.select_context;
}

/* Not inlined, to save the search's registers. It works on a copy, since memory that can be
 * aliased is read again after every store. */
template <class POLICY, int RANKS>
__device__ __noinline__ bool searcher<POLICY, RANKS>::record_frame(u32 to, float best, bool words) {
  searcher copy = *this;
  copy.template write_tokens<true>(to, best, words);
  return true;
}

/* Writes the tokens from the table to costs and trace, in table order, and empties the table.
 * RENORMALISES: costs become relative to the best. Returns false if the trace is full. */
template <class POLICY, int RANKS>
template <bool RENORMALISES>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::finish_frame() {
  const u32 span = (1u << l.bits) / WARPS, begin = warp() * span; /* consecutive slots of a warp */
  u32 count = 0, taken = 0, lowest = ALL;
  const bool counts = !SCORED || !all_stand();
  if (!counts) {
    for (u32 at = begin + in_warp(); at < begin + span; at += 32)
      taken += __popc(__ballot_sync(ALL, l.is_taken(at)));
    count = taken;
    lowest = this->lowest();
  }
  for (u32 first = begin + in_warp(); counts && first < begin + span; first += AHEAD * 32) {
    u64 values[AHEAD];
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++)
      values[k] = first + k * 32 < begin + span ? l.value_at(first + k * 32) : NO_TOKEN;
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++) {
      const bool token = values[k] != NO_TOKEN;
      count += __popc(__ballot_sync(ALL, token));
      taken +=
          __popc(__ballot_sync(ALL, first + k * 32 < begin + span && l.is_taken(first + k * 32)));
      lowest = min(lowest, (u32)(values[k] >> 32));
    }
  }
  lowest = warp_min(lowest);
  if (in_warp() == 0) {
    own().warp_counts[warp()] = taken << 16 | count;
    own().warp_values[warp()] = lowest;
  }
  __syncthreads();
  u32 size = in_warp() < WARPS ? own().warp_counts[in_warp()] : 0, upto = size & 0xffff;
  taken = warp_sum(size >> 16);
  size = upto;
  lowest = warp_min(in_warp() < WARPS ? (u32)own().warp_values[in_warp()] : ALL);
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    u32 x = __shfl_up_sync(ALL, upto, d);
    if (in_warp() >= d) upto += x;
  }
  const u32 total = __shfl_sync(ALL, upto, 31);
  u32 to = __shfl_sync(ALL, upto - size, warp());
  u64 packed = l.combine((u64)lowest << 32 | total, [](u64 a, u64 b) {
    u64 low = min(a >> 32, b >> 32);
    return low << 32 | ((a & 0xffffffffu) + (b & 0xffffffffu));
  });
  const float best = RENORMALISES ? cost_of((u32)(packed >> 32)) : 0;
  const u64 most = l.combine((u64)(trace_used + total > p->memory.trace_room) << 32 | taken,
                             [](u64 a, u64 b) { return max(a, b); });
  if (frame > p->memory.frames_cap) return false;
  if (most >> 32 && !keeps_lattice() &&
      !cold_path([total](searcher &self) { return self.collect(total); }))
    return false;
  bool words = false;
  if constexpr (SCORED)
    if (!find_sources(&words)) return false;
  mark(PHASE_FIRST_PASS);
  if (keeps_lattice())
    cold_path([to, best, words](searcher &self) { return self.record_frame(to, best, words); });
  else
    write_tokens<false>(to, best, words);
  if (tid() == 0) {
    frame_off()[frame] = trace_used;
    frame_off()[frame + 1] = trace_used + total;
    (index() + (u64)frame * WF__LANE_INDEX)[WF__LANE_GROUPS] = (uint16_t)l.bits;
    own().begin_frame();
    forget_words();
    own().num_tokens += packed & 0xffffffffu;
  }
  count_arcs();
  trace_used += total;
  frame++;
  f.num_sources = total;
  f.total_sources = packed & 0xffffffffu;
  if constexpr (LATTICES)
    if (most >> 32 && keeps_lattice() && !cold_path([](searcher &self) { return self.prune(); }))
      return false;
  /* Chooses the size of the next frame's table so that it becomes at most 1/3 full (1/2 with
   * scorers) if that frame has as many tokens as the last ones. */
  f.usual_size = max((u32)most, f.usual_size - f.usual_size / 8);
  l.bits = WF__LANE_MIN_BITS;
  while (l.bits < SLOT_BITS && (1u << l.bits) < SPARE * f.usual_size) l.bits++;
  return true;
}

/* --- the utterance ----------------------------------------------------------------------- */

template <class POLICY, int RANKS>
__device__ __noinline__ int searcher<POLICY, RANKS>::begin() {
  l.clear(SLOT_BITS);
  frontier_now = 0;
  frame = trace_used = frame_arcs = 0;
  f = frame_state{0, 0, NO_TOKEN, NO_TOKEN, NO_TOKEN, 0, 0};
  if (SCORED)
    for (u32 at = tid(); at < SLOTS; at += THREADS) sources()[at] = by_state() ? 0 : NO_TOKEN;
  if (tid() == 0) {
    forget_words();
    own().flags = 0;
    own().num_tokens = own().num_expanded = own().num_narrowed = own().num_arcs = 0;
  }
  num_emitted = 1;
  l.sync();
  u32 rank, slot;
  u64 old;
  l.place_of(key_of(p->graph.start, start_context()), l.bits, &rank, &slot);
  if (rank == l.rank() && warp() == 0) {
    uint4 info = __ldg(states() + p->graph.start);
    token_key key = key_of(p->graph.start, start_context()) | (info.y < info.z ? HAS_EPSILONS : 0);
    l.offer(tid() == 0, key, (u64)ordered(0.0f) << 32, &rank, &slot,
            &old); /* arc + 1 == 0: NO_ARC */
    if (by_state() && tid() == 0) sources()[slot] = start_context();
    if (tid() == 0 && info.y < info.z) {
      own().frontier_size[0] = own().frontier_work[0] = 1;
      put_frontier(l.rank(), 0, 0, slot);
    }
  }
  l.sync();
  int status = close(p->rules.beam);
  if constexpr (DEFERRED)
    if (waits()) return CLOSURE_WAITS;
  if (status < 0) status = status == CLOSURE_OVERFLOW ? WF__LANE_CLOSURE : WF__LANE_TABLE_FULL;
  if (tid() == 0) {
    own().last = (u64)ordered(p->rules.beam) << 32 | 0xffffffffu;
    own().next = 0;
  }
  if (keeps_lattice() && l.rank() == 0 && tid() == 0) records()[0].pruned_frames = 0;
  if (status == WF__LANE_OK && !finish_frame<true>()) status = WF__LANE_NO_ROOM;
  return status;
}

/* Cost of ending in source i of this rank. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::ending_cost(u32 i) const {
  u64 context = source_context(i);
  const float cost = __fadd_rn(costs()[i], final_of(split_pair(tokens()[i].x, &context)));
  if constexpr (SCORED || PAIRS)
    if (cost <= FLT_MAX) return __fadd_rn(cost, final_cost_of(context));
  return cost;
}

/* Returns the key (cost of ending there, state) of the best token to end in, or all ones if there
 * is none. `final`: considers only final states. *context: with scorers, the least one among equal
 * tokens. */
template <class POLICY, int RANKS>
__device__ u64 searcher<POLICY, RANKS>::best_end(bool final, bool died, u64 *context) {
  const uint2 *tokens = this->tokens();
  u64 best = NO_TOKEN, mine = NO_TOKEN;
  *context = 0;
  if (final && died) return NO_TOKEN;
  for (u32 i = tid(); i < f.num_sources; i += THREADS) {
    const float cost = costs()[i];
    const u32 state = tokens[i].x;
    if (died && !is_selected(cost, state, source_context(i))) continue;
    const float total = final ? ending_cost(i) : cost;
    if (total <= FLT_MAX) best = min(best, (u64)ordered(total) << 32 | state);
  }
  best = l.least(best);
  for (u32 i = tid(); SCORED && i < f.num_sources; i += THREADS) {
    const float total = final ? ending_cost(i) : costs()[i];
    if (((u64)ordered(total) << 32 | tokens[i].x) == best) mine = min(mine, source_context(i));
  }
  if (SCORED) *context = l.least(mine);
  return best;
}

/* Finds the best token, traces it back and writes the outcome. Called by all threads after the
 * last frame; `end` is the first that was not searched. */
template <class POLICY, int RANKS>
__device__ __noinline__ int searcher<POLICY, RANKS>::finish(bool died, u32 end,
                                                            wf__lane_outcome *outcome) {
  u64 context, none;
  const u64 with_final = best_end(true, died, &context),
            any = best_end(false, died, with_final == NO_TOKEN ? &context : &none);
  if constexpr (DEFERRED)
    if (waits()) return CLOSURE_WAITS;
  const u64 arcs_seen = l.combine(own().num_arcs, [](u64 a, u64 b) { return a + b; });
  const u64 best = with_final != NO_TOKEN ? with_final : any;
  if (l.rank() == 0 && warp() == 0) {
    wf__lane_step *path = p->memory.path_scratch + (u64)(blockIdx.x / RANKS) * p->memory.path_cap;
    u32 state = (u32)best, number = frame - 1, row = end, size = 0, epsilons = 0;
    int status = WF__LANE_OK;
    for (;;) {
      u32 owner, at = find_token(state, context, number, &owner);
      u32 a =
          at == ALL ? NO_ARC : (trace() + ((int64_t)owner - l.rank()) * p->memory.trace_cap)[at].y;
      if (a == NO_ARC) break;
      a &= ~WITH_EPSILONS;
      if (size == p->memory.path_cap) {
        status = WF__LANE_NO_ROOM;
        break;
      }
      int column = (int)any_arc_at(a).z;
      if (column >= 0) { /* it consumed a frame */
        number--;
        row = row_before(row);
        epsilons = 0;
      } else if (++epsilons > most_rounds()) { /* with recombine=state the path may have a cycle */
        status = WF__LANE_CYCLE;
        break;
      }
      if (in_warp() == 0)
        path[size] = wf__lane_step{
            first_of_pair(a),
            column >= 0 ? penalised(loglike(row_of(row), (u32)column), (u32)column) : 0, row};
      size++;
      state = source_of(a);
      if (SCORED)
        context = __ldcg(
            (const u64 *)(contexts() + ((int64_t)owner - l.rank()) * p->memory.trace_cap + at) + 1);
    }
    u64 off = 0;
    if (in_warp() == 0) off = atomicAdd((u64 *)p->work.steps_used, (u64)size);
    off = __shfl_sync(ALL, off, 0);
    if (off + size > p->work.steps_cap) status = WF__LANE_NO_ROOM;
    __syncwarp();
    for (u32 i = in_warp(); i < size && status == WF__LANE_OK; i += 32)
      p->work.steps[off + i] = path[size - 1 - i];
    if (in_warp() == 0) {
      outcome->status = status;
      outcome->flags = own().flags | (with_final == NO_TOKEN ? 1 : 0) |
                       (died ? 4 : 0); /* WF_RESULT_NOT_FINAL, WF_RESULT_DIED */
      outcome->num_decoded = end;
      outcome->final_cost = with_final != NO_TOKEN ? final_of(first_of_pair((u32)best)) : 0;
      outcome->path_off = off;
      outcome->path_size = size;
      outcome->num_tokens = own().num_tokens;
      outcome->num_expanded = own().num_expanded;
      outcome->num_arcs = arcs_seen;
      outcome->num_narrowed = own().num_narrowed;
    }
  }
  if constexpr (LATTICES) {
    if (keeps_lattice()) set_endings(died, with_final != NO_TOKEN, cost_of((u32)(best >> 32)));
    if (keeps_lattice() && l.rank() == 0 && tid() == 0)
      records()[0].pruned_frames = frame; /* for the backward pass */
  }
  return 0;
}

/* Checked every 64th frame, since reads of host memory are slow. All ranks must agree, so rank 0
 * shares what it read. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::look_at_host() {
  if (l.rank() == 0 && tid() < RANKS && frame % 64 == 1 && p->work.stop != nullptr)
    l.of(tid()).stopped = *(const volatile u32 *)p->work.stop;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::decode() {
  const u32 num_frames = (u32)own().scores.num_frames;
  begin_marks();
  u32 t = 0;
  if constexpr (STREAMS) {
    if (!cold_path([](searcher &self) { return self.check_values(); })) return;
    t = first_row();
  }
  load_row(t);
  int status = cold_path([](searcher &self) {
    if constexpr (STREAMS)
      return self.resume();
    else
      return self.begin();
  });
  if (tid() == 0) {
    own().num_tokens = 0; /* tokens of the start are not counted */
    own().margin = 0;
  }
  mark(PHASE_BEGIN);
  bool died = false;
  for (; t < num_frames && status == WF__LANE_OK; t = own().next) {
    u64 last, tokens;
    finish_row();
    if (!STREAMS) look_at_host();
    l.sync(); /* scores, tokens and the empty table are complete */
    if (!STREAMS && own().stopped != 0) {
      status = WF__LANE_STOPPED;
      break;
    }
    mark(PHASE_WAIT);
    select_sources();
    mark(PHASE_SELECT);
    status = emit(&last, &tokens);
    if (status != WF__LANE_OK) break;
    died = tokens == 0;
    if (died) {
      count_arcs();
      break;
    }
    mark(PHASE_REST);
    const u32 next = row_after(t);
    load_row(next);
    emission_arcs = frame_arcs;
    if (tid() == 0) {
      own().last = last;
      own().next = next;
    }
    status = close(cost_of((u32)(last >> 32)));
    if (status < 0)
      status = cold_path([&](searcher &self) { return self.close_again(status, last, t); });
    mark(PHASE_CLOSE);
    if (status == WF__LANE_OK && !finish_frame<true>()) status = WF__LANE_NO_ROOM;
    if (STREAMS && l.rank() == 0 && tid() == 0) rows()[frame - 1] = t;
    mark(PHASE_WRITING);
  }
  __pipeline_wait_prior(0);
  l.sync();
#ifdef WF_LANE_PROFILE
  if (blockIdx.x == 0 && tid() == 0) {
    static const char *const names[] = {"begin",    "wait",       "select",    "arcs",
                                        "words",    "table",      "finish",    "rest",
                                        "frontier", "its arcs",   "its words", "its barriers",
                                        "close",    "first pass", "writing"};
    const double n = num_frames;
    printf(
        "%u frames, a frame: %.0f arcs, %.0f tokens, %.1f rounds, %.0f in frontiers, %.0f words in "
        "them; cycles:",
        num_frames, own().num_arcs / n, own().num_tokens / n, own().rounds / n,
        own().frontier_entries / n, own().closure_words / n);
    for (int i = PHASE_WAIT; i < NUM_PHASES; i++) printf(" %s %.0f", names[i], own().phase[i] / n);
    printf("\n");
  }
#endif
  if constexpr (STREAMS)
    cold_path([&](searcher &self) { return self.suspend(died, t, status); });
  else if (status == WF__LANE_OK)
    cold_path(
        [&](searcher &self) { return self.finish(died, t, &p->work.outcomes[own().utterance]); });
  else if (l.rank() == 0 && tid() == 0)
    p->work.outcomes[own().utterance].status = status;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::run() {
  if constexpr (GATHERS)
    if (tid() == 0) own().with_scorer.memo_of = (const wf__flat_scorer *)p; /* none */
  if constexpr (PAIRS)
    if (tid() == 0) own().with_pairs.filter_of = (const wf__flat_scorer *)p; /* none */
  do {
    l.sync();
    if (l.rank() == 0 && tid() < RANKS) {
      u32 place = 0;
      if (tid() == 0)
        place = LATTICES && keeps_lattice() ? blockIdx.x / RANKS : atomicAdd(p->work.queue, 1u);
      place = __shfl_sync((1u << RANKS) - 1, place, 0);
      lane_shared &sh = l.of(tid());
      sh.utterance = place < p->work.num_utterances ? p->work.order[place] : ALL;
      sh.stopped = 0;
      if (sh.utterance != ALL) sh.scores = p->work.utterances[sh.utterance];
    }
    l.sync();
    u32 u = own().utterance;
    if (u == ALL) return;
    if constexpr (GATHERS) clear_memo();
    if constexpr (SCORED) load_scorer();
    if constexpr (PAIRS) load_pairs();
    decode();
  } while (!LATTICES || !keeps_lattice()); /* with lattices, the lane's memory is still needed */
}

}  // namespace wf_search

#endif
