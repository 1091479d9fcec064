/* pipeline.h - builds a graph breadth-first with several threads. Shared by composition and
 * determinization.
 *
 * States are numbered in order of discovery and expanded in that order, in chunks:
 *
 *   take     copies what expanding the chunk's states needs
 *   expand   makes the arcs; their targets have no numbers yet
 *   intern   looks up the targets and replaces them by numbers; chunks are interned in order
 *
 * While several threads expand the chunks of a batch, one thread interns the batch before it, and
 * only that thread writes to shared data. So the numbers depend neither on the size of batches nor
 * on the number of threads. If there are too few states to expand, one thread does both steps. */
#ifndef WF_FSTOPS_PIPELINE_H
#define WF_FSTOPS_PIPELINE_H

#include "base/threads.h"

enum { WF__CHUNK_STATES = 256 };

/* The callbacks. Only they know the layout of a chunk. `user` is shared by all calls; `first` is
 * the number of a chunk's first state. */
typedef struct wf__pipeline {
  void *user;
  size_t chunk_bytes;                /* chunks are zero at first, and are reused */
  uint64_t (*num_known)(void *user); /* number of states numbered so far */
  wf_status (*take)(void *user, void *chunk, uint64_t first, uint64_t end, wf_error *err);
  /* With `shared`, other threads expand and intern at the same time, and `err` is NULL. Otherwise
   * no other thread runs. */
  wf_status (*expand)(void *user, void *chunk, uint64_t first, int worker, bool shared,
                      wf_error *err);
  /* Expands the states that `expand` postponed while it was shared. No other thread runs. May be
   * NULL. */
  wf_status (*expand_postponed)(void *user, void *chunk, uint64_t first, wf_error *err);
  wf_status (*intern)(void *user, void *chunk, uint64_t first, wf_error *err);
  void (*free_chunk)(void *chunk);
} wf__pipeline;

/* Runs until all known states are expanded and interned. If `expand` fails without `shared`, the
 * part of the chunk expanded so far is interned before the error is returned, so that the first
 * failing state reports its error. */
wf_status wf__pipeline_run(const wf__pipeline *pipeline, wf__pool *pool, wf_error *err);

#endif
