/* stream_rnn_scoring.h - recurrent scorers of streams. */
#ifndef WF_CUDA_DECODER_STREAM_RNN_SCORING_H
#define WF_CUDA_DECODER_STREAM_RNN_SCORING_H

#include "cuda/decoder/gpu_streams.h"

/* Acquires the scoring of the scorer; opens it on the current device if no stream uses it. */
wf_status wf__rnn_scoring_acquire(wf__gpu_worker *worker, const wf_scorer *recurrent,
                                  struct wf__rnn_scoring **out, wf_error *err);
void wf__rnn_scoring_release(struct wf__rnn_scoring *rnn_scoring);
/* The next of the worker's list. */
const struct wf__rnn_scoring *wf__rnn_scoring_next(const struct wf__rnn_scoring *rnn_scoring);
/* The same scorer on the CPU. */
const wf_scorer *wf__rnn_scoring_cpu_scorer(const struct wf__rnn_scoring *rnn_scoring);
/* WF_ERR_LIMIT unless its contexts have room beside the graph's states in a key. */
wf_status wf__rnn_scoring_fit(struct wf__rnn_scoring *rnn_scoring, const wf_graph *graph,
                              wf_error *err);
/* Makes the root of a chain, where its utterances start (NULL: the scorer alone). */
wf_status wf__rnn_scoring_add_root(struct wf__rnn_scoring *rnn_scoring,
                                   const wf__flat_scorer *chain, uint32_t *root, wf_error *err);
void wf__rnn_scoring_drop_root(struct wf__rnn_scoring *rnn_scoring, uint32_t root);
/* Registers, and unregisters, a stream whose slot refers to contexts of the scorer. A stream may
 * join several times and must leave as often. */
wf_status wf__rnn_scoring_join(struct wf__rnn_scoring *rnn_scoring, wf__gpu_channel *channel,
                               wf_error *err);
void wf__rnn_scoring_leave(struct wf__rnn_scoring *rnn_scoring, const wf__gpu_channel *channel);

#endif
