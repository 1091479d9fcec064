/* lane_memory.h - the layout of the memory of a search's lanes on a GPU, and the kernels'
 * pointers to it. Batches and streams both use it.
 *
 *   lane arrays      the memory of the thread blocks of all lanes, one array after the other
 *   transfer block   the data that host and GPU exchange, in the same layout on both sides
 *
 * Every array begins at a multiple of 256 bytes. Arrays that a search does not use are empty.
 *
 * Plain C without CUDA: plans are made on machines without a GPU, too. */
#ifndef WF_PLAN_LANE_MEMORY_H
#define WF_PLAN_LANE_MEMORY_H

#include "cuda/search/search_params.h"

/* `bytes`, rounded up to a multiple of 256. */
static inline uint64_t wf__round_up_256(uint64_t bytes) { return (bytes + 255) & ~(uint64_t)255; }
/* Offsets of `count` arrays of these sizes in bytes, one after the other. Returns the bytes of
 * all. */
uint64_t wf__lay_out_arrays(const uint64_t *sizes, int count, uint64_t *off);

/* --- lane arrays ------------------------------------------------------------------------- */

/* search_params.h describes them. */
typedef enum wf__lane_array {
  /* of one frame */
  WF__ARRAY_COSTS,
  WF__ARRAY_FRONTIER,
  WF__ARRAY_WORD_LOG, /* this and the next five for searches with scorers */
  WF__ARRAY_LISTED,
  WF__ARRAY_ENTRIES,
  WF__ARRAY_SOURCES,
  WF__ARRAY_WORD_CANDIDATES,
  WF__ARRAY_MEMO,
  WF__ARRAY_COLUMNS, /* with wide states */
  /* of all frames so far */
  WF__ARRAY_TRACE,
  WF__ARRAY_CONTEXTS, /* for searches with scorers */
  WF__ARRAY_FRAME_OFF,
  WF__ARRAY_INDEX,
  WF__ARRAY_PAST, /* this and the next for lattices */
  WF__ARRAY_RECORDS,
  WF__ARRAY_LINKS, /* this and the next two for streams */
  WF__ARRAY_ROWS,
  WF__ARRAY_EMITTED,
  WF__NUM_LANE_ARRAYS
} wf__lane_array;

/* The parameters of the arrays' sizes. */
typedef struct wf__lane_shape {
  uint64_t parts;                             /* thread blocks of all lanes */
  uint64_t lanes;                             /* the most there may be of these blocks */
  uint64_t slots;                             /* of a block's table */
  uint64_t columns;                           /* with wide states: that the graph reads; else 0 */
  uint64_t trace_cap, trace_room, frames_cap; /* as in wf__lane_params */
  bool scored, lattices,
      streams; /* whether searches have scorers, make lattices, are chunks of streams */
} wf__lane_shape;

typedef struct wf__lane_memory {
  uint64_t off[WF__NUM_LANE_ARRAYS];        /* from the beginning of the first array */
  uint64_t part_bytes[WF__NUM_LANE_ARRAYS]; /* of a block of a lane; 0 for arrays per lane */
  uint64_t frame_bytes, bytes;              /* of the arrays of one frame; of all */
  uint32_t trace_cap, trace_room, frames_cap;
} wf__lane_memory;

/* Bytes of a token in the trace and the arrays beside it. */
uint64_t wf__lane_token_bytes(bool scored, bool lattices);
/* The layout of the arrays of such lanes. */
void wf__lane_memory_plan(const wf__lane_shape *shape, wf__lane_memory *out);
/* Sets the parameters' pointers to the arrays, which begin at `base` in device memory. The launch
 * uses the blocks from `first_part` on; if this is not 0, it makes no lattices and has no streams.
 */
void wf__lane_memory_fill(const wf__lane_memory *memory, char *base, uint64_t first_part,
                          wf__lane_params *params);

/* --- the transfer block ------------------------------------------------------------------ */

/* Parts of the block. Up to WF__TRANSFER_OUTCOMES they are sent before a search; a batch fetches
 * those from the counters to the outcomes after it. */
typedef enum wf__transfer_part {
  WF__TRANSFER_UTTERANCES, /* [chunk_size] wf__lane_utterance */
  WF__TRANSFER_CHUNKS,     /* [chunk_size] wf__lane_chunk, for streams */
  WF__TRANSFER_ORDER,      /* [chunk_size] uint32_t number of the utterance; streams: those without
                              scorers first */
  WF__TRANSFER_COUNTERS,   /* wf__transfer_counters */
  WF__TRANSFER_BAD, /* [chunk_size] uint64_t least frame << 32 | column of an unusable score; all
                       ones: none. Batches */
  WF__TRANSFER_OUTCOMES,  /* [chunk_size] wf__lane_outcome. Batches */
  WF__TRANSFER_SCORES,    /* of streams: packed scores; only the used part is sent */
  WF__TRANSFER_NUMBERS,   /* [chunk_size] uint32_t number in the batch; not sent, nor is the next */
  WF__TRANSFER_SCORE_OFF, /* [chunk_size + 1] uint64_t where each utterance's scores begin */
  WF__NUM_TRANSFER_PARTS
} wf__transfer_part;

/* Counters of a search; zero before it. */
typedef struct wf__transfer_counters {
  uint64_t steps_used;                    /* steps of paths; of streams, tokens that were emitted */
  uint64_t links_used;                    /* links that streams emitted */
  uint32_t queues[WF__MAX_RANK_BITS + 1]; /* next place in the order, of each launch */
  uint32_t pages_used, zero;
} wf__transfer_counters;

typedef struct wf__transfer_plan {
  uint64_t off[WF__NUM_TRANSFER_PARTS], bytes;
} wf__transfer_plan;

/* A block for `chunk_size` utterances: of a batch, or of streams with room for `score_bytes`. */
void wf__transfer_plan_batch(uint32_t chunk_size, wf__transfer_plan *out);
void wf__transfer_plan_streams(uint32_t chunk_size, uint64_t score_bytes, wf__transfer_plan *out);

/* Both sides of a block; it owns neither. */
typedef struct wf__transfer {
  char *host; /* page-locked */
  char *device;
} wf__transfer;

/* Sets the parameters' pointers to the block on the GPU. `launch` selects the queue. */
void wf__transfer_fill(const wf__transfer_plan *plan, const wf__transfer *block, int launch,
                       wf__lane_params *params);

#endif
