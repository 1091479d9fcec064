/* bias_device.c - biases on a GPU, by way of the registry of devices. */
#include "generation/bias_device.h"

#include <string.h>

static const struct wf__device_bias *found(void) { return wf__device_found()->bias; }

wf_status wf_bias_gpu_create(const wf_bias *bias, const char *device, const wf_bias_gpu *base,
                             wf_bias_gpu **out, wf_error *err) {
  *out = NULL;
  const wf__device *there = wf__device_find(device, err);
  if (there == NULL) return WF_ERR_DEVICE;
  if (there->bias == NULL)
    return wf__fail(err, WF_ERR_DEVICE, "device %s: has no code for biases", device);
  return there->bias->create(bias, device, base, out, err);
}

void wf_bias_gpu_free(wf_bias_gpu *bias) {
  if (bias != NULL) found()->free(bias);
}

static wf_status check_count(size_t count, wf_error *err) {
  return count > 0 && count <= INT32_MAX
             ? WF_OK
             : wf__fail(err, WF_ERR_ARGUMENT, "bias: %zu hypotheses, expected 1 to 2^31 - 1",
                        count);
}

wf_status wf_bias_batch_create(wf_bias_gpu *const *biases, size_t count, wf_bias_batch **out,
                               wf_error *err) {
  *out = NULL;
  WF__TRY(check_count(count, err));
  return found()->batch_create(biases, count, out, err);
}

void wf_bias_batch_free(wf_bias_batch *batch) {
  if (batch != NULL) found()->batch_free(batch);
}

wf_status wf_bias_batch_step(wf_bias_batch *batch, const wf_bias_step *given, wf_error *err) {
  wf_bias_step step = {0};
  memcpy(&step, given, given->struct_size < sizeof step ? given->struct_size : sizeof step);
  if ((step.places != NULL || step.tokens != NULL) && step.index_bytes != 4 &&
      step.index_bytes != 8)
    return wf__fail(err, WF_ERR_ARGUMENT, "bias: places and tokens of %d bytes, expected 4 or 8",
                    step.index_bytes);
  WF__TRY(check_count(step.count, err));
  return found()->step(batch, &step, err);
}

wf_status wf_bias_batch_copy_states(const wf_bias_batch *batch, void *stream, wf_bias_state *states,
                                    wf_error *err) {
  return found()->copy_states(batch, stream, states, err);
}
