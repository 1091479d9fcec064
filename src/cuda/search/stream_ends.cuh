/* stream_ends.cuh - the two ends of a chunk of a stream: its tokens are copied into the lane
 * (gather) and out of it (scatter), and their back-pointers to the host.
 *
 * Gather: the tokens are put into the frame's table like candidates, and written from it like a
 * frame. So any lane, of any number of blocks, can take any stream. In that frame, number 0, the
 * tokens' numbers replace the arcs. If the utterance begins, frame 0 has the start tokens.
 *
 * Scatter: backward over the chunk's frames, tokens mark their predecessors. Forward, the marked
 * tokens and all of the newest frame are numbered by frame, rank, place. Then each is emitted to
 * the host with its arc, the score that the arc read, and the number of its predecessor. One
 * thread follows a token, since the newest frame has many. */
#ifndef WF_CUDA_SEARCH_STREAM_ENDS_CUH
#define WF_CUDA_SEARCH_STREAM_ENDS_CUH

#include "cuda/search/compact_history.cuh"

namespace wf_search {

/* --- before the search ------------------------------------------------------------------- */

/* Checks the chunk's scores if they are unchecked. Returns false, with the outcome written, if
 * there is nothing to search. */
template <class POLICY, int RANKS>
__device__ __noinline__ bool searcher<POLICY, RANKS>::check_values() {
  const wf__lane_chunk &chunk = p->streams.chunks[own().utterance];
  const u32 columns = (u32)p->graph.num_columns, count = chunk.num_unchecked;
  u64 bad = NO_TOKEN;
  for (u32 t = l.rank() * WARPS + warp(); t < count; t += RANKS * WARPS) {
    for (u32 c = in_warp(); c < columns; c += 32) {
      const float value = loglike(row_of(t), c);
      const bool fine = value <= 1e20f && (value >= -1e20f || value == -INFINITY);
      if (!fine) bad = min(bad, (u64)t << 32 | c);
    }
  }
  if (count > 0) bad = l.least(bad);
  const bool goes_on = bad == NO_TOKEN && !chunk.only_check;
  if (l.rank() == 0 && tid() == 0) {
    p->streams.advances[own().utterance].bad = bad;
    p->streams.advances[own().utterance].status = WF__LANE_OK;
  }
  return goes_on;
}

/* The first frame of the chunk to search, or the number of frames. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::first_row() const {
  if (p->rules.skip_above == INFINITY || own().scores.num_frames == 0 ||
      p->streams.chunks[own().utterance].after_blank == 0)
    return 0;
  return loglike(row_of(0), (u32)p->rules.blank) > p->rules.skip_above ? row_after(0) : 0;
}

/* Puts the stream's tokens into the table and the trace as frame 0, or the start tokens if the
 * utterance begins. */
template <class POLICY, int RANKS>
__device__ __noinline__ int searcher<POLICY, RANKS>::resume() {
  const wf__lane_chunk chunk = p->streams.chunks[own().utterance];
  if (chunk.num_tokens == 0) return begin();
  frontier_now = 0;
  frame = trace_used = frame_arcs = num_emitted = 0;
  f = frame_state{0, 0, NO_TOKEN, NO_TOKEN, NO_TOKEN, 0, chunk.usual_size, 0, SCORED};
  if (SCORED)
    for (u32 at = tid(); at < SLOTS; at += THREADS) sources()[at] = by_state() ? 0 : NO_TOKEN;
  if (tid() == 0) {
    own().flags = 0;
    own().num_tokens = own().num_expanded = own().num_narrowed = own().num_arcs = 0;
  }
  u32 bits = WF__LANE_MIN_BITS;
  while (bits < SLOT_BITS && (1u << bits) < SPARE * max(chunk.usual_size, chunk.num_tokens / RANKS))
    bits++;
  for (;; bits = SLOT_BITS) {
    l.clear(bits);
    l.sync();
    for (u32 base = l.rank() * THREADS; base < chunk.num_tokens; base += RANKS * THREADS) {
      const u32 i = base + tid();
      const bool live = i < chunk.num_tokens;
      const wf__lane_token token = live ? chunk.tokens[i] : wf__lane_token{0, 0};
      const u64 context = (SCORED || PAIRS) && live && has_scorer() ? chunk.contexts[i] : 0;
      u32 rank, slot;
      u64 old;
      l.offer(live, key_of(token.state, context), (u64)ordered(token.cost) << 32 | (i + 1), &rank,
              &slot, &old);
      if (by_state() && live) sources_of(rank)[slot] = context;
      __syncwarp();
    }
    l.sync();
    const bool full = own().full != 0;
    if (!full) break;
    if (bits == SLOT_BITS) return WF__LANE_TABLE_FULL;
    l.sync(); /* all threads of the lane know */
  }
  return finish_frame<false>() ? WF__LANE_OK : WF__LANE_NO_ROOM;
}

/* --- backtrace --------------------------------------------------------------------------- */

/* Like find_token, but by one thread. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::locate(u32 state, u64 context, u32 number,
                                               u32 *owner) const {
  const u32 bits = index()[(u64)number * WF__LANE_INDEX + WF__LANE_GROUPS];
  u32 slot;
  l.place_of(key_of_traced(state, context), bits, owner, &slot);
  const int64_t parts = (int64_t)*owner - l.rank();
  const u32 *off = frame_off() + parts * (p->memory.frames_cap + 2);
  const uint16_t *groups = index() + parts * (int64_t)(p->memory.frames_cap + 1) * WF__LANE_INDEX +
                           (u64)number * WF__LANE_INDEX;
  const u32 first = __ldcg(off + number), size = __ldcg(off + number + 1) - first;
  const uint2 *tokens = trace() + parts * p->memory.trace_cap + first;
  const ulonglong2 *pairs = contexts() + parts * p->memory.trace_cap + first;
  u32 at = __ldcg(groups + (slot >> (bits - WF__LANE_GROUP_BITS)));
  constexpr u32 STEP = 4; /* loads in flight at a time */
  for (u32 seen = 0; seen < size; seen += STEP) {
    u32 states[STEP], where[STEP];
#pragma unroll
    for (u32 k = 0; k < STEP; k++) {
      where[k] = at + k >= size ? min(at + k - size, size - 1)
                                : at + k; /* probing wraps round the table */
      states[k] = __ldcg(&tokens[where[k]].x) & ~MARKED;
    }
#pragma unroll
    for (u32 k = 0; k < STEP; k++)
      if (states[k] == state &&
          (!SCORED || is_same(__ldcg((const u64 *)(pairs + where[k])), context)))
        return first + where[k];
    at += STEP;
    if (at >= size) at -= size;
    if (at >= size) at = 0; /* the frame has fewer than STEP tokens */
  }
  return ALL; /* cannot happen */
}

/* Like source_of, but by one thread; | WF__LANE_EPSILON for an epsilon arc. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::source_by_thread(u32 arc) const {
  u64 context = 0;
  arc = split_pair(arc, &context);
  if constexpr (SCORED)
    if (is_added_arc(arc)) return added_source(arc);
  u32 source;
  if (arc >= p->graph.num_explicit) {
    const u32 state = wide_source(p->graph, arc);
    source = state | (arc >= __ldg(states() + state).y ? WF__LANE_EPSILON : 0);
  } else {
    source = __ldg(p->graph.arc_sources + arc);
  }
  return pair_of(source & ~WF__LANE_EPSILON, (u32)context) | (source & WF__LANE_EPSILON);
}

/* Links this block's marked tokens of a frame (all tokens of the newest) to their predecessors
 * and marks these. Returns true if that marked a token of the same frame. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::link_tokens(u32 number) {
  const u32 first = frame_off()[number], size = frame_off()[number + 1] - first;
  bool again = false;
  for (u32 i = tid(); i < size; i += THREADS) {
    const uint2 token = __ldcg(trace() + first + i);
    if ((number + 1 < frame && (token.x & MARKED) == 0) || (token.y & FOLLOWED) != 0) continue;
    const u32 source = source_by_thread(token.y);
    const bool emits = (source & WF__LANE_EPSILON) == 0;
    u64 context = 0;
    if (SCORED) context = __ldcg((const u64 *)(contexts() + first + i) + 1);
    u32 owner, was = MARKED;
    const u32 at = locate(source & ~WF__LANE_EPSILON, context, emits ? number - 1 : number, &owner);
    if (at != ALL)
      was = atomicOr(&(trace() + ((int64_t)owner - l.rank()) * p->memory.trace_cap)[at].x, MARKED);
    links()[first + i].x = owner << 28 | at;
    trace()[first + i].y = token.y | FOLLOWED;
    again = again || (!emits && number + 1 < frame && (was & MARKED) == 0);
  }
  return again;
}

/* Numbers the tokens that this block emits, from frame `first` on; emitted() has their number
 * before each frame. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::number_tokens(u32 first) {
  u32 count = 0;
  for (u32 number = first; number < frame; number++) {
    const u32 begin = frame_off()[number], size = frame_off()[number + 1] - begin;
    if (tid() == 0) emitted()[number] = count;
    for (u32 base = 0; base < size; base += THREADS) {
      const u32 i = base + tid();
      const bool live =
          i < size && (number + 1 == frame || (__ldcg(&trace()[begin + i].x) & MARKED) != 0);
      const u32 place = place_in_block(live, &count);
      if (live) links()[begin + i].y = place;
      __syncthreads();
    }
  }
  if (tid() == 0) emitted()[frame] = count;
  l.sync();
}

/* Number among all tokens that the lane emits: frame by frame, in each rank by rank. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::number_of(u32 rank, u32 place, u32 number) const {
  const int64_t parts = (int64_t)rank - l.rank();
  const u32 mine = __ldcg(&(links() + parts * p->memory.trace_cap)[place].y);
  if (RANKS == 1) return mine;
  const u32 stride = p->memory.frames_cap + 2,
            *counts = emitted() - (int64_t)l.rank() * stride + number;
  u32 before = mine - __ldcg(counts + rank * stride);
  for (u32 r = 0; r < RANKS; r++) before += __ldcg(counts + r * stride + (r < rank ? 1 : 0));
  return before;
}

/* Tokens of the newest frame on the ranks before this one. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::newest_before() const {
  const u32 *off = frame_off() - (int64_t)l.rank() * (p->memory.frames_cap + 2);
  u32 before = 0;
  for (u32 r = 0; r < l.rank(); r++, off += p->memory.frames_cap + 2)
    before += __ldcg(off + frame) - __ldcg(off + frame - 1);
  return before;
}

/* --- output ------------------------------------------------------------------------------ */

/* Number among the newest tokens of the one that best_end found; all ones if it found none. */
template <class POLICY, int RANKS>
__device__ u32 searcher<POLICY, RANKS>::number_of_end(u64 key, u64 context, bool final) {
  const bool same = resumes() && frame == 1; /* tokens from before the chunk keep their numbers */
  const u32 before = newest_before();
  u64 number = ALL;
  for (u32 i = tid(); i < f.num_sources && key != NO_TOKEN; i += THREADS) {
    const uint2 token = tokens()[i];
    const float cost = final ? ending_cost(i) : costs()[i];
    if (((u64)ordered(cost) << 32 | token.x) == key && (!SCORED || source_context(i) == context))
      number = same ? token.y : before + i;
  }
  return (u32)l.least(number);
}

/* Emits all numbered tokens to the host, *size of them from *off on. Returns false if there is
 * no room. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::emit_back_pointers(u32 first, u64 *off, u32 *size) {
  *size = (u32)l.sum(tid() == 0 ? emitted()[frame] : 0);
  *off = l.sum(l.rank() == 0 && tid() == 0 ? atomicAdd((u64 *)p->work.steps_used, (u64)*size) : 0);
  if (*off + *size > p->streams.back_pointers_cap) return false;
  for (u32 number = first; number < frame; number++) {
    const u32 begin = frame_off()[number], count = frame_off()[number + 1] - begin;
    const u32 row = number > 0 ? __ldcg(rows() + number) : WF__LANE_NO_ROW;
    for (u32 i = tid(); i < count; i += THREADS) {
      const uint2 token = __ldcg(trace() + begin + i);
      if (number + 1 < frame && (token.x & MARKED) == 0) continue;
      uint4 back_pointer = make_uint4(WF__LANE_NO_PREV, NO_ARC, 0, row);
      if (token.y != NO_ARC) {
        const u32 arc = token.y & ~FOLLOWED, link = links()[begin + i].x,
                  rank = RANKS == 1 ? 0 : link >> 28, place = link & 0x0fffffff;
        const int column = (int)any_arc_at(arc).z;
        const u32 came_from = column >= 0 ? number - 1 : number;
        back_pointer.y = first_of_pair(arc);
        if (came_from >= first)
          back_pointer.x = number_of(rank, place, came_from);
        else
          back_pointer.x =
              __ldcg(&(trace() + ((int64_t)rank - l.rank()) * p->memory.trace_cap)[place].y) |
              WF__LANE_OLD;
        if (column >= 0)
          back_pointer.z =
              __float_as_uint(penalised(loglike(row_of(row), (u32)column), (u32)column));
      }
      const u64 at = *off + number_of(l.rank(), begin + i, number);
      ((uint4 *)p->streams.back_pointers)[at] = back_pointer;
      if (SCORED && keeps_lattice())
        p->streams.back_pointer_contexts[at] = traced_context(begin + i);
    }
  }
  return true;
}

/* Writes the newest frame's tokens to the stream's memory. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::save_tokens(const wf__lane_chunk &chunk) {
  const u32 before = newest_before();
  for (u32 i = tid(); i < f.num_sources; i += THREADS) {
    u64 context = source_context(i);
    const u32 state = split_pair(tokens()[i].x & ~MARKED, &context);
    chunk.tokens[before + i] = wf__lane_token{costs()[i], state};
    if (SCORED || PAIRS) chunk.contexts[before + i] = context;
  }
}

/* Emits the tokens, and the lattice's links between them. WF__LANE_NO_BACK_POINTERS if other
 * lanes have taken the room, WF__LANE_NO_ROOM if the room is too small in any case. */
template <class POLICY, int RANKS>
__device__ int searcher<POLICY, RANKS>::emit_chunk(u32 first, wf__lane_advance *out) {
  l.sync();
  if (keeps_lattice()) out->num_links = find_chunk_links(first);
  if (out->num_links > p->streams.chunk_links_cap) return WF__LANE_NO_ROOM;
  for (u32 number = frame; number-- > first;) {
    bool again = true;
    while (again) {
      again = l.sum(link_tokens(number)) != 0;
      l.sync(); /* marks are complete */
    }
  }
  number_tokens(first);
  u64 off;
  if (!emit_back_pointers(first, &off, &out->num_back_pointers)) return WF__LANE_NO_BACK_POINTERS;
  out->back_pointers_off = off;
  if (out->num_links == 0) return WF__LANE_OK;
  out->links_off = l.sum(l.rank() == 0 && tid() == 0
                             ? atomicAdd((u64 *)p->streams.chunk_links_used, (u64)out->num_links)
                             : 0);
  if (out->links_off + out->num_links > p->streams.chunk_links_cap)
    return WF__LANE_NO_BACK_POINTERS;
  emit_links(first, out->links_off);
  return WF__LANE_OK;
}

/* Ends the chunk: `end` is the first row that was not searched. Nothing has changed if the
 * status is not WF__LANE_OK. */
template <class POLICY, int RANKS>
__device__ __noinline__ int searcher<POLICY, RANKS>::suspend(bool died, u32 end, int status) {
  const wf__lane_chunk chunk = p->streams.chunks[own().utterance];
  const bool resumed = chunk.num_tokens > 0;
  wf__lane_advance out = {};
  out.bad = NO_TOKEN;
  if (status == WF__LANE_OK) {
    u64 context, end_context;
    const u64 best = best_end(false, died, &context), ending = best_end(true, died, &end_context);
    if constexpr (DEFERRED)
      if (waits()) return CLOSURE_WAITS;
    out.best = number_of_end(best, context, false);
    out.ending = number_of_end(ending, end_context, true);
    out.best_cost = cost_of((u32)(best >> 32));
    if (ending != NO_TOKEN) {
      out.ending_cost = cost_of((u32)(ending >> 32));
      out.final_cost = final_of(first_of_pair((u32)ending));
    }
    const u64 arcs_seen = l.combine(own().num_arcs, [](u64 a, u64 b) { return a + b; });
    out.num_arcs = arcs_seen;
    out.num_newest = chunk.num_tokens; /* the number that was saved; some may have become one token
                                          here, because the scorer was replaced */
    if (frame > 1 || !resumed) {
      out.num_newest = (u32)f.total_sources;
      status = emit_chunk(resumed ? 1 : 0, &out);
      if (status == WF__LANE_OK) save_tokens(chunk);
    }
  }
  const u32 rows = (u32)own().scores.num_frames;
  out.after_blank = chunk.after_blank;
  if (p->rules.skip_above < INFINITY && rows > 0)
    out.after_blank = loglike(row_of(rows - 1), (u32)p->rules.blank) > p->rules.skip_above;
  if (l.rank() != 0 || tid() != 0) return 0;
  out.status = status;
  out.flags = own().flags | (died ? 4 : 0); /* WF_RESULT_DIED */
  out.num_decoded = end;
  out.num_tokens = own().num_tokens;
  out.num_expanded = own().num_expanded;
  out.num_narrowed = own().num_narrowed;
  out.usual_size = f.usual_size;
  u64 key = f.select_key, last_context = f.select_context;
  if (PAIRS && key != NO_TOKEN) key = key >> 32 << 32 | split_pair((u32)key, &last_context);
  out.select_key = key;
  out.select_context = last_context;
  p->streams.advances[own().utterance] = out;
  return 0;
}

}  // namespace wf_search

#endif
