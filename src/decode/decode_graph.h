/* decode_graph.h - the graph as the search walks it.
 *
 *   index   [num_states + 1]  {first_arc, first_epsilon}: emitting arcs of s are [first_arc, first_epsilon),
 *                             epsilon arcs [first_epsilon, index[s + 1].first_arc)
 *   arcs    [num_arcs]        16 bytes each, in the fst
 */
#ifndef WF_DECODE_DECODE_GRAPH_H
#define WF_DECODE_DECODE_GRAPH_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct wf__state_index {
  uint32_t first_arc, first_epsilon;
} wf__state_index;

struct wf_graph {
  atomic_uint_fast32_t refs;
  wf_fst *fst;
  wf_fst_view view;
  wf__state_index *index;
  int32_t *columns;    /* [num_labels]; columns[0] unused */
  int32_t num_labels;  /* one more than the largest input label */
  int32_t min_columns;
  uint32_t *epsilon_components; /* [num_states] strongly connected components of the epsilon arcs; NULL if these make no cycle */
  bool has_epsilons, has_epsilon_cycles, has_negative_epsilons, has_epsilon_words;
};

/* How much cheaper an epsilon path must be to replace a token: 0, except where epsilons go in cycles and some are negative, as words may be that a
 * scorer has its say on. There rounding could make a cycle of cost zero look like a gain for ever. */
float wf__epsilon_slack(const wf_graph *graph, const wf_decoder_options *options, bool scored);

#endif
