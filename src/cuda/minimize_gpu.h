/* minimize_gpu.h - classes of equal states on a GPU: the part of minimization that is parallel. A study (docs/composition.md): no operation uses it. */
#ifndef WF_CUDA_MINIMIZE_GPU_H
#define WF_CUDA_MINIMIZE_GPU_H

#include "fstops/device_batch.h"

/* The coarsest partition of the states that final costs and arcs respect, costs compared in bins of `delta`, as wf__partition_rounds finds it: classes [num_states] in
 * the order of their first states. States are told apart by hashes of 64 bits, which nothing checks. WF_ERR_LIMIT after `max_rounds`. */
wf_status wf__gpu_batch_classes(const wf__gpu_batch *batch, double delta, uint32_t max_rounds, uint32_t *class_of, uint32_t *out_num_classes, uint32_t *out_num_rounds, wf_error *err);

#endif
