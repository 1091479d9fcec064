/* backward_scored_small.cu - the backward pass with scorers, with small tables, many blocks a
 * processor. */
#include "cuda/search/instances/kernels.cuh"

WF__BACKWARD_INSTANCE(scored_small)
