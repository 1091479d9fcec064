/* rmepsilon_kernels.cu - the kernels of epsilon removal (rmepsilon_kernels.h). */
#include "cuda/fstops/batch_states.cuh"
#include "cuda/fstops/rmepsilon_kernels.h"
#include "math/cost.h"

/* --- marks, and the graph of epsilons ---------------------------------------------------- */

__global__ static void moderate_kernel(const wf__gpu_fsts f, const u32 *source, u32 *moderate) {
  const float limit = 1e28f; /* same limit as on the CPU */
  FOR_ALL(i, f.num_arcs)
  if (!(fabsf(f.arcs[i].weight) < limit)) moderate[fst_of(f, source[i])] = 0;
  FOR_ALL(s, f.num_states)
  if (f.final_cost[s] != INFINITY && !(fabsf(f.final_cost[s]) < limit)) moderate[fst_of(f, s)] = 0;
}

int wf__rmepsilon_moderate(const wf__gpu_fsts *f, const u32 *source, u32 *moderate, void *stream) {
  return LAUNCH(moderate_kernel, f->num_arcs + f->num_states, stream, *f, source, moderate);
}

__global__ static void marks_kernel(const wf__gpu_removal r) {
  FOR_ALL(p, r.f.num_fsts)
  if (r.f.start[p] >= 0) r.kept[r.f.start[p]] = 1;
  FOR_ALL(i, r.f.num_arcs + 1) {
    u32 epsilon = 0;
    if (i < r.f.num_arcs && r.reached[r.source[i]] != 0) {
      wf_arc arc = r.f.arcs[i];
      epsilon = arc.ilabel == 0 && arc.olabel == 0;
      if (!epsilon) r.kept[arc.nextstate] = 1;
    }
    r.is_epsilon[i] = epsilon;
  }
}

int wf__rmepsilon_marks(const wf__gpu_removal *r, void *stream) {
  return LAUNCH(marks_kernel, r->f.num_arcs + 1, stream, *r);
}

__global__ static void epsilons_kernel(const wf__gpu_removal r, u64 *off, wf_arc *arcs) {
  FOR_ALL(s, r.f.num_states + 1) off[s] = r.rank[r.f.off[s]];
  FOR_ALL(i, r.f.num_arcs)
  if (r.is_epsilon[i]) arcs[r.rank[i]] = r.f.arcs[i];
}

int wf__rmepsilon_epsilons(const wf__gpu_removal *r, u64 *off, wf_arc *arcs, void *stream) {
  return LAUNCH(epsilons_kernel, r->f.num_arcs + r->f.num_states, stream, *r, off, arcs);
}

/* --- arcs by level ----------------------------------------------------------------------- */

__global__ static void begin_kernel(const wf__gpu_removal r, u32 num_plain) {
  FOR_ALL(k, r.f.num_states + 1) {
    u32 s = k < r.f.num_states ? r.order[k] : 0;
    r.degree[k] = k < num_plain || k == r.f.num_states ? 0 : (u32)(r.f.off[s + 1] - r.f.off[s]);
    if (k < r.f.num_states) r.position[s] = (u32)k;
  }
  FOR_ALL(s, r.f.num_states) {
    wf__gpu_result result = {r.f.arcs + r.f.off[s], (double)r.f.final_cost[s], 0,
                             (u32)(r.f.off[s + 1] - r.f.off[s]), (u32)s};
    r.results[s] = result;
  }
}

int wf__rmepsilon_begin(const wf__gpu_removal *r, u32 num_plain, void *stream) {
  return LAUNCH(begin_kernel, r->f.num_states + 1, stream, *r, num_plain);
}

__global__ static void arcs_kernel(const wf__gpu_removal r) {
  FOR_ALL(i, r.f.num_arcs) {
    u32 s = r.source[i], k = r.position[s];
    if (r.degree[k] == 0) continue;
    u32 in_state = (u32)(i - r.f.off[s]), epsilons = r.rank[r.f.off[s + 1]] - r.rank[r.f.off[s]],
        before = r.rank[i] - r.rank[r.f.off[s]];
    r.arc_at[r.first_arc[k] +
             (r.is_epsilon[i] ? r.degree[k] - epsilons + before : in_state - before)] = (u32)i;
  }
}

int wf__rmepsilon_arcs(const wf__gpu_removal *r, void *stream) {
  return LAUNCH(arcs_kernel, r->f.num_arcs, stream, *r);
}

__global__ static void level_arcs_kernel(const wf__gpu_removal r, const u32 *level_off, u32 count,
                                         u32 *out) {
  FOR_ALL(i, count) out[i] = r.first_arc[level_off[i]];
}

int wf__rmepsilon_level_arcs(const wf__gpu_removal *r, const u32 *level_off, u32 count, u32 *out,
                             void *stream) {
  return LAUNCH(level_arcs_kernel, count, stream, *r, level_off, count, out);
}

/* --- a level ----------------------------------------------------------------------------- */

/* A state whose only way on is one epsilon arc is an alias of that arc's target. Only epsilon arcs
 * of other states need its result. */
__device__ static bool is_alias(const wf__gpu_removal &r, u32 s) {
  u64 begin = r.f.off[s];
  return r.f.off[s + 1] - begin == 1 && r.is_epsilon[begin] && r.f.final_cost[s] == INFINITY &&
         !r.kept[s];
}

/* The result that an epsilon arc leads to, and the cost of getting there. */
__device__ static wf__gpu_result result_at(const wf__gpu_removal &r, const wf_arc &arc,
                                           double *cost) {
  wf__gpu_result result = r.results[arc.nextstate];
  *cost = 0.0 + (double)arc.weight; /* turns -0 into 0, as on the CPU */
  if (result.alias == arc.nextstate) return result;
  *cost += result.alias_cost;
  bool none = result.alias_cost == INFINITY;
  result = r.results[result.alias];
  if (none) {
    result.count = 0;
    result.final_cost = INFINITY;
  }
  return result;
}

__global__ static void count_kernel(const wf__gpu_removal r, const wf__gpu_removal_level level) {
  FOR_ALL(j, (u64)level.num_arcs + 1) {
    u64 count = 0;
    if (j < level.num_arcs) {
      u32 i = r.arc_at[level.first_arc + j];
      wf_arc arc = r.f.arcs[i];
      double cost;
      if (arc.weight != INFINITY && !is_alias(r, r.source[i]))
        count = r.is_epsilon[i] ? result_at(r, arc, &cost).count : 1;
    }
    level.item_off[j] = count;
  }
}

__device__ static double plus(int log_semiring, double a, double b) {
  return log_semiring ? wf__log_add(a, b) : a < b ? a : b;
}

/* Computes final costs, by one lane or a warp for each state. */
struct finals_work {
  wf__gpu_removal r;
  int log_semiring;

  __device__ u64 size(u32 s) const { return r.epsilons.off[s + 1] - r.epsilons.off[s]; }
  __device__ void visit(u32 s, u32 first, u32 stride) const {
    u64 begin = r.epsilons.off[s], end = r.epsilons.off[s + 1];
    wf__gpu_result result = {nullptr, first == 0 ? 0.0 + (double)r.f.final_cost[s] : INFINITY, 0, 0,
                             s};
    for (u64 i = begin + first; i < end; i += stride) {
      wf_arc arc = r.epsilons.arcs[i];
      double cost;
      if (arc.weight != INFINITY) {
        wf__gpu_result other = result_at(r, arc, &cost);
        result.final_cost = plus(log_semiring, result.final_cost, cost + other.final_cost);
      }
    }
    for (u32 d = stride / 2; d > 0; d /= 2)
      result.final_cost =
          plus(log_semiring, result.final_cost, __shfl_xor_sync(ALL_LANES, result.final_cost, d));
    if (first != 0) return;
    if (is_alias(r, s)) {
      wf_arc arc = r.epsilons.arcs[begin];
      const wf__gpu_result &next = r.results[arc.nextstate];
      result.final_cost = INFINITY;
      result.alias = next.alias;
      result.alias_cost = (double)arc.weight + (next.alias != arc.nextstate ? next.alias_cost : 0);
    }
    r.results[s] = result;
  }
};

__global__ static void finals_kernel(const wf__gpu_removal r, const wf__gpu_removal_level level,
                                     int log_semiring) {
  finals_work work = {r, log_semiring};
  for_states(r.order, level.first_state, (u64)level.first_state + level.num_states, work);
}

int wf__rmepsilon_count(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        int log_semiring, void *stream) {
  int code = LAUNCH(count_kernel, (u64)level->num_arcs + 1, stream, *r, *level);
  return code != 0 ? code
                   : LAUNCH(finals_kernel, level->num_states, stream, *r, *level, log_semiring);
}

__global__ static void items_kernel(const wf__gpu_removal r, const wf__gpu_removal_level level) {
  FOR_ALL(item, level.num_items) {
    u64 j = owner_of(level.item_off, level.num_arcs, item);
    u32 i = r.arc_at[level.first_arc + j], owner = r.source[i];
    wf_arc arc = r.f.arcs[i];
    double cost = 0;
    if (r.is_epsilon[i]) arc = result_at(r, arc, &cost).arcs[item - level.item_off[j]];
    level.arcs[item] = arc;
    level.costs[item] = cost + (double)arc.weight;
    level.owner[item] = owner;
    level.hash[item] = wf__hash_combine(wf__mix64((u64)(u32)arc.ilabel << 32 | (u32)arc.olabel),
                                        (u64)owner << 32 | arc.nextstate);
    level.index[item] = (u32)item;
    level.stays[item] = 2; /* not known yet */
  }
  if (this_thread() == 0) level.stays[level.num_items] = 0;
}

int wf__rmepsilon_items(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        void *stream) {
  return LAUNCH(items_kernel, level->num_items, stream, *r, *level);
}

__device__ static bool is_same(const wf__gpu_removal_level &level, u32 x, u32 y) {
  const wf_arc &a = level.arcs[x], &b = level.arcs[y];
  return a.ilabel == b.ilabel && a.olabel == b.olabel && a.nextstate == b.nextstate &&
         level.owner[x] == level.owner[y];
}

/* A thread merges the items with one hash, which are equal except for collisions. Costs are added
 * in the order of the items. */
__global__ static void merge_kernel(const wf__gpu_removal_level level, int log_semiring) {
  FOR_ALL(at, level.num_items) {
    if (at != 0 && level.sorted[at] == level.sorted[at - 1]) continue;
    u64 end = at + 1;
    while (end < level.num_items && level.sorted[end] == level.sorted[at]) end++;
    for (u64 k = at; k < end; k++) {
      u32 item = level.by_hash[k];
      if (level.stays[item] != 2) continue;
      double sum = level.costs[item];
      for (u64 other = k + 1; other < end; other++) {
        u32 same = level.by_hash[other];
        if (level.stays[same] != 2 || !is_same(level, item, same)) continue;
        sum = plus(log_semiring, sum, level.costs[same]);
        level.stays[same] = 0;
      }
      level.stays[item] = 1;
      level.costs[item] = sum;
    }
  }
}

int wf__rmepsilon_merge(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        int log_semiring, void *stream) {
  (void)r;
  return LAUNCH(merge_kernel, level->num_items, stream, *level, log_semiring);
}

__global__ static void store_kernel(const wf__gpu_removal r, const wf__gpu_removal_level level) {
  FOR_ALL(item, level.num_items) {
    if (!level.stays[item]) continue;
    wf_arc arc = level.arcs[item];
    arc.weight = wf__cost_to_float(level.costs[item]);
    level.pool[level.place[item]] = arc;
  }
  FOR_ALL(i, level.num_states) {
    u32 k = level.first_state + (u32)i, s = r.order[k];
    u32 begin = level.place[level.item_off[r.first_arc[k] - level.first_arc]],
        end = level.place[level.item_off[r.first_arc[k + 1] - level.first_arc]];
    r.results[s].arcs = level.pool + begin;
    r.results[s].count = end - begin;
  }
}

int wf__rmepsilon_store(const wf__gpu_removal *r, const wf__gpu_removal_level *level,
                        void *stream) {
  return LAUNCH(store_kernel, level->num_items + level->num_states, stream, *r, *level);
}

/* --- output ------------------------------------------------------------------------------ */

__global__ static void written_kernel(const wf__gpu_removal r, const u32 *drop, u32 *written) {
  FOR_ALL(s, r.f.num_states + 1)
  written[s] = s < r.f.num_states && (r.kept[s] || !drop[fst_of(r.f, s)]);
}

int wf__rmepsilon_written(const wf__gpu_removal *r, const u32 *drop, u32 *written, void *stream) {
  return LAUNCH(written_kernel, r->f.num_states + 1, stream, *r, drop, written);
}

/* States that are not kept get no arcs and are not final. */
__global__ static void sizes_kernel(const wf__gpu_removal r, const u32 *written, const u32 *number,
                                    u64 *out_arcs, float *out_final, u32 *from) {
  FOR_ALL(s, r.f.num_states) {
    if (!written[s]) continue;
    const wf__gpu_result &result = r.results[s];
    out_arcs[number[s]] = r.kept[s] ? result.count : 0;
    out_final[number[s]] = r.kept[s] ? wf__cost_to_float(result.final_cost) : INFINITY;
    from[number[s]] = (u32)s;
  }
  if (this_thread() == 0) out_arcs[number[r.f.num_states]] = 0;
}

int wf__rmepsilon_sizes(const wf__gpu_removal *r, const u32 *written, const u32 *number,
                        u64 *out_arcs, float *out_final, u32 *from, void *stream) {
  return LAUNCH(sizes_kernel, r->f.num_states + 1, stream, *r, written, number, out_arcs, out_final,
                from);
}

__global__ static void fill_kernel(const wf__gpu_removal r, const u32 *number, const u32 *from,
                                   const u64 *off, u64 num_states, u64 num_arcs, wf_arc *out) {
  FOR_ALL(i, num_arcs) {
    u64 s = owner_of(off, num_states, i);
    wf_arc arc = r.results[from[s]].arcs[i - off[s]];
    arc.nextstate = number[arc.nextstate];
    out[i] = arc;
  }
}

int wf__rmepsilon_fill(const wf__gpu_removal *r, const u32 *number, const u32 *from, const u64 *off,
                       u64 num_states, u64 num_arcs, wf_arc *out, void *stream) {
  return LAUNCH(fill_kernel, num_arcs, stream, *r, number, from, off, num_states, num_arcs, out);
}
