/* graph_device.h - what a decoding graph must know of an fst in a GPU's unified memory, found on
 * the GPU. */
#ifndef WF_DECODE_GRAPH_DEVICE_H
#define WF_DECODE_GRAPH_DEVICE_H

#include "search/decode_graph.h"
#include "search/graph_facts.h"

struct wf__device_graph {
  /* `*out_index` [num_states + 1] is in unified memory of the GPU `device`: free it with
   * index_free. */
  wf_status (*look)(const wf_fst_view *view, int device, wf__graph_facts *out,
                    wf__state_index **out_index, wf_error *err);
  void (*index_free)(wf__state_index *index);
};

#endif
