/* fake_runtime.h - the part of CUDA's runtime that src/cuda/ops_*.c use, imitated: device memory is
 * host memory, filled with rubbish, and all is done at once. Comes before everything else, in place
 * of the other imitation, whose cuda_runtime_api.h is then empty. */
#ifndef FAKE_RUNTIME_H
#define FAKE_RUNTIME_H
#define FAKE_CUDA_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorUnknown = 999
} cudaError_t;
typedef struct fake_stream *cudaStream_t;
typedef struct fake_pool *cudaMemPool_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum {
  cudaStreamNonBlocking = 1,
  cudaMemAllocationTypePinned = 1,
  cudaMemLocationTypeDevice = 1,
  cudaMemPoolAttrReleaseThreshold = 4
};
struct cudaMemPoolProps {
  int allocType;
  struct {
    int type, id;
  } location;
};

extern int fake_fail_after; /* calls that still succeed; -1: all. The test has it */

static inline cudaError_t fake_result(cudaError_t code) {
  if (fake_fail_after == 0) return code;
  if (fake_fail_after > 0) fake_fail_after--;
  return cudaSuccess;
}
static inline const char *cudaGetErrorString(cudaError_t code) {
  return code == cudaSuccess ? "no error" : "an error";
}
static inline cudaError_t cudaGetLastError(void) { return cudaSuccess; }
static inline cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
static inline cudaError_t cudaSetDevice(int device) { return (void)device, cudaSuccess; }
static inline cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return (void)flags, *stream = NULL, cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return (void)stream, cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return (void)stream, fake_result(cudaErrorUnknown);
}
static inline cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
                                            const struct cudaMemPoolProps *props) {
  return (void)props, *pool = NULL, cudaSuccess;
}
static inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  return (void)pool, (void)attribute, (void)value, cudaSuccess;
}
static inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return (void)pool, cudaSuccess; }
static inline cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool,
                                                  cudaStream_t stream) {
  (void)pool, (void)stream;
  cudaError_t code = fake_result(cudaErrorMemoryAllocation);
  *out = code == cudaSuccess ? malloc(bytes) : NULL;
  if (*out != NULL) memset(*out, 0xab, bytes);
  return code;
}
static inline cudaError_t cudaMalloc(void **out, size_t bytes) {
  return *out = malloc(bytes), cudaSuccess;
}
static inline cudaError_t cudaFree(void *memory) { return free(memory), cudaSuccess; }
static inline cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  return (void)stream, free(memory), cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  return (void)stream, bytes <= SIZE_MAX / 2 ? memset(to, value, bytes) : to,
         fake_result(cudaErrorUnknown);
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                          enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind, (void)stream;
  if (bytes != 0 && bytes <= SIZE_MAX / 2) memcpy(to, from, bytes);
  return fake_result(cudaErrorUnknown);
}

#endif
