/* compose_stub.c - composition on a GPU in a build without CUDA: every call fails. */
#ifndef WARPFST_CUDA
#include "fstops/device_batch.h"

static wf_status no_device(const char *device, wf_error *err) {
  return wf__fail(err, WF_ERR_DEVICE, "device %s: this library was built without CUDA",
                  device != NULL ? device : "cuda");
}

wf_status wf__gpu_composer_create(wf_fst *const *a, wf_fst *const *b, size_t count,
                                  const wf_compose_options *options, bool with_origins,
                                  wf__gpu_composer **out, wf_error *err) {
  *out = NULL;
  return no_device(options->device, err);
}

wf_status wf__gpu_composer_run(wf__gpu_composer *composer, wf_error *err) {
  return no_device(NULL, err);
}

wf_status wf__gpu_composer_view(const wf__gpu_composer *composer, size_t i, wf_fst_view *view,
                                const wf_arc_origin **origins, wf_error *err) {
  return no_device(NULL, err);
}

wf_status wf__gpu_composer_get(const wf__gpu_composer *composer, size_t i, wf_fst **out,
                               wf_arc_origin **out_origins, wf_error *err) {
  *out = NULL;
  return no_device(NULL, err);
}

wf_status wf__gpu_compose_sides(const wf__compose_side *sides, size_t count,
                                const wf_compose_options *options, wf__compose_output *out,
                                wf_error *err) {
  return no_device(options->device, err);
}

void wf__gpu_composer_free(wf__gpu_composer *composer) {}
void wf__gpu_composer_levels(const wf__gpu_composer *composer, uint32_t out[2]) {
  out[0] = out[1] = 0;
}

wf_status wf__gpu_batch_of_composer(const wf__gpu_composer *composer, wf_semiring semiring,
                                    wf__gpu_batch **out, wf_error *err) {
  return no_device(NULL, err);
}
#endif
