/* sample_scores.c - copies a few frames of scores from a GPU, for the plausibility check. */
#include <cuda_runtime_api.h>

#include "cuda/decoder/cuda_backend.h"
#include "cuda/decoder/gpu_pipeline.h"

bool wf__gpu_copy_scores(void *opaque, const void *from, uint64_t bytes, void *to) {
  const struct wf__cuda_backend *self = opaque;
  struct cudaPointerAttributes attributes = {0};
  if (self->broken) return false;
  cudaError_t code = cudaPointerGetAttributes(&attributes, from);
  bool there = code == cudaSuccess && (attributes.type == cudaMemoryTypeDevice ||
                                       attributes.type == cudaMemoryTypeManaged);
  if (there) {
    const int caller = wf__callers_device();
    code = cudaSetDevice(attributes.device);
    there = code == cudaSuccess &&
            wf__gpu_read_back(self->stream, to, from, bytes, "scores", NULL) == WF_OK;
    wf__restore_device(caller);
  }
  if (code != cudaSuccess) (void)cudaGetLastError(); /* the search finds and reports it, too */
  return there && code == cudaSuccess;
}
