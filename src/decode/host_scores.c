/* host_scores.c - checks scores, and copies those in GPU memory. */
#include "decode/host_scores.h"

#include "base/device.h"
#include "decode/backend.h"

wf_status wf__host_scores(const wf_scores *given, wf_scores *out, void **copy, wf_error *err) {
  *copy = NULL;
  *out = *given;
  if (given->num_frames < 0 || given->num_frames > INT32_MAX - 1 || given->dtype < WF_FLOAT32 ||
      given->dtype > WF_BFLOAT16 || given->num_columns < 0 || given->stride < given->num_columns ||
      (given->data == NULL && given->num_frames > 0))
    return wf__fail(err, WF_ERR_ARGUMENT, "invalid scores: %lld frames, %d columns, stride %lld",
                    (long long)given->num_frames, given->num_columns, (long long)given->stride);
  if (!given->on_device) return WF_OK;
  if (given->num_frames == 0 || given->num_columns == 0) {
    out->on_device = false;
    return WF_OK;
  }
  const wf__device *device = wf__device_find(NULL, err);
  return device != NULL ? device->search->scores_to_host(given, out, copy, err)
                        : wf__fail_prefix(err, WF_ERR_DEVICE, "the scores are in GPU memory");
}
