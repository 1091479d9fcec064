/* wlm_cached.cuh - look-ups in large language models on a GPU, where arcs may lie in host memory behind a cache (lm/wlm.h). Before anything that includes that. */
#ifndef WF_CUDA_WLM_CACHED_CUH
#define WF_CUDA_WLM_CACHED_CUH

#define WF__WLM_CACHED

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define WF__WLM_DEVICE(on_device, on_host) on_host /* compiled for the host, too, but never called there */
#else
#define WF__WLM_DEVICE(on_device, on_host) on_device
#endif

static __host__ __device__ __forceinline__ void wf__wlm_add(uint64_t *counter, uint64_t value) {
  WF__WLM_DEVICE((void)atomicAdd((unsigned long long *)counter, (unsigned long long)value), *counter += value);
}

/* Threads that are at this place together, if this is the first of them, else 0: it counts for all. Nobody waits for anybody. */
static __host__ __device__ __forceinline__ uint32_t wf__wlm_speaks_for(void) {
  const uint32_t together = WF__WLM_DEVICE(__activemask(), 1);
  return WF__WLM_DEVICE((threadIdx.x & 31) == (uint32_t)__ffs((int)together) - 1 ? (uint32_t)__popc(together) : 0, together);
}

static __host__ __device__ __forceinline__ uint32_t wf__wlm_clock(void) { return WF__WLM_DEVICE((uint32_t)clock64(), 0); }

#include "lm/wlm.h"

#endif
