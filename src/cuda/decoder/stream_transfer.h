/* stream_transfer.h - a stream's tokens from the GPU to the CPU and back. */
#ifndef WF_CUDA_DECODER_STREAM_TRANSFER_H
#define WF_CUDA_DECODER_STREAM_TRANSFER_H

#include "cuda/decoder/gpu_streams.h"

struct wf__cuda_backend;

/* Copies the stream's tokens to the CPU, where it continues. */
wf_status wf__streams_to_cpu(struct wf__cuda_backend *self, wf__gpu_channel *channel,
                             wf_error *err);
/* Opens the CPU's streams, unless they are open. */
wf_status wf__streams_open_cpu(struct wf__cuda_backend *self, wf_error *err);
/* Copies the stream's tokens from the CPU to the GPU, where it continues. */
wf_status wf__streams_to_gpu(wf__gpu_channel *channel, wf_error *err);

#endif
