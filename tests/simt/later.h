/* later.h - CUB's functions of the imitated GPU are works of a stream that the host does, one after
 * the other. */
#ifndef SIMT_LATER_H
#define SIMT_LATER_H
#include <functional>

#include "cuda_runtime.h"

template <class F>
static cudaError_t simt_later(cudaStream_t stream, F work) {
  auto run = [](void *data) {
    std::function<void()> *held = *(std::function<void()> **)data;
    (*held)();
    delete held;
  };
  void **data = (void **)malloc(sizeof *data);
  std::function<void()> *held = new std::function<void()>(work);
  *data = held;
  const cudaError_t code = fake_enqueue(stream, run, data);
  if (code != cudaSuccess) delete held; /* data is gone */
  return code;
}
#endif
