/* epsilons_gpu.h - the host side of epsilon_kernels.h. */
#ifndef WF_CUDA_FSTOPS_EPSILONS_GPU_H
#define WF_CUDA_FSTOPS_EPSILONS_GPU_H

#include "cuda/fstops/epsilon_kernels.h"
#include "cuda/fstops/ops_batch.h"

/* Writes the arcs of f with each state's epsilons last to `arcs` [num_arcs], and the number of its
 * labelled arcs to `labelled` [num_states], which may be NULL. Waits for the result. */
wf_status wf__gpu_epsilons_last(wf__gpu_context *c, const wf__gpu_fsts *f, wf_arc *arcs,
                                uint32_t *labelled, wf_error *err);
/* Counts the ways of all states, in memory of `blocks`. Returns WF_ERR_UNSUPPORTED if there is a
 * cycle of epsilons, or if a state has too many ways. */
wf_status wf__gpu_ways_find(wf__gpu_context *c, wf__gpu_blocks *blocks, const wf__gpu_fsts *f,
                            wf__gpu_ways *out, wf_error *err);

#endif
