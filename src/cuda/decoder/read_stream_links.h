/* read_stream_links.h - histories of streams' lattices from what the kernel emits. */
#ifndef WF_CUDA_DECODER_READ_STREAM_LINKS_H
#define WF_CUDA_DECODER_READ_STREAM_LINKS_H

#include "cuda/decoder/gpu_streams.h"

/* The tokens and links that a chunk has emitted. Contexts are NULL without a scorer. */
typedef struct wf__chunk_out {
  const wf__back_pointer *tokens;
  const uint64_t *contexts;
  const wf__lane_chunk_link *links;
  uint32_t num_tokens, num_links;
} wf__chunk_out;
/* Adds it to the history. `row`: number of the chunk's first frame. */
wf_status wf__streams_add_history(wf__gpu_channel *channel, const wf__chunk_out *out, int64_t row,
                                  int thread, wf_error *err);

#endif
