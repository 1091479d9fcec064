/* cuda_call.h - CUDA errors as ours, the current device, and device buffers that only grow. */
#ifndef WF_CUDA_DEVICE_CUDA_CALL_H
#define WF_CUDA_DEVICE_CUDA_CALL_H

#include <cuda_runtime_api.h>

#include "base/error.h"

/* WF_ERR_MEMORY or WF_ERR_DEVICE, "CUDA: WHAT: CODE". Clears CUDA's last error, or the next launch
 * would report it. */
wf_status wf__cuda_fail(wf_error *err, cudaError_t code, const char *what);

#define WF__CUDA_TRY(call, what)                                              \
  do {                                                                        \
    cudaError_t cuda_code = (cudaError_t)(call);                              \
    if (cuda_code != cudaSuccess) return wf__cuda_fail(err, cuda_code, what); \
  } while (0)

/* The calling thread's current device: -1 if there is none. A function that changes it restores
 * the caller's. */
int wf__callers_device(void);
void wf__restore_device(int device);

typedef struct wf__device_buffer {
  void *data;
  uint64_t bytes;
} wf__device_buffer;

/* Copies host memory to the current device, behind what is on the stream (NULL: the default one).
 * When it returns, every stream sees the copy. A plain cudaMemcpy may return before that: streams
 * that do not block do not wait for it. */
wf_status wf__device_send(void *to, const void *from, uint64_t bytes, cudaStream_t stream,
                          const char *what, wf_error *err);

/* Makes room for `bytes`; the contents are lost when it grows. */
wf_status wf__device_reserve(wf__device_buffer *buffer, uint64_t bytes, const char *what,
                             wf_error *err);

#endif
