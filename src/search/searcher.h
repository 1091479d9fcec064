/* searcher.h - the search over one utterance, whatever it searches with. There are two: `frame/`
 * with the scores of frames (CTC, HMMs), `transducer/` with a transducer model.
 *
 *   wf__search_setup   what all searches of a decoder have in common
 *   wf__searcher       one search; the first member of each search's own struct
 *   wf__searcher_ops   its operations
 *   wf__answer_ops     answers to the requests of many searches at once, by a GPU or the caller
 *   wf__stream_state   an utterance of a stream between chunks
 *
 * A search stops whenever it needs scores of a word or of a model that are computed for many
 * searches together. Who runs it gets the answers and lets it go on:
 *
 *   begin --> feed --> go_on --> go_to_end --> finish --> path, lattice
 *                      |  ^       |  ^
 *                      waits      waits
 *
 * A stream's utterance is in a search only during a call: enter, what is to be done, leave.
 *
 * A searcher is used by one thread at a time, and for many utterances. It allocates only when one
 * needs more room than any before. */
#ifndef WF_SEARCH_SEARCHER_H
#define WF_SEARCH_SEARCHER_H

#include "base/threads.h"
#include "search/lattice_history.h"
#include "search/path.h"
#include "warpfst_transducer.h"

typedef struct wf__searcher wf__searcher;
typedef struct wf__searcher_ops wf__searcher_ops;
typedef struct wf__answer_ops wf__answer_ops;

typedef struct wf__search_setup {
  const wf__searcher_ops *ops;
  const wf_graph *graph;
  wf_decoder_options options;
  void *shared;                  /* memory that the searches share; NULL: none */
  int32_t num_columns;           /* that scores need */
  bool on_device;                /* scores may be in a device's memory */
  bool on_one_thread;            /* searches call functions of the caller */
  const wf__answer_ops *answers; /* NULL: each search answers its own requests to the model */
} wf__search_setup;

/* What a search waits for. */
enum { WF__WAITS_MODEL = 1, WF__WAITS_SCORER = 2 };

struct wf__searcher {
  const wf__searcher_ops *ops;
  const wf_graph *graph;
  wf_decoder_options options;
  float epsilon_slack;
  wf__scoring scoring;
  wf__context_vec live; /* scratch: contexts of the scorer that are in use */
  bool keeps_lattice;   /* lattice_beam > 0 */
  bool ended;           /* by go_to_end: no frame may follow */
  unsigned waits;       /* WF__WAITS_*, after go_on and go_to_end */
  wf__history history;
  wf__score_sum committed_sum; /* the scorer's cost of the committed prefix, and the context after
                                  it */
  wf__path path;               /* the result, valid until the next begin */
};

/* An utterance of a stream between chunks; the first member of each search's own. */
typedef struct wf__stream_state {
  const wf__searcher_ops *ops;
  const wf_graph *graph; /* of this utterance */
  bool begun;
  size_t place; /* the device that answers its requests to the model, of those of wf__answer_ops */
} wf__stream_state;

struct wf__searcher_ops {
  /* go_on fails at a score that cannot be used (wf__fail_bad_score), so that nobody has to look
   * before. */
  bool checks_scores;
  /* Fills the rest of a setup, which has ops, graph and options. `model`: NULL without a
   * transducer. */
  wf_status (*open)(const wf_transducer *model, wf__search_setup *setup, wf_error *err);
  void (*close)(wf__search_setup *setup); /* NULL: there is nothing to free */
  /* `many`: it is one of dozens, so it should keep less. */
  wf_status (*create)(const wf__search_setup *setup, bool many, wf__searcher **out, wf_error *err);
  void (*free)(wf__searcher *searcher);

  /* Begins an utterance, with the graph and the scorer that are set. */
  wf_status (*begin)(wf__searcher *searcher, wf_error *err);
  /* Takes the next frames, after all before are searched. They must stay valid until then. */
  wf_status (*feed)(wf__searcher *searcher, const wf_scores *scores, wf_error *err);
  /* Searches until it `waits`, or all frames are done. */
  wf_status (*go_on)(wf__searcher *searcher, wf_error *err);
  /* The same for the end, after all frames. */
  wf_status (*go_to_end)(wf__searcher *searcher, wf_error *err);
  /* Answers the search's requests to its model; NULL: it has none. */
  wf_status (*answer_model)(wf__searcher *searcher, wf_error *err);
  /* Makes the path, after go_to_end. `scores`: all frames of the utterance; NULL: of a stream. The
   * path of a stream begins after the committed prefix. */
  wf_status (*finish)(wf__searcher *searcher, const wf_scores *scores, wf_error *err);
  /* Makes the lattice, once, after `finish`. */
  wf_status (*lattice)(wf__searcher *searcher, const wf_scores *scores, wf_lattice **out,
                       wf_error *err);
  /* Collects in `live` every context of the scorer that the search may still use. */
  wf_status (*find_live)(wf__searcher *searcher, wf_error *err);

  /* --- streams, between chunks ----------------------------------------------------------- */

  bool owns_search; /* an utterance has a search of its own; else it is moved into a thread's */
  wf_status (*open_stream)(const wf__search_setup *setup, wf__stream_state **out, wf_error *err);
  void (*close_stream)(wf__stream_state *state);
  /* Ends the utterance. An idle stream keeps no memory. */
  void (*reset)(wf__stream_state *state);
  uint64_t (*bytes)(const wf__stream_state *state);
  /* Of the utterances that begin from now on; NULL: none. */
  wf_status (*set_scorer)(wf__stream_state *state, const wf_scorer *scorer, wf_error *err);
  /* Makes the stream's utterance that of a search, and begins it if it has not begun. `threads`: a
   * search of the calling thread; NULL if it owns_search. `leave` must follow in every case, with
   * the status of what was done between, which it returns unless it fails itself. */
  wf_status (*enter)(const wf__search_setup *setup, wf__stream_state *state, wf__searcher *threads,
                     wf__searcher **out, wf_error *err);
  wf_status (*leave)(wf__stream_state *state, wf__searcher *searcher, wf_status status,
                     wf_error *err);
  /* Drops what is not needed from the history, and cuts the committed prefix off: the arcs that all
   * tokens share. Not `now`: only if there is much to drop. */
  wf_status (*collect)(wf__searcher *searcher, bool now, wf_error *err);
  /* Moves the committed prefix into a path, which must be empty. */
  wf_status (*take_committed)(wf__stream_state *state, wf__path *out, wf_error *err);
  /* Makes the path to the best token, with relative_cost. The utterance may go on. */
  wf_status (*partial)(wf__searcher *searcher, wf_error *err);
  /* Makes the lattice as if the utterance ended here, in any state. It may go on. */
  wf_status (*partial_lattice)(wf__searcher *searcher, wf_lattice **out, wf_error *err);
  /* Replaces the scorer, after the committed prefix was taken, of which `words` are the words. */
  wf_status (*replace_scorer)(wf__searcher *searcher, const wf_scorer *scorer, const wf_word *words,
                              size_t num_words, wf_error *err);

  const wf_scorer *(*scorer_for)(const wf_scorer *scorer); /* the form of a scorer that it uses;
                                                              NULL: itself */
  wf_status (*set_stream)(void *shared, void *stream, wf_error *err); /* NULL: there is no GPU */
  void (*stats)(const void *shared, wf_transducer_stats *out);        /* NULL: none */
};

/* Rounds of searches (decode/rounds.h), and their seconds. */
typedef struct wf__round_counts {
  uint64_t num_rounds;
  double run_s, score_s, wait_s;
} wf__round_counts;

/* Utterances whose search is wholly on a device. */
typedef struct wf__whole_part wf__whole_part;
typedef struct wf__whole_batch {
  const wf_scores *const *scores;  /* [count] the longest come first */
  const wf_scorer *const *scorers; /* [count]; NULL: nobody has one */
  const wf_graph *const *graphs;   /* [count] the decoder's, or that with added words */
  wf__searcher *const *searchers;  /* [count] of streams, whose chunks these are; or NULL */
  const size_t *places;            /* [count] of streams: the device that each is on; or NULL */
  size_t count;
  wf__pool *pool; /* its threads pack scores */
  /* Called by these threads for scores in host memory: frames of utterance `item`. */
  void (*look)(void *user, uint32_t item, const wf_scores *frames);
  /* Called when some are done. While it runs, any thread may ask for their paths. */
  wf_status (*done)(void *user, const wf__whole_part *part, wf_error *err);
  /* Called every now and then; cancels the batch if it fails. */
  wf_status (*progress)(void *user, size_t num_done, wf_error *err);
  void *user;
} wf__whole_batch;
struct wf__whole_part {
  size_t count;
  const uint32_t *items;                /* [count] numbers of the utterances in the batch */
  const void *results, *details, *kept; /* the device's */
  const void *shared;
  const wf__whole_batch *batch;
};

/* Answers the requests to a model of many searches at once. Searches are in lanes, and lane i is of
 * group i % num_groups. `shared`: that of the setup. */
struct wf__answer_ops {
  size_t (*most_lanes)(const void *shared);
  size_t (*most_groups)(const void *shared);
  /* Number of devices for streams, each of which stays on one. NULL: each stream answers its own
   * requests. */
  size_t (*num_places)(const void *shared);
  /* Begins a batch of so many lanes, none of which has an utterance with more than num_frames[i]
   * frames; or, `streams`, chunks of streams, lane i in place i % num_places. */
  wf_status (*begin)(void *shared, bool streams, const int64_t *num_frames, size_t num_lanes,
                     size_t num_groups, wf_error *err);
  /* A lane's utterance or chunk begins. Any thread, one for a lane. */
  wf_status (*take)(void *shared, size_t lane, const wf_scores *scores, wf_error *err);
  /* The lane waits for its model. Any thread, one for a lane. */
  void (*ask)(void *shared, size_t lane, wf__searcher *searcher);
  /* Answers what the group's lanes have asked; or begins to, and `wait`, unless NULL, ends it. */
  wf_status (*submit)(void *shared, size_t group, wf_error *err);
  wf_status (*wait)(void *shared, size_t group, wf_error *err);
  /* Ends the batch, with its status. */
  void (*end)(void *shared, wf_status status, const wf__round_counts *counts);

  /* The only place that decides where a search runs: wholly on the device, without lanes? `graph`:
   * the utterance's; `scorer`: NULL: none. The operation is NULL: none does. */
  bool (*covers)(const void *shared, const wf_graph *graph, const wf_scorer *scorer);
  /* The same for a chunk of the stream that is this search; NULL: of any. */
  bool (*covers_chunk)(const void *shared, const wf__searcher *searcher);
  /* Decodes such utterances or chunks. */
  wf_status (*decode)(void *shared, const wf__whole_batch *batch, wf_error *err);
  /* Without lattices: the path of utterance items[k], in its graph; an error is the utterance's.
   * `left`: it has to be searched in a lane. */
  wf_status (*path)(const wf__whole_part *part, size_t k, wf__path *out, bool *left, wf_error *err);
  /* With lattices, and of streams: makes a search that has begun go all the way of the device's. */
  wf_status (*follow)(const wf__whole_part *part, size_t k, wf__searcher *searcher, bool *left,
                      wf_error *err);
};

extern const wf__searcher_ops wf__frame_searcher, wf__transducer_searcher;

/* Fills what all searches have. */
void wf__searcher_init(wf__searcher *searcher, const wf__search_setup *setup);
void wf__searcher_release(wf__searcher *searcher);
/* Sets the graph of the next utterance: that of the setup, or that graph with added words. Before
 * the scorer. */
static inline void wf__searcher_set_graph(wf__searcher *searcher, const wf_graph *graph) {
  searcher->graph = graph;
}
static inline const wf_scorer *wf__searcher_scorer(const wf__searcher_ops *ops,
                                                   const wf_scorer *scorer) {
  return ops->scorer_for != NULL ? ops->scorer_for(scorer) : scorer;
}
/* Sets the scorer of the next utterance; NULL: none. */
wf_status wf__searcher_set_scorer(wf__searcher *searcher, const wf_scorer *scorer, wf_error *err);
/* Submits the search's requests to its scorer. */
wf_status wf__searcher_submit(wf__searcher *searcher, wf_error *err);
/* Scores the requests of all searches, whose scorers' memories are joined. */
wf_status wf__searcher_score(wf__searcher *const *searchers, size_t count, wf__pool *pool,
                             wf_error *err);
/* Answers all that the search waits for. */
wf_status wf__searcher_answer(wf__searcher *searcher, wf_error *err);
/* Takes frames and searches them. */
wf_status wf__searcher_advance(wf__searcher *searcher, const wf_scores *scores, wf_error *err);
/* Ends the utterance, after all frames: makes the path. `scores`: as in the operation. */
wf_status wf__searcher_finish(wf__searcher *searcher, const wf_scores *scores, wf_error *err);

#endif
