/* transducer_round.c - a round of a group: room for it, what is sent, and what is computed
 * (transducer_group.h).
 *
 * Apart from the encoder's part, a round is one launch of a CUDA graph. It is recorded for rounds
 * up to a certain size; the kernels find the numbers of rows and contexts in the block. Graphs are
 * recorded again after memory has moved. */
#include <string.h>

#include "cuda/transducer/transducer_group.h"
#include "decode/backend.h"
#include "search/transducer/network.h"

enum {
  FRAMES_AT_ONCE = WF__TRANSDUCER_FRAMES, /* of a product of encoder outputs */
  ALIGNMENT = 256,
  LEAST_LAUNCH = 8 /* rows */
};
static const char requests_text[] = "requests to the transducer";

/* The GPU address of `data` among the weights. */
static const float *weight(const wf__transducer_group *g, const float *data) {
  return wf__transducer_weight(g->weights, data);
}

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Bytes of an utterance that is copied, with what lies between its frames. */
static uint64_t raw_bytes(const wf__transducer_group *g, const wf_scores *scores, int where) {
  if (where == g->weights->number || scores->num_frames == 0) return 0;
  return ((uint64_t)(scores->num_frames - 1) * (uint64_t)scores->stride +
          (uint64_t)scores->num_columns) *
         wf__dtype_bytes(scores->dtype);
}

wf__transducer_round wf__transducer_measure(const wf__transducer_group *g) {
  wf__transducer_round r = {.num_rows = atomic_load(&g->num_rows),
                            .num_contexts = atomic_load(&g->num_contexts)};
  for (uint64_t i = 0; i < g->begins.size; i++) {
    const wf_scores *begins = g->begins.data[i];
    if (begins == NULL) continue;
    r.num_frames += (uint64_t)begins->num_frames;
    r.raw_bytes += aligned(raw_bytes(g, begins, g->where.data[i]));
  }
  return r;
}

/* --- requests ---------------------------------------------------------------------------- */

/* Inputs of an LSTM: its pending contexts come from their parents. */
static void write_moves(const wf__predictions *p, wf__rnn_move *moves) {
  for (uint64_t i = 0; i < p->pending.size; i++) {
    const uint32_t number = p->pending.data[i], parent = p->parents.data[number];
    moves[i] = (wf__rnn_move){parent == WF__NO_SLOT ? WF__ZERO_SLOT : p->slots.data[parent],
                              p->slots.data[number], p->tokens.data[number], 0};
  }
}

void wf__transducer_write_request(wf__transducer_group *g, size_t lane) {
  wf__predictions *p = g->asking.data[lane];
  const uint64_t row = atomic_fetch_add(&g->num_rows, p->count),
                 context = atomic_fetch_add(&g->num_contexts, p->pending.size);
  char *to = g->host_block.data;
  p->answers = &g->answers;
  p->first_row = row;
  if (row + p->count > g->most_rows || context + p->pending.size > g->most_contexts) return;
  wf__joiner_row *rows = (wf__joiner_row *)(to + g->layout.rows_at) + row;
  uint32_t *slots = (uint32_t *)(to + g->layout.slots_at) + context;
  for (uint64_t i = 0; i < p->pending.size; i++) slots[i] = p->slots.data[p->pending.data[i]];
  to += g->layout.inputs_at + context * g->layout.input_bytes;
  if (g->lstm != NULL)
    write_moves(p, (wf__rnn_move *)(void *)to);
  else
    for (uint64_t i = 0; i < p->digits.size; i++) ((int32_t *)(void *)to)[i] = p->digits.data[i];
  for (size_t i = 0; i < p->count; i++)
    rows[i] = (wf__joiner_row){
        .frame = g->first_frame.data[lane] + (uint32_t)(p->frame - p->first_frame),
        .slot = p->slots.data[p->requested[i]],
        .first = (uint32_t)row,
        .count = (uint32_t)p->count,
        .need = p->needs != NULL ? p->needs[i] : (wf__row_need){-INFINITY, 0, INFINITY},
        .least_waiting = p->least_waiting};
}

/* The sizes that graphs are recorded for: 8, 12, 16, 24, 32, ... A larger one than the round takes
 * blocks that find nothing to do. */
uint32_t wf__transducer_launch_size(uint64_t count) {
  uint64_t size = count > 0 ? LEAST_LAUNCH : 0;
  while (size < count) size = size % 3 == 0 ? size / 3 * 4 : size / 2 * 3;
  return (uint32_t)size;
}

/* --- memory ------------------------------------------------------------------------------ */

wf_status wf__transducer_pin(wf__pinned_buffer *buffer, uint64_t bytes, wf_error *err) {
  if (bytes <= buffer->bytes) return WF_OK;
  if (bytes < 2 * buffer->bytes) bytes = 2 * buffer->bytes;
  cudaFreeHost(buffer->data);
  *buffer = (wf__pinned_buffer){0};
  WF__TRY(wf__pinned_alloc((void **)&buffer->data, bytes, requests_text, err));
  buffer->bytes = bytes;
  return WF_OK;
}

/* Bytes of the integers of the rows of any of the steps. */
static uint64_t slice_bytes(const wf__transducer_group *g, const wf__transducer_round *r) {
  const wf__transducer_weights *w = g->weights;
  const uint64_t frames = r->num_frames < FRAMES_AT_ONCE ? r->num_frames : FRAMES_AT_ONCE,
                 of_steps[] = {
                     wf__sliced_bytes(frames, w->encoder.stride),
                     wf__sliced_bytes(wf__transducer_launch_size(r->num_contexts),
                                      w->predictor.stride),
                     wf__sliced_bytes(wf__transducer_launch_size(r->num_rows), w->output.stride)};
  uint64_t most = 0;
  for (int i = 0; i < 3; i++) most = of_steps[i] > most ? of_steps[i] : most;
  return most;
}

/* Rounds up, so that slowly growing rounds do not allocate each time. */
static wf_status reserve(wf__device_buffer *buffer, uint64_t bytes, wf_error *err) {
  return bytes <= buffer->bytes
             ? WF_OK
             : wf__device_reserve(buffer, bytes + bytes / 4 + 4, requests_text, err);
}

/* Makes room for the requests, if they did not fit, and writes them again. */
static wf_status make_room_for_requests(wf__transducer_group *g, const wf__transducer_round *r,
                                        wf_error *err) {
  if (r->num_rows <= g->most_rows && r->num_contexts <= g->most_contexts) return WF_OK;
  const uint64_t rows = 2 * (r->num_rows > g->most_rows ? r->num_rows : g->most_rows),
                 contexts =
                     2 * (r->num_contexts > g->most_contexts ? r->num_contexts : g->most_contexts);
  wf__round_block *layout = &g->layout;
  if (rows > UINT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "2^31 predictor contexts or more");
  layout->rows_at = ALIGNMENT; /* after the head */
  layout->slots_at = layout->rows_at + aligned(rows * sizeof(wf__joiner_row));
  layout->inputs_at = layout->slots_at + aligned(contexts * sizeof(uint32_t));
  layout->input_bytes = g->lstm != NULL
                            ? sizeof(wf__rnn_move)
                            : (uint64_t)g->weights->model->context_size * sizeof(int32_t);
  const uint64_t bytes = layout->inputs_at + aligned(contexts * layout->input_bytes);
  g->most_rows = g->most_contexts = 0; /* if there is no memory */
  WF__TRY(wf__transducer_pin(&g->host_block, bytes, err));
  WF__TRY(reserve(&g->block, bytes, err));
  g->most_rows = rows;
  g->most_contexts = contexts;
  atomic_store(&g->num_rows, 0);
  atomic_store(&g->num_contexts, 0);
  for (size_t i = 0; i < g->asking.size; i++)
    if (g->asking.data[i] != NULL) wf__transducer_write_request(g, i);
  return WF_OK;
}

static wf_status make_room_for_answers(wf__transducer_group *g, uint64_t num_rows, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  const uint64_t rows = num_rows + num_rows / 4 + 16;
  if (num_rows <= g->most_answers || !g->has_entries) return WF_OK;
  const uint64_t entries_at = aligned(rows * sizeof(wf__answer_head)),
                 durations_at = entries_at + rows * WF__ANSWER_ENTRIES * sizeof(wf__score_entry),
                 tokens_at = durations_at + rows * (uint64_t)model->num_durations * sizeof(float);
  const uint64_t bytes = tokens_at + rows * (uint64_t)model->num_tokens * sizeof(float);
  g->most_answers = 0;
  WF__TRY(g->searches_there ? wf__device_reserve(&g->answer, bytes, requests_text, err)
                            : wf__transducer_pin(&g->host_answer, bytes, err));
  char *data = g->searches_there ? g->answer.data : g->host_answer.data;
  g->answers = (wf__answers){.heads = (wf__answer_head *)data,
                             .entries = (wf__score_entry *)(data + entries_at),
                             .durations = (float *)(data + durations_at),
                             .tokens = (float *)(data + tokens_at)};
  g->most_answers = rows;
  return WF_OK;
}

static wf_status make_slots(wf__transducer_group *g, uint64_t max_slots, wf_error *err) {
  if (max_slots > INT32_MAX) return wf__fail(err, WF_ERR_LIMIT, "2^31 predictor contexts or more");
  WF__TRY(wf__device_grow(&g->rows, max_slots * g->weights->model->width * sizeof(float), g->stream,
                          "predictor contexts", err));
  if (g->lstm != NULL) WF__TRY(wf__gpu_rnn()->grow(g->lstm, max_slots - 1, err));
  g->max_slots = (uint32_t)max_slots;
  return WF_OK;
}

static wf_status make_room(wf__transducer_group *g, const wf__transducer_round *r, wf_error *err) {
  const uint64_t num_slots = atomic_load(&g->num_slots),
                 frames = r->num_frames < FRAMES_AT_ONCE ? r->num_frames : FRAMES_AT_ONCE;
  WF__TRY(wf__transducer_pin(&g->host_frames, r->num_frames * sizeof(wf__encoder_frame), err));
  WF__TRY(reserve(&g->frames, r->num_frames * sizeof(wf__encoder_frame), err));
  WF__TRY(make_room_for_requests(g, r, err));
  WF__TRY(make_room_for_answers(g, r->num_rows, err));
  WF__TRY(reserve(&g->logits,
                  r->num_rows * wf__transducer_num_logits(g->weights->model) * sizeof(float), err));
  WF__TRY(reserve(&g->done, r->num_rows * sizeof(wf__row_done), err));
  WF__TRY(reserve(&g->raw, r->raw_bytes, err));
  WF__TRY(reserve(&g->x, frames * g->weights->model->network->encoder.stride * sizeof(float), err));
  WF__TRY(reserve(&g->slices, slice_bytes(g, r), err));
  return num_slots > g->max_slots ? make_slots(g, 2 * num_slots, err) : WF_OK;
}

wf_status wf__transducer_make_room(wf__transducer_group *g, const wf__transducer_round *r,
                                   uint64_t num_slots, wf_error *err) {
  if (num_slots > g->max_slots) WF__TRY(make_slots(g, num_slots, err));
  return make_room(g, r, err);
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

static wf_status send_frames(wf__transducer_group *g, const wf__transducer_round *r,
                             wf_error *err) {
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

/* --- computing --------------------------------------------------------------------------- */

/* The integers of this round's rows. */
static wf__sliced slices_of(const wf__transducer_group *g, wf__row_count count, uint32_t stride) {
  return wf__sliced_in(g->slices.data, count.most, stride);
}

int wf__transducer_encode(wf__transducer_group *g, const wf__transducer_round *r) {
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
    const wf__sliced outputs = slices_of(g, wf__rows(count), g->weights->encoder.stride);
    if (code == cudaSuccess)
      code = wf__slice_rows(g->x.data, (uint32_t)n->encoder.cols, (uint32_t)n->encoder.stride,
                            wf__rows(count), outputs, g->stream);
    if (code == cudaSuccess)
      code = wf__gpu_slice_product(
          &(wf__slice_product){.w = g->weights->encoder,
                               .num_rows = (uint32_t)n->encoder.rows,
                               .width = (uint32_t)model->width,
                               .x = outputs,
                               .count = wf__rows(count),
                               .bias = weight(g, n->encoder_bias),
                               .to = {&frames->to, sizeof *frames / sizeof frames->to, 1, 0},
                               .y = g->encoder.data,
                               .y_stride = (uint32_t)model->width},
          g->stream);
  }
  return code;
}

/* Of this round's contexts, and of its rows, in GPU memory. */
static wf__row_count contexts_of(const wf__transducer_group *g) {
  const wf__round_head *head = g->block.data;
  return (wf__row_count){g->launch_contexts, 0, &head->num_contexts};
}
static wf__row_count rows_of(const wf__transducer_group *g) {
  const wf__round_head *head = g->block.data;
  return (wf__row_count){g->launch_rows, 0, &head->num_rows};
}

/* The outputs of a stateless predictor. */
static int embed(wf__transducer_group *g, const void *tokens, wf__sliced to) {
  const struct wf__network *n = g->weights->model->network;
  return wf__transducer_predict(tokens, contexts_of(g), (uint32_t)g->weights->model->context_size,
                                g->weights->places.data, (uint32_t)n->embedding.rows,
                                weight(g, n->conv_bias), (uint32_t)n->predictor.stride, to,
                                g->stream);
}

/* The predictor's part of the joiner goes to the slots. */
wf_status wf__transducer_contexts(wf__transducer_group *g, wf_error *err) {
  const uint32_t width = (uint32_t)g->weights->model->width;
  const struct wf__network *n = g->weights->model->network;
  const char *block = g->block.data;
  const uint32_t *slots = (const uint32_t *)(block + g->layout.slots_at);
  const void *inputs = block + g->layout.inputs_at;
  const wf__row_count contexts = contexts_of(g);
  static const char what[] = "the transducer's predictor";
  if (contexts.most == 0) return WF_OK;
  wf__slice_product product = {.w = g->weights->predictor,
                               .num_rows = (uint32_t)n->predictor.rows,
                               .width = width,
                               .x = slices_of(g, contexts, g->weights->predictor.stride),
                               .count = contexts,
                               .bias = weight(g, n->predictor_bias),
                               .to = wf__choose_rows(slots),
                               .y = g->rows.data,
                               .y_stride = width};
  if (g->lstm != NULL) {
    const uint32_t layers = (uint32_t)n->lstm->num_layers;
    WF__TRY(wf__gpu_rnn()->advance_there(g->lstm, inputs, contexts, err));
    product.x = *wf__gpu_rnn()->hidden_there(g->lstm);
    product.from = (wf__row_choice){slots, 1, layers, layers - 1};
  } else {
    WF__CUDA_TRY(embed(g, inputs, product.x), what);
  }
  WF__CUDA_TRY(wf__gpu_slice_product(&product, g->stream), what);
  return WF_OK;
}

static const char joiner_text[] = "the transducer's joiner";

wf__sliced wf__transducer_hidden_of(const wf__transducer_group *g) {
  return slices_of(g, rows_of(g), g->weights->output.stride);
}

wf_status wf__transducer_hidden_rows(wf__transducer_group *g, wf_error *err) {
  const wf_transducer *model = g->weights->model;
  WF__CUDA_TRY(
      wf__transducer_hidden((const void *)((const char *)g->block.data + g->layout.rows_at),
                            rows_of(g), (uint32_t)model->width, g->encoder.data, g->rows.data,
                            model->network->relu, wf__transducer_hidden_of(g), g->stream),
      joiner_text);
  return WF_OK;
}

wf_status wf__transducer_logits(wf__transducer_group *g, wf_error *err) {
  const uint32_t size = (uint32_t)g->weights->model->network->output.rows;
  WF__CUDA_TRY(wf__gpu_slice_product(
                   &(wf__slice_product){.w = g->weights->output,
                                        .num_rows = size,
                                        .x = wf__transducer_hidden_of(g),
                                        .count = rows_of(g),
                                        .bias = weight(g, g->weights->model->network->output_bias),
                                        .y = g->logits.data,
                                        .y_stride = size},
                   g->stream),
               joiner_text);
  return WF_OK;
}

wf__answer_work wf__transducer_answers_of(const wf__transducer_group *g) {
  const wf_transducer *model = g->weights->model;
  return (wf__answer_work){.rows = (const void *)((const char *)g->block.data + g->layout.rows_at),
                           .count = rows_of(g),
                           .num_tokens = (uint32_t)model->num_tokens,
                           .num_durations = (uint32_t)model->num_durations,
                           .blank = (uint32_t)model->blank,
                           .cut = g->cut,
                           .logits = g->logits.data,
                           .rows_done = g->done.data,
                           .answers = g->answers};
}

wf_status wf__transducer_entries(wf__transducer_group *g, wf_error *err) {
  const wf__answer_work work = wf__transducer_answers_of(g);
  WF__CUDA_TRY(wf__transducer_select(&work, g->stream), joiner_text);
  return WF_OK;
}

static wf_status answer(void *user, wf_error *err) {
  wf__transducer_group *g = user;
  WF__CUDA_TRY(wf__transducer_fetch(&g->layout, g->launch_rows, g->launch_contexts,
                                    g->host_block.data, g->block.data, g->stream),
               requests_text);
  WF__TRY(wf__transducer_contexts(g, err));
  WF__TRY(wf__transducer_hidden_rows(g, err));
  WF__TRY(wf__transducer_logits(g, err));
  return wf__transducer_entries(g, err);
}

/* --- graphs ------------------------------------------------------------------------------ */

/* Forgets the graphs if memory that they use has moved, or the options of the batch are others. */
void wf__transducer_check_graphs(wf__transducer_group *g) {
  wf__round_memory now;
  memset(&now, 0, sizeof now); /* they are compared as bytes */
  now.host = g->host_block.data;
  now.block = g->block.data;
  now.slices = g->slices.data;
  now.rows = g->rows.data;
  now.encoder = g->encoder.data;
  now.logits = g->logits.data;
  now.done = g->done.data;
  now.slots_at = g->layout.slots_at;
  now.inputs_at = g->layout.inputs_at;
  now.max_slots = g->max_slots; /* of the LSTM's states */
  now.answers = g->answers;
  now.cut = g->cut;
  if (memcmp(&now, &g->recorded, sizeof now) == 0) return;
  wf__launch_graphs_clear(&g->graphs);
  memcpy(&g->recorded, &now, sizeof now);
}

wf_status wf__transducer_enqueue(wf__transducer_group *g, const wf__transducer_round *r,
                                 wf_error *err) {
  WF__TRY(make_room(g, r, err));
  WF__TRY(send_frames(g, r, err));
  if (r->num_frames > 0) WF__CUDA_TRY(wf__transducer_encode(g, r), "encoder outputs");
  if (r->num_rows == 0) return WF_OK;
  wf__transducer_check_graphs(g);
  *(wf__round_head *)(void *)g->host_block.data =
      (wf__round_head){(uint32_t)r->num_rows, (uint32_t)r->num_contexts};
  g->launch_rows = wf__transducer_launch_size(r->num_rows);
  g->launch_contexts = wf__transducer_launch_size(r->num_contexts);
  return wf__launch_graphs_run(&g->graphs, (uint64_t)g->launch_rows << 32 | g->launch_contexts,
                               g->stream, answer, g, err);
}
