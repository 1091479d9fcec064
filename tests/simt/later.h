/* later.h - enqueues a C++ function on a stream of the imitated GPU. CUB's functions are imitated
 * this way: the host runs them when the stream comes to them. */
#ifndef SIMT_LATER_H
#define SIMT_LATER_H
#include <functional>

#include "cuda_runtime.h"

template <class F>
static cudaError_t simt_later(cudaStream_t stream, F work) {
  auto run = [](void *data) {
    std::function<void()> *copy = *(std::function<void()> **)data;
    (*copy)();
    delete copy;
  };
  void **data = (void **)malloc(sizeof *data);
  std::function<void()> *copy = new std::function<void()>(work);
  *data = copy;
  const cudaError_t code = fake_enqueue(stream, run, data);
  if (code != cudaSuccess) delete copy; /* data is gone */
  return code;
}
#endif
