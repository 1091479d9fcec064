/* gpu_streams.h - streams on GPUs: a worker's part.
 *
 *   gpu_streams.c         channels and their results
 *   gpu_stream_plan.c     the memory plan
 *   stream_memory.c       memory
 *   stream_rounds.c       chunks to the GPU, the CPU for what does not fit
 *   stream_outcomes.c     adds the outcomes of a chunk to its channel
 *   gpu_submit.c          the launches of a round, as for batches (gpu_submit.h)
 *   stream_rnn_scoring.c  recurrent scorers of streams
 *   stream_transfer.c     tokens to the CPU and back
 *   read_stream_links.c   histories of lattices from what the kernel emits
 *
 * A stream belongs to one worker. Between chunks its newest tokens are in the GPU's memory. The
 * rest is in a wf__channel, as for streams of the CPU: after each chunk the kernel emits the
 * tokens' back-pointers. So a stream's memory on the GPU does not grow, and the same code works
 * on a history for GPU and CPU (committed prefixes, paths, words, endpoints).
 *
 * A call of wf_streams_advance is one or several rounds. A round takes up to WF__STREAM_FRAMES
 * frames of each stream: one copy, one launch for streams of each kind (wf__channel_kind), one
 * wait. Streams with a recurrent scorer follow, with a launch and a wait for each time that scores
 * are made. */
#ifndef WF_CUDA_DECODER_GPU_STREAMS_H
#define WF_CUDA_DECODER_GPU_STREAMS_H

#include "cuda/decoder/gpu_worker.h"
#include "decode/host_backend.h"
#include "plan/gpu_stream_plan.h"
#include "search/frame/channel.h"

/* A stream. */
typedef struct wf__gpu_channel {
  wf__channel
      base; /* first member: a channel of the CPU, whose tokens are used only while it is on_cpu */
  wf__gpu_worker *worker;
  wf__lane_token *tokens; /* slots on the GPU */
  uint64_t *contexts;     /* a slot for contexts; NULL: the stream has had neither scorer nor added
                             words, and is not `large` */
  wf__shared_scorer *scorer; /* base.scoring's scorer on the GPU; NULL: none */
  wf__shared_words *words;   /* base.stream.graph's on the GPU; NULL: none */
  uint32_t num_tokens, usual_size;
  uint32_t best, ending; /* as in wf__lane_advance */
  float best_cost, ending_cost, final_cost;
  uint64_t select_key, select_context; /* the same */
  bool collected;                      /* the committed prefix was cut off since the last chunk */
  bool watched; /* partial results are wanted: the pool's threads collect after each chunk */
  bool stale;   /* the scorer was replaced, which changed costs: `best` and `ending` are unknown */
  bool large;   /* its frames have more tokens than the tables of searches without scorers hold */
  bool on_cpu;  /* it did not fit the GPU, so the CPU searches it until the utterance ends */
  uint32_t item_number; /* of its item in the round + 1; 0: it is in no round */
} wf__gpu_channel;

/* The kernels that search it. Those with scorers have larger tables. */
static inline wf__search_kind wf__channel_kind(const wf__gpu_channel *channel) {
  const wf__shared_scorer *scorer = channel->scorer;
  if (scorer != NULL && scorer->rnn_scoring != NULL) return WF__SEARCH_DEFERRED;
  if (channel->words != NULL || channel->large) return WF__SEARCH_SCORED;
  if (scorer != NULL) return scorer->boosts ? WF__SEARCH_BOOSTED : WF__SEARCH_SCORED;
  return WF__SEARCH_PLAIN;
}

/* A chunk in flight. */
typedef struct wf__stream_item {
  wf__gpu_channel *channel;
  uint32_t index;     /* in the batch */
  int32_t from, rows; /* frames that were searched, and frames of this round */
  int bits;           /* the least number of blocks of its lane is 2^bits */
  bool unchecked;     /* the kernel must check the scores */
  enum {
    WF__ITEM_DONE,
    WF__ITEM_GOES_ON,
    WF__ITEM_LARGE,
    WF__ITEM_TO_CPU
  } then; /* next action; LARGE: continue with the larger tables */
} wf__stream_item;

typedef WF__VEC(wf__stream_item) wf__stream_items;

typedef struct wf__stream_scratch {
  uint32_t *renumber; /* wf__trace's */
  uint64_t cap;
  wf__history history;       /* its scratch is for all streams */
  WF__VEC(uint8_t) frame_of; /* of a chunk's tokens: frame of the chunk */
  wf__link_vec links;        /* by frame */
  WF__VEC(float) loglikes;
} wf__stream_scratch;

typedef struct wf__gpu_streams {
  wf__stream_plan plan;
  bool scored; /* the memory has room for scorers */
  int lanes[WF__MAX_RANK_BITS + 1];
  cudaStream_t stream;
  char *memory;         /* on the GPU: arrays of the lanes, then the transfer block */
  char *pinned;         /* the transfer block on the host's side */
  char *out;            /* page-locked, written by the kernels */
  wf__search_room room; /* over memory and pinned */
  uint32_t *arc_sources;
  WF__VEC(char *) slabs;
  WF__VEC(void *) slots; /* free ones */
  uint64_t bytes;        /* on the GPU */
  uint64_t num_channels;
  uint64_t num_slots;
  uint32_t usual_tokens; /* of a frame; 0: not known yet */
  int least_bits;        /* lanes of fewer than 2^least_bits blocks were too small too often */
  wf__stream_items pending, items; /* of later rounds; of this one */
  int round_bits;
  wf__stream_scratch *scratch; /* [pool size] */
} wf__gpu_streams;

/* A part of the kernels' output in host memory. */
static inline void *wf__streams_out(const wf__gpu_streams *streams, wf__stream_out part) {
  return streams->out + streams->plan.out_off[part];
}

/* Tokens in the stream's slot, also during a round. */
static inline uint32_t wf__streams_num_tokens(const wf__gpu_channel *channel) {
  const wf__gpu_streams *streams = channel->worker->streams;
  const wf__lane_advance *advances = wf__streams_out(streams, WF__STREAM_ADVANCES);
  const wf__lane_advance *advance =
      channel->item_number > 0 ? &advances[channel->item_number - 1] : NULL;
  if (advance != NULL && advance->status == WF__LANE_OK && advance->num_newest != UINT32_MAX)
    return advance->num_newest; /* its chunk was searched */
  return channel->base.stream.begun && !channel->on_cpu ? channel->num_tokens : 0;
}

extern const wf__stream_backend wf__cuda_streams; /* gpu_streams.c */

#endif
