/* lane_search.cu - the search without scorers. */
#include "cuda/search/instances/kernels.cuh"
