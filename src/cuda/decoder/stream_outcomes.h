/* stream_outcomes.h - adds the outcome of a chunk's search to its channel. */
#ifndef WF_CUDA_DECODER_STREAM_OUTCOMES_H
#define WF_CUDA_DECODER_STREAM_OUTCOMES_H

#include "cuda/decoder/gpu_streams.h"

/* Adds what a chunk's search emitted to the channel. Uses the thread's scratch and scoring. */
wf_status wf__streams_take_advance(wf__gpu_channel *channel, const wf__lane_advance *advance,
                                   int thread, wf_error *err);
/* Cuts off the committed prefix, which all tokens share. Uses the thread's scratch and scoring. */
wf_status wf__streams_collect(wf__gpu_channel *channel, int thread, wf_error *err);

#endif
