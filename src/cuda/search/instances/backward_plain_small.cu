/* backward_plain_small.cu - the backward pass without scorers, with small tables, many blocks a
 * processor. */
#include "cuda/search/instances/kernels.cuh"

WF__BACKWARD_INSTANCE(plain_small)
