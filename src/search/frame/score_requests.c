/* score_requests.c - submits the score requests of a step of the search before it needs them, so
 * that a scorer can compute them as a batch.
 *
 * The search scores every word of every arc that it expands. So the requests of a step are known
 * beforehand, from the contexts of its tokens and the words of their arcs. A request that is
 * missed here is scored on its own. */
#include <math.h>

#include "search/frame/search.h"
#include "search/score_requests.h"

wf_status wf__search_request_emitting(wf__search *search, wf_error *err) {
  if (!wf__scoring_batches(&search->base.scoring)) return WF_OK;
  for (uint64_t i = 0; i < search->sources.size; i++) {
    const wf__token *source = &search->sources.data[i];
    WF__TRY(wf__request_arcs(&search->base.scoring, search->base.graph, source->state,
                             wf__emitting_run(search->base.graph, source->state),
                             search->past_contexts.data[wf__search_source_number(search, source)],
                             err));
  }
  return wf__searcher_submit(&search->base, err);
}

wf_status wf__search_request_epsilons(wf__search *search, const uint32_t *frontier, uint64_t size,
                                      wf_error *err) {
  if (!search->base.graph->has_epsilon_words || !wf__scoring_batches(&search->base.scoring))
    return WF_OK;
  for (uint64_t i = 0; i < size; i++) {
    const uint32_t state = search->tokens.data[frontier[i]].state;
    wf__arc_run run = wf__epsilon_run(search->base.graph, state);
    WF__TRY(wf__request_arcs(&search->base.scoring, search->base.graph, state, run,
                             search->contexts.data[frontier[i]], err));
  }
  return wf__searcher_submit(&search->base, err);
}

wf_status wf__search_request_endings(wf__search *search, wf_error *err) {
  if (search->died || !wf__scoring_batches(&search->base.scoring)) return WF_OK;
  for (uint64_t i = 0; i < search->tokens.size; i++) {
    if (wf__graph_final(search->base.graph, search->tokens.data[i].state) == INFINITY) continue;
    WF__TRY(wf__scoring_request(&search->base.scoring, wf__search_context(search, i),
                                WF__END_OF_WORDS, err));
  }
  return wf__searcher_submit(&search->base, err);
}

/* --- contexts ---------------------------------------------------------------------------- */

static wf_status add_live(wf__search *search, const uint64_t *contexts, uint64_t size,
                          wf_error *err) {
  WF__TRY(wf__vec_grow(&search->base.live, size, "a scorer's contexts", err));
  for (uint64_t i = 0; i < size; i++)
    search->base.live.data[search->base.live.size++] = contexts[i];
  return WF_OK;
}

/* Collects every context that the search may still use: those of the tokens and of the previous
 * frame's tokens, of the lattice so far, and of the committed words. */
wf_status wf__search_find_live(wf__searcher *searcher, wf_error *err) {
  wf__search *search = (wf__search *)searcher;
  search->base.live.size = 0;
  WF__TRY(add_live(search, &search->base.scoring.start, 1, err));
  WF__TRY(add_live(search, &search->base.committed_sum.context, 1, err));
  WF__TRY(add_live(search, search->contexts.data, search->contexts.size, err));
  WF__TRY(add_live(search, search->past_contexts.data, search->past_contexts.size, err));
  return add_live(search, search->base.history.contexts.data, search->base.history.contexts.size,
                  err);
}
