/* upload_graph.h - the graph in a GPU's memory. */
#ifndef WF_CUDA_GRAPH_UPLOAD_GRAPH_H
#define WF_CUDA_GRAPH_UPLOAD_GRAPH_H

#include <cuda_runtime_api.h>

#include "plan/gpu_plan.h"

typedef struct wf__gpu_graph {
  void *memory; /* upload_graph.c draws it */
  uint64_t bytes;
  wf__lane_graph there; /* all that kernels know of the graph; arc_sources belong to streams */
} wf__gpu_graph;

/* Writes the arcs of the wide states of ctc from arcs[next] on: for each state of the token graph
 * those over tokens, then the others of all its states. wide [states from first_wide on]. */
wf_status wf__write_wide(const wf__ctc_states *ctc, const int32_t *columns, wf_arc *arcs,
                         uint64_t next, wf__lane_wide *wide, wf_error *err);
/* Puts the graph on the current device, `device`, which has `available` bytes for it. `stream`: for
 * the copies. *out is freed with wf__gpu_graph_free, also after a failure. */
wf_status wf__gpu_upload_graph(const wf_graph *graph, const wf_decoder_options *options, int device,
                               uint64_t available, cudaStream_t stream, wf__gpu_graph *out,
                               wf_error *err);
void wf__gpu_graph_free(wf__gpu_graph *graph);

#endif
