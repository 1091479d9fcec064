/* cuda_call.c - see cuda_call.h. */
#include "cuda/device/cuda_call.h"

wf_status wf__cuda_fail(wf_error *err, cudaError_t code, const char *what) {
  (void)cudaGetLastError();
  wf_status status = code == cudaErrorMemoryAllocation ? WF_ERR_MEMORY : WF_ERR_DEVICE;
  return wf__fail(err, status, "CUDA: %s: %s", what, cudaGetErrorString(code));
}

int wf__callers_device(void) {
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) (void)cudaGetLastError();
  return device;
}

void wf__restore_device(int device) {
  int now = device;
  if (device >= 0 && cudaGetDevice(&now) == cudaSuccess && now != device) cudaSetDevice(device);
}

wf_status wf__device_send(void *to, const void *from, uint64_t bytes, cudaStream_t stream,
                          const char *what, wf_error *err) {
  if (bytes == 0) return WF_OK;
  WF__CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), what);
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  return WF_OK;
}

wf_status wf__device_settle(const char *what, wf_error *err) {
  WF__CUDA_TRY(cudaStreamSynchronize(NULL), what);
  return WF_OK;
}
