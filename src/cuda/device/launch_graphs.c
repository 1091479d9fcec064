/* launch_graphs.c - see launch_graphs.h. */
#include "cuda/device/launch_graphs.h"

static const char what[] = "a CUDA graph";

/* Other threads may call CUDA meanwhile. */
static wf_status record(cudaStream_t stream, wf_status (*enqueue)(void *user, wf_error *err),
                        void *user, cudaGraphExec_t *out, wf_error *err) {
  cudaGraph_t graph = NULL;
  WF__CUDA_TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), what);
  wf_status status = enqueue(user, err);
  cudaError_t code = cudaStreamEndCapture(stream, &graph);
  if (status == WF_OK && code == cudaSuccess) code = cudaGraphInstantiate(out, graph, 0);
  if (graph != NULL) cudaGraphDestroy(graph);
  return status == WF_OK && code != cudaSuccess ? wf__cuda_fail(err, code, what) : status;
}

wf_status wf__launch_graphs_run(wf__launch_graphs *graphs, uint64_t key, cudaStream_t stream,
                                wf_status (*enqueue)(void *user, wf_error *err), void *user,
                                wf_error *err) {
  uint64_t i = 0;
  while (i < graphs->list.size && graphs->list.data[i].key != key) i++;
  if (i == graphs->list.size) {
    WF__TRY(wf__vec_push(&graphs->list, ((wf__recorded){key, NULL}), what, err));
    return enqueue(user, err);
  }
  wf__recorded *graph = &graphs->list.data[i];
  if (graph->graph == NULL) WF__TRY(record(stream, enqueue, user, &graph->graph, err));
  WF__CUDA_TRY(cudaGraphLaunch(graph->graph, stream), what);
  return WF_OK;
}

void wf__launch_graphs_clear(wf__launch_graphs *graphs) {
  for (uint64_t i = 0; i < graphs->list.size; i++)
    if (graphs->list.data[i].graph != NULL) cudaGraphExecDestroy(graphs->list.data[i].graph);
  graphs->list.size = 0;
}

void wf__launch_graphs_free(wf__launch_graphs *graphs) {
  wf__launch_graphs_clear(graphs);
  wf__vec_free(&graphs->list);
}
