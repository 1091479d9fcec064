/* compose_device.h - the composition of src/cuda/, called from here and defined there: canonical
 * order, the same bytes as on the CPU. */
#ifndef WF_FSTOPS_COMPOSE_DEVICE_H
#define WF_FSTOPS_COMPOSE_DEVICE_H

#include "fst/fst.h"

/* out[i] of a[i or 0] and b[i or 0]; `options` are checked, options->device names the GPU.
 * `out_origins` may be NULL. On failure, out[] may hold some. */
wf_status wf__device_compose(const wf_fst *const *a, size_t num_a, const wf_fst *const *b,
                             size_t num_b, size_t count, const wf_compose_options *options,
                             wf_fst **out, wf_arc_origin **out_origins, wf_error *err);

/* Checks of every call that composes on a device or many pairs: numbers of inputs, options that go
 * together. */
wf_status wf__compose_check(size_t num_a, size_t num_b, size_t count,
                            const wf_compose_options *options, wf_error *err);

#endif
