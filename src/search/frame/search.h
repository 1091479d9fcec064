/* search.h - the beam search over one utterance with scores of frames (CTC, HMMs), on one CPU
 * thread.
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

#include "search/searcher.h"
#include "search/trace.h"

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

/* The arcs of a wide state over one label: a lower bound of what they add to a cost, and the place of
 * the first. */
typedef struct wf__column_arcs {
  float bound;
  uint32_t first;
} wf__column_arcs;

/* A part of the list of labels: those of cost up to `covered` come before `end`. */
typedef struct wf__column_layer {
  float covered;
  uint64_t end;
} wf__column_layer;
enum { WF__COLUMN_LAYERS = 8 };

/* The labels of a frame that may survive (frame_columns.h). Without wide states there are no cells
 * and blocks, and only the first two. */
typedef struct wf__columns {
  WF__VEC(float) floats;   /* the row as float32, if it is of another type */
  WF__VEC(float) by_label; /* and if labels need other scores than those of the row */
  uint64_t num_cells, num_blocks;
  float *cells, *blocks;   /* their highest scores; -infinity without columns */
  float *sums;             /* [num_cells] scratch */
  uint32_t *found;         /* [num_cells + num_blocks] scratch: numbers of cells */
  float least, covered;    /* least cost; all labels of cost up to `covered` are in the list */
  float bound;             /* of bound_count labels (wf__columns_bound) */
  uint64_t bound_count;    /* 0: not known */
  WF__VEC(int32_t) labels; /* in no order, but for layers */
  wf__column_layer layers[WF__COLUMN_LAYERS]; /* [num_layers] the last one is the whole list */
  uint32_t num_layers;
  uint32_t owner; /* of `arcs`, which are for the first of `labels` */
  WF__VEC(wf__column_arcs) arcs;
} wf__columns;

/* A source on a wide state. */
typedef struct wf__ranked_source {
  uint64_t context;       /* 0 without a scorer */
  uint32_t state, number; /* number: among the sources */
  float cost;
} wf__ranked_source;

/* Sources whose arcs over tokens need not be looked at (dominance.h). */
typedef struct wf__dominance {
  WF__VEC(wf__ranked_source) sorted, other; /* none unless they are many; `other`: scratch */
  WF__VEC(uint8_t) flags;                   /* by source; only with `sorted` */
} wf__dominance;

enum { WF__NOTED = 256 };

/* Where a search stands, and may wait for its scorer. */
typedef enum wf__stage {
  WF__STAGE_FRAME,   /* between frames */
  WF__STAGE_EMIT,    /* sources are chosen */
  WF__STAGE_CLOSURE, /* a round of the epsilon closure comes next */
} wf__stage;

/* The step over a frame: from its scores to the candidates that stay. */
typedef struct wf__step {
  const wf_scores *scores; /* being searched; `frame` is the current row of them */
  int64_t frame, next_frame;
  wf__stage stage;
  const float *row; /* scores of the input labels, from label 1 on */
  float factor;     /* that makes them costs, below 0 */
  wf__columns columns;
  WF__VEC(uint64_t) keys; /* (ordered cost, state or arc): scratch of selections */
  uint64_t most_keys;     /* for min_active: keys to keep */
  float noted[WF__NOTED]; /* costs of the first candidates within the running cutoff */
  uint32_t num_noted;
  wf__hub hub;
  wf__dominance dominance;
  wf__limit last; /* of the candidates */
  float cutoff;
  float skip_above; /* score of the blank beyond which a frame is blank for sure */
  bool after_blank; /* the last frame was surely blank */
} wf__step;

/* The frame's closure over epsilons, in rounds. */
typedef struct wf__closure {
  uint32_t round;
  WF__VEC(uint32_t) frontier[2]; /* tokens to relax in this round and the next */
  WF__VEC(float) costs;          /* of the frontier */
  WF__VEC(uint64_t) contexts;    /* the same */
  uint64_t num_arcs_before;      /* path.num_arcs */
} wf__closure;

/* Candidates of the frame that become links of the lattice (links.c). */
typedef struct wf__frame_links {
  wf__link_vec candidates; /* of the frame's tokens; `excess` holds the cost until links.c */
  WF__VEC(uint32_t)
  moved; /* new numbers of these tokens after some were dropped; empty: none was dropped */
  wf__link_vec epsilons;    /* the same for epsilon arcs, round by round */
  WF__VEC(uint64_t) rounds; /* first of `epsilons` of each round */
  WF__VEC(uint32_t) depths; /* scratch of links.c, by token */
} wf__frame_links;

typedef struct wf__search {
  wf__searcher base;
  wf__token_vec tokens;       /* of the newest frame, costs renormalised */
  wf__token_vec sources;      /* of the frame before, those being expanded */
  WF__VEC(uint64_t) contexts; /* with a scorer: of the tokens, by number */
  WF__VEC(uint64_t)
  past_contexts; /* of all tokens of the frame before: sources are among these, see
                    wf__search_source_number */
  wf__slot *slots;
  int slot_bits;
  WF__VEC(uint32_t) used_slots;
  uint64_t most_tokens; /* most tokens of a frame; token_of sets `full` beyond */
  bool full;
  bool died; /* no token was left: `tokens` are the last sources, their records in `prev` */
  wf__step step;
  wf__closure closure;
  wf__frame_links links;
  wf__trace trace;
  uint64_t trace_base; /* record of tokens.data[0] in the trace */
  wf__path *committed; /* of a stream: the committed prefix, which all tokens share, cut off the
                          trace; else NULL */
} wf__search;

/* Sets history.endings to the cost of ending in each of the newest frame's tokens, above the least
 * of them. `final`: on final states only; else anywhere, after dying where the search continued. */
wf_status wf__search_endings(wf__search *search, bool final, wf_error *err);
/* search_end.c: operations of wf__frame_searcher. */
wf_status wf__search_go_to_end(wf__searcher *searcher, wf_error *err);
wf_status wf__search_finish(wf__searcher *searcher, const wf_scores *scores, wf_error *err);
wf_status wf__search_partial(wf__searcher *searcher, wf_error *err);
wf_status wf__search_lattice(wf__searcher *searcher, const wf_scores *scores, wf_lattice **out,
                             wf_error *err);
/* search.c: the same. */
wf_status wf__search_begin(wf__searcher *searcher, wf_error *err);
wf_status wf__search_feed(wf__searcher *searcher, const wf_scores *scores, wf_error *err);
wf_status wf__search_go_on(wf__searcher *searcher, wf_error *err);

/* score_requests.c, for a scorer with batch operations: submits requests for the emitting arcs
 * of the sources, for the epsilon arcs of the frontier, and for the end. */
wf_status wf__search_request_emitting(wf__search *search, wf_error *err);
wf_status wf__search_request_epsilons(wf__search *search, const uint32_t *frontier, uint64_t size,
                                      wf_error *err);
wf_status wf__search_request_endings(wf__search *search, wf_error *err);
wf_status wf__search_find_live(wf__searcher *searcher, wf_error *err);

/* Acoustic cost of an input label in this frame. */
static inline float wf__label_cost(const wf__search *search, int32_t label) {
  return search->step.factor * search->step.row[label - 1];
}
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
