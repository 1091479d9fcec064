/* transducer_lattice.h - the history of a transducer's search for the lattice.
 *
 * A frame of the history holds the tokens of A(0), A(1), ... and, after A(0), those that wait for a
 * later frame than the next. So links lead from a frame to the next one, or stay in a frame:
 *
 *   frame t:  A(0) --tokens--> A(1) --tokens--> A(2)        t + 1:  A(0)
 *               \------------------------\------------blanks---------/
 *             waiting for t + 2 ------------------------------------> waiting for t + 2
 *
 * Candidates are noted with the triple of the token that they lead to. When the set of these tokens
 * is complete, they become links. */
#ifndef WF_SEARCH_TRANSDUCER_TRANSDUCER_LATTICE_H
#define WF_SEARCH_TRANSDUCER_TRANSDUCER_LATTICE_H

#include "search/lattice_history.h"
#include "search/transducer/transducer_set.h"

/* A candidate that leads to a token of a set. */
typedef struct wf__transducer_link {
  uint32_t from; /* token of the history's frame */
  uint32_t arc, state;
  float cost, loglike;
  uint64_t predictor, context;
} wf__transducer_link;
typedef struct wf__transducer_links {
  wf__transducer_link *data;
  uint64_t size, cap;
  uint64_t first; /* of the current step */
} wf__transducer_links;

/* Candidates; the history is the searcher's. */
typedef struct wf__transducer_lattice {
  wf__transducer_links next, *waiting; /* candidates, by set; as the search's sets */
  WF__VEC(wf__link) epsilons;          /* scratch */
  uint32_t base;                       /* number in the frame of the first token of `now` */
} wf__transducer_lattice;

struct wf__transducer_search;
struct wf__searcher;
wf_status wf__transducer_lattice_init(wf__transducer_lattice *lattice, uint32_t num_waiting,
                                      wf_error *err);
void wf__transducer_lattice_free(wf__transducer_lattice *lattice, uint32_t num_waiting);
/* Begins an utterance. */
void wf__transducer_lattice_clear(struct wf__transducer_search *search);
/* Notes a candidate of the current step, from token number `from` of `now`, with this duration. */
wf_status wf__transducer_note(struct wf__transducer_search *search,
                              const wf__transducer_token *token, uint32_t from, int32_t duration,
                              wf_error *err);
/* Begins and ends a step; candidates above its cutoff are dropped. */
void wf__transducer_lattice_begin_step(struct wf__transducer_search *search);
void wf__transducer_lattice_end_step(struct wf__transducer_search *search, float cutoff);
/* Adds the candidates of a waiting set to those of another. */
wf_status wf__transducer_lattice_merge(struct wf__transducer_search *search, uint32_t from,
                                       uint32_t to, wf_error *err);
/* Adds a frame, whose A(0), before its closure, is in `now`, and all other waiting tokens. */
wf_status wf__transducer_lattice_frame(struct wf__transducer_search *search, wf_error *err);
/* Adds the tokens of `now` after its closure, with their epsilon links; `first`: it is A(0). */
wf_status wf__transducer_lattice_set(struct wf__transducer_search *search, float cutoff, bool first,
                                     wf_error *err);
/* The operation `lattice` of wf__transducer_searcher. */
wf_status wf__transducer_lattice_make(struct wf__searcher *searcher, const wf_scores *scores,
                                      wf_lattice **out, wf_error *err);

#endif
