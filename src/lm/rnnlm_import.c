/* rnnlm_import.c - LSTM and GRU language models of PyTorch from safetensors files (layout:
 * docs/how-to/rnnlm.md).
 *
 *   embedding.weight [V, E]
 *   rnn.weight_ih_lK [G H, in]  rnn.weight_hh_lK [G H, H]  rnn.bias_ih_lK, rnn.bias_hh_lK [G H]
 *   output.weight [V, H]        output.bias [V]
 *
 * G is the number of gates: 4 for LSTM, 3 for GRU. The shapes tell which it is. In memory the rows
 * of each gate are padded to a multiple of WF__LANES, so that gates start aligned. */
#include <stdio.h>

#include "fst/symbols.h"
#include "lm/rnnlm.h"
#include "lm/safetensors.h"

typedef struct import {
  const wf__input *file;
  wf__tensors *tensors;
  const char *prefix,
      *page; /* of the names of the layers' tensors; a page that lists the tensors */
  wf_rnnlm *lm;
  size_t gates;
  struct {
    wf__tensor *ih, *hh, *bias_ih, *bias_hh;
  } layers[WF__RNN_MAX_LAYERS];
  wf__tensor *embedding, *output, *output_bias;
} import;

/* Returns the tensor of that name and marks it as used; NULL if there is none. */
static wf__tensor *take(import *m, const char *name) {
  wf__tensor *tensor = wf__tensor_find(m->tensors, name);
  if (tensor != NULL) tensor->used = true;
  return tensor;
}

/* Also accepts the names of PyTorch's word language model example. */
static wf__tensor *take_either(import *m, const char *name, const char *other) {
  wf__tensor *tensor = take(m, name);
  return tensor != NULL ? tensor : take(m, other);
}

static wf__tensor *take_layer(import *m, const char *part, size_t layer) {
  char name[64];
  snprintf(name, sizeof name, "%s%s_l%zu", m->prefix, part, layer);
  wf__tensor *tensor = take(m, name);
  if (tensor != NULL || layer > 0) return tensor;
  snprintf(name, sizeof name, "%s%s", m->prefix, part); /* of an LSTMCell */
  return take(m, name);
}

static wf_status check_shape(const import *m, const wf__tensor *tensor, uint64_t rows,
                             uint64_t cols, wf_error *err) {
  return wf__tensor_check(m->file, tensor, rows, cols, err);
}

static wf_status missing(const import *m, const char *name, wf_error *err) {
  return wf__fail(err, WF_ERR_FORMAT, "%s: no tensor %s (%s lists the tensors)", m->file->path,
                  name, m->page);
}

static wf_status missing_layer(const import *m, const char *part, wf_error *err) {
  char name[64];
  snprintf(name, sizeof name, "%s%s", m->prefix, part);
  return missing(m, name, err);
}

static wf_status find_sizes(import *m, wf_error *err) {
  wf_rnnlm *lm = m->lm;
  if (m->embedding == NULL) return missing(m, "embedding.weight", err);
  wf__tensor *hh = take_layer(m, "weight_hh", 0);
  if (hh == NULL) return missing_layer(m, "weight_hh_l0", err);
  if (m->embedding->num_dims != 2 || hh->num_dims != 2)
    return wf__fail(err, WF_ERR_FORMAT, "%s: %.*s and %.*s must be matrices", m->file->path,
                    WF__SPAN_ARG(m->embedding->name), WF__SPAN_ARG(hh->name));
  uint64_t words = m->embedding->dims[0], embed = m->embedding->dims[1], rows = hh->dims[0],
           hidden = hh->dims[1];
  if (words < 1 || words > INT32_MAX || embed < 1 || embed > 1 << 20 || hidden < 1 ||
      hidden > 1 << 20)
    return wf__fail(err, WF_ERR_LIMIT, "%s: %llu words, embedding size %llu, hidden size %llu",
                    m->file->path, (unsigned long long)words, (unsigned long long)embed,
                    (unsigned long long)hidden);
  if (rows != 3 * hidden && rows != 4 * hidden)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: %.*s is [%llu, %llu], expected 4 (LSTM) or 3 (GRU) times as many rows as "
                    "columns",
                    m->file->path, WF__SPAN_ARG(hh->name), (unsigned long long)rows,
                    (unsigned long long)hidden);
  m->gates = rows == 4 * hidden ? 4 : 3;
  lm->num_words = words;
  lm->embed = embed;
  lm->hidden = hidden;
  lm->kind = m->gates == 4 ? WF__RNN_TORCH_LSTM : WF__RNN_TORCH_GRU;
  snprintf(lm->layer_type, sizeof lm->layer_type, "%s", m->gates == 4 ? "lstm" : "torch-gru");
  return check_shape(m, m->embedding, words, embed, err);
}

static wf_status find_output(import *m, wf_error *err) {
  const wf_rnnlm *lm = m->lm;
  m->output = take_either(m, "output.weight", "decoder.weight");
  m->output_bias = take_either(m, "output.bias", "decoder.bias");
  if (m->output == NULL && lm->embed != lm->hidden)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: no output.weight, and embedding.weight cannot replace it: it has %zu "
                    "columns, the hidden size is %zu",
                    m->file->path, lm->embed, lm->hidden);
  if (m->output != NULL) WF__TRY(check_shape(m, m->output, lm->num_words, lm->hidden, err));
  return m->output_bias != NULL ? check_shape(m, m->output_bias, lm->num_words, 0, err) : WF_OK;
}

static wf_status find_layers(import *m, wf_error *err) {
  wf_rnnlm *lm = m->lm;
  size_t rows = m->gates * lm->hidden;
  for (size_t l = 0; l < WF__RNN_MAX_LAYERS; l++) {
    wf__tensor *ih = m->layers[l].ih = take_layer(m, "weight_ih", l),
               *hh = m->layers[l].hh = take_layer(m, "weight_hh", l);
    wf__tensor *bias_ih = m->layers[l].bias_ih = take_layer(m, "bias_ih", l),
               *bias_hh = m->layers[l].bias_hh = take_layer(m, "bias_hh", l);
    if (ih == NULL && hh == NULL && l > 0) break;
    if (ih == NULL || hh == NULL)
      return missing_layer(m, ih == NULL ? "weight_ih of a layer" : "weight_hh of a layer", err);
    WF__TRY(check_shape(m, ih, rows, l == 0 ? lm->embed : lm->hidden, err));
    WF__TRY(check_shape(m, hh, rows, lm->hidden, err));
    if (bias_ih != NULL) WF__TRY(check_shape(m, bias_ih, rows, 0, err));
    if (bias_hh != NULL) WF__TRY(check_shape(m, bias_hh, rows, 0, err));
    lm->num_layers = l + 1;
  }
  return WF_OK;
}

static wf_status check_all_used(const import *m, wf_error *err) {
  /* The effect of an unknown tensor on the scores is unknown, so it is not ignored. */
  for (uint64_t i = 0; i < m->tensors->size; i++)
    if (!m->tensors->data[i].used)
      return wf__fail(err, WF_ERR_UNSUPPORTED,
                      "%s: tensor %.*s is a duplicate or not part of an LSTM or GRU language model "
                      "(docs/how-to/rnnlm.md)",
                      m->file->path, WF__SPAN_ARG(m->tensors->data[i].name));
  return WF_OK;
}

static uint64_t num_floats(const import *m) {
  const wf_rnnlm *lm = m->lm;
  uint64_t hidden = wf__padded(lm->hidden), embed = wf__padded(lm->embed), rows = m->gates * hidden,
           total = lm->num_words * embed;
  if (m->output != NULL) total += lm->num_words * hidden;
  if (m->output_bias != NULL) total += wf__padded(lm->num_words);
  for (size_t l = 0; l < lm->num_layers; l++)
    total += rows * ((l == 0 ? embed : hidden) + hidden) + 2 * rows;
  return total;
}

/* Copies the rows of `tensor` (NULL: zeros) into new memory, and pads the `gate_rows` rows of each
 * gate. */
static wf_status copy(import *m, const wf__tensor *tensor, size_t gates, size_t gate_rows,
                      size_t cols, wf__rnn_matrix *out, wf_error *err) {
  size_t stride = wf__padded(cols), padded_rows = gates == 1 ? gate_rows : wf__padded(gate_rows);
  *out = (wf__rnn_matrix){wf__rnn_take(m->lm, gates * padded_rows, cols), gates * padded_rows, cols,
                          stride};
  for (size_t r = 0; tensor != NULL && r < gates * gate_rows; r++) {
    float *row = out->data + (r / gate_rows * padded_rows + r % gate_rows) * stride;
    WF__TRY(wf__tensor_copy(m->file, tensor, r * cols, cols, row, err));
  }
  return WF_OK;
}

/* Copies a bias as one row, and pads each gate. */
static wf_status copy_bias(import *m, const wf__tensor *tensor, float **out, wf_error *err) {
  size_t hidden = m->lm->hidden, padded = wf__padded(hidden);
  *out = wf__rnn_take(m->lm, 1, m->gates * padded);
  for (size_t gate = 0; tensor != NULL && gate < m->gates; gate++)
    WF__TRY(wf__tensor_copy(m->file, tensor, gate * hidden, hidden, *out + gate * padded, err));
  return WF_OK;
}

static wf_status copy_all(import *m, wf_error *err) {
  wf_rnnlm *lm = m->lm;
  WF__TRY(wf__rnn_alloc_floats(lm, num_floats(m), err));
  WF__TRY(copy(m, m->embedding, 1, lm->num_words, lm->embed, &lm->embedding, err));
  lm->output = lm->embedding; /* tied weights, unless there is an output matrix */
  if (m->output != NULL)
    WF__TRY(copy(m, m->output, 1, lm->num_words, lm->hidden, &lm->output, err));
  wf__rnn_matrix bias = {0};
  if (m->output_bias != NULL) WF__TRY(copy(m, m->output_bias, 1, 1, lm->num_words, &bias, err));
  lm->output_bias = bias.data;
  for (size_t l = 0; l < lm->num_layers; l++) {
    wf__rnn_layer *layer = &lm->layers[l];
    WF__TRY(copy(m, m->layers[l].ih, m->gates, lm->hidden, l == 0 ? lm->embed : lm->hidden,
                 &layer->matrix[WF__TORCH_IH], err));
    WF__TRY(copy(m, m->layers[l].hh, m->gates, lm->hidden, lm->hidden, &layer->matrix[WF__TORCH_HH],
                 err));
    WF__TRY(copy_bias(m, m->layers[l].bias_ih, &layer->vector[0], err));
    WF__TRY(copy_bias(m, m->layers[l].bias_hh, &layer->vector[1], err));
  }
  return WF_OK;
}

/* Makes the layers' matrices for exact products. */
static wf_status slice_layers(wf_rnnlm *lm, wf_error *err) {
  static const int which[] = {WF__TORCH_IH, WF__TORCH_HH};
  lm->slices = wf__calloc(2 * lm->num_layers, sizeof *lm->slices);
  if (lm->slices == NULL) return wf__fail_memory(err, 2 * lm->num_layers, "an LSTM");
  for (size_t i = 0; i < 2 * lm->num_layers; i++) {
    wf__rnn_matrix *m = &lm->layers[i / 2].matrix[which[i % 2]];
    WF__TRY(wf__slice_matrix_make(m->data, m->rows, m->cols, m->stride, "a matrix of an LSTM",
                                  &lm->slices[i], err));
    m->slices = &lm->slices[i];
  }
  return WF_OK;
}

static wf_status take_words(import *m, const wf_symbols *words, wf_error *err) {
  wf_rnnlm *lm = m->lm;
  for (size_t i = 0; i < lm->num_words || i < wf_symbols_count(words); i++)
    if (i >= lm->num_words || wf_symbols_text(words, (int64_t)i) == NULL)
      return wf__fail(err, WF_ERR_FORMAT,
                      "%s: %zu words, but %s has %zu rows: expected ids from 0, one for each row",
                      wf__symbols_shown(words), wf_symbols_count(words), m->file->path,
                      lm->num_words);
  lm->words = wf_symbols_ref(words);
  lm->eos = (int32_t)wf_symbols_find(words, "</s>");
  if (lm->eos < 0) lm->eos = (int32_t)wf_symbols_find(words, "<eos>");
  if (lm->eos < 0)
    return wf__fail(err, WF_ERR_FORMAT, "%s: no word </s> or <eos>", wf__symbols_shown(words));
  lm->bos = (int32_t)wf_symbols_find(words, "<s>");
  if (lm->bos < 0) lm->bos = lm->eos;
  return WF_OK;
}

static wf_status import_begin(import *m, wf_error *err) {
  m->lm = wf__calloc(1, sizeof *m->lm);
  if (m->lm == NULL) return wf__fail_memory(err, sizeof *m->lm, "a recurrent language model");
  atomic_init(&m->lm->refs, 1);
  m->lm->unk = -1;
  return WF_OK;
}

/* Gives the model away, or frees it after an error. */
static wf_status import_end(import *m, wf_status status, wf_rnnlm **out, wf_error *err) {
  if (status == WF_OK) status = wf__rnn_finish(m->lm, err);
  if (status == WF_OK)
    *out = m->lm;
  else
    wf_rnnlm_free(m->lm);
  return status;
}

wf_status wf__rnnlm_read_safetensors(const wf__input *file, const wf_symbols *words, wf_rnnlm **out,
                                     wf_error *err) {
  *out = NULL;
  wf__tensors tensors = {0};
import m = {.file = file, .tensors = & tensors, .prefix = "rnn.", .page = "docs/how-to/rnnlm.md" };
  WF__TRY(import_begin(&m, err));
  m.lm->output_kind = WF_RNNLM_SOFTMAX;
  wf_status status = wf__safetensors_read(file, &tensors, err);
  if (status == WF_OK) m.embedding = take_either(&m, "embedding.weight", "encoder.weight");
  if (status == WF_OK) status = find_sizes(&m, err);
  if (status == WF_OK) status = find_output(&m, err);
  if (status == WF_OK) status = find_layers(&m, err);
  if (status == WF_OK) status = check_all_used(&m, err);
  if (status == WF_OK) status = take_words(&m, words, err);
  if (status == WF_OK) status = copy_all(&m, err);
  status = import_end(&m, status, out, err);
  wf__vec_free(&tensors);
  return status;
}

wf_status wf__rnn_read_predictor(const wf__input *file, wf__tensors *tensors, int32_t start,
                                 wf_rnnlm **out, wf_error *err) {
  *out = NULL;
import m = {.file = file, .tensors = tensors, .prefix = "pred.lstm.", .page = "docs/reference/transducers.md" };
  WF__TRY(import_begin(&m, err));
  m.lm->output_kind = WF_RNNLM_HIERARCHICAL; /* there is no output, which a softmax would need */
  m.lm->bos = start;
  m.embedding = take(&m, "pred.emb.weight");
  wf_status status = find_sizes(&m, err);
  if (status == WF_OK) status = find_layers(&m, err);
  if (status == WF_OK) status = copy_all(&m, err);
  if (status == WF_OK) status = slice_layers(m.lm, err);
  return import_end(&m, status, out, err);
}
