/* graph_facts.h - what a decoding graph must know of the arcs of its fst. Plain C and CUDA C++: a
 * kernel fills the same struct that the host reads. */
#ifndef WF_SEARCH_GRAPH_FACTS_H
#define WF_SEARCH_GRAPH_FACTS_H

#include <stdint.h>

/* Zeros, and bad_arc WF__NO_BAD_ARC, before the first arc. */
typedef struct wf__graph_facts {
  uint32_t bad_arc;       /* the first arc of a weight that is neither +infinity nor within 1e20 */
  uint32_t largest_label; /* input label */
  uint32_t is_unordered;  /* a state has an epsilon before a consuming arc; then only this and what
                             is above holds */
  uint32_t has_epsilons, has_negative_epsilons, has_epsilon_words; /* 0 or 1 */
  uint32_t num_acyclic; /* states that no epsilon cycle leads into */
} wf__graph_facts;
#define WF__NO_BAD_ARC 0xffffffffu

#endif
