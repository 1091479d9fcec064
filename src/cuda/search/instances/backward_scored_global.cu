/* backward_scored_global.cu - the backward pass with tables in device memory, with scorers. */
#include "cuda/search/instances/kernels.cuh"

WF__BACKWARD_GLOBAL_INSTANCE(scored_global)
