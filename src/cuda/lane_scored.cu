/* lane_scored.cu - the search with scorers: lane_search.cu once more, with tokens that are pairs (state, context). lane_search.h says what differs. */
#define WF_LANE_SCORED
#define WF__WLM_CACHED /* wlm.h */

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

#include "lane_search.cu"
