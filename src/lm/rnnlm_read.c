/* rnnlm_read.c - models of the faster-rnnlm toolkit: NAME (words and counts) and NAME.nnet
 * (little-endian binary).
 *
 *   u64 version * 10000 + hidden size | u64 MaxEnt cells | i32 MaxEnt order
 *   from version 2: u8 NCE | f32 ln Z        from version 3: u8 reverse
 *   from version 4: char[64] layer type      from version 5: i32 layers
 *   from version 6: i32 arity                (version 1 is version 0 with NCE)
 *   f32 embedding, output, recurrent matrices of all layers, vectors of all layers, MaxEnt cells
 *
 * The sizes follow from the header and the number of words. They are compared with the length of
 * the file before anything is allocated. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lm/rnnlm.h"

/* --- the vocabulary ---------------------------------------------------------------------- */

typedef struct entry {
  wf__span text;
  int64_t count;
} entry;
typedef WF__VEC(entry) entries;

static int compare_entries(const void *a,
                           const void *b) { /* by decreasing count; equal counts in file order */
  const entry *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return x->text.data < y->text.data ? -1 : x->text.data > y->text.data;
}

static wf_status read_entries(const wf__input *vocab, entries *list, wf_error *err) {
  wf__lines lines = wf__lines_of(vocab);
  int64_t total = 0;
  wf__span line, word, number, extra;
  while (wf__next_line(&lines, &line)) {
    if (!wf__next_field(&line, &word)) continue;
    entry item = {.text = word};
    if (!wf__next_field(&line, &number) || !wf__parse_i64(number, &item.count) ||
        wf__next_field(&line, &extra) || item.count < 0)
      return wf__lines_fail(&lines, err, WF_ERR_FORMAT, "'word count' expected");
    if (memchr(word.data, '\0', word.size) != NULL)
      return wf__lines_fail(&lines, err, WF_ERR_FORMAT, "zero byte in a word");
    if (item.count > INT64_MAX / 4 - total)
      return wf__lines_fail(&lines, err, WF_ERR_LIMIT, "the counts add up to more than %" PRId64,
                            INT64_MAX / 4);
    total += item.count;
    if (list->size == 0 && (word.size != 4 || memcmp(word.data, "</s>", 4) != 0))
      return wf__lines_fail(&lines, err, WF_ERR_FORMAT, "first word is '%.*s', '</s>' expected",
                            WF__SPAN_ARG(word));
    WF__TRY(wf__vec_grow(list, 1, "words", err));
    list->data[list->size++] = item;
  }
  if (list->size == 0) return wf__fail(err, WF_ERR_FORMAT, "%s: no words", vocab->path);
  if (list->size > INT32_MAX)
    return wf__fail(err, WF_ERR_LIMIT, "%s: more than %d words", vocab->path, INT32_MAX);
  return WF_OK;
}

static wf_status add_words(const wf__input *vocab, entries *list, wf_rnnlm *lm, wf_error *err) {
  qsort(list->data + 1, list->size - 1, sizeof *list->data, compare_entries);
  lm->num_words = list->size;
  lm->counts = wf__alloc(list->size, sizeof *lm->counts);
  if (lm->counts == NULL)
    return wf__fail_memory(err, list->size * sizeof *lm->counts, "word counts");
  for (size_t i = 0; i < list->size; i++) {
    lm->counts[i] = list->data[i].count;
    char *text = wf__strndup(list->data[i].text.data, list->data[i].text.size);
    if (text == NULL) return wf__fail_memory(err, list->data[i].text.size, "a word");
    wf_status status = wf_symbols_add(lm->words, text, (int64_t)i, NULL, err);
    free(text);
    if (status != WF_OK) return wf__fail_prefix(err, status, "%s", vocab->path);
  }
  return WF_OK;
}

static wf_status read_vocab(const wf__input *vocab, wf_rnnlm *lm, wf_error *err) {
  entries list = {0};
  wf_status status = wf_symbols_create(vocab->path, &lm->words, err);
  if (status == WF_OK) status = read_entries(vocab, &list, err);
  if (status == WF_OK) status = add_words(vocab, &list, lm, err);
  wf__vec_free(&list);
  return status;
}

/* --- the network ------------------------------------------------------------------------- */

static wf_status read_bool(wf__cursor *cursor, bool *out, const char *what, wf_error *err) {
  uint8_t byte;
  WF__TRY(wf__read_bytes(cursor, &byte, 1, what, err));
  if (byte > 1)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%s is %u, 0 or 1 expected", what, byte);
  *out = byte;
  return WF_OK;
}

static wf_status read_versioned(wf__cursor *cursor, uint64_t version, wf_rnnlm *lm, char *type,
                                int32_t *layers, wf_error *err) {
  bool nce = version == 1;
  lm->nce_lnz = 9;
  if (version >= 2) {
    WF__TRY(read_bool(cursor, &nce, "NCE flag", err));
    WF__TRY(wf__read_f32(cursor, &lm->nce_lnz, "ln Z", err));
    if (!isfinite(lm->nce_lnz))
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "ln Z is not a finite number");
  }
  lm->output_kind = nce ? WF_RNNLM_NCE : WF_RNNLM_HIERARCHICAL;
  if (version >= 3) WF__TRY(read_bool(cursor, &lm->reverse, "reverse flag", err));
  if (version >= 4) {
    WF__TRY(wf__read_bytes(cursor, type, 64, "layer type", err));
    if (memchr(type, '\0', 64) == NULL)
      return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "layer type without an end");
  }
  if (version >= 5) WF__TRY(wf__read_i32(cursor, layers, "number of layers", err));
  if (version >= 6) WF__TRY(wf__read_i32(cursor, &lm->arity, "arity", err));
  return WF_OK;
}

static wf_status read_header(wf__cursor *cursor, wf_rnnlm *lm, wf_error *err) {
  uint64_t first;
  char type[64] = "sigmoid";
  int32_t layers = 1;
  lm->arity = 2;
  WF__TRY(wf__read_u64(cursor, &first, "version and hidden size", err));
  uint64_t version = first / 10000;
  lm->hidden = lm->embed = (size_t)(first % 10000);
  if (version > 6 || lm->hidden == 0)
    return wf__cursor_fail(
        cursor, err, WF_ERR_FORMAT,
        "version %llu (expected 0 to 6), hidden size %zu (expected 1 to 9999): not a faster-rnnlm "
        "network",
        (unsigned long long)version, lm->hidden);
  WF__TRY(wf__read_u64(cursor, &lm->num_cells, "number of MaxEnt cells", err));
  WF__TRY(wf__read_i32(cursor, &lm->maxent_order, "MaxEnt order", err));
  WF__TRY(read_versioned(cursor, version, lm, type, &layers, err));
  if (layers < 1 || layers > WF__RNN_MAX_LAYERS)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "%d layers, 1 to %d expected", layers,
                           WF__RNN_MAX_LAYERS);
  lm->num_layers = (size_t)layers;
  if (lm->maxent_order < 0 || lm->maxent_order > WF_RNNLM_MAX_ORDER)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT, "MaxEnt order %d, 0 to %d expected",
                           lm->maxent_order, WF_RNNLM_MAX_ORDER);
  if (lm->num_cells == 0) lm->maxent_order = 0;
  if (lm->maxent_order > 0 && lm->num_cells <= lm->num_words)
    return wf__cursor_fail(cursor, err, WF_ERR_FORMAT,
                           "%llu MaxEnt cells for %zu words: more cells than words expected",
                           (unsigned long long)lm->num_cells, lm->num_words);
  wf_status status = wf__rnn_set_type(lm, type, err);
  if (status != WF_OK) return wf__fail_prefix(err, status, "%s", cursor->path);
  wf__rnn_shape_layers(lm);
  return WF_OK;
}

struct reading {
  wf_rnnlm *lm;
  wf__cursor *cursor;
};

static wf_status read_floats(void *user, float **data, size_t rows, size_t cols, bool used,
                             wf_error *err) {
  struct reading *reading = user;
  const uint8_t *bytes;
  uint64_t begin = wf__cursor_offset(reading->cursor);
  WF__TRY(wf__read_view(reading->cursor, &bytes, (uint64_t)rows * cols * sizeof(float), "weights",
                        err));
  if (!used) return WF_OK;
  float *to = *data = wf__rnn_take(reading->lm, rows, cols);
  for (size_t r = 0; r < rows; r++, to += wf__padded(cols), bytes += cols * sizeof(float)) {
    if (cols != 0) memcpy(to, bytes, cols * sizeof(float));
    for (size_t c = 0; c < cols; c++)
      if (!isfinite(to[c]))
        return wf__fail(err, WF_ERR_FORMAT, "%s: byte %llu: weight is %g", reading->cursor->path,
                        (unsigned long long)(begin + (r * cols + c) * sizeof(float)),
                        (double)to[c]);
  }
  return WF_OK;
}

static wf_status read_net(wf_rnnlm *lm, wf_error *err) {
  wf__cursor cursor = wf__cursor_of(&lm->file);
  WF__TRY(read_header(&cursor, lm, err));
  uint64_t floats = wf__rnn_file_floats(lm), left = wf__cursor_left(&cursor);
  if (left % 4 != 0 || lm->num_cells > left / 4 || floats != left / 4 - lm->num_cells)
    return wf__fail(err, WF_ERR_FORMAT,
                    "%s: %llu bytes of weights, but %zu words, hidden size %zu, %zu %s layers and "
                    "%llu MaxEnt cells make %.0f: truncated, or not the network of this vocabulary",
                    lm->file.path, (unsigned long long)left, lm->num_words, lm->hidden,
                    lm->num_layers, lm->layer_type, (unsigned long long)lm->num_cells,
                    ((double)floats + (double)lm->num_cells) * 4);
  WF__TRY(wf__rnn_alloc_dense(lm, err));
  struct reading reading = {lm, &cursor};
  WF__TRY(wf__rnn_visit(lm, read_floats, &reading, err));
  lm->cells = cursor.at;
  if (lm->output_kind == WF_RNNLM_HIERARCHICAL)
    WF__TRY(wf__rnn_build_tree(lm, wf_symbols_name(lm->words), err));
  return wf__rnn_finish(lm, err);
}

wf_status wf__rnnlm_read_inputs(const wf__input *vocab, wf__input *net, wf_rnnlm **out,
                                wf_error *err) {
  *out = NULL;
  wf_rnnlm *lm = wf__calloc(1, sizeof *lm);
  if (lm == NULL) {
    wf__input_close(net);
    return wf__fail_memory(err, sizeof *lm, "a recurrent language model");
  }
  atomic_init(&lm->refs, 1);
  lm->file = *net;
  *net = (wf__input){0};
  lm->unk = -1;
  wf_status status = read_vocab(vocab, lm, err);
  if (status == WF_OK) status = read_net(lm, err);
  if (status != WF_OK) {
    wf_rnnlm_free(lm);
    return status;
  }
  *out = lm;
  return WF_OK;
}

/* --- opening ----------------------------------------------------------------------------- */

/* Returns a copy of `path` with its last `cut` bytes replaced by `suffix`. */
static char *path_with(const char *path, size_t cut, const char *suffix) {
  size_t size = strlen(path) - cut;
  char *joined = wf__alloc(size + strlen(suffix) + 1, 1);
  if (joined == NULL) return NULL;
  memcpy(joined, path, size);
  memcpy(joined + size, suffix, strlen(suffix) + 1);
  return joined;
}

static wf_status open_toolkit(const char *path, wf_rnnlm **out, wf_error *err) {
  wf__input vocab = {0}, net = {0};
  char *plain = path_with(path, 0, ".nnet"), *gzipped = path_with(path, 0, ".nnet.gz");
  wf_status status = plain != NULL && gzipped != NULL
                         ? wf__input_open(path, &vocab, err)
                         : wf__fail_memory(err, strlen(path), "a path");
  if (status == WF_OK) {
    status = wf__input_open(plain, &net, err);
    if (status == WF_ERR_IO && wf__input_open(gzipped, &net, NULL) == WF_OK) status = WF_OK;
  }
  if (status == WF_OK) status = wf__rnnlm_read_inputs(&vocab, &net, out, err);
  wf__input_close(&vocab);
  free(plain);
  free(gzipped);
  return status;
}

static wf_status open_safetensors(const char *path, wf_rnnlm **out, wf_error *err) {
  char *words_path = path_with(path, strlen(".safetensors"), ".words");
  wf_symbols *words = NULL;
  wf__input file = {0};
  wf_status status = words_path != NULL ? wf_symbols_read(words_path, &words, err)
                                        : wf__fail_memory(err, strlen(path), "a path");
  if (status == WF_OK) status = wf__input_open(path, &file, err);
  if (status == WF_OK) status = wf__rnnlm_read_safetensors(&file, words, out, err);
  wf__input_close(&file);
  wf_symbols_free(words);
  free(words_path);
  return status;
}

wf_status wf_rnnlm_open(const char *path, const char *unk_symbol, wf_rnnlm **out, wf_error *err) {
  *out = NULL;
  if (path == NULL) return wf__fail(err, WF_ERR_ARGUMENT, "no path given");
  size_t size = strlen(path), suffix = strlen(".safetensors");
  bool torch = size > suffix && strcmp(path + size - suffix, ".safetensors") == 0;
  WF__TRY(torch ? open_safetensors(path, out, err) : open_toolkit(path, out, err));
  if (unk_symbol == NULL && !torch) return WF_OK;
  (*out)->unk = (int32_t)wf_symbols_find((*out)->words, unk_symbol != NULL ? unk_symbol : "<unk>");
  if (unk_symbol == NULL || (*out)->unk >= 0) return WF_OK;
  wf_rnnlm_free(*out);
  *out = NULL;
  return wf__fail(err, WF_ERR_ARGUMENT, "%s: no word '%s'", path, unk_symbol);
}
