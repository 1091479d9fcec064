/* device_memory.h - allocates memory of the current GPU, unified memory and page-locked memory.
 * Whatever is allocated, a failure says what it was for, on which GPU, how many bytes were needed,
 * and how many are left. */
#ifndef WF_CUDA_DEVICE_DEVICE_MEMORY_H
#define WF_CUDA_DEVICE_DEVICE_MEMORY_H

#include "cuda/device/cuda_call.h"

/* WF_ERR_MEMORY: the GPU has no room for `what`, which needs `bytes`. left: bytes that it may still
 * use; UINT64_MAX: not known. */
wf_status wf__fail_room(wf_error *err, int device, const char *what, uint64_t bytes, uint64_t left);
/* An allocation of `bytes` on the current device has failed with `code`: wf__fail_room with the
 * bytes that are free, or wf__cuda_fail for another error. Clears CUDA's last error. */
wf_status wf__fail_allocation(wf_error *err, cudaError_t code, const char *what, uint64_t bytes);

/* Memory of the current device, at least one byte; cudaFree frees it. After a failure *out is NULL.
 */
wf_status wf__device_alloc(void **out, uint64_t bytes, const char *what, wf_error *err);
/* Page-locked host memory for all GPUs; cudaFreeHost frees it. */
wf_status wf__pinned_alloc(void **out, uint64_t bytes, const char *what, wf_error *err);
/* Memory that the current device and the host access with the same pointers. It begins in the GPU's
 * memory; pages that the host reads move to host memory. WF_ERR_UNSUPPORTED if the host must not
 * access it while a kernel runs, as on some systems. */
wf_status wf__unified_alloc(void **out, uint64_t bytes, const char *what, wf_error *err);
void wf__unified_free(void *memory);

/* Memory of a device that only grows. */
typedef struct wf__device_buffer {
  void *data;
  uint64_t bytes;
} wf__device_buffer;

/* Makes room for `bytes`; the contents are lost when it grows. */
wf_status wf__device_reserve(wf__device_buffer *buffer, uint64_t bytes, const char *what,
                             wf_error *err);
/* Enlarges a buffer, if it has memory, and keeps its contents; the rest is zeros. Waits for the
 * stream. */
wf_status wf__device_grow(wf__device_buffer *buffer, uint64_t bytes, cudaStream_t stream,
                          const char *what, wf_error *err);

#endif
