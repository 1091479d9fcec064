/* slice_rows.cuh - makes the integers of a row (math/slices.h), by the threads of a block. */
#ifndef WF_CUDA_RNN_SLICE_ROWS_CUH
#define WF_CUDA_RNN_SLICE_ROWS_CUH

#include "cuda/device/grid.cuh"
#include "cuda/rnn/slice_kernels.h"
#include "math/slices.h"

enum { SLICE_THREADS = 128, SLICE_KEPT = 4 };

__device__ inline u32 slice_most(float4 v) {
  const u32 a = max(wf__slice_bits(v.x) & INT32_MAX, wf__slice_bits(v.y) & INT32_MAX),
            b = max(wf__slice_bits(v.z) & INT32_MAX, wf__slice_bits(v.w) & INT32_MAX);
  return max(a, b);
}

/* Digits of columns k .. k + 3. */
__device__ inline void slice_store(float4 v, float factor, uint8_t *digits, u32 stride, u32 k) {
  const u32 q[4] = {(u32)wf__slice_integer(v.x, factor), (u32)wf__slice_integer(v.y, factor),
                    (u32)wf__slice_integer(v.z, factor), (u32)wf__slice_integer(v.w, factor)};
#pragma unroll
  for (u32 digit = 0; digit < WF__SLICE_DIGITS; digit++) {
    u32 word = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) word |= ((q[i] >> (16 - 8 * digit)) & 0xff) << (8 * i);
    *(u32 *)(digits + digit * stride + k) = word;
  }
}

/* value(k): columns k .. k + 3 of the row, the same at every call; k < to.stride. Called by SIZE
 * threads: all of a block, or a warp. */
template <u32 SIZE = SLICE_THREADS, class F>
__device__ void slice_row(const F &value, const wf__sliced &to, u64 row) {
  enum { STEP = SIZE * 4 };
  const u32 own = threadIdx.x % SIZE;
  float4 kept[SLICE_KEPT];
  u32 most = 0;
#pragma unroll
  for (u32 i = 0; i < SLICE_KEPT; i++) {
    const u32 k = own * 4 + i * STEP;
    kept[i] = k < to.stride ? value(k) : make_float4(0, 0, 0, 0);
    most = max(most, slice_most(kept[i]));
  }
  for (u32 k = own * 4 + SLICE_KEPT * STEP; k < to.stride; k += STEP)
    most = max(most, slice_most(value(k)));
  most = warp_max(most);
  if constexpr (SIZE > LANES) {
    typedef u32 of_warps[SIZE / LANES];
    WF__SHARED(of_warps, most_of_warps);
    if (this_lane() == 0) most_of_warps[own / LANES] = most;
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < SIZE / LANES; i++) most = max(most, most_of_warps[i]);
    __syncthreads(); /* before the next row */
  }
  const float scale = wf__slice_scale(most), factor = wf__slice_factor(scale);
  uint8_t *digits = to.digits + row * WF__SLICE_DIGITS * to.stride;
#pragma unroll
  for (u32 i = 0; i < SLICE_KEPT; i++) {
    const u32 k = own * 4 + i * STEP;
    if (k < to.stride) slice_store(kept[i], factor, digits, to.stride, k);
  }
  for (u32 k = own * 4 + SLICE_KEPT * STEP; k < to.stride; k += STEP)
    slice_store(value(k), factor, digits, to.stride, k);
  if (own == 0) to.scales[row] = scale;
}

#endif
