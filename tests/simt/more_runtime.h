/* more_runtime.h - the parts of the CUDA runtime API that fake_cuda/ lacks and that composition and
 * the other fst operations use: memory pools and copies within a device. The build includes it
 * before every other header. */
#ifndef SIMT_MORE_RUNTIME_H
#define SIMT_MORE_RUNTIME_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "cuda_runtime_api.h"
#include "table_sizes.h"
#ifdef __cplusplus
}
#endif

typedef struct fake_pool *cudaMemPool_t;
enum {
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
static inline cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
                                            const struct cudaMemPoolProps *props) {
  return (void)props, *pool = NULL, fake_call();
}
static inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value) {
  return (void)pool, (void)attribute, (void)value, fake_call();
}
static inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return (void)pool, fake_call(); }
static inline cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool,
                                                  cudaStream_t stream) {
  return (void)pool, (void)stream, cudaMalloc(out, bytes);
}
/* Runs the stream's pending work first, since it may use the memory. */
static inline cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  cudaError_t code = cudaStreamSynchronize(stream), freed = cudaFree(memory);
  return code != cudaSuccess ? code : freed;
}
#define cudaMallocHost(out, bytes) cudaHostAlloc(out, bytes, cudaHostAllocPortable)

struct more_copy {
  void *to;
  const void *from;
  size_t bytes;
};
static inline void more_copy_now(void *data) {
  const struct more_copy *copy = (const struct more_copy *)data;
  fake_check_written(copy->from, copy->bytes);
  memmove(copy->to, copy->from, copy->bytes);
}
static inline cudaError_t more_copy_async(void *to, const void *from, size_t bytes,
                                          enum cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind != cudaMemcpyDeviceToDevice) return cudaMemcpyAsync(to, from, bytes, kind, stream);
  struct more_copy *copy = (struct more_copy *)malloc(sizeof *copy);
  copy->to = to;
  copy->from = from;
  copy->bytes = bytes;
  return fake_enqueue(stream, more_copy_now, copy);
}
#ifndef FAKE_CUDA_ITSELF
#define cudaMemcpyAsync more_copy_async
#endif

#endif
