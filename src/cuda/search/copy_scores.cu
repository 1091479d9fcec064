/* copy_scores.cu - packs scores that another GPU will search. */
#include <cuda_runtime.h>

#include "cuda/device/ptx.cuh"
#include "cuda/search/search_params.h"

enum { COPY_THREADS = 256, WARP = 32, BLOCKS_EACH = 16 };

enum { ROUND = 256 }; /* the copies begin at multiples of so many bytes */

/* A warp copies a row. What lies between two copies is sent with them, so it becomes 0. */
template <class Element>
static __device__ void copy_rows(const wf__score_copy &c) {
  const int64_t num_warps = (int64_t)gridDim.y * (COPY_THREADS / WARP);
  for (int64_t t = blockIdx.y * (COPY_THREADS / WARP) + threadIdx.x / WARP; t < c.num_frames;
       t += num_warps) {
    const Element *from = (const Element *)c.from + t * c.stride;
    Element *to = (Element *)c.to + t * c.num_columns;
#pragma unroll 8
    for (int64_t k = threadIdx.x % WARP; k < c.num_columns; k += WARP) to[k] = from[k];
  }
  const int64_t count = c.num_frames * c.num_columns, multiple = ROUND / (int64_t)sizeof(Element);
  const int64_t end = (count + multiple - 1) / multiple * multiple;
  if (blockIdx.y == 0 && count + threadIdx.x < end) ((Element *)c.to)[count + threadIdx.x] = 0;
}

static __global__ void copy_scores(const wf__score_copy *copies) {
  const wf__score_copy c = copies[blockIdx.x];
  if (c.element_bytes == 4)
    copy_rows<uint32_t>(c);
  else
    copy_rows<unsigned short>(c);
}

extern "C" int wf__copy_scores_launch(const wf__score_copy *copies, uint32_t count, void *stream) {
  if (count == 0) return cudaSuccess;
  return WF__LAUNCH(copy_scores, dim3(count, BLOCKS_EACH), COPY_THREADS, 0, stream, copies);
}
