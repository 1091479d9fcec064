/* transducer_kernels.cu - what a transducer computes between its products (transducer_kernels.h).
 * A thread computes elements on its own, or a warp a row in a fixed order. */
#include "cuda/device/grid.cuh"
#include "cuda/transducer/transducer_kernels.h"
#include "warpfst_all.h"

enum { NONE = 0x7fffffff };

/* --- encoder outputs ---------------------------------------------------------------------- */

__device__ static float load_score(const wf__encoder_frame &frame, u32 column) {
  if (frame.dtype == WF_FLOAT32) return ((const float *)frame.from)[column];
  const uint16_t bits = ((const uint16_t *)frame.from)[column];
  return frame.dtype == WF_FLOAT16 ? half_to_float(bits) : __uint_as_float((u32)bits << 16);
}

__global__ static void load_kernel(const wf__encoder_frame *frames, u32 count, u32 columns,
                                   float *x, u32 stride) {
  FOR_ALL(i, (u64)count * stride) {
    const u32 k = (u32)(i % stride);
    const float value = k < columns ? load_score(frames[i / stride], k) : 0;
    x[i] = fabsf(value) <= 1e20f ? value : NAN;
  }
}
int wf__transducer_load(const wf__encoder_frame *frames, u32 count, u32 columns, float *x,
                        u32 stride, void *stream) {
  return LAUNCH(load_kernel, (u64)count * stride, stream, frames, count, columns, x, stride);
}

/* --- the predictor ----------------------------------------------------------------------- */

__global__ static void embed_kernel(const int32_t *tokens, u32 count, u32 context,
                                    const float *embedding, u32 columns, u32 embedding_stride,
                                    float *x, u32 stride) {
  FOR_ALL(i, (u64)count * stride) {
    const u64 b = i / stride;
    const u32 k = (u32)(i % stride), place = k / columns;
    x[i] = place < context
               ? embedding[(u64)tokens[b * context + place] * embedding_stride + k % columns]
               : 0;
  }
}
int wf__transducer_embed(const int32_t *tokens, u32 count, u32 context, const float *embedding,
                         u32 columns, u32 embedding_stride, float *x, u32 stride, void *stream) {
  return LAUNCH(embed_kernel, (u64)count * stride, stream, tokens, count, context, embedding,
                columns, embedding_stride, x, stride);
}

__global__ static void relu_kernel(float *y, u32 count, u32 num, u32 stride, const float *bias) {
  FOR_ALL(i, (u64)count * stride) {
    const u32 k = (u32)(i % stride);
    const float value = k < num ? y[i] + bias[k] : 0;
    y[i] = value > 0 ? value : 0;
  }
}
int wf__transducer_relu(float *y, u32 count, u32 num, u32 stride, const float *bias, void *stream) {
  return LAUNCH(relu_kernel, (u64)count * stride, stream, y, count, num, stride, bias);
}

__global__ static void store_kernel(const float *y, u32 count, u32 num, u32 stride,
                                    const float *bias, const u32 *to, u32 step, float *rows) {
  FOR_ALL(i, (u64)count * stride) {
    const u64 b = i / stride;
    const u32 k = (u32)(i % stride);
    rows[(u64)to[b * step] * stride + k] = k < num ? y[i] + bias[k] : 0;
  }
}
int wf__transducer_store(const float *y, u32 count, u32 num, u32 stride, const float *bias,
                         const u32 *to, u32 step, float *rows, void *stream) {
  return LAUNCH(store_kernel, (u64)count * stride, stream, y, count, num, stride, bias, to, step,
                rows);
}

/* --- the joiner -------------------------------------------------------------------------- */

__global__ static void hidden_kernel(const wf__joiner_row *rows, u32 count, u32 stride,
                                     const float *encoder, const float *predictor, int relu,
                                     float *x) {
  FOR_ALL(i, (u64)count * stride) {
    const wf__joiner_row row = rows[i / stride];
    const u32 k = (u32)(i % stride);
    const float sum = encoder[(u64)row.frame * stride + k] + predictor[(u64)row.slot * stride + k];
    x[i] = relu ? (sum < 0 ? 0 : sum) : tanhf(sum); /* NaN stays NaN */
  }
}
int wf__transducer_hidden(const wf__joiner_row *rows, u32 count, u32 stride, const float *encoder,
                          const float *predictor, int relu, float *x, void *stream) {
  return LAUNCH(hidden_kernel, (u64)count * stride, stream, rows, count, stride, encoder, predictor,
                relu, x);
}

/* Logits begin .. end - 1 of a row, by one warp. */
__device__ static wf__bad_logit normalise(float *row, const float *bias, u32 begin, u32 end) {
  float most = -INFINITY, sum = 0;
  int first_bad = NONE;
  for (u32 k = begin + this_lane(); k < end; k += LANES) {
    const float value = row[k] + bias[k];
    row[k] = value;
    most = fmaxf(most, value);
    if (!(fabsf(value) <= 1e20f || value == -INFINITY) && first_bad == NONE) first_bad = (int)k;
  }
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) {
    most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, d));
    const int other = __shfl_xor_sync(ALL_LANES, first_bad, d);
    first_bad = other < first_bad ? other : first_bad;
  }
  if (first_bad != NONE) {
    __syncwarp();
    return {first_bad, row[first_bad]};
  }
  if (most == -INFINITY) return {(int32_t)begin, most};
  for (u32 k = begin + this_lane(); k < end; k += LANES) sum += expf(row[k] - most);
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, d);
  const float log_sum = logf(sum);
  for (u32 k = begin + this_lane(); k < end; k += LANES) row[k] = (row[k] - most) - log_sum;
  return {-1, 0};
}

/* --- answers ----------------------------------------------------------------------------- */

__device__ static float warp_min(float x) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) x = fminf(x, __shfl_xor_sync(ALL_LANES, x, d));
  return x;
}

__device__ static float acoustic_cost(const wf__score_cut &cut, float loglike) {
  return loglike == -INFINITY ? INFINITY : -(cut.acoustic_scale * loglike);
}

/* The largest log-probability of the durations from `first` on; 0 if they do not count. */
__device__ static float longest(const wf__answer_work &w, const float *row, u32 first) {
  if (w.num_durations == 0 || w.cut.greedy != 0) return 0;
  float most = -INFINITY;
  for (u32 d = first; d < w.num_durations; d++) most = fmaxf(most, row[w.num_tokens + d]);
  return most;
}

/* What no candidate that counts can cost more than: an upper bound of the step's cutoff. */
__device__ static float most_cost(const wf__answer_work &w, const wf__joiner_row &row) {
  const u64 size = w.num_tokens + w.num_durations;
  float least = INFINITY;
  for (u32 k = this_lane(); k < row.count; k += LANES) {
    const float *other = w.logits + (row.first + k) * size;
    least = fminf(least, w.rows[row.first + k].need.blank +
                             acoustic_cost(w.cut, other[w.blank] - w.cut.blank_penalty +
                                                      longest(w, other, 1)));
  }
  return w.cut.greedy != 0 ? warp_min(least)
                           : fminf(row.least_waiting, warp_min(least)) + w.cut.beam;
}

/* With K = most_tokens: of the largest values that each lane of the warp has seen, the K-th largest.
 * So at least K values are as large. */
__device__ static float kth_largest(float most, u32 k) {
  u32 rank = 0;
#pragma unroll
  for (int d = 1; d < LANES; d++) {
    const float other = __shfl_xor_sync(ALL_LANES, most, d);
    const u32 lane = this_lane() ^ (u32)d;
    rank += other > most || (other == most && lane < this_lane());
  }
  const u32 found = __ballot_sync(ALL_LANES, rank == k - 1);
  return __shfl_sync(ALL_LANES, most, __ffs((int)found) - 1);
}

/* Least log-probability that can be among the first `most_tokens`. */
__device__ static float least_loglike(const wf__answer_work &w, const float *logliks) {
  if (w.cut.most_tokens == 0 || w.cut.most_tokens > LANES) return -INFINITY;
  float most = -INFINITY;
  for (u32 k = this_lane(); k < w.num_tokens; k += LANES)
    if (k != w.blank) most = fmaxf(most, logliks[k]);
  return kth_largest(most, w.cut.most_tokens);
}

/* A row's answer, by one warp. */
__device__ static void select(const wf__answer_work &w, u32 i) {
  const wf__joiner_row row = w.rows[i];
  const float *logliks = w.logits + (u64)i * (w.num_tokens + w.num_durations);
  const float most = most_cost(w, row), longest_any = longest(w, logliks, 0);
  /* More than what roundings of the search's own sums can differ by. */
  const float slack = 1e-4f * (1 + fabsf(most) + fabsf(row.need.token));
  const float limit =
      slack + fminf(most, row.need.token +
                              acoustic_cost(w.cut, least_loglike(w, logliks) + longest_any));
  wf__score_entry *entries = w.answers.entries + (u64)i * WF__ANSWER_ENTRIES;
  const wf__bad_logit bad = w.bad[i];
  u32 count = 0;
  for (u32 first = 0; first < w.num_tokens && bad.column < 0; first += LANES) {
    const u32 k = first + this_lane();
    const float value = k < w.num_tokens ? logliks[k] : -INFINITY;
    const bool keep =
        k < w.num_tokens &&
        (k == w.blank ||
         (row.need.token < INFINITY &&
          !(row.need.token + acoustic_cost(w.cut, value + longest_any) > limit)));
    const u32 kept = __ballot_sync(ALL_LANES, keep),
              at = count + (u32)__popc(kept & ((1u << this_lane()) - 1));
    if (keep && at < WF__ANSWER_ENTRIES) entries[at] = {(int32_t)k, value};
    count += (u32)__popc(kept);
  }
  if (count > WF__ANSWER_ENTRIES)
    for (u32 k = this_lane(); k < w.num_tokens; k += LANES)
      w.answers.tokens[(u64)i * w.num_tokens + k] = logliks[k];
  for (u32 d = this_lane(); d < w.num_durations; d += LANES)
    w.answers.durations[(u64)i * w.num_durations + d] = logliks[w.num_tokens + d];
  if (this_lane() == 0) w.answers.heads[i] = {bad, count};
}

/* A block for the rows of a search, a warp for each of them. */
__global__ static void answer_kernel(const wf__answer_work w) {
  const u32 warp = threadIdx.x / LANES, size = w.num_tokens + w.num_durations;
  for (u32 first = blockIdx.x; first < w.count; first += gridDim.x) {
    if (w.rows[first].first != first) continue;
    const u32 end = first + w.rows[first].count;
    for (u32 i = first + warp; i < end; i += THREADS / LANES) {
      float *row = w.logits + (u64)i * size;
      wf__bad_logit found = normalise(row, w.bias, 0, w.num_tokens);
      if (found.column < 0 && w.num_durations > 0)
        found = normalise(row, w.bias, w.num_tokens, size);
      if (this_lane() == 0) w.bad[i] = found;
    }
    __syncthreads();
    for (u32 i = first + warp; i < end; i += THREADS / LANES) select(w, i);
  }
}
int wf__transducer_answer(const wf__answer_work *work, void *stream) {
  const u32 blocks = work->count < MAX_BLOCKS ? work->count : MAX_BLOCKS;
  return (int)WF__LAUNCH(answer_kernel, blocks, THREADS, 0, stream, *work);
}
