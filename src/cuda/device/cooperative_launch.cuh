/* cooperative_launch.cuh - cooperative launches: kernels with a barrier of the whole grid. */
#ifndef WF_CUDA_DEVICE_COOPERATIVE_LAUNCH_CUH
#define WF_CUDA_DEVICE_COOPERATIVE_LAUNCH_CUH

#include <cuda_runtime.h>

/* Launches `wanted` blocks, or fewer if not so many can be resident at once. `even`: an even number
 * of blocks. */
template <class... P, class... A>
static cudaError_t launch_together(void (*kernel)(P...), uint64_t wanted, bool even,
                                   unsigned threads, size_t shared, cudaStream_t stream,
                                   const A &...arguments) {
  int device = 0, num_processors = 0, per_processor = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess)
    code = cudaDeviceGetAttribute(&num_processors, cudaDevAttrMultiProcessorCount, device);
  if (code == cudaSuccess)
    code =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, (int)threads, shared);
  if (code != cudaSuccess) return code;
  uint64_t most = (uint64_t)num_processors * (uint64_t)per_processor,
           blocks = wanted < most ? wanted : most;
  if (even) blocks = blocks < 2 ? 2 : blocks / 2 * 2;
  cudaLaunchAttribute together;
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &together;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

#endif
