/* ngram_cache.cuh - look-ups in large language models on a GPU, where arcs may lie in host memory
 * behind a cache (lm/wlm.h). Before anything that includes that. */
#ifndef WF_CUDA_DEVICE_NGRAM_CACHE_CUH
#define WF_CUDA_DEVICE_NGRAM_CACHE_CUH

#define WF__WLM_CACHED

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define WF__WLM_DEVICE(on_device, on_host) \
  on_host /* compiled for the host, too, but never called there */
#else
#define WF__WLM_DEVICE(on_device, on_host) on_device
#endif

/* One more; how many there were. */
static __host__ __device__ __forceinline__ uint64_t wf__wlm_add(uint64_t *counter) {
  return WF__WLM_DEVICE(atomicAdd((unsigned long long *)counter, 1ull), (*counter)++);
}

static __host__ __device__ __forceinline__ uint32_t wf__wlm_clock(void) {
  return WF__WLM_DEVICE((uint32_t)clock64(), 0);
}

/* Adds the cycles from `began` until `value`, which is never UINT32_MAX, has come: the clock is
 * read only when that has been compared. Of threads that have read together one adds them, so each
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
