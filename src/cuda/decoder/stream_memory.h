/* stream_memory.h - the memory of streams on a GPU, and slots for their tokens. */
#ifndef WF_CUDA_DECODER_STREAM_MEMORY_H
#define WF_CUDA_DECODER_STREAM_MEMORY_H

#include "cuda/decoder/gpu_streams.h"

/* [WF__MAX_RANK_BITS + 1] lanes of 2^b blocks that run at once on the current device, with scorers
 * and without. */
wf_status wf__streams_read_lanes(const wf__gpu_profile *profile, int32_t num_columns, int *lanes,
                                 wf_error *err);
/* Makes worker->streams, or room for scorers in it. */
wf_status wf__streams_reserve(wf__gpu_worker *worker, int num_sharing, bool scored, wf_error *err);
wf_status wf__streams_take_slot(wf__gpu_worker *worker, void **out, wf_error *err);
/* A slot for contexts and room for searches with scorers, if the stream has none. */
wf_status wf__streams_reserve_contexts(wf__gpu_channel *channel, int num_sharing, wf_error *err);
void wf__streams_return_slot(wf__gpu_worker *worker, void *slot);
void wf__streams_release(wf__gpu_worker *worker);

#endif
