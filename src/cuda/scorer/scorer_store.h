/* scorer_store.h - scorers on a GPU: those of a batch, and what those of streams are made of. */
#ifndef WF_CUDA_SCORER_SCORER_STORE_H
#define WF_CUDA_SCORER_SCORER_STORE_H

#include "base/map64.h"
#include "base/threads.h"
#include "cuda/scorer/upload_models.h"

/* The arrays of a long list of boosts (or of a model's words), in memory of their own. */
typedef struct wf__gpu_list {
  wf_scorer *owner;
  char *memory;
  uint64_t bytes;
  uint64_t users; /* stores that are held and contain it */
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

typedef struct wf__gpu_scorers {
  wf__gpu_models models;
  WF__VEC(wf__gpu_list) lists; /* the oldest first */
  wf__scorer_store batch;      /* of the last batch */
  char *staging;               /* page-locked: a store while it is sent */
  uint64_t staging_bytes;
} wf__gpu_scorers;

/* Adds a scorer, unless it is there. */
wf_status wf__scorer_store_add(wf__scorer_store *store, const wf_scorer *scorer, wf_error *err);
/* Sends all to the current GPU, with what is not there yet of models and long lists. `pool`: threads
 * that help; NULL: none. */
wf_status wf__scorer_store_send(wf__gpu_scorers *scorers, const wf__model_room *room,
                                wf__scorer_store *store, wf__pool *pool, wf_error *err);
/* Counts the store among the users of its lists (sign 1), or no longer (-1). */
void wf__scorer_store_hold(wf__gpu_scorers *scorers, const wf__scorer_store *store, int sign);
void wf__scorer_store_free(wf__scorer_store *store);
/* Frees lists that neither the last batch nor a store that is held uses, but for the newest that
 * fit. `is_limited`: nothing is kept. */
void wf__gpu_drop_lists(wf__gpu_scorers *scorers, bool is_limited);

/* The scorers of a batch: begin, add each to `batch`, and send them to the current GPU. */
void wf__gpu_begin_scorers(wf__gpu_scorers *scorers);
wf_status wf__gpu_send_scorers(wf__gpu_scorers *scorers, const wf__model_room *room, wf__pool *pool,
                               wf_error *err);
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
void wf__gpu_close_scorers(wf__gpu_scorers *scorers);

#endif
