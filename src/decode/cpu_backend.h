/* cpu_backend.h - a decoder's threads and their searches, shared by its batches and its streams. */
#ifndef WF_DECODE_CPU_BACKEND_H
#define WF_DECODE_CPU_BACKEND_H

#include "base/threads.h"
#include "decode/backend.h"
#include "search/frame/search.h"
#include "search/transducer/transducer_search.h"
#include "search/transducer/transducer_device.h"

/* Of transducers on GPUs: lanes and groups of a batch, for each GPU. */
enum { WF__TRANSDUCER_LANES = 512, WF__TRANSDUCER_GROUPS = 3, WF__TRANSDUCER_GPUS = 8 };

struct wf__cpu_backend {
  const wf_graph *graph;
  wf_decoder_options options;
  wf__pool *pool;
  wf__search **searches; /* [pool size], made on first use */
  wf__search **lanes;    /* [num_lanes] of cpu_lanes.c, made on first use */
  size_t num_lanes;
  wf_transducer *transducer; /* NULL: none; else its searches take the place of `searches` */
  wf__transducer_search **transducer_searches; /* of threads, or of lanes; made on first use */
  size_t num_transducer_searches;
  size_t num_gpus; /* of the transducer; 0: the CPU computes */
  wf__transducer_weights *transducer_weights[WF__TRANSDUCER_GPUS];
  wf__transducer_arcs transducer_arcs; /* of `graph` */
  /* Group g is on GPU g % num_gpus. Of streams, those of a GPU are one group. */
  wf__transducer_group *transducer_groups[WF__TRANSDUCER_GROUPS * WF__TRANSDUCER_GPUS];
  wf__transducer_group *stream_groups[WF__TRANSDUCER_GPUS];
  size_t num_channels[WF__TRANSDUCER_GPUS]; /* streams on each GPU */
  wf_transducer_stats transducer_stats;
  void *stream; /* of the caller's scores on the GPU; NULL if there are several */
  bool broken;  /* by a GPU's error */
};

/* cpu_utterance.c */
/* Runs the items in the threads of the pool; on this thread, if they call a model's functions. */
void wf__cpu_run(struct wf__cpu_backend *self, uint64_t count, wf__task_fn fn, void *user);
/* Returns the worker's search, made on first use. */
wf_status wf__cpu_search(struct wf__cpu_backend *self, int worker, wf__search **out, wf_error *err);
/* Fails the result if one of these scores is bad, unless it has failed before. `first`: number
 * of their first frame in the utterance. */
bool wf__cpu_check_values(const wf_scores *scores, int32_t num_columns, int64_t first,
                          wf_result *result);
/* Begins utterance i of a batch in a search that has its scorer. Returns false if its scores are
 * bad; its result has then failed. */
wf_status wf__cpu_begin(struct wf__cpu_backend *self, wf__search *search, const wf__batch *batch,
                        uint32_t i, bool *good, wf_error *err);
/* Fills the utterance's result, after all frames. */
wf_status wf__cpu_end(struct wf__cpu_backend *self, wf__search *search, const wf__batch *batch,
                      uint32_t i, wf_error *err);
/* Records an utterance's own error in its result. Returns the status of the batch: WF_OK or
 * WF_ERR_MEMORY. */
wf_status wf__cpu_record_error(const wf__batch *batch, uint32_t i, wf_status status,
                               const wf_error *err);

/* transducer_utterance.c */
/* Returns the transducer search of a thread or lane, made on first use. */
wf_status wf__cpu_transducer_search(struct wf__cpu_backend *self, size_t i,
                                    wf__transducer_search **out, wf_error *err);
/* The same as wf__cpu_begin and wf__cpu_end, for a transducer; sets the scorer, too. */
wf_status wf__cpu_transducer_begin(struct wf__cpu_backend *self, wf__transducer_search *search,
                                   const wf__batch *batch, uint32_t i, bool *good, wf_error *err);
wf_status wf__cpu_transducer_end(struct wf__cpu_backend *self, wf__transducer_search *search,
                                 const wf__batch *batch, uint32_t i, wf_error *err);
/* Decodes one utterance with a built-in model on the CPU. */
wf_status wf__cpu_decode_transducer(struct wf__cpu_backend *self, const wf__batch *batch,
                                    uint32_t i, int worker, wf_error *err);

/* transducer_lanes.c: decodes utterances whose model, or scorer, answers the requests of many
 * searches at once. `order`: the utterances, longest first. */
wf_status wf__cpu_decode_transducers(struct wf__cpu_backend *self, const wf__batch *batch,
                                     const uint32_t *order, uint32_t count, wf_error *err);
/* Frees the searches and groups of batches. Those of streams stay: what streams have in a group's
 * memory must outlive a batch that failed. */
void wf__cpu_free_transducers(struct wf__cpu_backend *self);
/* transducer_streams.c */
void wf__cpu_close_stream_groups(struct wf__cpu_backend *self);
/* What the GPU may leave out of a row of scores. */
wf__score_cut wf__cpu_score_cut(const struct wf__cpu_backend *self);
/* Most lanes on one GPU: there is limited room for its answers. */
size_t wf__cpu_most_lanes(const struct wf__cpu_backend *self);
struct wf__rounds;
/* Adds what the rounds have counted to the statistics. */
void wf__cpu_count_rounds(struct wf__cpu_backend *self, const struct wf__rounds *rounds);
/* Submits a group's requests, and counts them. */
wf_status wf__cpu_submit(struct wf__cpu_backend *self, wf__transducer_group *group, wf_error *err);

/* cpu_lanes.c: decodes utterances that share a scorer with batch operations. `order`: the
 * utterances, longest first. */
bool wf__cpu_can_batch(const wf__batch *batch, const uint32_t *order, uint32_t count);
wf_status wf__cpu_decode_batch(struct wf__cpu_backend *self, const wf__batch *batch,
                               const uint32_t *order, uint32_t count, wf_error *err);
void wf__cpu_free_lanes(struct wf__cpu_backend *self);

extern const wf__stream_backend wf__cpu_streams; /* cpu_streams.c */

#endif
