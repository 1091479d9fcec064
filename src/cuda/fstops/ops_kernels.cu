/* ops_kernels.cu - the kernels of operations on batches of fsts: labels, sorting, trimming,
 * reversal, sums over paths, gradients, best paths.
 *
 * A thread processes a state or an arc; a warp processes a state with many arcs. */
#include "cuda/fstops/batch_states.cuh"
#include "cuda/fstops/huge_states.cuh"
#include "cuda/fstops/ops_kernels.h"
#include "math/cost.h"

#define NO_HOPS 0xffffffffu

__device__ static void grid_sync() { cooperative_groups::this_grid().sync(); }

__device__ static bool is_start(const wf__gpu_fsts &f, u64 state) {
  return f.start[fst_of(f, state)] == (int64_t)state;
}

/* --- joining, labels, keys --------------------------------------------------------------- */

__global__ static void join_kernel(const wf__gpu_fsts to, const u64 *arc_base, const u64 *arc_off,
                                   const wf_arc *arcs, u64 *out_off, wf_arc *out_arcs) {
  FOR_ALL(s, to.num_states) {
    u64 p = fst_of(to, s);
    out_off[s] = arc_base[p] + arc_off[s + p];
  }
  if (this_thread() == 0) out_off[to.num_states] = to.num_arcs;
  FOR_ALL(i, to.num_arcs) {
    u64 low = 0, high = to.num_fsts;
    while (high - low > 1) {
      u64 middle = (low + high) / 2;
      if (arc_base[middle] <= i)
        low = middle;
      else
        high = middle;
    }
    wf_arc arc = arcs[i];
    arc.nextstate += (u32)to.state_base[low];
    out_arcs[i] = arc;
  }
}

int wf__ops_join(const wf__gpu_fsts *to, const u64 *arc_base, const u64 *arc_off,
                 const wf_arc *arcs, u64 *out_off, wf_arc *out_arcs, void *stream) {
  return LAUNCH(join_kernel, to->num_arcs + to->num_states, stream, *to, arc_base, arc_off, arcs,
                out_off, out_arcs);
}

__global__ static void arc_bases_kernel(const wf__gpu_fsts f, u64 *out) {
  FOR_ALL(p, f.num_fsts + 1) out[p] = f.off[f.state_base[p]];
}

int wf__ops_arc_bases(const wf__gpu_fsts *f, u64 *out, void *stream) {
  return LAUNCH(arc_bases_kernel, f->num_fsts + 1, stream, *f, out);
}

__global__ static void labels_kernel(const wf_arc *arcs, wf_arc *out, u64 num_arcs, int how) {
  FOR_ALL(i, num_arcs) {
    wf_arc arc = arcs[i];
    int32_t ilabel = arc.ilabel;
    if (how != WF__OPS_PROJECT_INPUT) arc.ilabel = arc.olabel;
    if (how != WF__OPS_PROJECT_OUTPUT) arc.olabel = ilabel;
    out[i] = arc;
  }
}

int wf__ops_labels(const wf_arc *arcs, wf_arc *out, u64 num_arcs, int how, void *stream) {
  return LAUNCH(labels_kernel, num_arcs, stream, arcs, out, num_arcs, how);
}

/* Finds the source state of each arc by binary search, so that a state with many arcs costs no more
 * than others. */
__global__ static void source_kernel(const wf__gpu_fsts f, u32 *source) {
  FOR_ALL(i, f.num_arcs) {
    u64 low = 0, high = f.num_states;
    while (high - low > 1) {
      u64 middle = (low + high) / 2;
      if (f.off[middle] <= i)
        low = middle;
      else
        high = middle;
    }
    source[i] = (u32)low;
  }
}

int wf__ops_source(const wf__gpu_fsts *f, u32 *source, void *stream) {
  return LAUNCH(source_kernel, f->num_arcs, stream, *f, source);
}

enum { BY_NEXT, BY_ILABEL, BY_OLABEL };

__global__ static void keys_kernel(const wf__gpu_fsts f, int by, u32 *keys, u32 *index) {
  FOR_ALL(i, f.num_arcs) {
    wf_arc arc = f.arcs[i];
    keys[i] = by == BY_NEXT ? arc.nextstate : (u32)(by == BY_ILABEL ? arc.ilabel : arc.olabel);
    index[i] = (u32)i;
  }
}

int wf__ops_next_keys(const wf__gpu_fsts *f, u32 *keys, u32 *index, void *stream) {
  return LAUNCH(keys_kernel, f->num_arcs, stream, *f, BY_NEXT, keys, index);
}

int wf__ops_label_keys(const wf__gpu_fsts *f, int by_olabel, u32 *keys, u32 *index, void *stream) {
  return LAUNCH(keys_kernel, f->num_arcs, stream, *f, by_olabel ? BY_OLABEL : BY_ILABEL, keys,
                index);
}

__global__ static void source_keys_kernel(const u32 *source, const u32 *index, u32 *keys,
                                          u64 count) {
  FOR_ALL(i, count) keys[i] = source[index[i]];
}

int wf__ops_source_keys(const u32 *source, const u32 *index, u32 *keys, u64 count, void *stream) {
  return LAUNCH(source_keys_kernel, count, stream, source, index, keys, count);
}

__global__ static void incoming_off_kernel(const u32 *keys, u64 num_arcs, u64 *off,
                                           u64 num_states) {
  FOR_ALL(s, num_states + 1) {
    u64 low = 0, high = num_arcs; /* finds the first key that is not below s */
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (keys[middle] < s)
        low = middle + 1;
      else
        high = middle;
    }
    off[s] = low;
  }
}

int wf__ops_incoming_off(const u32 *keys, u64 num_arcs, u64 *off, u64 num_states, void *stream) {
  return LAUNCH(incoming_off_kernel, num_states + 1, stream, keys, num_arcs, off, num_states);
}

__global__ static void gather_kernel(const wf_arc *arcs, const wf_arc_origin *origins,
                                     const u32 *index, u64 count, wf_arc *out,
                                     wf_arc_origin *out_origins) {
  FOR_ALL(i, count) {
    out[i] = arcs[index[i]];
    if (origins != nullptr) out_origins[i] = origins[index[i]];
  }
}

int wf__ops_gather(const wf_arc *arcs, const wf_arc_origin *origins, const u32 *index, u64 count,
                   wf_arc *out, wf_arc_origin *out_origins, void *stream) {
  return LAUNCH(gather_kernel, count, stream, arcs, origins, index, count, out, out_origins);
}

/* --- reachability ------------------------------------------------------------------------ */

/* The arcs out of the states, or into them, and the states at their other ends. */
struct arcs_of {
  wf__gpu_fsts f;
  wf__gpu_incoming in;
  int incoming;

  __device__ u64 begin(u32 s) const { return incoming ? in.off[s] : f.off[s]; }
  __device__ u64 size(u32 s) const { return begin(s + 1) - begin(s); }
  __device__ u64 arc(u64 i) const { return incoming ? in.arc[i] : i; }
  __device__ u32 other(u64 i) const {
    return incoming ? in.source[in.arc[i]] : f.arcs[i].nextstate;
  }
};

#ifndef WF__AT_ONCE /* tests set less */
#define WF__AT_ONCE 16
#endif
enum { AT_ONCE = WF__AT_ONCE };

/* Calls test(other) for a thread's share of the arcs of a state, and use(other) where that is true.
 * AT_ONCE arcs are read before the first test, and tested before the first use: the compiler does
 * not read beyond an atomic. */
template <class Test, class Use>
__device__ static void for_others(const arcs_of &arcs, u32 s, u32 first, u32 stride,
                                  const Test &test, const Use &use) {
  const u64 end = arcs.begin(s + 1);
  for (u64 i = arcs.begin(s) + first; i < end; i += (u64)AT_ONCE * stride) {
    u32 other[AT_ONCE], passed = 0;
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++)
      other[k] = i + k * stride < end ? arcs.other(i + k * stride) : 0;
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) passed |= (u32)(i + k * stride < end && test(other[k])) << k;
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++)
      if (passed >> k & 1) use(other[k]);
  }
}

/* The states of a level are on one list, the states found go on the other. The result does not
 * depend on which thread finds a state first, so a lane goes on with a state that it finds, up to
 * WF__FOLLOWED times: where states have few arcs, a level takes many arcs of a path. */
#ifndef WF__FOLLOWED /* tests set less */
#define WF__FOLLOWED 64
#endif
struct reach_work {
  arcs_of arcs;
  u32 *marks, *next_list, *next_count;

  __device__ u64 size(u32 s) const { return arcs.size(s); }
  __device__ bool is_new(u32 s) const {
    return __ldcg(&marks[s]) == 0 && atomicExch(&marks[s], 1u) == 0;
  }
  __device__ void list(u32 s) const { next_list[next_place(next_count)] = s; }
  __device__ void find(u32 s) const {
    if (is_new(s)) list(s);
  }
  /* Lists what is found, but for one state, which is returned; if none is found, `s`. */
  __device__ u32 find_all(u32 s) const {
    u32 kept = s;
    const u64 end = arcs.begin(s + 1);
    for (u64 i = arcs.begin(s); i < end; i++) {
      const u32 found = arcs.other(i);
      if (!is_new(found)) continue;
      if (kept != s) list(kept);
      kept = found;
    }
    return kept;
  }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    if (stride > 1) {
      for_others(
          arcs, s, first, stride, [&](u32 other) { return is_new(other); },
          [&](u32 found) { list(found); });
      return;
    }
    for (u32 turn = 0;; turn++) {
      const u32 kept = find_all(s);
      if (kept == s) return;
      s = kept;
      if (turn == WF__FOLLOWED || size(s) > MANY_ARCS) break;
    }
    list(s);
  }
};

__global__ static void reach_kernel(const wf__gpu_fsts f, const wf__gpu_incoming in, int backward,
                                    u32 *marks, u32 *list, u32 *counts) {
  if (this_thread() < 3) counts[this_thread()] = 0;
  grid_sync();
  reach_work work = {{f, in, backward}, marks, list, &counts[0]};
  if (backward) {
    FOR_ALL(s, f.num_states)
    if (f.final_cost[s] != INFINITY) work.find((u32)s);
  } else {
    FOR_ALL(p, f.num_fsts)
    if (f.start[p] >= 0) work.find((u32)f.start[p]);
  }
  grid_sync();
  for (u32 level = 0;; level++) {
    u32 count = __ldcg(&counts[level % 3]);
    if (count == 0) break;
    if (this_thread() == 0) counts[(level + 2) % 3] = 0;
    work.next_list = list + ((level + 1) & 1) * f.num_states;
    work.next_count = &counts[(level + 1) % 3];
    for_states_together(list + (level & 1) * f.num_states, 0, count, work);
    grid_sync();
  }
}

int wf__ops_reach(const wf__gpu_fsts *f, const wf__gpu_incoming *in, int backward, u32 *marks,
                  u32 *list, u32 *counts, void *stream) {
  return launch_together(reach_kernel, blocks_for(f->num_states), false, THREADS, 0,
                         (cudaStream_t)stream, *f, *in, backward, marks, list, counts);
}

__device__ static bool is_kept(const wf__gpu_fsts &f, const u32 *marks, const u32 *other,
                               const u32 *some, u64 s) {
  return (marks[s] & other[s]) != 0 || (some != nullptr && !some[fst_of(f, s)]);
}

__global__ static void keep_kernel(const wf__gpu_fsts f, const wf__gpu_incoming in,
                                   const u32 *marks, const u32 *other, const u32 *some, u32 *keep,
                                   u32 *keep_arcs) {
  FOR_ALL(s, f.num_states + 1) keep[s] = s < f.num_states && is_kept(f, marks, other, some, s);
  FOR_ALL(i, f.num_arcs + 1)
  keep_arcs[i] = i < f.num_arcs && is_kept(f, marks, other, some, in.source[i]) &&
                 is_kept(f, marks, other, some, f.arcs[i].nextstate);
}

int wf__ops_keep(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const u32 *marks,
                 const u32 *other_marks, const u32 *some, u32 *keep, u32 *keep_arcs, void *stream) {
  return LAUNCH(keep_kernel, f->num_arcs + f->num_states, stream, *f, *in, marks, other_marks, some,
                keep, keep_arcs);
}

__global__ static void compact_kernel(const wf__gpu_fsts f, const u32 *keep, const u32 *keep_arcs,
                                      const u32 *number, const u32 *place,
                                      const wf_arc_origin *origins, u64 *out_off, wf_arc *out_arcs,
                                      float *out_final, wf_arc_origin *out_origins) {
  FOR_ALL(s, f.num_states + 1) {
    if (s == f.num_states || keep[s]) out_off[number[s]] = place[f.off[s]];
    if (s < f.num_states && keep[s]) out_final[number[s]] = f.final_cost[s];
  }
  FOR_ALL(i, f.num_arcs) {
    if (!keep_arcs[i]) continue;
    wf_arc arc = f.arcs[i];
    arc.nextstate = number[arc.nextstate];
    out_arcs[place[i]] = arc;
    if (origins != nullptr) out_origins[place[i]] = origins[i];
  }
}

int wf__ops_compact(const wf__gpu_fsts *f, const u32 *keep, const u32 *keep_arcs, const u32 *number,
                    const u32 *place, const wf_arc_origin *origins, u64 *out_off, wf_arc *out_arcs,
                    float *out_final, wf_arc_origin *out_origins, void *stream) {
  return LAUNCH(compact_kernel, f->num_arcs + f->num_states, stream, *f, keep, keep_arcs, number,
                place, origins, out_off, out_arcs, out_final, out_origins);
}

__global__ static void compact_bases_kernel(const wf__gpu_fsts f, const u32 *keep,
                                            const u32 *number, u64 *out_base, int64_t *out_start) {
  FOR_ALL(p, f.num_fsts + 1) {
    out_base[p] = number[f.state_base[p]];
    if (p < f.num_fsts)
      out_start[p] = f.start[p] >= 0 && keep[f.start[p]] ? (int64_t)number[f.start[p]] : -1;
  }
}

int wf__ops_compact_bases(const wf__gpu_fsts *f, const u32 *keep, const u32 *number, u64 *out_base,
                          int64_t *out_start, void *stream) {
  return LAUNCH(compact_bases_kernel, f->num_fsts + 1, stream, *f, keep, number, out_base,
                out_start);
}

/* --- reversal ---------------------------------------------------------------------------- */

__global__ static void finals_kernel(const wf__gpu_fsts f, u32 *is_final) {
  FOR_ALL(s, f.num_states + 1) is_final[s] = s < f.num_states && f.final_cost[s] != INFINITY;
}

int wf__ops_finals(const wf__gpu_fsts *f, u32 *is_final, void *stream) {
  return LAUNCH(finals_kernel, f->num_states + 1, stream, *f, is_final);
}

/* State s of fst p becomes s + shift[p] + 1, after the new start of p. The arcs of the new start
 * lead to the final states of p. They are followed by the arcs into p's first state, and so on. */
__global__ static void reverse_kernel(const wf__gpu_fsts f, const wf__gpu_incoming in,
                                      const u32 *rank, const u64 *shift, u64 *out_off,
                                      wf_arc *out_arcs, float *out_final) {
  FOR_ALL(s, f.num_states) {
    u64 p = fst_of(f, s), begin = f.state_base[p], to = s + shift[p] + 1,
        finals_before = rank[f.state_base[p + 1]];
    if (s == begin) {
      out_off[to - 1] = in.off[begin] + rank[begin];
      out_final[to - 1] = INFINITY;
    }
    out_off[to] = in.off[s] + finals_before;
    out_final[to] = f.start[p] == (int64_t)s ? 0 : INFINITY;
    if (f.final_cost[s] != INFINITY) {
      wf_arc arc = {(u32)to, f.final_cost[s], 0, 0};
      out_arcs[in.off[begin] + rank[s]] = arc;
    }
    if (s == f.num_states - 1) out_off[to + 1] = f.num_arcs + rank[f.num_states];
  }
  FOR_ALL(i, f.num_arcs) {
    u32 a = in.arc[i], from = in.source[a];
    u64 p = fst_of(f, from);
    wf_arc arc = f.arcs[a];
    arc.nextstate = (u32)(from + shift[p] + 1);
    out_arcs[i + rank[f.state_base[p + 1]]] = arc;
  }
}

int wf__ops_reverse(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const u32 *rank,
                    const u64 *shift, u64 *out_off, wf_arc *out_arcs, float *out_final,
                    void *stream) {
  return LAUNCH(reverse_kernel, f->num_arcs + f->num_states, stream, *f, *in, rank, shift, out_off,
                out_arcs, out_final);
}

/* --- sums over paths --------------------------------------------------------------------- */

struct path_sum {
  double cost;
  u32 hops;
};

/* The sums that the outgoing or incoming arcs of a state offer. Sums are read past the L1 cache,
 * because other threads write them in the same launch. */
struct offers {
  arcs_of arcs;
  wf__gpu_sums sums;

  /* Reads the offers of the arcs i, i + stride, ... before `end` at once. */
  __device__ void read(u64 i, u64 end, u32 stride, path_sum *out) const {
    u32 other[AT_ONCE];
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++)
      other[k] = i + k * stride < end ? arcs.other(i + k * stride) : 0;
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      const bool has = i + k * stride < end;
      out[k].cost =
          has ? __ldcg(&sums.cost[other[k]]) + (double)arcs.f.arcs[arcs.arc(i + k * stride)].weight
              : (double)INFINITY;
      out[k].hops = 0;
      if (sums.hops != nullptr && out[k].cost != INFINITY)
        out[k].hops = __ldcg(&sums.hops[other[k]]) + 1;
    }
  }
};

__device__ static bool is_better(const path_sum &a, const path_sum &b) {
  return a.cost < b.cost || (a.cost == b.cost && a.cost != INFINITY && a.hops < b.hops);
}

template <class T>
struct of_warps {
  T of[THREADS / LANES];
};
/* The least of the threads that visit a state together: one lane (stride 1), a warp or a block. */
__device__ static path_sum least_of(path_sum best, u32 stride) {
  const u32 lanes = stride < LANES ? stride : LANES;
  for (u32 d = lanes / 2; d > 0; d /= 2) {
    path_sum other = {__shfl_xor_sync(ALL_LANES, best.cost, d),
                      __shfl_xor_sync(ALL_LANES, best.hops, d)};
    if (is_better(other, best)) best = other;
  }
  if (stride <= LANES) return best;
  WF__SHARED(of_warps<path_sum>, warps);
  __syncthreads();
  if (this_lane() == 0) warps.of[threadIdx.x / LANES] = best;
  __syncthreads();
  for (u32 i = 0; i < THREADS / LANES; i++)
    if (is_better(warps.of[i], best)) best = warps.of[i];
  return best;
}
__device__ static double total_of(double total, u32 stride) {
  const u32 lanes = stride < LANES ? stride : LANES;
  for (u32 d = lanes / 2; d > 0; d /= 2) total += __shfl_xor_sync(ALL_LANES, total, d);
  if (stride <= LANES) return total;
  WF__SHARED(of_warps<double>, warps);
  __syncthreads();
  if (this_lane() == 0) warps.of[threadIdx.x / LANES] = total;
  __syncthreads();
  total = 0;
  for (u32 i = 0; i < THREADS / LANES; i++) total += warps.of[i];
  return total;
}

/* The sum of a state's path without arcs: to the end, or from the start. */
__device__ static path_sum before_arcs(const arcs_of &arcs, u32 s) {
  const double cost = !arcs.incoming        ? (double)arcs.f.final_cost[s] + 0.0
                      : is_start(arcs.f, s) ? 0
                                            : (double)INFINITY;
  path_sum sum = {cost, cost != INFINITY ? 0 : NO_HOPS};
  return sum;
}

/* The sum of a state's path without arcs and of all offers to it. */
__device__ static path_sum add_up(const offers &o, u32 state, int log_semiring, u32 first,
                                  u32 stride) {
  const path_sum init = before_arcs(o.arcs, state);
  u64 begin = o.arcs.begin(state), end = o.arcs.begin(state + 1);
  path_sum best = init, offer[AT_ONCE];
  for (u64 i = begin + first; i < end; i += (u64)AT_ONCE * stride) {
    o.read(i, end, stride, offer);
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++)
      if (is_better(offer[k], best)) best = offer[k];
  }
  best = least_of(best, stride);
  if (!log_semiring || best.cost == INFINITY) return best;
  double total = first == 0 ? exp(best.cost - init.cost) : 0;
  const bool known = end - begin <= (u64)AT_ONCE * stride;
  for (u64 i = begin + first; i < end; i += (u64)AT_ONCE * stride) {
    if (!known) o.read(i, end, stride, offer);
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++)
      if (offer[k].cost != INFINITY) total += exp(best.cost - offer[k].cost);
  }
  best.cost -= log(total_of(total, stride));
  return best;
}

__device__ static void put_sum(const wf__gpu_sums &sums, u32 s, const path_sum &sum) {
  sums.cost[s] = sum.cost;
  if (sums.hops != nullptr) sums.hops[s] = sum.hops;
}

/* Visits a state of a level: computes its sum and decrements `remaining` of the states that its sum
 * is offered to. Those that reach 0 form the next level. */
struct level_work {
  offers from;
  arcs_of to;
  u32 *remaining, *next_list, *next_count;
  int log_semiring;

  __device__ u64 size(u32 s) const { return from.arcs.size(s) + to.size(s); }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    path_sum sum = add_up(from, s, log_semiring, first, stride);
    if (first == 0) put_sum(from.sums, s, sum);
    for_others(
        to, s, first, stride, [&](u32 other) { return atomicSub(&remaining[other], 1u) == 1; },
        [&](u32 ready) { next_list[next_place(next_count)] = ready; });
  }
};

__global__ static void levels_begin_kernel(const arcs_of arcs, const wf__gpu_levels levels,
                                           const wf__gpu_sums sums) {
  FOR_ALL(s, arcs.f.num_states) {
    u32 count = (u32)arcs.size((u32)s);
    levels.remaining[s] = count;
    put_sum(sums, (u32)s, before_arcs(arcs, (u32)s));
    if (count == 0) levels.order[atomicAdd(&levels.counts[0], 1u)] = (u32)s;
  }
}

__global__ static void levels_kernel(const offers from, const wf__gpu_levels levels,
                                     int log_semiring) {
  u32 begin = 0, level = 0;
  const arcs_of to = {from.arcs.f, from.arcs.in, !from.arcs.incoming};
  level_work work = {from, to, levels.remaining, nullptr, nullptr, log_semiring};
  for (;; level++) {
    u32 count = __ldcg(&levels.counts[level % 3]);
    if (this_thread() == 0) levels.level_off[level] = begin;
    if (count == 0) break;
    if (this_thread() == 0) levels.counts[(level + 2) % 3] = 0;
    work.next_list = levels.order + begin + count;
    work.next_count = &levels.counts[(level + 1) % 3];
    for_states_together(levels.order, begin, begin + count, work);
    begin += count;
    grid_sync();
  }
  if (this_thread() == 0) {
    levels.counts[3] = level;
    levels.counts[4] = begin;
  }
}

int wf__ops_levels(const wf__gpu_fsts *f, const wf__gpu_incoming *in, int from_start,
                   const wf__gpu_levels *levels, const wf__gpu_sums *sums, int log_semiring,
                   void *stream) {
  const offers from = {{*f, *in, from_start}, *sums};
  int code = LAUNCH(levels_begin_kernel, f->num_states, stream, from.arcs, *levels, *sums);
  return code != cudaSuccess
             ? code
             : launch_together(levels_kernel, blocks_for(f->num_states), false, THREADS, 0,
                               (cudaStream_t)stream, from, *levels, log_semiring);
}

__global__ static void from_start_begin_kernel(const arcs_of arcs, const wf__gpu_sums sums) {
  FOR_ALL(s, arcs.f.num_states) put_sum(sums, (u32)s, before_arcs(arcs, (u32)s));
}

int wf__ops_from_start_begin(const wf__gpu_fsts *f, const wf__gpu_incoming *in,
                             const wf__gpu_sums *sums, void *stream) {
  const arcs_of arcs = {*f, *in, 1};
  return LAUNCH(from_start_begin_kernel, f->num_states, stream, arcs, *sums);
}

struct from_start_work {
  offers from;
  int log_semiring;

  __device__ u64 size(u32 s) const { return from.arcs.size(s); }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    path_sum sum = add_up(from, s, log_semiring, first, stride);
    if (first == 0) put_sum(from.sums, s, sum);
  }
};

__global__ static void from_start_kernel(const offers from, const wf__gpu_levels levels,
                                         u32 num_levels, int log_semiring) {
  from_start_work work = {from, log_semiring};
  for (u32 level = num_levels; level-- > 0;) {
    for_states_together(levels.order, levels.level_off[level], levels.level_off[level + 1], work);
    grid_sync();
  }
}

int wf__ops_from_start(const wf__gpu_fsts *f, const wf__gpu_incoming *in,
                       const wf__gpu_levels *levels, u32 num_levels, const wf__gpu_sums *sums,
                       int log_semiring, void *stream) {
  const offers from = {{*f, *in, 1}, *sums};
  return launch_together(from_start_kernel, blocks_for(f->num_states), false, THREADS, 0,
                         (cudaStream_t)stream, from, *levels, num_levels, log_semiring);
}

__global__ static void to_float_kernel(const double *cost, float *out, u64 count) {
  FOR_ALL(s, count) out[s] = wf__cost_to_float(cost[s]);
}

int wf__ops_to_float(const double *cost, float *out, u64 count, void *stream) {
  return LAUNCH(to_float_kernel, count, stream, cost, out, count);
}

/* A round of the iteration: updates all states without a level from the sums of the previous
 * round. */
__global__ static void iterate_kernel(const offers from, const wf__gpu_sums next,
                                      const u32 *remaining, int log_semiring, double tolerance,
                                      u32 *changed) {
  const wf__gpu_fsts &f = from.arcs.f;
  u64 base = this_thread() / LANES * LANES;
  for (; base < f.num_states; base += num_threads()) {
    u64 mine = base + this_lane();
    bool open = mine < f.num_states && remaining[mine] != 0,
         many = open && from.arcs.size((u32)mine) > MANY_ARCS;
    u32 mask = __ballot_sync(ALL_LANES, many);
    for (u32 turn = 0;; turn++) { /* first each lane's own state, then those with many arcs */
      u32 s = (u32)mine, first = 0, stride = 1;
      bool work = open && !many;
      if (turn > 0) {
        if (mask == 0) break;
        s = (u32)base + (u32)__ffs((int)mask) - 1;
        first = this_lane();
        stride = LANES;
        work = true;
        mask &= mask - 1;
      }
      if (!work) continue;
      path_sum before = {from.sums.cost[s], from.sums.hops != nullptr ? from.sums.hops[s] : 0};
      path_sum now = add_up(from, s, log_semiring, first, stride);
      if (first != 0) continue;
      put_sum(next, s, now);
      bool moved =
          log_semiring
              ? now.cost != before.cost && !(fabs(now.cost - before.cost) <= tolerance)
              : now.cost != before.cost || (from.sums.hops != nullptr && now.hops != before.hops);
      if (moved) *changed = 1;
    }
  }
}

int wf__ops_iterate(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const wf__gpu_levels *levels,
                    int backward, const wf__gpu_sums *now, const wf__gpu_sums *next,
                    int log_semiring, double tolerance, u32 *changed, void *stream) {
  const offers from = {{*f, *in, !backward}, *now};
  return LAUNCH(iterate_kernel, f->num_states, stream, from, *next, levels->remaining, log_semiring,
                tolerance, changed);
}

/* --- totals, gradients ------------------------------------------------------------------- */

__global__ static void totals_kernel(const wf__gpu_fsts f, const double *to_end, double *totals) {
  FOR_ALL(p, f.num_fsts) totals[p] = f.start[p] >= 0 ? to_end[f.start[p]] : (double)INFINITY;
}

int wf__ops_totals(const wf__gpu_fsts *f, const double *to_end, double *totals, void *stream) {
  return LAUNCH(totals_kernel, f->num_fsts, stream, *f, to_end, totals);
}

__global__ static void gradients_kernel(const wf__gpu_fsts f, const u32 *source,
                                        const double *from_start, const double *to_end,
                                        const double *totals, double *gradients) {
  FOR_ALL(i, f.num_arcs) {
    u32 s = source[i];
    double total = totals[fst_of(f, s)],
           through = from_start[s] + (double)f.arcs[i].weight + to_end[f.arcs[i].nextstate];
    gradients[i] = total == INFINITY || through == INFINITY ? 0 : exp(total - through);
  }
}

int wf__ops_gradients(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const double *from_start,
                      const double *to_end, const double *totals, double *gradients, void *stream) {
  return LAUNCH(gradients_kernel, f->num_arcs, stream, *f, in->source, from_start, to_end, totals,
                gradients);
}

__global__ static void input_gradients_kernel(const wf__gpu_fsts f, const u32 *source,
                                              const wf_arc_origin *origins, const double *gradients,
                                              const u64 *base, double *a_gradients,
                                              double *b_gradients) {
  FOR_ALL(i, f.num_arcs) {
    u64 p = fst_of(f, source[i]);
    wf_arc_origin origin = origins[i];
    if (gradients[i] == 0) continue;
    if (origin.a != WF_NO_ARC) atomicAdd(&a_gradients[base[p] + origin.a], gradients[i]);
    if (origin.b != WF_NO_ARC)
      atomicAdd(&b_gradients[base[f.num_fsts + p] + origin.b], gradients[i]);
  }
}

int wf__ops_input_gradients(const wf__gpu_fsts *f, const wf__gpu_incoming *in,
                            const wf_arc_origin *origins, const double *gradients, const u64 *base,
                            double *a_gradients, double *b_gradients, void *stream) {
  return LAUNCH(input_gradients_kernel, f->num_arcs, stream, *f, in->source, origins, gradients,
                base, a_gradients, b_gradients);
}

/* --- best paths -------------------------------------------------------------------------- */

/* Maps a cost to an integer of the same order. */
__device__ static ull key_of(double cost) {
  ull bits = (ull)__double_as_longlong(cost + 0.0); /* -0 becomes 0 */
  return bits >> 63 ? ~bits : bits | (ull)1 << 63;
}

/* Chooses each fst's best final state: the cheapest, then the one with the fewest arcs before it,
 * then the first. One pass for each criterion. */
__global__ static void ends_kernel(const wf__gpu_fsts f, const wf__gpu_sums sums, ull *keys,
                                   int pass) {
  FOR_ALL(s, f.num_states) {
    double cost = sums.cost[s] + (double)f.final_cost[s];
    if (cost == INFINITY) continue;
    u64 p = fst_of(f, s);
    if (pass > 0 && keys[p] != key_of(cost)) continue;
    if (pass > 1 && keys[f.num_fsts + p] != sums.hops[s]) continue;
    atomicMin(&keys[(u64)pass * f.num_fsts + p], pass == 0   ? key_of(cost)
                                                 : pass == 1 ? (ull)sums.hops[s]
                                                             : (ull)s);
  }
}

int wf__ops_ends(const wf__gpu_fsts *f, const wf__gpu_sums *from_start, ull *keys, void *stream) {
  int code = 0;
  for (int pass = 0; pass < 3 && code == 0; pass++)
    code = LAUNCH(ends_kernel, f->num_states, stream, *f, *from_start, keys, pass);
  return code;
}

/* Traces the best path back from its end, one warp for each fst. Each step takes the first arc
 * whose source has one hop less and whose cost adds up exactly to the state's cost. The iterated
 * sums are exact, so there is such an arc. */
__global__ static void walk_kernel(const wf__gpu_fsts f, const wf__gpu_incoming in,
                                   const wf__gpu_sums sums, const ull *keys, const u64 *path_base,
                                   const u64 *state_base, wf_arc *path) {
  for (u64 p = this_thread() / LANES; p < f.num_fsts; p += num_threads() / LANES) {
    u64 length = path_base[p + 1] - path_base[p];
    if (length == 0) continue;
    u32 s = (u32)keys[2 * f.num_fsts + p];
    for (u64 k = length; k-- > 0;) {
      u64 end = in.off[s + 1];
      for (u64 base = in.off[s]; base < end; base += LANES) {
        u64 i = base + this_lane();
        u32 a = i < end ? in.arc[i] : 0, from = i < end ? in.source[a] : 0;
        bool fits = i < end && sums.hops[from] == (u32)k &&
                    sums.cost[from] + (double)f.arcs[a].weight == sums.cost[s];
        u32 mask = __ballot_sync(ALL_LANES, fits);
        if (mask == 0) continue;
        int lane = __ffs((int)mask) - 1;
        a = __shfl_sync(ALL_LANES, a, lane);
        s = __shfl_sync(ALL_LANES, from, lane);
        wf_arc arc = f.arcs[a];
        arc.nextstate = (u32)(state_base[p] + k + 1);
        if (this_lane() == 0) path[path_base[p] + k] = arc;
        break;
      }
    }
  }
}

int wf__ops_walk(const wf__gpu_fsts *f, const wf__gpu_incoming *in, const wf__gpu_sums *from_start,
                 const ull *keys, const u64 *path_base, const u64 *state_base, wf_arc *path,
                 void *stream) {
  return LAUNCH(walk_kernel, f->num_fsts * LANES, stream, *f, *in, *from_start, keys, path_base,
                state_base, path);
}
