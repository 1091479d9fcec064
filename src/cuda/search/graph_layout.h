/* graph_layout.h - kernels that bring a graph into the layout of the search (wf__lane_graph). Plain
 * C, shared by upload_graph.c, stream_memory.c and graph_layout.cu. */
#ifndef WF_CUDA_SEARCH_GRAPH_LAYOUT_H
#define WF_CUDA_SEARCH_GRAPH_LAYOUT_H

#include "cuda/search/search_params.h"
#include "warpfst_fst.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All return a cudaError_t; `stream` is a cudaStream_t. Pointers are to memory that the GPU can
 * access. `states` are those of the whole graph, in the layout of the search. */

/* index [count + 1][2]: the first arc and the first epsilon arc of each state. */
int wf__graph_states(const uint32_t *index, const float *final_cost, uint64_t count,
                     wf__lane_state *to, void *stream);
/* `to` may be `from`. columns: by input label. has_places: an arc of weight +infinity is a place's,
 * which wf__graph_places numbers. */
int wf__graph_arcs(const wf_arc *from, uint64_t count, const int32_t *columns,
                   const wf__lane_state *states, bool has_places, wf_arc *to, void *stream);
/* Marks the targets of the places and numbers their arcs, which follow them. arc_of [num_arcs]: the
 * number of each arc. */
int wf__graph_places(wf__lane_place *places, uint64_t count, const uint32_t *arc_of,
                     uint64_t num_arcs, const wf__lane_state *states, wf_arc *arcs, void *stream);
/* sources [num_arcs]: the state that each arc leaves, | WF__LANE_EPSILON for an epsilon arc. */
int wf__graph_sources(const wf__lane_state *states, uint64_t num_states, uint32_t *sources,
                      void *stream);

#ifdef __cplusplus
}
#endif
#endif
