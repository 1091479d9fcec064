/* upload_scorers.h - scorers on a GPU: those of a batch, and those that streams share. */
#ifndef WF_CUDA_DECODER_UPLOAD_SCORERS_H
#define WF_CUDA_DECODER_UPLOAD_SCORERS_H

#include "base/map64.h"
#include "cuda/decoder/upload_models.h"
#include "decode/backend.h"

struct wf__gpu_worker;
struct wf__rnn_scoring;

/* The arrays of a long list of boosts (or of a model's words), in memory of their own. */
typedef struct wf__gpu_list {
  wf_scorer *owner;
  char *memory;
  uint64_t bytes;
  uint64_t users; /* scorers of streams that contain it */
  bool in_batch;  /* the last batch uses it */
} wf__gpu_list;

/* An array of a scorer, and its address on the GPU. */
typedef struct wf__gpu_piece {
  const void *data;
  uint64_t bytes, at;
} wf__gpu_piece;

/* Scorers that are sent together, and the arrays that they share. */
typedef struct wf__scorer_store {
  WF__VEC(wf__flat_scorer) flats; /* pointers as on the host until they are sent */
  WF__VEC(wf__gpu_piece) pieces;
  wf__map64 flat_of, piece_of; /* address of a scorer, of an array -> number */
  char *memory;                /* flats, then pieces */
  uint64_t bytes;
} wf__scorer_store;

/* A scorer shared by streams. It has its own memory and is sent once, not with every chunk. */
typedef struct wf__shared_scorer {
  wf_scorer *scorer;
  uint64_t users;
  wf__scorer_store store;
  bool holds_lists;                    /* it is among the users of its long lists */
  struct wf__rnn_scoring *rnn_scoring; /* of a recurrent scorer or a chain with one, which starts in
                                          `root`; else NULL */
  uint32_t root;
  wf_scorer *on_cpu; /* for scores on the CPU: the scorer, with its recurrent part replaced by the
                        one on the CPU */
  struct wf__shared_scorer *next;
} wf__shared_scorer;

typedef struct wf__gpu_scorers {
  wf__gpu_models models;
  WF__VEC(wf__gpu_list) lists; /* the oldest first */
  wf__scorer_store batch;      /* of the last batch */
  wf__shared_scorer *shared;   /* those of streams */
} wf__gpu_scorers;

/* The scorers of a batch: begin, add each (one that is there already counts once), and send them to
 * the current GPU. */
void wf__gpu_begin_scorers(wf__gpu_scorers *scorers);
wf_status wf__gpu_add_scorer(wf__gpu_scorers *scorers, const wf_scorer *scorer, wf_error *err);
wf_status wf__gpu_send_scorers(wf__gpu_scorers *scorers, const wf__model_room *room, wf_error *err);
/* Where a scorer of the batch is on the GPU; NULL: it is none of the batch's. */
static inline const wf__flat_scorer *wf__gpu_find_scorer(const wf__gpu_scorers *scorers,
                                                         const wf_scorer *scorer) {
  const wf__scorer_store *store = &scorers->batch;
  const uint32_t number = scorer != NULL
                              ? wf__map64_find(&store->flat_of, (uint64_t)(uintptr_t)scorer)
                              : WF__MAP64_NONE;
  return number != WF__MAP64_NONE ? (const wf__flat_scorer *)(const void *)store->memory + number
                                  : NULL;
}

/* Sends the batch's scorers to the worker's GPU. Sets limits.scored and limits.scorer_bytes. */
wf_status wf__gpu_take_scorers(struct wf__gpu_worker *worker, const wf__batch *batch,
                               wf_error *err);
/* Address of an utterance's scorer on the GPU; NULL: it has none. */
static inline const wf__flat_scorer *wf__gpu_scorer_of(const wf__gpu_scorers *scorers,
                                                       const wf__batch *batch, uint32_t utterance) {
  return wf__gpu_find_scorer(scorers, batch->scorers != NULL ? batch->scorers[utterance] : NULL);
}
void wf__gpu_close_scorers(wf__gpu_scorers *scorers);
/* Acquires the scorer. It is sent to the current device if no stream has it yet. */
wf_status wf__gpu_acquire_scorer(struct wf__gpu_worker *worker, const wf_scorer *scorer,
                                 wf__shared_scorer **out, wf_error *err);
/* Ends the sharing; *place may be NULL and becomes NULL. */
void wf__gpu_release_scorer(struct wf__gpu_worker *worker, wf__shared_scorer **place);
/* Where it is on the GPU; NULL for NULL. */
const wf__flat_scorer *wf__shared_scorer_there(const wf__shared_scorer *scorer);

#endif
