/* row_scores.cuh - rows of logits: what makes log-probabilities of them, and which of these can
 * matter to a search. By a warp for each row, which adds in a fixed order. */
#ifndef WF_CUDA_TRANSDUCER_ROW_SCORES_CUH
#define WF_CUDA_TRANSDUCER_ROW_SCORES_CUH

#include <float.h>

#include "cuda/device/grid.cuh"
#include "cuda/transducer/transducer_kernels.h"
#include "math/slices.h"

enum { NO_COLUMN = 0x7fffffff };
enum { AT_ONCE = 8 }; /* loads of a lane that do not wait for each other */

__device__ inline float warp_least(float x) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) x = fminf(x, __shfl_xor_sync(ALL_LANES, x, d));
  return x;
}
__device__ inline float warp_most(float x) { return -warp_least(-x); }

__device__ inline const float *logits_of(const wf__answer_work &w, u32 row) {
  return w.logits + (u64)row * (w.num_tokens + w.num_durations);
}

/* Calls f(k, row[k]) for k = begin + lane, begin + lane + 32, ... < end; with `all`, for all lanes
 * as often, with -infinity where there is none. */
template <bool all, class F>
__device__ void for_row(const float *row, u32 begin, u32 end, const F &f) {
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

/* --- softmax ------------------------------------------------------------------------------ */

/* Can a model's logit be this? */
__device__ inline bool is_usable(float logit) {
  return fabsf(logit) <= 1e20f || logit == -INFINITY;
}

/* The lane's place among those of the warp, by value, then by lane. */
__device__ inline u32 rank_of_least(float x) {
  u32 rank = 0;
#pragma unroll
  for (int d = 1; d < LANES; d++) {
    const float other = __shfl_xor_sync(ALL_LANES, x, d);
    rank += other < x || (other == x && (this_lane() ^ (u32)d) < this_lane());
  }
  return rank;
}

/* With K = most_tokens: of the largest values that each lane of the warp has seen, the K-th
 * largest. So at least K values are as large. */
__device__ inline float kth_largest(float most, u32 k) {
  if (k == 0 || k > LANES) return -INFINITY;
  const u32 found = __ballot_sync(ALL_LANES, rank_of_least(-most) == k - 1);
  return __shfl_sync(ALL_LANES, most, __ffs((int)found) - 1);
}

/* Of logits begin .. end - 1 of a row. */
__device__ inline wf__softmax softmax_of(const wf__answer_work &w, const float *row, u32 begin,
                                         u32 end) {
  float most = -INFINITY, most_of_lane = -INFINITY, sum = 0;
  int first_bad = NO_COLUMN;
  for_row<false>(row, begin, end, [&](u32 k, float value) {
    most = fmaxf(most, value);
    if (k != w.blank) most_of_lane = fmaxf(most_of_lane, value);
    if (!is_usable(value) && first_bad == NO_COLUMN) first_bad = (int)k;
  });
  most = warp_most(most);
  first_bad = (int)warp_min((u32)first_bad);
  if (first_bad != NO_COLUMN) return {{first_bad, row[first_bad]}, 0, 0, 0};
  if (most == -INFINITY) return {{(int32_t)begin, most}, 0, 0, 0};
  for_row<false>(row, begin, end, [&](u32, float value) { sum += wf__exp(value - most); });
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, d);
  return {{-1, 0}, most, wf__ln(sum), kth_largest(most_of_lane, w.cut.most_tokens)};
}

__device__ inline wf__softmax no_softmax() { return {{-1, 0}, 0, 0, 0}; }

/* Of the row's tokens and durations. */
__device__ inline wf__row_done score_row(const wf__answer_work &w, const float *row) {
  return {softmax_of(w, row, 0, w.num_tokens),
          w.num_durations > 0 ? softmax_of(w, row, w.num_tokens, w.num_tokens + w.num_durations)
                              : no_softmax()};
}

__device__ inline const wf__bad_logit &bad_of(const wf__row_done &done) {
  return done.tokens.bad.column >= 0 ? done.tokens.bad : done.durations.bad;
}

__device__ inline float log_prob(const wf__softmax &s, float logit) {
  return (logit - s.most) - s.log_sum;
}

/* As on the CPU, to the bit. */
__device__ inline float acoustic_cost(float scale, float loglike) {
  return loglike == -INFINITY ? INFINITY : -(scale * loglike);
}

/* --- what can matter ---------------------------------------------------------------------- */

/* A row that is scored, and what the search needs of it. */
struct scored_row {
  const float *logits;
  wf__row_done done;
  wf__row_need need;
};

/* The largest log-probability of the row's durations from `first` on; 0 if they do not count. */
__device__ inline float longest(const wf__answer_work &w, const scored_row &row, u32 first) {
  if (w.num_durations == 0 || w.cut.greedy != 0) return 0;
  float most = -INFINITY;
  for (u32 d = first; d < w.num_durations; d++) most = fmaxf(most, row.logits[w.num_tokens + d]);
  return log_prob(row.done.durations, most);
}

/* What no candidate that counts can cost more than: an upper bound of the step's cutoff; and for
 * those that emit a token, of the costs of the best of them. */
struct cost_limits {
  float any, token;
};
/* row_at(k), k < count: all rows of the search. */
template <class F>
__device__ cost_limits find_limits(const wf__answer_work &w, u32 count, float least_waiting,
                                   const F &row_at) {
  cost_limits least = {INFINITY, INFINITY};
  for (u32 k = this_lane(); k < count; k += LANES) {
    const scored_row row = row_at(k);
    const wf__softmax &tokens = row.done.tokens;
    const float blank = log_prob(tokens, row.logits[w.blank]) - w.cut.blank_penalty;
    least.any = fminf(least.any, row.need.blank + acoustic_cost(w.cut.acoustic_scale,
                                                                blank + longest(w, row, 1)));
    least.token = fminf(least.token, row.need.all + acoustic_cost(w.cut.acoustic_scale,
                                                                  log_prob(tokens, tokens.kth)));
  }
  least = {warp_least(least.any), warp_least(least.token)};
  if (w.cut.greedy == 0) least.any = fminf(least_waiting, least.any) + w.cut.beam;
  return least;
}

/* What decides which log-probabilities of a row are kept: no candidate that counts costs more than
 * `limit`. */
struct kept_scores {
  float longest, limit, need;
};
__device__ inline kept_scores find_kept(const wf__answer_work &w, const scored_row &row,
                                        const cost_limits &most) {
  const wf__softmax &tokens = row.done.tokens;
  const float longest_any = longest(w, row, 0), kth = log_prob(tokens, tokens.kth) + longest_any,
              /* Durations of other rows may differ. */
      of_tokens = w.cut.lattice_beam +
                  (w.num_durations == 0 ? most.token
                                        : row.need.all + acoustic_cost(w.cut.acoustic_scale, kth));
  /* More than what roundings of the search's own sums can differ by. */
  const float slack = 1e-4f * (1 + fabsf(most.any) + fabsf(row.need.token));
  return {longest_any, slack + fminf(most.any, of_tokens), row.need.token};
}
/* No token with a smaller logit is kept: a first look, without roundings. */
__device__ inline float least_logit(const wf__answer_work &w, const kept_scores &most,
                                    const wf__softmax &tokens) {
  const float of_limit = (most.need - most.limit) / w.cut.acoustic_scale - most.longest,
              of_row = tokens.most + tokens.log_sum,
              least = of_limit + of_row - 1e-3f * (1 + fabsf(of_limit) + fabsf(of_row));
  return least <= FLT_MAX ? least : -INFINITY; /* also if it is NaN */
}
/* Is the log-probability `value` of column k kept? */
__device__ inline bool is_kept(const wf__answer_work &w, const kept_scores &most, u32 k,
                               float value) {
  return k < w.num_tokens &&
         (k == w.blank ||
          (most.need < INFINITY &&
           !(most.need + acoustic_cost(w.cut.acoustic_scale, value + most.longest) > most.limit)));
}

#endif
