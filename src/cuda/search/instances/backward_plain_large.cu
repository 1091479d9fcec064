/* backward_plain_large.cu - the backward pass without scorers, with the largest tables that shared
 * memory holds. */
#include "cuda/search/instances/kernels.cuh"

WF__BACKWARD_INSTANCE(plain_large)
