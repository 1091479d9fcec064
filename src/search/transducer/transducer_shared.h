/* transducer_shared.h - what the searches of a decoder share: the model, what is known of the graph,
 * and who answers requests to the model for many searches at once: nobody, the caller's functions
 * (function_answers.c), or GPUs (gpu_answers.c). */
#ifndef WF_SEARCH_TRANSDUCER_TRANSDUCER_SHARED_H
#define WF_SEARCH_TRANSDUCER_TRANSDUCER_SHARED_H

#include "search/transducer/transducer_device.h"
#include "search/transducer/transducer_search.h"

enum { WF__TRANSDUCER_LANES = 512, WF__TRANSDUCER_GROUPS = 3, WF__TRANSDUCER_GPUS = 8 };
#ifndef WF__TRANSDUCER_SEARCHES /* on a GPU: rounds of many rows gain more than a second search */
#define WF__TRANSDUCER_SEARCHES 1
#endif

/* A lane of the batch that is searched. */
typedef struct wf__asking_lane {
  const wf_scores *scores; /* not sent to a GPU yet; NULL: they were, or stay in host memory */
  int where;               /* the GPU that has the scores; -1: none */
  wf__predictions *asks;   /* its request to functions; NULL: none */
} wf__asking_lane;

/* Searches that are wholly on a GPU: search i is on GPU i % num_gpus. */
typedef struct wf__search_set {
  bool are_open; /* after an error they are not */
  wf__device_search *searches[WF__TRANSDUCER_SEARCHES * WF__TRANSDUCER_GPUS];
} wf__search_set;

typedef struct wf__transducer_shared {
  wf_transducer *model;
  wf_decoder_options options;
  wf__transducer_arcs arcs; /* of the decoder's graph */
  wf_transducer_stats stats;
  wf__asking_lane *lanes; /* [num_lanes] */
  size_t num_lanes, num_groups;
  WF__VEC(wf__predictions *) asked; /* scratch of functions */
  wf__prediction_work work;         /* the same */
  size_t num_gpus;                  /* 0: the CPU or functions compute */
  wf__transducer_weights *weights[WF__TRANSDUCER_GPUS];
  /* Group g is on GPU g % num_gpus. Of streams, those of a GPU are one group. */
  wf__transducer_group *batch_groups[WF__TRANSDUCER_GROUPS * WF__TRANSDUCER_GPUS];
  wf__transducer_group *stream_groups[WF__TRANSDUCER_GPUS];
  wf__transducer_group **groups;           /* those of the batch, or of its streams */
  size_t num_streams[WF__TRANSDUCER_GPUS]; /* on each GPU */
  void *stream;                 /* of the caller's scores on the GPU; NULL if there are several */
  const wf_graph *device_graph; /* the decoder's; NULL: there are no such searches */
  wf__device_search_options device_options;
  wf__search_set of_batches, of_streams;
  bool broken; /* by a GPU's error */
} wf__transducer_shared;

extern const wf__answer_ops wf__function_answers, wf__gpu_answers;

/* asking_lanes.c: makes the lanes of a batch. */
wf_status wf__asking_lanes_make(wf__transducer_shared *shared, size_t num_lanes, size_t num_groups,
                                wf_error *err);
/* Ends the batch of an answering side: counts, and frees the lanes. */
void wf__asking_lanes_end(wf__transducer_shared *shared, const wf__round_counts *counts);

/* gpu_answers.c: sends the model to the decoder's GPUs, if it has any. */
wf_status wf__gpu_answers_open(wf__transducer_shared *shared, wf_error *err);
void wf__gpu_answers_close(wf__transducer_shared *shared);
static inline uint32_t wf__most_hypotheses(const wf__transducer_shared *shared) {
  return shared->options.greedy ? 1 : (uint32_t)shared->options.max_hypotheses;
}
/* What a GPU may leave out of a row of scores. If every token has an arc in every state, of a row
 * only the best matter, as many as there are hypotheses: each makes another context. With a lattice,
 * so do those that are within its beam. */
static inline wf__score_cut wf__gpu_score_cut(const wf__transducer_shared *shared) {
  const wf_decoder_options *o = &shared->options;
  return (wf__score_cut){
      o->acoustic_scale, o->blank_penalty,
      o->beam,           fmaxf(o->lattice_beam, 0),
      o->greedy,         shared->arcs.all_alike ? wf__most_hypotheses(shared) : 0};
}

/* device_search.c: opens searches on the GPUs, if they can search the decoder's graph. */
wf_status wf__device_search_open(wf__transducer_shared *shared, const wf_graph *graph,
                                 wf_error *err);
void wf__device_search_close(wf__transducer_shared *shared);
/* The scorer of an utterance; NULL: none. */
static inline const wf_scorer *wf__whole_scorer(const wf__whole_batch *batch, size_t item) {
  return batch->scorers != NULL ? wf__scorer_for_transducer(batch->scorers[item]) : NULL;
}
/* Operations of wf__gpu_answers; those for results are in device_results.c. */
bool wf__device_search_covers(const void *shared, const wf_graph *graph, const wf_scorer *scorer);
bool wf__device_search_covers_chunk(const void *shared, const wf__searcher *searcher);
wf_status wf__device_search_decode(void *shared, const wf__whole_batch *batch, wf_error *err);
wf_status wf__device_search_follow(const wf__whole_part *part, size_t k, wf__searcher *searcher,
                                   bool *left, wf_error *err);
wf_status wf__device_search_path(const wf__whole_part *part, size_t k, wf__path *out, bool *left,
                                 wf_error *err);

/* transducer_stream.c: operations of wf__transducer_searcher. */
wf_status wf__transducer_stream_open(const wf__search_setup *setup, wf__stream_state **out,
                                     wf_error *err);
void wf__transducer_stream_close(wf__stream_state *state);
void wf__transducer_stream_reset(wf__stream_state *state);
uint64_t wf__transducer_stream_bytes(const wf__stream_state *state);
wf_status wf__transducer_stream_set_scorer(wf__stream_state *state, const wf_scorer *scorer,
                                           wf_error *err);
wf_status wf__transducer_stream_enter(const wf__search_setup *setup, wf__stream_state *state,
                                      wf__searcher *threads, wf__searcher **out, wf_error *err);
wf_status wf__transducer_stream_leave(wf__stream_state *state, wf__searcher *searcher,
                                      wf_status status, wf_error *err);
wf_status wf__transducer_stream_collect(wf__searcher *searcher, bool now, wf_error *err);
wf_status wf__transducer_stream_take_committed(wf__stream_state *state, wf__path *out,
                                               wf_error *err);
wf_status wf__transducer_partial_lattice(wf__searcher *searcher, wf_lattice **out, wf_error *err);

#endif
