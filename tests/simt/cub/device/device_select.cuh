/* device_select.cuh - CUB's DeviceSelect::Unique for the imitated GPU. */
#ifndef SIMT_DEVICE_SELECT_CUH
#define SIMT_DEVICE_SELECT_CUH
#include "later.h"

namespace cub {
struct DeviceSelect {
  template <class T, class N>
  static cudaError_t Unique(void *scratch, size_t &bytes, const T *in, T *out, N *num_out,
                            int64_t count, cudaStream_t stream) {
    if (scratch == nullptr) return bytes = 1, cudaSuccess;
    return simt_later(stream, [=] {
      N num = 0;
      for (int64_t i = 0; i < count; i++)
        if (i == 0 || in[i] != in[i - 1]) out[num++] = in[i];
      *num_out = num;
    });
  }
};
}  // namespace cub
#endif
