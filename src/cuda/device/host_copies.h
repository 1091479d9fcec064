/* host_copies.h - copies results from a GPU to ordinary host memory. */
#ifndef WF_CUDA_DEVICE_HOST_COPIES_H
#define WF_CUDA_DEVICE_HOST_COPIES_H

#include "cuda/device/cuda_call.h"

typedef struct wf__host_copy {
  void *to;
  const void *from; /* memory of the current device */
  uint64_t bytes;
} wf__host_copy;

/* Copies in stream order, and waits. Large arrays go in pieces, through page-locked memory, on all
 * processors: a single thread would fill new pages at a tenth of the bus's speed. */
wf_status wf__copy_to_host(const wf__host_copy *copies, int count, cudaStream_t stream,
                           const char *what, wf_error *err);

#endif
