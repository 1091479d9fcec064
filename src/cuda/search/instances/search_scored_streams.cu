/* search_scored_streams.cu - the search of chunks of streams with scorers that are tables. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(scored_streams)
