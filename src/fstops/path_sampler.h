/* path_sampler.h - random successful paths, one at a time. randgen and randequivalent use it. */
#ifndef WF_FSTOPS_PATH_SAMPLER_H
#define WF_FSTOPS_PATH_SAMPLER_H

#include "fst/fst.h"

typedef struct wf__path_sampler {
  wf_fst_view view;
  /* [num_states] fewest arcs to a final state; UINT32_MAX if none can be reached */
  uint32_t *to_final;
  uint64_t random; /* state of the random number generator */
  uint32_t max_length;
  bool by_probability; /* otherwise all choices have the same probability */
} wf__path_sampler;

typedef struct wf__sampled_path {
  WF__VEC(uint64_t) arcs; /* indices in the fst's arcs */
  uint32_t end;           /* final state */
} wf__sampled_path;

/* Returns WF_ERR_ARGUMENT if there are successful paths, but none of at most max_length arcs. */
wf_status wf__path_sampler_init(wf__path_sampler *sampler, const wf_fst *fst, uint64_t seed,
                                uint32_t max_length, bool by_probability, wf_error *err);
/* Is there any successful path? */
bool wf__path_sampler_any(const wf__path_sampler *sampler);
/* Draws a path into `path`, whose memory is reused. wf__path_sampler_any must be true. */
wf_status wf__path_sampler_draw(wf__path_sampler *sampler, wf__sampled_path *path, wf_error *err);
void wf__path_sampler_free(wf__path_sampler *sampler);

#endif
