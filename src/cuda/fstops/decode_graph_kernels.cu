/* decode_graph_kernels.cu - see decode_graph_kernels.h. */
#include "cuda/device/grid.cuh"
#include "cuda/fstops/decode_graph_kernels.h"

__device__ static void set(u32 *fact) {
  if (__ldcg(fact) == 0) *fact = 1;
}

struct arc_work {
  wf__gpu_look l;
  __device__ u64 size(u32 s) const { return l.off[s + 1] - l.off[s]; }
  __device__ void look(const wf_arc &arc, u64 at) const {
    if (!(arc.weight == INFINITY || fabsf(arc.weight) <= 1e20f))
      atomicMin(&l.facts->bad_arc, (u32)at);
    if ((u32)arc.ilabel > __ldcg(&l.facts->largest_label))
      atomicMax(&l.facts->largest_label, (u32)arc.ilabel);
    if (arc.ilabel != 0) return;
    set(&l.facts->has_epsilons);
    if (arc.weight < 0) set(&l.facts->has_negative_epsilons);
    if (arc.olabel != 0) set(&l.facts->has_epsilon_words);
    atomicAdd(&l.degree[arc.nextstate], 1u);
  }
  __device__ void visit(u32 s, u32 first, u32 step) const {
    const u64 begin = l.off[s], end = l.off[s + 1];
    uint2 *index = (uint2 *)l.index + s;
    if (first == 0) index->x = (u32)begin;
    if (begin == end) index->y = (u32)end;
    for (u64 a = begin + first; a < end; a += step) {
      const wf_arc arc = l.arcs[a];
      const bool epsilon = arc.ilabel == 0, after_epsilon = a > begin && l.arcs[a - 1].ilabel == 0;
      if (!epsilon && after_epsilon) set(&l.facts->is_unordered);
      if (epsilon && !after_epsilon) index->y = (u32)a;
      if (!epsilon && a + 1 == end) index->y = (u32)end;
      look(arc, a);
    }
  }
};

__global__ static void arcs_kernel(const arc_work work) {
  const u32 m = (u32)work.l.off[work.l.num_states];
  if (this_thread() == 0) ((uint2 *)work.l.index)[work.l.num_states] = make_uint2(m, m);
  for_states(nullptr, 0, work.l.num_states, work);
}

int wf__look_at_arcs(const wf__gpu_look *look, void *stream) {
  return LAUNCH(arcs_kernel, look->num_states, stream, arc_work{*look});
}

__global__ static void peel_begin_kernel(const wf__gpu_look l) {
  FOR_ALL(s, l.num_states)
  if (l.degree[s] == 0) l.queue[atomicAdd(&l.facts->num_acyclic, 1u)] = (u32)s;
}

int wf__peel_begin(const wf__gpu_look *look, void *stream) {
  return LAUNCH(peel_begin_kernel, look->num_states, stream, *look);
}

struct peel_work {
  wf__gpu_look l;
  __device__ uint2 epsilons(u32 s) const {
    const uint2 *index = (const uint2 *)l.index + s;
    return make_uint2(index[0].y, index[1].x);
  }
  __device__ u64 size(u32 s) const {
    const uint2 range = epsilons(s);
    return range.y - range.x;
  }
  __device__ void visit(u32 s, u32 first, u32 step) const {
    const uint2 range = epsilons(s);
    for (u64 a = (u64)range.x + first; a < range.y; a += step) {
      const u32 next = l.arcs[a].nextstate;
      if (atomicSub(&l.degree[next], 1u) == 1) l.queue[atomicAdd(&l.facts->num_acyclic, 1u)] = next;
    }
  }
};

__global__ static void peel_kernel(const peel_work work, u64 begin, u64 end) {
  for_states(work.l.queue, begin, end, work);
}

int wf__peel_states(const wf__gpu_look *look, uint64_t begin, uint64_t end, void *stream) {
  return LAUNCH(peel_kernel, end - begin, stream, peel_work{*look}, begin, end);
}
