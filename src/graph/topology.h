/* topology.h - CTC topologies with what only decoding graphs need. */
#ifndef WF_GRAPH_TOPOLOGY_H
#define WF_GRAPH_TOPOLOGY_H

#include "base/error.h"

/* As wf_ctc_topology, with the labels of num_classes classes behind those of the disambiguation
 * symbols; they pass as these do, but stay on the input side, behind the labels that are kept
 * there. Errors: classes in another topology than compact. */
wf_status wf__ctc_topology(int32_t num_tokens, int32_t blank, const wf_topology_options *options,
                           int32_t num_classes, wf_fst **out, wf_error *err);

#endif
