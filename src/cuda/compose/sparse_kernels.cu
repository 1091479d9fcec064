/* sparse_kernels.cu - the kernels of composition by pairs of states (sparse_kernels.h): a hash
 * table of pairs, breadth-first levels, and arcs in canonical order.
 *
 * A pair's number is the rank of its key among all keys, so it does not depend on which thread
 * finds the pair first. */
#include "cuda/compose/sparse_kernels.h"
#include "cuda/device/grid.cuh"
#include "fstops/compose_filter.h"

#define FREE_SLOT (~(u64)0)
#define NO_ARC 0xffffffffu

/* --- an input in device memory ----------------------------------------------------------- */

__global__ static void look_at_b_kernel(u64 num_states, u64 num_arcs, const u64 *off,
                                        const wf_arc *arcs, const float *final_cost,
                                        int32_t *labels, u64 *tail, uint8_t *kind, u32 *flags) {
  FOR_ALL(i, num_arcs) {
    labels[i] = arcs[i].ilabel;
    if (labels[i] == 0) flags[1] = 1;
  }
  FOR_ALL(s, num_states) {
    u64 begin = off[s], end = off[s + 1], first = begin;
    while (first < end && arcs[first].ilabel == 0) first++;
    tail[s] = first;
    kind[s] = (uint8_t)wf__epsilons_of(end - begin, first - begin, final_cost[s] != INFINITY);
  }
}

/* A warp reads the arcs of a state one after another, so that a state with many is no delay. */
__global__ static void unsorted_kernel(u64 num_states, const u64 *off, const wf_arc *arcs,
                                       u32 *flags) {
  for (u64 s = this_thread() / LANES; s < num_states; s += num_threads() / LANES)
    for (u64 i = off[s] + 1 + this_lane(); i < off[s + 1]; i += LANES)
      if (arcs[i].ilabel < arcs[i - 1].ilabel) flags[0] = 1;
}

int wf__sparse_look_at_b(u64 num_states, u64 num_arcs, const u64 *off, const wf_arc *arcs,
                         const float *final_cost, int32_t *labels, u64 *tail, uint8_t *kind,
                         u32 *flags, void *stream) {
  int code = LAUNCH(look_at_b_kernel, num_arcs + num_states, stream, num_states, num_arcs, off,
                    arcs, final_cost, labels, tail, kind, flags);
  return code == 0
             ? LAUNCH(unsorted_kernel, num_states * LANES, stream, num_states, off, arcs, flags)
             : code;
}

/* --- the table --------------------------------------------------------------------------- */

__device__ static u64 slot_of(const wf__sparse_table &t, u64 key) {
  u64 slot = wf__mix64(key) & (t.num_slots - 1);
  while (t.keys[slot] != key) slot = (slot + 1) & (t.num_slots - 1);
  return slot;
}

/* Inserts a key; false if it was there already. The list is at most half as long as the table, and
 * no thread inserts once it is full, so the table always keeps free slots: each running thread uses
 * at most one more. */
__device__ static bool insert(const wf__sparse_table &t, u64 key) {
  u64 slot = wf__mix64(key) & (t.num_slots - 1);
  for (;; slot = (slot + 1) & (t.num_slots - 1)) {
    u64 there = __ldcg(&t.keys[slot]);
    if (there == FREE_SLOT) there = atomicCAS((ull *)&t.keys[slot], (ull)FREE_SLOT, (ull)key);
    if (there == FREE_SLOT) return true;
    if (there == key) return false;
  }
}

__device__ static void find_pair(const wf__sparse_table &t, u64 key) {
  if (__ldcg(&t.progress->full) != 0 || !insert(t, key)) return;
  u64 at = atomicAdd((ull *)&t.progress->count, 1ull);
  if (at < t.room)
    t.list[at] = key;
  else
    t.progress->full = 1;
}

__global__ static void refill_kernel(const wf__sparse_table t, u64 count) {
  FOR_ALL(i, count) insert(t, t.list[i]);
}

int wf__sparse_refill(const wf__sparse_table *t, u64 count, void *stream) {
  return LAUNCH(refill_kernel, count, stream, *t, count);
}

/* --- items ------------------------------------------------------------------------------- */

/* The links and arcs of a pair. Links link .. label_link have no label or epsilon, those from
 * label_link on have labels. B's arcs are split in the same way. */
struct pair_arcs {
  u64 row;
  u32 b;
  u64 link, label_link, link_end, arc, label_arc, arc_end;

  __device__ bool by_links() const { return link_end - label_link <= arc_end - label_arc; }
  __device__ u64 num_items() const {
    return label_link - link + (by_links() ? link_end - label_link : arc_end - label_arc);
  }
};

__device__ static pair_arcs arcs_of(const wf__sparse_inputs &in, u64 key) {
  u64 row = key / in.num_b;
  u32 b = (u32)(key % in.num_b);
  return {row,
          b,
          in.link_begin[row],
          in.link_tail[row],
          in.link_end[row],
          in.b_off[b],
          in.b_tail[b],
          in.b_off[b + 1]};
}

__global__ static void items_kernel(const wf__sparse_inputs in, const u64 *keys, u64 count,
                                    u64 *items) {
  FOR_ALL(i, count + 1) items[i] = i < count ? arcs_of(in, keys[i]).num_items() : 0;
}

int wf__sparse_items(const wf__sparse_inputs *in, const u64 *keys, u64 count, u64 *items,
                     void *stream) {
  return LAUNCH(items_kernel, count + 1, stream, *in, keys, count, items);
}

/* The first arc in [low, high) whose label is not below `label`. */
__device__ static u64 first_arc(const int32_t *labels, u64 low, u64 high, int64_t label) {
  while (low < high) {
    u64 middle = (low + high) / 2;
    if (labels[middle] < label)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__device__ static u64 first_link(const wf__sparse_link *links, u64 low, u64 high, u32 kind) {
  while (low < high) {
    u64 middle = (low + high) / 2;
    if (links[middle].kind < kind)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The arcs that an item stands for: links from `link` on with B's arcs from `arc` on, where at
 * least one count is at most 1; or one link alone. */
struct item {
  u64 link, num_links, arc, num_arcs;
  bool alone; /* B stays in its state */
  __device__ u64 count() const { return num_links * num_arcs; }
};

__device__ static item item_of(const wf__sparse_inputs &in, const pair_arcs &p, u64 k) {
  item it = {p.link + k, 1, p.arc, 1, false};
  if (k < p.label_link - p.link) {
    u32 kind = in.links[it.link].kind;
    it.alone = kind < WF__SPARSE_LABEL;
    if (!it.alone)
      it.num_arcs = p.label_arc - p.arc;
    else if (kind != WF__SPARSE_STAY && kind - WF__SPARSE_STAY_IF != in.b_kind[p.b])
      it.num_links = 0;
    return it;
  }
  if (p.by_links()) {
    int64_t label = (int64_t)in.links[it.link].kind - WF__SPARSE_LABEL;
    it.arc = first_arc(in.b_labels, p.label_arc, p.arc_end, label);
    it.num_arcs = first_arc(in.b_labels, it.arc, p.arc_end, label + 1) - it.arc;
    return it;
  }
  it.arc = p.label_arc + (k - (p.label_link - p.link));
  u32 kind = (u32)in.b_labels[it.arc] + WF__SPARSE_LABEL;
  it.link = first_link(in.links, p.label_link, p.link_end, kind);
  it.num_links = first_link(in.links, it.link, p.link_end, kind + 1) - it.link;
  return it;
}

/* The key of the pair that an arc of an item leads to. */
__device__ static u64 target_of(const wf__sparse_inputs &in, const pair_arcs &p, const item &it,
                                u64 link, u64 arc) {
  return (u64)in.links[link].row * in.num_b + (it.alone ? p.b : in.b_arcs[arc].nextstate);
}

/* Finds the pairs that an item leads to. */
__device__ static void expand_item(const wf__sparse_inputs &in, const wf__sparse_table &t,
                                   const pair_arcs &p, u64 k) {
  item it = item_of(in, p, k);
  for (u64 x = 0; x < it.num_links; x++)
    for (u64 y = 0; y < it.num_arcs; y++)
      find_pair(t, target_of(in, p, it, it.link + x, it.arc + y));
}

__global__ static void expand_kernel(const wf__sparse_inputs in, const wf__sparse_table t,
                                     const u64 *keys, u64 count, const u64 *item_off) {
  FOR_ALL(i, item_off[count]) {
    u64 owner = owner_of(item_off, count, i);
    expand_item(in, t, arcs_of(in, keys[owner]), i - item_off[owner]);
  }
}

int wf__sparse_expand(const wf__sparse_inputs *in, const wf__sparse_table *t, const u64 *keys,
                      u64 count, const u64 *item_off, void *stream) {
  return LAUNCH(expand_kernel, count * 4, stream, *in, *t, keys, count, item_off);
}

/* Runs with one block: a warp for each pair, a lane for each item. */
__global__ static void walk_kernel(const wf__sparse_inputs in, const wf__sparse_table t,
                                   u64 first) {
  WF__SHARED(u64, end);
  WF__SHARED(u32, stop);
  WF__SHARED(u32, heavy);
  for (u64 level = 0;; level++) {
    if (this_thread() == 0) {
      end = __ldcg(&t.progress->count);
      stop = end == first || end - first > WF__SPARSE_SLIM_PAIRS ||
             __ldcg(&t.progress->full) != 0; /* full: the previous level is not complete */
      heavy = 0;
      if (__ldcg(&t.progress->full) == 0) {
        t.progress->first = first;
        t.progress->num_levels = level;
      }
    }
    __syncthreads();
    if (stop != 0) return;
    for (u64 i = first + this_thread(); i < end; i += num_threads())
      if (arcs_of(in, __ldcg(&t.list[i])).num_items() > WF__SPARSE_SLIM_ITEMS)
        atomicExch(&heavy, 1u);
    __syncthreads();
    if (heavy != 0) return;
    for (u64 i = first + this_thread() / LANES; i < end; i += num_threads() / LANES) {
      const pair_arcs p = arcs_of(in, __ldcg(&t.list[i]));
      for (u64 k = this_lane(); k < p.num_items(); k += LANES) expand_item(in, t, p, k);
    }
    first = end;
    __syncthreads();
  }
}

int wf__sparse_walk(const wf__sparse_inputs *in, const wf__sparse_table *t, u64 first,
                    void *stream) {
  return LAUNCH(walk_kernel, 1, stream, *in, *t, first);
}

/* --- the result -------------------------------------------------------------------------- */

__global__ static void rank_kernel(const wf__sparse_table t, const u64 *keys, u64 first, u64 count,
                                   u32 *ranks) {
  FOR_ALL(i, count - first) ranks[slot_of(t, keys[first + i])] = (u32)(first + i);
}

int wf__sparse_rank(const wf__sparse_table *t, const u64 *keys, u64 first, u64 count, u32 *ranks,
                    void *stream) {
  return LAUNCH(rank_kernel, count - first, stream, *t, keys, first, count, ranks);
}

__global__ static void start_kernel(const wf__sparse_table t, const u32 *ranks, u64 key,
                                    int64_t *start) {
  if (this_thread() == 0) *start = (int64_t)ranks[slot_of(t, key)];
}

int wf__sparse_start(const wf__sparse_table *t, const u32 *ranks, u64 key, int64_t *start,
                     void *stream) {
  return LAUNCH(start_kernel, 1, stream, *t, ranks, key, start);
}

__global__ static void count_kernel(const wf__sparse_inputs in, const u64 *keys, u64 count,
                                    const u64 *item_off, u64 num_items, u64 *arcs) {
  FOR_ALL(i, num_items + 1) {
    if (i == num_items) {
      arcs[i] = 0;
      continue;
    }
    u64 owner = owner_of(item_off, count, i);
    arcs[i] = item_of(in, arcs_of(in, keys[owner]), i - item_off[owner]).count();
  }
}

int wf__sparse_count(const wf__sparse_inputs *in, const u64 *keys, u64 count, const u64 *item_off,
                     u64 num_items, u64 *arcs, void *stream) {
  return LAUNCH(count_kernel, num_items + 1, stream, *in, keys, count, item_off, num_items, arcs);
}

struct sparse_result {
  const u32 *ranks;
  u64 *off;
  wf_arc *arcs;
  float *final_cost;
  wf_arc_origin *origins;
};

__device__ static void put_arc(const wf__sparse_inputs &in, const wf__sparse_table &t,
                               const sparse_result &r, const pair_arcs &p, const item &it, u64 link,
                               u64 arc, u64 at) {
  u32 a = in.links[link].arc;
  wf_arc x = {0, 0, 0, 0}, y = {0, 0, 0, 0};
  if (a != NO_ARC) x = in.a_arcs[a];
  if (!it.alone) y = in.b_arcs[arc];
  wf_arc made = {r.ranks[slot_of(t, target_of(in, p, it, link, arc))],
                 a == NO_ARC ? y.weight
                 : it.alone  ? x.weight
                             : x.weight + y.weight,
                 x.ilabel, y.olabel};
  r.arcs[at] = made;
  if (r.origins == nullptr) return;
  r.origins[at].a = a != NO_ARC && in.a_place != nullptr ? in.a_place[a] : a;
  r.origins[at].b = it.alone ? NO_ARC : in.b_place != nullptr ? in.b_place[arc] : (u32)arc;
}

/* Canonical order is by links, then by B's arcs. Items for B's arcs with the same label are
 * contiguous and share a block of the result. Each item writes one column of this block. */
__global__ static void fill_kernel(const wf__sparse_inputs in, const wf__sparse_table t,
                                   const u64 *keys, u64 count, const u64 *item_off, u64 num_items,
                                   const u64 *place, const sparse_result r) {
  FOR_ALL(s, count) {
    u64 row = keys[s] / in.num_b;
    r.off[s] = place[item_off[s]];
    r.final_cost[s] = in.a_final[row / in.num_filters] + in.b_final[keys[s] % in.num_b];
    if (s + 1 == count) r.off[count] = place[num_items];
  }
  FOR_ALL(i, num_items) {
    u64 owner = owner_of(item_off, count, i);
    pair_arcs p = arcs_of(in, keys[owner]);
    item it = item_of(in, p, i - item_off[owner]);
    if (it.num_links <= 1) {
      for (u64 y = 0; y < it.count(); y++)
        put_arc(in, t, r, p, it, it.link, it.arc + y, place[i] + y);
      continue;
    }
    int64_t label = in.b_labels[it.arc];
    u64 first = first_arc(in.b_labels, p.label_arc, it.arc, label),
        width = first_arc(in.b_labels, it.arc, p.arc_end, label + 1) - first,
        column = it.arc - first;
    u64 block = place[i] - column * it.num_links;
    for (u64 x = 0; x < it.num_links; x++)
      put_arc(in, t, r, p, it, it.link + x, it.arc, block + x * width + column);
  }
}

int wf__sparse_fill(const wf__sparse_inputs *in, const wf__sparse_table *t, const u64 *keys,
                    u64 count, const u64 *item_off, u64 num_items, const u64 *place,
                    const u32 *ranks, u64 *off, wf_arc *out, float *final_cost,
                    wf_arc_origin *origins, void *stream) {
  sparse_result r = {ranks, off, out, final_cost, origins};
  return LAUNCH(fill_kernel, num_items > count ? num_items : count, stream, *in, *t, keys, count,
                item_off, num_items, place, r);
}
