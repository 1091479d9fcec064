/* determinize_gpu.h - determinization on a GPU, level by level of subsets. A study (docs/composition.md): no operation uses it. */
#ifndef WF_CUDA_DETERMINIZE_GPU_H
#define WF_CUDA_DETERMINIZE_GPU_H

#include "fstops/device_batch.h"

/* What was done. */
typedef struct wf__gpu_det_stats {
  uint64_t num_levels, num_elements, num_items;
} wf__gpu_det_stats;

/* wf_determinize of a batch of one trimmed fst in the tropical semiring, byte for byte. WF_ERR_UNSUPPORTED where residual outputs are longer than three labels, where an arc would put out
 * several, outputs are owed at the end, the input is not functional, or costs are infinite; WF_ERR_LIMIT beyond `room` times the states and arcs of the input. */
wf_status wf__gpu_batch_determinize(const wf__gpu_batch *batch, double delta, uint32_t room, wf__gpu_batch **out, wf__gpu_det_stats *stats, wf_error *err);

#endif
