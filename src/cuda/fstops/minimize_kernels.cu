/* minimize_kernels.cu - the kernels of minimization (minimize_kernels.h). */
#include "cuda/fstops/batch_states.cuh"
#include "cuda/fstops/minimize_kernels.h"
#include "math/cost.h"
#include "math/hash.h"

/* The bits of a name, and the most rounds for distances and for names. Tests use smaller values, so
 * that names collide and rounds run out. */
#ifndef WF__MIN_NAME_BITS
#define WF__MIN_NAME_BITS 64
#define WF__MIN_FALLS (1 << 14)
#define WF__MIN_ROUNDS 10000
#endif

enum {
  MOST_FALLS = WF__MIN_FALLS,
  MOST_ROUNDS = WF__MIN_ROUNDS,
  MOST_UNORDERED = 1024 /* most arcs of a state that are compared with each other */
};

__device__ static void grid_sync() { cooperative_groups::this_grid().sync(); }
#define LAUNCH_TOGETHER(kernel, count, stream, ...)                                          \
  (int)launch_together(kernel, blocks_for(count), false, THREADS, 0, (cudaStream_t)(stream), \
                       __VA_ARGS__)

/* --- costs ------------------------------------------------------------------------------- */

/* Relaxes distances in place: a state may read old or new values of other states. The result does
 * not depend on that: it is the least of the sums along paths, each summed from the end. */
struct fall_work {
  wf__gpu_fsts f;
  double *distance;
  bool *fell;

  __device__ u64 size(u32 s) const { return f.off[s + 1] - f.off[s]; }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    double before = __ldcg(&distance[s]), best = before;
    for (u64 i = f.off[s] + first; i < f.off[s + 1]; i += stride) {
      wf_arc arc = f.arcs[i];
      double cost = (double)arc.weight + __ldcg(&distance[arc.nextstate]);
      if (cost < best) best = cost;
    }
    for (u32 d = stride / 2; d > 0; d /= 2) {
      double other = __shfl_xor_sync(ALL_LANES, best, d);
      if (other < best) best = other;
    }
    if (first != 0 || !(best < before)) return;
    distance[s] = best;
    *fell = true;
  }
};

__global__ static void distances_kernel(const wf__gpu_minimization m) {
  FOR_ALL(s, m.f.num_states) m.distance[s] = (double)m.f.final_cost[s] + 0.0; /* -0 becomes 0 */
  grid_sync();
  for (u32 round = 0;; round++) {
    u32 *any = &m.counts[WF__MIN_FELL + round % 3];
    bool fell = false;
    fall_work work = {m.f, m.distance, &fell};
    if (this_thread() == 0) m.counts[WF__MIN_FELL + (round + 1) % 3] = 0;
    for_states(nullptr, 0, m.f.num_states, work);
    if (fell) *any = 1;
    grid_sync();
    if (__ldcg(any) == 0) break;
    if (round < MOST_FALLS) continue;
    if (this_thread() == 0) m.counts[WF__MIN_TROUBLE] = WF__MIN_DIVERGED;
    break;
  }
}

int wf__minimize_distances(const wf__gpu_minimization *m, void *stream) {
  return LAUNCH_TOGETHER(distances_kernel, m->f.num_states, stream, *m);
}

struct push_work {
  wf__gpu_minimization m;

  __device__ u64 size(u32 s) const { return m.f.off[s + 1] - m.f.off[s]; }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    const u64 begin = m.f.off[s];
    double here = m.push ? m.distance[s] : (double)INFINITY;
    bool sorted = true;
    for (u64 i = begin + first; i < m.f.off[s + 1]; i += stride) {
      wf_arc arc = m.f.arcs[i];
      double there = here != INFINITY ? m.distance[arc.nextstate] : here;
      sorted = sorted && (i == begin || m.f.arcs[i - 1].ilabel < arc.ilabel);
      if (there != INFINITY) arc.weight = wf__cost_to_float((double)arc.weight + there - here);
      m.arcs[i] = arc;
    }
    if (!sorted) m.unsorted[s] = m.counts[WF__MIN_UNSORTED] = 1;
    if (first != 0) return;
    float cost = m.f.final_cost[s];
    m.final_cost[s] =
        here != INFINITY && cost != INFINITY ? wf__cost_to_float((double)cost - here) : cost;
  }
};

__global__ static void push_kernel(const wf__gpu_minimization m) {
  push_work work = {m};
  for_states(nullptr, 0, m.f.num_states, work);
}

int wf__minimize_push(const wf__gpu_minimization *m, void *stream) {
  return LAUNCH(push_kernel, m->f.num_states, stream, *m);
}

/* --- determinism ------------------------------------------------------------------------- */

struct key {
  u64 labels;
  u32 bin;
};
__device__ static key key_of(const wf__gpu_minimization &m, const wf_arc &arc) {
  key k = {(u64)(u32)arc.ilabel << 32 | (u32)arc.olabel, wf__cost_bin(m.inverse_delta, arc.weight)};
  return k;
}
__device__ static bool same_key(const key &a, const key &b) {
  return a.labels == b.labels && a.bin == b.bin;
}

/* Inserts the arcs of unsorted states into a hash table, as arc + 1. An arc is repeated if the
 * table already has an arc of the same state with the same key. */
struct determinism_work {
  wf__gpu_minimization m;
  u32 *slots;
  u64 mask;

  __device__ u64 size(u32 s) const { return m.unsorted[s] ? m.f.off[s + 1] - m.f.off[s] : 0; }
  __device__ key key_at(u64 arc) const {
    key k = key_of(m, m.arcs[arc]);
    if (m.push) k.bin = 0;
    return k;
  }
  __device__ bool is_repeated(u64 begin, u64 end, u64 arc) const {
    key mine = key_at(arc);
    for (u64 slot =
             wf__mix64(wf__mix64(mine.labels) + begin * 0x9e3779b97f4a7c15ULL + mine.bin) & mask;
         ; slot = (slot + 1) & mask) {
      u32 have = __ldcg(&slots[slot]);
      if (have == 0) have = atomicCAS(&slots[slot], 0u, (u32)arc + 1);
      if (have == 0) return false;
      if (have > begin && have <= end && same_key(mine, key_at(have - 1))) return true;
    }
  }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    const u64 begin = m.f.off[s], end = begin + size(s);
    for (u64 i = begin + first; i < end; i += stride)
      if (is_repeated(begin, end, i)) m.counts[WF__MIN_TROUBLE] = WF__MIN_REPEATED;
  }
};

__global__ static void determinism_kernel(const wf__gpu_minimization m, u32 *slots, u64 num_slots) {
  determinism_work work = {m, slots, num_slots - 1};
  for_states(nullptr, 0, m.f.num_states, work);
}

int wf__minimize_determinism(const wf__gpu_minimization *m, u32 *slots, u64 num_slots,
                             void *stream) {
  return LAUNCH(determinism_kernel, m->f.num_states, stream, *m, slots, num_slots);
}

/* --- names ------------------------------------------------------------------------------- */

/* The initial key of a state: its fst and the bin of its final cost. */
__device__ static u64 kind_of(const wf__gpu_minimization &m, u32 s) {
  float cost = m.final_cost[s];
  return (fst_of(m.f, s) + 1) << 33 |
         (cost == INFINITY ? 0 : (u64)1 << 32 | wf__cost_bin(m.inverse_delta, cost));
}

struct name_work {
  wf__gpu_minimization m;
  u32 round, *claimed;

  __device__ u64 size(u32 s) const { return m.f.off[s + 1] - m.f.off[s]; }
  __device__ u64 before(u32 s) const {
    return round == 0 ? wf__mix64(kind_of(m, s)) : __ldcg(&m.name[(round + 1) & 1][s]);
  }
  /* Finds or inserts a name and returns its slot. Notes whether more than one state has it. */
  __device__ u32 put(u64 name) const {
    u64 *names = m.names[round & 1], mask = m.num_slots - 1, slot = name & mask;
    for (;; slot = (slot + 1) & mask) {
      u64 have = __ldcg(&names[slot]);
      if (have == 0) have = atomicCAS((ull *)&names[slot], (ull)0, (ull)name);
      if (have == 0)
        ++*claimed;
      else if (have != name)
        continue;
      else if (__ldcg(&m.shared[round & 1][slot]) == 0)
        m.shared[round & 1][slot] = 1;
      return (u32)slot;
    }
  }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    u64 sum = 0;
    for (u64 i = m.f.off[s] + first; i < m.f.off[s + 1]; i += stride) {
      wf_arc arc = m.arcs[i];
      key k = key_of(m, arc);
      sum += wf__mix64(wf__mix64(k.labels) + k.bin * 0x94d049bb133111ebULL +
                       before(arc.nextstate) * 0xbf58476d1ce4e5b9ULL);
    }
    for (u32 d = stride / 2; d > 0; d /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, d);
    if (first != 0) return;
    u64 name = wf__mix64(sum + before(s) * 0x9e3779b97f4a7c15ULL) >> (64 - WF__MIN_NAME_BITS);
    if (name == 0) name = 1;
    m.name[round & 1][s] = name;
    m.slot[round & 1][s] = put(name);
  }
};

/* The states that shared their names before a round; NULL: all states. */
__device__ static const u32 *list_of(const wf__gpu_minimization &m, u32 round) {
  return round == 0 ? nullptr : m.list[round & 1];
}
__device__ static u32 state_at(const u32 *list, u64 k) {
  return list == nullptr ? (u32)k : __ldcg(&list[k]);
}

/* Frees the slots of a round. */
__device__ static void clear_names(const wf__gpu_minimization &m, u32 round, u64 count) {
  const u32 *list = list_of(m, round);
  FOR_ALL(k, count) {
    u32 slot = __ldcg(&m.slot[round & 1][state_at(list, k)]);
    m.names[round & 1][slot] = 0;
    m.shared[round & 1][slot] = 0;
  }
}

/* Lists the states that still share their names for the next round. The others keep their names. */
__device__ static void list_shared(const wf__gpu_minimization &m, u32 round, u64 count,
                                   u32 *next_count) {
  const u32 *list = list_of(m, round);
  u32 *next = m.list[(round + 1) & 1];
  for (u64 base = this_thread() / LANES * LANES; base < count; base += num_threads()) {
    u64 k = base + this_lane();
    u32 s = k < count ? state_at(list, k) : 0;
    bool shares = k < count && __ldcg(&m.shared[round & 1][__ldcg(&m.slot[round & 1][s])]) != 0;
    u32 mask = __ballot_sync(ALL_LANES, shares), at = 0;
    if (mask != 0 && this_lane() == 0) at = atomicAdd(next_count, (u32)__popc(mask));
    at = __shfl_sync(ALL_LANES, at, 0);
    if (shares)
      next[at + (u32)__popc(mask & ((1u << this_lane()) - 1))] = s;
    else if (k < count)
      m.name[(round + 1) & 1][s] = __ldcg(&m.name[round & 1][s]);
  }
}

/* Runs rounds until one splits no class. Returns the number of the last round, whose names are
 * still in their slots. *count: the states that shared their names before it. */
__device__ static u32 part(const wf__gpu_minimization &m, u64 *count) {
  u64 before = 0, num_classes = 0, last_count = 0;
  u32 *const listed = &m.counts[WF__MIN_LISTED], *const claims = &m.counts[WF__MIN_CLAIMED];
  *count = m.f.num_states;
  for (u32 round = 0;; round++) {
    u32 claimed = 0;
    name_work work = {m, round, &claimed};
    if (round > 0) clear_names(m, round - 1, last_count);
    if (this_thread() == 0) listed[(round + 1) % 3] = claims[(round + 1) % 3] = 0;
    for_states(list_of(m, round), 0, *count, work);
    for (u32 d = LANES / 2; d > 0; d /= 2) claimed += __shfl_xor_sync(ALL_LANES, claimed, d);
    if (claimed != 0 && this_lane() == 0) atomicAdd(&claims[round % 3], claimed);
    grid_sync();
    num_classes = m.f.num_states - *count + __ldcg(&claims[round % 3]);
    if (num_classes == before || round == MOST_ROUNDS) return round;
    before = num_classes;
    list_shared(m, round, *count, &listed[(round + 1) % 3]);
    grid_sync();
    last_count = *count;
    *count = __ldcg(&listed[(round + 1) % 3]);
  }
}

/* --- the exact check --------------------------------------------------------------------- */

/* Checks that a state has the same arcs as the first state of its class, in any order. */
struct check_work {
  wf__gpu_minimization m;

  __device__ u64 size(u32 s) const { return m.f.off[s + 1] - m.f.off[s]; }
  __device__ bool same_arc(u64 a, u64 b) const {
    wf_arc x = m.arcs[a], y = m.arcs[b];
    return same_key(key_of(m, x), key_of(m, y)) &&
           __ldcg(&m.first_of[x.nextstate]) == __ldcg(&m.first_of[y.nextstate]);
  }
  __device__ u64 num_like(u64 arc, u32 s) const {
    u64 count = 0;
    for (u64 i = m.f.off[s]; i < m.f.off[s + 1]; i++) count += same_arc(arc, i);
    return count;
  }
  __device__ bool agrees(u32 s, u32 other, u64 i, u64 count) const {
    const u64 arc = m.f.off[s] + i;
    return same_arc(arc, m.f.off[other] + i) ||
           (count <= MOST_UNORDERED && num_like(arc, s) == num_like(arc, other));
  }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    const u32 other = __ldcg(&m.first_of[s]);
    const u64 count = size(s);
    bool same = count == size(other) && kind_of(m, s) == kind_of(m, other);
    for (u64 i = first; same && i < count; i += stride) same = agrees(s, other, i, count);
    if (!same) m.counts[WF__MIN_TROUBLE] = WF__MIN_DIFFERENT;
  }
};

__global__ static void classes_kernel(const wf__gpu_minimization m) {
  FOR_ALL(s, m.f.num_states) m.first_of[s] = (u32)s;
  u64 count;
  const u32 round = part(m, &count), *list = list_of(m, round), *slot = m.slot[round & 1];
  u32 *last = m.shared[(round + 1) & 1]; /* reused, now free: for each class, the greatest
                                            complement of its states, i.e. its first state */
  if (round == MOST_ROUNDS) {
    if (this_thread() == 0) m.counts[WF__MIN_TROUBLE] = WF__MIN_MANY_ROUNDS;
    return;
  }
  FOR_ALL(k, count) atomicMax(&last[__ldcg(&slot[state_at(list, k)])], ~state_at(list, k));
  grid_sync();
  FOR_ALL(k, count)
  m.first_of[state_at(list, k)] = ~__ldcg(&last[__ldcg(&slot[state_at(list, k)])]);
  grid_sync();
  check_work work = {m};
  for_states(list, 0, count, work);
}

int wf__minimize_classes(const wf__gpu_minimization *m, void *stream) {
  return LAUNCH_TOGETHER(classes_kernel, m->f.num_states, stream, *m);
}

/* --- the quotient ------------------------------------------------------------------------ */

__global__ static void sizes_kernel(const wf__gpu_minimization m) {
  FOR_ALL(s, m.f.num_states + 1)
  m.place[s] =
      s < m.f.num_states && m.first_of[s] == s ? (u64)1 << 32 | (m.f.off[s + 1] - m.f.off[s]) : 0;
}

int wf__minimize_sizes(const wf__gpu_minimization *m, void *stream) {
  return LAUNCH(sizes_kernel, m->f.num_states + 1, stream, *m);
}

struct write_work {
  wf__gpu_minimization m;
  u64 *off;
  float *final_cost;
  wf_arc *arcs;

  __device__ u64 size(u32 s) const { return m.first_of[s] == s ? m.f.off[s + 1] - m.f.off[s] : 0; }
  __device__ u32 number(u64 s) const { return (u32)(m.place[m.first_of[s]] >> 32); }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    if (m.first_of[s] != s) return;
    const u64 p = fst_of(m.f, s), to = (u32)m.place[s], count = size(s);
    const u32 start = number((u64)m.f.start[p]);
    bool enters = false;
    for (u64 i = first; i < count; i += stride) {
      wf_arc arc = m.arcs[m.f.off[s] + i];
      arc.nextstate = number(arc.nextstate);
      enters = enters || arc.nextstate == start;
      arcs[to + i] = arc;
    }
    if (enters) m.entered[p] = 1;
    if (first != 0) return;
    off[number(s)] = to;
    final_cost[number(s)] = m.final_cost[s];
  }
};

__global__ static void write_kernel(const write_work work, u64 *state_base, int64_t *start) {
  const wf__gpu_minimization &m = work.m;
  for_states(nullptr, 0, m.f.num_states, work);
  if (this_thread() == 0) work.off[m.place[m.f.num_states] >> 32] = (u32)m.place[m.f.num_states];
  FOR_ALL(p, m.f.num_fsts + 1) {
    state_base[p] = m.place[m.f.state_base[p]] >> 32;
    if (p < m.f.num_fsts)
      start[p] = m.f.start[p] < 0 ? -1 : (int64_t)work.number((u64)m.f.start[p]);
  }
}

/* Adds the total cost back: to the arcs of the start, or to all final costs if an arc leads to the
 * start. */
struct total_work {
  write_work to;

  __device__ u64 size(u32 s) const { return to.size(s); }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    const wf__gpu_minimization &m = to.m;
    const u64 p = fst_of(m.f, s), begin = (u32)m.place[s], count = size(s);
    const double total = m.distance[m.f.start[p]];
    const u32 k = to.number(s);
    const bool here = k == to.number((u64)m.f.start[p]);
    if (m.first_of[s] != s || total == 0 || total == INFINITY || (!here && !m.entered[p])) return;
    for (u64 i = begin + first; !m.entered[p] && i < begin + count; i += stride)
      to.arcs[i].weight = wf__cost_to_float((double)to.arcs[i].weight + total);
    if (first == 0 && to.final_cost[k] != INFINITY)
      to.final_cost[k] = wf__cost_to_float((double)to.final_cost[k] + total);
  }
};

__global__ static void total_kernel(const total_work work) {
  for_states(nullptr, 0, work.to.m.f.num_states, work);
}

int wf__minimize_write(const wf__gpu_minimization *m, u64 *state_base, int64_t *start, u64 *off,
                       float *final_cost, wf_arc *arcs, void *stream) {
  write_work work = {*m, off, final_cost, arcs};
  int code = LAUNCH(write_kernel, m->f.num_states, stream, work, state_base, start);
  total_work total = {work};
  return code != 0 || !m->push ? code : LAUNCH(total_kernel, m->f.num_states, stream, total);
}
