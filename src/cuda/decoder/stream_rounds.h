/* stream_rounds.h - chunks of streams, in rounds. */
#ifndef WF_CUDA_DECODER_STREAM_ROUNDS_H
#define WF_CUDA_DECODER_STREAM_ROUNDS_H

#include "cuda/decoder/gpu_streams.h"

struct wf__cuda_backend;

wf_status wf__streams_advance(struct wf__cuda_backend *self, const wf__batch *batch,
                              void *const *channels, wf_error *err);

#endif
