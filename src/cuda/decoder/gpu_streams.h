/* gpu_streams.h - streams on GPUs: the plan of their memory, and what a worker has for them.
 *
 *   gpu_streams.c         channels; what has come out of them
 *   gpu_stream_plan.c     how much memory, before any is allocated
 *   stream_memory.c       memory
 *   stream_rounds.c       chunks to the GPU and what comes back
 *   stream_transfer.c     tokens to the CPU and back
 *   read_stream_links.c   histories of lattices from what the kernel hands out
 *
 * A stream belongs to one worker. Between chunks its newest tokens are in the GPU's memory and all else, as for streams of the CPU, in a wf__channel: the
 * kernel hands out what the tokens came from chunk by chunk. So what a stream has on the GPU does not grow, and what the CPU does with a history (cutting off
 * what is decided, paths, words, endpoints) is done by the same code.
 *
 * A call of wf_streams_advance is rounds of: one copy, one launch (two if only some streams have scorers), one wait. One round does for chunks of up to
 * WF__STREAM_FRAMES frames; longer ones go piece by piece. Streams with a recurrent scorer follow the others, and take a launch and a wait for each time that answers are made. */
#ifndef WF_CUDA_DECODER_GPU_STREAMS_H
#define WF_CUDA_DECODER_GPU_STREAMS_H

#include "cpu/cpu_streams.h"
#include "cuda/decoder/gpu_stream_plan.h"
#include "cuda/decoder/gpu_worker.h"

/* A stream. */
typedef struct wf__gpu_channel {
  wf__channel base; /* first: a channel of the CPU's, whose tokens are here but when it is on_cpu */
  wf__gpu_worker *worker;
  wf__lane_token *tokens; /* slots on the GPU */
  uint64_t *contexts;     /* NULL: it has had neither a scorer nor added words, and is not `large` */
  wf__shared_scorer *scorer; /* base.scoring's scorer on the GPU; NULL: none */
  wf__shared_words *words;  /* base.graph's on the GPU; NULL: none */
  uint32_t num_tokens, usual_size;
  uint32_t best, ending;  /* as in wf__lane_advance */
  float best_cost, ending_cost, final_cost;
  uint64_t select_key, select_context; /* the same */
  bool collected, watched; /* since the last chunk; partials are asked for: then the pool's threads collect each chunk as it lands */
  bool stale;  /* another scorer has changed costs: best, ending are not known */
  bool large;  /* its frames have more tokens than the tables of searches without scorers hold */
  bool on_cpu; /* until the utterance ends: it did not fit the GPU */
  uint32_t item_number; /* number of its item there, + 1; 0: it is in none */
} wf__gpu_channel;

/* Is it searched by the kernel for scorers? */
static inline bool wf__is_scored_channel(const wf__gpu_channel *channel) { return channel->scorer != NULL || channel->words != NULL || channel->large; }

/* A chunk on its way. */
typedef struct wf__stream_item {
  wf__gpu_channel *channel;
  uint32_t index;      /* in the batch */
  int32_t from, rows;  /* frames that are consumed, and those of this launch */
  int bits;            /* of the blocks a lane, at least */
  bool unchecked;      /* nobody has looked at the scores */
  enum { WF__ITEM_DONE, WF__ITEM_GOES_ON, WF__ITEM_LARGE, WF__ITEM_TO_CPU } then; /* LARGE: goes on with the larger tables */
} wf__stream_item;

typedef WF__VEC(wf__stream_item) wf__stream_items;

typedef struct wf__stream_scratch {
  uint32_t *renumber; /* wf__trace's */
  uint64_t cap;
  wf__history history; /* its scratch is for all streams */
  WF__VEC(uint8_t) frame_of; /* of a chunk's tokens: frame of the chunk */
  wf__link_vec links;        /* by frame */
  WF__VEC(float) loglikes;
} wf__stream_scratch;

typedef struct wf__gpu_streams {
  wf__stream_plan plan;
  bool scored;  /* there is room for scorers */
  int lanes[WF__MAX_RANK_BITS + 1];
  cudaStream_t stream;
  char *memory; /* on the GPU: arrays of the lanes, then the transfer block */
  char *pinned; /* the transfer block on the host's side */
  char *out;    /* page-locked, written by the kernels */
  wf__search_room room; /* over memory and pinned */
  uint32_t *arc_sources;
  WF__VEC(char *) slabs;
  WF__VEC(void *) slots; /* free ones */
  uint64_t bytes;        /* on the GPU */
  uint64_t num_channels;
  uint64_t num_slots;
  uint32_t usual_tokens; /* of a frame; 0: not known yet */
  int least_bits;        /* lanes of fewer blocks were too narrow too often */
  wf__stream_items pending, items; /* of later rounds; of this one */
  int round_bits;
  wf__stream_scratch *scratch; /* [pool size] */
} wf__gpu_streams;

/* Tokens in the stream's slot, while a round is on its way, too. */
static inline uint32_t wf__streams_num_tokens(const wf__gpu_channel *channel) {
  const wf__gpu_streams *streams = channel->worker->streams;
  const wf__lane_advance *advances = (const wf__lane_advance *)(const void *)(streams->out + streams->plan.out_off[WF__STREAM_ADVANCES]);
  const wf__lane_advance *advance = channel->item_number > 0 ? &advances[channel->item_number - 1] : NULL;
  if (advance != NULL && advance->status == WF__LANE_OK && advance->num_newest != UINT32_MAX) return advance->num_newest; /* its chunk is done */
  return channel->base.begun && !channel->on_cpu ? channel->num_tokens : 0;
}

/* stream_memory.c */
/* [WF__MAX_RANK_BITS + 1] lanes of 2^b blocks that run at once on the current device, with scorers and without. */
wf_status wf__streams_read_lanes(const wf__gpu_profile *profile, int32_t num_columns, int *lanes, wf_error *err);
/* Makes worker->streams, or room for scorers in it. */
wf_status wf__streams_reserve(wf__gpu_worker *worker, int num_sharing, bool scored, wf_error *err);
wf_status wf__streams_take_slot(wf__gpu_worker *worker, void **out, wf_error *err);
/* What the kernel for scorers needs of the stream. */
wf_status wf__streams_reserve_contexts(wf__gpu_channel *channel, int num_sharing, wf_error *err);
void wf__streams_return_slot(wf__gpu_worker *worker, void *slot);
void wf__streams_release(wf__gpu_worker *worker);

/* stream_rounds.c */
struct wf__cuda_backend;
wf_status wf__streams_advance(struct wf__cuda_backend *self, const wf__batch *batch, void *const *channels, wf_error *err);
/* Cuts off what all tokens share; `thread`'s scratch and scoring. */
wf_status wf__streams_collect(wf__gpu_channel *channel, int thread, wf_error *err);

/* stream_transfer.c */
/* From now on the CPU has the stream's tokens. */
wf_status wf__streams_to_cpu(struct wf__cuda_backend *self, wf__gpu_channel *channel, wf_error *err);
/* The CPU's streams, for what their code does with channels. */
wf_status wf__streams_open_cpu(struct wf__cuda_backend *self, wf_error *err);
/* Back again. */
wf_status wf__streams_to_gpu(wf__gpu_channel *channel, wf_error *err);

/* read_stream_links.c: what a chunk has handed out, into the history. Contexts are NULL without a scorer; `row`: number of the chunk's first frame. */
typedef struct wf__chunk_out {
  const wf__lane_ancestor *tokens;
  const uint64_t *contexts;
  const wf__lane_chunk_link *links;
  uint32_t num_tokens, num_links;
} wf__chunk_out;
wf_status wf__streams_add_history(wf__gpu_channel *channel, const wf__chunk_out *out, int64_t row, int thread, wf_error *err);

/* stream_rnn_scoring.c: recurrent scorers of streams. */
/* What searches with the scorer, for as long as it is held. On the current device. */
wf_status wf__rnn_scoring_acquire(wf__gpu_worker *worker, const wf_scorer *recurrent, struct wf__rnn_scoring **out, wf_error *err);
void wf__rnn_scoring_release(struct wf__rnn_scoring *rnn_scoring);
/* The worker has a list of those that streams hold. */
const struct wf__rnn_scoring *wf__rnn_scoring_next(const struct wf__rnn_scoring *rnn_scoring);
/* The scorer on the CPU. */
const wf_scorer *wf__rnn_scoring_cpu_scorer(const struct wf__rnn_scoring *rnn_scoring);
/* Have its contexts room beside the graph's states? */
wf_status wf__rnn_scoring_fit(struct wf__rnn_scoring *rnn_scoring, const wf_graph *graph, wf_error *err);
/* Where utterances start with a chain (NULL: with the scorer alone). */
wf_status wf__rnn_scoring_add_root(struct wf__rnn_scoring *rnn_scoring, const wf__flat_scorer *chain, uint32_t *root, wf_error *err);
void wf__rnn_scoring_drop_root(struct wf__rnn_scoring *rnn_scoring, uint32_t root);
/* From now on, or no more, the stream's slot holds contexts; as often as it has joined. */
wf_status wf__rnn_scoring_join(struct wf__rnn_scoring *rnn_scoring, wf__gpu_channel *channel, wf_error *err);
void wf__rnn_scoring_leave(struct wf__rnn_scoring *rnn_scoring, const wf__gpu_channel *channel);

extern const wf__stream_backend wf__cuda_streams; /* gpu_streams.c */

#endif
