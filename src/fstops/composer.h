/* composer.h - compositions of many pairs: on the CPU here, on a GPU in src/cuda/compose/. */
#ifndef WF_FSTOPS_COMPOSER_H
#define WF_FSTOPS_COMPOSER_H

#include "fst/fst.h"

typedef struct wf__gpu_composer wf__gpu_composer;

struct wf_composer {
  size_t count;
  wf_fst **inputs[2]; /* [count] references each */
  wf_compose_options options;
  bool with_origins, has_run;
  wf__gpu_composer *gpu;   /* NULL: on the CPU, which has the rest */
  wf_fst **made;           /* [count] results of the last run */
  wf_arc_origin **origins; /* [count]; NULL: not requested */
};

/* --- compose.c --------------------------------------------------------------------------- */

/* One pair on the CPU, with checked options. `out_origins` may be NULL. */
wf_status wf__compose_pair(const wf_fst *a, const wf_fst *b, const wf_compose_options *options,
                           wf_fst **out, wf_arc_origin **out_origins, wf_error *err);
/* Threads that num_threads=0 means for many pairs. */
int32_t wf__compose_auto_threads(void);

/* --- src/cuda/compose/: the canonical order, the same bytes as on the CPU ---------------- */

/* `options` are checked, options->device names the GPU. The arrays are [count]. */
wf_status wf__gpu_composer_create(wf_fst *const *a, wf_fst *const *b, size_t count,
                                  const wf_compose_options *options, bool with_origins,
                                  wf__gpu_composer **out, wf_error *err);
wf_status wf__gpu_composer_run(wf__gpu_composer *composer, wf_error *err);
/* As wf_composer_view and wf_composer_get. */
wf_status wf__gpu_composer_view(const wf__gpu_composer *composer, size_t i, wf_fst_view *view,
                                const wf_arc_origin **origins, wf_error *err);
wf_status wf__gpu_composer_get(const wf__gpu_composer *composer, size_t i, wf_fst **out,
                               wf_arc_origin **out_origins, wf_error *err);
/* NULL is fine. */
void wf__gpu_composer_free(wf__gpu_composer *composer);
/* Levels of the last run's searches, from the start and from the final states. The second is 0
 * where both ran together, both are 0 without a table of bits. */
void wf__gpu_composer_levels(const wf__gpu_composer *composer, uint32_t out[2]);

#endif
