/* transducer_lanes.cu - the search in a kernel (transducer_lanes.h). A block is a lane. It makes a step
 * together (transducer_step.cuh); what comes between two steps is done by the first warp. */
#include "cuda/transducer/transducer_lanes.h"
#include "warpfst_all.h"

#include "cuda/transducer/join_row.cuh"
#include "cuda/transducer/transducer_step.cuh"

static const u64 NO_CONTEXT = ~(u64)0;

/* --- between steps, by the first warp ------------------------------------------------------ */

/* Closes the sources, with words, and makes records of all; the first K by rank stay, or with `all`,
 * all. False: there is no room. */
template <bool WORDS>
__device__ static bool choose(const lane_at_work<WORDS> &a, float cutoff, bool all = false) {
  const wf__tlane_work &w = a.w;
  const wf__tlane_utterance &u = a.s.lane.own;
  if constexpr (WORDS)
    if (w.options.has_epsilons != 0 && !close_sources(a, cutoff)) return false;
  const u32 n = a.s.lane.num_sources, first = a.s.lane.num_records,
            kept = n < w.options.max_hypotheses ? n : w.options.max_hypotheses;
  if (first + (u64)n > u.most_records || a.s.lane.num_offers > u.most_offers) return false;
  for (u32 i = this_lane(); i < n; i += LANES) {
    wf__tlane_token &token = a.sources[i];
    u32 prev = token.prev;
    if constexpr (WORDS)
      if (w.options.has_epsilons != 0 && a.s.rounds[i] != 0) prev += first;
    w.records[u.first_record + first + i] = {prev, token.arc, token.loglike, token.frame};
    token.prev = first + i; /* its own, from now on */
  }
  __syncwarp();
  if constexpr (WORDS)
    if (w.options.has_epsilons != 0) sort_sources(a);
  if (this_lane() == 0) {
    a.s.lane.num_records += n;
    a.s.lane.num_tokens += n;
    a.s.lane.num_expanded += kept;
    if (!all) a.s.lane.num_sources = kept;
  }
  __syncwarp();
  return true;
}

template <bool WORDS>
__device__ static bool is_anyone_waiting(const lane_at_work<WORDS> &a) {
  return __any_sync(ALL_LANES, this_lane() < a.w.num_sets && a.s.lane.sizes[this_lane()] > 0) != 0;
}

__device__ static float beam_of(const wf__tlane_work &w) {
  return w.options.greedy != 0 ? FLT_MAX : w.options.beam;
}

/* Makes the tokens that wait in a set the sources, as A(0) before its closure. The costs of all become
 * relative to the best of them. */
template <bool WORDS>
__device__ static void begin_frame(const lane_at_work<WORDS> &a, u32 set) {
  const u32 lane = this_lane(), n = a.s.lane.sizes[set];
  const float beam = beam_of(a.w),
              best = warp_least(lane < n ? a.set_of(set)[lane].cost : INFINITY);
  for (u32 s = 0; s < a.w.num_sets; s++)
    if (lane < a.s.lane.sizes[s]) a.set_of(s)[lane].cost -= best;
  __syncwarp();
  wf__tlane_token token;
  u32 rank = 0;
  if (lane < n) {
    token = a.set_of(set)[lane];
    for (u32 k = 0; k < n; k++) {
      const wf__tlane_token &other = a.set_of(set)[k];
      rank += k != lane && before(other, token);
    }
  }
  const u32 kept = __ballot_sync(ALL_LANES, lane < n && token.cost <= beam);
  if (kept >> lane & 1) a.sources[rank] = token; /* those that stay have the first ranks */
  __syncwarp();
  if (lane == 0) {
    a.s.lane.num_sources = (u32)__popc(kept);
    a.s.lane.sizes[set] = 0;
  }
  __syncwarp();
}

/* --- slots of contexts --- */

template <bool WORDS>
__device__ static bool has_states(const lane_at_work<WORDS> &a) {
  return a.w.options.context_size == 0;
}

/* Its number in the group. */
template <bool WORDS>
__device__ static u32 slot_at(const lane_at_work<WORDS> &a, u32 slot) {
  return (slot & WF__TLANE_OUTSIDE) != 0 ? slot & ~WF__TLANE_OUTSIDE
                                         : a.w.slots[(u64)blockIdx.x * a.w.num_slots + slot];
}

/* Marks the lane's slots that tokens need. */
template <bool WORDS>
__device__ static void mark_slots(const lane_at_work<WORDS> &a) {
  const u32 lane = this_lane();
  for (u32 j = lane; j < a.w.num_slots; j += LANES) a.marks[j] = 0;
  __syncwarp();
  for (u32 s = 0; s <= a.w.num_sets; s++) {
    const u32 n = s < a.w.num_sets ? a.s.lane.sizes[s] : a.s.lane.num_sources;
    if (lane >= n) continue;
    const wf__tlane_token &token = s < a.w.num_sets ? a.set_of(s)[lane] : a.sources[lane];
    if (token.slot < a.w.num_slots) a.marks[token.slot] = 1;
    if (token.parent < a.w.num_slots) a.marks[token.parent] = 1;
  }
  __syncwarp();
}

/* --- the end of an utterance --- */

/* Tokens that wait for later frames wait for the end. */
template <bool WORDS>
__device__ static void merge_waiting(const lane_at_work<WORDS> &a, u32 end) {
  const wf__tlane_work &w = a.w;
  const u32 lane = this_lane();
  kept_list<WORDS> keep = {a.lists, 0, w.options.max_hypotheses, INFINITY};
  for (u32 k = 0; k < w.num_sets; k++) {
    const u32 set = (end + k) % w.num_sets, n = a.s.lane.sizes[set];
    offered<WORDS> own = {};
    if (lane < n) own = entry_of<WORDS>(a.set_of(set)[lane], set * w.options.max_hypotheses + lane);
    own.order = k;
    keep.add(lane < n, lane < n ? a.set_of(set)[lane].cost : INFINITY, own);
  }
  const u32 size = reduce(keep.list, keep.size, keep.most);
  wf__tlane_token token;
  if (lane < size) token = a.sets[keep.list[lane].from];
  __syncwarp();
  if (lane < size) a.set_of(end)[lane] = token;
  if (lane < w.num_sets) a.s.lane.sizes[lane] = lane == end ? size : 0;
  __syncwarp();
}

/* The number of the source that the path ends in; NONE: none is final. */
template <bool WORDS>
__device__ static u32 choose_end(const lane_at_work<WORDS> &a) {
  offered<WORDS> best = {};
  best.key = NONE;
  for (u32 i = this_lane(); i < a.s.lane.num_sources; i += LANES) {
    wf__tlane_token token = a.sources[i];
    token.cost = ending_cost(a, token);
    if (token.cost == INFINITY) continue;
    const offered<WORDS> own = entry_of<WORDS>(token, i);
    if (best.key == NONE || is_before(own, best)) best = own;
  }
  const u32 least = warp_min(best.key),
            equal = __ballot_sync(ALL_LANES, best.key != NONE && best.key == least);
  return equal == 0 ? NONE : __shfl_sync(ALL_LANES, best.from, (int)first_of_equal(equal, best));
}

template <bool WORDS>
__device__ static void end_with(const lane_at_work<WORDS> &a, u32 outcome, u32 flags, u32 end,
                                int32_t frame, u32 first_kept = 0, u32 num_kept = 0) {
  if (this_lane() == 0) write_result(a, outcome, flags, end, frame, {-1, 0}, first_kept, num_kept);
}

/* Of the lane's slots, those of waiting tokens become the stream's, and spare ones the lane's. */
template <bool WORDS>
__device__ static void end_chunk(const lane_at_work<WORDS> &a) {
  const wf__tlane_work &w = a.w;
  u32 *slots = w.slots + (u64)blockIdx.x * w.num_slots;
  u32 first = 0, count = 0;
  if (has_states(a)) {
    mark_slots(a);
    for (u32 j = this_lane(); j - this_lane() < w.num_slots; j += LANES)
      count += (u32)__popc(__ballot_sync(ALL_LANES, j < w.num_slots && a.marks[j] != 0));
    if (this_lane() == 0) first = atomicAdd(&w.counters->num_kept, count);
    first = __shfl_sync(ALL_LANES, first, 0);
    if (first + count > w.counters->num_spares) {
      end_with(a, WF__DEVICE_NO_ROOM, 0, NONE, 0);
      return;
    }
    u32 at = first;
    for (u32 j = this_lane(); j - this_lane() < w.num_slots; j += LANES) {
      const bool is = j < w.num_slots && a.marks[j] != 0;
      const u32 those = __ballot_sync(ALL_LANES, is),
                own = at + (u32)__popc(those & ((1u << this_lane()) - 1));
      at += (u32)__popc(those);
      if (!is) continue;
      w.kept[own] = {a.contexts[j], slots[j], 0};
      slots[j] = w.spares[own];
      a.contexts[j] = NO_CONTEXT;
    }
    __syncwarp();
  }
  end_with(a, WF__DEVICE_DONE, 0, NONE, a.s.lane.own.num_frames, first, count);
}

/* All frames are searched, or nobody is left. A stream goes on on the CPU. */
template <bool WORDS>
__device__ static void end_utterance(const lane_at_work<WORDS> &a) {
  const int32_t num_frames = a.s.lane.own.num_frames;
  if (a.s.lane.own.is_chunk != 0) {
    end_chunk(a);
    return;
  }
  if (!is_anyone_waiting(a)) {
    end_with(a, WF__DEVICE_DONE, WF_RESULT_DIED | WF_RESULT_NOT_FINAL, a.s.lane.best_record,
             a.s.lane.last_frame);
    return;
  }
  const u32 set = a.set_at(num_frames);
  merge_waiting(a, set);
  begin_frame(a, set);
  if (!choose(a, beam_of(a.w), true)) {
    end_with(a, WF__DEVICE_NO_ROOM, 0, NONE, 0);
    return;
  }
  const u32 end = choose_end(a);
  end_with(a, WF__DEVICE_DONE, end == NONE ? WF_RESULT_NOT_FINAL : 0,
           a.sources[end == NONE ? 0 : end].prev, num_frames);
}

/* A lane that begins an utterance; idle: there is none. */
__device__ static wf__tlane new_lane(const wf__tlane_work &w, u32 utterance, u32 num_utterances) {
  wf__tlane lane = {};
  lane.utterance = utterance < num_utterances ? utterance : NONE;
  if (lane.utterance != NONE) lane.own = w.utterances[utterance];
  return lane;
}

/* The lane takes the next utterance, if there is one. */
template <bool WORDS>
__device__ static void take_utterance(const lane_at_work<WORDS> &a) {
  const wf__tlane_work &w = a.w;
  u32 next = 0;
  if (this_lane() == 0) {
    atomicAdd(&w.counters->num_done, 1u);
    next = atomicAdd(&w.counters->next_utterance, 1u);
  }
  next = __shfl_sync(ALL_LANES, next, 0);
  if (this_lane() == 0) a.s.lane = new_lane(w, next, w.counters->num_utterances);
  __syncwarp();
  load_scorer(a);
}

/* A token that waits, with nothing behind it. */
template <bool WORDS>
__device__ static wf__tlane_token fresh_token(const lane_at_work<WORDS> &a, u64 predictor,
                                              u64 context, u32 state, float cost) {
  wf__tlane_token token = {};
  token.predictor = predictor;
  token.context = context;
  token.state = state;
  token.cost = cost;
  token.arc = token.prev = token.slot = token.parent = NONE;
  token.label = (int32_t)a.w.options.blank;
  return token;
}

__device__ static u32 outside(u32 slot) { return slot == NONE ? NONE : WF__TLANE_OUTSIDE | slot; }

template <bool WORDS>
__device__ static void begin_chunk(const lane_at_work<WORDS> &a) {
  const wf__tlane_utterance &own = a.s.lane.own;
  for (u32 i = this_lane(); i < own.num_starts; i += LANES) {
    const wf__device_start &start = a.w.starts[own.first_start + i];
    wf__tlane_token token = fresh_token(a, start.predictor, start.context, start.state, start.cost);
    if (has_states(a)) {
      token.slot = outside(start.slot);
      token.parent = outside(start.parent);
      token.label = start.label;
    }
    a.set_of(start.set)[start.number] = token;
    atomicAdd(&a.s.lane.sizes[start.set], 1u);
  }
  __syncwarp();
}

template <bool WORDS>
__device__ static void begin_utterance(const lane_at_work<WORDS> &a) {
  if (a.s.lane.own.is_chunk != 0) {
    begin_chunk(a);
    return;
  }
  if (this_lane() == 0) {
    a.sets[0] = fresh_token(a, a.w.options.context_start, start_context(a), a.w.options.start, 0);
    a.s.lane.sizes[0] = 1;
  }
  __syncwarp();
}

/* --- requests to the model --- */

/* Frees the slots of contexts that no token needs. */
template <bool WORDS>
__device__ static void free_slots(const lane_at_work<WORDS> &a) {
  mark_slots(a);
  for (u32 j = this_lane(); j < a.w.num_slots; j += LANES)
    if (a.marks[j] == 0) a.contexts[j] = NO_CONTEXT;
  __syncwarp();
}

/* A slot with this context; NONE: there is none. */
template <bool WORDS>
__device__ static u32 find_context(const lane_at_work<WORDS> &a, u64 context) {
  for (u32 first = 0; first < a.w.num_slots; first += LANES) {
    const u32 j = first + this_lane(),
              there = __ballot_sync(ALL_LANES, j < a.w.num_slots && a.contexts[j] == context);
    if (there != 0) return first + (u32)__ffs((int)there) - 1;
  }
  return NONE;
}

/* Writes the request for a new context into the round's block. */
template <bool WORDS>
__device__ static void request_context(const lane_at_work<WORDS> &a, const wf__tlane_token &token,
                                       u32 slot) {
  const wf__tlane_work &w = a.w;
  const u32 to = slot_at(a, slot), at = atomicAdd(&w.counters->num_contexts, 1u);
  ((u32 *)(w.block + w.layout.slots_at))[at] = to;
  char *input = w.block + w.layout.inputs_at + at * w.layout.input_bytes;
  if (w.options.context_size == 0) {
    *(wf__rnn_move *)input = {token.parent == NONE ? w.start_slot : slot_at(a, token.parent), to,
                              token.label, 0};
    return;
  }
  u64 context = token.predictor;
  for (u32 i = w.options.context_size; i-- > 0; context /= w.options.context_base)
    ((int32_t *)input)[i] = (int32_t)(context % w.options.context_base);
}

/* Gives each token's context a slot. */
template <bool WORDS>
__device__ static void place_contexts(const lane_at_work<WORDS> &a, wf__tlane_token *tokens,
                                      u32 count) {
  for (u32 i = 0; i < count; i++) {
    wf__tlane_token &token = tokens[i];
    if (token.slot != NONE) continue;
    u32 slot = find_context(a, token.predictor);
    const bool is_new = slot == NONE;
    if (is_new) slot = find_context(a, NO_CONTEXT);
    if (slot == NONE) {
      free_slots(a);
      slot = find_context(a, NO_CONTEXT);
    }
    __syncwarp(); /* all lanes have read the token */
    if (this_lane() == 0) {
      if (is_new) {
        a.contexts[slot] = token.predictor;
        request_context(a, token, slot);
      } else {
        token.parent = NONE;
      }
      token.slot = slot; /* its parent stays until the round is over */
    }
    __syncwarp();
  }
}

/* Gives each source a row, one for all with the same predictor context. Returns the number of rows. */
__device__ static u32 place_rows(const lane_at_work<true> &a) {
  const u32 lane = this_lane(), n = a.s.lane.num_sources;
  u32 first = lane; /* of those with the same context */
  for (u32 i = n; i-- > 0;)
    if (lane < n && a.sources[i].predictor == a.sources[lane].predictor) first = i;
  const u32 firsts = __ballot_sync(ALL_LANES, lane < n && first == lane);
  if (lane < n) a.sources[lane].row = (u32)__popc(firsts & ((1u << first) - 1));
  __syncwarp();
  return (u32)__popc(firsts);
}
__device__ static u32 place_rows(const lane_at_work<false> &a) {
  if (this_lane() < a.s.lane.num_sources) a.sources[this_lane()].row = this_lane();
  return a.s.lane.num_sources;
}

template <bool WORDS>
__device__ static void request(const lane_at_work<WORDS> &a) {
  const wf__tlane_work &w = a.w;
  const u32 lane = this_lane(), n = a.s.lane.num_sources;
  if (w.table == nullptr) place_contexts(a, a.sources, n);
  const u32 num_rows = place_rows(a);
  /* Those of a set are in order of their costs. */
  const float waiting =
      warp_least(lane < w.num_sets && a.s.lane.sizes[lane] > 0 ? a.set_of(lane)[0].cost : INFINITY);
  u32 row = 0;
  if (lane == 0) row = atomicAdd(&w.counters->num_rows, num_rows);
  row = __shfl_sync(ALL_LANES, row, 0);
  if (lane == 0) {
    a.s.lane.waits = 1;
    a.s.lane.first_row = row;
    a.s.lane.num_rows = num_rows;
    a.s.lane.least_waiting = waiting;
    atomicAdd(&w.counters->num_busy, 1u);
  }
  if (lane < n) {
    wf__tlane_token &token = a.sources[lane];
    ((wf__joiner_row *)(w.block + w.layout.rows_at))[row + token.row] = {
        a.s.lane.own.first_frame + (u32)a.s.lane.frame,
        w.table != nullptr ? (u32)token.predictor : slot_at(a, token.slot),
        row,
        num_rows,
        need_of(a, lane),
        waiting};
    token.parent = NONE; /* the context is known from now on */
  }
  __syncwarp();
}

/* --- frames --- */

/* Begins the next frame for which tokens wait. False: there is none, or no room. */
template <bool WORDS>
__device__ static bool next_frame(const lane_at_work<WORDS> &a, bool *has_room) {
  const int32_t num_frames = a.s.lane.own.num_frames;
  while (a.s.lane.next_frame < num_frames && is_anyone_waiting(a)) {
    const int32_t frame = a.s.lane.next_frame;
    const u32 set = a.set_at(frame);
    __syncwarp();
    if (this_lane() == 0) a.s.lane.next_frame++;
    __syncwarp();
    if (a.s.lane.sizes[set] == 0) continue;
    begin_frame(a, set);
    *has_room = choose(a, beam_of(a.w));
    if (!*has_room) return false;
    if (this_lane() == 0) {
      a.s.lane.frame = a.s.lane.last_frame = frame;
      a.s.lane.step = 0;
      a.s.lane.best_record = a.sources[0].prev;
    }
    __syncwarp();
    return true;
  }
  return false;
}

/* Of the step that was made. */
__device__ static float cutoff_of(const lane_at_work<true> &a) { return a.s.cutoff; }
__device__ static float cutoff_of(const lane_at_work<false> &) { return 0; }

/* Goes on to the next request. `good`: else the utterance is over. */
template <bool WORDS>
__device__ static void go_on(const lane_at_work<WORDS> &a, bool good) {
  bool has_room = true;
  if (a.s.lane.waits != 0 && good) { /* the step is made: A(n + 1) */
    has_room = choose(a, cutoff_of(a));
    if (this_lane() == 0) a.s.lane.step++;
  } else if (a.s.lane.waits == 0) {
    begin_utterance(a);
  }
  __syncwarp();
  if (this_lane() == 0) a.s.lane.waits = 0;
  __syncwarp();
  for (;;) {
    if (good && has_room && a.s.lane.num_sources == 0) {
      good = next_frame(a, &has_room);
      if (!good && has_room) end_utterance(a);
    }
    if (!has_room) end_with(a, WF__DEVICE_NO_ROOM, 0, NONE, 0);
    if (good && has_room) {
      request(a);
      return;
    }
    __syncwarp();
    take_utterance(a);
    if (a.s.lane.utterance == NONE) return;
    good = has_room = true;
    begin_utterance(a);
  }
}

/* --- a round ----------------------------------------------------------------------------- */

/* By all threads. */
__device__ static void copy_words(const wf__tlane *from, wf__tlane *to) {
  static_assert(sizeof(wf__tlane) % sizeof(u32) == 0, "words");
  static_assert(sizeof(wf__tlane_utterance) == 18 * sizeof(u32) &&
                    offsetof(wf__tlane_utterance, scorer) == 14 * sizeof(u32) &&
                    offsetof(wf__tlane, num_tokens) == 22 * sizeof(u32),
                "without padding, which nobody writes");
  for (u32 i = threadIdx.x; i < sizeof(wf__tlane) / sizeof(u32); i += THREADS)
    ((u32 *)to)[i] = ((const u32 *)from)[i];
}

/* Copies what the lane keeps between launches. */
template <bool WORDS>
__device__ static void copy_tokens(const lane_at_work<WORDS> &a, bool to_shared) {
  const u32 k = a.w.options.max_hypotheses, each = (a.w.num_sets + 1) * k;
  wf__tlane_token *there = a.w.tokens + (u64)blockIdx.x * each;
  for (u32 i = threadIdx.x; i < each; i += THREADS) {
    const u32 s = i / k, n = s == 0 ? a.s.lane.num_sources : a.s.lane.sizes[s - 1];
    if (i % k >= n) continue;
    wf__tlane_token &here = s == 0 ? a.sources[i] : a.sets[i - k];
    if (to_shared)
      here = there[i];
    else
      there[i] = here;
  }
  u64 *contexts = a.w.contexts + (u64)blockIdx.x * a.w.num_slots;
  for (u32 i = threadIdx.x; i < a.w.num_slots; i += THREADS) {
    if (to_shared)
      a.contexts[i] = contexts[i];
    else
      contexts[i] = a.contexts[i];
  }
}

/* The last block of a launch tells the model's kernels and the host what was asked. */
__device__ static void end_round(const wf__tlane_work &w) {
  wf__tlane_counters *c = w.counters;
  __threadfence();
  if (atomicAdd(&c->num_blocks, 1u) != gridDim.x - 1) return;
  __threadfence();
  const u32 num_rows = atomicExch(&c->num_rows, 0u),
            num_contexts = atomicExch(&c->num_contexts, 0u),
            num_busy = atomicExch(&c->num_busy, 0u), num_done = atomicAdd(&c->num_done, 0u);
  const u32 round = ++c->round;
  *(wf__round_head *)w.block = {num_rows, num_contexts};
  *(volatile u64 *)&w.statuses[round % WF__TLANE_STATUSES] =
      wf__tlane_status_of(round, num_busy, num_done);
  c->all_rows += num_rows;
  c->all_contexts += num_contexts;
  c->num_blocks = 0;
}

/* The joiner's hidden rows of the lane's requests, a warp for each. */
template <bool WORDS>
__device__ static void join_rows(const lane_at_work<WORDS> &a, const wf__tlane_joiner &joiner) {
  for (u32 i = threadIdx.x / LANES; i < a.s.lane.num_sources; i += WARPS) {
    bool is_first = true; /* of its row */
    for (u32 k = 0; k < i; k++) is_first = is_first && a.sources[k].row != a.sources[i].row;
    if (!is_first) continue;
    join_row<LANES>(
        joiner.encoder + (u64)(a.s.lane.own.first_frame + (u32)a.s.lane.frame) * joiner.stride,
        a.w.table + a.sources[i].predictor * joiner.stride, joiner.stride, joiner.relu, joiner.to,
        a.s.lane.first_row + a.sources[i].row);
  }
}

/* Four blocks of a processor, so that all lanes work at once. */
template <bool WORDS>
__global__ static void __launch_bounds__(THREADS, 4)
    step_kernel(const __grid_constant__ wf__tlane_work w, const wf__tlane_joiner joiner) {
  WF__SHARED(lane_shared<WORDS>, s);
  WF__DYNAMIC_SHARED(u64, memory);
  const u32 k = w.options.max_hypotheses;
  u64 *contexts = memory;
  offered<WORDS> *lists = (offered<WORDS> *)(contexts + w.num_slots);
  wf__tlane_entry *entries = (wf__tlane_entry *)(lists + w.num_sets * ROOM);
  wf__tlane_token *sources = (wf__tlane_token *)(WORDS ? entries : entries + WF__LANE_ENTRIES),
                  *sets = sources + most_sources<WORDS>(w);
  const lane_at_work<WORDS> a = {w,        s,     sources, sets,
                                 contexts, lists, entries, (u32 *)(sets + w.num_sets * k)};
  copy_words(&w.lanes[blockIdx.x], &s.lane);
  __syncthreads();
  if (s.lane.utterance != NONE) {
    copy_tokens(a, true);
    if (threadIdx.x < LANES) load_scorer(a);
    __syncthreads();
    const bool good = s.lane.waits == 0 || make_step(a);
    __syncthreads();
    if (threadIdx.x < LANES) go_on(a, good);
    __syncthreads();
    copy_tokens(a, false);
    copy_words(&s.lane, &w.lanes[blockIdx.x]);
    if (w.table != nullptr && s.lane.waits != 0) join_rows(a, joiner);
  }
  __syncthreads();
  if (threadIdx.x == 0) end_round(w);
}

/* Of a kernel, besides what its launch asks for. */
template <bool WORDS>
static u64 static_bytes() {
  return (sizeof(lane_shared<WORDS>) + 127) / 128 * 128;
}
uint64_t wf__tlanes_shared_bytes(const wf__tlane_work *work) {
  return work->has_words != 0 ? shared_bytes<true>(*work) + static_bytes<true>()
                              : shared_bytes<false>(*work) + static_bytes<false>();
}

/* The limit of a kernel is the same for all, since another thread may be about to launch it. */
template <bool WORDS>
static cudaError_t raise_limit(uint64_t bytes) {
  return cudaFuncSetAttribute(step_kernel<WORDS>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              (int)(bytes - static_bytes<WORDS>()));
}
int wf__tlanes_prepare(uint64_t shared_bytes) {
  const cudaError_t code = raise_limit<false>(shared_bytes);
  return (int)(code == cudaSuccess ? raise_limit<true>(shared_bytes) : code);
}

int wf__tlanes_step(const wf__tlane_work *work, const wf__tlane_joiner *joiner, void *stream) {
  return (int)(work->has_words != 0
                   ? WF__LAUNCH(step_kernel<true>, work->num_lanes, THREADS,
                                shared_bytes<true>(*work), stream, *work, *joiner)
                   : WF__LAUNCH(step_kernel<false>, work->num_lanes, THREADS,
                                shared_bytes<false>(*work), stream, *work, *joiner));
}

/* --- a batch ----------------------------------------------------------------------------- */

__global__ static void begin_kernel(const __grid_constant__ wf__tlane_work w, u32 num_utterances,
                                    u32 num_spares) {
  FOR_ALL(i, (u64)w.num_lanes * w.num_slots) w.contexts[i] = NO_CONTEXT;
  FOR_ALL(i, w.num_lanes) { w.lanes[i] = new_lane(w, (u32)i, num_utterances); }
  if (this_thread() == 0) {
    *w.counters = {};
    w.counters->num_utterances = num_utterances;
    w.counters->next_utterance = w.num_lanes;
    w.counters->num_spares = num_spares;
  }
}
int wf__tlanes_begin(const wf__tlane_work *work, u32 num_utterances, u32 num_spares, void *stream) {
  return LAUNCH(begin_kernel, (u64)work->num_lanes * work->num_slots, stream, *work, num_utterances,
                num_spares);
}

/* Calls f(record) from the path's end back to its beginning. */
template <class F>
__device__ static void for_path(const wf__tlane_work &w, u32 u, const F &f) {
  const wf__tlane_record *records = w.records + w.utterances[u].first_record;
  u64 left = w.utterances[u].most_records; /* no path is longer */
  for (u32 at = w.results[u].end; at != NONE && left > 0; left--) {
    const wf__tlane_record record = records[at];
    if (record.arc != NONE) f(record);
    at = record.prev;
  }
}

/* Counts the details of all results, and gives them their places. */
__global__ static void measure_kernel(const __grid_constant__ wf__tlane_work w,
                                      u32 num_utterances) {
  FOR_ALL(i, num_utterances) {
    wf__device_result *result = &w.results[i];
    const bool is_done = result->outcome == WF__DEVICE_DONE;
    unsigned long long size = is_done && w.options.keeps_offers != 0 ? result->count : 0;
    if (is_done && w.options.keeps_offers == 0)
      for_path(w, (u32)i, [&](const wf__tlane_record &) { size++; });
    result->first = atomicAdd((unsigned long long *)&w.counters->num_details, size);
    result->count = size;
  }
}
int wf__tlanes_measure(const wf__tlane_work *work, u32 num_utterances, void *stream) {
  return LAUNCH(measure_kernel, num_utterances, stream, *work, num_utterances);
}

__global__ static void trace_kernel(const __grid_constant__ wf__tlane_work w, u32 num_utterances,
                                    wf__path_step *path) {
  FOR_ALL(i, num_utterances) {
    const wf__device_result &result = w.results[i];
    u64 at = result.first + result.count;
    if (result.count > 0)
      for_path(w, (u32)i, [&](const wf__tlane_record &record) {
        path[--at] = {record.arc, record.loglike, record.frame};
      });
  }
}
int wf__tlanes_trace(const wf__tlane_work *work, u32 num_utterances, wf__path_step *path,
                     void *stream) {
  return LAUNCH(trace_kernel, num_utterances, stream, *work, num_utterances, path);
}

/* A block for each utterance. */
__global__ static void gather_kernel(const __grid_constant__ wf__tlane_work w,
                                     wf__device_offer *offers) {
  const wf__device_result &result = w.results[blockIdx.x];
  const wf__device_offer *own = w.offers + w.utterances[blockIdx.x].first_offer;
  for (u64 i = threadIdx.x; i < result.count; i += THREADS) offers[result.first + i] = own[i];
}
int wf__tlanes_gather(const wf__tlane_work *work, u32 num_utterances, wf__device_offer *offers,
                      void *stream) {
  return (int)WF__LAUNCH(gather_kernel, num_utterances, THREADS, 0, stream, *work, offers);
}
