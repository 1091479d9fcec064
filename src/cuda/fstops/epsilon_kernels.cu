/* epsilon_kernels.cu - the order of arcs with epsilons last, and the number of ways along epsilons
 * (epsilon_kernels.h). */
#include "cuda/device/grid.cuh"
#include "cuda/fstops/epsilon_kernels.h"

__global__ static void marks_kernel(const wf__gpu_fsts f, u32 *out) {
  FOR_ALL(i, f.num_arcs + 1) out[i] = i < f.num_arcs && f.arcs[i].ilabel == 0;
}

int wf__epsilon_marks(const wf__gpu_fsts *f, u32 *out, void *stream) {
  return LAUNCH(marks_kernel, f->num_arcs + 1, stream, *f, out);
}

__global__ static void last_kernel(const wf__gpu_fsts f, const u32 *source, const u32 *rank,
                                   wf_arc *arcs, u32 *labelled) {
  FOR_ALL(i, f.num_arcs) {
    u64 begin = f.off[source[i]], end = f.off[source[i] + 1];
    u32 epsilons = rank[i] - rank[begin];
    bool is_epsilon = rank[i + 1] != rank[i];
    arcs[is_epsilon ? end - (rank[end] - rank[i]) : i - epsilons] = f.arcs[i];
  }
  FOR_ALL(s, labelled != nullptr ? f.num_states : 0) {
    u64 begin = f.off[s], end = f.off[s + 1];
    labelled[s] = (u32)(end - begin) - (rank[end] - rank[begin]);
  }
}

int wf__epsilons_last(const wf__gpu_fsts *f, const u32 *source, const u32 *rank, wf_arc *arcs,
                      u32 *labelled, void *stream) {
  return LAUNCH(last_kernel, f->num_arcs + f->num_states, stream, *f, source, rank, arcs, labelled);
}

__device__ static u64 own_ways(const wf__gpu_fsts &f, const u32 *labelled, u64 s) {
  return (u64)labelled[s] + (f.final_cost[s] != INFINITY);
}

__global__ static void begin_kernel(const wf__gpu_fsts f, const u32 *labelled, u64 *count) {
  FOR_ALL(s, f.num_states) count[s] = own_ways(f, labelled, s);
}

int wf__epsilon_begin(const wf__gpu_fsts *f, const u32 *labelled, u64 *count, void *stream) {
  return LAUNCH(begin_kernel, f->num_states, stream, *f, labelled, count);
}

__global__ static void offers_kernel(u64 num_arcs, const wf_arc *arcs, const u64 *count,
                                     u64 *before) {
  FOR_ALL(i, num_arcs + 1) {
    before[i] = i < num_arcs && arcs[i].ilabel == 0 ? count[arcs[i].nextstate] : 0;
  }
}

int wf__epsilon_offers(const wf__gpu_fsts *f, const wf_arc *arcs, const u64 *count, u64 *before,
                       void *stream) {
  return LAUNCH(offers_kernel, f->num_arcs + 1, stream, f->num_arcs, arcs, count, before);
}

__global__ static void sums_kernel(const wf__gpu_fsts f, const u32 *labelled, const u64 *before,
                                   u64 *count, u32 *flags) {
  FOR_ALL(s, f.num_states) {
    u64 sum = own_ways(f, labelled, s) + before[f.off[s + 1]] - before[f.off[s]];
    if (sum > WF__MOST_WAYS) {
      sum = WF__MOST_WAYS; /* so that the counts along a cycle cannot overflow */
      flags[WF__WAYS_MANY] = 1;
    }
    if (sum == count[s]) continue;
    count[s] = sum;
    flags[WF__WAYS_CHANGED] = 1;
  }
}

int wf__epsilon_sums(const wf__gpu_fsts *f, const u32 *labelled, const u64 *before, u64 *count,
                     u32 *flags, void *stream) {
  return LAUNCH(sums_kernel, f->num_states, stream, *f, labelled, before, count, flags);
}
