/* path.c - paths: their memory, their costs, and limits that all searches share. */
#include "search/path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

wf_status wf__fail_bad_score(int64_t frame, int32_t column, float value, wf_error *err) {
  return isnan(value) ? wf__fail(err, WF_ERR_ARGUMENT, "score of frame %lld, column %d is NaN",
                                 (long long)frame, column)
                      : wf__fail(err, WF_ERR_ARGUMENT, "score of frame %lld, column %d is %g",
                                 (long long)frame, column, (double)value);
}

void wf__path_clear(wf__path *path) {
  path->arcs.size = path->loglikes.size = path->frames.size = path->steps.size = 0;
}

void wf__path_free(wf__path *path) {
  wf__vec_free(&path->arcs);
  wf__vec_free(&path->loglikes);
  wf__vec_free(&path->frames);
  wf__vec_free(&path->steps);
}

void wf__path_copy_statistics(const wf__path *from, wf__path *to) {
  to->flags = from->flags;
  to->num_decoded = from->num_decoded;
  to->num_tokens = from->num_tokens;
  to->num_expanded = from->num_expanded;
  to->num_arcs = from->num_arcs;
  to->num_narrowed = from->num_narrowed;
}

wf_status wf__path_take_frames(const wf__path *from, uint64_t num_read, wf__path *out,
                               wf_error *err) {
  uint64_t count = num_read < from->frames.size ? num_read + 1 : from->frames.size;
  WF__TRY(wf__vec_grow(&out->frames, count, "a path", err));
  if (count > 0) memcpy(out->frames.data, from->frames.data, count * sizeof *from->frames.data);
  out->frames.size = count;
  return WF_OK;
}

wf_status wf__path_score(const wf__path *path, uint64_t first, const wf_graph *graph,
                         wf__scoring *scoring, bool final, wf__score_sum *sum, wf_error *err) {
  if (scoring->scorer == NULL) return WF_OK;
  float cost;
  uint32_t state = 0;
  for (uint64_t i = first; i < path->arcs.size; i++) {
    int32_t word = wf__graph_arc_along(graph, &state, path->arcs.data[i]).olabel;
    if (word == 0) continue;
    WF__TRY(wf__scoring_step(scoring, sum->context, word, &cost, &sum->context, err));
    sum->cost += (double)cost;
  }
  if (!final) return WF_OK;
  WF__TRY(wf__scoring_final(scoring, sum->context, &cost, err));
  sum->cost += (double)cost;
  return WF_OK;
}

void wf__decoder_limits(wf_decoder_options *options, const wf_graph *graph) {
  if (options->min_active < 0) options->min_active = graph->blank_column >= 0 ? 20 : 200;
  if (options->max_tokens < options->max_active) options->max_tokens = options->max_active;
  if (options->min_active > options->max_active) options->min_active = options->max_active;
}

float wf__skip_above(const wf_decoder_options *options) {
  return options->blank_skip_threshold < 1 ? (float)log((double)options->blank_skip_threshold)
                                           : INFINITY;
}
