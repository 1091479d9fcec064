/* score_requests.c - submits the score requests of a step of the search before it needs them, so
 * that a scorer can compute them as a batch.
 *
 * The search scores every word of every arc that it expands. So the requests of a step are known
 * beforehand, from the contexts of its tokens and the words of their arcs. A request that is
 * missed here is scored on its own. */
#include <math.h>

#include "search/score_requests.h"
#include "search/frame/search.h"

wf_status wf__search_request_emitting(wf__search *search, bool *waits, wf_error *err) {
  if (!wf__scoring_batches(&search->scoring)) return WF_OK;
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__token *source = &search->sources.data[i];
    WF__TRY(wf__request_arcs(
        &search->scoring, search->graph, wf__emitting_run(search->graph, source->state),
        search->past_contexts.data[wf__search_source_number(search, source)], err));
  }
  return wf__scoring_submit(&search->scoring, waits, err);
}

wf_status wf__search_request_epsilons(wf__search *search, const uint32_t *frontier, uint64_t size,
                                      bool *waits, wf_error *err) {
  if (!search->graph->has_epsilon_words || !wf__scoring_batches(&search->scoring)) return WF_OK;
  for (uint64_t i = 0; i < size; i++) {
    wf__arc_run run = wf__epsilon_run(search->graph, search->tokens.data[frontier[i]].state);
    WF__TRY(wf__request_arcs(&search->scoring, search->graph, run,
                             search->contexts.data[frontier[i]], err));
  }
  return wf__scoring_submit(&search->scoring, waits, err);
}

wf_status wf__search_request_endings(wf__search *search, bool *waits, wf_error *err) {
  *waits = false;
  if (search->died || !wf__scoring_batches(&search->scoring)) return WF_OK;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    if (wf__graph_final(search->graph, search->tokens.data[i].state) == INFINITY) continue;
    WF__TRY(wf__scoring_request(&search->scoring, wf__search_context(search, i), WF__END_OF_WORDS,
                                err));
  }
  return wf__scoring_submit(&search->scoring, waits, err);
}

/* --- scoring ----------------------------------------------------------------------------- */

static wf_status add_live(wf__search *search, const uint64_t *contexts, uint64_t size,
                          wf_error *err) {
  WF__TRY(wf__vec_grow(&search->live, size, "a scorer's contexts", err));
  for (uint64_t i = 0; i < size; i++) search->live.data[search->live.size++] = contexts[i];
  return WF_OK;
}

/* Collects every context that the search may still use: those of the tokens and of the previous
 * frame's tokens, of the lattice so far, and of the committed words. */
static wf_status find_live(wf__search *search, wf_error *err) {
  search->live.size = 0;
  WF__TRY(add_live(search, &search->scoring.start, 1, err));
  WF__TRY(add_live(search, &search->committed_sum.context, 1, err));
  WF__TRY(add_live(search, search->contexts.data, search->contexts.size, err));
  WF__TRY(add_live(search, search->past_contexts.data, search->past_contexts.size, err));
  return add_live(search, search->history.contexts.data, search->history.contexts.size, err);
}

static wf__scoring *scoring_of(void *searches, size_t i) {
  return &((wf__search *const *)searches)[i]->scoring;
}

static wf_status live_of(void *searches, size_t i, wf__context_vec *out, wf_error *err) {
  wf__search *search = ((wf__search *const *)searches)[i];
  WF__TRY(find_live(search, err));
  *out = search->live;
  return WF_OK;
}

wf_status wf__search_score_requests(wf__search *const *searches, size_t count, wf__pool *pool,
                                    wf_error *err) {
  return wf__scoring_score(scoring_of, live_of, count, (void *)(uintptr_t)searches, pool, err);
}
