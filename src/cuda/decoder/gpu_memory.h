/* gpu_memory.h - a worker's memory on its GPU, sized by the plans of its batches. */
#ifndef WF_CUDA_DECODER_GPU_MEMORY_H
#define WF_CUDA_DECODER_GPU_MEMORY_H

#include "plan/gpu_plan.h"

struct wf__gpu_worker;

/* It only grows. */
typedef struct wf__gpu_memory {
  char *workspace, *pinned; /* on the GPU; page-locked. gpu_plan.h draws both */
  uint64_t workspace_bytes, pinned_bytes;
  wf_plan largest; /* the largest plan so far */
} wf__gpu_memory;

wf_status wf__device_limits_read(int device, int32_t num_columns, wf__device_limits *out,
                                 wf_error *err);
/* Bytes free on the current device. */
wf_status wf__gpu_free_memory(uint64_t *out, wf_error *err);
/* Allocates the worker's memory as worker->plan says, and gives the chunks their parts of it. */
wf_status wf__gpu_reserve(struct wf__gpu_worker *worker, wf_error *err);
/* Frees it, and the chunks' streams. */
void wf__gpu_release(struct wf__gpu_worker *worker);

#endif
