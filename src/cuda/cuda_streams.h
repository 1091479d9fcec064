/* cuda_streams.h - streams on GPUs: the plan of their memory, and what a worker has for them.
 *
 *   cuda_streams.c         channels; what has come out of them
 *   cuda_stream_rounds.c   chunks to the GPU and what comes back
 *   cuda_stream_plan.c     plan and memory
 *
 * A stream belongs to one worker. Between chunks its newest tokens are in the GPU's memory and all else, as for streams of the CPU, in a wf__channel: the
 * kernel hands out what the tokens came from chunk by chunk. So what a stream has on the GPU does not grow, and what the CPU does with a history (cutting off
 * what is decided, paths, words, endpoints) is done by the same code.
 *
 *   GPU     memory   arrays of the lanes | box     as many lanes as run at once; streams beyond that wait in the kernel's queue
 *           slots    [max_tokens] tokens of a stream, or their contexts; many in a slab
 *   pinned  box      utterances, chunks, order, counters, scores: sent in one copy, its part in use
 *           out      [chunk] wf__lane_advance, [ancestors_cap] wf__lane_ancestor: written by the kernel
 *
 * A call of wf_streams_advance is rounds of: one copy, one launch (two if only some streams have scorers), one wait. One round does for chunks of up to
 * WF__STREAM_FRAMES frames; longer ones go piece by piece. */
#ifndef WF_CUDA_CUDA_STREAMS_H
#define WF_CUDA_CUDA_STREAMS_H

#include "cpu/cpu_streams.h"
#include "cuda/cuda_worker.h"

enum {
  WF__STREAM_FRAMES = 16,      /* of a chunk in one launch */
  WF__STREAM_CHUNKS = 8,       /* of a launch, for each block that runs at once */
  WF__STREAM_ANCESTORS = 2048, /* room for a chunk's, on average */
};
#define WF__STREAM_WINDOW_BYTES (64 << 20) /* scores of a launch; of one chunk at least */
#define WF__STREAM_SLAB_BYTES (16 << 20)

typedef enum wf__stream_array {
  WF__STREAM_COSTS, /* lane_search.h says what they hold */
  WF__STREAM_AGENDA,
  WF__STREAM_TRACE,
  WF__STREAM_LINKS,
  WF__STREAM_FRAME_OFF,
  WF__STREAM_INDEX,
  WF__STREAM_ROWS,
  WF__STREAM_HANDED,
  WF__STREAM_CONTEXTS, /* this and the next three for scorers only */
  WF__STREAM_WORD_LOG,
  WF__STREAM_SOURCES,
  WF__STREAM_ASKED,
  WF__STREAM_BOX,
  WF__NUM_STREAM_ARRAYS
} wf__stream_array;

typedef enum wf__stream_box {
  WF__STREAM_UTTERANCES, /* [chunk] wf__lane_utterance */
  WF__STREAM_CHUNK,      /* [chunk] wf__lane_chunk */
  WF__STREAM_ORDER,      /* [chunk] uint32_t: those without scorers first */
  WF__STREAM_COUNTERS,   /* {uint64_t ancestors used; uint32_t queue of those without scorers, of those with} */
  WF__STREAM_SCORES,     /* window_bytes */
  WF__NUM_STREAM_BOX
} wf__stream_box;

typedef struct wf__stream_plan {
  uint32_t parts; /* blocks at one time */
  uint32_t chunk; /* chunks of a launch at most */
  uint32_t trace_cap;
  uint64_t ancestors_cap, window_bytes;
  uint64_t off[WF__NUM_STREAM_ARRAYS], bytes; /* on the GPU, besides graph and slots */
  uint64_t box_off[WF__NUM_STREAM_BOX], box_bytes;
  uint64_t out_bytes;   /* pinned_bytes is this and box_bytes */
  uint64_t slot_bytes;  /* of a stream's tokens, and again of their contexts */
  uint64_t max_slots;   /* that fit besides all that */
} wf__stream_plan;

/* A stream. */
typedef struct wf__gpu_channel {
  wf__channel base; /* first: a channel of the CPU's, whose tokens are here but when it is on_cpu */
  wf__gpu_worker *worker;
  wf__lane_token *tokens; /* slots on the GPU */
  uint64_t *contexts;     /* NULL: it has had neither a scorer nor added words */
  wf__held_scorer *held;  /* base.scoring's scorer on the GPU; NULL: none */
  wf__held_words *words;  /* base.graph's on the GPU; NULL: none */
  uint32_t num_tokens, usual_size;
  uint32_t best, ending;  /* as in wf__lane_advance */
  float best_cost, ending_cost, final_cost;
  uint64_t select_key, select_context; /* the same */
  bool collected, watched; /* since the last chunk; partials are asked for: then the pool's threads collect each chunk as it lands */
  bool stale;  /* another scorer has changed costs: best, ending are not known */
  bool on_cpu; /* until the utterance ends: it did not fit the GPU */
} wf__gpu_channel;

/* Is it searched by the kernel for scorers? */
static inline bool wf__is_scored_channel(const wf__gpu_channel *channel) { return channel->held != NULL || channel->words != NULL; }

/* A chunk on its way. */
typedef struct wf__stream_item {
  wf__gpu_channel *channel;
  uint32_t index;      /* in the batch */
  int32_t from, rows;  /* frames that are consumed, and those of this launch */
  int bits;            /* of the blocks a lane, at least */
  bool unchecked;      /* nobody has looked at the scores */
  enum { WF__ITEM_DONE, WF__ITEM_GOES_ON, WF__ITEM_TO_CPU } then;
} wf__stream_item;

typedef WF__VEC(wf__stream_item) wf__stream_items;

typedef struct wf__stream_scratch {
  uint32_t *renumber; /* wf__trace's */
  uint64_t cap;
} wf__stream_scratch;

typedef struct wf__gpu_streams {
  wf__stream_plan plan;
  bool scored;  /* there is room for scorers */
  int lanes[WF__MAX_RANK_BITS + 1];
  cudaStream_t stream;
  char *memory, *box, *out;
  uint32_t *arc_sources;
  WF__VEC(char *) slabs;
  WF__VEC(void *) slots; /* free ones */
  uint64_t bytes;        /* on the GPU */
  uint64_t num_channels;
  uint64_t num_slots;
  uint32_t usual_tokens; /* of a frame; 0: not known yet */
  int least_bits;        /* lanes of fewer blocks were too narrow too often */
  wf__stream_items pending, flight;
  int flight_bits;
  wf__stream_scratch *scratch; /* [pool size] */
} wf__gpu_streams;

/* cuda_stream_plan.c */
wf_status wf__stream_plan_make(const wf_graph *graph, const wf_decoder_options *options, const wf__gpu_facts *facts, int num_sharing, bool scored, wf__stream_plan *out,
                               wf_error *err);
/* Makes worker->streams, or room for scorers in it. */
wf_status wf__streams_reserve(wf__gpu_worker *worker, int num_sharing, bool scored, wf_error *err);
wf_status wf__streams_take_slot(wf__gpu_worker *worker, void **out, wf_error *err);
void wf__streams_return_slot(wf__gpu_worker *worker, void *slot);
void wf__streams_release(wf__gpu_worker *worker);

/* cuda_stream_rounds.c */
struct wf__cuda_backend;
wf_status wf__streams_advance(struct wf__cuda_backend *self, const wf__batch *batch, void *const *channels, wf_error *err);
/* Cuts off what all tokens share; `thread`'s scratch and scoring. */
wf_status wf__streams_collect(wf__gpu_channel *channel, int thread, wf_error *err);
/* From now on the CPU has the stream's tokens. */
wf_status wf__streams_to_cpu(struct wf__cuda_backend *self, wf__gpu_channel *channel, wf_error *err);

/* Back again. */
wf_status wf__streams_to_gpu(wf__gpu_channel *channel, wf_error *err);

extern const wf__stream_backend wf__cuda_streams; /* cuda_streams.c */

#endif
