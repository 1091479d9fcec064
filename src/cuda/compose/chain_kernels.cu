/* chain_kernels.cu - the kernels that make the states of a composition for the composition on its
 * right (chain_kernels.h). */
#include "cuda/compose/chain_kernels.h"
#include "cuda/device/grid.cuh"
#include "fstops/compose_filter.h"

#define NO_ARC 0xffffffffu

/* --- which states ------------------------------------------------------------------------ */

__global__ static void want_kernel(const u64 *keys, u64 count, u64 num_b, u32 num_filters,
                                   const u64 *list, u32 *marks, u32 *numbers, u64 *pairs,
                                   u64 *num_wanted) {
  FOR_ALL(i, count) {
    const u32 number = (u32)(keys[i] / num_b / num_filters);
    if (atomicExch(&marks[number], 1u) != 0) continue;
    const u64 at = atomicAdd((ull *)num_wanted, 1ull);
    numbers[at] = number;
    pairs[at] = list[number];
  }
}

int wf__chain_want(const u64 *keys, u64 count, u64 num_b, u32 num_filters, const u64 *list,
                   u32 *marks, u32 *numbers, u64 *pairs, u64 *num_wanted, void *stream) {
  return LAUNCH(want_kernel, count, stream, keys, count, num_b, num_filters, list, marks, numbers,
                pairs, num_wanted);
}

/* --- the order of arcs ------------------------------------------------------------------- */

__global__ static void arc_keys_kernel(const wf_arc *arcs, u64 num_arcs, const u64 *arc_off,
                                       u64 num_states, u64 *keys, u32 *index) {
  FOR_ALL(i, num_arcs) {
    keys[i] = owner_of(arc_off, num_states, i) << 32 | (u32)arcs[i].olabel;
    index[i] = (u32)i;
  }
}

int wf__chain_arc_keys(const wf_arc *arcs, u64 num_arcs, const u64 *arc_off, u64 num_states,
                       u64 *keys, u32 *index, void *stream) {
  return LAUNCH(arc_keys_kernel, num_arcs, stream, arcs, num_arcs, arc_off, num_states, keys,
                index);
}

/* --- links ------------------------------------------------------------------------------- */

/* The links of a row in canonical order (compose_rows.h): one while A waits; `per_epsilon` for each
 * arc with output epsilon; one for each other arc. */
struct row {
  u32 number;
  int filter_state, a_kind;
  wf__moves moves;
  u64 begin, label_arc, end; /* arcs; the epsilons come first */
  u32 num_waiting, per_epsilon;
  int alone[WF__NUM_EPSILONS]; /* next filter state while B waits, for each kind of state of B */
  bool alike;                  /* the kind of B's state does not matter */

  __device__ u64 num_epsilon_links() const {
    return num_waiting + (label_arc - begin) * per_epsilon;
  }
  __device__ u64 num_links() const { return num_epsilon_links() + (end - label_arc); }
};

__device__ static u64 first_label(const wf_arc *arcs, u64 low, u64 high) {
  while (low < high) {
    const u64 middle = (low + high) / 2;
    if (arcs[middle].olabel <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The next filter states occur only if they are below num_filters. */
__device__ static bool occurs(const wf__chain_rows &c, int filter_state) {
  return filter_state != WF__BLOCKED && (u32)filter_state < c.num_filters;
}

__device__ static row row_of(const wf__chain_rows &c, u64 i) {
  const u64 k = i / c.num_filters;
  row r;
  r.number = c.numbers[k];
  r.filter_state = (int)(i % c.num_filters);
  r.begin = c.first_arc + c.arc_off[k];
  r.end = c.first_arc + c.arc_off[k + 1];
  r.label_arc = first_label(c.arcs, r.begin, r.end);
  r.a_kind = wf__epsilons_of(r.end - r.begin, r.label_arc - r.begin, c.made_final[k] != INFINITY);
  r.moves = wf__moves_of((int)c.filter, r.filter_state, r.a_kind, WF__SOME_EPSILONS);
  r.num_waiting = c.b_has_epsilons != 0 && occurs(c, r.moves.b_alone);
  r.alike = true;
  for (int kind = 0; kind < WF__NUM_EPSILONS; kind++) {
    r.alone[kind] = wf__moves_of((int)c.filter, r.filter_state, r.a_kind, kind).a_alone;
    r.alike = r.alike && r.alone[kind] == r.alone[0];
  }
  r.per_epsilon = c.b_has_epsilons != 0 && r.moves.both != WF__BLOCKED;
  if (r.alike) r.per_epsilon += r.alone[0] != WF__BLOCKED;
  for (int kind = 0; kind < WF__NUM_EPSILONS && !r.alike; kind++)
    r.per_epsilon += occurs(c, r.alone[kind]);
  return r;
}

/* Link `j` of those of an arc with output epsilon. */
__device__ static wf__sparse_link epsilon_link(const wf__chain_rows &c, const row &r, u64 arc,
                                               u32 j) {
  const u32 next = c.arcs[arc].nextstate * c.num_filters;
  if (r.alike && r.alone[0] != WF__BLOCKED && j-- == 0)
    return {next + (u32)r.alone[0], WF__SPARSE_STAY, (u32)arc};
  for (int kind = 0; kind < WF__NUM_EPSILONS && !r.alike; kind++)
    if (occurs(c, r.alone[kind]) && j-- == 0)
      return {next + (u32)r.alone[kind], WF__SPARSE_STAY_IF + (u32)kind, (u32)arc};
  return {next, WF__SPARSE_LABEL, (u32)arc}; /* both take an epsilon */
}

__device__ static wf__sparse_link link_of(const wf__chain_rows &c, const row &r, u64 j) {
  if (j < r.num_waiting)
    return {r.number * c.num_filters + (u32)r.moves.b_alone, WF__SPARSE_LABEL, NO_ARC};
  if (j < r.num_epsilon_links()) {
    j -= r.num_waiting;
    return epsilon_link(c, r, r.begin + j / r.per_epsilon, (u32)(j % r.per_epsilon));
  }
  const u64 arc = r.label_arc + (j - r.num_epsilon_links());
  return {c.arcs[arc].nextstate * c.num_filters + (u32)r.moves.label,
          WF__SPARSE_LABEL + (u32)c.arcs[arc].olabel, (u32)arc};
}

__global__ static void count_links_kernel(const wf__chain_rows c, u64 *counts) {
  const u64 num_rows = c.count * c.num_filters;
  FOR_ALL(i, num_rows + 1) counts[i] = i < num_rows ? row_of(c, i).num_links() : 0;
}

int wf__chain_count_links(const wf__chain_rows *rows, u64 *counts, void *stream) {
  return LAUNCH(count_links_kernel, rows->count * rows->num_filters + 1, stream, *rows, counts);
}

__global__ static void fill_links_kernel(const wf__chain_rows c, const u64 *link_off,
                                         u64 num_links) {
  const u64 num_rows = c.count * c.num_filters;
  FOR_ALL(i, num_rows) {
    const row r = row_of(c, i);
    const u64 to = (u64)r.number * c.num_filters + (u64)r.filter_state;
    c.link_begin[to] = c.first_link + link_off[i];
    c.link_tail[to] = c.link_begin[to] + r.num_epsilon_links();
    c.link_end[to] = c.first_link + link_off[i + 1];
    if (r.filter_state == 0) c.final_cost[r.number] = c.made_final[i / c.num_filters];
  }
  FOR_ALL(i, num_links) {
    const u64 owner = owner_of(link_off, num_rows, i);
    c.links[c.first_link + i] = link_of(c, row_of(c, owner), i - link_off[owner]);
  }
}

int wf__chain_fill_links(const wf__chain_rows *rows, const u64 *link_off, u64 num_links,
                         void *stream) {
  const u64 num_rows = rows->count * rows->num_filters;
  return LAUNCH(fill_links_kernel, num_links > num_rows ? num_links : num_rows, stream, *rows,
                link_off, num_links);
}

/* --- canonical order --------------------------------------------------------------------- */

__global__ static void rank_keys_kernel(const u64 *list, u64 count, u64 num_b, u32 num_filters,
                                        const u32 *ranks, u64 *keys, u32 *index) {
  FOR_ALL(i, count) {
    const u64 row = list[i] / num_b, b = list[i] % num_b;
    const u64 a = ranks != nullptr ? ranks[row / num_filters] : row / num_filters;
    keys[i] = (a * num_filters + row % num_filters) * num_b + b;
    index[i] = (u32)i;
  }
}

int wf__chain_rank_keys(const u64 *list, u64 count, u64 num_b, u32 num_filters, const u32 *ranks,
                        u64 *keys, u32 *index, void *stream) {
  return LAUNCH(rank_keys_kernel, count, stream, list, count, num_b, num_filters, ranks, keys,
                index);
}

__global__ static void gather_kernel(const u64 *list, const u32 *index, u64 count, u64 *out) {
  FOR_ALL(i, count) out[i] = list[index[i]];
}

int wf__chain_gather(const u64 *list, const u32 *index, u64 count, u64 *out, void *stream) {
  return LAUNCH(gather_kernel, count, stream, list, index, count, out);
}

__global__ static void ranks_kernel(const u32 *order, u64 count, u32 *ranks) {
  FOR_ALL(i, count) ranks[order[i]] = (u32)i;
}

int wf__chain_ranks(const u32 *order, u64 count, u32 *ranks, void *stream) {
  return LAUNCH(ranks_kernel, count, stream, order, count, ranks);
}
