/* cuda_runtime_api.h - the part of CUDA's runtime that src/cuda/ uses, declared for GPUs that are
 * imitated in host memory (fake_cuda.c). The host side of the GPU decoder is compiled against it,
 * so that its order of work, its memory and its failures are tested where there is no GPU. */
#ifndef FAKE_CUDA_RUNTIME_API_H
#define FAKE_CUDA_RUNTIME_API_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorNotReady = 600,
  cudaErrorUnknown = 999
} cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};
enum cudaDeviceAttr {
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76
};
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocPortable = 1 };
struct cudaPointerAttributes {
  enum cudaMemoryType type;
  int device;
};
typedef struct fake_stream *cudaStream_t;
typedef struct fake_event *cudaEvent_t;

const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError(void);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);

/* --- the imitation's own ----------------------------------------------------------------- */

struct fake_gpus {
  int num_devices;              /* 3 unless changed */
  int num_processors;           /* 12 */
  size_t memory_bytes;          /* of each: 1 GB */
  int shared_kb, max_rank_bits; /* what the kernels were compiled for: 227, 3 (gpu_profile.h); 0, 0:
                                   they have no code for the GPU */
  int driver;     /* version of CUDA that the driver supports, 13000; less than 12000: too old */
  unsigned eager; /* 0: work is put off until somebody waits for it; else a seed: some of it is done
                     earlier */
  long fail_at;   /* the call of this number fails; 0: none */
  long lost_at;   /* the device is lost from the call of this number on; 0: it is not */
  bool failed_to_allocate; /* what failed last was an allocation, on a device that was not lost */
  long num_calls;          /* so far */
  long num_objects;        /* that exist: allocations, streams, events */
  size_t device_bytes, pinned_bytes; /* allocated now */
};
extern struct fake_gpus fake_gpus;

/* A call that does nothing, but may have to fail. */
cudaError_t fake_call(void);
/* Puts fn(data) on the stream; data is freed afterwards. */
cudaError_t fake_enqueue(cudaStream_t stream, void (*fn)(void *data), void *data);

#endif
