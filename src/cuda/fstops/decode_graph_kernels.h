/* decode_graph_kernels.h - the kernels of decode_graph_gpu.c: what a decoding graph must know of
 * its arcs. Plain C, shared with decode_graph_kernels.cu. */
#ifndef WF_CUDA_FSTOPS_DECODE_GRAPH_KERNELS_H
#define WF_CUDA_FSTOPS_DECODE_GRAPH_KERNELS_H

#include "warpfst_all.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As wf__graph_facts. */
enum {
  WF__FACT_BAD_ARC,
  WF__FACT_LARGEST_LABEL,
  WF__FACT_UNORDERED,
  WF__FACT_EPSILONS,
  WF__FACT_NEGATIVE_EPSILONS,
  WF__FACT_EPSILON_WORDS,
  WF__FACT_PEELED, /* states in `queue` */
  WF__NUM_FACTS
};

/* Pointers are to memory that the GPU can access. */
typedef struct wf__gpu_look {
  const uint64_t *off; /* [num_states + 1] */
  const wf_arc *arcs;
  uint64_t num_states;
  uint32_t *index;  /* [num_states + 1][2] as wf__state_index */
  uint32_t *degree; /* [num_states] epsilon arcs into the state from states not in `queue` */
  uint32_t *queue;  /* [num_states] states that no epsilon cycle leads into */
  uint32_t *facts;  /* [WF__NUM_FACTS] */
} wf__gpu_look;

/* All return a cudaError_t; `stream` is a cudaStream_t. */

/* arcs: all facts, index and degree; these begin with zeros, the bad arc with UINT32_MAX. begin:
 * the queue gets the states that no epsilon arc leads to. peel: it gets those that no epsilon arc
 * leads to but those of its states; call it again for the states that are new. */
int wf__look_at_arcs(const wf__gpu_look *look, void *stream);
int wf__peel_begin(const wf__gpu_look *look, void *stream);
int wf__peel_states(const wf__gpu_look *look, uint64_t begin, uint64_t end, void *stream);

#ifdef __cplusplus
}
#endif
#endif
