/* gpu_stream_plan.h - the memory plan of streams on a GPU, made before anything is allocated.
 *
 *   GPU     memory   arrays of the lanes | transfer block (lane_memory.h), for as many lanes as
 *                    run at once; streams beyond that wait in the kernel's queue
 *           slots    [max_tokens] tokens of a stream, or their contexts; many in a slab
 *   pinned  block    the transfer block on the host's side: sent in one copy, as far as it is used
 *           out      written by the kernel: [chunk_size] wf__lane_advance, [back_pointers_cap]
 *                    wf__back_pointer; for lattices their contexts, [links_cap]
 *                    wf__lane_chunk_link
 *
 * Plain C without CUDA: plans are made on machines without a GPU, too. */
#ifndef WF_PLAN_GPU_STREAM_PLAN_H
#define WF_PLAN_GPU_STREAM_PLAN_H

#include "plan/gpu_plan.h"

enum {
  WF__STREAM_FRAMES = 16,               /* frames of a chunk in one launch */
  WF__STREAM_CHUNKS = 8,                /* chunks of a launch, for each block that runs at once */
  WF__STREAM_BACK_POINTERS_EACH = 2048, /* room for a chunk's back-pointers, on average */
  WF__STREAM_ARCS = 4096,               /* room for the arcs of a chunk's lattice, on average */
};
#define WF__STREAM_WINDOW_BYTES (64 << 20) /* scores of a launch; always at least one chunk */
#define WF__STREAM_SLAB_BYTES (16 << 20)

typedef enum wf__stream_out {
  WF__STREAM_ADVANCES,
  WF__STREAM_BACK_POINTERS,
  WF__STREAM_BACK_POINTER_CONTEXTS,
  WF__STREAM_CHUNK_LINKS,
  WF__NUM_STREAM_OUT
} wf__stream_out;

typedef struct wf__stream_plan {
  uint32_t parts;      /* blocks at one time */
  uint32_t chunk_size; /* chunks of a launch at most */
  uint64_t back_pointers_cap, links_cap, window_bytes;
  wf__lane_memory lane_memory;
  wf__transfer_plan transfer;
  uint64_t bytes; /* of both on the GPU, one after the other: all but graph and slots */
  uint64_t out_off[WF__NUM_STREAM_OUT],
      out_bytes;       /* pinned_bytes is out_bytes and transfer.bytes */
  uint64_t slot_bytes; /* of a stream's tokens, and again of their contexts */
  uint64_t max_slots;  /* that fit besides all that */
  uint64_t graph_bytes, available;
} wf__stream_plan;

/* The plan of one of `num_sharing` workers on a GPU; `scored`: with room for scorers and added
 * words. `limits` has the lanes of the kernels for streams. */
wf_status wf__stream_plan_make(const wf_graph *graph, const wf_decoder_options *options,
                               const wf__device_limits *limits, int num_sharing, bool scored,
                               wf__stream_plan *out, wf_error *err);
/* The plan as wf_plan_streams reports it, for `num_workers`. */
wf_status wf__gpu_plan_streams(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_stream_shape *shape, const wf__device_limits *limits,
                               int num_workers, int num_sharing, wf_stream_plan *out,
                               wf_error *err);
/* Plans for GPUs that this machine need not have. Their only limits are shape.num_processors and
 * options.gpu_memory. */
wf_status wf__gpu_plan_streams_assumed(const wf_graph *graph, const wf_decoder_options *options,
                                       const wf_stream_shape *shape, wf_stream_plan *out,
                                       wf_error *err);

#endif
