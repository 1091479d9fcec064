/* hmm.h - the HMMs of an acoustic model as the graph pipeline sees them, independent of the
 * toolkit.
 *
 *     phones of the lexicon --position in the word--> phones --window of neighbours--> HMM types
 *     --> labels --> columns of the scores
 *        AH                     AH_b AH_i AH_e AH_s        (SIL, AH_b, W)                  17
 *                               812          811
 *
 * The readers (sphinx_hmm.c for CMU Sphinx, kaldi_hmm.c for Kaldi) fill this structure and supply a
 * wf__hmm_class. The functions that use it know no toolkit:
 *     wf__hmm_expand      C o LG without building C: states (state of LG, phones in the window)
 *                         context.c
 *     wf__hmm_to_fst      H: labels to HMM types, without self-loops
 *                         hmm.c
 *     wf__hmm_add_loops   self-loops, added last, when the graph is as small as it gets
 *                         self_loops.c
 *     wf_graph_build      the whole pipeline
 *                         hmm_recipe.c
 *
 * Labels (the input side of H and of the graph) are 1 .. num_labels. A label tells which HMM state
 * was entered: its column of the scores and its self-loop. In Sphinx a label is senone + 1; a
 * senone that several HMMs use with different self-loops has further labels above num_senones. In
 * Kaldi a label is a transition-id. All costs in this structure are -ln of the model's
 * probabilities, without scales.
 *
 * An HMM type is a small acceptor over labels, without its self-loops. Type t has the states
 * type_first[t - 1] .. type_first[t] - 1 of types.arc_off, types.arcs and types.final_cost. The
 * first one is the start. nextstate counts from it, ilabel is the label, and weight is the cost of
 * the transition given that the self-loop is not taken. Any topology is supported: several arcs in
 * a state, skips, several final states, final states with arcs.
 *     start --s0--> 1 --s1--> 2 --s2--> 3 (final)      the usual three states; all costs are 0,
 *                                                      since each state has one way out
 *
 * The window has `width` phones, the central one at index `central` (Sphinx 3, 1; Kaldi's triphones
 * 3, 1, left biphones 2, 1, monophones 1, 0). Phone 0 in a window is the edge of the utterance. */
#ifndef WF_GRAPH_HMM_H
#define WF_GRAPH_HMM_H

#include <stdatomic.h>

#include "base/tally.h"
#include "fst/fst.h"
#include "fstops/device_batch.h"

enum { WF__HMM_MAX_WIDTH = 8 };
/* Position of a phone in its word. The first index of position_of's rows follows this order. */
enum { WF__BEGIN, WF__INTERNAL, WF__END, WF__SINGLE, WF__NUM_POSITIONS };

typedef struct wf__hmm_label {
  int32_t column;  /* of the score matrix, from 0 */
  int32_t loop;    /* label of the self-loop of the state that this label enters; a self-loop's own
                      `loop` is itself; 0: no self-loop. Labels with the same `loop` have the same
                      costs */
  float loop_cost; /* -ln P(self-loop) */
  float forward_cost; /* -ln (1 - P(self-loop)), added when the state is left; 0 without a
                         self-loop */
} wf__hmm_label;

/* Which part of a phone a frame with this label belongs to. A phone begins with its `first` label
 * and its self-loops, and ends with its `last` label and its self-loops. */
typedef struct wf__hmm_place {
  int32_t phone;
  bool loop, first, last;
} wf__hmm_place;

/* The functions that each toolkit implements. */
typedef struct wf__hmm_class {
  /* Finds the HMM type (1 .. number of types) of a window of hmm->width phones. Makes types on
   * demand with wf__hmm_add_type. Sets *out_type to 0 if the model has no type for the window and
   * no substitution rule applies; the caller then decides. If a substitution rule supplies the
   * type, the function must call wf__tally_add(&hmm->substituted, ...) with the name from
   * wf__hmm_window_text. Called once for each distinct window. */
  wf_status (*find_type)(wf_hmm *hmm, const int32_t *window, int32_t *out_type, wf_error *err);
  void (*free_model)(void *model);
} wf__hmm_class;

struct wf_hmm {
  atomic_uint_fast32_t refs;
  char *name; /* for messages */
  const wf__hmm_class *methods;
  void *model; /* data of the toolkit's reader */

  /* phones and windows */
  wf_symbols *phones; /* 0: <eps>, 1 .. num_phones: the phones that windows are made of */
  int32_t num_phones;
  int32_t width, central; /* width 0: not known, so no graph can be made */
  int32_t *context_of; /* [num_phones + 1] the phone that replaces this one once it is to the left
                          of the centre: AH_b for AH_b/i/e/s in Sphinx */
  bool *context_free;  /* [num_phones + 1] the type does not depend on the neighbours (silence), so
                          the phone need not wait for its right context */

  /* lexicons */
  wf_symbols *lexicon_phones; /* 0: <eps>, 1 .. n: the phones that lexicons are written in; the same
                                 table as `phones` if position_of is NULL */
  int32_t (*position_of)[WF__NUM_POSITIONS]; /* [n + 1] the phone for each position in the word;
                                                NULL: the phones of lexicons include the position */
  int32_t silence;                           /* silence, a phone of lexicon_phones; 0: none */
  WF__VEC(int32_t)
  fillers; /* noises that may stand between words like silence, phones of lexicon_phones */
  WF__VEC(int32_t)
  ready_disambig; /* labels of #0, #1, ... in an L that the toolkit made; its other input labels are
                     those of `phones` */

  /* for alignments */
  int8_t *word_position; /* [num_phones + 1] for `phones`: WF__BEGIN ... WF__SINGLE, -1: not part of
                            a word; NULL: not known */
  WF__VEC(wf__hmm_place) places; /* by label; empty if not known */
  bool loops_repeat; /* a self-loop has the label of its state (Sphinx), so a repeated label is a
                        self-loop and places[].loop is not used */

  /* labels and types */
  WF__VEC(wf__hmm_label) labels; /* [num_labels + 1]; entry 0 is not used */
  int32_t num_columns;
  wf__csr types;
  WF__VEC(uint64_t) type_first; /* [number of types + 1] */
  wf_tally substituted;         /* windows whose type came from a substitution rule */

  /* defaults of the toolkit's own decoder for options that are not given: see
   * WF_HMM_GRAPH_OPTIONS */
  float lm_weight, word_prob, silence_prob, filler_prob, self_loop_scale;
  bool edge_silence; /* every utterance begins and ends in silence */
};

/* Creates an object with one reference, no phones, no types, entry 0 of `labels` and Kaldi's
 * defaults. On success the object owns `model`. */
wf_status wf__hmm_create(const char *name, const wf__hmm_class *methods, void *model, wf_hmm **out,
                         wf_error *err);
/* Sets the phones and allocates the arrays indexed by them: every phone's context_of is itself,
 * none is context-free. Call it once. */
wf_status wf__hmm_set_phones(wf_hmm *hmm, wf_symbols *phones, int32_t num_phones, wf_error *err);
/* Writes a window as text: "SIL AH_b W_i", with "(edge)" for phone 0. */
void wf__hmm_window_text(const wf_hmm *hmm, const int32_t *window, char *text, size_t size);
/* Adds a copy of `type`, which holds the states of one type as described above (built with
 * wf__csr_add_state and wf__csr_push). Checks that labels and states are in range, that every state
 * is on a path from the start to a final state, and that no path is without a label. */
wf_status wf__hmm_add_type(wf_hmm *hmm, const wf__csr *type, int32_t *out_type, wf_error *err);
/* Checks the columns and self-loops of all labels. Call it when everything else is filled in. */
wf_status wf__hmm_close(const wf_hmm *hmm, wf_error *err);
static inline int32_t wf__hmm_num_labels(const wf_hmm *hmm) {
  return (int32_t)hmm->labels.size - 1;
}
static inline int32_t wf__hmm_num_types(const wf_hmm *hmm) {
  return (int32_t)hmm->type_first.size - 1;
}

/* --- used by the pipeline ---------------------------------------------------------------- */

/* H, from label sequences to HMM types. Types begin and end in state 0. It has a loop num_labels +
 * 1 + k : num_types + 1 + k for each disambiguation symbol #k. Costs of transitions are multiplied
 * by transition_scale. H contains neither self-loops nor the costs of leaving a state. */
wf_status wf__hmm_to_fst(const wf_hmm *hmm, float transition_scale, int32_t num_disambig,
                         wf_fst **out, wf_error *err);

/* Composes C with `fst`, whose input labels are phones (num_phones + 1 + k: #k). Input labels
 * become types (num_types + 1 + k: #k); output labels stay. `missing` (WF_MISSING_HMM_SUBSTITUTE,
 * ...) says what becomes of windows without an HMM; `dropped` counts those left out. The result is
 * trimmed (connected); states are numbered breadth first. WF_ERR_LIMIT beyond max_states
 * (0: 2^31 - 1). */
wf_status wf__hmm_expand(wf_hmm *hmm, const wf_fst *fst, int32_t num_disambig, int missing,
                         uint64_t max_states, wf_tally *dropped, wf_fst **out, wf_error *err);

/* The same with LG and the result in a GPU's memory. If it fails, `dropped` and hmm->substituted
 * are empty. */
wf_status wf__hmm_expand_on_gpu(wf_hmm *hmm, const wf__gpu_batch *lg, int32_t num_disambig,
                                int missing, uint64_t max_states, wf_tally *dropped,
                                wf__gpu_batch **out, wf_error *err);

/* Adds the self-loops to a graph over labels: after an arc with label l, labels[l].loop may be
 * repeated. A state entered by labels with different self-loops is split. Costs are multiplied by
 * self_loop_scale. Arcs with input epsilons come last in each state. Otherwise the same as Kaldi's
 * AddSelfLoops with reorder=true. */
wf_status wf__hmm_add_loops(const wf_hmm *hmm, const wf_fst *fst, float self_loop_scale,
                            wf_fst **out, wf_error *err);
/* The same loops as a table for a GPU. Free it with wf__hmm_loop_table_free, also on failure. */
wf_status wf__hmm_loop_table(const wf_hmm *hmm, float self_loop_scale, wf__loop_table *out,
                             wf_error *err);
void wf__hmm_loop_table_free(wf__loop_table *table);

#endif
