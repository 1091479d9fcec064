/* read_lattice.h - the raw lattice of an utterance from the arcs that a lane wrote. */
#ifndef WF_CUDA_DECODER_READ_LATTICE_H
#define WF_CUDA_DECODER_READ_LATTICE_H

#include "cuda/decoder/batch_chunk.h"
#include "cuda/decoder/gpu_threads.h"

wf_status wf__gpu_drafts_create(int count, struct wf__gpu_drafts **out, wf_error *err);
void wf__gpu_drafts_free(struct wf__gpu_drafts *drafts, int count);

/* What a lane left of an utterance that it has finished. */
typedef struct wf__lane_found {
  const wf__lane_outcome *outcome;
  const wf__lane_step *path; /* the best one */
  const wf__gpu_pages *pages;
} wf__lane_found;

/* Makes the lattice of an utterance from its graph, its best path and its chain of pages. The
 * scoring of `thread` has the utterance's scorer if it is `scored`. `determinizers` (may be NULL)
 * has memory for it. */
wf_status wf__gpu_lattice(const wf__gpu_threads *threads, int thread, const wf_graph *graph,
                          const wf_decoder_options *options, const wf__lane_found *found,
                          bool scored, wf__determinizers *determinizers, wf_lattice **out,
                          wf_error *err);

#endif
