/* deferred_scores.cuh - the search with a recurrent scorer, whose scores are computed between
 * launches (deferred_scores.h).
 *
 * A word whose cost is not known counts as impossible, and its score is requested. If a frame has
 * requested scores, the lane keeps its state and ends; the next launch begins the frame again with
 * the scores. So a frame with all scores costs nothing more, and the result does not depend on when
 * scores came. Some requests of a closure after an incomplete emission are not needed, but rounds
 * cost more than scores.
 *
 * A context is its number here, below the upper half of the CPU's number. The table's keys have
 * room for the number only; the upper half decides ties. If two contexts have the same upper
 * half (once in 2^32 ties), the choice may differ from the CPU's. */
#ifndef WF_CUDA_SEARCH_DEFERRED_SCORES_CUH
#define WF_CUDA_SEARCH_DEFERRED_SCORES_CUH

#include "cuda/search/search_graph.cuh"

namespace wf_search {

/* Requests a score: lists its place in the table, and claims the hidden state that it needs. */
static __device__ void request(const wf__word_scores &a, u32 at, u32 context) {
  const u32 place = atomicAdd(&a.counters->num_missing, 1u);
  if (place < a.missing_cap)
    a.missing[place] = at; /* otherwise everything is evicted and requested again */
  u32 *state = &a.contexts[context].state;
  if (__ldcg(state) == WF__LANE_NO_SLOT &&
      atomicCAS(state, WF__LANE_NO_SLOT, WF__LANE_CLAIMED) == WF__LANE_NO_SLOT)
    a.claims[atomicAdd(&a.counters->num_claims, 1u)] = context;
}

/* Returns false if the score is not known yet. */
template <class POLICY>
static __device__ __noinline__ bool find_score(const wf__lane_params *p, u32 context, u32 word,
                                               float *cost, u32 *next) {
  const wf__word_scores &a = p->word_scores;
  const u64 key = (u64)context << 32 | word;
  const u32 mask = (1u << a.bits) - 1;
  u32 at = (u32)wf__mix64(key) & mask;
  for (u32 probes = 0; probes <= mask; probes++, at = (at + 1) & mask) {
    const ulonglong2 there = __ldcg((const ulonglong2 *)(a.table + at));
    u64 seen = there.x;
    if (seen == 0) seen = atomicCAS((u64 *)&a.table[at].key, 0ull, key);
    if (seen == 0) request(a, at, context);
    if (seen == 0 || seen == key) {
      *next = there.x == key ? (u32)(there.y >> 32) : 0;
      *cost = __uint_as_float((u32)there.y);
      if (*next == 0) own_shared<POLICY>().with_deferred.missing = 1;
      return *next != 0;
    }
  }
  atomicAdd(&a.counters->num_missing, a.missing_cap); /* the table is full: report too many */
  own_shared<POLICY>().with_deferred.missing = 1;
  return false;
}

template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::deferred_cost(u32 word, float cost, u64 *context) const {
  float added;
  u32 next;
  if (word >= p->word_scores.num_labels ||
      !find_score<POLICY>(p, (u32)*context, word, &added, &next))
    return INFINITY;
  *context = next;
  return __fadd_rn(cost, added);
}

template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::deferred_final_cost(u64 context) const {
  float cost;
  u32 next;
  return find_score<POLICY>(p, (u32)context, WF__LANE_END_OF_WORDS, &cost, &next) ? cost : INFINITY;
}

/* Is a score missing in any block of the lane? All threads get the same answer. If none is missing,
 * the look-ups are counted. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::waits() {
  u32 missing = 0;
  l.sync();
#pragma unroll
  for (int r = 0; r < RANKS; r++) missing |= *(volatile const u32 *)&l.of(r).with_deferred.missing;
  l.sync(); /* no thread requests a score of the next step before all threads have read the flag */
  const u32 words = warp_sum(this->frame_words);
  if (missing == 0 && in_warp() == 0 && words > 0)
    atomicAdd(&own().with_deferred.num_requests, (u64)words);
  this->frame_words = 0;
  return missing != 0;
}

/* Saves the state at the beginning of the frame at row `row`, or of the end. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::save(u32 stage, u32 row, bool died) const {
  if (tid() != 0) return;
  p->word_scores.saved[blockIdx.x] = wf__lane_saved{stage,
                                                    own().utterance,
                                                    row,
                                                    died,
                                                    frame,
                                                    trace_used,
                                                    l.bits,
                                                    f.num_sources,
                                                    f.usual_size,
                                                    own().flags,
                                                    f.total_sources,
                                                    f.select_key,
                                                    f.select_context,
                                                    own().num_tokens,
                                                    own().num_expanded,
                                                    own().num_narrowed,
                                                    own().num_arcs,
                                                    own().with_deferred.num_requests};
}

template <class POLICY, int RANKS>
__device__ int searcher<POLICY, RANKS>::restore(const wf__lane_saved &s) {
  l.clear(SLOT_BITS, false); /* device memory has been overwritten */
  frontier_now = 0;
  num_emitted = 1;
  frame_arcs = 0;
  frame = s.frame;
  trace_used = s.trace_used;
  f = frame_state{s.num_sources, s.total_sources, s.select_key, s.select_context, NO_TOKEN, 0,
                  s.usual_size};
  l.bits = s.bits;
  if (tid() == 0) {
    own().flags = s.flags;
    own().num_tokens = s.num_tokens;
    own().num_expanded = s.num_expanded;
    own().num_narrowed = s.num_narrowed;
    own().num_arcs = s.num_arcs;
    own().with_deferred.num_requests = s.num_requests;
  }
  l.sync();
  return 0;
}

/* Searches frame t; own().next is the row after it. WF__LANE_*, or CLOSURE_WAITS with nothing
 * changed. */
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::search_frame(u32 t, bool *died) {
  u64 last, tokens;
  select_sources();
  int status = emit(&last, &tokens);
  const bool again = waits(); /* the closure is searched all the same, to request its scores, too */
  if (again && (status != WF__LANE_OK || tokens == 0)) return CLOSURE_WAITS;
  if (status != WF__LANE_OK) return status;
  *died = tokens == 0;
  if (*died) {
    count_arcs();
    return WF__LANE_OK;
  }
  const u32 next = row_after(t);
  load_row(next);
  emission_arcs = frame_arcs;
  if (tid() == 0) {
    own().last = last;
    own().next = next;
  }
  status = close(cost_of((u32)(last >> 32)));
  if (waits()) return CLOSURE_WAITS;
  if (status < 0) {
    status = cold_path([&](searcher &self) { return self.close_again(status, last, t); });
    if (waits()) return CLOSURE_WAITS;
  }
  if (status == WF__LANE_OK && l.rank() == 0 && tid() == 0)
    atomicAdd(&p->word_scores.counters->num_frames, 1u);
  if (status == WF__LANE_OK && !finish_frame<true>()) status = WF__LANE_NO_ROOM;
  if (STREAMS && status == WF__LANE_OK && l.rank() == 0 && tid() == 0) rows()[frame - 1] = t;
  return status;
}

/* Begins the utterance or the chunk. */
template <class POLICY, int RANKS>
__device__ __noinline__ int searcher<POLICY, RANKS>::begin_deferred() {
  frame = trace_used = 0;
  f = frame_state{0, 0, NO_TOKEN, NO_TOKEN, NO_TOKEN, 0};
  l.bits = 0;
  if (tid() == 0) own().with_deferred.num_requests = 0;
  save(WF__LANE_BEGINS, 0, false);
  int status;
  if constexpr (STREAMS)
    status = resume();
  else
    status = begin();
  if (tid() == 0) own().num_tokens = 0; /* tokens of the start are not counted */
  return status;
}

/* Ends it, after the last frame. */
template <class POLICY, int RANKS>
__device__ __forceinline__ int searcher<POLICY, RANKS>::end_deferred(bool died, u32 t, int status) {
  if (status == WF__LANE_OK) save(WF__LANE_ENDS, t, died);
  if constexpr (STREAMS)
    return status == CLOSURE_WAITS
               ? status
               : cold_path([&](searcher &self) { return self.suspend(died, t, status); });
  wf__lane_outcome *outcome = &p->work.outcomes[own().utterance];
  if (status == WF__LANE_OK)
    return cold_path([&](searcher &self) { return self.finish(died, t, outcome); });
  if (status != CLOSURE_WAITS && l.rank() == 0 && tid() == 0) outcome->status = status;
  return status;
}

/* Searches the utterance from its saved frame or its beginning on. Returns false if it waits for
 * scores. */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::decode_deferred(bool resumes) {
  const u32 num_frames = (u32)own().scores.num_frames;
  const wf__lane_saved before = p->word_scores.saved[blockIdx.x];
  const bool begun = resumes && before.stage != WF__LANE_BEGINS;
  u32 t = begun ? before.row : 0;
  bool died = begun && before.died;
  int status = WF__LANE_OK;
  __syncthreads(); /* all threads have read it */
  this->frame_words = 0;
  if constexpr (STREAMS) {
    if (!begun && !cold_path([](searcher &self) { return self.check_values(); })) return true;
    if (!begun) t = first_row();
  }
  if (begun) cold_path([&](searcher &self) { return self.restore(before); });
  load_row(t);
  if (!begun) status = cold_path([](searcher &self) { return self.begin_deferred(); });
  while (t < num_frames && status == WF__LANE_OK && !died) {
    finish_row();
    l.sync(); /* scores, tokens and the empty table are complete */
    save(WF__LANE_SEARCHES, t, false);
    status = search_frame(t, &died);
    if (!died) t = own().next;
  }
  __pipeline_wait_prior(0);
  l.sync();
  if (end_deferred(died, t, status) == CLOSURE_WAITS) {
    l.empty_slots();
    return false;
  }
  l.sync(); /* the look-ups have been counted */
  if (tid() == 0) {
    p->word_scores.saved[blockIdx.x].stage = WF__LANE_IDLE;
    atomicAdd((u64 *)&p->word_scores.counters->num_requests, own().with_deferred.num_requests);
  }
  return true;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::run_deferred() {
  const wf__lane_saved *saved = &p->word_scores.saved[blockIdx.x];
  bool resumes = saved->stage != WF__LANE_IDLE;
  const u32 left = resumes ? saved->utterance : ALL;
  if (tid() == 0) own().with_deferred.missing = 0;
  for (;; resumes = false) {
    l.sync();
    if (l.rank() == 0 && tid() < RANKS) {
      u32 place = 0, u = left;
      if (!resumes) {
        if (tid() == 0) place = atomicAdd(p->work.queue, 1u);
        place = __shfl_sync((1u << RANKS) - 1, place, 0);
        u = place < p->work.num_utterances ? p->work.order[place] : ALL;
      }
      lane_shared &sh = l.of(tid());
      sh.utterance = u;
      if (u != ALL) sh.scores = p->work.utterances[u];
    }
    l.sync();
    if (own().utterance == ALL) return;
    load_scorer();
    if (!decode_deferred(resumes)) break;
  }
  if (l.rank() == 0 && tid() == 0) atomicAdd(&p->word_scores.counters->num_waiting, 1u);
}

}  // namespace wf_search

#endif
