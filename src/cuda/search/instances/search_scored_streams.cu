/* search_scored_streams.cu - the search of chunks of streams that have scorers. */
#define WF_LANE_SCORED
#define WF_LANE_STREAMS

#include "cuda/device/ngram_cache.cuh"

#include "cuda/search/instances/kernels.cuh"
