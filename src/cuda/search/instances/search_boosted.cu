/* search_boosted.cu - the search with boosts of few contexts. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(boosted)
