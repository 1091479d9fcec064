/* device_radix_sort.cuh - CUB's DeviceRadixSort for the imitated GPU. */
#ifndef SIMT_DEVICE_RADIX_SORT_CUH
#define SIMT_DEVICE_RADIX_SORT_CUH
#include <algorithm>
#include <vector>

#include "later.h"

namespace cub {
struct DeviceRadixSort {
  template <class K, class V>
  static cudaError_t SortPairs(void *scratch, size_t &bytes, const K *keys, K *keys_out,
                               const V *values, V *values_out, int64_t count, int begin_bit,
                               int end_bit, cudaStream_t stream) {
    if (scratch == nullptr) return bytes = 1, cudaSuccess;
    return simt_later(stream, [=] {
      K mask = (end_bit >= (int)sizeof(K) * 8 ? 0 : (K)1 << end_bit) - (K)1;
      std::vector<int64_t> order(count);
      for (int64_t i = 0; i < count; i++) order[i] = i;
      std::stable_sort(order.begin(), order.end(),
                       [=](int64_t x, int64_t y) { return (keys[x] & mask) < (keys[y] & mask); });
      for (int64_t i = 0; i < count; i++) {
        keys_out[i] = keys[order[i]];
        if (values != nullptr) values_out[i] = values[order[i]];
      }
    });
  }
  template <class K>
  static cudaError_t SortKeys(void *scratch, size_t &bytes, const K *keys, K *keys_out,
                              int64_t count, int begin_bit, int end_bit, cudaStream_t stream) {
    return SortPairs(scratch, bytes, keys, keys_out, (const char *)nullptr, (char *)nullptr, count,
                     begin_bit, end_bit, stream);
  }
};
}  // namespace cub
#endif
