/* backward_global.cu - the backward pass of lattices (backward.cuh) for utterances whose frames have more tokens in their lattice than shared memory has room for: its tables are
 * in device memory. */
#define WF_BACKWARD_GLOBAL

#include "cuda/search/instances/kernels.cuh"
