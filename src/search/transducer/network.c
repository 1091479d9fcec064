/* network.c - reads and computes built-in models on the CPU.
 *
 * Sums of products are exact (math/slices.h), whatever the number of rows, as on a GPU. */
#include "search/transducer/network.h"

#include "math/score.h"

enum { ACTIVATION_FILE, ACTIVATION_TANH, ACTIVATION_RELU };

void wf__network_free(struct wf__network *network) {
  if (network == NULL) return;
  wf_rnnlm_free(network->lstm);
  for (size_t i = 0; i < network->num_slices; i++) wf__slice_matrix_free(&network->slices[i]);
  free(network->slices);
  free(network->memory);
  free(network);
}

uint64_t wf__network_bytes(const struct wf__network *network) {
  if (network == NULL) return 0;
  const wf_rnnlm *lstm = network->lstm;
  uint64_t bytes = network->num_floats * sizeof(float);
  for (size_t i = 0; i < network->num_slices; i++)
    bytes += wf__slice_matrix_bytes(&network->slices[i]);
  if (lstm != NULL) bytes += lstm->dense_size * sizeof(float);
  for (size_t i = 0; lstm != NULL && i < 2 * lstm->num_layers; i++)
    bytes += wf__slice_matrix_bytes(&lstm->slices[i]);
  return bytes;
}

/* --- computing --------------------------------------------------------------------------- */

static wf_status product(const wf__slice_matrix *m, const float *x, size_t x_stride, size_t count,
                         float *y, size_t y_stride, wf__transducer_work *work, wf_error *err) {
  work->slices.size = 0;
  WF__TRY(wf__vec_grow(&work->slices, wf__slice_scratch(m->cols), "a product", err));
  wf__slice_multiply(m, x, x_stride, count, y, y_stride, work->slices.data);
  return WF_OK;
}

static void add_bias(const float *bias, size_t num, size_t count, float *y, size_t y_stride) {
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < num; k++) y[i * y_stride + k] += bias[k];
}

/* y[i] = W x[i] + b. */
static wf_status linear(const wf__rnn_matrix *m, const float *bias, const float *x, size_t x_stride,
                        size_t count, float *y, size_t y_stride, wf__transducer_work *work,
                        wf_error *err) {
  WF__TRY(product(m->slices, x, x_stride, count, y, y_stride, work, err));
  add_bias(bias, m->rows, count, y, y_stride);
  return WF_OK;
}

static wf_status network_encode(const wf_transducer *model, const wf_scores *scores, float *out,
                                wf__transducer_work *work, wf_error *err) {
  const struct wf__network *n = model->network;
  size_t size = (size_t)model->encoder_size, stride = wf__padded(size),
         num_frames = (size_t)scores->num_frames;
  work->floats.size = 0;
  WF__TRY(wf__vec_grow(&work->floats, num_frames * stride + 1, "encoder outputs", err));
  float *x = work->floats.data;
  memset(x, 0, num_frames * stride * sizeof *x);
  memset(out, 0, num_frames * model->encoder_width * sizeof *out);
  for (size_t t = 0; t < num_frames; t++)
    for (size_t c = 0; c < size; c++)
      x[t * stride + c] = wf__score_at(scores, (int64_t)t, (int32_t)c);
  return linear(&n->encoder, n->encoder_bias, x, stride, num_frames, out, model->encoder_width,
                work, err);
}

/* The predictor's part of the joiner: rows[i] = Wp x[i] + bp. */
static wf_status project(const wf_transducer *model, const float *x, size_t x_stride, size_t count,
                         float **rows, wf__transducer_work *work, wf_error *err) {
  const struct wf__network *n = model->network;
  work->outputs.size = 0;
  WF__TRY(wf__vec_grow(&work->outputs, count * model->width, "a predictor", err));
  float *y = work->outputs.data;
  memset(y, 0, count * model->width * sizeof *y);
  WF__TRY(linear(&n->predictor, n->predictor_bias, x, x_stride, count, y, model->width, work, err));
  for (size_t i = 0; i < count; i++)
    memcpy(rows[i], y + i * model->width, model->width * sizeof *y);
  return WF_OK;
}

/* The convolution is the sum, over the places of the context, of products with one embedding each,
 * which a GPU keeps for all tokens. */
static wf_status predict_stateless(const wf_transducer *model, const wf__predictor_batch *batch,
                                   wf__transducer_work *work, wf_error *err) {
  const struct wf__network *n = model->network;
  size_t count = batch->count, context = (size_t)model->context_size, in = n->embedding.stride,
         out = wf__padded(n->conv.rows);
  work->floats.size = 0;
  WF__TRY(wf__vec_grow(&work->floats, count * (in + 2 * out), "a predictor", err));
  float *x = work->floats.data, *y = x + count * in, *term = y + count * out;
  memset(y, 0, 2 * count * out * sizeof *y);
  for (size_t place = 0; place < context; place++) {
    for (size_t i = 0; i < count; i++)
      memcpy(x + i * in, n->embedding.data + (size_t)batch->tokens[i * context + place] * in,
             in * sizeof *x);
    WF__TRY(product(&n->places[place], x, in, count, term, out, work, err));
    for (size_t k = 0; k < count * out; k++) y[k] += term[k];
  }
  add_bias(n->conv_bias, n->conv.rows, count, y, out);
  for (size_t k = 0; k < count * out; k++) y[k] = y[k] > 0 ? y[k] : 0;
  return project(model, y, out, count, batch->rows, work, err);
}

enum { LSTM_BATCH = 64 };

static wf_status predict_lstm(const wf_transducer *model, const wf__predictor_batch *batch,
                              wf__transducer_work *work, wf_error *err) {
  const wf_rnnlm *lstm = model->network->lstm;
  size_t stride = wf__padded(lstm->hidden);
  if (work->rnn.max_batch == 0) WF__TRY(wf__rnn_work_init(lstm, LSTM_BATCH, &work->rnn, err));
  work->floats.size = 0;
  WF__TRY(wf__vec_grow(&work->floats, LSTM_BATCH * stride, "a predictor", err));
  for (size_t first = 0; first < batch->count; first += LSTM_BATCH) {
    size_t count = batch->count - first < LSTM_BATCH ? batch->count - first : LSTM_BATCH;
    wf__rnn_advance(lstm, count, batch->from + first, batch->tokens + first, batch->to + first,
                    &work->rnn);
    for (size_t i = 0; i < count; i++)
      memcpy(work->floats.data + i * stride, wf__rnn_top(lstm, batch->to[first + i]),
             stride * sizeof(float));
    WF__TRY(project(model, work->floats.data, stride, count, batch->rows + first, work, err));
  }
  return WF_OK;
}

static wf_status network_join(const wf_transducer *model, const float *const *encoders,
                              const float *const *rows, size_t count, float *logits,
                              wf__transducer_work *work, wf_error *err) {
  const struct wf__network *n = model->network;
  size_t width = model->width;
  work->floats.size = 0;
  WF__TRY(wf__vec_grow(&work->floats, count * width, "a joiner", err));
  float *hidden = work->floats.data;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < width; k++) hidden[i * width + k] = encoders[i][k] + rows[i][k];
  if (n->relu)
    for (size_t k = 0; k < count * width; k++) hidden[k] = hidden[k] < 0 ? 0 : hidden[k];
  else
    wf__vec_tanh(hidden, count * width);
  return linear(&n->output, n->output_bias, hidden, width, count, logits, n->output.rows, work,
                err);
}

static const wf__transducer_ops stateless_ops = {network_encode, predict_stateless, network_join};
static const wf__transducer_ops lstm_ops = {network_encode, predict_lstm, network_join};

/* --- reading ----------------------------------------------------------------------------- */

struct reading {
  const wf__input *file;
  wf__tensors tensors;
  wf_transducer *model;
  struct wf__network *network;
};

static wf__tensor *take(struct reading *r, const char *name) {
  wf__tensor *tensor = wf__tensor_find(&r->tensors, name);
  if (tensor != NULL) tensor->used = true;
  return tensor;
}

static wf_status take_matrix(struct reading *r, const char *name, wf__tensor **out, wf_error *err) {
  wf__tensor *tensor = *out = take(r, name);
  if (tensor == NULL)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: no tensor %s (docs/reference/transducers.md lists the tensors)",
                    r->file->path, name);
  if (tensor->num_dims != 2 || tensor->dims[0] < 1 || tensor->dims[1] < 1 ||
      tensor->dims[0] > 1 << 26 || tensor->dims[1] > 1 << 26)
    return wf__fail(err, WF_ERR_FORMAT, "%s: %s is not a matrix", r->file->path, name);
  return wf__tensor_check(r->file, tensor, tensor->dims[0], tensor->dims[1], err);
}

/* `rows` or `cols` 0: any number. `bias_name` may be missing in the file. */
static wf_status read_linear(struct reading *r, const char *name, const char *bias_name,
                             uint64_t rows, uint64_t cols, wf__rnn_matrix *out, float **out_bias,
                             wf_error *err) {
  struct wf__network *n = r->network;
  wf__tensor *weight, *bias = bias_name != NULL ? take(r, bias_name) : NULL;
  WF__TRY(take_matrix(r, name, &weight, err));
  if (rows == 0) rows = weight->dims[0];
  if (cols == 0) cols = weight->dims[1];
  WF__TRY(wf__tensor_check(r->file, weight, rows, cols, err));
  if (bias != NULL) WF__TRY(wf__tensor_check(r->file, bias, rows, 0, err));
  *out = (wf__rnn_matrix){n->memory + n->used, rows, cols, wf__padded(cols)};
  n->used += rows * out->stride;
  for (uint64_t i = 0; i < rows; i++)
    WF__TRY(wf__tensor_copy(r->file, weight, i * cols, cols, out->data + i * out->stride, err));
  if (out_bias == NULL) return WF_OK;
  *out_bias = n->memory + n->used;
  n->used += wf__padded(rows);
  return bias != NULL ? wf__tensor_copy(r->file, bias, 0, rows, *out_bias, err) : WF_OK;
}

/* Room for all tensors, padded, and a bias for each matrix. */
static wf_status reserve(struct reading *r, wf_error *err) {
  struct wf__network *n = r->network;
  for (uint64_t i = 0; i < r->tensors.size; i++) {
    const wf__tensor *tensor = &r->tensors.data[i];
    uint64_t rows = tensor->num_dims > 0 ? tensor->dims[0] : 1,
             cols = tensor->num_dims > 1 ? tensor->dims[1] : 1;
    if (rows < 1 || cols < 1 || rows > 1 << 26 || cols > 1 << 26 || tensor->num_dims > 2)
      return wf__fail(err, WF_ERR_FORMAT, "%s: %.*s is neither a matrix nor a vector",
                      r->file->path, WF__SPAN_ARG(tensor->name));
    n->num_floats += rows * wf__padded(cols) + wf__padded(rows);
  }
  n->memory = wf__calloc(n->num_floats, sizeof *n->memory);
  return n->memory != NULL ? WF_OK
                           : wf__fail_memory(err, n->num_floats * sizeof *n->memory,
                                             "the weights of a transducer");
}

static wf_status read_options(struct reading *r, const wf_transducer_options *o, wf_error *err) {
  wf__span blank, activation;
  int64_t number = o->blank >= 0 ? o->blank : 0;
  WF__TRY(wf__safetensors_metadata(r->file, "blank", &blank, err));
  WF__TRY(wf__safetensors_metadata(r->file, "activation", &activation, err));
  if (o->blank < 0 && blank.data != NULL &&
      (!wf__parse_i64(blank, &number) || number < 0 || number > INT32_MAX))
    return wf__fail(err, WF_ERR_FORMAT, "%s: blank '%.*s' in the metadata is not a column",
                    r->file->path, WF__SPAN_ARG(blank));
  r->model->blank = (int32_t)number;
  r->network->relu = o->activation == ACTIVATION_RELU;
  if (o->activation != ACTIVATION_FILE || activation.data == NULL) return WF_OK;
  r->network->relu = activation.size == 4 && memcmp(activation.data, "relu", 4) == 0;
  if (r->network->relu || (activation.size == 4 && memcmp(activation.data, "tanh", 4) == 0))
    return WF_OK;
  return wf__fail(err, WF_ERR_UNSUPPORTED,
                  "%s: activation '%.*s' in the metadata; tanh or relu is expected", r->file->path,
                  WF__SPAN_ARG(activation));
}

/* Tokens and durations, from the rows of embedding and output. */
static wf_status find_sizes(struct reading *r, uint64_t *out_rows, wf_error *err) {
  wf__tensor *embedding, *output;
  WF__TRY(take_matrix(r, "pred.emb.weight", &embedding, err));
  WF__TRY(take_matrix(r, "joiner.out.weight", &output, err));
  uint64_t rows = embedding->dims[0], out = *out_rows = output->dims[0];
  bool padded = rows == out + 1;
  if (rows > out + 1 || rows > 1 << 24 || out - rows + padded > 1024)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: pred.emb.weight has %llu rows, joiner.out.weight %llu: expected one row "
                    "for each token, and then one for each duration in the latter",
                    r->file->path, (unsigned long long)rows, (unsigned long long)out);
  r->model->num_tokens = (int32_t)(padded ? out : rows);
  r->model->num_durations = (int32_t)(padded ? 0 : out - rows);
  r->model->first_token = padded ? r->model->num_tokens : r->model->blank;
  if (r->model->blank < r->model->num_tokens) return WF_OK;
  return wf__fail(err, WF_ERR_ARGUMENT, "%s: the blank is column %d, the model has %d tokens",
                  r->file->path, r->model->blank, r->model->num_tokens);
}

/* Returns the size of what the predictor gives. */
static wf_status read_predictor(struct reading *r, uint64_t *size, wf_error *err) {
  wf_transducer *model = r->model;
  struct wf__network *n = r->network;
  if (wf__tensor_find(&r->tensors, "pred.conv.weight") == NULL &&
      wf__tensor_find(&r->tensors, "pred.lstm.weight_hh") == NULL &&
      wf__tensor_find(&r->tensors, "pred.lstm.weight_hh_l0") == NULL)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: no tensor pred.conv.weight (stateless predictor) or pred.lstm.weight_hh "
                    "(LSTM) (docs/reference/transducers.md lists the tensors)",
                    r->file->path);
  if (wf__tensor_find(&r->tensors, "pred.conv.weight") == NULL) {
    WF__TRY(wf__rnn_read_predictor(r->file, &r->tensors, model->blank, &n->lstm, err));
    if (n->lstm->kind != WF__RNN_TORCH_LSTM)
      return wf__fail(err, WF_ERR_UNSUPPORTED, "%s: the predictor is no LSTM", r->file->path);
    *size = n->lstm->hidden;
    model->state_floats = wf__rnn_state_floats(n->lstm);
    model->ops = &lstm_ops;
    return WF_OK;
  }
  WF__TRY(read_linear(r, "pred.emb.weight", NULL, 0, 0, &n->embedding, NULL, err));
  WF__TRY(read_linear(r, "pred.conv.weight", "pred.conv.bias", 0, 0, &n->conv, &n->conv_bias, err));
  if (n->conv.cols % n->embedding.cols != 0)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: pred.conv.weight has %zu columns, which is no multiple of the embedding "
                    "size %zu",
                    r->file->path, n->conv.cols, n->embedding.cols);
  *size = n->conv.rows;
  model->context_size = (int32_t)(n->conv.cols / n->embedding.cols);
  model->ops = &stateless_ops;
  return WF_OK;
}

/* Makes the matrices of exact products: of a stateless predictor one for each place. */
static wf_status slice_weights(struct reading *r, wf_error *err) {
  struct wf__network *n = r->network;
  const size_t context = n->lstm == NULL ? (size_t)r->model->context_size : 0;
  wf__rnn_matrix *all[] = {&n->encoder, &n->predictor, &n->output};
  const char *names[] = {"joiner.enc.weight", "joiner.pred.weight", "joiner.out.weight"};
  n->slices = wf__calloc(3 + context, sizeof *n->slices);
  if (n->slices == NULL) return wf__fail_memory(err, context * sizeof *n->slices, "a transducer");
  for (size_t i = 0; i < 3; i++, n->num_slices++) {
    WF__TRY(wf__slice_matrix_make(all[i]->data, all[i]->rows, all[i]->cols, all[i]->stride,
                                  names[i], &n->slices[i], err));
    all[i]->slices = &n->slices[i];
  }
  n->places = n->slices + 3;
  for (size_t place = 0; place < context; place++, n->num_slices++)
    WF__TRY(wf__slice_matrix_make(n->conv.data + place * n->embedding.cols, n->conv.rows,
                                  n->embedding.cols, n->conv.stride, "pred.emb.weight",
                                  &n->slices[3 + place], err));
  return WF_OK;
}

static wf_status read_model(struct reading *r, const wf_transducer_options *o, wf_error *err) {
  struct wf__network *n = r->network;
  uint64_t size, num_outputs;
  WF__TRY(wf__safetensors_read(r->file, &r->tensors, err));
  WF__TRY(read_options(r, o, err));
  WF__TRY(find_sizes(r, &num_outputs, err));
  WF__TRY(reserve(r, err));
  WF__TRY(read_predictor(r, &size, err));
  WF__TRY(read_linear(r, "joiner.enc.weight", "joiner.enc.bias", 0, 0, &n->encoder,
                      &n->encoder_bias, err));
  uint64_t joiner = n->encoder.rows;
  WF__TRY(read_linear(r, "joiner.pred.weight", "joiner.pred.bias", joiner, size, &n->predictor,
                      &n->predictor_bias, err));
  WF__TRY(read_linear(r, "joiner.out.weight", "joiner.out.bias", num_outputs, joiner, &n->output,
                      &n->output_bias, err));
  for (uint64_t i = 0; i < r->tensors.size; i++)
    if (!r->tensors.data[i].used)
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "%s: tensor %.*s is a duplicate or not part of a transducer "
                      "(docs/reference/transducers.md)",
                      r->file->path, WF__SPAN_ARG(r->tensors.data[i].name));
  WF__TRY(slice_weights(r, err));
  r->model->encoder_size = (int32_t)n->encoder.cols;
  r->model->width = r->model->encoder_width = wf__padded(joiner);
  return WF_OK;
}

wf_status wf__network_read(const wf__input *file, const wf_transducer_options *options,
                           wf_transducer *model, wf_error *err) {
  struct reading r = {.file = file, .model = model};
  r.network = model->network = wf__calloc(1, sizeof *r.network);
  if (r.network == NULL) return wf__fail_memory(err, sizeof *r.network, "a transducer");
  wf_status status = read_model(&r, options, err);
  wf__vec_free(&r.tensors);
  return status;
}
