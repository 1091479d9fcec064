/* cuda_stub.c - what a build without CUDA says when asked for a GPU. */
#ifndef WARPFST_CUDA
#include "decode/backend.h"

static wf_status stub_open(const wf_graph *graph, const wf_decoder_options *options, void **out, wf_error *err) {
  *out = NULL;
  return wf__fail(err, WF_ERR_DEVICE, "device %s: this library was built without CUDA", options->device);
}
static wf_status stub_decode(void *self, const wf__batch *batch, wf_error *err) { return wf__fail(err, WF_ERR_DEVICE, "built without CUDA"); }
static void stub_close(void *self) {}

const wf__backend wf__cuda_backend = {.name = "cuda", .open = stub_open, .decode = stub_decode, .close = stub_close};
#endif
