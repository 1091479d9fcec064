/* search_deferred_streams.cu - the search of chunks of streams with a recurrent scorer. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(deferred_streams)
