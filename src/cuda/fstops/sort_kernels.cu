/* sort_kernels.cu - sorting and prefix sums with CUB, whose templates take longer to compile than
 * the other kernels (ops_kernels.h). */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "cuda/device/grid.cuh"
#include "cuda/fstops/ops_kernels.h"

int wf__ops_sort(const u32 *keys, u32 *keys_out, const u32 *index, u32 *index_out, u64 count,
                 int key_bits, void *scratch, size_t *scratch_bytes, void *stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, *scratch_bytes, keys, keys_out, index, index_out,
                                         (int64_t)count, 0, key_bits, (cudaStream_t)stream);
}

int wf__ops_sort64(const u64 *keys, u64 *keys_out, const u32 *index, u32 *index_out, u64 count,
                   int key_bits, void *scratch, size_t *scratch_bytes, void *stream) {
  if (index == nullptr)
    return cub::DeviceRadixSort::SortKeys(scratch, *scratch_bytes, keys, keys_out, (int64_t)count,
                                          0, key_bits, (cudaStream_t)stream);
  return cub::DeviceRadixSort::SortPairs(scratch, *scratch_bytes, keys, keys_out, index, index_out,
                                         (int64_t)count, 0, key_bits, (cudaStream_t)stream);
}

int wf__ops_scan(const u32 *in, u32 *out, u64 count, void *scratch, size_t *scratch_bytes,
                 void *stream) {
  return cub::DeviceScan::ExclusiveSum(scratch, *scratch_bytes, in, out, (int64_t)count,
                                       (cudaStream_t)stream);
}

int wf__ops_scan64(const u64 *in, u64 *out, u64 count, void *scratch, size_t *scratch_bytes,
                   void *stream) {
  return cub::DeviceScan::ExclusiveSum(scratch, *scratch_bytes, in, out, (int64_t)count,
                                       (cudaStream_t)stream);
}
