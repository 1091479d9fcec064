/* device.h - the registry of devices: how work reaches a GPU without calls upwards.
 *
 *   src/cuda/register.c --wf__device_register--> wf__device <--wf__device_find-- who needs a GPU
 *
 * Each part of the library declares what a device does for it, in a table. src/cuda is in a library
 * of its own, libwarpfst-cuda, which wf__device_find loads when it is called first: from the folder
 * of this library, or where the system's loader looks. A program that links the static library has
 * both. */
#ifndef WF_BASE_DEVICE_H
#define WF_BASE_DEVICE_H

#include "base/error.h"

typedef struct wf__device {
  const char *build; /* WF__BUILD of build_id.h when it was compiled. Tables and structures are
                        internal, so only a device of the library's own build fits. First */
  const struct wf__backend *search;               /* decode/backend.h */
  const struct wf__device_graph *graph;           /* search/graph_device.h */
  const struct wf__device_fstops *fstops;         /* fstops/device_batch.h */
  const struct wf__device_compose *compose;       /* fstops/composer.h */
  const struct wf__device_rnn *rnn;               /* lm/rnn_device.h */
  const struct wf__device_bias *bias;             /* generation/bias_device.h */
  const struct wf__device_transducer *transducer; /* search/transducer/transducer_device.h */
} wf__device;

/* For a device's code that is linked with the library, or that the library loads. A device of
 * another build is refused: wf__device_find says so. `device` stays valid. */
void wf__device_register(const wf__device *device);
/* NULL, with WF_ERR_DEVICE and the reason in `err`, if there is no GPU code. `name` is for the
 * message: a device option, or NULL. Thread-safe. */
const wf__device *wf__device_find(const char *name, wf_error *err);
/* The device that was found before. For objects that live on it. */
const wf__device *wf__device_found(void);

#endif
