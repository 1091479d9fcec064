/* wlm_cached.cuh - look-ups in large language models on a GPU, where arcs may lie in host memory behind a cache (lm/wlm.h). Before anything that includes that. */
#ifndef WF_CUDA_WLM_CACHED_CUH
#define WF_CUDA_WLM_CACHED_CUH

#define WF__WLM_CACHED

#include <cuda_runtime.h>
#include <stdint.h>

/* One more; how many there were. */
static __host__ __device__ __forceinline__ uint64_t wf__wlm_add(uint64_t *counter) {
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
  return (*counter)++; /* compiled for the host, too, but never called there */
#else
  return atomicAdd((unsigned long long *)counter, 1ull);
#endif
}

#include "lm/wlm.h"

#endif
