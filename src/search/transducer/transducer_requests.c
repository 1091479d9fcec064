/* transducer_requests.c - the scorer's part of a transducer's search: requests the words of a step
 * before it needs them, so that a scorer can compute them as a batch; and answers requests.
 *
 * A word is scored on every arc that the search expands, unless a bound of its cost is known. So
 * the requests of a step follow from the contexts of its sources and the words of their arcs. */
#include "search/score_requests.h"
#include "search/transducer/transducer_search.h"

static bool defers(const wf__transducer_search *search) {
  return search->defers && wf__scoring_batches(&search->scoring);
}

wf_status wf__transducer_request_words(wf__transducer_search *search, wf_error *err) {
  if (!defers(search) || wf__transducer_only_blank(search)) return WF_OK;
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__transducer_token *token = &search->sources.data[i].token;
    WF__TRY(wf__request_arcs(&search->scoring, search->graph,
                             wf__emitting_run(search->graph, token->state), token->context, err));
  }
  return wf__scoring_submit(&search->scoring, &search->scorer_waits, err);
}

wf_status wf__transducer_request_epsilons(wf__transducer_search *search,
                                          const wf__transducer_set *set, wf_error *err) {
  if (!defers(search) || !search->graph->has_epsilon_words) return WF_OK;
  for (uint64_t i = 0; i < search->frontier.size; i++) {
    const wf__transducer_token *token = &set->tokens.data[search->frontier.data[i]];
    WF__TRY(wf__request_arcs(&search->scoring, search->graph,
                             wf__epsilon_run(search->graph, token->state), token->context, err));
  }
  return wf__scoring_submit(&search->scoring, &search->scorer_waits, err);
}

wf_status wf__transducer_request_endings(wf__transducer_search *search, wf_error *err) {
  if (!defers(search)) return WF_OK;
  for (uint64_t i = 0; i < search->now.tokens.size; i++) {
    const wf__transducer_token *token = &search->now.tokens.data[i];
    if (wf__graph_final(search->graph, token->state) == INFINITY) continue;
    WF__TRY(wf__scoring_request(&search->scoring, token->context, WF__END_OF_WORDS, err));
  }
  return wf__scoring_submit(&search->scoring, &search->scorer_waits, err);
}

/* --- scoring ----------------------------------------------------------------------------- */

static wf_status add_live(wf__transducer_search *search, const wf__transducer_set *set,
                          wf_error *err) {
  WF__TRY(wf__vec_grow(&search->live, set->tokens.size, "a scorer's contexts", err));
  for (uint64_t i = 0; i < set->tokens.size; i++)
    search->live.data[search->live.size++] = set->tokens.data[i].context;
  return WF_OK;
}

wf_status wf__transducer_find_live(wf__transducer_search *search, wf_error *err) {
  const wf__history *history = &search->lattice.history;
  search->live.size = 0;
  WF__TRY(wf__vec_push(&search->live, search->scoring.start, "a scorer's contexts", err));
  WF__TRY(wf__vec_push(&search->live, search->committed_sum.context, "a scorer's contexts", err));
  WF__TRY(add_live(search, &search->now, err));
  if (search->stage == WF__TRANSDUCER_CLOSURE && !search->closes_first)
    WF__TRY(add_live(search, &search->next, err));
  for (uint32_t w = 0; w < search->num_waiting; w++)
    WF__TRY(add_live(search, &search->waiting[w], err));
  WF__TRY(wf__vec_grow(&search->live, history->contexts.size, "a scorer's contexts", err));
  for (uint64_t i = 0; i < history->contexts.size; i++)
    search->live.data[search->live.size++] = history->contexts.data[i];
  return WF_OK;
}

static wf__scoring *scoring_of(void *searches, size_t i) {
  return &((wf__transducer_search *const *)searches)[i]->scoring;
}

static wf_status find_live(void *searches, size_t i, wf__context_vec *out, wf_error *err) {
  wf__transducer_search *search = ((wf__transducer_search *const *)searches)[i];
  WF__TRY(wf__transducer_find_live(search, err));
  *out = search->live;
  return WF_OK;
}

wf_status wf__transducer_score_requests(wf__transducer_search *const *searches, size_t count,
                                        wf__pool *pool, wf_error *err) {
  return wf__scoring_score(scoring_of, find_live, count, (void *)(uintptr_t)searches, pool, err);
}

wf_status wf__transducer_answer_model(wf__transducer_search *search, wf_error *err) {
  wf__predictions *predictions = &search->predictions;
  return wf__predictions_answer(&predictions, 1, &search->work, err);
}

wf_status wf__transducer_answer(wf__transducer_search *search, wf_error *err) {
  if (search->stage == WF__TRANSDUCER_STEP) WF__TRY(wf__transducer_answer_model(search, err));
  return search->scorer_waits ? wf__transducer_score_requests(&search, 1, NULL, err) : WF_OK;
}
