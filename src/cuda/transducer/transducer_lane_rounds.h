/* transducer_lane_rounds.h - searches that are wholly on a GPU: their memory and their rounds
 * (search/transducer/transducer_device.h).
 *
 *   load    frames --> load, product: the encoder's part (transducer_loading.h)
 *   round   step (transducer_lanes.h) --> product: logits, for the next round's step
 *   end     records --> measure, trace --> paths
 *
 * Without the table of a predictor (transducer_weights.h), the kernels of new contexts and of hidden
 * rows come before the product; with many tokens, those of log-probabilities after it.
 *
 * Some rounds are one launch of a CUDA graph. The host enqueues a few launches ahead. Of one that is
 * over it reads how many lanes are busy, and how many utterances are done. */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_LANE_ROUNDS_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_LANE_ROUNDS_H

#include "search/transducer/transducer_device.h"

/* The functions of wf__device_transducer for searches. */
bool wf__lane_rounds_fits(const wf__transducer_weights *weights,
                          const wf__device_search_options *options, uint64_t graph_bytes);
wf_status wf__lane_rounds_open(wf__transducer_weights *weights, wf__transducer_group *group,
                               const wf__device_search_options *options,
                               const wf__device_search_graph *graph, wf__device_search **out,
                               wf_error *err);
void wf__lane_rounds_close(wf__device_search *search);
wf_status wf__lane_rounds_room(wf__device_search *search, const int64_t *num_frames, size_t count,
                               size_t *room, wf_error *err);
wf_status wf__lane_rounds_begin(wf__device_search *search, const wf__score_cut *cut,
                                const wf__device_batch *batch, void *stream, wf_error *err);
wf_status wf__lane_rounds_load(wf__device_search *search, const wf__packing_crew *crew,
                               bool *is_loaded, wf_error *err);
wf_status wf__lane_rounds_go_on(wf__device_search *search, size_t *num_done, wf_error *err);
wf_status wf__lane_rounds_end(wf__device_search *search, wf__searched *out, wf_error *err);

#endif
