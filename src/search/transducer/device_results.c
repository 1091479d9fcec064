/* device_results.c - what comes of utterances whose search was wholly on a GPU: their paths; or their
 * candidates, with which the CPU's search repeats the steps. */
#include <math.h>

#include "base/callbacks.h"
#include "search/trace.h"
#include "search/transducer/transducer_shared.h"

#define NONE UINT32_MAX

static const wf__device_result *result_of(const wf__whole_part *part, size_t k) {
  return &((const wf__device_result *)part->results)[k];
}

/* `first`: number of the first frame that was searched. */
static wf_status check_outcome(const wf__whole_part *part, size_t k, int64_t first, bool *left,
                               wf_error *err) {
  const wf__transducer_shared *shared = part->shared;
  const wf__device_result *result = result_of(part, k);
  *left = result->outcome == WF__DEVICE_NO_ROOM;
  if (*left) wf__log(WF_LOG_DEBUG, "an utterance is searched on the CPU: no room on the GPU");
  return result->outcome == WF__DEVICE_BAD_LOGIT
             ? wf__fail_bad_logit(shared->model, first + result->frame, &result->bad, err)
             : WF_OK;
}

static wf_status follow(const wf__whole_part *part, size_t k, wf__searcher *searcher, bool *left,
                        wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  WF__TRY(check_outcome(part, k, search->num_frames, left, err));
  if (*left) return WF_OK;
  search->offers = (const wf__device_offer *)part->details + result_of(part, k)->first;
  const wf_status status = wf__searcher_advance(searcher, part->batch->scores[part->items[k]], err);
  search->offers = NULL;
  return status;
}

/* The stream has these slots now. Those of contexts that it has already, or if the chunk was not
 * followed, are free. */
static wf_status take_slots(wf__predictions *p, const wf__device_kept *kept, uint32_t count,
                            bool followed, wf_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t number = followed ? wf__map64_find(&p->numbers, kept[i].context) : NONE;
    if (number != NONE && p->slots.data[number] == NONE) {
      p->slots.data[number] = kept[i].slot;
      p->done.data[number] = true;
    } else {
      WF__TRY(wf__vec_push(&p->free_slots, kept[i].slot, "predictor contexts", err));
    }
  }
  return WF_OK;
}

/* Of a predictor with states, a stream has those of its waiting tokens alone. */
wf_status wf__device_search_follow(const wf__whole_part *part, size_t k, wf__searcher *searcher,
                                   bool *left, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  const wf__device_result *result = result_of(part, k);
  const wf__device_kept *kept = (const wf__device_kept *)part->kept + result->first_kept;
  const wf_status status = follow(part, k, searcher, left, err);
  const bool followed = status == WF_OK && !*left;
  if (part->batch->searchers == NULL || search->model->context_size > 0) return status;
  WF__TRY(take_slots(&search->predictions, kept, result->num_kept, followed,
                     status == WF_OK ? err : NULL));
  return followed ? wf__transducer_drop_contexts(search, err) : status;
}

/* --- paths --------------------------------------------------------------------------------- */

static wf_status add_steps(const wf_graph *graph, const wf__path_step *steps, uint64_t size,
                           wf__path *out, wf_error *err) {
  wf__path_clear(out);
  WF__TRY(wf__vec_grow(&out->arcs, size, "a path", err));
  for (uint64_t i = 0; i < size; i++) {
    const wf__transducer_record record = {0, steps[i].arc, steps[i].loglike, steps[i].frame};
    WF__TRY(wf__transducer_add_arc(graph, &record, out, err));
  }
  return WF_OK;
}

/* What the utterance's scorer gives the path. */
static wf_status score_path(const wf_graph *graph, const wf_scorer *scorer, wf__path *path,
                            wf_error *err) {
  wf__scoring scoring = {0};
  wf__score_sum sum = {0, 0};
  path->scorer_cost = 0;
  if (scorer == NULL) return WF_OK;
  wf_status status = wf__scoring_set(&scoring, scorer, err);
  if (status == WF_OK) status = wf__scoring_begin(&scoring, err);
  sum.context = scoring.start;
  if (status == WF_OK)
    status = wf__path_score(path, 0, graph, &scoring, (path->flags & WF_RESULT_NOT_FINAL) == 0,
                            &sum, err);
  path->scorer_cost = sum.cost;
  wf__scoring_free(&scoring);
  return status;
}

wf_status wf__device_search_path(const wf__whole_part *part, size_t k, wf__path *out, bool *left,
                                 wf_error *err) {
  const wf__device_result *result = result_of(part, k);
  const wf_graph *graph = part->batch->graphs[part->items[k]];
  WF__TRY(check_outcome(part, k, 0, left, err));
  if (*left) return WF_OK;
  WF__TRY(add_steps(graph, (const wf__path_step *)part->details + result->first, result->count, out,
                    err));
  const uint32_t end = out->arcs.size > 0
                           ? wf__graph_arc(graph, out->arcs.data[out->arcs.size - 1]).nextstate
                           : graph->start;
  out->flags = result->flags;
  out->final_cost = (result->flags & WF_RESULT_NOT_FINAL) != 0 ? 0 : wf__graph_final(graph, end);
  out->relative_cost = (result->flags & WF_RESULT_DIED) != 0 ? INFINITY : 0;
  out->num_decoded = result->frame;
  out->num_tokens = result->num_tokens;
  out->num_expanded = result->num_expanded;
  out->num_arcs = result->num_arcs;
  out->num_narrowed = 0;
  return score_path(graph, wf__whole_scorer(part->batch, part->items[k]), out, err);
}
