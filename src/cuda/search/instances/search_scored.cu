/* search_scored.cu - the search with scorers that are tables. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(scored)
