/* compiled_for.cu - reports which layout the kernels have on the current GPU (gpu_profile.h). */
#include <cuda_runtime.h>

#include "cuda/device/gpu_profile.h"

__device__ int32_t wf__compiled_for[2] = {WF__SHARED_KB, WF__HAS_CLUSTERS ? WF__MAX_RANK_BITS : 0};

extern "C" int wf__gpu_compiled_for(int32_t out[2]) {
  return cudaMemcpyFromSymbol(out, wf__compiled_for, sizeof wf__compiled_for);
}
