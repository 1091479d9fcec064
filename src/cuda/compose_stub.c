/* compose_stub.c - what a build without CUDA says when asked to compose on a GPU. */
#ifndef WARPFST_CUDA
#include "fstops/compose_device.h"

wf_status wf__device_compose(const wf_fst *const *a, size_t num_a, const wf_fst *const *b, size_t num_b, size_t count, const wf_compose_options *options, wf_fst **out,
                             wf_arc_origin **out_origins, wf_error *err) {
  return wf__fail(err, WF_ERR_DEVICE, "device %s: this library was built without CUDA", options->device);
}
#endif
