/* backend.h - what a search backend must offer, and what every backend shares.
 *
 * Utterances come checked (columns, NaN) from decoder.c and go back as a path of arcs; words, times and costs are made from the path by
 * best_path.c, so that they cannot differ between backends. */
#ifndef WF_DECODE_BACKEND_H
#define WF_DECODE_BACKEND_H

#include "base/memory.h"
#include "decode/decode_graph.h"

/* The outcome of the search over one utterance. */
typedef struct wf__path {
  WF__VEC(uint32_t) arcs; /* arcs of the graph from the start on */
  float final_cost;       /* of the last state, 0 if not final or died */
  uint32_t flags;         /* WF_RESULT_* */
  int64_t num_decoded;
  uint64_t num_tokens, num_expanded, num_arcs, num_narrowed;
} wf__path;

typedef struct wf__batch {
  const wf_scores *scores; /* [count] */
  const bool *skip;        /* [count] utterances that failed their checks */
  size_t count;
  wf_result **results;     /* [count] preallocated; the backend calls wf__result_fill */
  const wf_progress *progress;
} wf__batch;

typedef struct wf__backend {
  const char *name;
  wf_status (*open)(const wf_graph *graph, const wf_decoder_options *options, void **out, wf_error *err);
  /* Fails only for reasons that are not an utterance's own. */
  wf_status (*decode)(void *self, const wf__batch *batch, wf_error *err);
  void (*close)(void *self);
} wf__backend;

extern const wf__backend wf__cpu_backend; /* src/cpu/cpu_backend.c */

/* Turns a path into words, times and costs. */
wf_status wf__result_fill(wf_result *result, const wf_graph *graph, const wf_decoder_options *options, const wf_scores *scores,
                          const wf__path *path, wf_error *err);

#endif
