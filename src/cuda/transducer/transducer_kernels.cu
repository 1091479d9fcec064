/* transducer_kernels.cu - what a transducer computes between its products (transducer_kernels.h).
 * A thread computes elements on its own, or a warp a row in a fixed order. */
#include "cuda/rnn/row_count.cuh"
#include "cuda/transducer/join_row.cuh"
#include "cuda/transducer/row_scores.cuh"
#include "warpfst_all.h"

/* --- requests ---------------------------------------------------------------------------- */

typedef uint4 fetch_word;

__device__ static u64 words_of(u64 bytes) {
  return (bytes + sizeof(fetch_word) - 1) / sizeof(fetch_word);
}

__global__ static void fetch_kernel(const wf__round_block block, const char *from, char *to) {
  const wf__round_head head = *(const wf__round_head *)from;
  const u64 rows = words_of((u64)head.num_rows * sizeof(wf__joiner_row)),
            slots = words_of((u64)head.num_contexts * sizeof(u32)),
            inputs = words_of((u64)head.num_contexts * block.input_bytes);
  if (this_thread() == 0) *(wf__round_head *)to = head;
  FOR_ALL(i, rows + slots + inputs) {
    const u64 at = i < rows           ? block.rows_at + i * sizeof(fetch_word)
                   : i < rows + slots ? block.slots_at + (i - rows) * sizeof(fetch_word)
                                      : block.inputs_at + (i - rows - slots) * sizeof(fetch_word);
    *(fetch_word *)(to + at) = *(const fetch_word *)(from + at);
  }
}
int wf__transducer_fetch(const wf__round_block *block, u32 most_rows, u32 most_contexts,
                         const void *from, void *to, void *stream) {
  const u64 bytes = (u64)most_rows * sizeof(wf__joiner_row) +
                    (u64)most_contexts * (sizeof(u32) + block->input_bytes);
  return LAUNCH(fetch_kernel, bytes / sizeof(fetch_word), stream, *block, (const char *)from,
                (char *)to);
}

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

__device__ static float4 add(float4 x, float4 y) {
  return make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}
__device__ static float above_zero(float x) { return x > 0 ? x : 0; }

__global__ static void __launch_bounds__(SLICE_THREADS)
    predict_kernel(const int32_t *tokens, const wf__row_count count, u32 context,
                   const float *places, u32 num_tokens, const float *bias, u32 stride,
                   const wf__sliced to) {
  const u32 num = rows_of(count);
  for (u32 b = blockIdx.x; b < num; b += gridDim.x)
    slice_row(
        [&](u32 k) {
          float4 sum = make_float4(0, 0, 0, 0);
          if (k >= stride) return sum;
          for (u32 place = 0; place < context; place++) {
            const u64 row = (u64)place * num_tokens + (u64)tokens[(u64)b * context + place];
            sum = add(sum, *(const float4 *)(places + row * stride + k));
          }
          sum = add(sum, *(const float4 *)(bias + k));
          return make_float4(above_zero(sum.x), above_zero(sum.y), above_zero(sum.z),
                             above_zero(sum.w));
        },
        to, b);
}
int wf__transducer_predict(const int32_t *tokens, wf__row_count count, u32 context,
                           const float *places, u32 num_tokens, const float *bias, u32 stride,
                           wf__sliced to, void *stream) {
  const u32 blocks = count.most < MAX_BLOCKS ? count.most : MAX_BLOCKS;
  return (int)WF__LAUNCH(predict_kernel, blocks, SLICE_THREADS, 0, stream, tokens, count, context,
                         places, num_tokens, bias, stride, to);
}

__global__ static void list_kernel(u64 first, u32 count, u32 context, u32 base, u32 num_tokens,
                                   int32_t *tokens) {
  FOR_ALL(i, count) {
    u64 left = first + i;
    for (u32 place = context; place-- > 0; left /= base) {
      const u32 digit = (u32)(left % base);
      tokens[i * context + place] = (int32_t)(digit < num_tokens ? digit : num_tokens - 1);
    }
  }
}
int wf__transducer_list(u64 first, u32 count, u32 context, u32 base, u32 num_tokens,
                        int32_t *tokens, void *stream) {
  return LAUNCH(list_kernel, count, stream, first, count, context, base, num_tokens, tokens);
}

/* --- the joiner -------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(SLICE_THREADS)
    hidden_kernel(const wf__joiner_row *rows, const wf__row_count count, u32 stride,
                  const float *encoder, const float *predictor, int relu, const wf__sliced to) {
  const u32 num = rows_of(count);
  for (u32 i = blockIdx.x; i < num; i += gridDim.x) {
    const wf__joiner_row row = rows[i];
    join_row(encoder + (u64)row.frame * stride, predictor + (u64)row.slot * stride, stride, relu,
             to, i);
  }
}
int wf__transducer_hidden(const wf__joiner_row *rows, wf__row_count count, u32 stride,
                          const float *encoder, const float *predictor, int relu, wf__sliced to,
                          void *stream) {
  const u32 blocks = count.most < MAX_BLOCKS ? count.most : MAX_BLOCKS;
  return (int)WF__LAUNCH(hidden_kernel, blocks, SLICE_THREADS, 0, stream, rows, count, stride,
                         encoder, predictor, relu, to);
}

/* --- answers ----------------------------------------------------------------------------- */

/* Row i, once it is scored. */
__device__ static scored_row scored(const wf__answer_work &w, u32 i) {
  return {logits_of(w, i), w.rows_done[i], w.rows[i].need};
}
__device__ static kept_scores kept_of(const wf__answer_work &w, u32 i) {
  const wf__joiner_row &row = w.rows[i];
  return find_kept(w, scored(w, i), find_limits(w, row.count, row.least_waiting, [&](u32 k) {
                     return scored(w, row.first + k);
                   }));
}

/* A row's answer, by one warp. */
__device__ static void answer(const wf__answer_work &w, u32 i) {
  const wf__row_done done = w.rows_done[i];
  const float *logits = logits_of(w, i);
  wf__score_entry *entries = w.answers.entries + (u64)i * WF__ANSWER_ENTRIES;
  float *tokens = w.answers.tokens + (u64)i * w.num_tokens,
        *durations = w.answers.durations + (u64)i * w.num_durations;
  u32 count = 0;
  if (bad_of(done).column < 0) {
    const kept_scores most = kept_of(w, i);
    for_row<true>(logits, 0, w.num_tokens, [&](u32 k, float logit) {
      const float value = log_prob(done.tokens, logit);
      const bool keep = is_kept(w, most, k, value);
      const u32 those = __ballot_sync(ALL_LANES, keep),
                at = count + (u32)__popc(those & ((1u << this_lane()) - 1));
      if (keep && at < WF__ANSWER_ENTRIES) entries[at] = {(int32_t)k, value};
      count += (u32)__popc(those);
    });
    if (count > WF__ANSWER_ENTRIES)
      for_row<false>(logits, 0, w.num_tokens,
                     [&](u32 k, float logit) { tokens[k] = log_prob(done.tokens, logit); });
    for (u32 d = this_lane(); d < w.num_durations; d += LANES)
      durations[d] = log_prob(done.durations, logits[w.num_tokens + d]);
  }
  if (this_lane() == 0) w.answers.heads[i] = {bad_of(done), count};
}

/* A block for the rows of a search, a warp for each of them. */
__global__ static void answer_kernel(const wf__answer_work w) {
  const u32 warp = threadIdx.x / LANES, count = rows_of(w.count);
  for (u32 first = blockIdx.x; first < count; first += gridDim.x) {
    if (w.rows[first].first != first) continue;
    const u32 end = first + w.rows[first].count;
    for (u32 i = first + warp; i < end; i += THREADS / LANES) {
      const wf__row_done done = score_row(w, logits_of(w, i));
      if (this_lane() == 0) w.rows_done[i] = done;
    }
    __syncthreads();
    for (u32 i = first + warp; i < end; i += THREADS / LANES) answer(w, i);
  }
}

/* --- answers with many tokens -------------------------------------------------------------- */

/* The same with a block for each row, in two launches: the limits of a row depend on the other rows
 * of its search. The terms of the softmax are added in the order of one warp. */
#ifndef WF__WIDE_TOKENS /* a test makes these small */
#define WF__WIDE_TOKENS 2048
#define WF__WIDE_CHUNK 4096
#endif
enum { WARPS = THREADS / LANES };

struct block_most {
  float values[THREADS];
  int numbers[WARPS];
};
struct block_terms {
  float of[WF__WIDE_CHUNK];
};
struct block_counts {
  u32 of[WARPS];
};

/* Of the threads with this thread's lane, the largest value; and the least number of the block. */
__device__ static float most_of_block(block_most &s, float most, int number, int *least) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) {
    const int other = __shfl_xor_sync(ALL_LANES, number, d);
    number = other < number ? other : number;
  }
  s.values[threadIdx.x] = most;
  if (this_lane() == 0) s.numbers[threadIdx.x / LANES] = number;
  __syncthreads();
  most = s.values[this_lane()];
  for (u32 k = 1; k < WARPS; k++) most = fmaxf(most, s.values[k * LANES + this_lane()]);
  for (u32 k = 0; k < WARPS; k++) number = s.numbers[k] < number ? s.numbers[k] : number;
  *least = number;
  __syncthreads();
  return most;
}

__device__ static wf__softmax wide_softmax(const wf__answer_work &w, const float *row) {
  WF__SHARED(block_most, s);
  WF__SHARED(block_terms, terms);
  float most_of_thread = -INFINITY;
  float blank = -INFINITY;
  int first_bad = NO_COLUMN;
  for (u32 first = threadIdx.x; first < w.num_tokens; first += AT_ONCE * THREADS) {
    float values[AT_ONCE];
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
      const u32 k = first + i * THREADS;
      values[i] = k < w.num_tokens ? row[k] : -INFINITY;
    }
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
      const u32 k = first + i * THREADS;
      const float value = values[i];
      if (k >= w.num_tokens) break;
      if (k == w.blank)
        blank = value;
      else
        most_of_thread = fmaxf(most_of_thread, value);
      if (!is_usable(value) && first_bad == NO_COLUMN) first_bad = (int)k;
    }
  }
  /* NaN is left out of maxima, and reported. */
  int unused;
  const float most_of_lane = most_of_block(s, most_of_thread, first_bad, &first_bad),
              most = fmaxf(warp_most(most_of_lane),
                           warp_most(most_of_block(s, blank, NO_COLUMN, &unused)));
  if (first_bad != NO_COLUMN) return {{first_bad, row[first_bad]}, 0, 0, 0};
  if (most == -INFINITY) return {{0, most}, 0, 0, 0};
  float sum = 0;
  for (u32 begin = 0; begin < w.num_tokens; begin += WF__WIDE_CHUNK) {
    const u32 left = w.num_tokens - begin, size = left < WF__WIDE_CHUNK ? left : WF__WIDE_CHUNK;
    for (u32 k = threadIdx.x; k < size; k += THREADS) terms.of[k] = wf__exp(row[begin + k] - most);
    __syncthreads();
    for (u32 k = this_lane(); k < size && threadIdx.x < LANES; k += LANES) sum += terms.of[k];
    __syncthreads();
  }
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, d);
  return {{-1, 0}, most, wf__ln(sum), kth_largest(most_of_lane, w.cut.most_tokens)};
}

__global__ static void wide_softmax_kernel(const wf__answer_work w) {
  const u32 size = w.num_tokens + w.num_durations, count = rows_of(w.count);
  for (u32 i = blockIdx.x; i < count; i += gridDim.x) {
    const float *row = logits_of(w, i);
    const wf__softmax tokens = wide_softmax(w, row); /* right in the first warp */
    if (threadIdx.x / LANES == 1) {
      const wf__softmax durations =
          w.num_durations > 0 ? softmax_of(w, row, w.num_tokens, size) : no_softmax();
      if (this_lane() == 0) w.rows_done[i].durations = durations;
    }
    if (threadIdx.x == 0) w.rows_done[i].tokens = tokens;
    __syncthreads();
  }
}

__device__ static void wide_answer(const wf__answer_work &w, u32 i) {
  WF__SHARED(kept_scores, of_row);
  WF__SHARED(block_counts, counts);
  const u32 warp = threadIdx.x / LANES,
            each = (w.num_tokens + THREADS - 1) / THREADS * LANES, /* columns of a warp */
      begin = warp * each, end = begin + each < w.num_tokens ? begin + each : w.num_tokens;
  const wf__row_done done = w.rows_done[i];
  const float *logits = logits_of(w, i);
  wf__score_entry *entries = w.answers.entries + (u64)i * WF__ANSWER_ENTRIES;
  float *tokens = w.answers.tokens + (u64)i * w.num_tokens,
        *durations = w.answers.durations + (u64)i * w.num_durations;
  if (warp == 0) {
    const kept_scores most = kept_of(w, i);
    if (threadIdx.x == 0) of_row = most;
  }
  __syncthreads();
  const kept_scores most = of_row;
  u32 count = 0, at = 0, all = 0;
  for_row<true>(logits, begin, end, [&](u32 k, float logit) {
    count += k < end && is_kept(w, most, k, log_prob(done.tokens, logit));
  });
  count = warp_sum(count);
  if (this_lane() == 0) counts.of[warp] = count;
  __syncthreads();
  for (u32 k = 0; k < WARPS; k++) {
    at += k < warp ? counts.of[k] : 0;
    all += counts.of[k];
  }
  if (all > WF__ANSWER_ENTRIES)
    for_row<false>(logits, begin, end,
                   [&](u32 k, float logit) { tokens[k] = log_prob(done.tokens, logit); });
  else if (count > 0)
    for_row<true>(logits, begin, end, [&](u32 k, float logit) {
      const float value = log_prob(done.tokens, logit);
      const bool keep = k < end && is_kept(w, most, k, value);
      const u32 those = __ballot_sync(ALL_LANES, keep);
      if (keep) entries[at + (u32)__popc(those & ((1u << this_lane()) - 1))] = {(int32_t)k, value};
      at += (u32)__popc(those);
    });
  if (threadIdx.x < w.num_durations)
    durations[threadIdx.x] = log_prob(done.durations, logits[w.num_tokens + threadIdx.x]);
  if (threadIdx.x == 0) w.answers.heads[i] = {{-1, 0}, all};
}

__global__ static void wide_answer_kernel(const wf__answer_work w) {
  const u32 count = rows_of(w.count);
  for (u32 i = blockIdx.x; i < count; i += gridDim.x) {
    const wf__bad_logit bad = bad_of(w.rows_done[i]);
    if (bad.column < 0)
      wide_answer(w, i);
    else if (threadIdx.x == 0)
      w.answers.heads[i] = {bad, 0};
    __syncthreads();
  }
}

int wf__transducer_is_wide(u32 num_tokens, u32 num_durations) {
  return num_tokens >= WF__WIDE_TOKENS && num_durations <= THREADS;
}

int wf__transducer_select(const wf__answer_work *work, void *stream) {
  const u32 blocks = work->count.most < MAX_BLOCKS ? work->count.most : MAX_BLOCKS;
  if (!wf__transducer_is_wide(work->num_tokens, work->num_durations))
    return (int)WF__LAUNCH(answer_kernel, blocks, THREADS, 0, stream, *work);
  const int code = (int)WF__LAUNCH(wide_softmax_kernel, blocks, THREADS, 0, stream, *work);
  return code == cudaSuccess
             ? (int)WF__LAUNCH(wide_answer_kernel, blocks, THREADS, 0, stream, *work)
             : code;
}
