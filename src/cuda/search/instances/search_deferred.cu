/* search_deferred.cu - the search with a recurrent scorer: deferred_scores.cuh in place of scorers that are tables. */
#define WF_LANE_SCORED
#define WF_LANE_ASKING

#include "cuda/device/ngram_cache.cuh"

#include "cuda/search/instances/kernels.cuh"
