/* host_copies.c - see host_copies.h. */
#include "cuda/device/host_copies.h"

#include <string.h>

#include "base/interrupt.h"
#include "base/threads.h"
#include "cuda/device/device_memory.h"

#ifndef WF__COPY_PIECE /* tests set less */
#define WF__COPY_PIECE (1 << 20)
#define WF__COPY_LEAST 64 /* fewer pieces are copied as they are: page-locking takes time, too */
#endif
enum { MOST_WORKERS = 16 };

struct worker {
  cudaStream_t stream;
  cudaError_t code;
};
struct pieces {
  const wf__host_copy *copies;
  int device;
  char *room; /* page-locked, a piece of each worker */
  struct worker workers[MOST_WORKERS];
};

static uint64_t pieces_of(const wf__host_copy *copy) {
  return (copy->bytes + WF__COPY_PIECE - 1) / WF__COPY_PIECE;
}

static void copy_piece(void *user, uint64_t item, int number) {
  struct pieces *pieces = user;
  struct worker *worker = &pieces->workers[number];
  const wf__host_copy *copy = pieces->copies;
  for (; item >= pieces_of(copy); copy++) item -= pieces_of(copy);
  const uint64_t at = item * WF__COPY_PIECE, left = copy->bytes - at,
                 size = left < WF__COPY_PIECE ? left : WF__COPY_PIECE;
  char *room = pieces->room + (uint64_t)number * WF__COPY_PIECE;
  if (worker->code == cudaSuccess) worker->code = cudaSetDevice(pieces->device);
  if (worker->code == cudaSuccess)
    worker->code = cudaMemcpyAsync(room, (const char *)copy->from + at, size,
                                   cudaMemcpyDeviceToHost, worker->stream);
  if (worker->code == cudaSuccess) worker->code = cudaStreamSynchronize(worker->stream);
  if (worker->code == cudaSuccess) memcpy((char *)copy->to + at, room, size);
}

static wf_status copy_pieces(struct pieces *pieces, uint64_t count, int num_workers,
                             const char *what, wf_error *err) {
  WF__CUDA_TRY(cudaGetDevice(&pieces->device), what);
  WF__TRY(wf__pinned_alloc((void **)&pieces->room, (uint64_t)num_workers * WF__COPY_PIECE,
                           "results from the GPU", err));
  for (int i = 0; i < num_workers; i++)
    WF__CUDA_TRY(cudaStreamCreateWithFlags(&pieces->workers[i].stream, cudaStreamNonBlocking),
                 what);
  WF__TRY(wf__pool_once(num_workers, count, copy_piece, pieces, err));
  for (int i = 0; i < num_workers; i++) WF__CUDA_TRY(pieces->workers[i].code, what);
  return WF_OK;
}

wf_status wf__copy_to_host(const wf__host_copy *copies, int count, cudaStream_t stream,
                           const char *what, wf_error *err) {
  uint64_t num_pieces = 0;
  for (int i = 0; i < count; i++) num_pieces += pieces_of(&copies[i]);
  const bool at_once = num_pieces < (uint64_t)(WF__COPY_LEAST + count);
  WF__TRY(wf__interrupted(err));
  if (at_once)
    for (int i = 0; i < count; i++)
      if (copies[i].bytes > 0)
        WF__CUDA_TRY(cudaMemcpyAsync(copies[i].to, copies[i].from, copies[i].bytes,
                                     cudaMemcpyDeviceToHost, stream),
                     what);
  WF__CUDA_TRY(cudaStreamSynchronize(stream), what);
  if (at_once) return WF_OK;
  struct pieces pieces = {.copies = copies};
  int num_workers = wf__num_cpus() < MOST_WORKERS ? wf__num_cpus() : MOST_WORKERS;
  if ((uint64_t)num_workers > num_pieces) num_workers = (int)num_pieces;
  const wf_status status = copy_pieces(&pieces, num_pieces, num_workers, what, err);
  for (int i = 0; i < num_workers; i++)
    if (pieces.workers[i].stream != NULL) cudaStreamDestroy(pieces.workers[i].stream);
  cudaFreeHost(pieces.room);
  return status;
}
