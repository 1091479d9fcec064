/* backend.h - the interface of a search backend, and code shared by all backends.
 *
 * decoder.c checks the utterances' columns and options. A backend returns a path of arcs.
 * best_path.c makes words, times and costs from the path, so they cannot differ between
 * backends. */
#ifndef WF_DECODE_BACKEND_H
#define WF_DECODE_BACKEND_H

#include "base/memory.h"
#include "base/threads.h"
#include "lattice/lattice_determinize.h"
#include "search/devices.h"
#include "search/path.h"
#include "warpfst_transducer.h"

typedef struct wf__batch {
  const wf_scores *scores; /* [count] */
  const bool *skip;        /* [count] utterances that failed their checks */
  const wf_scorer *const
      *scorers; /* [count], NULL entries: no scorer; NULL: no utterance has one */
  const wf_graph *const
      *graphs; /* [count], NULL entries: the decoder's graph; NULL: the decoder's graph for all */
  size_t count;
  wf_result **results; /* [count] preallocated; the backend calls wf__result_fill */
  const wf_progress *progress;
  /* Lattices count as complete within this beam (wf__lattice_limit): lattice_beam. A transducer's,
   * whose costs are nats of the model times acoustic_scale, have paths beyond it, but the search
   * keeps only max_hypotheses tokens (docs/engineering/lattices.md, "Reliability of confidences").
   */
  float complete_beam;
  const wf_lattice_determinize_options *determinizing; /* NULL: lattices are not determinized */
  const wf_lattice_results_options
      *lattice_results; /* NULL: none are made, raw lattices are kept */
  wf__determinizers *determinizers;
} wf__batch;

/* The graph that utterance i searches: its own graph with added words, or the decoder's. */
static inline const wf_graph *wf__batch_graph(const wf__batch *batch, size_t i,
                                              const wf_graph *decoders) {
  return batch->graphs != NULL && batch->graphs[i] != NULL ? batch->graphs[i] : decoders;
}

/* Streams. A channel is the backend's state of a stream between chunks: the newest frame's
 * tokens, their trace back to the committed prefix, the lattice's history. One call at a time
 * for all channels of a decoder. */
typedef struct wf__stream_backend {
  wf_status (*open)(void *self, void **channel, wf_error *err);
  void (*close)(void *self, void *channel);
  /* Sets the scorer from now on; NULL: none. In mid-utterance it starts from each token's own
   * word history, which begins with the committed words[0 .. num_words). Costs that the old
   * scorer has added stay. */
  wf_status (*set_scorer)(void *self, void *channel, const wf_scorer *scorer, const wf_word *words,
                          size_t num_words, wf_error *err);
  /* For utterances that have not begun: the decoder's graph or one with words added to it,
   * borrowed. */
  wf_status (*set_graph)(void *self, void *channel, const wf_graph *graph, wf_error *err);
  /* A new utterance, with the same scorer and graph. */
  void (*reset)(void *self, void *channel);
  uint64_t (*bytes)(const void *self, const void *channel);
  /* Gathers the channels that are not skipped into lanes, consumes batch->scores[i] with each,
   * scatters them back. batch->results[i] has the number of frames accepted before, and gets the
   * status and message of a stream that fails; the scores of a failed stream are only checked.
   * Fails, with all others advanced, if one ran out of memory. */
  wf_status (*advance)(void *self, const wf__batch *batch, void *const *channels, wf_error *err);
  /* The threads that may call `committed` and `path` for different channels at the same time, with
   * their numbers in the pool. Outside of it: thread 0. */
  wf__pool *(*pool)(void *self);
  /* Returns the committed prefix since the last call: arcs that all tokens share. `now`: looks
   * for more first. */
  wf_status (*committed)(void *self, void *channel, int thread, bool now, wf__path *out,
                         wf_error *err);
  /* Makes the start's tokens if there was no chunk yet. Must precede `path`; by one thread. */
  wf_status (*prepare)(void *self, void *channel, wf_error *err);
  /* The path from the committed prefix to the best ending or, if it `goes_on`, to the best token,
   * with relative_cost. */
  wf_status (*path)(void *self, void *channel, int thread, bool goes_on, wf__path *out,
                    wf_error *err);
  /* Takes the final part of the lattice out of the channel; NULL: there is none. */
  wf_status (*commit_lattice)(void *self, void *channel, wf_lattice **out, wf_error *err);
  /* Makes the lattice. Without `goes_on` it is called after `path`, and nothing but `reset` may
   * follow. */
  wf_status (*lattice)(void *self, void *channel, bool goes_on, wf_lattice **out, wf_error *err);
} wf__stream_backend;

typedef struct wf__backend {
  const char *name;
  /* `model`: NULL without a transducer. */
  wf_status (*open)(const wf_graph *graph, const wf_transducer *model,
                    const wf_decoder_options *options, void **out, wf_error *err);
  /* Errors of a single utterance go to its result; the call fails only for other errors. */
  wf_status (*decode)(void *self, const wf__batch *batch, wf_error *err);
  void (*close)(void *self);
  wf_status (*set_stream)(void *self, void *stream, wf_error *err);
  void (*transducer_stats)(const void *self, wf_transducer_stats *out); /* NULL on a GPU */
  /* The rest is NULL on the CPU. */
  /* Does the backend support this graph with added words, or this scorer with the graph? */
  wf_status (*check_graph)(const wf_graph *graph, wf_error *err);
  wf_status (*check_scorer)(const wf_graph *graph, const wf_decoder_options *options,
                            const wf_scorer *scorer, wf_error *err);
  wf_status (*plan)(const wf_graph *graph, const wf_decoder_options *options,
                    const wf_batch_shape *shape, wf_plan *out, wf_error *err);
  wf_status (*plan_streams)(const wf_graph *graph, const wf_decoder_options *options,
                            const wf_stream_shape *shape, wf_stream_plan *out, wf_error *err);
  void (*planned)(const void *self, wf_plan *out); /* the largest plan so far */
  void (*lm_stats)(const void *self, wf_lm_stats *out);
  /* Copies scores from the memory of one of the GPUs, in the order of the caller's stream. Returns
   * false if they are not in that memory, or if copying fails. */
  bool (*copy_scores)(void *self, const void *from, uint64_t bytes, void *to);
  /* Copies scores that lie in the memory of any GPU, after what its default stream has queued.
   * *copy: their memory, to be freed, also after an error. Needs no decoder. */
  wf_status (*scores_to_host)(const wf_scores *scores, wf_scores *host, void **copy, wf_error *err);
  const wf__stream_backend *streams;
} wf__backend;

extern const wf__backend wf__host_backend; /* host_backend.c: searches in threads of the CPU */

/* Lists the utterances of the batch that are not skipped, longest first, so that the last ones to
 * start are short. `which` has room for all. */
wf_status wf__longest_first(const wf__batch *batch, uint32_t *which, uint32_t *count,
                            wf_error *err);

/* Turns a path into words, times and costs. */
wf_status wf__result_fill(wf_result *result, const wf_graph *graph,
                          const wf_decoder_options *options, const wf__path *path, wf_error *err);
/* Determinizes the result's lattice and makes what the batch asks for, if there is a lattice.
 * Called by the thread that made the lattice, after wf__result_fill. `graph`: the utterance's. */
wf_status wf__result_determinize(const wf__batch *batch, const wf_graph *graph, wf_result *result,
                                 wf_error *err);
/* Words, times and sums of a path that comes in parts. Zero-initialised is empty.
 *
 *   words      [timed words: nothing can change them][others]
 *   alignment  [forgotten][labels of timed words    ][others]
 *                                                    ^ timed_end
 *
 * Once closed, the times of the others are as if the path ended here.
 *
 * Without a word aligner times are estimates, and all words count as timed but for the end of the
 * last one. */
typedef struct wf__account {
  WF__VEC(wf_word) words;
  WF__VEC(int32_t) alignment; /* by frame; 0: skipped */
  WF__VEC(int32_t)
  steps; /* with a transducer: the frame of each label of the alignment, which then has the label of
            each consuming arc; times and num_forgotten count these, too */
  bool by_steps;
  int64_t num_forgotten; /* frames before those of the alignment */
  uint64_t num_timed;    /* with an aligner */
  int64_t timed_end;
  uint64_t num_estimated; /* timed words whose times are estimates */
  uint64_t num_guessed;   /* the same for the other words, after wf__account_close */
  double graph_cost, loglike;
  wf__unit_list units; /* scratch memory */
  WF__VEC(int32_t) labels;
  WF__VEC(wf_word) placed;
} wf__account;
/* Adds a part of the path. */
wf_status wf__account_add(wf__account *account, const wf_graph *graph,
                          const wf_decoder_options *options, const wf__path *part, wf_error *err);
/* Decides the times of words that no later frame can change. Only for parts that are never rolled
 * back. */
wf_status wf__account_decide(wf__account *account, const wf_graph *graph, wf_error *err);
/* Number of words that are final, except for the times of the last. After wf__account_decide. */
uint64_t wf__account_num_stable(const wf__account *account, const wf_graph *graph);
/* Brings alignment and times of words up to frame `end`, as if the path ended there; more may
 * follow. */
wf_status wf__account_close(wf__account *account, const wf_graph *graph,
                            const wf_decoder_options *options, int64_t end, wf_error *err);
/* Drops the first `num_words` words and their alignment. */
void wf__account_forget(wf__account *account, const wf_graph *graph, uint64_t num_words);
/* Fills the result, which takes over the arrays; the path's end and statistics come from `path`. */
wf_status wf__account_finish(wf__account *account, wf_result *result, const wf_graph *graph,
                             const wf_decoder_options *options, const wf__path *path,
                             wf_error *err);
/* Where a path of so many frames ends: the end for wf__account_close. */
static inline int64_t wf__account_end(const wf__account *account, int64_t num_frames) {
  return account->by_steps ? account->num_forgotten + (int64_t)account->alignment.size : num_frames;
}
/* With a transducer: makes times of words count frames. Else does nothing. */
void wf__account_time_words(const wf__account *account, int64_t num_frames, wf_word *words,
                            size_t count);
/* With a transducer: the label of each frame: that of its last token, or the blank; 0: none was
 * read. *out is to be freed. */
wf_status wf__account_label_frames(const wf__account *account, const wf_graph *graph,
                                   const wf_decoder_options *options, int64_t num_frames,
                                   int32_t **out, wf_error *err);
void wf__account_free(wf__account *account);

/* Fails the utterance with `status` and the message of `err`. */
void wf__result_fail(wf_result *result, wf_status status, const wf_error *err);
/* Fails the utterance whose score of this frame and column is NaN, +infinity or beyond 1e20. */
void wf__result_bad_score(wf_result *result, int64_t frame, int32_t column, float value);

/* Bytes of one score. */
static inline uint64_t wf__dtype_bytes(wf_dtype dtype) { return dtype == WF_FLOAT32 ? 4 : 2; }

#endif
