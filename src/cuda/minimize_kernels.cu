/* minimize_kernels.cu - kernels of partition refinement (minimize_kernels.h). Also compiled for the imitated GPU of tests/fake_ops/. */
#ifndef FAKE_CUDA
#include <cub/device/device_radix_sort.cuh>
#endif

#include "cuda/minimize_kernels.h"
#include "cuda/ops_launch.cuh"
#include "math/cost.h"
#include "math/hash.h"

#ifndef FAKE_CUDA
int wf__minimize_sort(const u64 *keys, u64 *keys_out, const u32 *values, u32 *values_out, u64 count, void *scratch, size_t *scratch_bytes, void *stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, *scratch_bytes, keys, keys_out, values, values_out, (int64_t)count, 0, 64, (cudaStream_t)stream);
}
#endif

__global__ static void begin_kernel(const wf__gpu_partition p) {
  FOR_ALL(i, p.f.num_arcs) {
    wf_arc arc = p.f.arcs[i];
    u64 labels = (u64)(u32)arc.ilabel << 32 | (u32)arc.olabel;
    p.arc_hash[i] = labels * 0xbf58476d1ce4e5b9ULL + ((u64)wf__cost_bin(p.inverse_delta, arc.weight) << 32) * 0x94d049bb133111ebULL;
  }
  FOR_ALL(s, p.f.num_states) {
    float cost = p.f.final_cost[s];
    p.states[s] = (u32)s;
    p.sums[s] = cost == INFINITY ? 0 : 1 + (u64)wf__cost_bin(p.inverse_delta, cost);
  }
}

int wf__minimize_begin(const wf__gpu_partition *p, void *stream) { return LAUNCH(begin_kernel, p->f.num_arcs + p->f.num_states, stream, *p); }

__global__ static void own_class_kernel(const wf__gpu_partition p) {
  FOR_ALL(s, p.f.num_states) p.sums[s] = wf__mix64((u64)p.class_of[s] * 0x9e3779b97f4a7c15ULL + 1);
}

__global__ static void sums_kernel(const wf__gpu_partition p) {
  FOR_ALL(i, p.f.num_arcs) atomicAdd((ull *)&p.sums[p.source[i]], (ull)wf__mix64(p.arc_hash[i] + (u64)p.class_of[p.f.arcs[i].nextstate] * 0x94d049bb133111ebULL));
}

int wf__minimize_sums(const wf__gpu_partition *p, void *stream) {
  int code = LAUNCH(own_class_kernel, p->f.num_states, stream, *p);
  return code != 0 ? code : LAUNCH(sums_kernel, p->f.num_arcs, stream, *p);
}

__global__ static void flags_kernel(const wf__gpu_partition p) {
  FOR_ALL(i, p.f.num_states + 1) p.flags[i] = i < p.f.num_states && (i == 0 || p.sorted[i] != p.sorted[i - 1]);
}

int wf__minimize_flags(const wf__gpu_partition *p, void *stream) { return LAUNCH(flags_kernel, p->f.num_states + 1, stream, *p); }

/* rank counts the classes that begin before a place; a place that begins one is in it. */
__global__ static void assign_kernel(const wf__gpu_partition p) {
  FOR_ALL(i, p.f.num_states) p.class_of[p.order[i]] = p.rank[i] + p.flags[i] - 1;
}

int wf__minimize_assign(const wf__gpu_partition *p, void *stream) { return LAUNCH(assign_kernel, p->f.num_states, stream, *p); }

__global__ static void firsts_kernel(const wf__gpu_partition p) {
  FOR_ALL(i, p.f.num_states) {
    bool begins = i == 0 || p.sorted[i] != p.sorted[i - 1];
    p.flags[p.order[i]] = begins;
    if (begins) p.sums[p.class_of[p.order[i]]] = p.order[i]; /* the first state of the class */
  }
  if (this_thread() == 0) p.flags[p.f.num_states] = 0;
}

int wf__minimize_firsts(const wf__gpu_partition *p, void *stream) { return LAUNCH(firsts_kernel, p->f.num_states, stream, *p); }

__global__ static void renumber_kernel(const wf__gpu_partition p) {
  FOR_ALL(s, p.f.num_states) p.class_of[s] = p.rank[p.sums[p.class_of[s]]];
}

int wf__minimize_renumber(const wf__gpu_partition *p, void *stream) { return LAUNCH(renumber_kernel, p->f.num_states, stream, *p); }
