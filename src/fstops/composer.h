/* composer.h - composing many pairs: on the CPU in composer.c, on a GPU by its device. */
#ifndef WF_FSTOPS_COMPOSER_H
#define WF_FSTOPS_COMPOSER_H

#include <string.h>

#include "base/device.h"
#include "fst/fst.h"
#include "fstops/compose_job.h"

typedef struct wf__gpu_composer wf__gpu_composer;

struct wf_composer {
  size_t count;
  wf_fst **inputs[2]; /* [count] references to the fsts of each side */
  wf_compose_options options;
  bool with_origins, has_run;
  wf__gpu_composer *gpu;   /* NULL: on the CPU, which uses the fields below */
  wf_fst **made;           /* [count] results of the last run, or NULL */
  wf_arc_origin **origins; /* [count] or NULL if not requested */
};

/* Does a device option name a GPU? */
static inline bool wf__names_gpu(const char *device) {
  return device != NULL && device[0] != '\0' && strcmp(device, "cpu") != 0;
}
static inline bool wf__compose_on_gpu(const wf_compose_options *options) {
  return wf__names_gpu(options->device);
}

/* --- compose.c --------------------------------------------------------------------------- */

/* Composes one pair on the CPU. The options must have been checked. `out_origins` may be NULL. */
wf_status wf__compose_pair(const wf_fst *a, const wf_fst *b, const wf_compose_options *options,
                           wf_fst **out, wf_arc_origin **out_origins, wf_error *err);
/* The same for more than two fsts, from left to right, without writing the compositions in between,
 * on the CPU or a GPU. */
wf_status wf__compose_fsts(const wf_fst *const *fsts, size_t count,
                           const wf_compose_options *options, wf_fst **out, wf_error *err);
/* The number of threads that num_threads = 0 stands for. */
int32_t wf__compose_auto_threads(void);

/* --- on a GPU: the canonical order, the same bytes as on the CPU -------------------------- */

struct wf__device_compose {
  /* `options` must have been checked; options->device names the GPU. `a` and `b` are [count]. */
  wf_status (*create)(wf_fst *const *a, wf_fst *const *b, size_t count,
                      const wf_compose_options *options, bool with_origins, wf__gpu_composer **out,
                      wf_error *err);
  wf_status (*run)(wf__gpu_composer *composer, wf_error *err);
  /* More than two fsts, from left to right; `sides` [count] are prepared as for the CPU. */
  wf_status (*sides)(const wf__compose_side *sides, size_t count, const wf_compose_options *options,
                     wf__compose_output *out, wf_error *err);
  /* Like wf_composer_get_view and wf_composer_to_fst. */
  wf_status (*view)(const wf__gpu_composer *composer, size_t i, wf_fst_view *view,
                    const wf_arc_origin **origins, wf_error *err);
  wf_status (*get)(const wf__gpu_composer *composer, size_t i, wf_fst **out,
                   wf_arc_origin **out_origins, wf_error *err);
  void (*free)(wf__gpu_composer *composer);
  /* Levels of the last run's breadth-first searches, from the start and from the final states. The
   * second is 0 if both ran together. Both are 0 without a table of bits. */
  void (*levels)(const wf__gpu_composer *composer, uint32_t out[2]);
};

#endif
