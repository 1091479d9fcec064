/* pipeline.h - graphs built breadth first by several threads: what composition and determinization
 * have in common.
 *
 * States are numbered in order of discovery and expanded in that order. The next states are cut
 * into chunks:
 *
 *     take: copy what expanding needs -> expand: arcs, next states not yet numbers -> intern, in
 *     order: next states become numbers
 *
 * While the chunks of a batch are expanded, one thread interns the batch before, and only it writes
 * to what all share. Numbers depend neither on where batches end nor on threads. A graph that is
 * too narrow for that goes through the same steps in one thread. */
#ifndef WF_FSTOPS_PIPELINE_H
#define WF_FSTOPS_PIPELINE_H

#include "base/threads.h"

enum { WF__CHUNK_STATES = 256 };

/* What a chunk is only these functions know. `user` is shared; `first` is the number of a chunk's
 * first state. */
typedef struct wf__pipeline {
  void *user;
  size_t chunk_bytes;                /* chunks start zeroed and are used again and again */
  uint64_t (*num_known)(void *user); /* states numbered so far */
  wf_status (*take)(void *user, void *chunk, uint64_t first, uint64_t end, wf_error *err);
  /* With `shared`, other threads expand and one interns at the same time; `err` is NULL then.
   * Without, nothing else runs. */
  wf_status (*expand)(void *user, void *chunk, uint64_t first, int worker, bool shared,
                      wf_error *err);
  /* Expands what `expand` left out while it was shared. Nothing else runs. NULL: there is no such
   * thing. */
  wf_status (*expand_postponed)(void *user, void *chunk, uint64_t first, wf_error *err);
  wf_status (*intern)(void *user, void *chunk, uint64_t first, wf_error *err);
  void (*free_chunk)(void *chunk);
} wf__pipeline;

/* Goes on until all known states are expanded and interned. When expanding fails, without `shared`,
 * what the chunk holds by then is interned before the error is returned, so that states fail in
 * order. */
wf_status wf__pipeline_run(const wf__pipeline *pipeline, wf__pool *pool, wf_error *err);

#endif
