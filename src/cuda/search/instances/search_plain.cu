/* search_plain.cu - the search without scorers, and its backward pass. */
#include "cuda/search/instances/kernels.cuh"

WF__SEARCH_INSTANCE(plain)
WF__BACKWARD_INSTANCE(plain)
