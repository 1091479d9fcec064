/* launch_graphs.h - sequences of launches that are repeated. Each is recorded as a CUDA graph,
 * which takes one call to launch. */
#ifndef WF_CUDA_DEVICE_LAUNCH_GRAPHS_H
#define WF_CUDA_DEVICE_LAUNCH_GRAPHS_H

#include "base/memory.h"
#include "cuda/device/cuda_call.h"

typedef struct wf__recorded {
  uint64_t key;
  cudaGraphExec_t graph; /* NULL: enqueued once, and not recorded yet */
} wf__recorded;

typedef struct wf__launch_graphs {
  WF__VEC(wf__recorded) list;
} wf__launch_graphs;

/* Enqueues what `enqueue` enqueues on the stream. Until wf__launch_graphs_clear, that may depend on
 * the key alone. The first call with a key does not record, because loading a kernel may not be
 * possible while a stream is recorded, and many sequences are not repeated. The stream must not be
 * the default stream. */
wf_status wf__launch_graphs_run(wf__launch_graphs *graphs, uint64_t key, cudaStream_t stream,
                                wf_status (*enqueue)(void *user, wf_error *err), void *user,
                                wf_error *err);
/* Forgets all sequences. */
void wf__launch_graphs_clear(wf__launch_graphs *graphs);
void wf__launch_graphs_free(wf__launch_graphs *graphs);

#endif
