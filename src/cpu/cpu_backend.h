/* cpu_backend.h - a decoder's threads and their searches, as its batches and its streams use them. */
#ifndef WF_CPU_CPU_BACKEND_H
#define WF_CPU_CPU_BACKEND_H

#include "base/threads.h"
#include "cpu/search.h"

struct wf__cpu_backend {
  const wf_graph *graph;
  wf_decoder_options options;
  wf__pool *pool;
  wf__search **searches; /* [pool size], made on first use */
};

/* The worker's search. */
wf_status wf__cpu_search(struct wf__cpu_backend *self, int worker, wf__search **out, wf_error *err);
/* Fails the result, unless its scores were bad before, if one of these is. The first of them is the utterance's frame `first`. */
bool wf__cpu_check_values(const wf_scores *scores, int32_t num_columns, int64_t first, wf_result *result);

extern const wf__stream_backend wf__cpu_streams; /* cpu_streams.c */

#endif
