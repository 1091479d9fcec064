/* batch_states.cuh - finds the fst of a batch that a state belongs to. */
#ifndef WF_CUDA_FSTOPS_BATCH_STATES_CUH
#define WF_CUDA_FSTOPS_BATCH_STATES_CUH

#include "cuda/device/grid.cuh"
#include "cuda/fstops/ops_kernels.h"

/* The fst of a state: the last one whose states begin at or before it. */
__device__ inline u64 fst_of(const wf__gpu_fsts &f, u64 state) {
  u64 low = 0, high = f.num_fsts;
  while (high - low > 1) {
    u64 middle = (low + high) / 2;
    if (f.state_base[middle] <= state)
      low = middle;
    else
      high = middle;
  }
  return low;
}

#endif
