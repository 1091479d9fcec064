/* backward_scored_large.cu - the backward pass with scorers, with the largest tables that shared
 * memory holds. */
#include "cuda/search/instances/kernels.cuh"

WF__BACKWARD_INSTANCE(scored_large)
