/* cuda_runtime_api.h - declares the part of the CUDA runtime API that src/cuda/ uses. fake_cuda.c
 * implements it with GPUs that are imitated in host memory. The host code of the GPU decoder is
 * compiled against this header, which allows testing its order of operations, its use of memory and
 * its error handling without a GPU. */
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
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorUnknown = 999
} cudaError_t;
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3 /* only with simt/more_runtime.h */
};
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
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrConcurrentManagedAccess = 89
};
enum { cudaMemAttachGlobal = 1 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocPortable = 1 };
struct cudaPointerAttributes {
  enum cudaMemoryType type;
  int device;
};
typedef struct fake_stream *cudaStream_t;
typedef struct fake_event *cudaEvent_t;
typedef struct fake_graph *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };

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
cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned flags);
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
cudaError_t cudaDeviceCanAccessPeer(int *possible, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

/* --- only in the imitation --------------------------------------------------------------- */

struct fake_gpus {
  int num_devices;              /* 3 unless changed */
  int num_processors;           /* 12 */
  size_t memory_bytes;          /* of each: 1 GB */
  int shared_kb, max_rank_bits; /* the profile that the kernels were compiled for: 227, 3
                                 (gpu_profile.h); 0, 0: the library has no code for this GPU */
  int driver;     /* CUDA version that the driver supports: 13000; below 12000: too old */
  unsigned eager; /* 0: work is delayed until somebody waits for it; else a seed: some of it runs
                     earlier */
  bool no_unified_memory;  /* that the host may access while a kernel runs */
  long fail_at;            /* number of the call that fails; 0: none */
  long lost_at;            /* number of the call from which on the device is lost; 0: never */
  bool failed_to_allocate; /* the last failure was an allocation on a device that was not lost */
  long num_calls;          /* API calls so far */
  long num_objects;        /* existing allocations, streams, events and graphs */
  long num_recorded, num_launched;   /* graphs so far */
  size_t device_bytes, pinned_bytes; /* allocated now */
  size_t sent_bytes;                 /* copied to devices so far */
  bool checks_copies;   /* from a device: abort where they read memory that nothing wrote, as
                         compute-sanitizer's initcheck does */
  long num_searches[9]; /* launched so far in lanes of so many blocks */
};
extern struct fake_gpus fake_gpus;

/* An API call that does nothing, but fails if it is the call that must fail. */
cudaError_t fake_call(void);
/* Before a copy from a device: see checks_copies. */
void fake_check_written(const void *from, size_t bytes);
/* Enqueues fn(data) on the stream. The stream frees data afterwards. */
cudaError_t fake_enqueue(cudaStream_t stream, void (*fn)(void *data), void *data);

#endif
