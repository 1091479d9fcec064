/* transducer_search.h - the frame-synchronous search with a transducer over one utterance, on one
 * CPU thread. docs/reference/transducers.md defines the result of each step.
 *
 *   waiting [longest duration + 1]   sets of tokens, by frame modulo their number
 *   now, next                        A(n) and A(n + 1) of the frame
 *   records                          of all tokens that were in a set A(n): the search's history
 *
 * A search object is reused for many utterances. */
#ifndef WF_SEARCH_TRANSDUCER_TRANSDUCER_SEARCH_H
#define WF_SEARCH_TRANSDUCER_TRANSDUCER_SEARCH_H

#include "search/searcher.h"
#include "search/transducer/device_search_types.h"
#include "search/transducer/predictions.h"
#include "search/transducer/transducer_lattice.h"
#include "search/transducer/transducer_set.h"

typedef struct wf__transducer_record {
  uint32_t prev, arc;
  float loglike;
  int32_t frame;
} wf__transducer_record;

/* A token that is expanded, or its state when a round of the closure began. */
typedef struct wf__transducer_source {
  wf__transducer_token token;
  uint32_t number; /* its record, or its number in the set */
} wf__transducer_source;

/* Larger weights and costs of words are no bounds: the roundings of sums are not known well enough.
 */
#define WF__MOST_BOUND 1e3f

/* The least weights of a state's arcs; +infinity: it has none; -infinity: not known. Those of arcs
 * with a word are less word_score. */
typedef struct wf__least_weights {
  float token;  /* of arcs with a token, without a word */
  float word;   /* of arcs with a token and a word */
  float blank;  /* of blank arcs without a word */
  uint32_t row; /* of a state with many arcs: its row of `by_column`; NONE */
} wf__least_weights;

/* What a decoder knows of its graph's emitting arcs, so that a device can leave out scores, and a
 * search arcs. */
typedef struct wf__transducer_arcs {
  bool by_label;  /* of every state, arcs with a token are in order of their columns, one label
                     each, and the blanks before or after them */
  bool all_alike; /* there is one state, with an arc for each token, all of one weight */
  wf__least_weights *least; /* [num_states] */
  WF__VEC(float) by_column; /* [rows][num_tokens] of arcs with a token, those of each column */
} wf__transducer_arcs;
void wf__transducer_arcs_free(wf__transducer_arcs *arcs);
wf_status wf__transducer_look_at_arcs(const wf_graph *graph, const wf_transducer *model,
                                      float word_score, wf__transducer_arcs *arcs, wf_error *err);

/* Where a search stands. */
typedef enum wf__transducer_stage {
  WF__TRANSDUCER_BETWEEN, /* steps */
  WF__TRANSDUCER_STEP,    /* the scores of a step are requested */
  WF__TRANSDUCER_CLOSURE, /* a round of the epsilon closure comes next */
} wf__transducer_stage;

typedef struct wf__transducer_search {
  wf__searcher base;
  const wf_transducer *model;
  const wf__transducer_arcs *arcs;
  wf__predictions predictions;
  wf__prediction_work work; /* of searches that answer their own requests */
  wf__transducer_set now, next, *waiting;
  uint32_t num_waiting;
  WF__VEC(wf__transducer_record) records;
  WF__VEC(wf__transducer_source) sources;
  WF__VEC(uint32_t) row_of;  /* by context number: its row of the joiner's; NONE: it has none */
  WF__VEC(uint32_t) numbers; /* context number of each row */
  WF__VEC(wf__row_need) needs;
  WF__VEC(float) loglikes; /* [num_tokens] scratch: of a row of which only some are there */
  WF__VEC(uint32_t) frontier;
  WF__VEC(uint32_t *) used;  /* scratch: context numbers of all tokens */
  int64_t frame, num_frames; /* the current one; those taken so far */
  int64_t next_frame;
  wf__transducer_stage stage;
  bool closes_first;              /* the closure is that of `now`, A(0); else that of `next` */
  uint32_t round;                 /* of the closure */
  bool has_requested;             /* words of this round, or of the end */
  bool defers;                    /* words are requested before they are needed, in batches */
  int64_t last_frame;             /* the newest frame that tokens waited for */
  uint32_t best_record;           /* of the best of them, for utterances that die */
  int32_t step;                   /* n */
  float cutoff;                   /* of the step, and of the closure */
  float best_cost;                /* of the step */
  const wf__device_offer *offers; /* those of the next step, from a device that made it; NULL: from
                                     the model's scores */
  WF__VEC(wf__device_offer) sorted; /* scratch */
  wf__transducer_source greedy;     /* the best candidate of a greedy step, and its row */
  const wf__score_row *greedy_row;
  wf__transducer_lattice lattice;
  WF__VEC(int32_t) labels; /* of the model's columns */
  WF__VEC(wf__transducer_source)
  ends; /* the tokens that the path may end in, and their numbers in the lattice's last frame */
  wf__path committed; /* arcs that all tokens share, cut off the records */
  uint64_t num_live;  /* records that the last collection left */
} wf__transducer_search;

/* Operations of wf__transducer_searcher. In `path`, each consuming arc has a frame in `steps`. Once
 * ended, the last tokens are in `now`. */
wf_status wf__transducer_search_create(const wf__search_setup *setup, bool many, wf__searcher **out,
                                       wf_error *err);
void wf__transducer_search_free(wf__searcher *searcher);
wf_status wf__transducer_search_begin(wf__searcher *searcher, wf_error *err);
wf_status wf__transducer_search_feed(wf__searcher *searcher, const wf_scores *scores,
                                     wf_error *err);
wf_status wf__transducer_search_go_on(wf__searcher *searcher, wf_error *err);
wf_status wf__transducer_search_go_to_end(wf__searcher *searcher, wf_error *err);
wf_status wf__transducer_search_finish(wf__searcher *searcher, const wf_scores *scores,
                                       wf_error *err);
/* Between frames: drops the predictor contexts that no waiting token needs. */
wf_status wf__transducer_drop_contexts(wf__transducer_search *search, wf_error *err);
wf_status wf__transducer_search_partial(wf__searcher *searcher, wf_error *err);
/* Memory of an utterance in progress. */
uint64_t wf__transducer_search_bytes(const wf__transducer_search *search);

/* transducer_history.c: drops records that no waiting token leads back to, and moves those that all
 * share to `committed`. Between frames. */
wf_status wf__transducer_collect(wf__transducer_search *search, wf_error *err);
wf_status wf__transducer_replace_scorer(wf__searcher *searcher, const wf_scorer *scorer,
                                        const wf_word *words, size_t num_words, wf_error *err);
/* Appends a record's arc to a path. */
wf_status wf__transducer_add_arc(const wf_graph *graph, const wf__transducer_record *record,
                                 wf__path *path, wf_error *err);

/* transducer_step.c: step n of a frame, from the sources, which are those of A(n), to A(n + 1), in
 * `next`, and the waiting sets. */
/* Requests the model's scores of the sources' contexts. */
wf_status wf__transducer_request(wf__transducer_search *search, wf_error *err);
/* Makes the step, with the answer to the request. */
wf_status wf__transducer_expand(wf__transducer_search *search, wf_error *err);
/* The epsilon closure of `now` (`first`) or `next`: its rounds, until it is complete or the scorer
 * has to score. */
wf_status wf__transducer_begin_closure(wf__transducer_search *search, bool first, float cutoff,
                                       wf_error *err);
wf_status wf__transducer_close(wf__transducer_search *search, wf_error *err);
/* Adds records of the tokens of `now`, and makes the first of them by rank the sources. */
wf_status wf__transducer_choose(wf__transducer_search *search, wf_error *err);
/* Numbers the predictor contexts of a set. */
wf_status wf__transducer_number(wf__transducer_search *search, wf__transducer_set *set,
                                wf_error *err);

/* transducer_expand.c: offers the candidates of a source to the sets, or keeps the best one of a
 * greedy step. `row`: the scores of its context. */
wf_status wf__transducer_expand_source(wf__transducer_search *search,
                                       const wf__transducer_source *source,
                                       const wf__score_row *row, wf_error *err);
/* Offers the candidates of a step that a device has made. */
wf_status wf__transducer_take_offers(wf__transducer_search *search, wf_error *err);
/* Before: lowers the cutoff of a step that is not greedy. */
void wf__transducer_look_at_blanks(wf__transducer_search *search,
                                   const wf__transducer_source *source, const wf__score_row *row);
wf_status wf__transducer_offer_greedy(wf__transducer_search *search, wf_error *err);

/* transducer_requests.c, for searches that defer: requests to a scorer with batch operations,
 * before a step, a round of the closure, and the end. */
wf_status wf__transducer_request_words(wf__transducer_search *search, wf_error *err);
wf_status wf__transducer_request_epsilons(wf__transducer_search *search,
                                          const wf__transducer_set *set, wf_error *err);
wf_status wf__transducer_request_endings(wf__transducer_search *search, wf_error *err);
wf_status wf__transducer_find_live(wf__searcher *searcher, wf_error *err);
wf_status wf__transducer_answer_model(wf__searcher *searcher, wf_error *err);

/* Is this the last step of a frame in RNN-T, which has no token arcs? */
static inline bool wf__transducer_only_blank(const wf__transducer_search *search) {
  return search->model->num_durations == 0 && search->step == search->base.options.max_symbols;
}

/* NULL: there are other arcs. */
static inline const wf__transducer_arcs *wf__transducer_known_arcs(
    const wf__transducer_search *search) {
  return search->base.graph->added == NULL ? search->arcs : NULL;
}

static inline wf__transducer_set *wf__transducer_waiting_for(wf__transducer_search *search,
                                                             int64_t frame) {
  return &search->waiting[frame % search->num_waiting];
}

/* The token's cost with the final costs of graph and scorer. */
static inline wf_status wf__transducer_ending_cost(wf__transducer_search *search,
                                                   const wf__transducer_token *token, float *cost,
                                                   wf_error *err) {
  float added = 0;
  *cost = token->cost + wf__graph_final(search->base.graph, token->state);
  if (*cost == INFINITY || search->base.scoring.scorer == NULL) return WF_OK;
  WF__TRY(wf__scoring_final(&search->base.scoring, token->context, &added, err));
  *cost += added;
  return WF_OK;
}

#endif
