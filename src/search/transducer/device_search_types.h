/* device_search_types.h - a search that is wholly on a device: types shared by the host code and the
 * GPU kernels. */
#ifndef WF_SEARCH_TRANSDUCER_DEVICE_SEARCH_TYPES_H
#define WF_SEARCH_TRANSDUCER_DEVICE_SEARCH_TYPES_H

#include "search/transducer/transducer_types.h"

enum {
  WF__DEVICE_MOST_HYPOTHESES = 32, /* a lane of a warp has one each */
  WF__DEVICE_MOST_DURATIONS = 8
};

typedef struct wf__device_search_options {
  float acoustic_scale, blank_penalty, beam, word_score;
  uint32_t start;        /* state */
  uint32_t has_epsilons; /* the graph has some */
  uint32_t by_label;     /* arcs of every state with a token are in order of their columns */
  /* Tokens alone: one state, with an arc for each token. Searched without a scorer, and without what
   * words need. */
  uint32_t is_plain;
  float final_cost;
  float token_weight, blank_weight; /* the least of the arcs' costs */
  uint32_t greedy, max_hypotheses, max_symbols;
  uint32_t keeps_offers; /* for lattices, and of streams */
  float lattice_beam;
  uint32_t num_tokens, num_durations, blank, context_size;
  uint32_t first_arc, num_arcs;        /* of the state */
  uint64_t context_base, context_high; /* of stateless contexts: the digit's base, and its power
                                               for the oldest digit */
  uint64_t context_start;
} wf__device_search_options;

typedef struct wf__device_search_arc {
  uint32_t number; /* from the state's first arc on; UINT32_MAX: the column has none */
  float weight;
  uint32_t has_word;
} wf__device_search_arc;

/* A state: consuming arcs are first_arc .. first_epsilon - 1, epsilon arcs those before `end`. */
typedef struct wf__device_search_state {
  uint32_t first_arc, first_epsilon, end;
  float final_cost;
} wf__device_search_state;
/* As a wf_arc. Where added words may stand: an epsilon of weight +infinity, and the number of the place
 * as `next` (UINT32_MAX: it is none). */
typedef struct wf__device_graph_arc {
  uint32_t next;
  float weight;
  uint32_t column; /* not of epsilons */
  uint32_t word;
} wf__device_graph_arc;
/* A place of a class, for words that are added at run time. Those of a class come after another. */
typedef struct wf__device_place {
  uint32_t target; /* state after the words */
  float weight;
  uint32_t word_class, rank; /* rank: among the places of the class */
} wf__device_place;

/* The graph, as a search takes it to a GPU. */
typedef struct wf__device_search_graph {
  const wf__device_search_arc *tokens; /* [num_tokens] by column, if it is plain */
  const wf__device_search_state *states;
  const wf__device_graph_arc *arcs;
  const wf__device_place *places;
  uint64_t num_states, num_arcs, num_places;
} wf__device_search_graph;

/* An arc of a path. Epsilons have no log-probability and no frame of their own. */
typedef struct wf__path_step {
  uint32_t arc;
  float loglike;
  int32_t frame;
} wf__path_step;

/* A candidate that a set keeps, or that may be a link of the lattice: the CPU's search repeats the
 * step from these, without the model. Those of a step come after one with `at` UINT32_MAX and their number as
 * `duration`, in any order. */
enum { WF__DEVICE_RANK_BIT = 26 };
typedef struct wf__device_offer {
  uint64_t context; /* of the scorer, after it */
  uint32_t at;      /* rank of its source << WF__DEVICE_RANK_BIT | number of the arc in the state */
  uint32_t duration;
  float cost, loglike;
} wf__device_offer;

/* A token that waits when a chunk of a stream begins. */
typedef struct wf__device_start {
  uint64_t predictor, context;
  float cost;
  uint32_t state;
  uint32_t set, number; /* frames from the chunk's first on, and rank in this set */
  /* Of a predictor with states: where that of its context is (UINT32_MAX: not computed), or that
   * of the context before (UINT32_MAX: the start) and the token after it. */
  uint32_t slot, parent;
  int32_t label;
  uint32_t unused; /* no padding */
} wf__device_start;

/* A slot that has the state of a context of tokens that wait when a chunk ends: the stream's now. */
typedef struct wf__device_kept {
  uint64_t context;
  uint32_t slot, unused;
} wf__device_kept;

typedef enum wf__device_outcome {
  WF__DEVICE_DONE,
  WF__DEVICE_BAD_LOGIT, /* `bad`, in frame `frame` */
  WF__DEVICE_NO_ROOM    /* it has to be searched in another way */
} wf__device_outcome;

typedef struct wf__device_result {
  uint32_t outcome;
  uint32_t flags;        /* WF_RESULT_* */
  uint32_t end;          /* record in which the path ends */
  int32_t frame;         /* of the bad logit; else the number of frames that were decoded */
  uint64_t first, count; /* of its path's steps, or of its offers */
  uint32_t first_kept, num_kept;
  wf__bad_logit bad;
  uint64_t num_tokens, num_expanded, num_arcs;
} wf__device_result;

#endif
