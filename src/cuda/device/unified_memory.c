/* unified_memory.c - see unified_memory.h. */
#ifdef WARPFST_CUDA
#include "cuda/device/unified_memory.h"

#include "cuda/device/cuda_call.h"

wf_status wf__unified_alloc(uint64_t bytes, const char *what, void **out, wf_error *err) {
  int shared = 0;
  *out = NULL;
  WF__CUDA_TRY(
      cudaDeviceGetAttribute(&shared, cudaDevAttrConcurrentManagedAccess, wf__callers_device()),
      "properties of the GPU");
  if (shared == 0)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "%s in unified memory: this system lacks concurrent access by host and GPU",
                    what);
  const cudaError_t code = cudaMallocManaged(out, bytes != 0 ? bytes : 1, cudaMemAttachGlobal);
  if (code != cudaErrorMemoryAllocation)
    return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, code, what);
  (void)cudaGetLastError();
  return wf__fail(err, WF_ERR_MEMORY, "CUDA: no room for %s (%.3f GB)", what, (double)bytes * 1e-9);
}

void wf__unified_free(void *memory) {
  cudaFree(memory);
  (void)cudaGetLastError(); /* a lost device has been reported, and no later call must */
}
#endif
