/* rnn_scoring.h - what searches with a recurrent scorer on a GPU.
 *
 *   rnn_scoring.c          tables, rounds; batches, which have the worker's `asking`, of the last batch's recurrent scorer. Roots are the batch's chains, or with
 *                          rnnlm_cache=utterance the utterances of a flight
 *   stream_rnn_scoring.c   streams, which have one for each recurrent scorer that they hold. Roots come and go with the chains that they hold, and their slots on
 *                          the GPU hold contexts between chunks */
#ifndef WF_CUDA_DECODER_RNN_SCORING_H
#define WF_CUDA_DECODER_RNN_SCORING_H

#include "cuda/decoder/gpu_streams.h"
#include "cuda/rnn/rnn_score_tables.h"
#include "lm/rnn_device.h"
#include "scorer/rnn_scorer.h"

enum wf__asking_array {
  /* by max_contexts */
  WF__ASKING_TABLE, WF__ASKING_PLACES, WF__ASKING_CONTEXTS, WF__ASKING_WORDS, WF__ASKING_QUESTIONS, WF__ASKING_CLAIMS, WF__ASKING_FREE_CONTEXTS, WF__ASKING_CONTEXT_LIVES,
  WF__ASKING_ROOTS, WF__ASKING_STARTS,
  /* by max_slots */
  WF__ASKING_HASHES, WF__ASKING_FREE_SLOTS, WF__ASKING_SLOT_LIVES,
  /* of a round */
  WF__ASKING_REQUESTS, WF__ASKING_COSTS, WF__ASKING_MADE_AT, WF__ASKING_MOVES, WF__ASKING_SLOTS,
  WF__ASKING_SAVED, WF__ASKING_COUNTERS, WF__ASKING_LABELS, WF__ASKING_FACTORS, WF__ASKING_NGRAM, WF__ASKING_SMALL, WF__ASKING_HELD,
  WF__ASKING_ARRAYS
};

/* A scorer of the batch: the recurrent one, or a chain with it. */
struct wf__asking_chain {
  wf_scorer *scorer;
  wf_scorer *twin; /* the same on the CPU, for costs along paths */
};

struct wf__gpu_asking {
  int number_bits;   /* that contexts may take in the keys of this batch */
  wf_scorer *scorer; /* the recurrent one, whose answers these are */
  wf_scorer *twin;
  WF__VEC(struct wf__asking_chain) chains;
  wf__map64 chain_of; /* address of a scorer -> number in chains */
  bool own_roots;     /* each utterance has contexts of its own; else each chain */
  /* of streams */
  bool streams;
  uint64_t num_users;                /* that hold this */
  WF__VEC(wf__gpu_channel *) channels; /* that are searched with it */
  WF__VEC(uint8_t) root_states;      /* WF__ROOT_* */
  struct wf__gpu_asking *next;
  wf_rnnlm *lm;      /* on this GPU */
  wf__rnn_device *device;
  cudaStream_t stream; /* the device's */
  wf__lane_maker maker;
  struct {
    void *data;
    uint64_t bytes;
  } arrays[WF__ASKING_ARRAYS];
  wf__lane_counters *counters; /* page-locked */
  int bits;             /* of max_contexts */
  uint32_t num_answers; /* in the table */
  uint64_t num_frames;  /* searched since it last forgot */
  wf__rnn_counts counts;
};

enum { WF__ROOT_FREE, WF__ROOT_LIVE, WF__ROOT_LEFT /* free when what came from it is forgotten */ };

/* Of a recurrent scorer. */
wf_status wf__asking_open(int device, const wf_scorer *scorer, int number_bits, struct wf__gpu_asking **out, wf_error *err);
void wf__asking_close(struct wf__gpu_asking *a);
/* Room for so many bytes; what was in the array is of no use any more. */
wf_status wf__asking_reserve(struct wf__gpu_asking *a, enum wf__asking_array which, uint64_t bytes, wf_error *err);
/* Everything but what the lanes (NULL: there are none) and streams hold. */
wf_status wf__asking_forget(struct wf__gpu_asking *a, const wf__lane_params *p, wf_error *err);
/* Tables of twice the size; forgets, too. */
wf_status wf__asking_grow(struct wf__gpu_asking *a, const wf__lane_params *p, wf_error *err);
/* Launches and answers until no lane waits. */
wf_status wf__asking_run(struct wf__gpu_asking *a, wf__lane_params *p, int (*launch)(const wf__lane_params *, void *), wf_error *err);
/* Tells what was counted since `costs` had been worked out. */
void wf__asking_count(struct wf__gpu_asking *a, uint64_t costs, uint64_t num_utterances);

#endif
