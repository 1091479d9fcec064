/* cuda_call.c - turns CUDA errors into wf_status, saves and restores the current device, and
 * manages device buffers that only grow. */
#ifdef WARPFST_CUDA
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

wf_status wf__device_reserve(wf__device_buffer *buffer, uint64_t bytes, const char *what,
                             wf_error *err) {
  if (bytes <= buffer->bytes && buffer->data != NULL) return WF_OK;
  cudaFree(buffer->data);
  *buffer = (wf__device_buffer){0};
  cudaError_t code = cudaMalloc(&buffer->data, bytes != 0 ? bytes : 1);
  if (code == cudaSuccess) buffer->bytes = bytes;
  if (code != cudaErrorMemoryAllocation)
    return code == cudaSuccess ? WF_OK : wf__cuda_fail(err, code, what);
  (void)cudaGetLastError();
  return wf__fail(err, WF_ERR_MEMORY, "CUDA: no room for %s (%.3f GB)", what, (double)bytes * 1e-9);
}

wf_status wf__device_grow(wf__device_buffer *buffer, uint64_t bytes, cudaStream_t stream,
                          const char *what, wf_error *err) {
  wf__device_buffer larger = {0};
  if (buffer->data == NULL || bytes <= buffer->bytes) return WF_OK;
  WF__TRY(wf__device_reserve(&larger, bytes, what, err));
  cudaError_t code = cudaMemsetAsync(larger.data, 0, larger.bytes, stream);
  if (code == cudaSuccess)
    code =
        cudaMemcpyAsync(larger.data, buffer->data, buffer->bytes, cudaMemcpyDeviceToDevice, stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  cudaFree(code == cudaSuccess ? buffer->data : larger.data);
  if (code != cudaSuccess) return wf__cuda_fail(err, code, what);
  *buffer = larger;
  return WF_OK;
}
#endif
