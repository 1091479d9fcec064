/* search.h - the frame-synchronous beam search over one utterance, on one CPU thread.
 *
 * docs/reference/semantics.md defines the result of each step; this is its fast sequential form.
 *
 *   tokens    [n]   {cost, state, arc, prev, round, slot}   this frame's hypotheses, one per state,
 *             or per pair (state, context) with a scorer
 *   contexts  [n]   of the tokens, if there is a scorer
 *   slots     2^b   {state, token}                          open addressing: state (and context) ->
 *             token
 *
 * A search object is reused for many utterances and allocates only when one needs more room than
 * any before. */
#ifndef WF_SEARCH_FRAME_SEARCH_H
#define WF_SEARCH_FRAME_SEARCH_H

#include "search/path.h"
#include "search/lattice_history.h"
#include "search/trace.h"
#include "scorer/scoring.h"

typedef struct wf__token {
  float cost; /* relative to the frame's offset */
  uint32_t state;
  uint32_t arc;  /* the arc that led here */
  uint32_t prev; /* record of the trace, or for tokens made by epsilons in this frame: token number,
                    see `round` */
  uint32_t round; /* 0: from an emitting arc; r > 0: epsilon round r */
  uint32_t slot;  /* the slot that points here */
} wf__token;

typedef struct wf__slot {
  uint32_t state, token;
} wf__slot;

typedef struct wf__token_vec {
  wf__token *data;
  uint64_t size, cap;
} wf__token_vec;

/* The last accepted entry of a ranking. Keys are distinct except for contexts, which decide
 * ties. */
typedef struct wf__limit {
  uint64_t key, context;
} wf__limit;

/* An arc of a hub (hub.h): lower bounds of what it adds to a cost, its own and that of all arcs
 * from it on, and its place among the arcs of the state. */
typedef struct wf__hub_arc {
  float bound, rest;
  uint32_t place;
} wf__hub_arc;

typedef struct wf__hub {
  uint32_t state; /* UINT32_MAX: none yet */
  bool ready;     /* the arcs are sorted */
  WF__VEC(wf__hub_arc) arcs;
  WF__VEC(float) bounds; /* scratch */
} wf__hub;

/* Where a search stands, and may wait for its scorer. */
typedef enum wf__stage {
  WF__STAGE_FRAME,   /* between frames */
  WF__STAGE_EMIT,    /* sources are chosen */
  WF__STAGE_CLOSURE, /* a round of the epsilon closure comes next */
} wf__stage;

typedef struct wf__search {
  const wf_graph *graph;
  wf_decoder_options options;
  float epsilon_slack;
  wf__token_vec tokens;  /* of the newest frame, costs renormalised */
  wf__token_vec sources; /* of the frame before, those being expanded */
  wf__scoring scoring;
  WF__VEC(uint64_t) contexts; /* with a scorer: of the tokens, by number */
  WF__VEC(uint64_t)
  past_contexts; /* of all tokens of the frame before: sources are among these, see
                    wf__search_source_number */
  wf__slot *slots;
  int slot_bits;
  WF__VEC(uint32_t) used_slots;
  float *label_costs;            /* [num_labels] acoustic cost of each input label in this frame */
  WF__VEC(uint64_t) keys;        /* (ordered cost, state or arc): scratch of selections */
  wf__hub hub;                   /* of this frame */
  uint64_t most_keys;            /* for min_active: keys to keep */
  WF__VEC(uint32_t) frontier[2]; /* tokens to relax in this epsilon round and the next */
  WF__VEC(float) frontier_costs;
  WF__VEC(uint64_t) frontier_contexts;
  wf__trace trace;
  uint64_t trace_base; /* record of tokens.data[0] in the trace */
  wf__path *committed; /* of a stream: the committed prefix, which all tokens share, cut off the
                          trace; else NULL */
  wf__score_sum committed_sum; /* the scorer's cost of the prefix, and the context after it */
  const wf_scores *scores;     /* scores being searched; `frame` is the current row of them */
  int64_t frame;
  wf__stage stage;
  int64_t next_frame;
  wf__limit last;            /* of the frame's candidates */
  float cutoff;              /* of the frame */
  uint32_t round;            /* of its closure */
  uint64_t num_arcs_emitted; /* path.num_arcs before the closure */
  wf__context_vec live;      /* scratch of score_requests.c */
  float skip_above;          /* score of the blank beyond which a frame is blank for sure */
  bool after_blank;          /* the last frame was surely blank */
  bool goes_on; /* wf__search_finish makes a partial result: the path may end anywhere */
  /* For the lattice, if there is one (links.c). */
  bool keeps_lattice; /* lattice_beam > 0 */
  wf__history history;
  wf__link_vec candidates; /* candidates of the current frame's tokens; `excess` holds the cost
                              until links.c */
  WF__VEC(uint32_t)
  moved; /* new numbers of these tokens after some were dropped; empty: none was dropped */
  wf__link_vec epsilons;    /* the same for epsilon arcs, round by round */
  WF__VEC(uint64_t) rounds; /* first of `epsilons` of each round */
  WF__VEC(uint32_t) depths; /* scratch of links.c, by token */
  uint64_t most_tokens;     /* most tokens of a frame; token_of sets `full` beyond */
  bool full;
  bool died; /* no token was left: `tokens` are the last sources, their records in `prev` */
  wf__path path;
} wf__search;

wf_status wf__search_create(const wf_graph *graph, const wf_decoder_options *options,
                            wf__search **out, wf_error *err);
void wf__search_free(wf__search *search);
/* Sets the graph from the next begin on: that of wf__search_create, or that graph with added words.
 * Call it before setting the scorer. */
void wf__search_set_graph(wf__search *search, const wf_graph *graph);
/* Sets the scorer from the next begin on; NULL (the default): none. */
wf_status wf__search_set_scorer(wf__search *search, const wf_scorer *scorer, wf_error *err);
/* Takes the scorer of `first`, with a memory joined to its memory. */
wf_status wf__search_join_scorer(wf__search *search, const wf__search *first, wf_error *err);
/* Begins an utterance: the start token and its epsilon closure. */
wf_status wf__search_begin(wf__search *search, wf_error *err);
/* Sets the next frames to consume. They must stay valid until they are consumed. */
void wf__search_feed(wf__search *search, const wf_scores *scores);
/* Consumes frames until all are consumed or no token is left (then path.flags gets WF_RESULT_DIED).
 * *waits is set if a scorer with batch operations has to score submitted requests before the search
 * can continue. */
wf_status wf__search_go_on(wf__search *search, bool *waits, wf_error *err);
/* Consumes all frames of `scores`, and scores its own requests. */
wf_status wf__search_advance(wf__search *search, const wf_scores *scores, wf_error *err);
/* Submits the requests that wf__search_finish will need. Optional: wf__search_finish does so
 * itself. */
wf_status wf__search_request_endings(wf__search *search, bool *waits, wf_error *err);
/* Makes the best path in search->path, which stays valid until the next begin. `scores` holds all
 * frames of the utterance, or is NULL if the trace has kept the scores that were read. For a stream
 * the path begins after the committed prefix. */
wf_status wf__search_finish(wf__search *search, const wf_scores *scores, wf_error *err);
/* With a lattice: sets history.endings to the cost of ending in each of the newest frame's
 * tokens, above the least of them. `final`: on final states only; else anywhere, after dying
 * where the search continued. wf__search_lattice does so itself. */
wf_status wf__search_endings(wf__search *search, bool final, wf_error *err);
/* Makes the lattice. Call it once, after wf__search_finish, if the options include a lattice. */
wf_status wf__search_lattice(wf__search *search, const wf_scores *scores, wf_lattice **out,
                             wf_error *err);

/* score_requests.c, for a scorer with batch operations: submits requests for the emitting arcs
 * of the sources, and for the epsilon arcs of the frontier. */
wf_status wf__search_request_emitting(wf__search *search, bool *waits, wf_error *err);
wf_status wf__search_request_epsilons(wf__search *search, const uint32_t *frontier, uint64_t size,
                                      bool *waits, wf_error *err);
/* Scores all requests of the searches, whose scorers' memories are joined. */
wf_status wf__search_score_requests(wf__search *const *searches, size_t count, wf__pool *pool,
                                    wf_error *err);

/* Number that a source (or after dying, a token) had among the tokens of its frame. */
static inline uint64_t wf__search_source_number(const wf__search *search, const wf__token *source) {
  return source->prev - search->trace_base;
}
/* Context of tokens[i] of the newest frame, after the frame is finished. There must be a
 * scorer. */
static inline uint64_t wf__search_context(const wf__search *search, uint64_t i) {
  return search->died
             ? search->past_contexts.data[wf__search_source_number(search, &search->tokens.data[i])]
             : search->contexts.data[i];
}

#endif
