/* graph_kernels.cu - the kernels of the last steps of graph building (graph_kernels.h). */
#include "cuda/device/grid.cuh"
#include "cuda/fstops/graph_kernels.h"

#define NONE 0xffffffffu

/* --- labels ------------------------------------------------------------------------------ */

__global__ static void clear_kernel(const wf_arc *arcs, u64 num_arcs, int32_t first, wf_arc *out) {
  FOR_ALL(i, num_arcs) {
    wf_arc arc = arcs[i];
    if (arc.ilabel >= first) arc.ilabel = 0;
    out[i] = arc;
  }
}

int wf__graph_clear_labels(const wf_arc *arcs, u64 num_arcs, int32_t first, wf_arc *out,
                           void *stream) {
  return LAUNCH(clear_kernel, num_arcs, stream, arcs, num_arcs, first, out);
}

/* --- order of discovery ------------------------------------------------------------------ */

__global__ static void discovery_begin_kernel(const wf__gpu_discovery d) {
  if (this_thread() != 0) return;
  u32 start = (u32)d.f.start[0];
  d.number[start] = 0;
  d.order[0] = start;
}

int wf__discovery_begin(const wf__gpu_discovery *d, void *stream) {
  return LAUNCH(discovery_begin_kernel, 1, stream, *d);
}

__global__ static void discovery_count_kernel(const wf__gpu_discovery d) {
  u64 count = d.end - d.begin;
  FOR_ALL(k, count + 1) {
    u32 s = k < count ? d.order[d.begin + k] : 0;
    d.item_off[k] = k < count ? d.f.off[s + 1] - d.f.off[s] : 0;
  }
}

int wf__discovery_count(const wf__gpu_discovery *d, void *stream) {
  return LAUNCH(discovery_count_kernel, d->end - d->begin + 1, stream, *d);
}

/* The state that an item leads to. */
__device__ static u32 target_of(const wf__gpu_discovery &d, u64 item) {
  u64 k = owner_of(d.item_off, d.end - d.begin, item);
  u32 s = d.order[d.begin + k];
  return d.f.arcs[d.f.off[s] + (item - d.item_off[k])].nextstate;
}

__global__ static void discovery_find_kernel(const wf__gpu_discovery d) {
  FOR_ALL(item, d.num_items) {
    u32 s = target_of(d, item);
    if (d.number[s] == NONE && item < __ldcg(&d.found_at[s])) atomicMin(&d.found_at[s], (u32)item);
  }
}

int wf__discovery_find(const wf__gpu_discovery *d, void *stream) {
  return LAUNCH(discovery_find_kernel, d->num_items, stream, *d);
}

__global__ static void discovery_mark_kernel(const wf__gpu_discovery d) {
  FOR_ALL(item, d.num_items + 1) {
    u32 s = item < d.num_items ? target_of(d, item) : 0;
    d.flags[item] = item < d.num_items && d.number[s] == NONE && d.found_at[s] == item;
  }
}

int wf__discovery_mark(const wf__gpu_discovery *d, void *stream) {
  return LAUNCH(discovery_mark_kernel, d->num_items + 1, stream, *d);
}

__global__ static void discovery_number_kernel(const wf__gpu_discovery d) {
  FOR_ALL(item, d.num_items) {
    if (d.flags[item] == 0) continue;
    u32 s = target_of(d, item);
    d.number[s] = (u32)d.end + d.ranks[item];
    d.order[d.end + d.ranks[item]] = s;
  }
}

int wf__discovery_number(const wf__gpu_discovery *d, void *stream) {
  return LAUNCH(discovery_number_kernel, d->num_items, stream, *d);
}

__global__ static void discovery_degrees_kernel(const wf__gpu_discovery d, u64 *off) {
  FOR_ALL(k, d.f.num_states + 1) {
    u32 s = k < d.f.num_states ? d.order[k] : 0;
    off[k] = k < d.f.num_states ? d.f.off[s + 1] - d.f.off[s] : 0;
  }
}

int wf__discovery_degrees(const wf__gpu_discovery *d, u64 *off, void *stream) {
  return LAUNCH(discovery_degrees_kernel, d->f.num_states + 1, stream, *d, off);
}

__global__ static void discovery_write_kernel(const wf__gpu_discovery d, const u32 *source,
                                              const u64 *off, wf_arc *arcs, float *final_cost) {
  FOR_ALL(i, d.f.num_arcs) {
    wf_arc arc = d.f.arcs[i];
    u32 s = source[i];
    arc.nextstate = d.number[arc.nextstate];
    arcs[off[d.number[s]] + (i - d.f.off[s])] = arc;
  }
  FOR_ALL(k, d.f.num_states) final_cost[k] = d.f.final_cost[d.order[k]];
}

int wf__discovery_write(const wf__gpu_discovery *d, const u32 *source, const u64 *off, wf_arc *arcs,
                        float *final_cost, void *stream) {
  return LAUNCH(discovery_write_kernel, d->f.num_arcs + d->f.num_states, stream, *d, source, off,
                arcs, final_cost);
}

/* --- self-loops -------------------------------------------------------------------------- */

__device__ static u32 loop_of(const wf__gpu_loops &l, int32_t label) {
  return label == 0 || (u64)label > l.num_labels ? 0 : (u32)l.loop[label];
}

/* The class of a state; 0 if nothing enters it. */
__device__ static u32 class_of(const wf__gpu_loops &l, u64 s) {
  if (l.low[s] == NONE) return 0;
  return l.low[s] == l.high[s] ? l.low[s] : WF__LOOP_MIXED;
}

__device__ static float forward_cost(const wf__gpu_loops &l, u32 loop) {
  return loop != 0 && loop != WF__LOOP_MIXED ? l.forward_cost[loop] : 0;
}

__global__ static void classes_kernel(const wf__gpu_loops l) {
  FOR_ALL(i, l.f.num_arcs) {
    wf_arc arc = l.f.arcs[i];
    if ((u64)arc.ilabel > l.num_labels) *l.trouble = 1;
    u32 loop = loop_of(l, arc.ilabel);
    if (loop < __ldcg(&l.low[arc.nextstate])) atomicMin(&l.low[arc.nextstate], loop);
    if (loop > __ldcg(&l.high[arc.nextstate])) atomicMax(&l.high[arc.nextstate], loop);
  }
  if (this_thread() == 0 && l.f.start[0] >= 0) atomicMin(&l.low[l.f.start[0]], 0u);
}

int wf__loops_classes(const wf__gpu_loops *l, void *stream) {
  return LAUNCH(classes_kernel, l->f.num_arcs, stream, *l);
}

__global__ static void loop_marks_kernel(const wf__gpu_loops l) {
  FOR_ALL(s, l.f.num_states + 1) {
    u32 its = s < l.f.num_states ? class_of(l, s) : 0;
    l.has_loop[s] = its != 0 && its != WF__LOOP_MIXED;
  }
  FOR_ALL(i, l.f.num_arcs + 1) {
    l.goes[i] = i < l.f.num_arcs && loop_of(l, l.f.arcs[i].ilabel) != 0 &&
                class_of(l, l.f.arcs[i].nextstate) == WF__LOOP_MIXED;
  }
}

int wf__loops_marks(const wf__gpu_loops *l, void *stream) {
  return LAUNCH(loop_marks_kernel, l->f.num_arcs + l->f.num_states, stream, *l);
}

__global__ static void loop_list_kernel(const wf__gpu_loops l) {
  FOR_ALL(i, l.f.num_arcs) {
    if (l.goes[i] == 0) continue;
    l.keys[l.place[i]] = (u64)l.f.arcs[i].nextstate << 32 | loop_of(l, l.f.arcs[i].ilabel);
    l.arc[l.place[i]] = (u32)i;
  }
}

int wf__loops_list(const wf__gpu_loops *l, void *stream) {
  return LAUNCH(loop_list_kernel, l->f.num_arcs, stream, *l);
}

/* The sort is stable, so the first of equal keys is that of the first arc. */
__global__ static void firsts_kernel(const wf__gpu_loops l) {
  FOR_ALL(k, l.num_goers) {
    if (k == 0 || l.sorted[k - 1] != l.sorted[k]) l.is_first[l.by_key[k]] = 1;
  }
}

int wf__loops_firsts(const wf__gpu_loops *l, void *stream) {
  return LAUNCH(firsts_kernel, l->num_goers, stream, *l);
}

__global__ static void copies_kernel(const wf__gpu_loops l) {
  FOR_ALL(k, l.num_goers) {
    u64 key = l.sorted[k], low = 0, high = k; /* finds the first of the equal keys */
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (l.sorted[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
    u32 copy = l.copy[l.by_key[low]];
    l.target[l.by_key[k]] = (u32)l.f.num_states + copy;
    if (low == k) l.copy_key[copy] = key;
  }
}

int wf__loops_copies(const wf__gpu_loops *l, void *stream) {
  return LAUNCH(copies_kernel, l->num_goers, stream, *l);
}

/* Arc i with the cost of leaving `loop`. */
__device__ static wf_arc leaving(const wf__gpu_loops &l, u64 i, u32 loop) {
  wf_arc arc = l.f.arcs[i];
  if (l.goes[i] != 0) arc.nextstate = l.target[i];
  arc.weight += forward_cost(l, loop);
  return arc;
}

__global__ static void loop_write_kernel(const wf__gpu_loops l, const u32 *source, u64 *off,
                                         wf_arc *arcs, float *final_cost) {
  const u64 n = l.f.num_states, in_copies = l.f.num_arcs + l.loops_before[n];
  FOR_ALL(i, l.f.num_arcs) {
    u32 s = source[i];
    arcs[i + l.loops_before[s]] = leaving(l, i, class_of(l, s));
  }
  FOR_ALL(s, n) {
    u32 loop = class_of(l, s);
    float cost = l.f.final_cost[s];
    off[s] = l.f.off[s] + l.loops_before[s];
    if (cost != INFINITY) cost += forward_cost(l, loop);
    final_cost[s] = cost;
    if (l.has_loop[s] == 0) continue;
    wf_arc self = {(u32)s, l.loop_cost[loop], (int32_t)loop, 0};
    arcs[l.f.off[s + 1] + l.loops_before[s]] = self;
  }
  FOR_ALL(c, l.num_copies) {
    u64 s = l.copy_key[c] >> 32, first = in_copies + 2 * c;
    u32 loop = (u32)l.copy_key[c];
    bool one_arc = l.f.off[s + 1] - l.f.off[s] == 1 && l.f.final_cost[s] == INFINITY;
    wf_arc self = {(u32)(n + c), l.loop_cost[loop], (int32_t)loop, 0},
           epsilon = {(u32)s, forward_cost(l, loop), 0, 0};
    arcs[first] = one_arc ? leaving(l, l.f.off[s], loop) : self;
    arcs[first + 1] = one_arc ? self : epsilon;
    off[n + c] = first;
    final_cost[n + c] = INFINITY;
  }
  if (this_thread() == 0) off[n + l.num_copies] = in_copies + 2 * l.num_copies;
}

int wf__loops_write(const wf__gpu_loops *l, const u32 *source, u64 *off, wf_arc *arcs,
                    float *final_cost, void *stream) {
  return LAUNCH(loop_write_kernel, l->f.num_arcs + l->f.num_states + l->num_copies, stream, *l,
                source, off, arcs, final_cost);
}
