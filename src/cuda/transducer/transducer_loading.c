/* transducer_loading.c - see transducer_loading.h. */
#include "cuda/transducer/transducer_loading.h"

#include <string.h>

#include "decode/backend.h"

#ifndef WF__LOADING_FRAMES /* a test makes these small */
#define WF__LOADING_FRAMES 8192
#define WF__LOADING_BYTES (8 << 20) /* page-locked memory takes time to make */
#define WF__LOADING_PIECE 128       /* frames that a thread packs at a time */
#endif
enum { ALIGNMENT = 256 };

static const char what[] = "encoder outputs";

/* Of a window of float32. */
static uint64_t most_bytes(const wf__frame_loader *l) {
  const uint64_t piece =
      WF__LOADING_PIECE * (uint64_t)l->group->weights->model->encoder_size * sizeof(float);
  return WF__LOADING_BYTES + piece + ALIGNMENT +
         (WF__LOADING_FRAMES + WF__LOADING_PIECE) * sizeof(wf__encoder_frame);
}

wf_status wf__frame_loader_open(wf__frame_loader *l, wf__transducer_group *group, wf_error *err) {
  l->group = group;
  for (int i = 0; i < 2; i++)
    WF__CUDA_TRY(cudaEventCreateWithFlags(&l->sent[i], cudaEventDisableTiming), "an event");
  for (int i = 0; i < 2; i++) WF__TRY(wf__transducer_pin(&l->windows[i], most_bytes(l), err));
  return WF_OK;
}

void wf__frame_loader_close(wf__frame_loader *l) {
  for (int i = 0; i < 2; i++) {
    if (l->sent[i] != NULL) cudaEventDestroy(l->sent[i]);
    cudaFreeHost(l->windows[i].data);
  }
  wf__vec_free(&l->scores);
  wf__vec_free(&l->where);
  wf__vec_free(&l->pieces);
}

wf_status wf__frame_loader_begin(wf__frame_loader *l, const wf_scores *const *scores,
                                 const int *where, size_t count, wf_error *err) {
  l->scores.size = l->where.size = l->item = 0;
  l->frame = 0;
  l->num_windows = 0;
  WF__TRY(wf__vec_grow(&l->scores, count, what, err));
  WF__TRY(wf__vec_grow(&l->where, count, what, err));
  for (size_t i = 0; i < count; i++) {
    l->scores.data[l->scores.size++] = *scores[i];
    l->where.data[l->where.size++] = where[i];
  }
  return WF_OK;
}

/* --- a window ---------------------------------------------------------------------------- */

static bool is_there(const wf__frame_loader *l, uint32_t item) {
  return l->where.data[item] == l->group->weights->number;
}

static uint64_t row_bytes(const wf__frame_loader *l, const wf_scores *scores) {
  return (uint64_t)l->group->weights->model->encoder_size * wf__dtype_bytes(scores->dtype);
}

/* Bytes between frames: those of host memory are packed. */
static uint64_t step_of(const wf__frame_loader *l, uint32_t item) {
  const wf_scores *scores = &l->scores.data[item];
  return l->where.data[item] < 0 ? row_bytes(l, scores)
                                 : (uint64_t)scores->stride * wf__dtype_bytes(scores->dtype);
}

static const char *frame_of(const wf_scores *scores, int64_t frame) {
  return (const char *)scores->data +
         (uint64_t)(frame * scores->stride) * wf__dtype_bytes(scores->dtype);
}

/* Chooses the frames of the next window. */
static wf_status plan(wf__frame_loader *l, wf__transducer_round *round, wf_error *err) {
  *round = (wf__transducer_round){0};
  l->pieces.size = 0;
  while (l->item < l->scores.size && round->num_frames < WF__LOADING_FRAMES &&
         round->raw_bytes < WF__LOADING_BYTES) {
    const wf_scores *scores = &l->scores.data[l->item];
    const int64_t left = scores->num_frames - l->frame;
    wf__frame_piece piece = {.item = (uint32_t)l->item,
                             .first = l->frame,
                             .count = left < WF__LOADING_PIECE ? left : WF__LOADING_PIECE,
                             .at = round->raw_bytes};
    if (left == 0) {
      l->item++;
      l->frame = 0;
      continue;
    }
    if (!is_there(l, piece.item))
      piece.bytes = (uint64_t)(piece.count - 1) * step_of(l, piece.item) + row_bytes(l, scores);
    WF__TRY(wf__vec_push(&l->pieces, piece, what, err));
    round->num_frames += (uint64_t)piece.count;
    round->raw_bytes += (piece.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    l->frame += piece.count;
  }
  return WF_OK;
}

static char *window_of(const wf__frame_loader *l) { return l->windows[l->num_windows % 2].data; }

/* Packs a piece that is in host memory, and has it looked at. */
static void pack(void *data, uint64_t i, int worker) {
  const wf__frame_loader *l = data;
  const wf__frame_piece *piece = &l->pieces.data[i];
  const wf_scores *scores = &l->scores.data[piece->item];
  const uint64_t row = row_bytes(l, scores);
  char *to = window_of(l) + piece->at;
  if (l->where.data[piece->item] >= 0) return;
  if (scores->stride == l->group->weights->model->encoder_size)
    memcpy(to, frame_of(scores, piece->first), (uint64_t)piece->count * row);
  else
    for (int64_t t = 0; t < piece->count; t++)
      memcpy(to + (uint64_t)t * row, frame_of(scores, piece->first + t), row);
  const wf_scores packed = {.data = to,
                            .num_frames = piece->count,
                            .num_columns = l->group->weights->model->encoder_size,
                            .stride = l->group->weights->model->encoder_size,
                            .dtype = scores->dtype};
  l->crew->look(l->crew->user, piece->item, &packed);
}

static void list_frames(const wf__frame_loader *l, wf__encoder_frame *frames) {
  for (uint64_t i = 0; i < l->pieces.size; i++) {
    const wf__frame_piece *piece = &l->pieces.data[i];
    const wf_scores *scores = &l->scores.data[piece->item];
    const char *from = piece->bytes == 0 ? frame_of(scores, piece->first)
                                         : (const char *)l->group->raw.data + piece->at;
    const uint32_t to = l->group->first_frame.data[piece->item] + (uint32_t)piece->first;
    for (int64_t t = 0; t < piece->count; t++)
      *frames++ = (wf__encoder_frame){from + (uint64_t)t * step_of(l, piece->item),
                                      to + (uint32_t)t, (int32_t)scores->dtype};
  }
}

/* What is in another GPU's memory. */
static wf_status copy_from_peers(const wf__frame_loader *l, wf_error *err) {
  wf__transducer_group *g = l->group;
  for (uint64_t i = 0; i < l->pieces.size; i++) {
    const wf__frame_piece *piece = &l->pieces.data[i];
    if (piece->bytes == 0 || l->where.data[piece->item] < 0) continue;
    WF__CUDA_TRY(cudaMemcpyPeerAsync((char *)g->raw.data + piece->at, g->weights->number,
                                     frame_of(&l->scores.data[piece->item], piece->first),
                                     l->where.data[piece->item], piece->bytes, g->stream),
                 what);
  }
  return WF_OK;
}

static wf_status send(wf__frame_loader *l, const wf__transducer_round *round, wf_error *err) {
  wf__transducer_group *g = l->group;
  wf__encoder_frame *frames = (wf__encoder_frame *)(void *)(window_of(l) + round->raw_bytes);
  list_frames(l, frames);
  if (round->raw_bytes > 0)
    WF__CUDA_TRY(cudaMemcpyAsync(g->raw.data, window_of(l), round->raw_bytes,
                                 cudaMemcpyHostToDevice, g->stream),
                 what);
  WF__TRY(copy_from_peers(l, err));
  WF__CUDA_TRY(cudaMemcpyAsync(g->frames.data, frames, round->num_frames * sizeof *frames,
                               cudaMemcpyHostToDevice, g->stream),
               what);
  WF__CUDA_TRY(wf__transducer_encode(g, round), what);
  WF__CUDA_TRY(cudaEventRecord(l->sent[l->num_windows % 2], g->stream), what);
  return WF_OK;
}

wf_status wf__frame_loader_next(wf__frame_loader *l, const wf__packing_crew *crew, bool *is_loaded,
                                wf_error *err) {
  wf__transducer_round round;
  const uint64_t i = l->num_windows % 2;
  WF__TRY(plan(l, &round, err));
  *is_loaded = l->item == l->scores.size;
  if (round.num_frames == 0) return WF_OK;
  if (l->num_windows >= 2) WF__CUDA_TRY(cudaEventSynchronize(l->sent[i]), what);
  WF__TRY(wf__transducer_pin(&l->windows[i],
                             round.raw_bytes + round.num_frames * sizeof(wf__encoder_frame), err));
  WF__TRY(wf__transducer_make_room(l->group, &round, 0, err));
  l->crew = crew;
  crew->run(crew->user, l->pieces.size, pack, l);
  WF__TRY(send(l, &round, err));
  l->num_windows++;
  return WF_OK;
}
