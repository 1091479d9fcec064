/* search_scored.cu - the search with scorers: tokens are pairs (state, context). search_params.h says what differs. */
#define WF_LANE_SCORED

#include "cuda/device/ngram_cache.cuh"

#include "cuda/search/instances/kernels.cuh"
