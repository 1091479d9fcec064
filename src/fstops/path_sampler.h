/* path_sampler.h - random successful paths, one arc at a time; under randgen and randequivalent. */
#ifndef WF_FSTOPS_PATH_SAMPLER_H
#define WF_FSTOPS_PATH_SAMPLER_H

#include "fst/fst.h"

typedef struct wf__path_sampler {
  wf_fst_view view;
  uint32_t
      *to_final;   /* [num_states] fewest arcs to a final state; UINT32_MAX: none to be reached */
  uint64_t random; /* state of the generator */
  uint32_t max_length;
  bool by_probability; /* else all choices alike */
} wf__path_sampler;

typedef struct wf__sampled_path {
  WF__VEC(uint64_t) arcs; /* indices */
  uint32_t end;           /* final state */
} wf__sampled_path;

/* Error WF_ERR_ARGUMENT if there are paths but none of at most max_length arcs. */
wf_status wf__path_sampler_init(wf__path_sampler *sampler, const wf_fst *fst, uint64_t seed,
                                uint32_t max_length, bool by_probability, wf_error *err);
/* Is there a path to draw? */
bool wf__path_sampler_any(const wf__path_sampler *sampler);
/* Needs wf__path_sampler_any. `path` is reused. */
wf_status wf__path_sampler_draw(wf__path_sampler *sampler, wf__sampled_path *path, wf_error *err);
void wf__path_sampler_free(wf__path_sampler *sampler);

#endif
