/* searcher.c - what all searches do alike: scorers, requests and their answers. */
#include "search/searcher.h"

void wf__searcher_init(wf__searcher *searcher, const wf__search_setup *setup) {
  searcher->ops = setup->ops;
  searcher->graph = setup->graph;
  searcher->options = setup->options;
  searcher->epsilon_slack = wf__epsilon_slack(setup->graph, &setup->options, false);
  searcher->keeps_lattice = setup->options.lattice_beam > 0;
}

void wf__searcher_release(wf__searcher *searcher) {
  wf__scoring_free(&searcher->scoring);
  wf__vec_free(&searcher->live);
  wf__history_free(&searcher->history);
  wf__path_free(&searcher->path);
}

/* --- scorers ----------------------------------------------------------------------------- */

wf_status wf__searcher_set_scorer(wf__searcher *searcher, const wf_scorer *given, wf_error *err) {
  const wf_scorer *scorer = wf__searcher_scorer(searcher->ops, given);
  searcher->epsilon_slack = wf__epsilon_slack(searcher->graph, &searcher->options, scorer != NULL);
  return wf__scoring_set(&searcher->scoring, scorer, err);
}

wf_status wf__searcher_submit(wf__searcher *searcher, wf_error *err) {
  bool waits;
  WF__TRY(wf__scoring_submit(&searcher->scoring, &waits, err));
  if (waits) searcher->waits |= WF__WAITS_SCORER;
  return WF_OK;
}

static wf__scoring *scoring_of(void *searchers, size_t i) {
  return &((wf__searcher *const *)searchers)[i]->scoring;
}

static wf_status live_of(void *searchers, size_t i, wf__context_vec *out, wf_error *err) {
  wf__searcher *searcher = ((wf__searcher *const *)searchers)[i];
  WF__TRY(searcher->ops->find_live(searcher, err));
  *out = searcher->live;
  return WF_OK;
}

wf_status wf__searcher_score(wf__searcher *const *searchers, size_t count, wf__pool *pool,
                             wf_error *err) {
  return wf__scoring_score(scoring_of, live_of, count, (void *)(uintptr_t)searchers, pool, err);
}

/* --- an utterance ------------------------------------------------------------------------ */

wf_status wf__searcher_answer(wf__searcher *searcher, wf_error *err) {
  if (searcher->waits & WF__WAITS_MODEL) WF__TRY(searcher->ops->answer_model(searcher, err));
  return searcher->waits & WF__WAITS_SCORER ? wf__searcher_score(&searcher, 1, NULL, err) : WF_OK;
}

wf_status wf__searcher_advance(wf__searcher *searcher, const wf_scores *scores, wf_error *err) {
  WF__TRY(searcher->ops->feed(searcher, scores, err));
  WF__TRY(searcher->ops->go_on(searcher, err));
  while (searcher->waits) {
    WF__TRY(wf__searcher_answer(searcher, err));
    WF__TRY(searcher->ops->go_on(searcher, err));
  }
  return WF_OK;
}

wf_status wf__searcher_finish(wf__searcher *searcher, const wf_scores *scores, wf_error *err) {
  WF__TRY(searcher->ops->go_to_end(searcher, err));
  while (searcher->waits) {
    WF__TRY(wf__searcher_answer(searcher, err));
    WF__TRY(searcher->ops->go_to_end(searcher, err));
  }
  return searcher->ops->finish(searcher, scores, err);
}
