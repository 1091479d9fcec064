/* graph_device.h - what a decoding graph must know of an fst in a GPU's unified memory, found on
 * the GPU. */
#ifndef WF_DECODE_GRAPH_DEVICE_H
#define WF_DECODE_GRAPH_DEVICE_H

#include "search/decode_graph.h"

typedef struct wf__graph_facts {
  uint32_t bad_arc;       /* the first arc of a weight that is neither +infinity nor within 1e20;
                             UINT32_MAX: none */
  uint32_t largest_label; /* input label */
  uint32_t is_unordered;  /* a state has an epsilon before a consuming arc; then only this holds */
  uint32_t has_epsilons, has_negative_epsilons, has_epsilon_words, has_epsilon_cycles;
} wf__graph_facts;

struct wf__device_graph {
  /* `*out_index` [num_states + 1] is in unified memory of the GPU `device`: free it with
   * index_free. */
  wf_status (*look)(const wf_fst_view *view, int device, wf__graph_facts *out,
                    wf__state_index **out_index, wf_error *err);
  void (*index_free)(wf__state_index *index);
};

#endif
