/* decode_graph_kernels.h - the kernels of decode_graph_gpu.c: what a decoding graph must know of
 * its arcs. Plain C, shared with decode_graph_kernels.cu. */
#ifndef WF_CUDA_FSTOPS_DECODE_GRAPH_KERNELS_H
#define WF_CUDA_FSTOPS_DECODE_GRAPH_KERNELS_H

#include "search/graph_facts.h"
#include "warpfst_all.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pointers are to memory that the GPU can access. */
typedef struct wf__gpu_look {
  const uint64_t *off; /* [num_states + 1] */
  const wf_arc *arcs;
  uint64_t num_states;
  uint32_t *index;        /* [num_states + 1][2] as wf__state_index */
  uint32_t *degree;       /* [num_states] epsilon arcs into the state from states not in `queue` */
  uint32_t *queue;        /* [num_states] states that no epsilon cycle leads into */
  wf__graph_facts *facts; /* num_acyclic of them: states in `queue` */
} wf__gpu_look;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* arcs: index, degree, which begins with zeros, and all facts but num_acyclic. begin: the queue
 * gets the states that no epsilon arc leads to. peel: it gets those that no epsilon arc leads to
 * but those of its states; call it again for the states that are new. */
int wf__look_at_arcs(const wf__gpu_look *look, void *stream);
int wf__peel_begin(const wf__gpu_look *look, void *stream);
int wf__peel_states(const wf__gpu_look *look, uint64_t begin, uint64_t end, void *stream);

#ifdef __cplusplus
}
#endif
#endif
