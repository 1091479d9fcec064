/* lane_searcher.cuh - the state of one block's share in the search of an utterance, and what all steps need: scores, ranks.
 *
 * What a block reads and writes in a frame: the tokens of the frame before (state from the trace, cost beside it), candidates into the table
 * (lane_emission.cuh), epsilon rounds within it (lane_closure.cuh), tokens out to the trace (lane_search.cu). Costs are compared, never summed
 * across threads, so the order of threads cannot show. */
#ifndef WF_CUDA_LANE_SEARCHER_CUH
#define WF_CUDA_LANE_SEARCHER_CUH

#include "lane_table.cuh"

struct frame_state {
  u32 num_sources;   /* of this rank */
  u64 total_sources; /* of the lane */
  u64 select_key;    /* sources above this (ordered cost, state) are not expanded */
  u32 usual_tokens;  /* of the lane: falling maximum of the last frames, to choose the size of the table */
};

struct candidate_rule {
  u64 last;   /* FIXED, COUNT, HIST: largest key let in */
  u64 prefix; /* HIST: the key's bits above `shift` + 8 must be these */
  int shift;
};

enum expand_mode { EXPAND_RUNNING, EXPAND_FIXED, EXPAND_COUNT, EXPAND_HIST };

/* Outcome of a closure that is not WF__LANE_*. */
enum { CLOSURE_OVERFLOW = -1, CLOSURE_GROW = -2 };

/* What a thread keeps at hand during a launch. */
template <int RANKS>
struct searcher {
  lane<RANKS> l;
  const wf__lane_params *p;
  const uint4 *arcs, *states;
  float *costs;
  uint2 *agenda, *trace;
  u32 *frame_off;
  uint16_t *index;
  u32 agenda_now;
  /* the utterance */
  const void *scores;
  int dtype;
  int64_t stride;
  bool row_in_shared;
  u32 row_frame;   /* whose scores are at hand */
  u32 num_frames;
  u32 frame;       /* trace frames written */
  u32 trace_used;
  u32 flags;
  frame_state f;
  u64 num_arcs;    /* this thread's share */
  u32 num_emitted; /* tokens of the frame before epsilons */
  u64 num_tokens, num_expanded, num_narrowed; /* the lane's, same in all threads */

  __device__ searcher(const wf__lane_params *params, lane_shared *sh);
  __device__ void run();

 private:
  __device__ const char *row_of(u32 t) const { return (const char *)scores + (int64_t)t * stride * (dtype == 0 ? 4 : 2); }
  __device__ float loglike(const void *from, u32 column) const;
  __device__ float label_cost(u32 column) const;
  __device__ void load_row(u32 t);
  __device__ void clear_table(u32 bits);
  __device__ u32 pick_bin(u64 want, u32 *bin);
  __device__ bool select_by_cost(u64 want);
  __device__ void select_sources();
  template <int MODE>
  __device__ __forceinline__ u32 next_batch(u32 before, u32 grain);
  template <int MODE>
  __device__ u64 expand(const candidate_rule &rule);
  __device__ u64 candidate_rank(u64 k, u64 last, bool cost_only);
  __device__ u64 settle_emission(float cutoff);
  __device__ bool admit(u64 last, u64 *num_tokens);
  __device__ int emit(u64 *last, u64 *num_tokens);
  __device__ void put_agenda(u32 rank, u32 which, u32 place, u32 slot);
  __device__ u32 get_agenda(u32 which, u32 place);
  __device__ int relax_rounds(float cutoff);
  __device__ int close(float cutoff);
  __device__ int close_within_room(u64 last, u32 t);
  __device__ bool finish_frame();
  __device__ int begin();
  __device__ u32 find_token(u32 state, u32 frame_number, u32 *owner);
  __device__ void finish(bool died, wf__lane_outcome *outcome);
  __device__ void decode(const wf__lane_utterance &utterance, wf__lane_outcome *outcome);
};

template <int RANKS>
__device__ searcher<RANKS>::searcher(const wf__lane_params *params, lane_shared *sh) : p(params) {
  l.sh = sh;
  l.rank = RANKS == 1 ? 0 : cg::this_cluster().block_rank();
  l.tid = threadIdx.x;
  l.warp = threadIdx.x >> 5;
  l.in_warp = threadIdx.x & 31;
  l.turn = 0;
  u64 part = (u64)(blockIdx.x / RANKS) * RANKS + l.rank;
  arcs = (const uint4 *)p->arcs;
  states = (const uint4 *)p->states;
  costs = p->costs + part * SLOTS;
  agenda = (uint2 *)p->agenda + part * 2 * SLOTS;
  trace = (uint2 *)p->trace + part * p->trace_cap;
  frame_off = p->frame_off + part * (p->frames_cap + 2);
  index = p->index + part * (p->frames_cap + 1) * WF__LANE_INDEX;
  row_in_shared = p->num_columns <= WF__LANE_MAX_ROW;
}

/* Empties the table and sets its size for what comes. */
template <int RANKS>
__device__ void searcher<RANKS>::clear_table(u32 bits) {
  ulonglong2 *values = (ulonglong2 *)l.sh->values;
  uint4 *keys = (uint4 *)l.sh->keys;
  for (u32 i = l.tid; i < SLOTS / 2; i += THREADS) values[i] = make_ulonglong2(NO_TOKEN, NO_TOKEN);
  for (u32 i = l.tid; i < SLOTS / 4; i += THREADS) keys[i] = make_uint4(NO_STATE, NO_STATE, NO_STATE, NO_STATE);
  if (l.tid == 0) l.sh->begin_frame();
  l.bits = bits;
}

/* --- scores ---------------------------------------------------------------------------------------------------------- */

template <int RANKS>
__device__ __forceinline__ float searcher<RANKS>::loglike(const void *from, u32 column) const {
  if (dtype == 0) return __ldg((const float *)from + column);
  u32 bits = __ldg((const unsigned short *)from + column);
  if (dtype == 2) return __uint_as_float(bits << 16); /* bfloat16 */
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
  return value;
}

template <int RANKS>
__device__ __forceinline__ float searcher<RANKS>::label_cost(u32 column) const {
  float value = row_in_shared ? l.sh->row[column] : loglike(row_of(row_frame), column);
  return value == -INFINITY ? INFINITY : -__fmul_rn(p->acoustic_scale, value);
}

/* Begins to fetch the scores of a frame; a barrier after __pipeline_wait_prior(0) shows them to everybody. */
template <int RANKS>
__device__ void searcher<RANKS>::load_row(u32 t) {
  if (t >= num_frames) return;
  row_frame = t;
  if (!row_in_shared) return;
  const char *row = row_of(t);
  for (u32 c = l.tid; c < (u32)p->num_columns; c += THREADS) {
    if (dtype == 0) __pipeline_memcpy_async(&l.sh->row[c], (const float *)row + c, 4);
    else l.sh->row[c] = loglike(row, c);
  }
  __pipeline_commit();
}

/* --- ranks ------------------------------------------------------------------------------------------------------------- */

/* Given the ranks' histograms: the bin that holds the want-th entry, and how many entries lie below it. */
template <int RANKS>
__device__ u32 searcher<RANKS>::pick_bin(u64 want, u32 *bin) {
  l.sync();
  if (l.tid < 256) {
    u32 all = 0;
#pragma unroll
    for (int r = 0; r < RANKS; r++) all += l.of(r)->hist[l.tid];
    l.sh->hist_all[l.tid] = all;
  }
  l.sync(); /* the histograms may be cleared again */
  u32 mine[8], sum = 0, found = 0, below = 0;
#pragma unroll
  for (int b = 0; b < 8; b++) sum += mine[b] = l.sh->hist_all[l.in_warp * 8 + b];
  u32 upto = sum;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    u32 x = __shfl_up_sync(ALL, upto, d);
    if (l.in_warp >= d) upto += x;
  }
  bool here = upto - sum < want && want <= upto;
  if (here) {
    below = upto - sum;
#pragma unroll
    for (int b = 0; b < 7; b++) {
      if (found == b && below + mine[b] < want) {
        below += mine[b];
        found++;
      }
    }
  }
  u32 owner = __ffs(__ballot_sync(ALL, here)) - 1;
  *bin = __shfl_sync(ALL, found + l.in_warp * 8, owner);
  return __shfl_sync(ALL, below, owner);
}

#endif
