/* host_model.h - the arrays of a language model that GPUs read in host memory: one page-locked copy
 * for all GPUs and decoders of the process. */
#ifndef WF_CUDA_SCORER_HOST_MODEL_H
#define WF_CUDA_SCORER_HOST_MODEL_H

#include "base/error.h"

/* Writes the arrays. */
typedef void wf__host_model_fill(void *user, char *to);

/* Acquires the copy of a model at a placement, which is made and filled unless there is one. It is
 * released with wf__host_model_release. Any thread. Errors: no room (WF_ERR_MEMORY). */
wf_status wf__host_model_acquire(const void *model, int32_t placement, uint64_t bytes,
                                 wf__host_model_fill *fill, void *user, char **out, wf_error *err);
/* NULL is allowed. */
void wf__host_model_release(char *copy);

#endif
