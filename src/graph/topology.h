/* topology.h - CTC topologies, with word classes for decoding graphs. */
#ifndef WF_GRAPH_TOPOLOGY_H
#define WF_GRAPH_TOPOLOGY_H

#include "base/error.h"

/* Same as wf_ctc_topology, with num_classes word classes. On the output side their labels follow
 * those of the disambiguation symbols. They pass through like these, but always stay on the input
 * side, after the labels kept there. Fails for classes in a topology other than compact and
 * transducer: with correct, only a token graph can have them. */
wf_status wf__ctc_topology(int32_t num_tokens, int32_t blank, const wf_topology_options *options,
                           int32_t num_classes, wf_fst **out, wf_error *err);

/* The token graph of a CTC graph: `lg` with epsilons for the disambiguation symbols, whose labels
 * follow those of the tokens; those of classes, which follow them, move down. Its arcs are not in
 * order yet. */
wf_status wf__ctc_token_graph(const wf_fst *lg, int32_t num_tokens, int32_t num_disambig,
                              wf_fst **out, wf_error *err);

/* Fails if a CTC graph is asked for without a blank: its label is 0. */
static inline wf_status wf__need_blank(int32_t label, wf_error *err) {
  if (label != 0) return WF_OK;
  return wf__fail(
      err, WF_ERR_ARGUMENT,
      "CTC needs a blank, and the option 'blank' is empty, which says that there is none: "
      "only a blank tells a token that is held from one that is said twice");
}

#endif
