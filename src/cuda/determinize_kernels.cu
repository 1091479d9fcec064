/* determinize_kernels.cu - kernels of determinization by levels (determinize_kernels.h). */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/determinize_kernels.h"
#include "cuda/ops_launch.cuh"
#include "math/cost.h"

#define FREE (~(u64)0)
#define NEW ((u64)1 << 63)

int wf__determinize_sort(const u64 *keys, u64 *keys_out, const u32 *values, u32 *values_out, u64 count, int key_bits, void *scratch, size_t *scratch_bytes, void *stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, *scratch_bytes, keys, keys_out, values, values_out, (int64_t)count, 0, key_bits, (cudaStream_t)stream);
}

/* Costs as integers in the same order. */
__device__ static u64 ordered(double cost) {
  u64 bits = (u64)__double_as_longlong(cost);
  return bits >> 63 ? ~bits : bits | (u64)1 << 63;
}
__device__ static double cost_of(u64 key) { return __longlong_as_double((long long)(key >> 63 ? key & ~((u64)1 << 63) : ~key)); }

/* --- strings ---------------------------------------------------------------------------------------------------------- */

__device__ static u32 num_labels(u64 string) { return (string != 0) + (string >> WF__DET_LABEL_BITS != 0) + (string >> 2 * WF__DET_LABEL_BITS != 0); }

/* Labels that two strings have in common at their begin. */
__device__ static u32 num_common(u64 a, u64 b) {
  u64 mask = ((u64)1 << WF__DET_LABEL_BITS) - 1;
  u32 n = 0;
  while (n < WF__DET_MOST_LABELS && (a & mask) != 0 && (a & mask) == (b & mask)) a >>= WF__DET_LABEL_BITS, b >>= WF__DET_LABEL_BITS, n++;
  return n;
}

__device__ static u64 append(const wf__gpu_subsets &s, u64 string, int32_t label) {
  if (label == 0) return string;
  u32 n = num_labels(string);
  if (n == WF__DET_MOST_LABELS) atomicOr(s.trouble, (u32)WF__DET_LONG_STRING);
  if ((u32)label >> WF__DET_LABEL_BITS != 0) atomicOr(s.trouble, (u32)WF__DET_LONG_LABEL);
  return n < WF__DET_MOST_LABELS ? string | (u64)label << n * WF__DET_LABEL_BITS : string;
}

/* --- items ------------------------------------------------------------------------------------------------------------ */

__device__ static u64 element_hash(const wf__gpu_subsets &s, u32 state, float cost, u64 string) {
  return wf__hash_combine(wf__mix64(string + 1), (u64)wf__cost_bin(s.inverse_delta, cost) << 32 | state);
}

__global__ static void label_bits_kernel(const wf__gpu_fsts f, u32 *out) {
  u32 bits = 0;
  FOR_ALL(i, f.num_arcs) bits |= (u32)f.arcs[i].ilabel;
  bits = __reduce_or_sync(ALL_LANES, bits);
  if (this_lane() == 0) atomicOr(out, bits);
}

int wf__determinize_label_bits(const wf__gpu_fsts *f, u32 *out, void *stream) { return LAUNCH(label_bits_kernel, f->num_arcs, stream, *f, out); }

__global__ static void begin_kernel(const wf__gpu_subsets s, u64 room_subsets, u32 start) {
  FOR_ALL(i, room_subsets) s.final_key[i] = ordered(INFINITY);
  if (this_thread() != 0) return;
  s.off[0] = s.arc_off[0] = 0;
  s.off[1] = 1;
  s.owner[0] = 0;
  s.state[0] = start;
  s.cost[0] = 0;
  s.string[0] = 0;
  s.hash[0] = element_hash(s, start, 0, 0);
  s.slots[s.hash[0] & (s.num_slots - 1)] = 0;
}

int wf__determinize_begin(const wf__gpu_subsets *s, u64 room_subsets, u32 start, void *stream) { return LAUNCH(begin_kernel, room_subsets, stream, *s, room_subsets, start); }

__global__ static void count_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(e, level.num_elements + 1) {
    u64 at = level.first_element + e, count = 0;
    if (e < level.num_elements) {
      u32 state = s.state[at];
      count = s.f.off[state + 1] - s.f.off[state];
      if (s.f.final_cost[state] != INFINITY) {
        if (s.string[at] != 0) atomicOr(s.trouble, (u32)WF__DET_FINAL_STRING);
        atomicMin((ull *)&s.final_key[s.owner[at]], (ull)ordered((double)s.cost[at] + (double)s.f.final_cost[state]));
      }
    }
    level.item_off[e] = count;
  }
}

int wf__determinize_count(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) { return LAUNCH(count_kernel, level->num_elements + 1, stream, *s, *level); }

__global__ static void items_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(item, level.num_items) {
    u64 low = 0, high = level.num_elements; /* the last element whose items begin at or before this one */
    while (high - low > 1) {
      u64 middle = (low + high) / 2;
      if (level.item_off[middle] <= item) low = middle;
      else high = middle;
    }
    u64 at = level.first_element + low;
    wf_arc arc = s.f.arcs[s.f.off[s.state[at]] + (item - level.item_off[low])];
    if (arc.weight == INFINITY) atomicOr(s.trouble, (u32)WF__DET_INFINITE);
    level.keys[item] = ((u64)(s.owner[at] - level.first_subset) << level.label_bits | (u32)arc.ilabel) << level.state_bits | arc.nextstate;
    level.index[item] = (u32)item;
    level.item_cost[item] = (double)s.cost[at] + (double)arc.weight;
    level.item_string[item] = append(s, s.string[at], arc.olabel);
  }
}

int wf__determinize_items(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) { return LAUNCH(items_kernel, level->num_items, stream, *s, *level); }

__global__ static void flags_kernel(const wf__gpu_det_level level) {
  FOR_ALL(i, level.num_items + 1) {
    u64 flags = 0;
    if (i < level.num_items) {
      u64 key = level.sorted[i], before = i != 0 ? level.sorted[i - 1] : ~key;
      flags = (u64)(key != before) << 32 | (key >> level.state_bits != before >> level.state_bits);
    }
    level.ranks[i] = flags;
  }
}

int wf__determinize_flags(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  (void)s;
  return LAUNCH(flags_kernel, level->num_items + 1, stream, *level);
}

/* --- parts and arcs --------------------------------------------------------------------------------------------------- */

__global__ static void arcs_begin_kernel(const wf__gpu_det_level level) {
  FOR_ALL(a, level.num_arcs) {
    level.total[a] = ordered(INFINITY);
    level.common[a] = WF__DET_MOST_LABELS;
    level.arc_hash[a] = 0;
  }
  if (this_thread() == 0) level.arc_part[level.num_arcs] = level.num_parts;
}

/* Equal items become a part, taken by the thread of the first; the first part of an arc begins it. */
__global__ static void merge_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(i, level.num_items) {
    u64 key = level.sorted[i];
    if (i != 0 && level.sorted[i - 1] == key) continue;
    u32 part = (u32)(level.ranks[i] >> 32), arc = (u32)level.ranks[i + 1] - 1, item = level.by_key[i];
    double cost = level.item_cost[item];
    u64 string = level.item_string[item];
    for (u64 k = i + 1; k < level.num_items && level.sorted[k] == key; k++) {
      item = level.by_key[k];
      if (level.item_string[item] != string) atomicOr(s.trouble, (u32)WF__DET_TWO_OUTPUTS);
      cost = cost < level.item_cost[item] ? cost : level.item_cost[item];
    }
    level.part_arc[part] = arc;
    level.part_state[part] = (u32)key & (((u32)1 << level.state_bits) - 1);
    level.part_cost[part] = cost;
    level.part_string[part] = string;
    if (i == 0 || level.sorted[i - 1] >> level.state_bits != key >> level.state_bits) level.arc_part[arc] = part;
    atomicMin((ull *)&level.total[arc], (ull)ordered(cost));
  }
}

__global__ static void common_kernel(const wf__gpu_det_level level) {
  FOR_ALL(part, level.num_parts) {
    u32 arc = level.part_arc[part], n = num_common(level.part_string[part], level.part_string[level.arc_part[arc]]);
    if (n < level.common[arc]) atomicMin(&level.common[arc], n);
  }
}

/* What is left of a part when its arc has put out and charged what all have in common. */
__global__ static void residuals_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(part, level.num_parts) {
    u32 arc = level.part_arc[part];
    double cost = (double)wf__cost_to_float(level.part_cost[part] - cost_of(level.total[arc]));
    u64 string = level.common[arc] == WF__DET_MOST_LABELS ? 0 : level.part_string[part] >> level.common[arc] * WF__DET_LABEL_BITS;
    if (part == level.arc_part[arc]) { /* the arc's output, which the residuals below no longer have, is kept aside: nobody else reads it */
      u64 prefix = level.part_string[part] & (((u64)1 << level.common[arc] * WF__DET_LABEL_BITS) - 1);
      if (num_labels(prefix) > 1) atomicOr(s.trouble, (u32)WF__DET_LONG_STRING);
      level.arc_slot[arc] = prefix;
    }
    level.part_cost[part] = cost;
    level.part_string[part] = string;
    atomicAdd((ull *)&level.arc_hash[arc], (ull)element_hash(s, level.part_state[part], (float)cost, string));
  }
}

int wf__determinize_parts(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  int code = LAUNCH(arcs_begin_kernel, level->num_arcs, stream, *level);
  if (code == 0) code = LAUNCH(merge_kernel, level->num_items, stream, *s, *level);
  if (code == 0) code = LAUNCH(common_kernel, level->num_parts, stream, *level);
  return code == 0 ? LAUNCH(residuals_kernel, level->num_parts, stream, *s, *level) : code;
}

/* --- subsets ---------------------------------------------------------------------------------------------------------- */

__device__ static bool is_known(const wf__gpu_subsets &s, const wf__gpu_det_level &level, u64 arc, u64 subset) {
  u64 begin = level.arc_part[arc], size = level.arc_part[arc + 1] - begin, at = s.off[subset];
  if (s.hash[subset] != level.arc_hash[arc] || s.off[subset + 1] - at != size) return false;
  for (u64 i = 0; i < size; i++)
    if (s.state[at + i] != level.part_state[begin + i] || s.string[at + i] != level.part_string[begin + i] ||
        wf__cost_bin(s.inverse_delta, s.cost[at + i]) != wf__cost_bin(s.inverse_delta, (float)level.part_cost[begin + i]))
      return false;
  return true;
}

__device__ static bool is_same(const wf__gpu_subsets &s, const wf__gpu_det_level &level, u64 arc, u64 other) {
  u64 begin = level.arc_part[arc], size = level.arc_part[arc + 1] - begin, at = level.arc_part[other];
  if (arc == other) return true;
  if (level.arc_hash[other] != level.arc_hash[arc] || level.arc_part[other + 1] - at != size) return false;
  for (u64 i = 0; i < size; i++)
    if (level.part_state[at + i] != level.part_state[begin + i] || level.part_string[at + i] != level.part_string[begin + i] ||
        wf__cost_bin(s.inverse_delta, (float)level.part_cost[at + i]) != wf__cost_bin(s.inverse_delta, (float)level.part_cost[begin + i]))
      return false;
  return true;
}

/* Of equal subsets the first arc in order is the one: the smaller number stays in the slot, whoever comes when. */
__global__ static void find_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(arc, level.num_arcs) {
    u64 slot = level.arc_hash[arc] & (s.num_slots - 1);
    for (;; slot = (slot + 1) & (s.num_slots - 1)) {
      u64 have = __ldcg(&s.slots[slot]);
      if (have == FREE) have = atomicCAS((ull *)&s.slots[slot], (ull)FREE, (ull)(NEW | arc));
      if (have == FREE) break;
      if (have & NEW) {
        if (!is_same(s, level, arc, have & ~NEW)) continue;
        atomicMin((ull *)&s.slots[slot], (ull)(NEW | arc));
        break;
      }
      if (is_known(s, level, arc, have)) break;
    }
    level.fresh[arc] = slot;
  }
}

/* Where the arc is the one, its subset counts; `arc_slot` holds outputs until here, slots take their place in `fresh`. */
__global__ static void fresh_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(arc, level.num_arcs + 1) {
    if (arc == level.num_arcs) {
      level.fresh[arc] = 0;
      continue;
    }
    u64 slot = level.fresh[arc], output = level.arc_slot[arc];
    u32 is_new = s.slots[slot] == (NEW | arc);
    level.is_new[arc] = is_new;
    level.arc_slot[arc] = slot;
    level.common[arc] = (u32)output; /* at most one label */
    level.fresh[arc] = is_new ? (level.arc_part[arc + 1] - level.arc_part[arc]) << 32 | 1 : 0;
  }
}

int wf__determinize_find(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  int code = LAUNCH(find_kernel, level->num_arcs, stream, *s, *level);
  return code == 0 ? LAUNCH(fresh_kernel, level->num_arcs + 1, stream, *s, *level) : code;
}

__global__ static void names_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level, u64 num_known, u64 elements) {
  FOR_ALL(arc, level.num_arcs) {
    if (!level.is_new[arc]) continue;
    u64 subset = num_known + (u32)level.fresh[arc];
    s.slots[level.arc_slot[arc]] = subset;
    s.hash[subset] = level.arc_hash[arc];
    s.off[subset + 1] = elements + (level.fresh[arc + 1] >> 32);
  }
  FOR_ALL(part, level.num_parts) {
    u32 arc = level.part_arc[part];
    if (!level.is_new[arc]) continue;
    u64 at = elements + (level.fresh[arc] >> 32) + (part - level.arc_part[arc]);
    s.owner[at] = (u32)(num_known + (u32)level.fresh[arc]);
    s.state[at] = level.part_state[part];
    s.cost[at] = (float)level.part_cost[part];
    s.string[at] = level.part_string[part];
  }
}

/* The arcs, and where those of each subset end. */
__global__ static void store_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(i, level.num_items) {
    u64 key = level.sorted[i] >> level.state_bits, next = i + 1 < level.num_items ? level.sorted[i + 1] >> level.state_bits : ~(u64)0;
    if (key == next) continue; /* the last item of an arc writes it */
    u64 arc = (u32)level.ranks[i + 1] - 1;
    wf_arc made;
    made.ilabel = (int32_t)(key & (((u64)1 << level.label_bits) - 1));
    made.olabel = (int32_t)level.common[arc];
    made.weight = wf__cost_to_float(cost_of(level.total[arc]));
    made.nextstate = (u32)s.slots[level.arc_slot[arc]];
    s.arcs[level.first_arc + arc] = made;
  }
  FOR_ALL(k, level.num_subsets) {
    u64 low = 0, high = level.num_items; /* the first item of a later subset */
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (level.sorted[middle] >> (level.state_bits + level.label_bits) <= k) low = middle + 1;
      else high = middle;
    }
    s.arc_off[level.first_subset + k + 1] = level.first_arc + (u32)level.ranks[low];
  }
}

int wf__determinize_store(const wf__gpu_subsets *s, const wf__gpu_det_level *level, u64 num_known, u64 elements, void *stream) {
  int code = LAUNCH(names_kernel, level->num_parts, stream, *s, *level, num_known, elements);
  return code == 0 ? LAUNCH(store_kernel, level->num_items + level->num_subsets, stream, *s, *level) : code;
}

__global__ static void finals_kernel(const wf__gpu_subsets s, u64 num_subsets, float *final_cost) {
  FOR_ALL(i, num_subsets) final_cost[i] = wf__cost_to_float(cost_of(s.final_key[i]));
}

int wf__determinize_finals(const wf__gpu_subsets *s, u64 num_subsets, float *final_cost, void *stream) { return LAUNCH(finals_kernel, num_subsets, stream, *s, num_subsets, final_cost); }
