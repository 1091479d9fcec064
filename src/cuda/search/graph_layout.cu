/* graph_layout.cu - the kernels of graph_layout.h. */
#include "cuda/device/grid.cuh"
#include "cuda/search/graph_layout.h"

static __global__ void layout_states(const uint2 *index, const float *final_cost, u64 count,
                                     wf__lane_state *to) {
  FOR_ALL(s, count)
  to[s] = wf__lane_state{index[s].x, index[s].y, index[s + 1].x, final_cost[s]};
}

extern "C" int wf__graph_states(const uint32_t *index, const float *final_cost, uint64_t count,
                                wf__lane_state *to, void *stream) {
  return LAUNCH(layout_states, count, stream, (const uint2 *)index, final_cost, count, to);
}

/* The number of a state, with the top bit set if the state has epsilon arcs. */
static __device__ u32 marked(const wf__lane_state *states, u32 s) {
  return states[s].first_epsilon < states[s].end ? s | 0x80000000u : s;
}

static __global__ void layout_arcs(const wf_arc *from, u64 count, const int32_t *columns,
                                   const wf__lane_state *states, bool has_places, wf_arc *to) {
  FOR_ALL(i, count) {
    wf_arc arc = from[i];
    arc.ilabel = columns[arc.ilabel];
    arc.nextstate =
        has_places && arc.weight == INFINITY ? WF__LANE_NO_PLACE : marked(states, arc.nextstate);
    to[i] = arc;
  }
}

extern "C" int wf__graph_arcs(const wf_arc *from, uint64_t count, const int32_t *columns,
                              const wf__lane_state *states, bool has_places, wf_arc *to,
                              void *stream) {
  return LAUNCH(layout_arcs, count, stream, from, count, columns, states, has_places, to);
}

static __global__ void layout_places(wf__lane_place *places, u64 count, const u32 *arc_of,
                                     u64 num_arcs, const wf__lane_state *states, wf_arc *arcs) {
  FOR_ALL(i, count + num_arcs) {
    if (i < count)
      places[i].target = marked(states, places[i].target);
    else
      arcs[arc_of[i - count]].nextstate = (u32)i;
  }
}

extern "C" int wf__graph_places(wf__lane_place *places, uint64_t count, const uint32_t *arc_of,
                                uint64_t num_arcs, const wf__lane_state *states, wf_arc *arcs,
                                void *stream) {
  return LAUNCH(layout_places, count + num_arcs, stream, places, count, arc_of, num_arcs, states,
                arcs);
}

struct source_work {
  const wf__lane_state *states;
  u32 *sources;
  __device__ u64 size(u32 s) const { return states[s].end - states[s].first_arc; }
  __device__ void visit(u32 s, u32 first, u32 step) const {
    const wf__lane_state state = states[s];
    for (u64 a = (u64)state.first_arc + first; a < state.end; a += step)
      sources[a] = s | (a >= state.first_epsilon ? WF__LANE_EPSILON : 0);
  }
};

static __global__ void find_sources(const source_work work, u64 num_states) {
  for_states(nullptr, 0, num_states, work);
}

extern "C" int wf__graph_sources(const wf__lane_state *states, uint64_t num_states,
                                 uint32_t *sources, void *stream) {
  return LAUNCH(find_sources, num_states, stream, source_work{states, sources}, num_states);
}
