/* path.h - a path of arcs, which is what every search returns, and what searches share to read
 * scores. */
#ifndef WF_SEARCH_PATH_H
#define WF_SEARCH_PATH_H

#include "base/memory.h"
#include "math/score.h"
#include "scorer/scoring.h"
#include "search/decode_graph.h"

/* The outcome of the search over one utterance, or a part of it. */
typedef struct wf__path {
  WF__VEC(uint32_t) arcs;  /* arcs of the graph, one after the other */
  WF__VEC(float) loglikes; /* score that each consuming arc read */
  WF__VEC(int32_t)
  frames; /* number of each frame read, and of the next one if there is one; empty if no frames are
             skipped */
  WF__VEC(int32_t)
  steps; /* with a transducer: the frame of each consuming arc, of which a frame may have several or
            none; else empty */
  float final_cost;    /* of the last state; 0 if it is not final or the search died */
  float relative_cost; /* of an unfinished path: cost of the best ending in a final state, above the
                          cost of the best token; +infinity: there is none */
  double scorer_cost;  /* of the whole path up to here; 0 without a scorer */
  uint32_t flags;      /* WF_RESULT_* */
  int64_t num_decoded;
  uint64_t num_tokens, num_expanded, num_arcs, num_narrowed;
} wf__path;

/* Empties the path; its memory is kept. */
void wf__path_clear(wf__path *path);
void wf__path_free(wf__path *path);
/* Number of the frame that the i-th consuming arc reads, for a path from the start. */
static inline int64_t wf__path_frame(const wf__path *path, uint64_t i) {
  return path->frames.size > 0 ? path->frames.data[i] : (int64_t)i;
}

/* Copies flags and counts, but not the path. */
void wf__path_copy_statistics(const wf__path *from, wf__path *to);
/* Copies the numbers of the first num_read frames and of the next one. */
wf_status wf__path_take_frames(const wf__path *from, uint64_t num_read, wf__path *out,
                               wf_error *err);

/* The sum of a scorer's costs along a path, in path order, and the context after it. */
typedef struct wf__score_sum {
  uint64_t context;
  double cost;
} wf__score_sum;
/* Adds the costs of the path's words, from arc number `first` on, and the cost of ending if
 * `final`. Does nothing without a scorer. */
wf_status wf__path_score(const wf__path *path, uint64_t first, const wf_graph *graph,
                         wf__scoring *scoring, bool final, wf__score_sum *sum, wf_error *err);
/* A log-likelihood as the decoder uses it, with the blank penalty. */
static inline float wf__loglike(const wf_decoder_options *options, const wf_scores *scores,
                                int64_t frame, int32_t column) {
  float loglike = wf__score_at(scores, frame, column);
  return column == options->blank ? loglike - options->blank_penalty : loglike;
}
/* For a score that is NaN, +infinity or beyond 1e20. */
wf_status wf__fail_bad_score(int64_t frame, int32_t column, float value, wf_error *err);
/* Score of the blank above which a frame counts as blank for blank_skip_threshold; +infinity: no
 * frame does. */
float wf__skip_above(const wf_decoder_options *options);

/* Raises max_tokens to max_active and lowers min_active to max_active where needed. Replaces
 * min_active -1 by the default for the graph. */
void wf__decoder_limits(wf_decoder_options *options, const wf_graph *graph);

#endif
