/* scorer_store.c - scorers on a GPU, in the form of flat_scorer.h.
 *
 *   models  each in its own memory, sent once (upload_models.c)
 *   lists   long lists of boosts, and the words of models: kept while the last batch or a stream
 *           uses them, and some of the others in case they are used again
 *   memory  [flats] wf__flat_scorer, then their short lists, at multiples of 256 bytes; what several
 *           scorers share is there once */
#include "cuda/scorer/scorer_store.h"

#include <string.h>

#include "cuda/device/device_memory.h"
#include "plan/lane_memory.h"
#include "scorer/scorer.h"

/* --- long lists -------------------------------------------------------------------------- */

#ifndef WF__LONG_LIST_BYTES /* tests set less */
#define WF__LONG_LIST_BYTES \
  (1 << 16) /* a shorter list is copied faster than memory is allocated \
             */
#endif
enum { KEPT_LIST_BYTES = 1 << 26 }; /* of lists that nobody uses; 0 where gpu_memory is limited */

/* The arrays of a part other than the model, with their sizes. */
enum { PART_ARRAYS = 5 };
struct part_arrays {
  const void *data[PART_ARRAYS];
  uint64_t bytes[PART_ARRAYS];
};

static struct part_arrays arrays_of(const wf__flat_part *part) {
  const uint64_t slots = part->table_bits > 0 ? (uint64_t)1 << part->table_bits : 0;
  return (struct part_arrays){
      {part->keys, part->values, part->nodes, part->word_of, part->least},
      {slots * sizeof *part->keys, slots * sizeof *part->values,
       part->num_nodes * sizeof *part->nodes, part->num_labels * sizeof *part->word_of,
       part->num_least * sizeof *part->least}};
}

static bool is_long(const wf__flat_part *part) {
  const struct part_arrays arrays = arrays_of(part);
  uint64_t bytes = 0;
  for (int i = 0; i < PART_ARRAYS; i++) bytes += arrays.bytes[i];
  return bytes >= WF__LONG_LIST_BYTES;
}

static void set_arrays(wf__flat_part *part, const void *const *there) {
  part->keys = there[0];
  part->values = there[1];
  part->nodes = there[2];
  part->word_of = there[3];
  part->least = there[4];
}

/* The list of a part; NULL: it is not on the GPU. */
static wf__gpu_list *find_list(wf__gpu_scorers *scorers, const wf__flat_part *part) {
  for (uint64_t i = 0; i < scorers->lists.size; i++)
    if (scorers->lists.data[i].owner == part->owner) return &scorers->lists.data[i];
  return NULL;
}

static void free_list(wf__gpu_list *list) {
  cudaFree(list->memory);
  wf_scorer_free(list->owner);
}

void wf__gpu_drop_lists(wf__gpu_scorers *scorers, bool is_limited) {
  const uint64_t most = is_limited ? 0 : KEPT_LIST_BYTES;
  uint64_t unused = 0, kept = 0;
  for (uint64_t i = scorers->lists.size; i-- > 0;) {
    wf__gpu_list *list = &scorers->lists.data[i];
    if (list->users > 0 || list->in_batch) continue;
    unused += list->bytes;
    if (unused > most) {
      free_list(list);
      list->owner = NULL;
    }
  }
  for (uint64_t i = 0; i < scorers->lists.size; i++)
    if (scorers->lists.data[i].owner != NULL) scorers->lists.data[kept++] = scorers->lists.data[i];
  scorers->lists.size = kept;
}

static wf_status send_arrays(const wf__gpu_list *list, const struct part_arrays *arrays,
                             cudaStream_t stream, wf_error *err) {
  char *at = list->memory;
  for (int i = 0; i < PART_ARRAYS; i++) {
    if (arrays->bytes[i] > 0)
      WF__TRY(wf__device_send(at, arrays->data[i], arrays->bytes[i], stream, "scorers to the GPU",
                              err));
    at += wf__round_up_256(arrays->bytes[i]);
  }
  return WF_OK;
}

/* The list of a part, which is sent unless it is there. */
static wf_status take_list(wf__gpu_scorers *scorers, const wf__flat_part *part, cudaStream_t stream,
                           wf__gpu_list **out, wf_error *err) {
  *out = find_list(scorers, part);
  if (*out != NULL) return WF_OK;
  const struct part_arrays arrays = arrays_of(part);
  wf__gpu_list list = {.owner = wf_scorer_ref(part->owner)};
  for (int i = 0; i < PART_ARRAYS; i++) list.bytes += wf__round_up_256(arrays.bytes[i]);
  wf_status status = wf__device_alloc((void **)&list.memory, list.bytes, "scorers", err);
  if (status == WF_OK) status = send_arrays(&list, &arrays, stream, err);
  if (status == WF_OK) status = wf__vec_push(&scorers->lists, list, "scorers", err);
  if (status != WF_OK) {
    free_list(&list);
    return status;
  }
  *out = &scorers->lists.data[scorers->lists.size - 1];
  return WF_OK;
}

/* Takes the list of a part, and makes the part's pointers those on the GPU. */
static wf_status place_list(wf__gpu_scorers *scorers, wf__flat_part *part, cudaStream_t stream,
                            wf_error *err) {
  const struct part_arrays arrays = arrays_of(part);
  const void *there[PART_ARRAYS];
  wf__gpu_list *list;
  WF__TRY(take_list(scorers, part, stream, &list, err));
  const char *at = list->memory;
  for (int i = 0; i < PART_ARRAYS; i++) {
    there[i] = arrays.bytes[i] > 0 ? at : NULL;
    at += wf__round_up_256(arrays.bytes[i]);
  }
  set_arrays(part, there);
  return WF_OK;
}

void wf__scorer_store_hold(wf__gpu_scorers *scorers, const wf__scorer_store *store, int sign) {
  for (uint64_t i = 0; i < store->flats.size; i++)
    for (int k = 0; k < store->flats.data[i].num_parts; k++) {
      const wf__flat_part *part = &store->flats.data[i].parts[k];
      wf__gpu_list *list = is_long(part) ? find_list(scorers, part) : NULL;
      if (list != NULL) list->users += (uint64_t)sign;
    }
}

/* --- stores --------------------------------------------------------------------------- */

static wf_status add_piece(wf__scorer_store *store, const void *data, uint64_t bytes,
                           wf_error *err) {
  uint32_t number;
  bool fresh;
  if (data == NULL || bytes == 0) return WF_OK;
  WF__TRY(wf__map64_insert(&store->piece_of, (uint64_t)(uintptr_t)data,
                           (uint32_t)store->pieces.size, &number, &fresh, "scorers", err));
  wf__gpu_piece piece = {data, bytes, 0};
  return fresh ? wf__vec_push(&store->pieces, piece, "scorers", err) : WF_OK;
}

wf_status wf__scorer_store_add(wf__scorer_store *store, const wf_scorer *scorer, wf_error *err) {
  uint32_t number;
  bool fresh;
  WF__TRY(wf__map64_insert(&store->flat_of, (uint64_t)(uintptr_t)scorer,
                           (uint32_t)store->flats.size, &number, &fresh, "scorers", err));
  if (!fresh) return WF_OK;
  wf__flat_scorer flat;
  const char *why_not = wf__scorer_flatten(scorer, &flat);
  if (why_not != NULL)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "this scorer (%s) works on the CPU only", why_not);
  for (int i = 0; i < flat.num_parts; i++) {
    const struct part_arrays arrays = arrays_of(&flat.parts[i]);
    for (int k = 0; k < PART_ARRAYS && !is_long(&flat.parts[i]); k++)
      WF__TRY(add_piece(store, arrays.data[k], arrays.bytes[k], err));
  }
  return wf__vec_push(&store->flats, flat, "scorers", err);
}

static const void *on_device(const wf__scorer_store *store, const void *data) {
  const uint32_t number =
      data != NULL ? wf__map64_find(&store->piece_of, (uint64_t)(uintptr_t)data) : WF__MAP64_NONE;
  return number != WF__MAP64_NONE ? store->memory + store->pieces.data[number].at : NULL;
}

/* Makes the part's pointers those on the GPU. */
static wf_status place_part(wf__gpu_scorers *scorers, const wf__model_room *room,
                            const wf__scorer_store *store, wf__flat_part *part, wf_error *err) {
  if (part->model != NULL) {
    const wf__wlm_view *view;
    WF__TRY(wf__gpu_find_model(&scorers->models, part, room, &view, err));
    part->lm = *view;
  }
  if (is_long(part)) return place_list(scorers, part, room->stream, err);
  set_arrays(part, (const void *[PART_ARRAYS]){
                       on_device(store, part->keys), on_device(store, part->values),
                       on_device(store, part->nodes), on_device(store, part->word_of),
                       on_device(store, part->least)});
  return WF_OK;
}

/* A store that is copied to page-locked memory, and the pieces that a thread takes at a time. */
struct copying {
  const wf__scorer_store *store;
  char *to;
};
enum { PIECES_AT_ONCE = 64 };

static void copy_pieces(void *user, uint64_t item, int worker) {
  (void)worker;
  const struct copying *copying = user;
  const wf__scorer_store *store = copying->store;
  const uint64_t first = item * PIECES_AT_ONCE;
  for (uint64_t i = first; i < store->pieces.size && i < first + PIECES_AT_ONCE; i++) {
    const wf__gpu_piece *piece = &store->pieces.data[i];
    memcpy(copying->to + piece->at, piece->data, piece->bytes);
  }
}

/* Lists for each utterance of a batch take megabytes, so the page-locked memory is kept. */
static wf_status grow_staging(wf__gpu_scorers *scorers, uint64_t bytes, wf_error *err) {
  uint64_t room = WF__LONG_LIST_BYTES;
  if (bytes <= scorers->staging_bytes) return WF_OK;
  while (room < bytes) room *= 2;
  cudaFreeHost(scorers->staging);
  scorers->staging = NULL;
  scorers->staging_bytes = 0;
  WF__TRY(wf__pinned_alloc((void **)&scorers->staging, room, "scorers", err));
  scorers->staging_bytes = room;
  return WF_OK;
}

/* Sends the models and long lists that are not there yet, then everything else in one copy, with
 * pointers as on the GPU. */
static wf_status send_all(wf__gpu_scorers *scorers, const wf__model_room *room,
                          const wf__scorer_store *store, uint64_t bytes, wf__pool *pool,
                          wf_error *err) {
  const uint64_t shares = (store->pieces.size + PIECES_AT_ONCE - 1) / PIECES_AT_ONCE;
  WF__TRY(grow_staging(scorers, bytes, err));
  struct copying copying = {store, scorers->staging};
  if (pool != NULL) wf__pool_run(pool, shares, copy_pieces, &copying);
  for (uint64_t i = 0; i < shares && pool == NULL; i++) copy_pieces(&copying, i, 0);
  for (uint64_t i = 0; i < store->flats.size; i++) {
    wf__flat_scorer flat = store->flats.data[i];
    for (int k = 0; k < flat.num_parts; k++)
      WF__TRY(place_part(scorers, room, store, &flat.parts[k], err));
    memcpy(scorers->staging + i * sizeof flat, &flat, sizeof flat);
  }
  return wf__device_send(store->memory, scorers->staging, bytes, room->stream, "scorers to the GPU",
                         err);
}

static wf_status make_room(wf__scorer_store *store, uint64_t bytes, wf_error *err) {
  if (bytes <= store->bytes) return WF_OK;
  cudaFree(store->memory);
  store->memory = NULL;
  store->bytes = 0;
  WF__TRY(wf__device_alloc((void **)&store->memory, bytes, "scorers", err));
  store->bytes = bytes;
  return WF_OK;
}

/* Sets the place of each piece; returns the bytes of all. */
static uint64_t lay_out(wf__scorer_store *store) {
  uint64_t bytes = wf__round_up_256(store->flats.size * sizeof *store->flats.data);
  for (uint64_t i = 0; i < store->pieces.size; i++) {
    store->pieces.data[i].at = bytes;
    bytes += wf__round_up_256(store->pieces.data[i].bytes);
  }
  return bytes;
}

wf_status wf__scorer_store_send(wf__gpu_scorers *scorers, const wf__model_room *room,
                                wf__scorer_store *store, wf__pool *pool, wf_error *err) {
  const uint64_t bytes = lay_out(store);
  WF__TRY(make_room(store, bytes, err));
  return store->flats.size > 0 ? send_all(scorers, room, store, bytes, pool, err) : WF_OK;
}

void wf__scorer_store_free(wf__scorer_store *store) {
  wf__vec_free(&store->flats);
  wf__vec_free(&store->pieces);
  wf__map64_free(&store->flat_of);
  wf__map64_free(&store->piece_of);
  cudaFree(store->memory);
}

/* --- the batch --------------------------------------------------------------------------- */

/* Notes which of the lists that are there the batch uses. */
static void mark_lists(wf__gpu_scorers *scorers) {
  const wf__scorer_store *batch = &scorers->batch;
  for (uint64_t i = 0; i < scorers->lists.size; i++) scorers->lists.data[i].in_batch = false;
  for (uint64_t i = 0; i < batch->flats.size; i++)
    for (int k = 0; k < batch->flats.data[i].num_parts; k++) {
      wf__gpu_list *list = find_list(scorers, &batch->flats.data[i].parts[k]);
      if (list != NULL) list->in_batch = true;
    }
}

void wf__gpu_begin_scorers(wf__gpu_scorers *scorers) {
  wf__scorer_store *store = &scorers->batch;
  wf__map64_clear(&store->flat_of);
  wf__map64_clear(&store->piece_of);
  store->flats.size = store->pieces.size = 0;
  wf__gpu_drop_models(&scorers->models);
}

wf_status wf__gpu_send_scorers(wf__gpu_scorers *scorers, const wf__model_room *room, wf__pool *pool,
                               wf_error *err) {
  mark_lists(scorers);
  wf__gpu_drop_lists(scorers, room->limit > 0);
  WF__TRY(wf__scorer_store_send(scorers, room, &scorers->batch, pool, err));
  mark_lists(scorers);
  return WF_OK;
}

void wf__gpu_close_scorers(wf__gpu_scorers *scorers) {
  wf__gpu_models_free(&scorers->models);
  for (uint64_t i = 0; i < scorers->lists.size; i++) free_list(&scorers->lists.data[i]);
  wf__vec_free(&scorers->lists);
  wf__scorer_store_free(&scorers->batch);
  cudaFreeHost(scorers->staging);
}
