/* score_requests.h - what the searches with scores of frames and with a transducer share of
 * requests to a scorer. */
#ifndef WF_SEARCH_SCORE_REQUESTS_H
#define WF_SEARCH_SCORE_REQUESTS_H

#include "scorer/scoring.h"
#include "search/decode_graph.h"

/* Requests the words of these arcs of a state after a context. */
static inline wf_status wf__request_arcs(wf__scoring *scoring, const wf_graph *graph,
                                         uint32_t state, wf__arc_run run, uint64_t context,
                                         wf_error *err) {
  for (uint32_t a = run.first; a < run.end; a++) {
    const wf_arc arc = wf__graph_arc_from(graph, state, a);
    const int32_t word = arc.ilabel == run.held ? 0 : arc.olabel;
    if (word != 0) WF__TRY(wf__scoring_request(scoring, context, word, err));
  }
  return WF_OK;
}

#endif
