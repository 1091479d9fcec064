/* ctc_states.h - the states of a CTC graph that is stored as its token graph.
 *
 * A token graph G reads tokens: a lexicon with a language model, say. In a CTC graph a frame may
 * also repeat the token before it, or be blank, and only a blank lets a token follow itself (Graves
 * et al. 2006, section 3.1). Composing G with the topology `correct` gives that graph, with a copy
 * of a state's arcs for each token that may lead to it. Here these copies are numbers alone. A
 * state is a pair of a state g of G and the token that is held, i.e. that led there, while no
 * blank has come:
 *
 *   (g, h) --u:w--> (g', u)      for each arc g --u:w--> g' of a token u other than h
 *   (g, h) --h:0--> (g, h)       the held token goes on
 *   (g, h) --blank:0--> (g, none)
 *   (g, h) --eps:w--> (g', h)    for each epsilon arc g --eps:w--> g'
 *
 * A path takes epsilon arcs directly after a token's arc or at the start, and not after a held
 * token or a blank, so that no path has two forms. Therefore a state g with epsilon arcs has its
 * pairs twice, as they are `entered` and as they `stay`; only the former have the epsilon arcs. A
 * state without arcs of tokens that is not final has nothing to wait for: its pairs are only there
 * as they are entered, and neither the held token nor a blank leaves them.
 *
 * Numbers. The states of g follow those of g - 1: first the pairs that stay, with no token, then
 * with each token in the order of labels; then the pairs that are entered, in the same order.
 * States of wide g, with WF__WIDE_ARCS arcs of tokens or more and no epsilon arcs, come after all
 * others. The arcs of a state follow those of the state before: m arcs of tokens of g, of which
 * those of the held token are void; the blank's; the held token's; the epsilon arcs. */
#ifndef WF_FST_CTC_STATES_H
#define WF_FST_CTC_STATES_H

#include "fst/fst.h"

/* All that the search needs of a state lies in half a cache line. */
typedef struct wf__ctc_state {
  uint32_t owner;        /* state of G */
  int32_t held;          /* label; 0: none */
  uint32_t first_arc;    /* number */
  uint32_t arcs, count;  /* arcs of G over tokens: the first one, and how many */
  uint32_t num_epsilons; /* that may be taken */
  uint32_t none, stay;   /* the states that blank and held token lead to; WF__CTC_NONE: none */
} wf__ctc_state;

enum { WF__WIDE_ARCS = 128, WF__CTC_ARC_BLOCK = 32 };
#define WF__CTC_NONE UINT32_MAX

/* States of G that every token may lead to, for arcs that are added later: label 1 ..
 * num_labels - 1, but the blank. */
typedef struct wf__ctc_entries {
  const uint32_t *states; /* [count], in any order */
  uint64_t count;
  int32_t num_labels;
} wf__ctc_entries;

typedef struct wf__ctc_states {
  wf_fst_view view; /* of G, which must outlive this: arcs by input label, epsilons last */
  int32_t blank;    /* label */
  uint64_t num_states, num_arcs;
  uint64_t first_wide, first_wide_arc; /* the numbers where those of wide states begin */
  uint32_t start;
  wf__ctc_state *states;    /* [num_states] */
  uint32_t *first, *end;    /* [states of G] their states; none at all if nothing leads to one that
                              is only there as it is entered */
  uint32_t *first_entered;  /* [states of G] first state that is entered; without epsilon arcs these
                              are those that stay */
  uint32_t *first_epsilon;  /* [states of G] arc of G */
  uint32_t *targets;        /* [arcs of G] the state that a token's arc leads to */
  uint32_t *state_of_block; /* the state that has the first of each WF__CTC_ARC_BLOCK arcs; none for
                               those of wide states */
  int32_t num_labels;       /* one more than the largest label, blank included */
} wf__ctc_states;

/* entries: NULL: none. Errors: arcs that are not in order; an arc that reads the blank; more than
 * 2^31 - 1 states or 2^32 - 2 arcs. */
wf_status wf__ctc_states_create(const wf_fst *fst, int32_t blank, const wf__ctc_entries *entries,
                                wf__ctc_states **out, wf_error *err);
void wf__ctc_states_free(wf__ctc_states *ctc);

/* An arc of a state; of void ones what they would be. */
wf_arc wf__ctc_arc_at(const wf__ctc_states *ctc, uint32_t state, uint32_t place);
/* The state that has this arc. */
uint32_t wf__ctc_state_of(const wf__ctc_states *ctc, uint32_t arc);
/* Writes the arcs of a state, in order; void ones with the weight +infinity. Returns the place
 * after them. */
wf_arc *wf__ctc_write_arcs(const wf__ctc_states *ctc, uint32_t state, wf_arc *to);
/* The same for those that are not over tokens. */
wf_arc *wf__ctc_write_others(const wf__ctc_states *ctc, uint32_t state, wf_arc *to);
/* The same graph as an fst, with the symbols and word boundaries of `fst`: states and arcs in the
 * same order, without void arcs. */
wf_status wf__ctc_explicit(const wf__ctc_states *ctc, const wf_fst *fst, wf_fst **out,
                           wf_error *err);
/* The number of states and arcs of wf__ctc_spell_out's result for a token graph; 0 and 0 for any
 * other fst, and where it fails for classes or limits. */
wf_status wf__ctc_count_explicit(const wf_fst *fst, uint64_t *out_states, uint64_t *out_arcs,
                                 wf_error *err);
/* The same fst with the arcs of each state in the order that wf__ctc_states_create needs. */
wf_status wf__ctc_order_arcs(const wf_fst *fst, wf_fst **out, wf_error *err);
/* A token graph that is marked (wf__fst_ctc_blank), its arcs in any order, as an explicit graph;
 * an fst without the mark, or without states, as it is. */
wf_status wf__ctc_spell_out(const wf_fst *fst, wf_fst **out, wf_error *err);

static inline uint32_t wf__ctc_num_tokens(const wf__ctc_states *ctc, uint32_t owner) {
  return ctc->first_epsilon[owner] - (uint32_t)ctc->view.arc_off[owner];
}
/* Arcs of the blank, and of the held token. */
static inline uint32_t wf__ctc_num_stays(wf__ctc_state state) {
  if (state.none == WF__CTC_NONE) return 0;
  return state.held != 0 ? 2 : 1;
}
/* The state's first epsilon arc, by number, or the one after its last arc. */
static inline uint32_t wf__ctc_first_epsilon(wf__ctc_state state) {
  return state.first_arc + state.count + wf__ctc_num_stays(state);
}

/* The state that holds `held` in g, as it is entered. It must exist. */
uint32_t wf__ctc_entered(const wf__ctc_states *ctc, uint32_t g, int32_t held);

#endif
