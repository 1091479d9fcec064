/* search_end.c - the end of the search, or a partial result: the last token of the path, the
 * backtrace, the lattice. */
#include <math.h>

#include "math/cost.h"
#include "search/frame/search.h"

#define NONE UINT32_MAX

/* Cost of ending in tokens[i] of the newest frame: its cost and, `with_final`, the final costs
 * of graph and scorer. */
static wf_status ending_cost(wf__search *search, uint64_t i, bool with_final, float *cost,
                             wf_error *err) {
  const wf__token *token = &search->tokens.data[i];
  float added = 0;
  *cost = token->cost;
  if (!with_final) return WF_OK;
  *cost += wf__graph_final(search->base.graph, token->state);
  if (*cost == INFINITY || search->base.scoring.scorer == NULL) return WF_OK;
  WF__TRY(wf__scoring_final(&search->base.scoring, wf__search_context(search, i), &added, err));
  *cost += added;
  return WF_OK;
}

/* Finds the best token by (ending cost, state, context) and stores its number in *out; NONE if
 * `with_final` and no state is final. */
static wf_status best_token(wf__search *search, bool with_final, uint32_t *out, wf_error *err) {
  bool scored = search->base.scoring.scorer != NULL;
  uint64_t best_key = UINT64_MAX, best_context = UINT64_MAX;
  *out = NONE;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    float cost;
    WF__TRY(ending_cost(search, i, with_final, &cost, err));
    if (cost == INFINITY) continue;
    uint64_t key = (uint64_t)wf__ordered_cost(cost) << 32 | search->tokens.data[i].state,
             context = scored ? wf__search_context(search, i) : 0;
    if (key > best_key || (key == best_key && context >= best_context)) continue;
    best_key = key;
    best_context = context;
    *out = (uint32_t)i;
  }
  return WF_OK;
}

/* Sets the cost of the best ending, above that of the best token. */
static wf_status find_relative_cost(wf__search *search, float best_cost, wf_error *err) {
  uint32_t end = NONE;
  float cost = INFINITY;
  if (!search->died) WF__TRY(best_token(search, true, &end, err));
  if (end != NONE) WF__TRY(ending_cost(search, end, true, &cost, err));
  search->base.path.relative_cost = cost - best_cost;
  return WF_OK;
}

/* Reads the scores along the path, in its order. */
static wf_status read_loglikes(wf__search *search, const wf_scores *scores, wf_error *err) {
  const wf_graph *graph = search->base.graph;
  search->base.path.loglikes.size = 0;
  WF__TRY(wf__vec_grow(&search->base.path.loglikes, (uint64_t)search->base.path.num_decoded,
                       "a path", err));
  for (uint64_t i = 0; i < search->base.path.arcs.size; i++) {
    int32_t label = wf__graph_arc(graph, search->base.path.arcs.data[i]).ilabel;
    if (label == 0) continue;
    int64_t frame = wf__path_frame(&search->base.path, search->base.path.loglikes.size);
    search->base.path.loglikes.data[search->base.path.loglikes.size++] =
        wf__loglike(&search->base.options, scores, frame, graph->columns[label]);
  }
  return WF_OK;
}

/* Makes the path that ends in the best ending, or if it `goes_on`, in the best token. */
static wf_status make_path(wf__search *search, bool goes_on, wf_error *err) {
  wf__path *path = &search->base.path;
  uint32_t number = NONE;
  if (!search->died && !goes_on) WF__TRY(best_token(search, true, &number, err));
  path->final_cost =
      number != NONE ? wf__graph_final(search->base.graph, search->tokens.data[number].state) : 0;
  if (number == NONE) {
    WF__TRY(best_token(search, false, &number, err));
    path->flags |= WF_RESULT_NOT_FINAL;
  }
  const wf__token *best = &search->tokens.data[number];
  if (goes_on) WF__TRY(find_relative_cost(search, best->cost, err));
  path->arcs.size = path->loglikes.size = 0;
  uint32_t at = search->died ? best->prev : (uint32_t)search->trace_base + number;
  WF__TRY(wf__trace_path(&search->trace, at, search->base.graph, path, err));
  wf__score_sum sum = search->base.committed_sum;
  WF__TRY(wf__path_score(path, 0, search->base.graph, &search->base.scoring,
                         (path->flags & WF_RESULT_NOT_FINAL) == 0, &sum, err));
  path->scorer_cost = sum.cost;
  return WF_OK;
}

wf_status wf__search_go_to_end(wf__searcher *searcher, wf_error *err) {
  searcher->waits = 0;
  if (searcher->ended) return WF_OK;
  searcher->ended = true;
  return wf__search_request_endings((wf__search *)searcher, err);
}

wf_status wf__search_finish(wf__searcher *searcher, const wf_scores *scores, wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  WF__TRY(make_path(search, false, err));
  return scores != NULL ? read_loglikes(search, scores, err) : WF_OK;
}

wf_status wf__search_partial(wf__searcher *searcher, wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  searcher->waits = 0;
  WF__TRY(wf__search_request_endings(search, err));
  WF__TRY(wf__searcher_answer(searcher, err));
  return make_path(search, true, err);
}

wf_status wf__search_endings(wf__search *search, bool final, wf_error *err) {
  wf__history *history = &search->base.history;
  uint64_t first = history->frames.data[history->frames.size - 1].first_token,
           size = history->tokens.size - first;
  float least = INFINITY;
  history->endings.size = 0;
  WF__TRY(wf__vec_grow(&history->endings, size, "the lattice", err));
  float *endings = history->endings.data;
  for (uint64_t i = 0; i < size; i++) endings[i] = INFINITY;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    float cost;
    WF__TRY(ending_cost(search, i, final, &cost, err));
    endings[search->died ? wf__search_source_number(search, &search->tokens.data[i]) : i] = cost;
    if (cost < least) least = cost;
  }
  for (uint64_t i = 0; i < size; i++)
    if (endings[i] != INFINITY) endings[i] -= least;
  history->endings.size = size;
  return WF_OK;
}

wf_status wf__search_lattice(wf__searcher *searcher, const wf_scores *scores, wf_lattice **out,
                             wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  bool final = (search->base.path.flags & WF_RESULT_NOT_FINAL) == 0;
  WF__TRY(wf__search_endings(search, final, err));
  WF__TRY(wf__history_end(&search->base.history, err));
  return wf__history_lattice(&search->base.history, search->base.graph, &search->base.options,
                             scores, &search->base.scoring, search->base.path.num_decoded, final,
                             out, err);
}
