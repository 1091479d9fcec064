/* best_path.c - from a path of arcs to words with times, and its cost split into graph and acoustics.
 *
 * Costs are summed anew along the path, in double, in path order: the search's own float sums only ranked the paths. */
#include <math.h>
#include <string.h>

#include "decode/backend.h"

/* A word starts with the first frame consumed at or after the arc that carries it. It ends where the next one starts, less the
 * frames at its end whose column is the blank. */
static void close_word(wf_result *result, const wf_graph *graph, int32_t blank, int64_t end) {
  if (result->num_words == 0) return;
  wf_word *word = &result->words[result->num_words - 1];
  while (blank >= 0 && end > word->start_frame + 1 && graph->columns[result->alignment[end - 1]] == blank) end--;
  word->end_frame = (int32_t)end;
}

static wf_status allocate(wf_result *result, const wf_graph *graph, const wf__path *path, wf_error *err) {
  size_t num_words = 0;
  for (uint64_t i = 0; i < path->arcs.size; i++) num_words += graph->view.arcs[path->arcs.data[i]].olabel != 0;
  result->words = wf__alloc(num_words, sizeof *result->words);
  result->alignment = wf__alloc((uint64_t)path->num_decoded, sizeof *result->alignment);
  if (result->words == NULL || result->alignment == NULL)
    return wf__fail_memory(err, num_words * sizeof *result->words + (uint64_t)path->num_decoded * 4, "a result");
  return WF_OK;
}

wf_status wf__result_fill(wf_result *result, const wf_graph *graph, const wf_decoder_options *options, const wf__path *path, wf_error *err) {
  WF__TRY(allocate(result, graph, path, err));
  result->flags = path->flags;
  result->num_decoded = path->num_decoded;
  result->num_tokens = path->num_tokens;
  result->num_expanded = path->num_expanded;
  result->num_arcs = path->num_arcs;
  result->num_narrowed = path->num_narrowed;
  int64_t frame = 0;
  double graph_cost = 0, loglike = 0;
  for (uint64_t i = 0; i < path->arcs.size; i++) {
    const wf_arc *arc = &graph->view.arcs[path->arcs.data[i]];
    graph_cost += (double)arc->weight;
    if (arc->olabel != 0) {
      close_word(result, graph, options->blank, frame);
      graph_cost -= (double)options->word_score;
      result->words[result->num_words++] = (wf_word){.label = arc->olabel, .start_frame = (int32_t)frame, .end_frame = (int32_t)frame};
    }
    if (arc->ilabel == 0) continue;
    loglike += (double)path->loglikes.data[frame];
    result->alignment[frame++] = arc->ilabel;
  }
  close_word(result, graph, options->blank, frame);
  result->graph_cost = graph_cost + (double)path->final_cost;
  result->acoustic_cost = 0 - (double)options->acoustic_scale * loglike;
  if (options->acoustic_scale == 0) result->acoustic_cost = 0;
  result->scorer_cost = path->scorer_cost;
  result->cost = result->graph_cost + result->acoustic_cost + result->scorer_cost;
  return WF_OK;
}

wf_status wf__path_score(wf__path *path, const wf_graph *graph, wf__scoring *scoring, wf_error *err) {
  path->scorer_cost = 0;
  if (scoring->scorer == NULL) return WF_OK;
  uint64_t context = scoring->start;
  float cost;
  for (uint64_t i = 0; i < path->arcs.size; i++) {
    int32_t word = graph->view.arcs[path->arcs.data[i]].olabel;
    if (word == 0) continue;
    WF__TRY(wf__scoring_step(scoring, context, word, &cost, &context, err));
    path->scorer_cost += (double)cost;
  }
  if (path->flags & WF_RESULT_NOT_FINAL) return WF_OK;
  WF__TRY(wf__scoring_final(scoring, context, &cost, err));
  path->scorer_cost += (double)cost;
  return WF_OK;
}

void wf__path_free(wf__path *path) {
  wf__vec_free(&path->arcs);
  wf__vec_free(&path->loglikes);
}

void wf_result_free(wf_result *result) {
  if (result == NULL) return;
  free(result->words);
  free(result->alignment);
  wf_lattice_free(result->lattice);
  free(result);
}
