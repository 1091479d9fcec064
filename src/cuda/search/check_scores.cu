/* check_scores.cu - finds unusable scores (NaN, +infinity, beyond 1e20) in GPU memory. */
#include <cuda_runtime.h>

#include "cuda/device/ptx.cuh"
#include "cuda/search/search_params.h"

static __global__ void check_scores(const wf__lane_utterance *utterances, unsigned long long *bad) {
  const wf__lane_utterance u = utterances[blockIdx.x];
  unsigned long long first = ~0ull;
  for (int32_t t = blockIdx.y; t < u.num_frames; t += gridDim.y) {
    for (int32_t c = threadIdx.x; c < u.num_columns; c += blockDim.x) {
      int64_t i = t * u.stride + c;
      float value;
      if (u.dtype == 0) {
        value = __ldg((const float *)u.scores + i);
      } else {
        uint32_t bits = __ldg((const unsigned short *)u.scores + i);
        value = __uint_as_float(bits << 16);
        if (u.dtype == 1) value = half_to_float((unsigned short)bits);
      }
      bool fine = value <= 1e20f && (value >= -1e20f || value == -INFINITY);
      if (!fine) first = min(first, (unsigned long long)t << 32 | (uint32_t)c);
    }
  }
  if (first != ~0ull) atomicMin(&bad[blockIdx.x], first);
}

extern "C" int wf__check_scores_launch(const wf__lane_utterance *utterances, uint32_t count,
                                       uint64_t *bad, void *stream) {
  if (count == 0) return cudaSuccess;
  return WF__LAUNCH(check_scores, dim3(count, 32), 256, 0, stream, utterances,
                    (unsigned long long *)bad);
}
