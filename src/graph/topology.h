/* topology.h - CTC topologies, with word classes for decoding graphs. */
#ifndef WF_GRAPH_TOPOLOGY_H
#define WF_GRAPH_TOPOLOGY_H

#include "base/error.h"

enum { WF__TOPOLOGY_TRANSDUCER = 4 }; /* of the options `topology` and `type` */

/* Same as wf_ctc_topology, with num_classes word classes. On the output side their labels follow
 * those of the disambiguation symbols. They pass through like these, but always stay on the input
 * side, after the labels kept there. Fails for classes in a topology other than compact
 * and transducer. */
wf_status wf__ctc_topology(int32_t num_tokens, int32_t blank, const wf_topology_options *options,
                           int32_t num_classes, wf_fst **out, wf_error *err);

#endif
