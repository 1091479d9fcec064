/* bias_device.h - biases on a GPU: what a device does for warpfst_generation.h, with the meaning that
 * its calls have. */
#ifndef WF_GENERATION_BIAS_DEVICE_H
#define WF_GENERATION_BIAS_DEVICE_H

#include "base/device.h"
#include "warpfst_generation.h"

struct wf__device_bias {
  wf_status (*create)(const wf_bias *bias, const char *device, const wf_bias_gpu *base,
                      wf_bias_gpu **out, wf_error *err);
  void (*free)(wf_bias_gpu *bias);
  wf_status (*batch_create)(wf_bias_gpu *const *biases, size_t count, wf_bias_batch **out,
                            wf_error *err);
  void (*batch_free)(wf_bias_batch *batch);
  wf_status (*step)(wf_bias_batch *batch, const wf_bias_step *step, wf_error *err);
  wf_status (*copy_states)(const wf_bias_batch *batch, void *stream, wf_bias_state *states,
                           wf_error *err);
};

#endif
