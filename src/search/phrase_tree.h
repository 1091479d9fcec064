/* phrase_tree.h - phrases as a small transducer from frames to words, which stands where a class
 * stands in a graph. For CTC, topology compact:
 *
 *   root 0 --a--> m1 --a--> m1      one m for each prefix of a phrase; it stays while its
 *                                   label is repeated
 *                 m1 --eps--> n1 --blank--> n1, n1 --b--> m2 ...      n, if phrases go on from here
 *                 m1 --eps:w, cost--> root                            a phrase ends here; arcs to
 *                 the root leave the tree
 *
 * For transducers, where no label is repeated, m has no loop, and is n itself if no phrase ends
 * there.
 *
 * Words are written as soon as all phrases that go this way have them in common, though not before
 * their first label; costs likewise. */
#ifndef WF_SEARCH_PHRASE_TREE_H
#define WF_SEARCH_PHRASE_TREE_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct wf__phrase_tree {
  atomic_uint_fast32_t refs;
  wf_fst *fst;
  wf_fst_view view;
  uint32_t *first_epsilon; /* [num_states] */
  bool has_negative_epsilons, has_epsilon_words;
} wf__phrase_tree;

/* Labels are 1 .. num_labels - 1, without the blank. `separator`: stands between the words of a
 * phrase; 0: none. `repeats`: of CTC, frames may repeat a label.
 * A phrase that is listed twice counts once, at its least cost. Errors are those of
 * wf_graph_add_phrases. */
wf_status wf__phrase_tree_create(const wf_added_phrase *phrases, size_t count, int32_t num_labels,
                                 int32_t blank, int32_t separator, bool repeats,
                                 wf__phrase_tree **out, wf_error *err);
/* Any transducer with the root for its state 0 and start. */
wf_status wf__phrase_tree_of_fst(const wf_fst *fst, wf__phrase_tree **out, wf_error *err);
wf__phrase_tree *wf__phrase_tree_ref(wf__phrase_tree *tree);
void wf__phrase_tree_free(wf__phrase_tree *tree);

#endif
