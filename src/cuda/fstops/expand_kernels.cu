/* expand_kernels.cu - the kernels of C o LG (expand_kernels.h). The rules of histories are those of
 * graph/context.c. */
#include "cuda/device/grid.cuh"
#include "cuda/fstops/expand_kernels.h"
#include "math/hash.h"

#define NONE 0xffffffffu
#define NO_KEY (~(u64)0)

/* --- histories --------------------------------------------------------------------------- */

/* The phones to the left, then those that wait for their right context; 0: none. */
struct history {
  int32_t phones[WF__EXPAND_MAX_WIDTH];
  int num_pending;
};

__device__ static int num_waiting(const wf__gpu_expansion &e) { return e.width - e.central - 1; }

__device__ static history unpack(const wf__gpu_expansion &e, u64 key) {
  history h = {};
  const int size = e.width - 1;
  for (int i = size - 1; i >= 0; i--, key >>= e.bits)
    h.phones[i] = (int32_t)(key & (((u64)1 << e.bits) - 1));
  while (h.num_pending < num_waiting(e) && h.phones[e.central + h.num_pending] != 0)
    h.num_pending++;
  return h;
}

__device__ static u64 pack(const wf__gpu_expansion &e, const int32_t *phones, int count) {
  u64 key = 0;
  for (int i = 0; i < count; i++) key = key << e.bits | (u64)phones[i];
  return key;
}

__device__ static bool front_is_free(const wf__gpu_expansion &e, const history &h) {
  return h.num_pending != 0 && e.context_free[h.phones[e.central]];
}

/* Emits the front of the waiting phones, with `phone` as the next phone to the right, or 0. Returns
 * the window. */
__device__ static u64 emit_front(const wf__gpu_expansion &e, history &h, int32_t phone) {
  int32_t window[WF__EXPAND_MAX_WIDTH] = {}, *pending = h.phones + e.central;
  for (int i = 0; i < e.central + h.num_pending; i++) window[i] = h.phones[i];
  window[e.central + h.num_pending] = phone;
  for (int i = 0; i + 1 < e.central; i++) h.phones[i] = h.phones[i + 1];
  if (e.central != 0) h.phones[e.central - 1] = e.context_of[window[e.central]];
  if (num_waiting(e) != 0) {
    for (int i = 0; i + 1 < num_waiting(e); i++) pending[i] = pending[i + 1];
    pending[num_waiting(e) - 1] = 0;
    h.num_pending--;
    if (phone != 0) pending[h.num_pending++] = phone;
  }
  return pack(e, window, e.width);
}

/* Appends a phone. Returns the window that this completes; NO_KEY: none. */
__device__ static u64 shift(const wf__gpu_expansion &e, history &h, int32_t phone) {
  if (h.num_pending == num_waiting(e)) return emit_front(e, h, phone);
  h.phones[e.central + h.num_pending++] = phone;
  return NO_KEY;
}

/* --- items ------------------------------------------------------------------------------- */

/* Whether the state of LG is END, where utterances end. */
__device__ static bool is_end(const wf__gpu_expansion &e, u64 q) { return q == e.f.num_states; }

__device__ static u64 num_arcs_of(const wf__gpu_expansion &e, u64 q) {
  return is_end(e, q) ? 0 : e.f.off[q + 1] - e.f.off[q];
}

__device__ static float final_cost_of(const wf__gpu_expansion &e, u64 q) {
  return is_end(e, q) ? 0 : e.f.final_cost[q];
}

__device__ static u64 num_items_of(const wf__gpu_expansion &e, u64 key) {
  const u64 q = key >> e.history_bits;
  const history h = unpack(e, key);
  if (front_is_free(e, h)) return 1;
  return num_arcs_of(e, q) + (h.num_pending != 0 && final_cost_of(e, q) != INFINITY);
}

struct item {
  u64 window; /* NO_KEY: none */
  u64 to;     /* the key of the state */
  wf_arc arc; /* without nextstate; ilabel: for items without a window: 0, or -1 - k for #k */
};

/* The k-th item of a state. */
__device__ static item item_of(const wf__gpu_expansion &e, u64 key, u64 k) {
  u64 q = key >> e.history_bits;
  history h = unpack(e, key);
  item made = {NO_KEY, 0, {0, 0, 0, 0}};
  if (front_is_free(e, h)) {
    made.window = emit_front(e, h, 0);
  } else if (k < num_arcs_of(e, q)) {
    made.arc = e.f.arcs[e.f.off[q] + k];
    const int32_t phone = made.arc.ilabel;
    q = made.arc.nextstate;
    made.arc.ilabel = phone > e.num_phones ? -(phone - e.num_phones) : 0;
    if (phone != 0 && phone <= e.num_phones) made.window = shift(e, h, phone);
  } else {
    made.arc.weight = final_cost_of(e, q);
    made.window = emit_front(e, h, 0);
    q = e.f.num_states;
  }
  if (e.central != 0 && front_is_free(e, h)) h.phones[0] = 0;
  made.to = q << e.history_bits;
  if (!is_end(e, q) || h.num_pending != 0) made.to |= pack(e, h.phones, e.width - 1);
  return made;
}

/* The i-th item of the level. */
__device__ static item level_item(const wf__gpu_expansion &e, u64 i) {
  const u64 k = owner_of(e.item_off, e.num_level, i);
  return item_of(e, e.states.list[e.begin + k], i - e.item_off[k]);
}

__device__ static u64 slot_of(const wf__gpu_key_table &t, u64 key) {
  u64 slot = wf__mix64(key) & (t.num_slots - 1);
  while (t.keys[slot] != key) slot = (slot + 1) & (t.num_slots - 1);
  return slot;
}

__device__ static int32_t type_of(const wf__gpu_expansion &e, u64 window) {
  return e.types[e.windows.number[slot_of(e.windows, window)]];
}

__global__ static void check_kernel(const wf__gpu_expansion e, u32 *bad) {
  FOR_ALL(i, e.f.num_arcs) {
    if (e.f.arcs[i].ilabel > e.num_labels) *bad = 1;
  }
}

int wf__expand_check(const wf__gpu_expansion *e, u32 *bad, void *stream) {
  return LAUNCH(check_kernel, e->f.num_arcs, stream, *e, bad);
}

__global__ static void count_kernel(const wf__gpu_expansion e) {
  FOR_ALL(k, e.num_level + 1) {
    e.item_off[k] = k < e.num_level ? num_items_of(e, e.states.list[e.begin + k]) : 0;
  }
}

int wf__expand_count(const wf__gpu_expansion *e, void *stream) {
  return LAUNCH(count_kernel, e->num_level + 1, stream, *e);
}

__global__ static void windows_kernel(const wf__gpu_expansion e) {
  FOR_ALL(i, e.num_items) e.item_key[i] = level_item(e, i).window;
}

int wf__expand_windows(const wf__gpu_expansion *e, void *stream) {
  return LAUNCH(windows_kernel, e->num_items, stream, *e);
}

__global__ static void states_kernel(const wf__gpu_expansion e) {
  FOR_ALL(i, e.num_items) {
    const item made = level_item(e, i);
    const bool dropped = made.window != NO_KEY && type_of(e, made.window) == 0;
    e.item_key[i] = dropped ? NO_KEY : made.to;
  }
}

int wf__expand_states(const wf__gpu_expansion *e, void *stream) {
  return LAUNCH(states_kernel, e->num_items, stream, *e);
}

/* --- tables of keys ---------------------------------------------------------------------- */

/* The table has at least twice as many slots as it can get keys. */
__device__ static u64 insert(const wf__gpu_key_table &t, u64 key) {
  u64 slot = wf__mix64(key) & (t.num_slots - 1);
  for (;; slot = (slot + 1) & (t.num_slots - 1)) {
    u64 there = __ldcg(&t.keys[slot]);
    if (there == NO_KEY) there = atomicCAS((ull *)&t.keys[slot], (ull)NO_KEY, (ull)key);
    if (there == NO_KEY || there == key) return slot;
  }
}

__global__ static void refill_kernel(const wf__gpu_key_table t) {
  FOR_ALL(k, t.count) t.number[insert(t, t.list[k])] = (u32)k;
}

int wf__expand_refill(const wf__gpu_key_table *t, void *stream) {
  return LAUNCH(refill_kernel, t->count, stream, *t);
}

__global__ static void insert_kernel(const wf__gpu_expansion e, const wf__gpu_key_table t) {
  FOR_ALL(i, e.num_items) {
    if (e.item_key[i] == NO_KEY) continue;
    const u64 slot = insert(t, e.item_key[i]);
    e.item_slot[i] = (u32)slot;
    if (t.number[slot] == NONE && i < __ldcg(&t.first[slot])) atomicMin(&t.first[slot], (u32)i);
  }
}

int wf__expand_insert(const wf__gpu_expansion *e, const wf__gpu_key_table *t, void *stream) {
  return LAUNCH(insert_kernel, e->num_items, stream, *e, *t);
}

__global__ static void mark_kernel(const wf__gpu_expansion e, const wf__gpu_key_table t) {
  FOR_ALL(i, e.num_items + 1) {
    const bool has_key = i < e.num_items && e.item_key[i] != NO_KEY;
    e.flags[i] = has_key && t.number[e.item_slot[i]] == NONE && t.first[e.item_slot[i]] == (u32)i;
  }
}

int wf__expand_mark(const wf__gpu_expansion *e, const wf__gpu_key_table *t, void *stream) {
  return LAUNCH(mark_kernel, e->num_items + 1, stream, *e, *t);
}

__global__ static void number_kernel(const wf__gpu_expansion e, const wf__gpu_key_table t) {
  FOR_ALL(i, e.num_items) {
    if (e.flags[i] == 0) continue;
    t.list[t.count + e.ranks[i]] = e.item_key[i];
    t.number[e.item_slot[i]] = (u32)t.count + e.ranks[i];
  }
}

int wf__expand_number(const wf__gpu_expansion *e, const wf__gpu_key_table *t, void *stream) {
  return LAUNCH(number_kernel, e->num_items, stream, *e, *t);
}

/* --- the result -------------------------------------------------------------------------- */

__global__ static void kept_kernel(const wf__gpu_expansion e) {
  FOR_ALL(i, e.num_items + 1) e.flags[i] = i < e.num_items && e.item_key[i] != NO_KEY;
}

int wf__expand_kept(const wf__gpu_expansion *e, void *stream) {
  return LAUNCH(kept_kernel, e->num_items + 1, stream, *e);
}

__global__ static void write_kernel(const wf__gpu_expansion e, u64 *off, wf_arc *arcs,
                                    float *final_cost) {
  FOR_ALL(i, e.num_items) {
    if (e.flags[i] == 0) continue;
    const item made = level_item(e, i);
    wf_arc arc = made.arc;
    if (made.window != NO_KEY)
      arc.ilabel = type_of(e, made.window);
    else if (arc.ilabel < 0)
      arc.ilabel = e.num_types - arc.ilabel;
    arc.nextstate = e.states.number[slot_of(e.states, made.to)];
    arcs[e.ranks[i]] = arc;
  }
  FOR_ALL(k, e.num_level + 1) {
    off[k] = e.ranks[e.item_off[k]];
    if (k == e.num_level) continue;
    const u64 key = e.states.list[k];
    final_cost[k] =
        unpack(e, key).num_pending != 0 ? INFINITY : final_cost_of(e, key >> e.history_bits);
  }
}

int wf__expand_write(const wf__gpu_expansion *e, u64 *off, wf_arc *arcs, float *final_cost,
                     void *stream) {
  return LAUNCH(write_kernel, e->num_items + e->num_level, stream, *e, off, arcs, final_cost);
}
