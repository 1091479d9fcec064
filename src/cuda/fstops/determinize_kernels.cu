/* determinize_kernels.cu - the kernels that determinize level by level (determinize_kernels.h). */
#include "cuda/fstops/determinize_strings.cuh"

#define FREE (~(u64)0)
#define NEW ((u64)1 << 63)

/* --- items ------------------------------------------------------------------------------- */

__device__ static u64 element_hash(const wf__gpu_subsets &s, u32 state, float cost, u32 string) {
  return wf__hash_combine(wf__mix64((u64)string + 1),
                          (u64)wf__cost_bin(s.inverse_delta, cost) << 32 | state);
}

__global__ static void labels_kernel(const wf__gpu_fsts f, u32 *out) {
  u32 bits = 0, epsilon = 0;
  FOR_ALL(i, f.num_arcs) {
    bits |= (u32)f.arcs[i].ilabel;
    epsilon |= f.arcs[i].ilabel == 0;
  }
  bits = warp_or(bits);
  epsilon = warp_or(epsilon);
  if (this_lane() != 0) return;
  atomicOr(&out[0], bits);
  if (epsilon != 0) atomicOr(&out[1], 1u);
}

int wf__determinize_labels(const wf__gpu_fsts *f, u32 *out, void *stream) {
  return LAUNCH(labels_kernel, f->num_arcs, stream, *f, out);
}

/* Initializes the tables and the subsets of the start states. off and arc_off have one entry more
 * than there are subsets. */
__global__ static void begin_kernel(const wf__gpu_subsets s, u64 room_subsets, const u32 *starts,
                                    u64 num_starts) {
  FOR_ALL(i, room_subsets) {
    s.final_key[i] = ordered(INFINITY);
    s.final_element[i] = ~(u64)0;
  }
  if (this_thread() == 0) s.off[0] = s.arc_off[0] = 0;
  FOR_ALL(i, num_starts) {
    s.off[i + 1] = i + 1;
    s.owner[i] = (u32)i;
    s.state[i] = starts[i];
    s.cost[i] = 0;
    s.string[i] = 0;
    s.hash[i] = element_hash(s, starts[i], 0, 0);
    if (s.num_of_fst != nullptr) s.num_of_fst[fst_of(s.f, starts[i])] = 1;
    u64 slot = s.hash[i] & (s.num_slots - 1);
    while (atomicCAS((ull *)&s.slots[slot], (ull)FREE, (ull)i) != FREE)
      slot = (slot + 1) & (s.num_slots - 1);
  }
}

int wf__determinize_begin(const wf__gpu_subsets *s, u64 room_subsets, const u32 *starts,
                          u64 num_starts, void *stream) {
  return LAUNCH(begin_kernel, room_subsets, stream, *s, room_subsets, starts, num_starts);
}

/* Whether a path may end in an element, and at what cost. */
__device__ static bool ends(const wf__gpu_subsets &s, u64 element, double *cost) {
  float final_cost = s.f.final_cost[s.state[element]];
  *cost = (double)s.cost[element] + (double)final_cost;
  return final_cost != INFINITY && s.cost[element] != INFINITY;
}

__global__ static void count_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(e, level.num_elements + 1) {
    u64 at = level.first_element + e, count = 0;
    if (e < level.num_elements) {
      u32 state = s.state[at];
      double cost;
      if (s.ways.count != nullptr)
        count = s.ways.count[state];
      else
        count = s.f.off[state + 1] - s.f.off[state];
      if (s.ways.count == nullptr && ends(s, at, &cost))
        atomicMin((ull *)&s.final_key[s.owner[at]], (ull)ordered(cost));
      if (s.cost[at] == INFINITY) {
        atomicOr(s.trouble, (u32)WF__DET_DROPPED);
        count = 0;
      }
    }
    level.item_off[e] = count;
  }
}

int wf__determinize_count(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  return LAUNCH(count_kernel, level->num_elements + 1, stream, *s, *level);
}

/* Among a subset's elements with the least final cost, the first determines the final output. */
__device__ static void find_final_element(const wf__gpu_subsets &s, u64 at) {
  double cost;
  if (ends(s, at, &cost) && ordered(cost) == s.final_key[s.owner[at]])
    atomicMin((ull *)&s.final_element[s.owner[at]], (ull)at);
}

__device__ static void check_final_string(const wf__gpu_subsets &s, u64 at) {
  double cost;
  if (!ends(s, at, &cost)) return;
  if (s.string[at] != s.string[s.final_element[s.owner[at]]] && !s.allow_nonfunctional)
    atomicOr(s.trouble, (u32)WF__DET_TWO_OUTPUTS);
  if (wf__cost_to_float(cost) == INFINITY) atomicOr(s.trouble, (u32)WF__DET_DROPPED);
}

/* What an item stands for. */
struct way {
  wf_arc arc;
  double cost; /* without the arc's */
  u32 string;
  bool is_end; /* the path ends; `arc` has only the final cost */
};

/* Follows epsilons from an element to its k-th way, and adds their costs in the order of the CPU.
 */
__device__ static way find_way(const wf__gpu_subsets &s, u64 element, u64 k) {
  u32 state = s.state[element];
  double cost = (double)s.cost[element];
  way found = {{0, 0, 0, 0}, 0, s.string[element], false};
  for (;;) {
    u64 labelled = s.ways.labelled[state], first = s.f.off[state] + labelled;
    bool is_final = s.f.final_cost[state] != INFINITY;
    found.cost = (double)wf__cost_to_float(cost);
    if (k < labelled) {
      found.arc = s.ways.arcs[first - labelled + k];
      return found;
    }
    k -= labelled;
    if (is_final && k-- == 0) {
      found.is_end = true;
      found.arc.weight = s.f.final_cost[state];
      return found;
    }
    k += s.ways.before[first];
    u64 arc = first + owner_of(s.ways.before + first, s.f.off[state + 1] - first, k);
    const wf_arc epsilon = s.ways.arcs[arc];
    if (epsilon.weight == INFINITY) atomicOr(s.trouble, (u32)WF__DET_LOST_EPSILON);
    cost += (double)epsilon.weight;
    found.string = string_append(s, found.string, epsilon.olabel);
    state = epsilon.nextstate;
    k -= s.ways.before[arc];
  }
}

__device__ static way way_of(const wf__gpu_subsets &s, u64 element, u64 k) {
  if (s.ways.count != nullptr) return find_way(s, element, k);
  return {s.f.arcs[s.f.off[s.state[element]] + k], (double)s.cost[element], s.string[element],
          false};
}

/* Keys of items that make no arc have the highest bit set: those of infinite cost have no other;
 * ends of ways have their subset and END. */
enum { END = 1 };
__device__ static u64 never_key(const wf__gpu_det_level &level) {
  return (u64)1 << (level.key_bits - 1);
}
/* Whether the key is that of an item that makes no arc. */
__device__ static bool is_never(const wf__gpu_det_level &level, u64 key) {
  return key >> (level.key_bits - 1) & 1;
}
__device__ static bool is_end(const wf__gpu_det_level &level, u64 key) {
  return is_never(level, key) && (key & END) != 0;
}
/* The subset of an item. */
__device__ static u64 subset_of(const wf__gpu_det_level &level, u64 key) {
  return level.first_subset + ((key & ~never_key(level)) >> (level.label_bits + level.state_bits));
}

__global__ static void items_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  if (s.ways.count == nullptr) {
    FOR_ALL(e, level.num_elements) find_final_element(s, level.first_element + e);
  }
  FOR_ALL(item, level.num_items) {
    u64 place = owner_of(level.item_off, level.num_elements, item),
        at = level.first_element + place, owner = s.owner[at] - level.first_subset;
    way w = way_of(s, at, item - level.item_off[place]);
    double cost = w.cost + (double)w.arc.weight;
    bool never = w.arc.weight == INFINITY || w.cost == INFINITY;
    u64 key = never_key(level);
    if (never)
      atomicOr(s.trouble, (u32)WF__DET_DROPPED);
    else if (w.is_end)
      key |= owner << (level.label_bits + level.state_bits) | END;
    else
      key = (owner << level.label_bits | (u32)w.arc.ilabel) << level.state_bits | w.arc.nextstate;
    if (w.is_end && !never) atomicMin((ull *)&s.final_key[s.owner[at]], (ull)ordered(cost));
    level.keys[item] = key;
    level.index[item] = (u32)item;
    level.item_cost[item] = cost;
    level.item_string[item] = never ? 0 : string_append(s, w.string, w.arc.olabel);
  }
}

int wf__determinize_items(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  return LAUNCH(items_kernel, level->num_items + level->num_elements, stream, *s, *level);
}

/* Among the ends of a subset's ways with the least cost, the first determines the final output. */
__device__ static void find_final_item(const wf__gpu_subsets &s, const wf__gpu_det_level &level,
                                       u64 i) {
  u64 key = level.sorted[i], subset = subset_of(level, key);
  if (is_end(level, key) && ordered(level.item_cost[level.by_key[i]]) == s.final_key[subset])
    atomicMin((ull *)&s.final_element[subset], (ull)level.by_key[i]);
}

__global__ static void flags_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  if (s.ways.count == nullptr) {
    FOR_ALL(e, level.num_elements) check_final_string(s, level.first_element + e);
  }
  FOR_ALL(i, level.num_items + 1) {
    u64 flags = 0;
    if (s.ways.count != nullptr && i < level.num_items) find_final_item(s, level, i);
    if (i < level.num_items && !is_never(level, level.sorted[i])) {
      u64 key = level.sorted[i], before = i != 0 ? level.sorted[i - 1] : ~key;
      flags = (u64)(key != before) << 32 | (key >> level.state_bits != before >> level.state_bits);
    }
    level.ranks[i] = flags;
  }
}

int wf__determinize_flags(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  return LAUNCH(flags_kernel, level->num_items + 1, stream, *s, *level);
}

/* --- parts and arcs ---------------------------------------------------------------------- */

__global__ static void arcs_begin_kernel(const wf__gpu_det_level level) {
  FOR_ALL(a, level.num_arcs) {
    level.total[a] = ordered(INFINITY);
    level.common[a] = ~(u32)0;
    level.arc_hash[a] = 0;
  }
  if (this_thread() == 0) level.arc_part[level.num_arcs] = level.num_parts;
}

/* Two ways to the same state, or two ends, have different outputs. */
__device__ static void differ(const wf__gpu_subsets &s, bool same_cost) {
  if (!s.allow_nonfunctional)
    atomicOr(s.trouble, (u32)WF__DET_TWO_OUTPUTS);
  else if (s.ways.count != nullptr && same_cost)
    atomicOr(s.trouble, (u32)WF__DET_TIE);
}

__device__ static void take_end(const wf__gpu_subsets &s, const wf__gpu_det_level &level, u64 i) {
  u64 subset = subset_of(level, level.sorted[i]);
  u32 item = level.by_key[i], first = (u32)s.final_element[subset];
  if (item == first) s.final_string[subset] = level.item_string[item];
  if (level.item_string[item] != level.item_string[first])
    differ(s, level.item_cost[item] == level.item_cost[first]);
  if (wf__cost_to_float(level.item_cost[item]) == INFINITY)
    atomicOr(s.trouble, (u32)WF__DET_DROPPED);
}

/* Merges items with equal keys into one part. The thread of the first item does this, in the same
 * order as the CPU. The first part of an arc also sets the arc's first part. */
__global__ static void merge_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(i, level.num_items) {
    u64 key = level.sorted[i];
    if (is_end(level, key)) take_end(s, level, i);
    if (is_never(level, key) || (i != 0 && level.sorted[i - 1] == key)) continue;
    u32 part = (u32)(level.ranks[i] >> 32), arc = (u32)level.ranks[i + 1] - 1,
        item = level.by_key[i], string = level.item_string[item];
    double cost = level.item_cost[item];
    for (u64 k = i + 1; k < level.num_items && level.sorted[k] == key; k++) {
      item = level.by_key[k];
      if (level.item_string[item] != string) differ(s, level.item_cost[item] == cost);
      if (!(level.item_cost[item] < cost)) continue;
      cost = level.item_cost[item];
      string = level.item_string[item];
    }
    level.part_arc[part] = arc;
    level.part_state[part] = (u32)(key & (((u64)1 << level.state_bits) - 1));
    level.part_cost[part] = cost;
    level.part_string[part] = string;
    if (i == 0 || level.sorted[i - 1] >> level.state_bits != key >> level.state_bits)
      level.arc_part[arc] = part;
    atomicMin((ull *)&level.total[arc], (ull)ordered(cost));
  }
}

__global__ static void common_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(part, level.num_parts) {
    u32 arc = level.part_arc[part],
        n = num_common(s, level.part_string[part], level.part_string[level.arc_part[arc]]);
    if (n < level.common[arc]) atomicMin(&level.common[arc], n);
  }
}

/* Computes the residuals of the parts, after their arc has taken the common output prefix and the
 * least cost. */
__global__ static void residuals_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(part, level.num_parts) {
    u32 arc = level.part_arc[part], string = level.part_string[part], common = level.common[arc];
    double cost = (double)wf__cost_to_float(level.part_cost[part] - cost_of(level.total[arc]));
    if (part == level.arc_part[arc])
      level.output[arc] = string_drop(s, string, string_size(s, string) - common);
    string = string_behind(s, string, common);
    level.part_cost[part] = cost;
    level.part_string[part] = string;
    atomicAdd((ull *)&level.arc_hash[arc],
              (ull)element_hash(s, level.part_state[part], (float)cost, string));
  }
}

int wf__determinize_parts(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  int code = LAUNCH(arcs_begin_kernel, level->num_arcs, stream, *level);
  if (code == 0) code = LAUNCH(merge_kernel, level->num_items, stream, *s, *level);
  if (code == 0) code = LAUNCH(common_kernel, level->num_parts, stream, *s, *level);
  return code == 0 ? LAUNCH(residuals_kernel, level->num_parts, stream, *s, *level) : code;
}

/* --- subsets ----------------------------------------------------------------------------- */

__device__ static bool is_known(const wf__gpu_subsets &s, const wf__gpu_det_level &level, u64 arc,
                                u64 subset) {
  u64 begin = level.arc_part[arc], size = level.arc_part[arc + 1] - begin, at = s.off[subset];
  if (s.hash[subset] != level.arc_hash[arc] || s.off[subset + 1] - at != size) return false;
  for (u64 i = 0; i < size; i++)
    if (s.state[at + i] != level.part_state[begin + i] ||
        s.string[at + i] != level.part_string[begin + i] ||
        wf__cost_bin(s.inverse_delta, s.cost[at + i]) !=
            wf__cost_bin(s.inverse_delta, (float)level.part_cost[begin + i]))
      return false;
  return true;
}

__device__ static bool is_same(const wf__gpu_subsets &s, const wf__gpu_det_level &level, u64 arc,
                               u64 other) {
  u64 begin = level.arc_part[arc], size = level.arc_part[arc + 1] - begin,
      at = level.arc_part[other];
  if (arc == other) return true;
  if (level.arc_hash[other] != level.arc_hash[arc] || level.arc_part[other + 1] - at != size)
    return false;
  for (u64 i = 0; i < size; i++)
    if (level.part_state[at + i] != level.part_state[begin + i] ||
        level.part_string[at + i] != level.part_string[begin + i] ||
        wf__cost_bin(s.inverse_delta, (float)level.part_cost[at + i]) !=
            wf__cost_bin(s.inverse_delta, (float)level.part_cost[begin + i]))
      return false;
  return true;
}

/* Of the arcs that lead to equal new subsets, the smallest one represents the subset. atomicMin
 * keeps it in the slot for any order of threads. */
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
    level.arc_slot[arc] = slot;
  }
}

/* An arc's subset is new if the arc represents it. */
__global__ static void fresh_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(arc, level.num_arcs + 1) {
    if (arc == level.num_arcs) {
      level.fresh[arc] = 0;
      continue;
    }
    u32 is_new = s.slots[level.arc_slot[arc]] == (NEW | arc);
    level.is_new[arc] = is_new;
    level.fresh[arc] = is_new ? (level.arc_part[arc + 1] - level.arc_part[arc]) << 32 | 1 : 0;
  }
}

int wf__determinize_find(const wf__gpu_subsets *s, const wf__gpu_det_level *level, void *stream) {
  int code = LAUNCH(find_kernel, level->num_arcs, stream, *s, *level);
  return code == 0 ? LAUNCH(fresh_kernel, level->num_arcs + 1, stream, *s, *level) : code;
}

__global__ static void names_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level,
                                    u64 num_known, u64 elements) {
  FOR_ALL(arc, level.num_arcs) {
    if (!level.is_new[arc]) continue;
    u64 subset = num_known + (u32)level.fresh[arc];
    s.slots[level.arc_slot[arc]] = subset;
    s.hash[subset] = level.arc_hash[arc];
    s.off[subset + 1] = elements + (level.fresh[arc + 1] >> 32);
    if (s.num_of_fst == nullptr) continue;
    u64 p = fst_of(s.f, level.part_state[level.arc_part[arc]]);
    u32 count = atomicAdd(&s.num_of_fst[p], 1u) + 1;
    if (count > wf__determinize_limit(s.max_states, s.f.state_base[p + 1] - s.f.state_base[p]))
      atomicOr(s.trouble, (u32)WF__DET_MANY_STATES);
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

/* Writes the arcs, and the end of each subset's arcs. */
__global__ static void store_kernel(const wf__gpu_subsets s, const wf__gpu_det_level level) {
  FOR_ALL(i, level.num_items) {
    u64 key = level.sorted[i] >> level.state_bits,
        next = i + 1 < level.num_items ? level.sorted[i + 1] >> level.state_bits : ~(u64)0;
    if (key == next || is_never(level, level.sorted[i]))
      continue; /* only the last item of an arc writes it */
    u64 arc = (u32)level.ranks[i + 1] - 1;
    wf_arc made;
    made.ilabel = (int32_t)(key & (((u64)1 << level.label_bits) - 1));
    made.olabel = (int32_t)level.output[arc];
    made.weight = wf__cost_to_float(cost_of(level.total[arc]));
    made.nextstate = (u32)s.slots[level.arc_slot[arc]];
    s.arcs[level.first_arc + arc] = made;
    s.arc_owner[level.first_arc + arc] = (u32)(level.first_subset + (key >> level.label_bits));
  }
  FOR_ALL(k, level.num_subsets) {
    u64 low = 0, high = level.num_items; /* finds the first item of a later subset */
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (level.sorted[middle] >> (level.state_bits + level.label_bits) <= k)
        low = middle + 1;
      else
        high = middle;
    }
    s.arc_off[level.first_subset + k + 1] = level.first_arc + (u32)level.ranks[low];
  }
}

int wf__determinize_store(const wf__gpu_subsets *s, const wf__gpu_det_level *level, u64 num_known,
                          u64 elements, void *stream) {
  int code = LAUNCH(names_kernel, level->num_parts, stream, *s, *level, num_known, elements);
  return code == 0 ? LAUNCH(store_kernel, level->num_items + level->num_subsets, stream, *s, *level)
                   : code;
}
