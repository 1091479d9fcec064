/* batch_chunk.h - a chunk of utterances in flight: its streams, its share of the workspace, and
 * what is read back of its results. */
#ifndef WF_CUDA_DECODER_BATCH_CHUNK_H
#define WF_CUDA_DECODER_BATCH_CHUNK_H

#include "base/threads.h"
#include "cuda/decoder/gpu_submit.h"
#include "plan/gpu_plan.h"

/* Arcs of lattices as lanes wrote them. */
typedef struct wf__gpu_pages {
  wf__lane_link *links; /* [pages][WF__LANE_PAGE] */
  uint64_t *contexts;   /* beside them; NULL without scorers */
} wf__gpu_pages;

/* Results of a chunk in host memory, from which the pool's threads make the utterances' results. */
typedef struct wf__readback {
  struct wf__gpu_worker *worker;
  struct wf__batch_chunk *chunk;
  struct wf__work_queue *work;
  int window; /* readback window of the worker for the arrays that fit it; -1: none */
  wf__lane_step *steps;
  wf__gpu_pages pages;
  wf_error error; /* of the thread that set work->failed */
} wf__readback;

/* State of a chunk: searched, results being copied, results being filled in. */
typedef enum wf__chunk_stage {
  WF__CHUNK_SEARCHED,
  WF__CHUNK_COPIED,
  WF__CHUNK_FILLED
} wf__chunk_stage;

typedef struct wf__batch_chunk {
  cudaStream_t stream;
  cudaStream_t backward_stream; /* for passes that make lattices, which have priority, and for the
                                   copies of their results. Work is put into it when the search has
                                   ended, because work that waits in a stream can delay other
                                   streams */
  char *memory;                 /* its share of the workspace */
  void *global_tables; /* WF__BACKWARD_GLOBAL's, of global_bytes, until the batch ends; owned */
  uint64_t global_bytes;
  wf__backward_tables tables; /* of the next pass that may be needed */
  wf__search_room room;       /* over `memory` and page-locked memory of the worker */
  uint32_t count;             /* utterances; 0: the chunk is free */
  uint64_t number;            /* of those launched so far */
  bool on_device;             /* the scores were already on the GPU */
  wf__chunk_stage stage;
  wf__readback readback;
  wf__job job; /* makes the readback's results */
} wf__batch_chunk;

/* An array of a chunk on the GPU; a part of its transfer block on the host's side. */
static inline void *wf__chunk_array(const wf__gpu_plan *plan, const wf__batch_chunk *chunk,
                                    wf__batch_array array) {
  return chunk->memory + plan->off[array];
}
static inline void *wf__chunk_transfer(const wf__batch_chunk *chunk, wf__transfer_part part) {
  return wf__search_room_part(&chunk->room, part);
}

#endif
