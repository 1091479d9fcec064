/* device.c - the registry of devices. */
#include "base/device.h"

#include <stdatomic.h>

static _Atomic(const wf__device *) registered;

void wf__device_register(const wf__device *device) { atomic_store(&registered, device); }

const wf__device *wf__device_found(void) { return atomic_load(&registered); }

const wf__device *wf__device_find(const char *name, wf_error *err) {
  const wf__device *device = wf__device_found();
  if (device == NULL)
    wf__fail(err, WF_ERR_DEVICE, "device %s: this library was built without CUDA",
             name != NULL ? name : "cuda");
  return device;
}
