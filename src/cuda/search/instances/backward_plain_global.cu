/* backward_plain_global.cu - the backward pass with tables in device memory, without scorers. */
#include "cuda/search/instances/kernels.cuh"

WF__BACKWARD_GLOBAL_INSTANCE(plain_global)
