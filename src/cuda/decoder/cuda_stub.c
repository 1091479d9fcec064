/* cuda_stub.c - the errors of a build without CUDA. Memory can be planned for a GPU of another
 * machine. */
#ifndef WARPFST_CUDA
#include "cuda/decoder/gpu_stream_plan.h"

static wf_status stub_open(const wf_graph *graph, const wf_decoder_options *options, void **out,
                           wf_error *err) {
  *out = NULL;
  return wf__fail(err, WF_ERR_DEVICE, "device %s: this library was built without CUDA",
                  options->device);
}
static wf_status stub_decode(void *self, const wf__batch *batch, wf_error *err) {
  return wf__fail(err, WF_ERR_DEVICE, "built without CUDA");
}
static void stub_close(void *self) {}
static wf_status stub_scores(const wf_scores *scores, wf_scores *host, void **copy, wf_error *err) {
  *copy = NULL;
  return wf__fail(err, WF_ERR_DEVICE,
                  "the scores are in GPU memory, and this library was built without CUDA");
}

static wf_status stub_plan(const wf_graph *graph, const wf_decoder_options *options,
                           const wf_batch_shape *shape, wf_plan *out, wf_error *err) {
  if (shape->num_processors > 0) return wf__gpu_plan_assumed(graph, options, shape, out, err);
  return wf__fail(err, WF_ERR_DEVICE,
                  "device %s: this library was built without CUDA; give num_processors to plan for "
                  "a GPU elsewhere",
                  options->device);
}

static wf_status stub_plan_streams(const wf_graph *graph, const wf_decoder_options *options,
                                   const wf_stream_shape *shape, wf_stream_plan *out,
                                   wf_error *err) {
  if (shape->num_processors > 0)
    return wf__gpu_plan_streams_assumed(graph, options, shape, out, err);
  return wf__fail(err, WF_ERR_DEVICE,
                  "device %s: this library was built without CUDA; give num_processors to plan for "
                  "a GPU elsewhere",
                  options->device);
}

const wf__backend wf__cuda_backend = {.name = "cuda",
                                      .open = stub_open,
                                      .decode = stub_decode,
                                      .close = stub_close,
                                      .check_scorer = wf__gpu_check_scorer,
                                      .scores_to_host = stub_scores,
                                      .plan = stub_plan,
                                      .plan_streams = stub_plan_streams};
#endif
