/* transducer_group.h - a group of searches whose requests a GPU answers together
 * (search/transducer/transducer_device.h).
 *
 *   rows       [slot][width] the predictor's part; states of an LSTM have the same slots
 *   encoder    [frames of all lanes][width] the encoder's part
 *   block      page-locked and on the GPU: the requests of a round (wf__round_block)
 *   answer     page-locked: log-probabilities, which the GPU writes there
 *   slices     scratch: the integers of the rows of a product
 *
 *   frames --> load, product: encoder
 *   block  --> fetch --> predict or advance, product: rows
 *                    --> hidden, product, select: answer */
#ifndef WF_CUDA_TRANSDUCER_TRANSDUCER_GROUP_H
#define WF_CUDA_TRANSDUCER_TRANSDUCER_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "cuda/device/launch_graphs.h"
#include "cuda/transducer/transducer_kernels.h"
#include "cuda/transducer/transducer_weights.h"
#include "lm/rnn_device.h"

#ifndef WF__TRANSDUCER_SLOTS /* a test makes them small */
#define WF__TRANSDUCER_SLOTS 4096
#define WF__TRANSDUCER_FRAMES 16384
#endif
enum {
  WF__ZERO_SLOT = 1, /* the state before the start */
  WF__FIRST_SLOT
};
#define WF__NO_SLOT UINT32_MAX

typedef struct wf__pinned_buffer {
  char *data;
  uint64_t bytes;
} wf__pinned_buffer;

/* A round: the numbers of frames of utterances that begin, bytes to copy of them, contexts and
 * joiner rows. */
typedef struct wf__transducer_round {
  uint64_t num_frames, raw_bytes, num_contexts, num_rows;
} wf__transducer_round;

/* What the launches of a round depend on, besides the numbers: a graph is valid while it stays. */
typedef struct wf__round_memory {
  const void *host, *block, *slices, *rows, *encoder, *logits, *done;
  uint64_t slots_at, inputs_at, max_slots;
  wf__answers answers;
  wf__score_cut cut;
} wf__round_memory;

struct wf__transducer_group {
  wf__transducer_weights *weights;
  wf__score_cut cut;
  cudaStream_t stream; /* of the LSTM, if there is one */
  cudaEvent_t caller;  /* what the caller has enqueued */
  wf__rnn_device *lstm;
  wf__device_buffer rows, encoder, frames, raw, x, slices, block, logits, done, answer;
  wf__pinned_buffer host_frames, host_block, host_answer;
  bool searches_there; /* this batch's answers stay in the GPU's memory, for the search there */
  bool has_entries;    /* there are answers; else the search looks at the logits */
  uint32_t max_slots;
  uint64_t most_rows, most_contexts, most_answers; /* rows and contexts that there is room for */
  wf__round_block layout;
  wf__answers answers;
  wf__launch_graphs graphs; /* of rounds, by their size */
  wf__round_memory recorded;
  uint32_t launch_rows, launch_contexts; /* the most of the round that is enqueued */
  /* By lane: */
  WF__VEC(uint32_t) first_frame; /* of its rows in `encoder` */
  WF__VEC(const wf_scores *) begins;
  WF__VEC(int) where;                /* the GPU that has them; others than this one's are copied */
  WF__VEC(wf__predictions *) asking; /* NULL: idle */
  /* What lanes have taken. */
  atomic_uint_fast64_t num_rows, num_contexts;
  atomic_uint_fast32_t num_slots;
  pthread_mutex_t mutex; /* of the list of slots that nobody has */
  WF__VEC(uint32_t) free_slots;
  atomic_uint_fast64_t num_free;
};

/* transducer_group.c: the operations of wf__device_transducer. */
wf_status wf__transducer_group_open(wf__transducer_weights *weights, wf__transducer_group **out,
                                    wf_error *err);
void wf__transducer_group_close(wf__transducer_group *g);
wf_status wf__transducer_group_begin(wf__transducer_group *g, const wf__score_cut *cut,
                                     const int64_t *num_frames, size_t num_lanes, void *stream,
                                     wf_error *err);
void wf__transducer_group_put(wf__transducer_group *g, size_t lane, const wf_scores *begins,
                              int where, wf__predictions *predictions);
void wf__transducer_group_release(wf__transducer_group *g, wf__predictions *predictions);
wf_status wf__transducer_group_submit(wf__transducer_group *g, wf__transducer_counts *counts,
                                      wf_error *err);
wf_status wf__transducer_group_wait(wf__transducer_group *g, wf_error *err);

/* transducer_round.c */
/* Takes places in the block for a lane's request and, if there is room, writes it there. */
void wf__transducer_write_request(wf__transducer_group *g, size_t lane);
/* What was put. */
wf__transducer_round wf__transducer_measure(const wf__transducer_group *g);
/* Enqueues the round. This GPU must be the current device. */
wf_status wf__transducer_enqueue(wf__transducer_group *g, const wf__transducer_round *round,
                                 wf_error *err);

/* For searches on the GPU, which make their requests there. This GPU must be the current device. */
/* Who searches the batch that has begun. */
void wf__transducer_search_there(wf__transducer_group *g, bool there, bool has_entries);
/* A slot that nobody has. Releasing: WF__NO_SLOT is none. */
uint32_t wf__transducer_take_slot(wf__transducer_group *g);
void wf__transducer_release_slots(wf__transducer_group *g, const uint32_t *slots, uint64_t count);
/* Makes room in page-locked memory; what was there is lost. */
wf_status wf__transducer_pin(wf__pinned_buffer *buffer, uint64_t bytes, wf_error *err);
/* Enqueues the encoder's part of `frames`. Returns a cudaError_t. */
int wf__transducer_encode(wf__transducer_group *g, const wf__transducer_round *round);
/* Makes room for rounds of so many rows and contexts, and slots below `num_slots`. */
wf_status wf__transducer_make_room(wf__transducer_group *g, const wf__transducer_round *round,
                                   uint64_t num_slots, wf_error *err);
/* Forgets the recorded graphs if what they depend on has changed. */
void wf__transducer_check_graphs(wf__transducer_group *g);
/* The size of a launch for so many rows: one of few. */
uint32_t wf__transducer_launch_size(uint64_t count);
/* Enqueue parts of the answers to the requests in the block, at most launch_rows and
 * launch_contexts: the rows of new contexts; the joiner's hidden rows; the logits; the entries. */
wf_status wf__transducer_contexts(wf__transducer_group *g, wf_error *err);
wf_status wf__transducer_hidden_rows(wf__transducer_group *g, wf_error *err);
wf_status wf__transducer_logits(wf__transducer_group *g, wf_error *err);
wf_status wf__transducer_entries(wf__transducer_group *g, wf_error *err);
/* The hidden rows of a round, and its logits and entries. */
wf__sliced wf__transducer_hidden_of(const wf__transducer_group *g);
wf__answer_work wf__transducer_answers_of(const wf__transducer_group *g);

/* transducer_device.c */
extern const struct wf__device_transducer wf__cuda_transducer;

#endif
