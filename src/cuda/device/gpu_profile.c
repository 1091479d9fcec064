/* gpu_profile.c - reads the profile of a GPU, and explains in one line why there is none. */
#include "cuda/device/gpu_profile.h"

#include "cuda/device/cuda_call.h"

/* A driver supports programs of its own CUDA major version and of earlier ones. */
wf_status wf__gpu_count(int *out, wf_error *err) {
  int driver = 0, runtime = 0;
  const cudaError_t code = cudaGetDeviceCount(out);
  if (code == cudaSuccess && *out > 0) return WF_OK;
  (void)cudaGetLastError(); /* the next launch would report it otherwise */
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return wf__fail(err, WF_ERR_DEVICE, "no GPU: there is no NVIDIA driver");
  if (code == cudaErrorInsufficientDriver && cudaRuntimeGetVersion(&runtime) == cudaSuccess)
    return wf__fail(
        err, WF_ERR_DEVICE,
        "no GPU: the NVIDIA driver is too old: it supports CUDA %d.%d, this build needs %d.%d",
        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  return wf__fail(err, WF_ERR_DEVICE, "no GPU: %s", cudaGetErrorString(code));
}

wf_status wf__gpu_profile_read(int device, wf__gpu_profile *out, wf_error *err) {
  int count = 0, major = 0, minor = 0, processors = 0;
  int32_t compiled[2] = {0, 0};
  WF__TRY(wf__gpu_count(&count, err));
  if (device >= count)
    return wf__fail(err, WF_ERR_DEVICE, "device cuda:%d: there are %d GPUs, numbered from 0",
                    device, count);
  WF__CUDA_TRY(cudaSetDevice(device), "choosing the GPU");
  WF__CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
               "the GPU's properties");
  WF__CUDA_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
               "the GPU's properties");
  WF__CUDA_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
               "the GPU's properties");
  const cudaError_t code = (cudaError_t)wf__gpu_compiled_for(compiled);
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction ||
      code == cudaErrorUnsupportedPtxVersion) {
    (void)cudaGetLastError();
    return wf__fail(err, WF_ERR_DEVICE,
                    "device cuda:%d: this build has no code for GPUs of compute capability %d.%d%s",
                    device, major, minor,
                    major * 10 + minor < 75 ? "; the oldest that warpfst supports is 7.5" : "");
  }
  WF__CUDA_TRY(code, "loading the kernels");
  *out = (wf__gpu_profile){
      .shared_kb = compiled[0], .max_rank_bits = compiled[1], .num_processors = processors};
  return WF_OK;
}
