/* transducer_device.h - a built-in model on a GPU: answers the requests of many searches at once
 * (predictions.h).
 *
 *   weights   once for a decoder
 *   group     searches (lanes) whose requests are answered together, in one stream: while the GPU
 *             works for one group, threads can search the other
 *
 * Sums are exact (math/slices.h), so that an answer does not depend on the other requests, and is the
 * CPU's to the last bit. Not thread-safe, but for put. */
#ifndef WF_SEARCH_TRANSDUCER_TRANSDUCER_DEVICE_H
#define WF_SEARCH_TRANSDUCER_TRANSDUCER_DEVICE_H

#include "base/device.h"
#include "search/decode_graph.h"
#include "search/transducer/device_search_types.h"
#include "search/transducer/predictions.h"

typedef struct wf__transducer_weights wf__transducer_weights;
typedef struct wf__transducer_group wf__transducer_group;

typedef struct wf__transducer_counts {
  uint64_t num_rows, num_contexts;
} wf__transducer_counts;

typedef struct wf__device_search wf__device_search;

/* What a search searches at once. */
typedef struct wf__device_batch {
  const wf_scores *const *scores;  /* [count] */
  const wf_scorer *const *scorers; /* [count] in their form for transducers, NULL: none; or NULL */
  const wf_graph *const *graphs;   /* [count] the search's, or that with added words */
  const wf_decoder_options *options;
  const int *where; /* [count] the GPUs that have the scores; -1: none */
  /* Of chunks of streams: the tokens that wait, those of chunk i from starts[first_start[i]] on, to
   * first_start[i + 1]. */
  const wf__device_start *starts;
  const uint32_t *first_start;         /* [count + 1]; NULL: whole utterances */
  wf__predictions *const *predictions; /* [count] of the streams, if their predictor has states */
  size_t count;
} wf__device_batch;

/* What a search has found. */
typedef struct wf__searched {
  const wf__device_result *results; /* by utterance */
  const void *details; /* wf__path_step, or wf__device_offer if the options keep offers */
  const wf__device_kept *kept;
  uint64_t num_rounds;
  wf__transducer_counts counts;
} wf__searched;

/* Threads that pack scores: `run` calls fn(data, item, worker) for each item and returns when all
 * are done; `look` looks at what is packed: frames of utterance number `item` of the search. */
typedef struct wf__packing_crew {
  void (*run)(void *user, uint64_t num_items, void (*fn)(void *data, uint64_t item, int worker),
              void *data);
  void (*look)(void *user, uint32_t item, const wf_scores *frames);
  void *user;
} wf__packing_crew;

struct wf__device_transducer {
  /* Number of GPUs of this machine. */
  wf_status (*count_gpus)(int *count, wf_error *err);
  /* Sends a built-in model to GPU `number`. Keeps a reference to the model. */
  wf_status (*weights_send)(const wf_transducer *model, int number, wf__transducer_weights **out,
                            wf_error *err);
  void (*weights_free)(wf__transducer_weights *weights);
  /* Which GPU has these scores; -1: none, they are in host memory. Those of another GPU than the
   * model's are waited for, after what `stream` has enqueued there, and have to be copied. */
  wf_status (*scores_where)(const wf__transducer_weights *weights, const wf_scores *scores,
                            void *stream, int *number, wf_error *err);

  wf_status (*group_open)(wf__transducer_weights *weights, wf__transducer_group **out,
                          wf_error *err);
  /* Waits for what is enqueued. */
  void (*group_close)(wf__transducer_group *group);

  /* Begins a batch. No utterance of lane i has more than num_frames[i] frames. Scores in this GPU's
   * memory are read after what `stream` (a cudaStream_t; NULL: the default stream) has enqueued
   * there. */
  wf_status (*group_begin)(wf__transducer_group *group, const wf__score_cut *cut,
                           const int64_t *num_frames, size_t num_lanes, void *stream,
                           wf_error *err);

  /* Adds a lane's request to the next submission, once for each. `begins`: scores that begin, which
   * are on GPU `where` and must stay until the wait; NULL: the lane's go on. Any thread, one for a
   * lane. */
  void (*group_put)(wf__transducer_group *group, size_t lane, const wf_scores *begins, int where,
                    wf__predictions *predictions);
  /* Frees what the predictor contexts have in the GPU's memory. Not while a batch is decoded. */
  void (*group_release)(wf__transducer_group *group, wf__predictions *predictions);
  /* Enqueues the answers to all requests that were put. Only one submission of a group at a time. */
  wf_status (*group_submit)(wf__transducer_group *group, wf__transducer_counts *counts,
                            wf_error *err);
  /* Waits for the answers, which are valid until the next submission. */
  wf_status (*group_wait)(wf__transducer_group *group, wf_error *err);

  /* Has the GPU room for such a search? */
  bool (*search_fits)(const wf__transducer_weights *weights,
                      const wf__device_search_options *options, uint64_t graph_bytes);
  /* A search of many utterances at once, in lanes. `group`: its slots have the states of streams, and
   * it must stay; NULL: the search has one of its own. Copies the graph. */
  wf_status (*search_open)(wf__transducer_weights *weights, wf__transducer_group *group,
                           const wf__device_search_options *options,
                           const wf__device_search_graph *graph, wf__device_search **out,
                           wf_error *err);
  /* Waits for what is enqueued. */
  void (*search_close)(wf__device_search *search);
  /* How many of these utterances, the first ones, should be searched at once. At least one. */
  wf_status (*search_room)(wf__device_search *search, const int64_t *num_frames, size_t count,
                           size_t *room, wf_error *err);
  /* Begins to search these; the longest come first. Scores and scorers must stay until search_end.
   * `cut`, `stream`: as in group_begin. */
  wf_status (*search_begin)(wf__device_search *search, const wf__score_cut *cut,
                            const wf__device_batch *batch, void *stream, wf_error *err);
  /* Enqueues the encoder's part for the next frames. The threads of `crew` pack what is in host
   * memory. *is_loaded: all have their part; the search may go on. */
  wf_status (*search_load)(wf__device_search *search, const wf__packing_crew *crew, bool *is_loaded,
                           wf_error *err);
  /* Enqueues rounds ahead; waits for one if there are enough. *num_done: utterances that were done
   * in the last round that is known to be over. */
  wf_status (*search_go_on)(wf__device_search *search, size_t *num_done, wf_error *err);
  /* Waits for the results of all utterances, which are valid until the next begin, and counts
   * rounds, rows and contexts. */
  wf_status (*search_end)(wf__device_search *search, wf__searched *out, wf_error *err);
};

/* The operations of the device that models are on. */
static inline const struct wf__device_transducer *wf__gpu_transducers(void) {
  return wf__device_found()->transducer;
}

#endif
