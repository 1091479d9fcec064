/* row_count.cuh - the number of rows of a kernel that may be in GPU memory. */
#ifndef WF_CUDA_RNN_ROW_COUNT_CUH
#define WF_CUDA_RNN_ROW_COUNT_CUH

#include "cuda/device/grid.cuh"
#include "lm/rnn_types.h"

__device__ inline u32 rows_of(const wf__row_count &count) {
  if (count.num == nullptr) return count.most;
  const u32 num = *count.num, left = num > count.first ? num - count.first : 0;
  return left < count.most ? left : count.most;
}

#endif
