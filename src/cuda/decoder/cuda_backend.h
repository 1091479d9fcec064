/* cuda_backend.h - a decoder's GPUs, as its batches (cuda_backend.c) and its streams
 * (gpu_streams.c) use them. */
#ifndef WF_CUDA_DECODER_CUDA_BACKEND_H
#define WF_CUDA_DECODER_CUDA_BACKEND_H

#include "cuda/decoder/gpu_streams.h"

struct wf__cuda_backend {
  const wf_graph *graph;
  wf_decoder_options options;
  wf__devices devices;     /* one for each worker */
  wf__gpu_worker *workers; /* [devices.count] */
  int num_workers;         /* opened so far */
  wf__pool *pool;          /* a thread for each worker */
  void *stream;            /* the caller's */
  void *cpu;   /* a CPU backend for streams that do not fit a GPU; NULL until the first one */
  bool broken; /* a sticky CUDA error has occurred */
};

/* wf__backend.copy_scores. */
bool wf__gpu_copy_scores(void *opaque, const void *from, uint64_t bytes, void *to);

#endif
