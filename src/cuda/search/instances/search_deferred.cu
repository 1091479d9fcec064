/* search_deferred.cu - the search with a recurrent scorer. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(deferred)
