/* search_scored.cu - the search with scorers that are tables, and its backward pass. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(scored)
WF__BACKWARD_INSTANCE(scored)
