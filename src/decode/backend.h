/* backend.h - what a search backend must offer, and what every backend shares.
 *
 * Utterances come checked (columns, NaN) from decoder.c and go back as a path of arcs; words, times and costs are made from the path by
 * best_path.c, so that they cannot differ between backends. */
#ifndef WF_DECODE_BACKEND_H
#define WF_DECODE_BACKEND_H

#include "base/memory.h"
#include "decode/decode_graph.h"
#include "scorer/scoring.h"

/* The outcome of the search over one utterance. */
typedef struct wf__path {
  WF__VEC(uint32_t) arcs;  /* arcs of the graph from the start on */
  WF__VEC(float) loglikes; /* [num_decoded] score that each consuming arc read */
  float final_cost;       /* of the last state, 0 if not final or died */
  double scorer_cost;     /* see wf__path_score; 0 without a scorer */
  uint32_t flags;         /* WF_RESULT_* */
  int64_t num_decoded;
  uint64_t num_tokens, num_expanded, num_arcs, num_narrowed;
} wf__path;

typedef struct wf__batch {
  const wf_scores *scores; /* [count] */
  const bool *skip;        /* [count] utterances that failed their checks */
  const wf_scorer *const *scorers; /* [count], NULL entries: none; NULL: none at all */
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
  /* The rest is NULL on the CPU. */
  wf_status (*set_stream)(void *self, void *stream, wf_error *err);
  wf_status (*plan)(const wf_graph *graph, const wf_decoder_options *options, const wf_batch_shape *shape, wf_plan *out, wf_error *err);
  void (*planned)(const void *self, wf_plan *out); /* the largest plan so far */
} wf__backend;

extern const wf__backend wf__cpu_backend;  /* src/cpu/cpu_backend.c */
extern const wf__backend wf__cuda_backend; /* src/cuda/cuda_backend.c, or cuda_stub.c in builds without CUDA */

/* Utterances of the batch that are not skipped, longest first: the last to start should be short. `which` has room for all. */
wf_status wf__longest_first(const wf__batch *batch, uint32_t *which, uint32_t *count, wf_error *err);

/* max_tokens is at least max_active, min_active at most. */
void wf__decoder_limits(wf_decoder_options *options);

/* Turns a path into words, times and costs. */
wf_status wf__result_fill(wf_result *result, const wf_graph *graph, const wf_decoder_options *options, const wf__path *path, wf_error *err);
void wf__path_free(wf__path *path);
/* Sets path->scorer_cost: what the scorer says along the path, and at its end unless it is not final. */
wf_status wf__path_score(wf__path *path, const wf_graph *graph, wf__scoring *scoring, wf_error *err);

/* Fails the utterance whose score of this frame and column is NaN, +infinity or beyond 1e20. */
void wf__result_bad_score(wf_result *result, int64_t frame, int32_t column, float value);

/* What "cpu", "cuda", "cuda:N", "cuda:N,M" and "cuda:all" name. */
enum { WF__MAX_WORKERS = 64 };
typedef struct wf__devices {
  bool cuda;
  int count; /* 0: all there are */
  int numbers[WF__MAX_WORKERS];
} wf__devices;
wf_status wf__devices_parse(const char *text, wf__devices *out, wf_error *err);
/* How often the list names this device. */
int wf__devices_sharing(const wf__devices *devices, int number);

/* Bytes of one score. */
static inline uint64_t wf__dtype_bytes(wf_dtype dtype) { return dtype == WF_FLOAT32 ? 4 : 2; }

#endif
