/* wide_states.cuh - states of CTC graphs with many arcs (fst/ctc_states.h), of which a frame needs
 * few: the arcs of columns whose cost lets them survive.
 *
 * The arcs of a wide state are in memory once, by column, for all states of its pairs; its arcs for
 * blank and held token are in memory for each. Before a frame is expanded, each block lists the
 * columns that cost at most `reach`, the cheaper ones first in a few classes. A warp takes a source
 * on a wide state, and its threads look the arcs up of the columns that cost at most `reach` less
 * the source's cost.
 *
 * That is exact if no column above `reach` could make a candidate within the frame's cutoff, which
 * is known afterwards. If it could, the frame is expanded again with more columns. */
#ifndef WF_CUDA_SEARCH_WIDE_STATES_CUH
#define WF_CUDA_SEARCH_WIDE_STATES_CUH

#include "cuda/search/searcher.cuh"

namespace wf_search {

template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::is_wide(u32 state) const {
  return state - p->graph.first_wide < p->graph.num_wide;
}
template <class POLICY, int RANKS>
__device__ __forceinline__ bool searcher<POLICY, RANKS>::has_wide() const {
  return p->graph.num_wide > 0;
}
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 *searcher<POLICY, RANKS>::columns() const {
  return p->memory.columns + block() * (WF__LANE_COLUMNS((u32)p->graph.num_columns) + SLOTS);
}
/* Bitmap of the listed columns, for the backward pass of lattices; empty between its frames. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 *searcher<POLICY, RANKS>::columns_seen() const {
  return columns() + (u32)p->graph.num_columns;
}
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 *searcher<POLICY, RANKS>::wide_sources() const {
  return columns() + WF__LANE_COLUMNS((u32)p->graph.num_columns);
}

/* The state of an arc's number, of a wide state. */
static __device__ u32 wide_source(const wf__lane_graph &graph, u32 number) {
  const uint4 *states = (const uint4 *)graph.states;
  u32 low = graph.first_wide, high = low + graph.num_wide;
  while (high - low > 1) {
    const u32 middle = low + (high - low) / 2;
    if (__ldg(states + middle).x <= number)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static __device__ __noinline__ uint4 wide_arc(const wf__lane_graph &graph, u32 number) {
  const u32 state = wide_source(graph, number),
            place = number - __ldg((const uint4 *)graph.states + state).x;
  const uint4 wide = __ldg((const uint4 *)graph.wide_states + (state - graph.first_wide));
  return __ldg((const uint4 *)graph.arcs +
               (place < wide.y ? wide.x + place : wide.w + (place - wide.y)));
}

/* A candidate costs at least that of its column and this. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::least_beside_column() const {
  float least = p->graph.wide_least - fmaxf(p->rules.word_score, 0);
  if constexpr (DEFERRED) return -INFINITY;
  if constexpr (SCORED || PAIRS)
    if (has_scorer()) least += fminf(own_scorer<POLICY>().least, 0);
  return least;
}

/* The least cost of this thread's columns. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::least_of_columns() const {
  float least = INFINITY;
  for (u32 c = tid(); c < (u32)p->graph.num_columns; c += THREADS)
    least = fminf(least, label_cost(c));
  return least;
}

/* The least cost of the block's threads. A barrier must follow before the next call. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::least_of_block(float mine) {
  const u32 lowest = warp_min(ordered(mine));
  if (in_warp() == 0) own().warp_values[warp()] = lowest;
  __syncthreads();
  return cost_of(warp_min(in_warp() < WARPS ? (u32)own().warp_values[in_warp()] : ALL));
}

/* From a cost of each thread of the block, at least `least`: one that `count` of them are up to, or
 * little more; +infinity if they are far above. */
static __device__ float cost_of_rank(u32 *hist, float cost, u32 count, float least, float beam) {
  const float scale = beam > 1e-20f ? 64 / beam : 16, step = (cost - least) * scale;
  if (tid() < 256) hist[tid()] = 0;
  __syncthreads();
  if (step < 255) atomicAdd(&hist[(u32)step], 1u);
  __syncthreads();
  u32 upto = 0, within = 0;
#pragma unroll
  for (int b = 0; b < 8; b++) upto += hist[in_warp() * 8 + b];
  const u32 mine = upto;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    const u32 x = __shfl_up_sync(ALL, upto, d);
    if (in_warp() >= d) upto += x;
  }
  const u32 enough = __ballot_sync(ALL, upto >= count);
  u32 bin = in_warp() * 8;
  for (within = upto - mine; within < count && bin < in_warp() * 8 + 8; bin++) within += hist[bin];
  if (enough != 0) bin = __shfl_sync(ALL, bin, __ffs(enough) - 1);
  __syncthreads(); /* the histogram may be cleared again */
  return enough == 0 ? INFINITY : least + (float)bin / scale;
}

/* Lists the selected sources on wide states. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::find_wide_sources() {
  const uint2 *const tokens = this->tokens();
  if (tid() == 0) own().num_wide_sources = 0;
  __syncthreads();
  for (u32 first = warp() * 32; first < f.num_sources; first += THREADS) {
    const u32 i = first + in_warp(), state = i < f.num_sources ? tokens[i].x : 0;
    const bool wide = i < f.num_sources && is_wide(first_of_pair(state)) &&
                      is_selected(costs()[i], state, source_context(i));
    const u32 vote = __ballot_sync(ALL, wide);
    u32 place = 0;
    if (vote == 0) continue;
    if (in_warp() == 0) place = atomicAdd(&own().num_wide_sources, (u32)__popc(vote));
    place = __shfl_sync(ALL, place, 0) + __popc(vote & lanes_before());
    if (wide) wide_sources()[place] = i;
  }
}

/* Lists the columns of the next frame for its first expansion: those up to the beam above the
 * cheapest one, and enough for min_active. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::begin_columns() {
  find_wide_sources();
  const float mine = least_of_columns(), least = least_of_block(mine);
  float spread =
      p->graph.wide_most - p->graph.wide_least + fabsf(p->rules.word_score) + own().margin;
  spread += 1e-4f * (1 + fabsf(least) + p->rules.beam + spread); /* more than lists_more adds */
  float reach = least + p->rules.beam + spread;
  if (p->rules.min_active > 0)
    reach = fmaxf(reach, spread + cost_of_rank(own().hist, mine, p->rules.min_active + 2, least,
                                               p->rules.beam));
  if (!(least_beside_column() > -INFINITY) || !(reach < FLT_MAX)) reach = INFINITY;
  list_columns(least, reach);
  return true;
}

/* Lists the columns up to `reach`, in classes of equal steps of cost from `least` on. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::list_columns(float least, float reach) {
  const float scale = reach < FLT_MAX && reach > least ? COLUMN_CLASSES / (reach - least) : 0;
  u32 *const columns = this->columns(), *const ends = own().class_ends;
  __syncthreads();
  if (tid() == 0) {
    own().reach = reach;
    own().least_column = least;
    own().class_scale = scale;
  }
  if (tid() <= COLUMN_CLASSES) ends[tid()] = 0;
  __syncthreads();
  for (int pass = 0; pass < 2; pass++) {
    for (u32 c = tid(); c < (u32)p->graph.num_columns; c += THREADS) {
      const float cost = label_cost(c);
      if (!(cost <= fminf(reach, FLT_MAX))) continue;
      const u32 which = min((u32)((cost - least) * scale), COLUMN_CLASSES - 1);
      const u32 place = atomicAdd(&ends[which + 1 - pass], 1u);
      if (pass == 1) columns[place] = c;
    }
    __syncthreads();
    if (pass == 0 && tid() == 0) /* counts become beginnings, which the second pass makes ends */
      for (u32 k = 1; k <= COLUMN_CLASSES; k++) ends[k] += ends[k - 1];
    __syncthreads();
  }
}

/* Largest sum of a source's and a column's cost for a candidate up to this cutoff. */
template <class POLICY, int RANKS>
__device__ __forceinline__ float searcher<POLICY, RANKS>::reach_of(float cutoff) const {
  const float least = least_beside_column();
  return cutoff < FLT_MAX
             ? cutoff - least + 1e-5f * (1 + fabsf(cutoff) + fabsf(least)) /* any rounding */
             : INFINITY;
}

/* Lists the columns of all candidates up to the key `last` of a frame that was searched, of whose
 * columns the cheapest costs `least`. */
template <class POLICY, int RANKS>
__device__ void searcher<POLICY, RANKS>::list_columns_again(u64 last, float least) {
  list_columns(least, reach_of(cost_of((u32)(last >> 32))));
}

/* After the expansion up to the key `last`: could other columns have made candidates? Then lists
 * more of them. */
template <class POLICY, int RANKS>
__device__ bool searcher<POLICY, RANKS>::lists_more(u64 last) {
  const float reach = own().reach, cutoff = cost_of((u32)(last >> 32));
  float margin = 0.75f * own().margin; /* the next frames are probably like this one */
  if (reach == INFINITY) return false;
  const float needed = own().best != ALL ? reach_of(cutoff) : INFINITY;
  const bool more = needed > reach;
  if (more) {
    margin = fminf(own().margin + needed - reach + 1, p->rules.beam);
    list_columns(own().least_column, needed < FLT_MAX ? needed : INFINITY);
    empty_table(SCORED ? l.bits : SLOT_BITS);
  } else {
    __syncthreads(); /* all have read the margin */
  }
  if (tid() == 0) own().margin = margin;
  return more;
}

/* The first arc of `count` whose column is not below this one: where it would be if each column had
 * an arc, or near. */
static __device__ u32 first_of_column(const uint4 *arcs, u32 count, u32 column) {
  const u32 least = __ldg(arcs).z;
  if (column <= least) return 0;
  u32 low = min(column - least, count), high = low;
  for (u32 step = 1; low > 0 && __ldg(arcs + low - 1).z >= column; step *= 2) {
    high = low - 1;
    low = low > step ? low - step : 0;
  }
  for (u32 step = 1; high < count && __ldg(arcs + high).z < column; step *= 2) {
    low = high + 1;
    high = count - high > step ? high + step : count;
  }
  while (low < high) {
    const u32 middle = low + (high - low) / 2;
    if (__ldg(arcs + middle).z < column)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* How many of the listed columns a source of this cost needs. */
template <class POLICY, int RANKS>
__device__ __forceinline__ u32 searcher<POLICY, RANKS>::num_columns_for(float cost) const {
  const float left = (own().reach - cost - own().least_column) * own().class_scale;
  if (own().class_scale == 0) return own().class_ends[COLUMN_CLASSES - 1];
  return left < 0 ? 0 : own().class_ends[min((u32)(left * 1.00001f + 0.001f), COLUMN_CLASSES - 1)];
}

/* Looks the arcs of a wide state up, of `size` listed columns and those for blank and held token:
 * take(live, number, arc), by a whole warp. */
template <class POLICY, int RANKS>
template <typename F>
__device__ __forceinline__ void searcher<POLICY, RANKS>::for_wide_arcs(u32 state, u32 size,
                                                                       F take) {
  const u32 number = __ldg(states() + state).x;
  const uint4 wide = __ldg((const uint4 *)p->graph.wide_states + (state - p->graph.first_wide));
  const uint4 *const run = arcs() + wide.x, *const stays = arcs() + wide.w;
  const u32 count = wide.y, held = wide.z, num_stays = held == ALL ? 1 : 2;
  for (u32 first = 0; first < size + num_stays; first += 32) {
    const u32 i = first + in_warp();
    const bool is_stay = i >= size && i < size + num_stays;
    u32 column = ALL, at = count;
    if (i < size) column = columns()[i];
    if (i < size && column != held) at = first_of_column(run, count, column);
    uint4 arc = make_uint4(0, 0, 0, 0);
    if (is_stay)
      arc = __ldg(stays + (i - size));
    else if (at < count)
      arc = __ldg(run + at);
    bool live = is_stay || (at < count && arc.z == column);
    while (__any_sync(ALL, live)) { /* a column may have several arcs */
      take(live, number + (is_stay ? count + i - size : at), arc);
      live = live && !is_stay && ++at < count;
      if (live) arc = __ldg(run + at);
      live = live && arc.z == column;
    }
  }
}

/* The same for the wide states of a warp's threads, one after the other, over the listed columns
 * that a source of this cost needs: take(live, number, arc, thread). */
template <class POLICY, int RANKS>
template <typename F>
__device__ __forceinline__ void searcher<POLICY, RANKS>::for_wide_of_warp(bool wide, u32 state,
                                                                          float cost, F take) {
  for (u32 left = __ballot_sync(ALL, wide); left != 0; left &= left - 1) {
    const int who = __ffs(left) - 1;
    for_wide_arcs(__shfl_sync(ALL, state, who), num_columns_for(__shfl_sync(ALL, cost, who)),
                  [&](bool live, u32 a, uint4 arc) { take(live, a, arc, who); });
  }
}

/* Expands a source on a wide state, by a whole warp. */
template <class POLICY, int RANKS>
template <int MODE>
__device__ void searcher<POLICY, RANKS>::expand_wide_state(const candidate_rule &rule, u32 state,
                                                           float cost, u64 context, u64 *my_count) {
  const uint4 info = __ldg(states() + state);
  if ((MODE == EXPAND_RUNNING || MODE == EXPAND_LIST) && in_warp() == 0)
    frame_arcs += info.y - info.x;
  for_wide_arcs(state, num_columns_for(cost), [&](bool live, u32 a, uint4 arc) {
    expand_arc<MODE>(rule, live, pair_of(a, (u32)context), arc, cost, context, my_count);
  });
}

/* Expands the listed sources. */
template <class POLICY, int RANKS>
template <int MODE>
__device__ u64 searcher<POLICY, RANKS>::expand_wide(const candidate_rule rule) {
  const u32 size = own().num_wide_sources;
  u64 my_count = 0;
  for (u32 i = warp(); i < size; i += WARPS) {
    const u32 source = wide_sources()[i];
    u64 context = source_context(source);
    const u32 state = split_pair(tokens()[source].x, &context);
    expand_wide_state<MODE>(rule, state, costs()[source], context, &my_count);
  }
  return my_count;
}

}  // namespace wf_search

#endif
