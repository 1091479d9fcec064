/* device.h - the registry of devices: how work reaches a GPU without calls upwards.
 *
 *   src/cuda/register.c --wf__device_register--> wf__device <--wf__device_find-- who needs a GPU
 *
 * Each part of the library declares the functions that a device does for it, in a table. */
#ifndef WF_BASE_DEVICE_H
#define WF_BASE_DEVICE_H

#include "base/error.h"

typedef struct wf__device {
  const struct wf__backend *search;               /* decode/backend.h */
  const struct wf__device_graph *graph;           /* search/graph_device.h */
  const struct wf__device_fstops *fstops;         /* fstops/device_batch.h */
  const struct wf__device_compose *compose;       /* fstops/composer.h */
  const struct wf__device_rnn *rnn;               /* lm/rnn_device.h */
  const struct wf__device_transducer *transducer; /* search/transducer/transducer_device.h */
} wf__device;

/* Called before any search of a device, by code that is linked with or loaded by the library.
 * `device` stays valid. */
void wf__device_register(const wf__device *device);
/* NULL, with WF_ERR_DEVICE and the reason in `err`, if there is no GPU code. `name` is for the
 * message: a device option, or NULL. Thread-safe. */
const wf__device *wf__device_find(const char *name, wf_error *err);
/* The device that was found before. For objects that live on it. */
const wf__device *wf__device_found(void);

#endif
