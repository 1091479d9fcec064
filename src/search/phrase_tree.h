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
 * In a graph that keeps its token graph the tree reads tokens, too, so that m is n, without loops.
 * Its states for the search are those of fst/ctc_states.h. The root has one for each token, since
 * every token may lead to a class. The root's state for a held token also stands for where an arc
 * that leaves the tree leads to, while that token is held.
 *
 * Words are written as soon as all phrases that go this way have them in common, though not before
 * their first label; costs likewise. */
#ifndef WF_SEARCH_PHRASE_TREE_H
#define WF_SEARCH_PHRASE_TREE_H

#include <stdatomic.h>

#include "fst/ctc_states.h"

/* How a tree reads labels: of CTC, topology compact, where frames may repeat one; of a transducer,
 * each once; as tokens. */
typedef enum wf__phrase_kind {
  WF__PHRASE_FRAMES,
  WF__PHRASE_ONCE,
  WF__PHRASE_TOKENS
} wf__phrase_kind;

typedef struct wf__phrase_tree {
  atomic_uint_fast32_t refs;
  wf_fst *fst;
  wf_fst_view view;
  wf__ctc_states *ctc;           /* of WF__PHRASE_TOKENS; NULL otherwise */
  uint64_t num_states, num_arcs; /* of the search */
  uint32_t *first_epsilon;       /* [num_states] without ctc */
  bool has_negative_epsilons, has_epsilon_words;
} wf__phrase_tree;

/* What a tree is made for. Labels are 1 .. num_labels - 1, without the blank. */
typedef struct wf__phrase_task {
  wf__phrase_kind kind;
  int32_t num_labels, blank;
  int32_t separator; /* stands between the words of a phrase; 0: none */
} wf__phrase_task;

/* Is this arc, as wf__ctc_arc_at has it, one of those that leave a tree of tokens? */
static inline bool wf__leaves_tree(const wf__phrase_tree *tree, wf_arc arc) {
  return arc.ilabel == 0 && tree->ctc->states[arc.nextstate].owner == 0;
}

/* A phrase that is listed twice counts once, at its least cost. Errors are those of
 * wf_graph_add_phrases. */
wf_status wf__phrase_tree_create(const wf_added_phrase *phrases, size_t count,
                                 const wf__phrase_task *task, wf__phrase_tree **out, wf_error *err);
/* Any transducer with the root for its state 0 and start. */
wf_status wf__phrase_tree_of_fst(const wf_fst *fst, const wf__phrase_task *task,
                                 wf__phrase_tree **out, wf_error *err);
wf__phrase_tree *wf__phrase_tree_ref(wf__phrase_tree *tree);
void wf__phrase_tree_free(wf__phrase_tree *tree);

#endif
