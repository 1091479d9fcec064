/* cuda_call.h - turns CUDA errors into wf_status, and saves and restores the current device. Memory
 * has device_memory.h. */
#ifndef WF_CUDA_DEVICE_CUDA_CALL_H
#define WF_CUDA_DEVICE_CUDA_CALL_H

#include <cuda_runtime_api.h>

#include "base/error.h"

/* Fails with WF_ERR_MEMORY or WF_ERR_DEVICE and the message "CUDA: WHAT: CODE". Clears CUDA's last
 * error, which the next launch would report otherwise. */
wf_status wf__cuda_fail(wf_error *err, cudaError_t code, const char *what);

#define WF__CUDA_TRY(call, what)                                              \
  do {                                                                        \
    cudaError_t cuda_code = (cudaError_t)(call);                              \
    if (cuda_code != cudaSuccess) return wf__cuda_fail(err, cuda_code, what); \
  } while (0)

/* The calling thread's current device; -1 if there is none. A function that changes the device
 * restores the caller's with wf__restore_device. */
int wf__callers_device(void);
void wf__restore_device(int device);

/* Copies host memory to the current device, in stream order (NULL: the default stream). When it
 * returns, the copy is visible to every stream. A plain cudaMemcpy may return earlier, and
 * non-blocking streams do not wait for it. */
wf_status wf__device_send(void *to, const void *from, uint64_t bytes, cudaStream_t stream,
                          const char *what, wf_error *err);

/* Waits until new memory of the current device may be used in every stream. cudaDeviceSynchronize
 * must not be called: it waits for the work of all threads, and with copies and launches of other
 * threads it has deadlocked inside the driver (docs/engineering/gpu.md). */
wf_status wf__device_settle(const char *what, wf_error *err);

#endif
