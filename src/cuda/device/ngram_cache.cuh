/* ngram_cache.cuh - n-gram look-ups on a GPU in large language models, whose arcs may be in host
 * memory with a cache on the device (lm/wlm.h). Include it before anything that includes wlm.h. */
#ifndef WF_CUDA_DEVICE_NGRAM_CACHE_CUH
#define WF_CUDA_DEVICE_NGRAM_CACHE_CUH

#define WF__WLM_CACHED

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define WF__WLM_DEVICE(on_device, on_host) \
  on_host /* compiled for the host as well, but never called there */
#else
#define WF__WLM_DEVICE(on_device, on_host) on_device
#endif

/* Increments a counter and returns the previous value. */
static __host__ __device__ __forceinline__ uint64_t wf__wlm_add(uint64_t *counter) {
  return WF__WLM_DEVICE(atomicAdd((unsigned long long *)counter, 1ull), (*counter)++);
}

static __host__ __device__ __forceinline__ uint32_t wf__wlm_clock(void) {
  return WF__WLM_DEVICE((uint32_t)clock64(), 0);
}

/* Adds the cycles from `began` until `value` has arrived. `value` is never UINT32_MAX; comparing it
 * makes the clock read wait for it. One of the threads that read together adds the cycles, so each
 * wait of a warp counts once. */
static __host__ __device__ __forceinline__ void wf__wlm_waited(uint64_t *counter, uint32_t began,
                                                               uint32_t value) {
  const uint32_t cycles = value != UINT32_MAX ? wf__wlm_clock() - began : 0;
  const bool speaks =
      WF__WLM_DEVICE((threadIdx.x & 31) == (unsigned)__ffs((int)__activemask()) - 1, true);
  if (speaks)
    WF__WLM_DEVICE(atomicAdd((unsigned long long *)counter, (unsigned long long)cycles),
                   *counter += cycles);
}

#include "lm/wlm.h"

#endif
