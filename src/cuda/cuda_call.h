/* cuda_call.h - CUDA errors as ours, and device buffers that only grow. */
#ifndef WF_CUDA_CUDA_CALL_H
#define WF_CUDA_CUDA_CALL_H

#include <cuda_runtime_api.h>

#include "base/error.h"

static inline wf_status wf__cuda_fail(wf_error *err, cudaError_t code, const char *what) {
  (void)cudaGetLastError(); /* it is told here, not by the next launch */
  wf_status status = code == cudaErrorMemoryAllocation ? WF_ERR_MEMORY : WF_ERR_DEVICE;
  return wf__fail(err, status, "CUDA: %s: %s", what, cudaGetErrorString(code));
}

#define WF__CUDA_TRY(call, what)                                              \
  do {                                                                        \
    cudaError_t cuda_code = (cudaError_t)(call);                              \
    if (cuda_code != cudaSuccess) return wf__cuda_fail(err, cuda_code, what); \
  } while (0)

typedef struct wf__device_buffer {
  void *data;
  uint64_t bytes;
} wf__device_buffer;

/* Room for `bytes`; what was in it is lost when it grows. */
static inline wf_status wf__device_reserve(wf__device_buffer *buffer, uint64_t bytes, const char *what, wf_error *err) {
  if (bytes <= buffer->bytes && buffer->data != NULL) return WF_OK;
  cudaFree(buffer->data);
  *buffer = (wf__device_buffer){0};
  cudaError_t code = cudaMalloc(&buffer->data, bytes != 0 ? bytes : 1);
  if (code == cudaSuccess) buffer->bytes = bytes;
  if (code != cudaErrorMemoryAllocation) return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, code, what);
  (void)cudaGetLastError();
  return wf__fail(err, WF_ERR_MEMORY, "CUDA: no room for %s (%.3f GB)", what, (double)bytes * 1e-9);
}

#endif
