/* transducer_device.c - a transducer on a GPU (transducer/transducer_device.h): groups of searches
 * whose requests are answered in one submission.
 *
 *   rows       [slot][width] the predictor's part; states of an LSTM have the same slots
 *   encoder    [frames of all lanes][width] the encoder's part
 *   transfer   page-locked and here: frames to load, moves, tokens, slots, rows of the joiner
 *   answer     the same: bad logits, then log-probabilities
 *
 *   transfer --> load, product, store: encoder --> advance, product, store: rows
 *            --> hidden, product, normalise: answer --> host */
#ifdef WARPFST_CUDA
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "cuda/device/cuda_call.h"
#include "cuda/rnn/rnn_kernels.h"
#include "cuda/transducer/transducer_kernels.h"
#include "cuda/transducer/transducer_weights.h"
#include "decode/backend.h"
#include "lm/rnn_device.h"
#include "transducer/network.h"
#include "transducer/transducer_device.h"

#ifndef WF__TRANSDUCER_SLOTS /* a test makes them small */
#define WF__TRANSDUCER_SLOTS 4096
#define WF__TRANSDUCER_FRAMES 16384
#endif
enum {
  FIRST_SLOTS = WF__TRANSDUCER_SLOTS,
  FRAMES_AT_ONCE = WF__TRANSDUCER_FRAMES, /* of a product of encoder outputs */
  ZERO_SLOT = 1,                          /* the state before the start */
  FIRST_SLOT,
  ALIGNMENT = 256,
  AT_ONCE = 256 << 10 /* bytes of the transfer block */
};
#define NONE UINT32_MAX
static const char requests_text[] = "requests to the transducer";

typedef struct pinned_buffer {
  char *data;
  uint64_t bytes;
} pinned_buffer;

/* A submission: what is sent, and where in the transfer block. */
struct request {
  uint64_t num_frames, raw_bytes, num_contexts, num_rows;
};

struct wf__transducer_group {
  wf__transducer_weights *weights;
  wf__score_cut cut;
  cudaStream_t stream; /* of the LSTM, if there is one */
  cudaEvent_t caller;  /* what the caller has enqueued */
  wf__rnn_device *lstm;
  wf__device_buffer rows, encoder, frames, raw, x, y, transfer, logits;
  pinned_buffer host_frames, host_transfer, host_answer;
  uint32_t max_slots;
  uint64_t most_rows, most_contexts, most_answers; /* rows and contexts that there is room for */
  uint64_t slots_at, tokens_at, moves_at;          /* in the transfer block; rows are first */
  wf__answers answers;
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

/* The GPU address of `data` among the weights. */
static const float *weight(const wf__transducer_group *g, const float *data) {
  return wf__transducer_weight(g->weights, data);
}

/* --- groups ------------------------------------------------------------------------------ */

static wf_status open_group(wf__transducer_group *g, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__CUDA_TRY(cudaEventCreateWithFlags(&g->caller, cudaEventDisableTiming), "an event");
  atomic_store(&g->num_slots, FIRST_SLOT);
  g->max_slots = FIRST_SLOTS;
  if (g->weights->lstm != NULL) {
    WF__TRY(wf__rnn_device_open(g->weights->lstm, g->max_slots - 1, &g->lstm, err));
    g->stream = wf__rnn_device_stream(g->lstm);
  } else {
    WF__CUDA_TRY(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking), "a stream");
  }
  return wf__device_reserve(&g->rows, g->max_slots * model->width * sizeof(float),
                            "predictor contexts", err);
}

wf_status wf__transducer_group_open(wf__transducer_weights *weights, wf__transducer_group **out,
                                    wf_error *err) {
  *out = NULL;
  wf__transducer_group *g = wf__calloc(1, sizeof *g);
  if (g == NULL) return wf__fail_memory(err, sizeof *g, "a transducer");
  g->weights = weights;
  pthread_mutex_init(&g->mutex, NULL);
  const int caller = wf__callers_device();
  wf_status status = open_group(g, err);
  wf__restore_device(caller);
  if (status == WF_OK)
    *out = g;
  else
    wf__transducer_group_close(g);
  return status;
}

void wf__transducer_group_close(wf__transducer_group *g) {
  if (g == NULL) return;
  const int caller = wf__callers_device();
  cudaSetDevice(g->weights->number);
  wf__device_buffer *buffers[] = {&g->rows, &g->encoder, &g->frames,   &g->raw,
                                  &g->x,    &g->y,       &g->transfer, &g->logits};
  if (g->stream != NULL) cudaStreamSynchronize(g->stream);
  if (g->stream != NULL && g->lstm == NULL) cudaStreamDestroy(g->stream);
  wf__rnn_device_close(g->lstm);
  if (g->caller != NULL) cudaEventDestroy(g->caller);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cudaFree(buffers[i]->data);
  cudaFreeHost(g->host_frames.data);
  cudaFreeHost(g->host_transfer.data);
  cudaFreeHost(g->host_answer.data);
  (void)cudaGetLastError(); /* of freeing: all other errors have been reported */
  wf__restore_device(caller);
  wf__vec_free(&g->first_frame);
  wf__vec_free(&g->begins);
  wf__vec_free(&g->where);
  wf__vec_free(&g->free_slots);
  pthread_mutex_destroy(&g->mutex);
  wf__vec_free(&g->asking);
  free(g);
}

static wf_status begin(wf__transducer_group *g, uint64_t num_frames, void *stream, wf_error *err) {
  static const char what[] = "encoder outputs";
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__CUDA_TRY(cudaEventRecord(g->caller, stream), what);
  WF__CUDA_TRY(cudaStreamWaitEvent(g->stream, g->caller, 0), what);
  return wf__device_reserve(&g->encoder, num_frames * g->weights->model->width * sizeof(float),
                            what, err);
}

wf_status wf__transducer_group_begin(wf__transducer_group *g, const wf__score_cut *cut,
                                     const int64_t *num_frames, size_t num_lanes, void *stream,
                                     wf_error *err) {
  uint64_t all = 0;
  g->cut = *cut;
  atomic_store(&g->num_rows, 0); /* of a batch that failed */
  atomic_store(&g->num_contexts, 0);
  g->first_frame.size = g->begins.size = g->where.size = g->asking.size = 0;
  for (size_t i = 0; i < num_lanes; i++) {
    WF__TRY(wf__vec_push(&g->first_frame, (uint32_t)all, "encoder outputs", err));
    WF__TRY(wf__vec_push(&g->begins, NULL, "encoder outputs", err));
    WF__TRY(wf__vec_push(&g->where, -1, "encoder outputs", err));
    WF__TRY(wf__vec_push(&g->asking, NULL, "encoder outputs", err));
    all += (uint64_t)num_frames[i];
  }
  if (all > UINT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "the longest %zu utterances have 2^32 frames or more",
                    num_lanes);
  const int caller = wf__callers_device();
  wf_status status = begin(g, all, stream, err);
  wf__restore_device(caller);
  return status;
}

/* --- requests ---------------------------------------------------------------------------- */

/* Takes places for a request and, if there is room, writes it there. */
static void write_request(wf__transducer_group *g, size_t lane) {
  wf__predictions *p = g->asking.data[lane];
  const uint64_t digits = (uint64_t)p->model->context_size, /* an LSTM has the moves' tokens */
      row = atomic_fetch_add(&g->num_rows, p->count),
                 context = atomic_fetch_add(&g->num_contexts, p->pending.size);
  char *to = g->host_transfer.data;
  p->answers = &g->answers;
  p->first_row = row;
  if (row + p->count > g->most_rows || context + p->pending.size > g->most_contexts) return;
  wf__joiner_row *rows = (wf__joiner_row *)to + row;
  wf__rnn_move *moves = (wf__rnn_move *)(to + g->moves_at) + context;
  int32_t *tokens = (int32_t *)(to + g->tokens_at) + context * digits;
  uint32_t *slots = (uint32_t *)(to + g->slots_at) + context;
  for (uint64_t i = 0; i < p->pending.size; i++) {
    const uint32_t number = p->pending.data[i], parent = p->parents.data[number];
    slots[i] = p->slots.data[number];
    moves[i] = (wf__rnn_move){parent == NONE ? ZERO_SLOT : p->slots.data[parent], slots[i],
                              p->tokens.data[number], 0};
  }
  for (uint64_t i = 0; i < p->pending.size * digits; i++) tokens[i] = p->digits.data[i];
  for (size_t i = 0; i < p->count; i++)
    rows[i] =
        (wf__joiner_row){.frame = g->first_frame.data[lane] + (uint32_t)(p->frame - p->first_frame),
                         .slot = p->slots.data[p->requested[i]],
                         .first = (uint32_t)row,
                         .count = (uint32_t)p->count,
                         .need = p->needs != NULL ? p->needs[i] : (wf__row_need){-INFINITY, 0},
                         .least_waiting = p->least_waiting};
}

/* A slot that another search has released, or a new one. */
static uint32_t take_slot(wf__transducer_group *g) {
  uint32_t slot = NONE;
  if (atomic_load(&g->num_free) > 0) {
    pthread_mutex_lock(&g->mutex);
    if (g->free_slots.size > 0) slot = g->free_slots.data[--g->free_slots.size];
    atomic_store(&g->num_free, g->free_slots.size);
    pthread_mutex_unlock(&g->mutex);
  }
  return slot != NONE ? slot : (uint32_t)atomic_fetch_add(&g->num_slots, 1);
}

/* Without memory for the list, a slot stays unused until the group is closed. */
static void release_slot(wf__transducer_group *g, uint32_t slot) {
  if (slot != NONE) (void)wf__vec_push(&g->free_slots, slot, "predictor contexts", NULL);
}

void wf__transducer_group_release(wf__transducer_group *g, wf__predictions *p) {
  if (g == NULL) return;
  pthread_mutex_lock(&g->mutex);
  for (uint64_t i = 0; i < p->slots.size; i++) release_slot(g, p->slots.data[i]);
  for (uint64_t i = 0; i < p->free_slots.size; i++) release_slot(g, p->free_slots.data[i]);
  atomic_store(&g->num_free, g->free_slots.size);
  pthread_mutex_unlock(&g->mutex);
  p->slots.size = p->free_slots.size = 0;
}

void wf__transducer_group_put(wf__transducer_group *g, size_t lane, const wf_scores *begins,
                              int where, wf__predictions *p) {
  for (uint64_t i = 0; i < p->pending.size; i++) {
    const uint32_t number = p->pending.data[i];
    p->slots.data[number] =
        p->free_slots.size > 0 ? p->free_slots.data[--p->free_slots.size] : take_slot(g);
    p->done.data[number] = true;
  }
  g->begins.data[lane] = begins;
  g->where.data[lane] = where;
  g->asking.data[lane] = p;
  write_request(g, lane);
}

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Bytes of an utterance that is copied, with what lies between its frames. */
static uint64_t raw_bytes(const wf__transducer_group *g, const wf_scores *scores, int where) {
  if (where == g->weights->number || scores->num_frames == 0) return 0;
  return ((uint64_t)(scores->num_frames - 1) * (uint64_t)scores->stride +
          (uint64_t)scores->num_columns) *
         wf__dtype_bytes(scores->dtype);
}

static struct request measure(const wf__transducer_group *g) {
  struct request r = {.num_rows = atomic_load(&g->num_rows),
                      .num_contexts = atomic_load(&g->num_contexts)};
  for (uint64_t i = 0; i < g->begins.size; i++) {
    const wf_scores *begins = g->begins.data[i];
    if (begins == NULL) continue;
    r.num_frames += (uint64_t)begins->num_frames;
    r.raw_bytes += aligned(raw_bytes(g, begins, g->where.data[i]));
  }
  return r;
}

/* --- memory ------------------------------------------------------------------------------ */

static wf_status reserve_pinned(pinned_buffer *buffer, uint64_t bytes, wf_error *err) {
  if (bytes <= buffer->bytes) return WF_OK;
  if (bytes < 2 * buffer->bytes) bytes = 2 * buffer->bytes;
  cudaFreeHost(buffer->data);
  *buffer = (pinned_buffer){0};
  WF__CUDA_TRY(cudaHostAlloc((void **)&buffer->data, bytes, 0), "page-locked memory");
  buffer->bytes = bytes;
  return WF_OK;
}

/* Most floats of `x` and `y` in any of the steps. */
static uint64_t scratch_floats(const wf__transducer_group *g, const struct request *r) {
  const wf_transducer *model = g->weights->model;
  const struct wf__network *n = model->network;
  uint64_t frames = r->num_frames < FRAMES_AT_ONCE ? r->num_frames : FRAMES_AT_ONCE;
  uint64_t frame = n->encoder.stride > model->width ? n->encoder.stride : model->width;
  uint64_t context = n->predictor.stride;
  if (context < model->width) context = model->width;
  uint64_t most = frames * frame;
  if (r->num_contexts * context > most) most = r->num_contexts * context;
  return r->num_rows * model->width > most ? r->num_rows * model->width : most;
}

/* Rounds up, so that slowly growing rounds do not allocate each time. */
static wf_status reserve(wf__device_buffer *buffer, uint64_t bytes, wf_error *err) {
  return bytes <= buffer->bytes
             ? WF_OK
             : wf__device_reserve(buffer, bytes + bytes / 4 + 4, requests_text, err);
}

/* Of the logits, behind what is found of each row. */
static uint64_t logits_at(const struct request *r) {
  return aligned(r->num_rows * sizeof(wf__row_done));
}

/* Makes room for the requests, if they did not fit, and writes them again. */
static wf_status make_room_for_requests(wf__transducer_group *g, const struct request *r,
                                        wf_error *err) {
  if (r->num_rows <= g->most_rows && r->num_contexts <= g->most_contexts) return WF_OK;
  const uint64_t rows = 2 * (r->num_rows > g->most_rows ? r->num_rows : g->most_rows),
                 contexts =
                     2 * (r->num_contexts > g->most_contexts ? r->num_contexts : g->most_contexts),
                 digits = (uint64_t)g->weights->model->context_size;
  if (rows > UINT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "2^31 predictor contexts or more");
  g->slots_at = aligned(rows * sizeof(wf__joiner_row));
  g->tokens_at = g->slots_at + aligned(contexts * sizeof(uint32_t));
  g->moves_at = g->tokens_at + aligned(contexts * digits * sizeof(int32_t));
  const uint64_t bytes = g->moves_at + contexts * sizeof(wf__rnn_move);
  g->most_rows = g->most_contexts = 0; /* if there is no memory */
  WF__TRY(reserve_pinned(&g->host_transfer, bytes, err));
  WF__TRY(reserve(&g->transfer, bytes, err));
  g->most_rows = rows;
  g->most_contexts = contexts;
  atomic_store(&g->num_rows, 0);
  atomic_store(&g->num_contexts, 0);
  for (size_t i = 0; i < g->asking.size; i++)
    if (g->asking.data[i] != NULL) write_request(g, i);
  return WF_OK;
}

static wf_status make_room_for_answers(wf__transducer_group *g, uint64_t num_rows, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  const uint64_t rows = num_rows + num_rows / 4 + 16;
  if (num_rows <= g->most_answers) return WF_OK;
  const uint64_t entries_at = aligned(rows * sizeof(wf__answer_head)),
                 durations_at = entries_at + rows * WF__ANSWER_ENTRIES * sizeof(wf__score_entry),
                 tokens_at = durations_at + rows * (uint64_t)model->num_durations * sizeof(float);
  g->most_answers = 0;
  WF__TRY(reserve_pinned(&g->host_answer,
                         tokens_at + rows * (uint64_t)model->num_tokens * sizeof(float), err));
  char *data = g->host_answer.data;
  g->answers = (wf__answers){.heads = (wf__answer_head *)data,
                             .entries = (wf__score_entry *)(data + entries_at),
                             .durations = (float *)(data + durations_at),
                             .tokens = (float *)(data + tokens_at)};
  g->most_answers = rows;
  return WF_OK;
}

static wf_status make_room(wf__transducer_group *g, const struct request *r, wf_error *err) {
  const uint64_t scratch = scratch_floats(g, r) * sizeof(float),
                 num_slots = atomic_load(&g->num_slots);
  WF__TRY(reserve_pinned(&g->host_frames, r->num_frames * sizeof(wf__encoder_frame), err));
  WF__TRY(reserve(&g->frames, r->num_frames * sizeof(wf__encoder_frame), err));
  WF__TRY(make_room_for_requests(g, r, err));
  WF__TRY(make_room_for_answers(g, r->num_rows, err));
  WF__TRY(reserve(
      &g->logits,
      logits_at(r) + r->num_rows * wf__transducer_num_logits(g->weights->model) * sizeof(float),
      err));
  WF__TRY(reserve(&g->raw, r->raw_bytes, err));
  WF__TRY(reserve(&g->x, scratch, err));
  WF__TRY(reserve(&g->y, scratch, err));
  if (num_slots <= g->max_slots) return WF_OK;
  const uint64_t max_slots = 2 * num_slots;
  if (max_slots > UINT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "2^31 predictor contexts or more");
  WF__TRY(wf__device_grow(&g->rows, max_slots * g->weights->model->width * sizeof(float), g->stream,
                          "predictor contexts", err));
  if (g->lstm != NULL) WF__TRY(wf__rnn_device_grow(g->lstm, max_slots - 1, err));
  g->max_slots = (uint32_t)max_slots;
  return WF_OK;
}

/* --- sending ----------------------------------------------------------------------------- */

/* Adds the frames of an utterance. Copies it if it is not in this GPU's memory. */
static wf_status put_frames(wf__transducer_group *g, const wf_scores *scores, int where,
                            uint32_t first, wf__encoder_frame **frames, uint64_t *raw_at,
                            wf_error *err) {
  const char *from = scores->data;
  const uint64_t step = (uint64_t)scores->stride * wf__dtype_bytes(scores->dtype),
                 bytes = raw_bytes(g, scores, where);
  if (bytes > 0) {
    char *to = (char *)g->raw.data + *raw_at;
    from = to;
    WF__CUDA_TRY(
        where < 0
            ? cudaMemcpyAsync(to, scores->data, bytes, cudaMemcpyHostToDevice, g->stream)
            : cudaMemcpyPeerAsync(to, g->weights->number, scores->data, where, bytes, g->stream),
        "encoder outputs");
    *raw_at += aligned(bytes);
  }
  for (int64_t t = 0; t < scores->num_frames; t++)
    *(*frames)++ =
        (wf__encoder_frame){from + (uint64_t)t * step, first + (uint32_t)t, (int32_t)scores->dtype};
  return WF_OK;
}

static wf_status send_frames(wf__transducer_group *g, const struct request *r, wf_error *err) {
  wf__encoder_frame *frames = (wf__encoder_frame *)g->host_frames.data;
  uint64_t raw_at = 0;
  if (r->num_frames == 0) return WF_OK;
  for (size_t i = 0; i < g->begins.size; i++)
    if (g->begins.data[i] != NULL)
      WF__TRY(put_frames(g, g->begins.data[i], g->where.data[i], g->first_frame.data[i], &frames,
                         &raw_at, err));
  WF__CUDA_TRY(cudaMemcpyAsync(g->frames.data, g->host_frames.data, r->num_frames * sizeof *frames,
                               cudaMemcpyHostToDevice, g->stream),
               "encoder outputs");
  return WF_OK;
}

/* Sends a part of the transfer block. */
static wf_status send_part(wf__transducer_group *g, uint64_t at, uint64_t bytes, wf_error *err) {
  if (bytes > 0)
    WF__CUDA_TRY(cudaMemcpyAsync((char *)g->transfer.data + at, g->host_transfer.data + at, bytes,
                                 cudaMemcpyHostToDevice, g->stream),
                 requests_text);
  return WF_OK;
}

static wf_status send_requests(wf__transducer_group *g, const struct request *r, wf_error *err) {
  const bool lstm = g->lstm != NULL;
  const uint64_t contexts = r->num_contexts, at = lstm ? g->moves_at : g->tokens_at,
                 bytes = contexts *
                         (lstm ? sizeof(wf__rnn_move)
                               : (uint64_t)g->weights->model->context_size * sizeof(int32_t));
  if (at + bytes <= AT_ONCE) return send_part(g, 0, at + bytes, err); /* calls take longer */
  WF__TRY(send_part(g, 0, r->num_rows * sizeof(wf__joiner_row), err));
  WF__TRY(send_part(g, g->slots_at, contexts * sizeof(uint32_t), err));
  return send_part(g, at, bytes, err);
}

/* --- computing --------------------------------------------------------------------------- */

/* y [count][y_stride] = x times the matrix. */
static int product(const wf__transducer_group *g, const wf__rnn_matrix *m, const float *x,
                   uint64_t count, float *y, uint64_t y_stride) {
  return wf__rnn_product(weight(g, m->data), (uint32_t)m->rows, (uint32_t)m->stride, x,
                         (uint32_t)m->stride, (uint32_t)count, y, (uint32_t)y_stride, g->stream);
}

static int encode(wf__transducer_group *g, const struct request *r) {
  const wf_transducer *model = g->weights->model;
  const struct wf__network *n = model->network;
  const wf__encoder_frame *all = g->frames.data;
  int code = cudaSuccess;
  for (uint64_t first = 0; first < r->num_frames && code == cudaSuccess; first += FRAMES_AT_ONCE) {
    const uint64_t left = r->num_frames - first;
    const uint32_t count = left < FRAMES_AT_ONCE ? (uint32_t)left : FRAMES_AT_ONCE;
    const wf__encoder_frame *frames = all + first;
    code = wf__transducer_load(frames, count, (uint32_t)model->encoder_size, g->x.data,
                               (uint32_t)n->encoder.stride, g->stream);
    if (code == cudaSuccess)
      code = product(g, &n->encoder, g->x.data, count, g->y.data, model->width);
    if (code == cudaSuccess)
      code = wf__transducer_store(g->y.data, count, (uint32_t)n->encoder.rows,
                                  (uint32_t)model->width, weight(g, n->encoder_bias), &frames->to,
                                  sizeof *frames / sizeof frames->to, g->encoder.data, g->stream);
  }
  return code;
}

static int embed(wf__transducer_group *g, const struct request *r) {
  const struct wf__network *n = g->weights->model->network;
  const int32_t *tokens = (const int32_t *)((const char *)g->transfer.data + g->tokens_at);
  return wf__transducer_predict(
      tokens, (uint32_t)r->num_contexts, (uint32_t)g->weights->model->context_size,
      g->weights->places.data, (uint32_t)n->embedding.rows, weight(g, n->conv_bias),
      (uint32_t)n->conv.rows, g->x.data, (uint32_t)n->predictor.stride, g->stream);
}

/* The predictor's outputs go to `x`, its part of the joiner to the slots. */
static wf_status predict(wf__transducer_group *g, const struct request *r, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  const struct wf__network *n = model->network;
  const char *from = g->transfer.data;
  const uint32_t *slots = (const uint32_t *)(from + g->slots_at);
  const wf__rnn_move *moves = (const wf__rnn_move *)(from + g->moves_at);
  static const char what[] = "the transducer's predictor";
  if (r->num_contexts == 0) return WF_OK;
  if (g->lstm != NULL) {
    WF__TRY(wf__rnn_device_advance_there(g->lstm, moves, r->num_contexts, err));
    WF__TRY(wf__rnn_device_tops_there(g->lstm, slots, r->num_contexts, g->x.data, err));
  } else {
    WF__CUDA_TRY(embed(g, r), what);
  }
  WF__CUDA_TRY(product(g, &n->predictor, g->x.data, r->num_contexts, g->y.data, model->width),
               what);
  WF__CUDA_TRY(
      wf__transducer_store(g->y.data, (uint32_t)r->num_contexts, (uint32_t)n->predictor.rows,
                           (uint32_t)model->width, weight(g, n->predictor_bias), slots, 1,
                           g->rows.data, g->stream),
      what);
  return WF_OK;
}

static wf_status join(wf__transducer_group *g, const struct request *r, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  const struct wf__network *n = model->network;
  const uint32_t count = (uint32_t)r->num_rows;
  const wf__joiner_row *rows = g->transfer.data;
  float *logits = (float *)((char *)g->logits.data + logits_at(r));
  static const char what[] = "the transducer's joiner";
  if (count == 0) return WF_OK;
  WF__CUDA_TRY(wf__transducer_hidden(rows, count, (uint32_t)model->width, g->encoder.data,
                                     g->rows.data, n->relu, g->x.data, g->stream),
               what);
  WF__CUDA_TRY(product(g, &n->output, g->x.data, count, logits, n->output.rows), what);
  const wf__answer_work work = {.rows = rows,
                                .count = count,
                                .num_tokens = (uint32_t)model->num_tokens,
                                .num_durations = (uint32_t)model->num_durations,
                                .blank = (uint32_t)model->blank,
                                .cut = g->cut,
                                .logits = logits,
                                .bias = weight(g, n->output_bias),
                                .rows_done = g->logits.data,
                                .answers = g->answers};
  WF__CUDA_TRY(wf__transducer_select(&work, g->stream), what);
  return WF_OK;
}

static wf_status submit(wf__transducer_group *g, const struct request *r, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__TRY(make_room(g, r, err));
  WF__TRY(send_frames(g, r, err));
  WF__TRY(send_requests(g, r, err));
  if (r->num_frames > 0) WF__CUDA_TRY(encode(g, r), "encoder outputs");
  WF__TRY(predict(g, r, err));
  return join(g, r, err);
}

wf_status wf__transducer_group_submit(wf__transducer_group *g, wf__transducer_counts *counts,
                                      wf_error *err) {
  const int caller = wf__callers_device();
  const struct request r = measure(g);
  wf_status status = submit(g, &r, err);
  wf__restore_device(caller);
  for (uint64_t i = 0; i < g->begins.size; i++) {
    g->begins.data[i] = NULL;
    g->asking.data[i] = NULL;
  }
  atomic_store(&g->num_rows, 0);
  atomic_store(&g->num_contexts, 0);
  *counts = (wf__transducer_counts){r.num_rows, r.num_contexts};
  return status;
}

wf_status wf__transducer_group_wait(wf__transducer_group *g, wf_error *err) {
  WF__CUDA_TRY(cudaStreamSynchronize(g->stream), "the transducer");
  return WF_OK;
}
#endif
