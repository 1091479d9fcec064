/* determinize_result.cu - the arrays of a determinized batch: orders subsets by fst, adds arcs for
 * pending final outputs, and spells outputs of several labels as chains (determinize_kernels.h).
 *
 * Next states are numbered in two steps, because the number of chain states is known last: first
 * with the sinks but without the chains, then with both. */
#include "cuda/fstops/determinize_strings.cuh"

#define FREE (~(u64)0)

/* --- subsets in the order of the result -------------------------------------------------- */

/* The output that a subset still has to write at the end. */
__device__ static u32 final_string_of(const wf__gpu_subsets &s, u64 q) {
  if (s.final_element[q] == FREE) return 0;
  return s.ways.count != nullptr ? s.final_string[q] : s.string[s.final_element[q]];
}

__global__ static void owed_kernel(const wf__gpu_subsets s, const wf__gpu_det_result r) {
  FOR_ALL(q, r.num_subsets) {
    u32 fst = (u32)fst_of(s.f, s.state[s.off[q]]), owed = final_string_of(s, q) != 0;
    r.fst[q] = fst;
    r.order[q] = (u32)q;
    r.owed[q] = owed;
    if (owed) r.sink[fst] = 1;
  }
}

int wf__determinize_owed(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream) {
  return LAUNCH(owed_kernel, r->num_subsets, stream, *s, *r);
}

__global__ static void degrees_kernel(const wf__gpu_subsets s, const wf__gpu_det_result r) {
  FOR_ALL(p, r.num_subsets + 1) {
    u64 degree = 0;
    if (p < r.num_subsets) {
      u32 q = r.order[p];
      r.rank[q] = (u32)p;
      degree = s.arc_off[q + 1] - s.arc_off[q] + r.owed[q];
    }
    r.arc_off[p] = degree;
  }
}

int wf__determinize_degrees(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream) {
  return LAUNCH(degrees_kernel, r->num_subsets + 1, stream, *s, *r);
}

/* --- arcs -------------------------------------------------------------------------------- */

__device__ static u64 labels_behind_first(const wf__gpu_subsets &s, u32 string) {
  u32 size = string_size(s, string);
  return size > 1 ? size - 1 : 0;
}

/* The arc to a sink is placed behind the subset's arcs whose labels are not larger. */
__global__ static void place_kernel(const wf__gpu_subsets s, const wf__gpu_det_result r) {
  const u64 num_arcs = s.arc_off[r.num_subsets];
  u64 spelled = 0;
  FOR_ALL(a, num_arcs) {
    u32 q = s.arc_owner[a];
    wf_arc arc = s.arcs[a];
    u64 behind = r.owed[q] && arc.ilabel > r.subsequential_label;
    arc.nextstate = r.rank[arc.nextstate] + (u32)r.sink_base[r.fst[q]];
    r.arcs[r.arc_off[r.rank[q]] + (a - s.arc_off[q]) + behind] = arc;
    spelled += labels_behind_first(s, (u32)arc.olabel);
  }
  FOR_ALL(q, r.num_subsets) {
    if (!r.owed[q]) continue;
    u64 first = s.arc_off[q], low = first,
        high = s.arc_off[q + 1]; /* finds the first arc with a larger label */
    u32 fst = r.fst[q];
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (s.arcs[middle].ilabel <= r.subsequential_label)
        low = middle + 1;
      else
        high = middle;
    }
    wf_arc arc;
    arc.ilabel = r.subsequential_label;
    arc.olabel = (int32_t)final_string_of(s, q);
    arc.weight = wf__cost_to_float(cost_of(s.final_key[q]));
    arc.nextstate = (u32)(r.base[fst + 1] + r.sink_base[fst]);
    r.arcs[r.arc_off[r.rank[q]] + (low - first)] = arc;
    spelled += labels_behind_first(s, (u32)arc.olabel);
  }
  if (spelled != 0) atomicAdd((ull *)r.num_spelled, (ull)spelled);
}

int wf__determinize_place(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream) {
  return LAUNCH(place_kernel, r->num_arcs + r->num_subsets, stream, *s, *r);
}

/* --- chains ------------------------------------------------------------------------------ */

/* The fst of an arc, given the arc's index in the order of the result. */
__device__ static u64 fst_of_arc(const wf__gpu_subsets &s, const wf__gpu_det_result &r, u64 arc) {
  u64 low = 0, high = s.f.num_fsts;
  while (high - low > 1) {
    u64 middle = (low + high) / 2;
    if (r.arc_off[r.base[middle]] <= arc)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Finds or inserts the chain state that writes `label` and leads to `next`. The table has twice as
 * many slots as needed. */
__device__ static u32 chain_slot(const wf__gpu_det_result &r, u32 next, u32 label) {
  const u64 key = (u64)next << 32 | label;
  u64 slot = wf__mix64(key) & (r.num_slots - 1);
  for (;; slot = (slot + 1) & (r.num_slots - 1)) {
    u64 have = __ldcg(&r.slots[slot]);
    if (have == 0) have = atomicCAS((ull *)&r.slots[slot], (ull)0, (ull)key);
    if (have == 0 || have == key) return (u32)slot;
  }
}

/* Makes each chain from its last label back to its second. */
__global__ static void chains_kernel(const wf__gpu_subsets s, const wf__gpu_det_result r) {
  FOR_ALL(k, r.num_arcs) {
    u32 string = (u32)r.arcs[k].olabel, size = string_size(s, string), next = r.arcs[k].nextstate;
    if (size <= 1) continue;
    u64 fst = fst_of_arc(s, r, k);
    int32_t ilabel =
        next == r.base[fst + 1] + r.sink_base[fst] && r.sink[fst] ? r.arcs[k].ilabel : 0;
    for (u32 place = 0; place + 1 < size; place++, string = string_rest(s, string)) {
      u32 slot = chain_slot(r, next, string_label(s, string));
      atomicMin((ull *)&r.tag[slot], (ull)(k << 8 | place));
      r.slot_ilabel[slot] = ilabel;
      next = WF__DET_CHAIN | slot;
    }
    r.arcs[k].olabel = (int32_t)string;
    r.arcs[k].nextstate = next;
  }
}

__global__ static void used_kernel(const wf__gpu_det_result r) {
  FOR_ALL(slot, r.num_slots + 1) r.used[slot] = slot < r.num_slots && r.tag[slot] != FREE;
}

int wf__determinize_chains(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream) {
  int code = LAUNCH(chains_kernel, r->num_arcs, stream, *s, *r);
  return code == 0 ? LAUNCH(used_kernel, r->num_slots + 1, stream, *r) : code;
}

__global__ static void nodes_kernel(const wf__gpu_det_result r) {
  FOR_ALL(slot, r.num_slots) {
    if (!r.used[slot]) continue;
    r.node_tag[r.used_rank[slot]] = r.tag[slot];
    r.node_slot[r.used_rank[slot]] = (u32)slot;
  }
}

int wf__determinize_nodes(const wf__gpu_det_result *r, void *stream) {
  return LAUNCH(nodes_kernel, r->num_slots, stream, *r);
}

__global__ static void number_kernel(const wf__gpu_subsets s, const wf__gpu_det_result r) {
  FOR_ALL(node, r.num_nodes) {
    r.slot_node[r.slot_sorted[node]] = (u32)node;
    atomicAdd(&r.num_of_fst[fst_of_arc(s, r, r.tag_sorted[node] >> 8)], 1u);
  }
}

int wf__determinize_number(const wf__gpu_subsets *s, const wf__gpu_det_result *r, void *stream) {
  return LAUNCH(number_kernel, r->num_nodes, stream, *s, *r);
}

/* --- output arrays ----------------------------------------------------------------------- */

/* The final number of a state: of a chain state, or of a state numbered without chains. */
__device__ static u32 number_of(const wf__gpu_det_result &r, u64 fst, u32 next) {
  if (next & WF__DET_CHAIN)
    return (u32)(r.base[fst + 1] + r.sink_base[fst + 1]) + r.slot_node[next & ~WF__DET_CHAIN];
  return next + (u32)r.node_base[fst];
}

__device__ static int32_t label_of(u32 string) {
  return (int32_t)(string & ~WF__DET_ONE);
} /* for a string of at most one label */

__global__ static void write_kernel(const wf__gpu_subsets s, const wf__gpu_det_result r, u64 *off,
                                    float *final_cost, wf_arc *arcs) {
  const u64 n = s.f.num_fsts;
  FOR_ALL(p, r.num_subsets) {
    u64 fst = r.by_fst[p], number = p + r.sink_base[fst] + r.node_base[fst];
    u32 q = r.order[p];
    off[number] = r.arc_off[p] + r.node_base[fst];
    final_cost[number] = r.owed[q] ? INFINITY : wf__cost_to_float(cost_of(s.final_key[q]));
  }
  FOR_ALL(fst, n) {
    if (!r.sink[fst]) continue;
    u64 number = r.base[fst + 1] + r.sink_base[fst] + r.node_base[fst];
    off[number] = r.arc_off[r.base[fst + 1]] + r.node_base[fst];
    final_cost[number] = 0;
  }
  if (this_thread() == 0)
    off[r.num_subsets + r.sink_base[n] + r.node_base[n]] = r.num_arcs + r.node_base[n];
  FOR_ALL(k, r.num_arcs) {
    wf_arc arc = r.arcs[k];
    u64 fst = fst_of_arc(s, r, k);
    arc.olabel = label_of((u32)arc.olabel);
    arc.nextstate = number_of(r, fst, arc.nextstate);
    arcs[k + r.node_base[fst]] = arc;
  }
  FOR_ALL(node, r.num_nodes) {
    u32 slot = r.slot_sorted[node];
    u64 fst = fst_of_arc(s, r, r.tag_sorted[node] >> 8),
        number = r.base[fst + 1] + r.sink_base[fst + 1] + node,
        at = r.arc_off[r.base[fst + 1]] + node;
    wf_arc arc;
    arc.ilabel = r.slot_ilabel[slot];
    arc.olabel = (int32_t)(u32)r.slots[slot];
    arc.weight = 0;
    arc.nextstate = number_of(r, fst, (u32)(r.slots[slot] >> 32));
    arcs[at] = arc;
    off[number] = at;
    final_cost[number] = INFINITY;
  }
}

int wf__determinize_write(const wf__gpu_subsets *s, const wf__gpu_det_result *r, u64 *off,
                          float *final_cost, wf_arc *arcs, void *stream) {
  return LAUNCH(write_kernel, r->num_arcs + r->num_subsets, stream, *s, *r, off, final_cost, arcs);
}
