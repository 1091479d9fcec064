/* policy.cuh - the variants of a search kernel: the template parameter POLICY of everything in
 * search/ and lattice/. Each file of instances/ compiles one policy. */
#ifndef WF_CUDA_SEARCH_POLICY_CUH
#define WF_CUDA_SEARCH_POLICY_CUH

#include "cuda/device/ngram_cache.cuh" /* before all else that includes lm/wlm.h */

#include <stdint.h>

#include <type_traits>

#include "cuda/search/search_params.h"

namespace wf_search {

typedef unsigned long long u64;
typedef uint32_t u32;

/* Threads of a block of a lane. Lanes of eight blocks are used when there are few utterances. Their
 * blocks have few tokens each, and shorter barriers gain more than more threads would
 * (docs/engineering/gpu.md). */
__host__ __device__ constexpr u32 threads_of(int ranks) {
  return ranks == 8 ? WF__LANE_THREADS / 2 : WF__LANE_THREADS;
}

/* Where word costs come from: only the graph; boosts with few contexts (boost_pairs.cuh); scorers
 * that are look-up tables (scorer/flat_scorer.h); a recurrent scorer, whose scores are computed
 * between launches (deferred_scores.cuh). */
enum scorer_kind { GRAPH_ALONE, FEW_CONTEXTS, FLAT_SCORER, DEFERRED_SCORER };
/* What a lane takes from the queue. */
enum input_kind { UTTERANCES, CHUNKS_OF_STREAMS };
/* Where the backward pass of lattices has its tables. */
enum backward_memory { BACKWARD_IN_SHARED, BACKWARD_IN_GLOBAL };

/* How a block keeps the tokens of a frame (token_table.cuh). */
struct keys_in_shared {
  typedef u32 token_key;
  typedef u32 fingerprint;        /* shared memory has the whole key */
  static constexpr u32 AHEAD = 1; /* values in flight at a time, in passes over the table */
  static constexpr u32 SPARE =
      3; /* slots of a table for each token that a frame is expected to have */
  __host__ __device__ static constexpr u32 slot_bits(int shared_kb) {
    return WF__PLAIN_SLOT_BITS(shared_kb);
  }
  __host__ __device__ static constexpr u32 shared_values(int shared_kb) {
    return 1u << slot_bits(shared_kb);
  }
};
struct fingerprints_in_shared {
  typedef u64 token_key;
  typedef uint16_t fingerprint;
  static constexpr u32 AHEAD = 4, SPARE = 2;
  __host__ __device__ static constexpr u32 slot_bits(int shared_kb) {
    return WF__SCORED_SLOT_BITS(shared_kb);
  }
  __host__ __device__ static constexpr u32 shared_values(int) { return 2; } /* none are used */
};

template <scorer_kind SCORER, input_kind INPUT, backward_memory BACKWARD = BACKWARD_IN_SHARED>
struct search_policy {
  static constexpr bool PAIRS =
      SCORER == FEW_CONTEXTS; /* states stand for pairs (state, context) */
  static constexpr bool SCORED =
      SCORER == FLAT_SCORER || SCORER == DEFERRED_SCORER; /* contexts stand beside states */
  static constexpr bool DEFERRED = SCORER == DEFERRED_SCORER;
  static constexpr bool STREAMS = INPUT == CHUNKS_OF_STREAMS;
  static constexpr bool LATTICES =
      !STREAMS && !DEFERRED && !PAIRS; /* lattices of streams are made on the host */
  static constexpr bool BACKWARD_GLOBAL = BACKWARD == BACKWARD_IN_GLOBAL;
  typedef std::conditional_t<SCORED, fingerprints_in_shared, keys_in_shared> table;
};

typedef search_policy<GRAPH_ALONE, UTTERANCES> plain;
typedef search_policy<FEW_CONTEXTS, UTTERANCES> boosted;
typedef search_policy<FLAT_SCORER, UTTERANCES> scored;
typedef search_policy<DEFERRED_SCORER, UTTERANCES> deferred;
typedef search_policy<GRAPH_ALONE, CHUNKS_OF_STREAMS> plain_streams;
typedef search_policy<FEW_CONTEXTS, CHUNKS_OF_STREAMS> boosted_streams;
typedef search_policy<FLAT_SCORER, CHUNKS_OF_STREAMS> scored_streams;
typedef search_policy<DEFERRED_SCORER, CHUNKS_OF_STREAMS> deferred_streams;
typedef search_policy<GRAPH_ALONE, UTTERANCES, BACKWARD_IN_GLOBAL> plain_global;
typedef search_policy<FLAT_SCORER, UTTERANCES, BACKWARD_IN_GLOBAL> scored_global;

}  // namespace wf_search

#endif
