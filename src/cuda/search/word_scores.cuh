/* word_scores.cuh - the search with a scorer (docs/reference/semantics.md, "With a scorer"):
 * costs of words, the context that a token came from, ties decided by contexts. */
#ifndef WF_CUDA_SEARCH_WORD_SCORES_CUH
#define WF_CUDA_SEARCH_WORD_SCORES_CUH

#include "cuda/search/search_graph.cuh"

namespace wf_search {

/* Copies a scorer to shared memory, by all threads of the block. NULL becomes one without parts,
 * which adds 0 and has the context 0. A barrier must follow. */
static __device__ __forceinline__ void copy_scorer(wf__flat_scorer *to,
                                                   const wf__flat_scorer *from) {
  for (u32 i = tid(); i < sizeof *to / 4; i += blockDim.x)
    ((u32 *)to)[i] = from != NULL ? __ldg((const u32 *)from + i) : 0;
}

/* With scorers: copies the utterance's scorer and added words to shared memory. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::load_scorer() {
  load_words<POLICY>(p);
  if constexpr (!DEFERRED) copy_scorer(&own().with_scorer.scorer, own().scores.scorer);
  __syncthreads();
}

template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::has_scorer() const {
  if constexpr (GATHERS || PAIRS)
    return own_scorer<POLICY>().num_parts > 0;
  else
    return SCORED;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::slack() const {
  if constexpr (SCORED)
    return has_scorer() ? own().with_scorer.words.scored_slack
                        : own().with_scorer.words.epsilon_slack;
  else if (PAIRS && has_scorer())
    return p->graph.scored_slack;
  else
    return p->graph.epsilon_slack;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ u64 searcher<POLICY, RANKS>::start_context() const {
  if constexpr (DEFERRED)
    return ranked(__ldg(p->word_scores.starts + own().scores.root));
  else if constexpr (SCORED || PAIRS)
    return own_scorer<POLICY>().start;
  else
    return 0;
}

/* Not inlined: it is called from many places, and its loops would raise their register pressure. */
template <class POLICY>
static __device__ __noinline__ float step_scorer(u32 word, u64 *context) {
  uint64_t next;
  const float added = wf__flat_step(&own_scorer<POLICY>(), *context, word, &next);
  *context = next;
  return added;
}

/* Adds the scorer's cost to a word's cost. *context advances over the word. */
template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::word_cost(u32 word, float cost, u64 *context) const {
  if constexpr (DEFERRED)
    return deferred_cost(word, cost, context);
  else
    return __fadd_rn(cost, step_scorer<POLICY>(word, context));
}

template <class POLICY, int RANKS>
__device__ float searcher<POLICY, RANKS>::final_cost_of(u64 context) const {
  if constexpr (DEFERRED)
    return deferred_final_cost(context);
  else
    return wf__flat_final(&own_scorer<POLICY>(), context);
}

/* --- word candidates, scored by whole warps ---------------------------------------------- */

/* No context gives the word a lower cost after this one. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::least_word_cost(u32 word,
                                                                          float cost) const {
  return __fadd_rn(cost, wf__flat_least(&own_scorer<POLICY>(), word));
}

/* Is a candidate of at least this cost above all that the first pass over a frame's arcs keeps? */
template <class POLICY, int RANKS>
template <int MODE>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::is_beyond(const candidate_rule &rule,
                                                                   float least) const {
  if (MODE == EXPAND_RUNNING ? rule.all_words : MODE != EXPAND_LIST || rule.shift == 0)
    return false;
  const u32 best = own_words::load(l.base + OFFSET(best));
  return best != ALL && least > add_finite(cost_of(best), p->rules.beam);
}

/* Has any rank left a word of the frame out? After a barrier of the lane. */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::left_words_out() {
  u32 any = 0;
  if constexpr (GATHERS) {
#pragma unroll
    for (int r = 0; r < RANKS; r++) any |= l.of(r).with_scorer.left_out;
  }
  return any != 0;
}

/* Gathers a candidate over an arc with a word of each waiting thread of the warp; `cost` is
 * without the scorer and the label. A look-up waits for memory several times, and few threads of
 * a warp have a word. So candidates are gathered first and scored by whole warps. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::gather_word(bool waits, u32 a, uint4 arc,
                                                                     float cost, u64 from) {
  const u32 vote = __ballot_sync(ALL, waits);
  if (vote == 0) return;
  u32 place = 0;
  if (in_warp() == 0) place = atomicAdd(&own().with_scorer.num_word_candidates, (u32)__popc(vote));
  place = __shfl_sync(ALL, place, 0) + __popc(vote & lanes_before());
  if (!waits || place >= WF__LANE_WORD_CANDIDATES) return;
  ulonglong2 *to = (ulonglong2 *)(word_candidates() + place);
  to[0] = make_ulonglong2(from, (u64)__float_as_uint(cost) << 32 | a);
  to[1] = make_ulonglong2(arc.z, (u64)(arc.x) << 32 | arc.w);
}

template <class POLICY, int RANKS>
__device__ __forceinline__ wf__word_candidate searcher<POLICY, RANKS>::word_candidate(bool live,
                                                                                      u32 i) const {
  if (!live) return wf__word_candidate{0, 0, 0, 0, 0, 0};
  const ulonglong2 *at = (const ulonglong2 *)(word_candidates() + i), first = at[0], second = at[1];
  return wf__word_candidate{first.x,  (u32)first.y,  __uint_as_float((u32)(first.y >> 32)),
                            second.x, (u32)second.y, (u32)(second.y >> 32)};
}

template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::num_word_candidates() const {
  return own().with_scorer.num_word_candidates;
}

/* After a barrier of the lane: did the word candidates of all ranks fit? */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::has_all_words() {
  u32 most = 0;
#pragma unroll
  for (int r = 0; r < RANKS; r++) most = max(most, l.of(r).with_scorer.num_word_candidates);
  return most <= WF__LANE_WORD_CANDIDATES;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::forget_words() {
  if constexpr (SCORED) own().with_scorer.num_word_candidates = 0;
}

/* --- memo of scores ---------------------------------------------------------------------- */

/* Most words are looked up after the same context in frame after frame, and a look-up takes
 * about ten dependent reads. So a block caches the scorer's results by an invertible hash of
 * context and word. The upper bits of its MEMO_KEY_BITS bits are the place; the others, + 1, are
 * the tag in both words of an entry. Threads read and write without locks, because a tag at a
 * place stands for one result only. Tag 0: empty. Contexts and words that do not fit the key are
 * looked up every time. */
constexpr int MEMO_TAG_BITS = 31, MEMO_KEY_BITS = MEMO_TAG_BITS + WF__LANE_MEMO_BITS;

/* Returns false if the result cannot be cached. */
template <class POLICY>
static __device__ __forceinline__ bool place_in_memo(u64 context, u32 word, u32 *place, u32 *tag) {
  const int bits = own_shared<POLICY>().with_scorer.scorer.bits, word_bits = MEMO_KEY_BITS - bits;
  if (bits > 32 || word_bits <= 0 || (u64)word >> word_bits != 0) return false;
  u64 key = context << word_bits | word;
  key ^= key >> MEMO_KEY_BITS / 2;
  key = key * 0x9E3779B97F4A7C15ull & ((1ull << MEMO_KEY_BITS) - 1);
  key ^= key >> MEMO_KEY_BITS / 2;
  key = key * 0xC2B2AE3D27D4EB4Full & ((1ull << MEMO_KEY_BITS) - 1);
  *place = (u32)(key >> MEMO_TAG_BITS);
  *tag = ((u32)key & ((1u << MEMO_TAG_BITS) - 1)) + 1;
  return true;
}

/* Like word_cost, but uses the memo. What is known to cost more than `most` may cost +infinity. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::memoized_cost(u32 word, float cost,
                                                                        u64 *context,
                                                                        float most) const {
  u32 place, tag;
  const bool kept = place_in_memo<POLICY>(*context, word, &place, &tag);
  if (kept) {
    const ulonglong2 entry = load_global128(memo() + place);
    if ((u32)(entry.x >> 32) == tag && (u32)(entry.y >> 32) == tag) {
      *context = (u32)entry.y;
      return __fadd_rn(cost, __uint_as_float((u32)entry.x));
    }
  }
  if (least_word_cost(word, cost) > most) return INFINITY;
  const float added = step_scorer<POLICY>(word, context);
  if (kept)
    __stcg(memo() + place,
           make_ulonglong2((u64)tag << 32 | __float_as_uint(added), (u64)tag << 32 | *context));
  return __fadd_rn(cost, added);
}

/* Clears the memo, when the lane gets another scorer or the launch begins. A barrier of the block
 * must follow before the next look-up. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::clear_memo() {
  const wf__flat_scorer *now = own().scores.scorer;
  if (own().with_scorer.memo_of == now) return;
  for (u32 i = tid(); i < 1u << WF__LANE_MEMO_BITS; i += THREADS)
    __stcg(memo() + i, make_ulonglong2(0, 0));
  __syncthreads();
  if (tid() == 0) own().with_scorer.memo_of = now;
}

/* --- the context that a token came from -------------------------------------------------- */

/* Must a candidate that became the best of its slot, or is equal to it, be logged? Candidates
 * with a word must, as the others keep their context; with recombine=state all must. */
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::is_logged(u32 word) const {
  return (word != 0 || by_state()) &&
         (DEFERRED ||
          own().with_scorer.scorer.bits != 0); /* without bits, all tokens have context 0 */
}

template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::log_candidate(u32 word, u32 rank, u32 slot,
                                                                       u64 value, u64 from,
                                                                       u64 to) {
  if (!is_logged(word)) return;
  const u32 place = atomicAdd(&own().with_scorer.num_logged, 1u);
  if (place < WF__LANE_WORD_LOG)
    word_log()[place] = wf__lane_logged{value, by_state() ? to : from, rank << 16 | slot, 0};
}

/* With recombine=state, between two barriers: newly logged candidates that are still the best of
 * their slots write their contexts to `sources` of the slot's rank. A slot has at most one such
 * candidate, since a state has one token and a slot's value only decreases. Returns false if a
 * log was too small. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::place_contexts() {
  u32 most = 0;
#pragma unroll
  for (int r = 0; r < RANKS; r++) most = max(most, l.of(r).with_scorer.num_logged);
  const u32 size = most <= WF__LANE_WORD_LOG ? own().with_scorer.num_logged : 0;
  for (u32 i = own().with_scorer.num_placed + tid(); i < size; i += THREADS) {
    const wf__lane_logged entry = word_log()[i];
    const u32 rank = entry.where >> 16, slot = entry.where & 0xffff;
    if (((l.value_of_rank(rank, slot) ^ entry.value) & ~(u64)FRESH) == 0)
      sources_of(rank)[slot] = entry.source;
  }
  l.sync();
  if (tid() == 0) own().with_scorer.num_placed = size;
  return most <= WF__LANE_WORD_LOG;
}

/* After the closure: writes to `sources` of a slot's rank the least context among the candidates
 * with the slot's final value. *any: is there one on any rank? Returns false if a log was too
 * small. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::find_sources(bool *any) {
  *any = false;
  if (by_state()) return place_contexts();
  u32 most = 0;
#pragma unroll
  for (int r = 0; r < RANKS; r++) most = max(most, l.of(r).with_scorer.num_logged);
  *any = most > 0;
  const u32 size = most <= WF__LANE_WORD_LOG ? own().with_scorer.num_logged : 0;
  for (u32 i = tid(); i < size; i += THREADS) {
    const wf__lane_logged entry = word_log()[i];
    const u32 rank = entry.where >> 16, slot = entry.where & 0xffff;
    if (((l.value_of_rank(rank, slot) ^ entry.value) & ~(u64)FRESH) != 0)
      continue; /* a better candidate replaced it */
    atomicMin(sources_of(rank) + slot, (u64)entry.source);
  }
  l.sync(); /* always: the next frame clears the counts that other blocks may still read */
  return most <= WF__LANE_WORD_LOG;
}

/* --- ties -------------------------------------------------------------------------------- */

/* Is this source the last one to accept? Equal sources write the same value. */
template <class POLICY, int RANKS>
__device__ __forceinline__ void searcher<POLICY, RANKS>::keep_selected(u64 key, u64 below, u64 same,
                                                                       u64 want) {
  if (below >= want || below + same < want) return;
  atomicExch(&own().select_key, key);
  atomicExch(&own().with_scorer.select_left, (u32)(below + same > want ? want - below : 0));
}

template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::selected_left() const {
  return own().with_scorer.select_left;
}

/* The want-th context by number among those of the sources with this key. */
template <class POLICY, int RANKS>
__device__ u64 searcher<POLICY, RANKS>::tied_source(u64 key, u64 want) {
  const uint2 *tokens = this->tokens();
  u64 prefix = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    __syncthreads();
    if (tid() < 256) own().hist[tid()] = 0;
    __syncthreads();
    for (u32 i = tid(); i < f.num_sources; i += THREADS) {
      const u64 context = source_context(i);
      if (((u64)ordered(costs()[i]) << 32 | tokens[i].x) == key &&
          (shift == 56 || context >> (shift + 8) == prefix))
        atomicAdd(&own().hist[(u32)(context >> shift) & 255], 1u);
    }
    u32 bin;
    want -= pick_bin(want, &bin);
    prefix = prefix << 8 | bin;
  }
  return prefix;
}

/* The same among the candidates with this key, up to f.last_context. */
template <class POLICY, int RANKS>
__device__ u64 searcher<POLICY, RANKS>::tied_candidate(u64 key, u64 want) {
  candidate_rule rule = {key, 0, 0};
  for (int shift = 56; shift >= 0; shift -= 8) {
    __syncthreads();
    if (tid() < 256) own().hist[tid()] = 0;
    __syncthreads();
    rule.shift = shift;
    expand<EXPAND_TIES>(rule);
    u32 bin;
    want -= pick_bin(want, &bin);
    rule.prefix = rule.prefix << 8 | bin;
  }
  return rule.prefix;
}

}  // namespace wf_search

#endif
