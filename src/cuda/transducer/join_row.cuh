/* join_row.cuh - the joiner's hidden layer, as integers for the output's product. */
#ifndef WF_CUDA_TRANSDUCER_JOIN_ROW_CUH
#define WF_CUDA_TRANSDUCER_JOIN_ROW_CUH

#include "cuda/rnn/slice_rows.cuh"

__device__ inline float activation(float sum, int relu) {
  return relu ? (sum < 0 ? 0 : sum) : wf__tanh(sum); /* NaN stays NaN */
}

/* Row i of `to`, from rows of `stride` floats, by as many threads as slice_row. */
template <u32 SIZE = SLICE_THREADS>
__device__ void join_row(const float *encoder, const float *predictor, u32 stride, int relu,
                         const wf__sliced &to, u64 i) {
  slice_row<SIZE>(
      [&](u32 k) {
        if (k >= stride) return make_float4(0, 0, 0, 0);
        const float4 x = *(const float4 *)(encoder + k), y = *(const float4 *)(predictor + k);
        return make_float4(activation(x.x + y.x, relu), activation(x.y + y.y, relu),
                           activation(x.z + y.z, relu), activation(x.w + y.w, relu));
      },
      to, i);
}

#endif
