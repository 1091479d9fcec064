/* hmm.h - an acoustic model's HMMs as the graph pipeline sees them, whichever toolkit they come
 * from.
 *
 *     phones of the lexicon --position in the word--> phones --window of neighbours--> HMM types
 *     --> labels --> columns of the scores
 *        AH                     AH_b AH_i AH_e AH_s        (SIL, AH_b, W)                  17
 *                               812          811
 *
 * A reader of models (sphinx_hmm.c for CMU Sphinx, kaldi_hmm.c for Kaldi) fills this structure and
 * supplies wf__hmm_class. What follows knows no toolkit:
 *     wf__hmm_expand      C o LG without building C: states (state of LG, phones in the window)
 *                         context.c
 *     wf__hmm_to_fst      H: labels to HMM types, without self-loops
 *                         hmm.c
 *     wf__hmm_add_loops   self-loops, added last, when the graph is as small as it gets
 *                         self_loops.c
 *     wf_hmm_graph_build  the whole pipeline
 *                         hmm_graph.c
 *
 * Labels (input side of H and of the graph) are 1 .. num_labels. A label says which HMM state was
 * entered: its column, and which self-loop is behind it. Sphinx: senone + 1 (and labels beyond the
 * senones for a senone that several HMMs use with different self-loops). Kaldi: transition-id. All
 * costs in here are -ln of the model's probabilities, without scales.
 *
 * An HMM type is a small acceptor over labels without its self-loops: states types.arc_off /
 * types.arcs / types.final_cost from type_first[t - 1] to type_first[t], the first of them the
 * start, arcs' nextstate counted from that first one, ilabel the label, weight the cost of the
 * transition given that it is not the self-loop. Any topology will do: several arcs a state, skips,
 * several final states, final states with arcs.
 *     start --s0--> 1 --s1--> 2 --s2--> 3 (final)             the usual three states: all costs 0,
 *     since they can only go on
 *
 * The window has `width` phones, the central one at index `central` (Sphinx 3, 1; Kaldi's triphones
 * 3, 1, left biphones 2, 1, monophones 1, 0). Phone 0 in a window is the edge of the utterance. */
#ifndef WF_GRAPH_HMM_H
#define WF_GRAPH_HMM_H

#include <stdatomic.h>

#include "fst/fst.h"
#include "graph/tally.h"

enum { WF__HMM_MAX_WIDTH = 8 };
/* Where a phone stands in its word; the order of `position_of`. */
enum { WF__BEGIN, WF__INTERNAL, WF__END, WF__SINGLE, WF__NUM_POSITIONS };

typedef struct wf__hmm_label {
  int32_t column;  /* of the score matrix, from 0 */
  int32_t loop;    /* label of the self-loop behind this label, whose own `loop` is itself; 0: none.
                      Labels of equal `loop` have equal costs */
  float loop_cost; /* -ln P(self-loop) */
  float forward_cost; /* -ln (1 - P(self-loop)), paid on the way out; 0 if there is no loop */
} wf__hmm_label;

/* Where in a phone a frame with a label is. A phone begins with its `first` label (self-loops come
 * behind) and ends with its `last` one and the loops behind that. */
typedef struct wf__hmm_place {
  int32_t phone;
  bool loop, first, last;
} wf__hmm_place;

/* What each toolkit does its own way. */
typedef struct wf__hmm_class {
  /* HMM type of a window of hmm->width phones (1 .. number of types), made on demand by
   * wf__hmm_add_type. 0: the model has none, and no rule helps; the caller decides. A type found by
   * a rule for missing windows must call wf__tally_add(&hmm->substituted, ...), named by
   * wf__hmm_window_text.
   * Called once for each distinct window. */
  wf_status (*find_type)(wf_hmm *hmm, const int32_t *window, int32_t *out_type, wf_error *err);
  void (*free_model)(void *model);
} wf__hmm_class;

struct wf_hmm {
  atomic_uint_fast32_t refs;
  char *name; /* for messages */
  const wf__hmm_class *methods;
  void *model; /* of the toolkit's reader */

  /* phones and windows */
  wf_symbols *phones; /* <eps> 0, the phones that windows are made of 1 .. num_phones */
  int32_t num_phones;
  int32_t width, central; /* width 0: not known, no graph can be made */
  int32_t *context_of; /* [num_phones + 1] the phone that stands for this one once it is to the left
                          of the centre: AH_b for all of AH_b/i/e/s in Sphinx */
  bool *context_free; /* [num_phones + 1] same type whatever the neighbours (silence): need not wait
                         for its right context */

  /* lexicons */
  wf_symbols *lexicon_phones; /* <eps> 0, phones that lexicons are written in 1 .. n; `phones`
                                 itself if position_of is NULL */
  int32_t (*position_of)[WF__NUM_POSITIONS]; /* [n + 1] phone by position in the word; NULL:
                                                lexicons hold positions already */
  int32_t silence;                           /* phone (of lexicon_phones) of silence; 0: none */
  WF__VEC(int32_t)
  fillers; /* phones (of lexicon_phones) of noises that may stand between words, like silence */
  WF__VEC(int32_t)
  ready_disambig; /* labels of #0, #1, ... in an L made by the toolkit itself, whose other input
                     labels are those of `phones` */

  /* for alignments */
  int8_t *word_position; /* [num_phones + 1] of `phones`: WF__BEGIN ... WF__SINGLE, -1: not of a
                            word; NULL: not known */
  WF__VEC(wf__hmm_place) places; /* by label; empty: not known */
  bool loops_repeat; /* a self-loop has the label of the state that it stays in (Sphinx), so a label
                        that is repeated is a loop; places[].loop is not used */

  /* labels and types */
  WF__VEC(wf__hmm_label) labels; /* [num_labels + 1]; entry 0 is not used */
  int32_t num_columns;
  wf__csr types;
  WF__VEC(uint64_t) type_first; /* [number of types + 1] */
  wf_tally substituted;         /* windows whose type came by a rule for missing ones */

  /* what the toolkit's own decoder takes for options that are not given: see WF_HMM_GRAPH_OPTIONS
   */
  float lm_weight, word_prob, silence_prob, filler_prob, self_loop_scale;
  bool edge_silence; /* an utterance begins and ends in silence, always */
};

/* An object with one reference, no phones, no types, `labels` holding entry 0, defaults of Kaldi.
 * `model` is the caller's until this succeeds. */
wf_status wf__hmm_create(const char *name, const wf__hmm_class *methods, void *model, wf_hmm **out,
                         wf_error *err);
/* Makes the phone arrays for the table: context_of the phones themselves, nothing context-free.
 * Call once. */
wf_status wf__hmm_set_phones(wf_hmm *hmm, wf_symbols *phones, int32_t num_phones, wf_error *err);
/* "SIL AH_b W_i", with "(edge)" for 0. */
void wf__hmm_window_text(const wf_hmm *hmm, const int32_t *window, char *text, size_t size);
/* Adds a type: `type` holds its states as described above (built with wf__csr_add_state and
 * wf__csr_push) and is left as it is. Checks it: labels and states in range, every state on a path
 * from the start to a final one, no path without a label. */
wf_status wf__hmm_add_type(wf_hmm *hmm, const wf__csr *type, int32_t *out_type, wf_error *err);
/* Labels are complete: checks columns and loops. Call it last of all. */
wf_status wf__hmm_close(const wf_hmm *hmm, wf_error *err);
static inline int32_t wf__hmm_num_labels(const wf_hmm *hmm) {
  return (int32_t)hmm->labels.size - 1;
}
static inline int32_t wf__hmm_num_types(const wf_hmm *hmm) {
  return (int32_t)hmm->type_first.size - 1;
}

/* --- what the pipeline does with it ------------------------------------------------------ */

/* H: label sequences to HMM types. State 0 is where types begin and end; it has loops num_labels +
 * 1 + k : num_types + 1 + k for disambiguation symbols. Costs of transitions are multiplied by
 * transition_scale. Self-loops and the costs of leaving a state are not in it. */
wf_status wf__hmm_to_fst(const wf_hmm *hmm, float transition_scale, int32_t num_disambig,
                         wf_fst **out, wf_error *err);

/* What to do about windows that the model has no HMM for. */
enum { WF__MISSING_SUBSTITUTE, WF__MISSING_DROP, WF__MISSING_ERROR };
/* C o fst for an fst whose input labels are phones (num_phones + 1 + k: #k): input labels become
 * types (num_types + 1 + k: #k), output labels stay. `dropped` counts windows left out. The result
 * is trimmed; states are numbered breadth first. Beyond max_states (0: 2^31 - 1): WF_ERR_LIMIT. */
wf_status wf__hmm_expand(wf_hmm *hmm, const wf_fst *fst, int32_t num_disambig, int missing,
                         uint64_t max_states, wf_tally *dropped, wf_fst **out, wf_error *err);

/* Adds the self-loops to a graph over labels: behind an arc with label l, labels[l].loop may be
 * repeated. A state entered by labels of different loops is split. Costs are multiplied by
 * self_loop_scale. (As Kaldi's AddSelfLoops with reorder=true.) */
wf_status wf__hmm_add_loops(const wf_hmm *hmm, const wf_fst *fst, float self_loop_scale,
                            wf_fst **out, wf_error *err);

#endif
