/* rnn_device.c - a recurrent language model on a GPU: its weights, its slots, and calls that send
 * moves and requests and fetch costs (lm/rnn_device.h).
 *
 *   weights          the model's `dense` array as it is, so every pointer into it has its place
 *                    here; cells; paths. Once for all that use the model
 *   slots            states [num_slots + 1][state], norms [num_slots + 1]
 *   rows             what the moves of one launch need: inputs, previous states, products
 *   transfer block   page-locked: moves or requests to the GPU, costs from the back */
#include "cuda/device/device_memory.h"
#include "cuda/device/gpu_profile.h"
#include "cuda/rnn/exact_lstm.h"
#include "cuda/rnn/rnn_gpu.h"
#include "cuda/rnn/rnn_kernels.h"
#include "cuda/rnn/rnn_weights.h"
#include "decode/backend.h"

#include <string.h>

#ifndef WF__RNN_ROWS /* a test makes it small, to test splitting into several launches */
#define WF__RNN_ROWS 4096
#define WF__RNN_NORM_COLUMNS 4096
#endif
enum {
  MOST_ROWS = WF__RNN_ROWS,
  LEAST_ROWS = 16,
  NORM_ROWS = MOST_ROWS < 512 ? MOST_ROWS : 512,
  NORM_COLUMNS = WF__RNN_NORM_COLUMNS,
  TRANSFER_BYTES = MOST_ROWS * 256
};
#define ROW_BYTES_TOGETHER ((uint64_t)64 << 20)
#define MOST_EXACT_BYTES ((uint64_t)256 << 20) /* in one launch, most rounds of transducers */
#define MOST_INPUT_BYTES ((uint64_t)128 << 20)

struct wf__rnn_device {
  wf_rnnlm *lm;
  cudaStream_t stream;
  wf__device_buffer states, norms, rows, scores, transfer, hashes;
  wf__exact_lstm exact; /* of a model with exact products */
  char *host_transfer;
  uint64_t num_slots;
  uint32_t most_rows;
  wf__rnn_rows work; /* all fields except the layer's */
  wf__rnn_output output;
};

static void rnn_weights_free(wf__rnn_weights *w);
static void rnn_device_close(wf__rnn_device *d);
static wf_status rnn_device_norms(wf__rnn_device *d, const uint32_t *slots, uint64_t count,
                                  wf_error *err);

/* The GPU address of `data` among the weights; NULL for NULL. */
static const float *weights(const wf__rnn_device *d, const float *data) {
  return data != NULL ? (const float *)d->lm->on_device->dense.data + (data - d->lm->dense) : NULL;
}

/* The calling thread keeps its current device. */
static void restore_device(int device) {
  if (device >= 0) cudaSetDevice(device);
  (void)cudaGetLastError(); /* of cudaFree: all other errors have been reported */
}

/* --- weights ----------------------------------------------------------------------------- */

static wf_status find_device(const char *name, int *number, wf_error *err) {
  wf__devices devices;
  wf__gpu_profile profile;
  WF__TRY(wf__devices_parse(name, &devices, err));
  if (!devices.cuda || devices.count > 1)
    return wf__fail(err, WF_ERR_ARGUMENT,
                    "device %s: a recurrent language model works on one GPU: cuda or cuda:N", name);
  *number = devices.count == 1 ? devices.numbers[0] : 0;
  const int caller = wf__callers_device();
  const wf_status status = wf__gpu_profile_read(*number, &profile, err);
  wf__restore_device(caller);
  return status;
}

static wf_status send(wf__device_buffer *to, const void *from, uint64_t bytes, wf_error *err) {
  static const char what[] = "the recurrent language model";
  WF__TRY(wf__device_reserve(to, bytes, what, err));
  return wf__device_send(to->data, from, bytes, NULL, what, err);
}

static uint32_t gates_stride(const wf_rnnlm *lm) {
  const uint32_t gates = lm->kind == WF__RNN_TORCH_LSTM ? 4 : lm->kind == WF__RNN_TORCH_GRU ? 3 : 1;
  return gates * (uint32_t)wf__padded(lm->hidden);
}

/* Of PyTorch's first layer, the products of the input are the same for each word. Keeps them, if
 * there is room. */
static wf_status make_inputs(const wf_rnnlm *lm, wf__rnn_weights *w, wf_error *err) {
  static const char what[] = "the recurrent language model";
  const wf__rnn_matrix *m = &lm->layers[0].matrix[WF__TORCH_IH];
  const uint32_t stride = gates_stride(lm);
  const uint64_t bytes = lm->embedding.rows * stride * sizeof(float);
  const float *dense = w->dense.data;
  if ((lm->kind != WF__RNN_TORCH_LSTM && lm->kind != WF__RNN_TORCH_GRU) || bytes > MOST_INPUT_BYTES)
    return WF_OK;
  WF__TRY(wf__device_reserve(&w->inputs, bytes, what, err));
  WF__CUDA_TRY(cudaMemsetAsync(w->inputs.data, 0, bytes, NULL), what);
  if (m->slices != NULL) return wf__rnn_exact_inputs(lm, w, stride, err);
  WF__CUDA_TRY(
      wf__rnn_product(dense + (m->data - lm->dense), (uint32_t)m->rows, (uint32_t)m->stride,
                      dense + (lm->embedding.data - lm->dense), (uint32_t)lm->embedding.stride,
                      wf__rows(lm->embedding.rows), w->inputs.data, stride, NULL),
      what);
  WF__CUDA_TRY(cudaStreamSynchronize(NULL), what);
  return WF_OK;
}

static wf_status send_all(const wf_rnnlm *lm, wf__rnn_weights *w, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(w->number), "choosing the GPU");
  WF__TRY(send(&w->dense, lm->dense, lm->dense_size * sizeof *lm->dense, err));
  WF__TRY(wf__rnn_slices_make(lm, w, err));
  WF__TRY(make_inputs(lm, w, err));
  WF__TRY(send(&w->cells, lm->cells, lm->num_cells * sizeof(float), err));
  if (lm->path_off == NULL) return WF_OK;
  WF__TRY(send(&w->path_off, lm->path_off, (lm->num_words + 1) * sizeof *lm->path_off, err));
  return send(&w->path, lm->path, lm->path_off[lm->num_words] * sizeof *lm->path, err);
}

static wf_status rnn_weights_send(const wf_rnnlm *lm, const char *name, wf__rnn_weights **out,
                                  wf_error *err) {
  int number;
  *out = NULL;
  WF__TRY(find_device(name, &number, err));
  wf__rnn_weights *w = wf__calloc(1, sizeof *w);
  if (w == NULL) return wf__fail_memory(err, sizeof *w, "a recurrent language model");
  w->number = number;
  const int caller = wf__callers_device();
  wf_status status = send_all(lm, w, err);
  restore_device(caller);
  if (status == WF_OK)
    *out = w;
  else
    rnn_weights_free(w);
  return status;
}

static void rnn_weights_free(wf__rnn_weights *w) {
  if (w == NULL) return;
  const int caller = wf__callers_device();
  cudaSetDevice(w->number);
  cudaFree(w->dense.data);
  cudaFree(w->inputs.data);
  cudaFree(w->slices.data);
  cudaFree(w->cells.data);
  cudaFree(w->path_off.data);
  cudaFree(w->path.data);
  restore_device(caller);
  free(w);
}

static int rnn_weights_where(const wf__rnn_weights *w) { return w->number; }

/* --- opening ----------------------------------------------------------------------------- */

/* Allocates all arrays of wf__rnn_rows as one buffer. */
static wf_status make_rows(wf__rnn_device *d, wf_error *err) {
  const wf_rnnlm *lm = d->lm;
  const uint32_t hidden = (uint32_t)wf__padded(lm->hidden), embed = (uint32_t)wf__padded(lm->embed),
                 widest = embed > hidden ? embed : hidden;
  const uint32_t gates = gates_stride(lm);
  const uint64_t row_floats = (uint64_t)widest + 2 * hidden + 2 * (uint64_t)gates;
  uint64_t rows =
      (lm->slices != NULL ? MOST_EXACT_BYTES : ROW_BYTES_TOGETHER) / (row_floats * sizeof(float));
  rows = rows > MOST_ROWS ? MOST_ROWS : rows < LEAST_ROWS ? LEAST_ROWS : rows;
  if (rows > d->num_slots + 1) rows = d->num_slots + 1;
  d->most_rows = (uint32_t)rows;
  WF__TRY(wf__device_reserve(&d->rows, rows * row_floats * sizeof(float), "hidden states", err));
  WF__CUDA_TRY(cudaMemsetAsync(d->rows.data, 0, d->rows.bytes, d->stream), "hidden states");
  float *at = d->rows.data;
  d->work = (wf__rnn_rows){.hidden = (uint32_t)lm->hidden,
                           .stride = hidden,
                           .gates_stride = gates,
                           .states = d->states.data,
                           .state_floats = wf__rnn_state_floats(lm),
                           .layer_floats = wf__rnn_layer_floats(lm)};
  d->work.input = at;
  d->work.previous = at += rows * widest;
  d->work.scaled = at += rows * hidden;
  d->work.gates = at += rows * hidden;
  d->work.gates2 = at + rows * gates;
  return WF_OK;
}

static wf_status make_slots(wf__rnn_device *d, wf_error *err) {
  const wf_rnnlm *lm = d->lm;
  const wf__rnn_weights *w = lm->on_device;
  const uint64_t state_bytes = wf__rnn_state_floats(lm) * sizeof(float), all = d->num_slots + 1;
  WF__TRY(wf__device_reserve(&d->states, all * state_bytes, "hidden states", err));
  WF__CUDA_TRY(cudaMemsetAsync(d->states.data, 0, d->states.bytes, d->stream),
               "hidden states"); /* initialised, because grow copies all slots, also unused ones */
  WF__TRY(wf__device_send(d->states.data, lm->start, state_bytes, d->stream, "hidden states", err));
  if (lm->output_kind == WF_RNNLM_SOFTMAX) {
    WF__TRY(wf__device_reserve(&d->norms, all * sizeof(float), "norms of the softmax", err));
    WF__CUDA_TRY(cudaMemsetAsync(d->norms.data, 0, d->norms.bytes, d->stream),
                 "norms of the softmax");
    WF__TRY(wf__device_reserve(
        &d->scores, NORM_ROWS * ((uint64_t)lm->output.stride + NORM_COLUMNS + 3) * sizeof(float),
        "scores of the softmax", err));
  }
  d->output = (wf__rnn_output){.states = d->states.data,
                               .state_floats = wf__rnn_state_floats(lm),
                               .top = wf__rnn_layer_floats(lm) * (lm->num_layers - 1),
                               .rows = weights(d, lm->output.data),
                               .bias = weights(d, lm->output_bias),
                               .cells = w->cells.data,
                               .path_off = w->path_off.data,
                               .path = w->path.data,
                               .norms = d->norms.data,
                               .stride = (uint32_t)lm->output.stride,
                               .kind = (int32_t)lm->output_kind,
                               .arity = lm->arity,
                               .nce_lnz = lm->nce_lnz};
  WF__TRY(make_rows(d, err));
  WF__TRY(wf__exact_lstm_make(&d->exact, lm, d->num_slots, d->most_rows, d->stream, err));
  static const uint32_t start = WF__RNN_START_SLOT;
  return rnn_device_norms(d, &start, 1, err);
}

static wf_status open_device(wf__rnn_device *d, wf_error *err) {
  WF__CUDA_TRY(cudaSetDevice(d->lm->on_device->number), "choosing the GPU");
  WF__CUDA_TRY(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking), "a stream");
  WF__TRY(wf__pinned_alloc((void **)&d->host_transfer, TRANSFER_BYTES, "requests for costs", err));
  WF__TRY(wf__device_reserve(&d->transfer, TRANSFER_BYTES, "requests for costs", err));
  return make_slots(d, err);
}

static wf_status rnn_device_open(const wf_rnnlm *lm, uint64_t num_slots, wf__rnn_device **out,
                                 wf_error *err) {
  *out = NULL;
  wf__rnn_device *d = wf__calloc(1, sizeof *d);
  if (d == NULL) return wf__fail_memory(err, sizeof *d, "a recurrent language model");
  d->lm = wf_rnnlm_ref(lm);
  d->num_slots = num_slots;
  const int caller = wf__callers_device();
  wf_status status = open_device(d, err);
  restore_device(caller);
  if (status != WF_OK) {
    rnn_device_close(d);
    return status;
  }
  *out = d;
  return WF_OK;
}

static void rnn_device_close(wf__rnn_device *d) {
  if (d == NULL) return;
  const int caller = wf__callers_device();
  cudaSetDevice(d->lm->on_device->number);
  wf__device_buffer *buffers[] = {&d->states, &d->norms,    &d->rows,
                                  &d->scores, &d->transfer, &d->hashes};
  if (d->stream != NULL) cudaStreamSynchronize(d->stream);
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) cudaFree(buffers[i]->data);
  wf__exact_lstm_free(&d->exact);
  cudaFreeHost(d->host_transfer);
  if (d->stream != NULL) cudaStreamDestroy(d->stream);
  restore_device(caller);
  wf_rnnlm_free(d->lm);
  free(d);
}

/* --- the transfer block ------------------------------------------------------------------ */

/* Sends data to place `at` of the transfer block. `wait`: waits first for the block's last copy. */
static wf_status put(wf__rnn_device *d, uint64_t at, const void *data, uint64_t bytes, bool wait,
                     wf_error *err) {
  static const char what[] = "requests to the recurrent language model";
  if (wait) WF__CUDA_TRY(cudaStreamSynchronize(d->stream), what);
  memcpy(d->host_transfer + at, data, bytes);
  WF__CUDA_TRY(cudaMemcpyAsync((char *)d->transfer.data + at, d->host_transfer + at, bytes,
                               cudaMemcpyHostToDevice, d->stream),
               what);
  return WF_OK;
}

/* --- states ------------------------------------------------------------------------------ */

static int product(wf__rnn_device *d, const wf__rnn_rows *rows, const wf__rnn_matrix *m,
                   const float *x, uint32_t x_stride, float *y, uint32_t y_stride) {
  return wf__rnn_product(weights(d, m->data), (uint32_t)m->rows, (uint32_t)m->stride, x, x_stride,
                         rows->count, y, y_stride, d->stream);
}

/* The layer's input multiplied by a matrix, or unchanged. */
static int input_of(wf__rnn_device *d, const wf__rnn_rows *rows, const wf__rnn_matrix *m,
                    bool through_matrix, const float **in) {
  *in = through_matrix ? rows->scaled : rows->input;
  return through_matrix
             ? product(d, rows, m, rows->input, rows->input_stride, rows->scaled, rows->stride)
             : (int)cudaSuccess;
}

static int simple_layer(wf__rnn_device *d, const wf__rnn_rows *rows, const wf__rnn_layer *layer,
                        bool is_first) {
  const float *in;
  int code = product(d, rows, &layer->matrix[WF__RNN_W], rows->previous, rows->stride, rows->gates,
                     rows->gates_stride);
  if (code == cudaSuccess) code = input_of(d, rows, &layer->matrix[WF__RNN_I], !is_first, &in);
  return code == cudaSuccess ? wf__rnn_simple(rows, in, (int)d->lm->kind, d->stream) : code;
}

/* r, u = sigmoid(inputs + recurrent of h); c = tanh(input + recurrent of r h); h += u (c - h). */
static int gru_layer(wf__rnn_device *d, const wf__rnn_rows *rows, const wf__rnn_layer *layer) {
  const wf__rnn_matrix *m = layer->matrix;
  const bool through = d->lm->gru_input;
  const float *in;
  int code = product(d, rows, &m[WF__GRU_RW], rows->previous, rows->stride, rows->gates,
                     rows->gates_stride);
  if (code == cudaSuccess) code = input_of(d, rows, &m[WF__GRU_RI], through, &in);
  if (code == cudaSuccess)
    code = wf__rnn_gru_reset(rows, in, weights(d, layer->vector[WF__GRU_RESET_BIAS]), d->stream);
  if (code == cudaSuccess)
    code = product(d, rows, &m[WF__GRU_QW], rows->gates, rows->gates_stride, rows->gates2,
                   rows->gates_stride);
  if (code == cudaSuccess) code = input_of(d, rows, &m[WF__GRU_QI], through, &in);
  if (code == cudaSuccess) code = wf__rnn_gru_fresh(rows, in, d->stream);
  if (code == cudaSuccess)
    code = product(d, rows, &m[WF__GRU_UW], rows->previous, rows->stride, rows->gates,
                   rows->gates_stride);
  if (code == cudaSuccess) code = input_of(d, rows, &m[WF__GRU_UI], through, &in);
  return code == cudaSuccess
             ? wf__rnn_gru_update(rows, in, weights(d, layer->vector[WF__GRU_UPDATE_BIAS]),
                                  d->stream)
             : code;
}

static int scrn_layer(wf__rnn_device *d, const wf__rnn_rows *rows, const wf__rnn_layer *layer,
                      bool is_first) {
  const wf__rnn_matrix *m = layer->matrix;
  const bool through = !d->lm->scrn_fast || !is_first;
  const wf__rnn_scrn scrn = {.b = through ? weights(d, m[WF__SCRN_B].data) : NULL,
                             .p = weights(d, m[WF__SCRN_P].data),
                             .a = through ? weights(d, m[WF__SCRN_A].data) : NULL,
                             .r = weights(d, m[WF__SCRN_R].data),
                             .decay = weights(d, layer->vector[0]),
                             .b_stride = (uint32_t)m[WF__SCRN_B].stride,
                             .p_stride = (uint32_t)m[WF__SCRN_P].stride,
                             .a_stride = (uint32_t)m[WF__SCRN_A].stride,
                             .r_stride = (uint32_t)m[WF__SCRN_R].stride,
                             .context = (uint32_t)d->lm->scrn_context};
  return wf__rnn_scrn_layer(rows, &scrn, d->stream);
}

static int torch_layer(wf__rnn_device *d, const wf__rnn_rows *rows, const wf__rnn_layer *layer) {
  int code = cudaSuccess;
  if (rows->inputs == NULL)
    code = product(d, rows, &layer->matrix[WF__TORCH_IH], rows->input, rows->input_stride,
                   rows->gates, rows->gates_stride);
  if (code == cudaSuccess)
    code = product(d, rows, &layer->matrix[WF__TORCH_HH], rows->previous, rows->stride,
                   rows->gates2, rows->gates_stride);
  if (code != cudaSuccess) return code;
  return (d->lm->kind == WF__RNN_TORCH_LSTM ? wf__rnn_torch_lstm : wf__rnn_torch_gru)(
      rows, weights(d, layer->vector[0]), weights(d, layer->vector[1]), d->stream);
}

static const wf__sliced *rnn_device_hidden_there(const wf__rnn_device *d) {
  return &d->exact.hidden;
}

/* --- moves --- */

/* Queues moves, whose descriptions are in GPU memory, on the stream. */
static wf_status advance(wf__rnn_device *d, const wf__rnn_move *moves, wf__row_count count,
                         wf_error *err) {
  const wf_rnnlm *lm = d->lm;
  for (size_t l = 0; l < lm->num_layers; l++) {
    const wf__rnn_layer *layer = &lm->layers[l];
    wf__rnn_rows rows = d->work;
    rows.moves = moves;
    rows.count = count;
    rows.layer = l * rows.layer_floats;
    rows.input_stride = l == 0 ? (uint32_t)lm->embedding.stride : rows.stride;
    rows.embedding = l == 0 ? weights(d, lm->embedding.data) : NULL;
    rows.inputs = l == 0 ? lm->on_device->inputs.data : NULL;
    int code = lm->slices == NULL ? wf__rnn_gather(&rows, d->stream) : (int)cudaSuccess;
    if (code == cudaSuccess) {
      if (lm->slices != NULL)
        code = wf__exact_lstm_layer(&d->exact, lm, &rows, l, d->stream);
      else if (lm->kind == WF__RNN_GRU)
        code = gru_layer(d, &rows, layer);
      else if (lm->kind == WF__RNN_TORCH_LSTM || lm->kind == WF__RNN_TORCH_GRU)
        code = torch_layer(d, &rows, layer);
      else if (lm->kind == WF__RNN_SCRN)
        code = scrn_layer(d, &rows, layer, l == 0);
      else
        code = simple_layer(d, &rows, layer, l == 0);
    }
    WF__CUDA_TRY(code, "hidden states");
  }
  return WF_OK;
}

static wf_status rnn_device_advance(wf__rnn_device *d, const wf__rnn_move *moves, uint64_t count,
                                    wf_error *err) {
  const uint64_t most_moves = TRANSFER_BYTES / sizeof *moves,
                 at_once = d->most_rows < most_moves ? d->most_rows : most_moves;
  const int caller = wf__callers_device();
  wf_status status = WF_OK;
  if (count > 0) WF__CUDA_TRY(cudaSetDevice(d->lm->on_device->number), "choosing the GPU");
  for (uint64_t first = 0; first < count && status == WF_OK; first += at_once) {
    const uint64_t some = count - first < at_once ? count - first : at_once;
    status = put(d, 0, moves + first, some * sizeof *moves, true, err);
    if (status == WF_OK) status = advance(d, d->transfer.data, wf__rows(some), err);
  }
  restore_device(caller);
  return status;
}

static wf_status rnn_device_advance_there(wf__rnn_device *d, const wf__rnn_move *moves,
                                          wf__row_count count, wf_error *err) {
  for (uint32_t first = 0; first < count.most; first += d->most_rows) {
    const uint32_t left = count.most - first;
    const wf__row_count some = {left < d->most_rows ? left : d->most_rows, count.first + first,
                                count.num};
    WF__TRY(advance(d, moves + first, some, err));
  }
  return WF_OK;
}

/* --- norms ------------------------------------------------------------------------------- */

/* Computes the norms of slots, whose numbers are in GPU memory. `scores` holds the states' rows, a
 * block of scores, sums, and `high`, each aligned for its element type. */
static int norms_of(wf__rnn_device *d, const uint32_t *slots, uint32_t count) {
  const wf_rnnlm *lm = d->lm;
  const uint32_t stride = (uint32_t)lm->output.stride;
  float *tops = d->scores.data, *scores = tops + (uint64_t)NORM_ROWS * stride;
  double *sum = (double *)(void *)(scores + (uint64_t)NORM_ROWS * NORM_COLUMNS);
  float *high = (float *)(sum + NORM_ROWS);
  int code = wf__rnn_gather_tops(&d->output, slots, wf__rows(count), tops, d->stream);
  for (uint64_t first = 0; first < lm->num_words && code == cudaSuccess; first += NORM_COLUMNS) {
    const uint32_t num =
        lm->num_words - first < NORM_COLUMNS ? (uint32_t)(lm->num_words - first) : NORM_COLUMNS;
    code = wf__rnn_product(d->output.rows + first * stride, num, stride, tops, stride,
                           wf__rows(count), scores, NORM_COLUMNS, d->stream);
    if (code == cudaSuccess)
      code = wf__rnn_add_scores(scores, count, num, NORM_COLUMNS,
                                d->output.bias != NULL ? d->output.bias + first : NULL, first == 0,
                                high, sum, d->stream);
  }
  return code == cudaSuccess ? wf__rnn_end_norms(slots, count, high, sum, d->norms.data, d->stream)
                             : code;
}

static wf_status rnn_device_norms(wf__rnn_device *d, const uint32_t *slots, uint64_t count,
                                  wf_error *err) {
  if (d->lm->output_kind != WF_RNNLM_SOFTMAX || count == 0) return WF_OK;
  const int caller = wf__callers_device();
  wf_status status = WF_OK;
  WF__CUDA_TRY(cudaSetDevice(d->lm->on_device->number), "choosing the GPU");
  for (uint64_t first = 0; first < count && status == WF_OK; first += NORM_ROWS) {
    const uint64_t some = count - first < NORM_ROWS ? count - first : NORM_ROWS;
    status = put(d, 0, slots + first, some * sizeof *slots, true, err);
    const int code =
        status == WF_OK ? norms_of(d, d->transfer.data, (uint32_t)some) : (int)cudaSuccess;
    if (code != cudaSuccess) status = wf__cuda_fail(err, (cudaError_t)code, "norms of the softmax");
  }
  restore_device(caller);
  return status;
}

static wf_status rnn_device_norms_there(wf__rnn_device *d, const uint32_t *slots, uint64_t count,
                                        wf_error *err) {
  if (d->lm->output_kind != WF_RNNLM_SOFTMAX) return WF_OK;
  for (uint64_t first = 0; first < count; first += NORM_ROWS)
    WF__CUDA_TRY(norms_of(d, slots + first,
                          (uint32_t)(count - first < NORM_ROWS ? count - first : NORM_ROWS)),
                 "norms of the softmax");
  return WF_OK;
}

/* --- costs ------------------------------------------------------------------------------- */

/* At most as many requests as the transfer block holds; their costs follow them in the block. */
static wf_status costs_of_transfer(wf__rnn_device *d, const wf__rnn_request *requests,
                                   uint64_t count, float *costs, wf_error *err) {
  const uint64_t costs_at = count * sizeof *requests;
  WF__TRY(put(d, 0, requests, count * sizeof *requests, true, err));
  WF__CUDA_TRY(wf__rnn_output_costs(&d->output, d->transfer.data, (uint32_t)count, d->hashes.data,
                                    (float *)((char *)d->transfer.data + costs_at), d->stream),
               "costs of words");
  WF__CUDA_TRY(cudaMemcpyAsync(d->host_transfer + costs_at, (char *)d->transfer.data + costs_at,
                               count * sizeof *costs, cudaMemcpyDeviceToHost, d->stream),
               "costs of words");
  WF__CUDA_TRY(cudaStreamSynchronize(d->stream), "costs of words");
  memcpy(costs, d->host_transfer + costs_at, count * sizeof *costs);
  return WF_OK;
}

static wf_status rnn_device_costs(wf__rnn_device *d, const wf__rnn_request *requests,
                                  uint64_t count, const uint64_t *hashes, uint64_t num_hashes,
                                  float *costs, wf_error *err) {
  const uint64_t at_once = TRANSFER_BYTES / (sizeof *requests + sizeof *costs);
  if (count == 0) return WF_OK;
  const int caller = wf__callers_device();
  WF__CUDA_TRY(cudaSetDevice(d->lm->on_device->number), "choosing the GPU");
  wf_status status =
      wf__device_reserve(&d->hashes, num_hashes * sizeof *hashes, "requests for costs", err);
  if (status == WF_OK && num_hashes > 0) {
    const cudaError_t code = cudaMemcpyAsync(d->hashes.data, hashes, num_hashes * sizeof *hashes,
                                             cudaMemcpyHostToDevice, d->stream);
    if (code != cudaSuccess) status = wf__cuda_fail(err, code, "requests for costs");
  }
  for (uint64_t first = 0; first < count && status == WF_OK; first += at_once)
    status = costs_of_transfer(
        d, requests + first, count - first < at_once ? count - first : at_once, costs + first, err);
  restore_device(caller);
  return status;
}

static wf_status rnn_device_costs_there(wf__rnn_device *d, const wf__rnn_request *requests,
                                        uint64_t count, const uint64_t *hashes, float *costs,
                                        wf_error *err) {
  if (count > 0)
    WF__CUDA_TRY(
        wf__rnn_output_costs(&d->output, requests, (uint32_t)count, hashes, costs, d->stream),
        "costs of words");
  return WF_OK;
}

/* --- growing ----------------------------------------------------------------------------- */

static void *rnn_device_stream(const wf__rnn_device *d) { return d->stream; }

static wf_status rnn_device_grow(wf__rnn_device *d, uint64_t num_slots, wf_error *err) {
  WF__TRY(wf__device_grow(&d->states, (num_slots + 1) * wf__rnn_state_floats(d->lm) * sizeof(float),
                          d->stream, "hidden states", err));
  d->work.states = d->states.data;
  d->output.states = d->states.data;
  WF__TRY(
      wf__device_grow(&d->norms, (num_slots + 1) * sizeof(float), d->stream, "hidden states", err));
  d->output.norms = d->norms.data;
  WF__TRY(wf__exact_lstm_grow(&d->exact, d->lm, num_slots, d->stream, err));
  d->num_slots = num_slots;
  return WF_OK;
}

const struct wf__device_rnn wf__cuda_rnn = {.weights_send = rnn_weights_send,
                                            .weights_free = rnn_weights_free,
                                            .weights_where = rnn_weights_where,
                                            .open = rnn_device_open,
                                            .close = rnn_device_close,
                                            .advance = rnn_device_advance,
                                            .norms = rnn_device_norms,
                                            .costs = rnn_device_costs,
                                            .stream = rnn_device_stream,
                                            .advance_there = rnn_device_advance_there,
                                            .norms_there = rnn_device_norms_there,
                                            .costs_there = rnn_device_costs_there,
                                            .hidden_there = rnn_device_hidden_there,
                                            .grow = rnn_device_grow};
