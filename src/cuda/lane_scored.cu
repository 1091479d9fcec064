/* lane_scored.cu - the search with scorers: lane_search.cu once more, with tokens that are pairs (state, context). lane_search.h says what differs. */
#define WF_LANE_SCORED

#include "cuda/wlm_cached.cuh"

#include "lane_search.cu"
