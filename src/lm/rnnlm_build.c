/* rnnlm_build.c - the recurrent LM as an object: the shapes of each layer type, memory for the
 * weights, lifetime, info.
 *
 * wf__rnn_visit visits all matrices and vectors in the order of the toolkit's file. Reading,
 * writing, allocation and training use it. */
#include <stdio.h>
#include <stdlib.h>

#include "fst/symbols.h"
#include "lm/rnn_device.h"

#include "base/config.h"
#include "base/platform.h"

static const struct {
  const char *name;
  wf__rnn_kind kind;
  bool gru_input, gru_bias;
} types[] = {
    {"sigmoid", WF__RNN_SIGMOID, false, false}, {"tanh", WF__RNN_TANH, false, false},
    {"relu", WF__RNN_RELU, false, false},       {"relu-trunc", WF__RNN_RELU_TRUNC, false, false},
    {"gru", WF__RNN_GRU, false, false},         {"gru-bias", WF__RNN_GRU, false, true},
    {"gru-insyn", WF__RNN_GRU, true, false},    {"gru-full", WF__RNN_GRU, true, true},
};

static wf_status set_scrn(wf_rnnlm *lm, const char *digits, bool fast, wf_error *err) {
  int64_t context;
  if (!wf__parse_i64((wf__span){digits, strlen(digits)}, &context) || context < 1)
    return wf__fail(err, WF_ERR_FORMAT,
                    "layer type %s: expected a context size after 'scrn' or 'scrnfast'",
                    lm->layer_type);
  lm->kind = WF__RNN_SCRN;
  lm->scrn_fast = fast;
  lm->scrn_context = (uint64_t)context < lm->hidden ? (size_t)context : lm->hidden;
  return WF_OK;
}

wf_status wf__rnn_set_type(wf_rnnlm *lm, const char *layer_type, wf_error *err) {
  snprintf(lm->layer_type, sizeof lm->layer_type, "%s", layer_type);
  if (strncmp(layer_type, "scrnfast", 8) == 0) return set_scrn(lm, lm->layer_type + 8, true, err);
  if (strncmp(layer_type, "scrn", 4) == 0) return set_scrn(lm, lm->layer_type + 4, false, err);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (strcmp(types[i].name, layer_type) != 0) continue;
    lm->kind = types[i].kind;
    lm->gru_input = types[i].gru_input;
    lm->gru_bias = types[i].gru_bias;
    return WF_OK;
  }
  return wf__fail(err, WF_ERR_FORMAT,
                  "layer type '%s' is unknown, expected sigmoid, tanh, relu, relu-trunc, gru, "
                  "gru-bias, gru-insyn, gru-full, scrnN or scrnfastN",
                  lm->layer_type);
}

static wf__rnn_matrix shape(size_t rows, size_t cols) {
  return (wf__rnn_matrix){NULL, rows, cols, wf__padded(cols)};
}

/* Sets the shapes of the toolkit's layer types. */
void wf__rnn_shape_layers(wf_rnnlm *lm) {
  size_t h = lm->hidden, c = lm->scrn_context;
  lm->embedding = lm->output = shape(lm->num_words, h);
  for (size_t l = 0; l < lm->num_layers; l++) {
    wf__rnn_matrix *m = lm->layers[l].matrix;
    if (lm->kind == WF__RNN_SCRN) {
      m[WF__SCRN_B] = shape(c, h);
      m[WF__SCRN_P] = shape(h - c, c);
      m[WF__SCRN_A] = shape(h - c, h);
      m[WF__SCRN_R] = shape(h - c, h - c);
    } else if (lm->kind == WF__RNN_GRU) {
      for (int i = 0; i < 6; i++) m[i] = shape(h, h);
    } else {
      m[WF__RNN_W] = m[WF__RNN_I] = shape(h, h);
    }
  }
}

static bool matrix_used(const wf_rnnlm *lm, size_t layer, int i) {
  if (lm->kind == WF__RNN_GRU) return lm->gru_input || i % 2 == 1;
  if (lm->kind == WF__RNN_SCRN)
    return !(lm->scrn_fast && layer == 0 && (i == WF__SCRN_B || i == WF__SCRN_A));
  return true;
}

static wf_status visit_vectors(wf_rnnlm *lm, wf__rnn_layer *layer, wf__rnn_visit_fn visit,
                               void *user, wf_error *err) {
  if (lm->kind == WF__RNN_SCRN)
    return visit(user, &layer->vector[0], 1, lm->scrn_context, true, err);
  if (lm->kind != WF__RNN_GRU) return WF_OK;
  WF__TRY(visit(user, &layer->vector[WF__GRU_RESET_BIAS], 1, lm->hidden, lm->gru_bias, err));
  return visit(user, &layer->vector[WF__GRU_UPDATE_BIAS], 1, lm->hidden, lm->gru_bias, err);
}

wf_status wf__rnn_visit(wf_rnnlm *lm, wf__rnn_visit_fn visit, void *user, wf_error *err) {
  WF__TRY(visit(user, &lm->embedding.data, lm->num_words, lm->hidden, true, err));
  WF__TRY(visit(user, &lm->output.data, lm->num_words, lm->hidden, true, err));
  for (size_t l = 0; l < lm->num_layers; l++) {
    int count = lm->kind == WF__RNN_GRU    ? 6
                : lm->kind == WF__RNN_SCRN ? 4
                : l > 0                    ? 2
                        : 1; /* the first simple layer adds the embedding directly */
    for (int i = 0; i < count; i++) {
      wf__rnn_matrix *m = &lm->layers[l].matrix[i];
      WF__TRY(visit(user, &m->data, m->rows, m->cols, matrix_used(lm, l, i), err));
    }
  }
  for (size_t l = 0; l < lm->num_layers; l++)
    WF__TRY(visit_vectors(lm, &lm->layers[l], visit, user, err));
  return WF_OK;
}

struct tally {
  uint64_t in_file, in_memory;
};
static wf_status count_floats(void *user, float **data, size_t rows, size_t cols, bool used,
                              wf_error *err) {
  struct tally *tally = user;
  tally->in_file += (uint64_t)rows * cols;
  if (used) tally->in_memory += (uint64_t)rows * wf__padded(cols);
  return WF_OK;
}

uint64_t wf__rnn_file_floats(const wf_rnnlm *lm) {
  struct tally tally = {0};
  wf__rnn_visit((wf_rnnlm *)(uintptr_t)lm, count_floats, &tally,
                NULL); /* only counts; cannot fail */
  return tally.in_file;
}

wf_status wf__rnn_alloc_dense(wf_rnnlm *lm, wf_error *err) {
  struct tally tally = {0};
  WF__TRY(wf__rnn_visit(lm, count_floats, &tally, err));
  return wf__rnn_alloc_floats(lm, tally.in_memory, err);
}

wf_status wf__rnn_alloc_floats(wf_rnnlm *lm, uint64_t floats, wf_error *err) {
  uint64_t bytes = (floats * sizeof(float) / 64 + 1) * 64;
  lm->dense = wf__aligned_alloc(64, bytes);
  if (lm->dense == NULL)
    return wf__fail_memory(err, bytes, "the weights of a recurrent language model");
  memset(lm->dense, 0, bytes);
  lm->dense_size = floats;
  return WF_OK;
}

float *wf__rnn_take(wf_rnnlm *lm, size_t rows, size_t cols) {
  float *at = lm->dense + lm->dense_used;
  lm->dense_used += rows * wf__padded(cols);
  return at;
}

wf_status wf__rnn_finish(wf_rnnlm *lm, wf_error *err) {
  lm->start = wf__calloc(wf__rnn_state_floats(lm), sizeof *lm->start);
  wf__rnn_work work = {0};
  wf_status status = lm->start != NULL
                         ? wf__rnn_work_init(lm, 1, &work, err)
                         : wf__fail_memory(err, lm->hidden * sizeof(float), "a hidden state");
  if (status == WF_OK)
    wf__rnn_advance(lm, 1, (const float *const *)&lm->start, &lm->bos, &lm->start, &work);
  wf__rnn_work_free(&work);
  return status;
}

wf_rnnlm *wf_rnnlm_ref(const wf_rnnlm *rnnlm) {
  wf_rnnlm *shared = (wf_rnnlm *)(uintptr_t)rnnlm;
  atomic_fetch_add(&shared->refs, 1);
  return shared;
}

void wf_rnnlm_free(wf_rnnlm *rnnlm) {
  if (rnnlm == NULL || atomic_fetch_sub(&rnnlm->refs, 1) != 1) return;
  if (rnnlm->base != NULL) {
    wf__gpu_rnn()->weights_free(rnnlm->on_device);
    wf_rnnlm_free(rnnlm->base);
    free(rnnlm);
    return;
  }
  wf_symbols_free(rnnlm->words);
  free(rnnlm->counts);
  free(rnnlm->path_off);
  free(rnnlm->path);
  free(rnnlm->start);
  for (size_t i = 0; rnnlm->slices != NULL && i < 2 * rnnlm->num_layers; i++)
    wf__slice_matrix_free(&rnnlm->slices[i]);
  free(rnnlm->slices);
  wf__aligned_free(rnnlm->dense);
  free(rnnlm->own_cells);
  wf__input_close(&rnnlm->file);
  free(rnnlm);
}

wf_status wf_rnnlm_on_device(const wf_rnnlm *rnnlm, const char *device, wf_rnnlm **out,
                             wf_error *err) {
  const wf_rnnlm *base = rnnlm->base != NULL ? rnnlm->base : rnnlm;
  *out = NULL;
  if (device == NULL || strcmp(device, "cpu") == 0) {
    *out = wf_rnnlm_ref(base);
    return WF_OK;
  }
  const wf__device *gpu = wf__device_find(device, err);
  if (gpu == NULL) return WF_ERR_DEVICE;
  struct wf__rnn_weights *weights;
  WF__TRY(gpu->rnn->weights_send(base, device, &weights, err));
  wf_rnnlm *copy = wf__alloc(1, sizeof *copy);
  if (copy == NULL) {
    gpu->rnn->weights_free(weights);
    return wf__fail_memory(err, sizeof *copy, "a recurrent language model");
  }
  memcpy(copy, base, sizeof *copy);
  atomic_init(&copy->refs, 1);
  copy->base = wf_rnnlm_ref(base);
  copy->on_device = weights;
  *out = copy;
  return WF_OK;
}

wf_status wf_rnnlm_get_info(const wf_rnnlm *lm, wf_rnnlm_info *out, wf_error *err) {
  WF__TRY(wf__struct_check("wf_rnnlm_info", out, sizeof *out, err));
  wf_rnnlm_info info = {.output = lm->output_kind,
                        .hidden_size = (int32_t)lm->hidden,
                        .embedding_size = (int32_t)lm->embed,
                        .num_layers = (int32_t)lm->num_layers,
                        .arity = lm->output_kind == WF_RNNLM_HIERARCHICAL ? lm->arity : 0,
                        .max_path = lm->max_path,
                        .maxent_order = lm->maxent_order,
                        .maxent_cells = lm->num_cells,
                        .nce_lnz = lm->nce_lnz,
                        .reverse = lm->reverse,
                        .num_words = lm->num_words,
                        .num_weights = lm->dense_used,
                        .bos = lm->bos,
                        .eos = lm->eos,
                        .unk = lm->unk,
                        .state_bytes = wf__rnn_state_floats(lm) * sizeof(float) +
                                       (1 + (size_t)wf__rnn_history(lm)) * sizeof(int32_t)};
  memcpy(info.layer_type, lm->layer_type, sizeof info.layer_type);
  uint64_t path_entries = lm->path_off != NULL ? lm->path_off[lm->num_words] : 0;
  info.num_bytes = sizeof *lm + lm->dense_size * sizeof(float) + lm->num_cells * sizeof(float) +
                   path_entries * sizeof *lm->path +
                   (lm->num_words + 1) * (sizeof *lm->path_off + sizeof *lm->counts);
  wf__struct_give(&info, sizeof info, out);
  return WF_OK;
}

const wf_symbols *wf_rnnlm_words(const wf_rnnlm *rnnlm) { return rnnlm->words; }

int32_t wf_rnnlm_find(const wf_rnnlm *lm, const char *word) {
  size_t size = strlen(word);
  bool toolkit = lm->output_kind != WF_RNNLM_SOFTMAX;
  if (toolkit && size > WF__RNN_MAX_WORD_BYTES) size = WF__RNN_MAX_WORD_BYTES;
  int64_t id = wf__symbols_find_bytes(lm->words, word, size);
  return id >= 0 ? (int32_t)id : lm->unk;
}
