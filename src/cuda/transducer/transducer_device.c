/* transducer_device.c - a transducer on a GPU (transducer/transducer_device.h): its weights, and
 * groups of searches whose requests are answered in one submission.
 *
 *   weights    the network's memory as it is, so every pointer into it has its place here
 *   rows       [slot][width] the predictor's part; states of an LSTM have the same slots
 *   encoder    [frames of all lanes][width] the encoder's part
 *   transfer   page-locked and here: frames to load, moves, tokens, slots, rows of the joiner
 *   answer     the same: bad logits, then log-probabilities
 *
 *   transfer --> load, product, store: encoder --> advance, product, store: rows
 *            --> hidden, product, normalise: answer --> host */
#ifdef WARPFST_CUDA
#include <string.h>

#include "cuda/device/cuda_call.h"
#include "cuda/device/gpu_profile.h"
#include "cuda/rnn/rnn_kernels.h"
#include "cuda/transducer/transducer_kernels.h"
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
  ALIGNMENT = 256
};
#define NONE UINT32_MAX
static const char requests_text[] = "requests to the transducer";

struct wf__transducer_weights {
  wf_transducer *model;
  int number; /* of the GPU */
  wf__device_buffer memory;
  wf_rnnlm *lstm; /* there; NULL: stateless */
};

typedef struct pinned_buffer {
  char *data;
  uint64_t bytes;
} pinned_buffer;

/* What a submission sends, and where in the transfer block. */
struct request {
  uint64_t num_frames, raw_bytes, num_contexts, num_tokens, num_rows;
  uint64_t frames_at, moves_at, tokens_at, slots_at, rows_at, bytes;
};

struct wf__transducer_group {
  wf__transducer_weights *weights;
  cudaStream_t stream; /* of the LSTM, if there is one */
  cudaEvent_t caller;  /* what the caller has enqueued */
  wf__rnn_device *lstm;
  wf__device_buffer rows, encoder, raw, x, y, transfer, answer;
  pinned_buffer host_transfer, host_answer;
  uint32_t num_slots, max_slots;
  WF__VEC(uint32_t) first_frame; /* by lane: of its rows in `encoder` */
  WF__VEC(wf__predictions *) waiting;
};

/* --- weights ----------------------------------------------------------------------------- */

static wf_status send_weights(wf__transducer_weights *w, const char *name, wf_error *err) {
  const struct wf__network *n = w->model->network;
  static const char what[] = "the transducer";
  WF__CUDA_TRY(cudaSetDevice(w->number), "choosing the GPU");
  WF__TRY(wf__device_reserve(&w->memory, n->num_floats * sizeof(float), what, err));
  WF__TRY(
      wf__device_send(w->memory.data, n->memory, n->num_floats * sizeof(float), NULL, what, err));
  return n->lstm != NULL ? wf_rnnlm_on_device(n->lstm, name, &w->lstm, err) : WF_OK;
}

wf_status wf__transducer_weights_send(const wf_transducer *model, const char *name,
                                      wf__transducer_weights **out, wf_error *err) {
  wf__devices devices;
  wf__gpu_profile profile;
  *out = NULL;
  WF__TRY(wf__devices_parse(name, &devices, err));
  if (model->network == NULL || devices.count != 1)
    return wf__fail(err, WF_ERR_UNSUPPORTED,
                    "device %s: a built-in transducer works on one GPU: cuda or cuda:N", name);
  wf__transducer_weights *w = wf__calloc(1, sizeof *w);
  if (w == NULL) return wf__fail_memory(err, sizeof *w, "a transducer");
  w->model = wf_transducer_ref(model);
  w->number = devices.numbers[0];
  const int caller = wf__callers_device();
  wf_status status = wf__gpu_profile_read(w->number, &profile, err);
  if (status == WF_OK) status = send_weights(w, name, err);
  wf__restore_device(caller);
  if (status == WF_OK)
    *out = w;
  else
    wf__transducer_weights_free(w);
  return status;
}

void wf__transducer_weights_free(wf__transducer_weights *w) {
  if (w == NULL) return;
  const int caller = wf__callers_device();
  cudaSetDevice(w->number);
  cudaFree(w->memory.data);
  (void)cudaGetLastError(); /* of cudaFree: all other errors have been reported */
  wf__restore_device(caller);
  wf_rnnlm_free(w->lstm);
  wf_transducer_free(w->model);
  free(w);
}

wf_status wf__transducer_weights_can_read(const wf__transducer_weights *w, const wf_scores *scores,
                                          wf_error *err) {
  struct cudaPointerAttributes attributes = {0};
  if (!scores->on_device || scores->num_frames == 0) return WF_OK;
  WF__CUDA_TRY(cudaPointerGetAttributes(&attributes, scores->data), "encoder outputs");
  const bool there = attributes.type == cudaMemoryTypeManaged ||
                     (attributes.type == cudaMemoryTypeDevice && attributes.device == w->number);
  return there ? WF_OK
               : wf__fail(err, WF_ERR_ARGUMENT,
                          "the encoder outputs are not in the memory of GPU %d, which decodes",
                          w->number);
}

/* The GPU address of `data` among the weights. */
static const float *weight(const wf__transducer_group *g, const float *data) {
  return (const float *)g->weights->memory.data + (data - g->weights->model->network->memory);
}

/* --- groups ------------------------------------------------------------------------------ */

static wf_status open_group(wf__transducer_group *g, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__CUDA_TRY(cudaEventCreateWithFlags(&g->caller, cudaEventDisableTiming), "an event");
  g->num_slots = FIRST_SLOT;
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
  wf__device_buffer *buffers[] = {&g->rows, &g->encoder,  &g->raw,   &g->x,
                                  &g->y,    &g->transfer, &g->answer};
  if (g->stream != NULL) cudaStreamSynchronize(g->stream);
  if (g->stream != NULL && g->lstm == NULL) cudaStreamDestroy(g->stream);
  wf__rnn_device_close(g->lstm);
  if (g->caller != NULL) cudaEventDestroy(g->caller);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cudaFree(buffers[i]->data);
  cudaFreeHost(g->host_transfer.data);
  cudaFreeHost(g->host_answer.data);
  (void)cudaGetLastError(); /* of freeing: all other errors have been reported */
  wf__restore_device(caller);
  wf__vec_free(&g->first_frame);
  wf__vec_free(&g->waiting);
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

wf_status wf__transducer_group_begin(wf__transducer_group *g, const int64_t *num_frames,
                                     size_t num_lanes, void *stream, wf_error *err) {
  uint64_t all = 0;
  g->first_frame.size = 0;
  for (size_t i = 0; i < num_lanes; i++) {
    WF__TRY(wf__vec_push(&g->first_frame, (uint32_t)all, "encoder outputs", err));
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

/* --- gathering requests ------------------------------------------------------------------ */

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Bytes of an utterance in host memory, with what lies between its frames. */
static uint64_t raw_bytes(const wf_scores *scores) {
  if (scores->on_device || scores->num_frames == 0) return 0;
  return ((uint64_t)(scores->num_frames - 1) * (uint64_t)scores->stride +
          (uint64_t)scores->num_columns) *
         wf__dtype_bytes(scores->dtype);
}

static struct request measure(const wf__transducer_lane *lanes, size_t num_lanes) {
  struct request r = {0};
  for (size_t i = 0; i < num_lanes; i++) {
    if (lanes[i].begins != NULL) {
      r.num_frames += (uint64_t)lanes[i].begins->num_frames;
      r.raw_bytes += aligned(raw_bytes(lanes[i].begins));
    }
    if (lanes[i].predictions == NULL) continue;
    r.num_contexts += lanes[i].predictions->pending.size;
    r.num_tokens += lanes[i].predictions->digits.size;
    r.num_rows += lanes[i].predictions->count;
  }
  r.moves_at = aligned(r.num_frames * sizeof(wf__encoder_frame));
  r.tokens_at = r.moves_at + aligned(r.num_contexts * sizeof(wf__rnn_move));
  r.slots_at = r.tokens_at + aligned(r.num_tokens * sizeof(int32_t));
  r.rows_at = r.slots_at + aligned(r.num_contexts * sizeof(uint32_t));
  r.bytes = r.rows_at + aligned(r.num_rows * sizeof(wf__joiner_row));
  return r;
}

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
  uint64_t context = n->predictor.stride > n->conv.stride ? n->predictor.stride : n->conv.stride;
  if (context < model->width) context = model->width;
  uint64_t most = frames * frame;
  if (r->num_contexts * context > most) most = r->num_contexts * context;
  return r->num_rows * model->width > most ? r->num_rows * model->width : most;
}

static uint64_t answer_bytes(const wf__transducer_group *g, const struct request *r) {
  return aligned(r->num_rows * sizeof(wf__bad_logit)) +
         r->num_rows * wf__transducer_num_logits(g->weights->model) * sizeof(float);
}

/* Rounds up, so that slowly growing rounds do not allocate each time. */
static wf_status reserve(wf__device_buffer *buffer, uint64_t bytes, wf_error *err) {
  return bytes <= buffer->bytes
             ? WF_OK
             : wf__device_reserve(buffer, bytes + bytes / 4 + 4, requests_text, err);
}

static wf_status make_room(wf__transducer_group *g, const struct request *r, wf_error *err) {
  const uint64_t scratch = scratch_floats(g, r) * sizeof(float), slots = r->num_contexts;
  WF__TRY(reserve_pinned(&g->host_transfer, r->bytes, err));
  WF__TRY(reserve_pinned(&g->host_answer, answer_bytes(g, r), err));
  WF__TRY(reserve(&g->transfer, r->bytes, err));
  WF__TRY(reserve(&g->answer, answer_bytes(g, r), err));
  WF__TRY(reserve(&g->raw, r->raw_bytes, err));
  WF__TRY(reserve(&g->x, scratch, err));
  WF__TRY(reserve(&g->y, scratch, err));
  if (g->num_slots + slots <= g->max_slots) return WF_OK;
  const uint64_t max_slots = 2 * (g->num_slots + slots);
  if (max_slots > UINT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "2^31 predictor contexts or more");
  WF__TRY(wf__device_grow(&g->rows, max_slots * g->weights->model->width * sizeof(float), g->stream,
                          "predictor contexts", err));
  if (g->lstm != NULL) WF__TRY(wf__rnn_device_grow(g->lstm, max_slots - 1, err));
  g->max_slots = (uint32_t)max_slots;
  return WF_OK;
}

/* Adds the frames of an utterance. Copies it if it is in host memory. */
static wf_status put_frames(wf__transducer_group *g, const wf_scores *scores, uint32_t first,
                            wf__encoder_frame **frames, uint64_t *raw_at, wf_error *err) {
  const char *from = scores->data;
  const uint64_t step = (uint64_t)scores->stride * wf__dtype_bytes(scores->dtype),
                 bytes = raw_bytes(scores);
  if (bytes > 0) {
    from = (const char *)g->raw.data + *raw_at;
    WF__CUDA_TRY(cudaMemcpyAsync((char *)g->raw.data + *raw_at, scores->data, bytes,
                                 cudaMemcpyHostToDevice, g->stream),
                 "encoder outputs");
    *raw_at += aligned(bytes);
  }
  for (int64_t t = 0; t < scores->num_frames; t++)
    *(*frames)++ =
        (wf__encoder_frame){from + (uint64_t)t * step, first + (uint32_t)t, (int32_t)scores->dtype};
  return WF_OK;
}

/* Adds the contexts of a search that wait for the predictor, and gives them slots. */
static void put_contexts(wf__transducer_group *g, wf__predictions *p, wf__rnn_move **moves,
                         int32_t **tokens, uint32_t **slots) {
  for (uint64_t i = 0; i < p->pending.size; i++) {
    const uint32_t number = p->pending.data[i], parent = p->parents.data[number];
    const uint32_t slot =
        p->free_slots.size > 0 ? p->free_slots.data[--p->free_slots.size] : g->num_slots++;
    *(*moves)++ = (wf__rnn_move){parent == NONE ? ZERO_SLOT : p->slots.data[parent], slot,
                                 p->tokens.data[number], 0};
    *(*slots)++ = p->slots.data[number] = slot;
    p->done.data[number] = true;
  }
  for (uint64_t i = 0; i < p->digits.size; i++) *(*tokens)++ = p->digits.data[i];
}

static wf_status fill(wf__transducer_group *g, const wf__transducer_lane *lanes, size_t num_lanes,
                      const struct request *r, wf_error *err) {
  char *to = g->host_transfer.data;
  wf__encoder_frame *frames = (wf__encoder_frame *)to;
  wf__rnn_move *moves = (wf__rnn_move *)(to + r->moves_at);
  int32_t *tokens = (int32_t *)(to + r->tokens_at);
  uint32_t *slots = (uint32_t *)(to + r->slots_at);
  wf__joiner_row *rows = (wf__joiner_row *)(to + r->rows_at);
  uint64_t raw_at = 0;
  g->waiting.size = 0;
  for (size_t i = 0; i < num_lanes; i++) {
    wf__predictions *p = lanes[i].predictions;
    const uint32_t first = g->first_frame.data[i];
    if (lanes[i].begins != NULL)
      WF__TRY(put_frames(g, lanes[i].begins, first, &frames, &raw_at, err));
    if (p == NULL) continue;
    put_contexts(g, p, &moves, &tokens, &slots);
    for (size_t k = 0; k < p->count; k++)
      *rows++ = (wf__joiner_row){first + (uint32_t)p->frame, p->slots.data[p->requested[k]]};
    WF__TRY(wf__vec_push(&g->waiting, p, "a batch", err));
  }
  WF__CUDA_TRY(cudaMemcpyAsync(g->transfer.data, to, r->bytes, cudaMemcpyHostToDevice, g->stream),
               requests_text);
  return WF_OK;
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
  const wf__encoder_frame *all = g->transfer.data;
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
  const uint32_t count = (uint32_t)r->num_contexts, stride = (uint32_t)n->predictor.stride;
  const int32_t *tokens = (const int32_t *)((const char *)g->transfer.data + r->tokens_at);
  int code = wf__transducer_embed(tokens, count, (uint32_t)g->weights->model->context_size,
                                  weight(g, n->embedding.data), (uint32_t)n->embedding.cols,
                                  (uint32_t)n->embedding.stride, g->y.data,
                                  (uint32_t)n->conv.stride, g->stream);
  if (code == cudaSuccess) code = product(g, &n->conv, g->y.data, count, g->x.data, stride);
  return code == cudaSuccess ? wf__transducer_relu(g->x.data, count, (uint32_t)n->conv.rows, stride,
                                                   weight(g, n->conv_bias), g->stream)
                             : code;
}

/* The predictor's outputs go to `x`, its part of the joiner to the slots. */
static wf_status predict(wf__transducer_group *g, const struct request *r, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  const struct wf__network *n = model->network;
  const char *from = g->transfer.data;
  const uint32_t *slots = (const uint32_t *)(from + r->slots_at);
  const wf__rnn_move *moves = (const wf__rnn_move *)(from + r->moves_at);
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
  const wf__joiner_row *rows =
      (const wf__joiner_row *)((const char *)g->transfer.data + r->rows_at);
  wf__bad_logit *bad = g->answer.data;
  float *logits = (float *)((char *)g->answer.data + aligned(count * sizeof *bad));
  static const char what[] = "the transducer's joiner";
  if (count == 0) return WF_OK;
  WF__CUDA_TRY(wf__transducer_hidden(rows, count, (uint32_t)model->width, g->encoder.data,
                                     g->rows.data, n->relu, g->x.data, g->stream),
               what);
  WF__CUDA_TRY(product(g, &n->output, g->x.data, count, logits, n->output.rows), what);
  WF__CUDA_TRY(wf__transducer_normalise(logits, count, (uint32_t)model->num_tokens,
                                        (uint32_t)model->num_durations, weight(g, n->output_bias),
                                        bad, g->stream),
               what);
  WF__CUDA_TRY(cudaMemcpyAsync(g->host_answer.data, g->answer.data, answer_bytes(g, r),
                               cudaMemcpyDeviceToHost, g->stream),
               what);
  return WF_OK;
}

static wf_status submit(wf__transducer_group *g, const wf__transducer_lane *lanes, size_t num_lanes,
                        wf_error *err) {
  const struct request r = measure(lanes, num_lanes);
  WF__CUDA_TRY(cudaSetDevice(g->weights->number), "choosing the GPU");
  WF__TRY(make_room(g, &r, err));
  WF__TRY(fill(g, lanes, num_lanes, &r, err));
  WF__CUDA_TRY(encode(g, &r), "encoder outputs");
  WF__TRY(predict(g, &r, err));
  WF__TRY(join(g, &r, err));
  const size_t size = wf__transducer_num_logits(g->weights->model);
  const wf__bad_logit *bad = (const wf__bad_logit *)g->host_answer.data;
  float *scores = (float *)(g->host_answer.data + aligned(r.num_rows * sizeof *bad));
  for (uint64_t i = 0; i < g->waiting.size; i++) {
    wf__predictions *p = g->waiting.data[i];
    p->bad = bad;
    p->scores = scores;
    bad += p->count;
    scores += p->count * size;
  }
  return WF_OK;
}

wf_status wf__transducer_group_submit(wf__transducer_group *g, const wf__transducer_lane *lanes,
                                      size_t num_lanes, wf_error *err) {
  const int caller = wf__callers_device();
  wf_status status = submit(g, lanes, num_lanes, err);
  wf__restore_device(caller);
  return status;
}

wf_status wf__transducer_group_wait(wf__transducer_group *g, wf_error *err) {
  WF__CUDA_TRY(cudaStreamSynchronize(g->stream), "the transducer");
  return WF_OK;
}
#endif
