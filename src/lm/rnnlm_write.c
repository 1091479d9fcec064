/* rnnlm_write.c - models in the faster-rnnlm toolkit's format; the layout is in rnnlm_read.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/output.h"
#include "lm/rnnlm.h"

static wf_status write_vocab(const wf_rnnlm *lm, const char *path, wf_error *err) {
  wf__output *output;
  WF__TRY(wf__output_open(path, &output, err));
  for (size_t w = 0; w < lm->num_words; w++)
    wf__printf(output, "%s %" PRId64 "\n", wf_symbols_text(lm->words, (int64_t)w), lm->counts[w]);
  return wf__output_close(output, err);
}

static void write_header(const wf_rnnlm *lm, wf__output *output) {
  bool legacy = lm->kind == WF__RNN_SIGMOID && lm->num_layers == 1 && lm->arity == 2 &&
                !lm->reverse && lm->output_kind == WF_RNNLM_HIERARCHICAL;
  uint64_t first = (legacy ? 0 : 60000) + (uint64_t)lm->hidden;
  wf__write(output, &first, sizeof first);
  wf__write(output, &lm->num_cells, sizeof lm->num_cells);
  wf__write(output, &lm->maxent_order, sizeof lm->maxent_order);
  if (legacy) return;
  uint8_t nce = lm->output_kind == WF_RNNLM_NCE, reverse = lm->reverse;
  int32_t layers = (int32_t)lm->num_layers;
  wf__write(output, &nce, sizeof nce);
  wf__write(output, &lm->nce_lnz, sizeof lm->nce_lnz);
  wf__write(output, &reverse, sizeof reverse);
  wf__write(output, lm->layer_type, sizeof lm->layer_type);
  wf__write(output, &layers, sizeof layers);
  wf__write(output, &lm->arity, sizeof lm->arity);
}

static wf_status write_floats(void *user, float **data, size_t rows, size_t cols, bool used,
                              wf_error *err) {
  static const float zero = 0;
  for (size_t r = 0; used && r < rows; r++)
    wf__write(user, *data + r * wf__padded(cols), cols * sizeof(float));
  for (size_t i = 0; !used && i < rows * cols; i++) wf__write(user, &zero, sizeof zero);
  return WF_OK;
}

wf_status wf_rnnlm_write(const wf_rnnlm *lm, const char *path, wf_error *err) {
  if (lm->output_kind == WF_RNNLM_SOFTMAX)
    return wf__fail(err, WF_ERR_UNSUPPORTED, "%s: the toolkit's format has no full softmax", path);
  size_t size = strlen(path) + 6;
  char *net = wf__alloc(size, 1);
  if (net == NULL) return wf__fail_memory(err, size, "a path");
  snprintf(net, size, "%s.nnet", path);
  wf__output *output = NULL;
  wf_status status = wf__output_open(net, &output, err);
  if (status == WF_OK) {
    write_header(lm, output);
    status = wf__rnn_visit((wf_rnnlm *)(uintptr_t)lm, write_floats, output, err); /* lm unchanged */
    wf__write(output, lm->cells, lm->num_cells * sizeof(float));
    status = wf__output_close(output, err);
  }
  if (status == WF_OK) status = write_vocab(lm, path, err);
  free(net);
  return status;
}
