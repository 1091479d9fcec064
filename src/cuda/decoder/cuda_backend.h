/* cuda_backend.h - a decoder's GPUs, as its batches (cuda_backend.c) and its streams
 * (gpu_streams.c) use them. */
#ifndef WF_CUDA_DECODER_CUDA_BACKEND_H
#define WF_CUDA_DECODER_CUDA_BACKEND_H

#include "cuda/decoder/gpu_streams.h"
#include "cuda/device/device_memory.h"

/* A GPU's memory for scores that move to or from another (move_scores.c). */
struct wf__moved_room {
  int device;
  cudaStream_t stream;              /* of what it sends, so that its own searches need not wait */
  wf__device_buffer sent, received; /* sent: first the list of copies, of list_bytes */
  uint64_t list_bytes, num_copies;  /* of the call: copies to other GPUs */
  uint64_t filled;                  /* of `received` */
};

struct wf__cuda_backend {
  const wf_graph *graph;
  wf_decoder_options options;
  wf__devices devices;     /* one for each worker */
  wf__gpu_worker *workers; /* [devices.count] */
  int num_workers;         /* opened so far */
  wf__pool *pool;          /* a thread for each worker */
  void *stream;            /* the caller's */
  WF__VEC(struct wf__moved_room) moved;
  bool told_of_moving; /* the warning that scores lie on another GPU was given */
  void *cpu;   /* a CPU backend for streams that do not fit a GPU; NULL until the first one */
  bool broken; /* a sticky CUDA error has occurred */
};

extern const wf__backend wf__cuda_backend;
/* wf__backend.copy_scores. */
bool wf__gpu_copy_scores(void *opaque, const void *from, uint64_t bytes, void *to);

#endif
