/* boost_pairs.cuh - the search with boosts of few contexts: numbers of pairs, costs of words.
 *
 * A list of boosts has C contexts, the nodes of its phrases. A token is a pair (state, context),
 * and the pair's number, state * C + context, takes the state's place in the table and in the
 * trace. In the same way arc * C + context of the arc's source takes the arc's place in values and
 * in the trace. A state or an arc "as in the trace" is such a number.
 *
 * These numbers have the order of (state, context) and of (arc, context), which decides ties. So
 * this is the search without a scorer, with its table in shared memory, and needs nothing of what
 * word_scores.cuh keeps for contexts. The host chooses it if all numbers have at most 31 bits
 * (has_few_contexts in upload_scorers.c).
 *
 * In most contexts most words begin no phrase and continue none. A filter (Bloom 1970) in shared
 * memory, with two bits for each key of the lists' tables, tells this without a read of device
 * memory; the other words are looked up at once. */
#ifndef WF_CUDA_SEARCH_BOOST_PAIRS_CUH
#define WF_CUDA_SEARCH_BOOST_PAIRS_CUH

#include "cuda/search/word_scores.cuh"

namespace wf_search {

/* --- numbers of pairs -------------------------------------------------------------------- */

/* With s = ceil(log2(C)) and magic = ceil(2^(31 + s) / C), n / C = n * magic >> (31 + s) for all n
 * below 2^31 (Granlund & Montgomery 1994, theorem 4.2). */
static __device__ __forceinline__ void set_divisor(pairs_shared<true> *pairs, u32 contexts) {
  const u32 bits = 32 - __clz(contexts - 1);
  pairs->contexts = contexts;
  pairs->magic = (u32)(((1ull << (31 + bits)) + contexts - 1) / contexts);
  pairs->shift = bits - 1;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::pair_of(u32 number, u32 context) {
  if constexpr (PAIRS)
    return number * own().with_pairs.contexts + context;
  else
    return number;
}

template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::split_pair(u32 pair, u64 *context) {
  if constexpr (PAIRS) {
    const u32 number = (u32)((u64)pair * own().with_pairs.magic >> 32) >> own().with_pairs.shift;
    *context = pair - number * own().with_pairs.contexts;
    return number;
  } else {
    return pair;
  }
}

template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::first_of_pair(u32 pair) {
  u64 context;
  return split_pair(pair, &context);
}

/* --- costs of words ---------------------------------------------------------------------- */

/* Places of a key of the lists' tables (scorer/flat_scorer.h), which is node << 32 | word; in lists
 * of words alone the node is 0. */
static __device__ __forceinline__ u32 filter_place(u32 node, u32 word, int which) {
  const u32 hash = (word ^ node * 0x85EBCA77u) * 0x9E3779B1u;
  return hash >> (32 - FILTER_BITS * (which + 1)) & ((1u << FILTER_BITS) - 1);
}

template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::may_have(u32 node, u32 word) const {
  const u32 filter = l.base + OFFSET(with_pairs) + (u32)offsetof(pairs_shared<true>, filter),
            one = filter_place(node, word, 0), two = filter_place(node, word, 1);
  return (own_words::load(filter + one / 32 * 4) >> one % 32 &
          own_words::load(filter + two / 32 * 4) >> two % 32 & 1) != 0;
}

/* Reads the utterance's scorer. Without one the filter has no key, so all words cost 0. A block
 * keeps scorer and filter as long as utterances have the same scorer. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::load_pairs() {
  pairs_shared<true> &pairs = own().with_pairs;
  const wf__flat_scorer *const from = own().scores.scorer;
  const bool same = pairs.filter_of == from;
  if (!same) copy_scorer(&pairs.scorer, from);
  for (u32 i = tid(); i < sizeof pairs.filter / 4 && !same; i += THREADS) pairs.filter[i] = 0;
  __syncthreads();
  if (same) return;
  const wf__flat_part &first = pairs.scorer.parts[0];
  if (tid() == 0) {
    const bool is_one = pairs.scorer.num_parts == 1 && first.kind == WF__FLAT_PHRASES;
    pairs.filter_of = from;
    pairs.nodes = is_one ? first.nodes : NULL;
    pairs.least = wf__flat_least(&pairs.scorer, UINT32_MAX); /* boosts have no table of these */
    set_divisor(&pairs, wf__flat_contexts(&pairs.scorer));
  }
  for (int k = 0; k < pairs.scorer.num_parts; k++) {
    const wf__flat_part &part = pairs.scorer.parts[k];
    const u32 slots = part.table_bits > 0 ? 1u << part.table_bits : 0;
    for (u32 i = tid(); i < slots; i += THREADS) {
      const uint64_t key = part.keys[i];
      for (int which = 0; which < 2 && key != UINT64_MAX; which++) {
        const u32 place = filter_place((u32)(key >> 32), (u32)key, which);
        atomicOr(&pairs.filter[place / 32], 1u << place % 32);
      }
    }
  }
  __syncthreads();
}

/* Like word_cost. Adds the 0 of a word in no phrase, too, as the CPU does. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::boosted_cost(u32 word, float cost,
                                                                       u64 *context) const {
  const u32 from = (u32)*context;
  if (!may_have(0, word)) {
    if (from == 0) return __fadd_rn(cost, 0.0f);
    const wf__phrase_node *const nodes = own().with_pairs.nodes;
    if (nodes != NULL && !may_have(from, word) && __ldg(&nodes[from].failure) == 0) {
      *context = 0; /* node 0, with nothing pending or earned */
      return __fadd_rn(cost, __ldg(&nodes[from].pending));
    }
  }
  return __fadd_rn(cost, step_scorer<POLICY>(word, context));
}

}  // namespace wf_search

#endif
