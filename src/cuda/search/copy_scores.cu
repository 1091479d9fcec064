/* copy_scores.cu - packs scores that another GPU will search. */
#include <cuda_runtime.h>

#include "cuda/device/ptx.cuh"
#include "cuda/search/search_params.h"

template <class Element>
static __device__ void copy(const wf__score_copy &c) {
  const int64_t count = c.num_frames * c.num_columns, stride = (int64_t)gridDim.y * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; i < count; i += stride)
    ((Element *)c.to)[i] =
        ((const Element *)c.from)[i / c.num_columns * c.stride + i % c.num_columns];
}

static __global__ void copy_scores(const wf__score_copy *copies) {
  const wf__score_copy c = copies[blockIdx.x];
  if (c.element_bytes == 4)
    copy<uint32_t>(c);
  else
    copy<unsigned short>(c);
}

extern "C" int wf__copy_scores_launch(const wf__score_copy *copies, uint32_t count, void *stream) {
  if (count == 0) return cudaSuccess;
  return WF__LAUNCH(copy_scores, dim3(count, 8), 256, 0, stream, copies);
}
