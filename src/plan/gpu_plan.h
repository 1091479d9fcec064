/* gpu_plan.h - the memory plan of a batch on a GPU, made before anything is allocated.
 *
 * A batch is decoded in chunks of utterances. Several chunks are in flight at a time, so that the
 * scores of one are copied while others are searched or read back. Scores that are on the GPU
 * already need one chunk only.
 *
 *   graph      states, arcs                   once
 *   scorers    models, boosts                 as the batch needs them: upload_scorers.c
 *   workspace  chunk 0 | chunk 1 | ...        each chunk_bytes: the arrays of wf__batch_array
 *   pinned     window 0 | window 1 | transfer block 0 | ... | readback 0 | ...   page-locked:
 *              scores to be copied to the GPU; the chunks' transfer blocks (lane_memory.h); with
 *              lattices, paths and arcs read back
 *
 * Everything begins at a multiple of 256 bytes. Plain C without CUDA: plans are made on machines
 * without a GPU, too. */
#ifndef WF_PLAN_GPU_PLAN_H
#define WF_PLAN_GPU_PLAN_H

#include "decode/backend.h"
#include "plan/lane_memory.h"

enum {
  WF__MAX_CHUNKS = 12,
  WF__READBACKS = 4,                      /* chunks with lattices that are read back at a time */
  WF__LARGE_LANE = WF__MAX_RANK_BITS + 1, /* sizes of lanes: below */
  WF__LANE_SIZES = 2 * WF__LARGE_LANE
};

#ifndef WF__WINDOW_BYTES            /* a test makes them small, to test every boundary */
#define WF__WINDOW_BYTES (32 << 20) /* scores staged at a time: 0.6 ms on the bus */
#define WF__PIECE_BYTES (1 << 18)   /* of a window that a thread fills at a time */
#define WF__STEP_BYTES (1 << 14)    /* of a piece that are checked right after they were copied */
#define WF__READBACK_BYTES \
  (64 << 20) /* of a chunk's paths and arcs of lattices, which are read back through page-locked \
                memory: 1 ms on the bus */
#endif

/* The limits of a GPU and of a batch's scorers that the plan needs. The size of a lane is a
 * number: its blocks as a power of two, plus WF__LARGE_LANE if their tables are the larger ones
 * of searches with scorers. */
typedef struct wf__device_limits {
  wf__gpu_profile profile;
  int lanes[WF__LANE_SIZES]; /* of each size, that run at once; 0: none does */
  uint64_t available;        /* bytes, the graph's included; UINT64_MAX: not known */
  bool scored;               /* some utterance has a scorer: lanes are large */
  bool boosted;              /* not scored, but some utterance has boosts of few contexts */
  bool deferred; /* all have a recurrent scorer, whose scores are made between launches for all
                    lanes: there is one chunk */
  uint64_t scorer_bytes; /* of the batch's scorers, allocated already */
  int least_size;        /* smaller lanes are too small */
  uint32_t usual_tokens; /* of a frame in the last chunks; 0: not known yet */
} wf__device_limits;

/* The arrays of a chunk in device memory. */
typedef enum wf__batch_array {
  WF__BATCH_LANES,        /* lane_memory.h */
  WF__BATCH_PATH_SCRATCH, /* this and the next three: search_params.h */
  WF__BATCH_STEPS,
  WF__BATCH_PAGES,         /* this and the next only if lattices are made */
  WF__BATCH_PAGE_CONTEXTS, /* for searches with scorers */
  WF__BATCH_TRANSFER,      /* the transfer block: lane_memory.h */
  WF__BATCH_SCORES,        /* packed, from host memory */
  WF__NUM_BATCH_ARRAYS
} wf__batch_array;

typedef struct wf__gpu_plan {
  int size;                         /* of a lane */
  uint32_t ranks;                   /* blocks a lane */
  uint32_t least_ranks, most_ranks; /* both are `ranks`, unless lanes have several sizes */
  uint32_t parts;                   /* blocks of all lanes of a chunk */
  bool smallest;                    /* there is not enough memory for larger lanes */
  bool scored; /* lanes are large: some utterance has a scorer, or frames are too large for other
                  lanes */
  uint32_t num_chunks;
  uint32_t lanes;      /* of a chunk */
  uint32_t chunk_size; /* utterances of a chunk at most */
  uint32_t path_cap, pages_cap;
  uint64_t steps_cap;
  wf__lane_memory lane_memory;
  wf__transfer_plan transfer;
  uint64_t off[WF__NUM_BATCH_ARRAYS], chunk_bytes;
  uint64_t window_bytes;   /* of each of the two windows */
  uint64_t readback_bytes; /* of each readback window; 0 without lattices */
  wf_plan bytes;
} wf__gpu_plan;

/* Utterances that are searched in lanes of the same size, each in its own lane. */
typedef struct wf__lane_group {
  uint32_t count, ranks;
} wf__lane_group;

/* Divides `count` utterances, the longest first, among lanes of the plan's sizes. Longer utterances
 * get larger lanes, so that all searches end at about the same time. Returns the number of groups,
 * the largest lanes first. */
int wf__gpu_group_lanes(const wf__gpu_plan *plan, const wf__device_limits *limits,
                        const wf__lane_utterance *utterances, uint32_t count,
                        wf__lane_group out[WF__MAX_RANK_BITS + 1]);

/* Tokens that a lane of a size holds. */
static inline int64_t wf__gpu_lane_tokens(const wf__device_limits *limits, int size) {
  return (int64_t)wf__lane_tokens(limits->profile.shared_kb, size >= WF__LARGE_LANE)
         << size % WF__LARGE_LANE;
}
/* WF_ERR_LIMIT if max_tokens is more than the search on the largest GPU holds. */
wf_status wf__gpu_check_max_tokens(const wf_decoder_options *options, wf_error *err);
/* The next size that runs and holds more tokens; 0: there is none. */
int wf__gpu_larger_size(const wf__device_limits *limits, int size);
/* The next size after the plan's smallest lanes; 0: there is none. */
int wf__gpu_next_size(const wf__gpu_plan *plan, const wf__device_limits *limits);
/* Tokens of a frame that a lane should hold: twice the usual ones; max_active as long as none are
 * known. */
uint64_t wf__gpu_expected_tokens(const wf_decoder_options *options, uint32_t usual_tokens);
/* Blocks of a lane as bits, from `least` on: as many as share the GPU's `blocks` among the
 * utterances and have enough tokens of a usual frame each. usual_tokens 0: any number is enough. */
int wf__gpu_spread_lanes(int least, uint64_t blocks, uint64_t num_utterances,
                         uint64_t usual_tokens);
/* Bits that a key of the search has left for contexts. */
int wf__gpu_context_bits(const wf_graph *graph);
/* WF_ERR_UNSUPPORTED, with the reason, unless the GPU search supports the scorer. */
wf_status wf__gpu_check_scorer(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_scorer *scorer, wf_error *err);

/* Is the graph, with the words added to it, small enough for the GPU search? */
wf_status wf__gpu_check_graph(const wf_graph *graph, wf_error *err);
/* States, then arcs, wide states, columns, places for words with the numbers of their arcs, then, if
 * lattices are made, the components of the epsilon cycles, if there are any, with wide states the
 * held columns, and the sources of arcs by target with their offsets; at multiples of 256 bytes. */
uint64_t wf__gpu_place_bytes(const wf_graph *graph);
/* Are the arcs of wide states in memory once? Not if columns are not in the order of labels. */
bool wf__gpu_shares_arcs(const wf_graph *graph);
/* Columns that a block lists; 0 without shared arcs. */
uint64_t wf__gpu_listed_columns(const wf_graph *graph);
/* Arcs that are at their numbers. */
uint64_t wf__gpu_explicit_arcs(const wf_graph *graph);
uint64_t wf__gpu_graph_bytes(const wf_graph *graph, const wf_decoder_options *options);
/* The plan of one of `num_workers` workers (num_sharing of them on one GPU, which share its memory
 * by themselves) for their share of a batch. `options` have passed wf__decoder_limits. */
wf_status wf__gpu_plan_make(const wf_graph *graph, const wf_decoder_options *options,
                            const wf_batch_shape *shape, const wf__device_limits *limits,
                            int num_workers, int num_sharing, wf__gpu_plan *out, wf_error *err);
/* Plans for GPUs that this machine need not have. Their only limits are shape.num_processors and
 * options.gpu_memory. */
wf_status wf__gpu_plan_assumed(const wf_graph *graph, const wf_decoder_options *options,
                               const wf_batch_shape *shape, wf_plan *out, wf_error *err);
/* Workers of a device list, and how many of them share a GPU at most. */
wf_status wf__gpu_count_assumed(const wf_decoder_options *options, int *count, int *sharing,
                                wf_error *err);
/* The lesser of the GPU's memory and options.gpu_memory. */
uint64_t wf__gpu_available(const wf__device_limits *limits, const wf_decoder_options *options);

#endif
