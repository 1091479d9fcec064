/* device_memory.c - see device_memory.h. */
#include "cuda/device/device_memory.h"

#include <stdio.h>

wf_status wf__fail_room(wf_error *err, int device, const char *what, uint64_t bytes,
                        uint64_t left) {
  char rest[48] = "";
  if (left != UINT64_MAX) snprintf(rest, sizeof rest, ", %llu are left", (unsigned long long)left);
  return wf__fail(err, WF_ERR_MEMORY, "GPU cuda:%d: no room for %s: %llu bytes are needed%s",
                  device, what, (unsigned long long)bytes, rest);
}

wf_status wf__fail_allocation(wf_error *err, cudaError_t code, const char *what, uint64_t bytes) {
  size_t free_bytes = 0, all_bytes = 0;
  if (code != cudaErrorMemoryAllocation) return wf__cuda_fail(err, code, what);
  const bool known = cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess;
  (void)cudaGetLastError(); /* the next launch would report it otherwise */
  return wf__fail_room(err, wf__callers_device(), what, bytes, known ? free_bytes : UINT64_MAX);
}

wf_status wf__device_alloc(void **out, uint64_t bytes, const char *what, wf_error *err) {
  *out = NULL;
  const cudaError_t code = cudaMalloc(out, bytes != 0 ? bytes : 1);
  if (code == cudaSuccess) return WF_OK;
  *out = NULL;
  return wf__fail_allocation(err, code, what, bytes);
}

wf_status wf__pinned_alloc(void **out, uint64_t bytes, const char *what, wf_error *err) {
  *out = NULL;
  const cudaError_t code = cudaHostAlloc(out, bytes, cudaHostAllocPortable);
  if (code == cudaSuccess) return WF_OK;
  *out = NULL;
  if (code != cudaErrorMemoryAllocation) return wf__cuda_fail(err, code, what);
  (void)cudaGetLastError();
  return wf__fail(err, WF_ERR_MEMORY,
                  "CUDA: no room for %s: %llu bytes of page-locked host memory are needed", what,
                  (unsigned long long)bytes);
}

wf_status wf__unified_alloc(void **out, uint64_t bytes, const char *what, wf_error *err) {
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
  if (code == cudaSuccess) return WF_OK;
  *out = NULL;
  return wf__fail_allocation(err, code, what, bytes);
}

void wf__unified_free(void *memory) {
  cudaFree(memory);
  (void)cudaGetLastError(); /* a lost device has been reported, and no later call must */
}

wf_status wf__device_reserve(wf__device_buffer *buffer, uint64_t bytes, const char *what,
                             wf_error *err) {
  if (bytes <= buffer->bytes && buffer->data != NULL) return WF_OK;
  cudaFree(buffer->data);
  *buffer = (wf__device_buffer){0};
  WF__TRY(wf__device_alloc(&buffer->data, bytes, what, err));
  buffer->bytes = bytes;
  return WF_OK;
}

wf_status wf__device_grow(wf__device_buffer *buffer, uint64_t bytes, cudaStream_t stream,
                          const char *what, wf_error *err) {
  wf__device_buffer larger = {0};
  if (buffer->data == NULL || bytes <= buffer->bytes) return WF_OK;
  WF__TRY(wf__device_reserve(&larger, bytes, what, err));
  cudaError_t code = cudaMemsetAsync(larger.data, 0, larger.bytes, stream);
  if (code == cudaSuccess)
    code =
        cudaMemcpyAsync(larger.data, buffer->data, buffer->bytes, cudaMemcpyDeviceToDevice, stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  cudaFree(code == cudaSuccess ? buffer->data : larger.data);
  if (code != cudaSuccess) return wf__cuda_fail(err, code, what);
  *buffer = larger;
  return WF_OK;
}
