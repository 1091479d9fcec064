/* transducer_kernels.cu - what a transducer computes between its products (transducer_kernels.h).
 * A thread computes elements on its own, or a warp a row in a fixed order. */
#include "cuda/rnn/row_count.cuh"
#include "cuda/rnn/slice_rows.cuh"
#include "cuda/transducer/transducer_kernels.h"
#include "warpfst_all.h"

enum { NONE = 0x7fffffff };

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

__global__ static void store_kernel(const float *y, const wf__row_count count, u32 num, u32 stride,
                                    const float *bias, const u32 *to, u32 step, float *rows) {
  const u64 all = (u64)rows_of(count) * stride;
  FOR_ALL(i, all) {
    const u64 b = i / stride;
    const u32 k = (u32)(i % stride);
    rows[(u64)to[b * step] * stride + k] = k < num ? y[i] + bias[k] : 0;
  }
}
int wf__transducer_store(const float *y, wf__row_count count, u32 num, u32 stride,
                         const float *bias, const u32 *to, u32 step, float *rows, void *stream) {
  return LAUNCH(store_kernel, (u64)count.most * stride, stream, y, count, num, stride, bias, to,
                step, rows);
}

/* --- the joiner -------------------------------------------------------------------------- */

__device__ static float activation(float sum, int relu) {
  return relu ? (sum < 0 ? 0 : sum) : wf__tanh(sum); /* NaN stays NaN */
}

__global__ static void __launch_bounds__(SLICE_THREADS)
    hidden_kernel(const wf__joiner_row *rows, const wf__row_count count, u32 stride,
                  const float *encoder, const float *predictor, int relu, const wf__sliced to) {
  const u32 num = rows_of(count);
  for (u32 i = blockIdx.x; i < num; i += gridDim.x) {
    const wf__joiner_row row = rows[i];
    const float *a = encoder + (u64)row.frame * stride, *b = predictor + (u64)row.slot * stride;
    slice_row(
        [&](u32 k) {
          if (k >= stride) return make_float4(0, 0, 0, 0);
          const float4 x = *(const float4 *)(a + k), y = *(const float4 *)(b + k);
          return make_float4(activation(x.x + y.x, relu), activation(x.y + y.y, relu),
                             activation(x.z + y.z, relu), activation(x.w + y.w, relu));
        },
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

enum { AT_ONCE = 8 }; /* loads of a lane that do not wait for each other */

__device__ static float warp_min(float x) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) x = fminf(x, __shfl_xor_sync(ALL_LANES, x, d));
  return x;
}
__device__ static float warp_max(float x) { return -warp_min(-x); }

/* Calls f(k, row[k]) for k = begin + lane, begin + lane + 32, ... < end; with `all`, for all lanes
 * as often, with -infinity where there is none. */
template <bool all, class F>
__device__ static void for_row(const float *row, u32 begin, u32 end, const F &f) {
  for (u32 first = begin; first < end; first += AT_ONCE * LANES) {
    const u32 mine = first + this_lane();
    float values[AT_ONCE];
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++)
      values[i] = mine + i * LANES < end ? row[mine + i * LANES] : -INFINITY;
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++)
      if ((all ? first : mine) + i * LANES < end) f(mine + i * LANES, values[i]);
  }
}

/* With K = most_tokens: of the largest values that each lane of the warp has seen, the K-th
 * largest. So at least K values are as large. */
__device__ static float kth_largest(float most, u32 k) {
  u32 rank = 0;
#pragma unroll
  for (int d = 1; d < LANES; d++) {
    const float other = __shfl_xor_sync(ALL_LANES, most, d);
    rank += other > most || (other == most && (this_lane() ^ (u32)d) < this_lane());
  }
  const u32 found = __ballot_sync(ALL_LANES, rank == k - 1);
  return __shfl_sync(ALL_LANES, most, __ffs((int)found) - 1);
}

/* Logits begin .. end - 1 of a row, by one warp: adds the bias, and finds what makes
 * log-probabilities of them. */
__device__ static wf__softmax softmax(const wf__answer_work &w, float *row, u32 begin, u32 end) {
  float most = -INFINITY, most_of_lane = -INFINITY, sum = 0;
  int first_bad = NONE;
  for_row<false>(row, begin, end, [&](u32 k, float value) {
    value += w.bias[k];
    row[k] = value;
    most = fmaxf(most, value);
    if (k != w.blank) most_of_lane = fmaxf(most_of_lane, value);
    if (!(fabsf(value) <= 1e20f || value == -INFINITY) && first_bad == NONE) first_bad = (int)k;
  });
  most = warp_max(most);
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) {
    const int other = __shfl_xor_sync(ALL_LANES, first_bad, d);
    first_bad = other < first_bad ? other : first_bad;
  }
  __syncwarp();
  if (first_bad != NONE) return {{first_bad, row[first_bad]}, 0, 0, 0};
  if (most == -INFINITY) return {{(int32_t)begin, most}, 0, 0, 0};
  for_row<false>(row, begin, end, [&](u32, float value) { sum += wf__exp(value - most); });
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, d);
  const u32 k = w.cut.most_tokens;
  return {
      {-1, 0}, most, wf__ln(sum), k > 0 && k <= LANES ? kth_largest(most_of_lane, k) : -INFINITY};
}

__device__ static float log_prob(const wf__softmax &s, float logit) {
  return (logit - s.most) - s.log_sum;
}

__device__ static float acoustic_cost(const wf__score_cut &cut, float loglike) {
  return loglike == -INFINITY ? INFINITY : -(cut.acoustic_scale * loglike);
}

/* The largest log-probability of row i's durations from `first` on; 0 if they do not count. */
__device__ static float longest(const wf__answer_work &w, u32 i, u32 first) {
  const float *logits = w.logits + (u64)i * (w.num_tokens + w.num_durations) + w.num_tokens;
  if (w.num_durations == 0 || w.cut.greedy != 0) return 0;
  float most = -INFINITY;
  for (u32 d = first; d < w.num_durations; d++) most = fmaxf(most, logits[d]);
  return log_prob(w.rows_done[i].durations, most);
}

/* What no candidate that counts can cost more than: an upper bound of the step's cutoff; and for
 * those that emit a token, of the costs of the best of them. */
struct limits {
  float any, token;
};
__device__ static limits find_limits(const wf__answer_work &w, const wf__joiner_row &row) {
  limits least = {INFINITY, INFINITY};
  for (u32 k = this_lane(); k < row.count; k += LANES) {
    const u32 i = row.first + k;
    const wf__softmax &tokens = w.rows_done[i].tokens;
    const float blank =
        log_prob(tokens, w.logits[(u64)i * (w.num_tokens + w.num_durations) + w.blank]);
    least.any =
        fminf(least.any, w.rows[i].need.blank +
                             acoustic_cost(w.cut, blank - w.cut.blank_penalty + longest(w, i, 1)));
    least.token =
        fminf(least.token, w.rows[i].need.all + acoustic_cost(w.cut, log_prob(tokens, tokens.kth)));
  }
  least = {warp_min(least.any), warp_min(least.token)};
  if (w.cut.greedy == 0) least.any = fminf(row.least_waiting, least.any) + w.cut.beam;
  return least;
}

/* What decides which log-probabilities of a row are kept: no candidate that counts costs more than
 * `limit`. By a warp. */
struct kept {
  float longest, limit;
};
__device__ static kept find_kept(const wf__answer_work &w, u32 i) {
  const wf__joiner_row &row = w.rows[i];
  const wf__softmax &tokens = w.rows_done[i].tokens;
  const limits most = find_limits(w, row);
  const float longest_any = longest(w, i, 0), kth = log_prob(tokens, tokens.kth) + longest_any,
              /* Durations of other rows may differ. */
      of_tokens = w.num_durations == 0 ? most.token : row.need.all + acoustic_cost(w.cut, kth);
  /* More than what roundings of the search's own sums can differ by. */
  const float slack = 1e-4f * (1 + fabsf(most.any) + fabsf(row.need.token));
  return {longest_any, slack + fminf(most.any, of_tokens)};
}
/* Is the log-probability `value` of column k kept? */
__device__ static bool is_kept(const wf__answer_work &w, const kept &most, float need, u32 k,
                               float value) {
  return k < w.num_tokens &&
         (k == w.blank ||
          (need < INFINITY && !(need + acoustic_cost(w.cut, value + most.longest) > most.limit)));
}

/* A row's answer, by one warp. */
__device__ static void answer(const wf__answer_work &w, u32 i) {
  const float need = w.rows[i].need.token;
  const wf__row_done done = w.rows_done[i];
  const float *logits = w.logits + (u64)i * (w.num_tokens + w.num_durations);
  wf__score_entry *entries = w.answers.entries + (u64)i * WF__ANSWER_ENTRIES;
  float *tokens = w.answers.tokens + (u64)i * w.num_tokens,
        *durations = w.answers.durations + (u64)i * w.num_durations;
  const wf__bad_logit bad = done.tokens.bad.column >= 0 ? done.tokens.bad : done.durations.bad;
  u32 count = 0;
  if (bad.column < 0) {
    const kept most = find_kept(w, i);
    for_row<true>(logits, 0, w.num_tokens, [&](u32 k, float logit) {
      const float value = log_prob(done.tokens, logit);
      const bool keep = is_kept(w, most, need, k, value);
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
  if (this_lane() == 0) w.answers.heads[i] = {bad, count};
}

/* A block for the rows of a search, a warp for each of them. */
__global__ static void answer_kernel(const wf__answer_work w) {
  const u32 warp = threadIdx.x / LANES, size = w.num_tokens + w.num_durations,
            count = rows_of(w.count);
  for (u32 first = blockIdx.x; first < count; first += gridDim.x) {
    if (w.rows[first].first != first) continue;
    const u32 end = first + w.rows[first].count;
    for (u32 i = first + warp; i < end; i += THREADS / LANES) {
      float *row = w.logits + (u64)i * size;
      wf__row_done done = {softmax(w, row, 0, w.num_tokens), {{-1, 0}, 0, 0, 0}};
      if (w.num_durations > 0) done.durations = softmax(w, row, w.num_tokens, size);
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

__device__ static wf__softmax wide_softmax(const wf__answer_work &w, float *row) {
  WF__SHARED(block_most, s);
  WF__SHARED(block_terms, terms);
  float most_of_thread = -INFINITY;
  float blank = -INFINITY;
  int first_bad = NONE;
  for (u32 first = threadIdx.x; first < w.num_tokens; first += AT_ONCE * THREADS) {
    float values[AT_ONCE];
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
      const u32 k = first + i * THREADS;
      values[i] = k < w.num_tokens ? row[k] + w.bias[k] : -INFINITY;
    }
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
      const u32 k = first + i * THREADS;
      const float value = values[i];
      if (k >= w.num_tokens) break;
      row[k] = value;
      if (k == w.blank)
        blank = value;
      else
        most_of_thread = fmaxf(most_of_thread, value);
      if (!(fabsf(value) <= 1e20f || value == -INFINITY) && first_bad == NONE) first_bad = (int)k;
    }
  }
  /* NaN is left out of maxima, and reported. */
  int unused;
  const float most_of_lane = most_of_block(s, most_of_thread, first_bad, &first_bad),
              most =
                  fmaxf(warp_max(most_of_lane), warp_max(most_of_block(s, blank, NONE, &unused)));
  if (first_bad != NONE) return {{first_bad, row[first_bad]}, 0, 0, 0};
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
  const u32 k = w.cut.most_tokens;
  return {
      {-1, 0}, most, wf__ln(sum), k > 0 && k <= LANES ? kth_largest(most_of_lane, k) : -INFINITY};
}

__global__ static void wide_softmax_kernel(const wf__answer_work w) {
  const u32 size = w.num_tokens + w.num_durations, count = rows_of(w.count);
  for (u32 i = blockIdx.x; i < count; i += gridDim.x) {
    float *row = w.logits + (u64)i * size;
    const wf__softmax tokens = wide_softmax(w, row); /* right in the first warp */
    if (threadIdx.x / LANES == 1) {
      const wf__softmax none = {{-1, 0}, 0, 0, 0},
                        durations =
                            w.num_durations > 0 ? softmax(w, row, w.num_tokens, size) : none;
      if (this_lane() == 0) w.rows_done[i].durations = durations;
    }
    if (threadIdx.x == 0) w.rows_done[i].tokens = tokens;
    __syncthreads();
  }
}

__device__ static void wide_answer(const wf__answer_work &w, u32 i) {
  WF__SHARED(kept, of_row);
  WF__SHARED(block_counts, counts);
  const u32 warp = threadIdx.x / LANES,
            each = (w.num_tokens + THREADS - 1) / THREADS * LANES, /* columns of a warp */
      begin = warp * each, end = begin + each < w.num_tokens ? begin + each : w.num_tokens;
  const float need = w.rows[i].need.token;
  const wf__row_done done = w.rows_done[i];
  const float *logits = w.logits + (u64)i * (w.num_tokens + w.num_durations);
  wf__score_entry *entries = w.answers.entries + (u64)i * WF__ANSWER_ENTRIES;
  float *tokens = w.answers.tokens + (u64)i * w.num_tokens,
        *durations = w.answers.durations + (u64)i * w.num_durations;
  if (warp == 0) {
    const kept most = find_kept(w, i);
    if (threadIdx.x == 0) of_row = most;
  }
  __syncthreads();
  const kept most = of_row;
  u32 count = 0, at = 0, all = 0;
  for_row<true>(logits, begin, end, [&](u32 k, float logit) {
    count += k < end && is_kept(w, most, need, k, log_prob(done.tokens, logit));
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
      const bool keep = k < end && is_kept(w, most, need, k, value);
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
    const wf__row_done &done = w.rows_done[i];
    const wf__bad_logit bad = done.tokens.bad.column >= 0 ? done.tokens.bad : done.durations.bad;
    if (bad.column < 0)
      wide_answer(w, i);
    else if (threadIdx.x == 0)
      w.answers.heads[i] = {bad, 0};
    __syncthreads();
  }
}

int wf__transducer_select(const wf__answer_work *work, void *stream) {
  const u32 blocks = work->count.most < MAX_BLOCKS ? work->count.most : MAX_BLOCKS;
  if (work->num_tokens < WF__WIDE_TOKENS || work->num_durations > THREADS)
    return (int)WF__LAUNCH(answer_kernel, blocks, THREADS, 0, stream, *work);
  const int code = (int)WF__LAUNCH(wide_softmax_kernel, blocks, THREADS, 0, stream, *work);
  return code == cudaSuccess
             ? (int)WF__LAUNCH(wide_answer_kernel, blocks, THREADS, 0, stream, *work)
             : code;
}
