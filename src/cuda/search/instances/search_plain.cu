/* search_plain.cu - the search without scorers. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(plain)
