/* fake_profile.c - the one GPU that fake_runtime.h imitates. */
#include "cuda/device/gpu_profile.h"

wf_status wf__gpu_count(int *out, wf_error *err) {
  *out = 1;
  return WF_OK;
}

wf_status wf__gpu_profile_read(int device, wf__gpu_profile *out, wf_error *err) {
  if (device > 0)
    return wf__fail(err, WF_ERR_DEVICE, "device cuda:%d: there are 1 GPUs, numbered from 0",
                    device);
  *out = (wf__gpu_profile){WF__SHARED_KB, WF__MAX_RANK_BITS, 1};
  return WF_OK;
}
