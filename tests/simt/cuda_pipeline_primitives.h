/* cuda_pipeline_primitives.h - CUDA's asynchronous copies into shared memory for the imitated GPU.
 * The copy happens at the wait; before that, the target holds garbage. */
#ifndef SIMT_CUDA_PIPELINE_PRIMITIVES_H
#define SIMT_CUDA_PIPELINE_PRIMITIVES_H
#include "cuda_runtime.h"

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes) {
  simt_copy_later(to, from, bytes);
}
static inline void __pipeline_commit() { simt_copies_commit(); }
static inline void __pipeline_wait_prior(unsigned but) { simt_copies_wait(but); }
#endif
