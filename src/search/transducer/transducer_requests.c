/* transducer_requests.c - the scorer's part of a transducer's search: requests the words of a step
 * before it needs them, so that a scorer can compute them as a batch; and answers requests.
 *
 * A word is scored on every arc that the search expands, unless a bound of its cost is known. So
 * the requests of a step follow from the contexts of its sources and the words of their arcs. */
#include "search/score_requests.h"
#include "search/transducer/transducer_search.h"

static bool defers(const wf__transducer_search *search) {
  return search->defers && wf__scoring_batches(&search->base.scoring);
}

wf_status wf__transducer_request_words(wf__transducer_search *search, wf_error *err) {
  if (!defers(search) || wf__transducer_only_blank(search)) return WF_OK;
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__transducer_token *token = &search->sources.data[i].token;
    WF__TRY(wf__request_arcs(&search->base.scoring, search->base.graph, token->state,
                             wf__emitting_run(search->base.graph, token->state), token->context,
                             err));
  }
  return wf__searcher_submit(&search->base, err);
}

wf_status wf__transducer_request_epsilons(wf__transducer_search *search,
                                          const wf__transducer_set *set, wf_error *err) {
  if (!defers(search) || !search->base.graph->has_epsilon_words) return WF_OK;
  for (uint64_t i = 0; i < search->frontier.size; i++) {
    const wf__transducer_token *token = &set->tokens.data[search->frontier.data[i]];
    WF__TRY(wf__request_arcs(&search->base.scoring, search->base.graph, token->state,
                             wf__epsilon_run(search->base.graph, token->state), token->context,
                             err));
  }
  return wf__searcher_submit(&search->base, err);
}

wf_status wf__transducer_request_endings(wf__transducer_search *search, wf_error *err) {
  if (!defers(search)) return WF_OK;
  for (uint64_t i = 0; i < search->now.tokens.size; i++) {
    const wf__transducer_token *token = &search->now.tokens.data[i];
    if (wf__graph_final(search->base.graph, token->state) == INFINITY) continue;
    WF__TRY(wf__scoring_request(&search->base.scoring, token->context, WF__END_OF_WORDS, err));
  }
  return wf__searcher_submit(&search->base, err);
}

/* --- answers ----------------------------------------------------------------------------- */

static wf_status add_live(wf__transducer_search *search, const wf__transducer_set *set,
                          wf_error *err) {
  WF__TRY(wf__vec_grow(&search->base.live, set->tokens.size, "a scorer's contexts", err));
  for (uint64_t i = 0; i < set->tokens.size; i++)
    search->base.live.data[search->base.live.size++] = set->tokens.data[i].context;
  return WF_OK;
}

wf_status wf__transducer_find_live(wf__searcher *searcher, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  const wf__history *history = &search->base.history;
  search->base.live.size = 0;
  WF__TRY(wf__vec_push(&search->base.live, search->base.scoring.start, "a scorer's contexts", err));
  WF__TRY(wf__vec_push(&search->base.live, search->base.committed_sum.context,
                       "a scorer's contexts", err));
  WF__TRY(add_live(search, &search->now, err));
  if (search->stage == WF__TRANSDUCER_CLOSURE && !search->closes_first)
    WF__TRY(add_live(search, &search->next, err));
  for (uint32_t w = 0; w < search->num_waiting; w++)
    WF__TRY(add_live(search, &search->waiting[w], err));
  WF__TRY(wf__vec_grow(&search->base.live, history->contexts.size, "a scorer's contexts", err));
  for (uint64_t i = 0; i < history->contexts.size; i++)
    search->base.live.data[search->base.live.size++] = history->contexts.data[i];
  return WF_OK;
}

wf_status wf__transducer_answer_model(wf__searcher *searcher, wf_error *err) {
  wf__transducer_search *search = (wf__transducer_search *)searcher;
  wf__predictions *predictions = &search->predictions;
  return wf__predictions_answer(&predictions, 1, &search->work, err);
}
