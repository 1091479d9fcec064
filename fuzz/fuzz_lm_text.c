/* fuzz_lm_text.c - estimates a model from arbitrary bytes, with the first byte as options. The
 * probabilities of the words after the start of a sentence must sum to 1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "warpfst_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sum(const wf_lm *lm) {
  const wf_symbols *words = wf_lm_words(lm);
  double sum = exp(-(double)wf_lm_final(lm, wf_lm_start(lm), NULL));
  for (size_t i = 0; i < wf_symbols_count(words); i++) {
    int64_t key;
    uint32_t next;
    const char *text = wf_symbols_at(words, i, &key);
    if (wf_lm_knows(lm, (int32_t)key) || strcmp(text, "<unk>") == 0)
      sum += exp(-(double)wf_lm_step(lm, wf_lm_start(lm), (int32_t)key, &next, NULL));
  }
  if (!(fabs(sum - 1) < 1e-4)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  wf_error err;
  wf_lm *lm;
  wf_lm_estimate_options options;
  wf_lm_estimate_options_init(&options);
  options.order = 1 + data[0] % 4;
  options.ids = (data[0] & 16) != 0;
  options.skip_symbols = (data[0] & 4) != 0;
  options.prune = (data[0] & 8) != 0 && options.order > 1 ? "0,1" : NULL;
  const int file = memfd_create("text", 0);
  if (file < 0 || write(file, data + 1, size - 1) != (ssize_t)(size - 1)) abort();
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const char *texts = path;
  if (wf_lm_estimate(&texts, 1, NULL, &options, &lm, NULL, NULL, &err) == WF_OK) {
    check_sum(lm);
    wf_lm_free(lm);
  }
  close(file);
  return 0;
}
