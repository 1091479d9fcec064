/* search_boosted_streams.cu - the search of chunks of streams with boosts of few contexts. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(boosted_streams)
