/* kaldi_files.h - the two files of a Kaldi acoustic model that decoding graphs need.
 *
 *   final.mdl   begins with the TransitionModel: HMM topology, transition-states, probabilities.
 *               The acoustic model behind it (GMMs, a neural network) is not read
 *   tree        ContextDependency: the pdfs of a state for each context
 *
 * A transition-state is (phone, HMM state, pdf of its forward transitions, pdf of its self-loop).
 * Its transitions, in the order of the topology, have consecutive transition-ids. These count from
 * 1 over all transition-states. */
#ifndef WF_GRAPH_KALDI_FILES_H
#define WF_GRAPH_KALDI_FILES_H

#include "graph/kaldi_stream.h"

enum { WF__KALDI_MAX_STATES = 256, WF__KALDI_MAX_PHONE = 1 << 20, WF__KALDI_MAX_PDF = 1 << 28 };
enum { WF__KALDI_NO_PDF = -1 };

/* --- topology and transitions ------------------------------------------------------------ */

typedef struct wf__topology_state {
  int32_t forward_class, loop_class; /* pdf classes; both WF__KALDI_NO_PDF: non-emitting */
  uint32_t first_transition, num_transitions;
} wf__topology_state;

typedef struct wf__topology_transition {
  int32_t to; /* target: a state of the same entry */
  float prob; /* initial probability; used only for non-emitting states */
} wf__topology_transition;

/* An entry is the HMM of some phones. It has the states [first_state, first_state + num_states).
 * The first is the start, the last is final. */
typedef struct wf__topology_entry {
  uint32_t first_state, num_states;
  int32_t num_classes;
} wf__topology_entry;

typedef struct wf__topology {
  wf__ints entry_of; /* entry by phone; -1: none */
  WF__VEC(wf__topology_entry) entries;
  WF__VEC(wf__topology_state) states;
  WF__VEC(wf__topology_transition) transitions;
  int32_t num_phones; /* phones that have an entry */
  bool split;         /* some state has different pdf classes for its self-loop and its other
                         transitions, as in chain models */
} wf__topology;

typedef struct wf__transition_state {
  int32_t phone, state, forward_pdf, loop_pdf;
  int32_t first_id, loop_id; /* transition-ids; loop_id 0: no self-loop */
} wf__transition_state;

typedef struct wf__kaldi_transitions {
  wf__topology topology;
  WF__VEC(wf__transition_state) states; /* ascending */
  wf__floats log_probs;                 /* [num_ids + 1], finite, at most 0 */
  int32_t num_ids, num_pdfs;
} wf__kaldi_transitions;

/* Checks everything: counts against the bytes left, indices against their ranges, the order of
 * transition-states. */
wf_status wf__kaldi_transitions_read(const wf__input *input, wf__kaldi_transitions *out,
                                     wf_error *err);
void wf__kaldi_transitions_free(wf__kaldi_transitions *transitions);
/* Reads a topology, from <Topology> to </Topology>. */
wf_status wf__topology_read(wf__kaldi_stream *stream, wf__topology *out, wf_error *err);
void wf__topology_free(wf__topology *topology);
/* The HMM of a phone, or NULL if it has none. */
static inline const wf__topology_entry *wf__topology_of(const wf__topology *topology,
                                                        int32_t phone) {
  if (phone < 0 || (uint64_t)phone >= topology->entry_of.size || topology->entry_of.data[phone] < 0)
    return NULL;
  return &topology->entries.data[topology->entry_of.data[phone]];
}
static inline const wf__topology_state *wf__topology_state_at(const wf__topology *topology,
                                                              const wf__topology_entry *entry,
                                                              int32_t state) {
  return &topology->states.data[entry->first_state + (uint32_t)state];
}
/* Finds a transition-state by its four fields; NULL if there is none. */
const wf__transition_state *wf__kaldi_find_state(const wf__kaldi_transitions *transitions,
                                                 int32_t phone, int32_t state, int32_t forward_pdf,
                                                 int32_t loop_pdf);

/* --- tree -------------------------------------------------------------------------------- */

/* Inner nodes branch on a value: the phone at position `key` of the window, or for key -1 the pdf
 * class. */
typedef enum wf__tree_kind {
  WF__TREE_NONE,
  WF__TREE_CONSTANT,
  WF__TREE_TABLE,
  WF__TREE_SPLIT
} wf__tree_kind;
typedef struct wf__tree_node {
  wf__tree_kind kind;
  int32_t key;
  int32_t pdf;           /* CONSTANT */
  uint64_t first, count; /* TABLE: the child for a value is children[first + value]; SPLIT: the
                            values [first, first + count), ascending, lead to `yes`, others to
                            `no` */
  uint32_t yes, no;      /* SPLIT: nodes */
} wf__tree_node;

typedef struct wf__kaldi_tree {
  int32_t width, central;
  WF__VEC(wf__tree_node) nodes; /* the root first, children after their parents */
  WF__VEC(uint32_t) children;
  wf__ints values;
} wf__kaldi_tree;

wf_status wf__kaldi_tree_read(const wf__input *input, wf__kaldi_tree *out, wf_error *err);
void wf__kaldi_tree_free(wf__kaldi_tree *tree);
/* The pdf of a window of phones (0: edge of the utterance) and a pdf class; -1 if the tree has
 * none. */
int32_t wf__kaldi_tree_pdf(const wf__kaldi_tree *tree, const int32_t *window, int32_t pdf_class);

#endif
