/* transducer_lanes.h - the search in a kernel: its memory and its parameters. Plain C.
 *
 * A lane is a block of threads, which searches one utterance after another. A launch takes the
 * logits that the lane has asked for, and goes on to its next request to the model. The requests of
 * all lanes are in the block of memory that the model's kernels read (wf__round_block); with the
 * table of a stateless predictor, the launch makes the joiner's hidden rows itself, so that a
 * product is all that is left. docs/reference/transducers.md defines each step;
 * src/search/transducer/ is the same search on the CPU, which adds in the same order.
 *
 *   lane       the numbers of a lane           in shared memory during a launch
 *   tokens     [sets + 1][K]: sources, then those that wait for frame t, at t modulo `num_sets`
 *   contexts   [slots of a lane]: the predictor context of each slot
 *   records    [room of an utterance]: its history
 *   offers     [room of an utterance]: for its lattice, or its stream
 *   candidates [WF__LANE_CANDIDATES] of a step, with words
 *   entries    [WF__LANE_MORE_ENTRIES] of a step over tokens alone, that shared memory has no room for
 *   slots      [slots of a lane]: their numbers in the group (transducer_slots.h)
 *
 * There are two kernels: over tokens alone, and "with words", over any graph, with a scorer for each
 * utterance. Sets are sorted by rank, but for what normalisation changes. All functions return a cudaError_t;
 * `stream` is a cudaStream_t. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_LANES_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_LANES_H

#include "cuda/search/search_params.h"
#include "cuda/transducer/transducer_kernels.h"
#include "math/hash.h"
#include "scorer/flat_scorer.h"
#include "search/transducer/device_search_types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WF__TLANE_STATUSES = 16 }; /* rounds of which the host can read the status */

/* An utterance to search. */
typedef struct wf__tlane_utterance {
  uint64_t first_record, most_records, first_offer, most_offers;
  uint32_t first_frame; /* row of the encoder's part */
  int32_t num_frames;
  uint32_t is_chunk; /* of a stream: it begins with these tokens, and does not end */
  uint32_t first_start, num_starts;
  float epsilon_slack;
  const wf__flat_scorer *scorer; /* NULL: none */
  const wf__lane_words *words;   /* added to the graph; NULL: none */
} wf__tlane_utterance;

typedef struct wf__tlane_record {
  uint32_t prev, arc; /* as in the CPU's history: UINT32_MAX is the root, and no arc */
  float loglike;
  int32_t frame;
} wf__tlane_record;

typedef struct wf__tlane_token {
  uint64_t predictor, context; /* of the predictor and of the scorer */
  float cost, loglike;
  uint32_t state, arc;
  uint32_t prev;   /* record of the token before; once it has a record of its own, this one */
  uint32_t slot;   /* of the predictor context, among the lane's, or WF__TLANE_OUTSIDE + its number;
                    UINT32_MAX: not computed yet, ... */
  uint32_t parent; /* ... from that of this slot (UINT32_MAX: the start) ... */
  int32_t label;   /* ... by this token */
  int32_t frame;   /* of the arc */
  uint32_t row;    /* of a source: its logits, among the lane's rows */
} wf__tlane_token;

enum { WF__TLANE_MOST_SETS = WF__DEVICE_MOST_DURATIONS };
#define WF__TLANE_OUTSIDE 0x80000000u

/* With words: a candidate of a step before durations. `at`: rank of its source and number of its arc
 * in the state. */
typedef struct wf__tlane_candidate {
  uint64_t context;
  float base, loglike; /* its cost without the model's, and its token's log-probability */
  uint32_t at, column, state, word;
} wf__tlane_candidate;
#ifndef WF__LANE_CANDIDATES /* a test makes it small */
#define WF__LANE_CANDIDATES 16384
#endif

/* Over tokens alone: a log-probability that can matter. `at`: row of its source and column. */
typedef struct wf__tlane_entry {
  uint32_t at;
  float loglike;
} wf__tlane_entry;
#ifndef WF__LANE_MORE_ENTRIES /* a test makes it small */
#define WF__LANE_MORE_ENTRIES 7680
#endif

typedef struct wf__tlane {
  uint32_t utterance; /* UINT32_MAX: idle */
  uint32_t waits;     /* for the logits of rows first_row ... */
  uint32_t first_row, num_rows, num_sources;
  uint32_t num_records, best_record;
  uint32_t num_offers, step_offer; /* so far, and the one that the current step's come after */
  int32_t frame, step, next_frame, last_frame;
  float least_waiting;
  uint32_t sizes[WF__TLANE_MOST_SETS]; /* of the waiting sets */
  uint64_t num_tokens, num_expanded, num_arcs;
  wf__tlane_utterance own;
} wf__tlane;

/* What all lanes count together; between launches, those of the round are 0. */
typedef struct wf__tlane_counters {
  uint32_t num_utterances, next_utterance;
  uint32_t round; /* rounds so far */
  uint32_t num_rows, num_contexts, num_busy, num_blocks;
  uint32_t num_done;               /* utterances, of all rounds */
  uint32_t num_kept, num_spares;   /* slots that lanes have given away, or wanted to; there are */
  uint64_t num_details;            /* of all results */
  uint64_t all_rows, all_contexts; /* of all rounds */
} wf__tlane_counters;

/* What the host knows of a round, in one word, which is written at once: the number of the round,
 * from 1 on, of lanes that are busy, and of utterances that are done. */
typedef uint64_t wf__tlane_status;
enum { WF__TLANE_DONE_BITS = 22, WF__TLANE_BUSY_BITS = 10 };
static inline WF__HD wf__tlane_status wf__tlane_status_of(uint32_t round, uint32_t num_busy,
                                                          uint32_t num_done) {
  return (uint64_t)round << (WF__TLANE_DONE_BITS + WF__TLANE_BUSY_BITS) |
         num_busy << WF__TLANE_DONE_BITS | num_done;
}
static inline uint32_t wf__tlane_status_round(wf__tlane_status status) {
  return (uint32_t)(status >> (WF__TLANE_DONE_BITS + WF__TLANE_BUSY_BITS));
}
static inline uint32_t wf__tlane_status_busy(wf__tlane_status status) {
  return (uint32_t)(status >> WF__TLANE_DONE_BITS) & ((1u << WF__TLANE_BUSY_BITS) - 1);
}
static inline uint32_t wf__tlane_status_done(wf__tlane_status status) {
  return (uint32_t)status & ((1u << WF__TLANE_DONE_BITS) - 1);
}

/* The same for all batches of a size, unless memory moves: a recorded round has a copy. */
typedef struct wf__tlane_work {
  wf__device_search_options options;
  uint32_t num_lanes, num_sets, num_slots; /* slots of a lane */
  uint32_t start_slot; /* the state before the start, of predictors with states */
  uint32_t is_wide;    /* the model's kernels answer (wf__transducer_is_wide) */
  uint32_t has_words;
  uint32_t num_states; /* of the graph; those of added words come after them */
  uint32_t unused;
  uint32_t *slots;
  const uint32_t *spares; /* slots, and what is told of those for which lanes took these */
  wf__device_kept *kept;
  const wf__tlane_utterance *utterances;
  wf__tlane *lanes;
  wf__tlane_token *tokens;
  uint64_t *contexts;
  wf__tlane_record *records;
  wf__device_offer *offers;
  const wf__device_start *starts;
  wf__device_result *results; /* [num_utterances] */
  wf__tlane_counters *counters;
  wf__tlane_status *statuses;        /* [WF__TLANE_STATUSES] page-locked, by round */
  const float *table;                /* rows of all contexts (transducer_weights.h); NULL */
  const wf__device_search_arc *arcs; /* [num_tokens] by column */
  const wf__device_search_state *states;
  const wf__device_graph_arc *graph_arcs;
  const wf__device_place *places;
  wf__tlane_candidate *candidates; /* with words */
  wf__tlane_entry *entries;        /* without */
  char *block;                     /* of the requests */
  wf__round_block layout;
  wf__answer_work answer; /* but for the number of rows */
} wf__tlane_work;

/* With a table: what makes hidden rows of requests. */
typedef struct wf__tlane_joiner {
  const float *encoder; /* [frames][stride] */
  uint32_t stride;
  int32_t relu;
  wf__sliced to;
} wf__tlane_joiner;

/* Shared memory of a lane's block. */
uint64_t wf__tlanes_shared_bytes(const wf__tlane_work *work);
/* Before the first step on the current GPU, whose blocks can have so much shared memory. */
int wf__tlanes_prepare(uint64_t shared_bytes);
/* Gives the lanes their first utterances; those of a longer utterance come first. */
int wf__tlanes_begin(const wf__tlane_work *work, uint32_t num_utterances, uint32_t num_spares,
                     void *stream);
/* A round: takes the logits, and makes the next requests. */
int wf__tlanes_step(const wf__tlane_work *work, const wf__tlane_joiner *joiner, void *stream);
/* How many details all results have, together num_details of the counters. Then the paths, along the
 * records of all utterances, or their offers. */
int wf__tlanes_measure(const wf__tlane_work *work, uint32_t num_utterances, void *stream);
int wf__tlanes_trace(const wf__tlane_work *work, uint32_t num_utterances, wf__path_step *path,
                     void *stream);
int wf__tlanes_gather(const wf__tlane_work *work, uint32_t num_utterances, wf__device_offer *offers,
                      void *stream);

#ifdef __cplusplus
}
#endif
#endif
